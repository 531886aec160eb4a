//! Channels: standing connections among the nodes of a serving set. A channel serves one request at a time.
//!
//! The node with the lowest number in a serving set leads. It picks a free channel for a request and
//! announces the request on that channel, so that all nodes run the same request on the same channel. The
//! leader orders new channels over the control streams ([`crate::peers`]). A channel on which anything failed
//! is dropped and never used again. [`crate::requests::turns`] decides which request gets the next channel.
//! What the nodes have fixed for the next session stays with the channel.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::Prepared;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use crate::material::stock::bounded::Ahead;
use crate::requests::pending::Ticket;
use crate::requests::turns::Turns;
use crate::threads::POLL_INTERVAL;

/// Bytes of an announcement.
const ANNOUNCEMENT: usize = 33;
const PING: u8 = 1;
const REQUEST: u8 = 2;
/// The same for a request that takes garbled circuits from the stock. What is claimed ahead follows.
const REQUEST_WITH_CIRCUITS: u8 = 3;
/// The same with a hello in one round.
const REQUEST_AT_ONCE: u8 = 4;

/// A channel that no request has used for this long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// The limit for all serving sets together, as a multiple of the limit for one set: connections are not free.
pub(crate) const SETS: usize = 4;

/// How often a free channel is pinged. Its followers wait for an announcement much longer.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(5);

/// The free and lent channels of the serving sets that this node leads.
pub(crate) struct Channels {
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    turns: Turns,
    free: HashMap<PartySet, Vec<Free>>,
}

/// Connections with all nodes of a serving set.
pub(crate) struct Channel {
    pub(crate) net: TlsNet,
    /// With it the next request may begin in one round.
    pub(crate) prepared: Option<Prepared>,
}

impl Channel {
    /// A channel that has just been opened.
    pub(crate) fn new(net: TlsNet) -> Channel {
        Channel { net, prepared: None }
    }
}

struct Free {
    channel: Channel,
    /// When a request last used it.
    used: Instant,
    /// When its followers were last pinged.
    spoken: Instant,
}

/// What a waiting request may do next.
#[expect(clippy::large_enum_variant, reason = "moved once for each request")]
pub(crate) enum Turn {
    /// Use this channel.
    Free(Channel),
    /// Open another one.
    Open,
    /// Try again later.
    Busy,
}

