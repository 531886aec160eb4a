//! One run of preprocessing: all nodes make a lot together.
//!
//! A lot can be claimed when all have told the proposer that they hold their parts. Whoever fails before says nothing, so the
//! proposer drops such a lot. When it has heard all, it tells the others. A node that has told the proposer and hears nothing
//! cannot know what the proposer heard: it keeps the lot, which serves if it is claimed ([`MOST_IN_DOUBT`](super::MOST_IN_DOUBT)),
//! and does not count it. Among nodes that correct each other any node may propose, so all tell all: a lot that one counts on is
//! held by all that do not cheat.

use polyclave_protocol::net::Net;
use polyclave_protocol::session::{HandshakeParameters, Stream, hello};
use polyclave_protocol::stock::Kind;
use polyclave_protocol::{Error, Party};
use zeroize::Zeroizing;

use super::Lots;
use super::claims::PROPOSER;
use crate::Result;
use crate::requests::agreement::tell_all;

const HELD: [u8; 1] = [1];

/// Makes a lot of so many items, of a kind of which so many are to be in stock. All nodes do at once, on a stream of their own;
/// `make` makes this node's parts, checked.
pub(crate) fn fill(
    lots: &Lots,
    terms: HandshakeParameters,
    kind: &Kind,
    (count, level): (usize, usize),
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
    lots.compare(kind, level, net)?;
    let items = make(session.stream(), net)?;
    if items.len() != bytes {
        let (name, got) = (kind.name, items.len());
        return Err(Error::System(format!("{got} bytes were made of {count} {name}, which take {bytes}")));
    }
    // No party chooses the name: it follows from what all drew.
    let id = blake3::derive_key("polyclave 2026 lot", &session.id());
    let id = *id.first_chunk().expect("16 of 32 bytes");
    lots.hold(id, kind, items)?;
    let heard = match lots.quorum {
        Some(_) => tell_all(&HELD, net).map(drop),
        None if net.me() == PROPOSER => hear_others(net),
        None => hear_proposer(net),
    };
    lots.settle(id, heard.is_ok());
    heard?;
    if net.me() == PROPOSER && lots.quorum.is_none() {
        Party::all(net.parties()).skip(1).try_for_each(|peer| net.send(peer, &HELD))?;
    }
    Ok(())
}

/// All others hold their parts.
fn hear_others(net: &mut dyn Net) -> Result<()> {
    Party::all(net.parties()).skip(1).try_for_each(|peer| hear(peer, net))
}

/// This node holds its part; the proposer says that all do.
fn hear_proposer(net: &mut dyn Net) -> Result<()> {
    net.send(PROPOSER, &HELD)?;
    hear(PROPOSER, net)
}

fn hear(peer: Party, net: &mut dyn Net) -> Result<()> {
    let mut said = [0];
    net.recv(peer, &mut said)?;
    match said == HELD {
        true => Ok(()),
        false => Err(Error::Peer { peer, detail: "it does not say that a lot is held".into() }),
    }
}
