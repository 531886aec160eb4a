//! Buckets of several products that share lists (docs/protocols/tower-shared.md).
//!
//! A bucket of one product takes B elements, each with l wide bits and its offers (`rotation.rs`). Here a
//! bucket makes k products at once, each of elements x of L = 4 bits. Product i has an element of its own,
//! and all of them take the same D - 1 shared ones:
//!
//! X_i = x_i + sum over b of P_ib x_b, Y_i = y_i, Z_i = z_i + sum over b of P_ib (z_ib + d_ib x_b) = X_i Y_i,
//!
//! with z_ib = x_b y_ib for a fresh y_ib, and d_ib = y_i + y_ib opened. P is a public Cauchy matrix over
//! GF(16), so \[1 | P\] generates a code in which every word but 0 has D places at least that are not 0. A
//! function of the X_i that is not 0 is such a word of functions of the elements: whoever knows it has
//! guessed functions of D elements, and all of these have to be in one bucket. Shifts and scalars of every
//! list are drawn after the guesses.
//!
//! A shared element has one MAC in its offers, that of all its y_ib together, packed into a word: sum of X^i
//! P_ib y_ib in the field of MACs. Scalars are the same for all y of an element, so the words of a bucket
//! give, by the same sums, the MAC of all its Z_i packed, times scalars. Every Z_i gets a MAC of its own by
//! fresh bits r_i: e_i = Z_i + r_i is opened, and what the packed MAC says of all e_i is part of the zero
//! test.
//!
//! **Pairs.** x in GF(4) has two bits. Two products together are an element of GF(16), with coordinates over
//! GF(4) in the basis 1, zeta: P acts on both coordinates, and each has its own y. Scalars are those of
//! GF(4).
//!
//! **Error**, for lists of G elements and scalars in a field of 1 + s elements: that functions known of D'
//! elements, one each of D' >= D lists, meet in a bucket has probability G^-(D'-1) s^-(D-1), since the
//! positions of all but one and the scalars of D - 1 are determined by the others. So
//!
//! Pr\[a leak\] <= sum over D' of binomial(k + D - 1, D') (1 - 2^-L)^D' G^-(D'-1) s^-(D-1).

use polyclave_field::subfields::ZETA;
use polyclave_field::{Gf2_64, Gf256, MacField};
use polyclave_kernels::affine::{self, Term};
use polyclave_kernels::gf256;
use polyclave_kernels::memory::Wiped;
use zeroize::Zeroizing;

use super::abit::PIECE;
use super::lists::{Column, List, Scalar};
use super::products::{Elements, Kind};
use super::rotation::{Rotation, error_of_opened, open_rows};
use super::shared::SharedList;
use super::subfield::{GF16, Subfield};
use crate::Result;
use crate::authenticated::Coefficients;
use crate::interface::net::Net;

/// The most products of a bucket: their values, of up to 8 bits, are packed into a word of 64.
pub(super) const MAX_GROUP: usize = 8;
/// Bits of an element of a bucket.
const ELEMENT_BITS: usize = 4;

/// How products of one kind share lists.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    pub(super) kind: &'static Kind,
    /// k.
    pub(super) group: usize,
    /// D - 1.
    pub(super) shared: usize,
    /// All products.
    pub(super) products: usize,
}

impl Layout {
    /// Products that are one element of GF(16) together.
    pub(super) fn coordinates(&self) -> usize {
        ELEMENT_BITS / self.kind.x.bits()
    }

    /// Products of a bucket, each of which belongs to a row of its own: row i has the products from number
    /// i [`Layout::columns`] on.
    pub(super) fn rows(&self) -> usize {
        self.group * self.coordinates()
    }

    /// Products of a row, and elements of a list: G.
    pub(super) fn columns(&self) -> usize {
        self.products / self.rows()
    }

    /// Which of the k elements a row belongs to.
    fn element(&self, row: usize) -> usize {
        row / self.coordinates()
    }

    /// What a coordinate of shared element b is multiplied by where it is added to a row: an element of the
    /// field of x.
    pub(super) fn factor(&self, b: usize, row: usize, coordinate: usize) -> u8 {
        let entry = entry(&GF16, self.group, self.element(row), b);
        match self.coordinates() {
            1 => entry.0,
            _ => {
                let image = entry * Gf256(if coordinate == 0 { 1 } else { ZETA });
                // The trace over GF(4) of v + zeta w is w, and that of 1 is 0.
                let upper = image + image.pow(4);
                let coordinates = [image + Gf256(ZETA) * upper, upper];
                coordinates[row % 2].0
            }
        }
    }

