//! Demux (Keller et al. 2017, Protocol 3): makes, from shared bits s_0 .. s_(l-1), the unit vector that is 1
//! at s.
//!
//! The product of (1 - s_j) + s_j X^(2^j) over all j is X^s. It is kept as pieces: elements that hold up to k
//! coefficients each. A step multiplies every piece by the next bit. The number of products is the sum of
//! ceil(2^j / k), j = 1 .. l - 1 (Table 1), one round each. At the end the pieces are decomposed by random
//! bits, in one round.
//!
//! # Differences from the paper
//! * k need not be a power of two. Pieces double while both halves fit into one element. If that would give
//!   more pieces than ceil(2^j / k), they are decomposed and packed anew before they are multiplied.
//! * For k below the degree of the field the elements are those of a smaller field inside (k = 8), or single
//!   bits (k = 1), with MACs in the large field. Products of bits take triples of bits, and do not need the
//!   last step.

use polyclave_field::{MacField, Word};
use zeroize::Zeroizing;

use crate::authenticated::{Authenticated, UnitVectors, Vectors, bit_bytes};
use crate::interface::net::Net;
use crate::pool::Pool;
use crate::spdz::Spdz;
use crate::spdz::arithmetic::{Arithmetic, Step};
use crate::{Error, Result};

/// The widest index: the largest table of Keller et al. 2017, Table 1. Tables of ciphers take 8 bits at most.
const MAX_INDEX_BITS: u8 = 10;

/// How many entries of a unit vector are multiplied at once: k of Protocol 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// k = 1: one bit, by triples of bits.
    Bits,
    /// k = 8: a byte of the field of cells.
    Cells,
    /// k is the degree of the field.
    Elements,
    /// No products by triples at all: TinyOT makes unit vectors of two parties by products by rotation
    /// ([`crate::tinyot`]).
    Rotation,
}

impl Packing {
    /// The packing of k entries in elements of this field.
    pub fn of<F: MacField>(k: usize) -> Result<Packing> {
        match k {
            1 => Ok(Packing::Bits),
            8 if F::CELL_BITS == 8 => Ok(Packing::Cells),
            k if k == F::BITS as usize => Ok(Packing::Elements),
            _ => Err(Error::Misuse(format!("{} packs 1, 8 or {} entries, not {k}", F::NAME, F::BITS))),
        }
    }

    /// k, or how unit vectors are made without it.
    pub(in crate::spdz) fn name<F: MacField>(self) -> String {
        match self {
            Packing::Rotation => "rotation".into(),
            _ => self.entries::<F>().to_string(),
        }
    }

    /// k.
    pub fn entries<F: MacField>(self) -> usize {
        match self {
            Packing::Bits | Packing::Rotation => 1,
            Packing::Cells => 8,
            Packing::Elements => F::BITS as usize,
        }
    }

    /// What entry i is multiplied by in a piece.
    fn place<F: MacField>(self, i: usize) -> F::Word {
        match self {
            Packing::Elements => F::Word::ONE.shift_left(i as u32),
            _ => F::embed(1 << i),
        }
    }

    /// Entry i of an opened piece.
    fn entry<F: MacField>(self, piece: F::Word, i: usize) -> F::Word {
        match self {
            Packing::Elements => piece.shift_right(i as u32).and(F::Word::ONE),
            _ => F::embed(F::project(piece) >> i & 1),
        }
    }
}

/// Triples, random bits, openings and rounds of one unit vector of 2^in_bits entries; all 0 for
/// [`Packing::Rotation`].
pub(in crate::spdz) fn demux_cost<F: MacField>(in_bits: u8, packing: Packing) -> [usize; 4] {
    if packing == Packing::Rotation {
        return [0; 4];
    }
    let k = packing.entries::<F>();
    let entries = 1usize << in_bits;
    let (mut triples, mut bits, mut openings, mut rounds) = (0, usize::from(in_bits), 0, 0);
    let mut pieces = if k == 1 { 2 } else { 1 };
    let mut width = if k == 1 { 1 } else { 2 };
    for j in 1..usize::from(in_bits) {
        let least = (1usize << j).div_ceil(k);
        if pieces > least {
            (bits, openings, rounds) = (bits + (1 << j), openings + pieces, rounds + 1);
            (pieces, width) = (least, k);
        }
        (triples, openings, rounds) = (triples + pieces, openings + 2 * pieces, rounds + 1);
        if 2 * width <= k { width *= 2 } else { pieces *= 2 }
    }
    if k > 1 {
        (bits, openings, rounds) = (bits + entries, openings + pieces, rounds + 1);
    }
    [triples, bits, openings, rounds]
}

