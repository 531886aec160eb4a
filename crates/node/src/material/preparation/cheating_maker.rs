//! Two nodes under `spdz-tower`, of which one cheats in one message while they make an epoch or material. No
//! answer is wrong, nothing hangs, and the honest node goes under quarantine where a check failed. Every
//! message and every kind of cheating is tried at the engine (`protocol/src/tinyot`). This shows that nodes
//! act on what the engine finds, on whichever stream it finds it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_client::{Client, Padding};
use polyclave_config::{ClientDir, NodeDir, NodeSettings, StockSettings};
use polyclave_field::Gf2_64;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::authenticated::Guesses;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::{Element, Refreshed, ServiceConfig, Stored};
use polyclave_protocol::session::{HandshakeParameters, Stream};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Setup, Spdz, SpdzConfig};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::{GuessGuard, Party, PartySet, Result};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};
use zeroize::Zeroizing;

use super::cheating_workers::Trap;
use super::tests::PROCESSORS;
use crate::local::{Local, create};
use crate::material::epoch;
use crate::{FaultInjection, Running};

const PATIENCE: Duration = Duration::from_secs(120);
/// FIPS 197, appendix C.1.
const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const PLAIN: [u8; 16] =
    [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
const CIPHERTEXT: [u8; 16] =
    [0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a];

#[test]
fn a_node_that_cheats_while_material_is_made_causes_no_wrong_answer() {
    let messages = Pair::start(PROCESSORS, Lie::None).run_honestly();
    let mut quarantines = 0;
    for (number, fault) in [
        Fault::FlipBit { byte: 3, bit: 5 },
        Fault::FlipBit { byte: 70_000, bit: 0 },
        Fault::Replay,
        Fault::Garbage { seed: 1 },
        Fault::Truncate,
    ]
    .into_iter()
    .cycle()
    .take(10)
    .enumerate()
    {
        // From the first message to the last one that a start takes.
        let at = messages * number as u64 / 10;
        let pair = Pair::start(PROCESSORS, Lie::Once(at, fault));
        quarantines += u32::from(pair.outcome_is_right_or_refused(&format!("{fault:?} at message {at}")));
    }
    assert!(quarantines > 0, "checks failed, and no node went under quarantine");
}

/// A cheater guesses bits of the MAC key. It spoils corrections of transfers on one stream or on all, and
/// tries again for as long as it can. The first wrong guess counts before anything else happens, also if the
/// cheater spoils all streams at once.
#[test]
fn a_wrong_guess_on_any_stream_counts_and_is_the_last_one() {
    for (processors, stream) in [(2, None), (4, Some(2)), (4, None), (16, Some(2)), (16, Some(8)), (16, None)]
    {
        let what = format!("{processors} processors, stream {stream:?}");
        let mut pair = Pair::start(processors, Lie::OnStream(stream));
        pair.until(&what, || pair.nodes[0].status().quarantined);
        let counted = Guesses { failed: 1, unanswered: 0 };
        let stored = |pair: &Pair| {
            let store = &pair.nodes[0].store;
            (store.guesses().expect("read"), store.quarantined().expect("read").is_some())
        };
        assert_eq!(stored(&pair), (counted, true), "{what}");
        assert!(pair.lies() >= 1, "{what}: it lied");
        assert_eq!(pair.encrypted(), None, "{what}: a node under quarantine served");
        let epochs = pair.epochs();
        // After a start, too, the cheater gets no other try under the same MAC key.
        pair.restart_honest(processors);
        pair.until("they meet again", || pair.nodes[0].status().connected.len() == 2);
        pair.nodes[0].material.refuse_quarantined().expect_err("it remembers");
        assert!(epoch::join(&pair.nodes[0].material, [1; 16]).is_err(), "{what}: no other epoch");
        assert_eq!(stored(&pair), (counted, true), "{what}");
        assert_eq!(pair.epochs(), epochs, "{what}");
    }
}

/// What a node does.
#[derive(Clone)]
pub(super) enum Lie {
    None,
    /// Cheats in one of all messages that it sends.
    Once(u64, Fault),
    /// Spoils its first message whenever it makes material on this stream, or on any stream if there is no
    /// number.
    OnStream(Option<u8>),
    /// As this worker of the cheater: spoils all streams, once those of all workers have begun.
    AtWorker(u16, Arc<Trap>),
    /// As this worker of the honest node: follows the protocol. The test sees what its checks find.
    Watched(u16, Arc<Trap>),
}

/// Two nodes, of which the second may cheat.
struct Pair {
    nodes: Vec<Running>,
    local: Local,
    cheater: Arc<Counts>,
    _dir: tempfile::TempDir,
}

/// What the second node has done.
#[derive(Default)]
pub(super) struct Counts {
    /// Messages that it sent while an epoch or material was made.
    sent: AtomicU64,
    /// Streams that it spoilt.
    lies: AtomicU64,
    /// Epochs that it took part in.
    pub(super) epochs: AtomicU64,
}

impl Pair {
    fn start(processors: usize, lie: Lie) -> Pair {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), "spdz-tower", 2, 1).expect("a cluster");
        let cheater = Arc::<Counts>::default();
        let nodes = vec![
            start(&local, 0, processors, (Lie::None, Arc::default())),
            start(&local, 1, processors, (lie, cheater.clone())),
        ];
        Pair { nodes, local, cheater, _dir: dir }
    }

    fn restart_honest(&mut self, processors: usize) {
        drop(self.nodes.remove(0));
        self.nodes.insert(0, start(&self.local, 0, processors, (Lie::None, Arc::default())));
    }

    fn lies(&self) -> u64 {
        self.cheater.lies.load(SeqCst)
    }

    fn epochs(&self) -> u64 {
        self.cheater.epochs.load(SeqCst)
    }

    fn client(&self) -> Client {
        Client::open(&ClientDir::open(&self.local.client).expect("its directory")).expect("a client")
    }

    fn is_full(&self) -> bool {
        let full = |node: &Running| {
            let stock = node.status().stock;
            node.is_ready() && !stock.is_empty() && stock.iter().all(|kind| kind.blocks >= kind.level)
        };
        self.nodes.iter().all(full)
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The messages that the second node sends until the stock is full.
    fn run_honestly(self) -> u64 {
        self.until("the stock is full", || self.is_full());
        assert_eq!(self.encrypted().as_deref(), Some(&CIPHERTEXT[..]));
        self.cheater.sent.load(SeqCst)
    }

    /// Whether the honest node went under quarantine.
    fn outcome_is_right_or_refused(self, what: &str) -> bool {
        let honest = &self.nodes[0];
        self.until(what, || honest.status().quarantined || self.is_full());
        if honest.status().quarantined {
            assert_eq!(self.encrypted(), None, "{what}: a node under quarantine served");
            return true;
        }
        if let Some(ciphertext) = self.encrypted() {
            assert_eq!(ciphertext, CIPHERTEXT, "{what}");
        }
        honest.status().quarantined
    }

    fn encrypted(&self) -> Option<Vec<u8>> {
        encrypted(&self.client())
    }
}