    /// What a row's values are multiplied by in a packed word. X generates the field of MACs over each of its
    /// subfields, so these are independent over the field of y.
    pub(super) fn weight(row: usize) -> u64 {
        1 << row
    }

    /// What the MAC of a row's y is multiplied by in the word of a coordinate of shared element b.
    pub(super) fn packing(&self, b: usize, row: usize, coordinate: usize) -> u64 {
        Gf2_64::multiply(Self::weight(row), Gf2_64::embed(self.factor(b, row, coordinate)))
    }
}

/// P: a Cauchy matrix, of which every square part is invertible.
fn entry(field: &Subfield, group: usize, i: usize, b: usize) -> Gf256 {
    let element = |coordinates: usize| {
        let mut element = [0];
        field.elements(&mut element, &[coordinates as u8]);
        Gf256(element[0])
    };
    (element(i) + element(group + b)).pow(254)
}

/// The most shared lists of buckets of so many elements: the matrix has different elements of GF(16) for all.
pub(super) fn most_shared(group: usize) -> usize {
    16 - group
}

/// log2 of the most that a leak may be likely: with `columns` elements a list, `group` elements of their own
/// in a bucket and `shared` ones, scalars in a field of `scalar_bits` bits, elements of `element_bits`.
pub(super) fn log2_error(
    columns: usize,
    [group, shared]: [usize; 2],
    [scalar_bits, element_bits]: [usize; 2],
) -> f64 {
    let lists = group + shared;
    let guessed = 1.0 - 0.5_f64.powi(element_bits as i32);
    let ways = |some: usize| (0..some).fold(1.0, |ways, i| ways * (lists - i) as f64 / (i + 1) as f64);
    let term = |some: usize| ways(some) * guessed.powi(some as i32) * (columns as f64).powi(1 - some as i32);
    let sum: f64 = (shared + 1..=lists).map(term).sum();
    sum.log2() - shared as f64 * f64::from((1_u32 << scalar_bits) - 1).log2()
}

/// Where buckets take their elements, and what these are multiplied by: for the lists of their own, one for
/// each of the k elements, and then for the shared ones.
pub(super) struct Turns(Rotation);

impl Turns {
    /// From coins that are used for nothing else.
    pub(super) fn draw(coin: &[u8; 32], name: &str, layout: &Layout) -> Self {
        let lists = layout.group + layout.shared;
        Turns(Rotation::draw(coin, name, layout.columns(), lists, layout.kind.x))
    }

    /// Where a row takes the elements of the shared lists: its own are list 0.
    fn of_row(&self, layout: &Layout, row: usize) -> Rotation {
        let own = self.0.shift(layout.element(row));
        let relative = |b| (self.0.shift(layout.group + b) + layout.columns() - own) % layout.columns();
        let shared = (0..layout.shared).map(relative);
        Rotation::with_shifts(layout.columns(), std::iter::once(0).chain(shared).collect())
    }

    /// What a coordinate of shared element b is multiplied by where it is added to a row.
    fn factor(&self, layout: &Layout, b: usize, row: usize, coordinate: usize) -> u8 {
        let own = self.scalar(layout.element(row)).pow(254);
        (Gf256(layout.factor(b, row, coordinate)) * self.scalar(layout.group + b) * own).0
    }

    fn scalar(&self, list: usize) -> Gf256 {
        Gf256(self.0.scalar(list))
    }
}

/// What buckets are made of.
pub(super) struct Lists<'a> {
    pub(super) own: &'a List,
    pub(super) shared: &'a [SharedList],
    /// y of the products: of the list of their own, or given.
    pub(super) y: Elements<'a>,
}

/// What buckets give: X, with the MACs of its squares if they are wanted, and Z.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) x: Column,
    pub(super) z: Column,
}

