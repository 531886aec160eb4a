//! What a protocol needs, beyond evaluating circuits, so that long-lived nodes can serve clients with it.
//!
//! * Setups and shared values that can be stored and read back.
//! * Clients: outside parties that hold no share. The nodes give a client a random shared mask r, it sends
//!   the same x ^ r to every node, and they set \[x\] = (x ^ r) + \[r\]. So no client can make a sharing of a
//!   wrong degree. Where all that a client can deal is a sharing, it deals its first mask itself
//!   ([`dealt`](crate::interface::dealt)). To give a client a value, each serving node sends it a share,
//!   blinded so that the client learns the value and nothing about the sharing.
//! * Elements of GF(2^128) in the representation of GCM (SP 800-38D, section 6.3), for its hash:
//!   [`ElementArithmetic`].
//!
//! Clients' values are bytes in the order in which people write them: the blocks of
//! [`Cells::from_blocks`](polyclave_cipher::Cells).

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cells, Cipher, Compiled, CompiledPort};
use zeroize::Zeroizing;

use crate::interface::any::AnyServiceConfig;
use crate::interface::dealt::HeldSeeds;
pub use crate::interface::elements::{ELEMENT_BYTES, Element, ElementArithmetic, Elements};
use crate::interface::net::Net;
use crate::interface::protocol::{Faults, ProtocolConfig, Session};
use crate::interface::session::Stream;
use crate::interface::stock::{Kind, Stock};
use crate::interface::tally::Phase;
use crate::{Error, GuessGuard, Party, PartySet, Result};

/// The stored form of a shared value: [`ServiceSession::save`], [`ServiceSession::save_elements`].
#[derive(Clone, Copy)]
pub enum Stored<'a> {
    /// Cells, with their views.
    Value(&'a [u8]),
    /// Elements of GF(2^128).
    Elements(&'a [u8]),
}

/// Stored values under another setup, and what carrying them over has shown.
pub struct Refreshed {
    /// What the node stores of each, in order.
    pub stored: Vec<Zeroizing<Vec<u8>>>,
    /// Faults of other nodes that were corrected.
    pub faults: Faults,
}

/// How the nodes share what they store, if that can be moved to other nodes as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    pub(crate) parties: usize,
    pub(crate) threshold: usize,
    /// First bytes of what is stored: of a setup, of a value.
    pub(crate) kinds: [u8; 2],
    /// Whether wrong shares are corrected.
    pub(crate) corrects: bool,
}

