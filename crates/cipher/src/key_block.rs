//! What surrounds the cipher in key blocks (ASC X9 TR 31-2018, ANSI X9.143), versions B and D, as circuits:
//! the plaintext of a block, its decryption in CBC, and comparisons with what everybody knows.
//!
//! The plaintext is the key's length in bits (two bytes), the key, and random bytes up to whole blocks. They
//! hide the length of the key: every key is padded as the longest of its algorithm.

use std::sync::Arc;

use crate::aes::{inverse_s_box, s_box};
use crate::key_cells::{constants, in_cells_of};
use crate::keyed::key_shape;
use crate::{Builder, Cipher, Circuit};

/// Bytes of the length before the key.
pub const LENGTH_BYTES: usize = 2;

/// Bytes of the longest key of AES, and of Triple DES.
const LONGEST: [usize; 2] = [32, 24];

/// Bytes of the plaintext for a key of a cipher, in blocks of `block` bytes.
pub fn plaintext_bytes(cipher: &Cipher, block: usize) -> usize {
    let [aes, des] = LONGEST;
    let longest = if cipher.name.starts_with("aes-") { aes } else { des };
    (LENGTH_BYTES + longest.max(cipher.key_bytes)).next_multiple_of(block)
}

/// What stands before a key of `bytes` bytes.
pub fn length(bytes: usize) -> [u8; LENGTH_BYTES] {
    (8 * bytes as u16).to_be_bytes()
}

/// The plaintext of a block for a key of `new`, in blocks of `kek`: `key` and `random` to `block 1`, `block
/// 2` .. . `random` has whole blocks, and its last bytes are taken.
///
/// Views of the blocks may be of anything, so the bytes of the key are looked up there and back, as in
/// [`key_cells`](crate::key_cells).
pub fn plaintext(kek: &Cipher, new: &Cipher) -> Circuit {
    let (block, (key_count, key_bits)) = (&kek.encrypt.inputs()[0], key_shape(new));
    let bytes = plaintext_bytes(new, kek.block_bytes);
    let blocks = bytes / kek.block_bytes;
    let mut b = Builder::new(&format!("{}-key-in-{blocks}-blocks-of-{}", new.name, kek.name));
    let key_cells = b.uniform_input("key", key_count, key_bits);
    let random = b.uniform_input("random", blocks * block.cells.len(), block.bits);

    let cells = if key_bits > 1 {
        let (there, back) = (b.table(&Arc::new(s_box())), b.table(&Arc::new(inverse_s_box())));
        let bytes = in_cells_of(&mut b, &key_cells, key_bits, 8);
        let hidden = b.lookup_each(there, &bytes);
        let bytes = b.lookup_each(back, &hidden);
        in_cells_of(&mut b, &bytes, 8, block.bits)
    } else {
        in_cells_of(&mut b, &key_cells, key_bits, block.bits)
    };
    let zero = b.xor(&[cells[0], cells[0]]);
    let length = constants(&length(new.key_bytes), block.bits);
    let mut plain: Vec<_> = length.iter().map(|c| b.xor_constant(&[zero], *c)).collect();
    plain.extend(cells);
    plain.extend_from_slice(&random[plain.len()..]);
    for (i, cells) in plain.chunks(block.cells.len()).enumerate() {
        b.output(&format!("block {}", i + 1), cells);
    }
    b.finish()
}

