//! How many products a batch has, and in how many lists: the cheapest that is safe (`rotation.rs` has the
//! bound).
//!
//! The larger a batch, the fewer lists it takes. So a batch can be larger than what is asked for, and what is
//! too much is thrown away; it is as good as the rest.

use super::Kappa;
use super::groups::{MAX_GROUP, log2_error, most_shared};
use super::rotation::fewest_lists;

/// The most records of a batch: what is in work of a phase takes 288 bytes a record, 75 MB at nine shared
/// lists, and masks 14 MB.
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
    /// k: the elements of a bucket (`groups.rs`).
    pub(super) group: usize,
    /// Shared lists of products of x in GF(16): D - 1.
    pub(super) shared_16: usize,
    /// Shared lists of pairs of products of x in GF(4): D - 1.
    pub(super) shared_4: usize,
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
    /// With `records` records and so many elements in a bucket, if lists can be safe then.
    fn with(records: usize, group: usize, kappa: Kappa) -> Option<RecordPlan> {
        let wanted = -f64::from(kappa.bits()) - (KINDS_OF_RECORDS as f64).log2() + 1e-9;
        let shared = |x: usize| {
            let columns = records / (group * 4 / x);
            let is_safe = |shared: &usize| log2_error(columns, [group, *shared], [x, 4]) <= wanted;
            (1..=most_shared(group)).find(is_safe)
        };
        Some(RecordPlan { records, group, shared_16: shared(4)?, shared_4: shared(2)? })
    }

    /// The next batch if `missing` records are missing, 1 at least.
    pub(super) fn of(missing: usize, kappa: Kappa) -> RecordPlan {
        let groups = || (0..=MAX_GROUP.ilog2()).map(|log| 1 << log);
        let powers = (0..=MAX_RECORDS.ilog2()).map(|log| 1 << log).filter(|size| *size > missing);
        let sizes = powers.chain([missing.min(MAX_RECORDS).next_multiple_of(2 * MAX_GROUP)]);
        // Rows of whole bytes of pairs.
        let plans = sizes.flat_map(|size| groups().map(move |group| (size, group)));
        let plans = plans.filter(|(size, group)| size.is_multiple_of(2 * group));
        let plans = plans.filter_map(|(size, group)| RecordPlan::with(size, group, kappa));
        let cost =
            |plan: &RecordPlan| (plan.records * plan.bits_of_a_record()).div_ceil(missing.min(plan.records));
        plans.min_by_key(cost).expect("the largest batch is safe")
    }

    /// What a record costs, in bits, about, at the usual expansion: wide bits with the MACs of offers, values
    /// of offers, narrow bits, and what is opened.
    fn bits_of_a_record(&self) -> usize {
        let kind = |x: usize, y: usize, shared: usize, own_y: usize| {
            let wide = x + (shared * x).div_ceil(self.group);
            96 * wide + x * y + shared * x * y * (4 / x) + 16 * y * (own_y + shared + 1) + y * (shared + 1)
        };
        kind(4, 4, self.shared_16, 1)
            + kind(4, 8, self.shared_16, 0)
            + kind(2, 2, self.shared_4, 1)
            + kind(2, 4, self.shared_4, 0)
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
    use super::*;

    #[test]
    fn lists_are_as_many_as_the_bound_asks_for() {
        assert_eq!(fewest_lists(370_728, 1, 1, Kappa::Bits40), 3);
        assert_eq!(fewest_lists(370_727, 1, 1, Kappa::Bits40), 4);
        assert_eq!(fewest_lists(1 << 20, 1, 1, Kappa::Bits64), 4);
        assert_eq!(fewest_lists((1 << 20) - 1, 1, 1, Kappa::Bits64), 5);
    }

    #[test]
    fn plans_are_safe_and_make_enough() {
        for kappa in [Kappa::Bits40, Kappa::Bits64] {
            for missing in [1, 2, 3, 160, 1_000, 5_000, 200_000, 262_144, 5_000_000] {
                let plan = RecordPlan::of(missing, kappa);
                let RecordPlan { records, group, shared_16, shared_4 } = plan;
                let error = |columns, shared, x| log2_error(columns, [group, shared], [x, 4]).exp2();
                let leak = 2.0 * error(records / group, shared_16, 4)
                    + 2.0 * error(records / (2 * group), shared_4, 2);
                assert!(leak.log2() <= -f64::from(kappa.bits()) + 1e-9, "{plan:?}");
                assert!(records >= missing.min(MAX_RECORDS), "{plan:?}");
                assert!(records <= MAX_RECORDS && records.is_multiple_of(2 * group), "{plan:?}");
                assert!(group <= MAX_GROUP && shared_16.max(shared_4) <= most_shared(group), "{plan:?}");
                let plan = GatePlan::of(missing, kappa);
                let error = super::super::rotation::log2_error(plan.gates, plan.lists, 1);
                assert!(error <= -f64::from(kappa.bits()) + 1e-9);
                assert!(plan.gates >= missing.min(MAX_GATES) && plan.gates <= MAX_GATES.max(missing));
            }
        }
        let plan = RecordPlan::of(1 << 18, Kappa::Bits64);
        assert_eq!(plan, RecordPlan { records: 1 << 18, group: 8, shared_16: 4, shared_4: 5 });
    }
}
