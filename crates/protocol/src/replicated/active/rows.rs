//! The first level of a proof: the products of a group stand in sixteen rows.
//!
//! A column has sixteen products, one in each row. The factors of a column are the values of polynomials of
//! degree 15 at the points of rows ([`super::interpolation`]), which are the elements of GF(16). So the
//! polynomials' values at other points are in F = GF(2^8), and are computed and multiplied in planes.
//!
//! **The claim.** Every column k has a weight theta_k in K, and every row a weight eta_a, with eta_0 = 1; all
//! are coins. For a column, let p_k(X) = sum of u_k(X) v_k(X) over the two products x_i y_(i+1) and y_i
//! x_(i+1). The claim is that the sum of eta_a theta_k p_k(row a) is c1 + c2, the sum of what V1 and V2 know,
//! weighted alike.
//!
//! **The message** is p(X) = sum of theta_k p_k(X), of degree 30, at 31 points. That at row 0 is not sent: V1
//! and V2 each derive their share of it from their share of the claim, because the weighted values at the
//! rows add up to the claim. Then a coin r is tossed, and the claim becomes p(r) = sum of u_k(r) theta_k
//! v_k(r), which has vectors with one element for each factor of each column.
//!
//! **Soundness.** If a product is wrong, the claim is false except with probability 2 / 2^64. Let e_(a,k) be
//! the errors, in F. Eight columns share a random theta, times 1, X, .. X^7: these are independent over F,
//! because X generates K, an extension of degree eight. So for a row with an error one of the sums of eight
//! errors is not zero; then the row's weighted sum is zero with probability 2^-64; and if it is not, so is
//! the sum over rows, weighted by eta. (For row 0 alone, which has weight 1, there is nothing to add.) If the
//! claim is false, p is not the right polynomial, and two of degree 30 agree at most at 30 values of r.
//!
//! **Zero knowledge.** V1's shares of p come from a generator that it has in common with the prover; V2
//! receives p masked by them.

use std::sync::LazyLock;

use polyclave_field::subfields::{coordinates, element};
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::bit_transpose::columns_to_blocks;
use polyclave_kernels::planes::{
    Factors, PlaneMap, Planes, TILE_BYTES, TILE_CELLS, Terms, Tile, add_products,
};
use polyclave_kernels::words64::{inner_product_unreduced, reduce};
use zeroize::Zeroizing;

use super::super::ring::seed;
use super::interpolation::Interpolation;
use super::products::{Group, Products, Rows};
use super::proof::{Claims, fill};

/// Products of a column.
const ROWS: usize = 16;
/// Points that fix p.
pub(super) const POINTS: usize = 2 * ROWS - 1;
/// Of an element of F.
const BITS: usize = 8;
/// Columns that share a random weight.
const SHARING: usize = 8;

static OF_ROWS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(ROWS));
static OF_POINTS: LazyLock<Interpolation> = LazyLock::new(|| Interpolation::through(POINTS));

/// From factors of a column to the polynomial's values at the points behind the rows.
static EXTENSIONS: ByBits = ByBits::new([|| extension(1), || extension(2), || extension(4), || extension(8)]);
/// From values at a point, in parts of a row, to their sum in K: part j times X^j.
static EMBEDDINGS: ByBits = ByBits::new([|| embedding(1), || embedding(2), || embedding(4), || embedding(8)]);

/// A map for elements of 1, 2, 4 and 8 bits.
struct ByBits([LazyLock<PlaneMap>; 4]);

impl ByBits {
    const fn new([a, b, c, d]: [fn() -> PlaneMap; 4]) -> ByBits {
        ByBits([LazyLock::new(a), LazyLock::new(b), LazyLock::new(c), LazyLock::new(d)])
    }

    fn of(&self, bits: usize) -> &PlaneMap {
        &self.0[bits.ilog2() as usize]
    }
}

