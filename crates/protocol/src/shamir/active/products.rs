//! Products ahead: sharings of degree 2t, opened to all parties and checked. Powers of masks and masked
//! tables are made of them, with every way to make triples: pseudorandom values, opened under pseudorandom
//! masks.
//!
//! What is opened is z + r for a pseudorandom r of degree t, plus a zero sharing of degree 2t. It is uniform
//! to t parties except for what they know of it (`prss.rs`). If n shares lie on one polynomial of degree 2t,
//! its value is right: t wrong shares among n >= 3t + 1 leave 2t + 1 right ones, which determine it. If they
//! do not, some party cheated, and this party says so when all are asked (`is_accepted`). Until then it goes
//! on with the values that it received: everything that it sends is masked afresh, does not depend on an
//! input, and will not be used. (If cheaters made a sharing inconsistent, its products show differences that
//! the cheaters chose, times shares of random values that are thrown away with it.)

use polyclave_kernels::gf256::multiply;
use zeroize::Zeroizing;

use super::super::arithmetic::resize;
use super::super::opening::{Layout, Opened, Opening, Secret};
use super::super::prss::{Degree, TILE};
use super::code::{Symbol, Word, interpolate};
use super::conviction::Evidence;
use super::{Active, Arithmetic, Spoiled, patience};
use crate::interface::net::{Net, Patience};
use crate::interface::tally::Phase;
use crate::{Error, Party, Result};

impl Arithmetic<Active> {
    /// Whether products are opened now rather than taken from triples.
    pub(super) fn is_ahead(&self) -> bool {
        self.phase == Phase::Preprocessing && self.security.stock.is_none()
    }

    /// [`Arithmetic::open_masked`] of products, ahead of inputs.
    pub(super) fn open_ahead(&mut self, openings: Vec<Opening<'_>>, net: &mut dyn Net) -> Result<Opened> {
        let layout = Layout::of(&openings, |_| 1);
        layout.count(&openings, self.counts());
        let mut message = self.pool.take(layout.messages);
        let mut masks = self.pool.take(layout.masks);
        let pool = self.pool.clone();
        for (opening, place) in openings.iter().zip(&layout.places) {
            let Secret::Product(a, b) = opening.secret else {
                return Err(Error::misuse("only products are opened ahead"));
            };
            let message = &mut message[place.messages.clone()];
            let masks = &mut masks[place.masks.clone()];
            let mut product = pool.take(TILE.min(place.len));
            for start in (0..place.len).step_by(TILE) {
                let range = start..place.len.min(start + TILE);
                let product = &mut product[..range.len()];
                multiply(product, &a[range.clone()], &b[range.clone()]);
                let shares = masks.chunks_mut(place.len).map(|share| &mut share[range.clone()]);
                let views = opening.views.iter().map(|v| &**v).zip(shares);
                // A mask of degree t: the zero sharing comes with the opening.
                self.prss.mask(Degree::Value, product, &mut message[range.clone()], views);
            }
        }
        let masked = Zeroizing::new(message.to_vec());
        let evidence = |_: &Arithmetic<Active>, i: usize| -> Vec<u8> {
            let of = layout.places.iter().zip(&openings).find(|(place, _)| place.messages.contains(&i));
            let Some((place, Opening { secret: Secret::Product(a, b), .. })) = of else { return vec![0; 3] };
            let (a, b) = (a[i - place.messages.start], b[i - place.messages.start]);
            let mut product = [0];
            multiply(&mut product, &[a], &[b]);
            vec![a, b, masked[i] ^ product[0]]
        };
        let mut public = self.pool.take(layout.messages);
        self.open_checked(Symbol::Byte, &mut message, &evidence, &mut public, net)?;
        Ok(Opened::new(public, masks, layout, openings, &self.pool))
    }

    /// Opens products plus masks, to which it adds zero sharings of degree 2t. One round, unless shares are
    /// broadcast. `evidence` is asked, if it comes to that, for this party's shares of both factors and of
    /// the mask of the i-th value.
    pub(super) fn open_checked(
        &mut self,
        symbol: Symbol,
        message: &mut [u8],
        evidence: &Evidence<'_>,
        values: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        if message.is_empty() {
            return Ok(());
        }
        self.check_makers()?;
        if self.security.broadcasts {
            return self.open_before_all(symbol, message, evidence, values, net);
        }
        match symbol {
            Symbol::Byte => self.prss.add_zero(message),
            Symbol::Element => self.prss.add_zero_elements(message),
        }
        self.open_apart(symbol, message, values, net)
    }

    /// Opens sharings of degree 2t, which this party checks for itself. One round.
    pub(super) fn open_apart(
        &mut self,
        symbol: Symbol,
        message: &[u8],
        values: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        self.counts().rounds += 1;
        let (me, degree, partners) = (self.me, 2 * self.structure.threshold(), self.partners());
        let out = self.to(partners, message);
        for (p, buffer) in Party::all(out.len()).zip(&mut self.incoming) {
            resize(buffer, if p != me && partners.contains(p) { message.len() } else { 0 });
        }
        let mut into: Vec<&mut [u8]> = self.incoming.iter_mut().map(|b| b.as_mut_slice()).collect();
        let gathered = net.gather(&out, &mut into, Patience::of(patience::AHEAD), &mut |_, _| false)?;
        self.heard_ahead(gathered, message.len())?;
        let share_of = |p: Party| if p == me { message } else { &self.incoming[p.index()][..] };
        let words: Vec<Word<'_>> = partners.iter().map(|p| (p, share_of(p))).collect();
        if !interpolate(symbol, degree, &words, values) {
            self.security.spoiled = Some(Spoiled::Mine);
            values.fill(0);
        }
        Ok(())
    }
}
