//! Unit vectors of random indices, by products of a bit and words (`word_products.rs`): Demux (Keller et al.
//! 2017, Protocol 3) without multiplication triples. docs/protocols/tower-material.md has the argument.
//!
//! A vector of 2^l entries is the coefficients of X^s, in elements of 64 coefficients each. From u = (1 +
//! s_0) + s_0 X, step j multiplies u by (1 + s_j) + s_j X^(2^j): u + (1 + X^(2^j)) (s_j u). The product s_j u
//! comes from buckets by rotation (`rotation.rs`, l = 1): list 1 offers u itself, and the others fresh random
//! words of 2^j bits. The bit s_j is the bucket's x. At the end random bits r_i take the vector apart: u +
//! sum r_i X^i is opened, and entry i is r_i plus the bit that was opened.
//!
//! *u as payload.* A product tells nothing of y, and d_b = u + y_b is masked by a fresh y_b. If a cheater
//! opens another d_b, then u of the next step is wrong by something that the cheater knows times s_j. But no
//! message depends on u except under a mask, and the zero test at the end finds the wrong d_b for all values
//! of the secrets. So it learns that it was caught, and nothing else.
//!
//! **Error**: each of the l - 1 steps leaks with probability 2^-kappa / (l - 1) at most.
//!
//! **Cost** of a vector to the peer, for B lists and s = 2^l: B (l - 1) wide bits, (B - 1)(s - 2) + s + 1
//! narrow ones, offers of B (l - 1) 64 + B (s - 2) bits, and openings of (B - 1)(s - 2) + s bits, values of
//! fewer than 8 bits counted as 8.

use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::{mark_public, masks};

use super::TinyOt;
use super::abit::{AT_ONCE, PIECE, Rows};
use super::coset_check::Products;
use super::maker::Maker;
use super::opening::peer_of;
use super::plan::VectorPlan;
use super::rotation::{Piece, Rotation, error_of_opened_words};
use super::subfield::BIT;
use super::word_products::{Words, WordsMut, lowest, value_bytes};
use crate::authenticated::{Coefficients, Vectors, zero_test_of};
use crate::interface::net::Net;
use crate::pool::Pool;
use crate::{Error, Result, coins};

/// Rows of bits of such a length are transposed without a rest.
const WHOLE: usize = 512;

/// Coefficients of an element.
const WORD: usize = Gf2_64::BITS as usize;

/// Elements with MACs.
#[derive(Default)]
struct Column {
    values: Wiped<u64>,
    macs: Wiped<u64>,
}

/// One party's part of a list: bits x, and for each element of the vectors y and z.
#[derive(Default)]
struct List {
    x: Wiped<u64>,
    x_macs: Wiped<u64>,
    y: Vec<Column>,
    z: Vec<Column>,
}

/// Memory for batches, kept for the next one.
#[derive(Default)]
pub(super) struct Room {
    lists: Vec<List>,
    /// The vectors so far.
    u: Vec<Column>,
    index: Wiped<u8>,
    index_macs: Wiped<u64>,
    rows: Wiped<u64>,
    factors: Wiped<u64>,
}

impl Column {
    fn zeros(count: usize) -> Self {
        Column { values: Wiped::zeros(count), macs: Wiped::zeros(count) }
    }

    fn words(&self) -> Words<'_> {
        Words { values: &self.values, macs: &self.macs }
    }

    fn part(&self, start: usize, len: usize) -> Words<'_> {
        Words { values: &self.values[start..][..len], macs: &self.macs[start..][..len] }
    }

    fn part_mut(&mut self, start: usize, len: usize) -> WordsMut<'_> {
        WordsMut { values: &mut self.values[start..][..len], macs: &mut self.macs[start..][..len] }
    }
}

fn make_room(columns: &mut Vec<Column>, pieces: usize, count: usize) {
    if columns.len() < pieces || columns.first().is_some_and(|column| column.values.len() != count) {
        *columns = (0..pieces).map(|_| Column::zeros(count)).collect();
    }
}