fn extension(bits: usize) -> PlaneMap {
    let behind: Vec<_> = (ROWS..POINTS).map(|point| OF_ROWS.at_point(point)).collect();
    let images = (0..ROWS * bits).map(|input| {
        let (row, unit) = (input / bits, element(1 << (input % bits)));
        let values = behind.iter().map(|coefficients| coordinates(coefficients[row] * unit));
        values.rev().fold(0, |image, value| image << BITS | u128::from(value))
    });
    PlaneMap::new((POINTS - ROWS) * BITS, &images.collect::<Vec<_>>())
}

/// Public randomness of a proof: weights of rows and of columns.
pub(super) struct Weights {
    /// eta.
    rows: [u64; ROWS],
    /// By group, the random ones, which eight columns share.
    shared: Vec<Vec<u64>>,
    /// By group, those of all columns.
    columns: Vec<Vec<u64>>,
}

impl Weights {
    /// From coins.
    pub(super) fn new(coins: [u8; 32], products: &Products) -> Weights {
        let mut generator = AesPrg::new(&seed(&coins), 0);
        let mut rows = [1; ROWS];
        fill(&mut generator, &mut rows[1..]);
        let mut weights = Weights { rows, shared: Vec::new(), columns: Vec::new() };
        for group in products.groups() {
            let layout = Layout::of(group);
            let mut shared = vec![0; layout.lanes()];
            fill(&mut generator, &mut shared);
            let mut columns = vec![0; layout.columns()];
            for (j, columns) in columns.chunks_mut(layout.lanes()).enumerate() {
                Gf2_64::combine(columns, &[(&shared, power_of_x(j))], 0);
            }
            weights.shared.push(shared);
            weights.columns.push(columns);
        }
        weights
    }

    /// Of the product in row 0 and column 0 of the first group, and what the value at row 1 adds to the
    /// claim.
    #[cfg(test)]
    pub(super) fn first(&self) -> [u64; 2] {
        [self.columns[0][0], self.rows[1]]
    }

    /// A verifier's share of the value at row 0, from its share of the claim and those of the values at the
    /// other points.
    pub(super) fn derived(&self, claim: u64, others: &[u64; POINTS - 1]) -> u64 {
        claim ^ Gf2_64::inner_product(&self.rows[1..], &others[..ROWS - 1])
    }
}

/// How the products of a group stand in rows: bytes of planes one row after the other.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of a row, of each plane.
    row: usize,
    /// Bytes of a row in which all columns have random weights of their own.
    part: usize,
    /// In how many such parts a row is divided.
    parts: usize,
}

impl Layout {
    fn of(group: &Group) -> Layout {
        let row = group.len().div_ceil(ROWS);
        let part = row.div_ceil(SHARING);
        Layout { row, part, parts: row.div_ceil(part) }
    }

    /// Columns of a part.
    fn lanes(self) -> usize {
        8 * self.part
    }

    fn columns(self) -> usize {
        self.parts * self.lanes()
    }

    /// All rows of all planes, in a part of a row, from byte `at` of the part on: the tile of row a and plane
    /// p is a * `count` + p.
    fn load(self, rows: &Rows, count: usize, (part, at): (usize, usize), tiles: &mut [Tile]) {
        let from = part * self.part + at;
        let len = TILE_BYTES.min(self.part - at).min(self.row.saturating_sub(from));
        for p in 0..count {
            let plane = rows.plane(p);
            for (a, tile) in tiles[p..].iter_mut().step_by(count).enumerate().take(ROWS) {
                let bytes = &plane[plane.len().min(a * self.row + from)..];
                match bytes.first_chunk() {
                    // A copy of a known length is an instruction, and not a call.
                    Some(whole) if len == TILE_BYTES => *tile = *whole,
                    _ => {
                        let bytes = &bytes[..len.min(bytes.len())];
                        *tile = [0; TILE_BYTES];
                        tile[..bytes.len()].copy_from_slice(bytes);
                    }
                }
            }
        }
    }

