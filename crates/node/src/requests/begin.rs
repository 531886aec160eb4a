//! How a request begins among the nodes: it gets a channel, and the nodes compare it in the hello round.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::{self, AgreedSession, Greeted, HandshakeParameters, Prepared};
use polyclave_traces::part;
use polyclave_transport::TlsNet;

use crate::material::epoch::{Allowance, SessionContext, SessionContextId};
use crate::material::stock::bounded::{Ahead, BoundedStock};
use crate::requests::channel_lease::{ChannelLease, acquire};
use crate::requests::channels::{Announced, announce};
use crate::requests::plan::Plan;
use crate::requests::service::Service;

/// The setting that differs at a node where the request waits for a refresh to end.
const REFRESH: &str = "whether a refresh is under way";

/// What a node says in the hello round of a request that the leading node has announced: of a refresh, and of
/// the request.
pub(crate) type Acceptance = [&'static [u8]; 2];
const ACCEPTED: Acceptance = [b"none", b"accepted"];
pub(crate) const NOT_HERE: Acceptance = [b"none", b"not here"];
pub(crate) const HELD_BACK: Acceptance = [b"under way", b"not here"];

/// Why a request has not begun among the nodes.
pub(crate) enum NotBegun {
    Refused(Refusal),
    /// Another node keeps it waiting for a refresh, or this node's refresh may wait for it. No key was used,
    /// and this node has not opened its nonce in a hello of two rounds. So it may begin again, and its next
    /// hello takes two rounds as well.
    GaveWay,
}

impl From<Refusal> for NotBegun {
    fn from(refusal: Refusal) -> NotBegun {
        NotBegun::Refused(refusal)
    }
}

/// A request on which the nodes have agreed.
pub(crate) struct Begun<'c> {
    pub(crate) channel: ChannelLease<'c>,
    pub(crate) session: AgreedSession,
    /// What it may take of the stock.
    pub(crate) stock: Option<Arc<BoundedStock>>,
}

/// What nodes that are not in the same epoch of shares differ in.
const SECRETS: &str = "common secrets";
/// How long a follower waits for the leading node to give it a channel.
const FOLLOW: Duration = Duration::from_secs(15);
/// The time limit of the hello, however slowly the bytes arrive. A peer that takes longer is taken for gone.
pub(crate) const HELLO: Duration = Duration::from_secs(5);
/// How long to wait for a peer in the middle of a request. The peer may itself wait for its client, or for
/// its processor.
pub(crate) const COMPUTE: Duration = Duration::from_secs(45);

