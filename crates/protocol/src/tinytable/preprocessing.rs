//! The two parties make the tables themselves, from authenticated bits (Damgard et al. 2016, section 4,
//! figure 8).
//!
//! The masks of all wires are authenticated bits: fresh ones for inputs and for outputs of lookups, and sums
//! of those elsewhere. A table's entry at M is T(M + s) + o. Each of its bits is an authenticated bit, so
//! each party has its share, its tag and the key of the other's tag. The lookups of a circuit are gathered
//! until there are enough of them for one round to serve many.
//!
//! | file | what | source |
//! |---|---|---|
//! | `masks.rs` | masks of wires | figure 8, steps 2 and 3 |
//! | `products.rs` | products of authenticated bits | Beaver 1991 |
//! | `gates.rs` | the tables of Boolean gates | figure 8, AND |
//! | `entries.rs` | the entries of larger tables | Keller et al. 2017, Protocol 3 |
//! | `records.rs` | what an entry's record holds | figure 8, last steps; section 3 |
//!
//! **Adversary**: active, one of the two; secure with abort. Everything that is opened on the way is checked,
//! as a whole, before a table is handed out. A failure does not tell at which gate it was, and retires the
//! keys.
//!
//! # Differences from the paper
//! Tables of more than two bits are made by Demux, in 2^l - l - 1 products instead of a circuit for each of
//! the 2^l entries, unless the paper's method is asked for.

mod entries;
mod gates;
mod masks;
mod products;
mod records;

use polyclave_cipher::CompiledPort;

use super::batch::{Made, Place, Plan};
use super::{Macs, Maker};
use crate::Result;
use crate::interface::net::Net;
use crate::interface::session::Stream;
use crate::interface::tally::Counts;
use crate::pool::{Pool, Shares};
use crate::tinyot::{BitSlices, Bits, Key, Source};
use entries::Entries;
use gates::Gates;
use masks::MaskRegisters;
use products::Products;
use records::Records;

/// How tables of more than two bits are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreprocessingMethod {
    /// The table's Boolean circuit for every entry, as in the paper.
    Circuit,
    /// The unit vector of the mask, and sums of it.
    Demux,
}

impl PreprocessingMethod {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            PreprocessingMethod::Circuit => "tinyot-circuit",
            PreprocessingMethod::Demux => "tinyot-demux",
        }
    }
}

/// Lookups are gathered until their tables take this many products.
const ENOUGH_PRODUCTS: usize = 1 << 18;

/// Makes tables on one stream of a session.
pub(super) struct FromBits {
    products: Products,
    entries: Entries,
    records: Records,
}

impl FromBits {
    /// From a source of the same stream.
    pub(super) fn new(
        method: PreprocessingMethod,
        macs: Macs,
        key: Key,
        stream: &Stream,
        source: Box<dyn Source>,
    ) -> Self {
        let label = stream.label();
        FromBits {
            records: Records::new(macs, &key, &label),
            products: Products::new(key, &label, source),
            entries: Entries::new(method),
        }
    }
}

/// What is made, where it goes, and with what.
struct Job<'a, 'n> {
    plan: &'a Plan<'a>,
    records: Shares,
    planes: Shares,
    counts: &'a mut Counts,
    net: &'a mut (dyn Net + 'n),
}

impl Maker for FromBits {
    fn make(&mut self, plan: &Plan<'_>, pool: &Pool, counts: &mut Counts, net: &mut dyn Net) -> Result<Made> {
        let compiled = plan.compiled;
        let (records, planes) = (pool.take(plan.records), pool.take(plan.planes));
        let mut job = Job { plan, records, planes, counts, net };
        let mut registers = MaskRegisters::new(compiled, plan.lanes);
        self.entries.prepare(compiled);
        self.reserve(plan);
        let mut inputs = Vec::new();
        for port in compiled.inputs() {
            let lanes = if port.uniform { 1 } else { plan.lanes };
            let count = port.cells.len() * usize::from(port.bits) * lanes;
            let bits = self.products.bits(count, job.counts, job.net)?;
            inputs.push(registers.put_port(port, lanes, &bits, plan.macs));
        }
        let (mut waiting, mut gates) = (Vec::new(), Gates::new(plan));
        let mut at = 0;
        for layer in compiled.layers() {
            registers.linear(&layer.linear, None);
            let places = &plan.places[at..][..layer.lookups.len()];
            let wanted = places.iter().map(|place| place.width * usize::from(place.record.out_bits)).sum();
            let fresh = self.products.bits(wanted, job.counts, job.net)?;
            let mut from = 0;
            for (lookup, place) in layer.lookups.iter().zip(places) {
                let outputs = from..from + usize::from(place.record.out_bits) * place.width;
                from = outputs.end;
                let bit = |begin| fresh.slices(begin..begin + place.width);
                let output: Vec<BitSlices<'_>> = outputs.step_by(place.width).map(bit).collect();
                let input = lookup.xs[0];
                if place.record.is_gate() {
                    if gates.are_full_with(place.width) {
                        gates.write(&mut self.products, &mut self.records, &mut job)?;
                    }
                    gates.add(at, [0, 1].map(|bit| registers.bit(input, bit)), output[0]);
                } else {
                    let bits = registers.bits(input, compiled.tables()[place.table].in_bits());
                    Waiting::add(&mut waiting, place.table, at, bits, &output);
                }
                for (matrix, slot) in &lookup.views {
                    registers.put(*slot, matrix, &output);
                }
                at += 1;
            }
            if waiting.iter().map(|w| self.products_of(w, plan)).sum::<usize>() >= ENOUGH_PRODUCTS {
                self.write(&mut waiting, &mut job)?;
            }
        }
        self.write(&mut waiting, &mut job)?;
        gates.write(&mut self.products, &mut self.records, &mut job)?;
        let outputs =
            compiled.outputs().iter().map(|port| registers.take_port(port, plan.lanes, plan.macs)).collect();
        self.products.check(job.counts, job.net)?;
        let Job { records, planes, .. } = job;
        Ok(Made { inputs, outputs, records, planes, number: 0, committed_bytes: 0 })
    }
}

