//! Shared elements of GF(2^128): conversion from bytes, products, the zero test, openings.
//!
//! A sharing is a polynomial over GF(2^128) at the images of the parties' points ([`Gf128::embed`]), of degree t; so the
//! polynomials f_A of pseudorandom sharing ([`super::prss`]) and the Lagrange coefficients are those of GF(2^8), embedded.
//!
//! Adversary: passive, at most t < n/2 parties, static; what is here and used against an active one, below a third, opens by
//! [`super::active`]. Those t parties miss the key of exactly one set A, the complement
//! of theirs. Its part r_A is uniform to them, and so are z_(A,1) .. z_(A,t); x f_A .. x^t f_A span the polynomials of
//! degree 2t that vanish at 0 and at their points. Each function states why what it opens tells nothing.
//!
//! An operation on an element counts as one, as one on a byte does, and sends 16 bytes to every peer.

#[cfg(test)]
mod tests;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::gf128;
use polyclave_kernels::transpose::rows_to_blocks;

use super::Elements;
use super::arithmetic::Arithmetic;
use super::security::AdversaryModel;
use super::setup::point;
use crate::net::Net;
use crate::service::{ELEMENT_BYTES, Element};
use crate::{Error, PartySet, Result};

impl<S: AdversaryModel> Arithmetic<S> {
    /// Random elements. Local.
    pub(super) fn random_elements(&mut self, count: usize) -> Elements {
        let parts = self.prss.element_parts(count);
        self.elements_of_parts(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), count)
    }

    /// The elements whose parts are `parts[k]` for the k-th set this party is in, element after element. Local. The bytes
    /// of those parts, shared byte by byte, have the same values.
    pub(super) fn elements_of_parts(&self, parts: &[&[u8]], count: usize) -> Elements {
        let mut elements = Elements::zero(count);
        self.prss.add_elements_of_parts(parts, elements.bytes_mut());
        elements
    }

    /// From shares of bytes, byte i of all lanes in row i of 16, to one element a lane. One opening an element, one round.
    ///
    /// Opened is c = x + r, byte by byte; the element is c + \[r\]. The polynomials that are opened have degree t, and t
    /// parties, who know them at their own points, know all but one coefficient; that one is masked by r_A. What r_A
    /// is used for besides, the element sharing, stays closed: its polynomial is again determined by r_A and by what those
    /// parties know.
    pub(super) fn elements_of_bytes(
        &mut self,
        rows: &[u8],
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        if rows.len() != ELEMENT_BYTES * lanes {
            let fault =
                format!("{} bytes are not {ELEMENT_BYTES} rows of {lanes}: no blocks of GCM", rows.len());
            return Err(Error::Misuse(fault));
        }
        let mut blocks = self.pool.take(rows.len());
        rows_to_blocks(rows, lanes, ELEMENT_BYTES, &mut blocks);
        let parts = self.prss.element_parts(lanes);
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let mut masked = self.pool.take(rows.len());
        self.prss.mask_with_parts(&parts, &blocks, &mut masked);
        let mut public = self.pool.take(rows.len());
        self.tally.of(self.phase).openings += lanes as u64;
        S::open(self, &masked, &mut public, net)?;
        Ok(self.elements_of_parts(&parts, lanes).add_public(public.as_chunks().0))
    }

    /// Products, element by element. One multiplication an element, one round.
    pub(super) fn multiply_elements(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        a.same_count(b)?;
        S::multiply_elements(self, a, b, net)
    }

    /// The sum of all products, one element. One round.
    pub(super) fn inner_product(
        &mut self,
        a: &Elements,
        b: &Elements,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        a.same_count(b)?;
        S::inner_product(self, a, b, net)
    }

    /// Opens elements that are meant to be known. One opening an element, one round. Of a polynomial of degree t, t parties
    /// know t points, and the value: it tells them nothing else.
    pub(super) fn open_elements(&mut self, a: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.counts().openings += a.count() as u64;
        S::open_elements(self, a.bytes(), net)
    }

    /// Whether an element is zero; wrong with probability 2^-128. Opens rho times it, for a random shared rho that is used for
    /// nothing else: 0 if the element is, and uniform if it is not, as rho is (to t parties, by r_A).
    pub(super) fn element_is_zero(&mut self, a: &Elements, net: &mut dyn Net) -> Result<bool> {
        a.same_count(&Elements::zero(1))?;
        Ok(S::open_multiple(self, a, net)? == [0; ELEMENT_BYTES])
    }

    /// What this party sends to a client that is to learn elements: shares of them that say nothing about the polynomials
    /// that the parties go on with. One opening an element.
    pub(super) fn reveal_elements(&mut self, a: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.counts().openings += a.count() as u64;
        let mut message = a.bytes().to_vec();
        S::hand_out_elements(self, &mut message, net)?;
        Ok(message)
    }
}

/// The values of elements from what all serving parties, in their order, sent of them. Right only if they are enough to
/// determine the polynomials.
pub(super) fn combine_elements(serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
    let due = messages.first().map_or(0, |m| m.len());
    if messages.is_empty() || messages.len() != serving.len() {
        let fault = format!("{} messages are not one from each of {} parties", messages.len(), serving.len());
        return Err(Error::Misuse(fault));
    }
    let fits = |m: &[u8]| m.len() == due && m.len().is_multiple_of(ELEMENT_BYTES);
    if let Some((peer, message)) = serving.iter().zip(messages).find(|(_, m)| !fits(m)) {
        let detail = format!("{} bytes as shares of {} elements", message.len(), due / ELEMENT_BYTES);
        return Err(Error::Peer { peer, detail });
    }
    let points: Vec<Gf256> = serving.iter().map(point).collect();
    let mut values = vec![[0; ELEMENT_BYTES]; due / ELEMENT_BYTES];
    for (message, coefficient) in messages.iter().zip(Gf256::lagrange(&points, Gf256::ZERO)) {
        gf128::scale_add(values.as_flattened_mut(), message, &Gf128::embed(coefficient).to_bytes());
    }
    Ok(values)
}
