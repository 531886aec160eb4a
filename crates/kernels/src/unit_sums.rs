//! Sums of some of the entries of unit vectors (or of any vectors of 2^l words): for every vector and every bit of a table's
//! output the sum of the entries j with that bit set in T(j + h), for a public h of each vector.
//!
//! Entries are taken four at a time. The four with numbers 4v .. 4v+3 belong to outputs T(4(v + h/4) + ..), in an order that the
//! lowest two bits of h give; so the masks that keep the entries of an output bit are prepared for each of these four orders,
//! and all of a vector is read once, in its own order, whatever h is.
//!
//! One piece of code, compiled for the registers of any processor and for those of AVX2. h and the table are public.

use core::array::from_fn;
use core::ops::{BitAnd, BitXor};

use crate::isa::Isa;

/// What an entry is: 64 or 128 bits.
pub trait Entry: Copy + BitAnd<Output = Self> + BitXor<Output = Self> {
    /// No bit set.
    const NONE: Self;
    /// All bits set.
    const ALL: Self;
}

impl Entry for u64 {
    const NONE: u64 = 0;
    const ALL: u64 = !0;
}

impl Entry for u128 {
    const NONE: u128 = 0;
    const ALL: u128 = !0;
}

/// Entries, or output bits, that are worked on together.
const GROUP: usize = 4;

/// By entry the masks of four output bits.
type Masks<E> = [[E; GROUP]; GROUP];

/// A table, ready for sums.
pub struct Sums<E> {
    /// Entries of a vector.
    entries: usize,
    /// By four output bits, by the lowest two bits of h, by four entries.
    masks: Vec<[Vec<Masks<E>>; GROUP]>,
}

impl<E: Entry> Sums<E> {
    /// For a table of 2^l outputs of so many bits.
    ///
    /// # Panics
    /// If the table has fewer than four entries, or their number is not a power of two.
    pub fn new(table: &[u8], out_bits: usize) -> Self {
        assert!(table.len() >= GROUP && table.len().is_power_of_two(), "a table of 2^l entries, l >= 2");
        let mask = |x: usize, bit: usize| match table[x].checked_shr(bit as u32) {
            Some(out) if out & 1 == 1 => E::ALL,
            _ => E::NONE,
        };
        let of_bits = |first: usize| {
            from_fn(|order| {
                let four = |v: usize| {
                    let entry = |j: usize| GROUP * v + (j ^ order);
                    from_fn(|j| from_fn(|b| mask(entry(j), first + b)))
                };
                (0..table.len() / GROUP).map(four).collect()
            })
        };
        Sums { entries: table.len(), masks: (0..out_bits).step_by(GROUP).map(of_bits).collect() }
    }

    /// For every vector, one after another, its sums: `sums[b][i]` is that of bit b of vector i.
    ///
    /// # Panics
    /// When lengths do not fit, or an h is no index.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn add_up(&self, vectors: &[E], h: &[u8], sums: &mut [&mut [E]]) {
        assert_eq!(vectors.len(), h.len() * self.entries, "a vector for every index");
        assert!(h.iter().all(|h| usize::from(*h) < self.entries), "an index of a vector");
        assert!(
            sums.len() <= GROUP * self.masks.len() && sums.iter().all(|s| s.len() == h.len()),
            "room for all"
        );
        match Isa::best() {
            Isa::Portable => self.run(vectors, h, sums),
            // SAFETY: these variants exist only where their instructions were detected, AVX2 with both.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { self.run_avx2(vectors, h, sums) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn run_avx2(&self, vectors: &[E], h: &[u8], sums: &mut [&mut [E]]) {
        self.run(vectors, h, sums);
    }

    #[inline(always)]
    fn run(&self, vectors: &[E], h: &[u8], sums: &mut [&mut [E]]) {
        for (masks, sums) in self.masks.iter().zip(sums.chunks_mut(GROUP)) {
            for (i, (vector, h)) in vectors.chunks_exact(self.entries).zip(h).enumerate() {
                let (order, far) = (usize::from(h % GROUP as u8), usize::from(h / GROUP as u8));
                let mut kept = [[E::NONE; GROUP]; GROUP];
                let masks = &masks[order][..];
                for (v, four) in vector.as_chunks::<GROUP>().0.iter().enumerate() {
                    let masks = &masks[v ^ far];
                    kept = from_fn(|j| from_fn(|b| kept[j][b] ^ (four[j] & masks[j][b])));
                }
                let kept: [E; GROUP] = from_fn(|b| kept[0][b] ^ kept[1][b] ^ kept[2][b] ^ kept[3][b]);
                for (sums, kept) in sums.iter_mut().zip(kept) {
                    sums[i] = kept;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<E>(len: usize, of: impl Fn(u64) -> E) -> Vec<E> {
        (0..len as u64).map(|i| of((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))).collect()
    }

    fn sums_are_right<E: Entry + PartialEq + core::fmt::Debug>(of: impl Fn(u64) -> E) {
        for (in_bits, out_bits) in [(2, 1), (4, 4), (5, 5), (6, 4), (6, 8)] {
            let entries = 1 << in_bits;
            let table: Vec<u8> = (0..entries).map(|x| ((x * 167 + 3) >> 2 & 0xff) as u8).collect();
            let h: Vec<u8> = (0..2 * entries + 3).map(|i| (i * 5 % entries) as u8).collect();
            let vectors = words(h.len() * entries, &of);
            let kernel = Sums::<E>::new(&table, out_bits);
            let mut expected = vec![vec![E::NONE; h.len()]; out_bits];
            for (i, (vector, h)) in vectors.chunks(entries).zip(&h).enumerate() {
                for (j, entry) in vector.iter().enumerate() {
                    let out = table[j ^ usize::from(*h)];
                    let set = |b: &usize| out >> b & 1 == 1;
                    (0..out_bits).filter(set).for_each(|b| expected[b][i] = expected[b][i] ^ *entry);
                }
            }
            for run in [Sums::add_up, Sums::run] {
                let mut sums = vec![vec![E::ALL; h.len()]; out_bits];
                run(&kernel, &vectors, &h, &mut sums.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>());
                assert_eq!(sums, expected, "{in_bits} to {out_bits} bits");
            }
        }
    }

    #[test]
    fn sums_are_those_of_the_definition() {
        sums_are_right(|x| x);
        sums_are_right(|x| u128::from(x) << 64 | u128::from(x.rotate_left(7)));
    }

    #[test]
    fn what_does_not_fit_panics() {
        let kernel = Sums::<u64>::new(&[1, 2, 3, 0], 2);
        let call = |vectors: usize, h: &[u8], room: usize| {
            let (mut a, mut b) = (vec![0; room], vec![0; room]);
            kernel.add_up(&vec![0; vectors], h, &mut [&mut a, &mut b]);
        };
        call(8, &[3, 0], 2);
        for (vectors, h, room) in [(7, &[3, 0][..], 2), (8, &[4, 0], 2), (8, &[3, 0], 1)] {
            assert!(std::panic::catch_unwind(|| call(vectors, h, room)).is_err());
        }
        for table in [&[0, 1][..], &[0; 6]] {
            assert!(std::panic::catch_unwind(|| Sums::<u64>::new(table, 1)).is_err());
        }
    }
}
