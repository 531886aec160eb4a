//! Files in envelopes: who may write and who may open, what the nodes compute, and what is noticed.

use std::io::Cursor;

use polyclave_api::{
    Envelope, Mode, NewKey, Operation, Reason, Reply, Request, Right, Step, Usage, Use, VERSION, operations,
};

use crate::common::from_keys::{code, refused};
use crate::common::raw::Raw;
use crate::common::{TestCluster, active, data, key, nothing};
use aes_gcm::aead::{Aead, KeyInit, Payload};
use polyclave_client::{Client, Error, Result};
use polyclave_config::{ClientCard, NodeDir};
use polyclave_node::Cheat;
use polyclave_protocol::PartySet;

/// Places in the head of a file.
const KEY: usize = 16;
const FILE: usize = 32;
const COMMITMENT: usize = 64;
const OWNER: usize = 99;

fn envelope_key(name: &str) -> NewKey {
    key(name, "aes-128", &[Mode::Envelope])
}

fn write(client: &Client, key: &str, header: &str, data: &[u8]) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    client.write_envelope(key, header.as_bytes(), &mut Cursor::new(data), &mut file, &mut nothing)?;
    Ok(file)
}

fn open(client: &Client, key: &str, file: &[u8]) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    client.open_envelope(key, &mut &file[..], &mut data, &mut nothing)?;
    Ok(data)
}

#[track_caller]
fn unauthentic(outcome: Result<Vec<u8>>) {
    assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{outcome:?}");
}

/// What can be asked of one file is that much material: `fill` waits for it.
fn works_at(cluster: &TestCluster, fill: &dyn Fn()) {
    let client = cluster.client();
    client.import(envelope_key("files"), &[0x3c; 16]).expect("a key");
    fill();
    let one = write(&client, "files", "invoices", &data(3000)).expect("written");
    fill();
    let other = write(&client, "files", "invoices", &data(3000)).expect("written");
    fill();
    assert_eq!(open(&client, "files", &one).expect("opened"), data(3000));
    fill();
    assert_eq!(open(&client, "files", &other).expect("opened"), data(3000));
    the_key_is_what_another_program_computes(&one, &data(3000));

    let head = OWNER + client.name().len() + "invoices".len();
    assert_ne!(one[COMMITMENT..OWNER], other[COMMITMENT..OWNER], "the same file has two commitments");
    let equal = one[head..].iter().zip(&other[head..]).filter(|(a, b)| a == b).count();
    assert!(equal < 60, "{equal} of about 3080 bytes are equal; 12 are expected by chance");

    for at in [FILE, COMMITMENT, OWNER, OWNER + client.name().len(), one.len() - 1] {
        fill();
        let mut changed = one.clone();
        changed[at] ^= 1;
        unauthentic(open(&client, "files", &changed));
    }
    let mut of_another_key = one.clone();
    of_another_key[KEY] ^= 1;
    refused(open(&client, "files", &of_another_key), Reason::NoSuchKey, "was not made under the key 'files'");
    fill();
    unauthentic(open(&client, "files", &one[..one.len() - 1]));
    fill();
    assert_eq!(open(&client, "files", &one).expect("opened"), data(3000));
}

/// docs/use/envelope.md, step by step, by other implementations of CMAC and AES-GCM.
fn the_key_is_what_another_program_computes(file: &[u8], expected: &[u8]) {
    let (owner, header) = (usize::from(file[96]), usize::from(file[97]) + 256 * usize::from(file[98]));
    let (name, rest) = file[OWNER..].split_at(owner);
    let text = &rest[..header];
    let lengths = [owner, header].map(|len| (len as u64).to_le_bytes());
    let named =
        [&file[FILE..COMMITMENT], &file[COMMITMENT..96], &lengths[0], name, &lengths[1], text].concat();
    let d = blake3::derive_key("polyclave 2026 file in an envelope", &named);
    let half = |i: u8| code("aes-128", &[0x3c; 16], &[&[i], &b"file"[..], &d].concat());
    let aes = aes_gcm::Aes256Gcm::new_from_slice(&[half(1), half(2)].concat()).expect("a key");
    let aad = blake3::derive_key("polyclave 2026 head of an envelope", &file[..OWNER + owner + header]);
    let chunk = &rest[header + 48..];
    let nonce = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let opened = aes.decrypt(&nonce.into(), Payload { msg: chunk, aad: &aad }).expect("authentic");
    assert_eq!(opened, expected);
}

