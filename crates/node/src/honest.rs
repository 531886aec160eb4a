//! A node that does what its protocol says. It stands in the place of `cheat.rs` unless the feature `cheats` is on: a program without
//! that feature holds no code that departs from a protocol, so nothing can tell it to.

use polyclave_protocol::net::Net;
use polyclave_transport::wire::Reply;

/// How a node behaves: as its protocol says.
#[derive(Clone, Copy)]
pub(crate) struct Conduct;

/// The network as the protocol gets it.
pub(crate) type Partners<'n> = &'n mut dyn Net;

impl Conduct {
    /// As the protocol says.
    pub(crate) const HONEST: Conduct = Conduct;

    pub(crate) fn partners(self, net: &mut dyn Net) -> Partners<'_> {
        net
    }

    pub(crate) fn leaves_hello(self) -> bool {
        false
    }

    pub(crate) fn denies_marks(self) -> bool {
        false
    }

    pub(crate) fn instead_of_answer(self) -> Vec<Reply> {
        Vec::new()
    }

    pub(crate) fn delay(self) {}

    pub(crate) fn spoil<const N: usize>(self, _answers: [&mut Vec<u8>; N]) {}
}
