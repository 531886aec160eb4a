//! Leaky triples: products of authenticated bits x and y, of which a cheater may learn a few x. Katz, Ranellucci, Rosulek, Wang
//! 2018, "Optimizing Authenticated Garbling for Faster Secure Two-Party Computation" (CRYPTO 2018, ePrint 2018/578), the
//! improved protocol for leaky AND triples, which halves what Wang, Ranellucci and Katz 2017 send.
//!
//! For party i and its peer j: M_i\[b\] = K_j\[b\] + b Delta_j for each bit b of i, and the lowest bit of Delta_A + Delta_B is 1
//! (`abit.rs`). From random authenticated x, y, z (all sums over GF(2)):
//!
//! 1. Phi_i = y_i Delta_i + K_i\[y_j\] + M_i\[y_i\]. So Phi_A + Phi_B = y (Delta_A + Delta_B), as K_i\[y_j\] + M_j\[y_j\] = y_j Delta_i.
//! 2. i sends G_i = H(K_i\[x_j\]) + H(K_i\[x_j\] + Delta_i) + Phi_i. As M_j\[x_j\] is one of the two that are hashed,
//!    E_j = H(M_j\[x_j\]) + x_j G_i = H(K_i\[x_j\]) + x_j Phi_i.
//! 3. S_i = H(K_i\[x_j\]) + x_i Phi_i + E_i. In S_A + S_B the hashes cancel, and what is left is
//!    x_A Phi_A + x_B Phi_A + x_B Phi_B + x_A Phi_B = x (Phi_A + Phi_B) = x y (Delta_A + Delta_B).
//! 4. Z_i = z_i Delta_i + K_i\[z_j\] + M_i\[z_i\], and so V_i = S_i + Z_i add up to (x y + z)(Delta_A + Delta_B). The lowest bits of
//!    V_A and V_B are exchanged; their sum is d = x y + z, and z is corrected: z + d = x y.
//! 5. L_i = V_i + d Delta_i add up to (x y + z + d)(Delta_A + Delta_B) = 0: both parties must have the same. One hash of all L of a
//!    batch is compared by commitment and opening.
//!
//! **What a cheater A can do.** What B uses of A is G_A, one bit of d and the hash of L, besides transfers that are checked. Let A
//! send G_A + e, whatever it is that A departs from. Then V_B grows by x_B e, and A, which knows V_A, has of B
//! L_B = V_A + (x y + z) Delta_A + x_B e + (x y + z + d) Delta_B.
//! * *A wrong product*, x y + z + d = 1: A must have committed to a value with Delta_B in it, of which it does not know 127 bits.
//! * *A right one, with e = 0*: nothing is learnt. z_B is uniform to A, and so are B's bit and d.
//! * *A right one, with e other than 0*: B's bit is u + x_B lsb(e), with u uniform to A because of z_B. To pass, A must send the bit
//!   that makes d right and commit to L_B, and one of the two, or both, contains x_B: **it guesses x_B and is caught with
//!   probability 1/2.** If it passes it knows x_B, and of y and z nothing (y_B is in G_B only, behind a hash of K_B + Delta_B,
//!   and z_B masks d).
//! * *A lowest bit of Delta_A that is not what it should be*: then B's bit is free of x y + z, and A must guess that, which
//!   is uniform because of z_B: 1/2 for every triple, with whatever e. This is no better than to guess x_B.
//!
//! The guesses at different triples are independent, as the bits of B are. So c guesses pass with probability 2^-c, for a
//! comparison that is wrong anywhere fails as a whole; and `bucket.rs` sees to it that what is guessed does not count. A comparison that
//! fails tells whether guesses at x were right, of triples that are thrown away. The hash that B opens tells no bit of Delta_B: it can be
//! searched for a guess of all 127, and no others. So a cheater that falls silent instead of opening has learnt nothing of the key.
//!
//! **H** is [`AesHash`], tweakable circular correlation-robust: circular, as Phi_i contains Delta_i. Each direction of each stream has a
//! key of its own, and the tweak is the number of the triple, counted over the life of the stream, so no tweak comes twice under a
//! key. (Under one tweak the holder of Delta hashes two blocks; of these the peer can compute one.)
//!
//! Constant time in all shares. Cost of a triple to the peer: three authenticated bits, 16 bytes and a bit; six AES calls at each
//! party. Rounds: two, and two for a comparison.
//!
//! # Differences from the paper
//! * The comparison is of one hash of many triples, under a commitment, instead of an ideal equality test of each.
//! * Either party's Delta has an upper half that is given, the party's key.

