//! Protocols that abort: all serving nodes agree on every step of a client, and any failure ends the request
//! at all of them.
//!
//! Under protocols with checks against active cheaters ([`Checked`]), a failed check ends all service of this
//! node ([`quarantine`]): it can have told a cheater a bit of a MAC key, or it shows that a node cheats that
//! the others need to go on. The material that the nodes make afresh after every start belongs to one
//! [`epoch`].

use std::time::Duration;

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::computation::modes::StepError;
use crate::material::epoch::Epoch;
use crate::material::preparation::next_lot;
use crate::material::quarantine::REMEDY;
use crate::material::state::Material;
use crate::material::strategy::{MaterialStrategy, Preparation};
use crate::material::{epoch, quarantine, refresh};
use crate::peers::orders::Order;
use crate::requests::agreement::{Early, any};
use crate::requests::begin::{COMPUTE, blame, unavailable};
use crate::requests::channel_lease::ChannelLease;
use crate::requests::strategy::{Ending, Patience, RequestStrategy, StepOf, WithoutClient};

/// The refusal if the epoch of a request was given up while it ran, because a check failed in another one.
const GIVEN_UP: &str =
    "the nodes' epoch ended during the request, and they are making a new one: try again later";

/// A request ends at all nodes or at none.
pub(super) struct Abort {
    /// Whether the protocol has checks.
    pub(super) is_checked: bool,
}

impl RequestStrategy for Abort {
    /// The client has reached all of these nodes. So a node that is not connected here may just be coming
    /// back, and a node that has just come back may not have been ready for a channel.
    fn patience(&self) -> Patience {
        Patience { returning: Duration::from_secs(2), channel_tries: 2, silence: COMPUTE }
    }

    fn tries_another_channel(&self, _: &Error) -> bool {
        true
    }

    /// The key counts as announced if it is announced at any of the serving nodes.
    fn is_announced(&self, here: bool, net: &mut dyn Net) -> Result<bool> {
        any(here, net)
    }

    fn listen(&self, early: &mut Early, net: &mut TlsNet) -> Result<Option<Party>> {
        early.listen(net)
    }

    /// All nodes get the same result: every node accepted the step and all digests are equal, or not.
    fn agree(
        &self,
        mine: Result<[u8; 32], Refusal>,
        _: StepOf<'_>,
        early: &Early,
        net: &mut dyn Net,
    ) -> Result<Result<(), Refusal>> {
        early.agree(mine, net)
    }

    /// A node that falls silent in a check looks as if it had cheated. No client may cause that.
    fn without_client(&self) -> WithoutClient {
        match self.is_checked {
            true => WithoutClient::EndsBetweenPieces,
            false => WithoutClient::EndsAtOnce,
        }
    }

    fn end(
        &self,
        material: &Material,
        channel: &mut ChannelLease<'_>,
        Ending { outcome, gone, epoch }: Ending<'_>,
        _: &mut Faults,
    ) -> Result<(), Refusal> {
        match outcome {
            Ok(()) => {
                channel.sound();
                Ok(())
            }
            // All nodes reach this at the same point.
            Err(StepError::Refused(refusal)) => {
                channel.sound();
                Err(refusal)
            }
            Err(StepError::Own(refusal)) => Err(refusal),
            // All nodes reach this, too. Nothing was used and nothing was given out.
            Err(StepError::Failed(Error::OutOfMaterial { detail })) => {
                channel.sound();
                Err(Refusal::new(Reason::OutOfMaterial, detail))
            }
            Err(StepError::Failed(e)) => {
                material.strategy.judge(material, "serving a request", epoch, &e);
                if let Some(gone) = gone {
                    material.refuse_quarantined()?;
                    return Err(gone);
                }
                tracing::warn!(error = material.members.message(&e), "a request failed among the nodes");
                // The client learns only that a check failed.
                material.refuse_quarantined()?;
                match e {
                    Error::CheckFailed { .. } => Err(Refusal::new(Reason::Unavailable, GIVEN_UP)),
                    e => Err(blame(unavailable(e.clone()), &e)),
                }
            }
        }
    }

    fn corrects(&self) -> bool {
        false
    }
}

/// Material belongs to an epoch, which ends whenever a node starts, and when a check fails.
pub(super) struct Checked {
    /// Whether there is a MAC key.
    pub(super) has_mac_key: bool,
}

impl MaterialStrategy for Checked {
    /// The nodes make an epoch as soon as all of them are connected.
    fn begin(&self, _: &Material, _: [u8; 32], _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn refuse_without_epoch(&self, material: &Material) -> Result<(), Refusal> {
        if let Some(peer) = material.network.peers.which(|state| state.quarantined).iter().next() {
            let message = format!(
                "{peer} is under quarantine, since a check failed, and all nodes are needed. Operators: {REMEDY}"
            );
            return Err(Refusal::new(Reason::Quarantined, message));
        }
        let (there, all) = (material.network.peers.connected().len(), material.members.nodes);
        let message = format!(
            "the nodes are preparing for requests after one of them has started; this needs all of them, and {there} of {all} are \
             connected. Try again later"
        );
        Err(Refusal::new(Reason::Unavailable, message))
    }

    fn judge(&self, material: &Material, during: &str, epoch: Option<&Epoch>, error: &Error) -> bool {
        quarantine::judge(material, during, epoch, error)
    }

    fn give_up(&self, material: &Material, why: &str) {
        material.end_epoch(why);
    }

    /// Material made with the peer's previous start is worthless.
    fn peer_started(&self, material: &Material, peer: Party, _: Option<[u8; 16]>, boot: [u8; 16]) {
        material.end_epoch_of_other_start(peer, boot);
    }

    fn settle(&self, material: &Material) {
        material.settle_quarantine();
    }

    fn follows(&self, order: &Order) -> bool {
        matches!(order, Order::Renew { .. } | Order::Rotate { .. } | Order::Fill { .. })
    }

    fn next(&self, material: &Material) -> Option<Preparation> {
        if refresh::is_due(material) {
            return Some(Preparation::Refresh);
        }
        if epoch::is_due(material) {
            return Some(Preparation::Epoch);
        }
        next_lot(material)
    }

    fn pauses_for_refresh(&self) -> bool {
        true
    }

    fn has_mac_key(&self) -> bool {
        self.has_mac_key
    }
}
