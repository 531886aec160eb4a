//! A hello in one round, for parties that have had a session on the same connections.
//!
//! With its opening in a hello each party commits to a nonce for the next session. That one begins with one
//! message of each party: all settings, its nonce, a digest of the commitments that it received before, and a
//! commitment to a further nonce. Nodes that are far from each other save a message this way.
//!
//! * *All have the same id.* A party goes on only if every peer has sent the same set and settings, has
//!   received the same commitments, and has opened what it committed to: as in two rounds.
//! * *Nobody chooses the id.* Let P be the honest party that sends its message first. It has received all
//!   commitments, in the session before. An honest party that goes on has the same ones, as P has told it.
//!   So every cheater's nonce was fixed before anybody else knew an honest one. What else the id depends on
//!   is fixed as well: the settings, which contain the request and have to be those that P has sent; and the
//!   version and features, which are those of the session before, and part of the commitment.
//! * *A failure is a draw.* In two rounds a party opens its nonce only if all settings fit. Here it opens it
//!   with them. So a cheater can see the id, and end the attempt by other settings as well as by silence.
//!   After an error the caller may begin again in two rounds, and not in one: two draws in place of one,
//!   which are worth one bit at most. A nonce is used up when it is sent, also if the attempt fails.
//! * *Who is named.* A cheater can send the settings of one honest party to one, and others to another. Then
//!   one goes on and the other ends, and what they send each other next does not fit. So after an error, of
//!   any kind, the connections must not be used again.

use polyclave_kernels::secret::ct_eq;

use super::{
    AgreedSession, DIGEST_BYTES, HASH_BYTES, HandshakeParameters, More, NONCE_BYTES, Offer, SET_BYTES,
    broadcast_and, differing_setting, first_difference, fresh_nonce, saw_other, session_id,
};
use crate::interface::net::Net;
use crate::{Error, Party, PartySet, Result};

/// The setting that differs if a party offers other features than in the session before.
pub(super) const IN_USE: &str = "the version and features in use";

/// What all parties of a session have fixed for the next one on the same connections.
pub struct Prepared {
    pub(super) serving: PartySet,
    /// What this party has named.
    pub(super) mine: Offer,
    /// What the next session has in use.
    pub(super) use_of: Offer,
    pub(super) nonce: [u8; NONCE_BYTES],
    /// By party: its commitment.
    pub(super) committed: Vec<(Party, [u8; HASH_BYTES])>,
}

impl Prepared {
    /// Whether this party still offers what it offered in the session before. If not, the next one takes two
    /// rounds.
    pub fn fits(&self, terms: &HandshakeParameters) -> bool {
        self.mine == Offer::of(terms)
    }

    /// Agrees on the next session, in one round. `more` is what this party sends behind its message, before
    /// it hears the others; they receive it after they have agreed. After an error the connections must be
    /// closed.
    pub fn begin(
        self,
        terms: &HandshakeParameters,
        net: &mut dyn Net,
        more: Option<More<'_>>,
    ) -> Result<(AgreedSession, Prepared)> {
        let Prepared { serving, mine, use_of, nonce, committed } = self;
        let me = net.me();
        if net.members() != serving {
            return Err(Error::misuse(format!(
                "a session of {} was prepared by a session of {serving}",
                net.members()
            )));
        }
        let (next, terms) = (fresh_nonce()?, terms.clone().with(IN_USE, &use_of.to_bytes()));
        let settings: Vec<u8> = terms.settings.iter().flat_map(|(_, digest)| *digest).collect();
        let set_and_names = [&serving.bits().to_le_bytes()[..], &terms.names()].concat();
        let opened = [nonce, seen(&committed), commitment(me, serving, use_of, &next)].concat();
        let message = [set_and_names, settings, opened].concat();
        let all = broadcast_and(&message, serving, net, more)?;

        for (field, place) in
            [("serving set", 0..SET_BYTES), ("kind of session", SET_BYTES..SET_BYTES + DIGEST_BYTES)]
        {
            if let Some(peer) = first_difference(&all, place, me) {
                return Err(Error::Disagreement { peer, field });
            }
        }
        let at = SET_BYTES + DIGEST_BYTES;
        if let Some(differs) = differing_setting(&all, at, &terms, me) {
            return Err(differs);
        }
        let at = at + terms.settings.len() * DIGEST_BYTES;
        let mut nonces = Vec::with_capacity(all.len());
        for ((peer, message), (_, committed)) in all.iter().zip(&committed) {
            let nonce = message[at..].first_chunk().expect("the message has room for a nonce");
            if !ct_eq(&commitment(*peer, serving, use_of, nonce), committed) {
                let detail = "it opened another nonce of the session than it had committed to".into();
                return Err(Error::Peer { peer: *peer, detail });
            }
            nonces.push(*nonce);
        }
        let seen = at + NONCE_BYTES;
        if let Some(peer) = first_difference(&all, seen..seen + HASH_BYTES, me) {
            return Err(saw_other("commitments to the session", peer, net));
        }
        let id = session_id(&nonces, serving, &terms, use_of);
        let committed = told_in(&all, seen + HASH_BYTES);
        let session = AgreedSession { id, serving, use_of, streams: 0 };
        Ok((session, Prepared { serving, mine, use_of, nonce: next, committed }))
    }
}

/// A party's commitment to its nonce of the next session.
pub(super) fn commitment(
    party: Party,
    serving: PartySet,
    use_of: Offer,
    nonce: &[u8; NONCE_BYTES],
) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitment to the next session");
    hasher.update(&[party.0]).update(&serving.bits().to_le_bytes()).update(&use_of.to_bytes()).update(nonce);
    *hasher.finalize().as_bytes()
}

/// The commitments in the messages of all parties, from this place on.
pub(super) fn told_in(all: &[(Party, Vec<u8>)], at: usize) -> Vec<(Party, [u8; HASH_BYTES])> {
    let commitment = |message: &[u8]| *message[at..].first_chunk().expect("the message has room for it");
    all.iter().map(|(party, message)| (*party, commitment(message))).collect()
}

/// A digest of all commitments.
fn seen(committed: &[(Party, [u8; HASH_BYTES])]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitments to the next session");
    committed.iter().for_each(|(_, commitment)| _ = hasher.update(commitment));
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests;
