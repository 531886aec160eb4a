//! Correlated transfers of one direction between two parties, and their check: Roy 2022, sections 3.2 and 4,
//! with the repetition code. Without a network: `mod.rs` carries the messages.
//!
//! Tree i gives the receiver u_i and v_i, the sender w_i = v_i + Delta_i u_i. The receiver sends c_i = u_i +
//! u for its choices u, and the sender adds Delta_i c_i, so that q = t + u Delta in all columns. A receiver
//! that uses another u in some tree is caught by the [check](Sender::fault).

use std::sync::Arc;

use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::gf128::weighted_sums;
use polyclave_kernels::leaf_streams::LeafStreams;
use polyclave_kernels::secret::{ct_eq, mask};
use zeroize::Zeroizing;

use super::binding::Binding;
use super::shape::Shape;
use super::tile::{GRAIN_BYTES, TILE_BYTES, Tile, TilePool, Tiles, column_lengths, padded_bytes};
use super::tree::Seed;
use crate::interface::session::random_bytes;
use crate::{Error, Result};

/// Bytes of the receiver's message for an extension; the first since a check brings the mask of that check
/// along.
fn message_bytes(shape: Shape, count: usize, tiles: &Tiles) -> usize {
    shape.trees() * (padded_bytes(count) + if tiles.has_mask() { 0 } else { GRAIN_BYTES })
}

/// Bytes of the receiver's message for a check: the hashes of all columns and of the choices.
pub(super) fn response_bytes(shape: Shape) -> usize {
    (shape.columns() + 1) * GRAIN_BYTES
}

/// The receiver's end: it holds all leaves.
pub(super) struct Receiver {
    shape: Shape,
    streams: LeafStreams,
    /// The columns of t and, last, the choices.
    pub(super) tiles: Tiles,
}

/// The sender's end: it lacks the leaves at delta.
pub(super) struct Sender {
    shape: Shape,
    streams: LeafStreams,
    /// The bits of delta, spread over a byte each.
    delta: Zeroizing<Vec<u8>>,
    /// The columns of q.
    pub(super) tiles: Tiles,
}

impl Receiver {
    /// From all leaves.
    pub(super) fn new(shape: Shape, leaves: &[Seed], pool: &Arc<TilePool>) -> Receiver {
        Receiver {
            shape,
            streams: LeafStreams::new(&shape.depths(), leaves, false),
            tiles: Tiles::new(shape.columns() + 1, pool),
        }
    }

    /// Bytes that [`Receiver::extend`] writes.
    pub(super) fn message_bytes(&self, count: usize) -> usize {
        message_bytes(self.shape, count, &self.tiles)
    }

    /// Extends by this many transfers with choices, 8 a byte. Writes the message to the sender, and t into as
    /// many blocks as there are.
    pub(super) fn extend(
        &mut self,
        choices: &[u8],
        count: usize,
        message: &mut [u8],
        blocks: &mut [u128],
    ) -> Result<()> {
        let (shape, streams, mut message) = (self.shape, &mut self.streams, message);
        if !self.tiles.has_mask() {
            let mut mask = Zeroizing::new([0; GRAIN_BYTES]);
            random_bytes(&mut *mask)?;
            message = receive(shape, streams, self.tiles.next_mask(), &*mask, message);
        }
        let (mut rest, mut choices) = (blocks, choices);
        for len in column_lengths(count) {
            let (now, later) = choices.split_at(len.min(choices.len()));
            let tile = self.tiles.next(len);
            message = receive(shape, streams, tile, now, message);
            rest = transposed(tile, shape.columns(), rest);
            choices = later;
        }
        Ok(())
    }

    /// The hashes of all columns under the coefficients of a coin, hidden by the mask.
    pub(super) fn respond(&self, coin: &[u8; 32]) -> Zeroizing<Vec<u8>> {
        hashes(&self.tiles, coin)
    }
}

/// Makes the columns of a tile; choices that are missing at the end are zero, for transfers that nobody uses.
/// Writes its part of the message and returns the room for the others.
fn receive<'a>(
    shape: Shape,
    streams: &mut LeafStreams,
    tile: &mut Tile,
    choices: &[u8],
    message: &'a mut [u8],
) -> &'a mut [u8] {
    let len = tile.column_bytes();
    let (message, later) = message.split_at_mut(shape.trees() * len);
    let (columns, u) = tile.bytes_mut().split_at_mut(shape.columns() * len);
    u[..choices.len()].copy_from_slice(choices);
    u[choices.len()..].fill(0);
    let mut rest = columns;
    for (tree, correction) in message.chunks_exact_mut(len).enumerate() {
        let (columns, others) = rest.split_at_mut(shape.depth(tree) * len);
        streams.receive(tree, u, columns, correction);
        rest = others;
    }
    later
}

impl Sender {
    /// From all leaves but those at delta, as `tree::puncture` numbers them.
    pub(super) fn new(shape: Shape, delta: u128, leaves: &[Seed], pool: &Arc<TilePool>) -> Sender {
        let spread = |k: usize| mask((delta >> k) as u8);
        Sender {
            shape,
            streams: LeafStreams::new(&shape.depths(), leaves, true),
            delta: Zeroizing::new((0..shape.columns()).map(spread).collect()),
            tiles: Tiles::new(shape.columns(), pool),
        }
    }

