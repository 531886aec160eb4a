//! ANDs by three halves (Rosulek and Roy 2021, CRYPTO 2021, ePrint 2021/749): 25 bytes a gate instead of the
//! 32 of half gates, and half as many hashes again. The kernel,
//! [`polyclave_kernels::label_hash::three_halves`], says what is sent, why the evaluator's control matrices
//! reveal nothing, and which property the hash must have.
//!
//! The assumption is another one than that of half gates. Linear functions of halves of Delta are added to
//! halves of hashes, of A + B too. So the hash has to be, in the paper's words, randomized tweakable circular
//! correlation robust. Here that follows if AES is an ideal cipher, and about 2^115 evaluations of it are
//! needed to learn anything.
//!
//! The garbler draws two bits a gate from a generator of its own, whose seed is new in every stream. If these
//! bits were known, a control matrix would tell the colours of zeros.

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::label_hash::{Label, LabelHash, three_halves};
use zeroize::Zeroizing;

use super::flight::{LANES, Run};
use polyclave_protocol::Result;
use polyclave_protocol::session::random_bytes;

/// Bytes of a gate and lane.
pub(super) const BYTES: usize = three_halves::BYTES;

/// The garbler's secret bits.
pub(super) struct Coins {
    prg: AesPrg,
    bytes: Zeroizing<Vec<u8>>,
}

impl Coins {
    /// From a new seed.
    pub(super) fn new() -> Result<Coins> {
        let mut key = Zeroizing::new([0; 16]);
        random_bytes(&mut *key)?;
        Ok(Coins { prg: AesPrg::new(&key, 0), bytes: Zeroizing::new(vec![0; LANES]) })
    }

    /// As many bytes, of which no gate had any.
    fn toss(&mut self, count: usize) -> &[u8] {
        let bytes = &mut self.bytes[..count];
        self.prg.fill(bytes);
        bytes
    }
}

/// Garbles lanes of a gate, the first as number `first`, into their part of a message.
pub(super) fn garble(
    (hash, first): (&mut LabelHash, u64),
    delta: &Label,
    run: &Run,
    [a, b, c]: [&mut [Label]; 3],
    coins: &mut Coins,
    message: &mut [u8],
) {
    hash.garble_three_halves(first, delta, run.negated, [a, b], c, coins.toss(run.lanes), message);
}

/// Evaluates lanes of a gate from their part of a message.
pub(super) fn evaluate((hash, first): (&mut LabelHash, u64), [a, b, c]: [&mut [Label]; 3], message: &[u8]) {
    hash.evaluate_three_halves(first, [a, b], c, message);
}
