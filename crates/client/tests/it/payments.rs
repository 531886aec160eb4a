//! Payment commands give what public sources say, under every protocol, for who may, and fail alike.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use polyclave_api::{Derivation, Mode, NewKey, Reason, Right, Usage, Wrapping};
use polyclave_cipher::{Cipher, catalog};
use polyclave_client::{Client, Error};
use polyclave_config::{NodeDir, NodeSettings};
use polyclave_payments::commands::VerifyPin;
use polyclave_payments::{Command, EncryptedPin, KeyFacts, KeySource, PinFormat, PinReference};

use crate::common::from_keys::{bytes, only_for, refused};
use crate::common::{TestCluster, active, insist, key};

/// As an example of the method of Visa has them.
const PVV_KEY: &str = "0123456789abcdeffedcba9876543210";
const PAN: &str = "1122334455667788";
const PIN_KEY: &str = "00112233445566778899aabbccddeeff";

/// A key for a purpose of payments.
fn for_payments(name: &str, purpose: &str, cipher: &str) -> NewKey {
    let purpose = purpose.parse().expect("a purpose");
    NewKey { usage: vec![Usage::Payment(purpose)], ..NewKey::for_modes(name, cipher, &[], 1 << 20) }
}

/// Imports the keys of the example, under names that begin so.
fn with_keys(client: &Client, name: &str) -> [String; 2] {
    [("pins", "pin-encryption", PIN_KEY), ("pvv", "pin-verification-visa", PVV_KEY)].map(
        |(of, purpose, secret)| {
            let name = format!("{name}-{of}");
            let new = || for_payments(&name, purpose, "3des-ede2");
            insist(&|| client.import(new(), &bytes(secret)));
            name
        },
    )
}

/// A PIN block in format 0.
fn block(pin: &str) -> Vec<u8> {
    use des::cipher::{BlockCipherEncrypt, KeyInit};
    let pin = format!("0{:x}{pin:f<14}", pin.len());
    let field = format!("0000{}", &PAN[3..15]);
    let mut block: Vec<u8> = bytes(&pin).iter().zip(bytes(&field)).map(|(a, b)| a ^ b).collect();
    let cipher = des::TdesEde2::new_from_slice(&bytes(PIN_KEY)).expect("a key");
    cipher.encrypt_block(block.as_mut_slice().try_into().expect("a block"));
    block
}

fn verify(block: &[u8], value: &str) -> Command {
    let pin = EncryptedPin { format: PinFormat::Iso0, block: block.to_vec(), key: KeySource::Direct };
    let reference = PinReference::Visa { index: 3, value: value.parse().expect("digits") };
    Command::VerifyPin(VerifyPin { pin, pan: PAN.parse().expect("a card"), reference })
}

fn right() -> Command {
    verify(&block("4524"), "4021")
}

fn pay(client: &Client, keys: &[String; 2], command: &Command) -> Result<bool, Error> {
    client.pay(&keys.each_ref().map(String::as_str), command).map(|paid| paid.is_some())
}

/// One by one and together, under a protocol.
fn works(cluster: &TestCluster, settled: &dyn Fn()) {
    let client = cluster.client();
    let keys = with_keys(&client, "works");
    settled();
    assert!(insist(&|| pay(&client, &keys, &right())));
    settled();
    assert!(!insist(&|| pay(&client, &keys, &verify(&block("4525"), "4021"))));
    settled();
    let several: Vec<Command> =
        (0..4).map(|i| verify(&block("4524"), if i == 2 { "4022" } else { "4021" })).collect();
    let paid = insist(&|| client.pay_all(&keys.each_ref().map(String::as_str), &several));
    let held: Vec<bool> = paid.iter().map(Option::is_some).collect();
    assert_eq!(held, [true, true, false, true]);
}

fn works_under(protocol: &str, nodes: usize, threshold: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, threshold);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    works(&cluster, &|| ());
}

#[test]
fn pins_are_verified_under_shamir() {
    works(&TestCluster::shared(), &|| ());
}

#[test]
fn pins_are_verified_under_shamir_active() {
    let cluster = active::start(64, &[]);
    works(&cluster, &|| active::fill(&cluster));
}

#[test]
fn pins_are_verified_under_replicated() {
    works_under("replicated", 3, 1);
}

#[test]
fn pins_are_verified_under_replicated_active() {
    works_under("replicated-active", 3, 1);
}

