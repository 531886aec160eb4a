//! The protocols, and what a party keeps of them: the keys of pseudorandom sharing.

use std::marker::PhantomData;

use super::active::Active;
use super::passive::Passive;
use super::ring::Ring;
use super::security::AdversaryModel;
use super::{PARTIES, Replicated};
use crate::net::Net;
use crate::protocol::{Adversary, ProtocolConfig};
use crate::retirement::Retirement;
use crate::session::{HandshakeParameters, Stream};
use crate::shamir::{self, Structure};
use crate::{Error, PartySet, Result};

/// Replicated sharing among three parties, of which one may be corrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicatedConfig<A = Passive>(PhantomData<A>);

/// Against a party that cheats.
pub type ReplicatedActiveConfig = ReplicatedConfig<Active>;

impl<A> Default for ReplicatedConfig<A> {
    fn default() -> Self {
        ReplicatedConfig(PhantomData)
    }
}

/// A party's long-lived secrets.
#[derive(Clone)]
pub struct Setup {
    /// Those of Shamir sharing among three: a key for each pair.
    pub(super) keys: shamir::Setup,
    /// Whether a proof has failed.
    pub(super) retirement: Retirement,
}

/// Three parties of which one may be corrupt.
fn structure() -> Structure {
    Structure::new(PARTIES, 1).expect("one of three is a minority")
}

/// What a protocol is called, and what it promises.
pub trait Named {
    const NAME: &'static str;
    const ADVERSARY: Adversary;
    const PROMISE: &'static str;
}

impl Named for Passive {
    const NAME: &'static str = "replicated";
    const ADVERSARY: Adversary = Adversary::Passive;
    const PROMISE: &'static str =
        "passive, at most 1 of 3 parties: a single party that runs modified code can extract the key";
}

impl Named for Active {
    const NAME: &'static str = "replicated-active";
    const ADVERSARY: Adversary = Adversary::Abort;
    const PROMISE: &'static str =
        "active with abort, at most 1 of 3 parties: it learns nothing, and results are right or refused";
}

impl<A: AdversaryModel + Named + Sync> ProtocolConfig for ReplicatedConfig<A> {
    type Setup = Setup;
    type Session = Replicated<A>;

    fn name(&self) -> &'static str {
        A::NAME
    }

    fn parties(&self) -> usize {
        PARTIES
    }

    fn adversary(&self) -> Adversary {
        A::ADVERSARY
    }

    fn promise(&self) -> String {
        A::PROMISE.into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", self.name().as_bytes())
    }

    /// Each key is between two parties, so nobody can tell two others different keys.
    fn set_up(&self, net: &mut dyn Net) -> Result<Setup> {
        let keys = shamir::Setup::agree(structure(), net)?;
        Ok(Setup { keys, retirement: Retirement::default() })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Replicated<A>> {
        if serving != PartySet::all(PARTIES) || stream.serving() != serving {
            let fault = format!("{serving} cannot serve: replicated sharing takes all three parties");
            return Err(Error::misuse(fault));
        }
        setup.retirement.refuse_retired()?;
        Ok(Replicated::new(Ring::new(&setup.keys, &stream), A::new(setup, &stream)))
    }
}
