//! Pseudorandom secret sharing (PRSS) and zero sharing (PRZS): shares of random values without communication.
//!
//! Cramer, Damgard and Ishai 2005; Damgard and Keller 2010, section 3.3. With a pseudorandom r_A from the key
//! of every set A, r = sum of r_A is shared by the polynomial sum of r_A f_A of degree t. A zero sharing of
//! degree 2t is the sum over A and k = 1 .. t of z_(A,k) x^k f_A. Any linear image M(r) is shared by the sum
//! of M(r_A) f_A, also locally. This is what makes every view of a masked opening free.
//!
//! GF(2^8) lies in GF(2^128) ([`Gf128::embed`]). So the same parts r_A, 16 bytes each, make two sharings of
//! the same 16 bytes r: byte by byte, and as one element, by the sum of r_A times the image of f_A. Parts of
//! elements come from the same generators in the order of the calls, which is the same at all parties.
//!
//! Security: t parties lack the key of one set. To them the values of that set are independent of everything
//! else, as long as the generator is pseudorandom (AES-128 in counter mode under a key that BLAKE3 derives
//! from set, domain, session id and stream). So r is independent too, and so are the t + 1 free coefficients
//! of an opened product.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::Matrix;
use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf128::scale_add;
use zeroize::Zeroizing;

use super::setup::{Setup, point};
use crate::interface::service::ELEMENT_BYTES;
use crate::pool::{Pool, Shares};

/// Values are drawn in pieces that stay in the first-level cache.
pub(super) const TILE: usize = 2048;

/// A linear image of values, prepared for masked openings of them.
pub struct View {
    /// For the public part.
    pub(super) map: Map,
    /// Whether the image is a multiple of the value: then it is one of any share of it, too.
    pub(super) is_multiple: bool,
    /// For the parts of each set this party is in: the map, times f_A here.
    by_set: Vec<Map>,
}

impl View {
    fn new(m: &Matrix, weights: &[Gf256]) -> View {
        let times = |c: Gf256| Map::new(m.columns().map(|column| (c * Gf256(column)).0));
        let is_multiple = m.ins() == 8 && m.as_scalar().is_some();
        View { map: times(Gf256::ONE), is_multiple, by_set: weights.iter().map(|w| times(*w)).collect() }
    }

    /// The sum that makes a share of M(r) from the parts r_A of r.
    pub(super) fn terms<'a>(&'a self, parts: impl Iterator<Item = &'a [u8]>) -> Vec<Term<'a>> {
        parts.zip(&self.by_set).map(|(src, map)| Term { src, map }).collect()
    }
}

/// The generators of one party in one session and stream.
pub(super) struct Prss {
    random: Vec<AesPrg>,
    /// t for each set.
    zero: Vec<AesPrg>,
    weights: Vec<Gf256>,
    /// t for each set: x^k f_A here.
    zero_weights: Vec<Gf256>,
    zero_maps: Vec<Map>,
    threshold: usize,
    tiles: Zeroizing<Vec<u8>>,
    views: HashMap<Matrix, Arc<View>>,
    /// The view that is the value itself.
    whole: Arc<View>,
}

/// The degree of the polynomial that shares a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Degree {
    /// t: a shared value.
    Value,
    /// 2t: the local product of two.
    Product,
}

impl Prss {
    /// For a use with this label, which nothing else has.
    pub(super) fn new(setup: &Setup, label: &[u8]) -> Prss {
        let threshold = setup.structure.threshold();
        let generator = |set: u16, key: &[u8; 32], domain: u64| {
            let mut hasher = blake3::Hasher::new_keyed(key);
            hasher.update(b"polyclave shamir prss 1").update(&set.to_le_bytes());
            hasher.update(&domain.to_le_bytes()).update(label);
            let mut seed = Zeroizing::new([0; 16]);
            seed.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
            AesPrg::new(&seed, 0)
        };
        let keys = || setup.keys.iter();
        let degrees = 1..=threshold;
        let zero_weight = |weight: Gf256, k: usize| weight * point(setup.me).pow(k as u32);
        let weights: Vec<Gf256> = keys().map(|k| k.weight).collect();
        let zero_weights: Vec<Gf256> =
            keys().flat_map(|k| degrees.clone().map(|d| zero_weight(k.weight, d))).collect();
        Prss {
            whole: Arc::new(View::new(&Matrix::identity(8), &weights)),
            random: keys().map(|k| generator(k.set, &k.key, 0)).collect(),
            zero: keys().flat_map(|k| degrees.clone().map(|d| generator(k.set, &k.key, d as u64))).collect(),
            weights,
            zero_maps: zero_weights.iter().map(|w| Map::new(Matrix::scalar(w.0).columns())).collect(),
            zero_weights,
            threshold,
            tiles: Zeroizing::new(vec![0; TILE * setup.keys.len() * (1 + threshold)]),
            views: HashMap::new(),
        }
    }

