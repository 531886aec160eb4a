//! Random sharings that the parties deal and verify: of degree t, and of the same value by degree t and by
//! degree 2t (double sharings). Damgard, Geisler, Kroigaard and Nielsen 2009 after Beerliova-Trubiniova and
//! Hirt 2008, section 4. With four parties and one cheater: four contributions, two checked, two kept.
//!
//! Every one of m parties deals sharings of random values, with randomness of its operating system. All
//! parties apply a hyper-invertible matrix to the m contributions, locally. 2t of the m outputs are checked,
//! and m - 2t are kept. Each of the 2t is checked by one party, and all parties send it their shares of that
//! output. This takes two rounds for any number of columns (places at which each party deals once).
//!
//! **Correct**: call a sharing *good* if the shares of the parties that follow the protocol lie on
//! polynomials of degrees t and 2t with the same value at 0. Good contributions make good outputs, because
//! good sharings form a linear subspace. At least m - t dealers are honest, and at least t checkers. An
//! honest checker finds its output good, or complains: m shares on a polynomial of the right degree contain
//! those of m - t >= 2t + 1 honest parties, which are thus on it and determine its value. The m - t good
//! inputs and t good outputs are m values, and all inputs and outputs are linear combinations of them
//! (`hyper_invertible.rs`). So all are good. There is no statistical error.
//!
//! **Secret**: t parties know what they dealt, and as checkers they know t outputs at most. They see only
//! their own points of the other outputs. For any fixed contributions of the t parties, the m - 2t kept
//! outputs and those t are a bijective linear image of what m - t honest parties dealt. So the kept outputs
//! are jointly uniform, except for these parties' own points of them. The contributions of cheaters are fixed
//! even if they deal last, because nothing that they can know depends on the values that others dealt.
//!
//! **Each checked output goes to one party only.** If 2t outputs were opened to all parties, cheaters would
//! know them, and of the randomness of m - t honest dealers only m - 3t values would be left, not m - 2t.
//! After a fault all parties must see the same. Then t outputs are opened to all parties, which either are
//! right or are seen to be wrong by everybody, and t more are not used at all. So m - t - t are left, as many
//! as before.
//!
//! If some parties were convicted and m are left, correspondingly fewer of these may still cheat. In the text
//! above t is that smaller number, except in the degrees.

use polyclave_field::Gf256;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::setup::point;
use super::code::{Symbol, Word, first_fault, interpolate, weighted};
use super::hyper_invertible::matrix;
use super::{Active, Arithmetic, Spoiled, patience};
use crate::interface::net::{Net, Patience};
use crate::pool::Shares;
use crate::{Party, PartySet, Result};

/// What every party deals.
#[derive(Clone, Copy)]
pub(super) struct Order {
    /// Sharings of degree t, in a column.
    pub(super) singles: usize,
    /// Double sharings, in a column.
    pub(super) doubles: usize,
    pub(super) columns: usize,
}

impl Order {
    /// Sharings of degree t: the singles, then those of doubles.
    fn of_degree_t(self) -> usize {
        self.singles + self.doubles
    }

    /// Shares that a party gets of a dealer, in a column: those of degree t, then those of degree 2t.
    pub(super) fn rows(self) -> usize {
        self.of_degree_t() + self.doubles
    }

    /// Coefficients that a dealer draws, in a column.
    pub(super) fn coefficients(self, threshold: usize) -> usize {
        self.of_degree_t() * (1 + threshold) + self.doubles * 2 * threshold
    }

    /// Which coefficients make a row's polynomial, from that of x^0 on.
    pub(super) fn polynomial(self, row: usize, threshold: usize) -> Vec<usize> {
        let drawn = |at: usize, count: usize| at..at + count;
        match row.checked_sub(self.of_degree_t()) {
            None => drawn(row * (1 + threshold), 1 + threshold).collect(),
            Some(double) => {
                let value = (self.singles + double) * (1 + threshold);
                let at = self.of_degree_t() * (1 + threshold) + double * 2 * threshold;
                [value].into_iter().chain(drawn(at, 2 * threshold)).collect()
            }
        }
    }

    /// The first column at which these are no shares of one output; `None` if they are everywhere.
    fn first_fault(self, threshold: usize, words: &[Word<'_>]) -> Option<usize> {
        let split = self.of_degree_t() * self.columns;
        let part = |upper: bool| -> Vec<Word<'_>> {
            let of = |shares| <[u8]>::split_at(shares, split);
            words.iter().map(|(p, shares)| (*p, if upper { of(shares).1 } else { of(shares).0 })).collect()
        };
        let mut values = [split, self.doubles * self.columns].map(|len| Zeroizing::new(vec![0; len]));
        for (upper, degree) in [(false, threshold), (true, 2 * threshold)] {
            let words = part(upper);
            if !interpolate(Symbol::Byte, degree, &words, &mut values[usize::from(upper)]) {
                return first_fault(Symbol::Byte, degree, &words).map(|at| at % self.columns);
            }
        }
        let (once, again) = (&values[0][self.singles * self.columns..], &values[1][..]);
        if ct_eq(once, again) {
            return None;
        }
        // The place of a fault is told to all.
        let twice = once.iter().zip(again);
        twice.enumerate().find(|(_, (a, b))| a != b).map(|(at, _)| at % self.columns)
    }
}

