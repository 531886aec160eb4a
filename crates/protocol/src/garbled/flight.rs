//! Which gates share a message: as many as fit, in the order of the layer, so that both parties know every length.
//!
//! The garbler sends a message as soon as it is full and keeps none; the evaluator uses one up before it takes the next. So
//! memory is bounded however large the circuit is, and neither waits for an answer.

use polyclave_kernels::label_hash::{Halves, Label, Negated};

use super::bank::LABEL;

/// Bytes of a message at most.
const MESSAGE_BYTES: usize = 1 << 17;
/// Lanes of a gate that are garbled at a time at most.
pub(super) const LANES: usize = 1024;

/// Some lanes of a gate.
pub(super) struct Run {
    /// Whether it is one of all lanes alike.
    pub(super) is_uniform: bool,
    /// Where the labels of both operands and of the result begin.
    pub(super) rows: [usize; 3],
    pub(super) lanes: usize,
    pub(super) negated: Negated,
}

impl Run {
    /// Bytes of its ciphertexts.
    fn bytes(&self) -> usize {
        2 * self.lanes * LABEL
    }
}

/// Gates of one layer, and the message that is under way. Used again, layer after layer.
#[derive(Default)]
pub(super) struct Flight {
    pub(super) runs: Vec<Run>,
    pub(super) message: Vec<u8>,
}

/// Gates that share a message, and its length; one message after another.
pub(super) fn messages(mut runs: &[Run]) -> impl Iterator<Item = (&[Run], usize)> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |run: &&Run| {
            bytes += run.bytes();
            bytes <= MESSAGE_BYTES
        };
        let count = runs.iter().take_while(fits).count();
        let (here, after) = runs.split_at(count);
        runs = after;
        (count > 0).then(|| (here, here.iter().map(Run::bytes).sum()))
    })
}

/// The ciphertexts of the next gate in a message: first one of every lane, then the other.
pub(super) fn next<'a>(rest: &mut &'a [u8], run: &Run) -> Halves<&'a [Label]> {
    let here;
    (here, *rest) = rest.split_at(run.bytes());
    let (garbler, evaluator) = here.as_chunks().0.split_at(run.lanes);
    Halves { garbler, evaluator }
}

/// The same, to be written.
pub(super) fn next_mut<'a>(rest: &mut &'a mut [u8], run: &Run) -> Halves<&'a mut [Label]> {
    let here;
    (here, *rest) = std::mem::take(rest).split_at_mut(run.bytes());
    let (garbler, evaluator) = here.as_chunks_mut().0.split_at_mut(run.lanes);
    Halves { garbler, evaluator }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_all_gates_in_order_and_none_is_too_long() {
        for (count, lanes) in [(0, 1), (1, 1), (9000, 1), (100, 70), (9, LANES)] {
            let run = |i| Run { is_uniform: false, rows: [i; 3], lanes, negated: Negated::default() };
            let runs: Vec<Run> = (0..count).map(run).collect();
            let mut seen = 0;
            for (here, bytes) in messages(&runs) {
                assert!(bytes <= MESSAGE_BYTES && bytes == here.len() * lanes * 32);
                assert!(here.iter().zip(seen..).all(|(run, i)| run.rows[0] == i));
                seen += here.len();
            }
            assert_eq!(seen, count);
        }
    }
}
