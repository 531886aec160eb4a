//! The code of the shared lists, and the bound against all strategies of a cheater, exactly where there are
//! few.

mod errors;

use std::sync::LazyLock;

use super::super::subfield::{BYTE, GF4};
use super::*;

static P1: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF16, &GF16));
static P3: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF16, &BYTE));
static I1: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF4, &GF4));
static I2: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF4, &GF16));

fn layout(kind: &'static Kind, group: usize, shared: usize) -> Layout {
    Layout { kind, group, shared, products: 64 * group }
}

/// Whether a square matrix over F is invertible.
fn is_invertible(mut rows: Vec<Vec<Gf256>>) -> bool {
    for i in 0..rows.len() {
        let Some(pivot) = (i..rows.len()).find(|row| rows[*row][i] != Gf256(0)) else { return false };
        rows.swap(i, pivot);
        let (above, below) = rows.split_at_mut(i + 1);
        for row in below {
            let factor = row[i] * above[i][i].pow(254);
            row.iter_mut().zip(&above[i]).for_each(|(x, pivot)| *x += *pivot * factor);
        }
    }
    true
}

/// A code with a generator matrix \[1 | P\] has words with as few zeros as any only if all square parts of P
/// are invertible.
#[test]
fn every_square_part_of_the_matrix_is_invertible() {
    for group in [1, 2, 4, 8] {
        let shared = most_shared(group);
        for rows in 1_u32..1 << group {
            let rows: Vec<usize> = (0..group).filter(|i| rows >> i & 1 == 1).collect();
            let parts = (0_u32..1 << shared).filter(|columns| columns.count_ones() as usize == rows.len());
            for columns in parts {
                let row = |i: &usize| {
                    let columns = (0..shared).filter(|b| columns >> b & 1 == 1);
                    columns.map(|b| entry(&GF16, group, *i, b)).collect()
                };
                assert!(is_invertible(rows.iter().map(row).collect()), "{group}: {rows:?}, {columns:b}");
            }
        }
    }
}

/// So a word tells all values apart.
#[test]
fn weights_are_independent_over_the_field_of_values() {
    for kind in [&*P1, &*P3, &*I1, &*I2] {
        let layout = layout(kind, MAX_GROUP, 1);
        let of_row = |row| {
            let basis = kind.y.basis().iter();
            basis.map(move |x| Gf2_64::multiply(Layout::weight(row), Gf2_64::embed(*x)))
        };
        let mut words: Vec<u64> = (0..layout.rows()).flat_map(of_row).collect();
        assert!(words.len() <= 64);
        let mut rank = 0;
        for bit in 0..64 {
            if let Some(pivot) = (rank..words.len()).find(|i| words[*i] >> bit & 1 == 1) {
                words.swap(rank, pivot);
                let pivot = words[rank];
                words[rank + 1..].iter_mut().filter(|word| **word >> bit & 1 == 1).for_each(|w| *w ^= pivot);
                rank += 1;
            }
        }
        assert_eq!(rank, words.len());
    }
}

/// P times an element of GF(16), by the coordinates that the rows of a pair add up.
#[test]
fn factors_of_pairs_are_those_of_the_matrix_by_coordinates() {
    let layout = layout(&I2, 4, 3);
    assert_eq!((layout.coordinates(), layout.rows(), layout.columns()), (2, 8, 32));
    let of = |field: &Subfield, k: u8| {
        let mut element = [0];
        field.elements(&mut element, &[k]);
        Gf256(element[0])
    };
    for (b, i) in (0..3).flat_map(|b| (0..4).map(move |i| (b, i))) {
        for x in (0..4).flat_map(|k| (0..4).map(move |j| [of(&GF4, k), of(&GF4, j)])) {
            let coordinate = |row: usize| {
                let terms = [0, 1].map(|a| Gf256(layout.factor(b, 2 * i + row, a)) * x[a]);
                terms[0] + terms[1]
            };
            let [first, second] = [0, 1].map(coordinate);
            assert!([first, second].iter().all(|x| x.pow(4) == *x), "they are in GF(4)");
            let product = entry(&GF16, 4, i, b) * (x[0] + Gf256(ZETA) * x[1]);
            assert_eq!(first + Gf256(ZETA) * second, product);
        }
    }
}

