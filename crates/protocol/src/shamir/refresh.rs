//! Proactive refresh: every party shares zeros by fresh random polynomials of degree t, and everybody adds
//! what was dealt to the shares that it has stored (Herzberg, Jarecki, Krawczyk and Yung, CRYPTO 1995,
//! section 3; cited from memory).
//!
//! Every stored row is a sharing of its own, whether it is a value or an image of one (a view). So each row
//! gets its own zeros, and nothing of a stored value is opened. The coefficients come from each party's
//! operating system and are gone afterwards.
//!
//! **Adversary**: mobile. Between two refreshes it has at most t parties; a party that it has during a
//! refresh counts for the time before and after. Let A be the parties before, B those after, C those during
//! it, C within A and B. It knows the old polynomial x at A, the new one y = x + d at B, and d at A and B
//! together, hence at C. Let f_A be the polynomial of degree t that is 1 at 0 and 0 at the points of A. For
//! every other key x(0) + k there are polynomials that look the same: x + k f_A and d + k (f_A + f_B), so y +
//! k f_B. The latter sum has degree t, is 0 at 0 and at all points of A and B in common. No matter which
//! honest party's zeros are in d, its t coefficients are uniform, so both cases are equally likely: nothing
//! is learnt of the key. (Were x opened under a mask of pseudorandom sharing instead, a party of C would see
//! all messages, and the keys of B would give B's masks, hence B's old shares.)
//!
//! The old keys of pseudorandom sharing must go, too: otherwise t parties before and t others after could
//! know all of them, and everything that was opened under them before. So nodes make fresh ones in the same
//! transaction (`node/src/material/refresh.rs`).
//!
//! **The check.** After all have what was dealt, each party publishes 32 random bytes; their hash gives
//! coefficients chi. For every dealer each party publishes 16 combinations of the dealt bytes, sum chi_j d_j
//! over GF(2^8), and one of the elements, each plus one more dealt zero that nothing else uses, so that
//! nothing is learnt. They have to be points of polynomials of degree t that are 0 at 0. If the shares that a
//! dealer gave to honest parties are not, the combinations are with probability 2^-128 only. (Under
//! `shamir-active`, where publishing is a broadcast, a cheater that speaks last can choose among as many
//! hashes as it computes meanwhile: 2^-128 for each.)
//!
//! *Passive*: any misfit ends the refresh with an error. *Active, t < n/3* ([`judge`]): all parties hear the
//! same, so all conclude the same.
//! - A dealer whose combinations do not lie on such a polynomial for all but t parties has cheated, for those
//!   of the n - t honest ones would. So has a dealer that contradicts its own polynomial.
//! - A party that contradicts more than t dealers has cheated, since one of them is honest, and an honest
//!   party contradicts no honest dealer.
//! - What a dealer dealt counts if only such cheaters contradict it. Then every honest party's shares fit.
//! - At most t^2 honest dealers are left out in this way, because of cheaters that contradict up to t each. t
//!   is 2 at most for 9 parties, so more than t dealers remain, and at least one of them is honest.
//!
//! A party that sends nothing to another ends the refresh, with an error that names it. It takes all parties.
//!
//! Cost: one byte to each party for every byte that is stored; the rounds of two publications besides.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf128::{scale_add, weighted_sums};
use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::arithmetic::{Arithmetic, scalar, terms};
use super::prss::TILE;
use super::security::AdversaryModel;
use super::setup::{Structure, point};
use super::{Shared, storage};
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::Net;
use crate::interface::service::Stored;
use crate::interface::session::random_bytes;
use crate::interface::tally::Phase;
use crate::stored::Reader;
use crate::{Error, Party, PartySet, Result};

/// Combinations of bytes, each of which errs with probability 2^-8.
pub(super) const CHECKS: usize = 16;
/// What a party publishes for each dealer: the combinations of bytes, and that of elements.
pub(super) const PUBLISHED: usize = CHECKS + ELEMENT_BYTES;

