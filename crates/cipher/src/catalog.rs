//! Every cipher by its name.

use std::sync::Arc;

use crate::{Builder, Circuit, aes, des};

/// A block cipher as three circuits.
#[derive(Clone, Debug)]
pub struct Cipher {
    /// In lower case, as the command line takes it.
    pub name: String,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// `key` to `round_keys`, the same for all lanes.
    pub key_schedule: Arc<Circuit>,
    /// `block` and `round_keys` to `block`.
    pub encrypt: Arc<Circuit>,
    /// The inverse, of the same shape, where the cipher has one.
    pub decrypt: Option<Arc<Circuit>>,
}

/// Which way a cipher runs.
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

    /// The circuit for one direction with the key schedule in it: `block` and `key` to `block`.
    pub fn circuit_with_key_schedule(&self, direction: Direction) -> Option<Circuit> {
        let cipher = self.circuit(direction)?;
        let mut b = Builder::new(&format!("{}-with-keyschedule", cipher.name()));
        let (block, key) = (&cipher.inputs()[0], &self.key_schedule.inputs()[0]);
        let x = b.input("block", block.cells.len(), block.bits);
        let k = b.uniform_input("key", key.cells.len(), key.bits);
        let round_keys = b.call(&self.key_schedule, &[&k]).remove(0);
        let y = b.call(&cipher, &[&x, &round_keys]).remove(0);
        b.output("block", &y);
        Some(b.finish())
    }
}

/// All ciphers, in the order of their families.
pub fn all() -> Vec<Cipher> {
    [aes::ciphers(), des::ciphers()].concat()
}

/// The cipher of this name, in any case of letters.
pub fn find(name: &str) -> Option<Cipher> {
    all().into_iter().find(|c| c.name.eq_ignore_ascii_case(name))
}
