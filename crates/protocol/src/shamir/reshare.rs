//! Moves what is stored from one set of parties to another, under other numbers of parties and another
//! threshold.
//!
//! A set P of the old parties takes part; the others may be gone. Each of P deals its share of every stored
//! row to the new parties, by a fresh random polynomial of the new degree t'. The new share is the sum of
//! what t + 1 of P dealt, times their Lagrange coefficients (Desmedt and Jajodia 1997; verified as below;
//! Wong, Wang and Wing 2002 use commitments in that place; both cited from memory). As in a refresh, every
//! row is a sharing of its own, whether it is a value or an image of one, and nothing of a stored value is
//! opened.
//!
//! **Adversary**: mobile. It has at most t of the old parties until they have erased their shares, and at
//! most t' of the new ones; a party that it has while values move counts for both sets if it is in both.
//! Under `shamir` it only looks on. Under `shamir-active` it deviates in any way (t < n/3, t' < n'/3).
//!
//! *Secrecy.* Let f be an old polynomial, A the old parties of the adversary, B the new ones, and g_i the
//! polynomial of dealer i, so that g_i(0) = f(i). Let f_A be the polynomial of degree t that is 1 at 0 and 0
//! at A, and h_B that of degree t' that is 1 at 0 and 0 at B. For every other value f(0) + k, the polynomials
//! f + k f_A and g_i + k f_A(i) h_B look the same to the adversary. It knows g_i whole for dealers i in A
//! only, where f_A(i) = 0. Honest dealers' coefficients are uniform, so both cases are equally likely. What
//! the check opens is masked, see below. At least one of t + 1 dealers is honest, so the new polynomial is
//! uniform but for its value at 0.
//!
//! **The check.** When a new party has all that was dealt, it takes part in tossing coins chi. For every
//! dealer i the new parties open 16 combinations of the dealt bytes, sum chi_j g_i,j + m_i over GF(2^8), and
//! one of the elements. What i deals ends with its shares m_i of random values of the old parties'
//! pseudorandom sharing (`shamir/prss.rs`) that nothing else uses. So the old parties need not talk to each
//! other, and the combinations reveal nothing: m is a polynomial of degree t that t parties do not know. Two
//! things have to hold:
//!
//! 1. What the new parties opened for a dealer lies on one polynomial of degree t'. If the shares that honest
//!    new parties have from it do not, this holds with probability 2^-128. (n' - t' > 2t' honest ones
//!    determine it under `shamir-active`. Under `shamir` all are.)
//! 2. The values at 0 of these polynomials, over all dealers, lie on one polynomial of degree t. Those of
//!    honest dealers do, and they are t + 1 at least. If a dealer dealt another vector than its shares, its
//!    value is off this polynomial except with probability 2^-128. With 3t + 1 dealers it is corrected, which
//!    names the dealer; with 2t + 1 it is found; with t + 1, which `shamir` allows, there is nothing to
//!    compare, and only the check values of the keys speak.
//!
//! A party that finds a fault stops, and nobody takes into use what not all new parties have accepted
//! (`node/src/reshare`). So a fault ends the whole. No broadcast is needed: each honest new party judges for
//! itself, and honest shares that do not fit show to every one of them. [`Fault`] says which parties can be
//! named.
//!
//! **What it takes**: t + 1 of the old parties under `shamir`, 2t + 1 under `shamir-active`, and all new
//! ones. No party may use the old shares afterwards.
//!
//! Cost: one byte from each dealer to each new party for every stored byte; the rounds of one toss and one
//! opening besides.

#[cfg(test)]
mod tests;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, combine};
use polyclave_kernels::gf128::scale_add;
use zeroize::Zeroizing;

use super::active::code::{Symbol, Word, decode, interpolate};
use super::arithmetic::{scalar, terms};
use super::prss::Prss;
use super::refresh::{CHECKS, Lens, PUBLISHED, combinations, deal_secrets};
use super::security::AdversaryModel;
use super::setup::{Setup, Structure, point};
use super::{Active, Passive, ShamirActiveConfig, ShamirConfig, Shared, storage};
use crate::coins;
use crate::commitment::broadcast;
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::Net;
use crate::interface::service::{Sharing, Stored};
use crate::interface::session::{Stream, random_bytes};
use crate::pool::Pool;
use crate::stored::{Reader, Shape, shape_bytes};
use crate::{Error, Party, PartySet, Result};

/// The most bytes that a dealer sends a new party at once: the shapes that decide this come from other
/// parties.
const MAX_BYTES: usize = 256 << 20;

