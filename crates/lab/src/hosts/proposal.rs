//! Before the hello round each party tells all others in words what it is about to run. So an error can name
//! a difference with both of its sides, and each party learns which party brings which input.
//!
//! A proposal is no promise and contains nothing secret. The hello round also compares what the parties
//! conclude from all proposals ([`Agreed::digested`]): a party that tells two others different things ends
//! the session there.

#[cfg(test)]
mod fuzz;

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party};
use serde::{Deserialize, Serialize};

/// The version, which grows with every change of these messages.
const VERSION: u8 = 1;
/// The most bytes of a peer's message.
const MAX_BYTES: usize = 1 << 16;
/// The most bytes of an input.
const MAX_INPUT_BYTES: u64 = 1 << 20;
/// The most characters of a peer's words that are shown.
const MAX_SHOWN: usize = 80;

/// What one party is about to run, and which inputs it brings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proposal {
    /// Names and values, in the order in which a difference is reported.
    settings: Vec<(String, String)>,
    /// The inputs that this party gives, by name, and how many bytes each has.
    brings: BTreeMap<String, u64>,
}

/// An input that one of the parties has to bring.
pub struct Needed {
    /// Its name, as in [`Proposal::bring`].
    pub name: String,
    /// The option that gives it.
    pub option: String,
}

/// Which party brings which input, and how many bytes it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreed(BTreeMap<String, (Party, usize)>);

impl Proposal {
    /// A proposal with these settings, after that of this program's version.
    pub fn new(settings: impl IntoIterator<Item = (&'static str, String)>) -> Proposal {
        let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
        let settings = version.into_iter().chain(settings).map(|(name, value)| (name.to_owned(), value));
        Proposal { settings: settings.collect(), brings: BTreeMap::new() }
    }

    /// Adds an input that this party gives.
    pub fn bring(&mut self, name: &str, bytes: usize) {
        self.brings.insert(name.into(), bytes as u64);
    }

    /// Sends this proposal to all peers, receives theirs, and compares them.
    pub fn agree(&self, needed: &[Needed], net: &mut dyn Net) -> Result<Agreed> {
        let all = self.exchange(net)?;
        for (peer, theirs) in &all {
            self.compare(*peer, theirs)?;
        }
        let mut givers: BTreeMap<&str, Vec<(Party, u64)>> = BTreeMap::new();
        for (party, proposal) in &all {
            for (name, bytes) in &proposal.brings {
                ensure!(
                    needed.iter().any(|input| input.name == *name),
                    "{party} brings '{}', which is not needed",
                    shown(name)
                );
                ensure!(
                    *bytes <= MAX_INPUT_BYTES,
                    "{party} brings {bytes} bytes of '{name}'; the most is {MAX_INPUT_BYTES}"
                );
                givers.entry(name).or_default().push((*party, *bytes));
            }
        }
        let giver = |input: &Needed| {
            let Needed { name, option } = input;
            match givers.get(&**name).map_or(&[][..], Vec::as_slice) {
                [(party, bytes)] => Ok((name.clone(), (*party, *bytes as usize))),
                [] => bail!("no party brings the {name}; give {option} at one of them"),
                [(one, _), (other, _), ..] => {
                    bail!("{one} and {other} both bring the {name}; give {option} at one party only")
                }
            }
        };
        Ok(Agreed(needed.iter().map(giver).collect::<Result<_>>()?))
    }

    /// All proposals, including this party's, in the order of the parties.
    fn exchange(&self, net: &mut dyn Net) -> Result<Vec<(Party, Proposal)>> {
        let mine = serde_json::to_vec(self)?;
        let parse = |bytes: &[u8]| Proposal::parse(bytes).map_err(str::to_owned);
        let mut all = tell_all(&mine, VERSION, MAX_BYTES, net)?
            .into_iter()
            .map(|(peer, bytes)| Ok((peer, message_of(peer, parse(&bytes))?)))
            .collect::<Result<Vec<_>>>()?;
        all.push((net.me(), self.clone()));
        all.sort_by_key(|(party, _)| *party);
        Ok(all)
    }

    /// Decodes a peer's bytes. The error says what is wrong with them.
    fn parse(bytes: &[u8]) -> Result<Proposal, &'static str> {
        serde_json::from_slice(bytes).map_err(|_| "its proposal of a session is not of the form that is due")
    }

    /// Compares the proposals. The first difference is an error.
    fn compare(&self, peer: Party, theirs: &Proposal) -> Result<()> {
        let differs = |name: &str, theirs: &str, mine: &str| {
            let (name, theirs) = (shown(name), shown(theirs));
            bail!(
                "{peer} runs with {name} {theirs}, this party with {mine}; start all parties with the same settings"
            )
        };
        for (name, mine) in &self.settings {
            match theirs.settings.iter().find(|(other, _)| other == name) {
                Some((_, value)) if value == mine => {}
                Some((_, value)) => return differs(name, value, mine),
                None => return differs(name, "not set", mine),
            }
        }
        match theirs.settings.iter().find(|(name, _)| self.settings.iter().all(|(own, _)| own != name)) {
            Some((name, value)) => differs(name, value, "none"),
            None => Ok(()),
        }
    }
}

impl Agreed {
    /// Which party brings an input, and how many bytes it has.
    pub fn giver(&self, name: &str) -> Option<(Party, usize)> {
        self.0.get(name).copied()
    }

    /// The number of the party, from 1, that brings each input.
    pub fn numbers(&self) -> BTreeMap<&str, usize> {
        self.0.iter().map(|(name, (party, _))| (name.as_str(), party.index() + 1)).collect()
    }

