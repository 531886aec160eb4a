//! ANDs by half gates (Zahur, Rosulek and Evans 2015, figure 2): which part of a message belongs to which
//! gate. The formulas are in the kernel, [`polyclave_kernels::label_hash`]. One call of the kernel garbles
//! all lanes of a gate.

use polyclave_kernels::label_hash::{Halves, Label, LabelHash};

use super::flight::Run;
use polyclave_protocol::garbling::LABEL;

/// Bytes of a gate and lane.
pub(super) const BYTES: usize = 2 * LABEL;

/// Garbles lanes of a gate, the first as number `first`, into their part of a message.
pub(super) fn garble(
    (hash, first): (&mut LabelHash, u64),
    delta: &Label,
    run: &Run,
    [a, b, c]: [&mut [Label]; 3],
    message: &mut [u8],
) {
    // First one ciphertext of every lane, then the other.
    let (garbler, evaluator) = message.as_chunks_mut().0.split_at_mut(run.lanes);
    hash.garble(first, delta, run.negated, [a, b], c, Halves { garbler, evaluator });
}

/// Evaluates lanes of a gate from their part of a message.
pub(super) fn evaluate(
    (hash, first): (&mut LabelHash, u64),
    run: &Run,
    [a, b, c]: [&mut [Label]; 3],
    message: &[u8],
) {
    let (garbler, evaluator) = message.as_chunks().0.split_at(run.lanes);
    hash.evaluate(first, [a, b], c, Halves { garbler, evaluator });
}
