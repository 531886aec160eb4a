//! Openings online: sharings of degree t, decoded with correction.
//!
//! Two kinds of values are opened: a masked value x + r, where r is fresh and random and its whole polynomial
//! of degree t is added; or a value that is meant to become known. The shares of t parties and the value
//! determine the polynomial, so it reveals nothing else. All shares come from sharings that have degree t at
//! the parties that follow the protocol: pseudorandom sharings by construction, inputs by broadcast, and
//! products ahead because all of those parties know the same public value.

use std::sync::Arc;

use polyclave_kernels::affine::combine;
use polyclave_kernels::gf256::multiply;

use super::super::arithmetic::resize;
use super::super::opening::{Layout, Opened, Opening, Secret};
use super::super::prss::{Degree, TILE, View};
use super::code::{Symbol, Word, decode};
use super::{Active, Arithmetic};
use crate::interface::net::{Gathered, Net};
use crate::pool::Shares;
use crate::{Error, Party, PartySet, Result};

impl Arithmetic<Active> {
    /// Sends every peer the same shares and decodes. One round.
    pub(super) fn open_corrected(
        &mut self,
        symbol: Symbol,
        shares: &[u8],
        values: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        if shares.is_empty() {
            return Ok(());
        }
        self.counts().rounds += 1;
        let partners = self.partners();
        self.exchange_and_decode(symbol, partners, partners, shares, values, net)
    }

    /// Sends shares to one party, which decodes them. One round.
    pub(super) fn reveal_corrected(
        &mut self,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        let owners: PartySet = [owner].into_iter().collect();
        if owner != self.me {
            let out: Vec<&[u8]> = self.to(owners, shares);
            let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
            let gathered = net.gather(&out, &mut nothing, self.online_patience(), &mut |_, _| true)?;
            self.heard_of(gathered);
            return Ok(None);
        }
        let mut values = self.pool.take(shares.len());
        let nobody = PartySet::default();
        self.exchange_and_decode(Symbol::Byte, nobody, self.partners(), shares, &mut values, net)?;
        Ok(Some(values))
    }

    /// Sends own shares to some and decodes those of others, as soon as enough of them agree.
    fn exchange_and_decode(
        &mut self,
        symbol: Symbol,
        to: PartySet,
        from: PartySet,
        shares: &[u8],
        values: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let (me, threshold, outvoted) = (self.me, self.structure.threshold(), self.security.outvoted);
        let (out, patience) = (self.to(to, shares), self.online_patience());
        let awaited = from.without(self.security.lost);
        for (p, buffer) in Party::all(out.len()).zip(&mut self.incoming) {
            resize(buffer, if p != me && awaited.contains(p) { shares.len() } else { 0 });
        }
        let mut into: Vec<&mut [u8]> = self.incoming.iter_mut().map(|b| b.as_mut_slice()).collect();
        let mut wrong = None;
        let mut enough = |arrived: PartySet, into: &[&mut [u8]]| {
            let words = arrived.without(outvoted).iter().map(|p| (p, &*into[p.index()]));
            let words: Vec<Word<'_>> = [(me, shares)].into_iter().chain(words).collect();
            wrong = decode(symbol, threshold, Some(me), &words, values);
            wrong.is_some()
        };
        let gathered = net.gather(&out, &mut into, patience, &mut enough)?;
        self.heard_of(gathered);
        match wrong {
            Some(wrong) => {
                self.security.outvoted = outvoted.and(wrong);
                Ok(())
            }
            None if gathered.arrived.without(outvoted).len() < 2 * threshold => {
                let there = gathered.arrived.and([me].into_iter().collect()).without(outvoted);
                Err(Error::Missing { there, needed: 2 * threshold + 1, purpose: "open a value" })
            }
            None => Err(Error::CheckFailed { what: "more shares are wrong than the others can correct" }),
        }
    }