/// Entries, up to k, of all vectors in one element each.
struct Piece<F: MacField> {
    element: Authenticated<F>,
    entries: usize,
}

impl<F: MacField> UnitVectors<F> {
    /// Makes the unit vectors of `count` random indices below 2^in_bits.
    pub(in crate::spdz) fn make(
        arithmetic: &mut Arithmetic<F>,
        in_bits: u8,
        count: usize,
        packing: Packing,
        net: &mut dyn Net,
    ) -> Result<Self> {
        let bits = arithmetic.bits(count * usize::from(in_bits), net)?;
        let bits: Vec<_> = (0..usize::from(in_bits)).map(|i| bits.part(i * count..(i + 1) * count)).collect();

        // Step 1.
        let mut not = bits[0].clone();
        not.add_public(&vec![F::Word::ONE; count], &arithmetic.key);
        let mut pieces = pack(vec![not, bits[0].clone()], packing);
        // Step 2.
        for (j, bit) in bits.iter().enumerate().skip(1) {
            if pieces.len() > (1usize << j).div_ceil(packing.entries::<F>()) {
                pieces = pack(unpack(arithmetic, pieces, packing, net)?, packing);
            }
            // Step 3.
            let factors: Vec<_> = pieces.iter().map(|piece| (bit, &piece.element)).collect();
            let triples = match packing {
                Packing::Bits => arithmetic.bit_triples(factors.len() * count, net)?,
                _ => arithmetic.triples(factors.len() * count, net)?,
            };
            let products =
                arithmetic.step(Step { products: &factors, triples, decompose: None }, net)?.products;
            pieces = doubled(pieces, products, packing);
        }
        // Steps 5 to 7.
        let entries = match packing {
            Packing::Bits => pieces.into_iter().map(|piece| piece.element).collect(),
            _ => unpack(arithmetic, pieces, packing, net)?,
        };
        Ok(UnitVectors { index: bits, entries })
    }

    /// The indices as images of cells.
    ///
    /// # Panics
    /// If a cell has fewer bits.
    pub(in crate::spdz) fn index_cells(&self) -> Authenticated<F> {
        assert!(self.index.len() <= usize::from(F::CELL_BITS), "an index in a cell");
        let places: Vec<F::Word> = (0..self.index.len()).map(|i| F::embed(1 << i)).collect();
        weighted(&self.index, &places)
    }
}

impl<F: MacField> Vectors<F> {
    /// Converts shares to the form in which they are kept.
    pub(crate) fn of(in_bits: u8, made: UnitVectors<F>, pool: &Pool) -> Self {
        let index_cells = made.index_cells();
        let count = index_cells.len();
        let mut index = Zeroizing::new(vec![0; count]);
        F::project_row(&mut index, &index_cells.values);
        let size = made.entries.len();
        let mut bits = Zeroizing::new(vec![0; count * bit_bytes(in_bits)]);
        let mut macs = pool.take(count * size * F::BYTES);
        let mut cells = Zeroizing::new(vec![0; count]);
        for (j, entry) in made.entries.iter().enumerate() {
            F::project_row(&mut cells, &entry.values);
            let bytes = bits.iter_mut().skip(j / 8).step_by(bit_bytes(in_bits));
            bytes.zip(cells.iter()).for_each(|(byte, cell)| *byte |= (cell & 1) << (j % 8));
            let to = macs.chunks_exact_mut(F::BYTES).skip(j).step_by(size);
            to.zip(entry.macs.iter()).for_each(|(to, mac)| mac.write_to(to));
        }
        Vectors { in_bits, index, index_macs: index_cells.macs, bits, macs }
    }
}

