//! One run of preprocessing: all nodes make a lot together.
//!
//! A lot can be claimed when it is known that all nodes hold their parts. [`Claiming`](super::claiming::Claiming) decides who tells whom. A
//! node that has reported its part and hears nothing cannot know what others heard: it keeps the lot, which is used if it is claimed
//! ([`MOST_IN_DOUBT`](super::MOST_IN_DOUBT)), and does not count it.

use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::{HandshakeParameters, Stream, hello};
use polyclave_protocol::stock::Kind;
use zeroize::Zeroizing;

use super::Lots;
use crate::Result;

/// Makes a lot. `count` is its number of items, `level` the target level of the kind. All nodes do this at once, on a stream of their own.
/// `make` makes this node's parts and checks them.
pub(crate) fn fill(
    lots: &Lots,
    parameters: HandshakeParameters,
    kind: &Kind,
    (count, level): (usize, usize),
    net: &mut dyn Net,
    make: impl FnOnce(Stream, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>,
) -> Result<()> {
    let bytes = lots.room_for(kind, count)?;
    let parameters = parameters
        .with("renewal", &lots.epoch)
        .with("kind of material", kind.name.as_bytes())
        .with("bytes of an item", &kind.item_bytes.to_le_bytes())
        .with("items to make", &count.to_le_bytes());
    let mut session = hello(&parameters, net)?;
    lots.claiming.compare(lots, kind, level, net)?;
    let items = make(session.stream(), net)?;
    if items.len() != bytes {
        let (name, got) = (kind.name, items.len());
        return Err(Error::System(format!(
            "the protocol made {got} bytes for {count} {name}, which take {bytes}"
        )));
    }
    // No party chooses the name: it follows from what all drew.
    let id = blake3::derive_key("polyclave 2026 lot", &session.id());
    let id = *id.first_chunk().expect("16 of 32 bytes");
    lots.hold(id, kind, items)?;
    let heard = lots.claiming.hear_that_all_hold(net);
    lots.settle(id, heard.is_ok());
    heard?;
    lots.claiming.tell_that_all_hold(net)
}