    /// [`Arithmetic::open_masked`] with triples (Beaver 1991). For a product x y two values are opened, e =
    /// x + a and f = y + b, with a triple (a, b, c = a b) that serves once. Then x y = e f + e b + f a + c.
    ///
    /// c is a public w plus a pseudorandom value, which is, as a and b are, the sum of parts that each a set
    /// of parties knows. So x y is (e f + w) plus the sum over those sets of a value that the set's members
    /// know, e b_A + f a_A + c_A, times f_A. Any linear image M of it is M(e f + w) plus the sum of M of
    /// those values times f_A: local. (Online, a product with all images of it wanted takes one operation in
    /// one round, as it does against parties that only look on.)
    pub(super) fn open_with_triples(
        &mut self,
        openings: Vec<Opening<'_>>,
        net: &mut dyn Net,
    ) -> Result<Opened> {
        let layout = Layout::of(&openings, |secret| match secret {
            Secret::Value(_) => 1,
            Secret::Product(..) => 2,
            Secret::ProductPlus(..) => 3,
        });
        layout.count(&openings, self.counts());
        let mut message = self.pool.take(layout.messages);
        let mut masks = self.pool.take(layout.masks);
        let mut spent = Vec::with_capacity(openings.len());
        for (opening, place) in openings.iter().zip(&layout.places) {
            let message = &mut message[place.messages.clone()];
            let sum = match opening.secret {
                Secret::Value(x) => {
                    self.mask_value(x, &opening.views, message, &mut masks[place.masks.clone()]);
                    spent.push((0..0, Vec::new()));
                    continue;
                }
                Secret::Product(..) => None,
                Secret::ProductPlus(_, _, sum) => Some(sum),
            };
            let (Secret::Product(x, y) | Secret::ProductPlus(x, y, _)) = opening.secret else { continue };
            let range = self.security.material.triples.spend(place.len)?;
            let (e, rest) = message.split_at_mut(place.len);
            let (f, g) = rest.split_at_mut(place.len);
            let (triples, prss) = (&self.security.material.triples, &self.prss);
            prss.mask_with_parts(&triples.parts(0, range.clone()), x, e);
            prss.mask_with_parts(&triples.parts(1, range.clone()), y, f);
            let parts = match sum {
                None => Vec::new(),
                Some(sum) => {
                    let parts = self.prss.parts(place.len);
                    self.prss.mask_with_parts(
                        &parts.iter().map(|part| &part[..]).collect::<Vec<_>>(),
                        sum,
                        g,
                    );
                    parts
                }
            };
            spent.push((range, parts));
        }
        let mut opened = self.pool.take(layout.messages);
        self.open_corrected(Symbol::Byte, &message, &mut opened, net)?;

        let mut public = self.pool.take(layout.places.iter().map(|place| place.len).sum());
        let mut at = 0;
        for ((opening, place), (range, addends)) in openings.iter().zip(&layout.places).zip(spent) {
            let public = &mut public[at..at + place.len];
            at += place.len;
            let opened = &opened[place.messages.clone()];
            if let Secret::Value(_) = opening.secret {
                public.copy_from_slice(opened);
                continue;
            }
            let masks = &mut masks[place.masks.clone()];
            for start in (0..place.len).step_by(TILE) {
                let tile = start..place.len.min(start + TILE);
                let of = |k: usize| opened.get(k * place.len + tile.start..k * place.len + tile.end);
                let (Some(e), Some(f)) = (of(0), of(1)) else { continue };
                let triple = range.start + tile.start..range.start + tile.end;
                let parts = self.security.material.triples.products(
                    triple.clone(),
                    e,
                    f,
                    &addends,
                    &tile,
                    &self.pool,
                );
                let w = self.security.material.triples.public(triple);
                let public = &mut public[tile.clone()];
                multiply(public, e, f);
                public.iter_mut().zip(w).for_each(|(p, w)| *p ^= w);
                if let (Some(g), false) = (of(2), addends.is_empty()) {
                    public.iter_mut().zip(g).for_each(|(p, g)| *p ^= g);
                }
                for (view, share) in opening.views.iter().zip(masks.chunks_mut(place.len)) {
                    let terms = view.terms(parts.chunks(tile.len()));
                    combine(&mut share[tile.clone()], &terms, 0);
                }
            }
        }
        Ok(Opened::new(public, masks, layout, openings, &self.pool))
    }

    /// What is sent of a value that is opened under a mask, and the shares of images of that mask, image
    /// after image.
    pub(super) fn mask_value(
        &mut self,
        value: &[u8],
        views: &[Arc<View>],
        message: &mut [u8],
        masks: &mut [u8],
    ) {
        for start in (0..value.len()).step_by(TILE) {
            let range = start..value.len().min(start + TILE);
            let shares = masks.chunks_mut(value.len()).map(|share| &mut share[range.clone()]);
            let views = views.iter().map(|v| &**v).zip(shares);
            self.prss.mask(Degree::Value, &value[range.clone()], &mut message[range.clone()], views);
        }
    }

    /// Products as openings under a mask. The only image wanted is the value itself.
    pub(super) fn multiply_by_opening(
        &mut self,
        products: &[(&[u8], &[u8])],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>> {
        let whole = self.prss.whole();
        let openings = products
            .iter()
            .map(|(a, b)| Opening { secret: Secret::Product(a, b), views: vec![whole.clone()] });
        let opened = self.open_masked(openings.collect(), net)?;
        Ok((0..products.len()).map(|i| opened.shares(i, 0, 0)).collect())
    }

    /// Another sharing of the same values: opened under a mask, c + \[r\]. One round. Its polynomials are
    /// those of r but for the public value at 0, so all of its shares together tell nothing of what the
    /// values were computed from; t shares of the old sharing and a value determine that one anyway, so a
    /// node that helps the client learns no more.
    pub(super) fn share_afresh(&mut self, shares: &mut [u8], net: &mut dyn Net) -> Result<()> {
        let parts = self.prss.parts(shares.len());
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let mut masked = self.pool.take(shares.len());
        self.prss.mask_with_parts(&parts, shares, &mut masked);
        let mut public = self.pool.take(shares.len());
        self.open_corrected(Symbol::Byte, &masked, &mut public, net)?;
        self.prss.mask_with_parts(&parts, &public, shares);
        Ok(())
    }

    /// What goes to some of the peers, and nothing for the others.
    pub(super) fn to<'a>(&self, peers: PartySet, message: &'a [u8]) -> Vec<&'a [u8]> {
        let peers = peers.without(self.security.lost).without([self.me].into_iter().collect());
        Party::all(self.structure.parties()).map(|p| if peers.contains(p) { message } else { &[] }).collect()
    }

    pub(super) fn heard_of(&mut self, gathered: Gathered) {
        self.security.lost = self.security.lost.and(gathered.lost);
    }
}
