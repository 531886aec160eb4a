//! Triples of bits: kind (1, 1) of `products.rs`, combined in buckets (`rotation.rs`), with tags and keys for
//! each party's bits.
//!
//! x of a bucket is the sum of the x_b, and y is y_1, so both have the tags of the transfers that made them.
//! z has a MAC under the sum of both keys only. To give it tags the parties open e = z + r, where r is a
//! fresh narrow bit: then z = r + e. The zero test at the end covers the MACs of all differences d_b and of
//! all e.
//!
//! Cost of a triple to the peer, for B lists: B wide bits, B + 1 narrow ones, B offers of 65 bits and B bits
//! opened. Rounds: four for every 3 2^15 leaky products and for as many triples, 19 for a batch, and four if
//! products for zero tests have to be made.

use std::ops::Range;
use std::sync::LazyLock;

use polyclave_kernels::memory::Wiped;
use polyclave_kernels::secret::masks;

use super::abit::{self, AT_ONCE, PIECE};
use super::coset_check::Products;
use super::lists::Column;
use super::maker::Maker;
use super::opening::exchange_bits;
use super::plan::GatePlan;
use super::products::{ElementsMut, Kept, Kind, Made};
use super::rotation::{Piece, Rotation, error_of_opened, open_differences};
use super::subfield::BIT;
use super::{Bits, TinyOt, Triples};
use crate::authenticated::{Coefficients, zero_test_of};
use crate::interface::net::Net;
use crate::{Result, coins};

/// One party's part of a list of leaky products of bits.
#[derive(Default)]
struct GateList {
    x: Bits,
    y: Column,
    z: Column,
}

/// Memory for batches, kept for the next one. It may be for more than a batch has.
#[derive(Default)]
pub(super) struct Room {
    lists: Vec<GateList>,
    /// y of the first list, with tags: that of the triples.
    first: Bits,
    rows: Option<SumRows>,
}

/// Sums of some buckets in a row.
struct SumRows {
    x: Wiped<u8>,
    tags: Wiped<u64>,
    keys: Wiped<u64>,
    z: Wiped<u8>,
    z_macs: Wiped<u64>,
    /// MACs of bits.
    macs: Wiped<u64>,
}

impl SumRows {
    fn new() -> Self {
        let words = || Wiped::zeros(PIECE);
        SumRows {
            x: Wiped::zeros(PIECE),
            tags: words(),
            keys: words(),
            z: Wiped::zeros(PIECE),
            z_macs: words(),
            macs: Wiped::zeros(AT_ONCE),
        }
    }
}

static KIND: LazyLock<Kind> = LazyLock::new(|| Kind::new(&BIT, &BIT));