#[test]
fn pins_are_verified_under_replicated_four() {
    works_under("replicated-four", 4, 1);
}

#[test]
fn pins_are_verified_under_spdz_tower() {
    works_under("spdz-tower", 2, 1);
}

#[test]
fn pins_are_verified_under_spdz_lt() {
    works_under("spdz-lt", 2, 1);
}

#[test]
fn pins_are_verified_under_tinytable() {
    works_under("tinytable-linear64", 2, 1);
}

/// A known answer of `crates/payments/tests/vectors`.
#[derive(serde::Deserialize)]
struct Vector {
    source: String,
    keys: Vec<(String, String, String)>,
    command: Command,
    random: Option<String>,
    passes: bool,
    answer: Option<String>,
}

/// Known answers: all that the specification of the product names, and of others some for each circuit.
fn vectors(of_a_circuit: usize) -> Vec<Vector> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../payments/tests/vectors");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("it is there").map(|file| file.expect("read").path()).collect();
    files.sort();
    let mut of_circuits: BTreeMap<String, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read");
        let of_file: Vec<Vector> = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{file:?}: {e}"));
        for vector in of_file {
            let ciphers: Vec<Cipher> = vector
                .keys
                .iter()
                .map(|(_, cipher, _)| catalog::find(cipher).expect("it is there"))
                .collect();
            let facts: Vec<KeyFacts<'_>> = vector.keys.iter().zip(&ciphers).map(facts_of).collect();
            let name = vector.command.payment().circuit_name(&facts);
            let count = of_circuits.entry(name).or_default();
            *count += 1;
            if *count <= of_a_circuit || vector.source.contains("section 7") {
                chosen.push(vector);
            }
        }
    }
    chosen
}

fn facts_of<'c>(((purpose, ..), cipher): (&(String, String, String), &'c Cipher)) -> KeyFacts<'c> {
    KeyFacts { purpose: purpose.parse().expect("a purpose"), cipher }
}

/// Asks real nodes for them, those under the same keys together.
fn known_answers_come_out(cluster: &TestCluster, vectors: &[Vector], settled: &dyn Fn()) {
    let client = cluster.client();
    let mut by_keys: BTreeMap<Vec<(String, String, String)>, Vec<&Vector>> = BTreeMap::new();
    vectors.iter().for_each(|vector| by_keys.entry(vector.keys.clone()).or_default().push(vector));
    let mut names: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for (keys, vectors) in by_keys {
        for key @ (purpose, cipher, secret) in &keys {
            let name = format!("known-{}", names.len());
            if !names.contains_key(key) {
                settled();
                insist(&|| client.import(for_payments(&name, purpose, cipher), &bytes(secret)));
                names.insert(key.clone(), name);
            }
        }
        let keys: Vec<&str> = keys.iter().map(|key| names[key].as_str()).collect();
        let commands: Vec<Command> = vectors.iter().map(|vector| vector.command.clone()).collect();
        settled();
        let paid = insist(&|| client.pay_all(&keys, &commands));
        for (vector, paid) in vectors.iter().zip(paid) {
            let what = format!("{}: {:?}", vector.source, vector.command);
            assert_eq!(paid.is_some(), vector.passes, "{what}");
            let expected = vector.answer.as_ref().filter(|_| vector.passes);
            match (paid, expected) {
                (Some(paid), Some(expected)) if vector.random.is_some() => {
                    assert_eq!(2 * paid.len(), expected.len(), "{what}");
                }
                (Some(paid), expected) => {
                    assert_eq!(hex::encode(paid), expected.map_or("", String::as_str), "{what}");
                }
                (None, _) => {}
            }
        }
    }
}

#[test]
fn known_answers_come_out_under_shamir() {
    let vectors = vectors(2);
    assert!(vectors.len() > 150, "{}", vectors.len());
    known_answers_come_out(&TestCluster::shared(), &vectors, &|| ());
}

fn known_answers_come_out_under(protocol: &str, nodes: usize) {
    let vectors = vectors(1);
    assert!(vectors.len() > 70, "{}", vectors.len());
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    known_answers_come_out(&cluster, &vectors, &|| ());
}

#[test]
fn known_answers_come_out_under_spdz_tower() {
    known_answers_come_out_under("spdz-tower", 2);
}

