//! Products of elements of GF(2^128), with triples.
//!
//! As with bytes: a and b are pseudorandom, w = a b + r is opened as a sharing of degree 2t and checked, c = w + r. Elements have no
//! images that anybody wants, so a triple is a share of each. Made when they are needed, or taken from the stock.

use polyclave_kernels::gf128;
use zeroize::Zeroizing;

use super::super::Elements;
use super::code::Symbol;
use super::{Active, Arithmetic, service};
use crate::Result;
use crate::net::Net;
use crate::service::ELEMENT_BYTES;
use crate::tally::Phase;

/// Triples of elements.
pub(super) struct ElementTriples {
    a: Elements,
    b: Elements,
    c: Elements,
}

impl ElementTriples {
    /// So many. One round. They serve once [`is_accepted`](Arithmetic::is_accepted) said so.
    pub(super) fn make(
        arithmetic: &mut Arithmetic<Active>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<ElementTriples> {
        let [a, b, r] = [(); 3].map(|()| arithmetic.random_elements(count));
        let mut message = Elements::zero(count);
        gf128::multiply(message.bytes_mut(), a.bytes(), b.bytes());
        message.add_assign(&r);
        arithmetic.counts().triples += count as u64;
        let evidence = |_: &Arithmetic<Active>, i: usize| -> Vec<u8> {
            let place = ELEMENT_BYTES * i..ELEMENT_BYTES * (i + 1);
            [&a, &b, &r].iter().flat_map(|shares| shares.bytes()[place.clone()].to_vec()).collect()
        };
        let mut public = vec![0; ELEMENT_BYTES * count];
        arithmetic.open_checked(Symbol::Element, message.bytes_mut(), &evidence, &mut public, net)?;
        let c = r.add_public(public.as_chunks().0);
        Ok(ElementTriples { a, b, c })
    }

    /// As a party keeps them: triple by triple.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut items = Zeroizing::new(Vec::with_capacity(3 * self.a.bytes().len()));
        for at in (0..self.a.bytes().len()).step_by(ELEMENT_BYTES) {
            [&self.a, &self.b, &self.c]
                .iter()
                .for_each(|shares| items.extend_from_slice(&shares.bytes()[at..at + ELEMENT_BYTES]));
        }
        items
    }

    pub(super) fn restore(items: &[u8]) -> ElementTriples {
        let column = |k: usize| {
            let of = items.chunks_exact(3 * ELEMENT_BYTES).map(|item| &item[k * ELEMENT_BYTES..]);
            let mut shares = Zeroizing::new(Vec::with_capacity(items.len() / 3));
            of.for_each(|share| shares.extend_from_slice(&share[..ELEMENT_BYTES]));
            Elements::of(shares)
        };
        ElementTriples { a: column(0), b: column(1), c: column(2) }
    }
}

impl Arithmetic<Active> {
    /// Products, element by element. One operation each, in one round, when triples are there.
    pub(super) fn multiply_elements_with_triples(
        &mut self,
        x: &Elements,
        y: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let count = x.count();
        let ElementTriples { a, b, mut c } = self.element_triples(count, net)?;
        self.counts().multiplications += count as u64;
        let masked = Elements::join(&[&x.add(&a), &y.add(&b)]);
        let mut opened = vec![0; 2 * ELEMENT_BYTES * count];
        self.open_corrected(Symbol::Element, masked.bytes(), &mut opened, net)?;
        let (e, f) = opened.split_at(ELEMENT_BYTES * count);
        // x y = e f + e b + f a + c.
        let mut term = Elements::zero(count);
        for (public, factor) in [(e, b.add_public(f.as_chunks().0)), (f, a)] {
            gf128::multiply(term.bytes_mut(), public, factor.bytes());
            c.add_assign(&term);
        }
        Ok(c)
    }

    /// Fresh triples, accepted by all.
    fn element_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<ElementTriples> {
        if let Some(stock) = self.security.stock.clone() {
            let items = stock.take(&service::ELEMENT_TRIPLES, count, net)?;
            return Ok(ElementTriples::restore(&items));
        }
        let phase = std::mem::replace(&mut self.phase, Phase::Preprocessing);
        let made = loop {
            match ElementTriples::make(self, count, net) {
                Ok(triples) => match self.is_accepted(net) {
                    Ok(true) => break Ok(triples),
                    Ok(false) => {}
                    Err(e) => break Err(e),
                },
                Err(e) => break Err(e),
            }
        };
        self.phase = phase;
        made
    }

    /// Another sharing of the same elements; see [`share_afresh`](Arithmetic::share_afresh).
    pub(super) fn share_elements_afresh(&mut self, shares: &mut [u8], net: &mut dyn Net) -> Result<()> {
        let mask = self.random_elements(shares.len() / ELEMENT_BYTES);
        let masked: Zeroizing<Vec<u8>> =
            Zeroizing::new(shares.iter().zip(mask.bytes()).map(|(x, r)| x ^ r).collect());
        let mut public = vec![0; shares.len()];
        self.open_corrected(Symbol::Element, &masked, &mut public, net)?;
        shares.copy_from_slice(mask.add_public(public.as_chunks().0).bytes());
        Ok(())
    }
}
