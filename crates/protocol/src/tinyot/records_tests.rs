//! Records and unit vectors of both parties fit together, for every plan.

use std::ops::Range;

use polyclave_field::{Gf2_64, MacField};

use super::abit::PIECE;
use super::plan::RecordPlan;
use super::tests::{made, made_by, made_with};
use super::*;
use crate::authenticated::Element;

/// The power of an element of GF(2^8).
fn power(x: u8, exponent: u32) -> u8 {
    polyclave_field::Gf256(x).pow(exponent).0
}

/// Opens every element of all records and checks its MAC.
fn opened(keys: &[Key], records: &[Inverses<Gf2_64>]) -> ([Vec<u8>; 11], Vec<u8>) {
    let alpha = keys.iter().fold(0, |sum, key| sum ^ key.reveal_own_share());
    let sum = |rows: &mut dyn Iterator<Item = Vec<u8>>| {
        let add = |sum: Vec<u8>, row: Vec<u8>| sum.iter().zip(row).map(|(a, b)| a ^ b).collect();
        rows.reduce(add).expect("some parties")
    };
    let assert_macs = |values: &[u8], macs: &[&[u64]]| {
        for (i, value) in values.iter().enumerate() {
            let mac = macs.iter().fold(0, |sum, macs| sum ^ macs[i]);
            assert_eq!(mac, Gf2_64::multiply(alpha, Gf2_64::embed(*value)), "record {i}");
        }
    };
    let elements = std::array::from_fn(|e| {
        let values = sum(&mut records.iter().map(|of| of.values[e].to_vec()));
        assert_macs(&values, &records.iter().map(|of| &of.macs[e][..]).collect::<Vec<_>>());
        values
    });
    let bits = sum(&mut records.iter().map(|of| of.bits.to_vec()));
    for k in 0..8 {
        let values: Vec<u8> = bits.iter().map(|bits| bits >> k & 1).collect();
        assert_macs(&values, &records.iter().map(|of| &of.bit_macs[k][..]).collect::<Vec<_>>());
    }
    (elements, bits)
}

/// Opens records, which have to be right.
pub(super) fn assert_records(keys: &[Key], records: &[Inverses<Gf2_64>], count: usize) {
    let (elements, bits) = opened(keys, records);
    assert!(elements.iter().chain([&bits]).all(|column| column.len() == count));
    let of = |element: Element, i: usize| elements[element as usize][i];
    for i in 0..count {
        let (lx, ln, lm) = (of(Element::Lx, i), of(Element::Ln, i), of(Element::Lm, i));
        let (x, lv) = (of(Element::X, i), of(Element::Lv, i));
        let product = |a, b| (polyclave_field::Gf256(a) * polyclave_field::Gf256(b)).0;
        assert_eq!([of(Element::Lx16, i), of(Element::Lx17, i)], [power(lx, 16), power(lx, 17)]);
        assert_eq!([of(Element::Ln4, i), of(Element::Ln5, i)], [power(ln, 4), power(ln, 5)]);
        assert_eq!([lm, of(Element::XLn4, i)], [power(x, 2), product(x, power(ln, 4))]);
        assert_eq!(of(Element::LvLx16, i), product(lv, power(lx, 16)));
        // In their subfields.
        assert_eq!([power(ln, 16), power(lv, 16), power(lm, 4), power(x, 4)], [ln, lv, lm, x]);
    }
}

#[test]
fn records_are_right_whatever_is_asked_for() {
    for (kappa, counts) in [(Kappa::Bits40, &[1, 2, 160, 1_100, 5_000][..]), (Kappa::Bits64, &[3, 6_000])] {
        for count in counts.iter().copied() {
            let (keys, records) = made(kappa, |source, net| source.inverses(count, net));
            assert_records(&keys, &records, count);
        }
    }
}

/// A batch by a plan that need not be safe, and of it as many records as there are in a range.
pub(super) fn batch(
    source: &mut TinyOt,
    plan: RecordPlan,
    range: Range<usize>,
    net: &mut dyn Net,
) -> Result<Inverses<Gf2_64>> {
    let mut made = Inverses::zero(range.end);
    source.record_batch(plan, &mut records::Room::default(), range, &mut made, net)?;
    Ok(made)
}

/// Of a batch that is made in pieces, those behind the end begin where nothing is wanted.
#[test]
fn a_batch_of_which_little_is_wanted_is_right() {
    let plan = RecordPlan { records: 3 * PIECE, group: 8, shared_16: 2, shared_4: 2 };
    for range in [0..3, 5..PIECE, 7..7 + PIECE, 2..2 * PIECE + 1] {
        let count = range.end;
        let (keys, records) = made(Kappa::Bits40, |source, net| batch(source, plan, range.clone(), net));
        assert_records(&keys, &records, count);
    }
}

