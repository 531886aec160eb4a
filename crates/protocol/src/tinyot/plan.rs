//! How many products a batch has, and in how many lists: the cheapest that is safe (`rotation.rs` has the
//! bound).
//!
//! The larger a batch, the fewer lists it takes. So a batch can be larger than what is asked for, and what is
//! too much is thrown away; it is as good as the rest.

use super::Kappa;
use super::rotation::fewest_lists;

/// The most records of a batch: its lists take 43 bytes a product, 101 MB at nine lists.
const MAX_RECORDS: usize = 1 << 18;
/// The most gates of a batch: 43 bytes a product, 180 MB at four lists.
const MAX_GATES: usize = 1 << 20;

/// The most unit vectors of a batch: their lists take 80 bytes a product, 26 MB at five lists; the vectors 35
/// or 137 MB.
const MAX_VECTORS: usize = 1 << 16;

/// What a wide authenticated bit with its offer costs more than a narrow one, about.
const WIDE: usize = 3;

/// A batch of records for inversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlan {
    /// N.
    pub(super) records: usize,
    /// Lists of products of x in GF(16).
    pub(super) lists_16: usize,
    /// Lists of products of x in GF(4).
    pub(super) lists_4: usize,
}

/// A batch of products of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GatePlan {
    /// N.
    pub(super) gates: usize,
    /// B.
    pub(super) lists: usize,
}

/// A batch of unit vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorPlan {
    /// N.
    pub(super) vectors: usize,
    /// B.
    pub(super) lists: usize,
}

impl RecordPlan {
    /// With `records` records.
    pub(super) fn with(records: usize, kappa: Kappa) -> RecordPlan {
        let lists = |bits| fewest_lists(records, bits, KINDS_OF_RECORDS, kappa);
        RecordPlan { records, lists_16: lists(4), lists_4: lists(2) }
    }

    /// The next batch if `missing` records are missing, 1 at least.
    pub(super) fn of(missing: usize, kappa: Kappa) -> RecordPlan {
        cheapest(missing, MAX_RECORDS, |records| {
            let plan = RecordPlan::with(records, kappa);
            (plan.bits_of_a_record(), plan)
        })
    }

    /// What a record costs, in narrow bits.
    fn bits_of_a_record(&self) -> usize {
        let (b, c) = (self.lists_16, self.lists_4);
        let wide = 2 * 4 * b + 2 * 2 * c;
        // Narrow bits of P1, I1, I2 and P3, and the mask of the result.
        let narrow = 4 * b + 2 * c + 4 * (c - 1) + 8 * (b - 1) + 8;
        WIDE * wide + narrow
    }
}

/// P1, I1, I2 and P3 have to be safe together.
const KINDS_OF_RECORDS: usize = 4;

impl GatePlan {
    /// The next batch if `missing` gates are missing, 1 at least.
    pub(super) fn of(missing: usize, kappa: Kappa) -> GatePlan {
        cheapest(missing, MAX_GATES, |gates| {
            let lists = fewest_lists(gates, 1, 1, kappa);
            ((WIDE + 1) * lists + 1, GatePlan { gates, lists })
        })
    }
}

impl VectorPlan {
    /// The next batch if `missing` vectors of 2^in_bits entries are missing, 1 at least.
    pub(super) fn of(missing: usize, in_bits: u8, kappa: Kappa) -> VectorPlan {
        let (steps, entries) = (usize::from(in_bits) - 1, 1 << in_bits);
        cheapest(missing, MAX_VECTORS, |vectors| {
            let lists = fewest_lists(vectors, 1, steps, kappa);
            let cost = WIDE * steps * lists + (entries - 2) * (lists - 1) + entries;
            (cost, VectorPlan { vectors, lists })
        })
    }
}

/// The plan with the least cost for each item that is missing, of those that make just these, or a power of
/// two.
fn cheapest<P>(missing: usize, most: usize, plan: impl Fn(usize) -> (usize, P)) -> P {
    let powers = (0..=most.ilog2()).map(|log| 1 << log).filter(|size| *size > missing);
    let plans = powers.chain([missing.min(most)]).map(|size| {
        let (cost, plan) = plan(size);
        ((size * cost).div_ceil(missing.min(size)), plan)
    });
    let (_, plan) = plans.min_by_key(|(cost, _)| *cost).expect("there is one at least");
    plan
}

#[cfg(test)]
mod tests {
    use super::super::rotation::log2_error;
    use super::*;

    #[test]
    fn lists_are_as_many_as_the_bound_asks_for() {
        for (kappa, bits, least) in [
            (Kappa::Bits40, 4, [126_910, 1_003, 90, 21]),
            (Kappa::Bits40, 2, [454_047, 3_722, 337, 80]),
            (Kappa::Bits64, 4, [515_000_000, 256_565, 5_700, 581]),
            (Kappa::Bits64, 2, [1_860_000_000, 952_695, 21_563, 2_221]),
        ] {
            for (lists, least) in (3..).zip(least).filter(|(_, least)| *least < 1 << 24) {
                assert_eq!(fewest_lists(least, bits, 4, kappa), lists, "{kappa:?} {bits}");
                assert_eq!(fewest_lists(least - 1, bits, 4, kappa), lists + 1, "{kappa:?} {bits}");
            }
        }
        assert_eq!(fewest_lists(370_728, 1, 1, Kappa::Bits40), 3);
        assert_eq!(fewest_lists(370_727, 1, 1, Kappa::Bits40), 4);
        assert_eq!(fewest_lists(1 << 20, 1, 1, Kappa::Bits64), 4);
        assert_eq!(fewest_lists((1 << 20) - 1, 1, 1, Kappa::Bits64), 5);
    }

    #[test]
    fn plans_are_safe_and_make_enough() {
        for kappa in [Kappa::Bits40, Kappa::Bits64] {
            for missing in [1, 2, 160, 1_000, 5_000, 200_000, 262_144, 5_000_000] {
                let plan = RecordPlan::of(missing, kappa);
                let error = |bits, lists| log2_error(plan.records, lists, bits).exp2();
                let leak = 2.0 * error(4, plan.lists_16) + 2.0 * error(2, plan.lists_4);
                assert!(leak.log2() <= -f64::from(kappa.bits()) + 1e-9, "{plan:?}");
                assert!(plan.records >= missing.min(MAX_RECORDS), "{plan:?}");
                let plan = GatePlan::of(missing, kappa);
                assert!(log2_error(plan.gates, plan.lists, 1) <= -f64::from(kappa.bits()) + 1e-9);
                assert!(plan.gates >= missing.min(MAX_GATES) && plan.gates <= MAX_GATES.max(missing));
            }
        }
        let plan = RecordPlan::of(1 << 18, Kappa::Bits64);
        assert_eq!((plan.records, plan.lists_16, plan.lists_4), (1 << 18, 4, 5));
        let plan = RecordPlan::of(1 << 17, Kappa::Bits40);
        assert_eq!((plan.records, plan.lists_16, plan.lists_4), (1 << 17, 3, 4));
    }
}
