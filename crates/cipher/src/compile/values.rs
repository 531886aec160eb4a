//! Finds the needed images of wires, from the outputs back.

use super::Maps;
use crate::circuit::{Op, Port};
use crate::{Circuit, Matrix, Wire};

/// A needed image of a wire, by its number in order of first demand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Value(u32);

impl Value {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Values through maps, and a constant. Empty for what is no sum.
pub(super) type Sum = (Vec<(Value, Matrix)>, u8);

/// What has to be computed, and from what.
pub(super) struct Values {
    /// Images needed of each wire, in order of first demand (from the outputs backwards).
    pub(super) of: Vec<Vec<(Matrix, Value)>>,
    /// The wire and the map of each value.
    pub(super) known: Vec<(Wire, Matrix)>,
    /// The sums, by the value they make.
    pub(super) sums: Vec<Sum>,
    /// What each lookup that is needed starts from, by wire.
    pub(super) starts: Vec<Option<Vec<Value>>>,
    /// Values of each output port.
    pub(super) outputs: Vec<Vec<Vec<Value>>>,
    pub(super) uniform: Vec<bool>,
}

impl Values {
    /// Walks from the outputs back; operations only use wires before them, so every demand on a wire is known
    /// when the walk reaches it.
    pub(super) fn demanded(
        circuit: &Circuit,
        maps: &dyn Maps,
        views: impl Fn(&Port) -> Vec<Matrix>,
    ) -> Values {
        let ops = circuit.ops();
        let mut values = Values {
            of: vec![Vec::new(); ops.len()],
            known: Vec::new(),
            sums: Vec::new(),
            starts: vec![None; ops.len()],
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
            match op {
                Op::Input { .. } => {}
                Op::Linear { terms, constant, .. } => {
                    for (m, value) in values.of[i].clone() {
                        let mapped = terms.iter().map(|(w, inner)| (*w, m.after(inner)));
                        let mut sum = Vec::with_capacity(terms.len());
                        for (w, n) in mapped.filter(|(_, n)| !n.is_zero()) {
                            let (outer, inner) = maps.split(&n);
                            sum.push((values.demand(w, inner), outer));
                        }
                        values.sums[value.index()] = (sum, m.apply(*constant));
                    }
                }
                Op::Lookup { table, x } if !values.of[i].is_empty() => {
                    let wants = maps.wants(&circuit.tables()[table.index()]);
                    values.starts[i] = Some(wants.into_iter().map(|m| values.demand(*x, m)).collect());
                }
                Op::Lookup { .. } => {}
            }
        }
        values
    }

    /// What a lookup that is needed starts from.
    pub(super) fn starts(&self, lookup: Wire) -> &[Value] {
        self.starts[lookup.index()].as_deref().unwrap_or_default()
    }

    fn demand(&mut self, wire: Wire, m: Matrix) -> Value {
        let of = &mut self.of[wire.index()];
        if let Some((_, value)) = of.iter().find(|(known, _)| *known == m) {
            return *value;
        }
        let value = Value(self.known.len() as u32);
        // Most wires have one image, and there are hundreds of thousands of wires in a circuit of bits.
        if of.is_empty() {
            of.reserve_exact(1);
        }
        of.push((m, value));
        self.known.push((wire, m));
        self.sums.push(Sum::default());
        value
    }
}

pub(super) fn uniform_wires(circuit: &Circuit) -> Vec<bool> {
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
