//! What the servers evaluate, as Boolean circuits: so that every protocol runs them, one for gates alone
//! included.

use polyclave_cipher::{Builder, Circuit, boolean::expand, catalog};

use crate::encryption::Encryption;

/// The round keys of a key, of which the servers hold shares: `first` and `second`, to be added, to
/// `round_keys`.
pub fn round_keys(encryption: Encryption) -> Circuit {
    let schedule = catalog::find(encryption.name()).expect("the catalog has it").key_schedule;
    let key = &schedule.inputs()[0];
    let mut b = Builder::new("round keys");
    let [first, second] = ["first", "second"].map(|name| b.input(name, key.cells.len(), key.bits));
    let key = b.xor_each(&first, &second);
    let round_keys = b.call(&schedule, &[&key]).remove(0);
    b.output("round_keys", &round_keys);
    expand(&b.finish())
}

/// A block of a message: `counter`, `ciphertext` and `round_keys` to `readings`. Counter mode decrypts by
/// encrypting.
pub fn decryption(encryption: Encryption) -> Circuit {
    let cipher = catalog::find(encryption.name()).expect("the catalog has it").encrypt;
    let (block, keys) = (&cipher.inputs()[0], &cipher.inputs()[1]);
    let mut b = Builder::new("decryption");
    let [counter, ciphertext] =
        ["counter", "ciphertext"].map(|name| b.input(name, block.cells.len(), block.bits));
    let round_keys = b.input("round_keys", keys.cells.len(), keys.bits);
    let keystream = b.call(&cipher, &[&counter, &round_keys]).remove(0);
    let readings = b.xor_each(&keystream, &ciphertext);
    b.output("readings", &readings);
    expand(&b.finish())
}
