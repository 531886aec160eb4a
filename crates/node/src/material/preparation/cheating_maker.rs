//! Two nodes under `spdz-tower`, of which one cheats in one message while they make an epoch or material. No answer is wrong, nothing hangs, and the
//! honest node goes under quarantine where a check failed. Every message and every kind of cheating is tried at the engine
//! (`protocol/src/tinyot`); this shows that nodes act on what the engine finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use polyclave_client::{Client, Padding};
use polyclave_config::{ClientDir, NodeDir, StockSettings};
use polyclave_field::Gf2_64;
use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig};
use polyclave_protocol::service::{Carried, Element, ServiceConfig, Stored};
use polyclave_protocol::session::{HandshakeParameters, Stream};
use polyclave_protocol::spdz::{LookupMethod, Packing, Preprocessing, Setup, Spdz, SpdzConfig};
use polyclave_protocol::stock::{Kind, Stock};
use polyclave_protocol::testkit::tamper::{Fault, Tamper};
use polyclave_protocol::{Party, PartySet, Result};
use polyclave_transport::wire::{Mode, NewKey};
use zeroize::Zeroizing;

use crate::local::{Local, create};
use crate::{Conduct, Running};

const PATIENCE: Duration = Duration::from_secs(120);
/// FIPS 197, appendix C.1.
const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const PLAIN: [u8; 16] =
    [0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff];
const CIPHERTEXT: [u8; 16] =
    [0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a];

#[test]
fn a_node_that_cheats_while_material_is_made_causes_no_wrong_answer() {
    let messages = Pair::start(None).run_honestly();
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
        let pair = Pair::start(Some((at, fault)));
        quarantines += u32::from(pair.outcome_is_right_or_refused(&format!("{fault:?} at message {at}")));
    }
    assert!(quarantines > 0, "checks failed, and no node went under quarantine");
}

/// Two nodes, of which the second may cheat.
struct Pair {
    nodes: [Running; 2],
    local: Local,
    cheater: Arc<AtomicU64>,
    _dir: tempfile::TempDir,
}

impl Pair {
    fn start(fault: Option<(u64, Fault)>) -> Pair {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), "spdz-tower", 2, 1).expect("a cluster");
        let cheater = Arc::new(AtomicU64::new(0));
        let start = |node: usize, fault, sent: Arc<AtomicU64>| {
            let mut dir = NodeDir::open(&local.nodes[node]).expect("its directory");
            let mut settings = dir.settings().clone();
            settings.stock = StockSettings::of(16, 0);
            dir.set_settings(settings).expect("saved");
            let config = AnyServiceConfig::new(Cheating { inner: tower(), fault, sent });
            Running::start_with(dir, config, Conduct::HONEST).expect("it starts")
        };
        let nodes = [start(0, None, Arc::default()), start(1, fault, cheater.clone())];
        Pair { nodes, local, cheater, _dir: dir }
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
        self.cheater.load(SeqCst)
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

    /// What the nodes make of the known answer's plaintext; nothing if they refuse.
    fn encrypted(&self) -> Option<Vec<u8>> {
        let client = self.client();
        let key = NewKey::for_modes("k", "aes-128", &[Mode::Ecb], 100);
        client.import(key, &KEY).ok()?;
        let mut ciphertext = Vec::new();
        let done = client.encrypt_ecb("k", &[], Padding::None, &mut &PLAIN[..], &mut ciphertext, &mut |_| ());
        done.ok().map(|_| ciphertext)
    }
}

fn tower() -> SpdzConfig<Gf2_64> {
    let material = Preprocessing::Mascot { expansion: 8 };
    SpdzConfig::new(2, LookupMethod::Tower, material, Packing::Rotation).expect("it is valid")
}

/// The protocol, at a node that may cheat once in what it sends while an epoch or material is made.
struct Cheating {
    inner: SpdzConfig<Gf2_64>,
    fault: Option<(u64, Fault)>,
    /// Messages so far.
    sent: Arc<AtomicU64>,
}

impl Cheating {
    fn with<T>(&self, net: &mut dyn Net, act: impl FnOnce(&mut dyn Net) -> Result<T>) -> Result<T> {
        let (at, fault) = self.fault.unwrap_or((u64::MAX, Fault::Replay));
        let before = self.sent.load(SeqCst);
        // After the fault no number fits.
        let mut net = Tamper::new(net, at.checked_sub(before).unwrap_or(u64::MAX), fault);
        let outcome = act(&mut net);
        self.sent.fetch_add(net.tampering().messages(), SeqCst);
        outcome
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

    fn set_up(&self, net: &mut dyn Net) -> Result<Self::Setup> {
        self.inner.set_up(net)
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
        self.with(net, |net| self.inner.renew(setup, net))
    }

    fn has_mac_key(&self) -> bool {
        self.inner.has_mac_key()
    }

    fn kinds(&self) -> Vec<Kind> {
        self.inner.kinds()
    }

    fn make_material(
        &self,
        setup: &Self::Setup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.with(net, |net| self.inner.make_material(setup, stream, kind, count, net))
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

    fn carry_over(
        &self,
        old: &Self::Setup,
        new: &Self::Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Carried> {
        self.inner.carry_over(old, new, stream, stored, net)
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.inner.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.inner.combine_elements(serving, messages)
    }
}