    /// Prepares a view of masked values.
    pub(super) fn view(&mut self, m: &Matrix) -> Arc<View> {
        let weights = &self.weights;
        self.views.entry(*m).or_insert_with(|| Arc::new(View::new(m, weights))).clone()
    }

    /// Draws a random r for every value, at most [`TILE`] of them: `masked = secret + [r]`, plus a zero
    /// sharing of degree 2t if the secret is a product; and [M(r)] for each view.
    pub(super) fn mask<'v>(
        &mut self,
        degree: Degree,
        secret: &[u8],
        masked: &mut [u8],
        views: impl Iterator<Item = (&'v View, &'v mut [u8])>,
    ) {
        let len = secret.len();
        let sets = self.random.len();
        let (random, zero) = self.tiles.split_at_mut(sets * TILE);
        for (tile, generator) in random.chunks_mut(TILE).zip(&mut self.random) {
            generator.fill(&mut tile[..len]);
        }
        let identity = Map::identity();
        let mut terms = Vec::with_capacity(1 + sets * (1 + self.threshold));
        terms.push(Term { src: secret, map: &identity });
        terms.extend(
            random.chunks(TILE).zip(&self.whole.by_set).map(|(tile, map)| Term { src: &tile[..len], map }),
        );
        if degree == Degree::Product {
            for (tile, generator) in zero.chunks_mut(TILE).zip(&mut self.zero) {
                generator.fill(&mut tile[..len]);
            }
            terms.extend(
                zero.chunks(TILE).zip(&self.zero_maps).map(|(tile, map)| Term { src: &tile[..len], map }),
            );
        }
        combine(masked, &terms, 0);
        for (view, share) in views {
            terms.clear();
            terms.extend(
                random.chunks(TILE).zip(&view.by_set).map(|(tile, map)| Term { src: &tile[..len], map }),
            );
            combine(share, &terms, 0);
        }
    }

    /// The view that is the value itself.
    pub(super) fn whole(&self) -> Arc<View> {
        self.whole.clone()
    }

    /// Number of sets that this party is in.
    pub(super) fn sets(&self) -> usize {
        self.random.len()
    }

    /// Room for the parts of this many values, for every set that this party is in.
    pub(super) fn parts_in(&self, len: usize, pool: &Pool) -> Vec<Shares> {
        self.random.iter().map(|_| pool.take(len)).collect()
    }

    /// Draws the parts of random values, into a range of such room.
    pub(super) fn draw(&mut self, parts: &mut [Shares], range: Range<usize>) {
        for (part, generator) in parts.iter_mut().zip(&mut self.random) {
            generator.fill(&mut part[range.clone()]);
        }
    }

    /// Shares of the values with these parts.
    pub(super) fn sum_of_parts(&self, parts: &[&[u8]], shares: &mut [u8]) {
        combine(shares, &self.whole.terms(parts.iter().copied()), 0);
    }

    /// Draws fresh zero sharings of degree 2t as their parts z_(A,k), for every set that this party is in and
    /// every k.
    pub(super) fn zero_parts(&mut self, len: usize) -> Vec<Zeroizing<Vec<u8>>> {
        let draw = |generator: &mut AesPrg| {
            let mut part = Zeroizing::new(vec![0; len]);
            generator.fill(&mut part);
            part
        };
        self.zero.iter_mut().map(draw).collect()
    }

    /// x^k f_A here, for each of [`zero_parts`](Prss::zero_parts).
    pub(super) fn zero_weights(&self) -> &[Gf256] {
        &self.zero_weights
    }

    /// Draws a random r for every byte and returns its parts r_A, for every set this party is in.
    pub(super) fn parts(&mut self, len: usize) -> Vec<Zeroizing<Vec<u8>>> {
        let draw = |generator: &mut AesPrg| {
            let mut part = Zeroizing::new(vec![0; len]);
            generator.fill(&mut part);
            part
        };
        self.random.iter_mut().map(draw).collect()
    }

    /// Adds a fresh zero sharing of degree 2t.
    pub(super) fn add_zero(&mut self, shares: &mut [u8]) {
        let (identity, zero_tiles) = (Map::identity(), self.random.len() * TILE);
        let mut sum = Zeroizing::new(vec![0; TILE.min(shares.len())]);
        for piece in shares.chunks_mut(TILE) {
            let tiles = &mut self.tiles[zero_tiles..];
            for (tile, generator) in tiles.chunks_mut(TILE).zip(&mut self.zero) {
                generator.fill(&mut tile[..piece.len()]);
            }
            let mut terms = vec![Term { src: &*piece, map: &identity }];
            let zeros = tiles.chunks(TILE).zip(&self.zero_maps);
            terms.extend(zeros.map(|(tile, map)| Term { src: &tile[..piece.len()], map }));
            let sum = &mut sum[..piece.len()];
            combine(sum, &terms, 0);
            piece.copy_from_slice(sum);
        }
    }

    /// Draws shares of fresh random values, and of images of the same values.
    pub(super) fn random(&mut self, len: usize, views: &[Arc<View>], pool: &Pool) -> Vec<Shares> {
        let mut shares: Vec<_> = views.iter().map(|_| pool.take(len)).collect();
        let sets = self.random.len();
        for start in (0..len).step_by(TILE) {
            let size = TILE.min(len - start);
            for (tile, generator) in self.tiles.chunks_mut(TILE).take(sets).zip(&mut self.random) {
                generator.fill(&mut tile[..size]);
            }
            for (view, share) in views.iter().zip(&mut shares) {
                let tiles = self.tiles.chunks(TILE).zip(&view.by_set);
                let terms: Vec<_> = tiles.map(|(tile, map)| Term { src: &tile[..size], map }).collect();
                combine(&mut share[start..start + size], &terms, 0);
            }
        }
        shares
    }

    /// Draws, for every set this party is in, its parts of random elements of GF(2^128): 16 bytes each.
    pub(super) fn element_parts(&mut self, count: usize) -> Vec<Zeroizing<Vec<u8>>> {
        let draw = |generator: &mut AesPrg| {
            let mut part = Zeroizing::new(vec![0; ELEMENT_BYTES * count]);
            generator.fill(&mut part);
            part
        };
        self.random.iter_mut().map(draw).collect()
    }

    /// Adds to shares of elements those of the elements with these parts: the sum of r_A times the image of
    /// f_A.
    pub(super) fn add_elements_of_parts(&self, parts: &[&[u8]], shares: &mut [u8]) {
        assert_eq!(parts.len(), self.weights.len(), "one part for every set");
        for (part, weight) in parts.iter().zip(&self.weights) {
            scale_add(shares, part, &Gf128::embed(*weight).to_bytes());
        }
    }

    /// Sets `masked` to `secret`, byte shares, plus the byte shares of the values with these parts: the sum
    /// of r_A f_A.
    pub(super) fn mask_with_parts(&self, parts: &[&[u8]], secret: &[u8], masked: &mut [u8]) {
        let identity = Map::identity();
        let mut terms = vec![Term { src: secret, map: &identity }];
        terms.extend(parts.iter().zip(&self.whole.by_set).map(|(src, map)| Term { src, map }));
        combine(masked, &terms, 0);
    }

    /// Adds to shares of elements a fresh zero sharing of degree 2t: the sum over A and k of z_(A,k) times
    /// the image of x^k f_A.
    pub(super) fn add_zero_elements(&mut self, shares: &mut [u8]) {
        let mut part = Zeroizing::new(vec![0; shares.len()]);
        for (generator, weight) in self.zero.iter_mut().zip(&self.zero_weights) {
            generator.fill(&mut part);
            scale_add(shares, &part, &Gf128::embed(*weight).to_bytes());
        }
    }
}