impl TinyOt {
    pub(super) fn triples_in_batches(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples> {
        let mut made = Triples { x: Bits::zero(count), y: Bits::zero(count), z: Bits::zero(count) };
        let mut at = 0;
        while at < count {
            let plan = GatePlan::of(count - at, self.kappa);
            let range = at..count.min(at + plan.gates);
            at = range.end;
            let mut room = std::mem::take(&mut self.gate_room);
            self.gate_batch(plan, &mut room, range, &mut made, net)?;
            self.gate_room = room;
        }
        Ok(made)
    }

    /// Makes a batch and writes as much of it as there is room for in a range of triples.
    fn gate_batch(
        &mut self,
        plan: GatePlan,
        room: &mut Room,
        range: Range<usize>,
        made: &mut Triples,
        net: &mut dyn Net,
    ) -> Result<()> {
        let rows = room.rows.get_or_insert_with(SumRows::new);
        room.lists.resize_with(plan.lists.max(room.lists.len()), GateList::default);
        let lists = &mut room.lists[..plan.lists];
        if room.first.len() < plan.gates {
            room.first = Bits::zero(plan.gates);
        }
        for (b, list) in lists.iter_mut().enumerate() {
            let tagged = (b == 0).then_some(&mut room.first);
            list.fill(plan.gates, tagged, &mut self.maker, net)?;
        }
        let elements = lists.iter().map(|list| list.z.part(0, plan.gates)).collect();
        self.maker.check(&Products { elements, words: Vec::new() }, net)?;
        self.maker.after_check(|maker| {
            Buckets { lists, first: &room.first, rows, range, made }.combine(plan.gates, maker, net)
        })
    }
}

impl GateList {
    /// Leaky products of random bits, with y in `tagged` too if that is given. Provisional until they are
    /// checked.
    fn fill(
        &mut self,
        count: usize,
        mut tagged: Option<&mut Bits>,
        maker: &mut Maker,
        net: &mut dyn Net,
    ) -> Result<()> {
        if self.x.len() < count {
            self.x = Bits::zero(count);
            self.y.make_room(count);
            self.z.make_room(count);
        }
        for start in (0..count).step_by(AT_ONCE) {
            let len = AT_ONCE.min(count - start);
            let row = abit::Rows { rows: 1, len };
            let [x, y] = maker.transfers.make(row, row, net)?;
            self.x.values[start..][..len].copy_from_slice(x.values_at(0, len));
            let ElementsMut { values, macs } = self.y.part_mut(start, len);
            values.copy_from_slice(y.values_at(0, len));
            match &mut tagged {
                Some(bits) => {
                    y.write_to(bits, start, len, &mut maker.rows.blocks)?;
                    bits.write_macs(start, &maker.key, macs);
                }
                None => {
                    for (piece, macs) in macs.chunks_mut(PIECE).enumerate() {
                        y.write_macs(piece * PIECE, &maker.key, macs, &mut maker.rows.blocks)?;
                    }
                }
            }
            let factor = self.y.part(start, len);
            let Bits { tags, keys, .. } = &mut self.x;
            let kept = Kept::Tags { tags: &mut tags[start..][..len], keys: &mut keys[start..][..len] };
            let made = Made { z: self.z.part_mut(start, len), kept };
            maker.offers.multiply(&KIND, &x, factor, made, net)?;
        }
        Ok(())
    }
}

/// Checked lists, and where the triples go.
struct Buckets<'a> {
    lists: &'a mut [GateList],
    first: &'a Bits,
    rows: &'a mut SumRows,
    range: Range<usize>,
    made: &'a mut Triples,
}

