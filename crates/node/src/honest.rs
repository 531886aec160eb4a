//! The behaviour of a node that follows its protocol. This module replaces `cheat.rs` unless the feature
//! `cheats` is on: a program without that feature holds no code that departs from a protocol, so no option or
//! message can make it cheat.

use std::time::Duration;

use polyclave_api::Reply;
use polyclave_protocol::net::Net;

/// How a node behaves: as its protocol says.
#[derive(Clone, Copy)]
pub(crate) struct FaultInjection;

/// The network that the protocol uses.
pub(crate) type InjectedNet<'n> = &'n mut dyn Net;

impl FaultInjection {
    /// The behaviour that the protocol prescribes.
    pub(crate) const HONEST: FaultInjection = FaultInjection;

    pub(crate) fn silence(self, usual: Duration) -> Duration {
        usual
    }

    pub(crate) fn net_of_peers(self, net: &mut dyn Net) -> InjectedNet<'_> {
        net
    }

    pub(crate) fn net_in_hello(self, net: &mut dyn Net) -> InjectedNet<'_> {
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

    pub(crate) fn spoil_dealt<'m>(self, _messages: impl IntoIterator<Item = &'m mut [u8]>) {}

    pub(crate) fn spoil_part(self, _part: &mut [u8]) {}

    pub(crate) fn spoil_stored(self, _share: &mut [u8]) {}
}