impl TinyOt {
    /// Unit vectors of random indices of 2 to 8 bits, checked, in authenticated sharing under the sum of both
    /// keys.
    pub fn unit_vectors(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Vectors<Gf2_64>> {
        if !(2..=8).contains(&in_bits) {
            return Err(Error::misuse(format!("unit vectors have indices of 2 to 8 bits, not {in_bits}")));
        }
        self.refuse_more_than_two()?;
        self.guarded(|source| {
            let mut made = Vectors::room(in_bits, count, pool);
            let mut at = 0;
            while at < count {
                let plan = VectorPlan::of(count - at, in_bits, source.kappa);
                let len = plan.vectors.min(count - at);
                let mut room = std::mem::take(&mut source.vector_room);
                let mut batch = VectorBatch { plan, room: &mut room, maker: &mut source.maker };
                batch.make(in_bits, at, len, &mut made, net)?;
                source.vector_room = room;
                at += len;
            }
            Ok(made)
        })
    }
}

/// A batch in work.
struct VectorBatch<'a> {
    plan: VectorPlan,
    room: &'a mut Room,
    maker: &'a mut Maker,
}

impl VectorBatch<'_> {
    /// Makes a batch and writes the first `len` vectors of it, from number `at` on.
    fn make(
        &mut self,
        in_bits: u8,
        at: usize,
        len: usize,
        made: &mut Vectors<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let pieces = (1 << in_bits) / WORD;
        self.make_room(pieces.max(1));
        self.begin(net)?;
        let mut sigma = 0;
        for step in 1..usize::from(in_bits) {
            sigma ^= self.step(step, net)?;
        }
        made.set_index(at, &self.room.index[..len], &self.room.index_macs[..len]);
        self.take_apart(in_bits, at, len, &mut sigma, made, net).map_err(Error::in_a_check)?;
        let coin = coins::toss(b"unit vectors", net).map_err(Error::in_a_check)?;
        let product = self.maker.zero_test_product(net).map_err(Error::in_a_check)?;
        zero_test_of(&self.maker.key, &coin, sigma, product, net).map_err(Error::in_a_check)
    }

    fn make_room(&mut self, pieces: usize) {
        let VectorPlan { vectors, lists } = self.plan;
        let room = &mut *self.room;
        room.lists.resize_with(lists.max(room.lists.len()), List::default);
        for list in &mut room.lists[..lists] {
            if list.x.len() != vectors {
                (list.x, list.x_macs) = (Wiped::zeros(vectors), Wiped::zeros(vectors));
            }
            make_room(&mut list.y, pieces, vectors);
            make_room(&mut list.z, pieces, vectors);
        }
        make_room(&mut room.u, pieces, vectors);
        if room.index.len() != vectors {
            (room.index, room.index_macs) = (Wiped::zeros(vectors), Wiped::zeros(vectors));
        }
        if room.rows.is_empty() {
            (room.rows, room.factors) = (Wiped::zeros(WORD * PIECE), Wiped::zeros(PIECE));
        }
    }

    /// u = 1 + s_0 + s_0 X, and the index s_0.
    fn begin(&mut self, net: &mut dyn Net) -> Result<()> {
        let VectorBatch { plan, room, maker } = self;
        let one = u64::from(maker.key.is_first());
        let alpha = maker.key.reveal_own_share();
        for start in (0..plan.vectors).step_by(AT_ONCE) {
            let len = AT_ONCE.min(plan.vectors - start);
            let [_, bits] = maker.transfers.make(Rows::NONE, Rows { rows: 1, len }, net)?;
            for done in (0..len).step_by(PIECE) {
                let now = PIECE.min(len - done);
                let range = start + done..start + done + now;
                let (values, macs) = (bits.values_at(done, now), &mut room.rows[..now]);
                bits.write_macs(done, &maker.key, macs, &mut maker.rows.blocks)?;
                room.index[range.clone()].copy_from_slice(values);
                room.index_macs[range.clone()].copy_from_slice(macs);
                // 1 + X.
                Gf2_64::combine(&mut room.u[0].macs[range.clone()], &[(macs, 0b11)], alpha);
                let u = room.u[0].values[range].iter_mut().zip(values);
                u.for_each(|(u, bit)| *u = (u64::from(*bit) * 0b11) ^ one);
            }
        }
        Ok(())
    }

    /// Multiplies the vectors, of 2^step entries, by another bit of the index; returns this party's part of a
    /// sum that is zero if what was opened is right.
    fn step(&mut self, step: usize, net: &mut dyn Net) -> Result<u64> {
        let entries = 1 << step;
        let (pieces, width) = ((entries / WORD).max(1), entries.min(WORD));
        self.fill(pieces, width, net)?;
        let lists = &self.room.lists[..self.plan.lists];
        let words = lists.iter().flat_map(|list| list.z[..pieces].iter().map(Column::words)).collect();
        self.maker.check(&Products { elements: Vec::new(), words }, net)?;
        self.combine(step, pieces, width, net).map_err(Error::in_a_check)
    }

    /// Fills all lists: the first with u as y, the others with random words of `width` bits.
    fn fill(&mut self, pieces: usize, width: usize, net: &mut dyn Net) -> Result<()> {
        let VectorBatch { plan, room, maker } = self;
        let Room { lists, u, .. } = &mut **room;
        let at_once = (AT_ONCE / (pieces * width).max(2)).next_multiple_of(WHOLE);
        for (b, list) in lists[..plan.lists].iter_mut().enumerate() {
            for start in (0..plan.vectors).step_by(at_once) {
                let len = at_once.min(plan.vectors - start);
                // The bits of a word lie side by side.
                let random = if b == 0 { Rows::NONE } else { Rows { rows: pieces, len: width * len } };
                let [x, y] = maker.transfers.make(Rows { rows: 1, len }, random, net)?;
                let values = x.values_at(0, len);
                list.x[start..][..len].iter_mut().zip(values).for_each(|(x, bit)| *x = u64::from(*bit));
                if b > 0 {
                    for (piece, column) in list.y[..pieces].iter_mut().enumerate() {
                        let WordsMut { values, macs } = column.part_mut(start, len);
                        values.fill(0);
                        macs.fill(0);
                        y.add_words(y.place(piece, 0), width, &maker.key, values, macs)?;
                    }
                }
                let List { x_macs, y, z, .. } = &mut *list;
                let y = if b == 0 { &*u } else { &*y };
                let y: Vec<_> = y[..pieces].iter().map(|column| column.part(start, len)).collect();
                let mut z: Vec<_> =
                    z[..pieces].iter_mut().map(|column| column.part_mut(start, len)).collect();
                maker.word_offers()?.multiply(&x, width, &y, &mut z, &mut x_macs[start..][..len], net)?;
            }
        }
        Ok(())
    }

    /// Opens differences, sums the buckets, and doubles the vectors.
    fn combine(&mut self, step: usize, pieces: usize, width: usize, net: &mut dyn Net) -> Result<u64> {
        let coin = coins::toss(b"rotations", net)?;
        let count = self.plan.vectors;
        let rotation = Rotation::draw(&coin, "unit vectors", count, self.plan.lists, &BIT);
        let opened = self.open_differences(&rotation, pieces, width, net)?;
        let coin = coins::toss(b"differences", net)?;
        let mut coefficients = Coefficients::new(&coin);
        let alpha = self.maker.key.reveal_own_share();
        let mut sigma = 0;
        for piece in rotation.pieces(PIECE) {
            for b in 1..self.plan.lists {
                for column in 0..pieces {
                    let Room { lists, u, rows, .. } = &mut *self.room;
                    let macs = &mut rows[..piece.len];
                    let pairs =
                        piece.of(0, &u[column].macs).iter().zip(piece.of(b, &lists[b].y[column].macs));
                    macs.iter_mut().zip(pairs).for_each(|(sum, (a, b))| *sum = a ^ b);
                    let d = &opened[(b - 1) * pieces + column][piece.start..][..piece.len];
                    sigma ^= error_of_opened_words(&mut coefficients, alpha, macs, d);
                }
            }
            self.sum(piece, step, pieces, &opened);
        }
        Ok(sigma)
    }

    /// d_b = u + y_b for every list b > 1 and every element, in this order.
    fn open_differences(
        &mut self,
        rotation: &Rotation,
        pieces: usize,
        width: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<u64>>> {
        let Room { lists, u, .. } = &*self.room;
        let mut mine = vec![vec![0; self.plan.vectors]; (self.plan.lists - 1) * pieces];
        for piece in rotation.pieces(PIECE) {
            for (i, row) in mine.iter_mut().enumerate() {
                let (b, column) = (1 + i / pieces, i % pieces);
                let pairs =
                    piece.of(0, &u[column].values).iter().zip(piece.of(b, &lists[b].y[column].values));
                row[piece.start..][..piece.len].iter_mut().zip(pairs).for_each(|(d, (a, b))| *d = a ^ b);
            }
        }
        for row in &mut mine {
            open_words(row, width, net)?;
        }
        Ok(mine)
    }

    /// Sums some buckets, and doubles their vectors.
    fn sum(&mut self, piece: Piece<'_>, step: usize, pieces: usize, opened: &[Vec<u64>]) {
        let Piece { start, len, .. } = piece;
        let Room { lists, u, index, index_macs, rows, factors } = &mut *self.room;
        let lists = &lists[..self.plan.lists];
        let (sums, rest) = rows.split_at_mut(PIECE);
        let (value_sums, rest) = rest.split_at_mut(PIECE);
        let (products, mine) = rest.split_at_mut(PIECE);
        let (sums, value_sums) = (&mut sums[..len], &mut value_sums[..len]);
        let (products, mine, factors) = (&mut products[..len], &mut mine[..len], &mut factors[..len]);

        // The bit.
        sums.fill(0);
        value_sums.fill(0);
        for (b, list) in lists.iter().enumerate() {
            value_sums.iter_mut().zip(piece.of(b, &list.x)).for_each(|(sum, x)| *sum ^= x);
            sums.iter_mut().zip(piece.of(b, &list.x_macs)).for_each(|(sum, mac)| *sum ^= mac);
        }
        let bits = index[start..][..len].iter_mut().zip(&*value_sums);
        bits.for_each(|(index, bit)| *index |= (*bit as u8) << step);
        let place = Gf2_64::embed(1 << step);
        let before = products;
        before.copy_from_slice(&index_macs[start..][..len]);
        Gf2_64::combine(&mut index_macs[start..][..len], &[(&*before, 1), (&*sums, place)], 0);
        let products = before;

        for column in 0..pieces {
            sums.fill(0);
            value_sums.fill(0);
            for (b, list) in lists.iter().enumerate() {
                let z = &list.z[column];
                value_sums.iter_mut().zip(piece.of(b, &z.values)).for_each(|(sum, z)| *sum ^= z);
                sums.iter_mut().zip(piece.of(b, &z.macs)).for_each(|(sum, z)| *sum ^= z);
                if b > 0 {
                    let d = &opened[(b - 1) * pieces + column][start..][..len];
                    let x = piece.of(b, &list.x);
                    masks(mine, |i| x[i]);
                    for (sum, (d, mine)) in value_sums.iter_mut().zip(d.iter().zip(&*mine)) {
                        *sum ^= d & mine;
                    }
                    factors.copy_from_slice(d);
                    Gf2_64::multiply_rows(products, factors, piece.of(b, &list.x_macs));
                    sums.iter_mut().zip(&*products).for_each(|(sum, product)| *sum ^= product);
                }
            }
            let entries = 1 << step;
            if entries < WORD {
                // u + (1 + X^entries) z.
                let u = u[column].part_mut(start, len);
                let pairs = u.values.iter_mut().zip(&*value_sums);
                pairs.for_each(|(u, z)| *u ^= z ^ (z << entries));
                Gf2_64::combine(products, &[(&*sums, 1 | 1 << entries)], 0);
                u.macs.iter_mut().zip(&*products).for_each(|(u, z)| *u ^= z);
            } else {
                let upper = u[pieces + column].part_mut(start, len);
                upper.values.copy_from_slice(value_sums);
                upper.macs.copy_from_slice(sums);
                let lower = u[column].part_mut(start, len);
                lower.values.iter_mut().zip(&*value_sums).for_each(|(u, z)| *u ^= z);
                lower.macs.iter_mut().zip(&*sums).for_each(|(u, z)| *u ^= z);
            }
        }
    }

    /// Takes the first `len` vectors apart with random bits and writes their entries, from vector `at` on.
    /// Adds to sigma what is zero if what was opened is right.
    fn take_apart(
        &mut self,
        in_bits: u8,
        at: usize,
        len: usize,
        sigma: &mut u64,
        made: &mut Vectors<Gf2_64>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let entries = 1 << in_bits;
        let (pieces, width) = (1.max(entries / WORD), entries.min(WORD));
        let alpha = self.maker.key.reveal_own_share();
        let mut opened = vec![vec![0; len]; pieces];
        let at_once = (AT_ONCE / entries).next_multiple_of(WHOLE);
        for start in (0..len).step_by(at_once) {
            let now = at_once.min(len - start);
            let VectorBatch { room, maker, .. } = self;
            let Room { u, rows, .. } = &mut **room;
            // The bits of a vector lie side by side.
            let count = entries * now;
            let [_, bits] = maker.transfers.make(Rows::NONE, Rows { rows: 1, len: count }, net)?;
            // An entry's own share is the bit's; u takes the sum.
            made.set_bits(at + start, now, bits.packed_at(0, count));
            for done in (0..count).step_by(PIECE) {
                let macs = &mut rows[..PIECE.min(count - done)];
                bits.write_macs(done, &maker.key, macs, &mut maker.rows.blocks)?;
                made.set_macs((at + start) * entries + done, macs);
            }
            for done in (0..now).step_by(PIECE) {
                let some = PIECE.min(now - done);
                let words = &mut rows[..2 * pieces * some];
                words.fill(0);
                let (values, macs) = words.split_at_mut(pieces * some);
                bits.add_words(done * entries, width, &maker.key, values, macs)?;
                for (piece, column) in u[..pieces].iter_mut().enumerate() {
                    let to = column.part_mut(start + done, some);
                    let values = values[piece..].iter().step_by(pieces);
                    to.values.iter_mut().zip(values).for_each(|(sum, word)| *sum ^= word);
                    let macs = macs[piece..].iter().step_by(pieces);
                    to.macs.iter_mut().zip(macs).for_each(|(sum, word)| *sum ^= word);
                }
            }
            for (piece, column) in u[..pieces].iter().enumerate() {
                let row = &mut opened[piece][start..][..now];
                row.copy_from_slice(column.part(start, now).values);
                open_words(row, width, net)?;
                made.add_public(at + start, piece * width, width, row, &maker.key);
            }
        }
        let coin = coins::toss(b"entries", net)?;
        let mut coefficients = Coefficients::new(&coin);
        for (column, opened) in self.room.u.iter().zip(&opened) {
            for (macs, opened) in column.macs[..len].chunks(PIECE).zip(opened.chunks(PIECE)) {
                *sigma ^= error_of_opened_words(&mut coefficients, alpha, macs, opened);
            }
        }
        Ok(())
    }
}

/// Opens words of `width` bits in place. Provisional. One round.
fn open_words(words: &mut [u64], width: usize, net: &mut dyn Net) -> Result<()> {
    let peer = peer_of(net)?;
    let each = value_bytes(width);
    let mut message = vec![0; words.len() * each];
    for (bytes, word) in message.chunks_exact_mut(each).zip(&*words) {
        bytes.copy_from_slice(&word.to_le_bytes()[..each]);
    }
    let mut theirs = vec![0; message.len()];
    let (mut out, mut into): (Vec<&[u8]>, Vec<&mut [u8]>) = (vec![&[]; 2], vec![&mut [], &mut []]);
    out[peer.index()] = &message;
    into[peer.index()] = &mut theirs;
    net.exchange(&out, &mut into)?;
    // They are sent.
    mark_public(words);
    for (word, bytes) in words.iter_mut().zip(theirs.chunks_exact(each)) {
        let mut share = [0; 8];
        share[..each].copy_from_slice(bytes);
        *word ^= u64::from_le_bytes(share);
        // Bits beyond the last one would be a second way to say the same.
        if *word & !lowest(width) != 0 {
            return Err(Error::Peer { peer, detail: "it opened more bits than there are".into() });
        }
    }
    Ok(())
}