impl Buckets<'_> {
    fn combine(mut self, count: usize, maker: &mut Maker, net: &mut dyn Net) -> Result<()> {
        let coin = coins::toss(b"rotations", net)?;
        let rotation = Rotation::draw(&coin, "gates", count, self.lists.len(), &BIT);
        let columns: Vec<_> = self.lists.iter().map(|list| list.y.part(0, count).values).collect();
        let differences = open_differences(&rotation, &BIT, &columns, net)?;
        let alpha = maker.key.reveal_own_share();
        for piece in rotation.pieces(PIECE) {
            self.sum(piece, &differences, alpha);
        }
        let corrections = self.correct(maker, net)?;

        let coin = coins::toss(b"differences", net)?;
        let mut coefficients = Coefficients::new(&coin);
        let mut sigma = 0;
        for piece in rotation.pieces(PIECE) {
            for (b, opened) in (1..).zip(&differences) {
                let macs = self.macs_of_differences(piece, b);
                let opened = &opened[piece.start..][..piece.len];
                sigma ^= error_of_opened(&mut coefficients, alpha, macs, opened);
            }
        }
        let corrected = self.lists[0].z.part(0, corrections.len());
        for (macs, opened) in corrected.macs.chunks(PIECE).zip(corrections.chunks(PIECE)) {
            sigma ^= error_of_opened(&mut coefficients, alpha, macs, opened);
        }
        let product = maker.zero_test_product(net)?;
        zero_test_of(&maker.key, &coin, sigma, product, net)
    }

    /// Writes x and y of some buckets to their triples, and z with its MAC over that of the first list.
    fn sum(&mut self, piece: Piece<'_>, differences: &[Vec<u8>], alpha: u64) {
        let Piece { start, len, .. } = piece;
        let SumRows { x, tags, keys, z, z_macs, macs } = &mut *self.rows;
        let (x, tags, keys) = (&mut x[..len], &mut tags[..len], &mut keys[..len]);
        let (z, z_macs, macs) = (&mut z[..len], &mut z_macs[..len], &mut macs[..len]);
        let first = &self.lists[0];
        x.copy_from_slice(piece.of(0, &first.x.values));
        tags.copy_from_slice(piece.of(0, &first.x.tags));
        keys.copy_from_slice(piece.of(0, &first.x.keys));
        let of_z = first.z.part(start, len);
        z.copy_from_slice(of_z.values);
        z_macs.copy_from_slice(of_z.macs);
        for ((b, list), opened) in self.lists.iter().enumerate().skip(1).zip(differences) {
            let d = &opened[start..][..len];
            let (x_b, tags_b) = (piece.of(b, &list.x.values), piece.of(b, &list.x.tags));
            let (keys_b, of_z) = (piece.of(b, &list.x.keys), list.z.rotated(piece, b));
            masks(macs, |i| u64::from(x_b[i]));
            for i in 0..len {
                x[i] ^= x_b[i];
                tags[i] ^= tags_b[i];
                keys[i] ^= keys_b[i];
                z[i] ^= of_z.values[i] ^ (d[i] & x_b[i]);
                // d is public.
                let is_added = u64::from(d[i]).wrapping_neg();
                z_macs[i] ^= of_z.macs[i] ^ (is_added & (macs[i] & alpha ^ tags_b[i] ^ keys_b[i]));
            }
        }
        let sums = self.lists[0].z.part_mut(start, len);
        sums.values.copy_from_slice(z);
        sums.macs.copy_from_slice(z_macs);

        let kept = self.range.len().saturating_sub(start).min(len);
        let at = self.range.start + start..self.range.start + start + kept;
        if kept > 0 {
            let y = self.first;
            self.made.x.set(at.clone(), &x[..kept], [&tags[..kept], &keys[..kept]]);
            let part = start..start + kept;
            self.made.y.set(at, &y.values[part.clone()], [&y.tags[part.clone()], &y.keys[part]]);
        }
    }

    /// Opens z + r for fresh bits r. The triples then get z = r + (z + r). Leaves the MACs of the opened
    /// values where the MACs of z were. One round for every [`AT_ONCE`].
    fn correct(&mut self, maker: &mut Maker, net: &mut dyn Net) -> Result<Vec<u8>> {
        let mut corrections = Vec::with_capacity(self.range.len());
        for start in (0..self.range.len()).step_by(AT_ONCE) {
            let len = AT_ONCE.min(self.range.len() - start);
            let [_, r] = maker.transfers.make(abit::Rows::NONE, abit::Rows { rows: 1, len }, net)?;
            let at = self.range.start + start;
            r.write_to(&mut self.made.z, at, len, &mut maker.rows.blocks)?;
            let macs = &mut self.rows.macs[..len];
            self.made.z.write_macs(at, &maker.key, macs);
            let sums = self.lists[0].z.part_mut(start, len);
            sums.values.iter_mut().zip(r.values_at(0, len)).for_each(|(z, r)| *z ^= r);
            sums.macs.iter_mut().zip(macs).for_each(|(z, r)| *z ^= *r);
            let mut opened = exchange_bits(sums.values, &maker.key, net)?;
            opened.iter_mut().zip(sums.values.iter()).for_each(|(theirs, own)| *theirs ^= own);
            self.made.z.add_public_at(at, &opened, &maker.key);
            corrections.extend_from_slice(&opened);
        }
        Ok(corrections)
    }

    /// The MACs of y_1 + y_b.
    fn macs_of_differences(&mut self, piece: Piece<'_>, b: usize) -> &[u64] {
        let [first, other] = [0, b].map(|b| self.lists[b].y.rotated(piece, b).macs);
        let macs = &mut self.rows.macs[..piece.len];
        macs.iter_mut().zip(first.iter().zip(other)).for_each(|(mac, (a, b))| *mac = a ^ b);
        macs
    }
}
