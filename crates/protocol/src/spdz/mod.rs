//! SPDZ: authenticated additive sharing (Keller et al. 2017; Damgard, Pastro, Smart, Zakarias 2012).
//!
//! **Adversary**: active, static, all but one of 2 <= n <= 16 parties; the channels are private and
//! authentic. Secure with abort: an honest party either learns the right output or none, and an abort reveals
//! nothing. There is no fairness and no guarantee of output, and for n >= 3 nobody can say which party
//! cheated. A check errs with probability about 2^-k for the field GF(2^k) of the MACs
//! (`authenticated/check.rs`). All other security is computational, because the material's is
//! (`authenticated/source.rs`).
//!
//! A cell is an element of the field of MACs that lies in a smaller field inside it. Sums, and products by
//! constants, are free. [`LookupMethod`] lists the ways to look up a table.

mod arithmetic;
mod bits;
mod client;
mod client_masks;
mod config;
mod cost;
mod descriptor;
mod elements;
mod garbled;
mod lookup_method;
mod masked;
mod material;
mod products;
mod proofs;
mod refresh;
mod registers;
mod service;
mod setup;
mod shared;
mod stocked;
mod storage;
mod tower;

use std::collections::BTreeMap;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};
use polyclave_field::MacField;
use polyclave_kernels::affine::Map;
use zeroize::Zeroizing;

pub use client::Mask;
pub use config::{Dealer, MAX_PARTIES, OfBits, Preprocessing, SpdzConfig};
pub use descriptor::{
    BIT_DECOMPOSITION, MASKED_TABLES, Material, PREPROCESSING, PULKUS_VIVEK, RIVAIN_PROUFF, TOWER,
    UNIVARIATE, with_material,
};
pub use garbled::{
    GARBLED, GarbledAuthenticated, GarbledAuthenticatedConfig, GarbledCircuit, GarbledRegisters,
};
pub use lookup_method::LookupMethod;
pub use masked::Packing;
pub use material::Batch;
pub use refresh::Refresh;
pub(crate) use refresh::{groups, ranges};
pub use registers::Registers;
pub(crate) use service::{refresh_stored_elements, stored_values};
pub use setup::Setup;
pub use shared::Shared;
pub use stocked::{FromStock, kinds};

use crate::authenticated::{Inverses, MacKey, RowShape, Rows, Source, UnitVectors, Units, Vectors};
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session, check_cells};
use crate::interface::release::Checked;
use crate::interface::session::Stream;
use crate::interface::tally::Cost;
use crate::pool::Pool;
use crate::{Error, Result};
use arithmetic::Arithmetic;
use lookup_method::Route;
use masked::Sums;
use products::Products;
use tower::Workspace;

/// One party in one session.
pub struct Spdz<F: MacField> {
    method: LookupMethod,
    packing: Packing,
    scalars: Vec<Map>,
    pool: Pool,
    /// Masked cells and their MACs, as long as a layer is opened: kept, not wiped each time.
    masked: (Zeroizing<Vec<u8>>, Zeroizing<Vec<F::Word>>),
    tower: Workspace<F>,
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
        let factored = m.factored().filter(|_| F::CELL_BITS == 8);
        factored.unwrap_or((Matrix::identity(m.outs()), *m))
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        self.method.wants(table)
    }
}