/// Fresh shares of what is stored, in the same form.
pub(super) fn refresh<S: AdversaryModel>(
    arithmetic: &mut Arithmetic<S>,
    stored: &[Stored<'_>],
    net: &mut dyn Net,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    arithmetic.phase = Phase::Online;
    let header = storage::header(S::KINDS[1], arithmetic.structure, arithmetic.me);
    let mut parts = Vec::with_capacity(stored.len());
    for stored in stored {
        parts.push(match stored {
            Stored::Value(bytes) => Part::Value(Shared::restore(bytes, storage::PROTOCOL, header)?),
            Stored::Elements(bytes) => {
                Part::Elements(Elements::restore(Reader::bare(bytes, storage::PROTOCOL), 1)?)
            }
        });
    }
    let lens = parts.iter().map(Part::len).fold(Lens::default(), |sum, len| sum.and(len));
    let zeros = arithmetic.sum_of_zeros(lens, net)?;
    let (mut bytes, mut elements) = lens.split(&zeros);
    for part in &mut parts {
        let (shares, zeros) = match part {
            Part::Value(value) => (&mut value.rows, &mut bytes),
            Part::Elements(values) => (&mut values.shares, &mut elements),
        };
        let (mine, rest) = zeros.split_at(shares.len());
        *zeros = rest;
        shares.iter_mut().zip(mine).for_each(|(share, zero)| *share ^= zero);
    }
    Ok(parts.iter().map(|part| part.save(header)).collect())
}

/// What was stored.
enum Part {
    Value(Shared),
    Elements(Elements),
}

impl Part {
    fn len(&self) -> Lens {
        match self {
            Part::Value(value) => Lens { bytes: value.rows.len(), elements: 0 },
            Part::Elements(elements) => Lens { bytes: 0, elements: elements.shares.len() },
        }
    }

    fn save(&self, header: crate::stored::Header) -> Zeroizing<Vec<u8>> {
        match self {
            Part::Value(value) => value.save(header),
            Part::Elements(elements) => elements.save(&[]),
        }
    }
}

/// How many bytes of either kind of sharing, without the zeros that mask the check.
#[derive(Clone, Copy, Default)]
pub(super) struct Lens {
    pub(super) bytes: usize,
    pub(super) elements: usize,
}

impl Lens {
    pub(super) fn and(self, other: Lens) -> Lens {
        Lens { bytes: self.bytes + other.bytes, elements: self.elements + other.elements }
    }

    /// What a dealer sends to one party: bytes, zeros for their check, elements, a zero for theirs.
    pub(super) fn message(self) -> usize {
        self.bytes + CHECKS + self.elements + ELEMENT_BYTES
    }

    /// The bytes and the elements of such a message; the masks of the check are behind either.
    pub(super) fn split(self, message: &[u8]) -> (&[u8], &[u8]) {
        message.split_at(self.bytes + CHECKS)
    }
}

impl<S: AdversaryModel> Arithmetic<S> {
    /// Shares of zeros to which every party has contributed, checked.
    fn sum_of_zeros(&mut self, lens: Lens, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        let dealt = self.exchange_zeros(lens, net)?;
        let mut seed = [0; 32];
        random_bytes(&mut seed)?;
        let said = S::publish(self, &seed, net)?;
        let seed = blake3::derive_key("polyclave 2026 check of a refresh", &said.concat());
        let published = S::publish(self, &combinations(lens, &dealt, &seed), net)?;
        let judged = judge(self.structure, S::CORRECTS, &published)?;
        S::outvote(self, judged.cheaters);
        let mut sum = Zeroizing::new(vec![0; lens.message()]);
        for dealer in judged.dealers.iter() {
            sum.iter_mut().zip(dealt[dealer.index()].iter()).for_each(|(sum, share)| *sum ^= share);
        }
        Ok(sum)
    }

    /// This party's shares of what every party has dealt, by dealer. One round.
    fn exchange_zeros(&mut self, lens: Lens, net: &mut dyn Net) -> Result<Vec<Zeroizing<Vec<u8>>>> {
        let mut seed = Zeroizing::new([0; 16]);
        random_bytes(&mut *seed)?;
        let mut mine = deal(self.structure, lens, &mut AesPrg::new(&seed, 0));
        let mut dealt: Vec<_> = Party::all(self.structure.parties())
            .map(|p| Zeroizing::new(vec![0; if p == self.me { 0 } else { lens.message() }]))
            .collect();
        let out: Vec<&[u8]> = self.to_peers(|p| &mine[p.index()]);
        net.exchange(&out, &mut dealt.iter_mut().map(|m| m.as_mut_slice()).collect::<Vec<_>>())?;
        self.counts().rounds += 1;
        dealt[self.me.index()] = std::mem::take(&mut mine[self.me.index()]);
        Ok(dealt)
    }
}

/// Sharings of zeros, by the party that a share is for: x^k times a random coefficient, for k = 1 .. t.
fn deal(structure: Structure, lens: Lens, random: &mut AesPrg) -> Vec<Zeroizing<Vec<u8>>> {
    let zeros = Zeroizing::new(vec![0; lens.message()]);
    deal_secrets(structure, lens, &zeros, random)
}

/// Sharings of these values, by the party that a share is for: the value, and x^k times a random coefficient,
/// for k = 1 .. t.
pub(super) fn deal_secrets(
    structure: Structure,
    lens: Lens,
    secrets: &[u8],
    random: &mut AesPrg,
) -> Vec<Zeroizing<Vec<u8>>> {
    let len = lens.message();
    let mut coefficients = Zeroizing::new(vec![0; structure.threshold() * len]);
    random.fill(&mut coefficients);
    let powers = 1..=structure.threshold() as u32;
    let (secret_bytes, secret_elements) = lens.split(secrets);
    let identity = Map::identity();
    let to = |p: Party| {
        let mut message = Zeroizing::new(vec![0; len]);
        let (bytes, elements) = message.split_at_mut(lens.bytes + CHECKS);
        let maps: Vec<Map> = powers.clone().map(|k| scalar(point(p).pow(k))).collect();
        let of_bytes = coefficients.chunks(len).map(|row| &row[..bytes.len()]).collect();
        let mut sum = terms(of_bytes, &maps);
        sum.push(Term { src: secret_bytes, map: &identity });
        combine(bytes, &sum, 0);
        elements.copy_from_slice(secret_elements);
        for (row, k) in coefficients.chunks(len).zip(powers.clone()) {
            scale_add(elements, &row[bytes.len()..], &Gf128::embed(point(p).pow(k)).to_bytes());
        }
        message
    };
    Party::all(structure.parties()).map(to).collect()
}

/// What a party publishes of the shares that it has from each dealer, in their order.
pub(super) fn combinations(lens: Lens, dealt: &[Zeroizing<Vec<u8>>], seed: &[u8; 32]) -> Vec<u8> {
    let mut published = vec![0; PUBLISHED * dealt.len()];
    let chi = |domain: u64| {
        let mut key = [0; 16];
        key.copy_from_slice(&seed[..16]);
        AesPrg::new(&key, domain)
    };
    let mut random = chi(0);
    let (mut factors, mut products) = ([0; TILE], Zeroizing::new([0; TILE]));
    for start in (0..lens.bytes).step_by(TILE) {
        let range = start..lens.bytes.min(start + TILE);
        let (factors, products) = (&mut factors[..range.len()], &mut products[..range.len()]);
        for check in 0..CHECKS {
            random.fill(factors);
            for (message, sums) in dealt.iter().zip(published.chunks_mut(PUBLISHED)) {
                multiply(products, factors, &message[range.clone()]);
                sums[check] ^= products.iter().fold(0, |sum, product| sum ^ product);
            }
        }
    }
    let mut weights = vec![0; lens.elements];
    chi(1).fill(&mut weights);
    for (message, sums) in dealt.iter().zip(published.chunks_mut(PUBLISHED)) {
        let (bytes, elements) = lens.split(message);
        let (elements, mask) = elements.split_at(lens.elements);
        let (of_bytes, of_elements) = sums.split_at_mut(CHECKS);
        weighted_sums(of_elements, &weights, elements);
        let masks = bytes[lens.bytes..].iter().chain(mask);
        of_bytes.iter_mut().chain(of_elements).zip(masks).for_each(|(sum, mask)| *sum ^= mask);
    }
    published
}

/// Whose zeros count, and who has cheated.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    dealers: PartySet,
    cheaters: PartySet,
}

