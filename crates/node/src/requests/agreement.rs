//! What the nodes compare before they use anything that a client said.
//!
//! A client that tells nodes different things could make them open a value under a sharing of a wrong degree, and with one
//! curious node confirm guesses of secrets. So the hello round ([`polyclave_protocol::session`]) covers the whole request, and
//! every later step is compared here, in one exchange, before any of it is used.
//!
//! Where nodes correct each other the hello still takes all that serve, and the client, when it fails, asks others. Of later steps it
//! is enough that so many nodes were told the same that any two choices of so many have a node in common that does not cheat: then
//! no two parts of the nodes go on with different steps, and one that fell silent, or lies, holds up nothing. A node that was
//! told something else stays behind with an error.

use std::time::Duration;

use crate::Result;
use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{Reason, Refusal};

const ACCEPTED: u8 = 1;
const REFUSED: u8 = 2;

/// What peers said of a step before this node had come to it: a node that waits for its client hears at once when another has
/// refused, and all end together. Only for [`agree`].
#[derive(Default)]
pub(crate) struct Early {
    heard: Vec<(Party, [u8; 33])>,
}

impl Early {
    /// Takes in what has arrived from peers; the first that refused, if one did.
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
                let told = format!(
                    "this node and {peer} were told different things: a client must tell all the same"
                );
                return Ok(Err(Refusal::new(Reason::Disagreement, told)));
            }
        }
        Ok(Ok(()))
    }
}

/// Why a step is not accepted that another node has not accepted.
pub(crate) fn refused_by(peer: Party) -> Refusal {
    Refusal::new(Reason::Disagreement, format!("{peer} did not accept this step; see its own answer"))
}

/// Compares a step with the other serving nodes. `mine` is the digest of what the client told this node, or why this node does
/// not accept it. All nodes come out of it with the same result: accepted by all and equal, or not.
pub(crate) fn agree(mine: Result<[u8; 32], Refusal>, net: &mut dyn Net) -> Result<Result<(), Refusal>> {
    Early::default().agree(mine, net)
}

/// Compares a step, and the session that it is part of, with as many other nodes as it takes; `quorum` with this one. A client may be
/// slower with some than with others: who is still without the step is waited for, `patience` time limits.
pub(crate) fn agree_with_most(
    mine: Result<[u8; 32], Refusal>,
    session: &[u8; 32],
    quorum: usize,
    patience: u32,
    net: &mut dyn Net,
) -> Result<Result<(), Refusal>> {
    let mut message = [REFUSED; 33];
    if let Ok(digest) = &mine {
        message[0] = ACCEPTED;
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 step of a session");
        message[1..].copy_from_slice(hasher.update(session).update(digest).finalize().as_bytes());
    }
    let (me, members) = (net.me(), net.members());
    let is_peer = |p: Party| p != me && members.contains(p);
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if is_peer(p) { &message[..] } else { &[][..] }).collect();
    let mut theirs = vec![[0; 33]; net.parties()];
    let mut into: Vec<&mut [u8]> = Party::all(net.parties())
        .zip(&mut theirs)
        .map(|(p, buffer)| if is_peer(p) && mine.is_ok() { &mut buffer[..] } else { &mut [][..] })
        .collect();
    let agree = |arrived: PartySet, into: &[&mut [u8]]| {
        1 + arrived.iter().filter(|p| *into[p.index()] == message[..]).count() >= quorum
    };
    let gathered =
        net.gather(&out, &mut into, Patience::of(patience), &mut |arrived, into| agree(arrived, into))?;
    if let Err(refusal) = mine {
        return Ok(Err(refusal));
    }
    if agree(gathered.arrived, &into) {
        return Ok(Ok(()));
    }
    let other = Party::all(theirs.len()).find(|p| is_peer(*p) && theirs[p.index()] != message);
    let told = "too few other nodes were told the same, and accepted it; a client must tell all the same";
    let refusal = Refusal::new(Reason::Disagreement, told);
    Ok(Err(other.map_or(refusal.clone(), |other| refusal.because_of(other))))
}

/// Whether any of the serving nodes says yes.
pub(crate) fn any(mine: bool, net: &mut dyn Net) -> Result<bool> {
    Ok(tell_all(&[u8::from(mine)], net)?.iter().any(|(_, [their])| *their == 1) || mine)
}

/// Sends the same to every other serving node, and returns what each has sent.
pub(crate) fn tell_all<const N: usize>(
    message: &[u8; N],
    net: &mut dyn Net,
) -> Result<Vec<(Party, [u8; N])>> {
    tell_and_hear(message, &[], net)
}

/// The same, where some were heard already.
fn tell_and_hear<const N: usize>(
    message: &[u8; N],
    early: &[(Party, [u8; N])],
    net: &mut dyn Net,
) -> Result<Vec<(Party, [u8; N])>> {
    let (me, members) = (net.me(), net.members());
    let mut theirs = vec![[0; N]; net.parties()];
    let is_peer = |p: Party| p != me && members.contains(p);
    let is_due = |p: Party| is_peer(p) && early.iter().all(|(heard, _)| *heard != p);
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if is_peer(p) { &message[..] } else { &[][..] }).collect();
    let mut into: Vec<&mut [u8]> = Party::all(net.parties())
        .zip(&mut theirs)
        .map(|(p, buffer)| if is_due(p) { &mut buffer[..] } else { &mut [][..] })
        .collect();
    net.exchange(&out, &mut into)?;
    early.iter().for_each(|(peer, said)| theirs[peer.index()] = *said);
    Ok(Party::all(theirs.len()).zip(theirs).filter(|(p, _)| is_peer(*p)).collect())
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

    /// Of four nodes one is told something else, refuses, or is gone.
    #[test]
    fn most_go_on_without_one_that_differs_and_no_two_parts_go_on() {
        let all = |of: &(dyn Fn(Party) -> Result<[u8; 32], Refusal> + Sync)| -> Vec<bool> {
            run_parties(4, |net| agree_with_most(of(net.me()), &[1; 32], 3, 1, net))
                .into_iter()
                .map(|outcome| outcome.expect("it works").is_ok())
                .collect()
        };
        assert_eq!(all(&|p| Ok([u8::from(p == Party(1)); 32])), [true, false, true, true]);
        assert_eq!(all(&|p| Ok([u8::from(p.0 < 2); 32])), [false; 4]);
        let spent = |p| if p == Party(3) { Err(Refusal::new(Reason::Spent, "")) } else { Ok([0; 32]) };
        assert_eq!(all(&spent), [true, true, true, false]);
        let outcomes = run_parties(4, |net| match net.me() {
            Party(2) => Ok(Ok(())),
            _ => agree_with_most(Ok([0; 32]), &[1; 32], 3, 1, net),
        });
        assert!(outcomes.into_iter().all(|outcome| outcome == Ok(Ok(()))));
        let sessions = run_parties(4, |net| agree_with_most(Ok([0; 32]), &[net.me().0 / 2; 32], 3, 1, net));
        assert!(sessions.into_iter().all(|outcome| outcome.expect("it works").is_err()));
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
