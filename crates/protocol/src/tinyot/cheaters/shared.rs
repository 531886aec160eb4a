//! A party that cheats in the offers of a shared list.

use std::sync::LazyLock;

use super::*;
use crate::tinyot::groups::Layout;
use crate::tinyot::places::SHARED_OFFERS;
use crate::tinyot::shared::SharedList;

static P1: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF16, &GF16));
static P3: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF16, &BYTE));
static I1: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF4, &GF4));
static I2: LazyLock<Kind> = LazyLock::new(|| Kind::new(&GF4, &GF16));

/// Elements of the list.
const COLUMNS: usize = 8;
/// Which of the shared lists is made.
const LIST: usize = 1;

fn layout(kind: &'static Kind) -> Layout {
    let layout = Layout { kind, group: 8, shared: 4, products: 0 };
    Layout { products: COLUMNS * layout.rows(), ..layout }
}

/// Adds to the MAC, or to a row's value, that is offered with a bit of x.
fn edit(layout: &Layout, bit: usize, column: usize, row: Option<usize>, error: u64) -> Vec<(usize, u8)> {
    let each = (layout.rows() * layout.kind.y.bits()).div_ceil(8);
    let place = bit * COLUMNS + column;
    let of_values = layout.coordinates() * layout.kind.x.bits() * COLUMNS * 8;
    let (start, error) = match row {
        None => (8 * place, error),
        Some(row) => (of_values + each * place, error << (row * layout.kind.y.bits())),
    };
    let bytes = error.to_le_bytes().into_iter().enumerate().filter(|(_, error)| *error != 0);
    bytes.map(|(i, error)| (start + i, error)).collect()
}

/// Makes and checks a list while the cheater changes offers. Returns whether it passes, and the honest
/// party's bits of an element. If it passes, all products are right.
fn run(parties: &Parties, layout: &Layout, column: usize, bytes: Vec<(usize, u8)>) -> (bool, Vec<u8>) {
    let honest = Mutex::new(Vec::new());
    let edits = Edits { at: SHARED_OFFERS, bytes, ..Edits::default() };
    let run = parties.run(edits, |source, net| {
        let mut list = SharedList::default();
        list.make_room(layout);
        source.maker.fill_shared(&mut list, layout, LIST, true, net)?;
        if net.me().index() == HONEST {
            let mut coordinates = [0];
            for x in &list.x {
                layout.kind.x.coordinates(&mut coordinates, &[x.values[column]]);
                honest.lock().extend((0..layout.kind.x.bits()).map(|k| coordinates[0] >> k & 1));
            }
        }
        let products = Products { elements: Vec::new(), words: list.checked().collect() };
        source.maker.check(&products, net)?;
        Ok(list)
    });
    if let [Ok(first), Ok(second)] = &run.outcomes {
        assert_shared(layout, [first, second]);
    }
    (run.passed(), honest.into_inner())
}

/// Every coordinate of x times y of every row.
fn assert_shared(layout: &Layout, lists: [&SharedList; 2]) {
    let sum = |of: &dyn Fn(&SharedList) -> u8| Gf256(lists.iter().fold(0, |sum, list| sum ^ of(list)));
    for (a, row) in (0..layout.coordinates()).flat_map(|a| (0..layout.rows()).map(move |row| (a, row))) {
        // Nothing is made of it.
        if layout.factor(LIST, row, a) == 0 {
            continue;
        }
        for column in 0..COLUMNS {
            let at = row * COLUMNS + column;
            let [x, y, z] = [
                sum(&|list| list.x[a].values[column]),
                sum(&|list| list.y.values[at]),
                sum(&|list| list.z[a][at]),
            ];
            assert!(x * y == z, "coordinate {a}, row {row}, column {column}");
        }
    }
}

#[test]
fn honest_shared_lists_pass() {
    let parties = Parties::setup();
    for kind in [&P1, &P3, &I1, &I2] {
        assert!(run(&parties, &layout(kind), 0, Vec::new()).0);
    }
}

#[test]
fn a_wrong_offer_of_a_shared_list_passes_exactly_if_the_bit_is_zero() {
    let parties = Parties::setup();
    let (mut runs, mut passed) = (0, 0);
    for kind in [&P1, &P3, &I1, &I2] {
        let layout = layout(kind);
        for bit in 0..4 {
            let coordinate = bit / layout.kind.x.bits();
            let is_used = |row: &usize| layout.factor(LIST, *row, coordinate) != 0;
            let used: Vec<usize> = (0..layout.rows()).filter(is_used).collect();
            let rows = [None, used.first().copied(), used.last().copied()];
            for (row, column) in rows.into_iter().flat_map(|row| [(row, bit), (row, 7)]) {
                let bytes = edit(&layout, bit, column, row, if row.is_none() { 1 << 63 } else { 1 });
                let (passes, x) = run(&parties, &layout, column, bytes);
                assert_eq!(passes, x[bit] == 0, "bit {bit}, row {row:?}");
                (runs, passed) = (runs + 1, passed + usize::from(passes));
            }
        }
    }
    assert!((runs / 4..3 * runs / 4).contains(&passed), "{passed} of {runs}");
}