/// What all parties conclude from what all have published; empty for a party that has published nothing. See
/// the head of this file.
fn judge(structure: Structure, corrects: bool, published: &[Vec<u8>]) -> Result<Judged> {
    let all = PartySet::all(structure.parties());
    let wrong = if corrects { structure.threshold() } else { 0 };
    let contradicted: BTreeMap<Party, Option<PartySet>> =
        all.iter().map(|dealer| (dealer, contradicting(structure, wrong, dealer, published))).collect();
    if !corrects {
        let misfits: Vec<Party> =
            contradicted.iter().filter(|(_, by)| by.is_none()).map(|(dealer, _)| *dealer).collect();
        return match misfits[..] {
            [] => Ok(Judged { dealers: all, cheaters: PartySet::default() }),
            [peer] => {
                let detail = "what it dealt to refresh the stored shares is no sharing of zero, or did not arrive as it was sent";
                Err(Error::Peer { peer, detail: detail.into() })
            }
            _ => Err(Error::CheckFailed { what: "that refreshed shares are still shares of the same keys" }),
        };
    }
    let contradicts = |p: Party| contradicted.values().flatten().filter(|by| by.contains(p)).count();
    let has_cheated = |p: &Party| {
        contradicted[p].is_none_or(|by| by.contains(*p)) || contradicts(*p) > structure.threshold()
    };
    let cheaters: PartySet = all.iter().filter(has_cheated).collect();
    let counts = |p: &Party| contradicted[p].is_some_and(|by| by.without(cheaters).is_empty());
    let dealers: PartySet = all.without(cheaters).iter().filter(counts).collect();
    match dealers.len() > structure.threshold() {
        true => Ok(Judged { dealers, cheaters }),
        false => Err(Error::CheckFailed { what: "that refreshed shares are still shares of the same keys" }),
    }
}

