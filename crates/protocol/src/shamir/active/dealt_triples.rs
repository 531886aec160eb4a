//! Triples of sharings that the parties deal ([`super::dealt`]), and products by them.
//!
//! a and b are random sharings of degree t, and r is a double sharing. \[a\]\[b\] - \[r\], of degree 2t, is
//! opened to all parties and checked on all points, as other products ahead (`products.rs`). c is that value
//! plus \[r\] of degree t (Damgard, Geisler, Kroigaard and Nielsen 2009). So a b - r is opened. It is uniform
//! because r is, and its polynomial of degree 2t is uniform except for t parties' points, because \[r\] of
//! degree 2t is. The multiplication does not wait for the check of what was dealt: everything is random, and
//! is used only if nobody complains.
//!
//! A triple is three shares. It has no parts that sets of parties know, so the only images of a product that
//! follow are multiples. If other images are needed, the parties multiply and then open the product under a
//! mask, as in the papers: one operation and one round more. Masks stay pseudorandom, as the random bits in
//! the papers are.

use std::ops::Range;

use polyclave_kernels::affine::{Term, combine};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::super::opening::{Layout, Opened, Opening, Secret};
use super::code::{Symbol, Word, first_fault, interpolate};
use super::dealt::{Dealt, Order};
use super::{Active, Arithmetic, Spoiled};
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};
use crate::{Error, Party, Result};

/// Bytes of a triple at a party.
pub(super) const BYTES: usize = 3;

/// Rounds to make triples: to deal, to check, to open products.
pub(super) const ROUNDS: usize = 3;

/// Where in a column of what is dealt the values of a triple are, and r by degree 2t.
const A: usize = 0;
const B: usize = 1;
const R: usize = 2;
const R_TWICE: usize = 3;

/// A product of shared vectors, plus a third one.
type Product<'a> = (&'a [u8], &'a [u8], Option<&'a [u8]>);

/// Triples, used from the front.
#[derive(Default)]
pub(super) struct DealtTriples {
    a: Shares,
    b: Shares,
    c: Shares,
    spent: usize,
}

impl DealtTriples {
    /// Makes `count` triples. Three rounds, unless shares are broadcast.
    pub(super) fn make(
        arithmetic: &mut Arithmetic<Active>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<DealtTriples> {
        if count == 0 {
            return Ok(DealtTriples::default());
        }
        arithmetic.counts().triples += count as u64;
        let columns = count.div_ceil(Dealt::kept(arithmetic.partners().len(), arithmetic.cheaters()));
        let dealt = arithmetic.deal(Order { singles: 2, doubles: 1, columns }, net)?;
        if arithmetic.security.spoiled == Some(Spoiled::Common) {
            return Ok(DealtTriples::default());
        }
        let [a, b, mut c, twice] = [A, B, R, R_TWICE].map(|row| dealt.shares(row, count, arithmetic));
        let mut message = arithmetic.pool.take(count);
        multiply(&mut message, &a, &b);
        add(&mut message, &twice);
        let mut public = arithmetic.pool.take(count);
        match arithmetic.security.broadcasts {
            false => arithmetic.open_apart(Symbol::Byte, &message, &mut public, net)?,
            true => arithmetic.open_products_before_all(&dealt, &message, &mut public, net)?,
        }
        add(&mut c, &public);
        Ok(DealtTriples { a, b, c, spent: 0 })
    }

    /// The next of them. Spent first: positions are taken before anything is sent.
    fn spend(&mut self, count: usize) -> Result<Range<usize>> {
        let range = self.spent..self.spent + count;
        if range.end > self.a.len() {
            return Err(Error::misuse("the batch was prepared with fewer triples"));
        }
        self.spent = range.end;
        Ok(range)
    }

    /// As a party keeps them: triple by triple.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut items = Zeroizing::new(Vec::with_capacity(BYTES * self.a.len()));
        (0..self.a.len()).for_each(|i| items.extend([self.a[i], self.b[i], self.c[i]]));
        items
    }

    /// From what [`save`](DealtTriples::save) wrote.
    pub(super) fn restore(items: &[u8], pool: &Pool) -> DealtTriples {
        let [a, b, c] = [0, 1, 2].map(|k| {
            let mut column = pool.take(items.len() / BYTES);
            column.iter_mut().zip(items.chunks_exact(BYTES)).for_each(|(byte, item)| *byte = item[k]);
            column
        });
        DealtTriples { a, b, c, spent: 0 }
    }
}

