//! Protocols that guarantee the output: a quorum of nodes agrees on each step, and goes on without nodes that
//! are silent or lie.
//!
//! The hello of a request still needs all serving nodes; if it fails, the client asks others. For later steps
//! it is enough that a quorum was told the same. Any two quorums have a node in common that does not cheat,
//! so no two groups of nodes go on with different steps, and a node that falls silent or lies holds up
//! nothing. A node that was told something else stops with an error.
//!
//! A cheating node is outvoted, so no failed check ends anything: otherwise a cheater could stop the others.

use std::time::Duration;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::net::{Net, Patience as Limits};
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::computation::modes::StepError;
use crate::material::epoch::Epoch;
use crate::material::preparation::next_lot;
use crate::material::refresh;
use crate::material::state::Material;
use crate::material::strategy::{MaterialStrategy, Preparation};
use crate::peers::orders::Order;
use crate::requests::agreement::{ACCEPTED, Early, REFUSED};
use crate::requests::begin::{blame, unavailable};
use crate::requests::channel_lease::ChannelLease;
use crate::requests::strategy::{Ending, Patience, RequestStrategy, StepOf, WithoutClient};

/// The unit of time limits while nodes use a key. They wait [`ONLINE`] of these for each other's messages,
/// and in total no longer than their client waits for them (60 s), so that they can tell the client which
/// node was silent.
const SILENCE: Duration = Duration::from_secs(5);
/// How many of these time limits nodes wait for what they cannot do without. Longer than a client may take
/// for a step.
pub(crate) const ONLINE: u32 = 8;

/// Requests continue as long as a quorum does.
pub(super) struct Guaranteed {
    /// Votes needed for a step. Any two quorums have a node in common that does not cheat.
    pub(super) quorum: usize,
}

impl RequestStrategy for Guaranteed {
    /// The client continues without a node that is not connected.
    fn patience(&self) -> Patience {
        Patience { returning: Duration::ZERO, channel_tries: 1, silence: SILENCE }
    }

    fn tries_another_channel(&self, error: &Error) -> bool {
        !matches!(error, Error::Timeout { .. })
    }

    /// The serving nodes that hold the key are enough.
    fn is_announced(&self, _: bool, _: &mut dyn Net) -> Result<bool> {
        Ok(true)
    }

    /// The others may continue without a node that has refused.
    fn listen(&self, _: &mut Early, _: &mut TlsNet) -> Result<Option<Party>> {
        Ok(None)
    }

    fn agree(
        &self,
        mine: Result<[u8; 32], Refusal>,
        StepOf { session, uses_key }: StepOf<'_>,
        _: &Early,
        net: &mut dyn Net,
    ) -> Result<Result<(), Refusal>> {
        agree_with_most(mine, session, self.quorum, if uses_key { ONLINE } else { 1 }, net)
    }

    /// A client that ends one of its connections must not make this node look silent to the others.
    fn without_client(&self) -> WithoutClient {
        WithoutClient::GoesOn
    }

    /// One node may have refused a step with which the others continue.
    fn end(
        &self,
        material: &Material,
        channel: &mut ChannelLease<'_>,
        Ending { outcome, .. }: Ending<'_>,
        faults: &mut Faults,
    ) -> Result<(), Refusal> {
        let lost = channel.net().map(|net| net.lost()).unwrap_or_default();
        faults.silent = faults.silent.and(lost);
        if lost.is_empty() && matches!(outcome, Ok(()) | Err(StepError::Failed(Error::OutOfMaterial { .. })))
        {
            channel.sound();
        }
        outcome.map_err(|fault| match fault {
            StepError::Refused(refusal) | StepError::Own(refusal) => refusal,
            StepError::Failed(Error::OutOfMaterial { detail }) => Refusal::new(Reason::OutOfMaterial, detail),
            StepError::Failed(e) => {
                tracing::warn!(error = material.members.message(&e), "a request failed among the nodes");
                let refusal = blame(unavailable(e.clone()), &e);
                match (&e, lost.iter().next()) {
                    (Error::Missing { .. }, Some(silent)) => refusal.because_of(silent),
                    _ => refusal,
                }
            }
        })
    }

    fn corrects(&self) -> bool {
        true
    }
}

/// Compares a step, and the session that it is part of, with enough other nodes to have `quorum` with this
/// one. A client may be slower with some nodes than with others: nodes that do not have the step yet are
/// waited for, `patience` time limits.
fn agree_with_most(
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
        net.gather(&out, &mut into, Limits::of(patience), &mut |arrived, into| agree(arrived, into))?;
    if let Err(refusal) = mine {
        return Ok(Err(refusal));
    }
    if agree(gathered.arrived, &into) {
        return Ok(Ok(()));
    }
    let other = Party::all(theirs.len()).find(|p| is_peer(*p) && theirs[p.index()] != message);
    let text =
        "too few other nodes received and accepted the same step; a client must send all nodes the same";
    let refusal = Refusal::new(Reason::Disagreement, text);
    Ok(Err(other.map_or(refusal.clone(), |other| refusal.because_of(other))))
}

/// All nodes keep one permanent stock, which every node begins for itself. There is nothing to make afresh. A
/// node that starts again, or claims to, costs the others nothing except its own part of the stock.
pub(super) struct Standing {
    /// Votes needed to spend an item.
    pub(super) quorum: usize,
}

impl MaterialStrategy for Standing {
    fn begin(&self, material: &Material, id: [u8; 32], stored: &[u8]) -> Result<()> {
        let setup = material.config.restore_setup(material.members.me, stored)?;
        material.keep_permanent(Epoch::permanent(material, id, setup, self.quorum)?);
        Ok(())
    }

    fn refuse_without_epoch(&self, _: &Material) -> Result<(), Refusal> {
        Ok(())
    }

    fn judge(&self, _: &Material, _: &str, _: Option<&Epoch>, _: &Error) -> bool {
        false
    }

    fn give_up(&self, _: &Material, _: &str) {}

    /// The peer has lost its part of the stock.
    fn peer_started(&self, material: &Material, peer: Party, before: Option<[u8; 16]>, boot: [u8; 16]) {
        if let Some(epoch) = material.epoch().filter(|_| before != Some(boot)) {
            epoch.lots.forget(peer);
        }
    }

    fn settle(&self, _: &Material) {}

    fn follows(&self, order: &Order) -> bool {
        matches!(order, Order::Rotate { .. } | Order::Fill { .. })
    }

    fn next(&self, material: &Material) -> Option<Preparation> {
        if refresh::is_due(material) {
            return Some(Preparation::Refresh);
        }
        next_lot(material)
    }

    /// Requests go on with the shares and the stock that they began with.
    fn pauses_for_refresh(&self) -> bool {
        false
    }

    fn has_mac_key(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::mesh::run_parties;

    use super::*;

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
}
