//! The gates of a circuit, layer by layer: garbled ahead, evaluated online.
//!
//! ANDs are half gates (Zahur, Rosulek and Evans 2015; [`polyclave_kernels::label_hash`] has the formulas,
//! the hash and its margin). The labels of all ANDs that a section has in a layer are gathered, so that one
//! call of the kernel does hundreds of gates even if there is one lane. Negations are done while labels are
//! gathered, and cost nothing. Gate g of lane l has the number l times the gates of a lane, plus g, and the
//! uniform section has numbers of its own ([`Section::first`]): under the root of a lot no number comes
//! twice.
//!
//! The table of a section has 32 bytes for each AND. In each layer the ciphertexts `T_G` of all ANDs come
//! first, then `T_E` of all.

use std::ops::Range;

use polyclave_cipher::{Compiled, Lookup, Slot};
use polyclave_kernels::label_hash::{Halves, Label, LabelHash, Negated};
use zeroize::{Zeroize, Zeroizing};

use super::commitments::root;
use super::plan::{Plan, Section};
use super::seed::{Seed, Wires};
use crate::garbling::{Kind, LABEL, Registers, Rows};
use crate::pool::Pool;

/// Bytes of an AND.
pub(super) const GATE: usize = 2 * LABEL;
/// Lanes that are garbled together: their labels stay near the processor.
const GROUP: u64 = 16;

/// A circuit that was garbled.
pub(super) struct Garbled {
    /// The tables of all sections.
    pub(super) tables: Vec<u8>,
    /// The labels for zero of all outputs, by section.
    pub(super) outputs: Zeroizing<Vec<Label>>,
}

/// Garbles lanes of a circuit.
pub(super) fn garble(
    compiled: &Compiled,
    plan: &Plan,
    (lot, seed): (&[u8; 32], &Seed),
    lanes: Range<u64>,
    pool: &Pool,
) -> Garbled {
    let count = (lanes.end - lanes.start) as usize;
    let mut tables = vec![0; plan.total(count, |extent| extent.gates) * GATE];
    let mut outputs = Zeroizing::new(Vec::with_capacity(plan.total(count, |extent| extent.outputs)));
    let delta = seed.delta();
    let uniform = seed.wires(Section::Uniform, plan.extent(Section::Uniform));
    let of_lane = plan.extent(Section::Lane(0)).gates * GATE;
    let (of_uniform, mut rest) = tables.split_at_mut(plan.extent(Section::Uniform).gates * GATE);
    for start in lanes.clone().step_by(GROUP as usize) {
        let group = start..lanes.end.min(start + GROUP);
        let count = (group.end - group.start) as usize;
        let mut registers = Registers::new(compiled, count, pool);
        fill(compiled, plan, seed, &uniform, group.clone(), &mut registers);
        let here = rest.split_off_mut(..count * of_lane).expect("there is a table for each lane");
        let mut walk = Walk::new(lot);
        for layer in compiled.layers() {
            registers.linear(&layer.linear, &delta.to_le_bytes());
            // What is the same for all lanes is garbled with each group, into the same bytes.
            walk.garble(plan, group.clone(), &layer.lookups, &mut registers, *delta, [here, of_uniform]);
        }
        if start == lanes.start {
            collect(compiled, plan, &registers, (Section::Uniform, 0), &mut outputs);
        }
        for (lane, section) in group.map(Section::Lane).enumerate() {
            collect(compiled, plan, &registers, (section, lane), &mut outputs);
        }
    }
    Garbled { tables, outputs }
}

/// The labels for zero of all inputs.
fn fill(
    compiled: &Compiled,
    plan: &Plan,
    seed: &Seed,
    uniform: &Wires,
    lanes: Range<u64>,
    registers: &mut Registers,
) {
    let extent = plan.extent(Section::Lane(0));
    let of_lanes: Vec<Wires> = lanes.map(|lane| seed.wires(Section::Lane(lane), extent)).collect();
    for (port, place) in compiled.inputs().iter().zip(&plan.inputs) {
        let sections = if place.is_uniform { std::slice::from_ref(uniform) } else { &of_lanes };
        for (views, wire) in port.cells.iter().zip(place.wires.clone()) {
            for (_, slot) in views {
                let labels = registers.row_mut(*slot).iter_mut().zip(sections);
                labels.for_each(|(label, wires)| *label = wires.input(wire).to_le_bytes());
            }
        }
    }
}

