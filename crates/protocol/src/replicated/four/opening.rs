//! Openings, to all parties or to one, and what goes to clients: as Shamir shares.
//!
//! f_i is the polynomial of degree 1 that is 1 at 0 and 0 at P_i's point. The sum of x_i f_i shares x with
//! degree 1, and at each party's own point it depends only on components that the party has. So each party
//! computes a Shamir share of a value from its components, without a message (Cramer, Damgard and Ishai
//! 2005). Shares of degree 1 of four parties correct one wrong share, and those of three detect one
//! ([`shamir`](crate::shamir)).
//!
//! **What an opening shows**: each party knows three components and the value, so it knows the fourth
//! component and all shares. Nothing else follows from them.

use polyclave_field::{Gf128, Gf256};
use polyclave_kernels::affine::{Map, Term, combine};
use polyclave_kernels::gf128::scale_add;
use zeroize::Zeroizing;

use super::keys::{Components, held, holders};
use super::products::{BEHIND, Joint};
use super::{PARTIES, structure};
use crate::interface::net::{Net, Patience};
use crate::interface::protocol::Owner;
use crate::shamir::{Symbol, decode, point};
use crate::{Error, Party, PartySet, Result};

/// Longer than parties may be behind one another.
const PATIENCE: Patience = Patience { limits: 8, ..BEHIND };

/// This party's Shamir share of a value.
pub(super) fn share(me: Party, symbol: Symbol, components: Components<&[u8]>) -> Zeroizing<Vec<u8>> {
    let weights = held(me).map(|component| structure().weight(holders(component), me));
    let mut share = Zeroizing::new(vec![0; components[0].len()]);
    match symbol {
        Symbol::Byte => {
            let maps = weights.map(scalar);
            let terms: Vec<_> = components.iter().zip(&maps).map(|(src, map)| Term { src, map }).collect();
            combine(&mut share, &terms, 0);
        }
        Symbol::Element => {
            for (component, weight) in components.iter().zip(weights) {
                scale_add(&mut share, component, &Gf128::embed(weight).to_bytes());
            }
        }
    }
    share
}

/// Multiplication by a constant.
pub(super) fn scalar(c: Gf256) -> Map {
    Map::new(std::array::from_fn::<_, 8, _>(|bit| (c * Gf256(1 << bit)).0))
}

impl Joint {
    /// Opens a value to its owners, with correction. `serving` are the parties that take part; the parties in
    /// `outvoted` are not believed, and more may come to that. One round.
    pub(super) fn open(
        &mut self,
        symbol: Symbol,
        components: Components<&[u8]>,
        to: Owner,
        (serving, outvoted): (PartySet, &mut PartySet),
        net: &mut dyn Net,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let (me, len) = (self.keys.me, components[0].len());
        let owners = match to {
            Owner::All => serving,
            Owner::Party(owner) if serving.contains(owner) => [owner].into_iter().collect(),
            Owner::Party(owner) => return Err(Error::misuse(format!("{owner} takes no part"))),
        };
        if len == 0 {
            return Ok(owners.contains(me).then(Zeroizing::default));
        }
        self.tally.of(self.phase).rounds += 1;
        let mine = share(me, symbol, components);
        let reachable = |p: &Party| *p != me && serving.contains(*p) && !self.lost.contains(*p);
        let is_owner = owners.contains(me);
        let out: Vec<&[u8]> = Party::all(PARTIES)
            .map(|p| if reachable(&p) && owners.contains(p) { &mine[..] } else { &[] })
            .collect();
        let mut theirs: Vec<Zeroizing<Vec<u8>>> = Party::all(PARTIES)
            .map(|p| Zeroizing::new(vec![0; if reachable(&p) && is_owner { len } else { 0 }]))
            .collect();
        let mut into: Vec<&mut [u8]> = theirs.iter_mut().map(|buffer| buffer.as_mut_slice()).collect();
        let mut opened = Zeroizing::new(vec![0; len]);
        let (mut wrong, distrusted) = (None, *outvoted);
        let mut enough = |arrived: PartySet, into: &[&mut [u8]]| {
            let words = arrived.without(distrusted).iter().map(|p| (p, &*into[p.index()]));
            let words: Vec<(Party, &[u8])> = [(me, &mine[..])].into_iter().chain(words).collect();
            wrong = decode(symbol, 1, Some(me), &words, &mut opened);
            wrong.is_some() || !is_owner
        };
        let gathered = net.gather(&out, &mut into, PATIENCE, &mut enough)?;
        self.lost = self.lost.and(gathered.lost);
        match wrong {
            _ if !is_owner => Ok(None),
            Some(wrong) => {
                *outvoted = distrusted.and(wrong);
                Ok(Some(opened))
            }
            None if gathered.arrived.without(distrusted).len() < 2 => {
                let there = gathered.arrived.and([me].into_iter().collect()).without(distrusted);
                Err(Error::Missing { there, needed: 3, purpose: "open a value" })
            }
            None => Err(Error::CheckFailed { what: "more shares are wrong than the others can correct" }),
        }
    }
}

/// Adds to a share the point of a line through 0 with this slope.
pub(super) fn add_line(me: Party, symbol: Symbol, slope: &[u8], share: &mut Zeroizing<Vec<u8>>) {
    let at = point(me);
    match symbol {
        Symbol::Byte => {
            let (map, one) = (scalar(at), scalar(Gf256::ONE));
            let old = std::mem::take(share);
            let mut sum = Zeroizing::new(vec![0; old.len()]);
            combine(&mut sum, &[Term { src: &old, map: &one }, Term { src: slope, map: &map }], 0);
            *share = sum;
        }
        Symbol::Element => scale_add(share, slope, &Gf128::embed(at).to_bytes()),
    }
}
