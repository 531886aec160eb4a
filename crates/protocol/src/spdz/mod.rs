//! SPDZ: authenticated additive sharing (Keller et al. 2017; Damgard, Pastro, Smart, Zakarias 2012).
//!
//! **Adversary**: active, static, all but one of 2 <= n <= 16 parties; the channels are private and authentic. Secure with
//! abort: an honest party either learns the right output or none, nothing is revealed by an abort, and there is no fairness, no
//! guarantee of output, and for n >= 3 nobody can say who cheated. A check errs with probability about 2^-k for the field
//! GF(2^k) of the MACs (`check.rs`); all else is computational, since the material is (`source.rs`).
//!
//! A cell is an element of the field of MACs that lies in a smaller field inside: sums, and products by constants, are
//! free. A lookup goes one of the ways of [`Way`].

mod arithmetic;
mod bank;
mod check;
mod cost;
mod key;
mod masked;
mod material;
mod opening;
mod products;
mod share;
mod shared;
mod source;
mod way;

use std::collections::BTreeMap;
use std::marker::PhantomData;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};
use polyclave_field::MacField;
use polyclave_kernels::affine::Map;
use zeroize::Zeroizing;

pub use bank::Bank;
pub(crate) use check::{Coefficients, check_plainly};
pub use key::MacKey;
pub use masked::{Packing, RowShape, Rows, UnitVectors, Units};
pub use material::Batch;
pub use opening::Openings;
pub use share::Authenticated;
pub use shared::Shared;
pub use source::{OwnedBits, Product, Source, Triples};
pub use way::Way;

use crate::mascot::Mascot;
use crate::net::Net;
use crate::pool::Pool;
use crate::protocol::{Input, Owner, Protocol, Scheme};
use crate::release::Checked;
use crate::session::{Stream, Terms, random_bytes};
use crate::tally::{Cost, Phase, Tally};
use crate::testkit::insecure_dealer::{self, InsecureDealer};
use crate::{Error, PartySet, Result, coins};
use arithmetic::Arithmetic;
use masked::Sums;
use material::spend;
use products::Products;
use way::Route;

/// Most parties of a scheme.
pub const MAX_PARTIES: usize = 16;

/// Where material comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preprocessing {
    /// From oblivious transfer ([`crate::mascot`]), with this expansion of [`crate::ot`].
    Mascot {
        /// 1 to 8: less is sent, and more computed.
        expansion: usize,
    },
    /// A dealer that every party could impersonate: for tests, and to measure the online phase alone.
    InsecureDealer,
}

impl std::fmt::Display for Preprocessing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preprocessing::Mascot { expansion } => write!(f, "mascot with expansion {expansion}"),
            Preprocessing::InsecureDealer => f.write_str("insecure_dealer"),
        }
    }
}

/// Authenticated sharing among some parties, with MACs in a field.
pub struct SpdzScheme<F: MacField> {
    parties: usize,
    way: Way,
    preprocessing: Preprocessing,
    packing: Packing,
    field: PhantomData<F>,
}

impl<F: MacField> SpdzScheme<F> {
    /// For 2 parties or more.
    pub fn new(parties: usize, way: Way, preprocessing: Preprocessing, packing: Packing) -> Result<Self> {
        if !(2..=MAX_PARTIES).contains(&parties) {
            return Err(Error::Misuse(format!(
                "{} runs among 2 to {MAX_PARTIES} parties, not {parties}",
                way.name()
            )));
        }
        if (way == Way::Univariate) != (F::CELL_BITS == 6) {
            return Err(Error::Misuse(format!("{} does not run over {}", way.name(), F::NAME)));
        }
        Ok(SpdzScheme { parties, way, preprocessing, packing, field: PhantomData })
    }
}

/// What a party keeps from session to session.
pub struct Setup<F: MacField> {
    key: MacKey<F>,
    material: Root<F>,
}

/// What the material of every session under the setup comes from.
enum Root<F: MacField> {
    /// Set up once, so that every party's share of the MAC key is the same in all sessions.
    Mascot(Box<Mascot<F>>),
    Dealer([u8; 32]),
}

impl<F: MacField> Scheme for SpdzScheme<F> {
    type Setup = Setup<F>;
    type Protocol = Spdz<F>;

