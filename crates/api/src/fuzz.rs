//! Fuzz targets: arbitrary bytes for every message between clients and nodes, and for statements of
//! approvals.

use polyclave_harness::{fuzz, within_memory};
use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, EncryptedPin, KeySource, PinFormat, PinReference};
use polyclave_protocol::{Party, PartySet};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::*;

const PEER: Party = Party(1);
const TRACEPARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// What serde sets aside at most for a list that claims to be long, once for each list that can be in
/// another, and no more than a small multiple of what came.
fn room(bytes: &[u8]) -> usize {
    (4 << 20) + 64 * bytes.len()
}

/// A message is an error, or a value that stays the same if it is written and read again.
fn is_read_with_limits<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    within_memory(room(bytes), || {
        if let Ok(message) = decode::<T>(bytes, PEER) {
            let again = encode(&message).expect("it is no longer than it was");
            assert_eq!(decode::<T>(&again[4..], PEER).expect("it was written here"), message);
        }
    });
}

fn encoded<T: Serialize>(messages: &[T]) -> Vec<Vec<u8>> {
    messages.iter().map(|message| encode(message).expect("it is small")[4..].to_vec()).collect()
}

fn new_key() -> NewKey {
    let wrapping = NewKey::for_modes("payroll", "aes-128", &[Mode::Gcm, Mode::Ctr], 1 << 40);
    let (label, expires) = ("pay roll".into(), Some(1_900_000_000));
    let lifetime = Lifetime::Session { seconds: MAX_SESSION };
    NewKey {
        wrappable: true,
        attributes: vec![9; 20],
        caller_nonces: true,
        label,
        expires,
        lifetime,
        ..wrapping
    }
}

fn info() -> KeyInfo {
    let (id, origin, made) = ([7; 16], Origin::Generated, 1_800_000_000);
    KeyInfo { version: 3, revision: 7, ..KeyInfo::first(new_key(), id, origin, made, vec![1, 2, 3, 4, 5]) }
}

fn steps() -> Vec<Step> {
    vec![
        Step::Keystream { bytes: CHUNK as u32 },
        Step::Seal { ciphertext: vec![5; 40], last: true },
        Step::Open { ciphertext: vec![6; 40], tag: [9; 16], last: false },
        Step::Absorb { ciphertext: vec![7; 16] },
        Step::Tag,
        Step::Check { tag: vec![3; 16] },
        Step::Masked { data: vec![8; 32], next: 32, end: End::Filled },
        Step::Message { masked: vec![9; 20] },
        Step::Blocks { ciphertext: vec![1; 16] },
        Step::Chi { chi: [2; 16] },
        Step::Finish,
        Step::Wrapped,
        Step::FileKey,
        Step::Derived,
        Step::Rewrapped,
        Step::Answers,
    ]
}

fn verify_pin() -> Command {
    let pin = EncryptedPin { format: PinFormat::Iso0, block: vec![1; 8], key: KeySource::Direct };
    let reference = PinReference::Visa { index: 1, value: "1234".parse().expect("digits") };
    Command::VerifyPin(VerifyPin { pin, pan: "1122334455667788".parse().expect("a card"), reference })
}

