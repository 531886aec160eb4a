//! One run of preprocessing: all nodes make a lot together.
//!
//! A lot can be claimed when all have said that they hold their parts. Whoever fails before says nothing, so the proposer
//! never claims such a lot. A node that has said it and then loses the others cannot tell whether the proposer heard all: it
//! keeps the lot, which serves if it is claimed ([`MOST_IN_DOUBT`](super::MOST_IN_DOUBT)).

use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::{Stream, Terms, hello};
use polyclave_protocol::stock::Kind;
use zeroize::Zeroizing;

use super::Lots;
use crate::Result;
use crate::agreement::tell_all;

const HELD: u8 = 1;

/// Makes a lot of so many items. All nodes do at once, on a stream of their own; `make` makes this node's parts, checked.
pub(crate) fn fill(
    lots: &Lots,
    terms: Terms,
    kind: &Kind,
    count: usize,
    net: &mut dyn Net,
    make: impl FnOnce(Stream, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>>,
) -> Result<()> {
    let bytes = lots.room_for(kind, count)?;
    let terms = terms
        .with("renewal", &lots.epoch)
        .with("kind of material", kind.name.as_bytes())
        .with("bytes of an item", &kind.item_bytes.to_le_bytes())
        .with("items to make", &count.to_le_bytes());
    let mut session = hello(&terms, net)?;
    let items = make(session.stream(), net)?;
    if items.len() != bytes {
        let (name, got) = (kind.name, items.len());
        return Err(Error::System(format!("{got} bytes were made of {count} {name}, which take {bytes}")));
    }
    // No party chooses the name: it follows from what all drew.
    let id = blake3::derive_key("polyclave 2026 lot", &session.id());
    let id = *id.first_chunk().expect("16 of 32 bytes");
    lots.hold(id, kind, items)?;
    let told = tell_all(&[HELD], net);
    lots.settle(id, told.is_ok());
    match told?.into_iter().find(|(_, said)| *said != [HELD]) {
        // It wants the lot unused: it will refuse claims, or follow them; either is safe.
        Some((peer, _)) => Err(Error::Peer { peer, detail: "it does not say that it holds its part".into() }),
        None => Ok(()),
    }
}
