//! Key wrapping with AES: KW (RFC 3394; SP 800-38F, section 6.2) and KWP (RFC 5649; SP 800-38F, section 6.3),
//! as circuits.
//!
//! A register A, R_1 .. R_n of halves of blocks is mixed by 6 n encryptions, one after the other: A and R_i
//! are encrypted, and the number of the step is added to A. A begins with a value that unwrapping compares: a
//! constant, and in KWP the number of bytes. KWP fills the last half up with zeros, and a register of one
//! half is one encrypted block.
//!
//! The bytes of the key are public in number only. So everything that unwrapping has to compare is known
//! before it begins, KWP's length and zeros included, and is compared at once: `check` is all zeros if and
//! only if the wrapped key is authentic.

use crate::key_cells::{constants, in_cells_of};
use crate::{Builder, Cipher, Circuit, Wire};

/// Bytes of half a block.
const HALF: usize = 8;

/// What the register begins with in KW (RFC 3394, section 2.2.3.1).
const KW: [u8; HALF] = [0xa6; HALF];
/// The first half of what it begins with in KWP (RFC 5649, section 3).
const KWP: [u8; 4] = [0xa6, 0x59, 0x59, 0xa6];

/// How a key is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// KW: keys of 16 bytes and more, in whole halves.
    None,
    /// KWP: keys of any length.
    Zeros,
}

/// The register of a key of some bytes.
struct Register {
    bytes: usize,
    padding: Padding,
}

impl Register {
    fn halves(&self) -> usize {
        self.bytes.div_ceil(HALF)
    }

    /// What A begins with.
    fn initial(&self) -> [u8; HALF] {
        match self.padding {
            Padding::None => KW,
            Padding::Zeros => {
                let len = (self.bytes as u32).to_be_bytes();
                std::array::from_fn(|i| if i < KWP.len() { KWP[i] } else { len[i - KWP.len()] })
            }
        }
    }

    /// The places of the steps, first to last: the number of the step and the half that it changes.
    fn steps(&self) -> Vec<(u64, usize)> {
        let n = self.halves();
        (0..6 * n).map(|step| (step as u64 + 1, step % n)).collect()
    }
}

/// Whether a key of some bytes can be wrapped so.
pub fn takes(padding: Padding, bytes: usize) -> bool {
    match padding {
        Padding::None => bytes >= 2 * HALF && bytes.is_multiple_of(HALF),
        Padding::Zeros => bytes > 0,
    }
}

/// Bytes of a wrapped key of some bytes.
pub fn wrapped_bytes(bytes: usize) -> usize {
    HALF + bytes.next_multiple_of(HALF)
}

/// Blocks that wrapping or unwrapping a key of some bytes takes.
pub fn blocks(padding: Padding, bytes: usize) -> u64 {
    match (padding, bytes.div_ceil(HALF)) {
        (Padding::Zeros, 1) => 1,
        (_, halves) => 6 * halves as u64,
    }
}

