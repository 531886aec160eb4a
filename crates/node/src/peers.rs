//! What nodes tell each other outside of requests: that they are alive, and which channels to open.
//!
//! From every node to every other goes one control stream. It begins with a greeting in both directions: the cluster, and what the
//! node's store remembers, by which a node that was put back to an old copy of its disk is recognised and refused (until an operator
//! readmits it). Then the sender sends orders, or a beat when there are none, with what the others have to know of its state: its
//! epoch, how much it has in stock, whether it is under quarantine, how far a rotation has come at it, the mark of its store, and which
//! of the receiver's it holds ([`crate::marks`]).

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod impostor;

use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Result;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::{TlsNet, wire};
use serde::{Deserialize, Serialize};

use crate::store::{Mark, Past};

const BEAT_EVERY: Duration = Duration::from_millis(500);
/// A peer that is silent for so long is taken for gone.
pub(crate) const SILENCE: Duration = Duration::from_secs(8);
/// A peer that is not connected may be about to be, for so long; what waits for it is given up then. Longer than a node that returns
/// takes to connect both control streams, of which each side may notice the end of the old ones only with the next beat.
const RECONNECTING: Duration = Duration::from_millis(4 * BEAT_EVERY.as_millis() as u64);
/// Orders that may wait to be sent.
const WAITING: usize = 64;
/// Bytes of an order: its kind, a set or small number, a count (of a beat, that of its keys), a name or id, levels, and marks.
const ORDER: usize = MARKS + 8 + 16 + 8;
/// Where the marks begin.
const MARKS: usize = 1 + 2 + 4 + 32 + 2 * KINDS;
/// Kinds of material that a beat has a level for; no scheme has more.
const KINDS: usize = 8;

/// By kind: material in stock, in thousandths of what is to be there.
pub(crate) type Levels = [u16; KINDS];

/// What a node asks of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Nothing: the sender is alive, and in this state.
    Beat(Beat),
    /// Open a channel among a set of nodes, of which the sender is the first.
    Channel { serving: PartySet, name: [u8; 16] },
    /// Agree on common secrets, all nodes together.
    SetUp { name: [u8; 16] },
    /// Make an epoch, all nodes together.
    Renew { name: [u8; 16] },
    /// Make so many items of a kind of material, all nodes together.
    Fill { name: [u8; 16], kind: u8, count: u32 },
    /// Take part in a round of a rotation, all nodes together.
    Rotate { name: [u8; 16] },
}

/// What a node tells one peer while nothing else is to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    pub(crate) state: State,
    /// The latest change of its store.
    pub(crate) mark: Mark,
    /// Up to which change of the peer's store it remembers that there was one, durably.
    pub(crate) holds: u64,
}

/// What a node tells its peers of itself with every beat.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Of its epoch; zeros if it has none.
    pub(crate) epoch: [u8; 32],
    /// It serves nothing, since a check failed.
    pub(crate) quarantined: bool,
    /// Its operator wants fresh common secrets.
    pub(crate) wants_rotation: bool,
    /// It has stored some that are not yet in use.
    pub(crate) prepared: bool,
    /// Of its stock.
    pub(crate) levels: Levels,
    /// How many it has.
    pub(crate) keys: u32,
}

impl State {
    fn flags(self) -> u16 {
        u16::from(self.quarantined) | u16::from(self.wants_rotation) << 1 | u16::from(self.prepared) << 2
    }

    fn of(flags: u16, epoch: [u8; 32], levels: Levels, keys: u32) -> State {
        let is_set = |bit: u16| flags & 1 << bit != 0;
        State { epoch, quarantined: is_set(0), wants_rotation: is_set(1), prepared: is_set(2), levels, keys }
    }
}

