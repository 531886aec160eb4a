//! Multiplication triples: random a and b with c = a b, made ahead.
//!
//! a and b are pseudorandom sharings: the sum of parts a_A, each known to the parties of a set A. c is opened
//! under a mask: w = a b + r is public, and c = w + r, where r is pseudorandom too. So a triple is 3 parts
//! for every set to which a party belongs, and w. Every linear image of each of the three values follows from
//! it.
//!
//! w is opened as a sharing of degree 2t (`products.rs`). It is uniform because r is, and r is used for
//! nothing else.

use std::ops::Range;

use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::super::prss::TILE;
use super::code::Symbol;
use super::{Active, Arithmetic};
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};
use crate::{Error, Result};

/// Rounds to make triples.
pub(super) const ROUNDS: usize = 1;

/// Bytes of a triple at a party in this many sets.
pub(super) const fn bytes_of_triple(sets: usize) -> usize {
    3 * sets + 1
}

/// Triples, used from the front.
#[derive(Default)]
pub(super) struct Triples {
    /// The parts of a, of b and of r: for each of these one vector a set that this party is in.
    parts: [Vec<Shares>; 3],
    /// w.
    public: Shares,
    len: usize,
    spent: usize,
}

impl Triples {
    /// Makes `count` triples. One round.
    pub(super) fn make(
        arithmetic: &mut Arithmetic<Active>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Triples> {
        if count == 0 {
            return Ok(Triples::default());
        }
        let pool = arithmetic.pool.clone();
        let mut parts = [(); 3].map(|()| arithmetic.prss.parts_in(count, &pool));
        let mut message = pool.take(count);
        let mut factors = pool.take(2 * TILE);
        for start in (0..count).step_by(TILE) {
            let tile = start..count.min(start + TILE);
            let (a, b) = factors.split_at_mut(TILE);
            let (a, b) = (&mut a[..tile.len()], &mut b[..tile.len()]);
            let [of_a, of_b, of_r] = &mut parts;
            for (of, shares) in [(of_a, &mut *a), (of_b, &mut *b)] {
                arithmetic.prss.draw(of, tile.clone());
                arithmetic.prss.sum_of_parts(&slices(of, tile.clone()), shares);
            }
            arithmetic.prss.draw(of_r, tile.clone());
            let mut product = pool.take(tile.len());
            multiply(&mut product, a, b);
            let of_r = slices(of_r, tile.clone());
            arithmetic.prss.mask_with_parts(&of_r, &product, &mut message[tile]);
        }
        arithmetic.counts().triples += count as u64;
        let mut public = pool.take(count);
        let evidence = |arithmetic: &Arithmetic<Active>, i: usize| -> Vec<u8> {
            let share = |of: &Vec<Shares>| {
                let mut share = [0];
                arithmetic.prss.sum_of_parts(&slices(of, i..i + 1), &mut share);
                share[0]
            };
            parts.each_ref().map(share).to_vec()
        };
        arithmetic.open_checked(Symbol::Byte, &mut message, &evidence, &mut public, net)?;
        Ok(Triples { parts, public, len: count, spent: 0 })
    }

    /// The next of them. Spent first: positions are taken before anything is sent.
    pub(super) fn spend(&mut self, count: usize) -> Result<Range<usize>> {
        let range = self.spent..self.spent + count;
        if range.end > self.len {
            return Err(Error::misuse("the batch was prepared with fewer triples"));
        }
        self.spent = range.end;
        Ok(range)
    }

    /// The parts of a (0), b (1) or r (2), set by set.
    pub(super) fn parts(&self, which: usize, range: Range<usize>) -> Vec<&[u8]> {
        slices(&self.parts[which], range)
    }

    pub(super) fn public(&self, range: Range<usize>) -> &[u8] {
        &self.public[range]
    }

    /// For each set e b_A + f a_A + c_A, one after another; plus a part of something else, from `tile` of it,
    /// if there is one.
    pub(super) fn products(
        &self,
        range: Range<usize>,
        e: &[u8],
        f: &[u8],
        addends: &[Zeroizing<Vec<u8>>],
        tile: &Range<usize>,
        pool: &Pool,
    ) -> Shares {
        let [of_a, of_b, of_r] = &self.parts;
        let len = range.len();
        let mut products = pool.take(of_a.len() * len);
        let mut term = pool.take(len);
        for (k, product) in products.chunks_mut(len).enumerate() {
            multiply(product, e, &of_b[k][range.clone()]);
            multiply(&mut term, f, &of_a[k][range.clone()]);
            let r = &of_r[k][range.clone()];
            product.iter_mut().zip(&*term).zip(r).for_each(|((p, t), r)| *p ^= t ^ r);
            if let Some(addend) = addends.get(k) {
                product.iter_mut().zip(&addend[tile.clone()]).for_each(|(p, a)| *p ^= a);
            }
        }
        products
    }

    /// As a party keeps them: triple by triple, the parts of a, of b and of r, set by set, and w.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let vectors: Vec<&Shares> = self.parts.iter().flatten().chain([&self.public]).collect();
        let mut items = Zeroizing::new(Vec::with_capacity(self.len * vectors.len()));
        for i in 0..self.len {
            items.extend(vectors.iter().map(|vector| vector[i]));
        }
        items
    }

    /// From what [`save`](Triples::save) wrote, for a party in this many sets.
    pub(super) fn restore(items: &[u8], sets: usize, pool: &Pool) -> Triples {
        let width = bytes_of_triple(sets);
        let len = items.len() / width;
        let column = |k: usize| {
            let mut column = pool.take(len);
            column.iter_mut().zip(items.chunks_exact(width)).for_each(|(byte, item)| *byte = item[k]);
            column
        };
        let parts = [0, 1, 2].map(|which| (0..sets).map(|set| column(which * sets + set)).collect());
        Triples { parts, public: column(3 * sets), len, spent: 0 }
    }
}

fn slices(parts: &[Shares], range: Range<usize>) -> Vec<&[u8]> {
    parts.iter().map(|part| &part[range.clone()]).collect()
}
