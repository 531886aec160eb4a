//! Correlated transfers of one direction between two parties, and their check: Roy 2022, sections 3.2 and 4, with the
//! repetition code. Without a network: `mod.rs` carries the messages.
//!
//! Tree i gives the receiver u_i and v_i, the sender w_i = v_i + Delta_i u_i (`streams.rs`). The receiver sends
//! c_i = u_i + u for its choices u, and the sender adds Delta_i c_i, so that q = t + u Delta in all columns. A receiver that
//! uses another u in some tree is caught by the [check](Sender::check).

use std::sync::Arc;

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::gf128::weighted_sums;
use polyclave_kernels::secret::{ct_eq, mask};
use zeroize::Zeroizing;

use super::binding::Binding;
use super::blocks::Pool;
use super::shape::Shape;
use super::streams::{Streams, add};
use super::tile::{GRAIN_BYTES, Tile, Tiles, column_lengths, padded_bytes};
use super::tree::Seed;
use crate::Result;
use crate::session::random_bytes;

pub(super) use super::blocks::Blocks;

/// Bytes of the receiver's message for an extension; the first since a check brings the masks of that check along.
pub(super) fn message_bytes(shape: Shape, count: usize, first: bool) -> usize {
    shape.trees() * (padded_bytes(count) + if first { GRAIN_BYTES } else { 0 })
}

/// Bytes of the receiver's message for a check: the hashes of all columns and of the choices.
pub(super) fn response_bytes(shape: Shape) -> usize {
    (shape.columns() + 1) * GRAIN_BYTES
}

/// The receiver's end: it holds all leaves.
pub(super) struct Receiver {
    shape: Shape,
    streams: Streams,
    /// The columns of t and, last, the choices. The first tile is the mask.
    tiles: Tiles,
}

/// The sender's end: it lacks the leaves at delta.
pub(super) struct Sender {
    shape: Shape,
    streams: Streams,
    /// The bits of delta, spread over a byte each.
    delta: Zeroizing<Vec<u8>>,
    /// The columns of q. The first tile is the mask.
    tiles: Tiles,
    /// A sum of streams, which the sender does not need.
    unused: Zeroizing<Vec<u8>>,
}

impl Receiver {
    /// From all leaves.
    pub(super) fn new(shape: Shape, leaves: &[Seed]) -> Receiver {
        Receiver {
            shape,
            streams: Streams::new(shape, leaves, false),
            tiles: Tiles::new(shape.columns() + 1),
        }
    }

    /// Extends by this many transfers with choices, 8 a byte: t. Overwrites `message` with that to the sender.
    pub(super) fn extend(
        &mut self,
        choices: &[u8],
        count: usize,
        message: &mut Vec<u8>,
        pool: &Arc<Pool>,
    ) -> Result<Blocks> {
        let first = self.tiles.used().is_empty();
        message.resize(message_bytes(self.shape, count, first), 0);
        let mut message = &mut message[..];
        if first {
            let mut mask = Zeroizing::new([0; GRAIN_BYTES]);
            random_bytes(&mut *mask)?;
            message = self.next_tile(&*mask, GRAIN_BYTES, message);
        }
        let mut blocks = pool.take(count);
        let (mut rest, mut choices) = (&mut blocks[..], choices);
        for len in column_lengths(count) {
            let (now, later) = choices.split_at(len.min(choices.len()));
            message = self.next_tile(now, len, message);
            rest = transposed(&self.tiles, self.shape.columns(), rest);
            choices = later;
        }
        Ok(blocks)
    }

    /// Columns of `len` bytes; choices that are missing at the end are zero, for transfers that nobody uses. Writes its part of
    /// the message and returns the room for the others.
    fn next_tile<'a>(&mut self, choices: &[u8], len: usize, message: &'a mut [u8]) -> &'a mut [u8] {
        let (message, later) = message.split_at_mut(self.shape.trees() * len);
        let tile = self.tiles.next(len);
        let (columns, u) = tile.bytes_mut().split_at_mut(self.shape.columns() * len);
        u[..choices.len()].copy_from_slice(choices);
        u[choices.len()..].fill(0);
        let columns = columns.chunks_exact_mut(self.shape.expansion() * len);
        for (tree, (columns, correction)) in columns.zip(message.chunks_exact_mut(len)).enumerate() {
            self.streams.next(tree, columns, correction);
            add(correction, u);
        }
        later
    }

    /// The hashes of all columns under the coefficients of a coin, hidden by the mask; then the columns are given up.
    pub(super) fn respond(&mut self, coin: &[u8; 32]) -> Zeroizing<Vec<u8>> {
        let hashes = hashes(self.shape.columns() + 1, self.tiles.used(), coin);
        self.tiles.recycle();
        hashes
    }
}