    /// Where tiles begin in a part.
    fn tiles(self) -> impl Iterator<Item = usize> {
        (0..self.part).step_by(TILE_BYTES)
    }
}

/// p at all points, in the prover's own proof.
pub(super) fn evaluate(products: &Products, weights: &Weights) -> Zeroizing<[u64; POINTS]> {
    let mut sums = Zeroizing::new([0; POINTS]);
    for (group, shared) in products.groups().zip(&weights.shared) {
        evaluate_group(group, shared, &mut sums);
    }
    Zeroizing::new(sums.map(reduce::<Gf2_64>))
}

fn evaluate_group(group: &Group, shared: &[u64], sums: &mut [u128; POINTS]) {
    let (layout, [of_x, of_y]) = (Layout::of(group), group.factors.planes());
    let mut factors = [of_x, of_x, of_y, of_y].map(Factor::new);
    // At each point, eight parts of a row one after the other.
    let mut values = tiles(POINTS * SHARING * BITS);
    let mut words = Words::new();
    for at in layout.tiles() {
        values.fill([0; TILE_BYTES]);
        for part in 0..layout.parts {
            for (factor, rows) in factors.iter_mut().zip([&group.x[0], &group.x[1], &group.y[0], &group.y[1]])
            {
                layout.load(rows, factor.bits, (part, at), &mut factor.rows);
                EXTENSIONS.of(factor.bits).apply(&factor.rows, &mut factor.others);
            }
            let [x0, x1, y0, y1] = &factors;
            for (point, values) in values.chunks_mut(SHARING * BITS).enumerate() {
                let (fields, bits) =
                    if point < ROWS { (group.factors, of_x) } else { (Factors::Gf256, BITS) };
                let sum = values[part * bits..][..bits].as_flattened_mut();
                add_products(
                    fields,
                    Terms::Mixed,
                    sum,
                    [x0.at(point), x1.at(point)],
                    [y0.at(point), y1.at(point)],
                );
            }
        }
        let weights = &shared[8 * at..];
        let weights = &weights[..weights.len().min(TILE_CELLS)];
        for (point, values) in values.chunks(SHARING * BITS).enumerate() {
            let bits = if point < ROWS { of_x } else { BITS };
            let words = words.of(EMBEDDINGS.of(bits), &values[..SHARING * bits], weights.len());
            sums[point] ^= inner_product_unreduced(words, weights);
        }
    }
}

/// A factor of all products in a tile of columns: its values in the rows, and at the points behind them.
struct Factor {
    bits: usize,
    rows: Zeroizing<Vec<Tile>>,
    others: Zeroizing<Vec<Tile>>,
}

impl Factor {
    fn new(bits: usize) -> Factor {
        Factor { bits, rows: tiles(ROWS * bits), others: tiles((POINTS - ROWS) * BITS) }
    }

    fn at(&self, point: usize) -> Planes<'_> {
        let tiles = match point.checked_sub(ROWS) {
            None => &self.rows[point * self.bits..],
            Some(other) => &self.others[other * BITS..],
        };
        Planes { bytes: tiles.as_flattened(), stride: TILE_BYTES }
    }
}

/// What this party knows of the claims of the party behind and of the party before.
pub(super) fn claims(products: &Products, weights: &Weights) -> [u64; 2] {
    let mut sums = [0; 2];
    for (group, columns) in products.groups().zip(&weights.columns) {
        let (layout, bits) = (Layout::of(group), group.factors.planes()[0]);
        let map = weighted_rows(&weights.rows, bits);
        let (mut rows, mut words) = (tiles(ROWS * bits), Words::new());
        for (sum, of) in sums.iter_mut().zip([&group.as_first, &group.as_second]) {
            for (part, columns) in columns.chunks(layout.lanes()).enumerate() {
                for (at, columns) in layout.tiles().zip(columns.chunks(TILE_CELLS)) {
                    layout.load(of, bits, (part, at), &mut rows);
                    *sum ^= inner_product_unreduced(words.of(&map, &rows, columns.len()), columns);
                }
            }
        }
    }
    sums.map(reduce::<Gf2_64>)
}

