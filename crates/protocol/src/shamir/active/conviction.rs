//! Products ahead after a fault was seen. Shares are broadcast, so all parties see the same shares, and a
//! wrong share convicts its sender.
//!
//! If the broadcast shares of a value do not lie on a polynomial of degree 2t, some party sent a wrong share,
//! and all parties know for which value. That value will not be used. Every party broadcasts the values that
//! its share of it was made of. These are its shares of both factors and of the mask, which have degree t and
//! so can be corrected; and the parts of the zero sharings, each of which n - t parties know and at most t of
//! them lie about. So all parties compute the right share of every party. A party that sent another share is
//! a cheater, for certain and before all. Parties that follow the protocol are never convicted, because
//! everything that they say is right.
//!
//! This opens random values of material that is thrown away, and nothing from which any other value was made.
//! The factors of that value may have entered other products of the same material, which is thrown away too,
//! but no other products.

use polyclave_kernels::gf128;
use polyclave_kernels::gf256::multiply;

use super::super::setup::{contains, point, weight};
use super::code::{Symbol, Word, first_fault, interpolate, right_share, weighted};
use super::{Active, Arithmetic, Spoiled};
use crate::interface::net::Net;
use crate::{Error, Party, PartySet, Result};

/// This party's shares of both factors and of the mask of a value, one after another.
pub(super) type Evidence<'a> = dyn Fn(&Arithmetic<Active>, usize) -> Vec<u8> + 'a;

impl Arithmetic<Active> {
    /// [`open_checked`](Arithmetic::open_checked) by broadcast.
    pub(super) fn open_before_all(
        &mut self,
        symbol: Symbol,
        message: &mut [u8],
        evidence: &Evidence<'_>,
        values: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let zeros = self.prss.zero_parts(message.len());
        let weights = self.prss.zero_weights().to_vec();
        let mut zero = vec![0; message.len()];
        weighted(symbol, weights.into_iter().zip(zeros.iter().map(|part| &part[..])), &mut zero);
        message.iter_mut().zip(&zero).for_each(|(share, zero)| *share ^= zero);

        let (n, degree) = (self.structure.parties(), 2 * self.structure.threshold());
        let said = self.broadcast(&vec![message.len(); n], message, net)?;
        self.refuse_silence(&said)?;
        let partners = self.partners();
        let shares: Vec<&[u8]> = said.iter().map(|said| said.as_deref().unwrap_or(&[])).collect();
        let words: Vec<Word<'_>> = partners.iter().map(|p| (p, shares[p.index()])).collect();
        if interpolate(symbol, degree, &words, values) {
            return Ok(());
        }
        values.fill(0);
        self.security.spoiled = Some(Spoiled::Common);
        let Some(at) = first_fault(symbol, degree, &words) else { return Ok(()) };
        let width = symbol.bytes();
        let place = width * at..width * (at + 1);
        let mut mine = evidence(self, at);
        zeros.iter().for_each(|part| mine.extend_from_slice(&part[place.clone()]));
        let said = self.broadcast(&vec![mine.len(); n], &mine, net)?;
        self.refuse_silence(&said)?;
        let sent: Vec<Word<'_>> = words.iter().map(|(p, shares)| (*p, &shares[place.clone()])).collect();
        let convicted = self.judge(symbol, &sent, &said)?;
        self.convict(convicted)
    }

    /// All go on without these.
    pub(super) fn convict(&mut self, parties: PartySet) -> Result<()> {
        self.security.convicted = self.security.convicted.and(parties);
        if parties.contains(self.me) {
            let message = "all parties found this party's shares wrong: its stored keys are damaged, or its memory is; restore a backup";
            return Err(Error::System(message.into()));
        }
        Ok(())
    }

    /// The parties that sent another share of a value than follows from what all parties said of it.
    fn judge(&self, symbol: Symbol, sent: &[Word<'_>], said: &[Option<Vec<u8>>]) -> Result<PartySet> {
        let (width, threshold) = (symbol.bytes(), self.structure.threshold());
        let of = |p: Party| said[p.index()].as_deref().unwrap_or(&[]);
        let doubtful = || Error::CheckFailed { what: "more parties lie than the others can outvote" };
        let right = |which: usize, party: Party| {
            let words = sent.iter().map(|(p, _)| (*p, &of(*p)[which * width..(which + 1) * width]));
            right_share(symbol, threshold, &words.collect::<Vec<_>>(), party).ok_or_else(doubtful)
        };
        let sets: Vec<u16> = self.structure.sets().collect();
        // What most members of a set say of its k-th zero sharing.
        let zero = |set: u16, k: usize| {
            let members = sent.iter().map(|(p, _)| *p).filter(|p| contains(set, *p));
            let said = members.map(|p| {
                let before = sets.iter().filter(|other| **other < set && contains(**other, p)).count();
                let at = (3 + before * threshold + k - 1) * width;
                &of(p)[at..at + width]
            });
            let said: Vec<&[u8]> = said.collect();
            let most =
                said.iter().find(|one| 2 * said.iter().filter(|other| other == one).count() > said.len());
            most.copied().ok_or_else(doubtful)
        };
        let mut wrong = PartySet::default();
        for (party, share) in sent {
            let mut due = vec![0; width];
            product(symbol, &right(0, *party)?, &right(1, *party)?, &mut due);
            let mask = right(2, *party)?;
            due.iter_mut().zip(&mask).for_each(|(due, mask)| *due ^= mask);
            for set in sets.iter().copied().filter(|set| contains(*set, *party)) {
                for k in 1..=threshold {
                    let factor = weight(self.structure, set, *party) * point(*party).pow(k as u32);
                    let mut term = vec![0; width];
                    weighted(symbol, [(factor, zero(set, k)?)].into_iter(), &mut term);
                    due.iter_mut().zip(&term).for_each(|(due, term)| *due ^= term);
                }
            }
            if due != *share {
                wrong = wrong.and([*party].into_iter().collect());
            }
        }
        if wrong.is_empty() { Err(doubtful()) } else { Ok(wrong) }
    }

    /// An error if a party has broadcast nothing, which all parties know.
    pub(super) fn refuse_silence(&self, said: &[Option<Vec<u8>>]) -> Result<()> {
        let there: PartySet = self.partners().iter().filter(|p| said[p.index()].is_some()).collect();
        if there == self.partners() {
            return Ok(());
        }
        Err(Error::Missing { there, needed: self.partners().len(), purpose: "make material" })
    }
}

fn product(symbol: Symbol, a: &[u8], b: &[u8], product: &mut [u8]) {
    match symbol {
        Symbol::Byte => multiply(product, a, b),
        Symbol::Element => gf128::multiply(product, a, b),
    }
}
