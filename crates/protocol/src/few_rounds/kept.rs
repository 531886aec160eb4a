//! The circuits that nodes keep garbled in stock: a block of a cipher under expanded keys.
//!
//! A circuit of the stock belongs to no key. So its round keys are inputs that each lane has for itself:
//! lanes of one lot serve requests with different keys, and no wire gets labels of two of them.
//!
//! Most bits of round keys are sums of a few ([`independent`]), and sums cost nothing in a garbled circuit.
//! So only the cells with these few are inputs, and the circuit adds up the others: for AES-128 448 bits in
//! place of 1,408. The sums hold for round keys of every key, because they follow from the key schedule. The
//! cells are those of a key that the nodes have stored. Of three nodes, a party that cheats cannot give a
//! circuit other cells, because they were proven. Of two nodes it can, and the check of the MACs finds it
//! before anything that rests on the outputs is released.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use polyclave_cipher::Direction::{self, Decrypt, Encrypt};
use polyclave_cipher::independent::{self, Independent};
use polyclave_cipher::{AnyMap, Builder, Cipher, Circuit, Compiled, CompiledPort};
use polyclave_cipher::{boolean, catalog, compile, modes};

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
    made: OnceLock<Made>,
}

/// What is made of it on first use.
struct Made {
    compiled: Compiled,
    /// Which cells of the round keys go in, in order.
    key_cells: Vec<usize>,
    /// All cells of the round keys, without views.
    round_keys: CompiledPort,
}

/// How large it is, for the sizes of what is kept. A node knows these without making the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub ands: usize,
    /// Bits of the block, and of the cells of round keys that go in.
    pub inputs: [usize; 2],
    pub outputs: usize,
}

static KEPT: [Kept; COUNT] = [
    Kept::new(0, "garbled circuits of AES-128", "aes-128", Encrypt, aes(5440, 16 + 10 * 4)),
    Kept::new(1, "garbled circuits of AES-128 decryption", "aes-128", Decrypt, aes(5440, 16 + 10 * 4)),
    Kept::new(2, "garbled circuits of AES-192", "aes-192", Encrypt, aes(6528, 24 + 8 * 4)),
    Kept::new(3, "garbled circuits of AES-192 decryption", "aes-192", Decrypt, aes(6528, 24 + 8 * 4)),
    Kept::new(4, "garbled circuits of AES-256", "aes-256", Encrypt, aes(7616, 32 + 13 * 4)),
    Kept::new(5, "garbled circuits of AES-256 decryption", "aes-256", Decrypt, aes(7616, 32 + 13 * 4)),
    Kept::new(6, "garbled circuits of Triple DES", "3des-ede3", Encrypt, DES),
    Kept::new(7, "garbled circuits of Triple DES decryption", "3des-ede3", Decrypt, DES),
];

/// Of the key, and of the words that its schedule looks up.
const fn aes(ands: usize, key_bytes: usize) -> Size {
    Size { ands, inputs: [128, 8 * key_bytes], outputs: 128 }
}

const DES: Size = Size { ands: 7920, inputs: [64, 3 * 56], outputs: 64 };

