//! Lookups of any table on shares: one-time masked tables (Keller et al. 2017, Protocols 1 to 3), over
//! GF(2^8).
//!
//! Made ahead: a random index s, shared by bits, and its unit vector e with e_j = \[j = s\]. Demux (Protocol
//! 3 with k = 8) makes it: eight entries are packed into an element and multiplied by a bit of s at once, and
//! the product is opened under a mask, which unpacks it. Online (Protocol 1): h = x + s is opened, and T(x) =
//! sum of e_j T(j + h) is a local sum, because T and h are public. Online this takes one operation and one
//! round; ahead it takes the sum of ceil(2^j / 8), j = 1 .. l - 1, operations and l - 1 rounds (Keller et al.
//! 2017, Table 1).
//!
//! Adversary: that of the openings, passive below half, or active below a third ([`super::active`]). h is
//! uniform because s is. A mask is used for one lookup: stock is moved out when it is used.
//!
//! # Differences from the paper
//! The paper stores the masked table. Here the unit vector is stored and combined when it is used, so that
//! one vector serves every output bit and any linear image of the outputs.

use std::collections::BTreeMap;

use polyclave_cipher::{Compiled, Lookup, Matrix, Table};
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::transpose::rows_to_blocks;
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::opening::{Opening, Secret};
use super::security::AdversaryModel;
use crate::byte_registers::Registers;
use crate::interface::net::Net;
use crate::pool::{Pool, Shares};
use crate::{Error, Result};

/// Masks for all lookups of a circuit that go by masked tables, and what its tables look like to them.
pub(super) struct Stock {
    masks: Vec<Masks>,
    /// By table of the circuit; none for tables that go another way.
    sums: Vec<Option<Sums>>,
}

/// Masks for lookups of tables with the same number of input bits, used from the front.
pub(super) struct Masks {
    in_bits: u8,
    index: Shares,
    /// The unit vector of each index, padded to at least a word: `vector_bytes` bytes an index.
    vectors: Shares,
    spent: usize,
}

const fn vector_bytes(in_bits: u8) -> usize {
    let entries = 1 << in_bits;
    if entries < size_of::<u64>() { size_of::<u64>() } else { entries }
}

/// Stock that one lookup uses up: its index and unit vector.
pub(super) const fn material_bytes(in_bits: u8) -> usize {
    1 + vector_bytes(in_bits)
}

/// Products and rounds of Demux for an index of this many bits (Keller et al. 2017, Table 1, k = 8).
pub(super) fn demux_cost(in_bits: u8) -> (usize, usize) {
    let products = (1..u32::from(in_bits)).map(|j| (1usize << j).div_ceil(8)).sum();
    (products, usize::from(in_bits) - 1)
}

impl Stock {
    /// For lookups of these numbers, by table of the circuit.
    pub(super) fn prepare<S: AdversaryModel>(
        arithmetic: &mut Arithmetic<S>,
        compiled: &Compiled,
        lookups: &BTreeMap<usize, usize>,
        net: &mut dyn Net,
    ) -> Result<Stock> {
        let masks = by_width(compiled, lookups)
            .into_iter()
            .map(|(in_bits, count)| Masks::prepare(arithmetic, in_bits, count, net));
        Ok(Stock::with(masks.collect::<Result<_>>()?, compiled, lookups))
    }

    /// Takes masks that were made before. `items` gives the masks, by the bits of their tables, as
    /// [`Masks::save`] wrote them.
    pub(super) fn of(
        compiled: &Compiled,
        lookups: &BTreeMap<usize, usize>,
        mut items: impl FnMut(u8, usize) -> Result<Zeroizing<Vec<u8>>>,
        pool: &Pool,
    ) -> Result<Stock> {
        let by_width = by_width(compiled, lookups).into_iter();
        let masks =
            by_width.map(|(in_bits, count)| Ok(Masks::restore(in_bits, &items(in_bits, count)?, pool)));
        Ok(Stock::with(masks.collect::<Result<_>>()?, compiled, lookups))
    }

    fn with(masks: Vec<Masks>, compiled: &Compiled, lookups: &BTreeMap<usize, usize>) -> Stock {
        let tables = compiled.tables().iter().enumerate();
        let sums = tables.map(|(i, table)| lookups.contains_key(&i).then(|| Sums::new(table))).collect();
        Stock { masks, sums }
    }
}

