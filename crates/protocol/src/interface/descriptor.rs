//! What is known about a protocol before it runs: its name, which adversary it tolerates, for how many
//! parties it is, and its options. Each protocol's folder exports one [`Descriptor`], or one for each of its
//! variants; [`catalog`](crate::catalog) lists them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::interface::any::{AnyProtocolConfig, AnyServiceConfig};
use crate::interface::protocol::Adversary;
use crate::interface::stock::{Levels, Transfers};
use crate::{Error, Result};

/// One protocol, as users choose it.
#[derive(Clone)]
pub struct Descriptor {
    /// Its name on the command line and in files.
    pub name: &'static str,
    /// One line for people: how it computes.
    pub summary: &'static str,
    /// Which adversary it tolerates.
    pub adversary: Adversary,
    /// The numbers of parties for which it can run.
    pub parties: RangeInclusive<usize>,
    /// The default number of parties.
    pub usual_parties: usize,
    /// How many of them may be corrupt together.
    pub threshold: Threshold,
    /// Its options.
    pub options: &'static [Choice],
    /// Whether it looks tables up bit by bit, so that a cipher is best given to it as gates.
    pub takes_gates: bool,
    /// The protocol with its parameters.
    pub config: fn(&Parameters) -> Result<AnyProtocolConfig>,
    /// How nodes serve with it; none if they cannot.
    pub serving: Option<Serving>,
}

/// How nodes serve with a protocol.
#[derive(Clone)]
pub struct Serving {
    /// Advice for the choice of a cluster's protocol: which nodes have to be there, and what limits a
    /// request.
    pub advice: &'static str,
    /// The usual levels of the stock.
    pub stock: Levels,
    /// Bytes a second of a long stream under AES-128 in `gcm`, as measured with all nodes on two idle cores
    /// (docs/benchmarks.md); none if that was not measured. People are told it before they wait.
    pub stream_bytes_a_second: Option<u32>,
    /// The protocol with which any two of three nodes go on with the keys while the third one is away; none
    /// if they do not.
    pub standby: Option<&'static str>,
    /// The protocol for a number of nodes and a threshold.
    pub config: fn(usize, usize) -> Result<AnyServiceConfig>,
    /// The protocol for a number of nodes, with transfers that send less; none if it has no choice of them.
    pub with_transfers: Option<fn(usize, Transfers) -> Result<AnyServiceConfig>>,
}

/// How many parties may be corrupt together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// Fewer than half; fewer can be chosen.
    Minority,
    /// Fewer than a third; fewer can be chosen.
    FewerThanAThird,
    /// All but one; nothing else can be chosen.
    AllButOne,
}

/// An option of a protocol.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is chosen, for people.
    pub summary: &'static str,
    /// What can be chosen.
    pub values: fn() -> Vec<&'static str>,
    /// The default; none if the user has to choose.
    pub default: Option<&'static str>,
}

/// The parameters that were chosen for a protocol. They fit its [`Descriptor`].
pub struct Parameters {
    /// Number of parties.
    pub parties: usize,
    /// How many parties may be corrupt together.
    pub threshold: usize,
    values: Vec<(&'static str, String)>,
}

impl Threshold {
    /// The largest threshold for this number of parties.
    pub fn most(self, parties: usize) -> usize {
        match self {
            Threshold::Minority => parties.saturating_sub(1) / 2,
            Threshold::FewerThanAThird => parties.saturating_sub(1) / 3,
            Threshold::AllButOne => parties.saturating_sub(1),
        }
    }

    /// The threshold that was asked for, or else the largest. An error if there is no choice. The protocol
    /// itself checks whether the threshold is too large.
    fn of(self, protocol: &str, parties: usize, asked: Option<usize>) -> Result<usize> {
        let most = self.most(parties);
        match asked {
            Some(asked) if self == Threshold::AllButOne && asked != most => Err(Error::Misuse(format!(
                "{protocol} withstands all parties but one: the threshold of {parties} parties is {most}, not {asked}; leave it out"
            ))),
            asked => Ok(asked.unwrap_or(most)),
        }
    }
}

impl Parameters {
    /// The value of an option of the protocol.
    ///
    /// # Panics
    /// If its [`Descriptor`] has no such option.
    pub fn value(&self, option: &str) -> &str {
        let value = self.values.iter().find(|(name, _)| *name == option);
        value
            .map(|(_, value)| value.as_str())
            .unwrap_or_else(|| panic!("{option} is an option of the protocol"))
    }

