//! What the zero test covers of buckets: every difference and every sum, each with a coefficient or a weight
//! of its own. The tests have what all parties have together, under the sum of their keys.

use polyclave_kernels::aes_prg::AesPrg;

use super::*;

const DELTA: u64 = 0x0123_4567_89ab_cdef;

struct Whole {
    layout: Layout,
    turns: Turns,
    own: List,
    shared: Vec<SharedList>,
    opened: Vec<Vec<u8>>,
    outcome: Outcome,
}

/// Elements with MACs.
fn set(column: &mut Column, at: usize, value: u8) {
    (column.values[at], column.macs[at]) = (value, mac(value));
}

fn mac(value: u8) -> u64 {
    Gf2_64::multiply(DELTA, Gf2_64::embed(value))
}

fn random(field: &Subfield, generator: &mut AesPrg) -> u8 {
    let (mut byte, mut element) = ([0], [0]);
    generator.fill(&mut byte);
    field.elements(&mut element, &[byte[0] & (u8::MAX >> (8 - field.bits()))]);
    element[0]
}

impl Whole {
    fn new(kind: &'static Kind, group: usize, shared: usize) -> Whole {
        let layout = Layout { kind, group, shared, products: 8 * group };
        let coin = blake3::derive_key("polyclave tests of errors of buckets", &[kind.x.bits() as u8]);
        let turns = Turns::draw(&coin, "errors", &layout);
        let generator = &mut AesPrg::new(&[kind.y.bits() as u8; 16], 0);
        let mut own = List::default();
        own.make_room(layout.products);
        for at in 0..layout.products {
            let [x, y] = [kind.x, kind.y].map(|field| random(field, generator));
            set(&mut own.x, at, x);
            set(&mut own.y, at, y);
            set(&mut own.z, at, (Gf256(x) * Gf256(y)).0);
        }
        let shared = (0..shared).map(|b| Whole::list(&layout, b, generator)).collect();
        let mut outcome = Outcome::default();
        outcome.x.make_room_for_squares(layout.products);
        outcome.z.make_room(layout.products);
        let mut whole = Whole { layout, turns, own, shared, opened: Vec::new(), outcome };
        whole.open();
        whole.combine();
        whole
    }

    /// Shared list b.
    fn list(layout: &Layout, b: usize, generator: &mut AesPrg) -> SharedList {
        let (kind, columns) = (layout.kind, layout.columns());
        let mut list = SharedList::default();
        list.make_room(layout);
        (0..layout.products).for_each(|at| set(&mut list.y, at, random(kind.y, generator)));
        for (a, j) in (0..layout.coordinates()).flat_map(|a| (0..columns).map(move |j| (a, j))) {
            let x = random(kind.x, generator);
            set(&mut list.x[a], j, x);
            let word = (0..layout.rows()).fold(0, |word, row| {
                let at = row * columns + j;
                list.z[a][at] = (Gf256(x) * Gf256(list.y.values[at])).0;
                word ^ Gf2_64::multiply(layout.packing(b, row, a), Gf2_64::embed(list.z[a][at]))
            });
            list.macs[a][j] = Gf2_64::multiply(DELTA, word);
        }
        list
    }

