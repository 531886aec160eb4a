//! Authenticated bits and triples that are made in one session and used in another, under the same keys, from
//! a node's stock ([`crate::interface::stock`]).
//!
//! This material fits every circuit. The tables that are made of it fit one circuit, and exist in memory from
//! the request that asks for them to its end. What goes into the stock has been checked, and what comes out
//! of it is authenticated. So a party whose stock is damaged, or that takes other items than its peer, fails
//! the next check.
//!
//! | kind | bytes of an item | items a block of AES-128 |
//! |---|---|---|
//! | triples of bits | 51 | 5,440: its ANDs |
//! | authenticated bits | 17 | 8,192: masks of 128 bits of input, 1,408 of round keys, and 5,440 ANDs; and what clients' masks take |
//!
//! Triples of elements are those of [`crate::spdz`].

use std::sync::Arc;

use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use crate::interface::net::Net;
use crate::interface::stock::{Kind, Purpose, Stock};
use crate::spdz;
use crate::tinyot::{Bits, Source, Triples};
use crate::{Error, Result};

/// A share, its tag, and the key of the peer's tag.
const BIT_BYTES: usize = 1 + 8 + 8;

const BITS: Kind =
    Kind { name: "authenticated bits", purpose: Purpose::All, item_bytes: BIT_BYTES, per_block: 8192 };
const TRIPLES: Kind =
    Kind { name: "triples of bits", purpose: Purpose::All, item_bytes: 3 * BIT_BYTES, per_block: 5440 };

/// The kinds of material that nodes keep.
pub(super) fn kinds() -> Vec<Kind> {
    let elements = spdz::kinds::<Gf2_64>(spdz::LookupMethod::MaskedTables)
        .into_iter()
        .find(|kind| kind.name == "triples");
    [TRIPLES, BITS].into_iter().chain(elements).collect()
}

/// Makes this many items of a kind of bits; `None` if it is another kind.
pub(super) fn make(
    source: &mut dyn Source,
    kind: &Kind,
    count: usize,
    net: &mut dyn Net,
) -> Result<Option<Zeroizing<Vec<u8>>>> {
    Ok(match *kind {
        BITS => Some(write(&[&source.bits(count, net)?])),
        TRIPLES => {
            let Triples { x, y, z } = source.triples(count, net)?;
            Some(write(&[&x, &y, &z]))
        }
        _ => None,
    })
}

/// Bits and triples from a stock.
pub(super) struct FromStock(pub(super) Arc<dyn Stock>);

impl FromStock {
    fn take<const N: usize>(&self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<[Bits; N]> {
        let due = count.checked_mul(kind.item_bytes);
        let due = due.ok_or_else(|| Error::misuse(format!("{count} {} at once are too many", kind.name)))?;
        // Both parties know that nothing is asked for.
        if due == 0 {
            return Ok(std::array::from_fn(|_| Bits::default()));
        }
        let items = self.0.take(kind, count, net)?;
        match items.len() == due {
            true => Ok(read(&items)),
            false => {
                let (name, got) = (kind.name, items.len());
                Err(Error::System(format!("the stock gave {got} bytes for {count} {name}, which take {due}")))
            }
        }
    }
}

impl Source for FromStock {
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Bits> {
        let [bits] = self.take(&BITS, count, net)?;
        Ok(bits)
    }

    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples> {
        let [x, y, z] = self.take(&TRIPLES, count, net)?;
        Ok(Triples { x, y, z })
    }
}

/// The first bit of all, then the second of all ..
fn write(all: &[&Bits]) -> Zeroizing<Vec<u8>> {
    let len = all.first().map_or(0, |bits| bits.len());
    let mut items = Zeroizing::new(vec![0; len * all.len() * BIT_BYTES]);
    for (i, item) in items.chunks_exact_mut(all.len() * BIT_BYTES).enumerate() {
        for (to, bits) in item.chunks_exact_mut(BIT_BYTES).zip(all) {
            to[0] = bits.values[i];
            to[1..9].copy_from_slice(&bits.tags[i].to_le_bytes());
            to[9..].copy_from_slice(&bits.keys[i].to_le_bytes());
        }
    }
    items
}

fn read<const N: usize>(items: &[u8]) -> [Bits; N] {
    let len = items.len() / (N * BIT_BYTES);
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    std::array::from_fn(|n| {
        let mut bits = Bits::zero(len);
        for (i, item) in items.chunks_exact(BIT_BYTES).skip(n).step_by(N).enumerate() {
            // A stock that was damaged has no other bits than 0 and 1.
            bits.values[i] = item[0] & 1;
            (bits.tags[i], bits.keys[i]) = (word(&item[1..]), word(&item[9..]));
        }
        bits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_as_they_were_written() {
        let bits = |from: u64| Bits {
            values: (from..from + 5).map(|i| (i % 2) as u8).collect(),
            tags: (from..from + 5).map(|i| i << 40 | i).collect(),
            keys: (from..from + 5).map(|i| !i).collect(),
        };
        let all = [bits(1), bits(20), bits(300)];
        let items = write(&all.each_ref());
        assert_eq!(items.len(), 5 * TRIPLES.item_bytes);
        for (back, bits) in read::<3>(&items).iter().zip(&all) {
            assert_eq!((&back.values, &back.tags, &back.keys), (&bits.values, &bits.tags, &bits.keys));
        }
    }
}
