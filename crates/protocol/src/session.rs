//! The hello round: the parties agree on what they are about to run before anything secret is used.
//!
//! Every party sends a fresh 128-bit nonce and a digest of each of its settings. On any difference the session ends with
//! the name of the setting. The session id is a hash of all nonces and all settings, so it never comes twice as long as
//! one party draws fresh randomness: pseudorandom sharing takes it as input and needs no counter that could roll back.
//! (A restored image of a party's memory, taken after the hello, is another matter: see SECURITY.md.)

use crate::net::Net;
use crate::{Error, Party, Result};

const NONCE_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;

/// An agreed session. Hands out each of its streams once, since what is pseudorandom is bound to session and stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Session {
    id: [u8; 32],
    streams: u64,
}

/// One thread's place in a session. All parties take them in the same order.
#[derive(Debug, PartialEq, Eq)]
pub struct Stream {
    session: [u8; 32],
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
        Stream { session: self.id, number: self.streams }
    }
}

impl Stream {
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

/// Compares the terms with every peer and agrees on a session. One round. The first message has a fixed size, so a peer
/// whose terms have other names is told from one that only differs in a value.
pub fn hello(terms: &Terms, net: &mut dyn Net) -> Result<Session> {
    let mut nonce = [0; NONCE_BYTES];
    random_bytes(&mut nonce)?;
    let mut greeting = nonce.to_vec();
    greeting.extend(terms.digest());
    let names = |t: &Terms| t.settings.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\n");
    greeting.extend(blake3::derive_key("polyclave 2026 setting names", names(terms).as_bytes()));
    let greetings = broadcast(&greeting, net)?;

    let (nonces_end, digest_end) = (NONCE_BYTES, NONCE_BYTES + DIGEST_BYTES);
    if let Some(peer) = first_difference(&greetings, digest_end..greeting.len(), net.me()) {
        return Err(Error::Disagreement { peer, field: "kind of session" });
    }
    if first_difference(&greetings, nonces_end..digest_end, net.me()).is_some() {
        return Err(disagreement(terms, net)?);
    }
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 session id");
    greetings.iter().for_each(|g| {
        hasher.update(&g[..nonces_end]);
    });
    Ok(Session { id: *hasher.update(&terms.digest()).finalize().as_bytes(), streams: 0 })
}

/// Finds the first setting that differs. Every party has seen a difference and takes this round; if the difference is
/// between two others, this one's own settings may all agree with some peer, so each peer is compared.
fn disagreement(terms: &Terms, net: &mut dyn Net) -> Result<Error> {
    let settings: Vec<u8> = terms.settings.iter().flat_map(|(_, digest)| *digest).collect();
    let all = broadcast(&settings, net)?;
    for (i, (field, _)) in terms.settings.iter().enumerate() {
        if let Some(peer) = first_difference(&all, i * DIGEST_BYTES..(i + 1) * DIGEST_BYTES, net.me()) {
            return Ok(Error::Disagreement { peer, field });
        }
    }
    Err(Error::System("the parties disagree about the session but not about any of its settings".into()))
}

/// The first peer whose bytes differ from this party's in a range.
fn first_difference(all: &[Vec<u8>], range: std::ops::Range<usize>, me: Party) -> Option<Party> {
    let mine = &all[me.index()][range.clone()];
    Party::all(all.len()).find(|p| all[p.index()][range.clone()] != *mine)
}

/// Sends the same message to every peer and returns those of all parties.
fn broadcast(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let me = net.me();
    let mut all = vec![vec![0; message.len()]; net.parties()];
    all[me.index()].clear();
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if p == me { &[][..] } else { message }).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = message.to_vec();
    Ok(all)
}

/// Fresh randomness from the operating system.
pub fn random_bytes(out: &mut [u8]) -> Result<()> {
    getrandom::fill(out).map_err(|e| Error::System(format!("the operating system gives no randomness: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::mesh;

    fn hello_of_three(terms: [Terms; 3]) -> Vec<Result<Session>> {
        let parties = mesh(3).into_iter().zip(terms);
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
}
