//! Lookups: those of a layer run together, and all products of a round are one message to one neighbour.

use std::collections::BTreeMap;
use std::sync::Arc;

use polyclave_cipher::{Compiled, Lookup, Table};
use polyclave_kernels::planes::{Factors, Planes, Terms, add_products};

use super::gates::{Program, Programs};
use super::registers::Registers;
use super::ring::Ring;
use super::security::AdversaryModel;
use super::tower::{self, Tower};
use super::{Pair, gates};
use crate::Result;
use crate::interface::net::Net;

/// Lookups of one table in a layer. Rounds are shared by the whole layer: in each, a group that has products
/// left shares them.
pub(super) trait Group {
    /// The products of the next round.
    fn round<'r>(&'r self, registers: &'r Registers) -> Option<Round<'r>>;

    /// Both shares of the products, and which of them is share 0.
    fn take(&mut self, products: Pair<&[u8]>, registers: &mut Registers, share_zero: Option<usize>);

    /// Writes the outputs to their slots, after the last round.
    fn finish(&self, registers: &mut Registers);
}

/// The products of a group in a round, all in the same fields. Their shares follow each other, and those of
/// one vector plane by plane.
pub struct Round<'r> {
    pub(super) factors: Factors,
    pub(super) vectors: Vec<Vectors<'r>>,
    /// Products that count: the lanes of whole bytes may be more.
    products: usize,
}

/// Two vectors that are multiplied: both shares of each.
pub struct Vectors<'r> {
    pub(super) x: Pair<Planes<'r>>,
    pub(super) y: Pair<Planes<'r>>,
    /// Bytes of a plane.
    pub(super) len: usize,
}

impl<'r> Round<'r> {
    pub(super) fn new(factors: Factors, vectors: Vec<Vectors<'r>>, products: usize) -> Round<'r> {
        Round { factors, vectors, products }
    }

    /// Bytes of a share of the products.
    fn len(&self) -> usize {
        self.factors.planes()[0] * self.vectors.iter().map(|vectors| vectors.len).sum::<usize>()
    }

    /// Adds what this party contributes to the products.
    fn add_to(&self, mut sum: &mut [u8]) {
        for Vectors { x, y, len } in &self.vectors {
            let (part, rest) = sum.split_at_mut(self.factors.planes()[0] * len);
            add_products(self.factors, Terms::Contributed, part, *x, *y);
            sum = rest;
        }
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

    /// Bytes of a lane that a lookup takes while it is under way: both shares of its rows, and messages of a
    /// round.
    pub(super) fn bytes_per_lane(&self) -> usize {
        match self {
            Method::And => 1,
            Method::Tower => tower::BYTES_PER_LANE,
            Method::Gates(program) => program.bytes_per_lane(),
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

/// The lookups of one layer.
pub(super) fn lookup(
    compiled: &Compiled,
    lookups: &[Lookup],
    registers: &mut Registers,
    programs: &Programs,
    (ring, model): (&mut Ring, &mut impl AdversaryModel),
    net: &mut dyn Net,
) -> Result<()> {
    let share_zero = ring.share_zero();
    let mut by_table: BTreeMap<usize, Vec<&Lookup>> = BTreeMap::new();
    lookups.iter().for_each(|lookup| by_table.entry(lookup.table).or_default().push(lookup));
    let group = |(table, lookups): (usize, Vec<_>)| -> Box<dyn Group> {
        let table = &compiled.tables()[table];
        match Method::of(table, programs) {
            Method::And => Box::new(Ands { of: Gathered::new(lookups, registers), is_done: false }),
            Method::Tower => Box::new(Tower::new(table, lookups, registers, share_zero, &ring.pool)),
            Method::Gates(program) => {
                Box::new(gates::Run::new(program, lookups, registers, share_zero, &ring.pool))
            }
        }
    };
    let mut groups: Vec<_> = by_table.into_iter().map(group).collect();
    loop {
        let rounds: Vec<_> = groups.iter().map(|group| group.round(registers)).collect();
        let len = |round: &Option<Round<'_>>| round.as_ref().map_or(0, Round::len);
        let due: Vec<usize> = rounds.iter().map(len).collect();
        if rounds.iter().all(Option::is_none) {
            break;
        }
        let rounds: Vec<Round<'_>> = rounds.into_iter().flatten().collect();
        ring.counts().multiplications += rounds.iter().map(|round| round.products as u64).sum::<u64>();
        let mut own = model.zero_share(due.iter().sum(), ring);
        let mut left = &mut own[..];
        for round in &rounds {
            let (part, rest) = left.split_at_mut(round.len());
            round.add_to(part);
            left = rest;
        }
        let next = ring.pass_back(&own, net)?;
        model.remember(&rounds, &next, ring);
        drop(rounds);
        let mut at = 0;
        for (group, due) in groups.iter_mut().zip(due).filter(|(_, due)| *due > 0) {
            let part = at..at + due;
            group.take([&own[part.clone()], &next[part.clone()]], registers, share_zero);
            at = part.end;
        }
        model.relieve(ring, net)?;
    }
    groups.iter().for_each(|group| group.finish(registers));
    Ok(())
}

/// Lookups that are one product each, of the two bits of a cell.
struct Ands<'a> {
    of: Gathered<'a>,
    is_done: bool,
}

impl Group for Ands<'_> {
    fn round<'r>(&'r self, registers: &'r Registers) -> Option<Round<'r>> {
        let round =
            || Round::new(Factors::Bits, ands(self.of.lookups.iter().copied(), registers), self.of.lanes);
        (!self.is_done).then(round)
    }

    fn take(&mut self, products: Pair<&[u8]>, registers: &mut Registers, _: Option<usize>) {
        for (share, products) in products.into_iter().enumerate() {
            self.of.scatter(registers, share, 0, products);
        }
        self.is_done = true;
    }

    fn finish(&self, _: &mut Registers) {}
}

/// The two bits of each cell.
pub(super) fn ands<'l, 'r>(
    lookups: impl IntoIterator<Item = &'l Lookup>,
    registers: &'r Registers,
) -> Vec<Vectors<'r>> {
    let vectors = |lookup: &Lookup| {
        let (bank, slot) = registers.bank(lookup.xs[0]);
        let [x, y] = [0, 1].map(|plane| [0, 1].map(|share| bank.planes(share, slot, plane)));
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
    pub(super) fn new(lookups: Vec<&'a Lookup>, registers: &Registers) -> Gathered<'a> {
        let lanes = |lookup: &&Lookup| registers.lanes_of(lookup.xs[0]);
        let len = lookups.iter().map(|lookup| lanes(lookup).div_ceil(8)).sum();
        Gathered { len, lanes: lookups.iter().map(lanes).sum(), lookups }
    }

    /// One bit of all inputs.
    pub(super) fn gather(&self, registers: &Registers, share: usize, plane: usize, row: &mut [u8]) {
        let mut at = 0;
        for lookup in &self.lookups {
            let (bank, slot) = registers.bank(lookup.xs[0]);
            row[at..][..bank.len].copy_from_slice(bank.plane(share, slot, plane));
            at += bank.len;
        }
    }

    /// One bit of all outputs.
    pub(super) fn scatter(&self, registers: &mut Registers, share: usize, plane: usize, row: &[u8]) {
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
