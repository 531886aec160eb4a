//! What is computed, by its name: a cipher, or the round keys of one.

use anyhow::{Result, ensure};
use polyclave_cipher::{Cipher, Circuit, Direction, catalog};

use crate::circuits::Form;

/// The suffix of a key schedule's name.
const KEY_SCHEDULE: &str = "-keyschedule";

/// A cipher or its key schedule.
#[derive(Clone)]
pub struct Target {
    /// The name on the command line.
    pub name: String,
    /// How the cipher is written.
    pub form: Form,
    /// The cipher.
    pub cipher: Cipher,
    /// Whether the round keys are the output.
    pub round_keys: bool,
}

impl Target {
    /// The target of a name, in upper or lower case; or an error that lists the ciphers.
    pub fn named(name: &str, form: Form) -> Result<Target> {
        let name = name.to_ascii_lowercase();
        let (cipher, round_keys) = match name.strip_suffix(KEY_SCHEDULE) {
            Some(cipher) => (form.cipher(cipher)?, true),
            None => (form.cipher(&name)?, false),
        };
        ensure!(
            !round_keys || cipher.key_bytes > 0,
            "{} is a permutation; it has no key and no round keys",
            cipher.name
        );
        Ok(Target { name, form, cipher, round_keys })
    }

    /// Whether the name is that of a cipher with a suffix, as in AES-128-GCM, or of an algorithm built on a
    /// permutation, as in WAGE-AEAD.
    pub fn is_mode(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let extends = |known: &str| name.strip_prefix(known).is_some_and(|rest| rest.starts_with('-'));
        catalog::all().iter().any(|c| extends(c.name.strip_suffix("-permutation").unwrap_or(&c.name)))
    }

    /// The directions in which this can run.
    pub fn directions(&self) -> Vec<Direction> {
        let all = [Direction::Encrypt, Direction::Decrypt];
        let possible = |d: &Direction| !self.round_keys && self.cipher.circuit(*d).is_some();
        all.into_iter().filter(possible).collect()
    }

    /// The circuit that is evaluated, or the one that contains the key schedule.
    pub fn circuit(&self, direction: Direction, with_key_schedule: bool) -> Option<Circuit> {
        match (self.round_keys, with_key_schedule) {
            (true, _) => Some((*self.cipher.key_schedule).clone()),
            (false, true) => self.cipher.circuit_with_key_schedule(direction),
            (false, false) => self.cipher.circuit(direction).map(|circuit| (*circuit).clone()),
        }
    }

    /// Checks that a key has the right size.
    pub fn check_key(&self, key: &[u8]) -> Result<()> {
        let (name, due, given) = (&self.cipher.name, self.cipher.key_bytes, key.len());
        ensure!(given == due, "the key of {name} has {due} bytes ({} hex digits), not {given}", 2 * due);
        Ok(())
    }

    /// The tweaks of some blocks, from one tweak for all of them or one for each.
    pub fn tweaks(&self, what: &str, tweak: &[u8], blocks: usize) -> Result<Vec<u8>> {
        let (name, due, given) = (&self.cipher.name, self.cipher.tweak_bytes, tweak.len());
        if given == due {
            return Ok(tweak.repeat(blocks));
        }
        ensure!(
            given == due * blocks,
            "{what} has {given} bytes; {name} takes a tweak of {due} bytes ({} hex digits), or one for each block",
            2 * due
        );
        Ok(tweak.to_vec())
    }

    /// Checks that bytes are whole blocks.
    pub fn check_blocks(&self, what: &str, blocks: &[u8]) -> Result<()> {
        let (name, block, given) = (&self.cipher.name, self.cipher.block_bytes, blocks.len());
        ensure!(
            given > 0 && given.is_multiple_of(block),
            "{what} has {given} bytes; {name} takes one or more blocks of {block} bytes ({} hex digits)",
            2 * block
        );
        Ok(())
    }
}
