//! Which peers are connected, what each said last, and the orders and beats to be sent to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use polyclave_api as api;
use polyclave_protocol::versions::FeatureSet;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;

use super::orders::{Beat, Order, State};
use crate::Result;

pub(super) const BEAT_EVERY: Duration = Duration::from_millis(500);
/// A peer that is silent for this long is taken for gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(8);
/// How long a peer that is not connected may be about to connect; then orders that wait for it are given up.
/// Longer than a returning node takes to connect both control streams: each side may notice the end of the
/// old ones only with the next beat.
const RECONNECTING: Duration = Duration::from_millis(4 * BEAT_EVERY.as_millis() as u64);
/// How often whoever waits for marks looks whether peers are gone.
const LOOK: Duration = Duration::from_millis(50);
/// How many orders may wait to be sent to a peer.
const WAITING: usize = 64;

/// Something to be sent to a peer.
#[derive(Clone, Copy)]
pub(crate) enum Due {
    /// A beat, which is made when it is sent. If several threads made beats themselves, one could overtake
    /// another, and a peer that hears of an older mark after a newer one concludes that this node was put
    /// back to an old copy of its disk.
    Beat,
    Order(Order),
}

/// The two control streams of this node with a peer.
#[derive(Clone, Copy)]
pub(crate) enum Stream {
    /// On which this node gives orders.
    Ours,
    /// On which it takes orders.
    Theirs,
}

/// Which peers are connected, and how to give them orders.
pub(crate) struct Peers {
    me: Party,
    /// By party: the queue to its sending thread.
    queues: Vec<SyncSender<Due>>,
    taken: Mutex<Vec<Option<Receiver<Due>>>>,
    /// Peers whose orders arrive here, and peers that receive ours.
    heard: AtomicU16,
    reached: AtomicU16,
    /// Peers that have agreed on the common secrets.
    set_up: AtomicU16,
    /// By party: what its greeting and its beats said.
    known: Mutex<Vec<Known>>,
    /// By party: why the last try to connect with it failed, for each of the two streams.
    troubles: Mutex<Vec<[Option<String>; 2]>>,
    /// Signals that a peer has said that it holds a newer mark of this node.
    holding: Condvar,
}

/// The program that a peer runs.
#[derive(Clone, Default)]
pub(crate) struct Program {
    /// The release that it says it is.
    pub(crate) release: String,
    /// The version of the wire between nodes that both speak.
    pub(crate) wire: u8,
    /// The features that it says it knows.
    pub(crate) knows: FeatureSet,
}

/// What a peer has said of itself.
#[derive(Clone, Default)]
struct Known {
    /// The boot id of the start that it is in.
    boot: Option<[u8; 16]>,
    state: State,
    /// As [`Beat::holds`].
    holds: u64,
    /// As [`Greeting::lists`](super::orders::Greeting::lists).
    lists: [u8; 32],
    /// By how many seconds this node's clock was ahead of the peer's at its last beat.
    ahead: Option<i64>,
    program: Program,
    /// The features that are on here and not there.
    lacks: FeatureSet,
    /// It speaks less in sessions than it said in its greeting.
    holds_back: bool,
}

impl Peers {
    pub(crate) fn new(me: Party, nodes: usize) -> Arc<Peers> {
        let (queues, taken) = Party::all(nodes)
            .map(|_| {
                let (sender, receiver) = sync_channel(WAITING);
                (sender, Some(receiver))
            })
            .unzip();
        let (heard, reached, set_up) = Default::default();
        let known = Mutex::new(vec![Known::default(); nodes]);
        let (holding, troubles) = (Condvar::new(), Mutex::new(vec![[None, None]; nodes]));
        Arc::new(Peers {
            me,
            queues,
            taken: Mutex::new(taken),
            heard,
            reached,
            set_up,
            known,
            troubles,
            holding,
        })
    }

    /// The nodes that this one can work with now, itself included.
    pub(crate) fn connected(&self) -> PartySet {
        PartySet::from_bits(self.heard.load(Relaxed) & self.reached.load(Relaxed) | 1 << self.me.0)
    }

    /// Remembers why a stream with a peer could not be opened or has ended, or that it is open. Returns
    /// whether that is news.
    pub(crate) fn note_trouble(&self, peer: Party, stream: Stream, why: Option<String>) -> bool {
        let trouble = &mut self.troubles.lock()[peer.index()][stream as usize];
        let is_news = *trouble != why;
        *trouble = why;
        is_news
    }

