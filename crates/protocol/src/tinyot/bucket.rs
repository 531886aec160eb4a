//! Combines leaky triples, in buckets, to triples of which a cheater knows nothing (Nielsen, Nordholt, Orlandi, Burra 2012; with the
//! random assignment of Wang, Ranellucci, Katz 2017, "Authenticated Garbling", ePrint 2017/030, section on combining leaky triples).
//!
//! N B leaky triples are put into N buckets of B at random, by coins that are tossed when all triples have been made and compared. In a
//! bucket d_b = y_1 + y_b is opened for b > 1, and x = sum x_b, y = y_1, z = sum z_b + sum d_b x_b. Because x_b (y_b + d_b) = x_b y_1, z
//! is x y. Only the x that a cheater guessed leaks (`leaky_and.rs`). So x is uniform to the cheater as soon as one x_b of the bucket is.
//! y_1 stays hidden, because y_b masks it in d_b.
//!
//! **Error.** With c guesses a cheater passes with probability 2^-c. It has broken a bucket if it guessed all B triples in it: for each
//! of the N buckets with probability C(c,B) / C(NB,B). So it wins with probability at most max over c of 2^-c N C(c,B) / C(NB,B). This
//! must be at most 2^-kappa. Going from c to c + 1 multiplies the value by (c + 1) / (2 (c + 1 - B)), which is at least 1 up to
//! c + 1 = 2B. So the maximum is at c = 2B, or at c = B if there is only one bucket. Loss over Q batches: Q 2^-kappa.
//!
//! The larger N, the smaller B can be. A [`Plan`] takes the size that makes the fewest leaky triples for the number that is asked for,
//! even if some triples are then thrown away; these are as good as the others.
//!
//! **Opened values** are checked (`opening.rs`) before anything is handed out. A cheater that opens another d_b is found except with
//! probability 2^-64, and learns from the failure only that it failed.
//!
//! Memory: 56 bytes a leaky triple, 168 MB at most, and 17 bytes for each value opened.

use super::leaky_and::Leaky;
use super::share::mask;
use super::{Bits, Kappa, Key, Openings, Triples};
use crate::Result;
use crate::net::Net;

/// Leaky triples in a batch: bounds the memory, and lets B = 3 do for kappa = 40 and B = 4 for 64.
const MOST_LEAKY: usize = 3 << 20;
/// This number of buckets is worth its own batch, if it is safe. A smaller batch would cost more rounds.
const WORTH_A_BATCH: usize = 1 << 18;

/// One batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// N.
    pub(super) buckets: usize,
    /// B.
    pub(super) size: usize,
}

impl Plan {
    /// What to make next if this number of triples is missing, 1 at least: the plan with the fewest leaky triples for each of them.
    pub(super) fn of(missing: usize, kappa: Kappa) -> Plan {
        let mut best: Option<Plan> = None;
        for size in 2..=kappa.bits() as usize {
            let most = MOST_LEAKY / size;
            let Some(fewest) = fewest_buckets(size, most, kappa) else { continue };
            let batches = (missing / fewest.max(WORTH_A_BATCH)).max(1);
            let plan = Plan { buckets: missing.div_ceil(batches).clamp(fewest, most), size };
            let price = |plan: &Plan| plan.leaky() as f64 / missing.min(plan.buckets) as f64;
            if best.is_none_or(|best| price(&plan) < price(&best)) {
                best = Some(plan);
            }
            if fewest <= missing {
                // Larger buckets cost more and do no better.
                break;
            }
        }
        best.expect("one bucket of kappa triples will do")
    }

    /// N B.
    pub(super) fn leaky(&self) -> usize {
        self.buckets * self.size
    }
}

