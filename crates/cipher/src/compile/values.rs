//! Which images of which wires are needed, found by walking from the outputs back.

use std::collections::HashMap;

use super::Maps;
use crate::circuit::{Op, Port};
use crate::{Circuit, Matrix, Wire};

/// A needed image of a wire.
pub(super) type Value = (Wire, Matrix);

/// What has to be computed, and from what.
pub(super) struct Values {
    /// Images needed of each wire, in order of first demand (from the outputs backwards).
    pub(super) of: Vec<Vec<Matrix>>,
    /// The sums, by the value they make.
    pub(super) sums: HashMap<Value, (Vec<(Value, Matrix)>, u8)>,
    /// What each lookup that is needed starts from.
    pub(super) starts: HashMap<Wire, Vec<Value>>,
    /// Values of each output port.
    pub(super) outputs: Vec<Vec<Vec<Value>>>,
    pub(super) uniform: Vec<bool>,
}

impl Values {
    /// Walks from the outputs back; operations only use wires before them, so every demand on a wire is known when
    /// the walk reaches it.
    pub(super) fn demanded(
        circuit: &Circuit,
        maps: &(impl Maps + ?Sized),
        views: impl Fn(&Port) -> Vec<Matrix>,
    ) -> Values {
        let ops = circuit.ops();
        let mut values = Values {
            of: vec![Vec::new(); ops.len()],
            sums: HashMap::new(),
            starts: HashMap::new(),
            outputs: Vec::new(),
            uniform: uniform_wires(circuit),
        };
        for port in circuit.outputs() {
            let mut wanted = vec![Matrix::identity(port.bits)];
            wanted.extend(views(port).into_iter().filter(|m| !m.is_identity()));
            let cells = port.cells.iter();
            let demands = cells.map(|w| wanted.iter().map(|m| values.demand(*w, *m)).collect()).collect();
            values.outputs.push(demands);
        }
        for (i, op) in ops.iter().enumerate().rev() {
            let wire = Wire(i as u32);
            match op {
                Op::Input { .. } => {}
                Op::Linear { terms, constant, .. } => {
                    for m in values.of[i].clone() {
                        let terms = terms.iter().map(|(w, inner)| (*w, m.after(inner)));
                        let terms = terms.filter(|(_, n)| !n.is_zero()).map(|(w, n)| {
                            let (outer, inner) = maps.split(&n);
                            (values.demand(w, inner), outer)
                        });
                        let sum = (terms.collect(), m.apply(*constant));
                        values.sums.insert((wire, m), sum);
                    }
                }
                Op::Lookup { table, x } if !values.of[i].is_empty() => {
                    let wants = maps.wants(&circuit.tables()[table.index()]);
                    let starts = wants.into_iter().map(|m| values.demand(*x, m)).collect();
                    values.starts.insert(wire, starts);
                }
                Op::Lookup { .. } => {}
            }
        }
        values
    }

    fn demand(&mut self, wire: Wire, m: Matrix) -> Value {
        let of = &mut self.of[wire.index()];
        if !of.contains(&m) {
            of.push(m);
        }
        (wire, m)
    }
}

fn uniform_wires(circuit: &Circuit) -> Vec<bool> {
    let mut uniform: Vec<bool> = Vec::with_capacity(circuit.ops().len());
    for op in circuit.ops() {
        uniform.push(match op {
            Op::Input { uniform, .. } => *uniform,
            Op::Linear { terms, .. } => terms.iter().all(|(w, _)| uniform[w.index()]),
            Op::Lookup { x, .. } => uniform[x.index()],
        });
    }
    uniform
}