impl Sharing {
    /// As parties that only look on share.
    pub(super) fn passive(config: &ShamirConfig) -> Sharing {
        Sharing::of(config.structure, Passive::KINDS, Passive::CORRECTS)
    }

    /// As parties share of which some may cheat.
    pub(super) fn active(config: &ShamirActiveConfig) -> Sharing {
        Sharing::of(config.structure(), Active::KINDS, Active::CORRECTS)
    }

    fn of(structure: Structure, kinds: [u8; 2], corrects: bool) -> Sharing {
        Sharing { parties: structure.parties(), threshold: structure.threshold(), kinds, corrects }
    }

    fn structure(&self) -> Structure {
        Structure { parties: self.parties, threshold: self.threshold }
    }

    /// Number of parties.
    pub fn parties(&self) -> usize {
        self.parties
    }

    /// How many parties have to take part so that what they hold can be moved, and wrong shares among it are
    /// found.
    pub fn dealers_needed(&self) -> usize {
        if self.corrects { 2 * self.threshold + 1 } else { self.threshold + 1 }
    }

    /// Whether values that are stored in one way can be moved to the other as they are: the images of cells
    /// are those of one protocol.
    pub fn is_like(&self, other: &Sharing) -> bool {
        self.kinds == other.kinds
    }

    /// Everything about a stored value but the shares: the new parties need it beforehand.
    pub fn public_part(&self, me: Party, stored: Stored<'_>) -> Result<Vec<u8>> {
        Ok(match self.restore(me, stored)? {
            Part::Value(value) => shape_bytes(value.bits, value.count, value.lanes, &value.views),
            Part::Elements(elements) => (elements.count() as u64).to_le_bytes().to_vec(),
        })
    }

    fn restore(&self, me: Party, stored: Stored<'_>) -> Result<Part> {
        let header = storage::header(self.kinds[1], self.structure(), me);
        Ok(match stored {
            Stored::Value(bytes) => Part::Value(Shared::restore(bytes, storage::PROTOCOL, header)?),
            Stored::Elements(bytes) => {
                Part::Elements(Elements::restore(Reader::bare(bytes, storage::PROTOCOL), 1)?)
            }
        })
    }
}

enum Part {
    Value(Shared),
    Elements(Elements),
}

/// What is public of stored values, as the old parties tell it.
pub struct Shapes(Vec<OneShape>);

enum OneShape {
    Value(Shape),
    Elements(usize),
}

impl Shapes {
    /// Reads public parts, in the order of the values. They come from other parties: bytes that do not fit
    /// are an error.
    pub fn parse(parts: &[Stored<'_>]) -> Result<Shapes> {
        let parse = |part: &Stored<'_>| match part {
            Stored::Value(bytes) => {
                let mut reader = Reader::bare(bytes, storage::PROTOCOL);
                let shape = reader.shape()?;
                reader.finish().map(|()| OneShape::Value(shape))
            }
            Stored::Elements(bytes) => {
                let mut reader = Reader::bare(bytes, storage::PROTOCOL);
                let count = usize::try_from(u64::from_le_bytes(reader.array()?)).unwrap_or(usize::MAX);
                reader.finish().map(|()| OneShape::Elements(count))
            }
        };
        let shapes = Shapes(parts.iter().map(parse).collect::<Result<_>>()?);
        let total = shapes.0.iter().fold(0usize, |sum, shape| sum.saturating_add(shape.bytes()));
        match total <= MAX_BYTES {
            true => Ok(shapes),
            false => Err(Error::Misuse(format!("values of {total} bytes are too many to be moved together"))),
        }
    }

    fn lens(&self) -> Lens {
        let len = |shape: &OneShape| match shape {
            OneShape::Value(_) => Lens { bytes: shape.bytes(), elements: 0 },
            OneShape::Elements(_) => Lens { bytes: 0, elements: shape.bytes() },
        };
        self.0.iter().map(len).fold(Lens::default(), Lens::and)
    }

    /// Bytes that a dealer sends to each new party.
    pub fn message_bytes(&self) -> usize {
        self.lens().message()
    }
}

impl OneShape {
    fn bytes(&self) -> usize {
        match self {
            OneShape::Value(shape) => shape.shares,
            OneShape::Elements(count) => count.saturating_mul(ELEMENT_BYTES),
        }
    }
}

