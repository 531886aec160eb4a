//! A dealer of authenticated bits and triples for two parties: **either party could compute the other's
//! shares and key**.
//!
//! For tests, and for measuring the online phase alone. Both parties hold one seed and derive everything from
//! it, whole rows at a time.

use polyclave_kernels::aes_prg::AesPrg;

use polyclave_protocol::authenticated::MacKey;
use polyclave_protocol::net::Net;
use polyclave_protocol::tinyot::{Bits, Key, Source, Triples};
use polyclave_protocol::{Party, Result};

/// The dealer's side of one stream of a session, as both parties run it.
pub struct InsecureBitDealer {
    me: Party,
    alphas: [u64; 2],
    rows: [u8; 16],
    /// Every row has a stream of its own.
    dealt: u64,
}

/// The key of one party under a dealer of this seed.
pub fn bit_dealer_key(seed: &[u8; 32], me: Party) -> Key {
    MacKey::of_share(me, 2, alphas(seed)[me.index()])
}

fn alphas(seed: &[u8; 32]) -> [u64; 2] {
    let both = u128::from_le_bytes(derived(seed, b"keys"));
    [both as u64, (both >> 64) as u64]
}

fn derived(seed: &[u8; 32], role: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 insecure dealer of bits");
    let mut key = [0; 16];
    hasher.update(seed).update(role).finalize_xof().fill(&mut key);
    key
}

impl InsecureBitDealer {
    /// The dealer of a seed that both parties know, for one stream.
    pub fn new(seed: &[u8; 32], stream: &[u8], me: Party) -> Self {
        Self::with_keys(seed, stream, me, alphas(seed))
    }

    /// The same under other keys than the seed's.
    pub fn with_keys(seed: &[u8; 32], stream: &[u8], me: Party, alphas: [u64; 2]) -> Self {
        let rows = derived(seed, &[b"rows of ", stream].concat());
        InsecureBitDealer { me, alphas, rows, dealt: 0 }
    }

    /// Random bytes, the same at both parties.
    fn row(&mut self, bytes: usize) -> Vec<u8> {
        self.dealt += 1;
        let mut row = vec![0; bytes];
        AesPrg::new(&self.rows, self.dealt).fill(&mut row);
        row
    }

    fn random_bits(&mut self, count: usize) -> Vec<u8> {
        let packed = self.row(count.div_ceil(8));
        let mut bits = vec![0; count];
        for (eight, byte) in bits.chunks_mut(8).zip(packed) {
            eight.iter_mut().enumerate().for_each(|(place, bit)| *bit = byte >> place & 1);
        }
        bits
    }

    fn random_keys(&mut self, count: usize) -> Vec<u64> {
        let bytes = self.row(8 * count);
        bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// This party's part of bits of which both shares are given.
    fn deal(&mut self, shares: [Vec<u8>; 2]) -> Bits {
        let count = shares[0].len();
        let mut keys = [self.random_keys(count), self.random_keys(count)];
        let (me, peer) = (self.me.index(), 1 - self.me.index());
        let alpha = self.alphas[peer];
        let tag = |(bit, beta): (&u8, &u64)| beta ^ (alpha & u64::from(*bit).wrapping_neg());
        let tags = shares[me].iter().zip(&keys[peer]).map(tag).collect();
        let [first, second] = shares;
        Bits { values: if me == 0 { first } else { second }, tags, keys: std::mem::take(&mut keys[me]) }
    }
}

impl Source for InsecureBitDealer {
    fn bits(&mut self, count: usize, _: &mut dyn Net) -> Result<Bits> {
        let shares = [self.random_bits(count), self.random_bits(count)];
        Ok(self.deal(shares))
    }

    fn triples(&mut self, count: usize, _: &mut dyn Net) -> Result<Triples> {
        let [x, y, z] = [0; 3].map(|_| [self.random_bits(count), self.random_bits(count)]);
        let [first, mut second] = z;
        for (i, share) in second.iter_mut().enumerate() {
            *share = first[i] ^ (x[0][i] ^ x[1][i]) & (y[0][i] ^ y[1][i]);
        }
        let z = self.deal([first, second]);
        Ok(Triples { x: self.deal(x), y: self.deal(y), z })
    }
}
