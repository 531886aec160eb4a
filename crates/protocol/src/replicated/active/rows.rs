//! The first level of a proof: products stand in eight rows.
//!
//! A column has a pair or triple ([`super::products`]) in each of eight rows. Its a, b and c are the values
//! of polynomials of degree 7 at the points of the rows ([`super::interpolation`]). All fifteen points that
//! fix a polynomial of degree 14 are in F = GF(16), as the factors are. So the polynomials' values at the
//! seven other points are in F, and are computed and multiplied in planes.
//!
//! **The claim.** Write a~b for the polynomial a_i b_(i+1) + b_i a_(i+1) of a column. Every column k has a
//! weight theta_k in K. Let p(X) be the sum of theta_k (a~b + g a~c + g^2 b~c)_k(X), of degree 14. For each
//! row, its value is the sum of what V1 and V2 know, weighted alike.
//!
//! **The message** is p at the other seven points. The values at rows are not sent: V1 and V2 know their
//! shares of them. Then a coin r is tossed. The claim becomes p(r) = sum of A_k B'_k + B_k A'_k, with
//!
//! * A = phi (a + g^2 c)(r) and B = phi (b + g c)(r) of share i, A' and B' the same of share i + 1, and
//! * phi^2 = theta: every element of K is a square.
//!
//! For A B' + B A' = phi^2 (a~b + g a~c + g^2 b~c), because g^3 c c' is there twice. So a column has two
//! elements in each vector, and a share has the same vectors whoever proves: U of one proof is, with A and B
//! exchanged, W of another.
//!
//! **Soundness**: 16 / 2^64. If a product is wrong, the claim of its row is false except with probability 2 /
//! 2^64. Let g = X^2. Weights are phi = alpha beta g^(s/2): beta is of the column's place in a tile, alpha of
//! as many tiles as work together, and s is thrice the tile's number among these, so that the products of a
//! triple have the factors g^s, g^(s+1) and g^(s+2). alpha and beta are coins. The errors e of
//! a~b, a~c and b~c in these tiles at one place are elements of F, and have the factors g^s of different s
//! below sixteen. These are independent over F, because g generates K, an extension of degree sixteen. So the
//! sum of the errors g^s e is not zero if one of them is not. Then the sum weighted by alpha^2 is zero with
//! probability 2^-64, since squares of coins are coins. If it is not, the sum weighted by beta^2 is zero with
//! as much again. (Errors of a c and (a + b) c are zero only if those of a~c and b~c are.) If the claim of a
//! row is false, p is not the right polynomial, and two of degree 14 agree at most at 14 values of r.
//!
//! **Zero knowledge.** V1's shares of p come from a generator that it has in common with the prover; V2
//! receives p masked by them.

use std::sync::LazyLock;

use polyclave_field::subfields::{coordinates, element};
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::planes::{Factors, PlaneMap, Planes, TILE_BYTES, TILE_CELLS, Terms, add_products};
use polyclave_kernels::words64::{inner_product_unreduced, reduce};
use zeroize::Zeroizing;

use super::super::Pair;
use super::super::ring::seed;
use super::interpolation::Interpolation;
use super::products::{Group, Products, Rows};
use super::proof::{Claims, Vector, fill};

/// Pairs or triples of a column.
const ROWS: usize = 8;
/// Points that fix p.
pub(super) const POINTS: usize = 2 * ROWS - 1;
/// Those behind the rows.
pub(super) const OTHERS: usize = POINTS - ROWS;
/// Of an element of F.
const BITS: usize = 4;
/// Elements of F that are independent summands of an element of K.
const SLOTS: usize = 16;
/// Bytes of a tile at all points behind the rows.
const WIDE: usize = OTHERS * TILE_BYTES;

static OF_ROWS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(ROWS));
static OF_POINTS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(POINTS));

/// From elements of 1, 2 and 4 bits in a column to the polynomial's values at the points behind the rows.
static EXTENSIONS: [LazyLock<PlaneMap>; 3] =
    [LazyLock::new(|| extension(1)), LazyLock::new(|| extension(2)), LazyLock::new(|| extension(4))];
/// From a product in each slot to their sum in K: that in slot s times g^s.
static EMBEDDING: LazyLock<PlaneMap> = LazyLock::new(|| {
    let images = (0..SLOTS).flat_map(|slot| multiples(power_of_g(slot), BITS));
    PlaneMap::new(u64::BITS as usize, &images.collect::<Vec<_>>())
});

