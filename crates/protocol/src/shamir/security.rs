//! What differs between Shamir sharing against parties that only look on ([`super::passive`]) and against
//! parties that cheat ([`super::active`]): everything that is sent, for elements of GF(2^128) by
//! [`ElementArithmetic`](crate::interface::elements::ElementArithmetic). All else, which ciphers, lookups and
//! inversions are made of, is the same.

use polyclave_cipher::{Cells, Compiled, Matrix};

use super::arithmetic::Arithmetic;
use super::opening::{Opened, Opening};
use super::setup::{Setup, Structure};
use super::{Batch, Shamir};
use crate::interface::net::Net;
use crate::interface::protocol::Faults;
use crate::interface::release::Released;
use crate::interface::service::Element;
use crate::interface::session::Stream;
use crate::interface::tally::Cost;
use crate::pool::Shares;
use crate::{Party, PartySet, Result};
use zeroize::Zeroizing;

/// An image of a cell: the cell's number and the map.
pub type Image<'a> = (usize, &'a Matrix);

/// One party's means against an adversary. Nobody outside can name it.
pub trait AdversaryModel: Sized + Send + Sync + 'static {
    /// Values that have left the protocol.
    type Released: Released;

    /// What is made ahead for products.
    type Material: Default + Send;

    /// First bytes of what is stored: of a setup, of a value.
    const KINDS: [u8; 2];

    /// Whether wrong messages of up to t parties are corrected, and not only found.
    const CORRECTS: bool;

    /// Whether nodes take material from a stock, whose level bounds what one evaluation holds, and do not
    /// make it here and now.
    const HOLDS_STOCK: bool;

    fn new(setup: &Setup, stream: &Stream, serving: PartySet) -> Result<Self>;

    /// A value that has left the protocol.
    fn released(cells: Cells) -> Self::Released;

    /// Makes the material of an evaluation.
    fn prepare(
        protocol: &mut Shamir<Self>,
        compiled: &Compiled,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Batch<Self>>;

    /// Whether a product that is opened under a mask comes with all linear images of it for nothing;
    /// otherwise it takes an opening more if others than multiples are wanted.
    fn products_bring_images(&self) -> bool {
        true
    }

    /// Adds to the cost of an evaluation what its products take ahead: `per_lane` products a lane and
    /// `uniform` once.
    fn cost_of_products(&self, cost: &mut Cost, per_lane: usize, uniform: usize, structure: Structure);

    /// Takes material in, for the products that follow, and gives back what was there.
    fn load(&mut self, material: Self::Material) -> Self::Material;

    /// Opens sharings of degree t; counts the round, not the operations.
    fn open(
        arithmetic: &mut Arithmetic<Self>,
        shares: &[u8],
        public: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Reveals sharings of degree t to one party only; `None` for the others.
    fn reveal_to(
        arithmetic: &mut Arithmetic<Self>,
        owner: Party,
        shares: &[u8],
        net: &mut dyn Net,
    ) -> Result<Option<Shares>>;

    /// See [`Arithmetic::open_masked`].
    fn open_masked(
        arithmetic: &mut Arithmetic<Self>,
        openings: Vec<Opening<'_>>,
        net: &mut dyn Net,
    ) -> Result<Opened>;

    /// See [`Arithmetic::multiply`].
    fn multiply(
        arithmetic: &mut Arithmetic<Self>,
        products: &[(&[u8], &[u8])],
        net: &mut dyn Net,
    ) -> Result<Vec<Shares>>;

    /// Shares images of this party's own cells, image by image.
    fn share_own(
        arithmetic: &mut Arithmetic<Self>,
        cells: &Cells,
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Receives shares of images of another party's cells. `shape` has the numbers of cells and lanes.
    fn receive_share(
        arithmetic: &mut Arithmetic<Self>,
        from: Party,
        shape: (usize, usize),
        images: &[Image<'_>],
        dst: &mut [u8],
        net: &mut dyn Net,
    ) -> Result<()>;

    /// Makes this party's shares of random values ready for a client: no shares of these bytes exist but
    /// those from this drawing.
    fn hand_out_mask(arithmetic: &mut Arithmetic<Self>, message: &mut [u8]);

    /// Makes shares of a value ready for a client, by another sharing of the same value.
    fn hand_out(arithmetic: &mut Arithmetic<Self>, message: &mut [u8], net: &mut dyn Net) -> Result<()>;

    /// What every party tells all others, by party: the same at all that follow the protocol; empty for one
    /// that has told nothing. All messages have one length.
    fn publish(arithmetic: &mut Arithmetic<Self>, message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>>;

    /// Remembers parties that have sent something wrong.
    fn outvote(arithmetic: &mut Arithmetic<Self>, parties: PartySet);

    /// What this party has seen of others' faults.
    fn faults(arithmetic: &Arithmetic<Self>) -> Faults;

    /// At a client: the bytes that the nodes' messages give.
    fn combine(structure: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>>;

    /// At a client: the elements.
    fn combine_elements(structure: Structure, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>>;
}
