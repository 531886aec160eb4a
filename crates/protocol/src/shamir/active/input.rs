//! Inputs of a party. The party masks its input by a value that only it knows, and broadcasts the masked
//! input.
//!
//! A random r is drawn as a pseudorandom sharing and revealed to the owner alone. The owner decodes it with
//! correction. The owner broadcasts c = x + r. \[x\] is c plus \[r\], and every linear image M(x) is M(c)
//! plus \[M(r)\]. These have degree t for any c that the owner sent, because all parties that follow the
//! protocol have the same c. If nothing is received from an owner, it gives no input, and all parties know
//! it. That is silence, and accuses nobody ([`Error::Missing`]): an owner that follows the protocol is
//! silent, too, if it has ended the session for a reason that the others have not seen, such as a wrong
//! opening in the hello that a cheater sent to it alone.
//!
//! What is opened: c, which is uniform to all parties but the owner, because r is used once.
//!
//! # Keys that nobody holds
//! Nodes generate a key as the sum of one input of each node, drawn from its operating system. That is as
//! good as keeping outputs of [`super::dealt`]:
//!
//! * One honest party's input is uniform, and t others see only c and their points of \[r\]. So they choose
//!   theirs without knowing anything of it, and the sum is uniform. A party that gives no input ends the
//!   generation, and knows nothing of the others' inputs.
//! * Both are sharings of degree t that no cheater can make inconsistent.
//! * In one point dealt sharings are stronger: the keys for pseudorandom sharing have no part in them. An
//!   input follows from c and those keys, which t + 1 parties hold together. But all lookups, from the key
//!   schedule on, open the key, and the images of it from which they start, under pseudorandom masks. So the
//!   key is protected by nothing beyond those keys, however it was made.

use polyclave_kernels::affine::{Map, Term, combine};

use super::super::security::Image;
use super::{Active, Arithmetic};
use crate::interface::net::Net;
use crate::{Error, Party, Result};

impl Arithmetic<Active> {
    /// Shares images of the owner's cells: of this party's, if they are given. One opening, one broadcast.
    pub(super) fn share_by_broadcast(
        &mut self,
        owner: Party,
        cells: Option<&[u8]>,
        lanes: usize,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let len = cells.map_or(0, <[u8]>::len);
        self.receive(owner, cells, len, lanes, images, dst, net)
    }

    /// [`share_by_broadcast`](Arithmetic::share_by_broadcast) of another party's: this many cells in this
    /// many lanes.
    pub(super) fn receive_by_broadcast(
        &mut self,
        owner: Party,
        count: usize,
        lanes: usize,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        self.check_serves(owner)?;
        self.receive(owner, None, count * lanes, lanes, images, dst, net)
    }

    #[expect(clippy::too_many_arguments, reason = "what both of its callers have")]
    fn receive(
        &mut self,
        owner: Party,
        cells: Option<&[u8]>,
        len: usize,
        lanes: usize,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()> {
        let parts = self.prss.parts(len);
        let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        let mut mask = self.pool.take(len);
        self.prss.sum_of_parts(&parts, &mut mask);
        let mask = self.reveal_to(owner, &mask, net)?;
        let mut masked = Vec::new();
        if let (Some(cells), Some(mask)) = (cells, mask) {
            masked.extend(cells.iter().zip(mask.iter()).map(|(x, r)| x ^ r));
        }
        let mut lens = vec![0; self.structure.parties()];
        lens[owner.index()] = len;
        let mut said = self.broadcast(&lens, &masked, net)?;
        let public = said[owner.index()].take().ok_or_else(|| self.no_input_of(owner))?;
        for ((cell, m), row) in images.iter().zip(dst.chunks_mut(lanes.max(1))) {
            let view = self.prss.view(m);
            let place = cell * lanes..(cell + 1) * lanes;
            let mut terms = view.terms(parts.iter().map(|part| &part[place.clone()]));
            let whole: &Map = &view.map;
            terms.push(Term { src: &public[place], map: whole });
            combine(row, &terms, 0);
        }
        Ok(())
    }

    fn no_input_of(&self, owner: Party) -> Error {
        let partners = self.partners();
        let there = partners.without([owner].into_iter().collect());
        Error::Missing { there, needed: partners.len(), purpose: "give an input that all parties hear" }
    }
}
