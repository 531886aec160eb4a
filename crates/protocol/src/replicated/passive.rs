//! Parties that follow the protocol: nothing is verified.

use polyclave_cipher::Cells;
use zeroize::Zeroizing;

use super::ring::add;
use super::security::AdversaryModel;
use super::{PARTIES, Pair, Setup};
use crate::interface::release::Unverified;
use crate::interface::session::Stream;
use crate::{Error, Party, Result};

/// Against a party that only looks on.
pub struct Passive;

impl AdversaryModel for Passive {
    type Released = Unverified<Cells>;

    fn new(_: &Setup, _: &Stream) -> Passive {
        Passive
    }

    fn released(cells: Cells) -> Unverified<Cells> {
        Unverified::new(cells)
    }

    /// The first of the shares: the client adds up those of three nodes.
    fn message_to_client(&self, [first, _]: Pair<&[u8]>) -> Result<Vec<u8>> {
        Ok(first.to_vec())
    }

    fn combine(messages: [&[u8]; PARTIES]) -> Result<Zeroizing<Vec<u8>>> {
        // The median of three lengths is the length that most nodes sent.
        let mut lengths = messages.map(<[u8]>::len);
        lengths.sort_unstable();
        let due = lengths[1];
        if let Some((peer, message)) =
            Party::all(PARTIES).zip(messages).find(|(_, message)| message.len() != due)
        {
            let detail = format!("a message of {} bytes where most nodes sent {due}", message.len());
            return Err(Error::Peer { peer, detail });
        }
        let mut value = Zeroizing::new(vec![0; due]);
        messages.into_iter().for_each(|message| add(&mut value, message));
        Ok(value)
    }
}