/// A tile has the same bit of all points one after the other.
fn extension(bits: usize) -> PlaneMap {
    let others: Vec<_> = (ROWS..POINTS).map(|point| OF_ROWS.at_point(point)).collect();
    let images = (0..ROWS * bits).map(|input| {
        let (row, unit) = (input / bits, element(1 << (input % bits)));
        let values = others.iter().map(|coefficients| coordinates(coefficients[row] * unit));
        values.zip(0..).fold(0, |image, (value, point)| {
            (0..BITS).fold(image, |image, bit| image | u64::from(value >> bit & 1) << (bit * OTHERS + point))
        })
    });
    PlaneMap::new(BITS * OTHERS, &images.collect::<Vec<_>>())
}

/// Public randomness of a proof.
pub(super) struct Weights {
    /// beta and its square.
    places: [u64; TILE_CELLS],
    squares: [u64; TILE_CELLS],
    /// alpha, by group.
    batches: Vec<Vec<u64>>,
}

impl Weights {
    /// From coins.
    pub(super) fn new(coins: [u8; 32], products: &Products) -> Weights {
        let mut generator = AesPrg::new(&seed(&coins), 0);
        let mut places = [0; TILE_CELLS];
        fill(&mut generator, &mut places);
        let mut squares = [0; TILE_CELLS];
        Gf2_64::multiply_rows(&mut squares, &places, &places);
        let of_group = |group| {
            let mut batches = vec![0; Layout::of(group).batches().count()];
            fill(&mut generator, &mut batches);
            batches
        };
        Weights { places, squares, batches: products.groups().map(of_group).collect() }
    }

    /// Of the product a b in the first column of the first group.
    #[cfg(test)]
    pub(super) fn first(&self) -> u64 {
        let phi = Gf2_64::multiply(self.batches[0][0], self.places[0]);
        Gf2_64::multiply(phi, phi)
    }
}

/// How a group stands in rows: each tile has the same number of bytes of each row, one row after the other.
#[derive(Clone, Copy)]
struct Layout {
    tiles: usize,
    /// Bytes of a row in a tile.
    row: usize,
    /// Products of a pair or triple.
    products: usize,
}

impl Layout {
    fn of(group: &Group) -> Layout {
        let tiles = group.len().div_ceil(ROWS * TILE_BYTES);
        Layout { tiles, row: group.len().div_ceil(ROWS * tiles), products: group.as_first.len() }
    }

    /// Columns of a tile.
    fn lanes(self) -> usize {
        8 * self.row
    }

    fn columns(self) -> usize {
        self.tiles * self.lanes()
    }

    /// Tiles that work together: their products have a slot each.
    fn batches(self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let together = SLOTS / self.products;
        (0..self.tiles).step_by(together).map(move |first| first..self.tiles.min(first + together))
    }

    /// All rows of `count` planes in a tile: `count` planes of each row. Behind the bytes of a row is
    /// anything.
    fn load(self, rows: &Rows, count: usize, tile: usize, room: &mut [u8]) {
        for p in 0..count {
            let plane = rows.plane(p);
            let places = room.as_chunks_mut::<TILE_BYTES>().0[p..].iter_mut().step_by(count);
            for (a, place) in places.enumerate() {
                let bytes = plane.get((tile * ROWS + a) * self.row..).unwrap_or_default();
                match bytes.first_chunk() {
                    // A copy of a known length is an instruction, and not a call.
                    Some(whole) => *place = *whole,
                    None => {
                        *place = [0; TILE_BYTES];
                        place[..bytes.len()].copy_from_slice(bytes);
                    }
                }
            }
        }
    }
}

/// p at the points behind the rows, in the prover's own proof.
pub(super) fn evaluate(products: &Products, weights: &Weights) -> Zeroizing<[u64; OTHERS]> {
    let mut sums = Zeroizing::new([0; OTHERS]);
    let mut room = Evaluation::new();
    for (group, alphas) in products.groups().zip(&weights.batches) {
        let layout = Layout::of(group);
        for (batch, alpha) in layout.batches().zip(alphas) {
            let words = room.of(group, layout, batch);
            let alpha = Gf2_64::multiply(*alpha, *alpha);
            for (sum, words) in sums.iter_mut().zip(words.chunks(TILE_CELLS)) {
                let of_place = inner_product(&words[..layout.lanes()], weights);
                *sum ^= Gf2_64::multiply(alpha, of_place);
            }
        }
    }
    sums
}

