//! The hello round: the parties agree on what they are about to run before anything secret is used.
//!
//! Those who serve ([`Net::members`]) take part, and nobody else. Each sends a fresh 128-bit nonce, the set of parties that
//! serve as it sees it, and a digest of each of its settings. On any difference the session ends with the name of the
//! setting. The session id is a hash of the nonces of all serving parties, their set and all settings. It never comes twice
//! as long as one of them draws fresh randomness, and two sessions of other parties (which need have no member in common)
//! never share one: pseudorandom sharing takes it as input and needs no counter that could roll back.
//!
//! In a second round all compare the id. Somebody who sends two parties different nonces would otherwise have them compute with
//! different pseudorandom values, though all else that they say to each other fits: shares of one of them would look wrong, and where
//! wrong shares convict, an honest party would be convicted. Two that follow the protocol compare their ids over their own channel:
//! so both have one id, or the session ends at both.
//! (A restored image of a party's memory, taken after the hello, is another matter: see SECURITY.md.)

use std::ops::Range;

use crate::net::Net;
use crate::{Error, Party, PartySet, Result};

const NONCE_BYTES: usize = 16;
const SET_BYTES: usize = 2;
const DIGEST_BYTES: usize = 32;

/// An agreed session. Hands out each of its streams once, since what is pseudorandom is bound to session and stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Session {
    id: [u8; 32],
    serving: PartySet,
    streams: u64,
}

/// One thread's place in a session. All parties take them in the same order.
#[derive(Debug, PartialEq, Eq)]
pub struct Stream {
    session: [u8; 32],
    serving: PartySet,
    number: u64,
}

impl Session {
    /// Bound to this one session.
    pub fn id(&self) -> [u8; 32] {
        self.id
    }

    /// The next stream.
    pub fn stream(&mut self) -> Stream {
        self.streams += 1;
        Stream { session: self.id, serving: self.serving, number: self.streams }
    }
}

impl Stream {
    /// The parties that agreed on the session.
    pub fn serving(&self) -> PartySet {
        self.serving
    }

    /// Bound to this one stream of this one session: an input of every pseudorandom value in it.
    pub fn label(&self) -> [u8; 40] {
        let mut label = [0; 40];
        label[..32].copy_from_slice(&self.session);
        label[32..].copy_from_slice(&self.number.to_le_bytes());
        label
    }
}

/// What the parties must agree on: names and values, in the order in which a difference is reported.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    settings: Vec<(&'static str, [u8; DIGEST_BYTES])>,
}

impl Terms {
    /// The settings of every session: the version of this program and the number of parties come first.
    pub fn new(parties: usize) -> Terms {
        let version = concat!("polyclave ", env!("CARGO_PKG_VERSION"));
        Terms::default().with("version", version.as_bytes()).with("number of parties", &parties.to_le_bytes())
    }

    /// Adds a setting.
    pub fn with(mut self, name: &'static str, value: &[u8]) -> Terms {
        let digest = blake3::derive_key("polyclave 2026 session setting", value);
        self.settings.push((name, digest));
        self
    }

    /// One digest of all settings.
    fn digest(&self) -> [u8; DIGEST_BYTES] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 session terms");
        for (name, digest) in &self.settings {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(digest);
        }
        *hasher.finalize().as_bytes()
    }
}

/// Compares the terms with every peer that serves and agrees on a session. Two rounds. The first message has a fixed size,
/// so a peer whose terms have other names is told from one that only differs in a value. The serving set stands in it as it
/// is: parties that differ about it would wait for different peers in a second round.
pub fn hello(terms: &Terms, net: &mut dyn Net) -> Result<Session> {
    let serving = net.members();
    if !serving.contains(net.me()) {
        return Err(Error::misuse(format!("{} says hello, but {serving} serve", net.me())));
    }
    let mut nonce = [0; NONCE_BYTES];
    random_bytes(&mut nonce)?;
    let greeting = greeting(nonce, serving, terms);
    let greetings = broadcast(&greeting, serving, net)?;

    let set_end = NONCE_BYTES + SET_BYTES;
    let digest_end = set_end + DIGEST_BYTES;
    let differs = |range| first_difference(&greetings, range, net.me());
    if let Some(peer) = differs(digest_end..greeting.len()) {
        return Err(Error::Disagreement { peer, field: "kind of session" });
    }
    if let Some(peer) = differs(NONCE_BYTES..set_end) {
        return Err(Error::Disagreement { peer, field: "serving set" });
    }
    if differs(set_end..digest_end).is_some() {
        return Err(disagreement(terms, serving, net)?);
    }
    let id = session_id(&greetings, serving, terms);
    let ids = broadcast(&id, serving, net)?;
    match first_difference(&ids, 0..id.len(), net.me()) {
        Some(peer) => Err(Error::Equivocation { peer }),
        None => Ok(Session { id, serving, streams: 0 }),
    }
}

