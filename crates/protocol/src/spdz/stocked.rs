//! Material that is made in one session and used in another, under the same MAC key, from a node's stock
//! ([`crate::interface::stock`]).
//!
//! What goes into the stock has been checked: the parts of a run are written down after the check of
//! everything that was opened for them. What comes out of it is authenticated under the MAC key. So a party
//! whose stock is damaged, or that takes other items than the rest, can change a result no more than one that
//! sends wrong shares: the next check fails. Each item is one party's part of secrets that are used once; the
//! stock has to ensure that.
//!
//! # Sizes, over a field of k = 64
//!
//! | kind | bytes of an item | items a block | why this many |
//! |---|---|---|---|
//! | records for inversions (`spdz-tower`) | 164 | 160 | lookups of AES-128 |
//! | unit vectors of 8 bits | 2,089 | 160; 64 under `spdz-tower` | lookups of AES-128; of other ciphers only |
//! | unit vectors of 6 bits | 529 | 384 | lookups of 3DES; a few in narrower tables |
//! | triples | 48 | 1,024 | see below |
//! | bits | 16 | 1,024 | see below |
//! | masks for clients | 2,128 | 8 | a mask of eight blocks, the longest that is made ahead |
//!
//! Triples and bits are not used for blocks but for what surrounds them. A key takes 254 products in
//! GF(2^128) when it is made, 3 triples each over smaller fields: 762. A session takes 8 for its checks, an
//! answer about 10, and each block 3 more. So making a key and encrypting one block with it, the most that
//! one block can ask for, takes at most 800. Bits: 128 for each block that a client sends or is sent, 128 for
//! the check of each of these masks, 256 for a key: less than 800. So a stock of one block is not dry after
//! the first request, and a stock of many blocks is hardly touched by requests. Only what was used is made
//! again, so triples and bits cost space (64 KiB a block) and no time.

use std::sync::Arc;

use polyclave_field::{MacField, Word};
use polyclave_kernels::affine::Map;
use zeroize::Zeroizing;

use super::config::SpdzConfig;
use super::lookup_method::{LookupMethod, MAX_UNIT_BITS};
use super::setup::Setup;
use super::{Spdz, registers};
use crate::authenticated::{
    Authenticated, Inverses, OwnedBits, RowShape, Rows, Source, Triples, Units, Vectors,
};
use crate::interface::net::Net;
use crate::interface::protocol::ProtocolConfig;
use crate::interface::session::Stream;
use crate::interface::stock::{Kind, Purpose, Stock};
use crate::pool::Pool;
use crate::{Error, Party, PartySet, Result};

/// Elements, and MACs, of a triple.
const TRIPLE: usize = 6;
/// An element and its MAC.
const BIT: usize = 2;

/// Lookups of AES-128: 10 rounds of 16.
const OF_AES: usize = 160;
/// Where AES has records of its own, few tables of 8 bits are left. A stock of the default level has enough
/// for a block of SKINNY-128-384.
const WITHOUT_INVERSION: usize = 64;
/// Lookups of 3DES: 3 times 16 rounds of 8.
const OF_3DES: usize = 384;
/// The most lookups in narrow tables that take vectors for wide ones. A payment command takes fewer; a block
/// of a cipher with tables of four bits takes more.
const FEW: usize = 128;
/// More than the first request of one block asks for, the making of its key included.
const ARITHMETIC: usize = 1024;

/// The kinds of material that a method to look up tables takes.
pub fn kinds<F: MacField>(method: LookupMethod) -> Vec<Kind> {
    let records = (method == LookupMethod::Tower).then(inverses::<F>);
    let vectors = [8, 6].into_iter().filter_map(|in_bits| vectors::<F>(method, in_bits));
    records.into_iter().chain(vectors).chain([triples::<F>(), bits::<F>()]).collect()
}

fn inverses<F: MacField>() -> Kind {
    Kind {
        name: "records for inversions",
        purpose: Purpose::Inversions,
        item_bytes: Inverses::<F>::BYTES,
        per_block: OF_AES,
    }
}

fn vectors<F: MacField>(method: LookupMethod, in_bits: u8) -> Option<Kind> {
    let (name, per_block) = match (in_bits, method) {
        (8, LookupMethod::Tower) => ("unit vectors of 8 bits", WITHOUT_INVERSION),
        (8, _) => ("unit vectors of 8 bits", OF_AES),
        (6, _) => ("unit vectors of 6 bits", OF_3DES),
        _ => return None,
    };
    let fits = in_bits <= F::CELL_BITS;
    fits.then(|| Kind {
        name,
        purpose: Purpose::Tables(in_bits),
        item_bytes: Vectors::<F>::bytes(in_bits),
        per_block,
    })
}