/// Why nothing was moved, and who is to blame as far as this can be known. Dealers have their numbers among
/// the old parties, and receivers theirs among the new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// These dealers sent what is no sharing, or a sharing of something else than their shares.
    Dealers(PartySet),
    /// These receivers contradict more dealers than can cheat.
    Receivers(PartySet),
    /// Either the dealer or these receivers cheat.
    Contradiction {
        /// The dealer.
        dealer: Party,
        /// Those whose shares do not fit the others'.
        receivers: PartySet,
    },
    /// What the dealers sent does not fit together, and too few of them take part to find out who is wrong.
    Undecided,
    /// The exchange among the new parties failed.
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Failed(error)
    }
}

/// From one set of parties to another.
#[derive(Clone, Copy)]
pub struct Move {
    from: Sharing,
    to: Sharing,
    dealers: PartySet,
}

impl Move {
    /// `dealers` are the old parties that take part.
    pub fn new(from: Sharing, to: Sharing, dealers: PartySet) -> Result<Move> {
        let needed = from.dealers_needed();
        if dealers.len() < needed {
            let purpose = "move what is shared to other parties";
            return Err(Error::Missing { there: dealers, needed, purpose });
        }
        if dealers.iter().any(|p| p.index() >= from.parties()) || !from.is_like(&to) {
            return Err(Error::misuse("values move between two sets of parties of the same protocol"));
        }
        Ok(Move { from, to, dealers })
    }

    /// At an old party: what it sends to each new one. `setup` are its stored common secrets; the stream is
    /// one of a session of all who take part.
    pub fn deal(
        &self,
        setup: &[u8],
        me: Party,
        stream: &Stream,
        stored: &[Stored<'_>],
    ) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let setup = Setup::restore(self.from.kinds[0], self.from.structure(), me, setup)?;
        let parts = stored.iter().map(|stored| self.from.restore(me, *stored)).collect::<Result<Vec<_>>>()?;
        let len = |part: &Part| match part {
            Part::Value(value) => Lens { bytes: value.rows.len(), elements: 0 },
            Part::Elements(elements) => Lens { bytes: 0, elements: elements.shares.len() },
        };
        let lens = parts.iter().map(len).fold(Lens::default(), Lens::and);
        let [mask_bytes, mask_element] = check_masks(&setup, stream);
        let mut secrets = Zeroizing::new(Vec::with_capacity(lens.message()));
        for part in &parts {
            if let Part::Value(value) = part {
                secrets.extend_from_slice(&value.rows);
            }
        }
        secrets.extend_from_slice(&mask_bytes);
        for part in &parts {
            if let Part::Elements(elements) = part {
                secrets.extend_from_slice(&elements.shares);
            }
        }
        secrets.extend_from_slice(&mask_element);
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        Ok(deal_secrets(self.to.structure(), lens, &secrets, &mut AesPrg::new(&seed, 0)))
    }

    /// At a new party, with what each of the dealers has sent it, in their order: the values as it stores
    /// them. `net` is of the new parties.
    pub fn take(
        &self,
        shapes: &Shapes,
        dealt: &[Zeroizing<Vec<u8>>],
        net: &mut dyn Net,
    ) -> std::result::Result<Vec<Zeroizing<Vec<u8>>>, Fault> {
        let lens = shapes.lens();
        if dealt.len() != self.dealers.len() || dealt.iter().any(|message| message.len() != lens.message()) {
            return Err(Error::misuse("the dealers' messages have other lengths").into());
        }
        let seed = coins::toss(b"check of values that move to other parties", net)?;
        let published = broadcast(&combinations(lens, dealt, &seed), net)?;
        self.judge(&published)?;
        Ok(self.sum(shapes, dealt, net.me()))
    }

    /// Whether all that was dealt fits, from what the new parties have published.
    fn judge(&self, published: &[Vec<u8>]) -> std::result::Result<(), Fault> {
        let threshold = self.to.threshold;
        let of =
            |party: usize, dealer: usize| &published[party][PUBLISHED * dealer..PUBLISHED * (dealer + 1)];
        let mut values = vec![[0; PUBLISHED]; self.dealers.len()];
        let mut misdealt = PartySet::default();
        let mut contradicted: Vec<(Party, PartySet)> = Vec::new();
        for ((number, dealer), value) in self.dealers.iter().enumerate().zip(&mut values) {
            let words: Vec<Word<'_>> =
                Party::all(published.len()).map(|p| (p, of(p.index(), number))).collect();
            match decode_both(threshold, &words, value) {
                None => misdealt = misdealt.and([dealer].into_iter().collect()),
                Some(receivers) if receivers.is_empty() => {}
                Some(receivers) => contradicted.push((dealer, receivers)),
            }
        }
        if !misdealt.is_empty() {
            return Err(Fault::Dealers(misdealt));
        }
        let contradicts = |p: &Party| contradicted.iter().filter(|(_, by)| by.contains(*p)).count();
        let liars: PartySet =
            Party::all(published.len()).filter(|p| contradicts(p) > self.from.threshold).collect();
        if !liars.is_empty() {
            return Err(Fault::Receivers(liars));
        }
        if let Some((dealer, receivers)) = contradicted.first() {
            return Err(Fault::Contradiction { dealer: *dealer, receivers: *receivers });
        }
        let words: Vec<Word<'_>> = self.dealers.iter().zip(values.iter().map(|value| &value[..])).collect();
        let mut value = [0; PUBLISHED];
        match decode_both(self.from.threshold, &words, &mut value) {
            Some(liars) if liars.is_empty() => Ok(()),
            Some(liars) => Err(Fault::Dealers(liars)),
            None => Err(Fault::Undecided),
        }
    }

