//! GHASH under a shared key, over public blocks (NIST SP 800-38D, section 6.4): the hash of AES-GCM.
//!
//! The hash of blocks X_1 .. X_m is the sum of X_j H^(m-j+1): linear in powers of H. The powers are shared
//! once a key, in two levels, H^1 .. H^128 and H^128 .. H^(128 * 128). A segment of m <= 16384 blocks is cut
//! from its end into groups of 128; inside of a group the sums with the low powers are local, and across the
//! groups one inner product with the high powers is one opening. Segments follow each other by Horner's rule:
//! Y becomes Y H^m plus the segment's hash.
//!
//! Adversary: the protocol's. Blocks and their number are public; the hash key, its powers and the hash stay
//! shared.
//!
//! For many keys, where a protocol has powers x^(2^k) for less than products
//! ([`ElementArithmetic::frobenius`]), only the 63 odd powers of H up to 127 are products. Every exponent up
//! to 128 is an odd one times a power of two, and H^(128 j) is (H^j)^128.
//!
//! A key for one message only ([`hash_once`], [`hash_public_once`]) has no more powers than the message has
//! blocks; there the blocks may be shared, too.
//!
//! Cost: 14 rounds and 254 multiplications a key, or 8 rounds, 63 multiplications and 8,320 random bits. The
//! first segment takes no round if it has at most 128 blocks, else one, with one multiplication; each later
//! segment one round and multiplication, and another of both to make H^m if m is above 128 and no multiple
//! of 128.

use zeroize::Zeroizing;

use crate::interface::net::Net;
use crate::interface::service::{ELEMENT_BYTES, Element, ElementArithmetic, Elements, ServiceSession};
use crate::{Error, Result};

/// Powers in a level, and blocks in a group.
const GROUP: usize = 128;

/// The most blocks that one call of [`Ghash::update`] takes.
pub const SEGMENT_BLOCKS: usize = GROUP * GROUP;

/// Shared powers of one hash key H.
pub struct GhashKey {
    /// H^1 .. H^128.
    low: Elements,
    /// H^128, H^256 .. H^(128 * 128).
    high: Elements,
    /// The hash of no blocks.
    zero: Elements,
}

impl GhashKey {
    /// Computes the powers of the one element `h`. 14 rounds.
    pub fn derive(arithmetic: &mut dyn ElementArithmetic, h: &Elements, net: &mut dyn Net) -> Result<Self> {
        if h.count() != 1 {
            return Err(Error::misuse("a hash key is one element"));
        }
        Ok(GhashKey::from(&by_products(arithmetic, h, net)?))
    }

    /// Computes the powers of some elements. Each element is the hash key of another key. It takes the rounds
    /// of one element, and the cheapest way. This way may use random bits in the place of most products,
    /// because a stock has few products.
    pub fn derive_all(
        arithmetic: &mut dyn ElementArithmetic,
        keys: &Elements,
        net: &mut dyn Net,
    ) -> Result<Vec<Self>> {
        let count = keys.count();
        if count == 0 {
            return Ok(Vec::new());
        }
        let powers = match by_frobenius(arithmetic, keys, net)? {
            Some(powers) => powers,
            None => by_products(arithmetic, keys, net)?,
        };
        let of = |key: usize| (0..2 * GROUP).map(|power| power * count + key).collect::<Vec<_>>();
        Ok((0..count).map(|key| GhashKey::from(&powers.select(&of(key)))).collect())
    }

    /// The low powers, and behind them the high ones.
    fn from(powers: &Elements) -> Self {
        GhashKey::new(powers.part(0..GROUP), powers.part(GROUP..2 * GROUP))
    }

    fn new(low: Elements, high: Elements) -> Self {
        let zero = low.weighted_sums(&[[0; ELEMENT_BYTES]; GROUP]);
        GhashKey { low, high, zero }
    }

    /// What a node stores of a key.
    pub fn save(&self, protocol: &impl ServiceSession) -> Zeroizing<Vec<u8>> {
        protocol.save_elements(&Elements::join(&[&self.low, &self.high]))
    }