/// A nonce, the set of those who serve, and digests of the settings and of their names.
fn greeting(nonce: [u8; NONCE_BYTES], serving: PartySet, terms: &Terms) -> Vec<u8> {
    let names = terms.settings.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\n");
    let names = blake3::derive_key("polyclave 2026 setting names", names.as_bytes());
    [&nonce[..], &serving.bits().to_le_bytes(), &terms.digest(), &names].concat()
}

/// Of all nonces, the set of those who serve, and the settings.
fn session_id(greetings: &[(Party, Vec<u8>)], serving: PartySet, terms: &Terms) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 session id");
    hasher.update(&serving.bits().to_le_bytes());
    greetings.iter().for_each(|(_, greeting)| {
        hasher.update(&greeting[..NONCE_BYTES]);
    });
    *hasher.update(&terms.digest()).finalize().as_bytes()
}

/// Finds the first setting that differs. Every party has seen a difference and takes this round; if the difference is
/// between two others, this one's own settings may all agree with some peer, so each peer is compared.
fn disagreement(terms: &Terms, serving: PartySet, net: &mut dyn Net) -> Result<Error> {
    let settings: Vec<u8> = terms.settings.iter().flat_map(|(_, digest)| *digest).collect();
    let all = broadcast(&settings, serving, net)?;
    for (i, (field, _)) in terms.settings.iter().enumerate() {
        if let Some(peer) = first_difference(&all, i * DIGEST_BYTES..(i + 1) * DIGEST_BYTES, net.me()) {
            return Ok(Error::Disagreement { peer, field });
        }
    }
    Err(Error::System("the parties disagree about the session but not about any of its settings".into()))
}

/// The first peer whose bytes differ from this party's in a range.
fn first_difference(all: &[(Party, Vec<u8>)], range: Range<usize>, me: Party) -> Option<Party> {
    let mine = all.iter().find(|(party, _)| *party == me).map(|(_, message)| &message[range.clone()]);
    all.iter().find(|(_, message)| Some(&message[range.clone()]) != mine).map(|(party, _)| *party)
}

/// Sends the same message to every peer that serves and returns those of all who do, in their order.
fn broadcast(message: &[u8], serving: PartySet, net: &mut dyn Net) -> Result<Vec<(Party, Vec<u8>)>> {
    let me = net.me();
    let is_peer = |p: Party| p != me && serving.contains(p);
    let parties = || Party::all(net.parties());
    let out: Vec<&[u8]> = parties().map(|p| if is_peer(p) { message } else { &[] }).collect();
    let mut all: Vec<Vec<u8>> =
        parties().map(|p| if is_peer(p) { vec![0; message.len()] } else { Vec::new() }).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = message.to_vec();
    Ok(Party::all(all.len()).zip(all).filter(|(p, _)| serving.contains(*p)).collect())
}

