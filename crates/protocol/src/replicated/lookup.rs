//! Lookups: those of a layer run together, and all products of a round are shared by one step of a
//! [`Multiplier`]. Nothing here knows how many parties there are, only how many shares one has (`C`).

use std::array;
use std::collections::BTreeMap;
use std::sync::Arc;

use polyclave_cipher::{Compiled, Lookup, Table};
use polyclave_kernels::planes::{Factors, Planes};

use super::gates::{self, Program, Programs};
use super::registers::{self, Registers};
use super::tower::{self, Tower};
use crate::Result;
use crate::interface::net::Net;
use crate::interface::tally::Cost;
use crate::pool::{Pool, Shares};

/// How the parties multiply: what differs between sharing among three and among four.
pub(super) trait Multiplier<const C: usize> {
    /// Which of this party's shares public values are added to; `None` at a party that lacks that share.
    fn share_zero(&self) -> Option<usize>;

    /// Where the memory of shares comes from.
    fn pool(&self) -> &Pool;

    /// This party's shares of all products of a round, group after group. One round.
    fn multiply(&mut self, rounds: &[Round<'_, C>], net: &mut dyn Net) -> Result<[Shares; C]>;

    /// After the products were taken.
    fn relieve(&mut self, net: &mut dyn Net) -> Result<()>;
}

/// Lookups of one table in a layer. Rounds are shared by the whole layer: in each, a group that has products
/// left shares them.
pub(super) trait Group<const C: usize> {
    /// The products of the next round.
    fn round<'r>(&'r self, registers: &'r Registers<C>) -> Option<Round<'r, C>>;

    /// This party's shares of the products, and which of them is share 0.
    fn take(&mut self, products: [&[u8]; C], registers: &mut Registers<C>, share_zero: Option<usize>);

    /// Writes the outputs to their slots, after the last round.
    fn finish(&self, registers: &mut Registers<C>);
}

/// The products of a group in a round, all in the same fields. Their shares follow each other, and those of
/// one vector plane by plane.
pub struct Round<'r, const C: usize> {
    pub(super) factors: Factors,
    pub(super) vectors: Vec<Vectors<'r, C>>,
    /// Products that count: the lanes of whole bytes may be more.
    products: usize,
}

/// Two vectors that are multiplied: this party's shares of each.
pub struct Vectors<'r, const C: usize> {
    pub(super) x: [Planes<'r>; C],
    pub(super) y: [Planes<'r>; C],
    /// Bytes of a plane.
    pub(super) len: usize,
}

impl<'r, const C: usize> Round<'r, C> {
    pub(super) fn new(factors: Factors, vectors: Vec<Vectors<'r, C>>, products: usize) -> Round<'r, C> {
        Round { factors, vectors, products }
    }

    /// Bytes of a share of the products.
    pub(super) fn len(&self) -> usize {
        self.factors.planes()[0] * self.vectors.iter().map(|vectors| vectors.len).sum::<usize>()
    }

    /// Products that count.
    pub(super) fn count(&self) -> usize {
        self.products
    }
}

/// How a table is looked up.
pub(super) enum Method {
    /// A product of two bits.
    And,
    /// By the inverse in GF(2^8).
    Tower,
    /// By gates.
    Gates(Arc<Program>),
}

impl Method {
    pub(super) fn of(table: &Table, programs: &Programs) -> Method {
        if table.in_bits() == 2 && table.entries() == [0, 0, 0, 1] {
            return Method::And;
        }
        match table.inversion() {
            Some(_) => Method::Tower,
            None => Method::Gates(programs.of(table)),
        }
    }

    /// Rounds of a lookup.
    pub(super) fn rounds(&self) -> usize {
        match self {
            Method::And => 1,
            Method::Tower => tower::PRODUCTS.len(),
            Method::Gates(program) => program.rounds(),
        }
    }

    /// Bytes of a lane that a lookup takes while it is under way: a party's shares of its rows, and messages
    /// of a round.
    fn bytes_per_lane<const C: usize>(&self) -> usize {
        match self {
            Method::And => 1,
            Method::Tower => tower::bytes_per_lane::<C>(),
            Method::Gates(program) => program.bytes_per_lane::<C>(),
        }
    }

    /// Products of a lookup.
    pub(super) fn products(&self) -> usize {
        match self {
            Method::And => 1,
            Method::Tower => tower::PRODUCTS.len(),
            Method::Gates(program) => program.products(),
        }
    }
}

/// Bits of all products of a lane.
pub(super) fn product_bits(compiled: &Compiled, programs: &Programs) -> usize {
    let of = |lookup: &Lookup| match Method::of(&compiled.tables()[lookup.table], programs) {
        Method::Tower => tower::PRODUCTS.iter().map(|(factors, ..)| factors.planes()[0]).sum(),
        method => method.products(),
    };
    compiled.lookups().map(of).sum()
}

/// Bytes that a lane of an evaluation takes.
pub(super) fn bytes_per_lane<const C: usize>(compiled: &Compiled, programs: &Programs) -> usize {
    let of = |lookup: &Lookup| Method::of(&compiled.tables()[lookup.table], programs).bytes_per_lane::<C>();
    let of_layers = compiled.layers().iter().map(|layer| layer.lookups.iter().map(of).sum());
    registers::bytes_per_lane::<C>(compiled) + of_layers.max().unwrap_or(0)
}

/// What an evaluation costs. Nothing is made ahead.
pub(super) fn cost(compiled: &Compiled, programs: &Programs) -> Cost {
    let methods: Vec<Method> = compiled.tables().iter().map(|table| Method::of(table, programs)).collect();
    let rounds = |lookups: &[Lookup]| {
        lookups.iter().map(|lookup| methods[lookup.table].rounds()).max().unwrap_or(0) as f64
    };
    let products = |uniform: bool| {
        let lookups = compiled.lookups().filter(|lookup| lookup.is_uniform() == uniform);
        lookups.map(|lookup| methods[lookup.table].products()).sum::<usize>() as f64
    };
    Cost {
        rounds: compiled.layers().iter().map(|layer| rounds(&layer.lookups)).sum(),
        operations_per_lane: products(false),
        operations_uniform: products(true),
        ..Cost::default()
    }
}

/// The lookups of one layer.
pub(super) fn lookup<const C: usize>(
    compiled: &Compiled,
    lookups: &[Lookup],
    registers: &mut Registers<C>,
    programs: &Programs,
    multiplier: &mut impl Multiplier<C>,
    net: &mut dyn Net,
) -> Result<()> {
    let share_zero = multiplier.share_zero();
    let mut by_table: BTreeMap<usize, Vec<&Lookup>> = BTreeMap::new();
    lookups.iter().for_each(|lookup| by_table.entry(lookup.table).or_default().push(lookup));
    let group = |(table, lookups): (usize, Vec<_>)| -> Box<dyn Group<C>> {
        let (table, pool) = (&compiled.tables()[table], multiplier.pool());
        match Method::of(table, programs) {
            Method::And => Box::new(Ands { of: Gathered::new(lookups, registers), is_done: false }),
            Method::Tower => Box::new(Tower::new(table, lookups, registers, share_zero, pool)),
            Method::Gates(program) => {
                Box::new(gates::Run::new(program, lookups, registers, share_zero, pool))
            }
        }
    };
    let mut groups: Vec<_> = by_table.into_iter().map(group).collect();
    loop {
        let rounds: Vec<_> = groups.iter().map(|group| group.round(registers)).collect();
        let len = |round: &Option<Round<'_, C>>| round.as_ref().map_or(0, Round::len);
        let due: Vec<usize> = rounds.iter().map(len).collect();
        if rounds.iter().all(Option::is_none) {
            break;
        }
        let rounds: Vec<Round<'_, C>> = rounds.into_iter().flatten().collect();
        let products = multiplier.multiply(&rounds, net)?;
        drop(rounds);
        let mut at = 0;
        for (group, due) in groups.iter_mut().zip(due).filter(|(_, due)| *due > 0) {
            let part = at..at + due;
            let products = products.each_ref().map(|share| &share[part.clone()]);
            group.take(products, registers, share_zero);
            at = part.end;
        }
        multiplier.relieve(net)?;
    }
    groups.iter().for_each(|group| group.finish(registers));
    Ok(())
}

/// Lookups that are one product each, of the two bits of a cell.
struct Ands<'a> {
    of: Gathered<'a>,
    is_done: bool,
}

impl<const C: usize> Group<C> for Ands<'_> {
    fn round<'r>(&'r self, registers: &'r Registers<C>) -> Option<Round<'r, C>> {
        let round =
            || Round::new(Factors::Bits, ands(self.of.lookups.iter().copied(), registers), self.of.lanes);
        (!self.is_done).then(round)
    }

    fn take(&mut self, products: [&[u8]; C], registers: &mut Registers<C>, _: Option<usize>) {
        for (share, products) in products.into_iter().enumerate() {
            self.of.scatter(registers, share, 0, products);
        }
        self.is_done = true;
    }

    fn finish(&self, _: &mut Registers<C>) {}
}

/// The two bits of each cell.
pub(super) fn ands<'l, 'r, const C: usize>(
    lookups: impl IntoIterator<Item = &'l Lookup>,
    registers: &'r Registers<C>,
) -> Vec<Vectors<'r, C>> {
    let vectors = |lookup: &Lookup| {
        let (bank, slot) = registers.bank(lookup.xs[0]);
        let [x, y] = [0, 1].map(|plane| array::from_fn(|share| bank.planes(share, slot, plane)));
        Vectors { x, y, len: bank.len }
    };
    lookups.into_iter().map(vectors).collect()
}

