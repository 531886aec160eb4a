//! The threads that follow channels led by another node ([`crate::requests::channels`]).

use std::time::{Duration, Instant};

use polyclave_protocol::session::hello;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use crate::material::epoch::Allowance;
use crate::material::stock::bounded::Ahead;
use crate::requests::begin::{Acceptance, HELD_BACK, HELLO, NOT_HERE, handshake};
use crate::requests::channels::{Announced, Channel, GivenBack, Lent, PING_EVERY, next_request};
use crate::requests::pending::Absent;
use crate::requests::service::Service;
use crate::threads::IDLE_LOOK;

/// A leader that has sent nothing for this long, not even a ping, is taken for gone.
const SILENT: Duration = Duration::from_secs(6 * PING_EVERY.as_secs());
/// How long a follower waits for the client to bring a request that the leader has announced.
const ARRIVAL: Duration = Duration::from_secs(2);

/// Runs a follower's side of a channel.
pub(crate) fn listen_on_channel(service: &Service, leader: Party, serving: PartySet, name: &[u8; 16]) {
    let opened = service.network.follow_channel(serving, name);
    let mut channel = match opened {
        Ok(net) => Channel::new(net),
        Err(e) => return tracing::debug!(error = service.members.message(&e), "a channel did not open"),
    };
    let mut spoken = Instant::now();
    while !service.threads.is_stopping() {
        // Wait for any peer: when one of them is gone, the channel is of no use.
        match channel.net.wait(serving, IDLE_LOOK) {
            Ok(Some(_)) => {}
            // The leader's machine stopped without closing the connection.
            Ok(None) if spoken.elapsed() > SILENT => return tracing::debug!("a channel fell silent"),
            Ok(None) => continue,
            Err(e) => return tracing::debug!(error = service.members.message(&e), "a channel ended"),
        }
        // A request that its leader announces now asks other nodes.
        if service.threads.is_stopping() {
            return;
        }
        spoken = Instant::now();
        let announced = match next_request(leader, &mut channel.net) {
            Ok(Some(request)) => request,
            Ok(None) => continue,
            Err(e) => return tracing::debug!(error = service.members.message(&e), "a channel ended"),
        };
        let returned = lend(service, leader, channel, announced);
        match returned {
            Some(free) => (channel, spoken) = (free, Instant::now()),
            None => return,
        }
    }
}

/// Lends the channel to the request that its leader has announced, until the request gives it back. If the
/// request does not come, the others are told why. `None` if the channel is of no use afterwards.
fn lend(service: &Service, leader: Party, mut channel: Channel, announced: Announced) -> Option<Channel> {
    loop {
        let request = match service.pending.expect(&announced.ticket, leader, ARRIVAL) {
            Ok(request) => request,
            Err(Absent::WaitsForRefresh) => return decline(service, channel, HELD_BACK, announced),
            Err(Absent::NotHere) => return decline(service, channel, NOT_HERE, announced),
        };
        let (lent, back) = Lent::new(channel, announced);
        drop(request.try_send(lent));
        match back.recv().ok()? {
            GivenBack { channel, taken: true } => return channel,
            // The request had just given up waiting: look again why.
            GivenBack { channel: untaken, taken: false } => channel = untaken?,
        }
    }
}

/// Tells the others in the hello round that this node does not have the request, or that the request waits
/// here for a refresh to end. Where the hello takes one round, the channel ends with it: the others begin
/// again in two rounds, and are told there.
pub(crate) fn decline(
    service: &Service,
    channel: Channel,
    how: Acceptance,
    announced: Announced,
) -> Option<Channel> {
    let (Announced { circuits, at_once, .. }, Channel { mut net, prepared }) = (announced, channel);
    let context_id = service.material.context().map(|context| context.id()).unwrap_or_default();
    let nothing = [0; 32];
    net.set_deadline(Some(Instant::now() + HELLO));
    let parameters = handshake(service, context_id, how, (&nothing, &nothing), circuits);
    if at_once {
        // That the nodes differ is what this node says.
        drop(prepared?.begin(&parameters, &mut net, None));
        spend_claimed(service, circuits?, &mut net);
        return None;
    }
    let outcome = hello(&parameters, &mut net);
    net.set_deadline(None);
    matches!(outcome, Err(Error::Disagreement { .. })).then(|| Channel::new(net))
}

/// Spends what the leading node has claimed with its message of a hello in one round, as that node has.
fn spend_claimed(service: &Service, ahead: Ahead, net: &mut TlsNet) {
    let Ok(context) = service.material.context() else { return };
    let allowance = Allowance { memory: service.memory.part_bytes(), takes_circuits: true };
    let stock = context.stock(&service.material, allowance).filter(|_| ahead.count > 0);
    if let Some(Err(e)) = stock.map(|stock| stock.claim_ahead(ahead, net)) {
        tracing::debug!(error = service.members.message(&e), "a claim of a declined request was not heard");
    }
}