/// The parties, at most `most`, whose combinations of a dealer's shares are not on the polynomial of all
/// others; `None` if there is no such polynomial of degree t that is 0 at 0. By trial, since all of this is
/// public and there are few parties.
fn contradicting(
    structure: Structure,
    most: usize,
    dealer: Party,
    published: &[Vec<u8>],
) -> Option<PartySet> {
    let of =
        |p: Party| published[p.index()].get(PUBLISHED * dealer.index()..PUBLISHED * (dealer.index() + 1));
    let parties = structure.parties();
    let bases = (0..1u16 << parties).filter(|set| set.count_ones() as usize == structure.threshold());
    let misfits = bases.filter_map(|set| {
        let basis: Vec<Party> = Party::all(parties).filter(|p| super::setup::contains(set, *p)).collect();
        let values: Vec<&[u8]> = basis.iter().map(|p| of(*p)).collect::<Option<_>>()?;
        let points: Vec<Gf256> = [Gf256::ZERO].into_iter().chain(basis.iter().map(|p| point(*p))).collect();
        let fits = |p: &Party| of(*p) == Some(&interpolated(&points, &values, point(*p))[..]);
        Some(Party::all(parties).filter(|p| !fits(p)).collect::<PartySet>())
    });
    misfits.filter(|misfits| misfits.len() <= most).min_by_key(|misfits| misfits.len())
}

/// Published combinations at a point, from those at other points and the zeros at 0, which is the first of
/// them.
fn interpolated(points: &[Gf256], values: &[&[u8]], at: Gf256) -> [u8; PUBLISHED] {
    let mut sums = [0; PUBLISHED];
    let (bytes, elements) = sums.split_at_mut(CHECKS);
    for (value, coefficient) in values.iter().zip(&Gf256::lagrange(points, at)[1..]) {
        bytes.iter_mut().zip(*value).for_each(|(sum, v)| *sum ^= (*coefficient * Gf256(*v)).0);
        scale_add(elements, &value[CHECKS..], &Gf128::embed(*coefficient).to_bytes());
    }
    sums
}
