//! How nodes compare a client's step before they use any of it.
//!
//! A client that tells nodes different things could make them open a value under a sharing of a wrong degree,
//! and could, together with one curious node, confirm guesses of secrets. So the hello round
//! ([`polyclave_protocol::session`]) covers the whole request, and the nodes compare every later step in one
//! exchange before they use any of it: here among all serving nodes, or with a quorum of them
//! (`strategy/guaranteed.rs`).

use std::time::Duration;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::peers::exchange::{tell_all, tell_and_hear};

pub(crate) const ACCEPTED: u8 = 1;
pub(crate) const REFUSED: u8 = 2;

/// What peers said of a step before this node had come to it. A node that waits for its client learns at once
/// that another node has refused, and all end together. Only for [`agree`].
#[derive(Default)]
pub(crate) struct Early {
    heard: Vec<(Party, [u8; 33])>,
}

impl Early {
    /// Reads what has arrived from peers. Returns the first peer that refused, if one did.
    pub(crate) fn listen(&mut self, net: &mut TlsNet) -> Result<Option<Party>> {
        let (me, members) = (net.me(), net.members());
        let has_spoken = |party: Party| self.heard.iter().any(|(peer, _)| *peer == party);
        let mut silent: PartySet = members.iter().filter(|p| *p != me && !has_spoken(*p)).collect();
        while !silent.is_empty() {
            let Some(peer) = net.wait(silent, Duration::ZERO)? else { break };
            let mut said = [0; 33];
            net.recv(peer, &mut said)?;
            self.heard.push((peer, said));
            silent = silent.without([peer].into_iter().collect());
        }
        Ok(self.heard.iter().find(|(_, said)| said[0] != ACCEPTED).map(|(peer, _)| *peer))
    }

    /// The rest of [`agree`].
    pub(crate) fn agree(
        &self,
        mine: Result<[u8; 32], Refusal>,
        net: &mut dyn Net,
    ) -> Result<Result<(), Refusal>> {
        let mut message = [REFUSED; 33];
        if let Ok(digest) = &mine {
            message[0] = ACCEPTED;
            message[1..].copy_from_slice(digest);
        }
        let theirs = tell_and_hear(&message, &self.heard, net)?;
        if let Err(refusal) = mine {
            return Ok(Err(refusal));
        }
        for (peer, their) in theirs {
            if their[0] != ACCEPTED {
                return Ok(Err(refused_by(peer)));
            }
            if their[1..] != message[1..] {
                let text = format!(
                    "this node and {peer} received different steps: a client must send all nodes the same"
                );
                return Ok(Err(Refusal::new(Reason::Disagreement, text)));
            }
        }
        Ok(Ok(()))
    }
}

/// The refusal of a step that another node has not accepted.
pub(crate) fn refused_by(peer: Party) -> Refusal {
    Refusal::new(Reason::Disagreement, format!("{peer} did not accept this step; see its own answer"))
}

/// Compares a step with the other serving nodes. `mine` is the digest of what the client told this node, or
/// the reason why this node does not accept the step. All nodes get the same result: every node accepted the
/// step and all digests are equal, or not.
pub(crate) fn agree(mine: Result<[u8; 32], Refusal>, net: &mut dyn Net) -> Result<Result<(), Refusal>> {
    Early::default().agree(mine, net)
}

/// Whether any of the serving nodes says yes.
pub(crate) fn any(mine: bool, net: &mut dyn Net) -> Result<bool> {
    Ok(tell_all(&[u8::from(mine)], net)?.iter().any(|(_, [their])| *their == 1) || mine)
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::mesh::run_parties;

    use super::*;

    #[test]
    fn equal_steps_are_accepted() {
        assert!(
            run_parties(3, |net| agree(Ok([7; 32]), net)).into_iter().all(|outcome| outcome == Ok(Ok(())))
        );
    }

    #[test]
    fn a_difference_is_seen_by_all() {
        let outcomes = run_parties(3, |net| agree(Ok([u8::from(net.me() == Party(2)); 32]), net));
        for outcome in outcomes {
            let refusal = outcome.expect("the exchange works").expect_err("they differ");
            assert_eq!(refusal.reason, Reason::Disagreement);
        }
    }

    #[test]
    fn one_yes_is_heard_by_all() {
        for (who, expected) in [(Some(Party(1)), true), (None, false)] {
            let heard = run_parties(3, |net| any(Some(net.me()) == who, net));
            assert!(heard.into_iter().all(|outcome| outcome == Ok(expected)));
        }
    }

    #[test]
    fn one_refusal_stops_all() {
        let denied = || Refusal::new(Reason::Spent, "spent");
        let outcomes =
            run_parties(3, |net| agree(if net.me() == Party(1) { Err(denied()) } else { Ok([0; 32]) }, net));
        let reasons: Vec<Reason> =
            outcomes.into_iter().map(|o| o.expect("works").expect_err("refused").reason).collect();
        assert_eq!(reasons, [Reason::Disagreement, Reason::Spent, Reason::Disagreement]);
    }
}
