//! The protocols, and the state that a party keeps for them: the keys of pseudorandom sharing.

use std::marker::PhantomData;

use zeroize::{Zeroize, Zeroizing};

use super::active::Active;
use super::passive::Passive;
use super::ring::Ring;
use super::security::AdversaryModel;
use super::{PARTIES, Replicated};
use crate::commitment::commit_and_open;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream, random_bytes};
use crate::retirement::Retirement;
use crate::shamir::{self, Structure};
use crate::{Error, PartySet, Result};

/// Replicated sharing among three parties. One may be corrupt.
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
    /// A key that all three parties have, and no client.
    pub(super) common: Box<Zeroizing<[u8; KEY_BYTES]>>,
    /// Whether a check has failed.
    pub(super) retirement: Retirement,
}

pub(super) const KEY_BYTES: usize = 32;

/// A key to which all parties contribute, by commitments that they compare.
pub(super) fn common_key(name: &str, net: &mut dyn Net) -> Result<Box<Zeroizing<[u8; KEY_BYTES]>>> {
    let mut mine = Zeroizing::new([0; KEY_BYTES]);
    random_bytes(&mut *mine)?;
    let mut parts = commit_and_open(name.as_bytes(), &*mine, net)?;
    let mut hasher = blake3::Hasher::new_derive_key(&format!("polyclave 2026 {name}"));
    for part in &mut parts {
        hasher.update(part);
        part.zeroize();
    }
    Ok(Box::new(Zeroizing::new(*hasher.finalize().as_bytes())))
}

/// Three parties. One may be corrupt.
pub(super) fn structure() -> Structure {
    Structure::new(PARTIES, 1).expect("one of three is a minority")
}

/// What a protocol is called, and what it promises.
pub trait Named {
    const NAME: &'static str;
    const ADVERSARY: Adversary;
    const PROMISE: &'static str;
    /// The first byte of what a node stores: of a setup, a value and elements.
    const SETUP: u8;
    const VALUE: u8;
    const ELEMENTS: u8;
}

impl Named for Passive {
    const NAME: &'static str = "replicated";
    const ADVERSARY: Adversary = Adversary::Passive;
    const PROMISE: &'static str =
        "passive, at most 1 of 3 parties: a single party that runs modified code can extract the key";
    const SETUP: u8 = b'r';
    const VALUE: u8 = b'v';
    const ELEMENTS: u8 = b'e';
}

impl Named for Active {
    const NAME: &'static str = "replicated-active";
    const ADVERSARY: Adversary = Adversary::Abort;
    const PROMISE: &'static str =
        "active with abort, at most 1 of 3 parties: it learns nothing, and results are right or refused";
    const SETUP: u8 = b'R';
    const VALUE: u8 = b'V';
    const ELEMENTS: u8 = b'G';
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

    /// Each key of a pair is between two parties, so nobody can tell two others different keys. To the common
    /// key all contribute, by commitments that they compare.
    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        let keys = shamir::Setup::agree(structure(), net)?;
        let common = common_key("common key of replicated sharing", net)?;
        Ok(Setup { keys, common, retirement: Retirement::default() })
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<Replicated<A>> {
        if serving != PartySet::all(PARTIES) || stream.serving() != serving {
            let fault = format!("{serving} cannot serve: replicated sharing takes all three parties");
            return Err(Error::misuse(fault));
        }
        setup.retirement.refuse_retired()?;
        Ok(Replicated::new(Ring::new(setup, &stream), A::new(setup, &stream)))
    }
}
