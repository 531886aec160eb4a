//! Replicated sharing against a party that cheats, secure with abort.
//!
//! Until something is opened, a cheater can do no more than add errors to the products that it sends: everything else is local, and
//! what it sends is masked (Furukawa, Lindell, Nof and Weinstein 2017). So all products are remembered, and proven before anything is
//! opened (Boneh, Boyle, Corrigan-Gibbs, Gilboa and Ishai 2019): `proof.rs`.
//!
//! * **Inputs** have to be sharings, that is, the two parties that have a share must have the same. A cheating owner could give two
//!   parties different shares. So before the first product, digests of all shares that go in are compared ([`Active::compare`]).
//! * **Outputs**: the owner gets the share that it lacks from one of the two parties that have it, and a digest of it from the other. One
//!   of these two is honest, so it is the right share or an error.
//! * **Failure**: a proof that fails ends the session, and every later one under the set-up. It shows that one of two parties cheats,
//!   the prover or the party that helped to verify, but not which. It tells nothing of a secret, because it depends on the errors alone.

mod last_step;
mod products;
mod proof;

use polyclave_cipher::Cells;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::lookup::Round;
use super::ring::{Purpose, Ring, keys, next, previous};
use super::security::AdversaryModel;
use super::shared::Shared;
use super::{PARTIES, Pair, Setup};
use crate::error::EARLIER_CHECK;
use crate::net::Net;
use crate::pool::Shares;
use crate::protocol::Owner;
use crate::release::Checked;
use crate::retirement::Retirement;
use crate::session::Stream;
use crate::unchecked::Checks;
use crate::{Error, Result};
use products::Products;
use proof::Prover;

/// Products that are remembered at most. They take six bytes each, and a proof 100 bytes for each.
const MOST: usize = 1 << 20;

const DIGEST_BYTES: usize = 32;

/// Against a party that cheats.
pub struct Active {
    products: Products,
    prover: Prover,
    /// For digests of the two shares that this party has.
    digests: Pair<Zeroizing<[u8; DIGEST_BYTES]>>,
    /// How many digests there were.
    compared: u64,
    /// Of the proofs of this session.
    checks: Checks,
    /// Whether a proof of this session has ended with an error.
    has_failed: bool,
    retirement: Retirement,
}

impl AdversaryModel for Active {
    type Released = Checked<Cells>;

    fn new(setup: &Setup, stream: &Stream) -> Active {
        Active {
            products: Products::default(),
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

    fn mark(&self, value: &mut Shared) {
        value.unchecked = self.checks.next();
    }

    fn refuse_foreign(&self, value: &Shared) -> Result<()> {
        self.checks.refuse_foreign(&value.unchecked)
    }

    /// Each party sends both others a digest of the share that it has in common with them, under their common key. One round.
    fn compare(&mut self, inputs: &[&Shared], ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        self.retirement.refuse_retired()?;
        ring.counts().rounds += 1;
        let mine = [0, 1].map(|share| self.digest(share, inputs));
        self.compared += 1;
        let peers = [previous(ring.me), next(ring.me)];
        let mut out: [&[u8]; PARTIES] = [&[]; PARTIES];
        let mut theirs = [[0; DIGEST_BYTES]; PARTIES];
        let mut into = theirs.each_mut().map(|digest| &mut digest[..]);
        into[ring.me.index()] = &mut [];
        peers.iter().zip(&mine).for_each(|(peer, digest)| out[peer.index()] = digest);
        net.exchange(&out, &mut into)?;
        match peers.iter().zip(&mine).all(|(peer, mine)| ct_eq(mine, &theirs[peer.index()])) {
            true => Ok(()),
            false => Err(Error::Equivocation { what: "shares of an input" }),
        }
    }

    fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        self.products.zero_share(len, ring)
    }

    fn remember(&mut self, rounds: &[Round<'_>], received: &[u8], ring: &Ring) {
        self.products.remember(rounds, received, &ring.pool);
    }

    fn relieve(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        if self.products.count() < MOST { Ok(()) } else { self.check(ring, net) }
    }

    /// After an error nothing is opened in this session any more: its products are not proven.
    fn check(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        self.retirement.refuse_retired()?;
        if self.has_failed {
            return Err(Error::CheckFailed { what: EARLIER_CHECK });
        }
        let products = std::mem::take(&mut self.products);
        if products.count() > 0 {
            let proven = self.prover.prove(&products, ring, net);
            self.has_failed = proven.is_err();
            if let Err(Error::CheckFailed { .. }) = proven {
                self.retirement.retire();
            }
            proven?;
        }
        self.checks.pass();
        Ok(())
    }

    fn third_share(
        &mut self,
        value: &Shared,
        to: Owner,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        self.retirement.refuse_retired()?;
        if self.has_failed || value.unchecked.is_pending() {
            return Err(Error::misuse("a shared value is to be released before it was verified"));
        }
        let third = ring.first_to_owners(value.share(0), to, net)?;
        let digest = ring.second_to_owners(blake3::hash(value.share(1)).as_bytes(), to, net)?;
        match (third, digest) {
            (Some(third), Some(digest)) if ct_eq(blake3::hash(&third).as_bytes(), &digest) => Ok(Some(third)),
            (Some(_), _) => Err(Error::Equivocation { what: "shares of an output" }),
            _ => Ok(None),
        }
    }
}

impl Active {
    /// Of one of this party's two shares of all values, in this comparison.
    fn digest(&self, share: usize, values: &[&Shared]) -> [u8; DIGEST_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.digests[share]);
        hasher.update(&self.compared.to_le_bytes());
        for value in values {
            let row = value.share(share);
            hasher.update(&(row.len() as u64).to_le_bytes()).update(row);
        }
        *hasher.finalize().as_bytes()
    }
}
