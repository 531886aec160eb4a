//! What a protocol offers, beyond evaluating circuits, so that long-lived nodes can serve clients with it.
//!
//! * Setups and shared values that can be stored and read back.
//! * Clients: outside parties that hold no share. A client never hands out shares of its secrets: the nodes give it a
//!   random shared mask r, it sends the same x ^ r to every node, and they set \[x\] = (x ^ r) + \[r\] (so no client can
//!   make a sharing of a wrong degree). What a client is to learn, each serving node sends it a share of, blinded so that
//!   the client learns the value and nothing about the sharing.
//! * Elements of GF(2^128) in the representation of GCM (SP 800-38D, section 6.3), for its hash: [`ElementArithmetic`].
//!
//! Values of clients are in bytes as people write them: the blocks of [`Cells::from_blocks`](polyclave_cipher::Cells).

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cipher, Compiled, CompiledPort};
use zeroize::Zeroizing;

pub use crate::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::net::Net;
use crate::protocol::{ProtocolConfig, Session};
use crate::session::Stream;
use crate::stock::{Kind, Stock};
use crate::tally::Phase;
use crate::{Error, Party, PartySet, Result};

/// What a node stores of a shared value: [`ServiceSession::save`], [`ServiceSession::save_elements`].
#[derive(Clone, Copy)]
pub enum Stored<'a> {
    /// Cells, with their views.
    Value(&'a [u8]),
    /// Elements of GF(2^128).
    Elements(&'a [u8]),
}

/// A scheme that nodes can serve with.
pub trait ServiceConfig: ProtocolConfig<Session: ServiceSession> + Send + 'static {
    /// So many nodes must take part in a request. Where nodes that cheat are corrected, any two choices of so many have a node in
    /// common that does not cheat.
    fn quorum(&self) -> usize;

    /// What a node stores of its setup.
    fn save_setup(&self, setup: &Self::Setup) -> Zeroizing<Vec<u8>>;

    /// Reads a stored setup of party `me`. Bytes that do not fit are an error, never a panic.
    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Self::Setup>;

    /// Makes the part of the common secrets that is not stored, all nodes together. Nodes ask for it under protocols that abort
    /// ([`Adversary::Abort`](crate::protocol::Adversary::Abort)), whenever one of them has started; sessions are joined with the result until the next start.
    fn renew(&self, _setup: &Self::Setup, _net: &mut dyn Net) -> Result<Self::Setup> {
        Err(nothing(self, "made afresh"))
    }

    /// Kinds of material that the nodes keep in stock; none if the protocol needs none.
    fn kinds(&self) -> Vec<Kind> {
        Vec::new()
    }

    /// Whether sessions of nodes take material from a stock.
    fn keeps_stock(&self) -> bool {
        !self.kinds().is_empty()
    }

    /// Makes so many items of a kind, together with all nodes, under a renewed setup: this node's parts of them, one after
    /// another. They have been checked.
    fn make_material(
        &self,
        _setup: &Self::Setup,
        _stream: Stream,
        _kind: &Kind,
        _count: usize,
        _net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        Err(nothing(self, "kept in stock"))
    }

    /// Joins a session, under a renewed setup, with material from the stock.
    fn join_stocked(
        &self,
        setup: &Self::Setup,
        stream: Stream,
        serving: PartySet,
        _stock: Arc<dyn Stock>,
    ) -> Result<Self::Session> {
        self.join(setup, stream, serving)
    }

    /// Takes a stored value from one setup to another, among all nodes: what the node stores of it from then on. Both setups
    /// are renewed; the first must not have been exposed. The value stays the same, whoever cheats, or an error comes of it.
    fn carry_over(
        &self,
        _old: &Self::Setup,
        _new: &Self::Setup,
        _stream: Stream,
        _stored: Stored<'_>,
        _net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        Err(nothing(self, "carried over to other keys"))
    }

    /// Puts together, at a client, what each of the `serving` nodes sent of a value of bytes
    /// ([`ServiceSession::mask_input`], [`ServiceSession::reveal_to_client`]), or of several values one after another. Messages
    /// in the order of the nodes. A protocol that verifies fails with [`Error::CheckFailed`] where some node, or the way,
    /// changed what the client is to learn.
    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>>;

    /// The same of elements of GF(2^128) ([`ServiceSession::reveal_elements`]).
    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>>;
}

fn nothing(config: &(impl ProtocolConfig + ?Sized), what: &str) -> Error {
    Error::Misuse(format!("under {} nothing is {what}", config.name()))
}

