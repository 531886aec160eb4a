//! Records and unit vectors of both parties fit together, for every plan.

use polyclave_field::{Gf2_64, MacField};

use super::tests::made;
use super::*;
use crate::spdz::Element;

/// The power of an element of GF(2^8).
fn power(x: u8, exponent: u32) -> u8 {
    polyclave_field::Gf256(x).pow(exponent).0
}

/// Opens every element of all records and checks its MAC.
fn opened(keys: &[Key; 2], [first, second]: &[Inverses<Gf2_64>; 2]) -> ([Vec<u8>; 11], Vec<u8>) {
    let alpha = keys[0].reveal_own_share() ^ keys[1].reveal_own_share();
    let open = |values: [&[u8]; 2], macs: [&[u64]; 2]| -> Vec<u8> {
        let value = |i: usize| values[0][i] ^ values[1][i];
        for (i, (first, second)) in macs[0].iter().zip(macs[1]).enumerate() {
            let mac = Gf2_64::multiply(alpha, Gf2_64::embed(value(i)));
            assert_eq!(first ^ second, mac, "record {i}");
        }
        (0..values[0].len()).map(value).collect()
    };
    let elements = std::array::from_fn(|e| {
        open([&first.values[e], &second.values[e]], [&first.macs[e], &second.macs[e]])
    });
    for (k, (a, b)) in first.bit_macs.iter().zip(&second.bit_macs).enumerate() {
        let bits = |of: &Inverses<Gf2_64>| of.bits.iter().map(|bits| bits >> k & 1).collect::<Vec<_>>();
        open([&bits(first), &bits(second)], [a, b]);
    }
    let bits = first.bits.iter().zip(second.bits.iter()).map(|(a, b)| a ^ b).collect();
    (elements, bits)
}

#[test]
fn records_are_right_whatever_is_asked_for() {
    for (kappa, counts) in [(Kappa::Bits40, &[1, 2, 160, 1_100, 5_000][..]), (Kappa::Bits64, &[3, 6_000])] {
        for count in counts.iter().copied() {
            let (keys, records) = made(kappa, |source, net| source.inverses(count, net));
            let (elements, bits) = opened(&keys, &records);
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
    }
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
