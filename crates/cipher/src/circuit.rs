//! A cipher as data: lookups of public tables and linear maps over cells, in order of dependency.

use std::ops::Range;
use std::sync::Arc;

use crate::{Matrix, Table};

/// The output of the operation with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wire(pub(crate) u32);

impl Wire {
    /// Position of its operation in [`Circuit::ops`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Position of a table in [`Circuit::tables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub(crate) u32);

impl TableId {
    /// Position in [`Circuit::tables`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What makes a wire.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A cell from outside.
    Input {
        /// Its width.
        bits: u8,
        /// One value for all lanes (a key), or one per lane.
        uniform: bool,
    },
    /// The sum (XOR) of cells, each through a matrix, and a constant. Two terms may be of the same wire.
    Linear {
        /// Cells and their maps.
        terms: Vec<(Wire, Matrix)>,
        /// Added to the sum.
        constant: u8,
        /// Width of the result.
        bits: u8,
    },
    /// A public table applied to a secret cell: the only operation that needs communication.
    Lookup {
        /// Which table.
        table: TableId,
        /// On which cell.
        x: Wire,
    },
}

/// Named cells that go in or come out together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Port {
    /// `block`, `key`, `round_keys`, `tweak`.
    pub name: String,
    /// Its cells, in the order of the bytes people write.
    pub cells: Vec<Wire>,
    /// Width of each cell.
    pub bits: u8,
    /// One value for all lanes.
    pub uniform: bool,
}

/// A circuit inside another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    /// The digest of the circuit that was inserted.
    pub(crate) circuit: [u8; 32],
    /// Its operations.
    pub(crate) ops: Range<usize>,
    /// The cells that went in, port by port.
    pub(crate) inputs: Vec<Vec<Wire>>,
    /// Its outputs, as cells of the circuit around it.
    pub(crate) outputs: Vec<Port>,
}

/// A function of cells. Made by [`crate::Builder`]; operations only use wires before them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Circuit {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    /// The circuits that were inserted, each behind those that are inside it. Part of no digest: they say
    /// where operations come from, and not what they compute.
    pub(crate) calls: Vec<Call>,
}

impl Circuit {
    /// What people call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operations, in order of dependency; wire i is the output of operation i.
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The tables that lookups name.
    pub fn tables(&self) -> &[Arc<Table>] {
        &self.tables
    }

    /// The inputs, in the order in which they were declared.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Number of lookups.
    pub fn lookups(&self) -> usize {
        self.ops.iter().filter(|op| matches!(op, Op::Lookup { .. })).count()
    }

    /// The least number of steps in which all lookups can run, those of a step in parallel.
    pub fn layers(&self) -> usize {
        let mut depth: Vec<usize> = Vec::with_capacity(self.ops.len());
        for op in &self.ops {
            depth.push(match op {
                Op::Input { .. } => 0,
                Op::Linear { terms, .. } => terms.iter().map(|(w, _)| depth[w.index()]).max().unwrap_or(0),
                Op::Lookup { x, .. } => depth[x.index()] + 1,
            });
        }
        depth.into_iter().max().unwrap_or(0)
    }
}