/// What the nodes make of the known answer's plaintext; nothing if they refuse.
pub(super) fn encrypted(client: &Client) -> Option<Vec<u8>> {
    let key = NewKey::for_modes("k", "aes-128", &[Mode::Ecb], 100);
    client.import(key, &KEY).ok()?;
    client.key("k").ok()?.ecb().padding(Padding::None).encrypt(&PLAIN).ok()
}

fn start(local: &Local, node: usize, processors: usize, what: (Lie, Arc<Counts>)) -> Running {
    start_in(&local.nodes[node], processors, what).expect("it starts")
}

/// Starts a node, or a worker of one, in its directory.
pub(super) fn start_in(path: &Path, processors: usize, (lie, counts): (Lie, Arc<Counts>)) -> Result<Running> {
    let mut dir = NodeDir::open(path).expect("its directory");
    let settings = dir.settings().clone();
    let stock = StockSettings::of(16, 0);
    dir.set_settings(NodeSettings { stock, processors: Some(processors), ..settings }).expect("saved");
    let config = AnyServiceConfig::new(Cheating { inner: tower(), lie, counts });
    Running::start_with(dir, config, FaultInjection::HONEST)
}

fn tower() -> SpdzConfig<Gf2_64> {
    let material = Preprocessing::Mascot { expansion: 8 };
    SpdzConfig::new(2, LookupMethod::Tower, material, Packing::Rotation).expect("it is valid")
}

