//! Clients of Shamir sharing: the masks of their inputs, and the messages that bring them outputs.
//!
//! **To a client** every serving node sends one byte for every byte of the value: its share plus a fresh zero
//! sharing of degree 2t. Together they form a polynomial of degree 2t. It is random except for its value at 0
//! and, to an adversary with the knowledge of t nodes, at the points of those nodes (`prss.rs`). So a client,
//! alone or together with t nodes, learns the value and nothing about the polynomial that the nodes continue
//! to use. This matters where a value stays shared or depends linearly on a key. At least 2t + 1 messages are
//! needed to compute the value.
//!
//! **From a client** comes c = x ^ r, public among the nodes, for a mask r that they drew by pseudorandom
//! sharing. \[x\] is the constant c plus \[r\], and every image M(x) is M(c) plus \[M(r)\]: polynomials of
//! degree t by construction, as long as all nodes use the same c (the hello compares it). If clients handed
//! out shares, a client could make a value of degree 2t, and opening that value would tell a node that
//! cooperates with the client about the key. Any other message of a client only makes another x.
//!
//! **Once**: the nodes see c. Two inputs under one mask would show them x ^ x'.
//!
//! Adversary: passive. A node that sends a client a wrong share makes it compute another mask or output. The
//! check of masks ([`open_mask_check`](crate::interface::service::ServiceSession::open_mask_check)) finds a
//! wrong mask. Nothing finds a wrong output.

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use polyclave_kernels::affine::{Term, combine};
use polyclave_kernels::transpose::rows_to_blocks;
use zeroize::Zeroizing;

use super::Shared;
use super::arithmetic::Arithmetic;
use super::security::AdversaryModel;
use super::setup::Structure;
use crate::interface::elements::{ELEMENT_BYTES, Element, Elements};
use crate::interface::masking::{cells_of, masked_cells};
use crate::interface::net::Net;
use crate::interface::protocol::SharedValue;
use crate::{Error, PartySet, Result};

/// A random value that masks an input of a client: its parts, which determine shares of every image of it.
pub struct Mask {
    /// r_A for every set this party is in.
    parts: Vec<Zeroizing<Vec<u8>>>,
    len: usize,
}

impl<S: AdversaryModel> Arithmetic<S> {
    /// Draws a mask. Also returns the message to the client. Local.
    pub(super) fn mask_input(&mut self, len: usize) -> (Mask, Vec<u8>) {
        let mask = Mask { parts: self.prss.parts(len), len };
        let whole = self.prss.view(&Matrix::identity(8));
        let mut message = vec![0; len];
        combine(&mut message, &whole.terms(mask.parts.iter().map(|part| part.as_slice())), 0);
        S::hand_out_mask(self, &mut message);
        (mask, message)
    }

    /// A mask's bytes as elements. Local.
    pub(super) fn mask_elements(&self, mask: &Mask) -> Elements {
        let count = mask.len.div_ceil(ELEMENT_BYTES);
        let padded = mask.parts.iter().map(|part| {
            let mut bytes = Zeroizing::new(vec![0; count * ELEMENT_BYTES]);
            bytes[..mask.len].copy_from_slice(part);
            bytes
        });
        let padded: Vec<_> = padded.collect();
        self.elements_of_parts(&padded.iter().map(|part| part.as_slice()).collect::<Vec<_>>(), count)
    }

    /// Shares of x, and of the images that a port needs, from the public x ^ r. Local.
    pub(super) fn unmask(
        &mut self,
        mask: &Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared> {
        let public = masked_cells(port, masked, at, mask.len)?;
        let parts = mask.parts.iter().map(|part| cells_of(port, &part[at..at + masked.len()]));
        let parts: Vec<Cells> = parts.collect::<Result<_>>()?;

        let views = port.views();
        let len = public.rows().len();
        let mut rows = Zeroizing::new(vec![0; views.len() * len]);
        for (m, row) in views.iter().zip(rows.chunks_mut(len)) {
            let view = self.prss.view(m);
            let mut terms = view.terms(parts.iter().map(Cells::rows));
            terms.push(Term { src: public.rows(), map: &view.map });
            combine(row, &terms, 0);
        }
        Ok(Shared { bits: port.bits, count: port.cells.len(), lanes: public.lanes(), views, rows })
    }

    /// What goes to a client that is to learn the first bytes of a value, in the blocks people write. Counted
    /// as openings.
    pub(super) fn bytes_for_client(
        &mut self,
        value: &Shared,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let width = Cells::block_bytes(value.count, value.bits);
        // A cell at a shift is the cell times x^shift. The value is narrow, so no reduction occurs, and the
        // same map applies to all shares of it.
        let mut bytes: Vec<Vec<Term<'_>>> = vec![Vec::new(); width];
        for cell in 0..value.count {
            let (byte, shift) = Cells::place(cell, value.bits);
            bytes[byte].push(Term { src: value.row(cell, 0), map: &self.scalars[1 << shift] });
        }
        let mut rows = Zeroizing::new(vec![0; width * value.lanes]);
        for (row, terms) in rows.chunks_mut(value.lanes).zip(&bytes) {
            combine(row, terms, 0);
        }
        let mut message = vec![0; rows.len()];
        rows_to_blocks(&rows, value.lanes, width, &mut message);
        message.truncate(len);
        self.counts().openings += message.len() as u64;
        S::hand_out(self, &mut message, net)?;
        Ok(message)
    }
}

impl Shared {
    /// The cells, row after row, if they are blocks of 16 bytes.
    pub(super) fn elements_rows(&self) -> Result<&[u8]> {
        match (self.bits, self.count) {
            (8, ELEMENT_BYTES) => Ok(self.reveal_own_shares()),
            (bits, count) => {
                Err(Error::Misuse(format!("{count} cells of {bits} bits are no element of GF(2^128)")))
            }
        }
    }
}

/// At a client: the value from the nodes' messages.
pub(crate) fn combine_shares<S: AdversaryModel>(
    structure: Structure,
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Zeroizing<Vec<u8>>> {
    check_messages(structure, serving, messages)?;
    S::combine(structure, serving, messages)
}

/// [`combine_shares`] for elements.
pub(crate) fn combine_elements<S: AdversaryModel>(
    structure: Structure,
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Vec<Element>> {
    check_messages(structure, serving, messages)?;
    // All have the same length.
    if let Some((peer, message)) = serving.iter().zip(messages).next()
        && !message.len().is_multiple_of(ELEMENT_BYTES)
    {
        let detail =
            format!("{} bytes, as are the others' messages, are no shares of elements", message.len());
        return Err(Error::Peer { peer, detail });
    }
    S::combine_elements(structure, serving, messages)
}

/// One message of every serving node, all of the same length. The median of 2t + 1 lengths is the length that
/// most nodes sent.
fn check_messages(structure: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<()> {
    structure.check_serving(serving)?;
    if messages.len() != serving.len() {
        return Err(Error::Misuse(format!("{} messages came, but {serving} serve", messages.len())));
    }
    let mut lengths: Vec<usize> = messages.iter().map(|m| m.len()).collect();
    lengths.sort_unstable();
    let due = lengths[lengths.len() / 2];
    match serving.iter().zip(messages).find(|(_, message)| message.len() != due) {
        None => Ok(()),
        Some((peer, message)) => {
            let detail = format!("a message of {} bytes where most nodes sent {due}", message.len());
            Err(Error::Peer { peer, detail })
        }
    }
}
