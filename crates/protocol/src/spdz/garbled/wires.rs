//! What a party has of each wire of a circuit, by slot, and sums of it: masks ahead, labels when it garbles,
//! active labels when it evaluates. Sums of wires are sums of all three.

use std::ops::BitXorAssign;

use zeroize::{Zeroize, Zeroizing};

use super::plan::{And, Plan, Row, Step, Sum};

/// What belongs to a wire.
pub(super) trait Wire: Copy + Default + BitXorAssign + Zeroize {}

/// The label for a masked value of zero, at the garbler.
impl Wire for u128 {}

/// One party's part of a wire's mask: an authenticated bit, of which the evaluator's tag has 128 bits.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Mask {
    /// Of the evaluator's share: its tag, and at the garbler the key of the tag.
    pub(super) block: u128,
    /// Of the garbler's share: its tag, and at the evaluator the key of the tag.
    pub(super) word: u64,
    /// This party's share.
    pub(super) bit: u8,
}

impl Wire for Mask {}

impl BitXorAssign for Mask {
    fn bitxor_assign(&mut self, other: Mask) {
        self.block ^= other.block;
        self.word ^= other.word;
        self.bit ^= other.bit;
    }
}

/// What the evaluator computes of a wire.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Active {
    /// The label of the masked value.
    pub(super) label: u128,
    /// The masked value.
    pub(super) bit: u8,
}

impl Wire for Active {}

impl BitXorAssign for Active {
    fn bitxor_assign(&mut self, other: Active) {
        self.label ^= other.label;
        self.bit ^= other.bit;
    }
}

/// Something of every wire; wiped on drop.
pub(super) struct Wires<T: Wire> {
    lanes: usize,
    of_lanes: Zeroizing<Vec<T>>,
    uniform: Zeroizing<Vec<T>>,
    /// A sum in work.
    sum: Zeroizing<Vec<T>>,
}

impl<T: Wire> Wires<T> {
    /// Of no wire yet.
    pub(super) fn new(plan: &Plan, lanes: usize) -> Self {
        let row = |len: usize| Zeroizing::new(vec![T::default(); len]);
        Wires { lanes, of_lanes: row(plan.rows[0] * lanes), uniform: row(plan.rows[1]), sum: row(lanes) }
    }

    /// A wire in all lanes, or one that is the same in all.
    pub(super) fn row(&self, row: Row) -> &[T] {
        match row {
            Row::Lanes(row) => &self.of_lanes[row * self.lanes..][..self.lanes],
            Row::Uniform(row) => &self.uniform[row..][..1],
        }
    }

    pub(super) fn row_mut(&mut self, row: Row) -> &mut [T] {
        match row {
            Row::Lanes(row) => &mut self.of_lanes[row * self.lanes..][..self.lanes],
            Row::Uniform(row) => &mut self.uniform[row..][..1],
        }
    }

    /// Sums in order. `one` is what a wire changes by if a one is added.
    pub(super) fn add_up(&mut self, sums: &[Sum], one: T) {
        for Sum { to, terms, plus_one } in sums {
            let mut sum = std::mem::take(&mut self.sum);
            let len = self.row(*to).len();
            sum[..len].fill(if *plus_one { one } else { T::default() });
            for term in terms {
                match self.row(*term) {
                    [same] => sum[..len].iter_mut().for_each(|sum| *sum ^= *same),
                    row => sum[..len].iter_mut().zip(row).for_each(|(sum, term)| *sum ^= *term),
                }
            }
            self.row_mut(*to).copy_from_slice(&sum[..len]);
            self.sum = sum;
        }
    }

    /// The operands of all ANDs of a step: of those that are the same in all lanes, then of the others, lane
    /// by lane of each.
    pub(super) fn operands(&self, step: &Step, one: T) -> [Zeroizing<Vec<T>>; 2] {
        let count = step.gates(self.lanes);
        let mut rows = [(); 2].map(|()| Zeroizing::new(Vec::with_capacity(count)));
        for And { from, negated, .. } in step.ands() {
            for ((row, from), is_negated) in rows.iter_mut().zip(from).zip([negated.a, negated.b]) {
                row.extend(self.row(*from).iter().map(|wire| plus(*wire, is_negated, one)));
            }
        }
        rows
    }

    /// Sets the results of all ANDs of a step, in the same order.
    pub(super) fn set_results(&mut self, step: &Step, one: T, results: &[T]) {
        let mut rest = results;
        for And { to, negated, .. } in step.ands() {
            let row = self.row_mut(*to);
            let (now, later) = rest.split_at(row.len());
            row.iter_mut().zip(now).for_each(|(wire, result)| *wire = plus(*result, negated.c, one));
            rest = later;
        }
    }
}

/// Which gates negate is public.
fn plus<T: Wire>(mut wire: T, is_negated: bool, one: T) -> T {
    if is_negated {
        wire ^= one;
    }
    wire
}