impl Order {
    fn encode(self) -> [u8; ORDER] {
        let (mut long, mut levels) = ([0; 32], Levels::default());
        let (mut mark, mut holds) = (Mark::default(), 0);
        let (kind, small, count, name) = match self {
            Order::Beat(beat) => {
                (long, levels) = (beat.state.epoch, beat.state.levels);
                (mark, holds) = (beat.mark, beat.holds);
                (0, beat.state.flags(), beat.state.keys, None)
            }
            Order::Channel { serving, name } => (1, serving.bits(), 0, Some(name)),
            Order::SetUp { name } => (2, 0, 0, Some(name)),
            Order::Renew { name } => (3, 0, 0, Some(name)),
            Order::Fill { name, kind, count } => (4, u16::from(kind), count, Some(name)),
            Order::Rotate { name } => (5, 0, 0, Some(name)),
        };
        if let Some(name) = name {
            long[..16].copy_from_slice(&name);
        }
        let mut bytes = [kind; ORDER];
        bytes[1..3].copy_from_slice(&u16::to_le_bytes(small));
        bytes[3..7].copy_from_slice(&u32::to_le_bytes(count));
        bytes[7..39].copy_from_slice(&long);
        for (into, level) in bytes[39..MARKS].chunks_exact_mut(2).zip(levels) {
            into.copy_from_slice(&level.to_le_bytes());
        }
        bytes[MARKS..MARKS + 8].copy_from_slice(&mark.number.to_le_bytes());
        bytes[MARKS + 8..MARKS + 24].copy_from_slice(&mark.value);
        bytes[MARKS + 24..].copy_from_slice(&holds.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; ORDER], from: Party) -> Result<Order> {
        let small = u16::from_le_bytes([bytes[1], bytes[2]]);
        let count = u32::from_le_bytes([bytes[3], bytes[4], bytes[5], bytes[6]]);
        let (mut long, mut name) = ([0; 32], [0; 16]);
        long.copy_from_slice(&bytes[7..39]);
        let level = |at: usize| u16::from_le_bytes([bytes[39 + 2 * at], bytes[40 + 2 * at]]);
        name.copy_from_slice(&long[..16]);
        match bytes[0] {
            0 => {
                let state = State::of(small, long, std::array::from_fn(level), count);
                let (mut value, mut eight) = ([0; 16], [[0; 8]; 2]);
                eight[0].copy_from_slice(&bytes[MARKS..MARKS + 8]);
                value.copy_from_slice(&bytes[MARKS + 8..MARKS + 24]);
                eight[1].copy_from_slice(&bytes[MARKS + 24..]);
                let [number, holds] = eight.map(u64::from_le_bytes);
                Ok(Order::Beat(Beat { state, mark: Mark { number, value }, holds }))
            }
            1 => Ok(Order::Channel { serving: PartySet::from_bits(small), name }),
            2 => Ok(Order::SetUp { name }),
            3 => Ok(Order::Renew { name }),
            4 => Ok(Order::Fill { name, kind: small.to_le_bytes()[0], count }),
            5 => Ok(Order::Rotate { name }),
            kind => Err(Error::Peer { peer: from, detail: format!("an order of kind {kind}") }),
        }
    }
}

/// What a node says of itself at the beginning of a control stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Greeting {
    /// Everything that must be equal between nodes.
    pub(crate) cluster: [u8; 32],
    /// By its store.
    pub(crate) past: Past,
    /// As [`Beat::holds`].
    pub(crate) holds: u64,
    /// Of the agreed common secrets, or zeros.
    pub(crate) setup: [u8; 32],
    /// Of those that are stored and not yet in use, or zeros.
    pub(crate) prepared: [u8; 32],
    /// What it goes on telling.
    pub(crate) state: State,
}

impl Greeting {
    /// Exchanges greetings with the only peer of a control stream.
    pub(crate) fn exchange(&self, peer: Party, net: &mut TlsNet) -> Result<Greeting> {
        wire::send(net, peer, self)?;
        wire::decode(&wire::receive_bytes(net, peer)?, peer)
    }
}

/// What waits to be sent to a peer.
#[derive(Clone, Copy)]
pub(crate) enum Due {
    /// A beat, made when it is sent: those that several threads made themselves could overtake each other, and a peer that hears
    /// of an older mark after a newer one takes this node for one that was put back to an old copy of its disk.
    Beat,
    Order(Order),
}

/// Which peers are there, and how to give them orders.
pub(crate) struct Peers {
    me: Party,
    /// By party: where its sending thread takes from what is to be sent.
    queues: Vec<SyncSender<Due>>,
    taken: Mutex<Vec<Option<Receiver<Due>>>>,
    /// Peers whose orders arrive, and peers that take ours.
    heard: AtomicU16,
    reached: AtomicU16,
    /// Peers that have agreed on the common secrets.
    set_up: AtomicU16,
    /// By party: what its greeting and its beats said.
    known: Mutex<Vec<Known>>,
    /// A peer has said that it holds more of this node's marks.
    holding: Condvar,
}