/// Gets a channel and agrees on the request with the other serving nodes. A channel that turns out to be dead
/// is replaced as long as this node has not opened its nonce: until then nothing has been used, and nobody
/// knows any session id.
///
/// After that, any error ends the request. The node that speaks last in the hello sees the session id first,
/// and nonces and counters come from that id. If the hello could be repeated, this node could end one attempt
/// after the other until it likes the id, thousands in the time of one request. So a cheater has one draw for
/// each request: q requests that it makes fail give it the best of q + 1 ids, which is log2 (q + 1) bits, and
/// each of them is a refusal in the audit logs. (An honest client repeats a request only a few times. A
/// client that cheats as well can ask for any number of sessions and take the one that it likes. It does not
/// matter then which node speaks last.)
///
/// Nodes that are far from each other and have prepared the session ([`Prepared`]) say hello in one round. If
/// that fails, for whatever reason, they begin once again, in two rounds and on another channel. So there is
/// one more draw, and requests that a node refuses are refused as in two rounds.
pub(crate) fn begin<'c>(
    service: &'c Service,
    plan: &Plan,
    context: &SessionContext,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Begun<'c>, NotBegun> {
    let deadline = Instant::now() + FOLLOW;
    let mut may_be_at_once = plan.is_first_try;
    loop {
        let mut channel = acquire(service, plan, deadline, client_is_there)?;
        let circuits = channel.circuits();
        let memory = service.memory.part_bytes();
        let allowance = Allowance { memory, takes_circuits: circuits.is_some() };
        let stock = context.stock(&service.material, allowance);
        let ahead = stock.as_deref().zip(circuits);
        let may_be = may_be_at_once && Instant::now() + 2 * HELLO < deadline;
        let hello = part("hello");
        let at_once = begin_at_once(service, plan, context, (&mut channel, may_be), ahead);
        match at_once {
            AtOnce::No => {}
            AtOnce::Agreed(session) => {
                channel.note_waits(&service.members);
                await_computation(service, plan, channel.net().map_err(unavailable)?);
                return Ok(Begun { channel, session, stock });
            }
            AtOnce::Failed(e) if Instant::now() + HELLO < deadline => {
                let error = service.members.message(&e);
                tracing::info!(error, "a request begins in two rounds, because one was not enough");
                if let Error::Timeout { peer, .. } = &e {
                    service.channels.forget(*peer);
                }
                may_be_at_once = false;
                continue;
            }
            AtOnce::Failed(e) | AtOnce::Over(e) => return Err(blame(unavailable(e.clone()), &e).into()),
        }
        let net = channel.net().map_err(|e| NotBegun::Refused(unavailable(e)))?;
        let until = Instant::now() + HELLO;
        match greet(service, plan, (context.id(), circuits), net, until) {
            Ok(_) if service.faults.leaves_hello() => {}
            Ok(greeted) => {
                let opened = open(greeted, ahead, &mut service.faults.net_in_hello(net));
                await_computation(service, plan, net);
                channel.note_waits(&service.members);
                drop(hello);
                return match opened {
                    Ok((session, next)) => {
                        channel.prepare(next);
                        Ok(Begun { channel, session, stock })
                    }
                    // Nobody knows which node cheats, and the others may continue on this channel.
                    Err(e @ Error::Equivocation { .. }) => {
                        Err(Refusal::new(Reason::Disagreement, e.to_string()).into())
                    }
                    Err(e) => Err(blame(unavailable(e.clone()), &e).into()),
                };
            }
            Err(Error::Disagreement { field: REFRESH, .. }) => {
                channel.sound();
                return Err(NotBegun::GaveWay);
            }
            Err(Error::Disagreement { peer, field: SECRETS }) => {
                channel.sound();
                let message = format!(
                    "this node and {peer} have other common secrets: one of them has taken fresh ones into use just now, and the \
                     other is about to; try again"
                );
                return Err(Refusal::new(Reason::Unavailable, message).into());
            }
            Err(e @ Error::Disagreement { .. }) => {
                channel.sound();
                return Err(blame(Refusal::new(Reason::Disagreement, disagreement(&e)), &e).into());
            }
            Err(e @ Error::Equivocation { .. }) => {
                return Err(Refusal::new(Reason::Disagreement, e.to_string()).into());
            }
            Err(e) if service.strategy.tries_another_channel(&e) && Instant::now() + HELLO < deadline => {
                tracing::debug!(error = service.members.message(&e), "a channel failed before use");
                // Channels with this peer that have been free as long have probably failed for the same
                // reason.
                if let Error::Closed { peer, .. } | Error::Timeout { peer, .. } = &e {
                    service.channels.forget(*peer);
                }
            }
            Err(e) => return Err(blame(unavailable(e.clone()), &e).into()),
        }
    }
}

/// From the hello on, a node waits as long as its peers may compute.
fn await_computation(service: &Service, plan: &Plan, net: &mut TlsNet) {
    net.set_deadline(None);
    net.set_idle_limit(match plan.request.operation.describe().only_uses() {
        true => service.faults.silence(service.strategy.patience().silence),
        false => COMPUTE,
    });
}

/// What came of a hello in one round.
enum AtOnce {
    /// It takes two.
    No,
    Agreed(AgreedSession),
    /// Nobody has begun, or the others will notice that this node has not.
    Failed(Error),
    /// The others have begun.
    Over(Error),
}