fn works_under(protocol: &str) {
    let mut cluster = TestCluster::define_with(protocol, 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works_at(&cluster, &|| ());
}

#[test]
fn envelopes_come_back_and_every_change_is_noticed_under_shamir_active() {
    let cluster = active::start(64, &[]);
    works_at(&cluster, &|| active::fill(&cluster));
}

#[test]
fn envelopes_come_back_and_every_change_is_noticed_under_spdz_tower() {
    works_under("spdz-tower");
}

#[test]
fn envelopes_come_back_and_every_change_is_noticed_under_spdz_lt() {
    works_under("spdz-lt");
}

#[test]
fn envelopes_come_back_and_every_change_is_noticed_under_tinytable() {
    works_under("tinytable-linear64");
}

#[test]
fn no_key_for_envelopes_is_made_where_outputs_are_not_checked() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let why = "outputs are not checked, and with a wrong key a file would be lost";
    refused(client.generate(envelope_key("unchecked")), Reason::Key, why);
    refused(client.import(envelope_key("unchecked"), &[1; 16]), Reason::Key, "spdz-tower");
}

#[test]
fn who_may_write_cannot_open_and_who_may_open_cannot_write() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let all = cluster.client();
    all.generate(envelope_key("files")).expect("a key");
    let only = |usage| NewKey { usage: vec![usage], ..envelope_key("write-only") };
    all.generate(only(Usage::Encrypt)).expect("a key");
    let writer = cluster.client_with("writer", &[Right::Encrypt], &["*"]);
    let reader = cluster.client_with("reader", &[Right::Decrypt], &["*"]);

    let file = write(&writer, "files", "report", &data(100)).expect("written");
    refused(open(&writer, "files", &file), Reason::Denied, "does not allow writer to decrypt");
    refused(
        write(&reader, "files", "report", &data(100)),
        Reason::Denied,
        "does not allow reader to encrypt",
    );
    assert_eq!(open(&reader, "files", &file).expect("opened"), data(100));
    let of_no_use = write(&writer, "write-only", "", &data(100)).expect("written");
    refused(open(&reader, "write-only", &of_no_use), Reason::NotForThis, "usage encrypt, not decrypt");

    a_writer_is_never_given_the_key_of_a_file_that_is_there(&cluster, &file);
    nodes_refuse_a_writer_in_another_name(&cluster);
}

/// The client asks as if it wrote the same file once more: the nodes draw another id.
fn a_writer_is_never_given_the_key_of_a_file_that_is_there(cluster: &TestCluster, file: &[u8]) {
    let envelope = Envelope {
        owner: cluster.client().name().into(),
        header: b"report".to_vec(),
        commitment: file[COMMITMENT..96].try_into().expect("32 bytes"),
    };
    let operation = Operation::Use(operations::UseKey {
        key: "files".into(),
        id: None,
        how: Use::EnvelopeWrite(envelope),
    });
    let mut ids = vec![file[FILE..COMMITMENT].to_vec()];
    for id in 0..3 {
        let mut raw = Raw::call(cluster);
        raw.tell_all(&Request {
            version: VERSION,
            id: [id; 16],
            serving: PartySet::all(2),
            operation: operation.clone(),
            dealt: Vec::new(),
            first: Some(Step::FileKey),
            approval: None,
            on_behalf_of: String::new(),
            trace: None,
        });
        for reply in raw.replies() {
            let Reply::Accepted { start, .. } = reply else { panic!("{reply:?}") };
            ids.push(start);
        }
        // A second key of the same request is refused.
        raw.tell_all(&Step::FileKey);
        assert!(raw.endings().iter().all(|ending| ending.message().contains("does not belong here")));
    }
    assert!(ids[1..].chunks(2).all(|pair| pair[0] == pair[1]), "the nodes agree");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

fn nodes_refuse_a_writer_in_another_name(cluster: &TestCluster) {
    let identity = polyclave_transport::Identity::generate_named("mallory", 1).expect("an identity");
    let client = cluster.client_of("alice", &identity);
    let card = ClientCard { name: "mallory".into(), certificate: identity.certificate() };
    for path in &cluster.local.nodes {
        let node = NodeDir::open(path).expect("its directory");
        let mut policy = node.policy().expect("its policy");
        policy.allow(&card, &[Right::Encrypt], &["*".into()]).expect("a rule");
        node.save_policy(&policy).expect("saved");
    }
    cluster.wait_until(|| client.status().iter().all(|(_, status)| status.is_ok()));
    refused(write(&client, "files", "", &data(10)), Reason::Denied, "a client writes in its own name");
}

#[test]
fn every_key_of_a_file_is_paid_for_also_when_it_is_opened() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(NewKey { budget_blocks: 13, ..envelope_key("poor") }).expect("a key");
    let file = write(&client, "poor", "", &data(10)).expect("6 blocks");
    assert_eq!(open(&client, "poor", &file).expect("6 more"), data(10));
    refused(open(&client, "poor", &file), Reason::Spent, "");
}