    /// What the hello round compares.
    pub fn digested(&self) -> Vec<u8> {
        let lines = self.0.iter().map(|(name, (party, bytes))| format!("{name}\n{}\n{bytes}\n", party.0));
        lines.collect::<String>().into_bytes()
    }
}

/// Sends a message to all peers and receives theirs, which may differ in length. A head with the version and
/// the length comes first.
pub fn tell_all(
    message: &[u8],
    version: u8,
    most: usize,
    net: &mut dyn Net,
) -> Result<Vec<(Party, Vec<u8>)>> {
    const HEAD: usize = 5;
    ensure!(
        message.len() <= most,
        "the command has {} bytes for its peers; the most is {most}",
        message.len()
    );
    let me = net.me();
    let parties: Vec<Party> = Party::all(net.parties()).collect();
    let to_peers = |message: &[u8]| -> Vec<Vec<u8>> {
        parties.iter().map(|p| if *p == me { Vec::new() } else { message.to_vec() }).collect()
    };
    let exchange = |out: Vec<Vec<u8>>, into: &mut [Vec<u8>], net: &mut dyn Net| {
        let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
        net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
    };
    let mut heads = to_peers(&[0; HEAD]);
    let head = [&[version][..], &(message.len() as u32).to_le_bytes()].concat();
    exchange(to_peers(&head), &mut heads, net)?;
    let mut bodies = Vec::with_capacity(heads.len());
    for (peer, head) in parties.iter().zip(&heads) {
        bodies.push(if *peer == me {
            Vec::new()
        } else {
            vec![0; message_of(*peer, length(head, version, most))?]
        });
    }
    exchange(to_peers(message), &mut bodies, net)?;
    Ok(parties.into_iter().zip(bodies).filter(|(peer, _)| *peer != me).collect())
}

/// The length that a head announces.
fn length(head: &[u8], version: u8, most: usize) -> Result<usize, String> {
    let (theirs, length) = (head[0], u32::from_le_bytes([head[1], head[2], head[3], head[4]]));
    match usize::try_from(length) {
        _ if theirs != version => Err(format!(
            "it proposes sessions in version {theirs} of the form, this party in version {version}"
        )),
        Ok(length) if (1..=most).contains(&length) => Ok(length),
        _ => Err(format!("it announces a message of {length} bytes; 1 to {most} are due")),
    }
}

/// Decodes a peer's bytes; an error if they do not fit.
pub fn message_of<T>(peer: Party, read: Result<T, String>) -> Result<T, Error> {
    read.map_err(|detail| Error::Peer { peer, detail })
}

/// A peer's words without characters that control a terminal.
fn shown(text: &str) -> String {
    text.chars().take(MAX_SHOWN).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::mesh::mesh;

    use super::*;

    fn proposal(cipher: &str, brings: &[(&str, usize)]) -> Proposal {
        let mut proposal = Proposal::new([("cipher", cipher.to_owned())]);
        brings.iter().for_each(|(name, bytes)| proposal.bring(name, *bytes));
        proposal
    }

    fn needed() -> [Needed; 2] {
        ["key", "input"].map(|name| Needed { name: name.into(), option: format!("--{name} HEX") })
    }

    /// What each party concludes from all proposals.
    fn outcomes(proposals: &[Proposal]) -> Vec<Result<Agreed, String>> {
        let nets = mesh(proposals.len());
        std::thread::scope(|scope| {
            let threads: Vec<_> = proposals
                .iter()
                .zip(nets)
                .map(|(own, mut net)| scope.spawn(move || own.agree(&needed(), &mut net)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic").map_err(|e| format!("{e:#}")))
                .collect()
        })
    }

    #[test]
    fn all_learn_who_brings_what() {
        let own = [proposal("a", &[("input", 32)]), proposal("a", &[]), proposal("a", &[("key", 16)])];
        for agreed in outcomes(&own) {
            let agreed = agreed.expect("they agree");
            assert_eq!(
                (agreed.giver("key"), agreed.giver("input")),
                (Some((Party(2), 16)), Some((Party(0), 32)))
            );
        }
    }

    #[test]
    fn every_difference_is_an_error_at_every_party_and_shows_both_sides() {
        let key = [("key", 16)];
        let both = [("key", 16), ("input", 16)];
        for (own, message) in [
            (
                [proposal("a", &both), proposal("b", &[])],
                ["cipher b, this party with a", "cipher a, this party with b"],
            ),
            ([proposal("a", &both), proposal("a", &key)], ["both bring the key"; 2]),
            ([proposal("a", &key), proposal("a", &[])], ["no party brings the input; give --input HEX"; 2]),
            ([proposal("a", &both), proposal("a", &[("x", 1)])], ["brings 'x', which is not needed"; 2]),
            ([proposal("a", &[("input", 1 << 21)]), proposal("a", &key)], ["the most is 1048576"; 2]),
            (
                [proposal("\u{1b}[2J", &both), proposal("b", &[])],
                ["cipher b, this party", "cipher \\u{1b}[2J, this party"],
            ),
        ] {
            for (outcome, message) in outcomes(&own).into_iter().zip(message) {
                let text = outcome.expect_err(message);
                assert!(text.contains(message), "{text} lacks {message}");
            }
        }
    }

    #[test]
    fn lengths_and_versions_that_are_not_due_are_refused() {
        assert_eq!(length(&[1, 2, 0, 0, 0], 1, 10), Ok(2));
        for head in [[2, 2, 0, 0, 0], [1, 0, 0, 0, 0], [1, 11, 0, 0, 0], [1, 255, 255, 255, 255]] {
            assert!(length(&head, 1, 10).is_err(), "{head:?}");
        }
    }
}
