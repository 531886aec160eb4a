//! Cheaters that guess. A strategy says for every element of every list which linear functions the cheater
//! has guessed: a subspace of GF(2^l), where psi stands for x -> Tr(psi x). If several parties are honest,
//! the functions are those of the shares of all of them together: psi has a part for each, and a scalar
//! multiplies all parts.

use polyclave_field::Gf256;

use super::super::super::subfield::Subfield;
use super::*;

/// A subspace of a field.
struct Space {
    /// Bit k - 1 stands for the element with coordinates k.
    elements: u32,
    bits: u32,
}

/// What is guessed in one list.
struct Guess {
    /// By element.
    known: Vec<u32>,
    bits: u32,
}

/// All subspaces of a space of so many bits.
fn subspaces(bits: usize) -> Vec<Space> {
    let size = 1_u32 << bits;
    let closed = |set: u32| {
        let has = |k: u32| k == 0 || set >> (k - 1) & 1 == 1;
        (1..size).all(|a| (1..size).all(|b| !has(a) || !has(b) || has(a ^ b)))
    };
    let sets = (0..1_u64 << (size - 1)).map(|set| set as u32);
    sets.filter(|set| closed(*set))
        .map(|elements| Space { elements, bits: (elements.count_ones() + 1).ilog2() })
        .collect()
}