    /// Why there is no connection with a peer, with nodes by their names; `None` if there is one.
    pub(crate) fn trouble(&self, peer: Party) -> Option<String> {
        let [ours, theirs] = self.troubles.lock()[peer.index()].clone();
        let of_theirs = theirs.filter(|why| ours.as_ref() != Some(why));
        let both: Vec<String> = ours.into_iter().chain(of_theirs).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    /// Remembers whether a peer has agreed on the common secrets.
    pub(crate) fn note_set_up(&self, peer: Party, agreed: bool) {
        let bit = 1 << peer.0;
        if agreed {
            self.set_up.fetch_or(bit, Relaxed)
        } else {
            self.set_up.fetch_and(!bit, Relaxed)
        };
    }

    /// Notes that all nodes have just agreed on the common secrets.
    pub(crate) fn note_all_set_up(&self) {
        self.set_up.store(u16::MAX, Relaxed);
    }

    /// Whether all peers have agreed on the common secrets.
    pub(crate) fn all_set_up(&self) -> bool {
        let agreed = PartySet::from_bits(self.set_up.load(Relaxed) | 1 << self.me.0);
        Party::all(self.queues.len()).all(|p| agreed.contains(p))
    }

    /// Remembers what a peer says in its greeting.
    pub(crate) fn note_greeting(
        &self,
        peer: Party,
        boot: [u8; 16],
        state: State,
        (program, lists): (Program, [u8; 32]),
    ) {
        let known = &mut self.known()[peer.index()];
        (known.boot, known.state, known.lists) = (Some(boot), state, lists);
        (known.program, known.holds_back) = (program, false);
    }

    /// The program of a peer that is connected.
    pub(crate) fn program(&self, peer: Party) -> Option<Program> {
        let known = self.known();
        let Known { boot, program, .. } = &known[peer.index()];
        boot.is_some().then(|| program.clone())
    }

    /// Remembers that a peer named this version in a session. Returns whether it is news that this is less
    /// than it said in its greeting.
    pub(crate) fn note_offer(&self, peer: Party, version: u8) -> bool {
        let known = &mut self.known()[peer.index()];
        version < known.program.wire && !std::mem::replace(&mut known.holds_back, true)
    }

    /// Remembers which features are on here and not at a peer. Returns whether it is news that there are
    /// some.
    pub(crate) fn note_lacks(&self, peer: Party, lacks: FeatureSet) -> bool {
        let before = std::mem::replace(&mut self.known()[peer.index()].lacks, lacks);
        before != lacks && lacks != FeatureSet::default()
    }

    /// The features that are switched on at a peer, as it said last.
    pub(crate) fn features(&self, peer: Party) -> FeatureSet {
        self.known()[peer.index()].state.features
    }

    /// A digest of this node's last certificate in a peer's cluster file, as the peer said in its last
    /// greeting.
    pub(crate) fn lists(&self, peer: Party) -> [u8; 32] {
        self.known()[peer.index()].lists
    }

    /// Remembers what a peer says in a beat.
    pub(crate) fn note_state(&self, peer: Party, state: State) {
        self.known()[peer.index()].state = state;
    }

    /// Remembers the clock of a peer, in seconds since 1970, and this node's at the same moment.
    pub(crate) fn note_clock(&self, peer: Party, theirs: u64, ours: u64) {
        self.known()[peer.index()].ahead =
            i64::try_from(ours).ok().zip(i64::try_from(theirs).ok()).map(|(a, b)| a - b);
    }

    /// By how many seconds this node's clock is ahead of those of the peers that it hears.
    pub(crate) fn ahead(&self) -> Vec<(Party, i64)> {
        let (heard, known) = (PartySet::from_bits(self.heard.load(Relaxed)), self.known());
        heard.iter().filter_map(|peer| Some((peer, known[peer.index()].ahead?))).collect()
    }

    /// Remembers the latest of this node's marks that a peer says it holds.
    pub(crate) fn note_holds(&self, peer: Party, holds: u64) {
        self.known()[peer.index()].holds = holds;
        self.holding.notify_all();
    }

    /// Waits until enough of some peers hold this node's mark of a given number. Returns the peers that do
    /// not, if time runs out, if `ends` says so, or if too few of them are connected: those that are not may
    /// be about to connect, and those that leave meanwhile have no part any more in what the mark is for.
    pub(crate) fn wait_held(
        &self,
        number: u64,
        peers: PartySet,
        enough: usize,
        within: Duration,
        ends: &dyn Fn() -> bool,
    ) -> Result<(), PartySet> {
        let (began, there) = (Instant::now(), self.connected());
        let mut left_since = PartySet::default();
        let mut known = self.known();
        loop {
            let lacking: PartySet = peers.iter().filter(|p| known[p.index()].holds < number).collect();
            if peers.len() - lacking.len() >= enough {
                return Ok(());
            }
            let gone = lacking.without(self.connected());
            left_since = left_since.and(there.without(there.without(gone)));
            let is_late = began.elapsed() >= RECONNECTING;
            let lost = if is_late { gone.and(left_since) } else { left_since };
            let left = within.saturating_sub(began.elapsed());
            if peers.len() - lost.len() < enough || left.is_zero() || ends() {
                return Err(lacking);
            }
            let slice = left.min(LOOK);
            self.holding.wait_for(&mut known, slice);
        }
    }

    /// Wakes the threads that send to peers, to see that this node stops: its peers notice at once, and ask
    /// it nothing more.
    pub(crate) fn wake(&self) {
        Party::all(self.queues.len()).filter(|peer| *peer != self.me).for_each(|peer| self.beat_now(peer));
    }

    /// Sends a peer a beat now, without waiting for the next regular one. A peer that does not listen learns
    /// the contents when it is greeted.
    pub(crate) fn beat_now(&self, peer: Party) {
        let _ = self.queues[peer.index()].try_send(Due::Beat);
    }

    /// Notes that all nodes have just said that they have this epoch.
    pub(crate) fn note_all_epochs(&self, id: [u8; 32]) {
        self.known().iter_mut().for_each(|known| known.state.epoch = id);
    }

    /// How much the peers say they have in stock of a kind, given by its number.
    pub(crate) fn levels(&self, kind: usize) -> Vec<u16> {
        let known = self.known();
        let of = |p: Party| known[p.index()].state.levels.get(kind).copied().unwrap_or_default();
        Party::all(known.len()).filter(|p| *p != self.me).map(of).collect()
    }

    /// How many keys the connected peers say they have.
    pub(crate) fn key_counts(&self) -> Vec<u64> {
        let (known, connected) = (self.known(), self.connected());
        let peers = Party::all(known.len()).filter(|p| *p != self.me && connected.contains(*p));
        peers.map(|p| known[p.index()].state.keys.into()).collect()
    }

    /// Notes that all nodes have just made more of a kind, until they say so themselves.
    pub(crate) fn note_made(&self, kind: usize, more: u16) {
        for known in self.known().iter_mut() {
            if let Some(level) = known.state.levels.get_mut(kind) {
                *level = level.saturating_add(more);
            }
        }
    }

    /// The boot id of the start that a peer is in.
    pub(crate) fn boot(&self, peer: Party) -> Option<[u8; 16]> {
        self.known()[peer.index()].boot
    }

    /// Whether a condition holds for any peer, by what it said last.
    pub(crate) fn any(&self, holds: impl Fn(State) -> bool) -> bool {
        self.which(holds).iter().next().is_some()
    }

    /// The peers for which a condition holds, by what they said last.
    pub(crate) fn which(&self, holds: impl Fn(State) -> bool) -> PartySet {
        let known = self.known();
        let holding = Party::all(known.len())
            .zip(known.iter())
            .filter(|(p, known)| *p != self.me && holds(known.state));
        holding.map(|(p, _)| p).collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock()
    }

    /// Queues an order for a peer. A full queue means that the peer does not listen.
    pub(crate) fn order(&self, peer: Party, order: Order) -> Result<()> {
        let gone = || Error::Closed { peer, detail: "it does not take orders at present".into() };
        if !self.connected().contains(peer) {
            return Err(gone());
        }
        self.queues[peer.index()].try_send(Due::Order(order)).map_err(|_| gone())
    }

    /// The queue of a peer, for its one sending thread.
    pub(crate) fn queue(&self, peer: Party) -> Option<Receiver<Due>> {
        self.taken.lock()[peer.index()].take()
    }

    /// Sends orders and beats until sending fails, `stop` returns true, or the peer is in another start than
    /// `boot`.
    pub(crate) fn send_orders(
        &self,
        peer: Party,
        boot: [u8; 16],
        queue: &Receiver<Due>,
        net: &mut TlsNet,
        beat: &dyn Fn() -> Beat,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        // Orders that have waited since before this connection are out of date.
        while queue.try_recv().is_ok() {}
        let bit = 1 << peer.0;
        self.reached.fetch_or(bit, Relaxed);
        let outcome = loop {
            if stop() {
                break Ok(());
            }
            let Some(order) = next_order(queue, beat) else { break Ok(()) };
            // A peer that has started again has already connected anew on its own stream, and everything
            // written to the old connection would be lost silently.
            if self.boot(peer) != Some(boot) {
                break Ok(());
            }
            if let Err(e) = api::send(net, peer, &order) {
                break Err(e);
            }
        };
        self.reached.fetch_and(!bit, Relaxed);
        outcome
    }

    /// Receives orders until receiving fails.
    pub(crate) fn receive_orders(
        &self,
        peer: Party,
        net: &mut TlsNet,
        stop: &dyn Fn() -> bool,
        mut carry_out: impl FnMut(Order) -> Result<()>,
    ) -> Result<()> {
        net.set_idle_limit(SILENCE);
        let bit = 1 << peer.0;
        self.heard.fetch_or(bit, Relaxed);
        let outcome = loop {
            if stop() {
                break Ok(());
            }
            let order = api::receive_bytes(net, peer).and_then(|bytes| api::decode(&bytes, peer));
            if let Err(e) = order.and_then(&mut carry_out) {
                break Err(e);
            }
        };
        self.heard.fetch_and(!bit, Relaxed);
        outcome
    }
}

/// What to send next; `None` if nothing will come.
fn next_order(queue: &Receiver<Due>, beat: &dyn Fn() -> Beat) -> Option<Order> {
    match queue.recv_timeout(BEAT_EVERY) {
        Ok(Due::Order(order)) => Some(order),
        Ok(Due::Beat) | Err(RecvTimeoutError::Timeout) => Some(Order::Beat(beat())),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::orders::KINDS;
    use super::*;
    use polyclave_store::Mark;

    #[test]
    fn what_peers_said_last_is_known() {
        let peers = Peers::new(Party(0), 3);
        assert_eq!(peers.boot(Party(1)), None);
        let quarantined = State { quarantined: true, ..State::default() };
        peers.note_greeting(Party(1), [7; 16], quarantined, (Program::default(), [0; 32]));
        assert_eq!(peers.which(|state| state.quarantined), [Party(1)].into_iter().collect());
        peers.note_state(Party(1), State::default());
        assert!(!peers.any(|state| state.quarantined));
        assert_eq!(peers.boot(Party(1)), Some([7; 16]));
        peers.note_state(Party(2), State { levels: [7; KINDS], ..State::default() });
        peers.note_made(1, 100);
        assert_eq!((peers.levels(0), peers.levels(1)), (vec![0, 7], vec![100, 107]));
        peers.note_all_epochs([8; 32]);
        assert!(!peers.any(|state| state.epoch != [8; 32]));
    }

    #[test]
    fn a_peer_that_holds_something_back_is_news_once() {
        let (peers, peer) = (Peers::new(Party(0), 2), Party(1));
        assert!(peers.program(peer).is_none());
        let greet = || {
            let program = Program { release: "0.3.0".into(), wire: 6, knows: FeatureSet::default() };
            peers.note_greeting(peer, [7; 16], State::default(), (program, [0; 32]));
        };
        greet();
        assert_eq!(peers.program(peer).expect("it has greeted").wire, 6);
        assert!(!peers.note_offer(peer, 6) && peers.note_offer(peer, 5) && !peers.note_offer(peer, 5));
        greet();
        assert!(peers.note_offer(peer, 5), "it has started again");
        let (none, some) = (FeatureSet::default(), FeatureSet::from_bytes([1; 8]));
        assert!(!peers.note_lacks(peer, none) && peers.note_lacks(peer, some));
        assert!(!peers.note_lacks(peer, some) && !peers.note_lacks(peer, none));
    }

    /// However many threads ask for a beat at once, marks are sent in order. (Before, a beat was made before
    /// it waited in the queue; it could be sent after a newer one, and the peer refused this node for five
    /// seconds.)
    #[test]
    fn marks_are_sent_in_their_order() {
        let peers = Peers::new(Party(0), 2);
        let queue = peers.queue(Party(1)).expect("it is not taken");
        let latest = std::sync::atomic::AtomicU64::new(0);
        let beat = || {
            let mark = Mark { number: latest.load(Relaxed), value: [0; 16] };
            Beat { mark, ..Beat::default() }
        };
        let sent: Vec<u64> = std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..WAITING / 8 {
                        latest.fetch_add(1, Relaxed);
                        peers.beat_now(Party(1));
                    }
                });
            }
            let next = || match next_order(&queue, &beat) {
                Some(Order::Beat(beat)) => beat.mark.number,
                other => panic!("{other:?}"),
            };
            (0..WAITING).map(|_| next()).collect()
        });
        assert!(sent.is_sorted(), "{sent:?}");
        assert_eq!(sent.last(), Some(&(WAITING as u64)), "the last one has all changes");
    }

    #[test]
    fn why_a_peer_is_missing_is_known_for_both_streams_and_is_news_once() {
        let (peers, peer) = (Peers::new(Party(0), 2), Party(1));
        assert_eq!(peers.trouble(peer), None);
        let why = |message: &str| Some(message.to_owned());
        assert!(peers.note_trouble(peer, Stream::Ours, why("silent")));
        assert!(!peers.note_trouble(peer, Stream::Ours, why("silent")));
        assert!(peers.note_trouble(peer, Stream::Theirs, why("silent")));
        assert_eq!(peers.trouble(peer), why("silent"));
        assert!(peers.note_trouble(peer, Stream::Theirs, why("refused")));
        assert_eq!(peers.trouble(peer), why("silent; refused"));
        assert!(
            peers.note_trouble(peer, Stream::Ours, None) && peers.note_trouble(peer, Stream::Theirs, None)
        );
        assert_eq!(peers.trouble(peer), None);
    }

    /// A request at a node that stops, and one at its partner: before, both waited for some seconds.
    #[test]
    fn nobody_waits_for_a_mark_at_a_node_that_stops_or_of_a_peer_that_leaves() {
        let (peers, other) = (Peers::new(Party(0), 2), [Party(1)].into_iter().collect());
        let connect = |bits| {
            peers.heard.store(bits, Relaxed);
            peers.reached.store(bits, Relaxed);
        };
        let waits = |ends: &(dyn Fn() -> bool + Sync), then: &dyn Fn()| {
            connect(0b10);
            let began = Instant::now();
            let outcome = std::thread::scope(|scope| {
                let waiting = scope.spawn(|| peers.wait_held(7, other, 1, SILENCE, ends));
                std::thread::sleep(LOOK);
                then();
                waiting.join().expect("no panic")
            });
            assert_eq!(outcome, Err(other));
            began.elapsed()
        };
        let stops = std::sync::atomic::AtomicBool::new(false);
        let took = waits(&|| false, &|| connect(0));
        assert!(took < RECONNECTING, "it left: {took:?}");
        let took = waits(&|| stops.load(Relaxed), &|| stops.store(true, Relaxed));
        assert!(took < RECONNECTING, "this node stops: {took:?}");
        // A peer that is not there yet may be about to connect.
        connect(0);
        let began = Instant::now();
        assert_eq!(peers.wait_held(7, other, 1, SILENCE, &|| false), Err(other));
        assert!((RECONNECTING..SILENCE).contains(&began.elapsed()), "{:?}", began.elapsed());
    }

    #[test]
    fn who_does_not_hold_a_mark_in_time_is_named() {
        let peers = Peers::new(Party(0), 4);
        let (others, soon) = (PartySet::all(4).without([Party(0)].into_iter().collect()), BEAT_EVERY / 50);
        let never = || false;
        peers.note_holds(Party(1), 7);
        peers.note_holds(Party(2), 6);
        assert_eq!(peers.wait_held(7, others, 1, soon, &never), Ok(()));
        let lacking = [Party(2), Party(3)].into_iter().collect();
        assert_eq!(peers.wait_held(7, others, 2, soon, &never), Err(lacking));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| peers.wait_held(7, others, 2, SILENCE, &never));
            peers.note_holds(Party(2), 8);
            assert_eq!(waiting.join().expect("no panic"), Ok(()));
        });
    }
}
