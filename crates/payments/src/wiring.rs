//! Builds the circuit of a command: its ports, keys, blocks of ciphers and bits of them.
//!
//! Values are lists of cells of 1 bit or of 8 bits. Those of DES have 1 bit, those of AES 8, or 1 if the
//! cipher was expanded to gates. Bits become bytes freely. The bits of a byte are views of the lookup that
//! made it; a byte that is a sum with a stored round key, or an input, has none, so it is looked up in the
//! S-box of AES and in the inverse one first, as in `polyclave_cipher::key_cells`.

use std::collections::HashMap;
use std::sync::Arc;

use polyclave_cipher::{
    AnyMap, Builder, Cells, Cipher, Circuit, Direction, Matrix, Table, Wire, aes, boolean, catalog,
    cleartext, compile, key_wrap, modes,
};

use crate::payment::{KeyFacts, Payment};

/// Bytes of `check`.
const CHECK_BYTES: usize = 16;

/// Cells of one width: 1 or 8 bits.
#[derive(Clone)]
pub(crate) struct Value {
    cells: Vec<Wire>,
    width: u8,
}

impl Value {
    /// Single bits, the most significant first.
    pub(crate) fn of_bits(cells: Vec<Wire>) -> Value {
        Value { cells, width: 1 }
    }

    /// How many bytes it has.
    pub(crate) fn bytes(&self) -> usize {
        self.cells.len() * usize::from(self.width) / 8
    }

    /// Some of its bytes.
    pub(crate) fn part(&self, bytes: std::ops::Range<usize>) -> Value {
        let per_byte = usize::from(8 / self.width);
        let cells = self.cells[bytes.start * per_byte..bytes.end * per_byte].to_vec();
        Value { cells, width: self.width }
    }
}

/// A key, expanded: one of the request, or one derived in the circuit.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) cipher: Cipher,
    round_keys: Vec<Wire>,
}

/// A circuit of a command under construction.
pub(crate) struct Wiring {
    b: Builder,
    element_bits: u8,
    public: Vec<Wire>,
    random: Vec<Wire>,
    zero: Wire,
    /// Bits that have to be 0.
    conditions: Vec<Wire>,
    /// Bytes that have to be 0.
    byte_conditions: Vec<Wire>,
    answer: Vec<Wire>,
    /// Ciphers that were asked for: expanding one to gates takes a while.
    ciphers: HashMap<String, Cipher>,
}

