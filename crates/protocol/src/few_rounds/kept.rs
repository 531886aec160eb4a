//! The circuits that nodes keep garbled in stock: a block of a cipher under expanded keys, the key schedules
//! of AES, and the compressions of SHA-2.
//!
//! A circuit of the stock belongs to no key. So its round keys are inputs that each lane has for itself:
//! lanes of one lot serve requests with different keys, and no wire gets labels of two of them.
//!
//! Most bits of round keys are sums of a few ([`independent`]), and sums cost nothing in a garbled circuit.
//! So only the cells with these few are inputs, and the circuit adds up the others: for AES-128 448 bits in
//! place of 1,408. The sums hold for round keys of every key, because they follow from the key schedule. The
//! cells are those of a key that the nodes have stored, or that they expanded in the session. Of three nodes,
//! a party that cheats cannot give a circuit other cells, because they were proven. Of two nodes it can, and
//! the check of the MACs finds it before anything that rests on the outputs is released.
//!
//! Blocks of DES and of Triple DES with two keys go through the circuits of Triple DES with three keys, and
//! some cells of their round keys go in more than once ([`Way`]).
//!
//! A key schedule takes a key in two halves, so that it has two inputs as a block has. A compression takes a
//! block of a message and a state. A block that everybody knows goes through the same circuit.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use polyclave_cipher::Direction::{self, Decrypt, Encrypt};
use polyclave_cipher::hmac::{self, Additions, Sha2};
use polyclave_cipher::independent::{self, Independent};
use polyclave_cipher::{AnyMap, Builder, Cipher, Circuit, Compiled, CompiledPort, Port};
use polyclave_cipher::{boolean, catalog, compile, modes};

use super::LANES;
use crate::interface::stock::{Kind, Purpose};

/// How many circuits are kept.
pub const COUNT: usize = 13;

/// A circuit of which nodes keep garbled ones.
pub struct Kept {
    /// Its place among all.
    pub at: usize,
    /// What a stock calls them.
    name: &'static str,
    cipher: &'static str,
    what: What,
    pub size: Size,
    compiled: OnceLock<Compiled>,
}

/// What a circuit computes of a cipher.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// `block` and `round_keys` to `block`.
    Block(Direction),
    /// `key` to `round_keys`.
    KeySchedule,
    /// `block` and `state` to `state`, of a hash.
    Compression(Sha2),
}

/// How what a cipher computes goes through a kept circuit.
pub struct Way {
    pub kept: &'static Kept,
    cipher: &'static str,
    /// Which of the cipher's keys stand in the places of the circuit's keys.
    keys: &'static [usize],
    /// Made on first use.
    of_key: OnceLock<(KeyCells, CompiledPort)>,
}

/// By the digests of the circuits that take them.
type Ways = HashMap<[u8; 32], Arc<Way>>;

/// Which cells go in, in order.
pub enum KeyCells {
    /// Of round keys, beside a block.
    OfRoundKeys(Vec<usize>),
    /// Of a key, in halves.
    Halves([Vec<usize>; 2]),
    /// None of a key: all of a state, beside a block.
    State,
}

/// Ciphers that have no circuit of their own: DES is Triple DES with one key three times.
const THROUGH_OTHERS: [(&str, &str, &[usize]); 2] =
    [("3des-ede2", "3des-ede3", &[0, 1, 0]), ("des", "3des-ede3", &[0, 0, 0])];

/// How large it is, for the sizes of what is kept. A node knows these without making the circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub ands: usize,
    /// Bits of the block, and of the cells of round keys that go in; or of the halves of a key; or of a block
    /// and a state.
    pub inputs: [usize; 2],
    pub outputs: usize,
}