impl<F: MacField> Spdz<F> {
    /// A party that takes its material from any source, made under the same key and for the same stream.
    pub fn with_source(
        method: LookupMethod,
        packing: Packing,
        key: MacKey<F>,
        stream: &Stream,
        source: Box<dyn Source<F>>,
    ) -> Self {
        let tower = Workspace::new(&key);
        let arithmetic = Arithmetic::new(key, stream.label(), source);
        let (scalars, pool, masked) = (registers::scalars::<F>(), Pool::default(), Default::default());
        Spdz { method, packing, scalars, pool, masked, tower, arithmetic }
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

    /// Their indices have at least so many bits.
    fn make_units(&mut self, in_bits: u8, count: usize, net: &mut dyn Net) -> Result<Units<F>> {
        if let Some(units) = self.arithmetic.source.deal_units(in_bits, count, &self.pool, net)? {
            return Ok(units);
        }
        Ok(Units::of(self.make_vectors(in_bits, count, net)?))
    }

    fn make_rows(&mut self, shape: RowShape, count: usize, net: &mut dyn Net) -> Result<Rows<F>> {
        if let Some(rows) = self.arithmetic.source.deal_rows(&shape, count, &self.pool, net)? {
            return Ok(rows);
        }
        let vectors = self.make_vectors(shape.in_bits, count, net)?;
        Ok(Rows::of(shape, vectors, &self.scalars, &self.pool))
    }

    /// What was opened for them is not checked yet.
    fn make_vectors(&mut self, in_bits: u8, count: usize, net: &mut dyn Net) -> Result<Vectors<F>> {
        // A vector of two entries is a bit and its complement.
        if self.packing == Packing::Rotation && in_bits > 1 {
            return self.arithmetic.source.unit_vectors(in_bits, count, &self.pool, net);
        }
        let made = UnitVectors::make(&mut self.arithmetic, in_bits, count, self.packing, net)?;
        Ok(Vectors::of(in_bits, made, &self.pool))
    }
}

impl<F: MacField> Session for Spdz<F> {
    type Shared = Shared<F>;
    type Registers = Registers<F>;
    type Batch = Batch<F>;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        cost::cost::<F>(compiled, self.method, self.packing, |table| Self::shape(compiled, table))
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch<F>> {
        let tables = compiled.tables();
        if let Some(table) = tables.iter().find(|t| t.in_bits().max(t.out_bits()) > F::CELL_BITS) {
            let (name, bits) = (table.name(), F::CELL_BITS);
            return Err(Error::Misuse(format!(
                "{} looks up tables of at most {bits} bits, and the {name} of {} has more: evaluate it as gates (--circuit boolean), or \
                 take another protocol, such as spdz-lt or spdz-tower",
                self.method.name(),
                compiled.name()
            )));
        }
        let (mut products, mut inversions, mut units, mut rows) = (0, 0, BTreeMap::new(), BTreeMap::new());
        for lookup in compiled.lookups() {
            let width = if lookup.is_uniform() { 1 } else { lanes };
            let table = &tables[lookup.table];
            match self.method.route(table) {
                Route::Products => products += width,
                Route::Tower => inversions += width,
                Route::Units => *units.entry(table.in_bits()).or_insert(0) += width,
                Route::Rows => *rows.entry(lookup.table).or_insert(0) += width,
            }
        }
        let (_, _, triples) = self.method.cost();
        let triples = self.arithmetic.triples(products * triples, net)?;
        let bits = self.arithmetic.bits(products * self.method.bits::<F>(), net)?;
        let inverses = match inversions {
            0 => Inverses::zero(0),
            count => self.arithmetic.inverses(count, net)?,
        };
        self.arithmetic.openings.reserve_cells(inversions * tower::ROUNDS);
        let make = |(in_bits, count)| Ok((in_bits, self.make_units(in_bits, count, net)?));
        let units = units.into_iter().map(make).collect::<Result<BTreeMap<u8, Units<F>>>>()?;
        let sums = tables.iter().map(|table| {
            let units = units.get(&table.in_bits()).filter(|_| self.method.route(table) == Route::Units)?;
            Some(Sums::new(table, units.in_bits))
        });
        let sums = sums.collect();
        let mut by_table: Vec<Option<Rows<F>>> = tables.iter().map(|_| None).collect();
        for (table, count) in rows {
            by_table[table] = Some(self.make_rows(Self::shape(compiled, table), count, net)?);
        }
        // Sums alone take no material: they can be computed where the stock is dry and while a peer is away.
        if compiled.lookups().next().is_some() {
            self.arithmetic.stock_products(net)?;
        }
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
            inverses,
            inverses_spent: 0,
            units,
            sums,
            rows: by_table,
        })
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch<F>) -> Result<Registers<F>> {
        Ok(Registers::new(compiled.lane_slots(), compiled.uniform_slots(), lanes))
    }

    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<F>>,
        registers: &mut Registers<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let lanes = if port.uniform { 1 } else { registers.lanes() };
        let made;
        let shared = match input {
            Input::Shared(shared) => {
                self.arithmetic.refuse_unchecked(&shared.unchecked)?;
                *shared
            }
            Input::Public(cells) => {
                check_cells(port, cells, lanes)?;
                made = Shared::public(cells, &port.views(), &self.arithmetic.key);
                &made
            }
            Input::Mine(cells) => {
                check_cells(port, cells, lanes)?;
                made = self.arithmetic.share(net.me(), Some(cells), port, lanes, net)?;
                &made
            }
            Input::From(owner) => {
                made = self.arithmetic.share(*owner, None, port, lanes, net)?;
                &made
            }
        };
        shared.put(port, lanes, registers)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers<F>) {
        registers.linear(maps, &self.scalars, &self.arithmetic.key);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers<F>,
        batch: &mut Batch<F>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let made_for = (batch.stream, batch.circuit, batch.lanes);
        if made_for != (self.arithmetic.stream, compiled.digest(), registers.lanes()) {
            return Err(Error::misuse(
                "the batch was prepared for another session, circuit or number of lanes",
            ));
        }
        let by = |routes: &[Route]| -> Vec<&Lookup> {
            let route = |lookup: &&Lookup| self.method.route(&compiled.tables()[lookup.table]);
            lookups.iter().filter(|lookup| routes.contains(&route(lookup))).collect()
        };
        let (products, inversions) = (by(&[Route::Products]), by(&[Route::Tower]));
        let masked = by(&[Route::Units, Route::Rows]);
        if !products.is_empty() {
            let products = Products::new(compiled, &products, registers, &mut self.arithmetic, batch, net);
            products.run(self.method, registers)?;
        }
        if !inversions.is_empty() {
            self.look_up_by_tower(compiled, &inversions, registers, batch, net)?;
        }
        if !masked.is_empty() {
            self.look_up_masked(compiled, &masked, registers, batch, net)?;
        }
        Ok(())
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers<F>) -> Shared<F> {
        Shared::of(port, registers, self.arithmetic.unchecked())
    }

    fn select_lanes(&self, shared: &Shared<F>, lanes: &[usize]) -> Shared<F> {
        shared.select(lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.arithmetic.check(net)
    }

    /// Checks what no [`Session::check`] has before; then opens the value, to all or, under a mask that only
    /// the owner knows, to one; then checks the opening itself.
    fn release(
        &mut self,
        shared: &Shared<F>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Checked<Cells>>> {
        self.arithmetic.refuse_unchecked(&shared.unchecked)?;
        self.arithmetic.check(net)?;
        let cells = self.arithmetic.reveal(shared, to, net)?;
        self.arithmetic.check(net)?;
        Ok(cells.map(Checked::new))
    }

    crate::counted_session!(self => self.arithmetic.phase, self.arithmetic.tally);
}
