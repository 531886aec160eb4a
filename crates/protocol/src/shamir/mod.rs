//! Shamir sharing over GF(2^8) with pseudorandom secret sharing: Damgard and Keller 2010, and the VIFF note
//! of 2009.
//!
//! There are two adversaries, both static; the channels are private and authentic. Any 2t + 1 of the parties
//! can serve a session (`arithmetic.rs` says why).
//!
//! * [`ShamirConfig`]: **passive**, at most t < n/2 of 3 <= n <= 9 parties. A party that runs modified code
//!   is outside this model: it can make wrong outputs, and can extract the key.
//! * [`ShamirActiveConfig`]: **active**, at most t < n/3 of 4 <= n <= 9 parties (`active/`).
//!
//! Secrecy is computational (pseudorandom sharing). Each function of `passive.rs` and `active/` argues what
//! is opened and why that reveals nothing. Everything above them, lookups and inversions, is the same code.
//!
//! A cell is a field element, so sums and products by constants are free. A table that is built on inversion
//! is looked up by one of the methods of [`Inversion`]. Any other table is looked up by one-time masked
//! tables (`masked_table.rs`).

mod active;
mod arithmetic;
mod chain;
mod client;
mod cost;
mod demand;
mod descriptor;
mod elements;
mod inversion;
mod invert;
mod masked_powers;
mod masked_table;
mod memory;
mod opening;
mod passive;
mod polynomial;
mod power;
mod product;
mod prss;
mod refresh;
pub mod reshare;
mod runs;
mod security;
mod service;
mod setup;
mod storage;
mod tables;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};
use polyclave_kernels::affine::{Map, Term, combine};
use zeroize::Zeroizing;

pub use active::{Active, Preprocessing, ShamirActiveConfig};
pub(crate) use active::{Broadcast, Symbol, decode};
pub use client::Mask;
pub(crate) use client::{combine_elements, combine_shares};
pub use descriptor::{ACTIVE, PASSIVE};
pub use inversion::Inversion;
pub use passive::Passive;
pub(crate) use setup::point;
pub use setup::{MAX_PARTIES, Setup, Structure};
pub use tables::Tables;

pub use crate::byte_registers::Registers;
pub use crate::byte_shares::ByteShares as Shared;

use crate::interface::net::Net;
use crate::interface::protocol::{
    Adversary, Faults, Input, Owner, ProtocolConfig, Session, SharedValue, check_cells,
};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::tally::Cost;
use crate::{Error, PartySet, Result};
use arithmetic::Arithmetic;
use demand::Demand;
use invert::Inversions;
use masked_table::Stock;
use power::Powers;
use security::{AdversaryModel, Image};
use tables::LookupMethod;

/// Shamir sharing among some parties, with one way to invert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShamirConfig {
    /// Parties and threshold.
    pub structure: Structure,
    /// How lookups of tables built on inversion run.
    pub inversion: Inversion,
    /// How lookups of other tables run.
    pub tables: Tables,
}

impl ProtocolConfig for ShamirConfig {
    type Setup = Setup;
    type Session = Shamir;

    fn name(&self) -> &'static str {
        "shamir"
    }

    fn parties(&self) -> usize {
        self.structure.parties()
    }

    fn adversary(&self) -> Adversary {
        Adversary::Passive
    }

    fn promise(&self) -> String {
        let (n, t) = (self.structure.parties(), self.structure.threshold());
        format!(
            "passive, at most {t} of {n} parties: a single party that runs modified code can extract the key"
        )
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters
            .with("protocol", self.name().as_bytes())
            .with("threshold", &self.structure.threshold().to_le_bytes())
            .with("inversion", self.inversion.name().as_bytes())
            .with("tables", self.tables.name().as_bytes())
            .with("tables of two bits", product::NAME)
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        Setup::agree(self.structure, net)
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Shamir> {
        if setup.structure() != self.structure {
            return Err(Error::misuse("the setup was made for another number of parties or threshold"));
        }
        let arithmetic = Arithmetic::new(setup, stream, serving)?;
        Ok(Shamir { inversion: self.inversion, tables: self.tables, arithmetic })
    }
}

/// One party in one session, against parties that only look on or that cheat.
pub struct Shamir<S = Passive> {
    inversion: Inversion,
    tables: Tables,
    arithmetic: Arithmetic<S>,
}

/// Material for one evaluation.
pub struct Batch<S: AdversaryModel = Passive> {
    /// The stream it was made on: shares of another one have other polynomials.
    stream: [u8; 40],
    circuit: [u8; 32],
    lanes: usize,
    powers: Option<Powers>,
    stock: Stock,
    products: S::Material,
}

/// Products by constants are free; the images that carried squares and polynomials start from are asked of
/// the lookup before.
impl<S: AdversaryModel> Maps for Shamir<S> {
    fn is_local(&self, m: &Matrix) -> bool {
        m.as_scalar().is_some()
    }

    /// Images of a byte that differ by a constant factor are one view.
    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        if self.is_local(m) {
            return (*m, Matrix::identity(m.ins()));
        }
        m.factored().unwrap_or((Matrix::identity(m.outs()), *m))
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        match self.tables.way(table) {
            LookupMethod::Inversion(inversion) if self.inversion == Inversion::CarriedSquares => {
                let before = inversion.before.matrix;
                vec![before, Matrix::frobenius(1).after(&before)]
            }
            LookupMethod::Inversion(inversion) if self.inversion == Inversion::MaskedPowers => {
                vec![inversion.before.matrix]
            }
            LookupMethod::Product => product::wants(),
            LookupMethod::Polynomial(polynomials) => polynomial::wants(table, polynomials),
            _ => vec![Matrix::identity(table.in_bits())],
        }
    }
}

