//! Simultaneous broadcast: all parties send a commitment to their message first, and then open it.
//!
//! A commitment is a hash of a fresh 256-bit nonce, the party, the context and the message: hiding and
//! binding in the random oracle model. Nobody's message depends on another's, since all commitments are in
//! before the first opening goes out. Parties that see different contexts (another transcript, other coins)
//! cannot open to each other.
//!
//! With the openings every party sends a digest of the context and of the commitments that it received. Each
//! party compares these first. If two parties have seen different things, some party cheats, perhaps neither
//! of the two, and nobody is named. (With only two parties it is the other one.) A peer whose digest equals
//! this party's has seen the same as this party. If its opening then does not fit, the peer itself deviated,
//! and it is named.

use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use crate::interface::net::Net;
use crate::interface::session::{random_bytes, saw_other};
use crate::{Error, Party, Result};

const HASH_BYTES: usize = 32;
const NONCE_BYTES: usize = 32;

/// Sends every member this party's message, and returns the messages of all parties, by party. The message of
/// a party that is not a member is empty. All messages have the same length. Two rounds.
pub fn commit_and_open(context: &[u8], message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    Commitments::exchange(context, message, net)?.open(net)
}

/// This party's commitment, for a message that carries more than that.
pub(crate) struct Committed<'c> {
    context: &'c [u8],
    commitment: [u8; HASH_BYTES],
    /// The nonce and the message.
    opening: Zeroizing<Vec<u8>>,
}

/// All have committed, and nobody has opened.
pub(crate) struct Commitments<'c> {
    context: &'c [u8],
    /// The commitments of all parties.
    commitments: Vec<Vec<u8>>,
    /// This party's nonce and message.
    opening: Zeroizing<Vec<u8>>,
}

impl<'c> Committed<'c> {
    /// To a message of this party.
    pub(crate) fn to(context: &'c [u8], message: &[u8], me: Party) -> Result<Self> {
        // Growing would leave copies behind.
        let mut opening = Zeroizing::new(Vec::with_capacity(NONCE_BYTES + message.len() + HASH_BYTES));
        opening.resize(NONCE_BYTES, 0);
        random_bytes(&mut opening)?;
        opening.extend_from_slice(message);
        Ok(Committed { context, commitment: hash(me, context, &opening), opening })
    }

    /// What every member is sent.
    pub(crate) fn commitment(&self) -> &[u8; HASH_BYTES] {
        &self.commitment
    }

    /// After all commitments have come: by party, this one's included, and empty for parties that are not
    /// members.
    pub(crate) fn with(self, commitments: Vec<Vec<u8>>) -> Commitments<'c> {
        Commitments { context: self.context, commitments, opening: self.opening }
    }
}

impl<'c> Commitments<'c> {
    /// One round.
    pub(crate) fn exchange(context: &'c [u8], message: &[u8], net: &mut dyn Net) -> Result<Self> {
        let committed = Committed::to(context, message, net.me())?;
        let commitments = broadcast(committed.commitment(), net)?;
        Ok(committed.with(commitments))
    }

    /// Opens the messages. A party that has not received this opening knows nothing of any message. One
    /// round.
    pub(crate) fn open(mut self, net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
        let (me, committed) = (net.me(), self.opening.len());
        let seen = self.seen();
        self.opening.extend_from_slice(&seen);
        let mut openings = broadcast(&self.opening, net)?;
        let peers = || net.members().iter().filter(|peer| *peer != me);
        if let Some(peer) = peers().find(|peer| !ct_eq(&openings[peer.index()][committed..], &seen)) {
            return Err(saw_other("values or commitments", peer, net));
        }
        for peer in peers() {
            let opened = &openings[peer.index()][..committed];
            if !ct_eq(&hash(peer, self.context, opened), &self.commitments[peer.index()]) {
                let detail = "it opened another value than it had committed to".into();
                return Err(Error::Peer { peer, detail });
            }
        }
        for opening in openings.iter_mut().filter(|opening| !opening.is_empty()) {
            opening.truncate(committed);
            opening.drain(..NONCE_BYTES);
        }
        Ok(openings)
    }

    fn seen(&self) -> [u8; HASH_BYTES] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitments of all");
        hasher.update(&(self.context.len() as u64).to_le_bytes()).update(self.context);
        self.commitments.iter().for_each(|commitment| _ = hasher.update(commitment));
        *hasher.finalize().as_bytes()
    }
}

fn hash(party: Party, context: &[u8], opening: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitment");
    hasher.update(&[party.0]).update(&(context.len() as u64).to_le_bytes()).update(context).update(opening);
    *hasher.finalize().as_bytes()
}

/// Sends every member the same message; returns those of all, by party. One round.
pub fn broadcast(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, members) = (net.me(), net.members());
    let is_peer = |p: Party| p != me && members.contains(p);
    let everyone = || Party::all(net.parties());
    let out: Vec<&[u8]> = everyone().map(|p| if is_peer(p) { message } else { &[] }).collect();
    let mut all: Vec<Vec<u8>> =
        everyone().map(|p| if is_peer(p) { vec![0; message.len()] } else { Vec::new() }).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = message.to_vec();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::run_parties;

    #[test]
    fn everybody_hears_what_everybody_said() {
        for outcome in run_parties(3, |net| commit_and_open(b"context", &[net.me().0; 5], net)) {
            assert_eq!(outcome, Ok(vec![vec![0; 5], vec![1; 5], vec![2; 5]]));
        }
    }

    #[test]
    fn another_context_does_not_open() {
        let outcomes = run_parties(2, |net| commit_and_open(&[net.me().0], b"message", net));
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Peer { .. }))));
    }
}