/// Lookups by the number of input bits of their tables.
fn by_width(compiled: &Compiled, lookups: &BTreeMap<usize, usize>) -> BTreeMap<u8, usize> {
    let mut by_width = BTreeMap::new();
    for (table, count) in lookups {
        *by_width.entry(compiled.tables()[*table].in_bits()).or_insert(0) += count;
    }
    by_width
}

impl Masks {
    /// As a party keeps them: mask by mask, the index and its unit vector.
    pub(super) fn save(&self) -> Zeroizing<Vec<u8>> {
        let width = vector_bytes(self.in_bits);
        let mut items = Zeroizing::new(Vec::with_capacity(self.index.len() * (1 + width)));
        for (index, vector) in self.index.iter().zip(self.vectors.chunks_exact(width)) {
            items.push(*index);
            items.extend_from_slice(vector);
        }
        items
    }

    /// From what [`save`](Masks::save) wrote.
    fn restore(in_bits: u8, items: &[u8], pool: &Pool) -> Masks {
        let width = vector_bytes(in_bits);
        let count = items.len() / (1 + width);
        let (mut index, mut vectors) = (pool.take(count), pool.take(count * width));
        for (i, item) in items.chunks_exact(1 + width).enumerate() {
            index[i] = item[0];
            vectors[i * width..][..width].copy_from_slice(&item[1..]);
        }
        Masks { in_bits, index, vectors, spent: 0 }
    }

    /// Demux of `count` random indices.
    pub(super) fn prepare<S: AdversaryModel>(
        arithmetic: &mut Arithmetic<S>,
        in_bits: u8,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Masks> {
        let entries = 1usize << in_bits;
        let index_view = Matrix::of(8, 8, |x| x & (entries - 1) as u8);
        let mut views = vec![arithmetic.prss.view(&index_view)];
        views.extend((0..in_bits).map(|i| arithmetic.prss.view(&Matrix::bit(8, i))));
        let mut random = arithmetic.prss.random(count, &views, &arithmetic.pool);
        let bits = random.split_off(1);
        let index = random.remove(0);

        // Protocol 3, step 1: the unit vector of the lowest bit.
        let [mut zero, one] = [arithmetic.pool.take(count), arithmetic.pool.take(count)].map(|mut entry| {
            entry.copy_from_slice(&bits[0]);
            entry
        });
        zero.iter_mut().for_each(|share| *share ^= 1);
        let mut vector = vec![zero, one];
        // Step 2: with each further bit s_j, (1 - s_j) p and s_j p.
        let unpack: Vec<_> = (0..8).map(|i| arithmetic.prss.view(&Matrix::bit(8, i))).collect();
        for bit in &bits[1..] {
            let packed: Vec<Shares> = vector
                .chunks(8)
                .map(|entries| pack(entries, &arithmetic.scalars, &arithmetic.pool))
                .collect();
            let openings = packed.iter().zip(vector.chunks(8)).map(|(packed, entries)| Opening {
                secret: Secret::Product(bit, packed),
                views: unpack[..entries.len()].to_vec(),
            });
            let opened = arithmetic.open_masked(openings.collect(), net)?;
            for i in 0..vector.len() {
                let upper = opened.shares(i / 8, i % 8, 0);
                vector[i].iter_mut().zip(upper.iter()).for_each(|(low, up)| *low ^= up);
                vector.push(upper);
            }
        }

        // By index rather than by entry: a lookup reads one vector.
        let mut rows = arithmetic.pool.take(vector_bytes(in_bits) * count);
        rows[vector.len() * count..].fill(0);
        for (row, entry) in rows.chunks_mut(count.max(1)).zip(&vector) {
            row.copy_from_slice(entry);
        }
        let mut vectors = arithmetic.pool.take(rows.len());
        rows_to_blocks(&rows, count, vector_bytes(in_bits), &mut vectors);
        Ok(Masks { in_bits, index, vectors, spent: 0 })
    }
}

/// The sum of entry i times x^i.
fn pack(entries: &[Shares], scalars: &[Map], pool: &Pool) -> Shares {
    let mut packed = pool.take(entries[0].len());
    let terms = entries.iter().enumerate().map(|(i, src)| Term { src, map: &scalars[1 << i] });
    combine(&mut packed, &terms.collect::<Vec<_>>(), 0);
    packed
}

/// All lookups of a layer that go by masked tables: one opening each, one round.
pub(super) fn lookup<S: AdversaryModel>(
    compiled: &Compiled,
    lookups: &[&Lookup],
    arithmetic: &mut Arithmetic<S>,
    registers: &mut Registers,
    stock: &mut Stock,
    net: &mut dyn Net,
) -> Result<()> {
    // Spent first: the positions are taken before anything is sent.
    let mut spent = Vec::with_capacity(lookups.len());
    let mut masked = arithmetic.pool.take(lookups.iter().map(|lookup| registers.len(lookup.xs[0])).sum());
    let mut filled = 0;
    for lookup in lookups {
        let in_bits = compiled.tables()[lookup.table].in_bits();
        let row = registers.row(lookup.xs[0]);
        let missing = || Error::misuse("the batch was prepared for fewer lookups");
        let at = stock.masks.iter().position(|masks| masks.in_bits == in_bits).ok_or_else(missing)?;
        let masks = &mut stock.masks[at];
        let range = masks.spent..masks.spent + row.len();
        let index = masks.index.get(range.clone()).ok_or_else(missing)?;
        masks.spent = range.end;
        let part = &mut masked[filled..filled + row.len()];
        part.iter_mut().zip(row).zip(index).for_each(|((c, x), s)| *c = x ^ s);
        filled += row.len();
        spent.push((at, range));
    }
    let public = arithmetic.open_plain(&masked, net)?;
    let mut opened = 0;
    for (lookup, (at, range)) in lookups.iter().zip(spent) {
        let masks = &stock.masks[at];
        let h = &public[opened..opened + range.len()];
        opened += range.len();
        let width = vector_bytes(masks.in_bits);
        let vectors = &masks.vectors[range.start * width..range.end * width];
        let missing = || Error::misuse("the batch was prepared without this table");
        let sums = stock.sums[lookup.table].as_ref().ok_or_else(missing)?;
        let bits = sums.shares_of_bits(h, vectors, &arithmetic.pool);
        // M(T(x)) is the sum of M(e_b) times bit b of T(x).
        for (m, slot) in &lookup.views {
            let columns = m.columns().into_iter().zip(&bits).filter(|(column, _)| *column != 0);
            let terms =
                columns.map(|(column, src)| Term { src, map: &arithmetic.scalars[usize::from(column)] });
            combine(registers.row_mut(*slot), &terms.collect::<Vec<_>>(), 0);
        }
    }
    Ok(())
}

/// For each bit of a table's outputs the entries in which it is set, as masks over the words of a unit
/// vector.
struct Sums {
    words: usize,
    bits: Vec<Vec<u64>>,
}

impl Sums {
    fn new(table: &Table) -> Sums {
        let bytes = vector_bytes(table.in_bits());
        let bit = |b: u8| {
            let mut mask = vec![0u8; bytes];
            for (byte, entry) in mask.iter_mut().zip(table.entries()) {
                *byte = (entry >> b & 1).wrapping_neg();
            }
            let words = mask.chunks_exact(8);
            words.map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect()
        };
        Sums { words: bytes / 8, bits: (0..table.out_bits()).map(bit).collect() }
    }

