//! The streams of two leaves at a time with VAES on 256-bit registers, four registers of each, and sums of
//! them.
//!
//! Leaves are taken in order, and neighbours are added: the odd one belongs to column 0, and their sum is a
//! node of the level above, which waits until its neighbour comes, and so on up to the root. So the sums of
//! all columns together take two additions a leaf, and only one node a level waits. The additions fit in
//! between the rounds of AES, which bound the time.

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use zeroize::optimization_barrier;

use super::{GRAIN, Use};
use crate::aes_prg::aesni::RoundKeys;

/// Registers of a stream at a time: with two leaves, eight are in flight.
const REGISTERS: usize = 4;
const BYTES: usize = 32;
/// Columns of the deepest tree.
const MAX: usize = 8;

/// Some registers of a stream or of a sum of streams.
type Piece<const R: usize> = [__m256i; R];

/// The round keys of all leaves, in memory that is not copied elsewhere.
pub(super) fn expand(keys: &[[u8; 16]]) -> Vec<RoundKeys> {
    let mut expanded: Vec<RoundKeys> = keys.iter().map(|_| RoundKeys::zero()).collect();
    for (expanded, key) in expanded.iter_mut().zip(keys) {
        // SAFETY: this form is chosen only where its instructions were detected, AES-NI with them.
        unsafe { expanded.set(key) };
    }
    expanded
}

/// Sums of some registers of the streams of a tree, from leaf 0 up to some leaf.
struct Sums<const R: usize> {
    columns: [Piece<R>; MAX],
    /// At most one node of each level above the leaves whose neighbour has not come yet.
    waiting: [Piece<R>; MAX],
}

/// See [`super::LeafStreams::receive`] and [`super::LeafStreams::send`]; lengths were checked there.
#[target_feature(enable = "aes,vaes,avx2")]
pub(super) fn next(keys: &[RoundKeys], punctured: bool, counter: u64, columns: &mut [u8], mut what: Use<'_>) {
    let (len, depth) = (what.len(), keys.len().ilog2() as usize);
    let whole = len / (REGISTERS * BYTES) * (REGISTERS * BYTES);
    let mut sums = Sums::<REGISTERS>::zero();
    for at in (0..whole).step_by(REGISTERS * BYTES) {
        let total = sums.add_up(keys, punctured, counter + (at / GRAIN) as u64);
        sums.write(&total, columns, &mut what, at);
    }
    sums.wipe(depth);
    if whole < len {
        let mut sums = Sums::<1>::zero();
        for at in (whole..len).step_by(BYTES) {
            let total = sums.add_up(keys, punctured, counter + (at / GRAIN) as u64);
            sums.write(&total, columns, &mut what, at);
        }
        sums.wipe(depth);
    }
}

impl<const R: usize> Sums<R> {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        let zero = [[_mm256_setzero_si256(); R]; MAX];
        Sums { columns: zero, waiting: zero }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn wipe(&mut self, depth: usize) {
        let zero = [_mm256_setzero_si256(); R];
        self.columns[..depth].fill(zero);
        self.waiting[..depth].fill(zero);
        optimization_barrier(self);
    }

    /// Makes the blocks from number `counter` on of all leaves; returns their sum.
    #[inline]
    #[target_feature(enable = "aes,vaes,avx2")]
    fn add_up(&mut self, keys: &[RoundKeys], punctured: bool, counter: u64) -> Piece<R> {
        let zero = [_mm256_setzero_si256(); R];
        let depth = keys.len().ilog2() as usize;
        self.columns[..depth].fill(zero);
        let mut numbers = zero;
        for (r, number) in (0..).zip(&mut numbers) {
            let first = (counter + 2 * r) as i64;
            *number = _mm256_set_epi64x(first + 1, 0, first, 0);
        }
        let mut node = zero;
        for (pair, keys) in keys.as_chunks::<2>().0.iter().enumerate() {
            let [even, odd] = if punctured && pair == 0 {
                let [odd] = encrypt([&keys[1]], &numbers);
                [zero, odd]
            } else {
                encrypt([&keys[0], &keys[1]], &numbers)
            };
            add(&mut self.columns[0], &odd);
            node = even;
            add(&mut node, &odd);
            // The position of this pair says which of the nodes above are odd.
            let (mut level, mut position) = (1, pair);
            while position % 2 == 1 {
                add(&mut self.columns[level], &node);
                add(&mut node, &self.waiting[level]);
                (level, position) = (level + 1, position / 2);
            }
            if level < depth {
                self.waiting[level] = node;
            }
        }
        node
    }

