//! The hello round: before anything secret is used, the parties agree on what they are about to run and on a
//! session id.
//!
//! The parties that serve ([`Net::members`]) take part, and no others. There are two rounds:
//!
//! 1. Each party sends a commitment to a fresh 256-bit nonce, the newest version of the wire that it speaks
//!    and the features that it has switched on ([`crate::versions`]), the set of serving parties as it sees
//!    it, and a digest of its settings.
//! 2. If all of these fit, each party opens its nonce, says which commitments, versions and features it has
//!    received, and commits to a nonce for the next session ([`Prepared`]). If not, each party sends a digest
//!    of each of its settings instead, and the session ends with the name of the setting that differs.
//!
//! The session is of the lowest version that any party named, and has the features that all named. A party
//! that names different ones to different peers is noticed as one that commits to different nonces. A party
//! that names less than it has makes the session one of an older release, and nothing else. The first message
//! has these bytes in every version.
//!
//! The session id is a hash of the nonces of all serving parties, their set and all settings. It does not
//! repeat as long as one of them draws fresh randomness. Two sessions of different sets of parties (which
//! need not have a member in common) never share an id. So pseudorandom sharing takes the id as input and
//! needs no counter that could roll back.
//!
//! * *All have the same id.* A party goes on only if every peer says, over its own channel, that it has
//!   received the same commitments, and if every opening fits. So two parties that follow the protocol and
//!   both go on have the same commitments, hence the same nonces (the hash is binding) and the same id. A
//!   party that was told something else ends the session. Otherwise a cheater that tells two parties
//!   different things would make them compute with different pseudorandom values, while everything else that
//!   they send to each other fits. The shares of one of them would look wrong, and where wrong shares
//!   convict, an honest party would be convicted.
//! * *Nobody chooses the id.* In an earlier version nonces were sent without commitments. The party that sent
//!   last knew the others' nonces before it named its own, and could try nonces until the id, and what is
//!   derived from it (nonces of GCM, counters of CTR), looked as it wished. Now let P be the first honest
//!   party that opens. It has all commitments then. If any honest party goes on, it has the same commitments
//!   as P, as P has told it. So every cheater's commitment among them, and with it the cheater's nonce, was
//!   fixed before anybody else knew any honest nonce (a commitment hides 256 bits). A commitment names its
//!   party, so a copied one is of no use. The id is then a random oracle's answer at a point that contains an
//!   honest nonce which nobody knew when the rest was fixed: it is uniform.
//! * *A cheater can still choose among draws.* It receives all nonces before it has to open its own, sees the
//!   id, and can end the session by silence. Every attempt that the others make after that is another draw.
//!   With q draws it gets the best of q ids, which is worth log2 q bits; it gets a given id of b bits with
//!   probability q 2^-b. So no party tries again by itself after it has opened. [`greet`] is the part of an
//!   attempt that may be repeated (no nonce of this party is known, so no id is). An error after
//!   [`Greeted::open`] is final for the caller. Nodes make one draw for a request
//!   (`node/src/requests/begin.rs`), and its client sees the failure. What they make ahead (epochs, lots,
//!   fresh secrets) they do try again: there the id is only a name and a label of pseudorandom values, and it
//!   only matters that it does not repeat.
//! * docs/security/shamir.md covers another case: an image of a party's memory that was taken after the hello
//!   round and is restored.

mod prepared;

use std::ops::Range;

pub use prepared::Prepared;

use polyclave_kernels::secret::{ct_eq, mark_secret};

use crate::interface::net::Net;
use crate::versions::{FeatureSet, NODES, Spoken};
use crate::{Error, Party, PartySet, Result};

const NONCE_BYTES: usize = 32;
const HASH_BYTES: usize = 32;
const SET_BYTES: usize = 2;
const DIGEST_BYTES: usize = 32;
/// A commitment, a version and features: what the second message is about.
const TOLD_BYTES: usize = HASH_BYTES + 1 + FeatureSet::BYTES;

