//! The connections of a listener, within limits.
//!
//! A connection is a stranger's until a request on it had a good token; from then on it is one of that token.
//! Strangers have a share of their own, and those of one address a part of it, so that strangers cannot keep
//! out callers with a token. If there is no room, another connection is closed: among strangers one of the
//! address that has most, and among tokens one of the token that has most. It is the one that was idle for
//! longest.
//!
//! Requests of one token, or of strangers at one address, begin one after the other, and the threads do what
//! else is ready between two of them. So a caller with many connections that all ask without a pause delays
//! another one's request by about one of its own.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

#[cfg(test)]
mod tests;

/// How many connections there may be, and for how long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Connections of tokens.
    pub(crate) known: usize,
    /// Connections of strangers, beside them.
    pub(crate) strangers: usize,
    /// Connections of strangers at one address.
    pub(crate) each_address: usize,
    /// For how long a stranger may be idle, or take to send a request's head.
    pub(crate) stranger_within: Duration,
}

impl Limits {
    /// Those of a listener for so many connections of tokens.
    pub(crate) fn of(known: usize) -> Limits {
        let share = |part: usize| (known / part).max(2);
        let stranger_within = Duration::from_secs(10);
        Limits { known, strangers: share(4), each_address: share(8), stranger_within }
    }
}

/// Whose connection it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// Nobody's that is known, at an address.
    Stranger(IpAddr),
    /// A token's, by its name; or that of a socket that only its owner can connect to.
    Known(Arc<str>),
}

impl Whose {
    /// A stranger at an address. Somebody who has one address of IPv6 has the others of its /64, too.
    pub(crate) fn at(address: IpAddr) -> Whose {
        Whose::Stranger(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
            address => address,
        })
    }

    fn is_stranger(&self) -> bool {
        matches!(self, Whose::Stranger(_))
    }
}

/// The open connections.
pub(crate) struct Connections {
    limits: Limits,
    began: Instant,
    next: AtomicU64,
    open: Mutex<Open>,
    refused: AtomicU64,
}

type Open = HashMap<Whose, HashMap<u64, (Arc<Activity>, AbortHandle)>>;

/// What a connection does.
struct Activity {
    requests: AtomicUsize,
    /// Milliseconds since the listener began.
    last: AtomicU64,
    is_known: AtomicBool,
    has_asked: AtomicBool,
    /// The turn of its owner.
    turn: Mutex<Turn>,
}

/// Who has it may begin a request: one at a time of those on all connections of one owner.
type Turn = Arc<Semaphore>;

/// A connection, for those who serve it.
#[derive(Clone)]
pub(crate) struct Peer {
    all: Arc<Connections>,
    number: u64,
    activity: Arc<Activity>,
}

/// A request that is under way on a connection.
pub(crate) struct UnderWay(Peer);

/// A token has as many connections as it may have at the moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// What health and metrics tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    pub(crate) known: usize,
    pub(crate) strangers: usize,
    /// Refused, or closed to make room or because a stranger took too long, since the start.
    pub(crate) refused: u64,
    pub(crate) most_known: usize,
    pub(crate) most_strangers: usize,
}

impl ConnectionCounts {
    /// The sum of two.
    pub(crate) fn and(self, other: ConnectionCounts) -> ConnectionCounts {
        ConnectionCounts {
            known: self.known + other.known,
            strangers: self.strangers + other.strangers,
            refused: self.refused + other.refused,
            most_known: self.most_known + other.most_known,
            most_strangers: self.most_strangers + other.most_strangers,
        }
    }
}

