//! Products of authenticated bits, by triples (Beaver 1991). For x y with a triple (a, b, c), x + a and y + b
//! are opened, and x y = c + (x + a) b + (y + b) a + (x + a)(y + b).

use std::ops::Range;

use crate::interface::net::Net;
use crate::interface::tally::Counts;
use crate::tinyot::{BitSlices, Bits, Key, Openings, Source, Triples, mask};
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

    /// Hands out the places of the next products, at most `most`. `make` makes more if there are none left.
    fn next(
        &mut self,
        most: usize,
        len: impl Fn(&T) -> usize,
        make: impl FnOnce(usize) -> Result<T>,
    ) -> Result<(&T, Range<usize>)> {
        if self.made.as_ref().is_none_or(|made| len(made) == self.spent) {
            let now = self.wanted.clamp(most, AT_ONCE.max(most));
            self.wanted = self.wanted.saturating_sub(now);
            // Before others are made: their memory is used again.
            self.made = None;
            (self.made, self.spent) = (Some(make(now)?), 0);
        }
        let made = self.made.as_ref().ok_or_else(|| Error::misuse("there is nothing to take"))?;
        let start = self.spent;
        self.spent = len(made).min(start + most);
        Ok((made, start..self.spent))
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
        let mut bits = Bits::with_room(count);
        while bits.len() < count {
            let make = |count| self.source.bits(count, net);
            let (made, range) = self.bits.next(count - bits.len(), Bits::len, make)?;
            bits.append(made.slices(range));
        }
        Ok(bits)
    }

    /// Bit by bit the product of two rows. One round, and one more if triples run out in between.
    pub(super) fn multiply(
        &mut self,
        x: &Bits,
        y: &Bits,
        counts: &mut Counts,
        net: &mut dyn Net,
    ) -> Result<Bits> {
        counts.triples += x.len() as u64;
        let mut products = Bits::with_room(x.len());
        while products.len() < x.len() {
            let start = products.len();
            let make = |count| self.source.triples(count, net);
            let (made, range) = self.triples.next(x.len() - start, |made| made.x.len(), make)?;
            let [a, b, c] = [&made.x, &made.y, &made.z].map(|row| row.slices(range.clone()));
            let factors = [x, y].map(|row| row.slices(start..start + range.len()));
            let opened = open_sums(factors, [a, b], &self.key, &mut self.openings, net)?;
            counts.openings += 2 * range.len() as u64;
            counts.rounds += 1;

            // What was opened is public.
            let (d, e) = opened.split_at(range.len());
            products.append(c);
            add_where(&mut products, start, d, b);
            add_where(&mut products, start, e, a);
            let both: Vec<u8> = d.iter().zip(e).map(|(d, e)| d & e).collect();
            products.add_public_at(start, &both, &self.key);
        }
        Ok(products)
    }

    /// Everything opened so far. One round.
    pub(super) fn check(&mut self, counts: &mut Counts, net: &mut dyn Net) -> Result<()> {
        counts.rounds += u64::from(self.openings.is_unchecked());
        self.openings.check(&self.key, net)
    }
}

/// Opens x + a, then y + b. Provisional.
fn open_sums(
    [x, y]: [BitSlices<'_>; 2],
    [a, b]: [BitSlices<'_>; 2],
    key: &Key,
    openings: &mut Openings,
    net: &mut dyn Net,
) -> Result<Vec<u8>> {
    let len = x.values.len();
    let pairs = x.values.iter().zip(a.values).chain(y.values.iter().zip(b.values));
    // They are sent.
    let masked: Vec<u8> = pairs.map(|(value, mask)| value ^ mask).collect();
    openings.open_with(&masked, key, net, |i| {
        let (i, value, mask) = if i < len { (i, x, a) } else { (i - len, y, b) };
        (value.tags[i] ^ mask.tags[i], value.keys[i] ^ mask.keys[i])
    })
}

/// Adds those of other bits that are chosen by 1 to the bits from `at` on.
fn add_where(sums: &mut Bits, at: usize, chosen: &[u8], bits: BitSlices<'_>) {
    let values = sums.values[at..].iter_mut().zip(bits.values);
    values.zip(chosen).for_each(|((x, y), chosen)| *x ^= y & chosen);
    let tags = sums.tags[at..].iter_mut().zip(bits.tags);
    tags.zip(chosen).for_each(|((x, y), chosen)| *x ^= y & mask(*chosen));
    let keys = sums.keys[at..].iter_mut().zip(bits.keys);
    keys.zip(chosen).for_each(|((x, y), chosen)| *x ^= y & mask(*chosen));
}
