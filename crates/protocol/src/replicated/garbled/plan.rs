//! Where the labels and gates of a circuit are, counted once.
//!
//! What a garbled circuit has is cut into *sections*: one for each lane, and one for what is the same in all
//! lanes. Each section has labels, numbers of gates and a place in messages of its own. So a lane can be
//! taken out of a circuit that was garbled for many ([`super::item`]).

use std::ops::Range;

use polyclave_cipher::{Compiled, CompiledPort, Lookup};

use crate::Result;
use crate::garbling::{Kind, refuse_unless_boolean};

/// Gate numbers of the uniform section begin here. Those of lanes stay below.
const UNIFORM: u64 = 1 << 48;

/// A lane by its number in the lot, or what is the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Lane(u64),
    Uniform,
}

/// How much a section has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Extent {
    /// ANDs.
    pub(super) gates: usize,
    /// Bits that have labels of three components: of inputs, and of what is added to outputs.
    pub(super) inputs: usize,
    /// Output bits.
    pub(super) outputs: usize,
}

/// The wires of a port within its section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) is_uniform: bool,
    pub(super) wires: Range<usize>,
}

/// The sizes of a circuit.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    lane: Extent,
    uniform: Extent,
    /// By table.
    kinds: Vec<Kind>,
    /// By port.
    pub(super) inputs: Vec<Place>,
    /// By port.
    pub(super) outputs: Vec<Place>,
    /// By port of the outputs: what is added to them if their sum is opened ([`super::opened`]).
    pub(super) addends: Vec<Place>,
}

impl Plan {
    /// Of a Boolean circuit.
    pub(super) fn of(compiled: &Compiled) -> Result<Plan> {
        refuse_unless_boolean(compiled)?;
        let (mut lane, mut uniform) = (Extent::default(), Extent::default());
        let kinds: Vec<Kind> = compiled.tables().iter().map(|table| Kind::of(table)).collect();
        for lookup in compiled.lookups().filter(|lookup| kinds[lookup.table].is_garbled()) {
            let extent = if lookup.is_uniform() { &mut uniform } else { &mut lane };
            extent.gates += lookup.views.len();
        }
        let mut place = |port: &CompiledPort, of: fn(&mut Extent) -> &mut usize| {
            let end = of(if port.uniform { &mut uniform } else { &mut lane });
            let start = *end;
            *end += port.cells.len();
            Place { is_uniform: port.uniform, wires: start..*end }
        };
        let inputs = compiled.inputs().iter().map(|port| place(port, |extent| &mut extent.inputs)).collect();
        let outputs =
            compiled.outputs().iter().map(|port| place(port, |extent| &mut extent.outputs)).collect();
        let addends =
            compiled.outputs().iter().map(|port| place(port, |extent| &mut extent.inputs)).collect();
        Ok(Plan { lane, uniform, kinds, inputs, outputs, addends })
    }

    /// How much a section has.
    pub(super) fn extent(&self, section: Section) -> Extent {
        match section {
            Section::Lane(_) => self.lane,
            Section::Uniform => self.uniform,
        }
    }

    /// ANDs among some lookups in so many lanes.
    pub(super) fn ands(&self, lookups: &[Lookup], lanes: usize) -> u64 {
        let garbled = lookups.iter().filter(|lookup| self.kinds[lookup.table].is_garbled());
        let ands = |lookup: &Lookup| lookup.views.len() * if lookup.is_uniform() { 1 } else { lanes };
        garbled.map(ands).sum::<usize>() as u64
    }

    /// A number for each of so many lanes and for the uniform section, added up.
    pub(super) fn total(&self, lanes: usize, of: fn(&Extent) -> usize) -> usize {
        lanes * of(&self.lane) + of(&self.uniform)
    }
}

impl Place {
    /// The sections that have the wires of the port, if these are the lanes.
    pub(super) fn sections(&self, lanes: Range<u64>) -> impl Iterator<Item = Section> + use<> {
        let uniform = self.is_uniform.then_some(Section::Uniform);
        let lanes = if self.is_uniform { 0..0 } else { lanes };
        lanes.map(Section::Lane).chain(uniform)
    }
}

impl Section {
    /// All sections of these lanes, in the order of messages: so lanes can be cut off at the end.
    pub(super) fn all(lanes: Range<u64>) -> impl Iterator<Item = Section> {
        [Section::Uniform].into_iter().chain(lanes.map(Section::Lane))
    }

    /// The number of the section's first item, if each section has so many. No two sections share a number.
    pub(super) fn first(self, count: usize) -> u64 {
        match self {
            Section::Lane(lane) => lane * count as u64,
            Section::Uniform => UNIFORM,
        }
    }

    /// The nonce of the section's generators.
    pub(super) fn nonce(self) -> u64 {
        match self {
            Section::Lane(lane) => lane,
            Section::Uniform => UNIFORM,
        }
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::compile;

    use super::super::tests::circuit;
    use super::*;

    #[test]
    fn every_wire_and_gate_has_its_own_number_and_place() {
        let compiled = compile(&circuit(), &polyclave_cipher::AnyMap);
        let plan = Plan::of(&compiled).expect("it is of bits");
        let (lane, uniform) = (plan.extent(Section::Lane(3)), plan.extent(Section::Uniform));
        assert_eq!(lane, Extent { gates: 2, inputs: 4, outputs: 2 });
        assert_eq!(plan.addends, [Place { is_uniform: false, wires: 2..4 }]);
        assert_eq!(uniform, Extent { gates: 0, inputs: 2, outputs: 0 });
        assert_eq!(plan.total(5, |extent| extent.inputs), 22);
        for count in [1, 3, 100_000] {
            let sections = Section::all(2..5).map(|section| section.first(count));
            let mut firsts: Vec<u64> = sections.collect();
            firsts.sort_unstable();
            assert!(firsts.windows(2).all(|pair| pair[1] - pair[0] >= count as u64), "{firsts:?}");
        }
        let sections = |port: usize| plan.inputs[port].sections(2..4).collect::<Vec<_>>();
        assert_eq!(sections(0), [Section::Lane(2), Section::Lane(3)]);
        assert_eq!(sections(1), [Section::Uniform]);
        let all: Vec<Section> = Section::all(2..4).collect();
        assert_eq!(all, [Section::Uniform, Section::Lane(2), Section::Lane(3)]);
    }
}