impl<F: MacField> Spdz<F> {
    /// Makes `count` unit vectors of random indices below 2^in_bits, checked. The triples, bits and openings
    /// that this takes are counted in the current phase. They are those of Keller et al. 2017, Table 1.
    pub fn demux(&mut self, in_bits: u8, count: usize, net: &mut dyn Net) -> Result<UnitVectors<F>> {
        if !(1..=MAX_INDEX_BITS).contains(&in_bits) || count == 0 {
            return Err(Error::Misuse(format!(
                "unit vectors, one or more, have an index of 1 to {MAX_INDEX_BITS} bits: {count} of {in_bits} bits"
            )));
        }
        let vectors = UnitVectors::make(&mut self.arithmetic, in_bits, count, self.packing, net)?;
        self.arithmetic.check(net)?;
        Ok(vectors)
    }
}

/// Step 4: to p - t the coefficients of t, behind it.
fn doubled<F: MacField>(
    mut pieces: Vec<Piece<F>>,
    products: Vec<Authenticated<F>>,
    packing: Packing,
) -> Vec<Piece<F>> {
    // The first piece is the fullest. All pieces do the same: otherwise upper entries would come before their
    // turn in a piece that has room when others have none.
    let have_room = 2 * pieces[0].entries <= packing.entries::<F>();
    let mut upper = Vec::new();
    for (piece, product) in pieces.iter_mut().zip(products) {
        piece.element.add(&product);
        if have_room {
            piece.element.add(&product.scaled(packing.place::<F>(piece.entries)));
            piece.entries *= 2;
        } else {
            upper.push(Piece { element: product, entries: piece.entries });
        }
    }
    pieces.extend(upper);
    pieces
}

/// Entries in as few pieces as hold them.
fn pack<F: MacField>(entries: Vec<Authenticated<F>>, packing: Packing) -> Vec<Piece<F>> {
    let places: Vec<F::Word> =
        (0..packing.entries::<F>().min(entries.len())).map(|i| packing.place::<F>(i)).collect();
    let chunks = entries.chunks(places.len());
    chunks.map(|chunk| Piece { element: weighted(chunk, &places), entries: chunk.len() }).collect()
}

/// The entries of all pieces, by random bits (BitDec): of an entry e with random bit r, e + r is opened. One
/// round.
fn unpack<F: MacField>(
    arithmetic: &mut Arithmetic<F>,
    pieces: Vec<Piece<F>>,
    packing: Packing,
    net: &mut dyn Net,
) -> Result<Vec<Authenticated<F>>> {
    let count = pieces[0].element.len();
    let total: usize = pieces.iter().map(|piece| piece.entries).sum();
    let bits = arithmetic.bits(total * count, net)?;
    let mut entries: Vec<_> = (0..total).map(|i| bits.part(i * count..(i + 1) * count)).collect();
    let mut masked = Vec::with_capacity(pieces.len());
    let mut at = 0;
    for piece in &pieces {
        let places: Vec<F::Word> = (0..piece.entries).map(|i| packing.place::<F>(i)).collect();
        let mut sum = weighted(&entries[at..at + piece.entries], &places);
        sum.add(&piece.element);
        masked.push(sum);
        at += piece.entries;
    }
    let masked = Authenticated::join(&masked.iter().collect::<Vec<_>>());
    let (opened, _) = arithmetic.open(&masked, &[], &[], net)?;
    let mut entry = entries.iter_mut();
    for (piece, opened) in pieces.iter().zip(opened.chunks(count.max(1))) {
        for (i, entry) in (0..piece.entries).zip(&mut entry) {
            let public: Vec<F::Word> = opened.iter().map(|c| packing.entry::<F>(*c, i)).collect();
            entry.add_public(&public, &arithmetic.key);
        }
    }
    Ok(entries)
}

/// The sum of rows, each times its weight.
fn weighted<F: MacField>(rows: &[Authenticated<F>], weights: &[F::Word]) -> Authenticated<F> {
    let mut sum = Authenticated::zero(rows[0].len());
    let weighted = || rows.iter().zip(weights.iter().copied());
    let values: Vec<_> = weighted().map(|(row, weight)| (row.values.as_slice(), weight)).collect();
    let macs: Vec<_> = weighted().map(|(row, weight)| (row.macs.as_slice(), weight)).collect();
    F::combine(&mut sum.values, &values, F::Word::ZERO);
    F::combine(&mut sum.macs, &macs, F::Word::ZERO);
    sum
}
