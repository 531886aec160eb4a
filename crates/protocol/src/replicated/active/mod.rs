//! Replicated sharing against a party that cheats, secure with abort.
//!
//! Until something is opened, a cheater can do no more than add errors to the products that it sends:
//! everything else is local, and what it sends is masked (Furukawa, Lindell, Nof and Weinstein 2017). So all
//! products are remembered, and proven before anything is opened (Boneh, Boyle, Corrigan-Gibbs, Gilboa and
//! Ishai 2019): `proof.rs`.
//!
//! * **Inputs** have to be sharings, that is, the two parties that have a share must have the same. A
//!   cheating owner could give two parties different shares, and a careless caller different public values.
//!   Then a proof would show a linear function of a share to the third party. So before the first product,
//!   digests of all shares that go in are compared ([`Active::compare`]).
//! * **Outputs**: the owner gets the share that it lacks from one of the two parties that have it, and a
//!   digest of it from the other. One of these two is honest, so it is the right share or an error.
//! * **After an error** two honest parties may remember different products, for example if a message came to
//!   one of them only. A proof would then show the third party a linear function of a share. So after any
//!   error nothing is proven or released in the session, and the coins of a proof are bound to the number of
//!   products and of messages before it ([`Active::give_up`], [`Products::rounds`]).
//! * **Failure**: a check that fails ends the session, and every other one under the setup at its next check.
//!   A party that follows the protocol knows that one of the two others cheats, but not which. A check tells
//!   nothing of a secret, because it depends on the errors alone.

#[cfg(test)]
mod cheaters;
mod client;
mod interpolation;
mod last_step;
mod products;
mod proof;
mod rows;
mod sacrifice;
mod zero;

use polyclave_cipher::Cells;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::lookup::Round;
use super::registers::Registers;
use super::ring::{Purpose, Ring, keys, next, previous};
use super::security::AdversaryModel;
use super::shared::Shared;
use super::{PARTIES, Pair, Setup};
use crate::error::EARLIER_CHECK;
use crate::interface::elements::Elements;
use crate::interface::net::Net;
use crate::interface::protocol::Owner;
use crate::interface::release::Checked;
use crate::interface::session::Stream;
use crate::pool::Shares;
use crate::retirement::Retirement;
use crate::unchecked::{Checks, Unchecked};
use crate::{Error, Result};
use products::Products;
use proof::Prover;

/// When so many products are remembered they are proven. Those of the round that reaches it are among them,
/// and what its lookups still need. With what their proof takes, that is 14 MB of memory for AES. Half as
/// many take 10 MB, and cost a twentieth of the rate.
const MAX: usize = 1 << 20;

/// The same for products of elements.
const MAX_ELEMENTS: usize = 1 << 13;

const DIGEST_BYTES: usize = 32;

/// Against a party that cheats.
pub struct Active {
    products: Products,
    /// Of elements of GF(2^128).
    elements: sacrifice::Products,
    prover: Prover,
    /// For digests of the two shares that this party has.
    digests: Pair<Zeroizing<[u8; DIGEST_BYTES]>>,
    /// Of the stream.
    label: [u8; 40],
    /// How many digests there were.
    compared: u64,
    /// Of the proofs of this session.
    checks: Checks,
    /// Whether the session has ended with an error.
    has_failed: bool,
    retirement: Retirement,
}

impl AdversaryModel for Active {
    type Released = Checked<Cells>;

    fn new(setup: &Setup, stream: &Stream) -> Active {
        Active {
            products: Products::default(),
            elements: sacrifice::Products::default(),
            label: stream.label(),
            prover: Prover::new(&setup.keys, stream),
            digests: keys(&setup.keys, stream, Purpose::Digest),
            compared: 0,
            checks: Checks::default(),
            has_failed: false,
            retirement: setup.retirement.clone(),
        }
    }

    fn released(cells: Cells) -> Checked<Cells> {
        Checked::new(cells)
    }

    fn mark(&self, value: &mut Unchecked) {
        *value = self.checks.next();
    }

    fn refuse_foreign(&self, value: &Unchecked) -> Result<()> {
        self.checks.refuse_foreign(value)
    }

    fn refuse_unverified(&self, value: &Unchecked) -> Result<()> {
        self.refuse_failed()?;
        match value.is_pending() {
            true => Err(Error::misuse("a shared value is to be released before it was verified")),
            false => Ok(()),
        }
    }

    /// Each party sends both others a digest of the share that it has in common with them, under their common
    /// key. One round.
    fn compare(
        &mut self,
        registers: &Registers<2>,
        inputs: &[Shared],
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.refuse_failed()?;
        let lanes = (registers.count() as u64).to_le_bytes();
        let context = [&registers.circuit()[..], &lanes].concat();
        let rows: Vec<Pair<&[u8]>> =
            inputs.iter().map(|input| [0, 1].map(|share| input.share(share))).collect();
        self.agree_on(&context, &rows, "shares of an input", ring, net)
    }

    fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        self.products.zero_share(len, ring)
    }

    fn remember(&mut self, rounds: &[Round<'_, 2>], received: &[u8], ring: &Ring) {
        self.products.remember(rounds, received, &ring.pool);
    }

    fn remember_elements(&mut self, factors: [&Elements; 2], products: &Elements) {
        self.elements.remember(factors, products);
    }

    fn relieve(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let few = self.products.count() < MAX && self.elements.count() < MAX_ELEMENTS;
        if few || !self.products.are_whole() { Ok(()) } else { self.check(ring, net) }
    }

    fn check(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        self.refuse_failed()?;
        let proven = self.prove_all(ring, net);
        self.or_retire(proven, ring)?;
        self.checks.pass();
        Ok(())
    }

    fn are_zero(&mut self, elements: &Elements, ring: &mut Ring, net: &mut dyn Net) -> Result<Vec<bool>> {
        self.refuse_failed()?;
        let are_zero = self.zeros(elements, ring, net);
        self.or_retire(are_zero, ring)
    }

    fn give_up(&mut self) {
        self.has_failed = true;
    }

    fn third_share(
        &mut self,
        shares: Pair<&[u8]>,
        to: Owner,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        self.refuse_failed()?;
        let digest = *blake3::hash(shares[1]).as_bytes();
        let (third, digest) = match to {
            Owner::All => {
                let lengths = [shares[0].len(), digest.len()];
                ring.exchange_with_both([&digest, shares[0]], lengths, net)?.map(Some).into()
            }
            Owner::Party(_) => {
                (ring.first_to_owners(shares[0], to, net)?, ring.second_to_owners(&digest, to, net)?)
            }
        };
        match (third, digest) {
            (Some(third), Some(digest)) if ct_eq(blake3::hash(&third).as_bytes(), &digest) => Ok(Some(third)),
            (Some(_), _) => Err(one_of_the_others(ring, "shares of an output")),
            _ => Ok(None),
        }
    }

    /// Its form is in `client.rs`.
    fn message_to_client(&self, shares: Pair<&[u8]>) -> Result<Vec<u8>> {
        self.refuse_failed()?;
        client::message(shares)
    }

    fn combine(messages: [&[u8]; PARTIES]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine(messages)
    }
}

/// Compares digests with those of the party before and of the party behind.
fn are_alike(
    mine: Pair<[u8; DIGEST_BYTES]>,
    theirs: Pair<&[u8]>,
    what: &'static str,
    ring: &Ring,
) -> Result<()> {
    match mine.iter().zip(theirs).all(|(mine, theirs)| ct_eq(mine, theirs)) {
        true => Ok(()),
        false => Err(one_of_the_others(ring, what)),
    }
}

/// What a check shows to a party that knows of itself that it follows the protocol.
fn one_of_the_others(ring: &Ring, what: &'static str) -> Error {
    Error::OneOfTwo { first: previous(ring.me), second: next(ring.me), what }
}

impl Active {
    /// After a failed check no session under this setup goes on.
    pub(super) fn retire(&mut self) {
        self.retirement.retire();
        self.has_failed = true;
    }

    /// After a failed check the setup is retired.
    fn or_retire<T>(&mut self, outcome: Result<T>, ring: &Ring) -> Result<T> {
        match outcome {
            // Another session under the setup has failed: this one has shown nothing.
            Err(error @ Error::CheckFailed { what: EARLIER_CHECK }) => Err(error),
            Err(Error::CheckFailed { what }) => {
                self.retirement.retire();
                Err(one_of_the_others(ring, what))
            }
            Err(error @ Error::OneOfTwo { .. }) => {
                self.retirement.retire();
                Err(error)
            }
            other => other,
        }
    }

    /// Products of bits, and then those of elements that were made of them.
    fn prove_all(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        if !self.products.are_whole() {
            // Those that come later would otherwise belong to none, and nobody would prove them.
            return Err(Error::misuse("products are proven in the middle of a lookup"));
        }
        if self.products.count() > 0 {
            self.prover.prove(&self.products, ring, net)?;
            self.products.forget();
        }
        self.sacrifice(ring, net)
    }

    /// Each two parties compare all shares that both have, by digests under their common key. One round.
    /// `rows` are both shares of each value.
    fn agree_on(
        &mut self,
        context: &[u8],
        rows: &[Pair<&[u8]>],
        what: &'static str,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mine = self.digests_of(context, rows);
        let theirs = ring.swap_with_both([&mine[0], &mine[1]], net)?;
        are_alike(mine, [&theirs[0], &theirs[1]], what, ring)
    }

    /// Digests of all shares that this party has in common with the party before, and with the party behind.
    fn digests_of(&mut self, context: &[u8], rows: &[Pair<&[u8]>]) -> Pair<[u8; DIGEST_BYTES]> {
        let mine = [0, 1].map(|share| {
            let mut hasher = blake3::Hasher::new_keyed(&self.digests[share]);
            hasher.update(&self.compared.to_le_bytes());
            hasher.update(&(context.len() as u64).to_le_bytes()).update(context);
            for row in rows.iter().map(|both| both[share]) {
                hasher.update(&(row.len() as u64).to_le_bytes()).update(row);
            }
            *hasher.finalize().as_bytes()
        });
        self.compared += 1;
        mine
    }

    /// An error if this session has ended with an error, or a check under this setup has failed.
    fn refuse_failed(&self) -> Result<()> {
        self.retirement.refuse_retired()?;
        match self.has_failed {
            true => Err(Error::misuse("a session is used after it has ended with an error")),
            false => Ok(()),
        }
    }
}