use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::secret::ct_eq;
use zeroize::{DefaultIsZeroes, Zeroizing};

use super::Key;
use super::abit::{AT_ONCE, Part, WideBits, upper, wide_mask};
use super::opening::{exchange_bits, peer_of};
use crate::commitment::commit_and_open;
use crate::net::Net;
use crate::{Error, Party, Result};

/// Triples that are hashed at once: they lie in the first-level cache.
const BLOCK: usize = 256;
const BYTES: usize = size_of::<u128>();

/// One party's part of a leaky triple: x, y and z.
#[derive(Clone, Copy, Default)]
pub(super) struct Leaky {
    pub(super) tags: [u64; 3],
    pub(super) keys: [u64; 3],
    pub(super) values: [u8; 3],
}

impl DefaultIsZeroes for Leaky {}

/// Makes leaky triples on one stream.
pub(super) struct LeakyAnd {
    delta: Zeroizing<u128>,
    /// For what this party sends.
    outward: AesHash,
    inward: AesHash,
    /// The number of the next triple.
    next: u64,
    /// The hash of all L since the last comparison.
    compared: blake3::Hasher,
    /// V, kept for the memory as the messages are.
    sums: Zeroizing<Vec<u128>>,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    lowest: Zeroizing<Vec<u8>>,
}

impl LeakyAnd {
    /// With a label that is used once.
    pub(super) fn new(label: &[u8], me: Party, delta: Zeroizing<u128>) -> Self {
        let hash = |from: u8| {
            let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 TinyOT hash of one direction");
            let mut key = [0; 16];
            hasher.update(&[from]).update(label).finalize_xof().fill(&mut key);
            AesHash::new(&key)
        };
        LeakyAnd {
            delta,
            outward: hash(me.0),
            inward: hash(1 - me.0),
            next: 0,
            compared: no_products(),
            // Growing would leave copies behind.
            sums: Zeroizing::new(Vec::with_capacity(AT_ONCE / 3)),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            lowest: Zeroizing::new(Vec::with_capacity(AT_ONCE / 3)),
        }
    }

    /// Makes a triple of every three bits: the first third of them are x, then y, then z. Provisional until the
    /// [comparison](LeakyAnd::compare). Two rounds.
    pub(super) fn multiply(
        &mut self,
        bits: &WideBits,
        key: &Key,
        net: &mut dyn Net,
        made: &mut Vec<Leaky>,
    ) -> Result<()> {
        let peer = peer_of(net)?.index();
        let [x, y, z] = bits.thirds();
        self.offer([x, y, z]);
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
        self.incoming.resize(self.outgoing.len(), 0);
        out[peer] = &self.outgoing;
        into[peer] = &mut self.incoming;
        net.exchange(&out, &mut into)?;
        self.take(x);
        let mut wrong = exchange_bits(&self.lowest, key, net)?;
        wrong.iter_mut().zip(self.lowest.iter()).for_each(|(d, own)| *d ^= own);
        self.correct([x, y, z], &wrong, key.is_first(), made);
        self.next += wrong.len() as u64;
        Ok(())
    }