/// Adds the labels of all outputs of a section, which are at this place of their rows.
pub(super) fn collect(
    compiled: &Compiled,
    plan: &Plan,
    registers: &Registers,
    (section, at): (Section, usize),
    labels: &mut Vec<Label>,
) {
    for (port, place) in compiled.outputs().iter().zip(&plan.outputs) {
        if place.is_uniform == (section == Section::Uniform) {
            labels.extend(port.cells.iter().map(|views| registers.row(views[0].1)[at]));
        }
    }
}

/// An AND of a layer: where the labels of its operands and of its result begin.
struct Gate {
    rows: [usize; 3],
    negated: Negated,
}

/// Goes through the layers of a circuit, as all parties do.
pub(super) struct Walk {
    hash: LabelHash,
    /// Gates of a lane, and of the uniform section, that are done.
    done: [usize; 2],
    /// ANDs of a layer, in lanes and uniform.
    gates: [Vec<Gate>; 2],
    /// The operands and the results of the ANDs that a section has in a layer.
    labels: [Vec<Label>; 3],
}

impl Walk {
    /// At the beginning of a circuit of this lot.
    pub(super) fn new(lot: &[u8; 32]) -> Walk {
        Walk {
            hash: LabelHash::new(&root(lot, "polyclave 2026 garbled-three: root of gates")),
            done: [0; 2],
            gates: [Vec::new(), Vec::new()],
            labels: [Vec::new(), Vec::new(), Vec::new()],
        }
    }

    /// Garbles a layer into the tables of these lanes and of the uniform section.
    fn garble(
        &mut self,
        plan: &Plan,
        lanes: Range<u64>,
        lookups: &[Lookup],
        registers: &mut Registers,
        delta: u128,
        [of_lanes, of_uniform]: [&mut [u8]; 2],
    ) {
        self.begin(lookups, registers, delta);
        let of_lane = plan.extent(Section::Lane(0)).gates * GATE;
        for (at, lane) in lanes.enumerate() {
            let table = &mut of_lanes[at * of_lane..][..of_lane];
            self.garble_section(plan, (Section::Lane(lane), at), &mut registers.lanes, delta, table);
        }
        self.garble_section(plan, (Section::Uniform, 0), &mut registers.uniform, delta, of_uniform);
        self.end();
    }

    fn garble_section(
        &mut self,
        plan: &Plan,
        (section, at): (Section, usize),
        rows: &mut Rows,
        delta: u128,
        table: &mut [u8],
    ) {
        let (number, range) = self.gather(plan, (section, at), rows, delta);
        let [a, b, c] = &mut self.labels;
        let (garbler, evaluator) = table[range].as_chunks_mut().0.split_at_mut(c.len());
        let halves = Halves { garbler, evaluator };
        self.hash.garble(number, &delta.to_le_bytes(), Negated::default(), [a, b], c, halves);
        self.scatter((section, at), rows, delta);
    }

    /// Evaluates a layer from the tables of all sections.
    pub(super) fn evaluate(
        &mut self,
        plan: &Plan,
        lanes: Range<u64>,
        lookups: &[Lookup],
        registers: &mut Registers,
        tables: &[u8],
    ) {
        self.begin(lookups, registers, 0);
        let mut rest = tables;
        for section in Section::all(lanes.clone()) {
            let table = rest.split_off(..plan.extent(section).gates * GATE).expect("it is that of the plan");
            let (at, rows) = match section {
                Section::Lane(lane) => ((lane - lanes.start) as usize, &mut registers.lanes),
                Section::Uniform => (0, &mut registers.uniform),
            };
            let (number, range) = self.gather(plan, (section, at), rows, 0);
            let [a, b, c] = &mut self.labels;
            let (garbler, evaluator) = table[range].as_chunks().0.split_at(c.len());
            self.hash.evaluate(number, [a, b], c, Halves { garbler, evaluator });
            self.scatter((section, at), rows, 0);
        }
        self.end();
    }

