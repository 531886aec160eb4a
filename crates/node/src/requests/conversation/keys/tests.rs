//! Deletions by nodes whose disks tell what was written, in which order, or are full.

use std::time::{Duration, Instant};

use polyclave_api::{Mode, NewKey};
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir};
use polyclave_store::testing::{Disk, reopen};
use polyclave_store::{KeyState, Store};

use crate::Running;
use crate::local::create;

const NODES: usize = 3;
/// Long enough for a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a node holds of the one key there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Whole,
    /// The node has noted that it is about to delete it.
    DeletionBegun,
    Deleted,
}

fn held(store: &Store) -> Held {
    let keys = store.held_keys().expect("read");
    let [key] = &keys[..] else { panic!("{} keys", keys.len()) };
    match (key.state, key.deletion_begun) {
        (KeyState::Announced, false) => Held::Whole,
        (KeyState::Announced, true) => Held::DeletionBegun,
        (KeyState::Deleted, false) => Held::Deleted,
        state => panic!("{state:?}"),
    }
}

/// Nodes with stores in memory, and a key `k`.
struct Trial {
    client: Client,
    nodes: Vec<Running>,
    disks: Vec<Disk>,
    _dir: tempfile::TempDir,
}

impl Trial {
    fn start() -> Trial {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), "shamir", NODES, 1).expect("a cluster");
        let client = Client::open(&ClientDir::open(&local.client).expect("its directory")).expect("a client");
        let disks: Vec<Disk> = (0..NODES).map(|_| Disk::default()).collect();
        let start = |(path, disk)| {
            Running::start_over(NodeDir::open(path).expect("its directory"), reopen(disk)).expect("it starts")
        };
        let nodes: Vec<Running> =
            local.nodes.iter().map(|path| path.as_path()).zip(&disks).map(start).collect();
        let trial = Trial { client, nodes, disks, _dir: dir };
        let ready = |node: &Running| node.is_ready() && node.status().connected.len() == NODES;
        trial.until("all are ready", || trial.nodes.iter().all(ready));
        trial.client.generate(NewKey::for_modes("k", "aes-128", &[Mode::Cmac], 1000)).expect("made");
        trial
    }

    fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            assert!(Instant::now() < until, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn held(&self) -> Vec<Held> {
        self.nodes.iter().map(|node| held(&node.store)).collect()
    }
}

/// Without the note, a refresh after a kill would not know that the key's client was allowed to delete it.
#[test]
fn every_node_notes_on_its_disk_that_it_is_about_to_delete_a_key_before_it_does() {
    let trial = Trial::start();
    trial.disks.iter().for_each(Disk::record);
    trial.client.delete("k").expect("deleted").expect("it was there");
    for disk in &trial.disks {
        let history = disk.history().into_iter();
        let mut stages: Vec<Held> = history.map(|bytes| held(&reopen(&Disk::from_bytes(bytes)))).collect();
        stages.dedup();
        let begun = stages.iter().position(|stage| *stage != Held::Whole).expect("it is deleted");
        assert_eq!(stages[begun..], [Held::DeletionBegun, Held::Deleted]);
    }
}

/// Otherwise a node could hold a key that is deleted elsewhere, and no note.
#[test]
fn no_node_deletes_a_key_if_one_cannot_note_that_it_is_about_to() {
    let trial = Trial::start();
    trial.disks[2].fill_up();
    trial.client.delete("k").expect_err("a node has no room");
    trial.disks[2].make_room();
    assert_eq!(trial.held(), [Held::Whole; NODES], "the notes of the others are withdrawn");
    trial.until("it is deleted after all", || trial.client.delete("k").is_ok());
    assert_eq!(trial.held(), [Held::Deleted; NODES]);
}