impl Wiring {
    /// The ports of a command, and its keys.
    pub(crate) fn new(payment: &dyn Payment, keys: &[KeyFacts<'_>], element_bits: u8) -> (Wiring, Vec<Key>) {
        assert!([1, 8].contains(&element_bits), "elements are made of bits or of bytes");
        let mut b = Builder::new(&payment.circuit_name(keys));
        let expanded: Vec<Key> = keys
            .iter()
            .zip(1..)
            .map(|(key, number)| {
                let port = key.cipher.key_schedule.outputs().first().expect("a cipher with keys");
                let name = format!("round_keys {number}");
                let round_keys = b.uniform_input(&name, port.cells.len(), port.bits);
                Key { cipher: key.cipher.clone(), round_keys }
            })
            .collect();
        let public = b.input("public", 8 * payment.public(keys).len(), 1);
        let random_bits = 8 * payment.random_bytes();
        let random = if random_bits > 0 { b.input("random", random_bits, 1) } else { Vec::new() };
        let zero = b.xor(&[public[0], public[0]]);
        let (conditions, byte_conditions, answer) = (Vec::new(), Vec::new(), Vec::new());
        let ciphers = HashMap::new();
        let wiring =
            Wiring { b, element_bits, public, random, zero, conditions, byte_conditions, answer, ciphers };
        (wiring, expanded)
    }

    /// The next bytes of `public`.
    pub(crate) fn public(&mut self, bytes: usize) -> Value {
        Value::of_bits(self.public.drain(..8 * bytes).collect())
    }

    /// The next bits of `random`.
    pub(crate) fn random(&mut self, bits: usize) -> Vec<Wire> {
        self.random.drain(..bits).collect()
    }

    /// Bytes that are the same for all.
    pub(crate) fn constant(&mut self, bytes: &[u8]) -> Value {
        let zero = self.zero;
        let bits = bytes.iter().flat_map(|byte| (0..8).rev().map(move |i| byte >> i & 1));
        Value::of_bits(bits.map(|bit| self.b.xor_constant(&[zero], bit)).collect())
    }

    /// The four bits of a nibble that is the same for all.
    pub(crate) fn nibble(&mut self, nibble: u8) -> Vec<Wire> {
        self.constant(&[nibble]).cells[4..].to_vec()
    }

    /// table\[bits\], the most significant bit first in both.
    pub(crate) fn lookup(&mut self, table: &Arc<Table>, bits: &[Wire]) -> Vec<Wire> {
        let (ins, outs) = (table.in_bits(), table.out_bits());
        assert_eq!(bits.len(), usize::from(ins), "table {} takes another number of bits", table.name());
        let terms = bits.iter().zip((0..ins).rev()).map(|(bit, at)| (*bit, Matrix::place(ins, at)));
        let x = self.b.linear(terms.collect(), 0);
        let id = self.b.table(table);
        let y = self.b.lookup(id, x);
        match outs {
            1 => vec![y],
            _ => (0..outs).rev().map(|i| self.b.linear(vec![(y, Matrix::bit(outs, i))], 0)).collect(),
        }
    }

    /// Sums of bits, place by place.
    pub(crate) fn xor_bits(&mut self, terms: &[&[Wire]]) -> Vec<Wire> {
        (0..terms[0].len()).map(|i| self.b.xor(&terms.iter().map(|t| t[i]).collect::<Vec<_>>())).collect()
    }

    /// Bits and a public number, the first bit most significant.
    pub(crate) fn xor_number(&mut self, bits: &[Wire], number: u8) -> Vec<Wire> {
        let places = (0..bits.len()).rev();
        bits.iter().zip(places).map(|(bit, i)| self.b.xor_constant(&[*bit], number >> i & 1)).collect()
    }

    /// The other value of a bit.
    pub(crate) fn not(&mut self, bit: Wire) -> Wire {
        self.b.xor_constant(&[bit], 1)
    }

    /// A bit that is always 0.
    pub(crate) fn zero(&self) -> Wire {
        self.zero
    }

    /// The sum of two values of one length.
    pub(crate) fn xor(&mut self, x: &Value, y: &Value) -> Value {
        let width = x.width.max(y.width);
        let (x, y) = (self.in_width(x, width), self.in_width(y, width));
        assert_eq!(x.cells.len(), y.cells.len(), "values of different lengths are not added");
        Value { cells: self.b.xor_each(&x.cells, &y.cells), width }
    }

    /// The bits of a value.
    pub(crate) fn bits(&mut self, value: &Value) -> Vec<Wire> {
        self.in_width(value, 1).cells
    }

    /// Values one after the other.
    pub(crate) fn concat(&mut self, parts: &[&Value]) -> Value {
        let width = parts.iter().map(|part| part.width).max().expect("a value has parts");
        let cells = parts.iter().flat_map(|part| self.in_width(part, width).cells).collect();
        Value { cells, width }
    }

    fn in_width(&mut self, value: &Value, width: u8) -> Value {
        let cells = match (value.width, width) {
            (from, to) if from == to => value.cells.clone(),
            (1, _) => bytes_of(&mut self.b, &value.cells),
            _ => {
                let there = self.b.table(&Arc::new(aes::s_box()));
                let back = self.b.table(&Arc::new(aes::inverse_s_box()));
                let hidden = self.b.lookup_each(there, &value.cells);
                let bytes = self.b.lookup_each(back, &hidden);
                let bit = |(byte, i): (Wire, u8)| self.b.linear(vec![(byte, Matrix::bit(8, i))], 0);
                bytes.into_iter().flat_map(|byte| (0..8).rev().map(move |i| (byte, i))).map(bit).collect()
            }
        };
        Value { cells, width }
    }

    /// A cipher of the catalog, in the form of this circuit.
    pub(crate) fn cipher(&mut self, name: &str) -> Cipher {
        if let Some(cipher) = self.ciphers.get(name) {
            return cipher.clone();
        }
        let cipher = if self.element_bits == 1 { boolean::cipher(name) } else { catalog::find(name) };
        let cipher = cipher.expect("the catalog has the ciphers of payments");
        self.ciphers.insert(name.into(), cipher.clone());
        cipher
    }

    /// A key that was computed.
    pub(crate) fn expand(&mut self, cipher: &Cipher, key: &Value) -> Key {
        let key = self.in_width(key, cipher.key_schedule.inputs()[0].bits);
        let round_keys = self.b.call(&cipher.key_schedule, &[&key.cells]).remove(0);
        Key { cipher: cipher.clone(), round_keys }
    }

    /// The key with constants added to it, if its schedule is linear, as that of DES.
    pub(crate) fn variant(&mut self, key: &Key, mask: &[u8]) -> Key {
        assert_eq!(key.cipher.key_schedule.lookups(), 0, "only linear schedules have variants");
        let schedule = compile(&key.cipher.key_schedule, &AnyMap);
        let mask = Cells::from_blocks(8 * mask.len(), 1, mask).expect("whole bytes fill bits");
        let constants = cleartext::run(&schedule, 1, &[mask]).expect("the mask is a key").remove(0);
        let cells = key.round_keys.iter().zip(constants.rows());
        let round_keys = cells.map(|(cell, constant)| self.b.xor_constant(&[*cell], *constant)).collect();
        Key { round_keys, ..key.clone() }
    }

    /// One of the keys of DES in a key of Triple DES.
    pub(crate) fn single(&mut self, key: &Key, which: usize) -> Key {
        let cipher = self.cipher("des");
        let each = cipher.key_schedule.outputs()[0].cells.len();
        Key { cipher, round_keys: key.round_keys[which * each..][..each].to_vec() }
    }

    /// A block, encrypted or decrypted.
    pub(crate) fn crypt(&mut self, key: &Key, direction: Direction, block: &Value) -> Value {
        let circuit = key.cipher.circuit(direction).expect("ciphers of payments work both ways");
        let width = circuit.inputs()[0].bits;
        let block = self.in_width(block, width);
        let cells = self.b.call(&circuit, &[&block.cells, &key.round_keys]).remove(0);
        Value { cells, width }
    }

    /// A block, encrypted.
    pub(crate) fn encrypt(&mut self, key: &Key, block: &Value) -> Value {
        self.crypt(key, Direction::Encrypt, block)
    }

    /// A block, decrypted.
    pub(crate) fn decrypt(&mut self, key: &Key, block: &Value) -> Value {
        self.crypt(key, Direction::Decrypt, block)
    }

    /// The subkeys of CMAC.
    pub(crate) fn subkeys(&mut self, key: &Key) -> [Value; 2] {
        let circuit = modes::subkeys(&key.cipher);
        let port = &circuit.inputs()[0];
        let width = port.bits;
        let zero = self.constant(&vec![0; key.cipher.block_bytes]);
        let zero = self.in_width(&zero, width);
        let mut outputs = self.b.call(&circuit, &[&zero.cells, &key.round_keys]);
        let k2 = outputs.pop().expect("subkeys has three outputs");
        let k1 = outputs.pop().expect("subkeys has three outputs");
        [k1, k2].map(|cells| Value { cells, width })
    }

    /// A key of AES itself: its schedule begins with it.
    pub(crate) fn first_bytes(&self, key: &Key) -> Value {
        let width = key.cipher.key_schedule.outputs()[0].bits;
        let cells = key.round_keys[..8 * key.cipher.key_bytes / usize::from(width)].to_vec();
        Value { cells, width }
    }

    /// A key in bits, wrapped under AES (RFC 3394).
    pub(crate) fn wrap(&mut self, kek: &Key, key: &Value) -> Value {
        let key = self.in_width(key, 1);
        let bytes = key.bytes();
        let circuit = key_wrap::wrap(&kek.cipher, key_wrap::Padding::None, bytes, (key.cells.len(), 1));
        let width = circuit.outputs()[0].bits;
        let cells = self.b.call(&circuit, &[&key.cells, &kek.round_keys]).remove(0);
        Value { cells, width }
    }

    /// A condition of the command: these bits are 0.
    pub(crate) fn require_zero(&mut self, bits: &[Wire]) {
        self.conditions.extend(bits);
    }

    /// A condition of the command: all bytes of this value are 0.
    pub(crate) fn require_zero_value(&mut self, value: &Value) {
        match value.width {
            8 if self.element_bits == 8 => self.byte_conditions.extend(&value.cells),
            _ => {
                let bits = self.bits(value);
                self.conditions.extend(bits);
            }
        }
    }

    /// Adds bytes to the answer.
    pub(crate) fn answer(&mut self, value: &Value) {
        // Bytes of an expanded cipher's circuit are bits; bytes of others stay bytes if elements are bytes.
        let value = self.in_width(value, self.element_bits);
        self.answer.extend(value.cells);
    }

    /// Adds digits to the answer, one a byte.
    pub(crate) fn answer_digits(&mut self, digits: &[Vec<Wire>]) {
        let zeros = [self.zero; 4];
        let bits: Vec<Wire> = digits.iter().flat_map(|digit| [&zeros[..], digit].concat()).collect();
        self.answer(&Value::of_bits(bits));
    }

    /// The circuit.
    pub(crate) fn finish(mut self) -> Circuit {
        assert!(self.public.is_empty() && self.random.is_empty(), "a command uses all that it asks for");
        if !self.conditions.is_empty() || !self.byte_conditions.is_empty() {
            let check = self.check();
            self.b.output("check", &check);
        }
        if !self.answer.is_empty() {
            self.b.output("answer", &self.answer);
        }
        let circuit = self.b.finish();
        if self.element_bits == 1 { boolean::expand(&circuit) } else { circuit }
    }

    /// All conditions side by side in a block. No OR is needed: the block is opened under a random factor,
    /// so nobody learns more than whether all are 0.
    fn check(&mut self) -> Vec<Wire> {
        let bytes = self.byte_conditions.len();
        let room = 8 * (CHECK_BYTES - bytes);
        assert!(self.conditions.len() <= room, "the conditions of a command fit a block");
        self.conditions.resize(room, self.zero);
        match self.element_bits {
            1 => self.conditions.clone(),
            _ => {
                let packed = bytes_of(&mut self.b, &self.conditions);
                [&self.byte_conditions[..], &packed].concat()
            }
        }
    }
}

/// Eight bits a byte.
fn bytes_of(b: &mut Builder, bits: &[Wire]) -> Vec<Wire> {
    let byte = |bits: &[Wire]| {
        let terms = bits.iter().zip((0..8).rev()).map(|(bit, i)| (*bit, Matrix::place(8, i)));
        b.linear(terms.collect(), 0)
    };
    bits.chunks(8).map(byte).collect()
}