/// Wraps a key of `bytes` bytes in `count` cells of `bits` bits: `key` and `round_keys` to `wrapped`. `kek`
/// is AES.
pub fn wrap(kek: &Cipher, padding: Padding, bytes: usize, (count, bits): (usize, u8)) -> Circuit {
    let register = Register { bytes, padding };
    let (block, round_keys) = (&kek.encrypt.inputs()[0], &kek.encrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-wrap-{padding:?}-{bytes}x{bits}", kek.name));
    let key = b.uniform_input("key", count, bits);
    let round_keys = b.uniform_input("round_keys", round_keys.cells.len(), round_keys.bits);
    let half = block.cells.len() / 2;

    let mut cells = in_cells_of(&mut b, &key, bits, block.bits);
    let zero = b.xor(&[cells[0], cells[0]]);
    cells.resize(half * register.halves(), zero);
    let initial = constants(&register.initial(), block.bits);
    let mut a: Vec<Wire> = initial.iter().map(|c| b.xor_constant(&[zero], *c)).collect();
    let encrypted = |b: &mut Builder, a: &[Wire], r: &[Wire]| {
        b.call(&kek.encrypt, &[&[a, r].concat(), &round_keys]).remove(0)
    };
    if blocks(padding, bytes) == 1 {
        let wrapped = encrypted(&mut b, &a, &cells);
        b.output("wrapped", &wrapped);
        return b.finish();
    }
    for (step, i) in register.steps() {
        let block_out = encrypted(&mut b, &a, &cells[half * i..][..half]);
        a = plus(&mut b, &block_out[..half], &constants(&step.to_be_bytes(), block.bits));
        cells[half * i..][..half].copy_from_slice(&block_out[half..]);
    }
    b.output("wrapped", &[a, cells].concat());
    b.finish()
}

/// Unwraps a key of `bytes` bytes: `wrapped` and `round_keys` to `check`, a block that is all zeros if the
/// wrapped key is authentic, and `key`, its bytes in the cells of `kek`, filled up to whole halves. `None` if
/// the cipher has no decryption.
pub fn unwrap(kek: &Cipher, padding: Padding, bytes: usize) -> Option<Circuit> {
    let register = Register { bytes, padding };
    let decrypt = kek.decrypt.as_ref()?;
    let (block, round_keys) = (&decrypt.inputs()[0], &decrypt.inputs()[1]);
    let mut b = Builder::new(&format!("{}-unwrap-{padding:?}-{bytes}", kek.name));
    let half = block.cells.len() / 2;
    let wrapped = b.uniform_input("wrapped", half * (register.halves() + 1), block.bits);
    let round_keys = b.uniform_input("round_keys", round_keys.cells.len(), round_keys.bits);

    let (mut a, mut cells) = (wrapped[..half].to_vec(), wrapped[half..].to_vec());
    let decrypted =
        |b: &mut Builder, a: &[Wire], r: &[Wire]| b.call(decrypt, &[&[a, r].concat(), &round_keys]).remove(0);
    if blocks(padding, bytes) == 1 {
        let out = decrypted(&mut b, &a, &cells);
        (a, cells) = (out[..half].to_vec(), out[half..].to_vec());
    } else {
        for (step, i) in register.steps().into_iter().rev() {
            let counted = plus(&mut b, &a, &constants(&step.to_be_bytes(), block.bits));
            let out = decrypted(&mut b, &counted, &cells[half * i..][..half]);
            a = out[..half].to_vec();
            cells[half * i..][..half].copy_from_slice(&out[half..]);
        }
    }
    let difference = plus(&mut b, &a, &constants(&register.initial(), block.bits));
    let zeros = &cells[8 * bytes / usize::from(block.bits)..];
    // A whole block; the difference fills it up once more.
    let check: Vec<Wire> =
        difference.iter().chain(zeros).chain(&difference).copied().take(block.cells.len()).collect();
    b.output("check", &check);
    b.output("key", &cells);
    Some(b.finish())
}

fn plus(b: &mut Builder, cells: &[Wire], constants: &[u8]) -> Vec<Wire> {
    cells.iter().zip(constants).map(|(cell, c)| b.xor_constant(&[*cell], *c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    fn bytes(text: &str) -> Vec<u8> {
        hex::decode(text).expect("hexadecimal")
    }

    fn round_keys(kek: &Cipher, key: &[u8]) -> Cells {
        let compiled = compile(&kek.key_schedule, &AnyMap);
        let port = &kek.key_schedule.inputs()[0];
        let key = Cells::from_blocks(port.cells.len(), port.bits, key).expect("a key");
        cleartext::run(&compiled, 1, &[key]).expect("it fits").remove(0)
    }

    fn wrapped(kek: &Cipher, kek_bytes: &[u8], padding: Padding, key: &[u8], bits: u8) -> Vec<u8> {
        let count = 8 * key.len() / usize::from(bits);
        let circuit = compile(&wrap(kek, padding, key.len(), (count, bits)), &AnyMap);
        let key = Cells::from_blocks(count, bits, key).expect("whole");
        let out = cleartext::run(&circuit, 1, &[key, round_keys(kek, kek_bytes)]).expect("they fit");
        out[0].to_blocks()
    }

    /// The key, if the check is zero.
    fn unwrapped(
        kek: &Cipher,
        kek_bytes: &[u8],
        padding: Padding,
        wrapped: &[u8],
        len: usize,
    ) -> Option<Vec<u8>> {
        let circuit = compile(&unwrap(kek, padding, len).expect("AES decrypts"), &AnyMap);
        let bits = kek.encrypt.inputs()[0].bits;
        let cells = Cells::from_blocks(8 * wrapped.len() / usize::from(bits), bits, wrapped).expect("whole");
        let out = cleartext::run(&circuit, 1, &[cells, round_keys(kek, kek_bytes)]).expect("they fit");
        assert_eq!(out[0].to_blocks().len(), 16);
        let authentic = out[0].to_blocks().iter().all(|byte| *byte == 0);
        authentic.then(|| out[1].to_blocks()[..len].to_vec())
    }

    const COUNTING: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const DATA: &str = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f";

    /// How, the key that wraps, the key, and the key wrapped.
    type Known = (Padding, Vec<u8>, Vec<u8>, Vec<u8>);

    /// RFC 3394, sections 4.1 to 4.6, and RFC 5649, section 6.
    fn known() -> Vec<Known> {
        let kw = [
            (16, 16, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"),
            (24, 16, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"),
            (32, 16, "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"),
            (24, 24, "031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2"),
            (32, 24, "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"),
            (32, 32, "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"),
        ];
        let kw = kw.map(|(kek, key, wrapped)| {
            (Padding::None, bytes(COUNTING)[..kek].to_vec(), bytes(DATA)[..key].to_vec(), bytes(wrapped))
        });
        let kek = bytes("5840df6e29b02af1ab493b705bf16ea1ae8338f4dcc176a8");
        let kwp = [
            (
                "c37b7e6492584340bed12207808941155068f738",
                "138bdeaa9b8fa7fc61f97742e72248ee5ae6ae5360d1ae6a5f54f373fa543b6a",
            ),
            ("466f7250617369", "afbeb0f07dfbf5419200f2ccb50bb24f"),
        ];
        let kwp = kwp.map(|(key, wrapped)| (Padding::Zeros, kek.clone(), bytes(key), bytes(wrapped)));
        kw.into_iter().chain(kwp).collect()
    }

    #[test]
    fn published_vectors_are_wrapped_and_unwrapped_whatever_the_cells() {
        for (padding, kek_bytes, key, expected) in known() {
            let aes = catalog::find(&format!("aes-{}", 8 * kek_bytes.len())).expect("it is there");
            for kek in [aes.clone(), crate::boolean::expanded(aes)] {
                for bits in [1, 4, 8] {
                    assert_eq!(wrapped(&kek, &kek_bytes, padding, &key, bits), expected, "{bits} bits");
                }
                assert_eq!(unwrapped(&kek, &kek_bytes, padding, &expected, key.len()).as_ref(), Some(&key));
            }
            assert_eq!(wrapped_bytes(key.len()), expected.len());
        }
    }

    #[test]
    fn a_changed_bit_another_length_and_another_padding_do_not_authenticate() {
        for (padding, kek_bytes, key, wrapped) in known() {
            let kek = catalog::find(&format!("aes-{}", 8 * kek_bytes.len())).expect("it is there");
            for bit in (0..8 * wrapped.len()).step_by(7) {
                let mut changed = wrapped.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(unwrapped(&kek, &kek_bytes, padding, &changed, key.len()), None, "bit {bit}");
            }
            let other = match padding {
                Padding::None => Padding::Zeros,
                Padding::Zeros => Padding::None,
            };
            if blocks(other, key.len()) == blocks(padding, key.len()) {
                assert_eq!(unwrapped(&kek, &kek_bytes, other, &wrapped, key.len()), None);
            }
            if padding == Padding::Zeros {
                for len in (key.len() - 2..key.len() + 2).filter(|len| *len != key.len()) {
                    if wrapped_bytes(len) == wrapped.len() {
                        assert_eq!(unwrapped(&kek, &kek_bytes, padding, &wrapped, len), None, "{len} bytes");
                    }
                }
            }
        }
    }

    /// The length is right and what fills the last half up is not zero: made by KW's steps with KWP's
    /// beginning.
    #[test]
    fn every_byte_of_the_padding_is_compared() {
        let kek = catalog::find("aes-128").expect("it is there");
        let kek_bytes = [7; 16];
        for at in 10..16 {
            let mut filled = [[3; 10].as_slice(), &[0; 6]].concat();
            filled[at] = 1;
            let aes = compile(&kek.encrypt, &AnyMap);
            let keys = round_keys(&kek, &kek_bytes);
            let (mut a, mut r) = (vec![0xa6, 0x59, 0x59, 0xa6, 0, 0, 0, 10], filled);
            for step in 0..12usize {
                let half = 8 * (step % 2)..8 * (step % 2) + 8;
                let block = Cells::from_blocks(16, 8, &[&a[..], &r[half.clone()]].concat()).expect("a block");
                let out = cleartext::run(&aes, 1, &[block, keys.clone()]).expect("it fits")[0].to_blocks();
                a = out[..8].to_vec();
                a[7] ^= step as u8 + 1;
                r[half].copy_from_slice(&out[8..]);
            }
            let wrapped = [a, r].concat();
            assert_eq!(unwrapped(&kek, &kek_bytes, Padding::Zeros, &wrapped, 10), None, "byte {at}");
        }
    }
}
