//! Records for inversions by the tower of fields GF(4), GF(16), GF(2^8): [`Inverses`]
//! (docs/protocols/tower-material.md).
//!
//! With x = omega x1 + x0 over GF(16) and N = zeta n1 + n0 over GF(4), the masks and what is quadratic in
//! them follow from four kinds of products (`products.rs`, `groups.rs`). **Phase 1**: x1 x0 in GF(16), and
//! n1 n0 in GF(4), give Lx = omega X + Y, Lx^16 = (omega + 1) X + Y, Lx^17 = nu X^2 + Z + Y^2, with nu =
//! omega^17; in the same way Ln, Ln^4 and Ln^5 with zeta and mu = zeta^5. **Phase 2**: X in GF(4) times Ln^4
//! gives X, Lm = X^2 and X Ln^4; Lv in GF(16) times Lx^16 gives Lv and Lv Lx^16. The products of phase 2 have
//! lists of their own, which offer the masks of phase 1 under the same index; so a product's y is that mask.
//!
//! *Reuse of a mask as payload.* A product never tells anything of y (`products.rs`), and d_b = y + y_b is
//! masked by a fresh y_b. The masks that are offered are linear in X and Y of phase 1, so errors in what
//! phase 1 opened, which spoil only Z, do not reach them. They are found by the zero test at the end, before
//! any record is handed out.
//!
//! *Among more than two parties* the bits of the result's mask are in no product, so a check of their own
//! finds a party that has other bits towards one party than towards another
//! (docs/protocols/tower-parties.md). Its sum is part of the zero test, times a coefficient that is tossed
//! when all sums are fixed: without it, what a cheater opens wrongly here could cancel what it opened wrongly
//! before.
//!
//! **Error**: each of the four kinds leaks with probability 2^-kappa / 4 at most, so a batch does with
//! 2^-kappa.
//!
//! **Order.** Transfers are checked before any offer leaves. All products of a phase are checked before its
//! shifts, scalars and differences. After the coins of a check, silence is [`Error::Unanswered`]. Nothing
//! says where the fault was.

use std::ops::Range;
use std::sync::LazyLock;

use polyclave_cipher::Matrix;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::affine::{self, Map, Term};
use zeroize::Zeroizing;

use super::TinyOt;
use super::abit::{AT_ONCE, PIECE, Rows};
use super::coset_check::{Products, open_word};
use super::groups::{
    Layout, Lists, Outcome, Turns, authenticate, combine, error_of_buckets, open_differences,
};
use super::lists::{Column, List, Scalar};
use super::maker::Maker;
use super::opening::context;
use super::plan::RecordPlan;
use super::products::{Elements, Kind};
use super::shared::SharedList;
use super::subfield::{BYTE, GF4, GF16};
use crate::authenticated::{Coefficients, Element, Inverses, zero_test_of};
use crate::interface::net::Net;
use crate::{Result, coins};
use polyclave_field::subfields::{MU, NU, OMEGA, ZETA};

/// The tower of x over GF(16).
static OVER_GF16: LazyLock<Tower> = LazyLock::new(|| Tower::of(OMEGA, NU));
/// The tower of N over GF(4).
static OVER_GF4: LazyLock<Tower> = LazyLock::new(|| Tower::of(ZETA, MU));

/// A step of the tower: an element of trace 1 over the smaller field, its conjugate, and the product of both.
struct Tower {
    element: Scalar,
    conjugate: Scalar,
    norm: Scalar,
    /// From X to the norm times X^2.
    norm_of_square: Map,
}

impl Tower {
    fn of(element: u8, norm: u8) -> Tower {
        Tower {
            element: Scalar::of(element),
            // Their sum is the trace.
            conjugate: Scalar::of(element ^ 1),
            norm: Scalar::of(norm),
            norm_of_square: Map::new(Matrix::scalar(norm).after(&Matrix::frobenius(1)).columns()),
        }
    }
}

static IDENTITY: Map = Map::identity();
static SQUARE: LazyLock<Map> = LazyLock::new(|| Map::new(Matrix::frobenius(1).columns()));
/// The elements of a record that phase 1 makes.
const MASKS: [Element; 6] =
    [Element::Lx, Element::Lx16, Element::Lx17, Element::Ln, Element::Ln4, Element::Ln5];

/// The four kinds of products.
struct Kinds {
    p1: Kind,
    i1: Kind,
    i2: Kind,
    p3: Kind,
}