    fn name(&self) -> &'static str {
        self.way.name()
    }

    fn parties(&self) -> usize {
        self.parties
    }

    fn adversary(&self) -> String {
        let (n, most) = (self.parties, self.parties - 1);
        match self.preprocessing {
            Preprocessing::Mascot { .. } => format!(
                "active, static, at most {most} of {n} parties: secure with abort, statistical error about 2^-{}; no \
                 fairness, and no culprit is named",
                F::BITS.min(64)
            ),
            Preprocessing::InsecureDealer => format!(
                "insecure with material from insecure_dealer, which every party could impersonate; with real material \
                 active, at most {most} of {n} parties"
            ),
        }
    }

    fn verifies(&self) -> bool {
        self.preprocessing != Preprocessing::InsecureDealer
    }

    fn terms(&self, terms: Terms) -> Terms {
        terms
            .with("protocol", self.name().as_bytes())
            .with("field", F::NAME.as_bytes())
            .with("preprocessing", self.preprocessing.to_string().as_bytes())
            .with("demux field", &self.packing.entries::<F>().to_le_bytes())
    }

    fn set_up(&self, net: &mut dyn Net) -> Result<Setup<F>> {
        if net.parties() != self.parties || net.members().len() != self.parties {
            let connected = net.members().len();
            let n = self.parties;
            return Err(Error::Misuse(format!("{connected} parties are connected, all of {n} are needed")));
        }
        match self.preprocessing {
            Preprocessing::Mascot { expansion } => {
                let key = MacKey::generate(net)?;
                let label = coins::toss(b"set-up of authenticated sharing", net)?;
                let mascot = Mascot::set_up(&label, &key, expansion, net)?;
                Ok(Setup { key, material: Root::Mascot(Box::new(mascot)) })
            }
            Preprocessing::InsecureDealer => {
                // The first party's word is the seed: there is nothing to protect.
                let mut seed = [0; 32];
                random_bytes(&mut seed)?;
                let all = crate::commitment::broadcast(&seed, net)?;
                seed.copy_from_slice(&all[0]);
                let key = insecure_dealer::mac_key(&seed, net.me(), self.parties);
                Ok(Setup { key, material: Root::Dealer(seed) })
            }
        }
    }

    fn join(&self, setup: &Setup<F>, stream: Stream, serving: PartySet) -> Result<Spdz<F>> {
        if serving != PartySet::all(self.parties) {
            let n = self.parties;
            return Err(Error::Misuse(format!("{serving} serve, but all of {n} parties have to")));
        }
        let label = stream.label();
        let source: Box<dyn Source<F>> = match (self.preprocessing, &setup.material) {
            (Preprocessing::Mascot { .. }, Root::Mascot(mascot)) => Box::new(mascot.fork(&label)),
            (Preprocessing::InsecureDealer, Root::Dealer(seed)) => {
                Box::new(InsecureDealer::new(seed, &label, setup.key.me(), self.parties))
            }
            _ => return Err(Error::misuse("the setup was made for another preprocessing")),
        };
        Ok(Spdz::with_source(self.way, self.packing, setup.key.clone(), &stream, source))
    }
}

/// One party in one session.
pub struct Spdz<F: MacField> {
    way: Way,
    packing: Packing,
    scalars: Vec<Map>,
    pool: Pool,
    arithmetic: Arithmetic<F>,
}

/// Products by constants of the field of cells are free, and every map of a single bit is one.
impl<F: MacField> Maps for Spdz<F> {
    fn is_local(&self, m: &Matrix) -> bool {
        m.ins() == 1 || m.is_identity() || (F::CELL_BITS == 8 && m.as_scalar().is_some())
    }

    /// Images of a byte that differ by a constant factor are one view.
    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        if self.is_local(m) {
            return (*m, Matrix::identity(m.ins()));
        }
        let is_byte = F::CELL_BITS == 8 && m.outs() == 8;
        let factor = m.columns().into_iter().find(|c| *c != 0).filter(|_| is_byte).map(Matrix::scalar);
        match factor.and_then(|f| Some((f, f.inverse()?))) {
            Some((factor, inverse)) => (factor, inverse.after(m)),
            None => (Matrix::identity(m.outs()), *m),
        }
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        self.way.wants(table)
    }
}

impl<F: MacField> Spdz<F> {
    /// A party that takes its material from any source, made under the same key and for the same stream.
    pub fn with_source(
        way: Way,
        packing: Packing,
        key: MacKey<F>,
        stream: &Stream,
        source: Box<dyn Source<F>>,
    ) -> Self {
        let arithmetic = Arithmetic::new(key, stream.label(), source);
        Spdz { way, packing, scalars: bank::scalars::<F>(), pool: Pool::default(), arithmetic }
    }

    /// What the masked tables of one table of a circuit hold: every image that one of its lookups wants.
    fn shape(compiled: &Compiled, table: usize) -> RowShape {
        let lookups = compiled.lookups().filter(|lookup| lookup.table == table);
        let mut views: Vec<Matrix> =
            lookups.flat_map(|lookup| lookup.views.iter().map(|(m, _)| *m)).collect();
        views.sort_unstable();
        views.dedup();
        let table = &compiled.tables()[table];
        let images = |m: &Matrix| table.entries().iter().map(|entry| m.apply(*entry)).collect();
        let images = views.iter().map(images).collect();
        RowShape { in_bits: table.in_bits(), views, images }
    }