/// A shared list of so many elements takes two tiles.
#[test]
fn records_are_right_with_lists_of_more_than_one_tile() {
    let columns = AT_ONCE / 4 + PIECE / 2 + 1;
    let plan = RecordPlan { records: 2 * columns, group: 1, shared_16: 1, shared_4: 1 };
    let (keys, records) = made(Kappa::Bits40, |source, net| batch(source, plan, 0..plan.records, net));
    assert_records(&keys, &records, plan.records);
}

#[test]
fn records_of_three_and_more_parties_are_right() {
    for count in [1, 160, 2_500] {
        let (keys, records) = made_by::<3, _>(Kappa::Bits40, |source, net| source.inverses(count, net));
        assert_records(&keys, &records, count);
    }
    let (keys, records) = made_by::<4, _>(Kappa::Bits64, |source, net| source.inverses(20, net));
    assert_records(&keys, &records, 20);
}

/// So many that a session goes from extension over to a batch of silent transfers, and to a second one.
#[test]
fn records_of_silent_transfers_are_right() {
    let silent = Means { expansion: 8, silent: true };
    for earlier in [0, 2, 9] {
        let (keys, records) = made_with::<2, _>(Kappa::Bits64, silent, |source, net| {
            (0..earlier).try_for_each(|_| source.inverses(5_000, net).map(drop))?;
            source.inverses(5_000, net)
        });
        assert_records(&keys, &records, 5_000);
    }
    let (keys, records) =
        made_with::<3, _>(Kappa::Bits40, silent, |source, net| source.inverses(13_000, net));
    assert_records(&keys, &records, 13_000);
}

/// Chi square of the masks' values, with 255, 15, 3 and 15 degrees of freedom and eight bits each.
#[test]
fn masks_are_uniform() {
    let count = 40_000;
    let (keys, records) = made(Kappa::Bits40, |source, net| source.inverses(count, net));
    let (elements, bits) = opened(&keys, &records);
    let masks = [Element::Lx, Element::Ln, Element::Lm, Element::Lv].map(|e| &elements[e as usize]);
    let shares = records.iter().flat_map(|of| [Element::Lx, Element::Lv].map(|e| &*of.values[e as usize]));
    for (column, values) in
        masks.into_iter().chain([&bits]).chain(shares).zip([256, 16, 4, 16, 256, 256, 16, 256, 16])
    {
        let mut seen = [0_u32; 256];
        column.iter().for_each(|value| seen[usize::from(*value)] += 1);
        let expected = count as f64 / f64::from(values);
        let seen = seen.into_iter().filter(|n| *n > 0).map(f64::from).collect::<Vec<_>>();
        assert_eq!(seen.len(), values as usize);
        let chi: f64 = seen.iter().map(|n| (n - expected).powi(2) / expected).sum();
        let freedom = f64::from(values - 1);
        assert!(chi < freedom + 7.0 * (2.0 * freedom).sqrt(), "{values} values: chi square {chi}");
    }
}

#[test]
fn vectors_are_one_at_their_index_and_their_macs_are_right() {
    for (in_bits, count) in [(2, 9), (4, 100), (6, 1), (6, 1_500), (7, 40), (8, 4_000)] {
        let (keys, vectors) = made(Kappa::Bits40, |source, net| {
            Ok(source.unit_vectors(in_bits, count, &crate::pool::Pool::default(), net)?.write())
        });
        let seen = assert_vectors(&keys, &vectors, in_bits, count);
        assert!(count < 1_000 || seen == 1 << in_bits, "all indices come up");
    }
}

/// Checks vectors as both parties write them, and returns how many indices there are.
pub(super) fn assert_vectors<V: AsRef<[u8]>>(
    keys: &[Key; 2],
    vectors: &[V; 2],
    in_bits: u8,
    count: usize,
) -> usize {
    let vectors = vectors.each_ref().map(|items| items.as_ref());
    let alpha = keys[0].reveal_own_share() ^ keys[1].reveal_own_share();
    let size = vectors[0].len() / count;
    let [first, second] = vectors.map(|items| items.chunks_exact(size));
    let mut seen = std::collections::BTreeSet::new();
    for items in first.zip(second) {
        let sum: Vec<u8> = items.0.iter().zip(items.1).map(|(a, b)| a ^ b).collect();
        let (index, rest) = (sum[0], &sum[1..]);
        let (words, _) = rest[8 + (1_usize << in_bits).div_ceil(8)..].as_chunks::<8>();
        let index_mac = u64::from_le_bytes(*rest.first_chunk().expect("a MAC"));
        assert_eq!(index_mac, Gf2_64::multiply(alpha, Gf2_64::embed(index)));
        for entry in 0..1_usize << in_bits {
            let is_one = rest[8 + entry / 8] >> (entry % 8) & 1 == 1;
            assert_eq!(is_one, entry == usize::from(index), "entry {entry} of {in_bits} bits");
            assert_eq!(u64::from_le_bytes(words[entry]), if is_one { alpha } else { 0 });
        }
        seen.insert(index);
    }
    seen.len()
}
