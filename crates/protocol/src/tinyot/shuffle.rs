//! Uniformly random permutations of large memory, from coins. Everything here is public except the data that is moved.

use polyclave_kernels::aes_prg::AesPrg;

/// Items in a bin, about: 229 kB of leaky triples.
const BIN: usize = 1 << 12;

/// Puts items into a uniformly random order, by coins (Rao 1961, Sandelius 1962): each goes to a bin that is drawn for it alone, and then
/// every bin is shuffled. Given the items in a bin, all their orders are equally likely, so all orders of all items are. No step
/// accesses more memory at random than the second-level cache holds, or more places at once than there are bins.
pub(super) fn shuffle<T>(coin: &[u8; 32], items: &mut [T]) {
    shuffle_through(coin, (items.len() / BIN).next_power_of_two(), items);
}

/// With this many bins, a power of two.
fn shuffle_through<T>(coin: &[u8; 32], bins: usize, items: &mut [T]) {
    let seed = blake3::derive_key("polyclave 2026 TinyOT buckets", coin);
    let mut draws = Draws::new(seed.first_chunk().expect("it has 32 bytes"));
    let mut goals: Vec<u32> = items.iter().map(|_| draws.next() & (bins as u32 - 1)).collect();
    let mut ends = vec![0; bins];
    goals.iter().for_each(|goal| ends[*goal as usize] += 1);
    let mut next = Vec::with_capacity(bins);
    let mut sum = 0;
    for end in &mut ends {
        next.push(sum);
        sum += *end;
        *end = sum;
    }
    for bin in 0..bins {
        // What is at the head of a bin goes where it belongs, until that is here.
        while next[bin] < ends[bin] {
            let at = next[bin];
            let goal = goals[at] as usize;
            items.swap(at, next[goal]);
            goals.swap(at, next[goal]);
            next[goal] += 1;
        }
    }
    let mut start = 0;
    for end in ends {
        let bin = &mut items[start..end];
        for i in (1..bin.len()).rev() {
            bin.swap(i, draws.below(i as u32 + 1) as usize);
        }
        start = end;
    }
}

/// Random numbers. Public.
struct Draws {
    stream: AesPrg,
    words: [[u8; 4]; 1024],
    used: usize,
}

impl Draws {
    fn new(seed: &[u8; 16]) -> Self {
        Draws { stream: AesPrg::new(seed, 0), words: [[0; 4]; 1024], used: 1024 }
    }

    fn next(&mut self) -> u32 {
        if self.used == self.words.len() {
            self.stream.fill(self.words.as_flattened_mut());
            self.used = 0;
        }
        self.used += 1;
        u32::from_le_bytes(self.words[self.used - 1])
    }

    /// Uniform below a bound (Lemire 2019, "Fast random integer generation in an interval").
    fn below(&mut self, bound: u32) -> u32 {
        loop {
            let product = u64::from(self.next()) * u64::from(bound);
            let low = product as u32;
            // Each upper half has the same number of multiples of the bound, once the first 2^32 mod bound are left out.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 32) as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_everything_and_is_another_for_another_coin() {
        for count in [0, 1, 2, 1000, 5 * BIN] {
            let [mut one, mut another]: [Vec<usize>; 2] = [(); 2].map(|()| (0..count).collect());
            shuffle(&[3; 32], &mut one);
            shuffle(&[4; 32], &mut another);
            assert!(count < 1000 || one != another);
            one.sort_unstable();
            assert!(one.into_iter().eq(0..count));
        }
    }

    /// All 24 orders of four come up, each about as often: chi square with 23 degrees of freedom.
    #[test]
    fn orders_are_uniform() {
        for bins in [1, 2, 8] {
            let mut seen = std::collections::HashMap::<[u8; 4], u32>::new();
            for run in 0..24 * 500_u32 {
                let mut coin = [0; 32];
                coin[..4].copy_from_slice(&run.to_le_bytes());
                let mut items = [0, 1, 2, 3];
                shuffle_through(&coin, bins, &mut items);
                *seen.entry(items).or_default() += 1;
            }
            let chi: f64 = seen.values().map(|n| (f64::from(*n) - 500.0).powi(2) / 500.0).sum();
            assert!(seen.len() == 24 && chi < 60.0, "{bins} bins: {} orders, chi square {chi}", seen.len());
        }
    }
}