    fn make_units(&mut self, in_bits: u8, count: usize, net: &mut dyn Net) -> Result<Units<F>> {
        if let Some(units) = self.arithmetic.source.deal_units(in_bits, count, &self.pool) {
            return Ok(units);
        }
        let vectors = UnitVectors::make(&mut self.arithmetic, in_bits, count, self.packing, net)?;
        Ok(Units::of(in_bits, vectors, &self.pool))
    }

    fn make_rows(&mut self, shape: RowShape, count: usize, net: &mut dyn Net) -> Result<Rows<F>> {
        if let Some(rows) = self.arithmetic.source.deal_rows(&shape, count, &self.pool) {
            return Ok(rows);
        }
        let vectors = UnitVectors::make(&mut self.arithmetic, shape.in_bits, count, self.packing, net)?;
        Ok(Rows::of(shape, vectors, &self.scalars, &self.pool))
    }
}

impl<F: MacField> Protocol for Spdz<F> {
    type Shared = Shared<F>;
    type Bank = Bank<F>;
    type Batch = Batch<F>;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        cost::cost::<F>(compiled, self.way, self.packing, |table| Self::shape(compiled, table))
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch<F>> {
        let tables = compiled.tables();
        if let Some(table) = tables.iter().find(|t| t.in_bits().max(t.out_bits()) > F::CELL_BITS) {
            let (name, bits) = (table.name(), F::CELL_BITS);
            return Err(Error::Misuse(format!(
                "{}: cells of at most {bits} bits, not {name}",
                self.way.name()
            )));
        }
        let (mut products, mut units, mut rows) = (0, BTreeMap::new(), BTreeMap::new());
        for lookup in compiled.lookups() {
            let width = if lookup.is_uniform() { 1 } else { lanes };
            let table = &tables[lookup.table];
            match self.way.route(table) {
                Route::Products => products += width,
                Route::Units => *units.entry(table.in_bits()).or_insert(0) += width,
                Route::Rows => *rows.entry(lookup.table).or_insert(0) += width,
            }
        }
        let (_, _, triples) = self.way.cost();
        let triples = self.arithmetic.triples(products * triples, net)?;
        let bits = self.arithmetic.bits(products * self.way.bits::<F>(), net)?;
        let units = units.into_iter().map(|(in_bits, count)| self.make_units(in_bits, count, net));
        let units = units.collect::<Result<_>>()?;
        let mut by_table: Vec<Option<Rows<F>>> = tables.iter().map(|_| None).collect();
        for (table, count) in rows {
            by_table[table] = Some(self.make_rows(Self::shape(compiled, table), count, net)?);
        }
        self.arithmetic.stock_products(net)?;
        // Nothing that was opened on the way is used before it has been checked.
        self.arithmetic.check(net)?;
        Ok(Batch {
            stream: self.arithmetic.stream,
            circuit: compiled.digest(),
            lanes,
            triples,
            triples_spent: 0,
            bits,
            bits_spent: 0,
            units,
            rows: by_table,
        })
    }

