//! What differs between parties that only look on ([`super::passive`]) and a party that cheats ([`super::active`]).

use polyclave_cipher::Cells;

use super::Setup;
use super::lookup::Round;
use super::ring::Ring;
use super::shared::Shared;
use crate::Result;
use crate::net::Net;
use crate::pool::Shares;
use crate::protocol::Owner;
use crate::release::Released;
use crate::session::Stream;

/// One party's means against an adversary. Nobody outside can name it.
pub trait AdversaryModel: Sized + Send + 'static {
    /// Values that have left the protocol.
    type Released: Released;

    /// For one stream of a session.
    fn new(setup: &Setup, stream: &Stream) -> Self;

    /// A value that has left the protocol.
    fn released(cells: Cells) -> Self::Released;

    /// Notes which proof a value needs that is made now.
    fn mark(&self, value: &mut Shared);

    /// Refuses a value that another session has made and not verified.
    fn refuse_foreign(&self, value: &Shared) -> Result<()>;

    /// Compares what two parties each hold of inputs, before anything is multiplied.
    fn compare(&mut self, inputs: &[&Shared], ring: &mut Ring, net: &mut dyn Net) -> Result<()>;

    /// A share of zero that masks products, so many bytes.
    fn zero_share(&mut self, len: usize, ring: &mut Ring) -> Shares;

    /// Remembers products: what was multiplied, and what the party behind has sent of it.
    fn remember(&mut self, rounds: &[Round<'_>], received: &[u8], ring: &Ring);

    /// Verifies what is remembered if it has become much. The same at all parties.
    fn relieve(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()>;

    /// Verifies everything that was multiplied.
    fn check(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()>;

    /// Gives the owners the share that they lack; `None` at a party that is none. Refuses a value that has not been verified.
    fn third_share(
        &mut self,
        value: &Shared,
        to: Owner,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>>;
}
