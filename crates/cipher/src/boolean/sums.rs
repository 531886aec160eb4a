//! Several sums of the same bits with few XORs: Paar's greedy sharing ("Optimized arithmetic for Reed-Solomon
//! encoders", ISIT 1997). The pair of bits that most sums still have in common is added first, until every
//! sum is one bit.

use super::{Bit, BooleanBuilder};

/// The XORs that make certain sums.
pub(super) struct Sums {
    /// The k-th makes bit `inputs + k` of two before it.
    pairs: Vec<(usize, usize)>,
    /// Which bit each sum is, `None` for the empty sum.
    results: Vec<Option<usize>>,
}

impl Sums {
    /// For sums of at most 32 bits: bit i of a mask says whether input i is in the sum.
    pub(super) fn of(inputs: usize, masks: &[u32]) -> Sums {
        let mut sums: Vec<Vec<bool>> =
            masks.iter().map(|mask| (0..inputs).map(|i| mask >> i & 1 == 1).collect()).collect();
        let mut pairs = Vec::new();
        while let Some((a, b)) = most_common_pair(&sums) {
            pairs.push((a, b));
            for sum in &mut sums {
                let both = sum[a] && sum[b];
                sum.push(both);
                if both {
                    (sum[a], sum[b]) = (false, false);
                }
            }
        }
        Sums { pairs, results: sums.iter().map(|sum| sum.iter().position(|is_in| *is_in)).collect() }
    }

    /// Writes the gates.
    pub(super) fn write(&self, b: &mut BooleanBuilder, inputs: &[Bit]) -> Vec<Bit> {
        let mut bits = inputs.to_vec();
        for (x, y) in &self.pairs {
            let sum = b.xor(bits[*x], bits[*y]);
            bits.push(sum);
        }
        self.results.iter().map(|at| at.map_or(Bit::ZERO, |at| bits[at])).collect()
    }
}

/// The first pair that is in the most sums, if some sum has a pair.
fn most_common_pair(sums: &[Vec<bool>]) -> Option<(usize, usize)> {
    let bits = sums.first()?.len();
    let pairs = (0..bits).flat_map(|b| (0..b).map(move |a| (a, b)));
    let counted = pairs.map(|(a, b)| (sums.iter().filter(|sum| sum[a] && sum[b]).count(), (a, b)));
    let best = counted.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 > 0).then_some(best.1)
}