/// The inputs of lookups, one after another in rows, and where their outputs go.
pub(super) struct Gathered<'a> {
    lookups: Vec<&'a Lookup>,
    /// Bytes of a row, and lanes in it.
    pub(super) len: usize,
    pub(super) lanes: usize,
}

impl<'a> Gathered<'a> {
    pub(super) fn new<const C: usize>(lookups: Vec<&'a Lookup>, registers: &Registers<C>) -> Gathered<'a> {
        let lanes = |lookup: &&Lookup| registers.lanes_of(lookup.xs[0]);
        let len = lookups.iter().map(|lookup| lanes(lookup).div_ceil(8)).sum();
        Gathered { len, lanes: lookups.iter().map(lanes).sum(), lookups }
    }

    /// One bit of all inputs.
    pub(super) fn gather<const C: usize>(
        &self,
        registers: &Registers<C>,
        share: usize,
        plane: usize,
        row: &mut [u8],
    ) {
        let mut at = 0;
        for lookup in &self.lookups {
            let (bank, slot) = registers.bank(lookup.xs[0]);
            row[at..][..bank.len].copy_from_slice(bank.plane(share, slot, plane));
            at += bank.len;
        }
    }

    /// One bit of all outputs.
    pub(super) fn scatter<const C: usize>(
        &self,
        registers: &mut Registers<C>,
        share: usize,
        plane: usize,
        row: &[u8],
    ) {
        let mut at = 0;
        for lookup in &self.lookups {
            let len = registers.bank(lookup.xs[0]).0.len;
            for (_, slot) in &lookup.views {
                let (bank, slot) = registers.bank_mut(*slot);
                bank.plane_mut(share, slot, plane).copy_from_slice(&row[at..][..len]);
            }
            at += len;
        }
    }
}
