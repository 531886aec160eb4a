//! The arithmetic black box over shared elements of GF(2^128): what protocols do in their own ways. The hash
//! of GCM ([`crate::ghash`]), the zero test and the check of clients' masks are written once, over it.

use super::{ELEMENT_BYTES, Element, Elements};
use crate::interface::masking::powers;
use crate::interface::net::Net;
use crate::{Error, Result};

/// One party's arithmetic on shared elements of GF(2^128).
pub trait ElementArithmetic {
    /// Random elements that no party knows.
    fn random_elements(&mut self, count: usize, net: &mut dyn Net) -> Result<Elements>;

    /// Adds public values, element by element. Local.
    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements;

    /// Products, element by element. One round.
    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements>;

    /// The sum of all products a_i b_i, one element. One round.
    fn inner_product(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        Ok(self.multiply_elements(a, b, net)?.sum())
    }

    /// Powers x^(2^k) of some elements: for each pair the place of the element, and k. They are linear over
    /// GF(2), so a protocol may have a way to them that is cheaper than products. `None` if it has none. One
    /// round, and 128 random bits for each element.
    fn frobenius(
        &mut self,
        _elements: &Elements,
        _wanted: &[(usize, u32)],
        _net: &mut dyn Net,
    ) -> Result<Option<Elements>> {
        Ok(None)
    }

    /// Opens elements that all parties may know. A protocol that verifies checks all earlier openings before
    /// it opens these, and checks these before it returns them.
    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>>;

    /// What this party sends to a client that is to learn elements, behind the protocol's check.
    fn elements_for_client(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>>;

    /// A random element, and what this party sends to the one client that is to learn it.
    fn random_for_client(&mut self, net: &mut dyn Net) -> Result<(Elements, Vec<u8>)> {
        let random = self.random_elements(1, net)?;
        let message = self.elements_for_client(&random, net)?;
        Ok((random, message))
    }

    /// Whether an element is zero, and nothing else about it: opens rho times it, for a random shared rho
    /// that is used for nothing else. If the element is not zero, what is opened is uniform; so the answer is
    /// wrong with probability 2^-128. Two rounds and the protocol's checks.
    ///
    /// The check before the opening, of all that the element rests on, matters: otherwise a cheater that
    /// makes an earlier opening wrong by a guess would see whether the product is zero, hence whether the
    /// guess was right, before the check fails.
    fn is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        if element.count() != 1 {
            return Err(Error::misuse("one element is compared with zero at a time"));
        }
        Ok(self.are_zero(element, net)? == [true])
    }

    /// The same for each of some elements, with a random factor for each.
    fn are_zero(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<bool>> {
        let rho = self.random_elements(elements.count(), net)?;
        let multiples = self.multiply_elements(elements, &rho, net)?;
        Ok(self.open_elements(&multiples, net)?.iter().map(|opened| *opened == [0; ELEMENT_BYTES]).collect())
    }

    /// Opens r_0 + sum of chi^j r_j. The blind r_0 is random and used once, so this tells nothing about the
    /// r_j.
    fn open_blinded_sum(
        &mut self,
        blind: &Elements,
        elements: &Elements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        if blind.count() != 1 {
            return Err(Error::misuse("the check of a mask is blinded by one element"));
        }
        let sum = match elements.count() {
            0 => blind.clone(),
            count => blind.add(&elements.weighted_sums(&powers(chi, count))),
        };
        let opened = self.open_elements(&sum, net)?;
        opened.first().copied().ok_or_else(|| Error::misuse("no element was opened"))
    }
}
