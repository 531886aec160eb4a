//! Combines leaky products, in buckets by rotation, to products about which a cheater knows nothing
//! (docs/protocols/tower-material.md). Triples and unit vectors are made so. Records are made in buckets of
//! several products (`groups.rs`), of which this is the simplest case.
//!
//! There are B lists of N leaky products (`products.rs`), all made and checked before coins are tossed. Then
//! every list b > 1 gets a shift s_b, uniform below N, and a scalar c_b, uniform in GF(2^l) without 0; s_1 =
//! 0 and c_1 = 1. Bucket j takes element j + s_b of list b, modulo N. In it d_b = y_1 + y_b is opened for b >
//! 1, and
//!
//! x = sum c_b x_b, y = y_1, z = sum c_b (z_b + d_b x_b) = x y, and where it is wanted x^2 = sum c_b^2 x_b^2.
//!
//! y_b masks y_1 in d_b. So y stays hidden, and x is uniform to a cheater unless it knows a linear function
//! of it.
//!
//! **Error.** Let T_b be the pairs (element, function) of list b that the cheater knows because it guessed
//! them, functions not 0, and u_b the bits that it guessed in list b. Bucket j leaks only if one function psi
//! has, for every b, psi c_b among the functions known of the element that j takes from list b: what is known
//! of the sum is what is known of every term. For B given pairs, one of each list, that has probability (N
//! (2^l - 1))^-(B-1), because shifts and scalars are uniform and independent: the first pair fixes j and psi,
//! and each other one takes one shift and one scalar. There are prod T_b choices of pairs, and the guesses
//! pass with probability 2^-u. If c bits of an element are guessed, 2^c - 1 functions of it are known. So T_b
//! 2^-u_b is the sum over elements i of (1 - 2^-c_i) prod over k != i of 2^-c_k: the probability that exactly
//! one of independent events happens that have probabilities 1 - 2^-c_i >= 1/2. For one element that is 1 -
//! 2^-c <= 1 - 2^-l, for more it is at most 1/2. So
//!
//! Pr\[a leak\] <= (1 - 2^-l)^B / (N (2^l - 1))^(B-1).
//!
//! Among more than two parties, functions of the shares of all honest parties together count: a vector Psi of
//! a psi for each. An element has more of them, 2^c - 1 for any c, but the bound is the same: a list in which
//! the cheaters know more than l functions of an element counts as one in which any scalar fits, which is no
//! better than 2^l - 1 functions (docs/protocols/tower-material.md).
//!
//! This uses only that each single position is uniform. One shift for a whole list raises the number of leaks
//! when there is one, but not the probability that there is any. So nothing is shuffled, and lists are read
//! from another start. A test computes the best strategy exactly for small parameters.
//!
//! **Order.** Shifts and scalars come from coins that are tossed after the check of the products. The
//! differences d_b are provisional until a zero test at the end, before anything is handed out.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::mark_public;

use super::Kappa;
use super::subfield::Subfield;
use crate::Result;
use crate::authenticated::Coefficients;
use crate::commitment::broadcast;
use crate::interface::net::Net;

/// log2 of the most that a leak may be likely with B lists of N products of x of l bits.
pub(super) fn log2_error(products: usize, lists: usize, bits: usize) -> f64 {
    let functions = f64::from((1_u32 << bits) - 1);
    let guessed = (functions / f64::from(1_u32 << bits)).log2();
    lists as f64 * guessed - (lists - 1) as f64 * (products as f64 * functions).log2()
}

/// The fewest lists that are safe, if `kinds` kinds of products have to be safe together.
pub(super) fn fewest_lists(products: usize, bits: usize, kinds: usize, kappa: Kappa) -> usize {
    let wanted = -f64::from(kappa.bits()) - (kinds as f64).log2() + 1e-9;
    (2..).find(|lists| log2_error(products, *lists, bits) <= wanted).expect("each list adds a bit at least")
}

/// Where buckets take their elements, and by what they multiply them.
pub(super) struct Rotation {
    products: usize,
    /// By list; that of the first is 0.
    shifts: Vec<usize>,
    /// By list; that of the first is 1.
    scalars: Vec<u8>,
}

impl Rotation {
    /// For lists of `products` products of x in a field, from coins that are used for nothing else.
    pub(super) fn draw(coin: &[u8; 32], kind: &str, products: usize, lists: usize, x: &Subfield) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 buckets by rotation");
        hasher.update(coin).update(kind.as_bytes());
        let seed: [u8; 32] = *hasher.finalize().as_bytes();
        let mut draws = Draws(AesPrg::new(seed.first_chunk().expect("it has 32 bytes"), 0));
        let (mut shifts, mut scalars) = (vec![0], vec![1]);
        for _ in 1..lists {
            shifts.push(draws.below(products as u64) as usize);
            let coordinates = 1 + draws.below((1 << x.bits()) - 1) as u8;
            let mut scalar = [0];
            x.elements(&mut scalar, &[coordinates]);
            scalars.push(scalar[0]);
        }
        Rotation { products, shifts, scalars }
    }

    /// Only where lists begin: that of the first is 0.
    pub(super) fn with_shifts(products: usize, shifts: Vec<usize>) -> Self {
        Rotation { products, shifts, scalars: Vec::new() }
    }

    /// Number of lists.
    pub(super) fn lists(&self) -> usize {
        self.shifts.len()
    }

    /// s_b.
    pub(super) fn shift(&self, list: usize) -> usize {
        self.shifts[list]
    }

    /// c_b.
    pub(super) fn scalar(&self, list: usize) -> u8 {
        self.scalars[list]
    }

    /// All buckets, in ranges of at most `most` within which no list starts anew.
    pub(super) fn pieces(&self, most: usize) -> impl Iterator<Item = Piece<'_>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            let to_start = |shift: &usize| self.products - (start + shift) % self.products;
            let len = self.shifts.iter().map(to_start).min()?.min(most).min(self.products - start);
            start += len;
            (len > 0).then_some(Piece { rotation: self, start: start - len, len })
        })
    }
}

