//! Values of one cipher as the key of another: the same bits in cells of another width.
//!
//! A circuit of its own delivers the views of a key that the key's schedule wants. They may be views of
//! anything, so bytes go through the S-box of AES and its inverse first: a protocol can look up every value
//! that it can share, with any views. The source of the value, such as the round keys of the cipher that
//! computed it, need not have these views, and is stored without them.

use std::sync::Arc;

use crate::aes::{inverse_s_box, s_box};
use crate::keyed::key_shape;
use crate::{Builder, Cells, Cipher, Circuit, Matrix, Wire};

/// The first bytes of some values, after `skip` others, as a key of a cipher: `part 1`, `part 2` .. , each of
/// `count` cells of `bits` bits, to `key`. The parts must have enough bits; cells have 1, 2, 4 or 8 bits.
pub fn key_of(cipher: &Cipher, parts: usize, (count, bits): (usize, u8), skip: usize) -> Circuit {
    let (_, key_bits) = key_shape(cipher);
    let mut b = Builder::new(&format!("{parts}x{count}x{bits}-to-{}-key", cipher.name));
    let mut cells: Vec<Wire> = Vec::new();
    for part in 1..=parts {
        cells.extend(b.uniform_input(&format!("part {part}"), count, bits));
    }
    cells.drain(..8 * skip / usize::from(bits));
    cells.truncate((8 * cipher.key_bytes).div_ceil(usize::from(bits)));
    if bits > 1 {
        let (there, back) = (b.table(&Arc::new(s_box())), b.table(&Arc::new(inverse_s_box())));
        let bytes = in_cells_of(&mut b, &cells, bits, 8);
        let hidden = b.lookup_each(there, &bytes);
        let bytes = b.lookup_each(back, &hidden);
        cells = in_cells_of(&mut b, &bytes, 8, key_bits);
    } else {
        cells = in_cells_of(&mut b, &cells, bits, key_bits);
    }
    b.output("key", &cells);
    b.finish()
}

/// The bytes of a key, each looked up: what wrapping a key under AES begins with. Only its input's views
/// matter.
pub fn looked_up(cipher: &Cipher) -> Circuit {
    let (count, bits) = key_shape(cipher);
    let mut b = Builder::new(&format!("{}-key-looked-up", cipher.name));
    let s = b.table(&Arc::new(s_box()));
    let key = b.uniform_input("key", count, bits);
    let bytes = in_cells_of(&mut b, &key, bits, 8);
    let out = b.lookup_each(s, &bytes);
    b.output("bytes", &out);
    b.finish()
}

/// A key as it is, for its port: the views of a key that is to be stored or used otherwise than by its
/// schedule.
pub fn same_key(cipher: &Cipher) -> Circuit {
    let (count, bits) = key_shape(cipher);
    let mut b = Builder::new(&format!("{}-key", cipher.name));
    let key = b.uniform_input("key", count, bits);
    b.output("key", &key);
    b.finish()
}

/// Cells of `from` bits as cells of `to` bits, in the order of the bytes that people write.
pub(crate) fn in_cells_of(b: &mut Builder, cells: &[Wire], from: u8, to: u8) -> Vec<Wire> {
    assert!(8 % from == 0 && 8 % to == 0, "bytes are made of whole cells");
    let ratio = usize::from(from.max(to) / from.min(to));
    match from.cmp(&to) {
        std::cmp::Ordering::Equal => cells.to_vec(),
        std::cmp::Ordering::Less => cells
            .chunks(ratio)
            .map(|group| {
                let terms = group.iter().zip((0..ratio as u8).rev());
                let place = |at: u8| Matrix::of(from, to, |x| x << (at * from));
                b.linear(terms.map(|(cell, at)| (*cell, place(at))).collect(), 0)
            })
            .collect(),
        std::cmp::Ordering::Greater => cells
            .iter()
            .flat_map(|cell| (0..ratio as u8).rev().map(move |at| (*cell, at)))
            .map(|(cell, at)| {
                let mask = ((1u16 << to) - 1) as u8;
                b.linear(vec![(cell, Matrix::of(from, to, |x| x >> (at * to) & mask))], 0)
            })
            .collect(),
    }
}

/// Public bytes in cells of this width.
pub(crate) fn constants(bytes: &[u8], bits: u8) -> Vec<u8> {
    let count = 8 * bytes.len() / usize::from(bits);
    let cells = Cells::from_blocks(count, bits, bytes).expect("whole bytes fill whole cells");
    cells.rows().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, catalog, cleartext, compile};

    /// Of values in cells of 1, 4 and 8 bits, for every cipher with a key.
    #[test]
    fn the_key_has_the_leading_bytes_of_the_parts_whatever_the_widths() {
        let bytes: Vec<u8> = (0..64).map(|i| (i as u8).wrapping_mul(91) ^ 0x3c).collect();
        for cipher in catalog::all().into_iter().filter(|c| c.key_bytes > 0) {
            for (bits, skip) in [(1u8, 0), (4, 2), (8, 0), (8, 2)] {
                let count = 128 / usize::from(bits);
                let circuit = compile(&key_of(&cipher, 4, (count, bits), skip), &AnyMap);
                let parts: Vec<Cells> = bytes
                    .chunks(16)
                    .map(|part| Cells::from_blocks(count, bits, part).expect("whole"))
                    .collect();
                let key = cleartext::run(&circuit, 1, &parts).expect("they fit").remove(0);
                assert_eq!(
                    key.to_blocks(),
                    bytes[skip..][..cipher.key_bytes],
                    "{} from {bits} bits",
                    cipher.name
                );
            }
        }
    }
}