    /// The new shares, from the first t + 1 dealers.
    fn sum(&self, shapes: &Shapes, dealt: &[Zeroizing<Vec<u8>>], me: Party) -> Vec<Zeroizing<Vec<u8>>> {
        let lens = shapes.lens();
        let dealt = &dealt[..=self.from.threshold];
        let points: Vec<Gf256> = self.dealers.iter().take(dealt.len()).map(point).collect();
        let coefficients = Gf256::lagrange(&points, Gf256::ZERO);
        let maps: Vec<Map> = coefficients.iter().map(|c| scalar(*c)).collect();
        let mut bytes = Zeroizing::new(vec![0; lens.bytes]);
        combine(&mut bytes, &terms(dealt.iter().map(|m| &m[..lens.bytes]).collect(), &maps), 0);
        let mut elements = Zeroizing::new(vec![0; lens.elements]);
        for (message, c) in dealt.iter().zip(&coefficients) {
            let of_elements = &lens.split(message).1[..lens.elements];
            scale_add(&mut elements, of_elements, &Gf128::embed(*c).to_bytes());
        }
        let header = storage::header(self.to.kinds[1], self.to.structure(), me);
        let (mut bytes, mut elements) = (&bytes[..], &elements[..]);
        let save = |shape: &OneShape| match shape {
            OneShape::Value(Shape { bits, count, lanes, views, shares }) => {
                let (rows, rest) = bytes.split_at(*shares);
                bytes = rest;
                let rows = Zeroizing::new(rows.to_vec());
                Shared { bits: *bits, count: *count, lanes: *lanes, views: views.clone(), rows }.save(header)
            }
            OneShape::Elements(_) => {
                let (shares, rest) = elements.split_at(shape.bytes());
                elements = rest;
                Elements::of(Zeroizing::new(shares.to_vec())).save(&[])
            }
        };
        shapes.0.iter().map(save).collect()
    }
}

/// This party's shares of random bytes and of a random element, which nothing else uses.
fn check_masks(setup: &Setup, stream: &Stream) -> [Zeroizing<Vec<u8>>; 2] {
    let mut prss = Prss::new(setup, &[b"check of a reshare", &stream.label()[..]].concat());
    let whole = prss.whole();
    let bytes = Zeroizing::new(prss.random(CHECKS, &[whole], &Pool::default())[0].to_vec());
    let parts = prss.element_parts(1);
    let mut element = Zeroizing::new(vec![0; ELEMENT_BYTES]);
    prss.add_elements_of_parts(&parts.iter().map(|part| &part[..]).collect::<Vec<_>>(), &mut element);
    [bytes, element]
}

/// Decodes combinations of bytes and of elements, and says whose are wrong. With fewer than 2t + 1 words
/// nothing can be corrected.
fn decode_both(threshold: usize, words: &[Word<'_>], values: &mut [u8; PUBLISHED]) -> Option<PartySet> {
    let (bytes, elements) = values.split_at_mut(CHECKS);
    let of_bytes: Vec<Word<'_>> = words.iter().map(|(p, word)| (*p, &word[..CHECKS])).collect();
    let of_elements: Vec<Word<'_>> = words.iter().map(|(p, word)| (*p, &word[CHECKS..])).collect();
    if words.len() <= 2 * threshold {
        let fits = interpolate(Symbol::Byte, threshold, &of_bytes, bytes)
            && interpolate(Symbol::Element, threshold, &of_elements, elements);
        return fits.then(PartySet::default);
    }
    let wrong = decode(Symbol::Byte, threshold, None, &of_bytes, bytes)?;
    Some(wrong.and(decode(Symbol::Element, threshold, None, &of_elements, elements)?))
}