/// Dealt sharings, and the outputs made of them. They may be used once
/// [`is_accepted`](Arithmetic::is_accepted) said so.
pub(super) struct Dealt {
    pub(super) order: Order,
    /// The dealers.
    pub(super) makers: PartySet,
    /// Outputs by contributions.
    pub(super) matrix: Vec<Vec<Gf256>>,
    /// The first output that is kept; all that follow are.
    pub(super) first_kept: usize,
    /// Coefficients of this party's polynomials, vector after vector.
    own: Shares,
    /// What this party got, dealer by dealer, row after row.
    received: Vec<Shares>,
}

impl Dealt {
    /// How many outputs are kept of the contributions of m parties, given how many of these may cheat.
    pub(super) fn kept(makers: usize, cheaters: usize) -> usize {
        makers - 2 * cheaters
    }

    /// This party's shares of this many values of a row, output after output.
    pub(super) fn shares(&self, row: usize, count: usize, arithmetic: &Arithmetic<Active>) -> Shares {
        let columns = self.order.columns;
        let mut shares = arithmetic.pool.take(count);
        for (dst, coefficients) in shares.chunks_mut(columns).zip(&self.matrix[self.first_kept..]) {
            let len = dst.len();
            let of = self.received.iter().map(|shares| &shares[row * columns..][..len]);
            weighted(Symbol::Byte, coefficients.iter().copied().zip(of), dst);
        }
        shares
    }

    /// This party's shares of an output, row after row.
    fn output(&self, i: usize, dst: &mut [u8]) {
        let of = self.received.iter().map(|shares| &shares[..]);
        weighted(Symbol::Byte, self.matrix[i].iter().copied().zip(of), dst);
    }

    /// One column among four parties. One may cheat.
    #[cfg(test)]
    pub(super) fn of_one_column(
        order: Order,
        matrix: Vec<Vec<Gf256>>,
        own: Vec<u8>,
        received: Vec<Vec<u8>>,
    ) -> Dealt {
        let shares = |bytes: Vec<u8>| {
            let mut shares = crate::pool::Pool::default().take(bytes.len());
            shares.copy_from_slice(&bytes);
            shares
        };
        let received = received.into_iter().map(shares).collect();
        Dealt { order, makers: PartySet::all(4), matrix, first_kept: 2, own: shares(own), received }
    }

    /// What this party says of a column: the coefficients of what it dealt, and what it got, dealer by
    /// dealer.
    pub(super) fn testimony(&self, column: usize) -> Vec<u8> {
        let vectors = [&self.own].into_iter().chain(&self.received);
        vectors.flat_map(|vector| vector.chunks(self.order.columns).map(|row| row[column])).collect()
    }
}

impl Arithmetic<Active> {
    /// How many of the parties that are left may still cheat.
    pub(super) fn cheaters(&self) -> usize {
        self.structure.threshold().saturating_sub(self.security.convicted.len())
    }

    /// Verified random sharings, this many columns of them. One round to deal and one to check, unless
    /// outputs are broadcast.
    pub(super) fn deal(&mut self, order: Order, net: &mut dyn Net) -> Result<Dealt> {
        self.check_makers()?;
        let makers = self.partners();
        let mut own = self.pool.take(order.coefficients(self.structure.threshold()) * order.columns);
        self.security.own_randomness.fill(&mut own);
        let received = self.exchange_contributions(order, makers, &own, net)?;
        let (matrix, first_kept) = (matrix(makers.len()), 2 * self.cheaters());
        let dealt = Dealt { order, makers, matrix, first_kept, own, received };
        match self.security.broadcasts {
            false => self.check_apart(&dealt, net)?,
            true => self.check_before_all(&dealt, net)?,
        }
        Ok(dealt)
    }

    /// Sends all others their shares of what this party deals; what it gets, dealer by dealer, itself among
    /// them.
    fn exchange_contributions(
        &mut self,
        order: Order,
        makers: PartySet,
        own: &[u8],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        let (me, n, threshold) = (self.me, self.structure.parties(), self.structure.threshold());
        let (columns, len) = (order.columns, order.rows() * order.columns);
        let mut shares: Vec<Shares> =
            Party::all(n).map(|p| self.pool.take(if makers.contains(p) { len } else { 0 })).collect();
        for p in makers.iter() {
            for (row, dst) in shares[p.index()].chunks_mut(columns).enumerate() {
                let coefficients = order.polynomial(row, threshold).into_iter().zip(0..);
                let terms =
                    coefficients.map(|(at, power)| (point(p).pow(power), &own[at * columns..][..columns]));
                weighted(Symbol::Byte, terms, dst);
            }
        }
        let own_shares = std::mem::replace(&mut shares[me.index()], self.pool.take(0));
        let mut received: Vec<Shares> = shares.iter().map(|shares| self.pool.take(shares.len())).collect();
        let arrived = self.exchange_ahead(
            makers,
            &shares.iter().map(|s| &s[..]).collect::<Vec<_>>(),
            &mut received,
            net,
        )?;
        // What did not come is held to be zero, if it comes to saying what was.
        let missing = makers.without(arrived).without([me].into_iter().collect());
        missing.iter().for_each(|p| received[p.index()].fill(0));
        received[me.index()] = own_shares;
        Ok(Party::all(n)
            .zip(received)
            .filter(|(p, _)| makers.contains(*p))
            .map(|(_, shares)| shares)
            .collect())
    }

