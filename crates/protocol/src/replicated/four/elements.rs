//! Shared elements of GF(2^128). They are shared like bits, and multiplied like elements of any other field.
//! Bytes are elements as they are: no conversion, no round.
//!
//! Adversary: that of the [module](super). Products are judged in the call that makes them, and repeated
//! without a party if they were wrong.
//!
//! Cost of a product: 24 bytes sent by each party, and a broadcast.

use zeroize::Zeroizing;

use super::super::client::of_shares;
use super::keys::Components;
use super::opening::share;
use super::products::of_elements;
use super::{COMPONENTS, ReplicatedFour};
use crate::Result;
use crate::interface::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::interface::protocol::{Owner, Session};
use crate::replicated::lookup::Multiplier;
use crate::replicated::ring::add;
use crate::shamir::Symbol;
use crate::unchecked::Unchecked;

impl ElementArithmetic for ReplicatedFour {
    /// Local.
    fn random_elements(&mut self, count: usize, _: &mut dyn Net) -> Result<Elements> {
        Ok(of_shares(self.joint.keys.random(ELEMENT_BYTES * count), Unchecked::default()))
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        let mut sum = a.clone();
        let components = [&mut sum.shares, &mut sum.macs, &mut sum.thirds];
        if let Some(at) = self.joint.share_zero() {
            add(components[at], public.as_flattened());
        }
        sum
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        loop {
            if let Some(products) = self.products(a, b, net)? {
                return Ok(products);
            }
        }
    }

    /// To each party goes one share, with correction.
    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.joint.tally.of(self.joint.phase).openings += elements.count() as u64;
        let opened = self.open(Symbol::Element, of_elements(elements), Owner::All, net)?;
        Ok(opened.map(|opened| opened.as_chunks().0.to_vec()).unwrap_or_default())
    }

    fn elements_for_client(&mut self, elements: &Elements, _: &mut dyn Net) -> Result<Vec<u8>> {
        self.joint.tally.of(self.joint.phase).openings += elements.count() as u64;
        Ok(self.share_for_client(Symbol::Element, of_elements(elements)))
    }
}

impl ReplicatedFour {
    /// Products that stand; `None` if they are to be made again, among other parties.
    fn products(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Option<Elements>> {
        let Some(three) = &mut self.three else {
            let products = self.joint.multiply_elements(of_elements(a), of_elements(b), net)?;
            let products = products.map(|product| Zeroizing::new(product.to_vec()));
            return Ok(self.settle_joint(net)?.then(|| of_shares(products, Unchecked::default())));
        };
        let [x, y] = match three.out == self.joint.keys.me {
            true => [Elements::zero(0), Elements::zero(0)],
            false => [a, b].map(|factor| three.elements(factor)),
        };
        let products = three.run(net, |session, net| {
            let products = session.multiply_elements(&x, &y, net)?;
            session.check(net)?;
            Ok(products)
        })?;
        if !self.settle_three(net)? {
            return Ok(None);
        }
        let len = a.shares.len();
        let nothing = || -> Components<_> { std::array::from_fn(|_| Zeroizing::new(vec![0; len])) };
        let lifted = match (&products, &self.three) {
            (Some(products), Some(three)) => three.lifted_elements(products, &mut self.joint.keys),
            _ => of_shares(nothing(), Unchecked::default()),
        };
        let told = self.tell(&[of_elements(&lifted)], products.is_some(), len, net)?;
        Ok(Some(told.map_or(lifted, |told| of_shares(told, Unchecked::default()))))
    }

    /// What this party sends to a client that is to learn a value: its share, and its point of a fresh
    /// polynomial of degree 1 that is 0 at 0. All four parties know that polynomial, and no client: so a
    /// client learns the value, and one that is told all that one party knows learns what follows from that
    /// party's components and the value, and that is all of it.
    pub(super) fn share_for_client(&mut self, symbol: Symbol, components: Components<&[u8]>) -> Vec<u8> {
        let mut message = share(self.me(), symbol, components);
        let slope = self.joint.keys.for_client(message.len());
        super::opening::add_line(self.me(), symbol, &slope, &mut message);
        message.to_vec()
    }
}

const _: () = assert!(COMPONENTS == 3, "elements have room for three components");