    fn bank(&mut self, compiled: &Compiled, lanes: usize) -> Bank<F> {
        Bank::new(compiled.lane_slots(), compiled.uniform_slots(), lanes)
    }

    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<F>>,
        bank: &mut Bank<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let lanes = if port.uniform { 1 } else { bank.lanes() };
        let made;
        let shared = match input {
            Input::Shared(shared) => {
                self.arithmetic.refuse_unchecked(shared.unchecked.as_ref())?;
                *shared
            }
            Input::Public(cells) => {
                shared::fits(port, cells, lanes)?;
                made = Shared::public(cells, &port.views(), &self.arithmetic.key);
                &made
            }
            Input::Mine(cells) => {
                shared::fits(port, cells, lanes)?;
                made = self.arithmetic.share(net.me(), Some(cells), port, lanes, net)?;
                &made
            }
            Input::From(owner) => {
                made = self.arithmetic.share(*owner, None, port, lanes, net)?;
                &made
            }
        };
        shared.put(port, lanes, bank)
    }

    fn linear(&mut self, maps: &[Linear], bank: &mut Bank<F>) {
        bank.linear(maps, &self.scalars, &self.arithmetic.key);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        bank: &mut Bank<F>,
        batch: &mut Batch<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let made_for = (batch.stream, batch.circuit, batch.lanes);
        if made_for != (self.arithmetic.stream, compiled.digest(), bank.lanes()) {
            return Err(Error::misuse(
                "the batch was prepared for another session, circuit or number of lanes",
            ));
        }
        let route = |lookup: &&Lookup| self.way.route(&compiled.tables()[lookup.table]);
        let (products, masked): (Vec<&Lookup>, Vec<&Lookup>) =
            lookups.iter().partition(|lookup| route(lookup) == Route::Products);
        if !products.is_empty() {
            let products = Products::new(compiled, &products, bank, &mut self.arithmetic, batch, net);
            products.run(self.way, bank)?;
        }
        if !masked.is_empty() {
            self.look_up_masked(compiled, &masked, bank, batch, net)?;
        }
        Ok(())
    }

    fn output(&mut self, port: &CompiledPort, bank: &Bank<F>) -> Shared<F> {
        Shared::of(port, bank, self.arithmetic.unchecked())
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.arithmetic.check(net)
    }

    /// Checks what no [`Protocol::check`] has before; then opens the value, to all or, under a mask that only the owner knows,
    /// to one; then checks the opening itself.
    fn release(
        &mut self,
        shared: &Shared<F>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Checked<Cells>>> {
        self.arithmetic.refuse_unchecked(shared.unchecked.as_ref())?;
        self.arithmetic.check(net)?;
        let cells = self.arithmetic.reveal(shared, to, net)?;
        self.arithmetic.check(net)?;
        Ok(cells.map(Checked::new))
    }

    fn enter(&mut self, phase: Phase) {
        self.arithmetic.phase = phase;
    }

    fn tally(&self) -> Tally {
        self.arithmetic.tally
    }
}

impl<F: MacField> Spdz<F> {
    /// All lookups of a layer that go by masked tables (Protocol 1): one opening each, one round.
    fn look_up_masked(
        &mut self,
        compiled: &Compiled,
        lookups: &[&Lookup],
        bank: &mut Bank<F>,
        batch: &mut Batch<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let missing = || Error::misuse("the batch was prepared without this table");
        let total = lookups.iter().map(|lookup| bank.row(lookup.xs[0]).cells.len()).sum();
        let mut masked = Zeroizing::new(Vec::with_capacity(total));
        let mut macs = Zeroizing::new(Vec::<F::Word>::with_capacity(total));
        // Spent first: the positions are taken before anything is sent.
        let mut spent = Vec::with_capacity(lookups.len());
        for lookup in lookups {
            let row = bank.row(lookup.xs[0]);
            let (count, in_bits) = (row.cells.len(), compiled.tables()[lookup.table].in_bits());
            let (range, index, index_macs) = match &mut batch.rows[lookup.table] {
                Some(rows) => {
                    (spend(&mut rows.spent, count, rows.index.len())?, &rows.index, &rows.index_macs)
                }
                None => {
                    let units = batch.units.iter_mut().find(|units| units.in_bits == in_bits);
                    let units = units.ok_or_else(missing)?;
                    (spend(&mut units.spent, count, units.index.len())?, &units.index, &units.index_macs)
                }
            };
            masked.extend(row.cells.iter().zip(&index[range.clone()]).map(|(x, s)| x ^ s));
            macs.extend(row.macs.iter().zip(&index_macs[range.clone()]).map(|(x, s)| *x ^ *s));
            spent.push(range);
        }
        let (_, public) = self.arithmetic.open(&Authenticated::zero(0), &masked, &macs, net)?;

        let mut at = 0;
        for (lookup, range) in lookups.iter().zip(spent) {
            let h = &public[at..at + range.len()];
            at += range.len();
            let table = &compiled.tables()[lookup.table];
            if h.iter().any(|h| u16::from(*h) >= 1 << table.in_bits()) {
                // A cheater's opening: the check would find it, and until then there is no such row.
                self.arithmetic.key.retire();
                return Err(Error::CheckFailed { what: "the range of an opened index" });
            }
            match &batch.rows[lookup.table] {
                Some(rows) => {
                    for (m, slot) in &lookup.views {
                        let view = rows.shape.views.iter().position(|v| v == m).ok_or_else(missing)?;
                        let row = bank.row_mut(*slot);
                        rows.look_up(range.start, h, view, &mut row.cells, &mut row.macs);
                    }
                }
                None => {
                    let units = batch.units.iter().find(|units| units.in_bits == table.in_bits());
                    let units = units.ok_or_else(missing)?;
                    let entries = &units.entries[range.clone()];
                    let size = 1 << table.in_bits();
                    let macs = &units.macs[range.start * size * F::BYTES..range.end * size * F::BYTES];
                    Sums::new(table).look_up(h, entries, macs, &lookup.views, bank);
                }
            }
        }
        Ok(())
    }
}
