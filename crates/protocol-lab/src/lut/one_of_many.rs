//! Random transfers of one message out of N, with N a power of two up to 256, between two parties.
//!
//! One such transfer takes log N correlated transfers, in which the receiver chooses the bits of a number s.
//! Let q_j = t_j + s_j Delta be their blocks, elements of GF(2^128). Both ends add up blocks times powers of
//! X. So q = t + s Delta, where s stands for the polynomial of its bits. The sender's message i is the hash
//! of q + i Delta. The receiver's message is the hash of t, which is message s.
//!
//! **Source**: Kolesnikov and Kumaresan 2013, "Improved OT Extension for Transferring Short Secrets" (CRYPTO
//! 2013): one key for each of N code words, of which the receiver has one. In that paper Delta is multiplied
//! bit by bit with a word of a code of 256 bits, and what hides the other messages is the distance of two
//! words, 128 bits. Here it is multiplied with s in the field.
//!
//! **Security.** The receiver's view of another message is a hash of t + (i - s) Delta, where i - s is a
//! public number other than zero. Delta is uniform in 128 bits ([`Shape`](polyclave_protocol::ot::Shape)), so
//! every product is, and two messages of a transfer are hashed at different blocks. This is the situation of
//! `random.rs` with a multiple of Delta in the place of Delta. The bound of [`AesHash`] counts how often some
//! block is the input of two evaluations of AES, which is as likely for a multiple as for Delta itself: q
//! counts all hashes, N for a transfer and as many more as messages are longer than a block. That the bound
//! carries over is our own reading of it. The sender learns nothing of s, because correlated transfers tell
//! it nothing of choices.
//!
//! Each direction has a hash key of its own, bound to the session, and no tweak comes twice under it: numbers
//! run on over all transfers of an object. The N messages of a transfer share their tweaks, as the two
//! messages do in `random.rs`.
//!
//! **Cost**: 128 log(N) / f bits from the receiver, f being the expansion. Kolesnikov and Kumaresan send 256
//! bits for any N up to 256. For N = 256 that is the same with the usual f = 4, half of it with f = 8; for
//! smaller N it is less. The sender computes N hashes for each block of a message, the receiver one.

use std::ops::Range;

use polyclave_kernels::aes_hash::AesHash;
use zeroize::Zeroizing;

use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Binding, Columns, Pairs};
use polyclave_protocol::{Error, Party, Result};

/// Bits of N at most.
pub(crate) const MAX_BITS: usize = 8;

/// Rounds of [`OneOfMany::extend`].
pub(crate) const ROUNDS: u64 = 3;

/// Both directions between this party and one peer.
pub(crate) struct OneOfMany {
    pairs: Pairs,
    peer: Party,
    sent: Numbered,
    received: Numbered,
    /// i Delta, by i.
    multiples: Zeroizing<Vec<u128>>,
}

/// The hash of one direction, and the number of its next tweak.
struct Numbered {
    hash: AesHash,
    next: u64,
}

/// Correlated blocks of an extension, as they are needed for transfers in both directions. They have passed
/// the check.
pub(crate) struct Extended {
    /// q: of transfers that this party sends.
    pub(crate) sent: Zeroizing<Vec<u128>>,
    /// t: of transfers that it receives.
    pub(crate) received: Zeroizing<Vec<u128>>,
}

/// Transfers in one direction, all of as many messages of the same length.
pub(crate) struct Transfers {
    sums: Zeroizing<Vec<u128>>,
    /// The tweak of the first.
    first: u64,
    /// Blocks of a message.
    length: usize,
}