static KEPT: [Kept; COUNT] = [
    Kept::new(0, "garbled circuits of AES-128", "aes-128", ENCRYPT, aes(5440, 16 + 10 * 4)),
    Kept::new(1, "garbled circuits of AES-128 decryption", "aes-128", DECRYPT, aes(5440, 16 + 10 * 4)),
    Kept::new(2, "garbled circuits of AES-192", "aes-192", ENCRYPT, aes(6528, 24 + 8 * 4)),
    Kept::new(3, "garbled circuits of AES-192 decryption", "aes-192", DECRYPT, aes(6528, 24 + 8 * 4)),
    Kept::new(4, "garbled circuits of AES-256", "aes-256", ENCRYPT, aes(7616, 32 + 13 * 4)),
    Kept::new(5, "garbled circuits of AES-256 decryption", "aes-256", DECRYPT, aes(7616, 32 + 13 * 4)),
    Kept::new(6, "garbled circuits of Triple DES", "3des-ede3", ENCRYPT, DES),
    Kept::new(7, "garbled circuits of Triple DES decryption", "3des-ede3", DECRYPT, DES),
    Kept::new(8, "garbled key schedules of AES-128", "aes-128", What::KeySchedule, schedule(40, 16, 11)),
    Kept::new(9, "garbled key schedules of AES-192", "aes-192", What::KeySchedule, schedule(32, 24, 13)),
    Kept::new(10, "garbled key schedules of AES-256", "aes-256", What::KeySchedule, schedule(52, 32, 15)),
    compression(11, "garbled compressions of SHA-256", Sha2::Sha256, 22_520),
    compression(12, "garbled compressions of SHA-512", Sha2::Sha512, 57_896),
];

const ENCRYPT: What = What::Block(Encrypt);
const DECRYPT: What = What::Block(Decrypt);

/// Of the key, and of the words that its schedule looks up.
const fn aes(ands: usize, key_bytes: usize) -> Size {
    Size { ands, inputs: [128, 8 * key_bytes], outputs: 128 }
}

/// Of a key of so many bytes, with so many S-boxes and round keys.
const fn schedule(s_boxes: usize, key_bytes: usize, round_keys: usize) -> Size {
    Size { ands: 34 * s_boxes, inputs: [4 * key_bytes; 2], outputs: 128 * round_keys }
}

const fn compression(at: usize, name: &'static str, hash: Sha2, ands: usize) -> Kept {
    let (block, state) = (8 * hash.block_bytes(), 8 * hash.state_bytes());
    let size = Size { ands, inputs: [block, state], outputs: state };
    Kept::new(at, name, hmac::name(hash), What::Compression(hash), size)
}

const DES: Size = Size { ands: 7920, inputs: [64, 3 * 56], outputs: 64 };

impl Kept {
    const fn new(at: usize, name: &'static str, cipher: &'static str, what: What, size: Size) -> Kept {
        Kept { at, name, cipher, what, size, compiled: OnceLock::new() }
    }

    /// All of them.
    pub fn all() -> &'static [Kept] {
        &KEPT
    }

    /// The kind of material, at a party whose part of an item takes so many bytes.
    pub fn kind(&self, item_bytes: usize) -> Kind {
        Kind { name: self.name, purpose: Purpose::Circuits, item_bytes, per_block: 1 }
    }

    /// Whether it is of a block of a cipher.
    pub fn is_of_block(&self) -> bool {
        matches!(self.what, What::Block(_))
    }

    /// The hash whose compression it is.
    pub(super) fn hash(&self) -> Option<Sha2> {
        match self.what {
            What::Compression(hash) => Some(hash),
            _ => None,
        }
    }

    /// The most lanes that go through such circuits together. A key that is the same in all lanes is expanded
    /// once.
    pub(super) fn most_lanes(&self) -> usize {
        if self.what == What::KeySchedule { 1 } else { LANES }
    }

    /// The circuit of bits, for one lane: of the block, and of the cells of round keys that go in; or of both
    /// halves of a key.
    pub fn compiled(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let circuit = self.what.of(self.cipher);
            let of_lanes = match self.what {
                What::Block(_) => {
                    let keys = independent_bits(&found(self.cipher));
                    let width = usize::from(circuit.inputs()[1].bits);
                    let (cells, kept) = kept_cells(&keys, width);
                    let whole = boolean::expand(&keys.whole);
                    of_block(&boolean::expand(&circuit), &whole, cells.len() * width, &kept)
                }
                What::KeySchedule => of_halves(&boolean::expand(&circuit)),
                What::Compression(_) => boolean::expand(&circuit),
            };
            compile(&of_lanes, &AnyMap)
        })
    }

    /// Of its cipher, and of those that have no circuit of their own.
    fn ways(&'static self) -> impl Iterator<Item = Way> {
        // It takes each of its own keys once.
        let keys: &[usize] = if self.cipher.starts_with("3des") { &[0, 1, 2] } else { &[0] };
        let is_other = |through: &str| self.is_of_block() && through == self.cipher;
        let others = THROUGH_OTHERS.iter().filter(move |(_, through, _)| is_other(through));
        let all =
            std::iter::once((self.cipher, keys)).chain(others.map(|(cipher, _, keys)| (*cipher, *keys)));
        all.map(move |(cipher, keys)| Way { kept: self, cipher, keys, of_key: OnceLock::new() })
    }
}