impl Arithmetic<Active> {
    /// Opens products by broadcast. If they are wrong, all parties settle which party cheated.
    fn open_products_before_all(
        &mut self,
        dealt: &Dealt,
        message: &[u8],
        public: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let said = self.broadcast(&vec![message.len(); self.structure.parties()], message, net)?;
        self.refuse_silence(&said)?;
        let of = |p: Party| said[p.index()].as_deref().unwrap_or(&[]);
        let words: Vec<Word<'_>> = dealt.makers.iter().map(|p| (p, of(p))).collect();
        let degree = 2 * self.structure.threshold();
        if interpolate(Symbol::Byte, degree, &words, public) {
            return Ok(());
        }
        public.fill(0);
        let Some(at) = first_fault(Symbol::Byte, degree, &words) else { return Ok(()) };
        let sent: Vec<(Party, Vec<u8>)> = words.iter().map(|(p, shares)| (*p, vec![shares[at]])).collect();
        let output = dealt.first_kept + at / dealt.order.columns;
        let due = |outputs: &[Vec<u8>]| {
            let mut product = vec![0];
            multiply(&mut product, &[outputs[output][A]], &[outputs[output][B]]);
            vec![product[0] ^ outputs[output][R_TWICE]]
        };
        self.settle(dealt, at % dealt.order.columns, &sent, &due, net)
    }

    /// Products, plus other values, by a triple each (Beaver 1991): e = x + a and f = y + b are opened, and x
    /// y = e f + e b + f a + c. One round.
    pub(super) fn multiply_with_dealt(
        &mut self,
        products: &[Product<'_>],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        let total = products.iter().map(|(x, ..)| x.len()).sum::<usize>();
        let mut message = self.pool.take(2 * total);
        let mut spent = Vec::with_capacity(products.len());
        let mut rest = &mut message[..];
        for (x, y, _) in products {
            let range = self.security.material.dealt.spend(x.len())?;
            let DealtTriples { a, b, .. } = &self.security.material.dealt;
            for (factor, mask) in [(x, a), (y, b)] {
                let (masked, others) = rest.split_at_mut(factor.len());
                masked.copy_from_slice(factor);
                add(masked, &mask[range.clone()]);
                rest = others;
            }
            spent.push(range);
        }
        let counts = self.counts();
        counts.multiplications += total as u64;
        let mut opened = self.pool.take(2 * total);
        self.open_corrected(Symbol::Byte, &message, &mut opened, net)?;
        let DealtTriples { a, b, c, .. } = &self.security.material.dealt;
        let mut rest = &opened[..];
        let mut results = Vec::with_capacity(products.len());
        for ((_, _, sum), range) in products.iter().zip(spent) {
            let ((e, others), len) = (rest.split_at(range.len()), range.len());
            let (f, others) = others.split_at(len);
            rest = others;
            let [mut result, mut term] = [(); 2].map(|()| self.pool.take(len));
            term.copy_from_slice(f);
            add(&mut term, &b[range.clone()]);
            multiply(&mut result, e, &term);
            multiply(&mut term, f, &a[range.clone()]);
            add(&mut result, &term);
            add(&mut result, &c[range]);
            if let Some(sum) = sum {
                add(&mut result, sum);
            }
            results.push(result);
        }
        Ok(results)
    }

    /// [`Arithmetic::open_masked`] with dealt triples: products first, and then, with the values, those of
    /// them under a mask that other images than multiples are wanted of. A round for each of the two, if
    /// there are any.
    pub(super) fn open_with_dealt(
        &mut self,
        openings: Vec<Opening<'_>>,
        net: &mut dyn Net,
    ) -> Result<Opened> {
        let layout = Layout::of(&openings, |_| 1);
        let products = openings.iter().filter_map(|opening| match opening.secret {
            Secret::Value(_) => None,
            Secret::Product(x, y) => Some((x, y, None)),
            Secret::ProductPlus(x, y, sum) => Some((x, y, Some(sum))),
        });
        let mut products = self.multiply_with_dealt(&products.collect::<Vec<_>>(), net)?.into_iter();
        let mut masks = self.pool.take(layout.masks);
        let mut message = self.pool.take(layout.messages);
        let mut sent = Vec::with_capacity(openings.len());
        let mut len = 0;
        for (opening, place) in openings.iter().zip(&layout.places) {
            let masks = &mut masks[place.masks.clone()];
            let product = match opening.secret {
                Secret::Value(_) => None,
                _ => products.next(),
            };
            if let Some(product) = product.as_ref().filter(|_| opening.views.iter().all(|v| v.is_multiple)) {
                for (view, share) in opening.views.iter().zip(masks.chunks_mut(place.len)) {
                    combine(share, &[Term { src: product, map: &view.map }], 0);
                }
                sent.push(None);
                continue;
            }
            let at = len..len + place.len;
            len = at.end;
            let value = match (opening.secret, &product) {
                (Secret::Value(x), _) => x,
                (_, Some(product)) => product,
                _ => &[],
            };
            self.mask_value(value, &opening.views, &mut message[at.clone()], masks);
            sent.push(Some(at));
        }
        self.counts().openings += len as u64;
        let mut opened = self.pool.take(len);
        self.open_corrected(Symbol::Byte, &message[..len], &mut opened, net)?;
        let mut public = self.pool.take(layout.messages);
        for (place, sent) in layout.places.iter().zip(sent) {
            let public = &mut public[place.messages.clone()];
            match sent {
                Some(at) => public.copy_from_slice(&opened[at]),
                None => public.fill(0),
            }
        }
        Ok(Opened::new(public, masks, layout, openings, &self.pool))
    }
}

fn add(sum: &mut [u8], term: &[u8]) {
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}