static KINDS: LazyLock<Kinds> = LazyLock::new(|| Kinds {
    p1: Kind::new(&GF16, &GF16),
    i1: Kind::new(&GF4, &GF4),
    i2: Kind::new(&GF4, &GF16),
    p3: Kind::new(&GF16, &BYTE),
});

/// One kind of products in a phase.
struct Part<'a> {
    name: &'a str,
    layout: Layout,
    /// What is offered in the list of their own, if that is not random.
    given: Option<Elements<'a>>,
    /// Whether squares of x, and of y if it is random, are wanted.
    squares: bool,
}

/// Memory for batches, kept for the next one.
#[derive(Default)]
pub(super) struct Room {
    parts: [PartRoom; 2],
    /// Lx, Lx^16, Lx^17, Ln, Ln^4, Ln^5 of a batch.
    masks: [Column; 6],
}

/// Of one kind of products of a phase.
#[derive(Default)]
struct PartRoom {
    own: List,
    shared: Vec<SharedList>,
    /// For the MACs of the products.
    random: Column,
    outcome: Outcome,
}

impl PartRoom {
    fn make_room(&mut self, layout: &Layout) {
        self.own.make_room(layout.products);
        self.shared.resize_with(layout.shared.max(self.shared.len()), SharedList::default);
        self.shared.iter_mut().take(layout.shared).for_each(|list| list.make_room(layout));
        self.random.make_room(layout.products);
        self.outcome.x.make_room_for_squares(layout.products);
        self.outcome.z.make_room(layout.products);
    }
}

impl Part<'_> {
    fn lists<'r>(&'r self, room: &'r PartRoom) -> Lists<'r> {
        Lists {
            own: &room.own,
            shared: &room.shared[..self.layout.shared],
            y: self.given.unwrap_or(room.own.y.part(0, self.layout.products)),
        }
    }
}

/// Products of some buckets in a row.
struct Buckets<'a> {
    x: Elements<'a>,
    y: Elements<'a>,
    z: Elements<'a>,
    /// MACs of the squares of x, if they are wanted.
    x_square_macs: &'a [u64],
    /// MACs of the squares of y, if they are wanted and y is not given.
    y_square_macs: &'a [u64],
}

const OF_X: usize = 0;
const OF_N: usize = 3;
const LX16: usize = OF_X + 1;
const LN4: usize = OF_N + 1;

impl TinyOt {
    /// Records for inversions, checked.
    pub(super) fn records_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<Gf2_64>> {
        // Room at once, since growing would leave copies behind.
        let mut made = Inverses::zero(count);
        let mut at = 0;
        while at < count {
            let plan = RecordPlan::of(count - at, self.kappa);
            let range = at..count.min(at + plan.records);
            at = range.end;
            let mut room = std::mem::take(&mut self.record_room);
            self.record_batch(plan, &mut room, range, &mut made, net)?;
            self.record_room = room;
        }
        Ok(made)
    }

    /// Makes a batch and writes as much of it as there is room for in a range of records.
    pub(super) fn record_batch(
        &mut self,
        plan: RecordPlan,
        room: &mut Room,
        range: Range<usize>,
        made: &mut Inverses<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let RecordPlan { records: products, group, shared_16, shared_4 } = plan;
        let (kinds, Room { parts, masks }) = (&*KINDS, room);
        masks.iter_mut().for_each(|column| column.make_room(products));
        let part = |name, kind, shared, squares| Part {
            name,
            layout: Layout { kind, group, shared, products },
            given: None,
            squares,
        };
        let first = [part("P1", &kinds.p1, shared_16, true), part("I1", &kinds.i1, shared_4, true)];
        let put = |kind: usize, start: usize, buckets: Buckets<'_>| match kind {
            0 => put_powers(&OVER_GF16, &mut masks[OF_X..OF_N], start, buckets),
            _ => put_powers(&OVER_GF4, &mut masks[OF_N..], start, buckets),
        };
        let mut sigma = self.phase(&first, parts, put, net)?;
        for (element, mask) in MASKS.into_iter().zip(masks.iter()) {
            let kept = mask.part(0, range.len());
            made.put(element, range.clone(), kept.values, kept.macs);
        }

