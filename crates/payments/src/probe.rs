//! Evaluates parts of circuits, for unit tests.

use polyclave_cipher::{AnyMap, Cells, Cipher, Circuit, boolean, catalog, cleartext, compile};

use crate::payment::{KeyFacts, Payment, Role};
use crate::purpose::Purpose;
use crate::wiring::{Key, Wiring};

/// A command that only has ports.
struct Probe(Vec<u8>);

impl Payment for Probe {
    fn kind(&self) -> &'static str {
        "probe"
    }

    fn roles(&self) -> Vec<Role> {
        Vec::new()
    }

    fn check(&self, _: &[KeyFacts<'_>]) -> Result<(), String> {
        Ok(())
    }

    fn circuit_name(&self, _: &[KeyFacts<'_>]) -> String {
        "probe".into()
    }

    fn circuit(&self, _: &[KeyFacts<'_>], _: u8) -> Circuit {
        unreachable!("the test builds it")
    }

    fn public(&self, _: &[KeyFacts<'_>]) -> Vec<u8> {
        self.0.clone()
    }

    fn blocks(&self, _: &[KeyFacts<'_>]) -> Vec<u64> {
        Vec::new()
    }
}

/// The circuit of tables without keys, on so many public bytes.
pub(crate) fn circuit(public_bytes: usize, build: impl Fn(&mut Wiring)) -> Circuit {
    let (mut w, _) = Wiring::new(&Probe(vec![0; public_bytes]), &[], 8);
    build(&mut w);
    w.finish()
}

/// The answer of a circuit with these keys and this public input, the same in both forms.
pub(crate) fn answer(
    keys: &[(&str, Vec<u8>)],
    public: Vec<u8>,
    build: impl Fn(&mut Wiring, &[Key]),
) -> String {
    let [tables, gates] = [8, 1].map(|element_bits| in_form(keys, public.clone(), element_bits, &build));
    assert_eq!(tables, gates, "both forms compute the same");
    tables
}

fn in_form(
    keys: &[(&str, Vec<u8>)],
    public: Vec<u8>,
    element_bits: u8,
    build: &impl Fn(&mut Wiring, &[Key]),
) -> String {
    let find = |name| if element_bits == 1 { boolean::cipher(name) } else { catalog::find(name) };
    let ciphers: Vec<Cipher> = keys.iter().map(|(name, _)| find(name).expect("a cipher")).collect();
    let facts: Vec<KeyFacts<'_>> =
        ciphers.iter().map(|cipher| KeyFacts { purpose: Purpose::DataEncryption, cipher }).collect();
    let bits = |bytes: &[u8]| Cells::from_blocks(8 * bytes.len(), 1, bytes).expect("bytes are bits");
    let expanded = ciphers.iter().zip(keys).map(|(cipher, (_, key))| {
        let port = &cipher.key_schedule.inputs()[0];
        let key = Cells::from_blocks(port.cells.len(), port.bits, key).expect("the key fits");
        cleartext::run(&compile(&cipher.key_schedule, &AnyMap), 1, &[key]).expect("it fits").remove(0)
    });
    let inputs: Vec<Cells> = expanded.chain([bits(&public)]).collect();
    let (mut w, keys) = Wiring::new(&Probe(public), &facts, element_bits);
    build(&mut w, &keys);
    let circuit = compile(&w.finish(), &AnyMap);
    hex::encode(cleartext::run(&circuit, 1, &inputs).expect("the inputs fit").remove(0).to_blocks())
}
