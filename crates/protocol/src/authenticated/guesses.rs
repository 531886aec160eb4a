//! The cost of failed checks: how likely a forged MAC is after a number of them, and when a key must not be
//! used any more.
//!
//! A cheater can test a guess at one bit of an honest share of the key ([`crate::mascot`], [`crate::ot`]). A
//! right guess passes and leaves no trace. A wrong guess fails and is seen by the holder of the share, but it
//! tells the cheater the bit as well. So a cheater that may fail b times can guess all k bits one after the
//! other. It has the whole share if no more than b of the k guesses are wrong: with probability sum over j <=
//! b of C(k, j) 2^-k. That is the bound, and not 2^(b-k): for k = 64 and b = 5 it is 2^-41, and not 2^-59.
//!
//! A peer may leave a check of transfers or of products with shares of the key (COPEe) **without an answer**
//! once it could know the coins. That could be a guess in disguise, because nothing shows that no guess was
//! made. It does not tell the peer a bit: the holder of the share compares first, and no message before that
//! depends on the share (`ot/`, `mascot/cope.rs`), so when the peer decides to be silent it does not know
//! whether its guess is right. But it has chosen among coins. A peer that may be silent s times has the best
//! of s + 1 tosses instead of one, so s silences count as a factor of 1 + s. (That is generous: coins that
//! suit a cheater that has guessed d bits come with probability 2^(2d+1-k) and give it one bit more,
//! `cope.rs`. For d below 20 they hardly ever come, and for all k bits together no more than a few times.) So
//! a machine that is killed in the middle of a check costs next to nothing, and a machine that does this all
//! the time is noticed.
//!
//! **How many comparisons can fail.** All streams and workers of a node compare one after the other, and none
//! after one has failed ([`GuessGuard`](crate::GuessGuard)). So until the operators order a refresh b is 1 at
//! most, however many streams there are. In a refresh one process works, on one stream, and each round that
//! fails adds 1. Checks of the whole key (`authenticated/check.rs`) tell at most that one guess at all that
//! is left of it was wrong. In one process only the first of them counts that looks wrong
//! ([`crate::retirement`]), so W workers give W such guesses before the quarantine has reached them all.
//! [`online_bound_log2`] is the probability that one of them is right.
//!
//! **Silence in a check of leaky products** (`tinyot/coset_check.rs`) tells nothing of the key. But the peer
//! may have guessed bits of material in vain, and can try again. A batch in which it guesses is one of which
//! it knows a mask, afterwards and undetected, with 2^-kappa, plus 9 2^-64 for what else can go wrong in a
//! batch (docs/protocols/tower.md). And a batch in which it guesses at least one bit fails with 1/2 or more,
//! which counts, as a failure or as silence. So of all batches in which it guesses there are twice as many as
//! failures can be expected, at most, and [`spoilt_bound_log2`] multiplies. After [`MAX_UNANSWERED`] silences
//! a key is not used any more, except to carry stored values over: a refresh or a reshare, which each further
//! silence ends until it is ordered again. Checks that were under way at that moment, on all streams of all
//! workers, can still end in silence. For kappa = 64, which all nodes use, this is 2^-48. For kappa = 40 it
//! is 2^-27: that is for comparison with papers, and no node serves with it.

/// log2 of the most that a forged MAC may be likely: beyond it a key is not used any more.
pub const MAX_FORGED_LOG2: f64 = -40.0;
/// After so many checks that were left without an answer a key is used only to carry stored values over.
pub const MAX_UNANSWERED: u32 = 1024;

/// The most checks of material that are under way at a node at the same time: on all streams of all its
/// workers. 64 workers are the most, with 8 streams each for material and 16 channels for requests as it is
/// usual.
pub const MAX_AT_ONCE: u32 = 64 * (8 + 16);
/// What can go wrong in a batch besides guesses at masks, in units of 2^-64.
const OTHER_ERRORS: f64 = 9.0;

/// log2 of the probability that a cheater knows a mask of a batch that is handed out, until so many silences
/// that the key is not used any more. `kappa` is in bits; so many checks are under way at the same time.
pub fn spoilt_bound_log2(kappa: u32, at_once: u32) -> f64 {
    // The last failure ends all, except what is under way.
    let failures = f64::from(MAX_UNANSWERED) + f64::from(at_once);
    let batches = 2.0 * failures;
    let each = (-f64::from(kappa)).exp2() + OTHER_ERRORS * (-64.0_f64).exp2();
    (batches * each).log2().min(0.0)
}

/// log2 of the probability that a wrong MAC is accepted, under a key of this many bits, before the first
/// failed check has put all workers of a node under quarantine.
pub fn online_bound_log2(bits: u32, workers: u32) -> f64 {
    let one = Guesses { failed: 1, unanswered: 0 }.forgery_bound_log2(bits);
    (one + f64::from(workers).log2()).min(0.0)
}

/// Checks under one MAC key that did not pass, as one party has seen them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guesses {
    /// Checks that failed: each that could tell a bit of the key, and of the others one for all that failed
    /// at the same time.
    pub failed: u32,
    /// Checks that a peer left without an answer ([`Error::Unanswered`](crate::Error::Unanswered)).
    pub unanswered: u32,
}