/// Opens d_b = y + y_b of all products, one row for each shared list. Provisional. One round.
pub(super) fn open_differences(
    layout: &Layout,
    turns: &Turns,
    lists: &Lists<'_>,
    net: &mut dyn Net,
) -> Result<Vec<Vec<u8>>> {
    let columns = layout.columns();
    let mut mine = vec![vec![0; layout.products]; layout.shared];
    let mut sums = Wiped::<u8>::zeros(PIECE);
    for row in 0..layout.rows() {
        let first = row * columns;
        for piece in turns.of_row(layout, row).pieces(PIECE) {
            for (b, mine) in mine.iter_mut().enumerate() {
                let theirs = piece.of(b + 1, lists.shared[b].y.part(first, columns).values);
                let at = first + piece.start;
                let terms = lists.y.values[at..][..piece.len].iter().zip(theirs);
                let sums = &mut sums[..piece.len];
                sums.iter_mut().zip(terms).for_each(|(sum, (a, b))| *sum = a ^ b);
                layout.kind.y.coordinates(&mut mine[at..][..piece.len], sums);
            }
        }
    }
    open_rows(mine, layout.kind.y, net)
}

/// Sums up all buckets: X with MACs, and the values of Z. `opened` has d_b.
pub(super) fn combine(
    layout: &Layout,
    turns: &Turns,
    lists: &Lists<'_>,
    opened: &[Vec<u8>],
    squares: bool,
    outcome: &mut Outcome,
) {
    let (columns, coordinates) = (layout.columns(), layout.coordinates());
    let mut products = Wiped::<u8>::zeros(layout.shared * coordinates * PIECE);
    let one = Scalar::of(1);
    for row in 0..layout.rows() {
        let first = row * columns;
        let places = || (0..layout.shared).flat_map(|b| (0..coordinates).map(move |a| (b, a)));
        let factors: Vec<Scalar> =
            places().map(|(b, a)| Scalar::of(turns.factor(layout, b, row, a))).collect();
        for piece in turns.of_row(layout, row).pieces(PIECE) {
            let (at, len) = (first + piece.start, piece.len);
            for ((b, a), product) in places().zip(products.chunks_exact_mut(PIECE)) {
                let x = piece.of(b + 1, &lists.shared[b].x[a].values);
                gf256::multiply(&mut product[..len], &opened[b][at..][..len], x);
            }
            let own = lists.own;
            let mut x = vec![Term { src: &own.x.values[at..][..len], map: &one.map }];
            let mut z = vec![Term { src: &own.z.values[at..][..len], map: &one.map }];
            let mut macs = vec![(&own.x.macs[at..][..len], 1)];
            let mut square_macs = vec![(&own.x.square_macs[at..][..len], 1)];
            let of_shared = places().zip(&factors).zip(products.chunks_exact(PIECE));
            for (((b, a), Scalar { map, word, squared }), product) in of_shared {
                let list = &lists.shared[b];
                x.push(Term { src: piece.of(b + 1, &list.x[a].values), map });
                macs.push((piece.of(b + 1, &list.x[a].macs), *word));
                z.push(Term { src: piece.of(b + 1, &list.z[a][first..][..columns]), map });
                z.push(Term { src: &product[..len], map });
                if squares {
                    square_macs.push((piece.of(b + 1, &list.x[a].square_macs), *squared));
                }
            }
            affine::combine(&mut outcome.x.values[at..][..len], &x, 0);
            affine::combine(&mut outcome.z.values[at..][..len], &z, 0);
            Gf2_64::combine(&mut outcome.x.macs[at..][..len], &macs, 0);
            if squares {
                Gf2_64::combine(&mut outcome.x.square_macs[at..][..len], &square_macs, 0);
            }
        }
    }
}

/// Gives the products their MACs: opens e = Z + r. Returns what was opened. Provisional. One round.
pub(super) fn authenticate(
    layout: &Layout,
    random: &Column,
    alpha: u64,
    outcome: &mut Outcome,
    net: &mut dyn Net,
) -> Result<Vec<u8>> {
    let mut sums = Wiped::<u8>::zeros(layout.products);
    let terms = outcome.z.values.iter().zip(random.values.iter());
    sums.iter_mut().zip(terms).for_each(|(sum, (z, r))| *sum = z ^ r);
    let mut mine = vec![0; layout.products];
    layout.kind.y.coordinates(&mut mine, &sums);
    let opened = open_rows(vec![mine], layout.kind.y, net)?.pop().expect("one row");
    let (mut words, alphas) = ([0; PIECE], Zeroizing::new([alpha; PIECE]));
    let pieces = outcome.z.macs.chunks_mut(PIECE).zip(random.macs.chunks(PIECE));
    for ((macs, of_random), opened) in pieces.zip(opened.chunks(PIECE)) {
        let words = &mut words[..opened.len()];
        Gf2_64::embed_row(words, opened);
        // A secret factor of a row: `combine` takes public ones.
        Gf2_64::multiply_rows(macs, words, &alphas[..words.len()]);
        macs.iter_mut().zip(of_random).for_each(|(mac, of_random)| *mac ^= of_random);
    }
    Ok(opened)
}

