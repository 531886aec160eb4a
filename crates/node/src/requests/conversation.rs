//! The rest of a request, after the nodes have agreed on it. The nodes compare each step of the client before
//! they use it. What each operation does then is in `operations/`.

mod client_connection;
mod keepalive;
mod steps;

use std::collections::HashMap;
use std::sync::Arc;

use polyclave_api::{Permission, Reason, Refusal, Step};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::dealt::HeldSeeds;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::session::AgreedSession;
use polyclave_protocol::{Error, Party};
use polyclave_traces::part;
use polyclave_transport::TlsNet;

use crate::clients::approvals::Approved;
use crate::clients::client::Client;
use crate::computation::circuits::Circuits;
use crate::computation::modes::StepError;
use crate::computation::progress::Progress;
use crate::material::delivery::refuse_at_maker;
use crate::material::epoch::SessionContext;
use crate::material::refresh::HeldOff;
use crate::material::stock::bounded::BoundedStock;
use crate::requests::agreement::agree;
use crate::requests::begin::{Begun, NotBegun, begin};
use crate::requests::channel_lease::ChannelLease;
use crate::requests::plan::Plan;
use crate::requests::service::Service;
use crate::requests::strategy::{Ending, WithoutClient};
use client_connection::ClientConnection;
use keepalive::KeptAlive;

/// The outcome of a request, for the audit log.
pub(crate) struct Outcome {
    /// Blocks that were computed, or at least charged to the key's budget.
    pub(crate) blocks: u64,
    /// The faults of other nodes that the protocol corrected.
    pub(crate) faults: Faults,
    pub(crate) result: Result<(), Refusal>,
}

/// One request in its session.
pub(crate) struct Serving<'a, 'c> {
    pub(crate) service: &'a Service,
    pub(crate) client: &'a Client,
    /// What it asks of the rules.
    pub(crate) asked: Vec<Permission>,
    pub(crate) context: &'a SessionContext,
    pub(crate) channel: &'a mut ChannelLease<'c>,
    pub(crate) connection: ClientConnection<'a>,
    pub(crate) session: [u8; 32],
    pub(crate) blocks: u64,
    /// What the client deals of the first mask, until it is used.
    pub(crate) dealt: Option<HeldSeeds>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) faults: Faults,
}

/// A request gave way to a refresh before it began. Nothing was used.
pub(crate) struct GaveWay {
    /// Blocks that were paid for now.
    pub(crate) blocks: u64,
    /// What is paid in all.
    pub(crate) paid: Paid,
}

/// Serves a planned request. A refresh was held off since before the plan read any share.
pub(crate) fn serve(
    service: &Service,
    client: &Client,
    (plan, mut paid): (Plan, Paid),
    held_off: HeldOff<'_>,
    net: &mut TlsNet,
) -> Result<Outcome, GaveWay> {
    let (mut blocks, mut faults) = (0, Faults::default());
    let result = match try_serve(service, client, (plan, held_off, &mut paid), net, &mut blocks, &mut faults)
    {
        Ok(()) => Ok(()),
        Err(NotBegun::GaveWay) => return Err(GaveWay { blocks, paid }),
        Err(NotBegun::Refused(refusal)) => Err(refusal),
    };
    if let Err(refusal) = &result {
        service.members.refuse(net, refusal);
    }
    Ok(Outcome { blocks, faults, result })
}

