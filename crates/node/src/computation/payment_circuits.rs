//! The circuits of payment commands, compiled for a node's protocol. They are made on first use.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::{Cipher, Compiled, boolean, catalog, compile};
use polyclave_payments::{KeyFacts, Payment, Purpose};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::service::ServiceSession;
use polyclave_protocol::{Error, Result};

/// The most that are kept: the lengths of messages decide about circuits, so there are many.
const MOST: usize = 64;

/// What tells circuits apart: the name, and the ciphers and purposes of the keys.
type Of = (String, Vec<(String, Purpose)>);

/// Compiled circuits, the most recent last.
#[derive(Default)]
pub(crate) struct PaymentCircuits(Mutex<VecDeque<(Of, Arc<Compiled>)>>);

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
        let mut known = self.0.lock();
        if let Some(at) = known.iter().position(|(known, _)| *known == of) {
            let found = known.remove(at).ok_or_else(|| Error::misuse("it was there"))?;
            let circuit = found.1.clone();
            known.push_back(found);
            return Ok(circuit);
        }
        let bits = element_bits(maps)?;
        let circuit = command.circuit(keys, bits);
        // A protocol that evaluates ciphers as Boolean circuits does so with all that surrounds them.
        let circuit = if bits == 1 { boolean::expand(&circuit) } else { circuit };
        let made = Arc::new(compile(&circuit, maps));
        if known.len() == MOST {
            known.pop_front();
        }
        known.push_back((of, made.clone()));
        Ok(made)
    }
}

/// The width of cells in which a protocol takes an element of GF(2^128): that of blocks of AES, as nodes
/// evaluate it.
pub(super) fn element_bits(maps: &AnyServiceSession) -> Result<u8> {
    let aes = catalog::find("aes-128").ok_or_else(|| Error::misuse("the catalog has no AES"))?;
    Ok(maps.form(aes).encrypt.inputs()[0].bits)
}