    /// Bytes that [`Sender::extend`] takes.
    pub(super) fn message_bytes(&self, count: usize) -> usize {
        message_bytes(self.shape, count, &self.tiles)
    }

    /// Extends by this many transfers. Writes q into as many blocks as there are.
    pub(super) fn extend(&mut self, message: &[u8], count: usize, blocks: &mut [u128]) {
        let mut message = message;
        if !self.tiles.has_mask() {
            message = send(self.shape, &mut self.streams, &self.delta, self.tiles.next_mask(), message);
        }
        let mut rest = blocks;
        for len in column_lengths(count) {
            let tile = self.tiles.next(len);
            message = send(self.shape, &mut self.streams, &self.delta, tile, message);
            rest = transposed(tile, self.shape.columns(), rest);
        }
    }

    /// The hashes of q with what the receiver's choices add to them: what its own have to be
    /// ([`Sender::fault`]). Local.
    pub(super) fn expected(&self, coin: &[u8; 32], response: &[u8]) -> Zeroizing<Vec<u8>> {
        let mut sums = hashes(&self.tiles, coin);
        let of_choices = &response[sums.len()..];
        for (sum, bit) in sums.chunks_exact_mut(GRAIN_BYTES).zip(self.delta.iter()) {
            add_masked(sum, of_choices, *bit);
        }
        sums
    }

    /// Compares the receiver's hashes with those that are expected. A guess at bits of delta passes if it is
    /// right.
    ///
    /// The hash of a column x_1, x_2, .. of elements of GF(2^128) is the sum of chi_j x_j with coefficients
    /// from a coin that was tossed after all of them were fixed, plus the column's mask. It is linear over
    /// GF(2), so honest hashes fit as the columns do; the hashes of one mask, which is used once, tell
    /// nothing else. Let a receiver choose u + e_i in tree i. Where the hash of e_i is not what it adds to
    /// its answer for u, only one Delta_i passes: a guess of all bits of the tree, as many as it is deep. For
    /// all other trees the hashes of e_i are equal, hence the e_i are, but with probability 2^-128 for each
    /// pair of trees; and then they belong to u. So after the check, but with probability `trees^2 / 2^129`
    /// (2^-115 at most), either all trees have the same u, or the receiver has guessed, and passed with
    /// probability 2^-c if c bits of delta belong to the trees where they differ.
    pub(super) fn fault(expected: &[u8], response: &[u8], binding: &Binding) -> Option<Error> {
        let fault = || binding.fault("choices of oblivious transfer that are not the same in all columns");
        (!ct_eq(expected, &response[..expected.len()])).then(fault)
    }
}

/// Makes the columns of a tile from its part of the message, and returns the other parts.
fn send<'a>(
    shape: Shape,
    streams: &mut LeafStreams,
    delta: &[u8],
    tile: &mut Tile,
    message: &'a [u8],
) -> &'a [u8] {
    let len = tile.column_bytes();
    let (corrections, later) = message.split_at(shape.trees() * len);
    let mut rest = tile.bytes_mut();
    for (tree, correction) in corrections.chunks_exact(len).enumerate() {
        let depth = shape.depth(tree);
        let (columns, others) = rest.split_at_mut(depth * len);
        streams.send(tree, correction, &delta[shape.first_column(tree)..][..depth], columns);
        rest = others;
    }
    later
}

/// Fills the first of these blocks from a tile and returns the others.
fn transposed<'a>(tile: &Tile, columns: usize, blocks: &'a mut [u128]) -> &'a mut [u128] {
    let (now, later) = blocks.split_at_mut(blocks.len().min(8 * tile.column_bytes()));
    tile.write_blocks(columns, 0, now);
    later
}