impl FromBits {
    /// Says what will be asked for in all: made by the batch it is cheaper.
    fn reserve(&mut self, plan: &Plan<'_>) {
        let cells = |port: &CompiledPort| port.cells.len() * if port.uniform { 1 } else { plan.lanes };
        let inputs = plan.compiled.inputs().iter().map(|port| cells(port) * usize::from(port.bits));
        let outputs = plan.places.iter().map(|place| place.width * usize::from(place.record.out_bits));
        let table = |place: &Place| &plan.compiled.tables()[place.table];
        let products = plan.places.iter().map(|place| place.width * self.entries.products(table(place)));
        self.products.reserve(inputs.chain(outputs).sum(), products.sum());
    }

    /// Products for the entries of lookups that wait.
    fn products_of(&self, waiting: &Waiting, plan: &Plan<'_>) -> usize {
        let lanes: usize = waiting.lookups.iter().map(|at| plan.places[*at].width).sum();
        lanes * self.entries.products(&plan.compiled.tables()[waiting.table])
    }

    /// The tables of all lookups that wait.
    fn write(&mut self, waiting: &mut Vec<Waiting>, job: &mut Job<'_, '_>) -> Result<()> {
        for Waiting { table, lookups, inputs, outputs } in waiting.drain(..) {
            let (input, output) = (joined(inputs), joined(outputs));
            let places: Vec<_> = lookups.iter().map(|at| job.plan.places[*at]).collect();
            let table = &job.plan.compiled.tables()[table];
            let lanes = input[0].len();
            let at_once = (ENOUGH_PRODUCTS / self.entries.products(table).max(1)).max(1);
            for first in (0..lanes).step_by(at_once) {
                let range = first..lanes.min(first + at_once);
                let part = |rows: &[Bits]| rows.iter().map(|row| row.part(range.clone())).collect::<Vec<_>>();
                let (input, output) = (part(&input), part(&output));
                let products = &mut self.products;
                let entries = self.entries.make(table, input, &output, products, job.counts, job.net)?;
                self.records.write(&places, first, &entries, &mut job.records);
            }
        }
        Ok(())
    }
}

/// Lookups of one table of cells that wait for their entries.
struct Waiting {
    table: usize,
    /// Positions of the lookups.
    lookups: Vec<usize>,
    /// The bits of the masks of inputs and of outputs, the lowest first, each for all lanes of all lookups.
    inputs: Vec<Vec<Bits>>,
    outputs: Vec<Vec<Bits>>,
}

impl Waiting {
    /// Adds the lookup at a position to those of its table.
    fn add(all: &mut Vec<Waiting>, table: usize, lookup: usize, input: Vec<Bits>, output: &[BitSlices<'_>]) {
        let known = all.iter().position(|waiting| waiting.table == table);
        let at = known.unwrap_or_else(|| {
            all.push(Waiting { table, lookups: Vec::new(), inputs: Vec::new(), outputs: Vec::new() });
            all.len() - 1
        });
        let waiting = &mut all[at];
        waiting.lookups.push(lookup);
        waiting.inputs.push(input);
        waiting.outputs.push(output.iter().map(|bits| bits.to_bits()).collect());
    }
}

/// Row by row what all have.
fn joined(all: Vec<Vec<Bits>>) -> Vec<Bits> {
    let rows = all[0].len();
    (0..rows).map(|row| Bits::join(&all.iter().map(|bits| &bits[row]).collect::<Vec<_>>())).collect()
}
