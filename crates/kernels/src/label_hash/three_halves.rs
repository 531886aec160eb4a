//! Three halves: Rosulek and Roy 2021, "Three Halves Make a Whole? Beating the Half-Gates Lower Bound for
//! Garbled Circuits", CRYPTO 2021, ePrint 2021/749, for many gates at once. An AND is three ciphertexts of
//! half a label and five bits.
//!
//! **Slicing.** A label W is two halves, `W_L` (its first 8 bytes) and `W_R`; h is half a hash, and p one
//! more bit of it. For operands with labels A and B let i and j be their colours, `A_i` the label of a wire
//! with colour i, and `X_n = A_i + B_j` with `n = i + j`. The evaluator gets the label of the result as
//!
//! ```text
//! C_L = h(A_i) + h(X_n) + i G_0 + n G_2 + what R_L takes of (A_i, B_j)
//! C_R = h(B_j) + h(X_n) + j G_1 + n G_2 + what R_R takes of (A_i, B_j)
//! ```
//!
//! where the *control matrix* `R_ij` says which of the halves `(A_L, A_R, B_L, B_R)` are added. An evaluator
//! with other colours has three other hashes, so each G is masked by one that the evaluator does not know.
//! For eight equations there are the five unknowns C and G, so that three sums of equations contain no hash
//! and no unknown; they must hold by the choice of R alone. Let `D_ij = t_ij Delta + R_ij (A_i, B_j)`, where
//! `t_ij = (i + a)(j + b)` is the result and a, b are the colours of the labels for zero:
//!
//! ```text
//! the sum of all D_L is 0, the sum of all D_R is 0, and D_00,L + D_01,L = D_00,R + D_10,R,  whatever A_0, B_0 and Delta are
//! ```
//!
//! **Dicing.** R depends on a and b, and must say nothing of them: `R_ij = r_1 S_1 + r_2 S_2 + R'_ij`, with
//! the public matrices
//!
//! ```text
//! S_1 = 1110    S_2 = 1001    R'_ij = 00i0      r_ij = rho + (i a + n (a + b), j b + n (a + b))
//!       1001          0111            0j00
//! ```
//!
//! solves the three equations for every a and b, and for all values of the two bits rho: tested symbolically.
//! So with rho uniform, any single `r_ij` is uniform for every a and b. The evaluator sees a single one: r is
//! encrypted like C, bit by bit, with p for h, and with all five unknowns sent, since `r_00` is given: the
//! control bits.
//!
//! **Security**, if the hashes at labels that the evaluator does not have are random to it: three of the six
//! are such, one each in G_0, G_1 and G_2. So these three are uniform. The p of the three hashes likewise
//! make three of the control bits uniform. The other two are then determined, because they must open to
//! `r_ij`. The rest of its view is what it computes of these. So it has the same distribution for every a and
//! b, and only a and b were to be hidden.
//!
//! **The hash** must so stay random if linear functions of Delta are added to halves of it: `h(A + Delta) +
//! Delta_R`, say. The paper has a notion of its own for that, randomized tweakable circular correlation
//! robustness; that and its instantiation are known here from other people's accounts, not from the paper's
//! text. Here AES is an ideal cipher as in [`label_hash`](super), where an attacker may learn Delta in two
//! ways: by a call of AES on an input `sigma(x + Delta) + t`, or by one of its inverse on an output. The
//! input has 127 unknown bits. Only 64 bits of the output y go into `h = T(y + sigma(x + Delta) + t)`, so y
//! must not be known there: `T(sigma(Delta)) + L(Delta)` has to be a bijection in 64 of Delta's bits for each
//! of the four L that take neither, one, or the sum of its halves, or else 64 bits of y were known, and the
//! other 64 could be tried. The first or the last 64 bits as they are would be such a mistake: sigma makes
//! them a half, and a sum of halves. So T takes the last and the first word of four, in this order, and p is
//! the highest bit of the second; together these 65 are independent of L, tested as matrices. Then y has 127
//! unknown bits, too, and the theorem's bound holds with mu = 1536 hashes under a key: some 2^115
//! evaluations.
//!
//! **Tweaks**: A, B and A + B have one each, 2n, 2n + 1 and 2n + 2^64 for gate number n. An AND of a wire
//! with itself, or with its negation, needs no care: the evaluator's A + B is then zero, and so public, but
//! the one it does not have is Delta, hashed under a tweak of its own, like a label of any other wire whose
//! other label were zero; and A is hashed under two tweaks, for G_0 and G_1.
//!
//! The garbler calls H six times, the evaluator three times. All secret bits are masks: nothing branches on
//! them.
//!
//! # Differences from the paper
//! * The five control bits are sent as a byte: 25 bytes a gate.
//! * S is the paper's as others tell of it. `R'` and the formula of r come of our own search: for these S the
//!   equations over all colours have many solutions, and this is one of the sparsest. Security does not
//!   depend on the choice.

#[cfg(target_arch = "x86_64")]
mod aesni;
mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vaes256;

use super::half_gates::Offsets;
use super::{Label, LabelHash, Negated, Rounds, runs};
#[cfg(target_arch = "x86_64")]
use crate::isa::AesIsa;

/// Bytes that are sent for a gate.
pub const BYTES: usize = 25;

