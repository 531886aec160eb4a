use std::path::Path;

use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::{Aes128Gcm, Nonce};
use polyclave_field::Gf256;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::protocol::SharedValue;

use super::*;
use crate::owner;
use crate::protocols::{PROTOCOLS, THRESHOLD, service};
use crate::record::Record;

const NODES: usize = 4;

/// Reads a node's shares of the key from its disk.
fn stored_shares(protocol: &str, disk: &Disk, net: &mut dyn Net) -> Result<Vec<u8>> {
    let config = service(protocol, NODES, THRESHOLD)?;
    let at = At::restore(&config, disk, HandshakeParameters::new(NODES), net).expect("it was stored");
    Ok(at.round_keys.reveal_own_shares()[..BLOCK].to_vec())
}

/// A store, nodes' directories, and a key.
struct Place(tempfile::TempDir, &'static str);

impl Place {
    fn new(protocol: &'static str) -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"), protocol);
        std::fs::create_dir(place.store()).expect("a directory");
        place.run(Job::Create, &[]).expect("a key is made");
        place
    }

    fn store(&self) -> PathBuf {
        self.0.path().join("store")
    }

    fn run(&self, job: Job, shares: &[Zeroizing<Vec<u8>>]) -> anyhow::Result<Report> {
        self.run_with(job, shares, |_| self.store()).remove(0)
    }

    /// As `run`, and each node sees a store of its own.
    fn run_with(
        &self,
        job: Job,
        shares: &[Zeroizing<Vec<u8>>],
        store: impl Fn(Party) -> PathBuf + Sync,
    ) -> Vec<anyhow::Result<Report>> {
        let outcomes = run_parties(NODES, |net| {
            let orders = Orders {
                protocol: self.1.into(),
                nodes: NODES,
                directory: self.0.path().to_owned(),
                store: store(net.me()),
                job: job.clone(),
                shares: shares.get(net.me().index()).cloned().unwrap_or_default(),
            };
            Ok(work(&service(self.1, NODES, THRESHOLD)?, &orders, net, &Meter::default()))
        });
        let outcomes: Vec<_> = outcomes.into_iter().map(|o| o.expect("the protocol is known")).collect();
        if let Ok(report) = &outcomes[0] {
            report.sealed.iter().for_each(|sealed| sealed.write(&self.store()).expect("it is written"));
        }
        outcomes
    }

    fn put(&self, numbers: &[u32], records: &[Record]) -> Vec<Sealed> {
        let shares = owner::shares(records, NODES).expect("they fit");
        self.run(Job::Put { numbers: numbers.to_vec() }, &shares).expect("honest nodes finish").sealed
    }

    fn decide(&self, chosen: &[u32], limit: u64) -> anyhow::Result<bool> {
        let job = Job::Decide { chosen: chosen.to_vec(), limit, totals: 100 };
        Ok(self.run(job, &[])?.decision.expect("a decision"))
    }

    /// The shares of the key's bytes on the disk of each node.
    fn shares(&self) -> Vec<Vec<u8>> {
        let outcomes = run_parties(NODES, |net| {
            let disk = Disk::of(self.0.path(), net.me().index());
            stored_shares(self.1, &disk, net)
        });
        outcomes.into_iter().map(|shares| shares.expect("they are there")).collect()
    }
}

fn records() -> Vec<Record> {
    let record = |(name, income, debts): (&str, u64, u64)| Record { name: name.into(), income, debts };
    [("one", 10, 700), ("two", 20, 30), ("three", 1 << 40, 5)].map(record).into()
}

fn files(directory: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("it is there");
    entries.map(|entry| std::fs::read(entry.expect("a file").path()).expect("a file")).collect()
}

fn point(node: usize) -> Gf256 {
    Gf256(node as u8 + 1)
}

/// What two nodes' shares say.
fn joined(nodes: [usize; 2], shares: [u8; 2]) -> u8 {
    let weights = Gf256::lagrange(&nodes.map(point), Gf256::ZERO);
    (weights[0] * Gf256(shares[0]) + weights[1] * Gf256(shares[1])).0
}

#[test]
fn decisions_are_right_and_totals_are_written_back() {
    for protocol in PROTOCOLS {
        let place = Place::new(protocol);
        place.put(&[1, 2, 3], &records());
        for (chosen, limit, expected) in
            [(&[1, 2, 3][..], 735, false), (&[1, 2, 3], 734, true), (&[2], 29, true), (&[3, 1], 705, false)]
        {
            assert_eq!(place.decide(chosen, limit).expect("honest nodes finish"), expected, "{chosen:?}");
        }
        // The totals of the last decision, with another record.
        assert!(place.decide(&[100, 2], 734).expect("honest nodes finish"));
        assert!(place.decide(&[7], 0).is_err(), "there is no such record");
        assert!(place.decide(&[1, 1], 0).is_err(), "a record counts once");
        assert!(place.decide(&[], 0).is_err());
    }
}

/// The form of the store is AES-128-GCM of any library; and two nodes' disks are as good as the key, one is
/// not.
#[test]
fn one_disk_and_the_store_fit_every_key_and_two_disks_give_it() {
    let place = Place::new("shamir");
    let sealed = place.put(&[1, 2, 3], &records());
    let shares = place.shares();
    for (i, byte) in (0..BLOCK).flat_map(|i| (0..=255).map(move |byte| (i, byte))) {
        // With the first node's share as it is on its disk, the second node's may be one that makes this the
        // byte of the key.
        let fits = |second: &u8| joined([0, 1], [shares[0][i], *second]) == byte;
        assert_eq!((0..=255).filter(fits).count(), 1, "byte {i} could not be {byte}");
    }
    let key: Vec<u8> = (0..BLOCK).map(|i| joined([0, 1], [shares[0][i], shares[1][i]])).collect();
    assert_eq!(key, (0..BLOCK).map(|i| joined([2, 3], [shares[2][i], shares[3][i]])).collect::<Vec<u8>>());

    let cipher = Aes128Gcm::new_from_slice(&key).expect("16 bytes");
    for (sealed, record) in sealed.iter().zip(records()) {
        let nonce = Nonce::try_from(&sealed.nonce[..]).expect("12 bytes");
        let aad = Sealed::additional(sealed.number, sealed.version);
        let msg = [&sealed.ciphertext[..], &sealed.tag].concat();
        let opened = cipher.decrypt(&nonce, Payload { msg: &msg, aad: &aad }).expect("the tag is right");
        assert_eq!(opened, *record.to_bytes().expect("it fits"));
    }
    // Nor does the key stand anywhere as it is.
    let everywhere = (1..=NODES).map(|node| format!("node-{node}")).chain(["store".into()]);
    for file in everywhere.flat_map(|name| files(&place.0.path().join(name))) {
        assert!(!file.windows(BLOCK).any(|window| window == key));
    }
}

#[test]
fn record_that_was_changed_swapped_or_rolled_back_is_refused() {
    for protocol in PROTOCOLS {
        let place = Place::new(protocol);
        place.put(&[1, 2, 3], &records());
        let file = |number| Sealed::file(&place.store(), number);
        let old = std::fs::read(file(1)).expect("it is there");
        place.put(&[1], &records()[..1]);
        let right = std::fs::read(file(1)).expect("it is there");
        // One bit of the nonce, of each block, and of the tag.
        let flipped = [0, NONCE_BYTES, NONCE_BYTES + BLOCK, right.len() - 1].map(|at| {
            let mut bytes = right.clone();
            bytes[at] ^= 0x80;
            bytes
        });
        let other = std::fs::read(file(2)).expect("it is there");
        for wrong in flipped.into_iter().chain([old, other]) {
            std::fs::write(file(1), wrong).expect("it is written");
            let error = place.decide(&[2, 1], 0).expect_err("a wrong record was taken").to_string();
            assert!(error.contains("record 1") && error.contains(UNAUTHENTIC), "{error}");
        }
        std::fs::write(file(1), &right[1..]).expect("it is written");
        assert!(place.decide(&[2, 1], 0).is_err(), "a record was too short");
        std::fs::write(file(1), right).expect("it is written");
        assert!(place.decide(&[2, 1], 0).expect("all is as it was"));
    }
}

#[test]
fn store_that_shows_nodes_different_records_is_found_out() {
    let place = Place::new("shamir");
    place.put(&[1], &records()[..1]);
    let other = place.0.path().join("other");
    std::fs::create_dir(&other).expect("a directory");
    let mut bytes = std::fs::read(Sealed::file(&place.store(), 1)).expect("it is there");
    bytes[15] ^= 1;
    std::fs::write(Sealed::file(&other, 1), bytes).expect("it is written");
    let job = Job::Decide { chosen: vec![1], limit: 0, totals: 100 };
    let outcomes = place.run_with(job, &[], |me| if me == Party(2) { other.clone() } else { place.store() });
    for outcome in outcomes {
        let error = outcome.expect_err("the stores differ").to_string();
        assert!(error.contains("another records in the store"), "{error}");
    }
}

#[test]
fn same_record_is_never_encrypted_the_same_way() {
    let place = Place::new("shamir");
    let first = place.put(&[1, 2], &[records().remove(0), records().remove(0)]);
    let again = place.put(&[1], &records()[..1]);
    let all = [&first[0], &first[1], &again[0]];
    for (x, y) in [(0, 1), (0, 2), (1, 2)] {
        assert_ne!(all[x].nonce, all[y].nonce);
        assert_ne!(all[x].ciphertext, all[y].ciphertext);
    }
    assert_eq!((first[0].version, again[0].version), (0, 1));
}

#[test]
fn another_nodes_disk_is_refused() {
    let place = Place::new("shamir");
    place.put(&[1], &records()[..1]);
    let [first, second] = [1, 2].map(|node| place.0.path().join(format!("node-{node}")).join("round-keys"));
    std::fs::copy(first, second).expect("it is copied");
    assert!(
        place.run_with(Job::Decide { chosen: vec![1], limit: 0, totals: 100 }, &[], |_| place.store())[1]
            .is_err()
    );
}