    /// Steps 1 and 2, and what V has without the peer's message.
    fn offer(&mut self, bits: [Part<'_>; 3]) {
        let (delta, count) = (*self.delta, bits[0].values.len());
        self.sums.resize(count, 0);
        self.outgoing.resize(count * BYTES, 0);
        let mut room = Zeroizing::new([[0; BLOCK]; 2]);
        let [zeros, ones] = &mut *room;
        let blocks = self.sums.chunks_mut(BLOCK).zip(self.outgoing.chunks_mut(BLOCK * BYTES));
        for (start, (sums, messages)) in (0..).step_by(BLOCK).zip(blocks) {
            let [x, y, z] = bits.map(|part| part.range(start, sums.len()));
            let (zeros, ones) = (&mut zeros[..sums.len()], &mut ones[..sums.len()]);
            zeros.copy_from_slice(x.keys);
            ones.iter_mut().zip(x.keys).for_each(|(one, key)| *one = key ^ delta);
            self.outward.hash(self.next + start as u64, zeros);
            self.outward.hash(self.next + start as u64, ones);
            let (messages, _) = messages.as_chunks_mut::<BYTES>();
            let messages = &mut messages[..sums.len()];
            for i in 0..sums.len() {
                let phi = delta & wide_mask(y.values[i]) ^ y.keys[i] ^ y.tags[i];
                let of_z = delta & wide_mask(z.values[i]) ^ z.keys[i] ^ z.tags[i];
                messages[i] = (zeros[i] ^ ones[i] ^ phi).to_le_bytes();
                sums[i] = zeros[i] ^ phi & wide_mask(x.values[i]) ^ of_z;
            }
        }
    }

    /// Step 3, with the peer's message, and the lowest bits of V.
    fn take(&mut self, bits: Part<'_>) {
        self.lowest.resize(bits.values.len(), 0);
        let mut room = Zeroizing::new([0; BLOCK]);
        let blocks = self.sums.chunks_mut(BLOCK).zip(self.incoming.chunks(BLOCK * BYTES));
        let blocks = blocks.zip(self.lowest.chunks_mut(BLOCK));
        for (start, ((sums, messages), lowest)) in (0..).step_by(BLOCK).zip(blocks) {
            let x = bits.range(start, sums.len());
            let hashes = &mut room[..sums.len()];
            hashes.copy_from_slice(x.tags);
            self.inward.hash(self.next + start as u64, hashes);
            let (messages, _) = messages.as_chunks::<BYTES>();
            let messages = &messages[..sums.len()];
            for i in 0..sums.len() {
                sums[i] ^= hashes[i] ^ u128::from_le_bytes(messages[i]) & wide_mask(x.values[i]);
                lowest[i] = sums[i] as u8 & 1;
            }
        }
    }

    /// Steps 4 and 5. d is public; as with any public bit, the first party adds it, and the second to its key.
    fn correct(&mut self, bits: [Part<'_>; 3], wrong: &[u8], is_first: bool, made: &mut Vec<Leaky>) {
        let delta = *self.delta;
        let (to_value, to_key) = if is_first { (1, 0) } else { (0, upper(delta)) };
        let mut bytes = Zeroizing::new([[0; BYTES]; BLOCK]);
        let blocks = self.sums.chunks(BLOCK).zip(wrong.chunks(BLOCK));
        for (start, (sums, wrong)) in (0..).step_by(BLOCK).zip(blocks) {
            let [x, y, z] = bits.map(|part| part.range(start, sums.len()));
            let bytes = &mut bytes[..sums.len()];
            for ((bytes, sum), d) in bytes.iter_mut().zip(sums).zip(wrong) {
                *bytes = (sum ^ delta & wide_mask(*d)).to_le_bytes();
            }
            self.compared.update(bytes.as_flattened());
            made.extend((0..sums.len()).map(|i| Leaky {
                tags: [upper(x.tags[i]), upper(y.tags[i]), upper(z.tags[i])],
                keys: [
                    upper(x.keys[i]),
                    upper(y.keys[i]),
                    upper(z.keys[i]) ^ to_key & wide_mask(wrong[i]) as u64,
                ],
                values: [x.values[i], y.values[i], z.values[i] ^ to_value & wrong[i]],
            }));
        }
    }

    /// Compares all L since the last time. An error means that the key is given up, or that the peer fell silent. Two rounds.
    pub(super) fn compare(&mut self, key: &Key, net: &mut dyn Net) -> Result<()> {
        let peer = peer_of(net)?;
        let mine = std::mem::replace(&mut self.compared, no_products()).finalize();
        let said = commit_and_open(b"TinyOT: leaky products", mine.as_bytes(), net)?;
        if ct_eq(&mine.as_bytes()[..], &said[peer.index()]) {
            return Ok(());
        }
        key.retire();
        Err(Error::CheckFailed { what: "the products of authenticated bits" })
    }
}

fn no_products() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("polyclave 2026 TinyOT comparison of leaky products")
}