/// An agreed session. Hands out each of its streams once, since what is pseudorandom is bound to session and
/// stream.
#[derive(Debug, PartialEq, Eq)]
pub struct AgreedSession {
    id: [u8; 32],
    serving: PartySet,
    use_of: Offer,
    streams: u64,
}

/// The newest version of the wire between nodes that a party speaks, or that all of a session do, and
/// features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    version: u8,
    features: FeatureSet,
}

impl Offer {
    /// What a party names.
    fn of(terms: &HandshakeParameters) -> Offer {
        Offer { version: terms.spoken.newest, features: terms.features }
    }

    fn to_bytes(self) -> Vec<u8> {
        [&[self.version][..], &self.features.to_bytes()].concat()
    }
}

/// One thread's place in a session. All parties take them in the same order.
#[derive(Debug, PartialEq, Eq)]
pub struct Stream {
    session: [u8; 32],
    serving: PartySet,
    number: u64,
}

impl AgreedSession {
    /// Bound to this one session.
    pub fn id(&self) -> [u8; 32] {
        self.id
    }

    /// The version of the wire between nodes that all speak in it.
    pub fn version(&self) -> u8 {
        self.use_of.version
    }

    /// The features that all have switched on.
    pub fn features(&self) -> FeatureSet {
        self.use_of.features
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

    /// A stream of a session of some of the parties, among themselves with numbers of their own. What is
    /// derived has a label that follows from this one and `what`.
    pub(crate) fn derived(&self, what: &[u8], serving: PartySet) -> Stream {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 stream of some of the parties");
        hasher.update(&self.label()).update(what);
        Stream { session: *hasher.finalize().as_bytes(), serving, number: self.number }
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
#[derive(Clone, Debug)]
pub struct HandshakeParameters {
    settings: Vec<(&'static str, [u8; DIGEST_BYTES])>,
    /// The versions of the wire that this party speaks.
    spoken: Spoken,
    features: FeatureSet,
}

impl HandshakeParameters {
    /// The settings of every session: the number of parties comes first.
    pub fn new(parties: usize) -> HandshakeParameters {
        let (settings, features) = (Vec::new(), FeatureSet::default());
        HandshakeParameters { settings, spoken: NODES.spoken(), features }
            .with("number of parties", &parties.to_le_bytes())
    }

    /// Offers the features that this party has switched on.
    pub fn offering(mut self, features: FeatureSet) -> HandshakeParameters {
        self.features = features;
        self
    }

    /// Adds a setting.
    pub fn with(mut self, name: &'static str, value: &[u8]) -> HandshakeParameters {
        let digest = blake3::derive_key("polyclave 2026 session setting", value);
        self.settings.push((name, digest));
        self
    }

    /// A digest of the names of all settings.
    fn names(&self) -> [u8; DIGEST_BYTES] {
        let names = self.settings.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\n");
        blake3::derive_key("polyclave 2026 setting names", names.as_bytes())
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

/// Compares the terms with every peer that serves, and agrees on a session. Two rounds.
pub fn hello(terms: &HandshakeParameters, net: &mut dyn Net) -> Result<AgreedSession> {
    greet(terms, net)?.open(net)
}

/// The first round. After an error it may be tried again: nothing is known of this party's nonce, so no
/// session id is.
///
/// The message has a fixed size, so that a peer whose settings have other names can be distinguished from one
/// that differs in a value only. It contains the serving set itself, because parties that differ about the
/// set would wait for different peers in a second round. (If only settings differ, this function runs the
/// second round.)
pub fn greet(terms: &HandshakeParameters, net: &mut dyn Net) -> Result<Greeted> {
    let (me, serving) = (net.me(), net.members());
    if !serving.contains(me) {
        return Err(Error::misuse(format!("{me} says hello, but {serving} serve")));
    }
    let nonce = fresh_nonce()?;
    let greeting = greeting(&commitment(me, serving, terms, &nonce), serving, terms);
    let greetings = broadcast(&greeting, serving, net)?;

    let set_end = TOLD_BYTES + SET_BYTES;
    let digest_end = set_end + DIGEST_BYTES;
    let differs = |range| first_difference(&greetings, range, me);
    if let Some(peer) = differs(digest_end..greeting.len()) {
        return Err(Error::Disagreement { peer, field: "kind of session" });
    }
    if let Some(peer) = differs(TOLD_BYTES..set_end) {
        return Err(Error::Disagreement { peer, field: "serving set" });
    }
    if differs(set_end..digest_end).is_some() {
        return Err(disagreement(terms, serving, net)?);
    }
    let told: Vec<_> =
        greetings.iter().map(|(party, greeting)| (*party, greeting[..TOLD_BYTES].to_vec())).collect();
    Ok(Greeted { terms: terms.clone(), serving, nonce, use_of: in_use(&told, terms.spoken)?, told })
}

/// What a party has told of the newest version that it speaks, and of its features.
fn offer_of(told: &[u8]) -> Offer {
    let features = told[HASH_BYTES + 1..].first_chunk().expect("it has room for features");
    Offer { version: told[HASH_BYTES], features: FeatureSet::from_bytes(*features) }
}

/// What all have told that they have. If that is less than this party speaks, the error names who has least.
fn in_use(told: &[(Party, Vec<u8>)], spoken: Spoken) -> Result<Offer> {
    let offers = told.iter().map(|(party, told)| (*party, offer_of(told)));
    let (oldest, Offer { version, .. }) =
        offers.clone().min_by_key(|(_, offer)| offer.version).expect("this party is among them");
    if version < spoken.oldest {
        return Err(Error::Disagreement { peer: oldest, field: "version" });
    }
    let features = offers.map(|(_, offer)| offer.features).reduce(FeatureSet::shared).unwrap_or_default();
    Ok(Offer { version, features })
}

/// What a party sends behind its message.
pub type More<'m> = &'m mut dyn FnMut(&mut dyn Net) -> Result<()>;

/// All terms are the same, and every nonce is committed to.
pub struct Greeted {
    terms: HandshakeParameters,
    serving: PartySet,
    nonce: [u8; NONCE_BYTES],
    use_of: Offer,
    /// By party: its commitment, its newest version and its features.
    told: Vec<(Party, Vec<u8>)>,
}

impl Greeted {
    /// The peers that speak less than this party, with the newest version that each of them named.
    pub fn older(&self) -> impl Iterator<Item = (Party, u8)> {
        let offers = self.told.iter().map(|(party, told)| (*party, offer_of(told).version));
        offers.filter(|(_, version)| *version < self.terms.spoken.newest)
    }

    /// The second round. After an error a peer may know what the session id would have been, and may have
    /// caused the error because of it. So nothing is tried again automatically.
    pub fn open(self, net: &mut dyn Net) -> Result<AgreedSession> {
        self.open_and_prepare(net, None).map(|(session, _)| session)
    }

    /// The same, with what all parties have fixed for the next session on these connections. `more` is what
    /// this party sends behind its own nonce, before it hears those of the others. The others receive it
    /// after their second round.
    pub fn open_and_prepare(
        self,
        net: &mut dyn Net,
        more: Option<More<'_>>,
    ) -> Result<(AgreedSession, Prepared)> {
        let (serving, mine) = (self.serving, Offer::of(&self.terms));
        let next = fresh_nonce()?;
        let commitment = prepared::commitment(net.me(), serving, self.use_of, &next);
        let opening = opening(&self.terms, [&self.nonce, &seen(&self.told), &commitment]);
        let openings = broadcast_and(&opening, serving, net, more)?;
        let session = self.agree(&openings, net)?;
        let committed = prepared::told_in(&openings, 1 + NONCE_BYTES + HASH_BYTES);
        let prepared = Prepared { serving, mine, use_of: session.use_of, nonce: next, committed };
        Ok((session, prepared))
    }

    fn agree(self, openings: &[(Party, Vec<u8>)], net: &dyn Net) -> Result<AgreedSession> {
        let Greeted { terms, serving, use_of, told, .. } = self;
        let mut nonces = Vec::with_capacity(openings.len());
        for ((peer, opening), (_, told)) in openings.iter().zip(&told) {
            if opening[0] != OPENS {
                return Err(saw_other("settings", *peer, net));
            }
            let nonce = opening[1..].first_chunk().expect("an opening has room for a nonce");
            if !ct_eq(&commitment(*peer, serving, &terms, nonce), &told[..HASH_BYTES]) {
                let detail = "it opened another nonce of the session than it had committed to".into();
                return Err(Error::Peer { peer: *peer, detail });
            }
            nonces.push(*nonce);
        }
        let seen = 1 + NONCE_BYTES..1 + NONCE_BYTES + HASH_BYTES;
        match first_difference(openings, seen, net.me()) {
            Some(peer) => Err(saw_other("commitments to the session", peer, net)),
            None => {
                let id = session_id(&nonces, serving, &terms, use_of);
                Ok(AgreedSession { id, serving, use_of, streams: 0 })
            }
        }
    }
}

/// A party's commitment to its nonce. The parties have compared everything in it except the nonce. So if an
/// opening does not fit, it is the peer that deviated.
fn commitment(
    party: Party,
    serving: PartySet,
    terms: &HandshakeParameters,
    nonce: &[u8; NONCE_BYTES],
) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitment to a session");
    hasher.update(&[party.0]).update(&serving.bits().to_le_bytes()).update(&terms.digest()).update(nonce);
    *hasher.finalize().as_bytes()
}

/// A commitment, what the party offers, the set of serving parties, and digests of the settings and of their
/// names.
fn greeting(commitment: &[u8; HASH_BYTES], serving: PartySet, terms: &HandshakeParameters) -> Vec<u8> {
    let serving = serving.bits().to_le_bytes();
    [&commitment[..], &Offer::of(terms).to_bytes(), &serving, &terms.digest(), &terms.names()].concat()
}

/// What the second message is: a nonce, a digest of the commitments and offers that were received, and a
/// commitment to the nonce of the next session.
const OPENS: u8 = 0;
/// Or the settings, since some digest differs.
const DIFFERS: u8 = 1;

/// A second message. Both kinds are of the same size, which follows from the number of settings, which has
/// been compared: a cheater that has one party send the one and another the other does not make either look
/// like one that sends what is no message.
fn second(kind: u8, terms: &HandshakeParameters, body: &[u8]) -> Vec<u8> {
    let room = (NONCE_BYTES + 2 * HASH_BYTES).max(terms.settings.len() * DIGEST_BYTES);
    let mut message = vec![0; 1 + room];
    message[0] = kind;
    message[1..=body.len()].copy_from_slice(body);
    message
}

/// A nonce, a digest of the commitments that were received, and a commitment to the nonce of the next
/// session.
fn opening(terms: &HandshakeParameters, parts: [&[u8; HASH_BYTES]; 3]) -> Vec<u8> {
    second(OPENS, terms, &parts.map(|part| *part).concat())
}

/// A digest of all commitments and offers.
fn seen(told: &[(Party, Vec<u8>)]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitments to a session");
    told.iter().for_each(|(_, told)| _ = hasher.update(told));
    *hasher.finalize().as_bytes()
}

/// The hash of all nonces, the set of serving parties, the settings, and what is in use.
fn session_id(
    nonces: &[[u8; NONCE_BYTES]],
    serving: PartySet,
    terms: &HandshakeParameters,
    use_of: Offer,
) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 session id");
    hasher.update(&serving.bits().to_le_bytes()).update(nonces.as_flattened()).update(&terms.digest());
    *hasher.update(&use_of.to_bytes()).finalize().as_bytes()
}

/// Finds the first setting that differs. Every party has seen a difference and takes this round; if the
/// difference is between two others, this one's own settings may all agree with some peer, so each peer is
/// compared.
fn disagreement(terms: &HandshakeParameters, serving: PartySet, net: &mut dyn Net) -> Result<Error> {
    let settings: Vec<u8> = terms.settings.iter().flat_map(|(_, digest)| *digest).collect();
    let all = broadcast(&second(DIFFERS, terms, &settings), serving, net)?;
    if let Some((peer, _)) = all.iter().find(|(_, message)| message[0] != DIFFERS) {
        return Ok(saw_other("settings", *peer, net));
    }
    differing_setting(&all, 1, terms, net.me()).ok_or_else(|| {
        Error::System("the parties disagree about the session but not about any of its settings".into())
    })
}

/// The first setting that differs, of those that begin at a place of each message.
fn differing_setting(
    all: &[(Party, Vec<u8>)],
    at: usize,
    terms: &HandshakeParameters,
    me: Party,
) -> Option<Error> {
    terms.settings.iter().enumerate().find_map(|(i, (field, _))| {
        let place = at + i * DIGEST_BYTES..at + (i + 1) * DIGEST_BYTES;
        first_difference(all, place, me).map(|peer| Error::Disagreement { peer, field })
    })
}

/// The first peer whose bytes differ from this party's in a range.
fn first_difference(all: &[(Party, Vec<u8>)], range: Range<usize>, me: Party) -> Option<Party> {
    let mine = all.iter().find(|(party, _)| *party == me).map(|(_, message)| &message[range.clone()]);
    all.iter().find(|(_, message)| Some(&message[range.clone()]) != mine).map(|(party, _)| *party)
}

fn fresh_nonce() -> Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    random_bytes(&mut nonce)?;
    Ok(nonce)
}

/// Sends the same message to every peer that serves, and returns the messages of all serving parties, in
/// their order.
fn broadcast(message: &[u8], serving: PartySet, net: &mut dyn Net) -> Result<Vec<(Party, Vec<u8>)>> {
    exchange(message, message, serving, net)
}

/// The same, and sends more before it hears the others, if this party has more to say.
fn broadcast_and(
    message: &[u8],
    serving: PartySet,
    net: &mut dyn Net,
    more: Option<More<'_>>,
) -> Result<Vec<(Party, Vec<u8>)>> {
    let Some(more) = more else { return broadcast(message, serving, net) };
    let me = net.me();
    serving.iter().filter(|peer| *peer != me).try_for_each(|peer| net.send(peer, message))?;
    more(net)?;
    exchange(&[], message, serving, net)
}

/// Sends this to every peer that serves, and returns the messages of all serving parties, which are as long
/// as that of this party.
fn exchange(out: &[u8], mine: &[u8], serving: PartySet, net: &mut dyn Net) -> Result<Vec<(Party, Vec<u8>)>> {
    let me = net.me();
    let is_peer = |p: Party| p != me && serving.contains(p);
    let parties = || Party::all(net.parties());
    let out: Vec<&[u8]> = parties().map(|p| if is_peer(p) { out } else { &[] }).collect();
    let mut all: Vec<Vec<u8>> =
        parties().map(|p| if is_peer(p) { vec![0; mine.len()] } else { Vec::new() }).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = mine.to_vec();
    Ok(Party::all(all.len()).zip(all).filter(|(p, _)| serving.contains(*p)).collect())
}

/// The error if a peer says that it received something else than this party, though all parties should have
/// received the same. With two parties the peer lies; with more it may have been lied to.
pub(crate) fn saw_other(what: &'static str, peer: Party, net: &dyn Net) -> Error {
    match net.members().len() {
        2 => Error::Peer { peer, detail: format!("it received other {what} than this party") },
        _ => Error::Equivocation { what },
    }
}

/// Fresh randomness from the operating system: secret, until it is sent.
pub fn random_bytes(out: &mut [u8]) -> Result<()> {
    #[cfg(feature = "seeded")]
    if crate::seeded::fill(out) {
        return Ok(());
    }
    let filled = getrandom::fill(out);
    mark_secret(out);
    filled.map_err(|e| Error::System(format!("the operating system gives no randomness: {e}")))
}

#[cfg(test)]
mod tests;
