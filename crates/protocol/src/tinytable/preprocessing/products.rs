//! Products of authenticated bits, by triples (Beaver 1991). For x y with a triple (a, b, c), x + a and y + b are opened, and
//! x y = c + (x + a) b + (y + b) a + (x + a)(y + b).

use std::ops::Range;

use crate::net::Net;
use crate::tally::Counts;
use crate::tinyot::{Bits, Key, Openings, Source, Triples, mask};
use crate::{Error, Result};

/// Bits and triples that are made at once.
const AT_ONCE: usize = 1 << 20;

/// Multiplies on one stream of a session.
pub(super) struct Products {
    key: Key,
    openings: Openings,
    source: Box<dyn Source>,
    bits: Stock<Bits>,
    triples: Stock<Triples>,
}

/// Material that was made ahead, and how much more will be asked for.
struct Stock<T> {
    made: Option<T>,
    spent: usize,
    /// Beyond what was made.
    wanted: usize,
}

impl<T> Stock<T> {
    fn empty() -> Self {
        Stock { made: None, spent: 0, wanted: 0 }
    }

    /// Hands out `count`: parts of what is there, made by `make` where that ends.
    fn take(
        &mut self,
        count: usize,
        len: impl Fn(&T) -> usize,
        part: impl Fn(&T, Range<usize>) -> T,
        mut make: impl FnMut(usize) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut parts = Vec::new();
        let mut missing = count;
        while missing > 0 {
            let left = self.made.as_ref().map_or(0, &len) - self.spent;
            if left == 0 {
                let now = self.wanted.clamp(missing, AT_ONCE.max(missing));
                self.wanted = self.wanted.saturating_sub(now);
                (self.made, self.spent) = (Some(make(now)?), 0);
                continue;
            }
            let now = missing.min(left);
            let made = self.made.as_ref().ok_or_else(|| Error::misuse("there is nothing to take"))?;
            parts.push(part(made, self.spent..self.spent + now));
            (self.spent, missing) = (self.spent + now, missing - now);
        }
        Ok(parts)
    }
}

impl Products {
    /// With triples of a source of the same stream.
    pub(super) fn new(key: Key, label: &[u8], source: Box<dyn Source>) -> Self {
        let openings = Openings::new(&[label, b" tables"].concat(), key.me());
        Products { key, openings, source, bits: Stock::empty(), triples: Stock::empty() }
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    /// Says how much will be asked for.
    pub(super) fn reserve(&mut self, bits: usize, triples: usize) {
        (self.bits.wanted, self.triples.wanted) = (bits, triples);
    }

    /// Random bits.
    pub(super) fn bits(&mut self, count: usize, counts: &mut Counts, net: &mut dyn Net) -> Result<Bits> {
        counts.bits += count as u64;
        let make = |count| self.source.bits(count, net);
        let parts = self.bits.take(count, Bits::len, Bits::part, make)?;
        Ok(Bits::join(&parts.iter().collect::<Vec<_>>()))
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
        let (a, b, mut product) = self.triples(len, net)?;
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

    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<(Bits, Bits, Bits)> {
        let part = |made: &Triples, range: Range<usize>| Triples {
            x: made.x.part(range.clone()),
            y: made.y.part(range.clone()),
            z: made.z.part(range),
        };
        let make = |count| self.source.triples(count, net);
        let parts = self.triples.take(count, |made| made.x.len(), part, make)?;
        let joined = |of: fn(&Triples) -> &Bits| Bits::join(&parts.iter().map(of).collect::<Vec<_>>());
        Ok((joined(|t| &t.x), joined(|t| &t.y), joined(|t| &t.z)))
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