#[test]
fn the_bound_of_one_product_is_that_of_buckets_of_one() {
    for (columns, shared, bits) in [(7, 1, 2), (100, 3, 4), (5_000, 4, 4)] {
        let rotation = super::super::rotation::log2_error(columns, shared + 1, bits);
        let bound = log2_error(columns, [1, shared], [bits, bits]);
        assert!((rotation - bound).abs() < 1e-9, "{rotation} and {bound}");
    }
}

/// Vectors of an element of a field for each honest party, by coordinates, and what multiplies them.
struct Vectors {
    field: &'static Subfield,
    honest: usize,
    /// All subspaces: bit v of the mask stands for the vector v.
    spaces: Vec<u128>,
}

impl Vectors {
    fn of(field: &'static Subfield, honest: usize) -> Self {
        let size = 1_u32 << (field.bits() * honest);
        let mut spaces = vec![1_u128];
        let mut next = 0;
        while next < spaces.len() {
            for v in (1..size).filter(|v| spaces[next] >> v & 1 == 0).collect::<Vec<_>>() {
                let members = (0..size).filter(|w| spaces[next] >> w & 1 == 1);
                let more = members.fold(spaces[next], |more, w| more | 1 << (v ^ w));
                if !spaces.contains(&more) {
                    spaces.push(more);
                }
            }
            next += 1;
        }
        assert!(size <= 128);
        Vectors { field, honest, spaces }
    }

    fn times(&self, vector: u32, scalar: Gf256) -> u32 {
        let bits = self.field.bits();
        let part = |h: usize| {
            let (mut element, mut product) = ([0], [0]);
            self.field.elements(&mut element, &[(vector >> (h * bits)) as u8 & ((1 << bits) - 1)]);
            self.field.coordinates(&mut product, &[(Gf256(element[0]) * scalar).0]);
            u32::from(product[0]) << (h * bits)
        };
        (0..self.honest).map(part).sum()
    }

    fn size(&self) -> u32 {
        1 << (self.field.bits() * self.honest)
    }

    fn bits(&self, space: usize) -> u32 {
        self.spaces[space].count_ones().ilog2()
    }

    fn find(&self, mask: u128) -> usize {
        self.spaces.iter().position(|space| *space == mask).expect("it is a subspace")
    }

    /// A space, every vector multiplied.
    fn scaled(&self, space: usize, scalar: Gf256) -> usize {
        let members = (0..self.size()).filter(|v| self.spaces[space] >> v & 1 == 1);
        self.find(members.fold(0, |mask, v| mask | 1 << self.times(v, scalar)))
    }

    fn sum(&self, a: usize, b: usize) -> usize {
        let has = |space: usize, v: &u32| self.spaces[space] >> v & 1 == 1;
        let members = (0..self.size()).filter(|v| has(a, v));
        let pairs = members.flat_map(|v| (0..self.size()).filter(|w| has(b, w)).map(move |w| v ^ w));
        self.find(pairs.fold(0, |mask, v| mask | 1 << v))
    }
}

fn scalars(field: &Subfield) -> Vec<Gf256> {
    (1..1_u8 << field.bits())
        .map(|k| {
            let mut element = [0];
            field.elements(&mut element, &[k]);
            Gf256(element[0])
        })
        .collect()
}