/// Runs the hello in one round, if the leading node says so. What is claimed ahead goes with its message,
/// before the nodes have compared the request. If they differ, that is spent at all nodes, and nobody uses
/// it. After an error the channel is of no use any more.
fn begin_at_once(
    service: &Service,
    plan: &Plan,
    context: &SessionContext,
    (channel, may_be): (&mut ChannelLease<'_>, bool),
    ahead: Option<(&BoundedStock, Ahead)>,
) -> AtOnce {
    let (circuits, announced, prepared) = (channel.circuits(), channel.is_at_once(), channel.take_prepared());
    let (digest, key) = (&plan.digest, &plan.key_digest());
    let parameters = |how| handshake(service, context.id(), how, (digest, key), circuits);
    let takes_circuits = circuits.is_some() && service.material.knows_circuits();
    let may_be = may_be && takes_circuits && plan.request.operation.describe().only_uses();
    let fits = |prepared: &Prepared| may_be && prepared.fits(&parameters(ACCEPTED));
    let leads = announced.is_none();
    let (prepared, parameters) = match (announced, prepared) {
        (Some(false), _) | (None, None) => return AtOnce::No,
        (None, Some(prepared)) if !fits(&prepared) => return AtOnce::No,
        (Some(true), None) => {
            return AtOnce::Failed(Error::System("a hello in one round was not prepared here".into()));
        }
        // All begin again, in two rounds.
        (Some(true), Some(prepared)) if !fits(&prepared) => (prepared, parameters(NOT_HERE)),
        (_, Some(prepared)) => (prepared, parameters(ACCEPTED)),
    };
    let claim = ahead.filter(|(_, ahead)| ahead.count > 0);
    let mut claimed = |net: &mut dyn Net| match claim {
        Some((stock, ahead)) => stock.claim_ahead(ahead, net),
        None => Ok(()),
    };
    let net = match channel.net() {
        Ok(net) => net,
        Err(e) => return AtOnce::Failed(e),
    };
    net.set_idle_limit(HELLO);
    net.set_deadline(Some(Instant::now() + HELLO));
    let agreed = if leads {
        lead_at_once(service, plan, (prepared, &parameters, circuits), net, &mut claimed)
    } else {
        let net = &mut service.faults.net_in_hello(net);
        let agreed = prepared.begin(&parameters, net, None);
        // Also if the nodes differ: the leading node has spent it.
        match (agreed, claimed(net)) {
            (Ok(_), Err(e)) => return AtOnce::Over(e),
            (agreed, _) => agreed,
        }
    };
    match agreed {
        Ok((session, next)) => {
            channel.prepare(next);
            service.begun_at_once.fetch_add(1, Relaxed);
            AtOnce::Agreed(session)
        }
        Err(e) => AtOnce::Failed(e),
    }
}

/// The leading node's part.
fn lead_at_once(
    service: &Service,
    plan: &Plan,
    (prepared, parameters, circuits): (Prepared, &HandshakeParameters, Option<Ahead>),
    net: &mut TlsNet,
    claimed: session::More<'_>,
) -> Result<(AgreedSession, Prepared), Error> {
    let (began, mut claiming) = (Instant::now(), Duration::ZERO);
    announce(Some(&Announced { ticket: plan.ticket, circuits, at_once: true }), net)?;
    let mut claimed = |net: &mut dyn Net| {
        let began = Instant::now();
        let outcome = claimed(net);
        claiming = began.elapsed();
        outcome
    };
    let agreed = prepared.begin(parameters, &mut service.faults.net_in_hello(net), Some(&mut claimed));
    match &agreed {
        Ok(_) => service.delay.note(began.elapsed().saturating_sub(claiming)),
        // One like it is not to cost circuits again before one has been served.
        Err(_) => service.foresight.note(plan.likeness(), Ahead::default()),
    }
    agreed
}

/// Announces the request, if this node leads, and runs the first round of the hello. The second round must
/// end within the same time limit.
fn greet(
    service: &Service,
    plan: &Plan,
    (context_id, circuits): (SessionContextId, Option<Ahead>),
    net: &mut TlsNet,
    until: Instant,
) -> Result<Greeted, Error> {
    net.set_idle_limit(HELLO);
    net.set_deadline(Some(until));
    let leads = leads(net);
    let began = Instant::now();
    if leads {
        announce(Some(&Announced { ticket: plan.ticket, circuits, at_once: false }), net)?;
    }
    let (digest, key) = (&plan.digest, &plan.key_digest());
    let parameters = handshake(service, context_id, ACCEPTED, (digest, key), circuits);
    let greeted = session::greet(&parameters, &mut service.faults.net_in_hello(net));
    match &greeted {
        Ok(greeted) => {
            if leads {
                service.delay.note(began.elapsed());
            }
            note_offers(service, greeted);
        }
        Err(_) => net.set_deadline(None),
    }
    greeted
}

/// Whether this node leads the nodes of a channel.
fn leads(net: &dyn Net) -> bool {
    net.members().iter().next() == Some(net.me())
}

/// Runs the second round of the hello. What is claimed ahead comes with it: the leading node tells it behind
/// its nonce. All nodes have compared the request by then, and will use the circuits in this session or not
/// at all. Circuits do not depend on the session, and the leading node chooses freely which of them are taken
/// either way.
fn open(
    greeted: Greeted,
    ahead: Option<(&BoundedStock, Ahead)>,
    net: &mut dyn Net,
) -> Result<(AgreedSession, Prepared), Error> {
    match ahead {
        Some((stock, ahead)) if ahead.count > 0 && leads(net) => {
            greeted.open_and_prepare(net, Some(&mut |net| stock.claim_ahead(ahead, net)))
        }
        Some((stock, ahead)) if ahead.count > 0 => {
            let opened = greeted.open_and_prepare(net, None)?;
            stock.claim_ahead(ahead, net)?;
            Ok(opened)
        }
        _ => greeted.open_and_prepare(net, None),
    }
}

/// Says in the log which peers speak less in this session than they said when they connected. The session is
/// of the older version then.
fn note_offers(service: &Service, greeted: &Greeted) {
    for (peer, version) in greeted.older() {
        if service.network.peers.note_offer(peer, version) {
            let peer = service.members.name_of(peer);
            tracing::warn!(peer, version, "a peer speaks an older version in a session than it said before");
        }
    }
}

/// The refusal that reports an error, including the node that the error names: that the client may try
/// without it, not that it cheats.
pub(crate) fn blame(refusal: Refusal, error: &Error) -> Refusal {
    match error {
        Error::Closed { peer, .. }
        | Error::Timeout { peer, .. }
        | Error::Peer { peer, .. }
        | Error::OutOfStep { peer, .. }
        | Error::Unanswered { peer, .. }
        | Error::Disagreement { peer, .. } => refusal.because_of(*peer),
        _ => refusal,
    }
}

fn disagreement(e: &Error) -> String {
    match e {
        Error::Disagreement { peer, field: "acceptance of the request" } => {
            format!("{peer} has not accepted the request, or was not asked; see its own answer")
        }
        Error::Disagreement { peer, field: "request" } => {
            format!("this node and {peer} received different requests: a client must send all nodes the same")
        }
        Error::Disagreement { peer, field: "key" } => {
            format!("this node and {peer} hold different keys of this name")
        }
        other => other.to_string(),
    }
}

/// What the nodes compare in the hello round.
pub(crate) fn handshake(
    service: &Service,
    context_id: SessionContextId,
    [refresh, acceptance]: Acceptance,
    (digest, key): (&[u8; 32], &[u8; 32]),
    circuits: Option<Ahead>,
) -> HandshakeParameters {
    // Compare first whether each node can begin now, and then whether it accepts the request: a node that
    // cannot serve now says why in its own answer.
    let parameters = service
        .members
        .handshake()
        .with(REFRESH, refresh)
        .with("acceptance of the request", acceptance)
        .with("memory_per_request_mib (node.toml)", &service.memory.part_bytes().to_le_bytes())
        .with(SECRETS, &context_id.setup)
        .with("epoch", &context_id.epoch);
    // Only the leading node decides it, and tells all others the same.
    let parameters = match circuits {
        Some(ahead) => parameters.with("garbled circuits from the stock", &ahead.bytes()),
        None => parameters,
    };
    service.config.handshake(parameters).with("request", digest).with("key", key)
}

/// The refusal if the nodes cannot be reached, or one failed.
pub(crate) fn unavailable(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, format!("the nodes could not compute this together: {e}"))
}