impl Guesses {
    /// log2 of the probability that a MAC is forged after these checks, under a key of this many bits.
    pub fn forgery_bound_log2(self, bits: u32) -> f64 {
        if self.failed >= bits {
            return 0.0;
        }
        // C(k, j) = C(k, j - 1) (k - j + 1) / j.
        let (mut sum, mut term) = (1.0, 1.0);
        for j in 1..=self.failed {
            term *= f64::from(bits - j + 1) / f64::from(j);
            sum += term;
        }
        let tosses = 1.0 + f64::from(self.unanswered);
        (sum.log2() + tosses.log2() - f64::from(bits)).min(0.0)
    }

    /// Whether a key of this many bits may still be used, at least to move stored values from it to a fresh
    /// key.
    pub fn may_go_on(self, bits: u32) -> bool {
        self.forgery_bound_log2(bits) <= MAX_FORGED_LOG2
    }

    /// Whether values that are stored under a key of this many bits must move to a fresh key now: because
    /// after one more failure they could not, or because too many checks were left without an answer.
    pub fn must_refresh(self, bits: u32) -> bool {
        if self.unanswered >= MAX_UNANSWERED {
            return true;
        }
        let one_more = Guesses { failed: self.failed.saturating_add(1), ..self };
        !one_more.may_go_on(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(failed: u32, unanswered: u32) -> Guesses {
        Guesses { failed, unanswered }
    }

    /// Sums of binomial coefficients of 64, exactly.
    #[test]
    fn the_bound_is_the_sum_of_binomial_coefficients() {
        let sums: [u64; 7] = [1, 65, 2081, 43_745, 679_121, 8_303_633, 83_278_001];
        for (failed, sum) in (0..).zip(sums) {
            let bound = after(failed, 0).forgery_bound_log2(64);
            assert!((bound - ((sum as f64).log2() - 64.0)).abs() < 1e-9, "{failed}: {bound}");
        }
        let five = after(5, 0).forgery_bound_log2(64);
        assert!((-41.1..-41.0).contains(&five), "{five}: it is not 2^(b - 64)");
        for failed in [64, 65, 1000] {
            assert_eq!(
                after(failed, 0).forgery_bound_log2(64),
                0.0,
                "{failed}: the cheater may have every bit"
            );
        }
    }

    /// Counted out for a small key: of all patterns of right and wrong guesses at its bits, those with at
    /// most b wrong ones.
    #[test]
    fn the_bound_is_the_chance_of_so_many_wrong_guesses() {
        for failed in 0..=10 {
            let lucky = (0..1u32 << 10).filter(|wrong| wrong.count_ones() <= failed).count();
            let bound = after(failed, 0).forgery_bound_log2(10).exp2();
            assert!((bound - lucky as f64 / 1024.0).abs() < 1e-12, "{failed}: {bound}");
        }
    }

    /// With any number of streams and workers a cheater that serves with others comes no further than this.
    #[test]
    fn the_bounds_cover_all_streams_and_workers_and_both_kappas() {
        let within = |bound: f64, log2: f64| (bound - log2).abs() < 0.1;
        // One worker with one stream, and as many as there can be.
        assert!(within(spoilt_bound_log2(64, 1), -49.7), "{}", spoilt_bound_log2(64, 1));
        assert!(within(spoilt_bound_log2(64, MAX_AT_ONCE), -48.4), "{}", spoilt_bound_log2(64, MAX_AT_ONCE));
        assert!(within(spoilt_bound_log2(40, 1), -29.0), "{}", spoilt_bound_log2(40, 1));
        assert!(within(spoilt_bound_log2(40, MAX_AT_ONCE), -27.7), "{}", spoilt_bound_log2(40, MAX_AT_ONCE));
        // 65 of 2^64 patterns of guesses.
        assert!(within(online_bound_log2(64, 1), -58.0), "{}", online_bound_log2(64, 1));
        assert!(within(online_bound_log2(64, 64), -52.0), "{}", online_bound_log2(64, 64));
    }

    /// Of guesses that are each wrong half of the time there are twice as many as wrong ones, on average:
    /// counted out for a few.
    #[test]
    fn there_are_twice_as_many_guesses_as_failures() {
        // The number of guesses up to the third wrong one: n with probability C(n - 1, 2) / 2^n.
        let mean: f64 =
            (3..200).map(|n| f64::from(n) * f64::from((n - 1) * (n - 2) / 2) / f64::from(n).exp2()).sum();
        assert!((mean - 6.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn every_silence_is_one_more_toss_of_coins() {
        assert_eq!(after(0, 7).forgery_bound_log2(64), -61.0);
        assert_eq!(after(0, u32::MAX).forgery_bound_log2(16), 0.0, "a probability");
    }

    #[test]
    fn a_key_of_64_bits_serves_up_to_five_failures_and_must_be_replaced_at_the_fifth() {
        let most = |holds: fn(Guesses) -> bool| (0..64).take_while(|failed| holds(after(*failed, 0))).last();
        assert_eq!(most(|guesses| guesses.may_go_on(64)), Some(5));
        assert_eq!(most(|guesses| !guesses.must_refresh(64)), Some(4));
        assert!(!after(0, MAX_UNANSWERED - 1).must_refresh(64), "machines are killed");
        assert!(after(0, MAX_UNANSWERED).must_refresh(64), "and not so often by chance");
        assert!(after(0, MAX_UNANSWERED).may_go_on(64), "what is stored can be carried over");
        assert!(!after(1, 0).may_go_on(40), "a key of 40 bits has nothing to spare");
    }
}
