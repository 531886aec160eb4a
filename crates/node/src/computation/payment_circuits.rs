//! The circuits of payment commands, compiled for a node's protocol. They are made on first use.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{Cipher, Compiled, catalog, compile};
use polyclave_payments::{KeyFacts, Payment, Purpose};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::{Error, Result};

/// The most operations of all circuits that are kept: some hundred megabytes. The lengths of messages decide
/// about circuits, so there are many, and those of long messages are large.
const MOST_OPERATIONS: usize = 1 << 20;

/// What tells circuits apart: the name, and the ciphers and purposes of the keys.
type Of = (String, Vec<(String, Purpose)>);

/// Compiled circuits, the most recent last.
#[derive(Default)]
pub(crate) struct PaymentCircuits(Mutex<VecDeque<Kept>>);

struct Kept {
    of: Of,
    circuit: Arc<Compiled>,
    operations: usize,
}

/// What commands know of their keys.
pub(crate) fn facts<'a>(purposes: &[Purpose], ciphers: &[&'a Cipher]) -> Vec<KeyFacts<'a>> {
    let facts = purposes.iter().zip(ciphers);
    facts.map(|(purpose, cipher)| KeyFacts { purpose: *purpose, cipher }).collect()
}

impl PaymentCircuits {
    /// The circuit of a command that has passed its checks. The ciphers of its keys are in the form in which
    /// nodes evaluate them.
    pub(crate) fn get(
        &self,
        command: &dyn Payment,
        keys: &[KeyFacts<'_>],
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        let of_keys = keys.iter().map(|key| (key.cipher.name.clone(), key.purpose)).collect();
        let of: Of = (command.circuit_name(keys), of_keys);
        if let Some(circuit) = self.kept(&of) {
            return Ok(circuit);
        }
        // Without the lock: a circuit of a long message takes a second, and others need not wait for it.
        let bits = element_bits(maps)?;
        let circuit = command.circuit(keys, bits);
        let (operations, made) = (circuit.ops().len(), Arc::new(compile(&circuit, maps)));
        self.keep(Kept { of, circuit: made.clone(), operations });
        Ok(made)
    }

    fn kept(&self, of: &Of) -> Option<Arc<Compiled>> {
        let mut all = self.0.lock();
        let at = all.iter().position(|kept| kept.of == *of)?;
        let found = all.remove(at)?;
        let circuit = found.circuit.clone();
        all.push_back(found);
        Some(circuit)
    }

    fn keep(&self, new: Kept) {
        let mut all = self.0.lock();
        all.push_back(new);
        while all.iter().map(|kept| kept.operations).sum::<usize>() > MOST_OPERATIONS {
            all.pop_front();
        }
    }
}

/// The width of cells in which a protocol takes an element of GF(2^128): that of blocks of AES, as nodes
/// evaluate it.
pub(super) fn element_bits(maps: &AnyServiceSession) -> Result<u8> {
    let aes = catalog::find("aes-128").ok_or_else(|| Error::misuse("the catalog has no AES"))?;
    Ok(maps.form(aes).encrypt.inputs()[0].bits)
}
