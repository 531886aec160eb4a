//! Pseudorandom secret sharing under keys that are made for one delivery and forgotten with it.
//!
//! For every set A of n - t parties its members, and nobody else, have a key (Cramer, Damgard and Ishai
//! 2005). It is a hash of fresh randomness of the operating system of every member, so it is as good as that
//! of the best of them. From it come A's *parts* of everything that is random in a delivery. t parties miss
//! the key of one set, their complement, in which all are honest: that set's parts are uniform to them,
//! whatever they choose for the others.
//!
//! A part v of set A is shared without talking by v f_A, where f_A has degree t, is 1 at 0 and 0 at the
//! points of all who are not in A.
//!
//! **The same keys everywhere**: a member that gives two others different randomness would make shares that
//! lie on no polynomial. So the members of a set compare a hash of its key before it is used, and stop if it
//! differs.

use polyclave_protocol::net::Net;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::shamir::Structure;
use polyclave_protocol::{Error, Party, PartySet, Result};
use zeroize::Zeroizing;

use super::ring::{Residue, Ring};

/// Bytes that a member adds to a set's key, of a key, and of the hash of it.
const KEY_BYTES: usize = 32;
/// Separates these hashes from all others.
const CONTEXT: &str = "polyclave 2026 example outsider: key of a set";

/// A set this party is in, and its generators.
struct Held {
    set: PartySet,
    key: Zeroizing<[u8; KEY_BYTES]>,
    /// Parts of masks, and of the t zero sharings.
    masks: Vec<blake3::OutputReader>,
}

/// What one party can draw in one delivery.
pub struct Parts {
    me: Party,
    structure: Structure,
    held: Vec<Held>,
}

/// The sets of n - t parties.
pub fn sets(structure: Structure) -> impl Iterator<Item = PartySet> {
    let (n, members) = (structure.parties(), structure.parties() - structure.threshold());
    (0..1u16 << n).map(PartySet::from_bits).filter(move |set| set.len() == members)
}

impl Parts {
    /// Agrees on fresh keys, among all parties. Two rounds.
    pub fn agree(structure: Structure, net: &mut dyn Net) -> Result<Parts> {
        let (me, n) = (net.me(), net.parties());
        if n != structure.parties() || net.members().len() != n {
            return Err(Error::misuse("a delivery takes all parties"));
        }
        let mine: Vec<PartySet> = sets(structure).filter(|set| set.contains(me)).collect();
        let mut fresh = Zeroizing::new(vec![0; KEY_BYTES * mine.len()]);
        random_bytes(&mut fresh)?;
        let given = exchange(&mine, fresh.chunks(KEY_BYTES), net)?;
        let keys: Vec<_> = (0..)
            .zip(&mine)
            .map(|(i, set)| {
                let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
                hasher.update(&set.bits().to_le_bytes());
                set.iter().for_each(|p| _ = hasher.update(given.of(p, *set, i)));
                Zeroizing::new(*hasher.finalize().as_bytes())
            })
            .collect();
        let hashes: Vec<_> =
            keys.iter().map(|key| *derived(key, "comparison").finalize().as_bytes()).collect();
        let seen = exchange(&mine, hashes.iter().map(|hash| &hash[..]), net)?;
        for (i, set) in mine.iter().enumerate() {
            if let Some(peer) = set.iter().find(|p| seen.of(*p, *set, i) != hashes[i]) {
                let detail = "it has another key for a set, or somebody gave the two different randomness";
                return Err(Error::Peer { peer, detail: detail.into() });
            }
        }
        let generators = |key: &Zeroizing<_>| {
            let names = (0..=structure.threshold()).map(|k| format!("masks {k}"));
            names.map(|name| derived(key, &name).finalize_xof()).collect()
        };
        let held = mine.into_iter().zip(keys);
        let held = held.map(|(set, key)| Held { set, masks: generators(&key), key }).collect();
        Ok(Parts { me, structure, held })
    }

