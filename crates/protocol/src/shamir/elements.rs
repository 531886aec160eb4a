//! Shared elements of GF(2^128): conversion from bytes, products, the zero test, openings.
//!
//! A sharing is a polynomial over GF(2^128) at the images of the parties' points ([`Gf128::embed`]), of
//! degree t; so the polynomials f_A of pseudorandom sharing ([`super::prss`]) and the Lagrange coefficients
//! are those of GF(2^8), embedded.
//!
//! Adversary: passive, at most t < n/2 parties, static. Against an active adversary, below a third, products
//! and openings are those of [`super::active`]. The corrupt t parties miss the key of exactly one set A, the
//! complement of theirs. Its part r_A is uniform to them, and so are z_(A,1) .. z_(A,t); x f_A .. x^t f_A
//! span the polynomials of degree 2t that vanish at 0 and at their points. Each function explains why what it
//! opens reveals nothing.
//!
//! An operation on an element counts as one, like an operation on a byte, and sends 16 bytes to every peer.

#[cfg(test)]
mod tests;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::gf128;
use polyclave_kernels::transpose::rows_to_blocks;

use super::arithmetic::Arithmetic;
use super::passive::{Passive, receive_from_peers};
use super::security::AdversaryModel;
use super::setup::point;
use crate::interface::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::{Error, Party, PartySet, Result};

impl<S: AdversaryModel> Arithmetic<S> {
    /// Random elements. Local.
    pub(super) fn pseudorandom_elements(&mut self, count: usize) -> Elements {
        let parts = self.prss.element_parts(count);
        self.elements_of_parts(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), count)
    }

    /// The elements whose parts are `parts[k]` for the k-th set this party is in, element after element.
    /// Local. Sharing the bytes of these parts byte by byte gives the same values.
    pub(super) fn elements_of_parts(&self, parts: &[&[u8]], count: usize) -> Elements {
        let mut elements = Elements::zero(count);
        self.prss.add_elements_of_parts(parts, &mut elements.shares);
        elements
    }

    /// From shares of bytes, byte i of all lanes in row i of 16, to one element a lane. One opening an
    /// element, one round.
    ///
    /// The parties open c = x + r, byte by byte; the element is c + \[r\]. The opened polynomials have degree
    /// t. Any t parties know them at their own points, which leaves one coefficient, masked by r_A. The other
    /// use of r_A, the sharing of the element, stays closed: its polynomial is again determined by r_A and by
    /// what those parties know.
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
        Ok(self.elements_of_parts(&parts, lanes).add_to_shares(public.as_chunks().0))
    }
}

/// Fewer than n/2 parties may be corrupted, and only passively. Products are opened as sharings of degree 2t.
impl ElementArithmetic for Arithmetic<Passive> {
    fn random_elements(&mut self, count: usize, _: &mut dyn Net) -> Result<Elements> {
        Ok(self.pseudorandom_elements(count))
    }

    /// Adds a constant polynomial.
    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        a.add_to_shares(public)
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        self.open_element_products(a.multiply(&b.shares), net)
    }

    /// Opens only the sum of the local products: it is a sharing of degree 2t like each of them, so one
    /// opening is enough.
    fn inner_product(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        let mut sum = Elements::zero(1);
        gf128::weighted_sums(&mut sum.shares, &a.shares, &b.shares);
        self.open_element_products(sum, net)
    }

    /// Of a polynomial of degree t, any t parties know t points, and now the value: nothing else is revealed.
    /// One opening an element, one round.
    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.counts().openings += elements.count() as u64;
        self.open_element_shares(elements, net)
    }

    /// Adds a fresh zero sharing of degree 2t. Whoever gets all of these learns a polynomial that is uniform
    /// except for its value at 0 (and, if t parties tell the client what they hold, except for what those
    /// know already).
    fn elements_for_client(&mut self, elements: &Elements, _: &mut dyn Net) -> Result<Vec<u8>> {
        self.counts().openings += elements.count() as u64;
        Ok(self.blinded_shares(elements))
    }

    /// Not counted as an opening: the client does not learn a value that the parties computed.
    fn random_for_client(&mut self, _: &mut dyn Net) -> Result<(Elements, Vec<u8>)> {
        let random = self.pseudorandom_elements(1);
        let message = self.blinded_shares(&random);
        Ok((random, message))
    }

    /// One round, not two: the product is opened as a sharing of degree 2t.
    fn is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        element.same_count(&Elements::zero(1))?;
        Ok(self.open_multiple(element, net)? == [[0; ELEMENT_BYTES]])
    }
}

impl Arithmetic<Passive> {
    /// Sends every serving party the same shares and recombines. All shares are used: they determine
    /// polynomials of degree 2t and of degree t alike.
    fn open_element_shares(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        let shares = &elements.shares[..];
        if shares.is_empty() {
            return Ok(Vec::new());
        }
        self.counts().rounds += 1;
        let out: Vec<&[u8]> = self.to_peers(|_| shares);
        receive_from_peers(&mut self.incoming, self.me, self.serving, shares.len(), &out, net)?;
        let share_of = |p: Party| if p == self.me { shares } else { &self.incoming[p.index()][..] };
        combine_elements(self.serving, &self.of_serving(share_of))
    }

    /// Turns sharings of degree 2t into sharings of degree t. The parties open c = z + r plus a zero sharing
    /// of degree 2t. Of its 2t + 1 coefficients t parties know t combinations, by their own points; r_A masks
    /// the value and the z_(A,k) the other t, so the opened polynomial is uniform to them. The result is c +
    /// \[r\].
    fn open_element_products(&mut self, mut products: Elements, net: &mut dyn Net) -> Result<Elements> {
        let masks = self.pseudorandom_elements(products.count());
        products.add_assign(&masks);
        self.prss.add_zero_elements(&mut products.shares);
        self.counts().multiplications += products.count() as u64;
        let opened = self.open_element_shares(&products, net)?;
        Ok(masks.add_to_shares(&opened))
    }

    /// Opens a random multiple. The zero sharing of degree 2t makes the other coefficients uniform too. So
    /// only the multiple is learnt: 0 if the element is 0, and uniform otherwise, because the factor is
    /// uniform (to t parties, by r_A).
    fn open_multiple(&mut self, element: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        let factor = self.pseudorandom_elements(1);
        let mut multiple = element.multiply(&factor.shares);
        self.prss.add_zero_elements(&mut multiple.shares);
        self.counts().multiplications += 1;
        self.open_element_shares(&multiple, net)
    }

    /// Sends the shares plus a fresh zero sharing of degree 2t.
    fn blinded_shares(&mut self, elements: &Elements) -> Vec<u8> {
        let mut message = elements.shares.to_vec();
        self.prss.add_zero_elements(&mut message);
        message
    }
}

/// The values of elements from the messages of all serving parties, in order. They are right only if there
/// are enough of them to determine the polynomials.
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
