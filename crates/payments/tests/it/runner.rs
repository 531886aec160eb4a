//! Evaluates commands in the clear, in both forms of their circuits.

use polyclave_cipher::{AnyMap, Cells, Cipher, Compiled, boolean, catalog, cleartext, compile};
use polyclave_payments::{Command, KeyFacts, Pan, Payment, Purpose};

/// A key: what it is for, its cipher's name, its bytes in hexadecimal.
#[derive(Clone)]
pub struct TestKey {
    pub purpose: Purpose,
    pub cipher: &'static str,
    pub bytes: Vec<u8>,
}

pub fn key(purpose: &str, cipher: &'static str, hex: &str) -> TestKey {
    TestKey { purpose: purpose.parse().expect("a purpose"), cipher, bytes: bytes(hex) }
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

pub fn cipher_in(name: &str, element_bits: u8) -> Cipher {
    let cipher = if element_bits == 1 { boolean::cipher(name) } else { catalog::find(name) };
    cipher.expect("the catalog has it")
}

/// Expects the same of both forms.
pub fn run(command: &Command, keys: &[TestKey]) -> Outcome {
    let random: Vec<u8> = (0..command.payment().random_bytes()).map(|i| (i * 89 + 7) as u8).collect();
    run_with(command, keys, &random)
}

/// With these bytes of `random`.
pub fn run_with(command: &Command, keys: &[TestKey], random: &[u8]) -> Outcome {
    let [tables, gates] = FORMS.map(|element_bits| run_form(command, keys, random, element_bits));
    assert_eq!(tables, gates, "both forms compute the same");
    tables
}

/// In the form of tables only, for tests that try much.
pub fn passes(command: &Command, keys: &[TestKey]) -> bool {
    let random = vec![0x3c; command.payment().random_bytes()];
    run_form(command, keys, &random, 8).passes
}

pub fn run_form(command: &Command, keys: &[TestKey], random: &[u8], element_bits: u8) -> Outcome {
    with_facts(keys, element_bits, |facts| {
        let payment = command.payment();
        payment.check(facts).expect("the command is well formed");
        let compiled = compile(&payment.circuit(facts, element_bits), &AnyMap);
        let mut inputs: Vec<Cells> =
            facts.iter().zip(keys).map(|(fact, key)| round_keys(fact.cipher, &key.bytes)).collect();
        inputs.push(bits(&payment.public(facts)));
        if !random.is_empty() {
            inputs.push(bits(random));
        }
        let outputs = cleartext::run(&compiled, 1, &inputs).expect("the inputs fit");
        outcome(payment, &compiled, &outputs)
    })
}

/// Calls with what is known of some keys.
pub fn with_facts<T>(keys: &[TestKey], element_bits: u8, then: impl FnOnce(&[KeyFacts<'_>]) -> T) -> T {
    let ciphers: Vec<Cipher> = keys.iter().map(|key| cipher_in(key.cipher, element_bits)).collect();
    let facts: Vec<KeyFacts<'_>> =
        keys.iter().zip(&ciphers).map(|(key, cipher)| KeyFacts { purpose: key.purpose, cipher }).collect();
    then(&facts)
}

/// What a command says against its public data.
pub fn refusal(command: &Command, keys: &[TestKey]) -> Option<String> {
    with_facts(keys, 8, |facts| command.payment().check(facts).err())
}

fn outcome(payment: &dyn Payment, compiled: &Compiled, outputs: &[Cells]) -> Outcome {
    let of = |name: &str| {
        let at = compiled.outputs().iter().position(|port| port.name == name)?;
        Some(outputs[at].to_blocks())
    };
    let check = of("check");
    if let Some(check) = &check {
        assert_eq!(check.len(), 16, "{}", payment.kind());
    }
    Outcome {
        passes: check.is_none_or(|check| check.iter().all(|byte| *byte == 0)),
        answer: of("answer").map(hex::encode),
    }
}

fn bits(bytes: &[u8]) -> Cells {
    Cells::from_blocks(8 * bytes.len(), 1, bytes).expect("bytes are bits")
}

fn round_keys(cipher: &Cipher, key: &[u8]) -> Cells {
    let port = &cipher.key_schedule.inputs()[0];
    let key = Cells::from_blocks(port.cells.len(), port.bits, key).expect("the key fits its cipher");
    cleartext::run(&compile(&cipher.key_schedule, &AnyMap), 1, &[key]).expect("it fits").remove(0)
}
