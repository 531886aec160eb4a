//! Known answers. `tests/vectors` has them with their sources. Each is evaluated
//! in both forms of its circuit.

use std::collections::HashMap;

use polyclave_cipher::Circuit;
use polyclave_payments::Command;
use serde::Deserialize;
use serde_json::Value;

use crate::runner::{FORMS, Runner, TestKey, bytes, key, with_facts};

/// One known answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    source: String,
    keys: Vec<(String, String, String)>,
    command: Value,
    random: Option<String>,
    passes: bool,
    answer: Option<String>,
}

impl Vector {
    pub fn keys(&self) -> Vec<TestKey> {
        self.keys.iter().map(|(purpose, cipher, hex)| key(purpose, cipher, hex)).collect()
    }

    pub fn command(&self) -> Command {
        serde_json::from_value(self.command.clone()).unwrap_or_else(|e| panic!("{}: {e}", self.command))
    }
}

pub fn read(name: &str) -> Vec<Vector> {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All files.
pub const FILES: [&str; 12] = [
    "card-values",
    "data",
    "dukpt",
    "emv",
    "emv-cryptograms",
    "emv-scripts",
    "generate-pin",
    "lorawan",
    "macs",
    "milenage",
    "translate-pin",
    "verify-pin",
];

fn all_are_right(name: &str) {
    let vectors = read(name);
    assert!(!vectors.is_empty());
    for element_bits in FORMS {
        let mut runner = Runner::new(element_bits);
        for (i, vector) in vectors.iter().enumerate() {
            let (command, keys) = (vector.command(), vector.keys());
            let random = vector.random.as_deref().map(bytes).unwrap_or_default();
            let outcome = runner.run(&command, &keys, &random);
            let what = format!("{name} {i} ({}), elements of {element_bits} bits", vector.source);
            assert_eq!(outcome.passes, vector.passes, "{what}");
            assert_eq!(outcome.answer, vector.answer, "{what}");
        }
    }
}

macro_rules! known_answers {
    ($($test:ident $file:literal)*) => {
        $(#[test]
        fn $test() {
            all_are_right($file);
        })*

        #[test]
        fn every_file_of_vectors_is_tested() {
            assert_eq!([$($file),*], FILES);
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
            assert_eq!(std::fs::read_dir(folder).expect("it is there").count(), FILES.len());
        }
    };
}

known_answers! {
    card_values "card-values"
    data "data"
    dukpt "dukpt"
    emv "emv"
    emv_cryptograms "emv-cryptograms"
    emv_scripts "emv-scripts"
    generated_pins "generate-pin"
    lorawan "lorawan"
    macs "macs"
    milenage "milenage"
    translated_pins "translate-pin"
    verified_pins "verify-pin"
}

/// Nodes run commands together whose circuits have one name, and keep compiled circuits by their names.
#[test]
fn commands_with_one_name_have_one_circuit() {
    let mut known: HashMap<(String, Vec<String>), Circuit> = HashMap::new();
    let mut shared = 0;
    for vector in FILES.iter().flat_map(|name| read(name)) {
        let (command, keys) = (vector.command(), vector.keys());
        with_facts(&keys, 8, |facts| {
            let payment = command.payment();
            let of_keys = keys.iter().map(|key| format!("{} {}", key.purpose, key.cipher)).collect();
            let circuit = payment.circuit(facts, 8);
            let known = known.entry((payment.circuit_name(facts), of_keys)).or_insert_with(|| {
                shared += 1;
                circuit.clone()
            });
            assert!(*known == circuit, "{}", circuit.name());
        });
    }
    assert!(shared > 100, "{shared}");
}

/// Clients send commands to nodes.
#[test]
fn commands_come_back_from_messages() {
    for vector in FILES.iter().flat_map(|name| read(name)) {
        let command = vector.command();
        let message = postcard::to_stdvec(&command).expect("it can be written");
        assert_eq!(postcard::from_bytes::<Command>(&message).expect("it can be read"), command);
    }
}
