//! What everybody who runs a command knows of it.

use polyclave_cipher::{Cipher, Circuit};

use crate::Purpose;

/// What is known of a key that a request names.
#[derive(Clone, Copy, Debug)]
pub struct KeyFacts<'a> {
    /// What it is for.
    pub purpose: Purpose,
    /// Its cipher, in the form in which nodes evaluate it.
    pub cipher: &'a Cipher,
}

/// What one of the keys of a command does in it.
#[derive(Clone, Copy, Debug)]
pub struct Role {
    /// For messages: "incoming PIN key".
    pub name: &'static str,
    /// The purposes that fit.
    pub takes: fn(&Purpose) -> bool,
}

/// A command, as those see it who check, evaluate and count it.
///
/// # The circuit
/// Inputs, in this order: `round_keys 1`, `round_keys 2` .. , one for each key, uniform, with the cells of
/// the cipher's round keys; `public`, cells of one bit in each lane; `random`, cells of one bit in each lane,
/// left out if the command needs none. Outputs: `check`, 16 bytes in cells of `element_bits` bits, all zeros
/// if and only if the command may answer, left out if there is no condition; `answer`, bytes in cells of
/// `element_bits` bits, left out if the answer is yes or no. Nothing else is ever opened.
///
/// `element_bits` is 8, or 1 for protocols that evaluate Boolean circuits: then every table is an AND.
pub trait Payment {
    /// For logs and metrics: `verify-pin`.
    fn kind(&self) -> &'static str;

    /// Its keys, in the order of the request's keys.
    fn roles(&self) -> Vec<Role>;

    /// Checks everything that is public: the purposes and ciphers of the keys, lengths, digits, pairs of
    /// formats, KSNs. Nothing of this is secret, so the text may say it.
    fn check(&self, keys: &[KeyFacts<'_>]) -> Result<(), String>;

    /// Which of its keys count it if it does not hold, by their places: all whose data take part in a
    /// condition. None if it has no condition. Not only verifications have one: a PIN that is translated
    /// shows by failing that its block was not well formed.
    fn counted(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Whether it makes something for a card or its holder, which takes another right than checking.
    fn issues(&self) -> bool {
        false
    }

    /// Names its circuit. Two commands with the same name and with keys of the same ciphers and purposes have
    /// the same circuit, so they can run together as lanes.
    fn circuit_name(&self, keys: &[KeyFacts<'_>]) -> String;

    /// The circuit. The command must have passed [`Payment::check`].
    fn circuit(&self, keys: &[KeyFacts<'_>], element_bits: u8) -> Circuit;

    /// The bytes of `public` in one lane, always as long as the port.
    fn public(&self, keys: &[KeyFacts<'_>]) -> Vec<u8>;

    /// Bytes of `random` in one lane.
    fn random_bytes(&self) -> usize {
        0
    }

    /// Blocks that each key pays for one command. What derived keys compute is paid by the key from which
    /// they come.
    fn blocks(&self, keys: &[KeyFacts<'_>]) -> Vec<u64>;
}

/// Whether keys have the purposes of the roles, and ciphers that fit their purposes.
pub(crate) fn check_roles(roles: &[Role], keys: &[KeyFacts<'_>]) -> Result<(), String> {
    if roles.len() != keys.len() {
        return Err(format!("the command takes {} keys, {} were given", roles.len(), keys.len()));
    }
    for (role, key) in roles.iter().zip(keys) {
        if !(role.takes)(&key.purpose) {
            return Err(format!("a key for {} is no {}", key.purpose, role.name));
        }
        key.purpose.check(key.cipher)?;
    }
    Ok(())
}