/// The fewest buckets of a size that are safe, if it is not more than `most`. More of them are safer.
fn fewest_buckets(size: usize, most: usize, kappa: Kappa) -> Option<usize> {
    let safe = |buckets| log2_error(buckets, size) <= -f64::from(kappa.bits()) + 1e-9;
    let (mut low, mut high) = (1, most);
    if !safe(high) {
        return None;
    }
    while low < high {
        let middle = low.midpoint(high);
        if safe(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// log2 of the probability to break a bucket. Its rounding error is below 2^-40, and the 1e-9 that is granted for it makes the bound
/// larger by less than a billionth.
fn log2_error(buckets: usize, size: usize) -> f64 {
    let guesses = if buckets == 1 { size } else { 2 * size };
    let choose = |n: usize| (0..size).map(|i| ((n - i) as f64 / (size - i) as f64).log2()).sum::<f64>();
    (buckets as f64).log2() - guesses as f64 + choose(guesses) - choose(buckets * size)
}

const X: usize = 0;
const Y: usize = 1;
const Z: usize = 2;

/// Combines each `size` triples, and adds the first `count` results to `made` when what was opened has been checked. Two rounds.
pub(super) fn combine(
    leaky: &[Leaky],
    [size, count]: [usize; 2],
    key: &Key,
    openings: &mut Openings,
    net: &mut dyn Net,
    made: &mut Triples,
) -> Result<()> {
    let leaky = &leaky[..size * count];
    let mut sums = Bits::zero((size - 1) * count);
    let mut at = 0;
    for bucket in leaky.chunks_exact(size) {
        let head = &bucket[0];
        for other in &bucket[1..] {
            sums.values[at] = head.values[Y] ^ other.values[Y];
            sums.tags[at] = head.tags[Y] ^ other.tags[Y];
            sums.keys[at] = head.keys[Y] ^ other.keys[Y];
            at += 1;
        }
    }
    let opened = openings.open(&sums, key, net)?;
    openings.check(key, net)?;
    for (bucket, opened) in leaky.chunks_exact(size).zip(opened.chunks_exact(size - 1)) {
        let mut sum = bucket[0];
        for (other, d) in bucket[1..].iter().zip(opened) {
            let d_mask = mask(*d);
            sum.values[X] ^= other.values[X];
            sum.tags[X] ^= other.tags[X];
            sum.keys[X] ^= other.keys[X];
            sum.values[Z] ^= other.values[Z] ^ d & other.values[X];
            sum.tags[Z] ^= other.tags[Z] ^ d_mask & other.tags[X];
            sum.keys[Z] ^= other.keys[Z] ^ d_mask & other.keys[X];
        }
        for (bits, part) in [(&mut made.x, X), (&mut made.y, Y), (&mut made.z, Z)] {
            bits.values.push(sum.values[part]);
            bits.tags.push(sum.tags[part]);
            bits.keys.push(sum.keys[part]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_sizes_are_those_of_the_formula() {
        for (kappa, size, fewest) in [
            (Kappa::Bits40, 3, 276_325),
            (Kappa::Bits40, 4, 3_044),
            (Kappa::Bits40, 5, 320),
            (Kappa::Bits40, 6, 84),
            (Kappa::Bits64, 4, 779_083),
            (Kappa::Bits64, 5, 20_434),
            (Kappa::Bits64, 6, 2_300),
            (Kappa::Bits64, 7, 537),
        ] {
            assert_eq!(fewest_buckets(size, 1 << 31, kappa), Some(fewest), "{kappa:?}, {size}");
        }
        let billions = fewest_buckets(3, 1 << 31, Kappa::Bits64).expect("it is below 2^31");
        assert!((1_130_000_000..1_140_000_000).contains(&billions), "{billions}");
    }

    /// The maximum is where it is said to be: tried for all numbers of guesses.
    #[test]
    fn no_number_of_guesses_does_better() {
        let choose =
            |n: usize, k: usize| (0..k).map(|i| ((n - i) as f64 / (k - i) as f64).log2()).sum::<f64>();
        for (buckets, size) in [(1, 40), (2, 21), (3, 17), (7, 10), (84, 6), (320, 5), (3_044, 4)] {
            let leaky = buckets * size;
            let wins = |c: usize| (buckets as f64).log2() - c as f64 + choose(c, size) - choose(leaky, size);
            let most = (size..=leaky.min(500)).map(wins).fold(f64::MIN, f64::max);
            assert!((most - log2_error(buckets, size)).abs() < 1e-9, "{buckets} buckets of {size}");
        }
    }

    #[test]
    fn plans_are_safe_and_the_cheapest() {
        for kappa in [Kappa::Bits40, Kappa::Bits64] {
            for missing in [1, 2, 3, 100, 3_000, 3_044, 20_000, 210_000, 300_000, 700_000, 5_000_000] {
                let plan = Plan::of(missing, kappa);
                assert!(plan.leaky() <= MOST_LEAKY && plan.buckets >= 1, "{plan:?}");
                assert!(log2_error(plan.buckets, plan.size) <= -f64::from(kappa.bits()) + 1e-9, "{plan:?}");
            }
        }
        let plan = |missing, kappa| (Plan::of(missing, kappa).buckets, Plan::of(missing, kappa).size);
        assert_eq!(plan(1, Kappa::Bits40), (1, 40));
        assert_eq!(plan(3_044, Kappa::Bits40), (3_044, 4));
        assert_eq!(plan(3_000, Kappa::Bits40), (3_044, 4));
        assert_eq!(plan(200_000, Kappa::Bits40), (200_000, 4));
        assert_eq!(plan(210_000, Kappa::Bits40), (276_325, 3));
        assert_eq!(plan(300_000, Kappa::Bits64), (300_000, 5));
        // Evenly in batches that are just large enough.
        assert_eq!(plan(5_000_000, Kappa::Bits40), (277_778, 3));
        assert_eq!(plan(5_000_000, Kappa::Bits64), (3 << 18, 4));
    }
}
