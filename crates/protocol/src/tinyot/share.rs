//! Authenticated bits (Damgard et al. 2016, section 4): x = x_A + x_B, and each party's share has a tag that
//! it shows and the other one verifies: y_A = alpha_B x_A + beta_B, y_B = alpha_A x_B + beta_A.
//!
//! A party forges a tag with probability 2^-64. Sums are free, and so is the sum with a public bit.

use std::ops::Range;

use polyclave_field::Gf2_64;
use polyclave_kernels::memory::wipe;
use polyclave_kernels::secret;

use super::Key;
use crate::authenticated::Authenticated;

/// Some of a party's [`Bits`], where they lie.
#[derive(Clone, Copy)]
pub(crate) struct BitSlices<'a> {
    pub(crate) values: &'a [u8],
    pub(crate) tags: &'a [u64],
    pub(crate) keys: &'a [u64],
}

impl BitSlices<'_> {
    /// A copy.
    pub(crate) fn to_bits(self) -> Bits {
        Bits { values: self.values.to_vec(), tags: self.tags.to_vec(), keys: self.keys.to_vec() }
    }
}

/// One party's part of authenticated bits; wiped on drop.
#[derive(Clone, Default)]
pub struct Bits {
    /// Its share of each bit: 0 or 1.
    pub values: Vec<u8>,
    /// y: the tags of its shares.
    pub tags: Vec<u64>,
    /// beta: the keys, fresh for each bit, of the tags of the peer's shares.
    pub keys: Vec<u64>,
}

impl Bits {
    /// Shares of `len` zeros, which everybody knows.
    pub fn zero(len: usize) -> Self {
        Bits { values: vec![0; len], tags: vec![0; len], keys: vec![0; len] }
    }

    /// No bits yet, and room for `len`.
    pub(crate) fn with_room(len: usize) -> Self {
        Bits { values: Vec::with_capacity(len), tags: Vec::with_capacity(len), keys: Vec::with_capacity(len) }
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds other bits, one by one.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn add(&mut self, other: &Bits) {
        assert_eq!(self.len(), other.len(), "as many bits");
        self.values.iter_mut().zip(&other.values).for_each(|(x, y)| *x ^= y);
        self.tags.iter_mut().zip(&other.tags).for_each(|(x, y)| *x ^= y);
        self.keys.iter_mut().zip(&other.keys).for_each(|(x, y)| *x ^= y);
    }

    /// Adds bits that both parties know, 0 or 1 each: to the first party's share, so it is the second one's
    /// keys that change.
    ///
    /// # Panics
    /// If there are not as many.
    pub fn add_public(&mut self, public: &[u8], key: &Key) {
        assert_eq!(self.len(), public.len(), "as many bits");
        self.add_public_at(0, public, key);
    }

    /// The same for the bits from `at` on.
    pub(crate) fn add_public_at(&mut self, at: usize, public: &[u8], key: &Key) {
        let range = at..at + public.len();
        if key.is_first() {
            self.values[range].iter_mut().zip(public).for_each(|(x, bit)| *x ^= bit);
        } else {
            let alpha = key.reveal_own_share();
            self.keys[range].iter_mut().zip(public).for_each(|(beta, bit)| *beta ^= alpha & mask(*bit));
        }
    }

    /// Overwrites some of the bits: their values, and their tags and keys.
    pub(crate) fn set(&mut self, range: Range<usize>, values: &[u8], [tags, keys]: [&[u64]; 2]) {
        self.values[range.clone()].copy_from_slice(values);
        self.tags[range.clone()].copy_from_slice(tags);
        self.keys[range].copy_from_slice(keys);
    }

    /// The same bits, as elements of GF(2^64), in authenticated sharing under alpha_A + alpha_B
    /// ([`crate::spdz`]). Local.
    ///
    /// The share of the value is the bit's, that of the MAC m_i = x_i alpha_i + y_i + beta_i: since y_A =
    /// alpha_B x_A + beta_B and y_B = alpha_A x_B + beta_A, the sum m_A + m_B is (x_A + x_B)(alpha_A +
    /// alpha_B). It says nothing new to anybody, and a cheater is bound to its bit as before, if the shares
    /// of the key are those that the tags were made with.
    pub fn to_spdz(&self, key: &Key) -> Authenticated<Gf2_64> {
        let mut shares = Authenticated::zero(self.len());
        shares.values.iter_mut().zip(&self.values).for_each(|(to, bit)| *to = u64::from(*bit));
        self.write_macs(0, key, &mut shares.macs);
        shares
    }

    /// Sets a row to the shares of the MACs of the bits from `at` on, as in [`Bits::to_spdz`].
    pub(super) fn write_macs(&self, at: usize, key: &Key, macs: &mut [u64]) {
        let range = at..at + macs.len();
        let (values, tags) = (&self.values[range.clone()], &self.tags[range.clone()]);
        let alpha = key.reveal_own_share();
        secret::masks(macs, |i| u64::from(values[i]));
        for (mac, (tag, key)) in macs.iter_mut().zip(tags.iter().zip(&self.keys[range])) {
            *mac = *mac & alpha ^ tag ^ key;
        }
    }

    /// Some of the bits.
    pub fn part(&self, range: Range<usize>) -> Bits {
        self.slices(range).to_bits()
    }

    /// Some of the bits, where they lie.
    pub(crate) fn slices(&self, range: Range<usize>) -> BitSlices<'_> {
        BitSlices {
            values: &self.values[range.clone()],
            tags: &self.tags[range.clone()],
            keys: &self.keys[range],
        }
    }