/// What a peer has said of itself.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The start that it is in.
    boot: Option<[u8; 16]>,
    state: State,
    /// As [`Beat::holds`].
    holds: u64,
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
        let holding = Condvar::new();
        Arc::new(Peers { me, queues, taken: Mutex::new(taken), heard, reached, set_up, known, holding })
    }

    /// The nodes that this one can work with now, itself included.
    pub(crate) fn connected(&self) -> PartySet {
        PartySet::from_bits(self.heard.load(Relaxed) & self.reached.load(Relaxed) | 1 << self.me.0)
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

    /// All nodes have just agreed.
    pub(crate) fn note_all_set_up(&self) {
        self.set_up.store(u16::MAX, Relaxed);
    }

    /// Whether all peers have agreed on the common secrets.
    pub(crate) fn all_set_up(&self) -> bool {
        let agreed = PartySet::from_bits(self.set_up.load(Relaxed) | 1 << self.me.0);
        Party::all(self.queues.len()).all(|p| agreed.contains(p))
    }

    /// Remembers what a peer says in its greeting.
    pub(crate) fn note_greeting(&self, peer: Party, boot: [u8; 16], state: State) {
        let known = &mut self.known()[peer.index()];
        *known = Known { boot: Some(boot), state, ..*known };
    }

    /// Remembers what a peer says in a beat.
    pub(crate) fn note_state(&self, peer: Party, state: State) {
        self.known()[peer.index()].state = state;
    }

    /// Remembers up to which mark of this node a peer says that it holds them.
    pub(crate) fn note_holds(&self, peer: Party, holds: u64) {
        self.known()[peer.index()].holds = holds;
        self.holding.notify_all();
    }

    /// Waits until so many of some peers hold this node's marks up to one of a number. Those that do not, if time runs out, or if
    /// too few of them are connected.
    pub(crate) fn wait_held(
        &self,
        number: u64,
        peers: PartySet,
        enough: usize,
        within: Duration,
    ) -> Result<(), PartySet> {
        let began = Instant::now();
        let mut known = self.known();
        loop {
            let lacking: PartySet = peers.iter().filter(|p| known[p.index()].holds < number).collect();
            if peers.len() - lacking.len() >= enough {
                return Ok(());
            }
            let gone = lacking.without(self.connected());
            let is_lost = peers.len() - gone.len() < enough && began.elapsed() >= RECONNECTING;
            let left = within.saturating_sub(began.elapsed());
            if is_lost || left.is_zero() {
                return Err(lacking);
            }
            let slice = left.min(RECONNECTING / 5);
            known = self.holding.wait_timeout(known, slice).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sends a peer a beat now, and not when nothing was sent for a while. One that does not listen learns what is in it when it is greeted.
    pub(crate) fn beat_now(&self, peer: Party) {
        let _ = self.queues[peer.index()].try_send(Due::Beat);
    }

    /// All nodes have just said that they have this epoch.
    pub(crate) fn note_all_epochs(&self, id: [u8; 32]) {
        self.known().iter_mut().for_each(|known| known.state.epoch = id);
    }

    /// What the peers say to have in stock of a kind, by its number.
    pub(crate) fn levels(&self, kind: usize) -> Vec<u16> {
        let known = self.known();
        let of = |p: Party| known[p.index()].state.levels.get(kind).copied().unwrap_or_default();
        Party::all(known.len()).filter(|p| *p != self.me).map(of).collect()
    }

    /// How many keys the peers that are connected say to have.
    pub(crate) fn key_counts(&self) -> Vec<u64> {
        let (known, connected) = (self.known(), self.connected());
        let peers = Party::all(known.len()).filter(|p| *p != self.me && connected.contains(*p));
        peers.map(|p| known[p.index()].state.keys.into()).collect()
    }

    /// All nodes have just made so much more: until they say so themselves.
    pub(crate) fn note_made(&self, kind: usize, more: u16) {
        for known in self.known().iter_mut() {
            if let Some(level) = known.state.levels.get_mut(kind) {
                *level = level.saturating_add(more);
            }
        }
    }

    /// Which start a peer is in.
    pub(crate) fn boot(&self, peer: Party) -> Option<[u8; 16]> {
        self.known()[peer.index()].boot
    }

    /// Whether something holds of any peer, by what it said last.
    pub(crate) fn any(&self, holds: impl Fn(State) -> bool) -> bool {
        self.which(holds).iter().next().is_some()
    }

    /// The peers of which it does.
    pub(crate) fn which(&self, holds: impl Fn(State) -> bool) -> PartySet {
        let known = self.known();
        let holding = Party::all(known.len())
            .zip(known.iter())
            .filter(|(p, known)| *p != self.me && holds(known.state));
        holding.map(|(p, _)| p).collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an order. A full queue means that the peer does not listen.
    pub(crate) fn order(&self, peer: Party, order: Order) -> Result<()> {
        let gone = || Error::Closed { peer, detail: "it takes no orders at present".into() };
        if !self.connected().contains(peer) {
            return Err(gone());
        }
        self.queues[peer.index()].try_send(Due::Order(order)).map_err(|_| gone())
    }

    /// What waits to be sent to a peer; for its one sending thread.
    pub(crate) fn queue(&self, peer: Party) -> Option<Receiver<Due>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)[peer.index()].take()
    }

    /// Sends orders and beats until it fails, `stop` says so, or the peer is in another start than `boot`.
    pub(crate) fn send_orders(
        &self,
        peer: Party,
        boot: [u8; 16],
        queue: &Receiver<Due>,
        net: &mut TlsNet,
        beat: &dyn Fn() -> Beat,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        // What waited for a connection before this one is out of date.
        while queue.try_recv().is_ok() {}
        let bit = 1 << peer.0;
        self.reached.fetch_or(bit, Relaxed);
        let outcome = loop {
            if stop() {
                break Ok(());
            }
            let Some(order) = next_order(queue, beat) else { break Ok(()) };
            // A peer that has started anew is connected again already on its own stream, and what is written to the old connection
            // would be lost in silence.
            if self.boot(peer) != Some(boot) {
                break Ok(());
            }
            if let Err(e) = net.send(peer, &order.encode()) {
                break Err(e);
            }
        };
        self.reached.fetch_and(!bit, Relaxed);
        outcome
    }

    /// Receives orders until it fails.
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
            let mut bytes = [0; ORDER];
            let order = net.recv(peer, &mut bytes).and_then(|()| Order::decode(&bytes, peer));
            if let Err(e) = order.and_then(&mut carry_out) {
                break Err(e);
            }
        };
        self.heard.fetch_and(!bit, Relaxed);
        outcome
    }
}