fn try_serve(
    service: &Service,
    client: &Client,
    (mut plan, mut held_off, paid): (Plan, HeldOff<'_>, &mut Paid),
    net: &mut TlsNet,
    blocks: &mut u64,
    faults: &mut Faults,
) -> Result<(), NotBegun> {
    let (first, dealt) = (plan.request.first.take(), plan.dealt.take());
    let ready = refuse_at_maker(&service.material).and_then(|()| service.material.context());
    // A round has begun since this request held it off, and waits for it.
    if ready.is_err() && service.material.is_in_the_way(plan.request.operation.describe().only_uses()) {
        return Err(NotBegun::GaveWay);
    }
    let ready = ready.and_then(|context| {
        let _part = part("pay");
        admit_first(service, client, (&mut plan, paid), first.as_ref(), blocks)?;
        Ok(context)
    });
    // The request was refused here. The other nodes' channel need not wait for it.
    let context = ready.inspect_err(|_| service.pending.refuse(plan.ticket))?;
    held_off.has_read();
    let mut is_awaited = || net.is_alive() && !service.threads.is_stopping();
    let Begun { mut channel, session, stock } = begin(service, &plan, &context, &mut is_awaited)?;
    let likeness = plan.likeness();
    let connection = ClientConnection::new(net, Party(service.members.nodes as u8));
    let (id, blocks_paid) = (session.id(), *blocks);
    let mut serving = Serving {
        service,
        client,
        asked: plan.asked,
        context: &context,
        channel: &mut channel,
        connection,
        session: id,
        blocks: blocks_paid,
        dealt,
        progress: Arc::new(Progress::new(service.computed.clone())),
        faults: Faults::default(),
    };
    let spent = match plan.request.approval {
        Some(_) => serving.spend_approval(plan.approved.as_ref(), plan.digest),
        None => Ok(()),
    };
    let joined = spent.and_then(|()| serving.join(session, stock.clone()));
    let outcome = joined.and_then(|protocol| {
        let _part = part("serve");
        let outcome = plan.planned.run(&mut serving, protocol, first);
        serving.note_waits();
        outcome
    });
    (*blocks, *faults) = (serving.blocks, serving.faults);
    if let Some(first) = stock.and_then(|stock| stock.first_taken()) {
        service.foresight.note(likeness, first);
    }
    let ending = Ending { outcome, gone: serving.connection.gone, epoch: context.epoch() };
    Ok(service.strategy.end(&service.material, &mut channel, ending, faults)?)
}

/// What a request has paid that has not begun yet: blocks of keys, by their ids. However often it tries to
/// begin, it pays once.
#[derive(Default)]
pub(crate) struct Paid(HashMap<[u8; 16], u64>);

impl Paid {
    /// Takes so many blocks of a key out, or as many as there are.
    fn take(&mut self, key: &[u8; 16], blocks: u64) -> u64 {
        let left = self.0.entry(*key).or_default();
        let taken = blocks.min(*left);
        *left -= taken;
        taken
    }
}

/// Checks the first step and charges its blocks, before the nodes compare it with the request. `now` is the
/// number of blocks that were paid for now, also if a further key cannot pay.
fn admit_first(
    service: &Service,
    client: &Client,
    (plan, paid): (&mut Plan, &mut Paid),
    first: Option<&Step>,
    now: &mut u64,
) -> Result<(), Refusal> {
    let (mut before, mut all) = (std::mem::take(paid), 0);
    for (info, blocks) in plan.planned.blocks(first)? {
        let due = blocks - before.take(&info.id, blocks);
        service.pay((client, plan.asked.as_slice()), info, due, plan.request.serving)?;
        *paid.0.entry(info.id).or_default() += blocks;
        *now += due;
        all += blocks;
    }
    plan.paid = all;
    // A request that begins again has paid before. But its plan counted its commands anew.
    if *now == 0 && all > 0 { service.protect(plan.request.serving) } else { Ok(()) }
}

impl<'a> Serving<'a, '_> {
    fn join(
        &mut self,
        mut session: AgreedSession,
        stock: Option<Arc<BoundedStock>>,
    ) -> Result<AnyServiceSession, StepError> {
        let serving = self.net()?.members();
        Ok(self.context.join(&self.service.material, stock, session.stream(), serving)?)
    }

    /// Spends the approval where this node's rules want one, and begins only if all serving nodes say that
    /// they have done so. All nodes come here, because they have compared the request with its approval.
    fn spend_approval(&mut self, approved: Option<&Approved>, digest: [u8; 32]) -> Result<(), StepError> {
        let serving = self.net()?.members();
        let service = self.service;
        let spent = approved.map_or(Ok(()), |approved| {
            service.approvals().spend(approved).and_then(|()| service.rollback_guard.protect(serving))
        });
        agree(spent.map(|()| digest), self.net()?)?.map_err(StepError::Refused)
    }

    pub(crate) fn net(&mut self) -> Result<&mut TlsNet, Error> {
        self.channel.net()
    }

    /// Says of the part of the request that ends, for traces, how long this node has waited for which other
    /// one since it said that last.
    pub(crate) fn note_waits(&mut self) {
        self.channel.note_waits(&self.service.members);
    }

    /// The network that the protocol uses while it makes a key. Making a key continues even if the client is
    /// gone.
    pub(crate) fn net_of_peers(&mut self) -> Result<KeptAlive<'_, 'a>, Error> {
        let net_of_peers = self.service.faults.net_of_peers(self.channel.net()?);
        Ok(KeptAlive {
            net_of_peers,
            connection: &mut self.connection,
            progress: &self.progress,
            without_client: WithoutClient::GoesOn,
        })
    }

    /// The network that the protocol uses while it uses a key.
    pub(crate) fn partners_for_client(&mut self) -> Result<KeptAlive<'_, 'a>, Error> {
        let without_client = self.service.strategy.without_client();
        Ok(KeptAlive { without_client, ..self.net_of_peers()? })
    }

    pub(crate) fn circuits(
        &self,
        cipher: &str,
        protocol: &AnyServiceSession,
    ) -> Result<Arc<Circuits>, StepError> {
        let unknown =
            || StepError::Refused(Refusal::new(Reason::Key, format!("there is no cipher '{cipher}' here")));
        self.service.library.of(cipher, protocol).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_paid_for_a_key_is_credited_to_it_once() {
        let (a, b) = ([1; 16], [2; 16]);
        let mut paid = Paid(HashMap::from([(a, 5)]));
        assert_eq!([paid.take(&b, 3), paid.take(&a, 3), paid.take(&a, 3), paid.take(&a, 3)], [0, 3, 2, 0]);
    }
}