impl Way {
    /// Of a circuit of a node, if there is one: of a cipher itself, or of the cipher on the sum of several
    /// blocks (CBC, CMAC).
    pub fn of(circuit: &[u8; 32]) -> Option<&'static Way> {
        static WAYS: OnceLock<Ways> = OnceLock::new();
        let of_ciphers = || KEPT.iter().filter(|kept| kept.hash().is_none());
        WAYS.get_or_init(|| by_digest(of_ciphers())).get(circuit).map(|way| &**way)
    }

    /// The same of what is evaluated as a whole: also of the compression of a hash. Those are large, so they
    /// are made once a circuit of such a name is evaluated.
    pub fn of_whole(circuit: &Compiled) -> Option<&'static Way> {
        static WAYS: [OnceLock<Ways>; COUNT] = [const { OnceLock::new() }; COUNT];
        let digest = circuit.digest();
        let is_of = |kept: &&Kept| kept.hash().is_some() && circuit.name().starts_with(kept.cipher);
        let of_hash = || {
            let kept = KEPT.iter().find(is_of)?;
            let ways = WAYS[kept.at].get_or_init(|| by_digest(std::iter::once(kept)));
            ways.get(&digest).map(|way| &**way)
        };
        Way::of(&digest).or_else(of_hash)
    }

    /// The circuits of nodes that take it.
    fn circuits(&self) -> Vec<Arc<Circuit>> {
        let mut circuits = vec![self.kept.what.of(self.cipher)];
        match self.kept.what {
            ENCRYPT => {
                let cipher = found(self.cipher);
                circuits.extend([modes::chain(&cipher), modes::last_of_cmac(&cipher)].map(Arc::new));
            }
            What::Compression(hash) => {
                let both = [Additions::FewAnds, Additions::FewLevels];
                circuits.extend(both.map(|how| Arc::new(hmac::known_block(hash, how))));
                circuits.push(Arc::new(hmac::block(hash, Additions::FewLevels)));
            }
            What::Block(_) | What::KeySchedule => {}
        }
        circuits
    }

    /// Which cells of the round keys, of the key or of the state go in.
    pub fn key_cells(&self) -> &KeyCells {
        &self.of_key().0
    }

    /// The port of round keys, of the key or of the state of a circuit that takes this way.
    pub fn key(&self) -> &CompiledPort {
        &self.of_key().1
    }

    fn of_key(&self) -> &(KeyCells, CompiledPort) {
        self.of_key.get_or_init(|| {
            let circuit = self.kept.what.of(self.cipher);
            let Port { name, cells, bits, uniform } =
                circuit.inputs().last().expect("it takes a key").clone();
            let count = cells.len();
            let goes_in = match self.kept.what {
                What::Block(_) => {
                    let (cells, _) = kept_cells(&independent_bits(&found(self.cipher)), usize::from(bits));
                    // All keys of a cipher have as many.
                    let of_one = cells.len() / (1 + self.keys.iter().max().expect("it takes a key"));
                    let of_key = |key: &usize| &cells[of_one * key..][..of_one];
                    KeyCells::OfRoundKeys(self.keys.iter().flat_map(of_key).copied().collect())
                }
                What::KeySchedule => {
                    KeyCells::Halves([(0..count / 2).collect(), (count / 2..count).collect()])
                }
                What::Compression(_) => KeyCells::State,
            };
            (goes_in, CompiledPort { name, bits, uniform, cells: vec![Vec::new(); count] })
        })
    }
}

impl What {
    /// Of a cipher that has it.
    fn of(self, cipher: &str) -> Arc<Circuit> {
        match self {
            What::Block(direction) => found(cipher).circuit(direction).expect("the cipher has an inverse"),
            What::KeySchedule => found(cipher).key_schedule,
            What::Compression(hash) => Arc::new(hmac::block(hash, Additions::FewAnds)),
        }
    }
}

