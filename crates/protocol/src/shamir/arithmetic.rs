//! The arithmetic of shared vectors that passive and active Shamir sharing have in common: the serving
//! parties, and the state of one party in one session. The adversary decides how values are opened and
//! multiplied ([`super::security`]).
//!
//! Every elementary operation sends one byte to every peer, or two (Damgard and Keller 2010, section 3.2).
//!
//! # Who serves
//! Shares belong to the whole cluster of n parties. Any 2t + 1 of them, or more, can serve a session.
//!
//! * Correctness: recombined values have degree 2t at most, so the shares of any 2t + 1 parties determine
//!   them. The Lagrange coefficients are those of the serving set. Resharing gives shares to the serving
//!   parties, by polynomials of degree t, and these shares are not used outside the session (all n parties
//!   together made everything that is stored).
//! * Pseudorandom sharing: for its share of the sum of r_A f_A, party p needs only the r_A of the sets to
//!   which p belongs, because f_A is 0 at all other parties. So it does not matter which parties are absent.
//! * Secrecy: t parties, serving or not, lack the key of the set A that is their complement. All of its n - t
//!   parties are honest, and any 2t + 1 serving parties include at least t + 1 of them. r_A and the t zero
//!   sharings of A stay unknown to the t parties, so an opened polynomial is random except for its value at 0
//!   and at their points. That is a statement about the polynomial; it does not matter at which points it was
//!   opened.
//! * Two sessions never draw the same values, even though two serving sets may have no party in common (for
//!   n >= 4t + 2), because the session id hashes the set and a fresh nonce of every member.

use polyclave_cipher::Matrix;
use polyclave_field::Gf256;
use polyclave_kernels::affine::{Map, Term};
use zeroize::Zeroizing;

use super::opening::{Opened, Opening};
use super::prss::Prss;
use super::security::AdversaryModel;
use super::setup::{Setup, Structure, point};
use crate::interface::net::Net;
use crate::interface::session::Stream;
use crate::interface::tally::{Counts, Phase, Tally};
use crate::pool::{Pool, Shares};
use crate::{Error, Party, PartySet, Result};

/// One party's arithmetic in one session and stream.
pub struct Arithmetic<S> {
    pub(super) prss: Prss,
    /// See [`Stream::label`].
    pub(super) stream: [u8; 40],
    pub(super) me: Party,
    pub(super) structure: Structure,
    /// The parties that take part, this one included.
    pub(super) serving: PartySet,
    /// Multiplication by every constant.
    pub(super) scalars: Vec<Map>,
    pub(super) tally: Tally,
    pub(super) phase: Phase,
    pub(super) pool: Pool,
    /// What differs between adversaries.
    pub(super) security: S,
    pub(super) outgoing: Vec<Zeroizing<Vec<u8>>>,
    pub(super) incoming: Vec<Zeroizing<Vec<u8>>>,
}

impl<S: AdversaryModel> Arithmetic<S> {
    pub(super) fn new(setup: &Setup, stream: Stream, serving: PartySet) -> Result<Arithmetic<S>> {
        setup.structure.check_serving(serving)?;
        if stream.serving() != serving || !serving.contains(setup.me) {
            let (me, agreed) = (setup.me, stream.serving());
            return Err(Error::Misuse(format!("{me} joins with {serving}, but the session is of {agreed}")));
        }
        let structure = setup.structure;
        let parties = structure.parties();
        Ok(Arithmetic {
            security: S::new(setup, &stream, serving)?,
            prss: Prss::new(setup, &stream.label()),
            stream: stream.label(),
            me: setup.me,
            structure,
            serving,
            scalars: (0..=255).map(|c| scalar(Gf256(c))).collect(),
            tally: Tally::default(),
            phase: Phase::Preprocessing,
            pool: Pool::default(),
            outgoing: vec![Zeroizing::default(); parties],
            incoming: vec![Zeroizing::default(); parties],
        })
    }

    /// Opens shared values that are uniformly random or meant to be known. One operation a value, one round.
    pub(super) fn open_plain(&mut self, shares: &[u8], net: &mut dyn Net) -> Result<Shares> {
        self.counts().openings += shares.len() as u64;
        let mut public = self.pool.take(shares.len());
        S::open(self, shares, &mut public, net)?;
        Ok(public)
    }

    /// Opens shared vectors under fresh masks; all images of them that are wanted follow locally. One
    /// operation a value, one round.
    pub(super) fn open_masked(&mut self, openings: Vec<Opening<'_>>, net: &mut dyn Net) -> Result<Opened> {
        S::open_masked(self, openings, net)
    }

    /// Products of shared vectors of equal lengths. One operation a product, one round.
    pub(super) fn multiply(&mut self, products: &[(&[u8], &[u8])], net: &mut dyn Net) -> Result<Vec<Shares>> {
        S::multiply(self, products, net)
    }

    /// Reveals shared values to one party only; `None` for the others.
    pub(super) fn reveal_to(
        &mut self,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        self.check_serves(owner)?;
        let counts = self.counts();
        counts.openings += shares.len() as u64;
        counts.rounds += 1;
        S::reveal_to(self, owner, shares, net)
    }

    /// The counts of the current phase.
    pub(super) fn counts(&mut self) -> &mut Counts {
        self.tally.of(self.phase)
    }

    pub(super) fn check_serves(&self, party: Party) -> Result<()> {
        match self.serving.contains(party) {
            true => Ok(()),
            false => Err(Error::misuse(format!("{party} takes no part: {} serve", self.serving))),
        }
    }

    /// In the order of the serving parties, like the coefficients of recombination.
    pub(super) fn of_serving<'a, T>(&'a self, f: impl Fn(Party) -> T + 'a) -> Vec<T> {
        self.serving.iter().map(f).collect()
    }

    /// What goes to every peer that serves, and nothing for the others.
    pub(super) fn to_peers<'a>(&self, message: impl Fn(Party) -> &'a [u8]) -> Vec<&'a [u8]> {
        let is_peer = |p: Party| p != self.me && self.serving.contains(p);
        Party::all(self.structure.parties()).map(|p| if is_peer(p) { message(p) } else { &[] }).collect()
    }
}

/// The coefficients that make a polynomial at 0 from its values at the points of these parties, in their
/// order.
pub(super) fn recombination(parties: PartySet) -> Vec<Map> {
    let points: Vec<Gf256> = parties.iter().map(point).collect();
    Gf256::lagrange(&points, Gf256::ZERO).into_iter().map(scalar).collect()
}

pub(super) fn scalar(c: Gf256) -> Map {
    Map::new(Matrix::scalar(c.0).columns())
}

pub(super) fn terms<'a>(sources: Vec<&'a [u8]>, maps: &'a [Map]) -> Vec<Term<'a>> {
    sources.into_iter().zip(maps).map(|(src, map)| Term { src, map }).collect()
}

/// Changes the length of a buffer that is reused; a new allocation leaves no unwiped one behind.
pub(super) fn resize(buffer: &mut Zeroizing<Vec<u8>>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Zeroizing::new(Vec::with_capacity(len));
    }
    buffer.resize(len, 0);
}