/// Decrypts a block of CBC: `block`, `previous` and `round_keys` to `plain`. `None` if the cipher has no
/// decryption.
pub fn decrypt(kek: &Cipher) -> Option<Circuit> {
    let decrypt = kek.decrypt.as_ref()?;
    let (block, keys) = (&decrypt.inputs()[0], &decrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-cbc-decrypt", kek.name));
    let cells = b.input("block", block.cells.len(), block.bits);
    let previous = b.input("previous", block.cells.len(), block.bits);
    let round_keys = b.uniform_input("round_keys", keys.cells.len(), keys.bits);
    let out = b.call(decrypt, &[&cells, &round_keys]).remove(0);
    let plain = b.xor_each(&out, &previous);
    b.output("plain", &plain);
    Some(b.finish())
}

/// Compares the first bytes of two blocks of a cipher: `block` and `expected` to `check`, 16 bytes in cells
/// of `bits` bits that are all zeros if and only if they are equal.
pub fn difference(kek: &Cipher, bytes: usize, bits: u8) -> Circuit {
    let block = &kek.encrypt.inputs()[0];
    let mut b = Builder::new(&format!("{}-difference-of-{bytes}-bytes", kek.name));
    let cells = b.input("block", block.cells.len(), block.bits);
    let expected = b.input("expected", block.cells.len(), block.bits);
    let compared = 8 * bytes / usize::from(block.bits);
    let difference = b.xor_each(&cells[..compared], &expected[..compared]);
    let check: Vec<_> = difference.iter().copied().cycle().take(128 / usize::from(block.bits)).collect();
    let check = in_cells_of(&mut b, &check, block.bits, bits);
    b.output("check", &check);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, boolean, catalog, cleartext, compile};

    fn cipher(name: &str) -> Cipher {
        catalog::find(name).expect("the catalog has it")
    }

    #[test]
    fn the_plaintext_is_length_key_and_random_bytes_whatever_the_cells() {
        for (kek, new, bytes) in [
            ("aes-256", "aes-128", 48),
            ("aes-128", "aes-256", 48),
            ("aes-128", "3des-ede2", 32),
            ("3des-ede3", "3des-ede3", 32),
            ("3des-ede2", "des", 32),
        ] {
            for bits in [cipher as fn(&str) -> Cipher, |name| boolean::expanded(cipher(name))] {
                let (kek, new) = (bits(kek), bits(new));
                let key: Vec<u8> = (0..new.key_bytes).map(|i| (i * 91) as u8 ^ 0x3c).collect();
                let random: Vec<u8> = (0..bytes).map(|i| (i * 17) as u8 ^ 0xc5).collect();
                let circuit = plaintext(&kek, &new);
                let inputs: Vec<Cells> = circuit
                    .inputs()
                    .iter()
                    .zip([&key, &random])
                    .map(|(port, bytes)| {
                        Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole")
                    })
                    .collect();
                let blocks = cleartext::run(&compile(&circuit, &AnyMap), 1, &inputs).expect("they fit");
                let plain: Vec<u8> = blocks.iter().flat_map(Cells::to_blocks).collect();
                let length = length(key.len());
                let rest = &random[2 + key.len()..];
                assert_eq!(plain, [&length[..], &key, rest].concat(), "{} in {}", new.name, kek.name);
            }
        }
    }

    #[test]
    fn only_the_compared_bytes_make_a_difference() {
        for (name, bytes, bits) in
            [("aes-128", 16, 8), ("aes-128", 2, 8), ("3des-ede3", 8, 8), ("3des-ede3", 2, 1)]
        {
            let cipher = cipher(name);
            let circuit = compile(&difference(&cipher, bytes, bits), &AnyMap);
            let (block, port) = (cipher.block_bytes, &cipher.encrypt.inputs()[0]);
            let cells = |bytes: &[u8]| Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole");
            let value = vec![0x5a; block];
            for bit in 0..8 * block {
                let mut other = value.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                let check = cleartext::run(&circuit, 1, &[cells(&value), cells(&other)]).expect("they fit");
                let check = check[0].to_blocks();
                assert_eq!((check.len(), check.iter().any(|b| *b != 0)), (16, bit / 8 < bytes));
            }
            let check = cleartext::run(&circuit, 1, &[cells(&value), cells(&value)]).expect("they fit");
            assert_eq!(check[0].to_blocks(), [0; 16]);
        }
    }
}
