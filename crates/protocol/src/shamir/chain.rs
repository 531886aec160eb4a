//! Addition chains for the power 254, for inversion by multiplications only.

/// The products that make x^254, in rounds; a product names two earlier values, and value 0 is x.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    rounds: Vec<Vec<(usize, usize)>>,
    multiplications: usize,
}

impl Chain {
    /// Plans a chain of exponents from 1 to 254: each is the sum of two earlier ones. If there are several
    /// such pairs, the one that is ready first is taken, so products that do not depend on each other share a
    /// round.
    ///
    /// # Panics
    /// If it is no addition chain for 254: chains are part of the program.
    fn new(exponents: &[u32]) -> Chain {
        assert_eq!((exponents.first(), exponents.last()), (Some(&1), Some(&254)), "a chain from 1 to 254");
        let mut depths = vec![0];
        let mut pairs = Vec::new();
        for (k, exponent) in exponents.iter().enumerate().skip(1) {
            let candidates = (0..k).flat_map(|i| (0..=i).map(move |j| (i, j)));
            let sums = candidates.filter(|(i, j)| exponents[*i] + exponents[*j] == *exponent);
            let best =
                sums.min_by_key(|(i, j)| depths[*i].max(depths[*j])).expect("each is a sum of two before");
            depths.push(1 + depths[best.0].max(depths[best.1]));
            pairs.push(best);
        }
        // Values are numbered in the order in which they are made: by round, then as in the chain.
        let mut order: Vec<usize> = (0..exponents.len()).collect();
        order.sort_by_key(|i| depths[*i]);
        let number = |i: usize| order.iter().position(|o| *o == i).expect("every value has a number");
        let mut rounds = vec![Vec::new(); depths[exponents.len() - 1]];
        for i in &order[1..] {
            let (a, b) = pairs[i - 1];
            rounds[depths[*i] - 1].push((number(a), number(b)));
        }
        Chain { rounds, multiplications: pairs.len() }
    }

    /// The products, round by round. The last round makes x^254 and nothing else.
    pub(super) fn rounds(&self) -> &[Vec<(usize, usize)>] {
        &self.rounds
    }

    /// Number of products.
    pub(super) fn multiplications(&self) -> usize {
        self.multiplications
    }

    /// Square and multiply, from the top bit.
    pub(super) fn standard() -> Chain {
        Chain::new(&[1, 2, 3, 6, 7, 14, 15, 30, 31, 62, 63, 126, 127, 254])
    }

    /// The least number of products (VIFF note, 1.1.1; Damgard and Keller 2010 have its length without
    /// printing it).
    pub(super) fn shortest() -> Chain {
        Chain::new(&[1, 2, 3, 6, 12, 15, 30, 60, 63, 126, 252, 254])
    }

    /// One of the shortest chains with the least depth (Damgard and Keller 2010, section 4.1).
    pub(super) fn shortest_least_rounds() -> Chain {
        Chain::new(&[1, 2, 4, 8, 9, 18, 19, 36, 55, 72, 127, 254])
    }

    /// The least depth (Damgard and Keller 2010, section 4.1).
    pub(super) fn least_rounds() -> Chain {
        Chain::new(&[1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 254])
    }

    /// The other chain of the VIFF note (section 2), of 9 rounds.
    pub(super) fn viff_9() -> Chain {
        Chain::new(&[1, 2, 4, 8, 9, 16, 25, 50, 54, 100, 200, 254])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_field::Gf256;

    #[test]
    fn chains_invert_and_have_the_published_lengths() {
        let chains = [
            (Chain::standard(), 13, 13),
            (Chain::shortest(), 11, 11),
            (Chain::shortest_least_rounds(), 11, 9),
            (Chain::least_rounds(), 13, 8),
            (Chain::viff_9(), 11, 9),
        ];
        for (chain, multiplications, rounds) in chains {
            assert_eq!((chain.multiplications(), chain.rounds().len()), (multiplications, rounds));
            for x in (0..=255).map(Gf256) {
                let mut values = vec![x];
                for round in chain.rounds() {
                    let products: Vec<_> = round.iter().map(|(a, b)| values[*a] * values[*b]).collect();
                    values.extend(products);
                }
                assert_eq!(*values.last().expect("a chain has values"), x.inverse_or_zero());
            }
        }
    }
}
