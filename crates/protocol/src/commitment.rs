//! Everybody says something at once: commitments first, then openings.
//!
//! A commitment is a hash of a fresh 256-bit nonce, the party, the context and the message: hiding and binding in the random
//! oracle model. Nobody's message depends on another's, since all commitments are in before the first opening goes out.
//! Parties that see different contexts (another transcript, other coins) cannot open to each other.
//!
//! With the openings every party sends a digest of the commitments that it received: a party that told several peers several
//! commitments is found before an opening is used, though not always by whom.

use subtle::ConstantTimeEq;

use crate::net::Net;
use crate::session::random_bytes;
use crate::{Error, Party, Result};

const HASH_BYTES: usize = 32;
const NONCE_BYTES: usize = 32;

/// Sends every member a message of this party, and returns those of all parties, by party; that of a party that is no
/// member is empty. All messages have the same length. Two rounds.
pub fn commit_and_open(context: &[u8], message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let me = net.me();
    let mut opening = vec![0; NONCE_BYTES];
    random_bytes(&mut opening)?;
    opening.extend_from_slice(message);
    let committed = opening.len();
    let commitments = broadcast(&hash(me, context, &opening), net)?;
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitments of all");
    commitments.iter().for_each(|commitment| _ = hasher.update(commitment));
    let seen = *hasher.finalize().as_bytes();
    opening.extend_from_slice(&seen);
    let mut openings = broadcast(&opening, net)?;
    for peer in net.members().iter() {
        let (opened, peer_saw) = openings[peer.index()].split_at(committed);
        if !bool::from(hash(peer, context, opened).ct_eq(&commitments[peer.index()])) {
            let detail = "it opened another value than it had committed to".into();
            return Err(Error::Peer { peer, detail });
        }
        if peer_saw != seen {
            let detail = "it received other commitments than this party".into();
            return Err(Error::Peer { peer, detail });
        }
    }
    for opening in openings.iter_mut().filter(|opening| !opening.is_empty()) {
        opening.truncate(committed);
        opening.drain(..NONCE_BYTES);
    }
    Ok(openings)
}

fn hash(party: Party, context: &[u8], opening: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 commitment");
    hasher.update(&[party.0]).update(&(context.len() as u64).to_le_bytes()).update(context).update(opening);
    *hasher.finalize().as_bytes()
}

/// Sends every member the same message; returns those of all, by party. One round.
pub(crate) fn broadcast(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
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