/// What is sent for gates: all pairs (G_0, G_1), then all G_2, then the control bits of each in a byte.
struct Sent<'a> {
    pairs: &'a [Label],
    thirds: &'a [[u8; 8]],
    controls: &'a [u8],
}

/// The same, to be written.
struct SentMut<'a> {
    pairs: &'a mut [Label],
    thirds: &'a mut [[u8; 8]],
    controls: &'a mut [u8],
}

impl LabelHash {
    /// Garbles `a[i] AND b[i]` as gate number `first + i`. From labels for zero come labels for zero, and 25
    /// bytes a gate. The lowest bit of `delta` is 1; `coins` are uniform, secret, and not used again: two
    /// bits of a byte for each gate are looked at.
    ///
    /// # Panics
    /// If lengths differ.
    #[allow(clippy::too_many_arguments)]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn garble_three_halves(
        &mut self,
        first: u64,
        delta: &Label,
        negated: Negated,
        [a, b]: [&[Label]; 2],
        c: &mut [Label],
        coins: &[u8],
        sent: &mut [u8],
    ) {
        let len = c.len();
        assert!([a.len(), b.len(), coins.len()] == [len; 3], "gates have all their labels");
        assert_eq!(sent.len(), len * BYTES, "gates have all their ciphertexts");
        let (pairs, rest) = sent.split_at_mut(len * 16);
        let (thirds, controls) = rest.split_at_mut(len * 8);
        let (pairs, thirds) = (pairs.as_chunks_mut().0, thirds.as_chunks_mut().0);
        let offsets = Offsets::of(delta, negated);
        #[cfg(target_arch = "x86_64")]
        let isa = self.isa;
        for run in runs(first, len) {
            let number = first + run.start as u64;
            let operands = [&a[run.clone()], &b[run.clone()]];
            let (c, coins) = (&mut c[run.clone()], &coins[run.clone()]);
            let sent = SentMut {
                pairs: &mut pairs[run.clone()],
                thirds: &mut thirds[run.clone()],
                controls: &mut controls[run],
            };
            match self.rounds(number) {
                Rounds::Portable(cipher) => {
                    portable::garble(cipher, number, &offsets, operands, c, coins, sent);
                }
                // SAFETY: this variant exists only where AES-NI was detected, and these of `isa` where VAES
                // was, too.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe {
                    match isa {
                        AesIsa::Vaes256 | AesIsa::Vaes512 => {
                            vaes256::garble(keys, number, &offsets, operands, c, coins, sent);
                        }
                        _ => aesni::garble(keys, number, &offsets, operands, c, coins, sent),
                    }
                },
            }
        }
    }

    /// Evaluates gates that were [garbled](LabelHash::garble_three_halves) with the same number, from the
    /// labels that the evaluator has. Colours are public to it.
    ///
    /// # Panics
    /// If lengths differ.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn evaluate_three_halves(&mut self, first: u64, [a, b]: [&[Label]; 2], c: &mut [Label], sent: &[u8]) {
        let len = c.len();
        assert!([a.len(), b.len()] == [len; 2], "gates have all their labels");
        assert_eq!(sent.len(), len * BYTES, "gates have all their ciphertexts");
        let (pairs, rest) = sent.split_at(len * 16);
        let (thirds, controls) = rest.split_at(len * 8);
        let (pairs, thirds) = (pairs.as_chunks().0, thirds.as_chunks().0);
        #[cfg(target_arch = "x86_64")]
        let isa = self.isa;
        for run in runs(first, len) {
            let number = first + run.start as u64;
            let operands = [&a[run.clone()], &b[run.clone()]];
            let c = &mut c[run.clone()];
            let sent =
                Sent { pairs: &pairs[run.clone()], thirds: &thirds[run.clone()], controls: &controls[run] };
            match self.rounds(number) {
                Rounds::Portable(cipher) => portable::evaluate(cipher, number, operands, c, sent),
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Rounds::Registers(keys) => unsafe {
                    match isa {
                        AesIsa::Vaes256 | AesIsa::Vaes512 => {
                            vaes256::evaluate(keys, number, operands, c, sent);
                        }
                        _ => aesni::evaluate(keys, number, operands, c, sent),
                    }
                },
            }
        }
    }
}

/// The control bits of a gate in a byte: `r_00`, and what is added for i, for j and for n.
///
/// From the bits a, b and rho, and p of `A_0`, `A_1`, `B_0`, `B_1`, `X_0`, `X_1`.
#[inline]
fn controls([a, b]: [u8; 2], coins: u8, [a_0, a_1, b_0, b_1, x_0, x_1]: [u8; 6]) -> u8 {
    let rho = [coins & 1 ^ a_0 ^ x_0, coins >> 1 & 1 ^ b_0 ^ x_0];
    rho[0] | rho[1] << 1 | (a ^ a_0 ^ a_1) << 2 | (b ^ b_0 ^ b_1) << 3 | (a ^ b ^ x_0 ^ x_1) << 4
}

/// The bits r that the evaluator sees, from its colours, what was sent, and p of A, B and A + B.
#[inline]
fn opened([i, j]: [u8; 2], controls: u8, [a, b, x]: [u8; 3]) -> [u8; 2] {
    let of_both = (i ^ j) & controls >> 4;
    let left = controls ^ i & controls >> 2 ^ of_both ^ a ^ x;
    let right = controls >> 1 ^ j & controls >> 3 ^ of_both ^ b ^ x;
    [left & 1, right & 1]
}
