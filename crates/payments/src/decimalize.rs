//! The first digits of an encrypted block: its nibbles below ten from the left, and if these are too few, the
//! others from the left, less ten each. PVV and CVV end with this.
//!
//! A counter that passes over the nibbles would take as many layers as there are nibbles. Here the number of
//! digits before each nibble is a sum over three groups of at most six nibbles. The nibble with rank j among
//! the digits is the j-th result. A nibble over nine at place i has rank i at least (all before it come
//! before it), so only the first places can hold letters that are taken. Five layers.

use std::sync::Arc;

use polyclave_cipher::{Table, Wire};

use crate::tables::{is_no_digit, kept_if, table};
use crate::wiring::Wiring;

/// Most digits that are taken: more would need wider counters.
pub(crate) const MOST: usize = 5;

/// Where the groups of nibbles begin and end.
const GROUPS: [std::ops::Range<usize>; 3] = [0..6, 6..12, 12..16];

/// A count that no nibble has: of nibbles that are not of the kind that is counted.
const NEVER: u8 = 7;

/// The first `count` digits of 16 nibbles, four bits each.
pub(crate) fn decimalized(w: &mut Wiring, bits: &[Wire], count: usize) -> Vec<Vec<Wire>> {
    assert!((1..=MOST).contains(&count) && bits.len() == 64, "a block has few digits");
    let nibbles: Vec<&[Wire]> = bits.chunks(4).collect();
    let no_digit = is_no_digit();
    // Layer 1: 1 for letters.
    let letters: Vec<Wire> = nibbles.iter().map(|nibble| w.lookup(&no_digit, nibble)[0]).collect();

    // Layer 2: how many digits each group has, and how many are before each nibble in its group.
    let digits = |w: &mut Wiring, group: usize| {
        let flags = &letters[GROUPS[group].clone()];
        w.lookup(&number_of_digits(flags.len() as u8), flags)
    };
    let totals: Vec<Vec<Wire>> = (0..3).map(|group| digits(w, group)).collect();
    let before = |w: &mut Wiring, place: usize, of: Counted| {
        let group = GROUPS.iter().find(|group| group.contains(&place)).expect("it is in a group");
        let flags = &letters[group.start..=place];
        w.lookup(&before(flags.len() as u8, of), flags)
    };

    // Layers 3 and 4: the rank of each digit, and of letters at the first places.
    let sum = |w: &mut Wiring, x: &[Wire], y: &[Wire]| w.lookup(&sum(), &[x, y].concat());
    let before_last = sum(w, &totals[0], &totals[1]);
    let mut chosen: Vec<Vec<Wire>> = Vec::new();
    for place in 0..16 {
        let mut ranks = match place {
            0..6 => ranks_at_once(w, &letters[..=place], count),
            6..12 => {
                let rest = before(w, place, Counted::Digits);
                ranks(w, &totals[0], &rest, count)
            }
            _ => {
                let rest = before(w, place, Counted::Digits);
                ranks(w, &before_last, &rest, count)
            }
        };
        if place < count {
            let letters_before = before(w, place, Counted::Letters);
            let rest = sum(w, &totals[2], &letters_before);
            let of_letters = self::ranks(w, &before_last, &rest, count);
            ranks = w.xor_bits(&[&ranks, &of_letters]);
        }
        chosen.push(ranks);
    }

    // Layer 5: each nibble where it is chosen.
    let (kept, kept_as_digit) = (kept_if(), kept_as_digit());
    (0..count)
        .map(|rank| {
            let terms: Vec<Vec<Wire>> = (0..16)
                .map(|place| {
                    let table = if place < count { &kept_as_digit } else { &kept };
                    w.lookup(table, &[&chosen[place][rank..=rank], nibbles[place]].concat())
                })
                .collect();
            w.xor_bits(&terms.iter().map(Vec::as_slice).collect::<Vec<_>>())
        })
        .collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Counted {
    Digits,
    Letters,
}

/// Flags of letters in a group to the number of digits.
fn number_of_digits(flags: u8) -> Arc<Table> {
    table(&format!("digits of {flags}"), flags, 3, |x| flags - x.count_ones() as u8)
}

/// Flags of letters up to a nibble to the number of the same kind before it; [`NEVER`] if it is of the other.
fn before(flags: u8, of: Counted) -> Arc<Table> {
    let name = if of == Counted::Digits { "digits" } else { "letters" };
    table(&format!("{name} before {flags}"), flags, 3, |x| {
        let letters_before = (x >> 1).count_ones() as u8;
        match (of, x & 1) {
            (Counted::Digits, 0) => flags - 1 - letters_before,
            (Counted::Letters, 1) => letters_before,
            _ => NEVER,
        }
    })
}

/// Two counts to their sum, at most 6; [`NEVER`] stays.
fn sum() -> Arc<Table> {
    table("sum of counts", 6, 3, |x| match (x >> 3, x & 7) {
        (NEVER, _) | (_, NEVER) => NEVER,
        (x, y) => (x + y).min(NEVER - 1),
    })
}

/// For each rank, whether two counts have it as their sum.
fn ranks(w: &mut Wiring, x: &[Wire], y: &[Wire], count: usize) -> Vec<Wire> {
    let counts = [x, y].concat();
    one_hot(w, &counts, count, |x| match (x >> 3, x & 7) {
        (NEVER, _) | (_, NEVER) => None,
        (x, y) => Some(x + y),
    })
}

/// The same for a nibble of the first group, from the flags of letters.
fn ranks_at_once(w: &mut Wiring, flags: &[Wire], count: usize) -> Vec<Wire> {
    let before = flags.len() as u8 - 1;
    one_hot(w, flags, count, |x| (x & 1 == 0).then(|| before - (x >> 1).count_ones() as u8))
}

/// For each rank below `count`, whether the function of the bits has it. A table has four results.
fn one_hot(w: &mut Wiring, bits: &[Wire], count: usize, rank: impl Fn(u8) -> Option<u8>) -> Vec<Wire> {
    let mut all = Vec::new();
    for first in (0..count).step_by(4) {
        let some = (count - first).min(4);
        let entry = |x: u8| {
            let found = |i: &usize| rank(x) == Some((first + i) as u8);
            (0..some).filter(found).fold(0, |set, i| set | 1 << (some - 1 - i))
        };
        let name = format!("ranks from {first}");
        all.extend(w.lookup(&table(&name, bits.len() as u8, some as u8, entry), bits));
    }
    all
}

/// One bit and a nibble: if the bit is set the nibble, less ten if that is a letter; else 0.
fn kept_as_digit() -> Arc<Table> {
    table("kept as digit", 5, 4, |x| match (x >> 4, x & 15) {
        (0, _) => 0,
        (_, digit @ 0..10) => digit,
        (_, letter) => letter - 10,
    })
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, Cells, cleartext, compile};

    use super::*;
    use crate::probe;

    fn expected(nibbles: &[u8], count: usize) -> Vec<u8> {
        let digits = nibbles.iter().copied().filter(|x| *x < 10);
        let letters = nibbles.iter().filter(|x| **x > 9).map(|x| x - 10);
        digits.chain(letters).take(count).collect()
    }

    /// Every choice of places for digits, with different nibbles.
    #[test]
    fn digits_come_first_then_letters_less_ten_wherever_they_are() {
        let blocks: Vec<Vec<u8>> = (0..1u32 << 16)
            .map(|places| {
                let nibble = |i: u32| match places >> i & 1 {
                    1 => ((places / 7 + 3 * i) % 10) as u8,
                    _ => 10 + ((places / 5 + i) % 6) as u8,
                };
                (0..16).map(nibble).collect()
            })
            .collect();
        let packed: Vec<u8> = blocks
            .iter()
            .flatten()
            .copied()
            .collect::<Vec<u8>>()
            .chunks(2)
            .map(|p| p[0] << 4 | p[1])
            .collect();
        for count in 1..=MOST {
            let circuit = probe::circuit(8, |w| {
                let block = w.public(8);
                let bits = w.bits(&block);
                let digits = decimalized(w, &bits, count);
                w.answer_digits(&digits);
            });
            assert_eq!(circuit.layers(), 5);
            let public = Cells::from_blocks(64, 1, &packed).expect("whole blocks");
            let out = cleartext::run(&compile(&circuit, &AnyMap), blocks.len(), &[public]).expect("it fits");
            for (block, digits) in blocks.iter().zip(out[0].to_blocks().chunks(count)) {
                assert_eq!(digits, expected(block, count), "{block:x?}");
            }
        }
    }
}