/// A protocol that nodes can serve with.
pub trait ServiceConfig: ProtocolConfig<Session: ServiceSession> + Send + 'static {
    /// How many nodes must take part in a request. Where cheating nodes are corrected, any two quorums have a
    /// node in common that does not cheat.
    fn quorum(&self) -> usize;

    /// What a node stores of its setup.
    fn save_setup(&self, setup: &Self::Setup) -> Zeroizing<Vec<u8>>;

    /// Reads a stored setup of party `me`. Bytes that do not fit are an error, never a panic.
    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Self::Setup>;

    /// Makes the part of the common secrets that is not stored, all nodes together. Nodes ask for it before
    /// they carry values over and, under protocols that abort
    /// ([`Adversary::Abort`](crate::interface::protocol::Adversary::Abort)), whenever one of them has
    /// started. Sessions are joined with the result until the next start.
    fn renew(&self, _setup: &Self::Setup, _net: &mut dyn Net) -> Result<Self::Setup> {
        Err(nothing(self, "made afresh"))
    }

    /// Whether the nodes share a MAC key, about which a failed check can tell a cheater something.
    fn has_mac_key(&self) -> bool {
        false
    }

    /// Sets what stands before each comparison that a guess at one bit of this node's share of the MAC key
    /// can make fail, under this setup and all that are renewed from it. Protocols without a MAC key have no
    /// such comparison.
    fn guard_guesses(&self, _setup: &Self::Setup, _guard: Arc<dyn GuessGuard>) {}

    /// Kinds of material that the nodes have in stock, as this party keeps them.
    fn kinds(&self, _me: Party) -> Vec<Kind> {
        Vec::new()
    }

    /// Whether sessions of nodes need material from a stock.
    fn keeps_stock(&self) -> bool {
        !self.kinds(Party(0)).is_empty()
    }

    /// Makes `count` items of a kind, together with all nodes, under a renewed setup. Returns this node's
    /// parts of them, one after another. They have been checked.
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

    /// Carries stored values over from one setup to another, among all nodes, and gives them fresh shares:
    /// the old ones are of no use together with the new. Both setups are renewed. Under protocols with MACs
    /// the first must not have been exposed. All nodes name the same values in the same order. Under an
    /// active protocol each value stays the same or there is an error, no matter which nodes cheat.
    ///
    /// All values are in memory at once: the caller does not take too many together.
    fn refresh(
        &self,
        _old: &Self::Setup,
        _new: &Self::Setup,
        _stream: Stream,
        _stored: &[Stored<'_>],
        _net: &mut dyn Net,
    ) -> Result<Refreshed> {
        Err(nothing(self, "carried over to other keys"))
    }

    /// The same protocol in the form that evaluates most for material that is made on the way, where it is
    /// another one than for material that is in stock. Setups and values are of one kind, and it promises the
    /// same. A setup serves in both forms if it was renewed by this one.
    fn for_many(&self) -> Option<AnyServiceConfig> {
        None
    }

    /// How the nodes share what they store, if it can be moved to other nodes as it is
    /// ([`reshare`](crate::shamir::reshare)). Other values move through masks
    /// ([`handover`](crate::handover)).
    fn sharing(&self) -> Option<Sharing> {
        None
    }

    /// The parties that know each component, if values are shared as sums of components that may be any: then
    /// a client can deal a mask ([`dealt`](crate::interface::dealt)). Else none.
    fn components(&self) -> Vec<PartySet> {
        Vec::new()
    }

    /// At a client: combines the messages of the `serving` nodes about a value of bytes
    /// ([`ServiceSession::mask_input`], [`ServiceSession::reveal_to_client`]), or about several values one
    /// after another. Messages are in the order of the nodes. A protocol that verifies returns
    /// [`Error::CheckFailed`] if a node, or somebody on the way, changed what the client is to learn.
    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>>;

    /// The same for elements of GF(2^128) ([`ServiceSession::reveal_elements`]).
    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>>;
}

fn nothing(config: &(impl ProtocolConfig + ?Sized), what: &str) -> Error {
    Error::Misuse(format!("under {} nothing is {what}", config.name()))
}

/// A mask that one node knows, and its bytes at that node.
pub type OwnMask<M> = (M, Option<Zeroizing<Vec<u8>>>);