    /// Does the sums of a layer, and makes a note of its ANDs. `delta` is 0 at the evaluator, whose labels no
    /// negation changes.
    fn begin(&mut self, lookups: &[Lookup], registers: &mut Registers, delta: u128) {
        self.gates.iter_mut().for_each(Vec::clear);
        for lookup in lookups {
            let kind = registers.kinds[lookup.table];
            for (_, to) in &lookup.views {
                let (rows, from, to, gates) = match (lookup.xs[0], *to) {
                    (Slot::Lanes(from), Slot::Lanes(to)) => (&mut registers.lanes, from, to, 0),
                    (Slot::Uniform(from), Slot::Uniform(to)) => (&mut registers.uniform, from, to, 1),
                    _ => unreachable!("a lookup is the same for all lanes as its input is"),
                };
                let [a, b, c] = [rows.at(from, 0), rows.at(from, 1), rows.at(to, 0)];
                match kind {
                    Kind::And(negated) => self.gates[gates].push(Gate { rows: [a, b, c], negated }),
                    Kind::Sum(of, one) => {
                        let terms = [a, b].into_iter().zip(of).filter(|(_, is_term)| *is_term);
                        let sources: Vec<usize> = terms.map(|(at, _)| at).collect();
                        let constant = if one { delta } else { 0 };
                        rows.sum(c, rows.lanes(), &sources, &constant.to_le_bytes());
                    }
                }
            }
        }
    }

    /// The operands of the ANDs that a section has in this layer. Returns the number of the first, and where
    /// their ciphertexts are.
    fn gather(
        &mut self,
        plan: &Plan,
        (section, at): (Section, usize),
        rows: &Rows,
        delta: u128,
    ) -> (u64, Range<usize>) {
        let (gates, done) = self.of(section);
        let number = section.first(plan.extent(section).gates) + done as u64;
        let range = done * GATE..(done + gates.len()) * GATE;
        let (gates, [a, b, c]) = (&self.gates[usize::from(section == Section::Uniform)], &mut self.labels);
        [&mut *a, &mut *b].into_iter().for_each(Vec::clear);
        c.resize(gates.len(), [0; LABEL]);
        for Gate { rows: [of_a, of_b, _], negated } in gates {
            let label = |row: usize, is_negated| {
                (rows.label(row + at * LABEL) ^ if is_negated { delta } else { 0 }).to_le_bytes()
            };
            a.push(label(*of_a, negated.a));
            b.push(label(*of_b, negated.b));
        }
        (number, range)
    }

    /// Puts the results back.
    fn scatter(&mut self, (section, at): (Section, usize), rows: &mut Rows, delta: u128) {
        let (gates, _) = self.of(section);
        for (Gate { rows: [.., of_c], negated }, label) in gates.iter().zip(&self.labels[2]) {
            let label = u128::from_le_bytes(*label) ^ if negated.c { delta } else { 0 };
            rows.set_label(of_c + at * LABEL, label);
        }
    }

    /// The ANDs that a section has in this layer, and how many came before.
    fn of(&self, section: Section) -> (&[Gate], usize) {
        let which = usize::from(section == Section::Uniform);
        (&self.gates[which], self.done[which])
    }

    fn end(&mut self) {
        for (done, gates) in self.done.iter_mut().zip(&self.gates) {
            *done += gates.len();
        }
    }
}

/// Labels for zero are secrets.
impl Drop for Walk {
    fn drop(&mut self) {
        self.labels.iter_mut().for_each(|labels| labels.as_flattened_mut().zeroize());
    }
}