impl Kept {
    const fn new(
        at: usize,
        name: &'static str,
        cipher: &'static str,
        direction: Direction,
        size: Size,
    ) -> Kept {
        Kept { at, name, cipher, direction, size, made: OnceLock::new() }
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

    /// The circuit of bits, for one lane: of the block, and of the cells of round keys that go in.
    pub fn compiled(&self) -> &Compiled {
        &self.made().compiled
    }

    /// Which cells of the round keys go in.
    pub fn key_cells(&self) -> &[usize] {
        &self.made().key_cells
    }

    /// The port of round keys of a circuit that goes through this one.
    pub fn round_keys(&self) -> &CompiledPort {
        &self.made().round_keys
    }

    fn made(&self) -> &Made {
        self.made.get_or_init(|| {
            let circuit = self.circuit();
            let keys = independent::round_keys(&self.cipher()).expect("cells of round keys fill bytes");
            let port = &circuit.inputs()[1];
            let width = usize::from(port.bits);
            let cells = vec![Vec::new(); port.cells.len()];
            let (name, bits, uniform) = (port.name.clone(), port.bits, port.uniform);
            let round_keys = CompiledPort { name, bits, uniform, cells };
            let (key_cells, bits) = kept_cells(&keys, width);
            let [circuit, whole] = [&*circuit, &keys.whole].map(boolean::expand);
            let of_lanes = of_lanes(&circuit, &whole, key_cells.len() * width, &bits);
            Made { compiled: compile(&of_lanes, &AnyMap), key_cells, round_keys }
        })
    }

    fn cipher(&self) -> Cipher {
        catalog::find(self.cipher).expect("the catalog has it")
    }

    fn circuit(&self) -> Arc<Circuit> {
        self.cipher().circuit(self.direction).expect("the cipher has an inverse")
    }
}

/// The cells of so many bits that have a kept bit, and where the kept bits are among all bits of these cells.
fn kept_cells(keys: &Independent, width: usize) -> (Vec<usize>, Vec<usize>) {
    let (all, kept) = (&keys.keep.inputs()[0].cells, &keys.keep.outputs()[0].cells);
    let kept: Vec<usize> = (0..all.len()).filter(|bit| kept.contains(&all[*bit])).collect();
    let mut cells: Vec<usize> = kept.iter().map(|bit| bit / width).collect();
    cells.dedup();
    let place = |bit: &usize| cells.partition_point(|cell| *cell < bit / width) * width + bit % width;
    let places = kept.iter().map(place).collect();
    (cells, places)
}

/// A circuit of bits, in which each lane has round keys of its own. They follow from some bits, and `kept`
/// says where these are among so many of the second input.
fn of_lanes(circuit: &Circuit, whole: &Circuit, bits: usize, kept: &[usize]) -> Circuit {
    let [block, round_keys] = circuit.inputs() else { panic!("it takes a block, and round keys") };
    let mut b = Builder::new(&format!("{}-of-lanes", circuit.name()));
    let block = b.input(&block.name, block.cells.len(), 1);
    let cells = b.input(&round_keys.name, bits, 1);
    let kept: Vec<_> = kept.iter().map(|bit| cells[*bit]).collect();
    let round_keys = b.call(whole, &[&kept]).remove(0);
    let outputs = b.call(circuit, &[&block, &round_keys]);
    for (port, cells) in circuit.outputs().iter().zip(&outputs) {
        b.output(&port.name, cells);
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{Cells, cleartext};

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
    fn a_block_under_the_cells_that_go_in_is_the_block_under_all_round_keys() {
        for kept in Kept::all() {
            let (cipher, circuit) = (kept.cipher(), kept.circuit());
            let key: Vec<u8> = (0..cipher.key_bytes).map(|i| (i as u8).wrapping_mul(157) ^ 0xc3).collect();
            let round_keys = ran(&cipher.key_schedule, &[&key]);
            let port = &circuit.inputs()[1];
            let all = Cells::from_blocks(port.cells.len(), port.bits, &round_keys).expect("whole bytes");
            let mut cells = Cells::zero(kept.key_cells().len(), port.bits, 1);
            for (to, from) in kept.key_cells().iter().enumerate() {
                cells.row_mut(to).copy_from_slice(all.row(*from));
            }
            let block: Vec<u8> = (0..cipher.block_bytes as u8).map(|i| i.wrapping_mul(29)).collect();
            let bytes = [block.clone(), cells.to_blocks()];
            let inputs = kept.compiled().inputs().iter().zip(&bytes);
            let inputs: Vec<Cells> = inputs
                .map(|(port, bytes)| Cells::from_blocks(port.cells.len(), 1, bytes).expect("whole bytes"))
                .collect();
            let output = cleartext::run(kept.compiled(), 1, &inputs).expect("it fits").remove(0);
            assert_eq!(output.to_blocks(), ran(&circuit, &[&block, &round_keys]), "{}", kept.name);
        }
    }

    /// Their round keys would have to follow from the same cells.
    #[test]
    fn no_other_cipher_has_the_circuit_of_one_whose_circuits_are_kept() {
        let found = catalog::all().into_iter().filter(|cipher| Kept::of(&cipher.encrypt.digest()).is_some());
        let found: Vec<String> = found.map(|cipher| cipher.name).collect();
        assert_eq!(found.len(), COUNT / 2, "{found:?}");
    }

    fn ran(circuit: &Circuit, inputs: &[&[u8]]) -> Vec<u8> {
        let inputs = circuit.inputs().iter().zip(inputs).map(|(port, bytes)| {
            Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole bytes")
        });
        let inputs: Vec<Cells> = inputs.collect();
        cleartext::run(&compile(circuit, &AnyMap), 1, &inputs).expect("it fits").remove(0).to_blocks()
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