impl Connections {
    pub(crate) fn new(limits: Limits) -> Arc<Connections> {
        let (began, next, refused) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Connections { limits, began, next, open: Mutex::default(), refused })
    }

    /// Takes a connection, which `serve` serves, if there is room.
    pub(crate) fn take<F: Future<Output = ()> + Send + 'static>(
        self: &Arc<Connections>,
        whose: Whose,
        serve: impl FnOnce(Peer) -> F,
    ) {
        let mut open = self.open.lock();
        if self.make_room(&mut open, &whose).is_err() {
            return;
        }
        let number = self.next.fetch_add(1, Relaxed);
        let activity = Arc::new(Activity {
            requests: AtomicUsize::new(0),
            last: AtomicU64::new(self.now()),
            is_known: AtomicBool::new(!whose.is_stranger()),
            has_asked: AtomicBool::new(false),
            turn: Mutex::new(turn_of(&open, &whose)),
        });
        let peer = Peer { all: self.clone(), number, activity: activity.clone() };
        let serving = serve(peer.clone());
        let task = tokio::spawn(async move {
            tokio::select! {
                () = serving => {}
                () = peer.overstays() => {
                    peer.all.refused.fetch_add(1, Relaxed);
                }
            }
            remove(&mut peer.all.open.lock(), number);
        });
        // The task cannot end before, since the lock is held.
        open.entry(whose).or_default().insert(number, (activity, task.abort_handle()));
    }

    /// Closes another connection if one more of somebody's would be too many.
    fn make_room(&self, open: &mut Open, whose: &Whose) -> Result<(), TooMany> {
        let Limits { known, strangers, each_address, .. } = self.limits;
        let own = open.get(whose).map_or(0, HashMap::len);
        let of_kind = || open.iter().filter(|(other, _)| other.is_stranger() == whose.is_stranger());
        let most = if whose.is_stranger() { strangers } else { known };
        let is_at_its_limit = whose.is_stranger() && own >= each_address;
        if of_kind().map(|(_, some)| some.len()).sum::<usize>() < most && !is_at_its_limit {
            return Ok(());
        }
        let of = match is_at_its_limit {
            true => open.get(whose),
            false => {
                let largest = of_kind().max_by_key(|(other, some)| (some.len(), *other == whose));
                largest.map(|(_, some)| some)
            }
        };
        let of = of.into_iter().flatten();
        let state = |activity: &Activity| (activity.requests.load(Relaxed) > 0, activity.last.load(Relaxed));
        let has_more = of.clone().count() > own + 1;
        let first = of.map(|(number, (activity, _))| (state(activity), *number)).min();
        self.refused.fetch_add(1, Relaxed);
        match first {
            // One with a request under way makes room only for somebody who has fewer connections.
            Some(((is_busy, _), number)) if !is_busy || has_more || whose.is_stranger() => {
                if let Some((_, task)) = remove(open, number) {
                    task.abort();
                }
                Ok(())
            }
            _ => Err(TooMany),
        }
    }

    /// Closes all.
    pub(crate) fn close(&self) {
        let open = std::mem::take(&mut *self.open.lock());
        open.into_values().flatten().for_each(|(_, (_, task))| task.abort());
    }

    /// What there is at the moment.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        let open = self.open.lock();
        let count = |strangers: bool| {
            let of_kind = open.iter().filter(|(whose, _)| whose.is_stranger() == strangers);
            of_kind.map(|(_, some)| some.len()).sum()
        };
        let Limits { known: most_known, strangers: most_strangers, .. } = self.limits;
        let refused = self.refused.load(Relaxed);
        ConnectionCounts { known: count(false), strangers: count(true), refused, most_known, most_strangers }
    }

    fn now(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }
}

/// The turn of an owner: that of its other connections, if it has any.
fn turn_of(open: &Open, whose: &Whose) -> Turn {
    let other = open.get(whose).and_then(|own| own.values().next());
    other.map_or_else(|| Arc::new(Semaphore::new(1)), |(activity, _)| activity.turn.lock().clone())
}

fn remove(open: &mut Open, number: u64) -> Option<(Arc<Activity>, AbortHandle)> {
    let (whose, some) = open.iter_mut().find(|(_, some)| some.contains_key(&number))?;
    let (whose, removed) = (whose.clone(), some.remove(&number));
    if some.is_empty() {
        open.remove(&whose);
    }
    removed
}

impl Peer {
    /// Notes that a request had the good token of this name.
    pub(crate) fn is_known_as(&self, name: &Arc<str>) -> Result<(), TooMany> {
        let whose = Whose::Known(name.clone());
        let mut open = self.all.open.lock();
        if open.get(&whose).is_some_and(|own| own.contains_key(&self.number)) {
            return Ok(());
        }
        // If it is not there, it was closed a moment ago.
        let held = remove(&mut open, self.number).ok_or(TooMany)?;
        // One that is refused gets its answer, and is closed then.
        self.all.make_room(&mut open, &whose)?;
        self.activity.is_known.store(true, Relaxed);
        *self.activity.turn.lock() = turn_of(&open, &whose);
        open.entry(whose).or_default().insert(self.number, held);
        Ok(())
    }

    /// Waits until its owner may begin another request, and until the threads have done what else is ready.
    /// The first request of a connection does not wait: it may show a token, and others could take the
    /// connection's place meanwhile.
    pub(crate) async fn take_turn(&self) {
        if !self.activity.has_asked.swap(true, Relaxed) {
            return;
        }
        let turn = self.activity.turn.lock().clone();
        // It is never closed.
        let _turn = turn.acquire().await;
        tokio::task::yield_now().await;
    }

    /// Notes that a request has begun. It ends when this is dropped.
    pub(crate) fn begin(&self) -> UnderWay {
        self.activity.requests.fetch_add(1, Relaxed);
        UnderWay(self.clone())
    }

    /// Ends when a stranger was idle for too long.
    async fn overstays(&self) {
        let within = self.all.limits.stranger_within;
        while !self.activity.is_known.load(Relaxed) {
            let last = Duration::from_millis(self.activity.last.load(Relaxed));
            let idle = self.all.began.elapsed().saturating_sub(last);
            let is_idle = self.activity.requests.load(Relaxed) == 0;
            if is_idle && idle >= within {
                return;
            }
            tokio::time::sleep(if is_idle { within - idle } else { within }).await;
        }
        std::future::pending().await
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let Peer { all, activity, .. } = &self.0;
        activity.last.store(all.now(), Relaxed);
        activity.requests.fetch_sub(1, Relaxed);
    }
}