/// Weighted by beta^2.
fn inner_product(words: &[u64], weights: &Weights) -> u64 {
    reduce::<Gf2_64>(inner_product_unreduced(words, &weights.squares[..words.len()]))
}

/// Room for products at points.
struct Evaluation {
    rows: Zeroizing<Vec<u8>>,
    /// Both shares of a, b and c.
    others: [Pair<Zeroizing<Vec<u8>>>; 3],
    /// Products by slot.
    slots: Zeroizing<Vec<u8>>,
    words: Words,
}

impl Evaluation {
    fn new() -> Evaluation {
        Evaluation {
            rows: bytes(ROWS * BITS * TILE_BYTES),
            others: [0; 3].map(|_| [0; 2].map(|_| bytes(BITS * WIDE))),
            slots: bytes(SLOTS * BITS * WIDE),
            words: Words::new(OTHERS),
        }
    }

    /// The sums of products times g^s, at each point for all places of a tile.
    fn of(&mut self, group: &Group, layout: Layout, batch: std::ops::Range<usize>) -> &[u64] {
        self.slots.fill(0);
        let by_tile = self.slots.chunks_mut(layout.products * BITS * WIDE);
        let extension = &*EXTENSIONS[group.bits.ilog2() as usize];
        for (tile, slots) in batch.zip(by_tile) {
            for (factor, others) in group.factors.iter().zip(&mut self.others) {
                for (share, others) in factor.iter().zip(others) {
                    let rows = &mut self.rows[..ROWS * group.bits * TILE_BYTES];
                    layout.load(share, group.bits, tile, rows);
                    extension.apply(rows, others);
                }
            }
            let [a, b, c] = self
                .others
                .each_ref()
                .map(|shares| shares.each_ref().map(|bytes| Planes { bytes, stride: WIDE }));
            let pairs = [(a, b), (a, c), (b, c)];
            for (slot, (x, y)) in slots.chunks_mut(BITS * WIDE).zip(pairs) {
                add_products(Factors::Gf16, Terms::Mixed, slot, x, y);
            }
        }
        self.words.of(&EMBEDDING, &self.slots)
    }
}

/// This party's shares of the claims of the party behind and of the party before, as far as they come from
/// what it knows of products. `at_rows` are the coefficients of the values at rows.
pub(super) fn known(products: &Products, weights: &Weights, at_rows: &[u64]) -> [u64; 2] {
    let (mut room, mut words) = (bytes(SLOTS * ROWS * BITS * TILE_BYTES), Words::new(1));
    let mut sums = [0; 2];
    for (group, alphas) in products.groups().zip(&weights.batches) {
        let layout = Layout::of(group);
        let tile_len = ROWS * group.bits * TILE_BYTES;
        let together = layout.batches().map(|batch| batch.len()).max().unwrap_or_default();
        let map = of_known(layout, group.bits, together, at_rows);
        let room = &mut room[..together * layout.products * tile_len];
        for (batch, alpha) in layout.batches().zip(alphas) {
            let alpha = Gf2_64::multiply(*alpha, *alpha);
            for (sum, known) in sums.iter_mut().zip([&group.as_first, &group.as_second]) {
                let rows = batch.clone().flat_map(|tile| known.iter().map(move |rows| (tile, rows)));
                let filled = batch.len() * layout.products;
                for ((tile, rows), room) in rows.zip(room.chunks_mut(tile_len)) {
                    layout.load(rows, group.bits, tile, room);
                }
                room[filled * tile_len..].fill(0);
                let words = words.of(&map, room);
                *sum ^= Gf2_64::multiply(alpha, inner_product(&words[..layout.lanes()], weights));
            }
        }
    }
    sums
}

/// From what is known of all products of so many tiles to their weighted sum.
fn of_known(layout: Layout, bits: usize, tiles: usize, at_rows: &[u64]) -> PlaneMap {
    let images = (0..tiles * layout.products).flat_map(|slot| {
        let place = slot % layout.products;
        // Those of a triple are of a b, a c and (a + b) c, of which the last two add up to b c.
        let of_slot = if place == 1 { power_of_g(slot) ^ power_of_g(slot + 1) } else { power_of_g(slot) };
        at_rows.iter().flat_map(move |of_row| multiples(Gf2_64::multiply(*of_row, of_slot), bits))
    });
    PlaneMap::new(u64::BITS as usize, &images.collect::<Vec<_>>())
}