    /// Reads a stored key. Bytes that do not fit are an error, never a panic.
    pub fn restore(protocol: &impl ServiceSession, bytes: &[u8]) -> Result<Self> {
        let powers = protocol.restore_elements(bytes)?;
        let count = powers.count();
        if count != 2 * GROUP {
            return Err(Error::Misuse(format!(
                "a stored hash key has {} elements, not {count}; it is another file",
                2 * GROUP
            )));
        }
        Ok(GhashKey::from(&powers))
    }

    /// What shared blocks add to the hash of a message if they are added to its last blocks, before the block
    /// of the lengths. Fewer than 128 blocks. One round, with a multiplication for each.
    pub fn of_shared(
        &self,
        blocks: &Elements,
        arithmetic: &mut dyn ElementArithmetic,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let count = blocks.count();
        if !(1..GROUP).contains(&count) {
            return Err(Error::Misuse(format!(
                "{count} shared blocks in a hash, where 1 to {} fit",
                GROUP - 1
            )));
        }
        // The last block has the exponent 2.
        let powers: Vec<Elements> = (1..=count).rev().map(|i| self.low.part(i..i + 1)).collect();
        arithmetic.inner_product(blocks, &Elements::join(&powers.iter().collect::<Vec<_>>()), net)
    }

    /// H^m for 1 <= m <= [`SEGMENT_BLOCKS`]. No round if a level has it, else one.
    fn power(&self, arithmetic: &mut dyn ElementArithmetic, m: usize, net: &mut dyn Net) -> Result<Elements> {
        let (groups, rest) = ((m - 1) / GROUP, (m - 1) % GROUP + 1);
        if rest == GROUP {
            return Ok(self.high.part(groups..groups + 1));
        }
        let low = self.low.part(rest - 1..rest);
        match groups {
            0 => Ok(low),
            _ => arithmetic.multiply_elements(&low, &self.high.part(groups - 1..groups), net),
        }
    }
}

/// The low and the high powers of some elements: the first power of all, then the second ..
fn by_products(
    arithmetic: &mut dyn ElementArithmetic,
    elements: &Elements,
    net: &mut dyn Net,
) -> Result<Elements> {
    let count = elements.count();
    let low = powers(arithmetic, elements, GROUP, net)?;
    let high = powers(arithmetic, &low.part((GROUP - 1) * count..GROUP * count), GROUP, net)?;
    Ok(Elements::join(&[&low, &high]))
}

/// The powers 1 .. `most` of some elements: with the powers up to k come, times the k-th, those up to 2k. As
/// many rounds as the logarithm of `most`, rounded up; 7 for 128.
fn powers(
    arithmetic: &mut dyn ElementArithmetic,
    elements: &Elements,
    most: usize,
    net: &mut dyn Net,
) -> Result<Elements> {
    let (mut powers, count) = (elements.clone(), elements.count());
    while powers.count() < most * count {
        let all = powers.count();
        let last = powers.part(all - count..all);
        let further = all.min(most * count - all);
        let factors = Elements::join(&vec![&last; further / count]);
        let further = arithmetic.multiply_elements(&powers.part(0..further), &factors, net)?;
        powers = Elements::join(&[&powers, &further]);
    }
    Ok(powers)
}

/// The same with products for the odd powers alone.
fn by_frobenius(
    arithmetic: &mut dyn ElementArithmetic,
    elements: &Elements,
    net: &mut dyn Net,
) -> Result<Option<Elements>> {
    let count = elements.count();
    // x^2, x^4 .. x^64.
    let doublings = GROUP.ilog2() - 1;
    let wanted: Vec<(usize, u32)> = (1..=doublings).flat_map(|k| (0..count).map(move |i| (i, k))).collect();
    let Some(squares) = arithmetic.frobenius(elements, &wanted, net)? else { return Ok(None) };
    // The odd powers below 2^k, times x^(2^k), are those up to 2^(k + 1).
    let mut odd = elements.clone();
    for square in 0..doublings as usize {
        let square = squares.part(square * count..(square + 1) * count);
        let factors = Elements::join(&vec![&square; odd.count() / count]);
        let further = arithmetic.multiply_elements(&odd, &factors, net)?;
        odd = Elements::join(&[&odd, &further]);
    }
    let exponents = (0..2).flat_map(|level| (1..=GROUP).map(move |exponent| (level, exponent)));
    let wanted = exponents.flat_map(|(level, exponent)| {
        let twos = exponent.trailing_zeros();
        let place = (exponent >> twos) / 2 * count;
        (0..count).map(move |i| (place + i, level * GROUP.ilog2() + twos))
    });
    arithmetic.frobenius(&odd, &wanted.collect::<Vec<_>>(), net)
}