#[test]
fn known_answers_come_out_under_replicated_active() {
    known_answers_come_out_under("replicated-active", 3);
}

#[test]
fn known_answers_come_out_under_replicated_four() {
    known_answers_come_out_under("replicated-four", 4);
}

#[test]
fn a_key_for_payments_serves_its_purpose_and_nothing_else_and_no_other_key_serves_payments() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let [pins, pvv] = with_keys(&client, "alone");
    client.generate(key("alone-ecb", "3des-ede2", &[Mode::Ecb])).expect("a key");
    client.generate(only_for("alone-kek", "aes-128", &[Usage::Wrap])).expect("a key");
    let both = |first: &str, second: &str| pay(&client, &[first.into(), second.into()], &right());
    for (first, second) in [(&pvv, &pins), (&pins, &pins), (&pvv, &pvv)] {
        assert!(matches!(both(first, second), Err(Error::Misuse(_))), "{first} {second}");
    }
    assert!(both(&pins, "alone-ecb").expect_err("refused").to_string().contains("not for payments"));
    let not_for = |outcome: Result<(), Error>| refused(outcome, Reason::NotForThis, "");
    let how = Derivation::EcbData { data: vec![1; 16] };
    not_for(client.derive(&pins, only_for("alone-derived", "des", &[Usage::Derive]), how).map(drop));
    not_for(client.key(&pins).expect("a key").ecb().encrypt(&[1; 8]).map(drop));
    not_for(client.key(&pins).expect("a key").cmac(&[1; 8]).map(drop));
    not_for(client.wrap("alone-kek", &pins, Wrapping::Kwp).map(drop));
    not_for(client.wrap(&pins, "alone-ecb", Wrapping::Kwp).map(drop));
    // Neither a second usage nor a mode, nor a cipher that does not fit.
    let other = |change: &dyn Fn(&mut NewKey)| {
        let mut new = for_payments("alone-other", "pin-verification-visa", "3des-ede2");
        change(&mut new);
        refused(client.generate(new), Reason::Key, "");
    };
    other(&|new| new.usage.insert(0, Usage::Derive));
    other(&|new| new.modes = vec![Mode::Ecb]);
    other(&|new| new.cipher = "aes-128".into());
    // A copy is for the same.
    let id = client.info(&pvv).expect("there").id;
    let copy = NewKey { usage: vec![Usage::Derive], ..for_payments("alone-copy", "mac-cmac", "3des-ede2") };
    assert!(client.copy(&pvv, id, copy).is_err());
    let copy = for_payments("alone-copy", "card-verification", "3des-ede2");
    assert!(client.copy(&pvv, id, copy).is_err());
    client.copy(&pvv, id, for_payments("alone-copy", "pin-verification-visa", "3des-ede2")).expect("a copy");
    assert!(both(&pins, "alone-copy").expect("computed"));
}

#[test]
fn payments_take_their_right_for_every_key() {
    let cluster = TestCluster::shared();
    let keys = with_keys(&cluster.client(), "rights");
    let others: Vec<Right> = Right::ALL.into_iter().filter(|right| *right != Right::Pay).collect();
    let without = cluster.client_with("without-pay", &others, &["*"]);
    refused(pay(&without, &keys, &right()), Reason::Denied, "pay");
    let of_one = cluster.client_with("pay-for-one", &[Right::Pay, Right::List], &["rights-pvv"]);
    cluster.allow("pay-for-one", &[Right::List], &["*"]);
    assert!(pay(&of_one, &keys, &right()).is_err());
    let may = cluster.client_with("may-pay", &[Right::Pay, Right::List], &["rights-*"]);
    assert!(pay(&may, &keys, &right()).expect("computed"));
}

fn set_limit(cluster: &TestCluster, limit: u64) {
    for path in &cluster.local.nodes {
        let mut node = NodeDir::open(path).expect("its directory");
        let mut settings: NodeSettings = node.settings().clone();
        settings.limits.failed_payments_an_hour = limit;
        node.set_settings(settings).expect("saved");
    }
}

/// How many wrong PINs are answered.
fn guesses(client: &Client, keys: &[String; 2]) -> usize {
    let wrong = verify(&block("4525"), "4021");
    let mut answered = 0;
    loop {
        match pay(client, keys, &wrong) {
            Ok(held) => answered += usize::from(!held),
            Err(Error::Refused { refusal, .. }) if refusal.reason == Reason::Spent => {
                assert!(refusal.message.contains("verifications under the key may fail"), "{refusal}");
                return answered;
            }
            Err(e) => assert!(e.may_pass(), "{e}"),
        }
    }
}

