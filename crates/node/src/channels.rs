//! Channels: standing connections among the nodes of a serving set, each for one request at a time.
//!
//! Of a serving set the node with the lowest number leads: it picks a free channel for a request and announces the request on
//! it, so that all nodes run the same request on the same channel. A new channel is ordered over the control streams
//! ([`crate::peers`]). A channel on which anything failed is dropped, never used again.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use crate::desk::Ticket;

/// Bytes of an announcement.
const ANNOUNCEMENT: usize = 33;
const PING: u8 = 1;
const REQUEST: u8 = 2;

/// A channel that no request has used for so long is closed.
const IDLE: Duration = Duration::from_secs(60);

/// Of all serving sets together, so many times the channels of one may be open: connections are not free.
const SETS: usize = 4;

/// A free channel is pinged so often; its followers wait for an announcement much longer.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(5);

/// Free and used channels, by serving set, of the sets that this node leads.
pub(crate) struct Channels {
    most: usize,
    pools: Mutex<HashMap<PartySet, Pool>>,
    changed: Condvar,
}

#[derive(Default)]
struct Pool {
    free: Vec<Free>,
    /// Free and lent ones.
    open: usize,
    /// Requests that wait for one.
    waiting: usize,
}

struct Free {
    net: TlsNet,
    /// By a request.
    used: Instant,
    /// To its followers.
    spoken: Instant,
}

/// What a request may do next.
#[expect(clippy::large_enum_variant, reason = "moved once for each request")]
pub(crate) enum Turn {
    /// Use this channel.
    Free(TlsNet),
    /// Open another one.
    Open,
    /// Come again later.
    Busy,
}

impl Channels {
    /// At most `most` for each serving set.
    pub(crate) fn new(most: usize) -> Channels {
        Channels { most, pools: Mutex::default(), changed: Condvar::new() }
    }

    /// A free channel, or leave to open one, which counts as open from now on.
    pub(crate) fn take(&self, serving: PartySet, within: Duration) -> Turn {
        let deadline = Instant::now() + within;
        let mut pools = self.lock();
        loop {
            if let Some(free) = pools.entry(serving).or_default().free.pop() {
                return Turn::Free(free.net);
            }
            if pools.values().map(|pool| pool.open).sum::<usize>() >= SETS * self.most {
                close_one(&mut pools);
            }
            let all: usize = pools.values().map(|pool| pool.open).sum();
            let pool = pools.entry(serving).or_default();
            if pool.open < self.most && all < SETS * self.most {
                pool.open += 1;
                return Turn::Open;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || pool.waiting >= 8 * self.most {
                return Turn::Busy;
            }
            pool.waiting += 1;
            pools = self.changed.wait_timeout(pools, left).unwrap_or_else(PoisonError::into_inner).0;
            pools.entry(serving).or_default().waiting -= 1;
        }
    }

    /// Gives a channel back, or says that one is no more.
    pub(crate) fn put(&self, serving: PartySet, net: Option<TlsNet>) {
        let mut pools = self.lock();
        let pool = pools.entry(serving).or_default();
        match net {
            Some(net) => pool.free.push(Free { net, used: Instant::now(), spoken: Instant::now() }),
            None => pool.open = pool.open.saturating_sub(1),
        }
        self.changed.notify_all();
    }

    /// Shows the followers of free channels that this node is alive; closes those that are dead, or not needed any more.
    pub(crate) fn ping(&self) {
        let mut due: Vec<(PartySet, Free)> = Vec::new();
        for (set, pool) in self.lock().iter_mut() {
            let is_due = |free: &mut Free| free.spoken.elapsed() >= PING_EVERY / 2;
            due.extend(pool.free.extract_if(.., is_due).map(|free| (*set, free)));
        }
        for (serving, mut free) in due {
            free.spoken = Instant::now();
            let keep =
                free.used.elapsed() < IDLE && free.net.is_alive() && announce(None, &mut free.net).is_ok();
            let mut pools = self.lock();
            let pool = pools.entry(serving).or_default();
            match keep {
                // Below those that were used meanwhile: the least used are the first to go.
                true => pool.free.insert(0, free),
                false => pool.open = pool.open.saturating_sub(1),
            }
            self.changed.notify_all();
        }
    }

    /// Drops all free channels that a party is in: it is gone or has begun anew.
    pub(crate) fn forget(&self, party: Party) {
        for (set, pool) in self.lock().iter_mut().filter(|(set, _)| set.contains(party)) {
            tracing::debug!(channels = pool.free.len(), %set, "dropped");
            pool.open = pool.open.saturating_sub(pool.free.len());
            pool.free.clear();
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PartySet, Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the free channel that was used longest ago.
fn close_one(pools: &mut HashMap<PartySet, Pool>) {
    let used_first = |pool: &&mut Pool| pool.free.iter().map(|free| free.used).min();
    let oldest = pools.values_mut().filter(|pool| !pool.free.is_empty()).min_by_key(used_first);
    if let Some(pool) = oldest
        && let Some(at) = (0..pool.free.len()).min_by_key(|i| pool.free[*i].used)
    {
        pool.free.swap_remove(at);
        pool.open -= 1;
    }
}

/// Tells the followers which request this channel is for now, or only that the leader is alive.
pub(crate) fn announce(ticket: Option<&Ticket>, net: &mut TlsNet) -> Result<()> {
    let mut message = [PING; ANNOUNCEMENT];
    if let Some(ticket) = ticket {
        message[0] = REQUEST;
        message[1..].copy_from_slice(ticket);
    }
    let me = net.me();
    net.members().iter().filter(|p| *p != me).try_for_each(|p| net.send(p, &message))
}

/// What the leader announces, now that something has arrived: a request, or nothing.
pub(crate) fn next_request(leader: Party, net: &mut TlsNet) -> Result<Option<Ticket>> {
    let mut message = [0; ANNOUNCEMENT];
    net.recv(leader, &mut message)?;
    let mut ticket = [0; 32];
    ticket.copy_from_slice(&message[1..]);
    match message[0] {
        PING => Ok(None),
        REQUEST => Ok(Some(ticket)),
        other => {
            let detail = format!("an announcement of kind {other}");
            Err(Error::Peer { peer: leader, detail })
        }
    }
}

/// A channel in the hands of a request, at a follower: it goes back to the thread that listens on it.
pub(crate) struct Lent {
    net: Option<TlsNet>,
    home: SyncSender<Option<TlsNet>>,
}

impl Lent {
    /// Lends a channel; it (or that it is no more) comes back through the receiver.
    pub(crate) fn new(net: TlsNet) -> (Lent, Receiver<Option<TlsNet>>) {
        let (home, back) = sync_channel(1);
        (Lent { net: Some(net), home }, back)
    }

    /// Takes it out, to be given back by [`Lent::give_back`].
    pub(crate) fn net(&mut self) -> Option<TlsNet> {
        self.net.take()
    }

    /// The channel is free again.
    pub(crate) fn give_back(&mut self, net: TlsNet) {
        self.net = Some(net);
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // The listening thread may have ended with the node.
        let _ = self.home.try_send(self.net.take());
    }
}
