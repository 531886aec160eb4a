//! The bound against all strategies of a cheater, exactly where there are few, and the rotation itself.

mod strategies;

use super::super::subfield::{BIT, GF4, GF16};
use super::*;

/// Coins that are as good as tossed, and the same in every run.
fn coin(number: u64) -> [u8; 32] {
    blake3::derive_key("polyclave tests of rotations", &number.to_le_bytes())
}

/// Seven standard deviations of chi square.
fn assert_uniform(counts: &[u64], what: &str) {
    let (total, cells) = (counts.iter().sum::<u64>() as f64, counts.len() as f64);
    let expected = total / cells;
    let chi: f64 = counts.iter().map(|n| (*n as f64 - expected).powi(2) / expected).sum();
    let freedom = cells - 1.0;
    assert!(chi <= freedom + 7.0 * (2.0 * freedom).sqrt(), "{what}: chi square {chi} of {counts:?}");
}

#[test]
fn pieces_cover_every_bucket_once_and_no_list_starts_anew_within_one() {
    for products in [1, 2, 3, 7, 64, 100] {
        for (lists, most) in [(2, 1), (3, 5), (5, 16), (4, 1_000)] {
            let rotation = Rotation::draw(&coin(products as u64), "pieces", products, lists, &GF4);
            let mut next = 0;
            for piece in rotation.pieces(most) {
                assert_eq!(piece.start, next);
                assert!((1..=most).contains(&piece.len));
                next += piece.len;
            }
            assert_eq!(next, products);
        }
    }
}

#[test]
fn bucket_j_takes_element_j_plus_the_shift_of_every_list() {
    for (number, products) in [1, 2, 5, 33, 200].into_iter().enumerate() {
        let column: Vec<usize> = (0..products).collect();
        for most in [1, 3, 64] {
            let rotation = Rotation::draw(&coin(number as u64), "elements", products, 4, &GF16);
            for piece in rotation.pieces(most) {
                for list in 0..4 {
                    let taken = piece.of(list, &column);
                    let due = |i| (piece.start + i + rotation.shifts[list]) % products;
                    assert_eq!(taken, (0..piece.len).map(due).collect::<Vec<_>>());
                }
                assert_eq!(piece.of(0, &column)[0], piece.start, "the first list is not shifted");
            }
            assert_eq!(rotation.scalar(0), 1);
        }
    }
}

/// Each on its own, and with the next list's and the same list's other draw.
#[test]
fn shifts_and_scalars_are_uniform_and_independent() {
    for (field, products) in [(&BIT, 12), (&GF4, 11), (&GF16, 8), (&GF4, 1)] {
        let scalars = (1 << field.bits()) - 1;
        let mut of_scalar = [usize::MAX; 256];
        (1..=scalars).for_each(|k| {
            let mut element = [0];
            field.elements(&mut element, &[k as u8]);
            of_scalar[usize::from(element[0])] = k - 1;
        });
        let mut shifts = [vec![0; products], vec![0; products]];
        let mut multiples = [vec![0; scalars], vec![0; scalars]];
        let mut together =
            [vec![0; products * products], vec![0; scalars * scalars], vec![0; products * scalars]];
        for number in 0..40_000 {
            let rotation = Rotation::draw(&coin(number), "draws", products, 3, field);
            let [s, t] = [1, 2].map(|list: usize| rotation.shifts[list]);
            let [c, d] = [1, 2].map(|list| of_scalar[usize::from(rotation.scalar(list))]);
            shifts[0][s] += 1;
            shifts[1][t] += 1;
            multiples[0][c] += 1;
            multiples[1][d] += 1;
            together[0][s * products + t] += 1;
            together[1][c * scalars + d] += 1;
            together[2][s * scalars + c] += 1;
        }
        for counts in shifts.iter().chain(&multiples).chain(&together) {
            assert_uniform(counts, &format!("{products} products, {scalars} scalars"));
        }
    }
}

#[test]
fn kinds_and_coins_rotate_independently() {
    let mut pairs = [vec![0; 25], vec![0; 25]];
    for number in 0..20_000 {
        let shift = |number, kind| Rotation::draw(&coin(number), kind, 5, 2, &GF4).shifts[1];
        pairs[0][5 * shift(number, "P1") + shift(number, "I1")] += 1;
        pairs[1][5 * shift(2 * number, "P1") + shift(2 * number + 1, "P1")] += 1;
    }
    pairs.iter().for_each(|pairs| assert_uniform(pairs, "pairs of shifts"));
}

/// Without rejection 0 and 1 would come twice as often as 2 of 3, and so on.
#[test]
fn numbers_below_a_bound_are_unbiased() {
    for bound in [1, 2, 3, 5, 15, 17, 100] {
        let mut draws = Draws(AesPrg::new(&[bound as u8; 16], 0));
        let mut counts = vec![0; bound as usize];
        (0..20_000).for_each(|_| counts[draws.below(bound) as usize] += 1);
        if bound > 1 {
            assert_uniform(&counts, "numbers below a bound");
        }
    }
}
