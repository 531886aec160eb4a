//! The circuits that nodes keep garbled in stock: a block of a cipher under expanded keys.
//!
//! A circuit of the stock belongs to no key. So its round keys are inputs that each lane has for itself:
//! lanes of one lot serve requests with different keys, and no wire gets labels of two of them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use polyclave_cipher::Direction::{self, Decrypt, Encrypt};
use polyclave_cipher::{AnyMap, Builder, Circuit, Compiled, boolean, catalog, compile, modes};

use super::item::{Item, Part};
use super::plan::Plan;
use super::roles::Role;
use crate::interface::stock::{Kind, Purpose};

/// A block, and round keys.
const INPUTS: usize = 2;

/// A circuit of which nodes keep garbled ones.
pub(super) struct Kept {
    /// What a stock calls them.
    name: &'static str,
    cipher: &'static str,
    direction: Direction,
    /// How many ANDs and output bits it has, for the sizes of what is kept. A node knows these without making
    /// the circuit.
    size: (usize, usize),
    made: OnceLock<Made>,
}

/// What is made of it on first use.
pub(super) struct Made {
    /// Of bits, for one lane.
    pub(super) compiled: Compiled,
    pub(super) plan: Arc<Plan>,
}

static KEPT: [Kept; 8] = [
    Kept::new("garbled circuits of AES-128", "aes-128", Encrypt, (5440, 128)),
    Kept::new("garbled circuits of AES-128 decryption", "aes-128", Decrypt, (5440, 128)),
    Kept::new("garbled circuits of AES-192", "aes-192", Encrypt, (6528, 128)),
    Kept::new("garbled circuits of AES-192 decryption", "aes-192", Decrypt, (6528, 128)),
    Kept::new("garbled circuits of AES-256", "aes-256", Encrypt, (7616, 128)),
    Kept::new("garbled circuits of AES-256 decryption", "aes-256", Decrypt, (7616, 128)),
    Kept::new("garbled circuits of Triple DES", "3des-ede3", Encrypt, (7920, 64)),
    Kept::new("garbled circuits of Triple DES decryption", "3des-ede3", Decrypt, (7920, 64)),
];

impl Kept {
    const fn new(
        name: &'static str,
        cipher: &'static str,
        direction: Direction,
        size: (usize, usize),
    ) -> Kept {
        Kept { name, cipher, direction, size, made: OnceLock::new() }
    }

    /// All of them.
    pub(super) fn all() -> &'static [Kept] {
        &KEPT
    }

    /// The one that computes what a circuit of a node computes: the cipher itself, or the cipher on the sum
    /// of several blocks (CBC, CMAC).
    pub(super) fn of(circuit: &[u8; 32]) -> Option<&'static Kept> {
        static BY_DIGEST: OnceLock<HashMap<[u8; 32], usize>> = OnceLock::new();
        let of_kept = |(at, kept): (usize, &Kept)| {
            let cipher = catalog::find(kept.cipher).expect("the catalog has it");
            let mut circuits = vec![kept.circuit().digest()];
            if kept.direction == Encrypt {
                circuits.extend([modes::chain(&cipher), modes::last_of_cmac(&cipher)].map(|c| c.digest()));
            }
            circuits.into_iter().map(move |digest| (digest, at)).collect::<Vec<_>>()
        };
        let known = BY_DIGEST.get_or_init(|| KEPT.iter().enumerate().flat_map(of_kept).collect());
        known.get(circuit).map(|at| &KEPT[*at])
    }

    /// The kind of material, as the party with this role keeps it.
    pub(super) fn kind(&self, role: Role) -> Kind {
        let (ands, outputs) = self.size;
        let rows = Part::lengths_of(role, ands, outputs);
        let item_bytes = Item::saved_bytes(role, rows, INPUTS);
        Kind { name: self.name, purpose: Purpose::Circuits, item_bytes, per_block: 1 }
    }

    /// The circuit of bits, and where everything is in it.
    pub(super) fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let compiled = compile(&boolean::expand(&of_lanes(&self.circuit())), &AnyMap);
            let plan = Arc::new(Plan::of(&compiled).expect("it is of bits"));
            Made { compiled, plan }
        })
    }

    fn circuit(&self) -> Arc<Circuit> {
        let cipher = catalog::find(self.cipher).expect("the catalog has it");
        cipher.circuit(self.direction).expect("the cipher has an inverse")
    }
}

/// The same circuit, in which each lane has round keys of its own.
fn of_lanes(circuit: &Circuit) -> Circuit {
    let mut b = Builder::new(&format!("{}-of-lanes", circuit.name()));
    let inputs = circuit.inputs().iter().map(|port| b.input(&port.name, port.cells.len(), port.bits));
    let inputs: Vec<_> = inputs.collect();
    let outputs = b.call(circuit, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>());
    for (port, cells) in circuit.outputs().iter().zip(&outputs) {
        b.output(&port.name, cells);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nodes_compute_of_a_block_is_found_by_its_circuit() {
        let aes = catalog::find("aes-256").expect("listed");
        for circuit in [aes.encrypt.as_ref().clone(), modes::chain(&aes), modes::last_of_cmac(&aes)] {
            let kept = Kept::of(&circuit.digest()).expect("it is kept");
            assert_eq!(kept.name, "garbled circuits of AES-256");
        }
        let inverse = Kept::of(&aes.decrypt.as_ref().expect("it has one").digest()).expect("it is kept");
        assert_eq!(inverse.name, "garbled circuits of AES-256 decryption");
        assert!(Kept::of(&modes::subkeys(&aes).digest()).is_none());
    }

    #[test]
    fn circuits_are_as_large_as_it_is_said_and_no_input_is_the_same_for_several_lanes() {
        for kept in Kept::all() {
            let Made { compiled, plan } = kept.made();
            assert!(compiled.inputs().iter().all(|port| !port.uniform), "{}", kept.name);
            for role in [Role::First, Role::Second, Role::Evaluator] {
                let bytes = Item::saved_bytes(role, Part::lengths(role, plan, 1), compiled.inputs().len());
                assert_eq!(kept.kind(role).item_bytes, bytes, "{}", kept.name);
            }
        }
    }
}