/// The coefficients that make p(r) from the values of p.
pub(super) fn coefficients(r: u64) -> Vec<u64> {
    OF_POINTS.at(r)
}

/// Overwrites the vectors of the claims by the values of all polynomials at r.
pub(super) fn fold(products: &Products, weights: &Weights, r: u64, claims: &mut Claims) {
    let at_rows = OF_ROWS.at(r);
    claims.make_room(products.groups().map(|group| Layout::of(group).columns()).sum());
    let (mut room, mut words) = (bytes(2 * ROWS * BITS * TILE_BYTES), Words::new(1));
    let mut done = 0;
    for (group, alphas) in products.groups().zip(&weights.batches) {
        let layout = Layout::of(group);
        let together = layout.batches().map(|batch| batch.len()).max().unwrap_or_default();
        let maps: Vec<_> = (0..together).map(|tile| of_factors(layout, group, tile, &at_rows)).collect();
        for (batch, alpha) in layout.batches().zip(alphas) {
            let mut phi = [0; TILE_CELLS];
            Gf2_64::combine(&mut phi, &[(&weights.places, *alpha)], 0);
            let phi = &phi[..layout.lanes()];
            for (tile, maps) in batch.zip(&maps) {
                for (share, vectors) in claims.shares.iter_mut().enumerate() {
                    for (side, vector) in vectors.iter_mut().enumerate() {
                        let len = group_rows(group, side, share, layout, tile, &mut room);
                        let words = words.of(&maps[side], &room[..len]);
                        let place = done + tile * layout.lanes();
                        let vector: &mut Vector = vector;
                        Gf2_64::multiply_rows(&mut vector[place..][..phi.len()], &words[..phi.len()], phi);
                    }
                }
            }
        }
        done += layout.columns();
    }
}

/// Loads what A (0) or B (1) is made of: a and c, or b and c. Returns how many bytes that is.
fn group_rows(
    group: &Group,
    side: usize,
    share: usize,
    layout: Layout,
    tile: usize,
    room: &mut [u8],
) -> usize {
    let tile_len = ROWS * group.bits * TILE_BYTES;
    let factors = [Some(&group.factors[side]), group.factors.get(2)];
    let mut len = 0;
    for factor in factors.into_iter().flatten() {
        layout.load(&factor[share], group.bits, tile, &mut room[len..][..tile_len]);
        len += tile_len;
    }
    len
}

/// For A and B, from rows of both factors of a tile to g^(s/2) (a + g^2 c)(r) and g^(s/2) (b + g c)(r).
fn of_factors(layout: Layout, group: &Group, tile: usize, at_rows: &[u64]) -> Pair<PlaneMap> {
    let root = root_of_power_of_g(tile * layout.products);
    let factors = group.factors.len() - 1;
    [2, 1].map(|power| {
        let weights = [root, Gf2_64::multiply(root, power_of_g(power))];
        let images = weights[..factors].iter().flat_map(|weight| {
            at_rows.iter().flat_map(|of_row| multiples(Gf2_64::multiply(*of_row, *weight), group.bits))
        });
        PlaneMap::new(u64::BITS as usize, &images.collect::<Vec<_>>())
    })
}

/// From planes to elements of K, in tiles.
struct Words {
    bits: Zeroizing<Vec<u8>>,
    words: Vector,
}

impl Words {
    fn new(tiles: usize) -> Words {
        let bits = bytes(u64::BITS as usize * tiles * TILE_BYTES);
        Words { bits, words: Zeroizing::new(vec![0; tiles * TILE_CELLS]) }
    }

    fn of(&mut self, map: &PlaneMap, planes: &[u8]) -> &[u64] {
        map.apply(planes, &mut self.bits);
        let stride = self.bits.len() / u64::BITS as usize;
        columns_to_blocks(&self.bits, stride, u64::BITS as usize, &mut self.words);
        &self.words
    }
}

/// A public element times each coordinate of elements of so many bits.
fn multiples(factor: u64, bits: usize) -> impl Iterator<Item = u64> {
    (0..bits).map(move |bit| Gf2_64::multiply(factor, Gf2_64::embed(element(1 << bit).0)))
}

/// g = X^2.
fn power_of_g(power: usize) -> u64 {
    1 << (2 * power)
}

fn root_of_power_of_g(power: usize) -> u64 {
    1 << power
}

fn bytes(len: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(vec![0; len])
}