        let given = |mask: usize| Some(masks[mask].part(0, products));
        // In the order of phase 1, so that room of the same size is there.
        let second = [
            Part { given: given(LX16), ..part("P3", &kinds.p3, shared_16, false) },
            Part { given: given(LN4), ..part("I2", &kinds.i2, shared_4, true) },
        ];
        let put = |kind: usize, start: usize, buckets: Buckets<'_>| {
            // What a plan makes more than is wanted may begin behind the end.
            let wanted = range.len().saturating_sub(start).min(buckets.x.values.len());
            let (from, len) = (range.start + start.min(range.len()), wanted);
            let at = from..from + len;
            let mut put = |element, of: Elements<'_>| {
                let of = of.part(0, len);
                made.put(element, at.clone(), of.values, of.macs);
            };
            match kind {
                0 => {
                    put(Element::Lv, buckets.x);
                    put(Element::LvLx16, buckets.z);
                }
                _ => {
                    let mut squares = Zeroizing::new([0; PIECE]);
                    let squares = &mut squares[..buckets.x.values.len()];
                    affine::combine(squares, &[Term { src: buckets.x.values, map: &SQUARE }], 0);
                    put(Element::X, buckets.x);
                    put(Element::Lm, Elements { values: squares, macs: buckets.x_square_macs });
                    put(Element::XLn4, buckets.z);
                }
            }
        };
        sigma ^= self.phase(&second, parts, put, net)?;
        self.random_bits(range.clone(), made, net)?;
        self.maker.after_check(|maker| {
            let (opened, of_bits) = match net.parties() {
                2 => (0, 0),
                _ => combined_bits(maker, range, made, net)?,
            };
            // What was opened is right, or nothing is handed out.
            test_sums(maker, opened, [sigma, of_bits], net)
        })
    }

    /// Makes the products of a phase, hands them to `put` with the number of their part and of the first of
    /// them, and returns this party's part of a sum that is zero if everything was opened rightly.
    fn phase(
        &mut self,
        parts: &[Part<'_>; 2],
        rooms: &mut [PartRoom; 2],
        mut put: impl FnMut(usize, usize, Buckets<'_>),
        net: &mut dyn Net,
    ) -> Result<u64> {
        for (part, room) in parts.iter().zip(rooms.iter_mut()) {
            let (layout, maker) = (&part.layout, &mut self.maker);
            room.make_room(layout);
            maker.fill(&mut room.own, layout.kind, part.given, part.squares, layout.products, net)?;
            for (b, list) in room.shared.iter_mut().enumerate().take(layout.shared) {
                maker.fill_shared(list, layout, b, part.squares, net)?;
            }
            maker.random_column(&mut room.random, layout.products, layout.kind.y, net)?;
        }
        let mut products = Products::default();
        for (part, room) in parts.iter().zip(rooms.iter()) {
            products.elements.push(room.own.z.part(0, part.layout.products));
            products.words.extend(room.shared[..part.layout.shared].iter().flat_map(SharedList::checked));
        }
        self.maker.check(&products, net)?;
        self.maker.after_check(|maker| {
            let alpha = maker.key.reveal_own_share();
            let coin = coins::toss(b"rotations", net)?;
            let turns = parts.each_ref().map(|part| Turns::draw(&coin, part.name, &part.layout));
            let mut opened = Vec::new();
            for ((part, room), turns) in parts.iter().zip(rooms.iter()).zip(&turns) {
                opened.push(open_differences(&part.layout, turns, &part.lists(room), net)?);
            }
            let mut sums = Vec::new();
            for (((part, room), turns), opened) in parts.iter().zip(rooms.iter_mut()).zip(&turns).zip(&opened)
            {
                let mut outcome = std::mem::take(&mut room.outcome);
                combine(&part.layout, turns, &part.lists(room), opened, part.squares, &mut outcome);
                sums.push(authenticate(&part.layout, &room.random, alpha, &mut outcome, net)?);
                room.outcome = outcome;
            }
            let rows = opened.iter().flatten().chain(&sums).map(Vec::as_slice);
            let coin = coins::toss(&context(b"differences", rows, net), net)?;
            let mut coefficients = Coefficients::new(&coin);
            let mut sigma = 0;
            for (i, ((part, room), (turns, opened))) in
                parts.iter().zip(rooms.iter()).zip(turns.iter().zip(&opened)).enumerate()
            {
                let (layout, lists) = (&part.layout, part.lists(room));
                sigma ^=
                    error_of_buckets(layout, turns, &lists, opened, &room.outcome, alpha, &mut coefficients);
                for start in (0..layout.products).step_by(PIECE) {
                    let len = PIECE.min(layout.products - start);
                    let Outcome { x, z } = &room.outcome;
                    let buckets = Buckets {
                        x: x.part(start, len),
                        y: lists.y.part(start, len),
                        z: z.part(start, len),
                        x_square_macs: &x.square_macs[start..][..len],
                        y_square_macs: &lists.own.y.square_macs[start..][..len],
                    };
                    put(i, start, buckets);
                }
            }
            Ok(sigma)
        })
    }

    /// Eight bits for each record.
    fn random_bits(
        &mut self,
        range: Range<usize>,
        made: &mut Inverses<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let at_once = AT_ONCE / 8;
        for start in range.clone().step_by(at_once) {
            let len = at_once.min(range.end - start);
            let maker = &mut self.maker;
            let [_, bits] = maker.transfers.make(Rows::NONE, Rows { rows: 8, len }, net)?;
            for (k, macs) in made.bit_macs.iter_mut().enumerate() {
                for (done, macs) in (0..).step_by(PIECE).zip(macs[start..][..len].chunks_mut(PIECE)) {
                    bits.write_macs(bits.place(k, done), &maker.key, macs, &mut maker.rows.blocks)?;
                }
            }
            let term = |(k, map)| Term { src: bits.values_at(bits.place(k, 0), len), map };
            let terms: Vec<_> = BYTE.places().iter().enumerate().map(term).collect();
            affine::combine(&mut made.bits[start..][..len], &terms, 0);
        }
        Ok(())
    }
}

/// Tests that two sums are zero. Every party has a part of each. They are fixed before the coefficient of the
/// second is tossed. `opened` is what all parties have seen before. Six rounds.
pub(super) fn test_sums(
    maker: &mut Maker,
    opened: u64,
    [sigma, of_bits]: [u64; 2],
    net: &mut dyn Net,
) -> Result<()> {
    let coin = coins::toss(&context(b"records", [&opened.to_le_bytes()[..]], net), net)?;
    let weight = Coefficients::<Gf2_64>::new(&coin).next(1)[0];
    let sum = sigma ^ Gf2_64::multiply(weight, of_bits);
    let product = maker.zero_test_product(net)?;
    zero_test_of(&maker.key, &coin, sum, product, net)
}

/// Opens a random combination of all bits of some records, with coefficients that are tossed when they are
/// made, and a random element. Returns what was opened, and this party's part of a sum that is zero if every
/// party has the same bits towards all others, and has opened the combination rightly. Six rounds.
fn combined_bits(
    maker: &mut Maker,
    range: Range<usize>,
    made: &Inverses<Gf2_64>,
    net: &mut dyn Net,
) -> Result<(u64, u64)> {
    let random = maker.random_element(net)?;
    let coin = coins::toss(b"bits of records", net)?;
    let mut coefficients = Coefficients::<Gf2_64>::new(&coin);
    let (mut rho, mut mac) = (random.values[0], random.macs[0]);
    let mut sums = Zeroizing::new([0; PIECE]);
    for start in range.clone().step_by(PIECE) {
        let now = start..range.end.min(start + PIECE);
        let sums = &mut sums[..now.len()];
        let rows = made.bit_macs.iter().map(|macs| &macs[now.clone()]).zip(BYTE.words().iter().copied());
        Gf2_64::combine(sums, &rows.collect::<Vec<_>>(), 0);
        let chi = coefficients.next(now.len());
        rho ^= Gf2_64::embedded_inner_product(chi, &made.bits[now]);
        mac ^= Gf2_64::inner_product(chi, sums);
    }
    let opened = open_word(rho, net)?;
    Ok((opened, mac ^ Gf2_64::multiply(maker.key.reveal_own_share(), opened)))
}

/// Writes a mask L = omega X + Y, its conjugate (omega + 1) X + Y, and the product of both, nu X^2 + Z + Y^2,
/// to three columns.
fn put_powers(tower: &Tower, columns: &mut [Column], start: usize, buckets: Buckets<'_>) {
    let Buckets { x, y, z, x_square_macs, y_square_macs } = buckets;
    let [mask, conjugate, norm] = columns else { unreachable!("three columns") };
    for (column, factor) in [(mask, &tower.element), (conjugate, &tower.conjugate)] {
        let to = column.part_mut(start, x.values.len());
        let one = Term { src: y.values, map: &IDENTITY };
        affine::combine(to.values, &[Term { src: x.values, map: &factor.map }, one], 0);
        Gf2_64::combine(to.macs, &[(x.macs, factor.word), (y.macs, 1)], 0);
    }
    let to = norm.part_mut(start, x.values.len());
    let terms = [
        Term { src: x.values, map: &tower.norm_of_square },
        Term { src: y.values, map: &SQUARE },
        Term { src: z.values, map: &IDENTITY },
    ];
    affine::combine(to.values, &terms, 0);
    Gf2_64::combine(to.macs, &[(x_square_macs, tower.norm.word), (y_square_macs, 1), (z.macs, 1)], 0);
}
