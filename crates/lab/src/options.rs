//! Options that several commands share. The options of each protocol come from the catalog of protocols.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
pub use polyclave_cli::options::{cipher, hexadecimal};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::catalog as protocols;
use polyclave_protocol::descriptor::{Choice, Descriptor};
use serde::{Deserialize, Serialize};

/// The name for evaluating a cipher without any protocol, for comparison.
const CLEARTEXT: &str = "cleartext";

/// A protocol and its parties.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProtocolOptions {
    /// Its name.
    pub protocol: String,
    /// Number of parties, if given.
    pub parties: Option<usize>,
    /// Parties that together learn nothing, if given.
    pub threshold: Option<usize>,
    /// The other options, by name.
    pub chosen: BTreeMap<String, String>,
}

/// How circuits are evaluated.
pub enum Evaluator {
    /// Without any protocol, in the clear.
    Cleartext,
    /// Under a protocol.
    Protocol(AnyProtocolConfig),
}

impl ProtocolOptions {
    /// A protocol among this many parties, with defaults for everything else.
    pub fn named(protocol: &str, parties: usize) -> ProtocolOptions {
        let chosen = BTreeMap::new();
        ProtocolOptions { protocol: protocol.into(), parties: Some(parties), threshold: None, chosen }
    }

    /// The same with a value for one of its options.
    pub fn with(mut self, option: &str, value: impl ToString) -> ProtocolOptions {
        self.chosen.insert(option.into(), value.to_string());
        self
    }

    /// Whether there is no protocol.
    pub fn is_cleartext(&self) -> bool {
        self.protocol.eq_ignore_ascii_case(CLEARTEXT)
    }

    /// The protocol in the catalog.
    pub fn descriptor(&self) -> Result<&'static Descriptor> {
        protocols::find(&self.protocol).with_context(|| {
            let names: Vec<&str> = names().collect();
            format!(
                "there is no protocol '{}' in this version; choose one of {}",
                self.protocol,
                names.join(", ")
            )
        })
    }

    /// The evaluation that these options choose.
    pub fn evaluator(&self) -> Result<Evaluator> {
        match self.is_cleartext() {
            true => Ok(Evaluator::Cleartext),
            false => self.config().map(Evaluator::Protocol),
        }
    }

    /// The protocol with its parameters.
    pub fn config(&self) -> Result<AnyProtocolConfig> {
        ensure!(!self.is_cleartext(), "cleartext has no parties; choose another protocol");
        let chosen: Vec<(&str, &str)> = self.chosen.iter().map(|(name, value)| (&**name, &**value)).collect();
        Ok(self.descriptor()?.config(self.parties, self.threshold, &chosen)?)
    }

    /// Number of parties.
    pub fn parties(&self) -> usize {
        let usual = || self.descriptor().map_or(1, |descriptor| descriptor.usual_parties);
        self.parties.unwrap_or_else(usual)
    }

    /// The value of an option, as chosen or by default; `None` if the protocol does not have it.
    pub fn value(&self, option: &str) -> Option<&str> {
        let own = self.descriptor().ok()?.option(option)?;
        self.chosen.get(option).map(String::as_str).or(own.default)
    }

    /// Each of its options with its value.
    pub fn values(&self) -> Vec<(&'static str, &str)> {
        let options = self.descriptor().map_or(&[][..], |descriptor| descriptor.options);
        options.iter().filter_map(|option| Some((option.name, self.value(option.name)?))).collect()
    }

    /// All choices, in words that parties elsewhere can compare with theirs.
    pub fn settings(&self) -> Result<Vec<(&'static str, String)>> {
        let descriptor = self.descriptor()?;
        let chosen: Vec<(&str, &str)> = self.chosen.iter().map(|(name, value)| (&**name, &**value)).collect();
        let parameters = descriptor.parameters(self.parties, self.threshold, &chosen)?;
        let own = [("protocol", descriptor.name.to_owned()), ("threshold", parameters.threshold.to_string())];
        let options =
            descriptor.options.iter().map(|option| (option.name, parameters.value(option.name).into()));
        Ok(own.into_iter().chain(options).collect())
    }

    /// Refuses options under which parties could not start, before any is started.
    pub fn check_parties(&self) -> Result<()> {
        self.config().map(drop)
    }
}