/// The coefficients that make p(r) from the values of p.
pub(super) fn coefficients(r: u64) -> Vec<u64> {
    OF_POINTS.at(r)
}

/// Overwrites the vectors of the claims by the values of all polynomials at r.
pub(super) fn fold(products: &Products, weights: &Weights, r: u64, claims: &mut Claims) {
    let of_rows: [u64; ROWS] = OF_ROWS.at(r).try_into().expect("a coefficient for each row");
    claims.make_room(2 * weights.columns.iter().map(Vec::len).sum::<usize>());
    let mut done = 0;
    for (group, columns) in products.groups().zip(&weights.columns) {
        let layout = Layout::of(group);
        let sides = [(&group.x, done, done + columns.len()), (&group.y, done + columns.len(), done)];
        for ((both, own, other), bits) in sides.into_iter().zip(group.factors.planes()) {
            let map = weighted_rows(&of_rows, bits);
            let (mut rows, mut words) = (tiles(ROWS * bits), Words::new());
            for (share, of) in both.iter().enumerate() {
                let [u, w] = match share {
                    0 => [&mut claims.u_mine, &mut claims.w_previous],
                    _ => [&mut claims.u_next, &mut claims.w_mine],
                };
                for (part, weights) in columns.chunks(layout.lanes()).enumerate() {
                    for (at, weights) in layout.tiles().zip(weights.chunks(TILE_CELLS)) {
                        layout.load(of, bits, (part, at), &mut rows);
                        let words = words.of(&map, &rows, weights.len());
                        let place = part * layout.lanes() + 8 * at;
                        u[own + place..][..words.len()].copy_from_slice(words);
                        Gf2_64::multiply_rows(&mut w[other + place..][..words.len()], words, weights);
                    }
                }
            }
        }
        done += 2 * columns.len();
    }
}

/// From planes to elements of K, one for each of the first lanes of a tile.
struct Words {
    bits: Zeroizing<Vec<Tile>>,
    words: Zeroizing<[u64; TILE_CELLS]>,
}

impl Words {
    fn new() -> Words {
        Words { bits: tiles(u64::BITS as usize), words: Zeroizing::new([0; TILE_CELLS]) }
    }

    fn of(&mut self, map: &PlaneMap, planes: &[Tile], lanes: usize) -> &[u64] {
        map.apply(planes, &mut self.bits);
        let words = &mut self.words[..lanes];
        columns_to_blocks(self.bits.as_flattened(), TILE_BYTES, u64::BITS as usize, words);
        words
    }
}

/// The sum over rows of weighted elements of so many bits.
fn weighted_rows(weights: &[u64; ROWS], bits: usize) -> PlaneMap {
    let images: Vec<u128> = weights.iter().flat_map(|weight| multiples(*weight, bits)).collect();
    PlaneMap::new(u64::BITS as usize, &images)
}

fn embedding(bits: usize) -> PlaneMap {
    let images: Vec<u128> = (0..SHARING).flat_map(|j| multiples(power_of_x(j), bits)).collect();
    PlaneMap::new(u64::BITS as usize, &images)
}

/// A public element times each coordinate of elements of F.
fn multiples(factor: u64, bits: usize) -> impl Iterator<Item = u128> {
    (0..bits).map(move |bit| Gf2_64::multiply(factor, Gf2_64::embed(element(1 << bit).0)).into())
}

fn power_of_x(j: usize) -> u64 {
    1 << j
}

fn tiles(count: usize) -> Zeroizing<Vec<Tile>> {
    Zeroizing::new(vec![[0; TILE_BYTES]; count])
}