/// The ways of some kept circuits.
fn by_digest(kept: impl Iterator<Item = &'static Kept>) -> Ways {
    let with_digests = |way: Way| {
        let way = Arc::new(way);
        way.circuits().into_iter().map(move |circuit| (circuit.digest(), way.clone()))
    };
    kept.flat_map(Kept::ways).flat_map(with_digests).collect()
}

fn found(cipher: &str) -> Cipher {
    catalog::find(cipher).expect("the catalog has it")
}

fn independent_bits(cipher: &Cipher) -> Independent {
    independent::round_keys(cipher).expect("cells of round keys fill bytes")
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
fn of_block(circuit: &Circuit, whole: &Circuit, bits: usize, kept: &[usize]) -> Circuit {
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

/// A key schedule of bits, in which each lane has a key of its own, in halves.
fn of_halves(schedule: &Circuit) -> Circuit {
    let bits = schedule.inputs()[0].cells.len();
    let mut b = Builder::new(&format!("{}-of-halves", schedule.name()));
    let halves = ["first half", "second half"].map(|name| b.input(name, bits / 2, 1));
    let outputs = b.call(schedule, &[&halves.concat()]);
    for (port, cells) in schedule.outputs().iter().zip(&outputs) {
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
            let way = Way::of(&circuit.digest()).expect("it is kept");
            assert_eq!(way.kept.name, "garbled circuits of AES-256");
        }
        let inverse = Way::of(&aes.decrypt.as_ref().expect("it has one").digest()).expect("it is kept");
        assert_eq!(inverse.kept.name, "garbled circuits of AES-256 decryption");
        assert!(Way::of(&modes::subkeys(&aes).digest()).is_none());
    }

    /// Two that had one circuit would take each other's cells.
    #[test]
    fn each_circuit_has_a_way_of_its_own() {
        let mut circuits = 0;
        for way in KEPT.iter().flat_map(Kept::ways) {
            for circuit in way.circuits() {
                let found = Way::of_whole(&compile(&circuit, &AnyMap)).expect("it is known");
                assert_eq!((found.kept.at, found.cipher), (way.kept.at, way.cipher), "{}", circuit.name());
                circuits += 1;
            }
        }
        let right = 4 * (4 + THROUGH_OTHERS.len()) + 3 + 2 * 4;
        assert_eq!(circuits, right, "of six ciphers, three schedules and two hashes");
    }

    #[test]
    fn a_block_under_the_cells_that_go_in_is_the_block_under_all_round_keys() {
        for way in KEPT.iter().flat_map(Kept::ways) {
            let KeyCells::OfRoundKeys(key_cells) = way.key_cells() else { continue };
            let (kept, cipher) = (way.kept, found(way.cipher));
            let circuit = kept.what.of(way.cipher);
            let key: Vec<u8> = (0..cipher.key_bytes).map(|i| (i as u8).wrapping_mul(157) ^ 0xc3).collect();
            let round_keys = ran(&cipher.key_schedule, &[&key]);
            let port = &circuit.inputs()[1];
            let all = Cells::from_blocks(port.cells.len(), port.bits, &round_keys).expect("whole bytes");
            let mut cells = Cells::zero(key_cells.len(), port.bits, 1);
            for (to, from) in key_cells.iter().enumerate() {
                cells.row_mut(to).copy_from_slice(all.row(*from));
            }
            let block: Vec<u8> = (0..cipher.block_bytes as u8).map(|i| i.wrapping_mul(29)).collect();
            let bytes = [block.clone(), cells.to_blocks()];
            let inputs = kept.compiled().inputs().iter().zip(&bytes);
            let inputs: Vec<Cells> = inputs
                .map(|(port, bytes)| Cells::from_blocks(port.cells.len(), 1, bytes).expect("whole bytes"))
                .collect();
            let output = cleartext::run(kept.compiled(), 1, &inputs).expect("it fits").remove(0);
            assert_eq!(output.to_blocks(), ran(&circuit, &[&block, &round_keys]), "{}", way.cipher);
        }
    }

    /// Their round keys would have to follow from the same cells.
    #[test]
    fn no_other_cipher_has_the_circuit_of_one_whose_circuits_are_kept() {
        let found = catalog::all().into_iter().filter(|cipher| Way::of(&cipher.encrypt.digest()).is_some());
        let found: Vec<String> = found.map(|cipher| cipher.name).collect();
        assert_eq!(found.len(), 4 + THROUGH_OTHERS.len(), "{found:?}");
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