/// Fresh randomness from the operating system.
pub fn random_bytes(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out).map_err(|e| Error::System(format!("the operating system gives no randomness: {e}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mesh::{mesh, mesh_with_timeout, run_members};

    fn hello_of_three(terms: [Terms; 3]) -> Vec<Result<Session>> {
        hello_over(mesh(3).into_iter().zip(terms))
    }

    fn hello_over<N: Net + 'static>(parties: impl Iterator<Item = (N, Terms)>) -> Vec<Result<Session>> {
        let threads = parties.map(|(mut net, terms)| std::thread::spawn(move || hello(&terms, &mut net)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).collect()
    }

    #[test]
    fn equal_terms_give_one_fresh_id() {
        let terms = || Terms::new(3).with("circuit", b"aes-128");
        let first = hello_of_three([terms(), terms(), terms()]);
        let second = hello_of_three([terms(), terms(), terms()]);
        assert!(first[0].is_ok() && first.iter().all(|id| *id == first[0]));
        assert_ne!(first[0], second[0]);
    }

    #[test]
    fn a_session_hands_out_every_stream_once() {
        let mut session =
            hello_of_three([Terms::new(3), Terms::new(3), Terms::new(3)]).remove(0).expect("agreed");
        let labels = [session.stream().label(), session.stream().label()];
        assert_ne!(labels[0], labels[1]);
    }

    #[test]
    fn a_difference_is_named() {
        let terms = |c: &[u8]| Terms::new(3).with("circuit", c).with("lanes", &[1]);
        let outcomes = hello_of_three([terms(b"aes-128"), terms(b"aes-128"), terms(b"aes-256")]);
        let culprit = |p| Err(Error::Disagreement { peer: Party(p), field: "circuit" });
        assert_eq!(outcomes, [culprit(2), culprit(2), culprit(0)]);
    }

    #[test]
    fn another_kind_of_session_is_refused() {
        let other = Terms::new(3).with("colour", b"");
        let outcomes = hello_of_three([Terms::new(3), Terms::new(3), other]);
        assert_eq!(outcomes[0], Err(Error::Disagreement { peer: Party(2), field: "kind of session" }));
    }

    /// Of four parties the last tells the first another nonce than the others, and each of them afterwards the id that it comes to.
    #[test]
    fn one_that_tells_different_nonces_ends_the_session_at_all() {
        let (all, terms) = (PartySet::all(4), Terms::new(4));
        let mut nets = mesh(4);
        let mut cheater = nets.pop().expect("four");
        let honest = nets.into_iter().map(|net| (net, terms.clone()));
        let outcomes = std::thread::scope(|scope| {
            scope.spawn(|| {
                let own = |p: Party| greeting([u8::from(p == Party(0)); NONCE_BYTES], all, &terms);
                let told: Vec<Vec<u8>> = Party::all(4).map(own).collect();
                let out: Vec<&[u8]> =
                    told.iter().zip(0..).map(|(m, p)| if p < 3 { &m[..] } else { &[] }).collect();
                let mut heard = vec![vec![0; told[0].len()]; 4];
                heard[3] = Vec::new();
                let mut into: Vec<&mut [u8]> = heard.iter_mut().map(Vec::as_mut_slice).collect();
                cheater.exchange(&out, &mut into).expect("all greet");
                for p in Party::all(3) {
                    heard[3] = told[p.index()].clone();
                    let greetings: Vec<(Party, Vec<u8>)> = Party::all(4).zip(heard.clone()).collect();
                    cheater.send(p, &session_id(&greetings, all, &terms)).expect("sent");
                }
            });
            hello_over(honest)
        });
        let differs = |p| Err(Error::Equivocation { peer: Party(p) });
        assert_eq!(outcomes, [differs(1), differs(0), differs(0)]);
    }

    #[test]
    fn those_who_serve_agree_without_the_others() {
        let serving = PartySet::from_bits(0b11010);
        let outcomes = run_members(5, serving, |net| hello(&Terms::new(5), net));
        assert_eq!(outcomes.len(), 3);
        assert!(outcomes[0].is_ok() && outcomes.iter().all(|session| *session == outcomes[0]));
    }

    /// Parties 1 and 2 see three servers, party 3 believes that party 4 serves too, and party 4 agrees with it.
    #[test]
    fn differing_serving_sets_are_named() {
        struct Believes(crate::mesh::Mesh, PartySet);
        impl Net for Believes {
            fn me(&self) -> Party {
                self.0.me()
            }
            fn parties(&self) -> usize {
                self.0.parties()
            }
            fn members(&self) -> PartySet {
                self.1
            }
            fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
                self.0.send(to, message)
            }
            fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
                self.0.recv(from, into)
            }
            fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
                self.0.exchange(out, into)
            }
            fn fork(&mut self) -> Result<Box<dyn Net>> {
                self.0.fork()
            }
        }
        let (three, four) = (PartySet::all(3), PartySet::all(4));
        let nets = mesh_with_timeout(4, Duration::from_secs(3)).into_iter().zip([three, three, four, four]);
        let outcomes = hello_over(nets.map(|(net, set)| (Believes(net, set), Terms::new(4))));
        for outcome in &outcomes[..2] {
            assert_eq!(*outcome, Err(Error::Disagreement { peer: Party(2), field: "serving set" }));
        }
        // Party 3 hears the others' sets, unless party 4 is gone before: that one hears nothing from those who do not count
        // it in, and its end may come first.
        let named = Err(Error::Disagreement { peer: Party(0), field: "serving set" });
        let party_4_gone = matches!(&outcomes[2], Err(Error::Closed { peer: Party(3), .. }));
        assert!(outcomes[2] == named || party_4_gone, "{:?}", outcomes[2]);
        assert!(outcomes[3].is_err());
    }
}