fn requests() -> Vec<Request> {
    let (key, additional) = ("payroll".to_owned(), b"additional".to_vec());
    let envelope = Envelope { owner: "alice".into(), header: b"invoices 2026".to_vec(), commitment: [5; 32] };
    let uses = [
        Use::Seal { additional: None },
        Use::Open { file: [1; 32], additional: None },
        Use::GcmEncrypt { additional: additional.clone(), nonce: Some(vec![8; 12]) },
        Use::GcmDecrypt { nonce: vec![2; 12], additional: additional.clone() },
        Use::CtrDecrypt { counter: vec![3; 16] },
        Use::CbcEncrypt { mask: 1024, initial: Some(vec![4; 16]) },
        Use::Cmac { mask: 16 },
        Use::EnvelopeWrite(envelope.clone()),
        Use::EnvelopeOpen { envelope, file: [1; 32] },
        Use::Seal { additional: Some([2; 32]) },
        Use::Open { file: [1; 32], additional: Some([2; 32]) },
        Use::MessageEncrypt {
            message: Message {
                mode: Mode::Ccm,
                nonce: None,
                additional: vec![additional.clone()],
                bytes: 40,
            },
            tag_bytes: 16,
            mask: 48,
        },
        Use::MessageDecrypt {
            message: Message {
                mode: Mode::Siv,
                nonce: Some(vec![2; 13]),
                additional: vec![additional, Vec::new()],
                bytes: 40,
            },
            tag: vec![5; 8],
        },
        Use::MessageDecrypt {
            message: Message { mode: Mode::GcmSiv, nonce: None, additional: Vec::new(), bytes: 0 },
            tag: Vec::new(),
        },
        Use::Hmac(operations::Hmac { bytes: 64, messages: 1000, code_bytes: 32 }),
        Use::Tokenize(operations::Tokenize {
            radix: 10,
            length: 16,
            tweaks: vec![vec![6; 8]; 2],
            values: 2,
            inverse: true,
        }),
        Use::XaesEncrypt { additional: vec![7; 5], nonce: Some([8; 24]) },
        Use::XaesDecrypt { nonce: [2; 24], additional: Vec::new() },
    ];
    let used =
        uses.map(|how| Operation::Use(operations::UseKey { key: key.clone(), id: Some([4; 16]), how }));
    let others = [
        Operation::Status,
        Operation::Report,
        Operation::List(operations::List { after: key.clone(), version: 2 }),
        Operation::Generate(operations::Generate { new: new_key() }),
        Operation::Import(operations::Import { new: new_key() }),
        Operation::Rotate(operations::Rotate { key: key.clone() }),
        Operation::Retire(operations::Retire {
            key: key.clone(),
            version: 2,
            state: VersionState::Deactivated,
        }),
        Operation::Configure(operations::Configure {
            key: key.clone(),
            least_version: 2,
            deletable: false,
            withdraw_wrappable: true,
            withdraw_usage: vec![Usage::Encrypt, Usage::Kdf],
        }),
        Operation::Copy(operations::CopyKey { key: key.clone(), id: [4; 16], new: new_key() }),
        Operation::Describe(operations::DescribeKey {
            key: key.clone(),
            id: [4; 16],
            revision: 9,
            label: "pay roll".into(),
            attributes: vec![3; 20],
        }),
        Operation::Delete(operations::Delete { key, version: Some(2) }),
        Operation::Derive(operations::Derive {
            base: "base".into(),
            new: new_key(),
            how: Derivation::EcbData { data: vec![1; 16] },
        }),
        Operation::Derive(operations::Derive {
            base: "base".into(),
            new: new_key(),
            how: Derivation::Counter { before: vec![1; 8], counter_bits: 32, after: vec![2; 8] },
        }),
        Operation::Kdf(operations::Kdf {
            key: "kdf".into(),
            how: Derivation::Counter { before: vec![1; 8], counter_bits: 8, after: vec![] },
            bytes: 48,
        }),
        Operation::ImportComponent(operations::ImportComponent {
            new: new_key(),
            number: 1,
            of: 3,
            expected: Some(KeyCheck { kind: CheckKind::Zeros, value: vec![1, 2, 3] }),
        }),
        Operation::ImportSealed(Box::new(SealedImport {
            version: VERSION,
            cluster: [4; 32],
            new: new_key(),
            check: vec![1; 5],
            not_after: 1_800_000_000,
            nonce: [5; 32],
            parts: vec![SealedPart { encapsulated: [6; 32], ciphertext: vec![7; 32] }; 3],
        })),
        Operation::Combine(operations::Combine {
            key: "payroll".into(),
            expected: None,
            parity: Parity::Set,
        }),
        Operation::WrapBlock(operations::WrapBlock {
            wrapping: "kbpk".into(),
            key: "payroll".into(),
            header: BlockHeader {
                usage: *b"D0",
                mode_of_use: b'B',
                key_version: *b"00",
                exportability: b'E',
            },
        }),
        Operation::UnwrapBlock(operations::UnwrapBlock {
            unwrapping: "kbpk".into(),
            block: b"D0144D0AB00E0000".to_vec(),
            new: new_key(),
        }),
        Operation::Wrap(operations::Wrap {
            wrapping: "kek".into(),
            key: "payroll".into(),
            how: Wrapping::Kw,
        }),
        Operation::Unwrap(operations::Unwrap {
            unwrapping: "kek".into(),
            wrapped: vec![3; 24],
            how: Wrapping::Kwp,
            new: new_key(),
        }),
        Operation::Rewrap(operations::Rewrap {
            key: "payroll".into(),
            old: "payroll".into(),
            id: Some([4; 16]),
            what: Rewrapped::Gcm {
                nonce: vec![2; 12],
                additional: vec![3; 8],
                ciphertext: vec![4; 40],
                tag: vec![5; 16],
            },
        }),
        Operation::Rewrap(operations::Rewrap {
            key: "payroll".into(),
            old: "other".into(),
            id: None,
            what: Rewrapped::Sealed {
                file: [1; 32],
                additional: Some([2; 32]),
                ciphertext: vec![4; 40],
                tag: [5; 16],
            },
        }),
        Operation::Rewrap(operations::Rewrap {
            key: "kek".into(),
            old: "old-kek".into(),
            id: None,
            what: Rewrapped::Key { wrapped: vec![3; 24], how: Wrapping::Kw },
        }),
        Operation::Random(operations::Random { bytes: 32 }),
        Operation::Check(operations::Check { key: "payroll".into(), kind: CheckKind::Cmac }),
        Operation::Pay(operations::Pay {
            keys: vec!["pins".into(), "pvv".into()],
            commands: vec![verify_pin()],
        }),
        Operation::Generate(operations::Generate {
            new: NewKey {
                usage: vec![Usage::Payment(
                    "pin-verification-ibm3624:0123456789012345".parse().expect("a purpose"),
                )],
                ..NewKey::for_modes("pvv", "3des-ede2", &[], 1 << 20)
            },
        }),
    ];
    let operations =
        used.into_iter().chain(others).zip(steps().into_iter().map(Some).chain([const { None }; 40]));
    let request = |(operation, first): (Operation, Option<Step>)| Request {
        version: VERSION,
        id: [6; 16],
        serving: PartySet::all(3),
        operation,
        dealt: first.iter().map(|_| [7; 32]).collect(),
        first,
        approval: None,
        on_behalf_of: "billing".into(),
        trace: None,
    };
    let mut requests: Vec<Request> = operations.map(request).collect();
    let mut approval = Approval::new(&statement()).expect("it is small");
    approval.signatures.push(ApprovalSignature { certificate: vec![0x30; 9], signature: vec![7; 64] });
    requests[0].approval = Some(approval);
    requests[1].trace = TraceContext::parse(TRACEPARENT.as_bytes());
    requests
}