    /// Appends bits. There has to be room for them, since growing would leave a copy behind that is not
    /// wiped.
    ///
    /// # Panics
    /// If there is not.
    pub(crate) fn append(&mut self, bits: BitSlices<'_>) {
        assert!(bits.values.len() <= self.values.capacity() - self.len(), "there is room for the bits");
        self.values.extend_from_slice(bits.values);
        self.tags.extend_from_slice(bits.tags);
        self.keys.extend_from_slice(bits.keys);
    }

    /// Wipes all bits; the room stays.
    pub(crate) fn remove_all(&mut self) {
        wipe(&mut self.values);
        wipe(&mut self.tags);
        wipe(&mut self.keys);
    }

    /// Adds bits to those from `at` on: one by one, or the same bit to `len` of them.
    pub(crate) fn add_at(&mut self, at: usize, len: usize, bits: BitSlices<'_>) {
        fn add<T: Copy + std::ops::BitXorAssign>(sums: &mut [T], terms: &[T]) {
            match terms {
                [term] => sums.iter_mut().for_each(|sum| *sum ^= *term),
                _ => sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum ^= *term),
            }
        }
        add(&mut self.values[at..][..len], bits.values);
        add(&mut self.tags[at..][..len], bits.tags);
        add(&mut self.keys[at..][..len], bits.keys);
    }

    /// Sets the bits from `at` on to zeros, which everybody knows.
    pub(crate) fn clear(&mut self, at: usize, len: usize) {
        self.values[at..][..len].fill(0);
        self.tags[at..][..len].fill(0);
        self.keys[at..][..len].fill(0);
    }

    /// All bits of all, in order.
    pub fn join(parts: &[&Bits]) -> Bits {
        Bits {
            values: parts.iter().flat_map(|part| &part.values).copied().collect(),
            tags: parts.iter().flat_map(|part| &part.tags).copied().collect(),
            keys: parts.iter().flat_map(|part| &part.keys).copied().collect(),
        }
    }
}

impl Drop for Bits {
    fn drop(&mut self) {
        wipe(&mut self.values);
        wipe(&mut self.tags);
        wipe(&mut self.keys);
    }
}

/// All ones for 1, and 0 for 0, in constant time.
pub(crate) fn mask(bit: u8) -> u64 {
    secret::mask(u64::from(bit))
}
