//! The TinyTable protocols with their parameters, and what a party keeps between sessions.

use std::marker::PhantomData;

use super::commitments::Commitments;
use super::preprocessing::{FromBits, PreprocessingMethod};
use super::{Macs, Maker, TinyTable, Worth};
use crate::authenticated::MacKey;
use crate::coins;
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, ProtocolConfig};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::tinyot::{Kappa, Key, TinyOt};
use crate::{Error, Party, PartySet, Result};

/// What deals both parties their tables, from a seed that both know. The laboratory has one, to measure what
/// follows.
pub trait TableDealer: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// A seed that both parties have from now on.
    fn agree_on_seed(&self, net: &mut dyn Net) -> Result<[u8; 32]>;

    /// This party's key.
    fn key(&self, seed: &[u8; 32], me: Party) -> Key;

    /// The dealer's side of one stream, and what checks the commitments that it makes.
    fn dealt(
        &self,
        macs: Macs,
        seed: &[u8; 32],
        label: &[u8],
        me: Party,
    ) -> (Box<dyn Maker>, Option<Box<dyn Commitments>>);
}

/// Where tables come from.
#[derive(Clone, Copy)]
pub enum Preprocessing {
    /// From authenticated bits ([`crate::tinyot`]).
    TinyOt {
        /// How tables of more than two bits are made of them.
        method: PreprocessingMethod,
        /// Statistical security of triples.
        kappa: Kappa,
        /// The expansion of oblivious transfer: 1, 2, 4, 5, 6 or 8.
        expansion: usize,
    },
    /// A dealer.
    Dealt(&'static dyn TableDealer),
}

impl Preprocessing {
    /// Whether neither party knows more of the material than its own share.
    fn is_secure(self) -> bool {
        match self {
            Preprocessing::TinyOt { .. } => true,
            Preprocessing::Dealt(_) => false,
        }
    }
}

impl std::fmt::Display for Preprocessing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Preprocessing::TinyOt { method, kappa, expansion } => {
                write!(f, "{} with kappa {} and expansion {expansion}", method.name(), kappa.bits())
            }
            Preprocessing::Dealt(dealer) => f.write_str(dealer.name()),
        }
    }
}

/// Scrambled tables between two parties. `R` says whether outputs are verified.
pub struct TinyTableConfig<R> {
    macs: Macs,
    preprocessing: Preprocessing,
    worth: PhantomData<fn() -> R>,
}

/// What a party keeps between sessions: its key, and the source of its tables.
pub struct Setup {
    key: Key,
    root: Root,
}

enum Root {
    /// Set up once, so that both parties' keys are the same in all sessions.
    TinyOt(Box<TinyOt>),
    Dealer([u8; 32]),
}

impl<R: Worth> TinyTableConfig<R> {
    /// An error if `R` does not fit the variant, or if there is no such preprocessing for it.
    pub fn new(macs: Macs, preprocessing: Preprocessing) -> Result<Self> {
        let name = macs.protocol();
        if !R::allows(macs) {
            return Err(Error::Misuse(format!("outputs of {name} are worth something else")));
        }
        if macs == Macs::Minimac && preprocessing.is_secure() {
            return Err(Error::Misuse(format!(
                "{name} has no preprocessing: what it commits to comes from a dealer"
            )));
        }
        Ok(TinyTableConfig { macs, preprocessing, worth: PhantomData })
    }
}

impl<R: Worth> ProtocolConfig for TinyTableConfig<R> {
    type Setup = Setup;
    type Session = TinyTable<R>;

    fn name(&self) -> &'static str {
        self.macs.protocol()
    }

    fn parties(&self) -> usize {
        2
    }

    fn adversary(&self) -> Adversary {
        if R::VERIFIED { Adversary::Abort } else { Adversary::Passive }
    }

    fn promise(&self) -> String {
        let bits = match self.preprocessing {
            Preprocessing::TinyOt { kappa, .. } => self.macs.security_bits().min(kappa.bits()),
            Preprocessing::Dealt(_) => self.macs.security_bits(),
        };
        let promise = match self.macs {
            Macs::None => {
                "passive, one of two parties: both are trusted to run the protocol unmodified".into()
            }
            _ => format!(
                "active, static, one of two parties: secure with abort, statistical error 2^-{bits} for each check; no fairness"
            ),
        };
        match self.preprocessing {
            Preprocessing::TinyOt { .. } => promise,
            Preprocessing::Dealt(dealer) => format!(
                "insecure with material from {}, which either party could impersonate; with real material {promise}",
                dealer.name()
            ),
        }
    }

    fn verifies(&self) -> bool {
        self.adversary() != Adversary::Passive && self.preprocessing.is_secure()
    }

    fn needs_dealer(&self) -> bool {
        !self.preprocessing.is_secure()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters
            .with("protocol", self.name().as_bytes())
            .with("preprocessing", self.preprocessing.to_string().as_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup> {
        if net.parties() != 2 || net.members().len() != 2 {
            let connected = net.members().len();
            return Err(Error::Misuse(format!("{} runs between two parties, not {connected}", self.name())));
        }
        match self.preprocessing {
            Preprocessing::TinyOt { kappa, expansion, .. } => {
                let key = MacKey::generate(net)?;
                let label = coins::toss(b"set-up of scrambled tables", net)?;
                let tinyot = TinyOt::setup(&label, &key, kappa, expansion, net)?;
                Ok(Setup { key, root: Root::TinyOt(Box::new(tinyot)) })
            }
            Preprocessing::Dealt(dealer) => {
                let seed = dealer.agree_on_seed(net)?;
                Ok(Setup { key: dealer.key(&seed, net.me()), root: Root::Dealer(seed) })
            }
        }
    }

    fn join(&self, setup: &Setup, stream: Stream, serving: PartySet) -> Result<TinyTable<R>> {
        if serving != PartySet::all(2) {
            return Err(Error::Misuse(format!("{serving} serve, but both parties have to")));
        }
        let label = stream.label();
        let (maker, commitments): (Box<dyn Maker>, _) = match (&setup.root, self.preprocessing) {
            (Root::TinyOt(tinyot), Preprocessing::TinyOt { method, .. }) => {
                let source = Box::new(tinyot.fork(&label));
                (Box::new(FromBits::new(method, self.macs, setup.key.clone(), &stream, source)), None)
            }
            (Root::Dealer(seed), Preprocessing::Dealt(dealer)) => {
                dealer.dealt(self.macs, seed, &label, setup.key.me())
            }
            _ => return Err(Error::misuse("the setup was made for another preprocessing")),
        };
        Ok(TinyTable::new(self.macs, setup.key.clone(), &stream, maker, commitments))
    }
}