/// The protocol, at a node that may cheat once in what it sends while an epoch or material is made.
struct Cheating {
    inner: SpdzConfig<Gf2_64>,
    lie: Lie,
    counts: Arc<Counts>,
}

impl Cheating {
    fn with<T>(&self, net: &mut dyn Net, act: impl FnOnce(&mut dyn Net) -> Result<T>) -> Result<T> {
        let before = self.counts.sent.load(SeqCst);
        let (at, fault) = match self.lie {
            // After the fault no number fits.
            Lie::Once(at, fault) => (at.checked_sub(before).unwrap_or(u64::MAX), fault),
            _ => (u64::MAX, Fault::Replay),
        };
        let mut net = Tamper::new(net, at, fault);
        let outcome = act(&mut net);
        self.counts.sent.fetch_add(net.tampering().messages(), SeqCst);
        outcome
    }

    /// Makes material on one stream. The number of the stream, from 1 on, is the last byte of its label.
    fn make(
        &self,
        stream: Stream,
        net: &mut dyn Net,
        act: impl FnOnce(Stream, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let number = stream.label()[32];
        match &self.lie {
            Lie::OnStream(spoilt) if spoilt.is_none_or(|spoilt| number == spoilt) => {}
            Lie::AtWorker(worker, trap) => trap.wait_for_all(*worker, number),
            _ => return self.with(net, |net| act(stream, net)),
        }
        self.counts.lies.fetch_add(1, SeqCst);
        // One bit of a column is a guess that the bits of the peer's share that belong to this column are 0.
        // One such guess is right once in 256 times, and then nothing is to be found. Guesses at several
        // columns are hardly ever all right.
        let flip = |byte| Fault::FlipBit { byte, bit: 1 };
        let mut one = Tamper::new(net, 0, flip(200));
        let mut two = Tamper::new(&mut one, 0, flip(10_007));
        let mut three = Tamper::new(&mut two, 0, flip(100_003));
        act(stream, &mut three)
    }
}

impl ProtocolConfig for Cheating {
    type Setup = Setup<Gf2_64>;
    type Session = Spdz<Gf2_64>;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn adversary(&self) -> Adversary {
        self.inner.adversary()
    }

    fn promise(&self) -> String {
        self.inner.promise()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.inner.handshake(parameters)
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Self::Setup> {
        self.inner.setup(net)
    }

    fn join(&self, setup: &Self::Setup, stream: Stream, serving: PartySet) -> Result<Self::Session> {
        self.inner.join(setup, stream, serving)
    }
}

impl ServiceConfig for Cheating {
    fn quorum(&self) -> usize {
        self.inner.quorum()
    }

    fn save_setup(&self, setup: &Self::Setup) -> Zeroizing<Vec<u8>> {
        self.inner.save_setup(setup)
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Self::Setup> {
        self.inner.restore_setup(me, bytes)
    }

    fn renew(&self, setup: &Self::Setup, net: &mut dyn Net) -> Result<Self::Setup> {
        self.counts.epochs.fetch_add(1, SeqCst);
        if let Lie::Watched(_, trap) = &self.lie {
            trap.see_epoch();
        }
        self.with(net, |net| self.inner.renew(setup, net))
    }

    fn has_mac_key(&self) -> bool {
        self.inner.has_mac_key()
    }

    fn guard_guesses(&self, setup: &Self::Setup, guard: Arc<dyn GuessGuard>) {
        let guard = match &self.lie {
            Lie::Watched(worker, trap) => Trap::before(trap, *worker, guard),
            _ => guard,
        };
        self.inner.guard_guesses(setup, guard);
    }

    fn kinds(&self, me: Party) -> Vec<Kind> {
        self.inner.kinds(me)
    }

    fn make_material(
        &self,
        setup: &Self::Setup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.make(stream, net, |stream, net| self.inner.make_material(setup, stream, kind, count, net))
    }

    fn join_stocked(
        &self,
        setup: &Self::Setup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<Self::Session> {
        self.inner.join_stocked(setup, stream, serving, stock)
    }

    fn refresh(
        &self,
        old: &Self::Setup,
        new: &Self::Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        self.inner.refresh(old, new, stream, stored, net)
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.inner.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.inner.combine_elements(serving, messages)
    }
}