impl<S: AdversaryModel> Shamir<S> {
    /// Powers of masks and masked tables, made here and now.
    fn make_batch(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch<S>> {
        let demand = Demand::of(compiled, lanes, self.inversion, self.tables);
        let arithmetic = &mut self.arithmetic;
        let powers = match self.inversion {
            _ if demand.inversions == 0 => None,
            Inversion::MaskedExponentiation => Some(Powers::squares(arithmetic, demand.inversions, net)?),
            Inversion::MaskedPowers => Some(Powers::products(arithmetic, demand.inversions, net)?),
            _ => None,
        };
        let stock = Stock::prepare(arithmetic, compiled, &demand.masked, net)?;
        Ok(Batch {
            stream: arithmetic.stream,
            circuit: compiled.digest(),
            lanes,
            powers,
            stock,
            products: S::Material::default(),
        })
    }
}

impl<S: AdversaryModel> Session for Shamir<S> {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch<S>;
    type Released = S::Released;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let Arithmetic { security, structure, .. } = &self.arithmetic;
        cost::cost(compiled, security, *structure, self.inversion, self.tables)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch<S>> {
        S::prepare(self, compiled, lanes, net)
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch<S>) -> Result<Registers> {
        Ok(Registers::new(compiled.lane_slots(), compiled.uniform_slots(), lanes, &self.arithmetic.pool))
    }

    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared>,
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let lanes = registers.lanes();
        let width = if port.uniform { 1 } else { lanes };
        let images: Vec<_> =
            port.cells.iter().enumerate().flat_map(|(i, views)| views.iter().map(move |v| (i, v))).collect();
        let maps: Vec<Image<'_>> = images.iter().map(|(i, (m, _))| (*i, m)).collect();
        let mut shares = Zeroizing::new(vec![0; images.len() * width]);
        match input {
            // A public value is shared by the constant polynomial.
            Input::Public(cells) => {
                check_cells(port, cells, lanes)?;
                for ((i, m), row) in maps.iter().zip(shares.chunks_mut(width.max(1))) {
                    combine(row, &[Term { src: cells.row(*i), map: &Map::new(m.columns()) }], 0);
                }
            }
            Input::Mine(cells) => {
                check_cells(port, cells, lanes)?;
                S::share_own(&mut self.arithmetic, cells, &maps, &mut shares, net)?;
            }
            Input::From(owner) => {
                let shape = (port.cells.len(), width);
                S::receive_share(&mut self.arithmetic, *owner, shape, &maps, &mut shares, net)?;
            }
            Input::Shared(shared) => {
                shared.check_port(port, lanes)?;
                for ((i, (m, _)), row) in images.iter().zip(shares.chunks_mut(width.max(1))) {
                    row.copy_from_slice(shared.image(port, *i, m)?);
                }
            }
        }
        for ((_, (_, slot)), row) in images.iter().zip(shares.chunks(width.max(1))) {
            registers.row_mut(*slot).copy_from_slice(row);
        }
        Ok(())
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        // Every matrix is a product by a constant, so the image of 1 names it.
        let scalar = |matrix: &Matrix| &self.arithmetic.scalars[usize::from(matrix.columns()[0])];
        registers.linear(maps, scalar, true);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch<S>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let made_for = (batch.stream, batch.circuit, batch.lanes);
        if made_for != (self.arithmetic.stream, compiled.digest(), registers.lanes()) {
            return Err(Error::misuse(
                "the batch was prepared for another session, circuit or number of lanes",
            ));
        }
        let material = std::mem::take(&mut batch.products);
        self.arithmetic.security.load(material);
        let (mut inversions, mut products) = (Vec::new(), Vec::new());
        let (mut polynomials, mut masked) = (Vec::new(), Vec::new());
        let tables = self.tables.at(registers.lanes());
        for lookup in lookups {
            match tables.way(&compiled.tables()[lookup.table]) {
                LookupMethod::Inversion(_) => inversions.push(lookup),
                LookupMethod::Product => products.push(lookup),
                LookupMethod::Polynomial(_) => polynomials.push(lookup),
                LookupMethod::Masked => masked.push(lookup),
            }
        }
        if !inversions.is_empty() {
            let inversions = Inversions::new(compiled, &inversions, registers);
            inversions.run(self.inversion, &mut self.arithmetic, registers, batch.powers.as_mut(), net)?;
        }
        if !products.is_empty() {
            product::lookup(compiled, &products, &mut self.arithmetic, registers, net)?;
        }
        if !polynomials.is_empty() {
            polynomial::lookup(compiled, &polynomials, &mut self.arithmetic, registers, net)?;
        }
        if !masked.is_empty() {
            masked_table::lookup(compiled, &masked, &mut self.arithmetic, registers, &mut batch.stock, net)?;
        }
        batch.products = self.arithmetic.security.load(S::Material::default());
        Ok(())
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        Shared::of_port(port, registers.lanes(), |slot| registers.row(slot))
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes)
    }

    fn check(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Sends the shares to the owner. They are of degree t exactly: given the shares of any t parties and the
    /// value, the others follow, so they say nothing more than the value and need no re-randomisation.
    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<S::Released>> {
        let shares = shared.reveal_own_shares();
        let values = match to {
            Owner::All => Some(self.arithmetic.open_plain(shares, net)?),
            Owner::Party(p) => self.arithmetic.reveal_to(p, shares, net)?,
        };
        Ok(values.map(|values| {
            let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
            cells.rows_mut().copy_from_slice(&values);
            S::released(cells)
        }))
    }

    crate::counted_session!(self => self.arithmetic.phase, self.arithmetic.tally);

    fn faults(&self) -> Faults {
        S::faults(&self.arithmetic)
    }
}
