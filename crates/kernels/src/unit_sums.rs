//! Sums of some of the entries of unit vectors (or of any vectors of 2^l words). For every vector and every
//! bit of a table's output: the sum of the entries j with that bit set in T(j + h), for a public h of each
//! vector.
//!
//! Entries are taken four at a time. The four with numbers 4v .. 4v+3 belong to outputs T(4(v + h/4) + ..),
//! in an order that the lowest two bits of h give; so the masks that keep the entries of an output bit are
//! prepared for each of these four orders, and all of a vector is read once, in its own order for every h,
//! and prefetched from memory.
//!
//! With AVX2 entries of up to 64 bits are worked on a register at a time. h and the table are public.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "x86_64")]
use core::any::Any;
use core::array::from_fn;
use core::ops::{BitAnd, BitXor};

#[cfg(target_arch = "x86_64")]
use crate::isa::Isa;

/// What an entry is: 64 or 128 bits.
pub trait Entry: Copy + 'static + BitAnd<Output = Self> + BitXor<Output = Self> {
    /// No bit set.
    const NONE: Self;
    /// All bits set.
    const ALL: Self;

    /// The entry of this many bytes, at most its own, little-endian.
    fn of_bytes(bytes: &[u8]) -> Self;
}

macro_rules! entry {
    ($word:ty) => {
        impl Entry for $word {
            const NONE: $word = 0;
            const ALL: $word = !0;

            #[inline(always)]
            fn of_bytes(bytes: &[u8]) -> $word {
                let mut all = [0; size_of::<$word>()];
                all[..bytes.len()].copy_from_slice(bytes);
                <$word>::from_le_bytes(all)
            }
        }
    };
}

entry!(u64);
entry!(u128);

/// Entries, or output bits, that are worked on together.
const GROUP: usize = 4;

/// Bytes of vectors, where there is AVX2, that are on their way from memory while others are added up.
const AHEAD: usize = 4096;
const LINE: usize = 64;

/// By output bit the masks of four entries, none across two lines of a cache.
#[repr(align(64))]
struct Masks<E>([[E; GROUP]; GROUP]);

/// A table, ready for sums.
pub struct Sums<E> {
    /// Entries of a vector.
    entries: usize,
    /// By four output bits, by the lowest two bits of h, by four entries.
    masks: Vec<[Vec<Masks<E>>; GROUP]>,
}

impl<E: Entry> Sums<E> {
    /// For a table of 2^l outputs of this many bits.
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
                    Masks(from_fn(|b| from_fn(|j| mask(entry(j), first + b))))
                };
                (0..table.len() / GROUP).map(four).collect()
            })
        };
        Sums { entries: table.len(), masks: (0..out_bits).step_by(GROUP).map(of_bits).collect() }
    }

    /// For every vector, one after another in entries of `width` bytes, its sums: `sums[b][i]` is that of bit
    /// b of vector i.
    ///
    /// # Panics
    /// When lengths do not fit, or an h is no index.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub fn add_up(&self, vectors: &[u8], width: usize, h: &[u8], sums: &mut [&mut [E]]) {
        assert!((1..=size_of::<E>()).contains(&width), "entries of one byte or more");
        assert_eq!(vectors.len(), h.len() * self.entries * width, "a vector for every index");
        assert!(h.iter().all(|h| usize::from(*h) < self.entries), "an index of a vector");
        assert!(
            sums.len() <= GROUP * self.masks.len() && sums.iter().all(|s| s.len() == h.len()),
            "room for all"
        );
        #[cfg(target_arch = "x86_64")]
        if let (true, Some(words)) = (avx2::WIDTHS.contains(&width), (self as &dyn Any).downcast_ref()) {
            let put = |bits: usize, i: usize, of_vector: [u64; GROUP]| {
                for (sums, sum) in sums.iter_mut().skip(GROUP * bits).zip(of_vector) {
                    sums[i] = E::of_bytes(&sum.to_le_bytes());
                }
            };
            if Isa::best() != Isa::Portable {
                // SAFETY: the other variants exist only where their instructions were detected, AVX2 with
                // both.
                return unsafe { avx2::add_up(words, vectors, width, h, put) };
            }
        }
        self.run(vectors, width, h, sums);
    }

    pub(crate) fn run(&self, vectors: &[u8], width: usize, h: &[u8], sums: &mut [&mut [E]]) {
        let len = self.entries * width;
        for (masks, sums) in self.masks.iter().zip(sums.chunks_mut(GROUP)) {
            for (i, (vector, h)) in vectors.chunks_exact(len).zip(h).enumerate() {
                let (order, far) = (usize::from(h % GROUP as u8), usize::from(h / GROUP as u8));
                let mut kept = [[E::NONE; GROUP]; GROUP];
                let masks = &masks[order][..];
                for (v, four) in vector.chunks_exact(GROUP * width).enumerate() {
                    let four: [E; GROUP] = from_fn(|j| E::of_bytes(&four[j * width..][..width]));
                    let masks = &masks[v ^ far].0;
                    kept = from_fn(|b| from_fn(|j| kept[b][j] ^ (four[j] & masks[b][j])));
                }
                for (sums, kept) in sums.iter_mut().zip(kept) {
                    sums[i] = kept[0] ^ kept[1] ^ kept[2] ^ kept[3];
                }
            }
        }
    }
}