fn triples<F: MacField>() -> Kind {
    Kind {
        name: "triples",
        purpose: Purpose::Surroundings,
        item_bytes: TRIPLE * F::BYTES,
        per_block: ARITHMETIC,
    }
}

fn bits<F: MacField>() -> Kind {
    Kind { name: "bits", purpose: Purpose::Surroundings, item_bytes: BIT * F::BYTES, per_block: ARITHMETIC }
}

impl<F: MacField> Spdz<F> {
    /// Makes this many items of a kind, together with all parties, for their stocks: this party's parts,
    /// checked, one after another. For a session that takes nothing from a stock.
    pub fn make_items(&mut self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let items = if *kind == triples::<F>() {
            let Triples { a, b, c } = self.arithmetic.triples(count, net)?;
            write::<F>(&[&a.values, &a.macs, &b.values, &b.macs, &c.values, &c.macs])
        } else if *kind == bits::<F>() {
            let bits = self.arithmetic.bits(count, net)?;
            write::<F>(&[&bits.values, &bits.macs])
        } else if *kind == inverses::<F>() {
            self.arithmetic.inverses(count, net)?.write()
        } else {
            let in_bits =
                [8, 6].into_iter().find(|in_bits| vectors::<F>(self.method, *in_bits).as_ref() == Some(kind));
            let unknown =
                || Error::misuse(format!("{} of {} bytes are not made here", kind.name, kind.item_bytes));
            self.make_vectors(in_bits.ok_or_else(unknown)?, count, net)?.write()
        };
        self.arithmetic.check(net)?;
        Ok(items)
    }

    /// The same party, with material from a stock.
    pub fn with_stock(mut self, stock: Arc<dyn Stock>) -> Self {
        self.arithmetic.source = Box::new(FromStock::new(self.method, stock, self.arithmetic.source));
        self
    }
}

/// [`ServiceConfig::make_material`](crate::interface::service::ServiceConfig::make_material).
pub(super) fn make_material<F: MacField>(
    config: &SpdzConfig<F>,
    setup: &Setup<F>,
    stream: Stream,
    kind: &Kind,
    count: usize,
    net: &mut dyn Net,
) -> Result<Zeroizing<Vec<u8>>> {
    config.join(setup, stream, net.members())?.make_items(kind, count, net)
}

/// [`ServiceConfig::join_stocked`](crate::interface::service::ServiceConfig::join_stocked).
pub(super) fn join_stocked<F: MacField>(
    config: &SpdzConfig<F>,
    setup: &Setup<F>,
    stream: Stream,
    serving: PartySet,
    stock: Arc<dyn Stock>,
) -> Result<Spdz<F>> {
    let mut session = config.join(setup, stream, serving)?;
    let source = FromStock::new(session.method, stock, session.arithmetic.source);
    session.arithmetic.source = Box::new(source.with_masks());
    Ok(session)
}

/// Material from a stock; what stocks do not keep is made on the way.
pub struct FromStock<F: MacField> {
    method: LookupMethod,
    stock: Arc<dyn Stock>,
    live: Box<dyn Source<F>>,
    scalars: Vec<Map>,
    has_masks: bool,
}

impl<F: MacField> FromStock<F> {
    /// Both are of one MAC key, and `live` is of the session that it is used in. The stock keeps the
    /// [`kinds`] of this method.
    pub fn new(method: LookupMethod, stock: Arc<dyn Stock>, live: Box<dyn Source<F>>) -> Self {
        FromStock { method, stock, live, scalars: registers::scalars::<F>(), has_masks: false }
    }

    /// The stock also keeps masks for clients.
    pub fn with_masks(self) -> Self {
        FromStock { has_masks: true, ..self }
    }

    /// Whole items, as many as asked for.
    fn take(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let due = count.checked_mul(kind.item_bytes);
        let due = due.ok_or_else(|| Error::misuse(format!("{count} {} at once are too many", kind.name)))?;
        // All parties know that nothing is asked for.
        if due == 0 {
            return Ok(Zeroizing::default());
        }
        whole(kind, count, self.stock.take(kind, count, net)?)
    }

    /// The same if the stock has so many now.
    fn take_if_there(
        &self,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let Some(mut taken) = self.stock.take_if_there(&[(*kind, count)], net)? else { return Ok(None) };
        let items = taken.pop().ok_or_else(|| Error::System(format!("the stock gave no {}", kind.name)))?;
        whole(kind, count, items).map(Some)
    }