/// Requests that end for lack of material have told nothing, so they do not count.
#[test]
fn what_ends_before_anything_is_told_is_no_guess() {
    let cluster = active::start(64, &[]);
    let client = cluster.client();
    let keys = with_keys(&client, "dry");
    active::fill(&cluster);
    let several = vec![right(); 200];
    for _ in 0..8 {
        let dry = client.pay_all(&keys.each_ref().map(String::as_str), &several);
        let dry = dry.expect_err("there is not so much material");
        assert!(dry.to_string().contains("needs material for"), "{dry}");
    }
    assert!(insist(&|| pay(&client, &keys, &right())));
}

/// The limit holds for all three pairs together, since each counts a guess twice.
#[test]
fn standby_pairs_verify_pins_and_answer_half_as_many_guesses() {
    const LIMIT: usize = 12;
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    set_limit(&cluster, LIMIT as u64);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let keys = with_keys(&cluster.client(), "pairs");
    cluster.wait_until(|| {
        let pairs = cluster.nodes.iter().flatten().flat_map(polyclave_node::Running::standby);
        // Two at each node.
        pairs.filter(|pair| pair.ready && pair.keys == 2 && pair.lacking == 0).count() == 6
    });
    let begun = hour();
    let mut of_each = Vec::new();
    for away in [2, 0, 1] {
        cluster.stop(away);
        let client = cluster.client();
        if of_each.is_empty() {
            assert!(insist(&|| pay(&client, &keys, &right())), "two nodes go on");
        }
        of_each.push(guesses(&client, &keys));
        cluster.restart(away);
        cluster.wait_until_ready();
    }
    // A guess that ended in the middle counts, too. The nodes of the first pair have nothing left.
    let is_held = (1..=LIMIT / 2).contains(&of_each[0]) && of_each[1..] == [0, 0];
    assert!(is_held || hour() > begun, "{of_each:?}");
}

/// An hour may end in the middle of this: then it may be twice as many.
#[test]
fn so_many_guesses_are_answered_in_an_hour_whichever_nodes_serve_and_however_often_they_start() {
    const LIMIT: usize = 12;
    let mut cluster = TestCluster::define_with("replicated-active", 3, 1);
    set_limit(&cluster, LIMIT as u64);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    let keys = with_keys(&client, "guesses");
    for _ in 0..3 * LIMIT {
        assert!(insist(&|| pay(&client, &keys, &right())), "what holds does not count");
    }
    let begun = hour();
    let answered = guesses(&client, &keys);
    assert!(answered >= LIMIT && (answered == LIMIT || hour() > begun), "{answered}");
    for node in 0..3 {
        cluster.stop(node);
        cluster.restart(node);
    }
    cluster.wait_until_ready();
    assert!(guesses(&cluster.client(), &keys) == 0 || hour() > begun, "not after a start either");
    // A command that holds cannot be told from one that does not before it is computed.
    assert!(pay(&cluster.client(), &keys, &right()).is_err() || hour() > begun);
}

/// A PIN block that is not well formed fails, too, whichever key for verification comes with it.
#[test]
fn guesses_count_under_every_key_whose_data_are_guessed_at() {
    let mut cluster = TestCluster::define(3, 1);
    set_limit(&cluster, 12);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    let (keys, [_, other]) = (with_keys(&client, "one"), with_keys(&client, "two"));
    let begun = hour();
    guesses(&client, &keys);
    let answered = guesses(&client, &[keys[0].clone(), other]);
    assert!(answered == 0 || hour() > begun, "{answered}");
}

fn hour() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    now.as_secs() / 3600
}

#[test]
fn a_log_has_the_names_of_the_keys_and_nothing_of_the_card() {
    let cluster: Arc<TestCluster> = TestCluster::shared();
    let client = cluster.client();
    let keys = with_keys(&client, "logged");
    assert!(pay(&client, &keys, &right()).expect("computed"));
    assert!(!pay(&client, &keys, &verify(&block("4525"), "4021")).expect("computed"));
    for path in &cluster.local.nodes {
        let log = std::fs::read_to_string(NodeDir::open(path).expect("its directory").audit_path());
        let log = log.expect("it is there");
        let lines: Vec<&str> = log.lines().filter(|line| line.contains("with=logged-pvv")).collect();
        assert!(lines.len() >= 2, "{log}");
        assert!(
            lines.iter().all(|line| line.contains("verify-pin") && !line.contains("334455")),
            "{lines:?}"
        );
    }
}