impl OneOfMany {
    /// Over transfers that are used for nothing else. `label` is that of the session and the stream.
    pub(crate) fn new(label: &[u8], me: Party, peer: Party, pairs: Pairs) -> Result<OneOfMany> {
        if pairs.shape().columns() < 128 {
            return Err(Error::misuse("blocks of fewer than 128 bits must not be hashed to transfers"));
        }
        // Not made with Delta in every place: `vec!` looks whether what it is given is zero.
        let mut multiples = Zeroizing::new(vec![0; 1 << MAX_BITS]);
        multiples[1] = pairs.delta();
        for i in 2..multiples.len() {
            multiples[i] = times_x(multiples[i / 2]) ^ multiples[i % 2];
        }
        let [sent, received] = [Binding::new(label, me, peer, peer), Binding::new(label, peer, me, peer)]
            .map(|binding| Numbered::new(&binding));
        Ok(OneOfMany { pairs, peer, sent, received, multiples })
    }

    /// Extends by so many correlated transfers in each direction, and checks them. `choices` are this party's
    /// bits as receiver, eight a byte. [`ROUNDS`].
    pub(crate) fn extend(&mut self, choices: &[u8], count: usize, net: &mut dyn Net) -> Result<Extended> {
        let mut towards = vec![&[][..]; net.parties()];
        towards[self.peer.index()] = choices;
        let checked = self.pairs.extend_checked(&towards, count, net)?;
        let blocks = |columns: &Columns| -> Result<_> {
            let mut blocks = Zeroizing::new(vec![0_u128; count]);
            columns.write_blocks(0, &mut blocks)?;
            Ok(blocks)
        };
        let at = self.peer.index();
        Ok(Extended { sent: blocks(&checked.sent[at])?, received: blocks(&checked.received[at])? })
    }

    /// Transfers of one out of `2^bits` messages of so many blocks, which this party sends, from blocks of
    /// [`Extended::sent`].
    pub(crate) fn sender(&mut self, blocks: &[u128], bits: usize, length: usize) -> Transfers {
        self.sent.transfers(blocks, bits, length)
    }

    /// The same of those that it receives, from blocks of [`Extended::received`]. The choice of the first are
    /// the first so many bits.
    pub(crate) fn receiver(&mut self, blocks: &[u128], bits: usize, length: usize) -> Transfers {
        self.received.transfers(blocks, bits, length)
    }

    /// Writes message `i` of some of the transfers that this party sends.
    pub(crate) fn message(&self, transfers: &Transfers, some: Range<usize>, i: usize, message: &mut [u128]) {
        self.sent.hash(transfers, some, self.multiples[i], message);
    }

    /// Writes the message that this party has chosen in some of the transfers that it receives.
    pub(crate) fn chosen(&self, transfers: &Transfers, some: Range<usize>, message: &mut [u128]) {
        self.received.hash(transfers, some, 0, message);
    }
}

impl Numbered {
    fn new(binding: &Binding) -> Numbered {
        let mut key = [0; 16];
        binding.hasher("one of many: hash").finalize_xof().fill(&mut key);
        Numbered { hash: AesHash::new(&key), next: 0 }
    }

    fn transfers(&mut self, blocks: &[u128], bits: usize, length: usize) -> Transfers {
        let sum = |blocks: &[u128]| blocks.iter().rev().fold(0, |sum, block| times_x(sum) ^ block);
        let sums: Zeroizing<Vec<u128>> = Zeroizing::new(blocks.chunks_exact(bits).map(sum).collect());
        let first = self.next;
        self.next += (sums.len() * length) as u64;
        Transfers { sums, first, length }
    }

    fn hash(&self, transfers: &Transfers, some: Range<usize>, offset: u128, message: &mut [u128]) {
        let Transfers { sums, first, length } = transfers;
        let first = first + (some.start * length) as u64;
        for (message, sum) in message.chunks_exact_mut(*length).zip(&sums[some]) {
            message.fill(sum ^ offset);
        }
        self.hash.hash(first, message);
    }
}