    /// Writes the bytes from `at` on, all of these registers or what there is room for.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn write(&self, total: &Piece<R>, columns: &mut [u8], what: &mut Use<'_>, at: usize) {
        let len = what.len();
        let columns = columns.chunks_exact_mut(len).zip(&self.columns);
        match what {
            Use::Receive { choices, correction } => {
                for (r, total) in total.iter().enumerate() {
                    let at = at + r * BYTES;
                    store(&mut correction[at..], _mm256_xor_si256(*total, load(&choices[at..])));
                }
                for (column, sums) in columns {
                    for (r, sum) in sums.iter().enumerate() {
                        store(&mut column[at + r * BYTES..], *sum);
                    }
                }
            }
            Use::Send { correction, delta } => {
                for ((column, sums), delta) in columns.zip(delta.iter()) {
                    let mask = _mm256_set1_epi8(*delta as i8);
                    for (r, sum) in sums.iter().enumerate() {
                        let at = at + r * BYTES;
                        let term = _mm256_and_si256(load(&correction[at..]), mask);
                        store(&mut column[at..], _mm256_xor_si256(*sum, term));
                    }
                }
            }
        }
    }
}

/// The blocks with these numbers under the keys of some leaves.
#[inline]
#[target_feature(enable = "aes,vaes,avx2")]
fn encrypt<const LEAVES: usize, const R: usize>(
    keys: [&RoundKeys; LEAVES],
    numbers: &Piece<R>,
) -> [Piece<R>; LEAVES] {
    let mut states = [*numbers; LEAVES];
    for (states, keys) in states.iter_mut().zip(keys) {
        let key = spread(keys, 0);
        states.iter_mut().for_each(|state| *state = _mm256_xor_si256(*state, key));
    }
    for round in 1..10 {
        for (states, keys) in states.iter_mut().zip(keys) {
            let key = spread(keys, round);
            states.iter_mut().for_each(|state| *state = _mm256_aesenc_epi128(*state, key));
        }
    }
    for (states, keys) in states.iter_mut().zip(keys) {
        let key = spread(keys, 10);
        states.iter_mut().for_each(|state| *state = _mm256_aesenclast_epi128(*state, key));
    }
    states
}

#[inline]
#[target_feature(enable = "avx2")]
fn spread(keys: &RoundKeys, round: usize) -> __m256i {
    _mm256_broadcastsi128_si256(keys.get(round))
}

/// `sum += term`.
#[inline]
#[target_feature(enable = "avx2")]
fn add<const R: usize>(sum: &mut Piece<R>, term: &Piece<R>) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum = _mm256_xor_si256(*sum, *term));
}

/// The first 32 bytes, or 16 where there are no more.
#[inline]
#[target_feature(enable = "avx2")]
fn load(bytes: &[u8]) -> __m256i {
    match bytes.first_chunk::<BYTES>() {
        // SAFETY: the reference covers the 32 bytes read; the load has no alignment.
        Some(bytes) => unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) },
        None => {
            let bytes: &[u8; GRAIN] = bytes.first_chunk().expect("columns have whole blocks");
            // SAFETY: the reference covers the 16 bytes read; the load has no alignment.
            _mm256_castsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
        }
    }
}

/// As [`load`].
#[inline]
#[target_feature(enable = "avx2")]
fn store(bytes: &mut [u8], vector: __m256i) {
    match bytes.first_chunk_mut::<BYTES>() {
        // SAFETY: the reference covers the 32 bytes written; the store has no alignment.
        Some(bytes) => unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) },
        None => {
            let bytes: &mut [u8; GRAIN] = bytes.first_chunk_mut().expect("columns have whole blocks");
            // SAFETY: the reference covers the 16 bytes written; the store has no alignment.
            unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm256_castsi256_si128(vector)) }
        }
    }
}