    /// Parties and threshold.
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// The part of every set this party is in, of a random string with this name: a function of key and name.
    pub fn of(&self, name: &str, len: usize) -> Vec<(PartySet, Zeroizing<Vec<u8>>)> {
        let part = |held: &Held| {
            let mut part = Zeroizing::new(vec![0; len]);
            derived(&held.key, name).finalize_xof().fill(&mut part);
            (held.set, part)
        };
        self.held.iter().map(part).collect()
    }

    /// f_A at this party's point, a quotient of small numbers.
    pub fn weight(&self, set: PartySet, ring: &Ring) -> Residue {
        let outside = || Party::all(self.structure.parties()).filter(|p| !set.contains(*p)).map(point);
        let here = point(self.me);
        ring.quotient(outside().map(|x| x - here).product(), outside().product())
    }

    /// For every set this party is in, parts of a random number and of t more, for a zero sharing: those of
    /// one mask after another.
    pub fn draw<'a>(&'a mut self, ring: &'a Ring) -> impl Iterator<Item = Vec<Residue>> + 'a {
        let drawn = |held: &mut Held| {
            let masks = held.masks.iter_mut();
            masks.map(|source| ring.uniform(|bytes| source.fill(bytes))).collect()
        };
        self.held.iter_mut().map(drawn)
    }

    /// The sets this party is in, in the order of [`draw`](Parts::draw).
    pub fn held(&self) -> impl Iterator<Item = PartySet> {
        self.held.iter().map(|held| held.set)
    }
}

/// The point at which a party's shares are values of polynomials.
pub fn point(party: Party) -> i64 {
    i64::from(party.0) + 1
}

fn derived(key: &[u8; KEY_BYTES], name: &str) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(name.as_bytes());
    hasher
}

/// What the members of all sets sent, each a piece for every set that it is in together with this party.
struct Given {
    me: Party,
    mine: Vec<PartySet>,
    own: Zeroizing<Vec<u8>>,
    received: Vec<Zeroizing<Vec<u8>>>,
}

impl Given {
    /// Of a member of set number `i` of this party's.
    fn of(&self, party: Party, set: PartySet, i: usize) -> &[u8] {
        if party == self.me {
            return &self.own[i * KEY_BYTES..][..KEY_BYTES];
        }
        let common = self.mine.iter().filter(|set| set.contains(party));
        let at = common.take_while(|other| **other != set).count();
        &self.received[party.index()][at * KEY_BYTES..][..KEY_BYTES]
    }
}

/// Sends every member of each set the piece for that set. One round.
fn exchange<'a>(
    mine: &[PartySet],
    pieces: impl Iterator<Item = &'a [u8]>,
    net: &mut dyn Net,
) -> Result<Given> {
    let me = net.me();
    let mut own = Zeroizing::new(Vec::with_capacity(KEY_BYTES * mine.len()));
    pieces.for_each(|piece| own.extend_from_slice(piece));
    let empty = |p: Party| {
        let common = if p == me { 0 } else { mine.iter().filter(|set| set.contains(p)).count() };
        Zeroizing::new(vec![0; KEY_BYTES * common])
    };
    let mut received: Vec<_> = Party::all(net.parties()).map(empty).collect();
    let mut out = received.clone();
    for (p, message) in Party::all(net.parties()).zip(&mut out).filter(|(p, _)| *p != me) {
        let common = mine.iter().zip(own.chunks(KEY_BYTES)).filter(|(set, _)| set.contains(p));
        message.chunks_mut(KEY_BYTES).zip(common).for_each(|(to, (_, piece))| to.copy_from_slice(piece));
    }
    let out: Vec<&[u8]> = out.iter().map(|message| message.as_slice()).collect();
    net.exchange(&out, &mut received.iter_mut().map(|message| message.as_mut_slice()).collect::<Vec<_>>())?;
    Ok(Given { me, mine: mine.to_vec(), own, received })
}
