//! Evaluates commands in the clear, in both forms of their circuits.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use polyclave_cipher::{AnyMap, Cells, Cipher, Compiled, boolean, catalog, cleartext, compile};
use polyclave_payments::{Command, KeyFacts, Pan, Purpose};

/// A key: what it is for, its cipher's name, its bytes in hexadecimal.
#[derive(Clone)]
pub struct TestKey {
    pub purpose: Purpose,
    pub cipher: String,
    pub bytes: Vec<u8>,
}

pub fn key(purpose: &str, cipher: &str, hex: &str) -> TestKey {
    TestKey { purpose: purpose.parse().expect("a purpose"), cipher: cipher.into(), bytes: bytes(hex) }
}

/// Every purpose.
pub fn purposes() -> impl Iterator<Item = Purpose> {
    Purpose::all("0123456789012345".parse().expect("a table"))
}

pub fn bytes(hex: &str) -> Vec<u8> {
    hex::decode(hex).expect("hexadecimal")
}

pub fn pan(digits: &str) -> Pan {
    digits.parse().expect("a PAN")
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all of `check` is zero, or there is none.
    pub passes: bool,
    /// The answer, in hexadecimal.
    pub answer: Option<String>,
}

/// The forms of a circuit: of tables, and of gates.
pub const FORMS: [u8; 2] = [8, 1];

/// A cipher of the catalog. Expanding one to gates takes a while, so they are kept.
pub fn cipher_in(name: &str, element_bits: u8) -> Cipher {
    static EXPANDED: Mutex<BTreeMap<String, Cipher>> = Mutex::new(BTreeMap::new());
    let known = catalog::find(name).expect("the catalog has it");
    if element_bits > 1 {
        return known;
    }
    let mut expanded = EXPANDED.lock().expect("no test failed with it");
    expanded.entry(name.into()).or_insert_with(|| boolean::expanded(known)).clone()
}

/// Runs commands in one form. It keeps compiled circuits, as nodes do.
pub struct Runner {
    element_bits: u8,
    compiled: HashMap<String, Compiled>,
}

impl Runner {
    pub fn new(element_bits: u8) -> Runner {
        Runner { element_bits, compiled: HashMap::new() }
    }

    pub fn run(&mut self, command: &Command, keys: &[TestKey], random: &[u8]) -> Outcome {
        self.run_lanes(std::slice::from_ref(command), keys, random).remove(0)
    }

    /// Commands with one circuit, as lanes; `random` is the same in all.
    pub fn run_lanes(&mut self, commands: &[Command], keys: &[TestKey], random: &[u8]) -> Vec<Outcome> {
        with_facts(keys, self.element_bits, |facts| {
            let payment = commands[0].payment();
            for command in commands {
                command.payment().check(facts).expect("the command is well formed");
                assert_eq!(command.payment().circuit_name(facts), payment.circuit_name(facts));
            }
            let mut name = payment.circuit_name(facts);
            keys.iter().for_each(|key| name += &format!(" {} {}", key.purpose, key.cipher));
            let compiled = self
                .compiled
                .entry(name)
                .or_insert_with(|| compile(&payment.circuit(facts, self.element_bits), &AnyMap));
            let mut inputs: Vec<Cells> =
                facts.iter().zip(keys).map(|(fact, key)| round_keys(fact.cipher, &key.bytes)).collect();
            let public: Vec<Vec<u8>> = commands.iter().map(|c| c.payment().public(facts)).collect();
            inputs.push(bits(public[0].len(), &public.concat()));
            assert_eq!(random.len(), payment.random_bytes());
            if !random.is_empty() {
                inputs.push(bits(random.len(), &random.repeat(commands.len())));
            }
            let outputs = cleartext::run(compiled, commands.len(), &inputs).expect("the inputs fit");
            outcomes(commands.len(), compiled, &outputs)
        })
    }
}

/// Calls with what is known of some keys.
pub fn with_facts<T>(keys: &[TestKey], element_bits: u8, then: impl FnOnce(&[KeyFacts<'_>]) -> T) -> T {
    let ciphers: Vec<Cipher> = keys.iter().map(|key| cipher_in(&key.cipher, element_bits)).collect();
    let facts: Vec<KeyFacts<'_>> =
        keys.iter().zip(&ciphers).map(|(key, cipher)| KeyFacts { purpose: key.purpose, cipher }).collect();
    then(&facts)
}

fn outcomes(lanes: usize, compiled: &Compiled, outputs: &[Cells]) -> Vec<Outcome> {
    let of = |name: &str| -> Option<Vec<Vec<u8>>> {
        let at = compiled.outputs().iter().position(|port| port.name == name)?;
        let blocks = outputs[at].to_blocks();
        Some(blocks.chunks(blocks.len() / lanes).map(<[u8]>::to_vec).collect())
    };
    let (check, answer) = (of("check"), of("answer"));
    (0..lanes)
        .map(|lane| Outcome {
            passes: check.as_ref().is_none_or(|check| {
                assert_eq!(check[lane].len(), 16);
                check[lane].iter().all(|byte| *byte == 0)
            }),
            answer: answer.as_ref().map(|answer| hex::encode(&answer[lane])),
        })
        .collect()
}

/// What a cipher makes of a block.
pub fn encrypted(cipher: &str, key: &[u8], block: &[u8]) -> Vec<u8> {
    let cipher = cipher_in(cipher, 8);
    let port = &cipher.encrypt.inputs()[0];
    let block = Cells::from_blocks(port.cells.len(), port.bits, block).expect("a block");
    let inputs = [block, round_keys(&cipher, key)];
    cleartext::run(&compile(&cipher.encrypt, &AnyMap), 1, &inputs).expect("they fit")[0].to_blocks()
}

fn bits(bytes_per_lane: usize, bytes: &[u8]) -> Cells {
    Cells::from_blocks(8 * bytes_per_lane, 1, bytes).expect("bytes are bits")
}

fn round_keys(cipher: &Cipher, key: &[u8]) -> Cells {
    let port = &cipher.key_schedule.inputs()[0];
    let key = Cells::from_blocks(port.cells.len(), port.bits, key).expect("the key fits its cipher");
    cleartext::run(&compile(&cipher.key_schedule, &AnyMap), 1, &[key]).expect("it fits").remove(0)
}
