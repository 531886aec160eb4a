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

#[cfg(test)]
mod tests {
    use polyclave_protocol::mesh::run_parties;
    use polyclave_protocol::net::Net;
    use polyclave_protocol::protocol::ProtocolConfig;
    use polyclave_protocol::service::ServiceSession;
    use polyclave_protocol::session::{HandshakeParameters, hello};

    use super::*;

    /// A PIN block under one key of Triple DES to one under another.
    fn translation() -> polyclave_payments::Command {
        serde_json::from_value(serde_json::json!({ "translate-pin": {
            "incoming": { "format": "iso0", "block": "0123456789abcdef", "key": "direct" },
            "pan": "4000001234562",
            "outgoing": { "format": "iso0", "key": "direct" },
        }}))
        .expect("a command")
    }

    /// Nodes that are far from each other take a garbled circuit for each of them.
    #[test]
    fn commands_are_compiled_around_their_ciphers() {
        for (protocol, nodes) in [("replicated-active", 3), ("spdz-tower", 2)] {
            let config = polyclave_protocol::catalog::service(protocol, nodes, 1).expect("it serves");
            let sessions = run_parties(nodes, |net: &mut dyn Net| {
                let setup = config.setup(net)?;
                let mut greeted = hello(&config.handshake(HandshakeParameters::new(nodes)), net)?;
                config.join(&setup, greeted.stream(), net.members())
            });
            let maps = sessions.into_iter().next().expect("there are nodes").expect("they are honest");
            let cipher = maps.form(catalog::find("3des-ede2").expect("listed"));
            let facts = facts(&[Purpose::PinEncryption; 2], &[&cipher, &cipher]);
            let made = PaymentCircuits::default().get(translation().payment(), &facts, &maps).expect("made");
            let parts = &made.parts().expect("there are ciphers inside").parts;
            let ciphers: Vec<usize> = parts.iter().map(|part| part.inserted.len()).collect();
            assert_eq!(ciphers, [1, 1, 0], "{protocol}");
        }
    }
}