    /// For narrow tables, of which the stock keeps no vectors: those of wider ones, if it gives some and few
    /// are needed, as by a payment command. Making vectors on the way takes many rounds, and nodes that are
    /// far from each other would wait for that. Blocks of ciphers with narrow tables take more, and would
    /// leave nothing for Triple DES.
    fn wider_vectors(
        &self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Option<Vectors<F>>> {
        let wider =
            (in_bits + 1..=MAX_UNIT_BITS).find_map(|bits| Some((bits, vectors::<F>(self.method, bits)?)));
        let Some((bits, kind)) = wider.filter(|_| (1..=FEW).contains(&count)) else { return Ok(None) };
        let items = self.take_if_there(&kind, count, net)?;
        Ok(items.map(|items| Vectors::read(bits, &items, pool)))
    }

    /// `None` if the stock keeps no vectors of this width.
    fn vectors(
        &self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Option<Vectors<F>>> {
        let Some(kind) = vectors::<F>(self.method, in_bits) else { return Ok(None) };
        let items = self.take(&kind, count, net)?;
        Ok(Some(Vectors::read(in_bits, &items, pool)))
    }
}

impl<F: MacField> Source<F> for FromStock<F> {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.take(&triples::<F>(), count, net).map(|items| read_triples(&items))
    }

    fn triples_if_there(&mut self, count: usize, net: &mut dyn Net) -> Result<Option<Triples<F>>> {
        Ok(self.take_if_there(&triples::<F>(), count, net)?.map(|items| read_triples(&items)))
    }

    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        let items = self.take(&bits::<F>(), count, net)?;
        let [bits] = read::<F, 1>(&items);
        Ok(bits)
    }

    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>> {
        self.live.bits_of(owner, count, net)
    }

    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.live.bit_triples(count, net)
    }

    fn inverses(&mut self, count: usize, net: &mut dyn Net) -> Result<Inverses<F>> {
        Ok(Inverses::read(&self.take(&inverses::<F>(), count, net)?))
    }

    fn unit_vectors(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Vectors<F>> {
        self.live.unit_vectors(in_bits, count, pool, net)
    }

    fn zeros(&mut self, shares: &mut [F::Word]) {
        self.live.zeros(shares);
    }

    fn deal_masks(
        &mut self,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        if self.has_masks { self.take(kind, count, net).map(Some) } else { Ok(None) }
    }

    fn deal_units(
        &mut self,
        in_bits: u8,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Option<Units<F>>> {
        if let Some(vectors) = self.vectors(in_bits, count, pool, net)? {
            return Ok(Some(Units::of(vectors)));
        }
        match self.wider_vectors(in_bits, count, pool, net)? {
            Some(vectors) => Ok(Some(Units::of(vectors))),
            None => self.live.deal_units(in_bits, count, pool, net),
        }
    }

    fn deal_rows(
        &mut self,
        shape: &RowShape,
        count: usize,
        pool: &Pool,
        net: &mut dyn Net,
    ) -> Result<Option<Rows<F>>> {
        match self.vectors(shape.in_bits, count, pool, net)? {
            Some(vectors) => Ok(Some(Rows::of(shape.clone(), vectors, &self.scalars, pool))),
            None => self.live.deal_rows(shape, count, pool, net),
        }
    }
}

/// Refuses items that are more or fewer than were asked for.
fn whole(kind: &Kind, count: usize, items: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>> {
    let (name, got, due) = (kind.name, items.len(), count * kind.item_bytes);
    match got == due {
        true => Ok(items),
        false => {
            Err(Error::System(format!("the stock gave {got} bytes for {count} {name}, which take {due}")))
        }
    }
}

fn read_triples<F: MacField>(items: &[u8]) -> Triples<F> {
    let [a, b, c] = read::<F, 3>(items);
    Triples { a, b, c }
}

/// Columns of words as items: the first word of every column, then the second of every one.
fn write<F: MacField>(columns: &[&[F::Word]]) -> Zeroizing<Vec<u8>> {
    let len = columns.first().map_or(0, |column| column.len());
    let mut items = Zeroizing::new(vec![0; len * columns.len() * F::BYTES]);
    for (i, item) in items.chunks_exact_mut(columns.len() * F::BYTES).enumerate() {
        let words = item.chunks_exact_mut(F::BYTES).zip(columns);
        words.for_each(|(bytes, column)| column[i].write_to(bytes));
    }
    items
}

/// Items of N elements with their MACs, read as N vectors.
fn read<F: MacField, const N: usize>(items: &[u8]) -> [Authenticated<F>; N] {
    let mut words = Zeroizing::new(vec![F::Word::ZERO; items.len() / F::BYTES]);
    F::read_row(items, &mut words);
    let column = |at: usize| Zeroizing::new(words.iter().skip(at).step_by(2 * N).copied().collect());
    std::array::from_fn(|i| Authenticated { values: column(2 * i), macs: column(2 * i + 1) })
}
