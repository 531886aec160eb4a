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

use std::ops::Range;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::gf128;
use polyclave_kernels::transpose::rows_to_blocks;
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::security::Security;
use super::setup::point;
use crate::net::Net;
use crate::service::{ELEMENT_BYTES, Element};
use crate::{Error, PartySet, Result};

/// Shares of a vector of elements of GF(2^128); wiped on drop.
#[derive(Clone)]
pub struct Elements {
    /// Element after element.
    shares: Zeroizing<Vec<u8>>,
}

impl<S: Security> Arithmetic<S> {
    /// Random elements. Local.
    pub(super) fn random_elements(&mut self, count: usize) -> Elements {
        let parts = self.prss.element_parts(count);
        self.elements_of_parts(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), count)
    }

    /// The elements whose parts are `parts[k]` for the k-th set this party is in, element after element. Local. The bytes
    /// of those parts, shared byte by byte, have the same values.
    pub(super) fn elements_of_parts(&self, parts: &[&[u8]], count: usize) -> Elements {
        let mut elements = Elements::zero(count);
        self.prss.add_elements_of_parts(parts, &mut elements.shares);
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
        S::open_elements(self, &a.shares, net)
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
        let mut message = a.shares.to_vec();
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

/// All of these are local. Ranges beyond the end, and lengths that do not fit, panic.
impl Elements {
    pub(super) fn zero(count: usize) -> Elements {
        Elements { shares: Zeroizing::new(vec![0; ELEMENT_BYTES * count]) }
    }

    /// Of these shares, element after element.
    pub(super) fn of(shares: Zeroizing<Vec<u8>>) -> Elements {
        Elements { shares }
    }

    pub(super) fn shares(&self) -> &[u8] {
        &self.shares
    }

    pub(super) fn shares_mut(&mut self) -> &mut [u8] {
        &mut self.shares
    }

    /// Number of elements.
    pub(super) fn count(&self) -> usize {
        self.shares.len() / ELEMENT_BYTES
    }

    fn same_count(&self, other: &Elements) -> Result<()> {
        if self.count() == other.count() {
            return Ok(());
        }
        let fault = format!("{} shared elements cannot be multiplied by {}", self.count(), other.count());
        Err(Error::Misuse(fault))
    }

    /// Some of the elements.
    pub(super) fn part(&self, range: Range<usize>) -> Elements {
        let bytes = ELEMENT_BYTES * range.start..ELEMENT_BYTES * range.end;
        Elements { shares: Zeroizing::new(self.shares[bytes].to_vec()) }
    }

    /// One vector after another.
    pub(super) fn join(parts: &[&Elements]) -> Elements {
        // Sized at once: growing would leave copies behind.
        let mut joined = Elements::zero(parts.iter().map(|part| part.count()).sum());
        let mut rest = &mut joined.shares[..];
        for part in parts {
            let (head, tail) = rest.split_at_mut(part.shares.len());
            head.copy_from_slice(&part.shares);
            rest = tail;
        }
        joined
    }

    /// For every `count` public weights the sum of weight_i element_i. There must be elements.
    pub(super) fn weighted_sums(&self, weights: &[Element]) -> Elements {
        let mut sums = Elements::zero(weights.len() / self.count());
        gf128::weighted_sums(&mut sums.shares, weights.as_flattened(), &self.shares);
        sums
    }

    /// Sums, element by element.
    pub(super) fn add(&self, other: &Elements) -> Elements {
        let mut sum = self.clone();
        add_to(&mut sum.shares, &other.shares);
        sum
    }

    /// The sum of all of them.
    pub(super) fn sum(&self) -> Elements {
        let mut sum = Elements::zero(1);
        self.shares.chunks(ELEMENT_BYTES).for_each(|share| add_to(&mut sum.shares, share));
        sum
    }

    /// Adds others, element by element.
    pub(super) fn add_assign(&mut self, other: &Elements) {
        add_to(&mut self.shares, &other.shares);
    }

    /// Adds public values: their sharings are constant.
    pub(super) fn add_public(&self, public: &[Element]) -> Elements {
        let mut sum = self.clone();
        add_to(&mut sum.shares, public.as_flattened());
        sum
    }

    /// What a party stores: the count as eight bytes, little-endian, and the shares.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 + self.shares.len()));
        bytes.extend_from_slice(&(self.count() as u64).to_le_bytes());
        bytes.extend_from_slice(&self.shares);
        bytes
    }

    /// Reads what [`save`](Elements::save) wrote.
    pub(super) fn restore(bytes: &[u8]) -> Result<Elements> {
        let fits = |(count, shares): &(&[u8; 8], &[u8])| {
            shares.len().is_multiple_of(ELEMENT_BYTES)
                && u64::from_le_bytes(**count) == (shares.len() / ELEMENT_BYTES) as u64
        };
        let (_, shares) = bytes.split_first_chunk().filter(fits).ok_or_else(|| {
            Error::misuse("the stored elements are cut off or something else; restore them from a backup")
        })?;
        Ok(Elements { shares: Zeroizing::new(shares.to_vec()) })
    }
}

fn add_to(sum: &mut [u8], term: &[u8]) {
    assert_eq!(sum.len(), term.len(), "terms of other lengths");
    sum.iter_mut().zip(term).for_each(|(sum, term)| *sum ^= term);
}
