//! Half gates: Zahur, Rosulek and Evans 2015, "Two halves make a whole", figure 2, for many gates at once.
//!
//! An AND of the wires a and b is the sum of two gates. In each gate one party knows one operand: the colour
//! of b's label for zero (the garbler's half, ciphertext `T_G`) and that of the label that the evaluator has
//! (the evaluator's, `T_E`). The garbler calls H four times, the evaluator twice, and two ciphertexts are
//! sent.

use super::{Label, LabelHash, Rounds, portable, runs};
#[cfg(target_arch = "x86_64")]
use super::{aesni, vaes256};
#[cfg(target_arch = "x86_64")]
use crate::isa::AesIsa;

/// Which operands, and whether the result, are negated: any function of two bits that is no sum is such an
/// AND.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Negated {
    /// The first operand.
    pub a: bool,
    /// The second.
    pub b: bool,
    /// The result.
    pub c: bool,
}

/// What is sent for gates, `T_G` and `T_E` of each.
pub struct Halves<T> {
    /// `T_G`.
    pub garbler: T,
    /// `T_E`.
    pub evaluator: T,
}

/// The offset of all labels, and what is added to labels for zero where there is a negation.
pub(super) struct Offsets {
    pub(super) delta: Label,
    pub(super) a: Label,
    pub(super) b: Label,
    pub(super) c: Label,
}

impl Offsets {
    pub(super) fn of(delta: &Label, negated: Negated) -> Offsets {
        let if_set = |set| if set { *delta } else { [0; 16] };
        Offsets { delta: *delta, a: if_set(negated.a), b: if_set(negated.b), c: if_set(negated.c) }
    }
}

impl LabelHash {
    /// Garbles `a[i] AND b[i]` as gate number `first + i`. From labels for zero come labels for zero, and
    /// ciphertexts. The lowest bit of `delta` is 1.
    ///
    /// # Panics
    /// If lengths differ.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn garble(
        &mut self,
        first: u64,
        delta: &Label,
        negated: Negated,
        [a, b]: [&[Label]; 2],
        c: &mut [Label],
        halves: Halves<&mut [Label]>,
    ) {
        let Halves { garbler, evaluator } = halves;
        let len = c.len();
        assert!(
            [a.len(), b.len(), garbler.len(), evaluator.len()] == [len; 4],
            "gates have all their labels"
        );
        let offsets = Offsets::of(delta, negated);
        #[cfg(target_arch = "x86_64")]
        let isa = self.isa;
        for run in runs(first, len) {
            let number = first + run.start as u64;
            let operands = [&a[run.clone()], &b[run.clone()]];
            let c = &mut c[run.clone()];
            let halves = Halves { garbler: &mut garbler[run.clone()], evaluator: &mut evaluator[run] };
            match self.rounds(number) {
                Rounds::Portable(cipher) => portable::garble(cipher, number, &offsets, operands, c, halves),
                // SAFETY: this variant exists only where AES-NI was detected, and these of `isa` where VAES
                // was, too.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe {
                    match isa {
                        AesIsa::Vaes256 | AesIsa::Vaes512 => {
                            vaes256::garble(keys, number, &offsets, operands, c, halves);
                        }
                        _ => aesni::garble(keys, number, &offsets, operands, c, halves),
                    }
                },
            }
        }
    }

    /// Evaluates gates that were [garbled](LabelHash::garble) with the same number, from the labels that the
    /// evaluator has. Colours are public to it.
    ///
    /// # Panics
    /// If lengths differ.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn evaluate(
        &mut self,
        first: u64,
        [a, b]: [&[Label]; 2],
        c: &mut [Label],
        Halves { garbler, evaluator }: Halves<&[Label]>,
    ) {
        let len = c.len();
        assert!(
            [a.len(), b.len(), garbler.len(), evaluator.len()] == [len; 4],
            "gates have all their labels"
        );
        #[cfg(target_arch = "x86_64")]
        let isa = self.isa;
        for run in runs(first, len) {
            let number = first + run.start as u64;
            let operands = [&a[run.clone()], &b[run.clone()]];
            let c = &mut c[run.clone()];
            let halves = Halves { garbler: &garbler[run.clone()], evaluator: &evaluator[run] };
            match self.rounds(number) {
                Rounds::Portable(cipher) => portable::evaluate(cipher, number, operands, c, halves),
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe {
                    match isa {
                        AesIsa::Vaes256 | AesIsa::Vaes512 => {
                            vaes256::evaluate(keys, number, operands, c, halves);
                        }
                        _ => aesni::evaluate(keys, number, operands, c, halves),
                    }
                },
            }
        }
    }
}