    fn lists(&self) -> Lists<'_> {
        Lists { own: &self.own, shared: &self.shared, y: self.own.y.part(0, self.layout.products) }
    }

    /// The differences as they should be.
    fn open(&mut self) {
        let (layout, columns) = (&self.layout, self.layout.columns());
        self.opened = vec![vec![0; layout.products]; layout.shared];
        for row in 0..layout.rows() {
            for piece in self.turns.of_row(layout, row).pieces(PIECE) {
                for (b, opened) in self.opened.iter_mut().enumerate() {
                    let theirs = piece.of(b + 1, self.shared[b].y.part(row * columns, columns).values);
                    for (i, y) in theirs.iter().enumerate() {
                        let at = row * columns + piece.start + i;
                        opened[at] = self.own.y.values[at] ^ y;
                    }
                }
            }
        }
    }

    /// Buckets with what was opened, and MACs from sums that are opened as they should be.
    fn combine(&mut self) {
        let mut outcome = std::mem::take(&mut self.outcome);
        combine(&self.layout, &self.turns, &self.lists(), &self.opened, false, &mut outcome);
        let Column { values, macs, .. } = &mut outcome.z;
        macs.iter_mut().zip(values.iter()).for_each(|(of_value, value)| *of_value = mac(*value));
        self.outcome = outcome;
    }

    /// What all parties' parts of the tested sum add up to.
    fn error(&self) -> u64 {
        let coin = blake3::derive_key("polyclave tests of errors of buckets, coefficients", &[]);
        let Whole { layout, turns, opened, outcome, .. } = self;
        let mut coefficients = Coefficients::new(&coin);
        error_of_buckets(layout, turns, &self.lists(), opened, outcome, DELTA, &mut coefficients)
    }

    /// Opens a sum that is off by this, and takes back.
    fn with_wrong_sums(&mut self, errors: &[(usize, u8)]) -> u64 {
        let flip = |whole: &mut Whole| {
            errors.iter().for_each(|(at, error)| whole.outcome.z.macs[*at] ^= mac(*error));
        };
        flip(self);
        let error = self.error();
        flip(self);
        error
    }
}

/// Of all kinds, in buckets of eight elements and of one.
fn wholes() -> impl Iterator<Item = Whole> {
    let kinds = [&P1, &P3, &I1, &I2];
    kinds.into_iter().flat_map(|kind| [(8, 3), (1, 2)].map(|(group, shared)| Whole::new(kind, group, shared)))
}

#[test]
fn buckets_of_honest_parties_have_no_error() {
    for whole in wholes() {
        let [x, y, z] = [&whole.outcome.x, &whole.own.y, &whole.outcome.z].map(|column| &column.values);
        assert!((0..whole.layout.products).all(|at| Gf256(x[at]) * Gf256(y[at]) == Gf256(z[at])));
        assert_eq!(whole.error(), 0);
    }
}

/// Products and their MACs then are what follows from it.
#[test]
fn every_wrong_difference_is_an_error() {
    for mut whole in wholes() {
        let Layout { shared, products, kind, .. } = whole.layout;
        let delta = *kind.y.basis().last().expect("it has elements");
        for (b, at) in (0..shared).flat_map(|b| (0..products).map(move |at| (b, at))) {
            whole.opened[b][at] ^= delta;
            whole.combine();
            assert_ne!(whole.error(), 0, "list {b}, product {at}");
            whole.opened[b][at] ^= delta;
        }
    }
}

#[test]
fn every_wrong_sum_is_an_error() {
    for mut whole in wholes() {
        for at in 0..whole.layout.products {
            assert_ne!(whole.with_wrong_sums(&[(at, 1)]), 0, "product {at}");
        }
    }
}

#[test]
fn equal_wrong_sums_of_two_buckets_do_not_cancel() {
    for mut whole in wholes() {
        let columns = whole.layout.columns();
        for first in (0..whole.layout.products).step_by(columns) {
            for other in 1..columns {
                assert_ne!(whole.with_wrong_sums(&[(first, 1), (first + other, 1)]), 0);
            }
        }
    }
}

/// Times their scalars the errors are equal, so they would cancel if rows had the same weight.
#[test]
fn wrong_sums_of_two_rows_of_a_bucket_do_not_cancel() {
    for mut whole in wholes() {
        let (rows, columns) = (whole.layout.rows(), whole.layout.columns());
        let of_bucket = |whole: &Whole, row: usize| {
            let element = whole.layout.element(row);
            let column = (1 + whole.turns.0.shift(element)) % columns;
            (row * columns + column, whole.turns.scalar(element).pow(254).0)
        };
        for (row, other) in (0..rows).flat_map(|row| (0..row).map(move |other| (row, other))) {
            let errors = [row, other].map(|row| of_bucket(&whole, row));
            assert_ne!(whole.with_wrong_sums(&errors), 0, "rows {row} and {other}");
        }
    }
}
