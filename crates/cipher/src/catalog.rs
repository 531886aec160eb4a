//! The list of all ciphers, by name.

use std::sync::{Arc, LazyLock};

use crate::{Builder, Circuit, Wire};
use crate::{aes, craft, des, gift, mantis, midori, piccolo, present, skinny, twine, wage};

/// A block cipher as three circuits; or a permutation, which is a block cipher without a key. For HMAC there
/// are the sizes only ([`crate::hmac::cipher`]).
#[derive(Clone, Debug)]
pub struct Cipher {
    /// In lower case, as the command line takes it.
    pub name: String,
    /// Bytes of the key; 0 for a permutation.
    pub key_bytes: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Bytes of the tweak that each block has; 0 if the cipher takes none.
    pub tweak_bytes: usize,
    /// `key` to `round_keys`, the same for all lanes. The key schedule of a permutation has no inputs and no
    /// outputs.
    pub key_schedule: Arc<Circuit>,
    /// `block`, `tweak` if there is one, and `round_keys` if there is a key, to `block`.
    pub encrypt: Arc<Circuit>,
    /// The inverse, of the same shape, where the cipher has one.
    pub decrypt: Option<Arc<Circuit>>,
}

/// Whether a cipher encrypts or decrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

impl Cipher {
    /// The circuit for one direction, from the expanded key.
    pub fn circuit(&self, direction: Direction) -> Option<Arc<Circuit>> {
        match direction {
            Direction::Encrypt => Some(self.encrypt.clone()),
            Direction::Decrypt => self.decrypt.clone(),
        }
    }

    /// The circuit for one direction with the key schedule in it: `block`, `tweak` if there is one, and `key`
    /// if there is one, to `block`.
    pub fn circuit_with_key_schedule(&self, direction: Direction) -> Option<Circuit> {
        let cipher = self.circuit(direction)?;
        let mut b = Builder::new(&format!("{}-with-keyschedule", cipher.name()));
        let own = cipher.inputs().iter().filter(|port| !port.uniform);
        let mut arguments: Vec<Vec<Wire>> =
            own.map(|port| b.input(&port.name, port.cells.len(), port.bits)).collect();
        if let Some(key) = self.key_schedule.inputs().first() {
            let k = b.uniform_input("key", key.cells.len(), key.bits);
            arguments.extend(b.call(&self.key_schedule, &[&k]));
        }
        let arguments: Vec<&[Wire]> = arguments.iter().map(Vec::as_slice).collect();
        let y = b.call(&cipher, &arguments).remove(0);
        b.output("block", &y);
        Some(b.finish())
    }
}

/// Made when it is first needed.
static CIPHERS: LazyLock<Vec<Cipher>> = LazyLock::new(|| {
    [
        aes::ciphers(),
        des::ciphers(),
        skinny::ciphers(),
        mantis::ciphers(),
        midori::ciphers(),
        craft::ciphers(),
        twine::ciphers(),
        piccolo::ciphers(),
        present::ciphers(),
        gift::ciphers(),
        wage::ciphers(),
    ]
    .concat()
});

/// All ciphers, in the order of their families.
pub fn all() -> Vec<Cipher> {
    CIPHERS.clone()
}

/// The cipher of this name, in any case of letters.
pub fn find(name: &str) -> Option<Cipher> {
    CIPHERS.iter().find(|c| c.name.eq_ignore_ascii_case(name)).cloned()
}
