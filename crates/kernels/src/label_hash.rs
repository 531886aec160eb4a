//! The hash of wire labels in garbled circuits, and the half gates and [three halves](three_halves) that are
//! made of it.
//!
//! `H(x, t) = AES_k(m) ^ m` with `m = sigma(x) ^ t`, where sigma maps the halves `(l, r)` of a label to
//! `(l ^ r, l)`. The key k changes every 1024 tweaks: `k = AES_root(t / 1024)`. All keys are public. This is
//! the hash of Guo, Katz, Wang, Weng and Yu 2020, "Better concrete security for half-gates garbling (in the
//! multi-instance setting)", ePrint 2019/1168, where t is the key itself, at the label
//! `x ^ sigma^-1(t mod 1024)`. So its theorem holds, in which a key may be used more than once:
//!
//! *With AES as an ideal cipher, an unknown offset of rho bits of entropy, p evaluations of AES by the
//! attacker, q hashes at the offset, and mu of them under one key at most, H differs from a random function
//! (tweakable, circular) by no more than about (2 mu p + mu q) / 2^rho, constants aside.* With one label
//! hidden for each tweak, mu = 1024 and rho = 127, which leaves 2^116 evaluations, for any number of hashes.
//! If a tweak hides more labels ([`LabelHash::hash_gates`]), mu is larger by that factor. One fixed key (mu =
//! q) would leave 2^87 after 2^40 hashes.
//!
//! The caller has to guarantee that under one root **no tweak is used for two wires**. And labels of two
//! wires under one key must not differ by the difference of their tweaks' images under `sigma^-1`: equal
//! labels do not, and random ones and their sums do with probability mu^2 / 2^128.
//!
//! A *gate number* n stands for the tweaks 2n and 2n + 1, and in [`three_halves`] for 2n + 2^64 too, under
//! the same key. Cost: one AES call a hash, and a key's expansion for every 512 gates.

#[cfg(target_arch = "x86_64")]
mod aesni;
mod half_gates;
mod portable;
#[cfg(test)]
mod tests;
pub mod three_halves;
#[cfg(target_arch = "x86_64")]
mod vaes256;

use core::ops::Range;

use aes::Aes128;
use aes::cipher::BlockCipherEncrypt;

use crate::aes_hash::portable::expand;
use crate::isa::AesIsa;

pub use half_gates::{Halves, Negated};

/// A label of a wire: a number of 128 bits, little-endian. Its lowest bit is its colour.
pub type Label = [u8; 16];

/// Gate numbers that share a key.
const GATES_OF_KEY: u64 = 512;

/// The hash under one root.
pub struct LabelHash {
    isa: AesIsa,
    root: Box<Aes128>,
    /// The key in use, and which.
    key: Option<(u64, Rounds)>,
}

/// Which of the two tweaks of a gate number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tweak {
    /// 2n.
    First = 0,
    /// 2n + 1.
    Second = 1,
}

/// The tweak of the first gate, and how many labels a gate has; the next gate's tweak is greater by two.
type Gates = (u64, usize);

/// An expanded key.
enum Rounds {
    Portable(Box<Aes128>),
    #[cfg(target_arch = "x86_64")]
    Registers(Box<crate::aes_prg::aesni::RoundKeys>),
}

impl LabelHash {
    /// From a root that is public, and new for every use.
    pub fn new(root: &[u8; 16]) -> Self {
        Self::with(AesIsa::best(), root)
    }

    /// Assumes that the processor has `isa`.
    pub(crate) fn with(isa: AesIsa, root: &[u8; 16]) -> Self {
        LabelHash { isa, root: expand(root), key: None }
    }

    /// Replaces each label by its hash with the first tweak of the gate number `first`, `first + 1` and so
    /// on.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn hash(&mut self, first: u64, labels: &mut [Label]) {
        for run in runs(first, labels.len()) {
            let number = first + run.start as u64;
            match self.rounds(number) {
                Rounds::Portable(cipher) => portable::hash(cipher, number, &mut labels[run]),
                // SAFETY: this variant exists only where AES-NI was detected.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe { aesni::hash(keys, number, &mut labels[run]) },
            }
        }
    }

    /// Replaces each label by its hash with one tweak of a gate number: the first `labels_of_gate` labels
    /// with `first`, the next ones with `first + 1`, and so on. Labels that share a tweak differ by offsets;
    /// the more there are, the smaller the margin.
    ///
    /// # Panics
    /// If there are no whole gates.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn hash_gates(&mut self, first: u64, tweak: Tweak, labels_of_gate: usize, labels: &mut [Label]) {
        assert!(
            labels_of_gate > 0 && labels.len().is_multiple_of(labels_of_gate),
            "gates have all their labels"
        );
        #[cfg(target_arch = "x86_64")]
        let isa = self.isa;
        for run in runs(first, labels.len() / labels_of_gate) {
            let from = (2 * (first + run.start as u64) + tweak as u64, labels_of_gate);
            let labels = &mut labels[run.start * labels_of_gate..run.end * labels_of_gate];
            match self.rounds(first + run.start as u64) {
                Rounds::Portable(cipher) => portable::hash_gates(cipher, from, labels),
                // SAFETY: this variant exists only where AES-NI was detected, and these of `isa` where VAES
                // was, too.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe {
                    match isa {
                        AesIsa::Vaes256 | AesIsa::Vaes512 => vaes256::hash_gates(keys, from, labels),
                        _ => aesni::hash_gates(keys, from, labels),
                    }
                },
            }
        }
    }

    /// The key of a gate number.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    fn rounds(&mut self, number: u64) -> &Rounds {
        let which = number / GATES_OF_KEY;
        if self.key.as_ref().is_none_or(|(at, _)| *at != which) {
            let mut key: aes::Block = u128::from(which).to_le_bytes().into();
            self.root.encrypt_block(&mut key);
            let rounds = match self.isa {
                AesIsa::Portable => Rounds::Portable(expand(&key.into())),
                // SAFETY: the other variants exist only where their instructions were detected, AES-NI with
                // all.
                #[cfg(target_arch = "x86_64")]
                _ => Rounds::Registers(unsafe { crate::aes_prg::aesni::RoundKeys::expand(&key.into()) }),
            };
            self.key = Some((which, rounds));
        }
        let (_, rounds) = self.key.as_ref().expect("it was set");
        rounds
    }
}

/// Places of `len` gates that share a key, one run after another.
fn runs(first: u64, len: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let left = GATES_OF_KEY - (first + start as u64) % GATES_OF_KEY;
        let run = start..len.min(start + left as usize);
        start = run.end;
        (!run.is_empty()).then_some(run)
    })
}