/// The product with X in GF(2)\[X\] / (X^128 + X^7 + X^2 + X + 1).
fn times_x(block: u128) -> u128 {
    let carried = block >> 127;
    block << 1 ^ carried ^ carried << 1 ^ carried << 2 ^ carried << 7
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_protocol::mesh::run_parties;
    use polyclave_protocol::ot::Shape;

    const LABEL: &[u8] = b"a label of a session";

    /// What one party has: its messages as sender, and what it has chosen as receiver.
    struct Seen {
        choices: Vec<u8>,
        messages: Vec<Vec<u128>>,
        chosen: Vec<u128>,
    }

    /// Transfers out of 2^bits, of messages of so many blocks; some and then others.
    fn transfer(bits: usize, length: usize) -> Vec<Seen> {
        const COUNT: usize = 24;
        let outcomes = run_parties(2, |net| {
            let (me, peer) = (net.me(), Party(1 - net.me().0));
            let delta = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128.rotate_left(u32::from(me.0) * 7);
            let pairs = Pairs::setup(LABEL, delta, Shape::new(128, 4)?, net)?;
            let mut many = OneOfMany::new(LABEL, me, peer, pairs)?;
            let mut bytes = vec![0; (COUNT * bits).div_ceil(8)];
            blake3::Hasher::new().update(&[me.0]).finalize_xof().fill(&mut bytes);
            let blocks = many.extend(&bytes, COUNT * bits, net)?;
            let bit = |at: usize| bytes[at / 8] >> (at % 8) & 1;
            let choice = |i: usize| (0..bits).fold(0, |all, j| all | bit(i * bits + j) << j);
            let mut seen =
                Seen { choices: (0..COUNT).map(choice).collect(), messages: Vec::new(), chosen: Vec::new() };
            seen.messages = vec![Vec::new(); 1 << bits];
            for part in [0..8 * bits, 8 * bits..COUNT * bits] {
                let sent = many.sender(&blocks.sent[part.clone()], bits, length);
                let received = many.receiver(&blocks.received[part.clone()], bits, length);
                let count = part.len() / bits;
                let mut message = vec![0; count * length];
                for (i, messages) in seen.messages.iter_mut().enumerate() {
                    many.message(&sent, 0..count, i, &mut message);
                    messages.extend(&message);
                }
                many.chosen(&received, 0..count, &mut message);
                seen.chosen.extend(&message);
            }
            Ok(seen)
        });
        outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
    }

    #[test]
    fn the_receiver_has_the_message_that_it_has_chosen_and_no_two_are_equal() {
        for (bits, length) in [(1, 1), (2, 3), (4, 1), (8, 2)] {
            let seen = transfer(bits, length);
            for (sender, receiver) in [(&seen[0], &seen[1]), (&seen[1], &seen[0])] {
                for (at, choice) in receiver.choices.iter().enumerate() {
                    let blocks = at * length..(at + 1) * length;
                    let message = &sender.messages[usize::from(*choice)][blocks.clone()];
                    assert_eq!(message, &receiver.chosen[blocks], "{bits} bits, transfer {at}");
                }
            }
            let all = seen.iter().flat_map(|seen| seen.messages.iter().flatten());
            let distinct: std::collections::HashSet<&u128> = all.clone().collect();
            assert_eq!(distinct.len(), all.count(), "{bits} bits");
        }
    }

    #[test]
    fn times_x_is_the_product_of_the_field() {
        assert_eq!(times_x(1 << 127), 0x87);
        assert_eq!(times_x(0b11), 0b110);
        let power = |exponent: u32| (0..exponent).fold(1, |power, _| times_x(power));
        assert_eq!(power(128), 0x87);
        // (X^7 + X^2 + X + 1)^2 = X^14 + X^4 + X^2 + 1.
        assert_eq!(power(256), 0x4015);
    }

    #[test]
    fn short_blocks_are_refused() {
        let outcomes = run_parties(2, |net| {
            let pairs = Pairs::setup(LABEL, 3, Shape::new(64, 4)?, net)?;
            Ok(OneOfMany::new(LABEL, net.me(), Party(1 - net.me().0), pairs).err())
        });
        for outcome in outcomes {
            assert!(matches!(outcome, Ok(Some(Error::Misuse(_)))));
        }
    }
}
