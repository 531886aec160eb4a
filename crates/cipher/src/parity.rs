//! The parity bits of keys of DES and Triple DES (FIPS 46-3: the last bit of each byte makes the number of
//! ones odd), as circuits. They are no part of what the cipher computes, but other programs look at them.

use std::sync::Arc;

use crate::aes::{inverse_s_box, s_box};
use crate::key_cells::in_cells_of;
use crate::{Builder, Cipher, Circuit, Matrix, Wire};

/// Whether keys of a cipher have parity bits.
pub fn has_parity(cipher: &Cipher) -> bool {
    cipher.name.contains("des")
}

/// The sum of `parts` keys (`part 1` ..) with odd parity: to `key`; and to `check`, 16 bytes in cells of
/// `check_bits` bits that are all zeros if and only if the sum had odd parity before.
///
/// The maps act on bits of bytes, so the bytes are looked up there and back, as in
/// [`key_cells`](crate::key_cells).
pub fn sum_with_parity(cipher: &Cipher, parts: usize, check_bits: u8) -> Circuit {
    let port = &cipher.key_schedule.inputs()[0];
    let mut b = Builder::new(&format!("{}-sum-of-{parts}-with-parity", cipher.name));
    let keys: Vec<Vec<Wire>> = (1..=parts)
        .map(|part| b.uniform_input(&format!("part {part}"), port.cells.len(), port.bits))
        .collect();
    let mut cells: Vec<Wire> =
        (0..port.cells.len()).map(|i| b.xor(&keys.iter().map(|key| key[i]).collect::<Vec<_>>())).collect();
    let bits = if port.bits > 1 { 8 } else { 1 };
    if bits == 8 {
        let (there, back) = (b.table(&Arc::new(s_box())), b.table(&Arc::new(inverse_s_box())));
        let bytes = in_cells_of(&mut b, &cells, port.bits, 8);
        let hidden = b.lookup_each(there, &bytes);
        cells = b.lookup_each(back, &hidden);
    }
    let bytes: Vec<&[Wire]> = cells.chunks(8 / usize::from(bits)).collect();
    let odd: Vec<Wire> = bytes.iter().flat_map(|byte| with_parity(&mut b, byte, bits)).collect();
    let odd = in_cells_of(&mut b, &odd, bits, port.bits);
    b.output("key", &odd);

    // Each byte's error is a bit of the check.
    let errors: Vec<Wire> = match bits {
        1 => {
            let errors: Vec<Wire> = bytes.iter().map(|byte| b.xor_constant(byte, 1)).collect();
            errors.iter().copied().cycle().take(128).collect()
        }
        _ => (0..16)
            .map(|i| {
                let mut terms = Vec::new();
                let mut constant = 0;
                for (bit, byte) in bytes.iter().skip(i).step_by(16).enumerate() {
                    terms.push((byte[0], Matrix::of(8, 8, |x| parity(x) << bit)));
                    constant |= 1 << bit;
                }
                if terms.is_empty() {
                    terms.push((bytes[0][0], Matrix::of(8, 8, parity)));
                    constant = 1;
                }
                b.linear(terms, constant)
            })
            .collect(),
    };
    let errors = in_cells_of(&mut b, &errors, bits, check_bits);
    b.output("check", &errors);
    b.finish()
}

fn parity(x: u8) -> u8 {
    (x.count_ones() & 1) as u8
}

/// A byte, in one cell or in eight, whose last bit makes its parity odd.
fn with_parity(b: &mut Builder, byte: &[Wire], bits: u8) -> Vec<Wire> {
    match (bits, byte) {
        (1, [upper @ .., _]) => {
            let last = b.xor_constant(upper, 1);
            [upper, &[last]].concat()
        }
        _ => vec![b.linear(vec![(byte[0], Matrix::of(8, 8, |x| (x & 0xfe) | parity(x & 0xfe)))], 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, boolean, catalog, cleartext, compile};

    #[test]
    fn the_sum_gets_odd_parity_and_the_check_says_whether_it_had_it() {
        for name in ["des", "3des-ede2", "3des-ede3"] {
            let plain = catalog::find(name).expect("the catalog has it");
            for (cipher, bits) in [(plain.clone(), 8), (plain.clone(), 1), (boolean::expanded(plain), 1)] {
                assert!(has_parity(&cipher));
                let circuit = compile(&sum_with_parity(&cipher, 2, bits), &AnyMap);
                let port = &cipher.key_schedule.inputs()[0];
                let key =
                    |bytes: &[u8]| Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole");
                let odd: Vec<u8> = (0..cipher.key_bytes as u8)
                    .map(|i| i.wrapping_mul(146) & 0xfe)
                    .map(|x| x | (1 ^ parity(x)))
                    .collect();
                for wrong in 0..=cipher.key_bytes {
                    let mut first: Vec<u8> = odd.iter().map(|x| x ^ 0x5b).collect();
                    if let Some(byte) = first.get_mut(wrong) {
                        *byte ^= 1;
                    }
                    let parts = [key(&first), key(&vec![0x5b; cipher.key_bytes])];
                    let out = cleartext::run(&circuit, 1, &parts).expect("they fit");
                    assert_eq!(out[0].to_blocks(), odd, "{name}, byte {wrong}");
                    let check = out[1].to_blocks();
                    assert_eq!(check.len(), 16);
                    assert_eq!(
                        check.iter().all(|byte| *byte == 0),
                        wrong == cipher.key_bytes,
                        "byte {wrong}"
                    );
                }
            }
        }
    }
}
