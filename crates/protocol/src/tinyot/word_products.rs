//! Leaky products of a bit and words: as `products.rs` with l = 1, for y in the span of 1, X, .. X^(p-1) in
//! the field of MACs, p up to 64.
//!
//! Several columns of y are multiplied by the same bits x. Each has pads of its own, under tweaks of its own,
//! so the argument is the same for each; and all that a cheater can learn of a bit is the bit, however many
//! columns it spoils.
//!
//! The value lane of an offer has p bits, in whole bytes: pads are cut to p bits, so shares of z stay in the
//! span.

use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::masks;
use zeroize::Zeroizing;

use super::abit::{BlockBits, PIECE};
use super::opening::peer_of;
use super::products::hash_of_direction;
use crate::interface::net::Net;
use crate::{Party, Result};

const WORD_BYTES: usize = size_of::<u64>();

/// Shares of elements of the field of MACs, and their MACs.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    pub(super) values: &'a [u64],
    pub(super) macs: &'a [u64],
}

/// Where elements go.
pub(super) struct WordsMut<'a> {
    pub(super) values: &'a mut [u64],
    pub(super) macs: &'a mut [u64],
}

/// Offers of words in both directions, on one stream.
pub(super) struct WordOffers {
    delta: Zeroizing<u128>,
    outward: AesHash,
    inward: AesHash,
    /// The number of the next offer.
    next: u64,
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    blocks: Wiped<u128>,
    zeros: Wiped<u128>,
    ones: Wiped<u128>,
    masks: Wiped<u64>,
}

/// Bytes of a value of `bits` bits in an offer or an opening.
pub(super) fn value_bytes(bits: usize) -> usize {
    bits.div_ceil(8)
}

/// The lowest bits of a word.
pub(super) fn lowest(bits: usize) -> u64 {
    u64::MAX >> (64 - bits)
}

impl WordOffers {
    /// Between two parties, with a label that is used once.
    pub(super) fn new(label: &[u8], [me, peer]: [Party; 2], delta: Zeroizing<u128>) -> Self {
        let label = [label, b" words"].concat();
        let blocks = || Wiped::zeros(PIECE);
        WordOffers {
            delta,
            outward: hash_of_direction(&label, me, peer),
            inward: hash_of_direction(&label, peer, me),
            next: 0,
            outgoing: Vec::new(),
            incoming: Vec::new(),
            blocks: blocks(),
            zeros: blocks(),
            ones: blocks(),
            masks: Wiped::zeros(PIECE),
        }
    }