#[test]
fn a_wrong_answer_of_a_node_is_noticed_by_the_client_under_spdz_tower() {
    let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    client.generate(envelope_key("files")).expect("a key");
    let file = write(&client, "files", "", &data(10)).expect("written");
    cluster.stop(1);
    active::start_cheating(&mut cluster, 1, Cheat::InAnswers);
    cluster.wait_until_ready();
    let client = cluster.client();
    for outcome in [open(&client, "files", &file), write(&client, "files", "", &data(10))] {
        let error = outcome.expect_err("refused");
        assert!(matches!(error, Error::Answers(_)), "{error}");
    }
}

#[test]
fn a_wrong_answer_of_a_node_is_corrected_under_shamir_active() {
    let cluster = active::start(64, &[(2, Cheat::InAnswers)]);
    let client = cluster.client();
    client.generate(envelope_key("files")).expect("a key");
    active::fill(&cluster);
    let file = write(&client, "files", "", &data(10)).expect("written");
    active::fill(&cluster);
    assert_eq!(open(&client, "files", &file).expect("opened"), data(10));
}

/// Writes and opens 1 GiB, from file to file in TMPDIR (a file system in memory, say), and prints how long it
/// took and what each of the two primitives alone needs on one core. Not a test: run it with
/// `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn how_long_an_envelope_of_1_gib_takes() {
    const LEN: usize = 1 << 30;
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name);
    let piece: Vec<u8> = data(1 << 20);
    std::fs::write(path("in"), piece.repeat(LEN >> 20)).expect("written");
    let timed = |what: &str, work: &mut dyn FnMut()| {
        let began = std::time::Instant::now();
        work();
        let seconds = began.elapsed().as_secs_f64();
        println!("{what}: {seconds:.2} s, {:.2} GB/s", LEN as f64 / seconds / 1e9);
    };
    let measure = |protocol: &str, client: &Client| {
        let (mut small, mut nothing_of) = (Vec::new(), |_| ());
        for round in 0..3 {
            let input = || std::fs::File::open(path("in")).expect("there");
            timed(&format!("{protocol} {round}: cp"), &mut || {
                std::fs::copy(path("in"), path("copy")).expect("copied");
            });
            timed(&format!("{protocol} {round}: a file of 10 bytes"), &mut || {
                small = write(client, "files", "", &data(10)).expect("written");
            });
            timed(&format!("{protocol} {round}: written to nothing"), &mut || {
                let mut out = std::io::sink();
                client
                    .write_envelope("files", b"", &mut input(), &mut out, &mut nothing_of)
                    .expect("written");
            });
            let _ = std::fs::remove_file(path("envelope"));
            timed(&format!("{protocol} {round}: written to a file"), &mut || {
                let mut out = std::fs::File::create(path("envelope")).expect("made");
                client
                    .write_envelope("files", b"", &mut input(), &mut out, &mut nothing_of)
                    .expect("written");
            });
            timed(&format!("{protocol} {round}: opened to nothing"), &mut || {
                let mut file = std::fs::File::open(path("envelope")).expect("there");
                let mut out = std::io::sink();
                client.open_envelope("files", &mut file, &mut out, &mut nothing_of).expect("opened");
            });
            let _ = std::fs::remove_file(path("copy"));
            timed(&format!("{protocol} {round}: opened to a file"), &mut || {
                let mut file = std::fs::File::open(path("envelope")).expect("there");
                let mut out = std::fs::File::create(path("copy")).expect("made");
                client.open_envelope("files", &mut file, &mut out, &mut nothing_of).expect("opened");
            });
        }
    };
    timed("BLAKE3 alone", &mut || {
        let mut hasher = blake3::Hasher::new();
        for _ in 0..LEN >> 20 {
            hasher.update(&piece);
        }
        std::hint::black_box(hasher.finalize());
    });
    let active = active::start(64, &[]);
    active.client().generate(envelope_key("files")).expect("a key");
    active::fill(&active);
    measure("shamir-active", &active.client());
    drop(active);
    let mut tower = TestCluster::define_with("spdz-tower", 2, 1);
    (0..2).for_each(|node| tower.restart(node));
    tower.wait_until_ready();
    tower.client().generate(envelope_key("files")).expect("a key");
    active::fill(&tower);
    measure("spdz-tower", &tower.client());
}