fn statement() -> Statement {
    Statement {
        version: VERSION,
        cluster: [1; 16],
        subject: Subject::Operation {
            requester: vec![0x30; 20],
            operation: Box::new(Operation::Delete(operations::Delete {
                key: "payroll".into(),
                version: None,
            })),
        },
        keys: vec![NamedKey { name: "payroll".into(), version: 1, id: [2; 16] }],
        not_after: 1_800_000_000,
        nonce: [3; 32],
        purpose: "ticket".into(),
    }
}

fn report(status: NodeStatus) -> Report {
    let (name, node) = (String::from("payroll"), String::from("node-2"));
    let keys = KeysReport {
        counts: vec![KeyCount { kind: "aes-128 gcm".into(), state: VersionState::Active, keys: 7 }],
        least: vec![KeyBudget { name: name.clone(), version: 1, budget: 64, spent: 60 }],
        ending: vec![KeyEnd { name: name.clone(), version: 2, at: 1_800_000_000, removed: false }],
        age: 1,
        took_ms: 3,
    };
    Report {
        status,
        now: 1_800_000_000,
        starts: 2,
        why_not_ready: Some("it is stopping".into()),
        why_missing: vec![(node.clone(), "refused".into())],
        corrects: true,
        quarantine: None,
        clock: None,
        checks_failed: 0,
        audit: Some(AuditEnd { number: 9, hash: [6; 32] }),
        audit_failure: None,
        faults: vec![FaultCount { node: node.clone(), outvoted: 1, silent: 2 }],
        requests: vec![RequestCount { operation: "seal".into(), outcome: "done".into(), requests: 3 }],
        latencies: vec![0; LATENCY_BOUNDS_MS.len() + 1],
        certificates: vec![CertificateDate { of: "client".into(), name, ends: 1_800_000_000, soon: true }],
        certificates_in_all: 1,
        keys: Some(keys),
        standby: vec![StandbyReport { partner: node, ready: true, serves: false, keys: 7, lacking: 1 }],
    }
}

