//! How a request gets its channel: the leading node takes a free one, the other nodes get it from the leader.

use std::time::{Duration, Instant};

use polyclave_api::{Reason, Refusal};
use polyclave_protocol::session::Prepared;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_traces::{is_recorded, note, part};
use polyclave_transport::TlsNet;

use crate::error::stops;
use crate::material::stock::bounded::Ahead;
use crate::members::Members;
use crate::requests::begin::{NOT_HERE, NotBegun, blame, unavailable};
use crate::requests::channels::{Announced, Channel, Channels, Lent, Turn};
use crate::requests::follow::decline;
use crate::requests::memory::{Memory, Part};
use crate::requests::plan::Plan;
use crate::requests::service::Service;
use crate::threads::POLL_INTERVAL;

/// How long a request waits for a channel at the leading node.
const QUEUE: Duration = Duration::from_secs(10);
/// How long a follower waits for its part of the memory once the leader has a channel. It is less than the
/// time limit of the hello.
const FOLLOWERS_TURN: Duration = Duration::from_millis(1500);

/// How long a node that is not connected is waited for where two can go on without it.
const SOON_BACK: Duration = Duration::from_millis(300);

/// A channel for one request. When dropped it goes back to where it came from, to be used again if it is
/// [`sound`](ChannelLease::sound).
pub(crate) struct ChannelLease<'c> {
    channel: Option<Channel>,
    home: Home<'c>,
    /// The memory in which the request is computed; none if the request only makes or deletes a key.
    _memory: Option<Part<'c>>,
    sound: bool,
    circuits: Option<Ahead>,
    /// What the leading node has said of it, at another node.
    announced: Option<Announced>,
}

#[expect(clippy::large_enum_variant, reason = "moved once for each request")]
enum Home<'c> {
    Pool(&'c Channels, PartySet, String),
    Lender(Lent),
}

impl ChannelLease<'_> {
    pub(crate) fn net(&mut self) -> Result<&mut TlsNet, Error> {
        let channel = self.channel.as_mut().map(|channel| &mut channel.net);
        channel.ok_or_else(|| Error::System("the channel is gone".into()))
    }

    /// Says of the part of the request that ends, for traces, how long this node has waited for which other
    /// one since it said that last.
    pub(crate) fn note_waits(&mut self, members: &Members) {
        if let Some(channel) = &mut self.channel {
            for (peer, waited) in channel.net.take_waits() {
                polyclave_traces::wait(members.name_of(peer), waited);
            }
        }
    }

    /// What was fixed for this session when the last one began. Only for one attempt.
    pub(super) fn take_prepared(&mut self) -> Option<Prepared> {
        self.channel.as_mut()?.prepared.take()
    }

    /// Keeps what is fixed for the next session.
    pub(super) fn prepare(&mut self, next: Prepared) {
        if let Some(channel) = &mut self.channel {
            channel.prepared = Some(next);
        }
    }

    /// Whether the leading node has announced a hello in one round. `None` at that node itself.
    pub(super) fn is_at_once(&self) -> Option<bool> {
        self.announced.map(|announced| announced.at_once)
    }

    /// Whether the client must give up the channel, which it leaves idle, because a client with fewer
    /// channels waits. Only the leading node knows.
    pub(crate) fn is_to_yield(&self) -> bool {
        match &self.home {
            Home::Pool(channels, serving, client) => channels.is_to_yield(*serving, client),
            Home::Lender(_) => false,
        }
    }

    /// If few blocks of the request go through garbled circuits: those that are claimed ahead. The leading
    /// node has decided it.
    pub(crate) fn circuits(&self) -> Option<Ahead> {
        self.circuits
    }

    /// Marks the channel as reusable: all nodes are in step.
    pub(crate) fn sound(&mut self) {
        self.sound = true;
    }
}

impl Drop for ChannelLease<'_> {
    fn drop(&mut self) {
        let channel = self.channel.take().filter(|_| self.sound);
        match &mut self.home {
            Home::Pool(channels, serving, client) => channels.put(*serving, client, channel),
            Home::Lender(lent) => {
                if let Some(channel) = channel {
                    lent.give_back(channel);
                }
            }
        }
    }
}

/// Gets a channel, and the memory to compute in. The leading node picks a channel, and the other nodes wait
/// for that channel. They give way to a refresh that waits for them: the request may be waiting for the
/// refresh at the leading node.
pub(super) fn acquire<'c>(
    service: &'c Service,
    plan: &Plan,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<ChannelLease<'c>, NotBegun> {
    let serving = plan.request.serving;
    let leader = serving.iter().next().unwrap_or(service.members.me);
    let _part = part("queue");
    note("polyclave.leader", service.members.name_of(leader));
    let mut lease = if leader == service.members.me {
        lead(service, plan, client_is_there)?
    } else {
        follow(service, plan, leader, deadline, client_is_there)?
    };
    if let Some(channel) = &mut lease.channel {
        channel.net.measure_waits(is_recorded());
    }
    Ok(lease)
}