#[test]
fn a_log_has_the_blocks_that_one_key_paid_before_another_refused() {
    let cluster: Arc<TestCluster> = TestCluster::shared();
    let client = cluster.client();
    let [pins, _] = with_keys(&client, "paid");
    let few =
        NewKey { budget_blocks: 2, ..for_payments("paid-little", "pin-verification-visa", "3des-ede2") };
    client.import(few, &bytes(PVV_KEY)).expect("a key");
    let keys = [pins, "paid-little".into()];
    let refused = (0..4).find_map(|_| pay(&client, &keys, &right()).err()).expect("it has few blocks");
    assert!(
        matches!(&refused, Error::Refused { refusal, .. } if refusal.reason == Reason::Spent),
        "{refused}"
    );
    for path in &cluster.local.nodes {
        let log = std::fs::read_to_string(NodeDir::open(path).expect("its directory").audit_path());
        let log = log.expect("it is there");
        let last = log.lines().rfind(|line| line.contains("with=paid-little")).expect("there are some");
        assert!(last.contains(r#""outcome":"spent""#) && last.contains(r#""blocks":1,"#), "{last}");
    }
}

/// Prints how long commands take: run it alone, on a machine that does nothing else.
#[test]
#[ignore = "it measures"]
fn times_of_commands() {
    for (protocol, nodes) in [
        ("shamir", 3),
        ("replicated-active", 3),
        ("replicated-four", 4),
        ("spdz-tower", 2),
        ("shamir-active", 4),
    ] {
        let mut cluster = TestCluster::define_with(protocol, nodes, 1);
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        // Standby pairs begin meanwhile.
        std::thread::sleep(std::time::Duration::from_secs(15));
        let client = cluster.client();
        let all = vectors(1);
        let kinds = [
            "verify-pin-iso-0-direct-visa",
            "translate-pin-iso-0-direct-to-iso-0-direct",
            "translate-pin-iso-4-direct-to-iso-4-direct",
            "generate-card-value-cvv-3",
            "authenticate-sim",
        ];
        for kind in kinds {
            let found = all.iter().find(|vector| {
                let ciphers: Vec<Cipher> = vector
                    .keys
                    .iter()
                    .map(|(_, cipher, _)| catalog::find(cipher).expect("it is there"))
                    .collect();
                let facts: Vec<KeyFacts<'_>> = vector.keys.iter().zip(&ciphers).map(facts_of).collect();
                vector.command.payment().circuit_name(&facts).starts_with(kind)
            });
            let Some(vector) = found else {
                eprintln!("{protocol} {kind}: no vector");
                continue;
            };
            let names: Vec<String> = (0..vector.keys.len()).map(|i| format!("{kind}-{i}")).collect();
            for (name, (purpose, cipher, secret)) in names.iter().zip(&vector.keys) {
                insist(&|| client.import(for_payments(name, purpose, cipher), &bytes(secret)));
            }
            let keys: Vec<&str> = names.iter().map(String::as_str).collect();
            insist(&|| client.pay(&keys, &vector.command));
            let begun = Instant::now();
            (0..10).for_each(|_| drop(insist(&|| client.pay(&keys, &vector.command))));
            let one = begun.elapsed() / 10;
            let together = |count: usize| {
                let commands = vec![vector.command.clone(); count];
                let begun = Instant::now();
                insist(&|| client.pay_all(&keys, &commands));
                begun.elapsed()
            };
            let (hundred, thousand) = (together(100), together(1000));
            let begun = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    let client = cluster.client();
                    let keys = &keys;
                    scope.spawn(move || {
                        (0..8).for_each(|_| drop(insist(&|| client.pay(keys, &vector.command))))
                    });
                }
            });
            let rate = 64.0 / begun.elapsed().as_secs_f64();
            eprintln!(
                "{protocol} {kind}: one {one:?}, hundred {hundred:?}, thousand {thousand:?}, of eight clients {rate:.0} a second"
            );
        }
    }
}