    /// The checked outputs, each at one of the parties, which says so later if it is wrong.
    fn check_apart(&mut self, dealt: &Dealt, net: &mut dyn Net) -> Result<()> {
        let (me, n) = (self.me, self.structure.parties());
        let len = dealt.order.rows() * dealt.order.columns;
        let checkers: PartySet = dealt.makers.iter().take(dealt.first_kept).collect();
        if checkers.is_empty() {
            return Ok(());
        }
        let mut outputs: Vec<Shares> =
            Party::all(n).map(|p| self.pool.take(if checkers.contains(p) { len } else { 0 })).collect();
        checkers.iter().enumerate().for_each(|(i, p)| dealt.output(i, &mut outputs[p.index()]));
        let own = std::mem::replace(&mut outputs[me.index()], self.pool.take(0));
        let from = if checkers.contains(me) { dealt.makers } else { PartySet::default() };
        let awaited = |p: Party| if p != me && from.contains(p) { len } else { 0 };
        let mut received: Vec<Shares> = Party::all(n).map(|p| self.pool.take(awaited(p))).collect();
        self.exchange_ahead(from, &outputs.iter().map(|s| &s[..]).collect::<Vec<_>>(), &mut received, net)?;
        let words = from.iter().map(|p| (p, if p == me { &own[..] } else { &received[p.index()][..] }));
        let words: Vec<Word<'_>> = words.collect();
        if !words.is_empty() && dealt.order.first_fault(self.structure.threshold(), &words).is_some() {
            self.security.spoiled = Some(Spoiled::Mine);
        }
        Ok(())
    }

    /// Opens half of the checked outputs to all parties. If one is wrong, all find out which party cheated.
    fn check_before_all(&mut self, dealt: &Dealt, net: &mut dyn Net) -> Result<()> {
        let (order, checked) = (dealt.order, dealt.first_kept / 2);
        let len = order.rows() * order.columns;
        let mut message = self.pool.take(checked * len);
        if message.is_empty() {
            return Ok(());
        }
        message.chunks_mut(len).enumerate().for_each(|(i, dst)| dealt.output(i, dst));
        let said = self.broadcast(&vec![message.len(); self.structure.parties()], &message, net)?;
        self.refuse_silence(&said)?;
        let of = |p: Party| said[p.index()].as_deref().unwrap_or(&[]);
        let fault = (0..checked).find_map(|i| {
            let words = dealt.makers.iter().map(|p| (p, &of(p)[i * len..][..len])).collect::<Vec<_>>();
            order.first_fault(self.structure.threshold(), &words)
        });
        let Some(column) = fault else { return Ok(()) };
        let sent = |p: Party| of(p).chunks(order.columns).map(|row| row[column]).collect::<Vec<u8>>();
        let sent: Vec<(Party, Vec<u8>)> = dealt.makers.iter().map(|p| (p, sent(p))).collect();
        self.settle(dealt, column, &sent, &|outputs| outputs[..checked].concat(), net)
    }

    /// One exchange ahead, in which all parties of `from` have to answer. Returns which did.
    fn exchange_ahead(
        &mut self,
        from: PartySet,
        out: &[&[u8]],
        received: &mut [Shares],
        net: &mut dyn Net,
    ) -> Result<PartySet> {
        self.counts().rounds += 1;
        let lost = self.security.lost;
        let out: Vec<&[u8]> =
            Party::all(out.len()).zip(out).map(|(p, m)| if lost.contains(p) { &[][..] } else { m }).collect();
        let awaited = from.without(lost);
        let mut into: Vec<&mut [u8]> = Party::all(out.len())
            .zip(received)
            .map(|(p, buffer)| if awaited.contains(p) { &mut buffer[..] } else { &mut [] })
            .collect();
        let bytes = out.iter().map(|message| message.len()).chain(into.iter().map(|message| message.len()));
        let bytes = bytes.max().unwrap_or(0);
        let gathered = net.gather(&out, &mut into, Patience::of(patience::AHEAD), &mut |_, _| false)?;
        self.heard_ahead(gathered, bytes)?;
        Ok(gathered.arrived)
    }
}
