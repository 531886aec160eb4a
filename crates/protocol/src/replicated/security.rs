//! What differs between parties that only look on ([`super::passive`]) and a party that cheats
//! ([`super::active`]). By default nothing is compared, remembered or verified.

use polyclave_cipher::Cells;
use zeroize::Zeroizing;

use super::elements::open;
use super::lookup::Round;
use super::registers::Registers;
use super::ring::Ring;
use super::shared::Shared;
use super::{PARTIES, Pair, Setup};
use crate::Result;
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::Net;
use crate::interface::protocol::Owner;
use crate::interface::release::Released;
use crate::interface::session::Stream;
use crate::pool::Shares;
use crate::unchecked::Unchecked;

/// One party's means against an adversary. Code outside this crate cannot name it.
pub trait AdversaryModel: Sized + Send + 'static {
    /// Values that have left the protocol.
    type Released: Released;

    /// For one stream of a session.
    fn new(setup: &Setup, stream: &Stream) -> Self;

    /// A value that has left the protocol.
    fn released(cells: Cells) -> Self::Released;

    /// Notes which proof a value needs that is made now.
    fn mark(&self, _: &mut Unchecked) {}

    /// Refuses a value that another session has made and not verified.
    fn refuse_foreign(&self, _: &Unchecked) -> Result<()> {
        Ok(())
    }

    /// Refuses a value that has not been verified.
    fn refuse_unverified(&self, _: &Unchecked) -> Result<()> {
        Ok(())
    }

    /// Compares what two parties each hold of the inputs of a circuit, before anything is multiplied.
    fn compare(&mut self, _: &Registers<2>, _: &[Shared], _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// A share of zero that masks products, `len` bytes long.
    fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares {
        ring.zero_share(len)
    }

    /// Remembers products: what was multiplied, and what the party behind has sent of it.
    fn remember(&mut self, _: &[Round<'_, 2>], _received: &[u8], _: &Ring) {}

    /// Remembers products of elements of GF(2^128): the factors, and both shares of what they gave.
    fn remember_elements(&mut self, _: [&Elements; 2], _products: &Elements) {}

    /// Verifies what is remembered if it has become much. The same at all parties.
    fn relieve(&mut self, _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Verifies everything that was multiplied.
    fn check(&mut self, _: &mut Ring, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Whether each of some elements is zero, and nothing else about it. What they rest on has been verified.
    fn are_zero(&mut self, elements: &Elements, ring: &mut Ring, net: &mut dyn Net) -> Result<Vec<bool>> {
        let rho = ring.random_elements(elements.count());
        let multiples = ring.multiply_elements(elements, &rho, net)?;
        Ok(open(&multiples, self, ring, net)?.iter().map(|opened| *opened == [0; ELEMENT_BYTES]).collect())
    }

    /// Nothing is verified or released in this session any more.
    fn give_up(&mut self) {}

    /// Gives the owners of a value the share that they lack, from the party before the owner. `shares` are
    /// this party's shares of the value. `None` at a party that is not an owner.
    fn third_share(
        &mut self,
        shares: Pair<&[u8]>,
        to: Owner,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        ring.first_to_owners(shares[0], to, net)
    }

    /// What this party sends to a client of its two shares of a verified value, which have been blinded.
    fn message_to_client(&self, shares: Pair<&[u8]>) -> Result<Vec<u8>>;

    /// At a client: the bytes of a value from the messages of all nodes, or of several values one after
    /// another.
    fn combine(messages: [&[u8]; PARTIES]) -> Result<Zeroizing<Vec<u8>>>;
}
