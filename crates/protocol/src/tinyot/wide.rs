//! Authenticated bits under all 128 bits of Delta, for garbled circuits (Katz, Ranellucci, Rosulek and Wang
//! 2018): there the garbler's Delta is the difference of the two labels of a wire, and the evaluator adds its
//! tags to labels.
//!
//! They are the wide bits of `abit.rs`, handed out. The upper half of a tag, or of a key, is that of an
//! ordinary authenticated bit ([`super::Bits`]), so sums of both kinds can be opened.

use polyclave_kernels::memory::Wiped;
use zeroize::Zeroizing;

use super::TinyOt;
use super::abit::{AT_ONCE, PIECE, Rows};
use crate::Result;
use crate::interface::net::Net;

/// One party's part of random bits; wiped on drop.
pub(crate) struct WideBits {
    /// Its share of each bit: 0 or 1.
    pub(crate) values: Zeroizing<Vec<u8>>,
    /// The tags of its shares, under the peer's Delta.
    pub(crate) tags: Wiped<u128>,
    /// The keys of the tags of the peer's shares, under its own Delta.
    pub(crate) keys: Wiped<u128>,
}

impl TinyOt {
    /// This party's Delta. Its upper half is the party's key.
    pub(crate) fn delta(&self) -> Zeroizing<u128> {
        self.maker.transfers.delta()
    }

    /// Random bits that neither party knows. Three rounds for every 98,304.
    pub(crate) fn wide_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<WideBits> {
        self.refuse_more_than_two()?;
        self.guarded(|source| source.wide_bits_in_batches(count, net))
    }

    fn wide_bits_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<WideBits> {
        let values = Zeroizing::new(vec![0; count]);
        let mut made = WideBits { values, tags: Wiped::zeros(count), keys: Wiped::zeros(count) };
        for start in (0..count).step_by(AT_ONCE) {
            let len = AT_ONCE.min(count - start);
            let [bits, _] = self.maker.transfers.make(Rows { rows: 1, len }, Rows::NONE, net)?;
            made.values[start..][..len].copy_from_slice(bits.values_at(0, len));
            for at in (0..len).step_by(PIECE) {
                let now = PIECE.min(len - at);
                // Between two parties there is one peer.
                bits.write_tags(0, at, &mut made.tags[start + at..][..now])?;
                bits.write_keys(0, at, &mut made.keys[start + at..][..now])?;
            }
        }
        Ok(made)
    }
}
