//! Four nodes under shamir-active, of which one lies: answers are right all the same, and the liar is named.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use polyclave_api::{Mode, NewKey};
use polyclave_client::{Client, Padding};
use polyclave_config::{ClientDir, NodeDir, NodeSettings, StockSettings};
use polyclave_node::admin::{Answer, Instruction, order};
use polyclave_node::local::{Local, create};
use polyclave_protocol::Party;
use polyclave_protocol::stock::Transfers;

/// FIPS-197, C.1.
const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const BLOCK: &str = "00112233445566778899aabbccddeeff";
const ENCRYPTED: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

const STOCK: StockSettings =
    StockSettings { aes_blocks: Some(64), des_blocks: Some(64), transfers: Transfers::Quick };

/// Whatever should happen happens in this time, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_polyclave-lab"))
}

/// A process of `polyclave-lab node run`; killed when dropped.
struct Node {
    child: Child,
    lines: Receiver<String>,
}

impl Node {
    fn start(local: &Local, number: usize, arguments: &[&str]) -> Node {
        let mut child = lab()
            .args(["node", "run", "--log", "warn"])
            .args(arguments)
            .arg(&local.nodes[number])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok());
        });
        Node { child, lines }
    }

    fn wait_until_ready(&self) {
        let until = Instant::now() + PATIENCE;
        let next = || self.lines.recv_timeout(until.saturating_duration_since(Instant::now()));
        while !next().expect("it is ready in time").contains("is ready") {}
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Four node processes, and a client that may do everything.
struct Cluster {
    _nodes: Vec<Node>,
    local: Local,
    client: Client,
    /// What the client was told though nothing failed.
    remarks: Arc<Mutex<Vec<String>>>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    /// One node gets these arguments.
    fn start(liar: usize, arguments: &[&str]) -> Cluster {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let local = create(&dir.path().join("try"), "shamir-active", 4, 1).expect("made");
        for path in &local.nodes {
            let mut node = NodeDir::open(path).expect("it is there");
            let settings = NodeSettings { stock: STOCK, ..node.settings().clone() };
            node.set_settings(settings).expect("written");
        }
        let of = |number| if number == liar { arguments } else { &[] };
        let nodes: Vec<Node> = (0..4).map(|number| Node::start(&local, number, of(number))).collect();
        nodes.iter().for_each(Node::wait_until_ready);
        let remarks = Arc::<Mutex<Vec<String>>>::default();
        let message = remarks.clone();
        let client = ClientDir::open(&local.client).expect("it is there");
        let client = Client::open(&client)
            .expect("it knows its cluster")
            .on_remark(move |remark| message.lock().push(remark.to_owned()));
        let cluster = Cluster { _nodes: nodes, local, client, remarks, _dir: dir };
        cluster.wait_until_full();
        cluster
    }

    fn wait_until_full(&self) {
        let until = Instant::now() + PATIENCE;
        loop {
            let status = self.client.status();
            let full = status.iter().all(|(_, node)| {
                node.as_ref().is_ok_and(|node| {
                    !node.stock.is_empty() && node.stock.iter().all(|kind| kind.blocks >= kind.level)
                })
            });
            if full {
                return;
            }
            assert!(Instant::now() < until, "the stock is not full: {status:?}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Imports the key of the standard and encrypts its block.
    fn known_answer(&self) -> String {
        let new = NewKey::for_modes("known", "aes-128", &[Mode::Ecb], 1 << 20);
        self.client.import(new, &hex::decode(KEY).expect("hexadecimal")).expect("imported");
        self.wait_until_full();
        let block = hex::decode(BLOCK).expect("hexadecimal");
        let key = self.client.key("known").expect("a key");
        hex::encode(key.ecb().padding(Padding::None).encrypt(&block).expect("encrypted"))
    }

    /// Whom a node says, to its operator, to have outvoted.
    fn outvoted(&self, node: usize) -> Vec<String> {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("it is there");
        match order(&dir, &Instruction::Status).expect("it answers") {
            Some(Answer::Status(status)) => status.outvoted,
            answer => panic!("{answer:?}"),
        }
    }

    /// A node's audit log.
    fn audit(&self, node: usize) -> String {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("it is there");
        std::fs::read_to_string(dir.audit_path()).expect("it is text")
    }

    fn nobody_is_missing(&self) {
        let remarks = self.remarks.lock();
        assert!(!remarks.iter().any(|remark| remark.contains("takes no part")), "{remarks:?}");
    }
}

#[test]
fn a_node_that_lies_in_every_opening_changes_nothing_and_is_named() {
    let cluster = Cluster::start(2, &["--cheat", "openings"]);
    assert_eq!(cluster.known_answer(), ENCRYPTED);
    cluster.nobody_is_missing();
    for node in [0, 1, 3] {
        assert_eq!(cluster.outvoted(node), ["node-3"], "node {}", node + 1);
        let audit = cluster.audit(node);
        assert!(audit.contains("outvoted-node-3"), "{audit}");
    }
    let status = cluster.client.status();
    let said = |node: usize| status[node].1.as_ref().expect("it answers").outvoted;
    assert!([0, 1, 3].into_iter().all(|node| said(node).iter().map(Party::index).eq([2])), "{status:?}");
}

#[test]
fn a_node_that_sends_clients_wrong_bytes_changes_nothing() {
    let cluster = Cluster::start(0, &["--cheat", "answers"]);
    assert_eq!(cluster.known_answer(), ENCRYPTED);
    cluster.nobody_is_missing();
}

fn message_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_demo_shows_a_node_that_cheats() {
    let output = lab().args(["demo", "--protocol", "shamir-active", "--cheat"]).output().expect("it starts");
    let said = message_of(&output);
    assert!(output.status.success(), "{said}");
    for part in ["outvoted node-2", "As published.", ENCRYPTED] {
        assert!(said.contains(part), "no '{part}' in {said}");
    }
}

#[test]
fn the_demo_refuses_a_cheat_that_nobody_would_correct() {
    let output = lab().args(["demo", "--cheat"]).output().expect("it starts");
    let said = message_of(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("shamir-active"), "{said}");
}