/// One node's side of a protocol that serves clients.
pub trait ServiceSession: Session<Shared: Clone> + 'static {
    /// A random value, shared, that covers an input of a client.
    type Mask: Send;

    /// A cipher as nodes evaluate it: its own circuits, or others for the same bytes.
    fn form(&self, cipher: Cipher) -> Cipher {
        cipher
    }

    /// The most lanes to evaluate together in about so many bytes, one at least. The same at all nodes. As many as there are where
    /// material comes out of a stock: it is there already, and its level bounds what one evaluation takes.
    fn lanes_within(&self, _: &Compiled, _bytes: usize) -> usize {
        usize::MAX
    }

    /// One value of the lanes of some, in their order. They come from evaluations of one circuit in this session.
    ///
    /// # Panics
    /// If there is none.
    fn join_lanes(&self, parts: &[&Self::Shared]) -> Self::Shared;

    /// What a node stores of a shared value, views included.
    fn save(&self, value: &Self::Shared) -> Zeroizing<Vec<u8>>;

    /// Reads a stored shared value. Bytes that do not fit are an error, never a panic.
    fn restore(&self, bytes: &[u8]) -> Result<Self::Shared>;

    /// Some lanes of a value as a value of their own.
    ///
    /// # Panics
    /// If the value has not so many lanes.
    fn lanes(&self, value: &Self::Shared, lanes: Range<usize>) -> Self::Shared {
        self.select_lanes(value, &lanes.collect::<Vec<_>>())
    }

    /// Draws a mask of `len` bytes; also returns what this node sends to the client.
    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Self::Mask, Vec<u8>)>;

    /// A mask's bytes cut into elements, the last one filled with zeros. Local.
    fn mask_elements(&self, mask: &Self::Mask) -> Elements;

    /// Opens r_0 + sum of chi^j r_j, for the [`mask_elements`](ServiceSession::mask_elements) r_1, r_2 .. and a blind r_0 that the client
    /// knows ([`ElementArithmetic::random_for_client`]): with it a client checks the mask that it was sent. The client names chi after it
    /// has what all nodes sent of the mask and of r_0, the same to all nodes.
    fn open_mask_check(
        &mut self,
        mask: &Self::Mask,
        blind: &Elements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        let elements = self.mask_elements(mask);
        self.arithmetic().open_blinded_sum(blind, &elements, chi, net)
    }

    /// Shares of x, from the public x ^ r: `masked` stands at `at` in the mask and makes whole blocks of `port`. No byte of
    /// a mask may be used twice; the caller sees to it, and to it that all nodes use the same x ^ r. Bits of a byte beyond
    /// a cell whose width does not divide 8 are dropped: the client sees to it that its cells are narrow.
    fn unmask(
        &mut self,
        mask: &Self::Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Self::Shared>;

    /// Bytes of a value's blocks as people write them, those of all lanes.
    fn block_bytes(&self, value: &Self::Shared) -> usize;

    /// What this node sends to a client that is to learn the first `bytes` bytes of a value's blocks, behind the protocol's check. The
    /// value has so many. No share of the others goes out.
    fn bytes_for_client(&mut self, value: &Self::Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>>;

    /// What this node sends to a client that is to learn a value, behind the protocol's check; in the blocks people write.
    fn reveal_to_client(&mut self, value: &Self::Shared, net: &mut dyn Net) -> Result<Vec<u8>> {
        let all = self.block_bytes(value);
        self.reveal_bytes_to_client(value, all, net)
    }

    /// The same of the first `bytes` bytes of the blocks alone.
    fn reveal_bytes_to_client(
        &mut self,
        value: &Self::Shared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let all = self.block_bytes(value);
        if bytes > all {
            return Err(Error::Misuse(format!("a value of {all} bytes has no {bytes}")));
        }
        self.enter(Phase::Output);
        self.bytes_for_client(value, bytes, net)
    }

    /// What this node sends to a client that is to learn elements, behind the protocol's check.
    fn reveal_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        self.arithmetic().elements_for_client(elements, net)
    }

    /// Blocks of 16 bytes, one a lane, as elements. One round.
    fn elements(&mut self, blocks: &Self::Shared, net: &mut dyn Net) -> Result<Elements>;

    /// Arithmetic on elements.
    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic;

    /// What a node stores of shared elements.
    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>>;

    /// Reads stored elements. Bytes that do not fit are an error, never a panic.
    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements>;
}