impl Channels {
    /// `most` is the limit for each serving set.
    pub(crate) fn new(most: usize) -> Channels {
        let state = State { turns: Turns::new(most, SETS * most), free: HashMap::new() };
        Channels { most, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The limit for each serving set.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Gives a request of a client a free channel, or permission to open one, when it is the request's turn.
    /// The channel counts as lent from now on. The requests of a client that went away leave the queue.
    pub(crate) fn take(
        &self,
        serving: PartySet,
        client: &str,
        within: Duration,
        client_is_there: &mut dyn FnMut() -> bool,
    ) -> Turn {
        let deadline = Instant::now() + within;
        let mut state = self.lock();
        let number = state.turns.enter(client, serving);
        while !state.turns.take(number) {
            let left = deadline.saturating_duration_since(Instant::now());
            let waited = self.changed.wait_for(&mut state, left.min(POLL_INTERVAL));
            if left.is_zero() || (waited.timed_out() && !client_is_there()) {
                state.turns.leave(number);
                self.changed.notify_all();
                return Turn::Busy;
            }
        }
        // There may be a channel for the next request, too.
        self.changed.notify_all();
        if let Some(free) = state.free.get_mut(&serving).and_then(Vec::pop) {
            return Turn::Free(free.channel);
        }
        if state.turns.lent_of_all() + state.free.values().map(Vec::len).sum::<usize>() > SETS * self.most {
            close_one(&mut state.free);
        }
        Turn::Open
    }

    /// Takes a channel back from a client. It stays open if it can serve again.
    pub(crate) fn put(&self, serving: PartySet, client: &str, channel: Option<Channel>) {
        let mut state = self.lock();
        state.turns.give_back(client, serving);
        if let Some(channel) = channel {
            let free = Free { channel, used: Instant::now(), spoken: Instant::now() };
            state.free.entry(serving).or_default().push(free);
        }
        self.changed.notify_all();
    }

    /// Whether a client must give up a channel that it leaves idle, because a client with fewer channels
    /// waits.
    pub(crate) fn is_to_yield(&self, serving: PartySet, client: &str) -> bool {
        self.lock().turns.is_to_yield(client, serving)
    }

    /// Pings the followers of free channels. Closes channels that are dead or no longer needed.
    pub(crate) fn ping(&self) {
        let mut due: Vec<(PartySet, Free)> = Vec::new();
        for (set, free) in &mut self.lock().free {
            let is_due = |free: &mut Free| free.spoken.elapsed() >= PING_EVERY / 2;
            due.extend(free.extract_if(.., is_due).map(|free| (*set, free)));
        }
        for (serving, mut free) in due {
            free.spoken = Instant::now();
            let net = &mut free.channel.net;
            let keep = free.used.elapsed() < IDLE && net.is_alive() && announce(None, net).is_ok();
            let mut state = self.lock();
            let lent = state.turns.lent(serving);
            let others = state.free.entry(serving).or_default();
            // Requests may have opened other channels meanwhile.
            if keep && lent + others.len() < self.most {
                // Put it below those that were used meanwhile: the least recently used are closed first.
                others.insert(0, free);
            }
        }
    }

    /// Drops all free channels that include a party, because that party is gone or has started again.
    pub(crate) fn forget(&self, party: Party) {
        for (set, free) in self.lock().free.iter_mut().filter(|(set, _)| set.contains(party)) {
            tracing::debug!(channels = free.len(), %set, "dropped");
            free.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Closes the free channel that was used longest ago.
fn close_one(free: &mut HashMap<PartySet, Vec<Free>>) {
    let used_first = |free: &&mut Vec<Free>| free.iter().map(|free| free.used).min();
    let oldest = free.values_mut().filter(|free| !free.is_empty()).min_by_key(used_first);
    if let Some(free) = oldest
        && let Some(at) = (0..free.len()).min_by_key(|i| free[*i].used)
    {
        free.swap_remove(at);
    }
}

/// What the leader says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    pub(crate) ticket: Ticket,
    /// If few blocks go through garbled circuits, as far as there are some in stock: those that are claimed
    /// ahead.
    pub(crate) circuits: Option<Ahead>,
    /// Whether the hello takes one round. Only with circuits.
    pub(crate) at_once: bool,
}

/// Tells the followers which request this channel now serves, or only that the leader is alive.
pub(crate) fn announce(request: Option<&Announced>, net: &mut TlsNet) -> Result<()> {
    let mut message = [PING; ANNOUNCEMENT];
    let mut ahead = None;
    if let Some(Announced { ticket, circuits, at_once }) = request {
        message[0] = match (circuits, at_once) {
            (None, _) => REQUEST,
            (Some(_), false) => REQUEST_WITH_CIRCUITS,
            (Some(_), true) => REQUEST_AT_ONCE,
        };
        message[1..].copy_from_slice(ticket);
        ahead = circuits.map(Ahead::bytes);
    }
    let me = net.me();
    net.members().iter().filter(|p| *p != me).try_for_each(|p| {
        net.send(p, &message)?;
        ahead.map_or(Ok(()), |ahead| net.send(p, &ahead))
    })
}

/// Reads what the leader announced, when something has arrived: a request, or only a ping.
pub(crate) fn next_request(leader: Party, net: &mut TlsNet) -> Result<Option<Announced>> {
    let mut message = [0; ANNOUNCEMENT];
    net.recv(leader, &mut message)?;
    let mut ticket = [0; 32];
    ticket.copy_from_slice(&message[1..]);
    match message[0] {
        PING => Ok(None),
        REQUEST => Ok(Some(Announced { ticket, circuits: None, at_once: false })),
        kind @ (REQUEST_WITH_CIRCUITS | REQUEST_AT_ONCE) => {
            let mut ahead = [0; 2];
            net.recv(leader, &mut ahead)?;
            let at_once = kind == REQUEST_AT_ONCE;
            Ok(Some(Announced { ticket, circuits: Some(Ahead::of(ahead)), at_once }))
        }
        other => {
            let detail = format!("an announcement of kind {other}");
            Err(Error::Peer { peer: leader, detail })
        }
    }
}

/// A channel that a follower has lent to a request. It goes back to the thread that listens on it.
pub(crate) struct Lent {
    channel: Option<Channel>,
    /// What the leader has said.
    pub(crate) announced: Announced,
    taken: bool,
    home: SyncSender<GivenBack>,
}

/// A channel that a request no longer has.
pub(crate) struct GivenBack {
    /// `None` if it no longer works.
    pub(crate) channel: Option<Channel>,
    /// Whether the request took it. Otherwise the other nodes have heard nothing from this one.
    pub(crate) taken: bool,
}

impl Lent {
    /// Lends a channel. The receiver gets it back.
    pub(crate) fn new(channel: Channel, announced: Announced) -> (Lent, Receiver<GivenBack>) {
        let (home, back) = sync_channel(1);
        (Lent { channel: Some(channel), announced, taken: false, home }, back)
    }

    /// Takes the channel out, to be returned with [`Lent::give_back`].
    pub(crate) fn channel(&mut self) -> Option<Channel> {
        self.taken = true;
        self.channel.take()
    }

    /// Returns the channel, which is free again.
    pub(crate) fn give_back(&mut self, channel: Channel) {
        self.channel = Some(channel);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The listening thread may have ended with the node.
        let _ = self.home.try_send(GivenBack { channel: self.channel.take(), taken: self.taken });
    }
}