/// One hash a column: the mask as it is, and the tiles weighted.
fn hashes(tiles: &Tiles, coin: &[u8; 32]) -> Zeroizing<Vec<u8>> {
    let mut sums = Zeroizing::new(tiles.mask().bytes().to_vec());
    let mut sum = Zeroizing::new(vec![0; sums.len()]);
    let seed = blake3::derive_key("polyclave 2026 oblivious transfer check", coin);
    let mut coefficients = AesPrg::new(seed.first_chunk().expect("it has 32 bytes"), 0);
    let mut chi = [0; TILE_BYTES];
    for tile in tiles.used() {
        let chi = &mut chi[..tile.column_bytes()];
        coefficients.fill(chi);
        weighted_sums(&mut sum, tile.bytes(), chi);
        sums.iter_mut().zip(sum.iter()).for_each(|(sum, term)| *sum ^= term);
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

    /// Both ends as honest setup leaves them.
    fn ends(shape: Shape, delta: u128) -> (Sender, Receiver) {
        let leaf =
            |i: usize| *blake3::hash(&i.to_le_bytes()).as_bytes().first_chunk().expect("it has 32 bytes");
        let leaves: Vec<Seed> = (0..shape.leaves(shape.trees())).map(leaf).collect();
        let punctured = |tree: usize| {
            let (first, alpha) = (shape.leaves(tree), usize::from(shape.alpha(delta, tree)));
            (0..1 << shape.depth(tree)).map(move |z| first + (z ^ alpha))
        };
        let punctured: Vec<Seed> = (0..shape.trees()).flat_map(punctured).map(|i| leaves[i]).collect();
        let pool = Arc::default();
        (Sender::new(shape, delta, &punctured, &pool), Receiver::new(shape, &leaves, &pool))
    }

    fn passes(sender: &Sender, response: &[u8]) -> bool {
        Sender::fault(&sender.expected(&COIN, response), response, &binding()).is_none()
    }

    /// A receiver that chooses `u + error` in one tree and `u` in the others, and then answers the check for
    /// a guess of the tree's bits of delta. Returns whether it passes.
    fn cheat(shape: Shape, delta: u128, tree: usize, guess: u8) -> bool {
        let (mut sender, mut receiver) = ends(shape, delta);
        let count = 5000;
        let mut message = vec![0; receiver.message_bytes(count)];
        receiver.extend(&vec![0x5a; count / 8], count, &mut message, &mut []).expect("randomness");
        // The first piece after the mask: transfer 0 of this tree.
        message[(shape.trees() + tree * padded_bytes(count) / GRAIN_BYTES) * GRAIN_BYTES] ^= 1;
        sender.extend(&message, count, &mut []);
        let mut response = receiver.respond(&COIN);
        // The hash of the error: transfer 0 is the first bit of the first element.
        let mut chi = vec![0; padded_bytes(count)];
        let seed = blake3::derive_key("polyclave 2026 oblivious transfer check", &COIN);
        AesPrg::new(seed.first_chunk().expect("it has 32 bytes"), 0).fill(&mut chi);
        let (mut error, mut hash) = (vec![0; chi.len()], vec![0; GRAIN_BYTES]);
        error[0] = 1;
        weighted_sums(&mut hash, &error, &chi);
        let columns = response.chunks_exact_mut(GRAIN_BYTES).skip(shape.first_column(tree));
        for (k, column) in columns.take(shape.depth(tree)).enumerate() {
            add_masked(column, &hash, mask(guess >> k));
        }
        passes(&sender, &response)
    }

    #[test]
    fn other_choices_in_one_tree_pass_only_with_the_right_guess_of_delta() {
        let delta = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
        for (columns, expansion) in [(128, 1), (64, 2), (128, 4), (40, 5), (128, 6)] {
            let shape = Shape::new(columns, expansion).expect("it is valid");
            for tree in [0, 1, shape.trees() - 1] {
                for guess in 0..1 << shape.depth(tree) {
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

    /// The last part of an answer is the hash of the choices behind their mask. The sender knows the coin: of
    /// a mask that it knows too, it would learn 128 sums of choices.
    #[test]
    fn the_same_choices_have_another_answer_each_time() {
        let shape = Shape::new(128, 4).expect("it is valid");
        let answer = || {
            let (mut sender, mut receiver) = ends(shape, 0x1234_5678);
            let mut message = vec![0; receiver.message_bytes(128)];
            receiver.extend(&[0; 16], 128, &mut message, &mut []).expect("randomness");
            sender.extend(&message, 128, &mut []);
            let response = receiver.respond(&COIN);
            assert!(passes(&sender, &response));
            response[shape.columns() * GRAIN_BYTES..].to_vec()
        };
        let answers = [answer(), answer()];
        assert!(answers[0] != answers[1] && !answers.contains(&vec![0; GRAIN_BYTES]));
    }

    #[test]
    fn room_that_is_used_again_keeps_no_choices_of_its_earlier_use() {
        let shape = Shape::new(128, 4).expect("it is valid");
        let (_, mut receiver) = ends(shape, 0x1234_5678);
        for (choices, kept) in [
            ([0xff; 16].as_slice(), [0xff; 16]),
            (&[0x5a], {
                let mut kept = [0; 16];
                kept[0] = 0x5a;
                kept
            }),
        ] {
            let count = 8 * choices.len();
            let mut message = vec![0; receiver.message_bytes(count)];
            receiver.extend(choices, count, &mut message, &mut []).expect("randomness");
            let tile = &receiver.tiles.used()[0];
            assert_eq!(tile.bytes()[shape.columns() * GRAIN_BYTES..], kept);
            receiver.tiles.checked_from(usize::MAX);
        }
    }

    #[test]
    fn an_answer_that_does_not_fit_any_choices_is_found() {
        let shape = Shape::new(128, 4).expect("it is valid");
        let (mut sender, mut receiver) = ends(shape, u128::MAX);
        let mut message = vec![0; receiver.message_bytes(800)];
        receiver.extend(&[0xff; 100], 800, &mut message, &mut []).expect("randomness");
        sender.extend(&message, 800, &mut []);
        let mut response = receiver.respond(&COIN);
        *response.last_mut().expect("it is not empty") ^= 1;
        assert!(!passes(&sender, &response));
    }
}