    /// The value of an option, parsed.
    pub fn parsed<T: FromStr>(&self, option: &str) -> Result<T> {
        let value = self.value(option);
        value.parse().map_err(|_| Error::Misuse(format!("{option} cannot be '{value}'")))
    }
}

impl Descriptor {
    /// The option with this name.
    pub fn option(&self, name: &str) -> Option<&'static Choice> {
        self.options.iter().find(|option| option.name == name)
    }

    /// The protocol for this number of parties, with the values chosen for its options.
    pub fn config(
        &self,
        parties: Option<usize>,
        threshold: Option<usize>,
        chosen: &[(&str, &str)],
    ) -> Result<AnyProtocolConfig> {
        (self.config)(&self.parameters(parties, threshold, chosen)?)
    }

    /// The chosen values, and defaults for the others. The error says which value does not fit the protocol.
    pub fn parameters(
        &self,
        parties: Option<usize>,
        threshold: Option<usize>,
        chosen: &[(&str, &str)],
    ) -> Result<Parameters> {
        let parties = parties.unwrap_or(self.usual_parties);
        if !self.parties.contains(&parties) {
            return Err(Error::Misuse(format!(
                "{} runs among {}, not {parties}",
                self.name,
                self.party_range()
            )));
        }
        if let Some((unknown, _)) = chosen.iter().find(|(name, _)| self.option(name).is_none()) {
            let own: Vec<String> = self.options.iter().map(|option| format!("--{}", option.name)).collect();
            let own = if own.is_empty() { "none".into() } else { own.join(", ") };
            return Err(Error::Misuse(format!(
                "{} has no option --{unknown}; of these options it has {own}",
                self.name
            )));
        }
        let value = |option: &'static Choice| -> Result<(&'static str, String)> {
            let asked = chosen.iter().find(|(name, _)| *name == option.name).map(|(_, value)| *value);
            let values = (option.values)();
            match asked.or(option.default) {
                Some(value) if values.contains(&value) => Ok((option.name, value.to_owned())),
                Some(value) => Err(Error::Misuse(format!(
                    "{} has no {} '{value}'; choose one of {}",
                    self.name,
                    option.name,
                    values.join(", ")
                ))),
                None => Err(Error::Misuse(format!(
                    "{} needs --{}; choose one of {}",
                    self.name,
                    option.name,
                    values.join(", ")
                ))),
            }
        };
        let values = self.options.iter().map(value).collect::<Result<_>>()?;
        Ok(Parameters { parties, threshold: self.threshold.of(self.name, parties, threshold)?, values })
    }

    /// Whether nodes can serve with it.
    pub fn serves(&self) -> bool {
        self.serving.is_some()
    }

    /// The protocol as nodes serve with it.
    pub fn service(&self, nodes: usize, threshold: usize) -> Result<AnyServiceConfig> {
        let Some(serving) = &self.serving else {
            return Err(Error::Misuse(format!("nodes cannot serve with {}", self.name)));
        };
        if !self.parties.contains(&nodes) {
            return Err(Error::Misuse(format!(
                "{} runs among {}, not {nodes}",
                self.name,
                self.party_range()
            )));
        }
        (serving.config)(nodes, self.threshold.of(self.name, nodes, Some(threshold))?)
    }

    /// The same with these transfers.
    pub fn service_with(
        &self,
        nodes: usize,
        threshold: usize,
        transfers: Transfers,
    ) -> Result<AnyServiceConfig> {
        let usual = self.service(nodes, threshold)?;
        match self.serving.as_ref().and_then(|serving| serving.with_transfers) {
            _ if transfers == Transfers::Quick => Ok(usual),
            Some(config) => config(nodes, transfers),
            None => Err(Error::Misuse(format!("{} has no choice of transfers", self.name))),
        }
    }

    /// The numbers of parties, for people: "3 to 9 parties".
    pub fn party_range(&self) -> String {
        match (self.parties.start(), self.parties.end()) {
            (least, most) if least == most => format!("{least} parties"),
            (least, most) => format!("{least} to {most} parties"),
        }
    }
}

impl fmt::Display for Adversary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Adversary::Passive => "passive",
            Adversary::Abort => "active, with abort",
            Adversary::GuaranteedOutput => "active, with guaranteed output",
        })
    }
}