/// Everything that can be guessed in a list.
fn guesses(spaces: &[Space], products: usize) -> Vec<Guess> {
    let mut all = vec![Guess { known: Vec::new(), bits: 0 }];
    for _ in 0..products {
        let more = |guess: &Guess| {
            let with = |space: &Space| Guess {
                known: [&guess.known[..], &[space.elements]].concat(),
                bits: guess.bits + space.bits,
            };
            spaces.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(more).collect();
    }
    all
}

/// The products of vectors, of an element for each honest party, with scalars, all by coordinates.
struct Products(Vec<Vec<u32>>);

impl Products {
    fn of(field: &Subfield, honest: usize) -> Self {
        let element = |k: u32| {
            let mut element = [0];
            field.elements(&mut element, &[k as u8]);
            Gf256(element[0])
        };
        let product = |a, b| {
            let mut coordinates = [0];
            field.coordinates(&mut coordinates, &[(element(a) * element(b)).0]);
            u32::from(coordinates[0])
        };
        let (bits, size) = (field.bits(), 1_u32 << field.bits());
        let multiple = |vector: u32, scalar: u32| {
            let part = |h: usize| product(vector >> (h * bits) & (size - 1), scalar) << (h * bits);
            (0..honest).map(part).sum()
        };
        let vectors = 0..1_u32 << (bits * honest);
        Products(vectors.map(|vector| (0..size).map(|scalar| multiple(vector, scalar)).collect()).collect())
    }

    /// All psi with psi c in a set.
    fn divided(&self, set: u32, scalar: usize) -> u32 {
        let size = self.0.len() as u32;
        let is_in = |psi: &u32| set >> (self.0[*psi as usize][scalar] - 1) & 1 == 1;
        (1..size).filter(is_in).map(|psi| 1 << (psi - 1)).sum()
    }
}

/// The probability of the best strategy against so many honest parties, exactly.
fn best(field: &Subfield, honest: usize, products: usize, lists: usize) -> f64 {
    let (spaces, table) = (subspaces(honest * field.bits()), Products::of(field, honest));
    let scalars = table.0[0].len() - 1;
    // What is known of the products with every scalar, after every shift: one row for each draw of a list.
    let rows = |guess: &Guess| -> Vec<Vec<u32>> {
        let draws = (0..products).flat_map(|shift| (1..=scalars).map(move |scalar| (shift, scalar)));
        let row = |(shift, scalar)| {
            let taken = (0..products).map(|j| guess.known[(j + shift) % products]);
            taken.map(|set| table.divided(set, scalar)).collect()
        };
        draws.map(row).collect()
    };
    let guesses = guesses(&spaces, products);
    let rows: Vec<_> = guesses.iter().map(rows).collect();
    let draws = rows[0].len();

    let mut best = 0.0_f64;
    let mut strategy = vec![0; lists];
    loop {
        let bits: u32 = strategy.iter().map(|guess| guesses[*guess].bits).sum();
        let worth = 0.5_f64.powi(bits as i32);
        if worth > best {
            let first = &guesses[strategy[0]].known;
            let all = draws.pow(lists as u32 - 1);
            let wins = (0..all).filter(|draw| leaks(first, &strategy[1..], &rows, *draw)).count();
            best = best.max(worth * wins as f64 / all as f64);
        }
        let Some(list) = strategy.iter().position(|guess| guess + 1 < guesses.len()) else { return best };
        strategy[list] += 1;
        strategy[..list].fill(0);
    }
}

/// Whether a function of some bucket is known.
fn leaks(first: &[u32], others: &[usize], rows: &[Vec<Vec<u32>>], draw: usize) -> bool {
    (0..first.len()).any(|j| {
        let mut rest = draw;
        let known = others.iter().fold(first[j], |known, guess| {
            let draws = &rows[*guess];
            let row = &draws[rest % draws.len()];
            rest /= draws.len();
            known & row[j]
        });
        known != 0
    })
}

fn bound(field: &Subfield, products: usize, lists: usize) -> f64 {
    log2_error(products, lists, field.bits()).exp2()
}

#[test]
fn no_strategy_beats_the_bound_and_with_bits_the_best_one_reaches_it() {
    for (products, lists) in
        [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (6, 2), (1, 3), (2, 3), (3, 3), (4, 3), (5, 3)]
    {
        let (best, bound) = (best(&BIT, 1, products, lists), bound(&BIT, products, lists));
        assert!((best / bound - 1.0).abs() < 1e-9, "{products} products, {lists} lists: {best} of {bound}");
    }
}

/// The bound counts a bucket once for every function that is known of it, so it is not reached.
#[test]
fn no_strategy_beats_the_bound_with_larger_fields() {
    for (field, products, lists) in
        [(&GF4, 1, 2), (&GF4, 2, 2), (&GF4, 3, 2), (&GF4, 4, 2), (&GF4, 1, 3), (&GF4, 2, 3), (&GF16, 1, 2)]
    {
        let (best, bound) = (best(field, 1, products, lists), bound(field, products, lists));
        let what = format!("{} bits, {products} products, {lists} lists: {best} of {bound}", field.bits());
        assert!(best <= bound * (1.0 + 1e-9) && best > bound / 8.0, "{what}");
    }
}

/// Functions of the shares of two or three honest parties together, not only of their sums: the bound is the
/// same.
#[test]
fn no_strategy_beats_the_bound_with_functions_of_several_honest_parties() {
    for (field, honest, products, lists) in [
        (&BIT, 2, 1, 2),
        (&BIT, 2, 3, 2),
        (&BIT, 2, 4, 2),
        (&BIT, 2, 3, 3),
        (&BIT, 3, 2, 2),
        (&GF4, 2, 1, 2),
        (&GF4, 2, 2, 2),
        (&GF4, 2, 1, 3),
    ] {
        let (best, bound) = (best(field, honest, products, lists), bound(field, products, lists));
        let what = format!("{} bits, {honest} honest, {products} products, {lists} lists", field.bits());
        assert!(best <= bound * (1.0 + 1e-9) && best > bound / 8.0, "{what}: {best} of {bound}");
    }
}

/// Cheaters with random strategies against drawn rotations. The guesses themselves are taken to be right,
/// with the probability that they have.
#[test]
fn cheaters_win_against_drawn_rotations_no_oftener_than_the_bound_says() {
    let runs = 3_000;
    for (number, (field, products, lists)) in
        [(&BIT, 6, 3), (&GF4, 5, 2), (&GF4, 4, 3), (&GF16, 3, 2)].into_iter().enumerate()
    {
        let (spaces, table, bits) = (subspaces(field.bits()), Products::of(field, 1), field.bits());
        let spaces: Vec<_> = spaces.iter().filter(|space| space.bits > 0).collect();
        let mut choices = Draws(AesPrg::new(&[number as u8; 16], 1));
        let mut won = 0;
        for strategy in 0..20 {
            // One or two elements of every list.
            let mut guessed = 0;
            let mut lists_known = vec![vec![0; products]; lists];
            for known in &mut lists_known {
                for _ in 0..1 + choices.below(2) {
                    let place = choices.below(products as u64) as usize;
                    if known[place] == 0 {
                        let space = spaces[choices.below(spaces.len() as u64) as usize];
                        known[place] = space.elements;
                        guessed += space.bits;
                    }
                }
            }
            let wins = (0..runs).filter(|run| {
                let coin = coin(1 << 40 | (number as u64) << 32 | strategy << 16 | run);
                let rotation = Rotation::draw(&coin, "cheaters", products, lists, field);
                rotation.pieces(PIECE).any(|piece| {
                    let known = |list: usize| {
                        let mut scalar = [0];
                        field.coordinates(&mut scalar, &[rotation.scalar(list)]);
                        piece
                            .of(list, &lists_known[list])
                            .iter()
                            .map(move |set| (*set, usize::from(scalar[0])))
                    };
                    let mut buckets = vec![u32::MAX; piece.len];
                    for list in 0..lists {
                        let divided = known(list).map(|(set, scalar)| table.divided(set, scalar));
                        buckets.iter_mut().zip(divided).for_each(|(bucket, known)| *bucket &= known);
                    }
                    buckets.into_iter().any(|known| known != 0)
                })
            });
            let wins = wins.count();
            won += wins;
            let (passes, runs) = (0.5_f64.powi(guessed as i32), runs as f64);
            // Of the wins that the bound allows if all guesses are right, and five standard deviations.
            let most = (bound(field, products, lists) / passes).min(1.0) * runs;
            let what = format!("{bits} bits, {products} products, {lists} lists, {guessed} bits guessed");
            assert!(wins as f64 <= most + 5.0 * most.sqrt(), "{what}: {wins} wins, {most} allowed");
        }
        assert!(won > 0, "they have a chance");
    }
}