/// Some buckets in a row.
#[derive(Clone, Copy)]
pub(super) struct Piece<'a> {
    rotation: &'a Rotation,
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Piece<'_> {
    /// What the buckets take of a column of a list.
    pub(super) fn of<'a, T>(&self, list: usize, column: &'a [T]) -> &'a [T] {
        let rotation = self.rotation;
        &column[(self.start + rotation.shifts[list]) % rotation.products..][..self.len]
    }
}

/// Uniform numbers from a stream. Public.
struct Draws(AesPrg);

impl Draws {
    /// Below a bound, by rejection.
    fn below(&mut self, bound: u64) -> u64 {
        let mask = bound.next_power_of_two() - 1;
        loop {
            let mut bytes = [0; 8];
            self.0.fill(&mut bytes);
            let number = u64::from_le_bytes(bytes) & mask;
            if number < bound {
                return number;
            }
        }
    }
}

/// Buckets whose differences are worked on at once.
const PIECE: usize = 1024;

/// Opens d_b = y_1 + y_b for all buckets and all lists b > 1. `ys` has this party's values of y, one slice a
/// list. Gives one row for each list b > 1. Provisional until their MACs are checked. One round.
pub(super) fn open_differences(
    rotation: &Rotation,
    field: &Subfield,
    ys: &[&[u8]],
    net: &mut dyn Net,
) -> Result<Vec<Vec<u8>>> {
    let (count, lists) = (rotation.products, rotation.lists());
    let mut mine: Vec<Vec<u8>> = vec![vec![0; count]; lists - 1];
    let mut coordinates = [0; PIECE];
    for piece in rotation.pieces(PIECE) {
        let first = piece.of(0, ys[0]);
        for (list, row) in (1..).zip(&mut mine) {
            let sums = &mut coordinates[..piece.len];
            let other = piece.of(list, ys[list]);
            sums.iter_mut().zip(first.iter().zip(other)).for_each(|(sum, (a, b))| *sum = a ^ b);
            field.coordinates(&mut row[piece.start..][..piece.len], sums);
        }
    }
    open_rows(mine, field, net)
}

/// Opens rows of elements of which this party has the coordinates of its shares. One round.
pub(super) fn open_rows(
    coordinates: Vec<Vec<u8>>,
    field: &Subfield,
    net: &mut dyn Net,
) -> Result<Vec<Vec<u8>>> {
    let mut mine = coordinates;
    let count = mine.first().map_or(0, Vec::len);
    let each = field.packed_bytes(count);
    let mut message = vec![0; mine.len() * each];
    mine.iter().zip(message.chunks_exact_mut(each)).for_each(|(row, packed)| field.pack(row, packed));
    let text = broadcast(&message, net)?;
    // They are sent.
    mine.iter().for_each(|row| mark_public(row));

    let mut received = vec![0; count];
    for peer in net.me().peers(net.parties()) {
        for (row, packed) in mine.iter_mut().zip(text[peer.index()].chunks_exact(each)) {
            // Bits beyond the last one are of no account: coins are bound to what was read.
            field.unpack(packed, &mut received);
            row.iter_mut().zip(&received).for_each(|(sum, share)| *sum ^= share);
        }
    }
    for row in &mut mine {
        field.elements(&mut received, row);
        std::mem::swap(row, &mut received);
    }
    Ok(mine)
}

/// This party's part of sum chi (m + alpha d) over the opened values d, with `macs` the MACs m: zero if they
/// were opened rightly.
pub(super) fn error_of_opened(
    coefficients: &mut Coefficients<Gf2_64>,
    alpha: u64,
    macs: &[u64],
    opened: &[u8],
) -> u64 {
    let chi = coefficients.next(opened.len());
    let values = Gf2_64::embedded_inner_product(chi, opened);
    Gf2_64::inner_product(chi, macs) ^ Gf2_64::multiply(alpha, values)
}

/// The same for words that were opened.
pub(super) fn error_of_opened_words(
    coefficients: &mut Coefficients<Gf2_64>,
    alpha: u64,
    macs: &[u64],
    opened: &[u64],
) -> u64 {
    let chi = coefficients.next(opened.len());
    Gf2_64::inner_product(chi, macs) ^ Gf2_64::multiply(alpha, Gf2_64::inner_product(chi, opened))
}

#[cfg(test)]
mod tests;
