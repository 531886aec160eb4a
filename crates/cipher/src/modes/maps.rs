//! Linear maps of blocks for modes whose blocks stay shared: parts of blocks, and products by x. Blocks have
//! 16 bytes, and cells of 1 or 8 bits, as those of AES in its two forms have.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::doubled;
use crate::aes::{inverse_s_box, s_box};
use crate::{Builder, Cipher, Circuit, Matrix, Wire};

/// Bytes of a block.
const BLOCK: usize = 16;

/// Cells whose bits are sums of bits of other cells: bit i, from the first of a block, is the sum of the bits
/// `sources[i]`.
pub(super) fn mapped(b: &mut Builder, cells: &[Wire], bits: u8, sources: &[Vec<usize>]) -> Vec<Wire> {
    let width = usize::from(bits);
    let one = |b: &mut Builder, sources: &[Vec<usize>]| {
        let mut columns = BTreeMap::<usize, Vec<u8>>::new();
        for (at, source) in sources.iter().enumerate() {
            for from in source {
                let column = &mut columns.entry(from / width).or_insert_with(|| vec![0; width])
                    [width - 1 - from % width];
                *column ^= 1 << (width - 1 - at);
            }
        }
        let map = |(from, columns): (usize, Vec<u8>)| (cells[from], Matrix::from_columns(&columns, bits));
        let terms: Vec<_> = columns.into_iter().map(map).collect();
        match terms.is_empty() {
            true => b.xor(&[cells[0], cells[0]]),
            false => b.linear(terms, 0),
        }
    };
    sources.chunks(width).map(|sources| one(b, sources)).collect()
}

/// Where the bits of a block come from, if its bytes are bytes of another one: `None` is a byte of zeros.
fn bytes_from(source: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
    (0..8 * BLOCK).map(|bit| source(bit / 8).map(|byte| 8 * byte + bit % 8).into_iter().collect()).collect()
}

/// A block of a cipher, as the input of a new circuit.
fn begin(cipher: &Cipher, name: &str) -> (Builder, Vec<Wire>, u8) {
    let port = &cipher.encrypt.inputs()[0];
    let mut b = Builder::new(&format!("{}-{name}", cipher.name));
    let block = b.input("block", port.cells.len(), port.bits);
    (b, block, port.bits)
}

/// The first bytes of a block, zeros instead of the others, and another block added to it: `block` and
/// `other` to `sum`.
pub fn beginning(cipher: &Cipher, bytes: usize) -> Circuit {
    let (mut b, block, bits) = begin(cipher, &format!("first-{bytes}-bytes"));
    let other = b.input("other", block.len(), bits);
    let kept = mapped(&mut b, &block, bits, &bytes_from(|byte| Some(byte).filter(|byte| *byte < bytes)));
    let sum = b.xor_each(&kept, &other);
    b.output("sum", &sum);
    b.finish()
}

/// A block that is added to the last 16 bytes of a message which ends with `bytes` bytes after its last whole
/// block: `block` to `before`, what is added to this last whole block, and `behind`, what is added to the
/// bytes after it. (RFC 5297, section 2.1, xorend.)
pub fn overlapping(cipher: &Cipher, bytes: usize) -> Circuit {
    let (mut b, block, bits) = begin(cipher, &format!("overlapping-{bytes}-bytes"));
    let before = mapped(&mut b, &block, bits, &bytes_from(|byte| byte.checked_sub(bytes)));
    let behind = |byte: usize| Some(byte + BLOCK - bytes).filter(|_| byte < bytes);
    let behind = mapped(&mut b, &block, bits, &bytes_from(behind));
    b.output("before", &before);
    b.output("behind", &behind);
    b.finish()
}

