//! Products and openings of numbers shared modulo N.
//!
//! # What is opened tells nothing
//! Opened is z + r for a product z, or the final ciphertext c. Let C be the t parties of the adversary and A
//! its complement. Into every opening go A's parts r_A and z_1 .. z_t as (r_A + z_1 x + .. + z_t x^t) f_A;
//! for the opening of c, without r_A. They are used once and uniform modulo N to C. f_A is the product of the
//! (x - c), c a point of C, times a unit. So the sum runs through all polynomials of degree 2t that are 0 at
//! the points of C, with equal probability: what C sees beside its own shares is a uniform polynomial, which
//! hides z and the factors; for c it is uniform among those with c at 0.
//!
//! # What a wrong share does
//! The shares of any 2t + 1 honest parties determine the polynomial of degree 2t. If n > 3t, so many are
//! honest, and every opening is interpolated from 2t + 1 points and compared with all others: up to t wrong
//! shares make a word that is no polynomial's (two polynomials agree in 2t points at most). This finds every
//! wrong share, with certainty, whatever the secrets are, so that an abort tells nothing; and nothing is
//! computed on with it. A cheater may show its error to some parties only: these stop, and no others go on
//! without them. If n <= 3t there is nothing to compare with: parties are trusted to send right shares.

use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, PartySet, Result};
use zeroize::Zeroizing;

use super::parts::{Parts, point};
use super::ring::{Residue, Ring, add, multiply, subtract};

/// One party's arithmetic in one delivery.
pub struct Arithmetic<'a> {
    ring: &'a Ring,
    parts: Parts,
    /// For every set this party is in f_A, x f_A .. x^t f_A at its point.
    weights: Vec<Vec<Residue>>,
    /// What the shares of the first 2t + 1 parties are weighted with to give the value at 0, and the share of
    /// each further one.
    recombination: Vec<Residue>,
    checks: Vec<(Party, Vec<Residue>)>,
}

impl<'a> Arithmetic<'a> {
    /// With parts of this party, not used before.
    pub fn new(ring: &'a Ring, me: Party, parts: Parts) -> Self {
        let (n, t) = (parts.structure().parties(), parts.structure().threshold());
        let weights = parts.held().map(|set| {
            let weight = parts.weight(set, ring);
            (0..=t as u32).map(|k| multiply(&weight, &ring.small(point(me).pow(k)))).collect()
        });
        let weights = weights.collect();
        let enough = 2 * t + 1;
        let at = |x: i64| (0..enough).map(|i| lagrange(ring, enough, i, x)).collect::<Vec<_>>();
        let checks = Party::all(n).skip(enough).map(|p| (p, at(point(p)))).collect();
        Arithmetic { ring, weights, recombination: at(0), checks, parts }
    }

    /// The numbers modulo N.
    pub fn ring(&self) -> &'a Ring {
        self.ring
    }

    /// The parts of a random string ([`Parts::of`]).
    pub fn parts(&self, name: &str, len: usize) -> Vec<(PartySet, Zeroizing<Vec<u8>>)> {
        self.parts.of(name, len)
    }

    /// All sets, with this party's place among its own.
    pub fn sets(&self) -> Vec<Option<usize>> {
        let place = |set| self.parts.held().position(|held| held == set);
        super::sets(self.parts.structure()).map(place).collect()
    }

    /// This party's share of a part of its set number `held`.
    pub fn share_of_part(&self, held: usize, part: &Residue) -> Residue {
        multiply(part, &self.weights[held][0])
    }

    /// Products of shared numbers, pair by pair. One round: opens z + r, and subtracts the shares of r.
    pub fn multiply(&mut self, pairs: &[(&Residue, &Residue)], net: &mut dyn Net) -> Result<Vec<Residue>> {
        let (mut masked, mut masks) = (Vec::with_capacity(pairs.len()), Vec::with_capacity(pairs.len()));
        for (x, y) in pairs {
            let (mask, zero) = self.mask();
            masked.push(add(&multiply(x, y), &add(&mask, &zero)));
            masks.push(mask);
        }
        let opened = self.open(&masked, net)?;
        Ok(opened.iter().zip(&masks).map(|(opened, mask)| subtract(opened, mask)).collect())
    }

    /// Opens a product, to all. One round.
    pub fn open_product(&mut self, x: &Residue, y: &Residue, net: &mut dyn Net) -> Result<Residue> {
        let (_, zero) = self.mask();
        Ok(self.open(&[add(&multiply(x, y), &zero)], net)?.remove(0))
    }

    /// Shares of a random number, of degree t, and of zero, of degree 2t.
    fn mask(&mut self) -> (Residue, Residue) {
        let (mut mask, mut zero) = (self.ring.zero(), self.ring.zero());
        for (drawn, weights) in self.parts.draw(self.ring).zip(&self.weights) {
            mask = add(&mask, &multiply(&drawn[0], &weights[0]));
            for (part, weight) in drawn.iter().zip(weights).skip(1) {
                zero = add(&zero, &multiply(part, weight));
            }
        }
        (mask, zero)
    }

    /// The numbers of which these are shares of degree 2t. Everything here is sent to all.
    fn open(&self, shares: &[Residue], net: &mut dyn Net) -> Result<Vec<Residue>> {
        let (me, n, bytes) = (net.me(), net.parties(), self.ring.bytes());
        let mut message = Vec::with_capacity(bytes * shares.len());
        shares.iter().for_each(|share| self.ring.write(share, &mut message));
        let mut all: Vec<Vec<u8>> =
            Party::all(n).map(|p| if p == me { Vec::new() } else { vec![0; message.len()] }).collect();
        let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[] } else { &message[..] }).collect();
        net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        all[me.index()] = message;

        let mut opened = Vec::with_capacity(shares.len());
        for i in 0..shares.len() {
            let read = |p: Party| self.ring.read(&all[p.index()][i * bytes..][..bytes], p);
            let points: Vec<Residue> = Party::all(n).map(read).collect::<Result<_>>()?;
            let weighted = |weights: &[Residue]| {
                let terms = points.iter().zip(weights);
                terms.fold(self.ring.zero(), |sum, (share, weight)| add(&sum, &multiply(share, weight)))
            };
            if self.checks.iter().any(|(p, weights)| *weighted(weights) != *points[p.index()]) {
                return Err(Error::CheckFailed { what: "shares modulo N, opened by all nodes" });
            }
            opened.push(weighted(&self.recombination));
        }
        Ok(opened)
    }
}

/// The weight of the i-th of the first parties' shares in the value at x.
fn lagrange(ring: &Ring, parties: usize, i: usize, x: i64) -> Residue {
    let others = || Party::all(parties).enumerate().filter(|(j, _)| *j != i).map(|(_, p)| point(p));
    let own = i as i64 + 1;
    ring.quotient(others().map(|other| x - other).product(), others().map(|other| own - other).product())
}
