//! A binary number on shares as decimal digits.
//!
//! The bits come in from the most significant one. Before each, every digit of five and more gets three more,
//! so that doubling it carries into the next one ("double dabble"). A layer for each bit.

use std::sync::Arc;

use polyclave_cipher::{Table, Wire};

use crate::tables::table;
use crate::wiring::Wiring;

/// The digits of a number of 16 bits, the most significant bit and digit first, four bits each.
pub(crate) fn decimal(w: &mut Wiring, bits: &[Wire]) -> Vec<Vec<Wire>> {
    assert_eq!(bits.len(), 16, "a number below 65,536 has five digits");
    let carries = carries();
    // The lowest digit first.
    let mut digits = vec![vec![w.zero(); 4]; 5];
    for (known, bit) in bits.iter().enumerate() {
        let most = (1u32 << known) - 1;
        for (place, digit) in (0..).zip(&mut digits) {
            // Digits that cannot be so large yet stay as they are.
            if most / 10u32.pow(place) >= 5 {
                *digit = w.lookup(&carries, digit);
            }
        }
        let mut carried = *bit;
        for digit in &mut digits {
            digit.push(carried);
            carried = digit.remove(0);
        }
    }
    digits.reverse();
    digits
}

/// A digit; with three more from five on.
fn carries() -> Arc<Table> {
    table("digit before doubling", 4, 4, |x| match x {
        0..5 => x,
        5..10 => x + 3,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, Cells, cleartext, compile};

    use super::*;
    use crate::probe;

    #[test]
    fn every_number_becomes_its_digits() {
        let circuit = probe::circuit(2, |w| {
            let number = w.public(2);
            let bits = w.bits(&number);
            let digits = decimal(w, &bits);
            w.answer_digits(&digits);
        });
        assert_eq!(circuit.layers(), 13);
        let numbers: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_be_bytes).collect();
        let public = Cells::from_blocks(16, 1, &numbers).expect("whole numbers");
        let out = cleartext::run(&compile(&circuit, &AnyMap), 1 << 16, &[public]).expect("it fits");
        for (number, digits) in (0..=u16::MAX).zip(out[0].to_blocks().chunks(5)) {
            let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
            assert_eq!(text, format!("{number:05}"));
        }
    }
}
