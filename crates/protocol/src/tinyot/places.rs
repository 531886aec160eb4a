//! Which message of a party is which while it makes a batch of records.

use super::plan::RecordPlan;

/// Messages of a party that fills a list: three of transfers, then the offers.
pub(super) const OFFERS: u64 = 3;
/// Messages of a party that fills a shared list: those of bits for y, then as before.
pub(super) const SHARED_OFFERS: u64 = 2 * OFFERS;
/// What a phase of records opens: differences, and sums for MACs, of both kinds.
pub(super) const OPENINGS: u64 = 4;
/// A random element, which every check of products takes.
const RANDOM: u64 = 3;
/// Products for zero tests, which the first check makes.
const PRODUCTS: u64 = 4;
const COINS: u64 = 2;
const ZERO_TEST: u64 = 4;

/// Plans that are not safe: with eight elements in a bucket, and with one.
pub(super) const PLANS: [RecordPlan; 2] = [
    RecordPlan { records: 128, group: 8, shared_16: 2, shared_4: 3 },
    RecordPlan { records: 32, group: 1, shared_16: 3, shared_4: 2 },
];

/// The messages of a batch, if each list is one tile.
pub(super) struct Places {
    pub(super) plan: RecordPlan,
    /// Of all lists of a phase.
    lists: u64,
}

impl Places {
    /// Of each kind there is a list of its own, shared ones, and bits for MACs.
    pub(super) fn of(plan: RecordPlan) -> Self {
        let shared = (plan.shared_16 + plan.shared_4) as u64;
        let lists = 2 * (OFFERS + 1) + (SHARED_OFFERS + 1) * shared + 2 * OFFERS;
        Places { plan, lists }
    }

    /// What the check of a phase opens: after its coins.
    pub(super) fn rho(&self, phase: u64) -> u64 {
        match phase {
            0 => self.lists + RANDOM + PRODUCTS + COINS,
            _ => self.second() + self.lists + RANDOM + COINS,
        }
    }

    /// What comes after the check of a phase.
    pub(super) fn checked(&self, phase: u64) -> u64 {
        self.rho(phase) + 1 + ZERO_TEST
    }

    /// What the phase opens, after coins: differences of the first kind, of the second, and sums for the MACs
    /// of both.
    pub(super) fn differences(&self, phase: u64) -> u64 {
        self.checked(phase) + COINS
    }

    /// Where phase 2 begins, after coins.
    pub(super) fn second(&self) -> u64 {
        self.differences(0) + OPENINGS + COINS
    }

    /// The offers of a phase.
    pub(super) fn offers(&self, phase: u64) -> Vec<u64> {
        let (mut at, mut offers) = (if phase == 0 { 0 } else { self.second() }, Vec::new());
        for shared in [self.plan.shared_16, self.plan.shared_4] {
            offers.push(at + OFFERS);
            at += OFFERS + 1;
            for _ in 0..shared {
                offers.push(at + SHARED_OFFERS);
                at += SHARED_OFFERS + 1;
            }
            at += OFFERS;
        }
        offers
    }

    /// What more than two parties open of the bits of the results' masks: after coins, bits, a random element
    /// and coins.
    pub(super) fn bits(&self) -> u64 {
        self.differences(1) + OPENINGS + COINS + OFFERS + RANDOM + COINS
    }

    /// All messages of more than two parties: coins and the zero test come last.
    pub(super) fn all(&self) -> u64 {
        self.bits() + 1 + COINS + ZERO_TEST
    }

    /// All messages of two parties: bits come before.
    pub(super) fn all_of_two(&self) -> u64 {
        self.differences(1) + OPENINGS + COINS + OFFERS + COINS + ZERO_TEST
    }
}