/// The probability of the best strategy against buckets of two products with one shared list, exactly. A
/// bucket leaks if functions a and b of the elements of their own are known, not both 0, and the sum of their
/// multiples of the shared one.
fn best(vectors: &Vectors, of_scalars: &Subfield, columns: usize) -> f64 {
    let spaces = vectors.spaces.len();
    let scalars = scalars(of_scalars);
    let factors = [0, 1].map(|i| entry(vectors.field, 2, i, 0));
    let index = |scalar: usize, space: usize| scalar * spaces + space;
    let table = |factor: Gf256| -> Vec<usize> {
        let all = scalars.iter().flat_map(|c| (0..spaces).map(move |space| (*c, space)));
        all.map(|(c, space)| vectors.scaled(space, c * factor)).collect()
    };
    let [first, second, shared] = [factors[0], factors[1], Gf256(1)].map(table);
    let mut meets = vec![false; spaces * spaces];
    let mut sums = vec![0; spaces * spaces];
    for (a, b) in (0..spaces).flat_map(|a| (0..spaces).map(move |b| (a, b))) {
        meets[a * spaces + b] = vectors.spaces[a] & vectors.spaces[b] != 1;
        sums[a * spaces + b] = vectors.sum(a, b);
    }
    let leaks =
        |a: usize, b: usize, c: usize| meets[a * spaces + b] || meets[sums[a * spaces + b] * spaces + c];
    let guesses = spaces.pow(columns as u32);
    let of = |guess: usize, j: usize| guess / spaces.pow(j as u32) % spaces;
    let bits: Vec<u32> =
        (0..guesses).map(|guess| (0..columns).map(|j| vectors.bits(of(guess, j))).sum()).collect();
    let draws = columns.pow(2) * scalars.len().pow(2);
    let mut best = 0.0_f64;
    for (x, y, z) in
        (0..guesses).flat_map(|x| (0..guesses).flat_map(move |y| (0..guesses).map(move |z| (x, y, z))))
    {
        let worth = 0.5_f64.powi((bits[x] + bits[y] + bits[z]) as i32);
        if worth <= best {
            continue;
        }
        let mut wins = 0;
        for (s, t) in (0..columns).flat_map(|s| (0..columns).map(move |t| (s, t))) {
            for (c, d) in (0..scalars.len()).flat_map(|c| (0..scalars.len()).map(move |d| (c, d))) {
                let leaks = |j: usize| {
                    // The scalar of the first list is 1, the first of all.
                    let a = first[index(0, of(x, j))];
                    let b = second[index(c, of(y, (j + s) % columns))];
                    leaks(a, b, shared[index(d, of(z, (j + t) % columns))])
                };
                wins += usize::from((0..columns).any(leaks));
            }
        }
        best = best.max(worth * wins as f64 / draws as f64);
    }
    best
}

