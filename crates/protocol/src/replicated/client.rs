//! Clients of replicated sharing: the masks of their inputs, and the messages that bring them outputs.
//!
//! **To a client** every node sends of its two shares, with a fresh zero sharing m_0 + m_1 + m_2 = 0 added,
//! what the model says ([`AdversaryModel::message_to_client`]). All three nodes know the m_j, from the common
//! key. So the client learns three random shares of the value, and nothing of the shares that the nodes go on
//! with. A client together with one node learns no more than the value and what the node knows: the node's
//! two shares and the value determine the third.
//!
//! **From a client** comes c = x ^ r, public among the nodes, under a mask r that they drew by pseudorandom
//! sharing, or that the client has dealt ([`dealt`](crate::interface::dealt)): as x_j of every sharing, each
//! component of r is known to two of the three nodes. \[x\] is \[r\] with c added to share 0. So everything
//! that a client can send is a valid input, though perhaps not the intended one. If the nodes were told
//! different c, the two that have share 0 differ. The active model finds this ([`AdversaryModel::compare`]),
//! and so does an earlier comparison of c.
//!
//! **Once**: the nodes see c. Two inputs under one mask would show them x ^ x'.
//!
//! Adversary: the model's. Under the passive model, nothing finds a wrong share that a node sends to a
//! client. The exception is a share of a mask, in the check of masks
//! ([`open_mask_check`](crate::interface::service::ServiceSession::open_mask_check)).

use std::array;

use polyclave_cipher::{Cells, CompiledPort};
use zeroize::Zeroizing;

use super::ring::{Ring, add};
use super::security::AdversaryModel;
use super::shared::Shared;
use super::{PARTIES, Pair, Replicated};
use crate::interface::elements::{ELEMENT_BYTES, Element, Elements};
use crate::interface::masking::{cells_of, masked_cells};
use crate::interface::net::Net;
use crate::unchecked::Unchecked;
use crate::{Error, PartySet, Result};

/// A random value that masks an input of a client: all shares that a node has of it, two among three nodes.
pub struct Mask<const C: usize = 2> {
    pub(super) shares: [Zeroizing<Vec<u8>>; C],
    /// Bytes of a share.
    pub(super) len: usize,
}

impl<A: AdversaryModel> Replicated<A> {
    /// Draws a mask. Also returns the message to the client. Local.
    pub(super) fn draw_mask(&mut self, len: usize) -> Result<(Mask, Vec<u8>)> {
        let shares = self.ring.random_shares(len);
        let message = self.blinded(shares.each_ref().map(|share| &share[..]))?;
        Ok((Mask { shares, len }, message))
    }

    /// What goes to a client that is to learn the first bytes of a value, in the blocks people write.
    /// Everything is verified first.
    pub(super) fn value_for_client(
        &mut self,
        value: &Shared,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.verify(&value.unchecked, net)?;
        self.ring.counts().openings += len as u64;
        let blocks = [0, 1].map(|share| value.blocks(share));
        self.blinded(blocks.each_ref().map(|blocks| &blocks[..len]))
    }

    /// What goes to a client of two shares of a value.
    pub(super) fn blinded(&mut self, shares: Pair<&[u8]>) -> Result<Vec<u8>> {
        let mut zeros = self.ring.zero_for_client(shares[0].len());
        zeros.iter_mut().zip(shares).for_each(|(zero, share)| add(zero, share));
        self.model.message_to_client(zeros.each_ref().map(|share| &share[..]))
    }
}

/// Shares of x from the public x ^ r, which is added to share 0. Local.
pub(super) fn share_masked<const C: usize>(
    mask: &Mask<C>,
    at: usize,
    masked: &[u8],
    port: &CompiledPort,
    share_zero: Option<usize>,
) -> Result<Shared<C>> {
    let public = masked_cells(port, masked, at, mask.len)?;
    let mut rows = Zeroizing::new(Vec::with_capacity(C * public.rows().len()));
    for share in &mask.shares {
        rows.extend_from_slice(cells_of(port, &share[at..at + masked.len()])?.rows());
    }
    if let Some(share) = share_zero {
        add(&mut rows[share * public.rows().len()..], public.rows());
    }
    let (bits, count, lanes) = (port.bits, port.cells.len(), public.lanes());
    Ok(Shared { bits, count, lanes, rows, unchecked: Unchecked::default() })
}

impl<const C: usize> Mask<C> {
    /// Its bytes as elements, the last one filled up with zeros. Local.
    pub(super) fn elements(&self) -> Elements {
        let padded = self.shares.each_ref().map(|share| {
            let mut bytes = Zeroizing::new(vec![0; self.len.next_multiple_of(ELEMENT_BYTES)]);
            bytes[..self.len].copy_from_slice(share);
            bytes
        });
        of_shares(padded, Unchecked::default())
    }
}

impl<const C: usize> Shared<C> {
    /// Blocks of 16 bytes as elements. The sum of shares of bytes is the sum of elements: local.
    pub(super) fn elements(&self) -> Result<Elements> {
        let bytes = Cells::block_bytes(self.count, self.bits);
        if bytes != ELEMENT_BYTES {
            return Err(Error::Misuse(format!("blocks of {bytes} bytes are no elements of GF(2^128)")));
        }
        Ok(of_shares(array::from_fn::<_, C, _>(|share| self.blocks(share)), self.unchecked.clone()))
    }
}

impl Ring {
    /// Both shares of a random value. Local.
    pub(super) fn random_shares(&mut self, len: usize) -> Pair<Zeroizing<Vec<u8>>> {
        [0, 1].map(|share| Zeroizing::new(self.input_share(share, len).to_vec()))
    }
}

/// Elements with these shares, of which there are three at most. The second one takes the place of MACs:
/// every linear map acts on all alike.
pub(super) fn of_shares<const C: usize>(shares: [Zeroizing<Vec<u8>>; C], unchecked: Unchecked) -> Elements {
    const { assert!(C <= 3, "elements have room for three shares") };
    let mut shares = shares.into_iter();
    let [first, second, third] = array::from_fn(|_| shares.next().unwrap_or_default());
    Elements { shares: first, macs: second, thirds: third, unchecked }
}

/// At a client: the value from the nodes' messages.
pub(super) fn combine<A: AdversaryModel>(
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Zeroizing<Vec<u8>>> {
    if serving != PartySet::all(PARTIES) {
        return Err(Error::Misuse(format!("{serving} serve, but all of {PARTIES} parties have to")));
    }
    let messages = messages.try_into().map_err(|_| {
        Error::Misuse(format!("{} messages came, but {PARTIES} parties serve", messages.len()))
    })?;
    A::combine(messages)
}

/// [`combine`] for elements.
pub(super) fn combine_elements<A: AdversaryModel>(
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Vec<Element>> {
    let bytes = combine::<A>(serving, messages)?;
    match bytes.as_chunks() {
        (elements, []) => Ok(elements.to_vec()),
        _ => Err(Error::CheckFailed { what: "that nodes sent whole elements to a client" }),
    }
}
