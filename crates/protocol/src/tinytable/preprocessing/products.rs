//! Products of authenticated bits, by triples (Beaver 1991): of x y with a triple (a, b, c) x + a and y + b are opened, and
//! x y = c + (x + a) b + (y + b) a + (x + a)(y + b).

use crate::Result;
use crate::net::Net;
use crate::tally::Counts;
use crate::tinyot::{Bits, Key, Openings, Source, Triples, mask};

/// Multiplies on one stream of a session.
pub(super) struct Products {
    key: Key,
    openings: Openings,
    source: Box<dyn Source>,
}

impl Products {
    /// With triples of a source of the same stream.
    pub(super) fn new(key: Key, label: &[u8], source: Box<dyn Source>) -> Self {
        let openings = Openings::new(&[label, b" tables"].concat(), key.me());
        Products { key, openings, source }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Random bits.
    pub(super) fn bits(&mut self, count: usize, counts: &mut Counts, net: &mut dyn Net) -> Result<Bits> {
        if count == 0 {
            return Ok(Bits::zero(0));
        }
        counts.bits += count as u64;
        self.source.bits(count, net)
    }

    /// Bit by bit the product of two rows. One round.
    pub(super) fn multiply(
        &mut self,
        x: &Bits,
        y: &Bits,
        counts: &mut Counts,
        net: &mut dyn Net,
    ) -> Result<Bits> {
        let len = x.len();
        counts.triples += len as u64;
        counts.openings += 2 * len as u64;
        counts.rounds += 1;
        let Triples { x: a, y: b, z: mut product } = self.source.triples(len, net)?;
        let mut masked = Bits::join(&[x, y]);
        masked.add(&Bits::join(&[&a, &b]));
        let mut opened = self.openings.open(&masked, &self.key, net)?;
        let (d, e) = opened.split_at_mut(len);
        // What was opened is public.
        add_where(&mut product, d, &b);
        add_where(&mut product, e, &a);
        d.iter_mut().zip(e).for_each(|(d, e)| *d &= *e);
        product.add_public(d, &self.key);
        Ok(product)
    }

    /// Everything opened so far. One round.
    pub(super) fn check(&mut self, counts: &mut Counts, net: &mut dyn Net) -> Result<()> {
        counts.rounds += u64::from(self.openings.is_unchecked());
        self.openings.check(&self.key, net)
    }
}

/// Adds those of other bits that are chosen by 1.
fn add_where(sum: &mut Bits, chosen: &[u8], bits: &Bits) {
    sum.values.iter_mut().zip(&bits.values).zip(chosen).for_each(|((x, y), chosen)| *x ^= y & chosen);
    sum.tags.iter_mut().zip(&bits.tags).zip(chosen).for_each(|((x, y), chosen)| *x ^= y & mask(*chosen));
    sum.keys.iter_mut().zip(&bits.keys).zip(chosen).for_each(|((x, y), chosen)| *x ^= y & mask(*chosen));
}
