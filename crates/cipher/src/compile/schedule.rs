//! Decides in which layer each operation runs: lookups as early as possible, sums as late as possible.

use super::values::{Value, Values};
use crate::circuit::Op;
use crate::{Circuit, Wire};

/// What runs in which layer.
pub(super) struct Schedule {
    /// Sums of each layer, in order of dependency.
    pub(super) sums: Vec<Vec<Value>>,
    /// Lookups of each layer.
    pub(super) lookups: Vec<Vec<Wire>>,
}

impl Schedule {
    pub(super) fn of(circuit: &Circuit, values: &Values) -> Schedule {
        // A value of level k is ready when the lookups of layers 0 .. k are done (level 0: from the start).
        let mut level = vec![0; values.known.len()];
        let mut lookup_layer = vec![0; circuit.ops().len()];
        let mut last = 0;
        for (i, op) in circuit.ops().iter().enumerate() {
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for (_, value) in &values.of[i] {
                        let terms = values.sums[value.index()].0.iter();
                        level[value.index()] = terms.map(|(v, _)| level[v.index()]).max().unwrap_or(0);
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = &values.starts[i] {
                        let at = starts.iter().map(|v| level[v.index()]).max().unwrap_or(0);
                        lookup_layer[i] = at;
                        last = last.max(at + 1);
                        values.of[i].iter().for_each(|(_, value)| level[value.index()] = at + 1);
                    }
                }
            }
        }

        // The latest layer whose sums may make a value: that of its first use.
        let mut due = vec![last; values.known.len()];
        let use_at = |due: &mut [usize], v: &Value, at: usize| due[v.index()] = at.min(due[v.index()]);
        let mut sums = vec![Vec::new(); last + 1];
        let mut lookups = vec![Vec::new(); last + 1];
        for (i, op) in circuit.ops().iter().enumerate().rev() {
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for (_, value) in &values.of[i] {
                        let at = due[value.index()];
                        sums[at].push(*value);
                        values.sums[value.index()].0.iter().for_each(|(v, _)| use_at(&mut due, v, at));
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = &values.starts[i] {
                        let at = lookup_layer[i];
                        lookups[at].push(Wire(i as u32));
                        starts.iter().for_each(|v| use_at(&mut due, v, at));
                    }
                }
            }
        }
        sums.iter_mut().for_each(|layer| layer.reverse());
        lookups.iter_mut().for_each(|layer| layer.reverse());
        Schedule { sums, lookups }
    }
}