/// Some bits of a block, each alone in a block of zeros, as its first bit: `block` to one output for each.
/// The bits are counted from the last.
pub fn alone(cipher: &Cipher, which: Range<usize>) -> Circuit {
    let (mut b, block, bits) = begin(cipher, &format!("bits-{}-to-{}", which.start, which.end));
    for bit in which {
        let sources: Vec<Vec<usize>> =
            (0..8 * BLOCK).map(|at| if at == 0 { vec![8 * BLOCK - 1 - bit] } else { Vec::new() }).collect();
        let alone = mapped(&mut b, &block, bits, &sources);
        b.output(&format!("bit {bit}"), &alone);
    }
    b.finish()
}

/// A block times x (SP 800-38B, section 6.1, step 2): `block` to `doubled`. The cells go through the S-box of
/// AES and its inverse first, so that the result can have any views, independent of the block's
/// (`key_cells.rs`).
pub fn doubled_block(cipher: &Cipher) -> Circuit {
    let (mut b, mut block, bits) = begin(cipher, "doubled");
    if bits > 1 {
        let (there, back) = (b.table(&Arc::new(s_box())), b.table(&Arc::new(inverse_s_box())));
        let hidden = b.lookup_each(there, &block);
        block = b.lookup_each(back, &hidden);
    }
    let doubled = doubled(&mut b, cipher, &block, 1);
    b.output("doubled", &doubled);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    /// The outputs of a circuit of AES in both of its forms, which must be equal.
    fn run(make: impl Fn(&Cipher) -> Circuit, inputs: &[&[u8]]) -> Vec<Vec<u8>> {
        let aes = catalog::find("aes-128").expect("it is there");
        let [bytes, bits] = [aes.clone(), crate::boolean::expanded(aes)].map(|cipher| {
            let port = &cipher.encrypt.inputs()[0];
            let cells =
                |block: &&[u8]| Cells::from_blocks(port.cells.len(), port.bits, block).expect("whole");
            let inputs: Vec<Cells> = inputs.iter().map(cells).collect();
            let outputs = cleartext::run(&compile(&make(&cipher), &AnyMap), 1, &inputs).expect("they fit");
            outputs.iter().map(Cells::to_blocks).collect::<Vec<_>>()
        });
        assert_eq!(bytes, bits);
        bytes
    }

    fn block() -> Vec<u8> {
        (0..16).map(|i: u8| i.wrapping_mul(83) ^ 0x95).collect()
    }

    #[test]
    fn the_beginning_of_a_block_is_kept_and_the_rest_is_that_of_the_other() {
        let other: Vec<u8> = (100..116).collect();
        for bytes in 0..=16 {
            let mut expected = other.clone();
            expected.iter_mut().zip(&block()[..bytes]).for_each(|(sum, byte)| *sum ^= byte);
            assert_eq!(run(|cipher| beginning(cipher, bytes), &[&block(), &other]), [expected]);
        }
    }

    #[test]
    fn a_block_overlaps_the_end_of_a_message() {
        for bytes in 0..16 {
            let both = [vec![0; bytes], block(), vec![0; 16 - bytes]].concat();
            let outputs = run(|cipher| overlapping(cipher, bytes), &[&block()]);
            assert_eq!(outputs.concat(), both, "{bytes}");
        }
    }

    #[test]
    fn single_bits_are_counted_from_the_last() {
        let number = block().iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        let outputs = run(|cipher| alone(cipher, 3..40), &[&block()]);
        for (bit, output) in (3..40).zip(outputs) {
            let first = if number >> bit & 1 == 1 { 0x80 } else { 0 };
            assert_eq!(output, [vec![first], vec![0; 15]].concat(), "{bit}");
        }
    }

    #[test]
    fn a_block_is_doubled() {
        for block in [block(), vec![0x7f; 16]] {
            let number = block.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
            let doubled = number << 1 ^ if number >> 127 == 1 { 0x87 } else { 0 };
            assert_eq!(run(doubled_block, &[&block]), [doubled.to_be_bytes().to_vec()]);
        }
    }
}
