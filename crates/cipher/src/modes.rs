//! Circuits of modes of operation around a block cipher, for the modes in which values stay shared between
//! blocks.
//!
//! Counter mode and CBC decryption need no circuit here, because what they add to a block is public or
//! belongs to the client.

pub mod gcm_siv;
mod maps;

use crate::{Builder, Cipher, Circuit, Wire};

use maps::mapped;
pub use maps::{alone, beginning, doubled_block, overlapping};

/// Encrypts the sum of a message block and the block before (CBC, SP 800-38A, section 6.2; CBC-MAC):
/// `message`, `chain` and `round_keys` to `block`.
pub fn chain(cipher: &Cipher) -> Circuit {
    let (block, keys) = (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-chain", cipher.name));
    let message = b.input("message", block.cells.len(), block.bits);
    let chain = b.input("chain", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let sum = sums(&mut b, &[&message, &chain]);
    let y = b.call(&cipher.encrypt, &[&sum, &round_keys]).remove(0);
    b.output("block", &y);
    b.finish()
}

/// The last block of CMAC (SP 800-38B, section 6.2, steps 4 to 6): `message`, `chain`, `subkey` and
/// `round_keys` to `block`.
pub fn last_of_cmac(cipher: &Cipher) -> Circuit {
    let (block, keys) = (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-last-of-cmac", cipher.name));
    let mut parts = Vec::new();
    for name in ["message", "chain", "subkey"] {
        parts.push(b.input(name, block.cells.len(), block.bits));
    }
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let sum = sums(&mut b, &parts.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let y = b.call(&cipher.encrypt, &[&sum, &round_keys]).remove(0);
    b.output("block", &y);
    b.finish()
}

/// The values that a key's modes take from E(0), given a block of zeros: `zero` and `round_keys` to
/// `hash_key` (E(0), the hash key of GCM), `k1` and `k2` (the subkeys of CMAC, SP 800-38B, section 6.1).
pub fn subkeys(cipher: &Cipher) -> Circuit {
    subkeys_with(cipher, "subkeys", |b, cells, bits| b.uniform_input("round_keys", cells, bits)).0.finish()
}

/// [`subkeys`] and [`check_value`] of many keys, one a lane: `zero` and `round_keys` to `hash_key`, `k1`,
/// `k2` and `check_value`. E(0) is computed once for all of them.
pub fn subkeys_and_check_values(cipher: &Cipher) -> Circuit {
    let round_keys = |b: &mut Builder, cells, bits| b.input("round_keys", cells, bits);
    let (mut b, Subkeys { round_keys, k1 }) = subkeys_with(cipher, "subkeys-and-check-values", round_keys);
    let y = b.call(&cipher.encrypt, &[&k1, &round_keys]).remove(0);
    output_check_value(&mut b, cipher, &y);
    b.finish()
}

fn subkeys_with(
    cipher: &Cipher,
    name: &str,
    round_keys: impl FnOnce(&mut Builder, usize, u8) -> Vec<Wire>,
) -> (Builder, Subkeys) {
    let (block, keys) = (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-{name}", cipher.name));
    let zero = b.input("zero", block.cells.len(), block.bits);
    let round_keys = round_keys(&mut b, keys.cells.len(), keys.bits);
    let l = b.call(&cipher.encrypt, &[&zero, &round_keys]).remove(0);
    let k1 = doubled(&mut b, cipher, &l, 1);
    let k2 = doubled(&mut b, cipher, &l, 2);
    b.output("hash_key", &l);
    b.output("k1", &k1);
    b.output("k2", &k2);
    (b, Subkeys { round_keys, k1 })
}

/// What more is computed from.
struct Subkeys {
    round_keys: Vec<Wire>,
    k1: Vec<Wire>,
}

/// The check value of a key, given a block of zeros: the first bytes of the CMAC of one block of zeros (ANSI
/// X9.24-1 takes CMAC for AES keys). `zero` and `round_keys` to `check_value`, which has
/// [`check_value_bytes`]. Not E(0), which is the hash key of GCM and what CMAC's subkeys come from; and not
/// more bytes, which would be a forged CMAC. A cipher that takes a tweak has one of zeros there; tweaks have
/// the shape of a block.
pub fn check_value(cipher: &Cipher) -> Circuit {
    check_value_with(cipher, "check-value", |b, cells, bits| b.uniform_input("round_keys", cells, bits))
}

/// The check values of many keys, one a lane: [`check_value`] with other `round_keys` in each lane.
pub fn check_values(cipher: &Cipher) -> Circuit {
    check_value_with(cipher, "check-values", |b, cells, bits| b.input("round_keys", cells, bits))
}

fn check_value_with(
    cipher: &Cipher,
    name: &str,
    round_keys: impl FnOnce(&mut Builder, usize, u8) -> Vec<Wire>,
) -> Circuit {
    let (block, keys) =
        (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[cipher.encrypt.inputs().len() - 1]);
    let mut b = Builder::new(&format!("{}-{name}", cipher.name));
    let zero = b.input("zero", block.cells.len(), block.bits);
    let round_keys = round_keys(&mut b, keys.cells.len(), keys.bits);
    let encrypted = |b: &mut Builder, block: &[Wire]| match cipher.tweak_bytes {
        0 => b.call(&cipher.encrypt, &[block, &round_keys]).remove(0),
        _ => b.call(&cipher.encrypt, &[block, &zero, &round_keys]).remove(0),
    };
    let l = encrypted(&mut b, &zero);
    let k1 = doubled(&mut b, cipher, &l, 1);
    let y = encrypted(&mut b, &k1);
    output_check_value(&mut b, cipher, &y);
    b.finish()
}

/// The first bytes of a block.
fn output_check_value(b: &mut Builder, cipher: &Cipher, block: &[Wire]) {
    let cells = 8 * check_value_bytes(cipher) / usize::from(cipher.encrypt.inputs()[0].bits);
    b.output("check_value", &block[..cells]);
}

/// The first [`ENCRYPTED_ZEROS`] bytes of E(0), given a block of zeros: `zero` and `round_keys` to
/// `check_value`. Older systems take them for a check value. They are bytes of the hash key of GCM, and of
/// what CMAC's subkeys come from.
pub fn encrypted_zeros(cipher: &Cipher) -> Circuit {
    let (block, keys) = (&cipher.encrypt.inputs()[0], &cipher.encrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-encrypted-zeros", cipher.name));
    let zero = b.input("zero", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let out = b.call(&cipher.encrypt, &[&zero, &round_keys]).remove(0);
    b.output("check_value", &out[..8 * ENCRYPTED_ZEROS / usize::from(block.bits)]);
    b.finish()
}

/// Bytes of a check value by the encryption of zeros.
pub const ENCRYPTED_ZEROS: usize = 3;

/// 5 for blocks of 16 bytes, 3 for smaller ones.
pub fn check_value_bytes(cipher: &Cipher) -> usize {
    if cipher.block_bytes >= 16 { 5 } else { 3 }
}

fn sums(b: &mut Builder, parts: &[&[Wire]]) -> Vec<Wire> {
    (0..parts[0].len()).map(|i| b.xor(&parts.iter().map(|part| part[i]).collect::<Vec<_>>())).collect()
}

/// x^times l in GF(2^n), first bit first: SP 800-38B, section 6.1, steps 2 and 3. Written from `l` itself for
/// both subkeys, so that every map is one of E's last lookups.
fn doubled(b: &mut Builder, cipher: &Cipher, l: &[Wire], times: usize) -> Vec<Wire> {
    let bits = cipher.encrypt.inputs()[0].bits;
    let width = usize::from(bits);
    let n = l.len() * width;
    let polynomial: u8 = if n == 128 { 0x87 } else { 0x1b };
    // Bit i of the block, counted from the first, is a sum of bits of l.
    let mut sources: Vec<Vec<usize>> = (0..n).map(|i| vec![i]).collect();
    for _ in 0..times {
        let first = sources.remove(0);
        sources.push(Vec::new());
        for (power, source) in sources.iter_mut().rev().take(8).enumerate() {
            if polynomial >> power & 1 == 1 {
                source.extend(&first);
            }
        }
    }
    mapped(b, l, bits, &sources)
}

#[cfg(test)]
mod tests {
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    use super::*;

    /// L, K1 and K2 of SP 800-38B, appendix D.1 (AES-128) and D.4 (Triple DES with three keys).
    #[test]
    fn subkeys_are_those_of_the_standard() {
        let aes = "2b7e151628aed2a6abf7158809cf4f3c";
        let l = ["7df76b0c1ab899b33e42f047b91b546f", "fbeed618357133667c85e08f7236a8de"];
        check("aes-128", aes, [l[0], l[1], "f7ddac306ae266ccf90bc11ee46d513b"]);
        let des = "8aa83bf8cbda10620bc1bf19fbb6cd58bc313d4a371ca8b5";
        check("3des-ede3", des, ["c8cc74e98a7329a2", "9198e9d314e6535f", "2331d3a629cca6a5"]);
    }

    /// Whatever the width of cells: K1 and K2 are L doubled once and twice.
    #[test]
    fn subkeys_of_every_cipher_are_doubled() {
        for cipher in catalog::all().into_iter().filter(|c| c.key_bytes > 0 && c.tweak_bytes == 0) {
            let key: String = (0..cipher.key_bytes).map(|i| format!("{:02x}", 37 * i % 251)).collect();
            let (round_keys, zero) = expanded(&cipher, &key);
            let compiled = compile(&subkeys(&cipher), &AnyMap);
            let inputs = [zero, round_keys];
            let values = cleartext::run(&compiled, 1, &inputs).expect("they fit");
            let [l, k1, k2] = [0, 1, 2].map(|i| {
                values[i].to_blocks().iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte))
            });
            let bits = 8 * cipher.block_bytes;
            let polynomial = if bits == 128 { 0x87 } else { 0x1b };
            let double = |x: u128| {
                x << 1 & u128::MAX >> (128 - bits) ^ if x >> (bits - 1) == 1 { polynomial } else { 0 }
            };
            assert_eq!((k1, k2), (double(l), double(double(l))), "{}", cipher.name);
            let run =
                |circuit: &Circuit| cleartext::run(&compile(circuit, &AnyMap), 1, &inputs).expect("they fit");
            let apart = [run(&subkeys(&cipher)), run(&check_value(&cipher))].concat();
            assert!(run(&subkeys_and_check_values(&cipher)) == apart, "{}", cipher.name);
            assert_eq!(
                check_value(&cipher).outputs()[0].cells.len() * usize::from(values[0].bits()),
                8 * check_value_bytes(&cipher)
            );
        }
    }

    /// The CMAC of a block of zeros, computed by another implementation.
    #[test]
    fn check_value_is_the_beginning_of_a_cmac() {
        let cipher = catalog::find("aes-128").expect("it is there");
        let (round_keys, zero) = expanded(&cipher, "2b7e151628aed2a6abf7158809cf4f3c");
        let compiled = compile(&check_value(&cipher), &AnyMap);
        let value = cleartext::run(&compiled, 1, &[zero, round_keys]).expect("they fit").remove(0);
        let key = hex::decode("2b7e151628aed2a6abf7158809cf4f3c").expect("hexadecimal");
        let mut mac = <cmac::Cmac<aes::Aes128> as cmac::KeyInit>::new_from_slice(&key).expect("16 bytes");
        cmac::Mac::update(&mut mac, &[0; 16]);
        assert_eq!(value.to_blocks(), cmac::Mac::finalize(mac).into_bytes()[..5]);
    }

    fn expanded(cipher: &Cipher, key: &str) -> (Cells, Cells) {
        let port = &cipher.key_schedule.inputs()[0];
        let key = hex::decode(key).expect("it is hexadecimal");
        let key = Cells::from_blocks(port.cells.len(), port.bits, &key).expect("it fits");
        let compiled = compile(&cipher.key_schedule, &AnyMap);
        let round_keys = cleartext::run(&compiled, 1, &[key]).expect("it fits").remove(0);
        let block = &cipher.encrypt.inputs()[0];
        (round_keys, Cells::zero(block.cells.len(), block.bits, 1))
    }

    fn check(cipher: &str, key: &str, expected: [&str; 3]) {
        let cipher = catalog::find(cipher).expect("it is there");
        let (round_keys, zero) = expanded(&cipher, key);
        let compiled = compile(&subkeys(&cipher), &AnyMap);
        let values = cleartext::run(&compiled, 1, &[zero, round_keys]).expect("they fit");
        for (value, expected) in values.iter().zip(expected) {
            assert_eq!(hex::encode(value.to_blocks()), expected, "{}", cipher.name);
        }
    }
}
