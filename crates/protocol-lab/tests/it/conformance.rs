//! Every cipher of the catalogue under every protocol of the catalogue.
//!
//! One published answer of each cipher, one block, both ways, with the key schedule in the circuit: what the
//! parties open must be what was published. Protocols run as their descriptors make them by default, among
//! the usual number of parties, but with a dealer's material where a protocol can have it: how material is
//! made is the same for all ciphers, and is tested where it is made. A cipher is given as gates to protocols
//! that want gates, and as tables to the others.
//!
//! Two protocols are sampled, as a block costs them most and says least: see [`covers`].

use std::collections::HashMap;

use polyclave_cipher::{Cells, Cipher, Circuit, Direction, boolean, catalog};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::catalog as protocols;
use polyclave_protocol::descriptor::Descriptor;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol_lab::additive;
use polyclave_protocol_lab::testkit::conformance;

#[derive(serde::Deserialize)]
struct KnownAnswer {
    cipher: String,
    #[serde(default)]
    key: String,
    #[serde(default)]
    tweak: String,
    plaintext: String,
    ciphertext: String,
}

/// The first answer of each cipher.
fn known_answers() -> HashMap<String, KnownAnswer> {
    let mut first = HashMap::new();
    for file in [
        include_str!("../../../../vectors/block-ciphers.json"),
        include_str!("../../../../vectors/lightweight-ciphers.json"),
    ] {
        let answers: Vec<serde_json::Value> = serde_json::from_str(file).expect("a list");
        // Round keys have other fields.
        for answer in answers.into_iter().filter_map(|a| serde_json::from_value::<KnownAnswer>(a).ok()) {
            first.entry(answer.cipher.to_lowercase()).or_insert(answer);
        }
    }
    first
}

/// With material from a dealer, where that is a choice.
fn config(protocol: &Descriptor) -> AnyProtocolConfig {
    let dealt = protocol.option("preprocessing").filter(|o| (o.values)().contains(&"insecure_dealer"));
    let chosen: Vec<(&str, &str)> =
        dealt.map(|option| (option.name, "insecure_dealer")).into_iter().collect();
    protocol.config(None, None, &chosen).expect("it can be made so")
}

fn covers(protocol: &Descriptor, cipher: &Cipher) -> bool {
    let widest = cipher.encrypt.tables().iter().map(|table| table.in_bits()).max().unwrap_or(0);
    match protocol.name {
        // Tables over GF(2^6) only, and by powers: that is what the paper compares the others with.
        "spdz-raw" => widest <= 6,
        // Commits to whole layers: one cipher of each width.
        "tinytable-minimac" => ["present-80", "des", "aes-128"].contains(&&*cipher.name),
        _ => true,
    }
}

fn check(protocol: &Descriptor, cipher: &Cipher, answer: &KnownAnswer) {
    let config = config(protocol);
    let ways = [
        (Direction::Encrypt, &answer.plaintext, &answer.ciphertext),
        (Direction::Decrypt, &answer.ciphertext, &answer.plaintext),
    ];
    for (direction, from, to) in ways {
        let Some(circuit) = cipher.circuit_with_key_schedule(direction) else { continue };
        let circuit: Circuit = if protocol.takes_gates { boolean::expand(&circuit) } else { circuit };
        let input = |port: &polyclave_cipher::Port| {
            let text = match port.name.as_str() {
                "block" => from,
                "tweak" => &answer.tweak,
                _ => &answer.key,
            };
            let bytes = hex::decode(text).expect("vectors are hexadecimal");
            Cells::from_blocks(port.cells.len(), port.bits, &bytes).expect("one block")
        };
        let inputs: Vec<Cells> = circuit.inputs().iter().map(input).collect();
        let what = format!("{} {direction:?} under {}", cipher.name, config.name());
        let run = conformance::run(&config, &circuit, 1, &inputs).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(hex::encode(run.outputs[0].to_blocks()), *to, "{what}");
    }
}

/// All protocols of which this is so, with all ciphers.
fn sweep(belongs: fn(&Descriptor) -> bool) {
    let answers = known_answers();
    polyclave_protocol_lab::add_to_catalog();
    for protocol in
        protocols::all().into_iter().chain([&additive::DESCRIPTOR]).filter(|protocol| belongs(protocol))
    {
        let began = std::time::Instant::now();
        for cipher in catalog::all().iter().filter(|cipher| covers(protocol, cipher)) {
            check(protocol, cipher, &answers[&cipher.name]);
        }
        println!("{}: {:.1} s", protocol.name, began.elapsed().as_secs_f64());
    }
}

fn is_among_two(protocol: &Descriptor) -> bool {
    *protocol.parties.end() == 2
}

#[test]
fn every_cipher_has_its_published_answers_under_every_protocol_of_two_parties() {
    sweep(is_among_two);
}

#[test]
fn every_cipher_has_its_published_answers_under_every_protocol_of_more_parties() {
    sweep(|protocol| !is_among_two(protocol));
}

#[test]
fn a_protocol_that_protects_nothing_serves_only_in_a_process_that_wants_it() {
    let toy = || protocols::service(additive::DESCRIPTOR.name, 3, 2);
    assert!(toy().is_err_and(|e| e.to_string().contains("cannot serve with a protocol 'additive'")));
    for protocol in protocols::serving() {
        let nodes = protocol.usual_parties;
        let config = protocol.service(nodes, protocol.threshold.most(nodes)).expect("it serves");
        assert!(!config.needs_dealer(), "{} protects nothing", protocol.name);
    }
    polyclave_protocol_lab::add_toy();
    assert!(toy().expect("it serves").needs_dealer());
}