/// The hash of shared blocks under a key that is used for nothing else, so that no more powers are computed
/// than these blocks take. For m blocks m - 1 multiplications and an inner product of m elements, and one
/// round more than the logarithm of m, rounded up.
pub fn hash_once(
    h: &Elements,
    blocks: &Elements,
    arithmetic: &mut dyn ElementArithmetic,
    net: &mut dyn Net,
) -> Result<Elements> {
    let powers = falling_powers(h, blocks.count(), arithmetic, net)?;
    arithmetic.inner_product(blocks, &powers, net)
}

/// The same for blocks that everybody knows: no inner product, and a round less.
pub fn hash_public_once(
    h: &Elements,
    blocks: &[Element],
    arithmetic: &mut dyn ElementArithmetic,
    net: &mut dyn Net,
) -> Result<Elements> {
    Ok(falling_powers(h, blocks.len(), arithmetic, net)?.weighted_sums(blocks))
}

/// The powers `count` .. 1 of one element: the last block of a hash has the exponent 1.
fn falling_powers(
    h: &Elements,
    count: usize,
    arithmetic: &mut dyn ElementArithmetic,
    net: &mut dyn Net,
) -> Result<Elements> {
    if h.count() != 1 || !(1..=SEGMENT_BLOCKS).contains(&count) {
        return Err(Error::Misuse(format!("a hash of {count} blocks under {} keys", h.count())));
    }
    let powers = powers(arithmetic, h, count, net)?;
    Ok(powers.select(&(0..count).rev().collect::<Vec<_>>()))
}

/// A hash under way.
pub struct Ghash<'k> {
    key: &'k GhashKey,
    /// The hash of all blocks so far, shared; `None` before the first.
    state: Option<Elements>,
}

impl<'k> Ghash<'k> {
    /// The hash of no blocks yet.
    pub fn new(key: &'k GhashKey) -> Self {
        Ghash { key, state: None }
    }

    /// Goes on with the hash of blocks that another one has finished.
    pub fn resume(key: &'k GhashKey, so_far: Option<Elements>) -> Self {
        Ghash { key, state: so_far }
    }

    /// Takes in whole blocks of 16 public bytes, at most [`SEGMENT_BLOCKS`] of them. At most two rounds.
    /// After an error the hash is of no further use.
    pub fn update(
        &mut self,
        arithmetic: &mut dyn ElementArithmetic,
        blocks: &[u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let (blocks, rest) = blocks.as_chunks::<ELEMENT_BYTES>();
        if !rest.is_empty() || blocks.len() > SEGMENT_BLOCKS {
            return Err(Error::Misuse(format!(
                "a segment of a hash is at most {SEGMENT_BLOCKS} whole blocks, not {} and {} bytes",
                blocks.len(),
                rest.len()
            )));
        }
        if blocks.is_empty() {
            return Ok(());
        }
        // From the last block, whose exponent is 1; the last group is filled up with zeros.
        let mut weights: Vec<Element> = blocks.iter().rev().copied().collect();
        weights.resize(blocks.len().next_multiple_of(GROUP), [0; ELEMENT_BYTES]);
        let groups = weights.len() / GROUP;
        let sums = self.key.low.weighted_sums(&weights);
        let mut hash = sums.part(0..1);
        // Sum q >= 1 is still to be multiplied by H^(128 q), and the state by H^m.
        let mut factors = sums.part(1..groups);
        let mut powers = self.key.high.part(0..groups - 1);
        if let Some(state) = self.state.take() {
            let power = self.key.power(arithmetic, blocks.len(), net)?;
            factors = Elements::join(&[&factors, &state]);
            powers = Elements::join(&[&powers, &power]);
        }
        if factors.count() > 0 {
            hash.add_assign(&arithmetic.inner_product(&factors, &powers, net)?);
        }
        self.state = Some(hash);
        Ok(())
    }

    /// The hash, shared: one element.
    pub fn finish(self) -> Elements {
        self.state.unwrap_or_else(|| self.key.zero.clone())
    }
}
