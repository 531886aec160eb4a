//! Which layer everything runs in: lookups as early as possible, sums as late as possible.

use std::collections::HashMap;

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
        let mut level: HashMap<Value, usize> = HashMap::new();
        let mut lookup_layer: HashMap<Wire, usize> = HashMap::new();
        for (i, op) in circuit.ops().iter().enumerate() {
            let wire = Wire(i as u32);
            let ready = |level: &HashMap<Value, usize>, v: &Value| level.get(v).copied().unwrap_or(0);
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for m in &values.of[i] {
                        let sum = &values.sums[&(wire, *m)];
                        let at = sum.0.iter().map(|(v, _)| ready(&level, v)).max().unwrap_or(0);
                        level.insert((wire, *m), at);
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = values.starts.get(&wire) {
                        let at = starts.iter().map(|v| ready(&level, v)).max().unwrap_or(0);
                        lookup_layer.insert(wire, at);
                        level.extend(values.of[i].iter().map(|m| ((wire, *m), at + 1)));
                    }
                }
            }
        }
        let last = lookup_layer.values().map(|k| k + 1).max().unwrap_or(0);

        // The latest layer whose sums may make a value: that of its first use.
        let mut due: HashMap<Value, usize> = HashMap::new();
        let use_at = |due: &mut HashMap<Value, usize>, v: &Value, at: usize| {
            due.entry(*v).and_modify(|d| *d = at.min(*d)).or_insert(at);
        };
        values.outputs.iter().flatten().flatten().for_each(|v| use_at(&mut due, v, last));
        let mut sums = vec![Vec::new(); last + 1];
        let mut lookups = vec![Vec::new(); last + 1];
        for (i, op) in circuit.ops().iter().enumerate().rev() {
            let wire = Wire(i as u32);
            match op {
                Op::Input { .. } => {}
                Op::Linear { .. } => {
                    for m in &values.of[i] {
                        let at = due[&(wire, *m)];
                        sums[at].push((wire, *m));
                        values.sums[&(wire, *m)].0.iter().for_each(|(v, _)| use_at(&mut due, v, at));
                    }
                }
                Op::Lookup { .. } => {
                    if let Some(starts) = values.starts.get(&wire) {
                        let at = lookup_layer[&wire];
                        lookups[at].push(wire);
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
