//! The circuits that nodes keep garbled in stock: a block of a cipher under expanded keys.
//!
//! A circuit of the stock belongs to no key. So its round keys are inputs that each lane has for itself:
//! lanes of one lot serve requests with different keys, and no wire gets labels of two of them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use polyclave_cipher::Direction::{self, Decrypt, Encrypt};
use polyclave_cipher::{AnyMap, Builder, Circuit, Compiled, boolean, catalog, compile, modes};

use crate::interface::stock::{Kind, Purpose};

/// How many circuits are kept.
pub const COUNT: usize = 8;

/// A circuit of which nodes keep garbled ones.
pub struct Kept {
    /// Its place among all.
    pub at: usize,
    /// What a stock calls them.
    name: &'static str,
    cipher: &'static str,
    direction: Direction,
    pub size: Size,
    compiled: OnceLock<Compiled>,
}

/// How large it is, for the sizes of what is kept. A node knows these without making the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub ands: usize,
    /// Bits of the block, and of round keys.
    pub inputs: [usize; 2],
    pub outputs: usize,
}

static KEPT: [Kept; COUNT] = [
    Kept::new(0, "garbled circuits of AES-128", "aes-128", Encrypt, aes(5440, 11)),
    Kept::new(1, "garbled circuits of AES-128 decryption", "aes-128", Decrypt, aes(5440, 11)),
    Kept::new(2, "garbled circuits of AES-192", "aes-192", Encrypt, aes(6528, 13)),
    Kept::new(3, "garbled circuits of AES-192 decryption", "aes-192", Decrypt, aes(6528, 13)),
    Kept::new(4, "garbled circuits of AES-256", "aes-256", Encrypt, aes(7616, 15)),
    Kept::new(5, "garbled circuits of AES-256 decryption", "aes-256", Decrypt, aes(7616, 15)),
    Kept::new(6, "garbled circuits of Triple DES", "3des-ede3", Encrypt, DES),
    Kept::new(7, "garbled circuits of Triple DES decryption", "3des-ede3", Decrypt, DES),
];

const fn aes(ands: usize, round_keys: usize) -> Size {
    Size { ands, inputs: [128, 128 * round_keys], outputs: 128 }
}

const DES: Size = Size { ands: 7920, inputs: [64, 48 * 48], outputs: 64 };

impl Kept {
    const fn new(
        at: usize,
        name: &'static str,
        cipher: &'static str,
        direction: Direction,
        size: Size,
    ) -> Kept {
        Kept { at, name, cipher, direction, size, compiled: OnceLock::new() }
    }

    /// All of them.
    pub fn all() -> &'static [Kept] {
        &KEPT
    }

    /// The one that computes what a circuit of a node computes: the cipher itself, or the cipher on the sum
    /// of several blocks (CBC, CMAC).
    pub fn of(circuit: &[u8; 32]) -> Option<&'static Kept> {
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

    /// The kind of material, at a party whose part of an item takes so many bytes.
    pub fn kind(&self, item_bytes: usize) -> Kind {
        Kind { name: self.name, purpose: Purpose::Circuits, item_bytes, per_block: 1 }
    }

    /// The circuit of bits, for one lane.
    pub fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| compile(&boolean::expand(&of_lanes(&self.circuit())), &AnyMap))
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
    fn no_input_is_the_same_for_several_lanes_and_all_have_as_many_bits_as_it_is_said() {
        for (at, kept) in Kept::all().iter().enumerate() {
            let compiled = kept.compiled();
            assert!(compiled.inputs().iter().all(|port| !port.uniform), "{}", kept.name);
            let bits: Vec<usize> = compiled.inputs().iter().map(|port| port.cells.len()).collect();
            assert_eq!((kept.at, &bits[..]), (at, &kept.size.inputs[..]), "{}", kept.name);
            assert_eq!(compiled.outputs()[0].cells.len(), kept.size.outputs, "{}", kept.name);
        }
    }
}