/// Errors in two rows cost one guess, as they are about one bit; errors with two bits cost two.
#[test]
fn a_cheater_pays_for_bits_and_not_for_rows() {
    let parties = Parties::setup();
    let layout = layout(&P3);
    let mut passed = [0, 0];
    for number in 0..24 {
        let column = number % COLUMNS;
        let rows = [edit(&layout, 2, column, Some(1), 3), edit(&layout, 2, column, Some(5), 0x80)].concat();
        let (passes, x) = run(&parties, &layout, column, rows);
        assert_eq!(passes, x[2] == 0);
        passed[0] += usize::from(passes);
        let bits = [edit(&layout, 0, column, Some(1), 3), edit(&layout, 3, column, None, 9)].concat();
        let (passes, x) = run(&parties, &layout, column, bits);
        assert_eq!(passes, [x[0], x[3]] == [0, 0]);
        passed[1] += usize::from(passes);
    }
    assert!((3..=21).contains(&passed[0]) && passed[1] < 16, "{passed:?} of 24");
}

/// A bit of x: of the list of their own, 0, or of a shared one, and there of a coordinate and a column.
struct Place {
    list: usize,
    coordinate: usize,
    column: usize,
}

impl Place {
    const BIT: usize = 1;

    /// The message with the offers of a list, and where the MAC of this bit is in it.
    fn edit(&self, layout: &Layout, error: u64) -> (u64, Vec<(usize, u8)>) {
        let shared = (1..=self.list as u64).map(|_| 1 + SHARED_OFFERS).sum::<u64>();
        let bit = self.coordinate * layout.kind.x.bits() + Place::BIT;
        (OFFERS + shared, edit(layout, bit, self.column, None, error))
    }
}

/// Makes and checks a list of their own and two shared ones, while the cheater adds the same to two MACs.
/// Returns whether it passes, and the honest party's bits.
fn with_equal_errors(parties: &Parties, layout: &Layout, places: &[Place; 2]) -> (bool, [u8; 2]) {
    let honest = Mutex::new([0; 2]);
    let [first, second] = places.each_ref().map(|place| place.edit(layout, 0x0123_4567_89ab_cdef));
    let (at, mut bytes) = first;
    let mut also = Vec::new();
    if second.0 == at {
        bytes.extend(second.1)
    } else {
        also.push(second)
    }
    let run = parties.run(Edits { at, bytes, also, ..Edits::default() }, |source, net| {
        let (mut own, mut shared) = (List::default(), [SharedList::default(), SharedList::default()]);
        own.make_room(COLUMNS);
        source.maker.fill(&mut own, layout.kind, None, true, COLUMNS, net)?;
        for (b, list) in shared.iter_mut().enumerate() {
            list.make_room(layout);
            source.maker.fill_shared(list, layout, b, true, net)?;
        }
        if net.me().index() == HONEST {
            *honest.lock() = places.each_ref().map(|place| {
                let column = match place.list {
                    0 => &own.x,
                    list => &shared[list - 1].x[place.coordinate],
                };
                let mut coordinates = [0];
                layout.kind.x.coordinates(&mut coordinates, column.part(place.column, 1).values);
                coordinates[0] >> Place::BIT & 1
            });
        }
        let words = shared.iter().flat_map(SharedList::checked).collect();
        source.maker.check(&Products { elements: vec![own.z.part(0, COLUMNS)], words }, net)
    });
    (run.passed(), honest.into_inner())
}

/// With the same coefficient for both they would cancel if both bits are one. That is one function of two
/// elements, for one guess.
#[test]
fn equal_errors_in_two_places_pass_exactly_if_both_bits_are_zero() {
    let parties = Parties::setup();
    let place = |[list, coordinate, column]: [usize; 3]| Place { list, coordinate, column };
    let pairs = [
        [[0, 0, 0], [0, 0, 7]],
        [[0, 0, 2], [1, 0, 2]],
        [[1, 0, 0], [1, 0, 7]],
        [[1, 0, 3], [2, 0, 3]],
        [[1, 0, 4], [2, 0, 5]],
        [[2, 0, 6], [2, 1, 6]],
        [[1, 1, 1], [2, 0, 1]],
    ];
    for kind in [&P1, &I2] {
        let layout = layout(kind);
        let is_there = |pair: &[[usize; 3]; 2]| pair.iter().all(|[_, a, _]| *a < layout.coordinates());
        for pair in pairs.into_iter().filter(is_there) {
            let mut ones = 0;
            while ones < 3 {
                let (passes, bits) = with_equal_errors(&parties, &layout, &pair.map(place));
                assert_eq!(passes, bits == [0, 0], "{pair:?}: {bits:?}");
                ones += usize::from(bits == [1, 1]);
            }
        }
    }
}