/// The names of all protocols, as a list.
fn names() -> impl Iterator<Item = &'static str> {
    std::iter::once(CLEARTEXT).chain(protocols::all().into_iter().map(|descriptor| descriptor.name))
}

/// All options of protocols, each once, with the protocols that have it.
fn options() -> Vec<(&'static Choice, Vec<(&'static str, &'static Choice)>)> {
    let mut options: Vec<(&Choice, Vec<(&str, &Choice)>)> = Vec::new();
    for descriptor in protocols::all() {
        for choice in descriptor.options {
            match options.iter_mut().find(|(first, _)| first.name == choice.name) {
                Some((_, of)) => of.push((descriptor.name, choice)),
                None => options.push((choice, vec![(descriptor.name, choice)])),
            }
        }
    }
    options
}

/// The help text of an option: the values for each protocol, and the defaults.
fn help(of: &[(&str, &Choice)]) -> String {
    let mut alike: Vec<(Vec<&str>, &Choice)> = Vec::new();
    for (protocol, choice) in of {
        let same = |other: &Choice| (other.values)() == (choice.values)() && other.default == choice.default;
        match alike.iter_mut().find(|(_, other)| same(other)) {
            Some((protocols, _)) => protocols.push(protocol),
            None => alike.push((vec![protocol], choice)),
        }
    }
    let mut message: Vec<String> = Vec::new();
    let mut summary = "";
    for (protocols, choice) in alike {
        let said = if choice.summary == summary { String::new() } else { format!(": {}", choice.summary) };
        summary = choice.summary;
        let default = choice.default.map_or("to be chosen".into(), |default| format!("default {default}"));
        let values = (choice.values)().join(", ");
        message.push(format!("for {}{said} [{values}; {default}]", protocols.join(", ")));
    }
    message.join("; ")
}

impl Args for ProtocolOptions {
    fn augment_args(command: Command) -> Command {
        let mut protocols: Vec<String> = vec![format!("{CLEARTEXT} (no protocol, to compare with)")];
        protocols.extend(protocols::all().into_iter().map(|descriptor| {
            format!("{} ({}; {})", descriptor.name, descriptor.adversary, descriptor.summary)
        }));
        let number = |name: &'static str, value: &'static str| {
            Arg::new(name).long(name).value_name(value).value_parser(value_parser!(usize))
        };
        let command = command
            .arg(
                Arg::new("protocol")
                    .long("protocol")
                    .value_name("P")
                    .default_value("shamir")
                    .help(format!("One of {}", protocols.join("; "))),
            )
            .arg(
                number("parties", "N")
                    .help("Number of parties [default: the least that the protocol allows]"),
            )
            .arg(
                number("threshold", "T")
                    .help("Parties that together learn nothing [default: the most the protocol allows]"),
            );
        options().into_iter().fold(command, |command, (option, of)| {
            command.arg(Arg::new(option.name).long(option.name).value_name("CHOICE").help(help(&of)))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        ProtocolOptions::augment_args(command)
    }
}

impl FromArgMatches for ProtocolOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ProtocolOptions, clap::Error> {
        let chosen = options()
            .into_iter()
            .filter_map(|(option, _)| {
                let value: &String = matches.get_one(option.name)?;
                Some((option.name.to_owned(), value.clone()))
            })
            .collect();
        Ok(ProtocolOptions {
            protocol: matches.get_one("protocol").cloned().unwrap_or_default(),
            parties: matches.get_one("parties").copied(),
            threshold: matches.get_one("threshold").copied(),
            chosen,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ProtocolOptions::from_arg_matches(matches)?;
        Ok(())
    }
}