fn replies() -> Vec<Reply> {
    let stock = StockLevel { kind: "triples".into(), ciphers: "aes".into(), blocks: 3, level: 32 };
    let nodes = PartySet::all(3);
    let status = NodeStatus {
        version: "0.1.0".into(),
        cluster: [1; 16],
        connected: nodes,
        set_up: true,
        keys: 7,
        prepared: false,
        stock: vec![stock.clone(), stock],
        quarantined: false,
        rotating: nodes,
        outvoted: nodes,
        silent: nodes,
        damaged: 0,
        lacking: 1,
    };
    vec![
        Reply::Status(status.clone()),
        Reply::Report(Box::new(report(status))),
        Reply::Keys { keys: vec![info(), info()], more: true },
        Reply::Accepted { key: Some(info()), start: vec![1; 32], mask: vec![2; 16], blind: vec![3; 16] },
        Reply::Data { data: vec![4; 64], mask: vec![5; 32], initial: Vec::new(), opened: vec![6; 20] },
        Reply::Working { done: 5, of: 1 << 30 },
        Reply::Done(Some(info())),
        Reply::Refused(Refusal::new(Reason::Busy, "too much at once").because_of(PEER)),
    ]
}

#[test]
fn no_request_of_a_client_panics_or_takes_memory_on_its_word() {
    fuzz!("requests", &[], encoded(&requests()), |bytes: &[u8]| is_read_with_limits::<Request>(bytes));
}

/// What is read has one encoding, so nobody can show another content than the one that is signed.
#[test]
fn no_statement_of_an_approval_panics_and_what_is_read_has_one_encoding() {
    let policy = Statement { subject: Subject::Policy { digest: [4; 32] }, keys: Vec::new(), ..statement() };
    let valid = [statement(), policy].map(|statement| statement.encode().expect("it is small"));
    fuzz!("statements", &["payroll"], valid.to_vec(), |bytes: &[u8]| {
        within_memory(room(bytes), || {
            if let Ok(statement) = Statement::decode(bytes) {
                assert_eq!(statement.encode().expect("it was read"), bytes);
            }
        });
    });
}

#[test]
fn no_step_of_a_client_panics_or_takes_memory_on_its_word() {
    fuzz!("steps", &[], encoded(&steps()), |bytes: &[u8]| is_read_with_limits::<Step>(bytes));
}

#[test]
fn no_reply_of_a_node_panics_or_takes_memory_on_its_word() {
    fuzz!("replies", &[], encoded(&replies()), |bytes: &[u8]| is_read_with_limits::<Reply>(bytes));
}

/// What is read is read again from its numbers, whatever a later version said behind them.
#[test]
fn no_traceparent_panics_and_what_is_read_is_valid() {
    let later = TRACEPARENT.replacen("00", "01", 1) + "-what-comes-later";
    let valid = [TRACEPARENT.into(), later.into_bytes()];
    fuzz!("traceparents", &["00-", "-01", "ff-", "cc-"], valid.to_vec(), |bytes: &[u8]| {
        within_memory(1 << 10, || {
            if let Some(trace) = TraceContext::parse(bytes) {
                let parent = hex::encode(trace.parent);
                let flags = if trace.sampled { "01" } else { "00" };
                let again = format!("00-{}-{parent}-{flags}", trace.number());
                assert_eq!(TraceContext::parse(again.as_bytes()), Some(trace));
                assert!(trace.is_valid() && bytes.len() <= 512);
            }
        });
    });
}

/// A change of these bytes needs another [`VERSION`], with which this digest changes.
#[test]
fn the_bytes_of_messages_are_those_of_this_version() {
    let messages = [encoded(&requests()), encoded(&steps()), encoded(&replies())].concat();
    let mut hasher = blake3::Hasher::new();
    messages.iter().for_each(|message| _ = hasher.update(message));
    let digest = hasher.finalize().to_hex();
    assert_eq!((VERSION, &digest[..16]), (12, "388a23f48e676bd6"));
}