/// In GF(4) and GF(16), pairs, and functions of several honest parties' elements together.
#[test]
fn no_strategy_beats_the_bound_of_shared_lists() {
    let cases: [(&'static Subfield, &Subfield, usize, usize); 6] = [
        (&GF4, &GF4, 1, 1),
        (&GF4, &GF4, 1, 2),
        (&GF4, &GF4, 1, 3),
        (&GF16, &GF16, 1, 1),
        (&GF16, &GF4, 1, 1),
        (&GF4, &GF4, 2, 1),
    ];
    for (field, of_scalars, honest, columns) in cases {
        let best = best(&Vectors::of(field, honest), of_scalars, columns);
        let bound = log2_error(columns, [2, 1], [of_scalars.bits(), field.bits()]).exp2();
        let what = format!("{} bits, {honest} honest, {columns} columns", field.bits());
        assert!(best <= bound * (1.0 + 1e-9) && best > bound / 16.0, "{what}: {best} of {bound}");
    }
}

/// Two products and two shared lists: words have three places at least that are not 0.
#[test]
fn no_strategy_beats_the_bound_with_two_shared_lists() {
    let vectors = Vectors::of(&GF4, 1);
    let (spaces, scalars) = (vectors.spaces.len(), scalars(&GF4));
    let matrix: [[Gf256; 2]; 2] = std::array::from_fn(|i| std::array::from_fn(|b| entry(&GF4, 2, i, b)));
    let words: Vec<[u32; 4]> = (1..16_u32)
        .map(|word| {
            let own = [word & 3, word >> 2];
            let shared =
                [0, 1].map(|b| vectors.times(own[0], matrix[0][b]) ^ vectors.times(own[1], matrix[1][b]));
            [own[0], own[1], shared[0], shared[1]]
        })
        .collect();
    assert!(words.iter().all(|word| word.iter().filter(|v| **v != 0).count() >= 3));
    // By scalars of all lists but the first, and by what is known of each element.
    let draws = scalars.len().pow(3);
    let states = spaces.pow(4);
    let mut leaks = vec![false; draws * states];
    for (draw, state) in (0..draws).flat_map(|draw| (0..states).map(move |state| (draw, state))) {
        let of = [Gf256(1), scalars[draw % 3], scalars[draw / 3 % 3], scalars[draw / 9]];
        let known = [0, 1, 2, 3].map(|list| vectors.spaces[state / spaces.pow(list) % spaces]);
        let is_known =
            |word: &[u32; 4]| (0..4).all(|list| known[list] >> vectors.times(word[list], of[list]) & 1 == 1);
        leaks[draw * states + state] = words.iter().any(is_known);
    }
    for columns in [1, 2] {
        let guesses = spaces.pow(columns as u32);
        let of = |guess: usize, j: usize| guess / spaces.pow(j as u32) % spaces;
        let mut best = 0.0_f64;
        for strategy in 0..guesses.pow(4) {
            let guess = [0, 1, 2, 3].map(|list| strategy / guesses.pow(list) % guesses);
            let bits: u32 =
                guess.iter().flat_map(|guess| (0..columns).map(|j| vectors.bits(of(*guess, j)))).sum();
            let worth = 0.5_f64.powi(bits as i32);
            if worth <= best {
                continue;
            }
            let mut wins = 0;
            for shift in 0..columns.pow(3) {
                let shifts = [0, shift % columns, shift / columns % columns, shift / columns.pow(2)];
                let state = |j: usize| -> usize {
                    let taken = (0..4)
                        .map(|list| of(guess[list], (j + shifts[list]) % columns) * spaces.pow(list as u32));
                    taken.sum()
                };
                let taken: Vec<usize> = (0..columns).map(state).collect();
                let leaks = |draw: &usize| taken.iter().any(|state| leaks[draw * states + state]);
                wins += (0..draws).filter(leaks).count();
            }
            best = best.max(worth * wins as f64 / (columns.pow(3) * draws) as f64);
        }
        let bound = log2_error(columns, [2, 2], [2, 2]).exp2();
        assert!(best <= bound * (1.0 + 1e-9) && best > bound / 16.0, "{columns} columns: {best} of {bound}");
    }
}

/// Bucket number g takes element g plus the shift of each list, times the list's scalar; a row begins with
/// its own first element, times 1.
#[test]
fn rows_take_shared_elements_as_the_shifts_and_scalars_of_both_lists_say() {
    for (kind, number) in [(&*P1, 0), (&*I2, 1)] {
        let layout = layout(kind, 4, 3);
        let coin = blake3::derive_key("polyclave tests of shared lists", &[number]);
        let turns = Turns::draw(&coin, "rows", &layout);
        let column: Vec<usize> = (0..layout.columns()).collect();
        let mut shifts = std::collections::BTreeSet::new();
        for row in 0..layout.rows() {
            let element = layout.element(row);
            for piece in turns.of_row(&layout, row).pieces(PIECE) {
                for (i, own) in piece.of(0, &column).iter().enumerate() {
                    assert_eq!(*own, piece.start + i);
                    let bucket = (own + layout.columns() - turns.0.shift(element)) % layout.columns();
                    for b in 0..layout.shared {
                        let due = (bucket + turns.0.shift(4 + b)) % layout.columns();
                        assert_eq!(piece.of(b + 1, &column)[i], due);
                        shifts.insert(turns.0.shift(4 + b));
                    }
                }
            }
            for (b, a) in (0..layout.shared).flat_map(|b| (0..layout.coordinates()).map(move |a| (b, a))) {
                let factor = Gf256(turns.factor(&layout, b, row, a)) * turns.scalar(element);
                assert_eq!(factor, Gf256(layout.factor(b, row, a)) * turns.scalar(4 + b));
            }
        }
        assert!(shifts.len() > 1);
        assert!((1..7).any(|list| turns.scalar(list) != Gf256(1)));
    }
}