/// What is sent next; none if nothing will be.
fn next_order(queue: &Receiver<Due>, beat: &dyn Fn() -> Beat) -> Option<Order> {
    match queue.recv_timeout(BEAT_EVERY) {
        Ok(Due::Order(order)) => Some(order),
        Ok(Due::Beat) | Err(RecvTimeoutError::Timeout) => Some(Order::Beat(beat())),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// The name of the control stream from one node to another.
pub(crate) fn control_stream(from: Party, to: Party) -> String {
    format!("orders of {from} to {to}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Start;

    #[test]
    fn orders_come_back_and_others_are_refused() {
        let mark = Mark { number: 1 << 40 | 7, value: [9; 16] };
        let beat = |state| Order::Beat(Beat { state, mark, holds: 1 << 50 | 3 });
        let orders = [
            Order::Beat(Beat::default()),
            beat(State { epoch: [3; 32], quarantined: true, prepared: true, ..State::default() }),
            beat(State { keys: 70_000, ..State::default() }),
            beat(State { levels: [1, 0, 1000, 4, 5, 6, 7, u16::MAX], ..State::default() }),
            beat(State { wants_rotation: true, ..State::default() }),
            Order::Channel { serving: PartySet::all(3), name: [7; 16] },
            Order::SetUp { name: [9; 16] },
            Order::Renew { name: [1; 16] },
            Order::Fill { name: [2; 16], kind: 3, count: 640 },
            Order::Rotate { name: [4; 16] },
        ];
        for order in orders {
            assert_eq!(Order::decode(&order.encode(), Party(1)), Ok(order));
        }
        assert!(Order::decode(&[9; ORDER], Party(1)).is_err());
    }

    #[test]
    fn a_greeting_is_read_as_it_was_written() {
        let starts = vec![Start { first: 7, boot: [5; 16] }, Start { first: 1, boot: [6; 16] }];
        let past = Past { number: 9, recent: vec![[1; 16], [2; 16]], starts };
        let state = State { epoch: [4; 32], quarantined: true, ..State::default() };
        let greeting =
            Greeting { cluster: [1; 32], past, holds: 5, setup: [2; 32], prepared: [3; 32], state };
        let bytes = wire::encode(&greeting).expect("encoded");
        assert_eq!(wire::decode::<Greeting>(&bytes[4..], Party(1)), Ok(greeting));
        assert!(wire::decode::<Greeting>(&bytes[4..bytes.len() - 1], Party(1)).is_err());
    }

    #[test]
    fn what_peers_said_last_is_known() {
        let peers = Peers::new(Party(0), 3);
        assert_eq!(peers.boot(Party(1)), None);
        peers.note_greeting(Party(1), [7; 16], State { quarantined: true, ..State::default() });
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

    /// Whoever asks for a beat, and however many do at once. (A beat that was made before it waited in the queue came after a newer
    /// one, and the peer refused this node for five seconds.)
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
    fn who_does_not_hold_a_mark_in_time_is_named() {
        let peers = Peers::new(Party(0), 4);
        let (others, soon) = (PartySet::all(4).without([Party(0)].into_iter().collect()), BEAT_EVERY / 50);
        peers.note_holds(Party(1), 7);
        peers.note_holds(Party(2), 6);
        assert_eq!(peers.wait_held(7, others, 1, soon), Ok(()));
        let lacking = [Party(2), Party(3)].into_iter().collect();
        assert_eq!(peers.wait_held(7, others, 2, soon), Err(lacking));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| peers.wait_held(7, others, 2, SILENCE));
            peers.note_holds(Party(2), 8);
            assert_eq!(waiting.join().expect("no panic"), Ok(()));
        });
    }
}
