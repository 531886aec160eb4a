//! Projection gates (Pohle et al. 2022, II.A.4), in many lanes at once.
//!
//! The garbler goes through the colours of the input, which are public, and not through its values. Let c be
//! the colour of `W_a^0`. The value of colour p is p + c, which is secret. Labels are linear in values, so
//! the label of colour p is the one of colour 0 plus the offset of p, which is public. Only the images in the
//! table are brought into the order of colours, byte by byte, by swaps under masks: f(p + c) at p. Their
//! offsets are sums selected by secret bits, and come from [`Offsets::of_secrets`]. Then `H(W_a) + f R` of
//! the first colour is the label for zero of the output. The same values of the other colours, with that
//! label added, are the ciphertexts. No branch and no index depends on a label. The evaluator's index is a
//! colour, which is public to it.

use polyclave_kernels::label_hash::{Label, LabelHash, Tweak};
use polyclave_kernels::secret;
use zeroize::Zeroizing;

use super::Labels;
use super::offsets::Offsets;
use super::wires::{Row, RowMut};
use crate::secret_places::move_by;

/// What a gate computes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Projection {
    pub(super) in_bits: u8,
    out_bits: u8,
    /// By input.
    images: Vec<u8>,
}

impl Projection {
    /// An image for every value of this many bits.
    pub(super) fn new(in_bits: u8, out_bits: u8, images: Vec<u8>) -> Projection {
        assert_eq!(images.len(), 1 << in_bits, "an image for every value");
        Projection { in_bits, out_bits, images }
    }

    /// Values of the input: calls of the hash for the garbler.
    pub(super) fn values(&self) -> usize {
        self.images.len()
    }

    /// Ciphertexts of a lane.
    pub(super) fn ciphertexts(&self) -> usize {
        self.values() - 1
    }

    fn mask(&self) -> u8 {
        0xff >> (8 - self.out_bits)
    }
}

/// Memory of gates under way.
pub(super) struct Scratch {
    rows: Zeroizing<Vec<Label>>,
    second: Zeroizing<Vec<Label>>,
    /// By colour of the input, what the gate makes of its value; and the offsets of that.
    images: Zeroizing<Vec<u8>>,
    sums: Zeroizing<Vec<u128>>,
}

impl Scratch {
    /// With room for this many labels at once: growing would leave copies behind.
    pub(super) fn new(labels: usize) -> Scratch {
        let rows = || Zeroizing::new(Vec::with_capacity(labels));
        let images = Zeroizing::new(Vec::with_capacity(labels));
        Scratch { rows: rows(), second: rows(), images, sums: Zeroizing::new(Vec::with_capacity(labels)) }
    }
}

/// The colour of a label on a wire of this many bits.
pub(super) fn colour(labels: Labels, bits: u8, block: &Label, beside: u8) -> u8 {
    match labels {
        Labels::Long => beside,
        Labels::Short => block[0] & (0xff >> (8 - bits)),
    }
}

impl Scratch {
    /// Hashes of what is in the rows; with long labels also what covers colours.
    fn hash(&mut self, labels: Labels, hash: &mut LabelHash, first: u64, of_gate: usize) {
        if labels == Labels::Long {
            self.second.clear();
            self.second.extend_from_slice(&self.rows);
            hash.hash_gates(first, Tweak::Second, of_gate, &mut self.second);
        }
        hash.hash_gates(first, Tweak::First, of_gate, &mut self.rows);
    }

    /// Labels for zero of the output, and the ciphertexts of lane after lane: blocks, then colours.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn garble(
        &mut self,
        gate: &Projection,
        labels: Labels,
        offsets: &Offsets,
        (hash, first): (&mut LabelHash, u64),
        input: &Row<'_>,
        output: &mut RowMut<'_>,
        ciphertexts: &mut [u8],
    ) {
        let (values, lanes) = (gate.values(), input.blocks.len());
        // Everything is overwritten.
        self.rows.resize(values * lanes, [0; 16]);
        self.images.resize(values * lanes, 0);
        self.sums.resize(values * lanes, 0);
        let rows = self.rows.chunks_exact_mut(values).zip(self.images.chunks_exact_mut(values));
        for (lane, (rows, images)) in rows.enumerate() {
            let at_zero = colour(labels, gate.in_bits, &input.blocks[lane], input.colours[lane]);
            // The label of the value whose colour is 0, and from it those of all colours.
            let of_colour_zero = u128::from_le_bytes(input.blocks[lane]) ^ offsets.of_secret(at_zero);
            let by_colour = rows.iter_mut().zip(offsets.all());
            by_colour.for_each(|(row, sum)| *row = (of_colour_zero ^ sum).to_le_bytes());
            images.copy_from_slice(&gate.images);
            move_by(images, at_zero);
        }
        self.hash(labels, hash, first, values);
        offsets.of_secrets(&mut self.sums, &self.images);

        let bytes = gate.ciphertexts() * labels.bytes();
        for (lane, ciphertexts) in ciphertexts.chunks_exact_mut(bytes).enumerate() {
            let of_lane = lane * values..(lane + 1) * values;
            let images = &self.images[of_lane.clone()];
            let mut outputs = self.rows[of_lane.clone()]
                .iter()
                .zip(&self.sums[of_lane.clone()])
                .map(|(pad, sum)| u128::from_le_bytes(*pad) ^ sum);
            let zero = outputs.next().expect("a gate has two values at least");
            output.blocks[lane] = zero.to_le_bytes();
            let (blocks, colours) = ciphertexts.split_at_mut(16 * (values - 1));
            for (to, output) in blocks.as_chunks_mut().0.iter_mut().zip(outputs) {
                *to = (output ^ zero).to_le_bytes();
            }
            if labels == Labels::Long {
                let mut outputs =
                    self.second[of_lane].iter().zip(images).map(|(pad, image)| pad[0] & gate.mask() ^ image);
                let zero = outputs.next().expect("as many as blocks");
                output.colours[lane] = zero;
                colours.iter_mut().zip(outputs).for_each(|(to, output)| *to = output ^ zero);
            }
        }
    }

    /// The active labels of the output.
    pub(super) fn evaluate(
        &mut self,
        gate: &Projection,
        labels: Labels,
        (hash, first): (&mut LabelHash, u64),
        input: &Row<'_>,
        output: &mut RowMut<'_>,
        ciphertexts: &[u8],
    ) {
        self.rows.clear();
        self.rows.extend_from_slice(input.blocks);
        self.hash(labels, hash, first, 1);
        let bytes = gate.ciphertexts() * labels.bytes();
        for (lane, ciphertexts) in ciphertexts.chunks_exact(bytes).enumerate() {
            // The evaluator may know the colour: it tells nothing of the value that is active.
            let at = secret::public(colour(labels, gate.in_bits, &input.blocks[lane], input.colours[lane]));
            let (blocks, colours) = ciphertexts.split_at(16 * gate.ciphertexts());
            // At colour 0 the ciphertext is zero.
            let at = usize::from(at).checked_sub(1);
            let block = at.and_then(|at| blocks.as_chunks().0.get(at)).map_or(0, |b| u128::from_le_bytes(*b));
            output.blocks[lane] = (u128::from_le_bytes(self.rows[lane]) ^ block).to_le_bytes();
            if labels == Labels::Long {
                let covered = at.and_then(|at| colours.get(at)).copied().unwrap_or(0);
                // If the stream was damaged, a bit beyond the wire may be set; it is not part of the colour.
                output.colours[lane] = (self.second[lane][0] ^ covered) & gate.mask();
            }
        }
    }
}
