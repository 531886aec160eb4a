//! Products of elements of GF(2^128), with triples.
//!
//! As with bytes: a and b are pseudorandom, w = a b + r is opened as a sharing of degree 2t and checked, c =
//! w + r. Nothing needs images of elements, so a triple has one share of each. Triples are made when they are
//! needed, or taken from the stock.

use zeroize::Zeroizing;

use super::code::Symbol;
use super::{Active, Arithmetic, service};
use crate::Result;
use crate::interface::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::interface::tally::Phase;

/// Triples of elements.
pub(super) struct ElementTriples {
    a: Elements,
    b: Elements,
    c: Elements,
}

impl ElementTriples {
    /// Makes triples in one round. They may be used after [`is_accepted`](Arithmetic::is_accepted) has
    /// returned true.
    pub(super) fn make(
        arithmetic: &mut Arithmetic<Active>,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<ElementTriples> {
        let [a, b, r] = [(); 3].map(|()| arithmetic.pseudorandom_elements(count));
        let mut message = a.multiply(&b.shares).add(&r);
        arithmetic.counts().triples += count as u64;
        let evidence = |_: &Arithmetic<Active>, i: usize| -> Vec<u8> {
            let place = ELEMENT_BYTES * i..ELEMENT_BYTES * (i + 1);
            [&a, &b, &r].iter().flat_map(|shares| shares.shares[place.clone()].to_vec()).collect()
        };
        let mut public = vec![0; ELEMENT_BYTES * count];
        arithmetic.open_checked(Symbol::Element, &mut message.shares, &evidence, &mut public, net)?;
        let c = r.add_to_shares(public.as_chunks().0);
        Ok(ElementTriples { a, b, c })
    }

    /// As a party stores them: triple by triple.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut items = Zeroizing::new(Vec::with_capacity(3 * self.a.shares.len()));
        for at in (0..self.a.shares.len()).step_by(ELEMENT_BYTES) {
            [&self.a, &self.b, &self.c]
                .iter()
                .for_each(|shares| items.extend_from_slice(&shares.shares[at..at + ELEMENT_BYTES]));
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

/// Fewer than n/3 parties may deviate arbitrarily. The zero test is the one over products.
impl ElementArithmetic for Arithmetic<Active> {
    fn random_elements(&mut self, count: usize, _: &mut dyn Net) -> Result<Elements> {
        Ok(self.pseudorandom_elements(count))
    }

    /// Adds a constant polynomial.
    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        a.add_to_shares(public)
    }

    /// One operation each, in one round, if triples are available.
    fn multiply_elements(&mut self, x: &Elements, y: &Elements, net: &mut dyn Net) -> Result<Elements> {
        x.same_count(y)?;
        let count = x.count();
        let ElementTriples { a, b, mut c } = self.element_triples(count, net)?;
        self.counts().multiplications += count as u64;
        let opened = self.open_corrected_elements(&Elements::join(&[&x.add(&a), &y.add(&b)]), net)?;
        let (e, f) = opened.split_at(count);
        // x y = e f + e b + f a + c.
        c.add_assign(&b.add_to_shares(f).multiply(e.as_flattened()));
        c.add_assign(&a.multiply(f.as_flattened()));
        Ok(c)
    }

    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.counts().openings += elements.count() as u64;
        self.open_corrected_elements(elements, net)
    }

    /// Sends another sharing of the same elements; see [`share_afresh`](Arithmetic::share_afresh).
    fn elements_for_client(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.counts().openings += elements.count() as u64;
        let mask = self.pseudorandom_elements(elements.count());
        let public = self.open_corrected_elements(&elements.add(&mask), net)?;
        Ok(mask.add_to_shares(&public).shares.to_vec())
    }

    /// Sends the shares unchanged. The sharing was drawn for this client, which may know all of it, because
    /// every value that the parties open later has a fresh mask on its whole polynomial.
    fn random_for_client(&mut self, _: &mut dyn Net) -> Result<(Elements, Vec<u8>)> {
        let random = self.pseudorandom_elements(1);
        let message = random.shares.to_vec();
        Ok((random, message))
    }
}

impl Arithmetic<Active> {
    /// Opens sharings of degree t, with correction. Counts the round, and not the operations.
    fn open_corrected_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        let mut values = vec![[0; ELEMENT_BYTES]; elements.count()];
        self.open_corrected(Symbol::Element, &elements.shares, values.as_flattened_mut(), net)?;
        Ok(values)
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
}
