//! Shares go to the parties that are to learn a value.

use super::PARTIES;
use super::ring::{Ring, next, previous};
use crate::interface::net::Net;
use crate::interface::protocol::Owner;
use crate::pool::Shares;
use crate::{Error, Party, Result};

impl Ring {
    /// Sends this party's first share to the party behind it, if that is an owner of the value: it is the
    /// share that the owner lacks. Returns what came, at an owner. One round.
    pub(super) fn first_to_owners(
        &mut self,
        share: &[u8],
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        self.deliver(share, to, next, previous, net)
    }

    /// The same the other way round: of the second share, to the party before.
    pub(super) fn second_to_owners(
        &mut self,
        share: &[u8],
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        self.deliver(share, to, previous, next, net)
    }

    fn deliver(
        &mut self,
        share: &[u8],
        to: Owner,
        receiver: fn(Party) -> Party,
        sender: fn(Party) -> Party,
        net: &mut dyn Net,
    ) -> Result<Option<Shares>> {
        let owner = match to {
            Owner::All => return self.pass(receiver(self.me), sender(self.me), share, net).map(Some),
            Owner::Party(owner) if owner.index() < PARTIES => owner,
            Owner::Party(owner) => return Err(Error::misuse(format!("{owner} takes no part"))),
        };
        self.counts().rounds += 1;
        if receiver(self.me) == owner {
            net.send(owner, share)?;
        }
        if self.me != owner {
            return Ok(None);
        }
        let mut received = self.pool.take(share.len());
        net.recv(sender(owner), &mut received)?;
        Ok(Some(received))
    }
}
