//! The offsets of the bits of all wires, and all sums of offsets.

use std::sync::Arc;

use polyclave_kernels::cells::Embedding;
use polyclave_kernels::label_hash::Label;
use polyclave_kernels::secret::mask;
use zeroize::{Zeroize, Zeroizing};

use super::Labels;
use polyclave_protocol::Result;
use polyclave_protocol::session::random_bytes;

/// R_0 .. R_7, and their sums. In one place, which clones share: moves would leave copies behind.
#[derive(Clone)]
pub(super) struct Offsets(Arc<Zeroizing<Sums>>);

struct Sums {
    /// For every x, the sum of the offsets of the bits that are set in x. The colour of the sum is x itself.
    all: [u128; 256],
    /// From x to the sum, for many secret x at once.
    map: Embedding<16>,
}

impl Zeroize for Sums {
    fn zeroize(&mut self) {
        self.all.zeroize();
        self.map.zeroize();
    }
}

impl Offsets {
    /// The offset of transfers: R_0, of which the lowest bit is the colour of a wire of one bit.
    pub(super) fn random_delta(labels: Labels) -> Result<Zeroizing<u128>> {
        let mut bytes = Zeroizing::new([0; 16]);
        random_bytes(&mut *bytes)?;
        Ok(Zeroizing::new(colour_into(u128::from_le_bytes(*bytes), 1, labels)))
    }

    /// With this R_0, and the others at random.
    pub(super) fn generate(delta: u128, labels: Labels) -> Result<Offsets> {
        let mut single = Zeroizing::new([delta; 8]);
        for (i, offset) in single.iter_mut().enumerate().skip(1) {
            let mut bytes = Zeroizing::new([0; 16]);
            random_bytes(&mut *bytes)?;
            *offset = u128::from_le_bytes(*bytes);
            if labels == Labels::Short {
                *offset = colour_into(*offset, 1 << i, labels);
            }
        }
        let mut place = Arc::new(Zeroizing::new(Sums { all: [0; 256], map: Embedding::new([0; 8]) }));
        let sums = Arc::get_mut(&mut place).expect("nobody shares it yet");
        for x in 1..256_usize {
            let lowest = x.trailing_zeros() as usize;
            sums.all[x] = sums.all[x & (x - 1)] ^ single[lowest];
        }
        sums.map.set(&single);
        Ok(Offsets(place))
    }

    /// The sum for a public x.
    pub(super) fn of(&self, x: u8) -> u128 {
        self.0.all[usize::from(x)]
    }

    /// The sums for all x in order.
    pub(super) fn all(&self) -> &[u128; 256] {
        &self.0.all
    }

    /// The sum for a secret x: no index depends on it.
    pub(super) fn of_secret(&self, x: u8) -> u128 {
        (0..8).fold(0, |sum, i| sum ^ self.0.all[1 << i] & mask(u128::from(x >> i)))
    }

    /// The same for many: `sums[i]` becomes that for `xs[i]`.
    pub(super) fn of_secrets(&self, sums: &mut [u128], xs: &[u8]) {
        self.0.map.words128(sums, xs);
    }

    /// The label of a public x, from that of zero.
    pub(super) fn moved(&self, label: &Label, x: u8) -> Label {
        (u128::from_le_bytes(*label) ^ self.of(x)).to_le_bytes()
    }
}

/// An offset with its colour in it, where that is the block's lowest bits; the lowest bit of R_0 always is.
fn colour_into(block: u128, colour: u128, labels: Labels) -> u128 {
    let mask = if labels == Labels::Short { 0xff } else { 1 };
    block & !mask | colour
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Independent, so that sums of different bits are different labels, with different colours.
    #[test]
    fn colours_of_sums_are_the_sums_and_blocks_are_independent() {
        for labels in [Labels::Long, Labels::Short] {
            let delta = Offsets::random_delta(labels).expect("there is randomness");
            let offsets = Offsets::generate(*delta, labels).expect("there is randomness");
            assert_eq!((offsets.of(0), offsets.of(1)), (0, *delta));
            assert_eq!(delta.to_le_bytes()[0] & 1, 1);
            let mut seen = std::collections::HashSet::new();
            for x in 0..=255 {
                assert_eq!(offsets.of(x), offsets.of_secret(x));
                let mut sums = [0; 3];
                offsets.of_secrets(&mut sums, &[x, 0, x]);
                assert_eq!(sums, [offsets.of(x), 0, offsets.of(x)]);
                assert!(seen.insert(offsets.of(x) >> 8), "independent beyond the colour");
                if labels == Labels::Short {
                    assert_eq!(offsets.of(x).to_le_bytes()[0], x);
                }
            }
        }
    }
}
