//! Turns a circuit into layers of (linear maps, then lookups) that a protocol can run.
//!
//! With a protocol's shares some linear maps are free and others are not ([`Maps::is_local`]). Every map that
//! is not free is moved backwards, through the sums before it, to become a *view* of the lookup or input from
//! which the cell comes: a second output M(T(x)) beside T(x). Views are memoised on (wire, matrix). Values
//! that nobody needs are dropped.
//!
//! Lookups run as early as their inputs allow, which gives the least number of layers. Linear maps run as
//! late as their first use allows, and slots are reused after the last use. This keeps the working set small.

mod allocation;
mod maps_as_lookups;
mod parts;
mod schedule;
mod values;

use std::sync::Arc;

use crate::circuit::Port;
use crate::{Circuit, Matrix, Table};
use allocation::Allocation;
pub use parts::{Inserted, Part, Parts};
use schedule::Schedule;
use values::Values;

/// Which linear maps are free with a protocol's shares, and which images of a table's input it needs.
pub trait Maps {
    /// Whether shares of M(x) follow from shares of x without communication.
    fn is_local(&self, m: &Matrix) -> bool;

    /// Splits a map into an inner map and a local map that follows it. The inner map becomes a view of the
    /// cell's source, so two maps that can share an inner map should do so.
    fn split(&self, m: &Matrix) -> (Matrix, Matrix) {
        match self.is_local(m) {
            true => (*m, Matrix::identity(m.ins())),
            false => (Matrix::identity(m.outs()), *m),
        }
    }

    /// Whether a view costs as much as a lookup of its own, so that maps of sums are better written as
    /// lookups than folded into every view behind the sum.
    fn pays_for_views(&self) -> bool {
        false
    }

    /// The images of the input cell from which a lookup of this table starts. (The cleartext evaluator uses
    /// the first one as the cell itself, so that has to be the identity.)
    fn wants(&self, table: &Table) -> Vec<Matrix> {
        vec![Matrix::identity(table.in_bits())]
    }

    /// Whether the protocol has another way for the circuit with this digest. If so, circuits around it are
    /// compiled in [`Parts`], too.
    fn has_another_way(&self, _circuit: &[u8; 32]) -> bool {
        false
    }
}

/// Every map is free: cleartext, and shares of single bits.
pub struct AnyMap;

impl Maps for AnyMap {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

/// A place in a protocol's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// A value per lane.
    Lanes(u32),
    /// One value for all lanes.
    Uniform(u32),
}

/// `dst = constant + sum of maps of sources`; every map is local to the protocol, no source is `dst`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Where the sum goes.
    pub dst: Slot,
    /// Sources and maps. A uniform `dst` has uniform sources only.
    pub terms: Vec<(Slot, Matrix)>,
    /// Added to the sum.
    pub constant: u8,
}

/// One table on one cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Position in [`Compiled::tables`].
    pub table: usize,
    /// Where the input is, one slot for each of [`Maps::wants`].
    pub xs: Vec<Slot>,
    /// The outputs that are needed: M(T(x)) goes to the slot. Never a slot that a lookup of the same layer
    /// reads.
    pub views: Vec<(Matrix, Slot)>,
}

impl Lookup {
    /// Whether it runs once for all lanes.
    pub fn is_uniform(&self) -> bool {
        matches!(self.xs[0], Slot::Uniform(_))
    }
}

/// Linear maps in order, then lookups that are independent of each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// Linear maps, which run first, in this order.
    pub linear: Vec<Linear>,
    /// Lookups, which run together. Only the last layer has none.
    pub lookups: Vec<Lookup>,
}

/// An input or output of a compiled circuit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledPort {
    /// As in the circuit.
    pub name: String,
    /// Width of each cell.
    pub bits: u8,
    /// One value for all lanes.
    pub uniform: bool,
    /// For each cell, the views of it and their slots. An input that nobody uses has none.
    pub cells: Vec<Vec<(Matrix, Slot)>>,
}

impl CompiledPort {
    /// Every view that some cell of this port has, in a fixed order, the identity always among them.
    pub fn views(&self) -> Vec<Matrix> {
        let mut views: Vec<Matrix> = self.cells.iter().flatten().map(|(m, _)| *m).collect();
        views.push(Matrix::identity(self.bits));
        views.sort_by_key(|m| (!m.is_identity(), *m));
        views.dedup();
        views
    }
}

/// A circuit in layers, for one kind of sharing.
#[derive(Clone, Debug)]
pub struct Compiled {
    name: String,
    digest: [u8; 32],
    tables: Vec<Arc<Table>>,
    inputs: Vec<CompiledPort>,
    outputs: Vec<CompiledPort>,
    layers: Vec<Layer>,
    lane_slots: usize,
    uniform_slots: usize,
    parts: Option<Arc<Parts>>,
}

impl Compiled {
    /// The circuit's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The digest of the circuit from which this was made.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The tables that lookups name.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// What must be filled in before the first layer.
    pub fn inputs(&self) -> &[CompiledPort] {
        &self.inputs
    }

    /// What is ready after the last layer.
    pub fn outputs(&self) -> &[CompiledPort] {
        &self.outputs
    }

    /// The layers, in order; the last one has linear maps only.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Slots with a value per lane.
    pub fn lane_slots(&self) -> usize {
        self.lane_slots
    }

    /// Slots with one value for all lanes.
    pub fn uniform_slots(&self) -> usize {
        self.uniform_slots
    }

    /// The same function around circuits for which the protocol has another way, if there are some in it.
    pub fn parts(&self) -> Option<&Arc<Parts>> {
        self.parts.as_ref()
    }

    /// All lookups, layer by layer.
    pub fn lookups(&self) -> impl Iterator<Item = &Lookup> {
        self.layers.iter().flat_map(|layer| &layer.lookups)
    }
}

/// Compiles for a protocol; outputs come as plain cells.
pub fn compile(circuit: &Circuit, maps: &dyn Maps) -> Compiled {
    compile_with_views(circuit, maps, |_| Vec::new())
}

/// Compiles for a protocol. `views` names the images of an output port's cells that are needed beside the
/// cells themselves, because a later circuit starts from them ([`CompiledPort::views`] of its input).
pub fn compile_with_views(
    circuit: &Circuit,
    maps: &dyn Maps,
    views: impl Fn(&Port) -> Vec<Matrix>,
) -> Compiled {
    if maps.pays_for_views() {
        let written = maps_as_lookups::write(circuit, maps);
        return Compiled { digest: circuit.digest(), ..compiled(&written, maps, views) };
    }
    compiled(circuit, maps, views)
}

fn compiled(circuit: &Circuit, maps: &dyn Maps, views: impl Fn(&Port) -> Vec<Matrix>) -> Compiled {
    let values = Values::demanded(circuit, maps, &views);
    let schedule = Schedule::of(circuit, &values);
    let compiled = Allocation::run(circuit, &values, &schedule);
    let parts = Parts::of(circuit, maps, &views, compiled.inputs()).map(Arc::new);
    Compiled { parts, ..compiled }
}