/// This party's part of a sum that is zero if all d_b and all e were opened rightly. With coefficients that
/// were tossed when all was opened.
pub(super) fn error_of_buckets(
    layout: &Layout,
    turns: &Turns,
    lists: &Lists<'_>,
    opened: &[Vec<u8>],
    outcome: &Outcome,
    alpha: u64,
    coefficients: &mut Coefficients<Gf2_64>,
) -> u64 {
    let columns = layout.columns();
    let mut sigma = 0;
    let mut sums = Wiped::<u64>::zeros(PIECE);
    for row in 0..layout.rows() {
        let first = row * columns;
        for piece in turns.of_row(layout, row).pieces(PIECE) {
            let (at, len) = (first + piece.start, piece.len);
            for (b, opened) in opened.iter().enumerate() {
                let theirs = piece.of(b + 1, lists.shared[b].y.part(first, columns).macs);
                let sums = &mut sums[..len];
                let terms = lists.y.macs[at..][..len].iter().zip(theirs);
                sums.iter_mut().zip(terms).for_each(|(sum, (a, b))| *sum = a ^ b);
                sigma ^= error_of_opened(coefficients, alpha, sums, &opened[at..][..len]);
            }
        }
    }
    sigma ^ error_of_products(layout, turns, lists, opened, outcome, coefficients)
}

/// The same for e alone: a coefficient for each bucket, times what the packed MACs and those of the products
/// say of all its products together.
fn error_of_products(
    layout: &Layout,
    turns: &Turns,
    lists: &Lists<'_>,
    opened: &[Vec<u8>],
    outcome: &Outcome,
    coefficients: &mut Coefficients<Gf2_64>,
) -> u64 {
    let columns = layout.columns();
    let mut chi = Vec::with_capacity(columns);
    while chi.len() < columns {
        chi.extend_from_slice(coefficients.next(PIECE.min(columns - chi.len())));
    }
    let scalar = |list: usize| Gf2_64::embed(turns.scalar(list).0);
    let mut sigma = 0;
    for row in 0..layout.rows() {
        let (element, first) = (layout.element(row), row * columns);
        let factor = Gf2_64::multiply(Layout::weight(row), scalar(element));
        let sum = [&lists.own.z.macs, &outcome.z.macs].into_iter().fold(0, |sum, macs| {
            sum ^ turned(&macs[first..][..columns], turns.0.shift(element), &chi, Gf2_64::inner_product)
        });
        sigma ^= Gf2_64::multiply(factor, sum);
    }
    let mut weighted = Wiped::<u64>::zeros(columns);
    for (b, (list, opened)) in lists.shared.iter().zip(opened).enumerate() {
        let shift = turns.0.shift(layout.group + b);
        for a in 0..layout.coordinates() {
            let mut sum = turned(&list.macs[a], shift, &chi, Gf2_64::inner_product);
            // chi times the MAC of x, by bucket; then times d of each row.
            let (upper, lower) = list.x[a].macs.split_at(shift);
            let (early, late) = weighted.split_at_mut(lower.len());
            Gf2_64::multiply_rows(early, &chi[..lower.len()], lower);
            Gf2_64::multiply_rows(late, &chi[lower.len()..], upper);
            for row in 0..layout.rows() {
                let packing = layout.packing(b, row, a);
                let opened = &opened[row * columns..][..columns];
                let shift = turns.0.shift(layout.element(row));
                let of_row =
                    turned(opened, shift, &weighted, |d, macs| Gf2_64::embedded_inner_product(macs, d));
                sum ^= Gf2_64::multiply(packing, of_row);
            }
            sigma ^= Gf2_64::multiply(scalar(layout.group + b), sum);
        }
    }
    sigma
}

/// An inner product of a column, from a place on and around its end, and of words by bucket.
fn turned<T>(column: &[T], shift: usize, by_bucket: &[u64], product: impl Fn(&[T], &[u64]) -> u64) -> u64 {
    let (upper, lower) = column.split_at(shift);
    let (early, late) = by_bucket.split_at(lower.len());
    product(lower, early) ^ product(upper, late)
}

#[cfg(test)]
mod tests;
