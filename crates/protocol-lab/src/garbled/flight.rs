//! Which gates share a message: as many as fit, in the order of the layer, so that both parties know every
//! length.
//!
//! The garbler sends a message as soon as it is full and keeps none. The evaluator uses up one message before
//! it receives the next. So memory is bounded however large the circuit is, and neither party waits for an
//! answer.

use polyclave_kernels::label_hash::Negated;

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

/// Gates of one layer, and the message that is under way. Used again, layer after layer.
#[derive(Default)]
pub(super) struct Flight {
    pub(super) runs: Vec<Run>,
    pub(super) message: Vec<u8>,
}

/// Gates that share a message, and its length; one message after another. Each lane of a gate takes
/// `bytes_of_lane`.
pub(super) fn messages(mut runs: &[Run], bytes_of_lane: usize) -> impl Iterator<Item = (&[Run], usize)> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |run: &&Run| {
            bytes += run.lanes * bytes_of_lane;
            bytes <= MESSAGE_BYTES
        };
        let count = runs.iter().take_while(fits).count();
        let (here, after) = runs.split_at(count);
        runs = after;
        (count > 0).then(|| (here, here.iter().map(|run| run.lanes * bytes_of_lane).sum()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_hold_all_gates_in_order_and_none_is_too_long() {
        let sizes = [(0, 1), (1, 1), (9000, 1), (100, 70), (9, LANES)];
        for ((count, lanes), bytes_of_lane) in sizes.into_iter().flat_map(|size| [(size, 32), (size, 25)]) {
            let run = |i| Run { is_uniform: false, rows: [i; 3], lanes, negated: Negated::default() };
            let runs: Vec<Run> = (0..count).map(run).collect();
            let mut seen = 0;
            for (here, bytes) in messages(&runs, bytes_of_lane) {
                assert!(bytes <= MESSAGE_BYTES && bytes == here.len() * lanes * bytes_of_lane);
                assert!(here.iter().zip(seen..).all(|(run, i)| run.rows[0] == i));
                seen += here.len();
            }
            assert_eq!(seen, count);
        }
    }
}