/// What a request may take of this node's memory; nothing if it computes a few blocks at most.
fn take_memory<'m>(memory: &'m Memory, plan: &Plan, until: Instant) -> Result<Option<Part<'m>>, Refusal> {
    plan.request.operation.describe().only_uses().then(|| memory.take(until)).transpose()
}

fn lead<'c>(
    service: &'c Service,
    plan: &Plan,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<ChannelLease<'c>, Refusal> {
    let serving = plan.request.serving;
    let until = Instant::now() + QUEUE;
    let mut tries = 0;
    loop {
        tries += 1;
        await_members(service, plan)?;
        let channel = match service.channels.take(serving, &plan.client, QUEUE, client_is_there) {
            Turn::Free(channel) => Some(channel),
            Turn::Open => None,
            Turn::Busy if service.threads.is_stopping() => return Err(stops(service.members.me)),
            Turn::Busy => {
                let message = format!(
                    "no channel of these nodes became free for {} within {} s; try again later",
                    plan.client,
                    QUEUE.as_secs()
                );
                return Err(Refusal::new(Reason::Busy, message));
            }
        };
        // From here on the channel counts as lent, until this is dropped.
        let home = Home::Pool(&service.channels, serving, plan.client.clone());
        // Operations on keys are not alike: each may be of another cipher.
        let only_uses = plan.request.operation.describe().only_uses();
        let ahead = || if only_uses { service.foresight.of(&plan.likeness()) } else { Ahead::default() };
        let circuits = service.takes_circuits(&plan.request).then(ahead);
        let mut lease =
            ChannelLease { channel, home, _memory: None, sound: false, circuits, announced: None };
        lease._memory = take_memory(&service.memory, plan, until)?;
        if lease.channel.is_some() {
            return Ok(lease);
        }
        match service.network.open_channel(serving) {
            Ok(net) => {
                lease.channel = Some(Channel::new(net));
                return Ok(lease);
            }
            // The request has used nothing yet.
            Err(e) if tries < service.strategy.patience().channel_tries => {
                tracing::debug!(error = service.members.message(&e), "a channel did not open");
            }
            Err(e) => return Err(blame(unavailable(e.clone()), &e)),
        }
    }
}

/// Waits a short time for serving nodes that are not connected here, if the strategy allows it. Not as long
/// if two can go on without the third.
fn await_members(service: &Service, plan: &Plan) -> Result<(), Refusal> {
    let serving = plan.request.serving;
    let can_do_without =
        service.members.cluster.has_standby() && plan.request.operation.describe().only_uses();
    let longest = if can_do_without { SOON_BACK } else { Duration::MAX };
    let until = Instant::now() + service.strategy.patience().returning.min(longest);
    loop {
        let Some(missing) = serving.without(service.network.peers.connected()).iter().next() else {
            return Ok(());
        };
        if service.threads.is_stopping() {
            return Err(stops(service.members.me));
        }
        if Instant::now() >= until {
            let message = format!(
                "{missing} is not connected with {} at present; ask other nodes, or later",
                service.members.me
            );
            return Err(Refusal::new(Reason::Unavailable, message).because_of(missing));
        }
        std::thread::sleep(POLL_INTERVAL / 5);
    }
}

fn follow<'c>(
    service: &'c Service,
    plan: &Plan,
    leader: Party,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<ChannelLease<'c>, NotBegun> {
    let only_uses = plan.request.operation.describe().only_uses();
    let taken = || Refusal::new(Reason::Malformed, "a request with this id is under way");
    let waiting = service.pending.bring(plan.ticket, leader).ok_or_else(taken)?;
    loop {
        match waiting.recv_timeout(Duration::from_millis(200)) {
            Ok(mut lent) => {
                return match take_memory(&service.memory, plan, Instant::now() + FOLLOWERS_TURN) {
                    Ok(memory) => {
                        let (channel, announced) = (lent.channel(), lent.announced);
                        let (home, circuits) = (Home::Lender(lent), announced.circuits);
                        let announced = Some(announced);
                        Ok(ChannelLease { channel, home, _memory: memory, sound: false, circuits, announced })
                    }
                    Err(busy) => {
                        // The other nodes need not wait for this one.
                        let announced = lent.announced;
                        let declined = |channel| decline(service, channel, NOT_HERE, announced);
                        if let Some(channel) = lent.channel().and_then(declined) {
                            lent.give_back(channel);
                        }
                        Err(busy.into())
                    }
                };
            }
            Err(_) if service.material.is_in_the_way(only_uses) => {
                service.pending.leave(&plan.ticket);
                return Err(NotBegun::GaveWay);
            }
            Err(_) if Instant::now() < deadline && client_is_there() && !service.threads.is_stopping() => {}
            Err(_) => {
                service.pending.leave(&plan.ticket);
                if service.threads.is_stopping() {
                    return Err(stops(service.members.me).into());
                }
                let message = format!(
                    "{leader}, which leads these nodes, did not begin the request; see its own answer"
                );
                return Err(Refusal::new(Reason::Unavailable, message).because_of(leader).into());
            }
        }
    }
}