    /// Shares of each bit of T(h + s) from public h and the shared unit vectors of s.
    fn shares_of_bits(&self, h: &[u8], vectors: &[u8], pool: &Pool) -> Vec<Shares> {
        let mut shares: Vec<Shares> = self.bits.iter().map(|_| pool.take(h.len())).collect();
        for (i, (h, vector)) in h.iter().zip(vectors.chunks_exact(8 * self.words)).enumerate() {
            let mut sums = [0u64; 8];
            for w in 0..self.words {
                // Entry j of the table meets entry j + h of the vector. The order depends on h, which is
                // public.
                let at = 8 * (w ^ usize::from(h >> 3));
                let Some(word) = vector.get(at..at + 8) else { continue };
                let word = swap_bytes(u64::from_le_bytes(word.try_into().expect("eight bytes")), h & 7);
                self.bits.iter().zip(&mut sums).for_each(|(mask, sum)| *sum ^= word & mask[w]);
            }
            for (share, sum) in shares.iter_mut().zip(sums) {
                share[i] = sum.to_le_bytes().into_iter().fold(0, |x, byte| x ^ byte);
            }
        }
        shares
    }
}

/// Byte i of the result is byte i ^ h of the word, h < 8.
fn swap_bytes(mut word: u64, h: u8) -> u64 {
    if h & 1 != 0 {
        word = (word >> 8 & 0x00ff_00ff_00ff_00ff) | (word & 0x00ff_00ff_00ff_00ff) << 8;
    }
    if h & 2 != 0 {
        word = (word >> 16 & 0x0000_ffff_0000_ffff) | (word & 0x0000_ffff_0000_ffff) << 16;
    }
    if h & 4 != 0 { word.rotate_left(32) } else { word }
}