/// One node's side of a protocol that serves clients.
pub trait ServiceSession: Session<Shared: Clone> + 'static {
    /// A random shared value that masks an input of a client.
    type Mask: Send;

    /// A cipher in the form in which nodes evaluate it: its own circuits, or others for the same bytes.
    fn form(&self, cipher: Cipher) -> Cipher {
        cipher
    }

    /// The most lanes to evaluate together in about this many bytes, at least one. The same at all nodes. All
    /// lanes where the level of a stock limits what one evaluation takes.
    fn lanes_within(&self, _: &Compiled, _bytes: usize) -> usize {
        usize::MAX
    }

    /// Whether the lanes of two values can be those of one: they have as many cells, as large ones, and the
    /// same views.
    fn can_join(&self, a: &Self::Shared, b: &Self::Shared) -> bool;

    /// Joins the lanes of several values into one, in order. They must come from evaluations of one circuit
    /// in this session, or any two of them [can be joined](ServiceSession::can_join).
    ///
    /// # Panics
    /// If `parts` is empty.
    fn join_lanes(&self, parts: &[&Self::Shared]) -> Self::Shared;

    /// What a node stores of a shared value, views included.
    fn save(&self, value: &Self::Shared) -> Zeroizing<Vec<u8>>;

    /// Reads a stored shared value. Bytes that do not fit are an error, never a panic.
    fn restore(&self, bytes: &[u8]) -> Result<Self::Shared>;

    /// A range of a value's lanes as a value of its own.
    ///
    /// # Panics
    /// If the value has fewer lanes.
    fn lanes(&self, value: &Self::Shared, lanes: Range<usize>) -> Self::Shared {
        self.select_lanes(value, &lanes.collect::<Vec<_>>())
    }

    /// A mask of `len` bytes that one of the nodes knows, and no other, with its bytes at that node: nobody
    /// has to prove to it what they are. `None` at all nodes under a protocol that makes no such values.
    fn mask_of(
        &mut self,
        _owner: Party,
        _len: usize,
        _net: &mut dyn Net,
    ) -> Result<Option<OwnMask<Self::Mask>>> {
        Ok(None)
    }

    /// Draws a mask of `len` bytes; also returns what this node sends to the client.
    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Self::Mask, Vec<u8>)>;

    /// A mask of `len` bytes that a client has dealt. Local.
    fn dealt_mask(&mut self, _seeds: &HeldSeeds, _len: usize) -> Result<Self::Mask> {
        Err(Error::misuse("under this protocol the nodes draw all masks"))
    }

    /// A mask's bytes cut into elements, the last one filled with zeros. Local.
    fn mask_elements(&self, mask: &Self::Mask) -> Elements;

    /// Opens r_0 + sum of chi^j r_j, for the [`mask_elements`](ServiceSession::mask_elements) r_1, r_2 .. and
    /// a blind r_0 that the client knows ([`ElementArithmetic::random_for_client`]). With it a client checks
    /// the mask that it was sent. The client chooses chi after it has all nodes' messages about the mask and
    /// r_0, and sends the same chi to all nodes.
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

    /// Shares of x, from the public x ^ r: `masked` begins at offset `at` of the mask and makes whole blocks
    /// of `port`. The caller ensures that no byte of a mask is used twice, and that all nodes use the same x
    /// ^ r. Bits of a byte beyond a cell whose width does not divide 8 are dropped: the client must keep its
    /// cells narrow.
    fn unmask(
        &mut self,
        mask: &Self::Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Self::Shared>;

    /// Opens the sum of a value's blocks and x, from the public x ^ r: `masked` has as many bytes. All nodes
    /// learn it, and know that it is right.
    fn open_sum(
        &mut self,
        blocks: &Self::Shared,
        (mask, masked): (&Self::Mask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let sum = self.elements(blocks, net)?.add(&self.mask_elements(mask));
        let sum = self.arithmetic().add_public(&sum, masked.as_chunks().0);
        Ok(self.arithmetic().open_elements(&sum, net)?.into_flattened())
    }

    /// An evaluation of a cipher on public blocks of 16 bytes, and [`open_sum`](ServiceSession::open_sum) of
    /// all blocks that come out but the first, in one, if that takes this session less time. Returns the
    /// first block, which stays shared, and the sum. `None` at all nodes, and nothing was sent, if it does
    /// not.
    fn evaluate_and_open_sum(
        &mut self,
        _compiled: &Compiled,
        _blocks: &Cells,
        _round_keys: &Self::Shared,
        _masked: (&Self::Mask, &[u8]),
        _net: &mut dyn Net,
    ) -> Result<Option<(Self::Shared, Vec<u8>)>> {
        Ok(None)
    }

    /// Bytes of a value's blocks in the order in which people write them, over all lanes.
    fn block_bytes(&self, value: &Self::Shared) -> usize;

    /// What this node sends to a client that is to learn the first `bytes` bytes of a value's blocks, behind
    /// the protocol's check. The value has at least `bytes` bytes. No share of the other bytes goes out.
    fn bytes_for_client(&mut self, value: &Self::Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>>;

    /// This node's message to a client that is to learn a value, sent after the protocol's check; in blocks
    /// as people write them.
    fn reveal_to_client(&mut self, value: &Self::Shared, net: &mut dyn Net) -> Result<Vec<u8>> {
        let all = self.block_bytes(value);
        self.reveal_bytes_to_client(value, all, net)
    }

    /// The same for only the first `bytes` bytes of the blocks.
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

    /// This node's message to a client that is to learn elements, sent after the protocol's check.
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