    /// Sets each column of z to the products of x, row 0 of the bits, and a column of y with words of `width`
    /// bits. Sets `x_macs` to the MACs of x. Provisional until they are checked. One round.
    pub(super) fn multiply(
        &mut self,
        bits: &BlockBits,
        width: usize,
        y: &[Words<'_>],
        z: &mut [WordsMut<'_>],
        x_macs: &mut [u64],
        net: &mut dyn Net,
    ) -> Result<()> {
        let peer = peer_of(net)?.index();
        let each = WORD_BYTES + value_bytes(width);
        let len = y.len() * x_macs.len() * each;
        self.outgoing.resize(len, 0);
        self.incoming.resize(len, 0);
        self.offer(bits, width, y, z, x_macs)?;
        let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
        out[peer] = &self.outgoing;
        into[peer] = &mut self.incoming;
        net.exchange(&out, &mut into)?;
        self.take(bits, width, z, x_macs)?;
        self.next += (y.len() * x_macs.len()) as u64;
        Ok(())
    }

    /// What this party offers, and of z and the MACs of x what needs no message.
    fn offer(
        &mut self,
        bits: &BlockBits,
        width: usize,
        y: &[Words<'_>],
        z: &mut [WordsMut<'_>],
        x_macs: &mut [u64],
    ) -> Result<()> {
        let (delta, count, each) = (*self.delta, x_macs.len(), value_bytes(width));
        let (of_macs, of_values) = self.outgoing.split_at_mut(y.len() * count * WORD_BYTES);
        for start in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - start);
            let keys = &mut self.blocks[..len];
            bits.write_keys(0, start, keys)?;
            let x = bits.values_at(start, len);
            let mine = &mut self.masks[..len];
            masks(mine, |i| u64::from(x[i]));
            let alpha = (delta >> 64) as u64;
            for ((mac, key), mine) in x_macs[start..][..len].iter_mut().zip(&*keys).zip(&*mine) {
                *mac = (key >> 64) as u64 ^ (alpha & mine);
            }
            for (column, (y, z)) in y.iter().zip(z.iter_mut()).enumerate() {
                let (zeros, ones) = (&mut self.zeros[..len], &mut self.ones[..len]);
                zeros.copy_from_slice(keys);
                ones.iter_mut().zip(&*keys).for_each(|(one, key)| *one = key ^ delta);
                let at = column * count + start;
                self.outward.hash(self.next + at as u64, zeros);
                self.outward.hash(self.next + at as u64, ones);
                let lane = lowest(width);
                let macs = of_macs[at * WORD_BYTES..][..len * WORD_BYTES].as_chunks_mut().0;
                let values = of_values[at * each..][..len * each].chunks_exact_mut(each);
                for (i, (mac, value)) in macs.iter_mut().zip(values).enumerate() {
                    let (zero, one) = (zeros[i], ones[i]);
                    let (y_value, y_mac) = (y.values[start + i], y.macs[start + i]);
                    *mac = ((zero ^ one) as u64 ^ y_mac).to_le_bytes();
                    let offered = ((zero ^ one) >> 64) as u64 & lane ^ y_value;
                    value.copy_from_slice(&offered.to_le_bytes()[..each]);
                    z.macs[start + i] = zero as u64 ^ (y_mac & mine[i]);
                    z.values[start + i] = (zero >> 64) as u64 & lane ^ (y_value & mine[i]);
                }
            }
        }
        Ok(())
    }

    /// Adds what the peer's offers give.
    fn take(
        &mut self,
        bits: &BlockBits,
        width: usize,
        z: &mut [WordsMut<'_>],
        x_macs: &mut [u64],
    ) -> Result<()> {
        let (count, each, lane) = (x_macs.len(), value_bytes(width), lowest(width));
        let (of_macs, of_values) = self.incoming.split_at(z.len() * count * WORD_BYTES);
        for start in (0..count).step_by(PIECE) {
            let len = PIECE.min(count - start);
            let tags = &mut self.blocks[..len];
            bits.write_tags(0, start, tags)?;
            let x = bits.values_at(start, len);
            let mine = &mut self.masks[..len];
            masks(mine, |i| u64::from(x[i]));
            x_macs[start..][..len].iter_mut().zip(&*tags).for_each(|(mac, tag)| *mac ^= (tag >> 64) as u64);
            for (column, z) in z.iter_mut().enumerate() {
                let pads = &mut self.zeros[..len];
                pads.copy_from_slice(tags);
                let at = column * count + start;
                self.inward.hash(self.next + at as u64, pads);
                let macs = of_macs[at * WORD_BYTES..][..len * WORD_BYTES].as_chunks().0;
                let values = of_values[at * each..][..len * each].chunks_exact(each);
                for (i, (mac, value)) in macs.iter().zip(values).enumerate() {
                    let mut word = [0; WORD_BYTES];
                    word[..each].copy_from_slice(value);
                    z.macs[start + i] ^= pads[i] as u64 ^ (u64::from_le_bytes(*mac) & mine[i]);
                    let value = u64::from_le_bytes(word) & mine[i];
                    z.values[start + i] ^= ((pads[i] >> 64) as u64 ^ value) & lane;
                }
            }
        }
        Ok(())
    }
}