impl Sender {
    /// From all leaves but those at delta, as `tree::puncture` numbers them.
    pub(super) fn new(shape: Shape, delta: u128, leaves: &[Seed]) -> Sender {
        let spread = |k: usize| mask((delta >> k) as u8);
        Sender {
            shape,
            streams: Streams::new(shape, leaves, true),
            delta: Zeroizing::new((0..shape.columns()).map(spread).collect()),
            tiles: Tiles::new(shape.columns()),
            unused: Zeroizing::new(vec![0; super::tile::TILE_BYTES]),
        }
    }

    /// Bytes that [`Sender::extend`] takes.
    pub(super) fn message_bytes(&self, count: usize) -> usize {
        message_bytes(self.shape, count, self.tiles.used().is_empty())
    }

    /// Extends by this many transfers: q.
    pub(super) fn extend(&mut self, message: &[u8], count: usize, pool: &Arc<Pool>) -> Blocks {
        let mut message = message;
        if self.tiles.used().is_empty() {
            let (mask, rest) = message.split_at(self.shape.trees() * GRAIN_BYTES);
            self.next_tile(mask, GRAIN_BYTES);
            message = rest;
        }
        let mut blocks = pool.take(count);
        let mut rest = &mut blocks[..];
        for len in column_lengths(count) {
            let (corrections, later) = message.split_at(self.shape.trees() * len);
            self.next_tile(corrections, len);
            rest = transposed(&self.tiles, self.shape.columns(), rest);
            message = later;
        }
        blocks
    }

    fn next_tile(&mut self, corrections: &[u8], len: usize) {
        let tile = self.tiles.next(len);
        let f = self.shape.expansion();
        let trees = tile.bytes_mut().chunks_exact_mut(f * len).zip(corrections.chunks_exact(len));
        for (tree, (columns, correction)) in trees.enumerate() {
            self.streams.next(tree, columns, &mut self.unused[..len]);
            for (column, bit) in columns.chunks_exact_mut(len).zip(&self.delta[tree * f..]) {
                add_masked(column, correction, *bit);
            }
        }
    }

    /// Compares the receiver's hashes with those of q; then the columns are given up.
    ///
    /// The hash of a column x_1, x_2, .. of elements of GF(2^128) is the sum of chi_j x_j with coefficients from a coin that
    /// was tossed after all of them were fixed, plus the column's mask. It is linear over GF(2), so honest hashes fit as the
    /// columns do; the hashes of one mask, which is used once, tell nothing else. Let a receiver choose u + e_i in tree i.
    /// Where the hash of e_i is not what it adds to its answer for u, only one Delta_i passes: a guess, right with
    /// probability 2^-f. For all other trees the hashes of e_i are equal, hence the e_i are, but with probability
    /// 2^-128 for each pair of trees; and then they belong to u. So after the check, but with probability
    /// `(columns/f)^2 / 2^129` (2^-115 at most), either all trees have the same u, or the receiver has guessed, and passed with
    /// probability 2^-(f times the number of trees where they differ).
    pub(super) fn check(&mut self, coin: &[u8; 32], response: &[u8], binding: &Binding) -> Result<()> {
        let mut sums = hashes(self.shape.columns(), self.tiles.used(), coin);
        self.tiles.recycle();
        let (of_columns, of_choices) = response.split_at(sums.len());
        for (sum, bit) in sums.chunks_exact_mut(GRAIN_BYTES).zip(self.delta.iter()) {
            add_masked(sum, of_choices, *bit);
        }
        if ct_eq(&sums, of_columns) {
            Ok(())
        } else {
            Err(binding.fault("choices of oblivious transfer that are not the same in all columns"))
        }
    }
}

/// Fills the first of these blocks from the last tile and returns the others.
fn transposed<'a>(tiles: &Tiles, columns: usize, blocks: &'a mut [u128]) -> &'a mut [u128] {
    let Some(tile) = tiles.used().last() else { return blocks };
    let len = tile.column_bytes();
    let (now, later) = blocks.split_at_mut(blocks.len().min(8 * len));
    columns_to_blocks(tile.bytes(), len, columns, now);
    later
}

/// One hash a column: the first tile as it is, the others weighted.
fn hashes(columns: usize, tiles: &[Tile], coin: &[u8; 32]) -> Zeroizing<Vec<u8>> {
    let Some((mask, tiles)) = tiles.split_first() else {
        return Zeroizing::new(vec![0; columns * GRAIN_BYTES]);
    };
    let mut sums = Zeroizing::new(mask.bytes().to_vec());
    let mut sum = Zeroizing::new(vec![0; sums.len()]);
    let seed = blake3::derive_key("polyclave 2026 oblivious transfer check", coin);
    let mut coefficients = AesPrg::new(seed.first_chunk().expect("it has 32 bytes"), 0);
    let mut chi = [0; super::tile::TILE_BYTES];
    for tile in tiles {
        let chi = &mut chi[..tile.column_bytes()];
        coefficients.fill(chi);
        weighted_sums(&mut sum, tile.bytes(), chi);
        add(&mut sums, &sum);
    }
    sums
}

/// `sum += term` where the mask is all ones, nothing where it is zero.
fn add_masked(sum: &mut [u8], term: &[u8], mask: u8) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term & mask);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Party;

    const COIN: [u8; 32] = [7; 32];

    fn binding() -> Binding {
        Binding::new(b"label", Party(0), Party(1), Party(1))
    }

    /// Both ends as honest set-up leaves them.
    fn ends(shape: Shape, delta: u128) -> (Sender, Receiver) {
        let count = 1 << shape.expansion();
        let leaf =
            |i: usize| *blake3::hash(&i.to_le_bytes()).as_bytes().first_chunk().expect("it has 32 bytes");
        let leaves: Vec<Seed> = (0..shape.trees() * count).map(leaf).collect();
        let place = |i: usize| i - i % count + ((i % count) ^ usize::from(shape.alpha(delta, i / count)));
        let punctured: Vec<Seed> = (0..leaves.len()).map(|i| leaves[place(i)]).collect();
        (Sender::new(shape, delta, &punctured), Receiver::new(shape, &leaves))
    }

    /// A receiver that chooses `u + error` in one tree and `u` in the others, and then answers the check for a guess of the
    /// tree's bits of delta. Returns whether it passes.
    fn cheat(shape: Shape, delta: u128, tree: usize, guess: u8) -> bool {
        let (mut sender, mut receiver) = ends(shape, delta);
        let count = 5000;
        let mut message = Vec::new();
        receiver.extend(&vec![0x5a; count / 8], count, &mut message, &Arc::default()).expect("randomness");
        // The first piece after the mask: transfer 0 of this tree.
        message[(shape.trees() + tree * padded_bytes(count) / GRAIN_BYTES) * GRAIN_BYTES] ^= 1;
        sender.extend(&message, count, &Arc::default());
        let mut response = receiver.respond(&COIN);
        // The hash of the error: transfer 0 is the first bit of the first element.
        let mut chi = vec![0; padded_bytes(count)];
        let seed = blake3::derive_key("polyclave 2026 oblivious transfer check", &COIN);
        AesPrg::new(seed.first_chunk().expect("it has 32 bytes"), 0).fill(&mut chi);
        let (mut error, mut hash) = (vec![0; chi.len()], vec![0; GRAIN_BYTES]);
        error[0] = 1;
        weighted_sums(&mut hash, &error, &chi);
        let columns = response.chunks_exact_mut(GRAIN_BYTES).skip(tree * shape.expansion());
        for (k, column) in columns.take(shape.expansion()).enumerate() {
            add_masked(column, &hash, mask(guess >> k));
        }
        sender.check(&COIN, &response, &binding()).is_ok()
    }

    #[test]
    fn other_choices_in_one_tree_pass_only_with_the_right_guess_of_delta() {
        let delta = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
        for (columns, expansion) in [(128, 1), (64, 2), (128, 4), (40, 5)] {
            let shape = Shape::new(columns, expansion).expect("it is valid");
            for tree in [0, 1, shape.trees() - 1] {
                for guess in 0..1 << expansion {
                    let passes = cheat(shape, delta, tree, guess);
                    assert_eq!(
                        passes,
                        guess == shape.alpha(delta, tree),
                        "{shape:?}, tree {tree}, guess {guess}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_any_choices_is_found() {
        let shape = Shape::new(128, 4).expect("it is valid");
        let (mut sender, mut receiver) = ends(shape, u128::MAX);
        let mut message = Vec::new();
        receiver.extend(&[0xff; 100], 800, &mut message, &Arc::default()).expect("randomness");
        sender.extend(&message, 800, &Arc::default());
        let mut response = receiver.respond(&COIN);
        *response.last_mut().expect("it is not empty") ^= 1;
        assert!(sender.check(&COIN, &response, &binding()).is_err());
    }
}
