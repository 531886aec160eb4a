//! The messages in which the proposer tells the others which items they take.
//!
//! First the epoch and the number of ranges, zero if the stock is dry. Then the ranges, if any: lot, first
//! item, and one more than the last, 32 bytes each. Where all nodes serve, a dry stock is followed by how
//! much it holds, and a claim that waits for material comes after messages with the number [`WAITS`].
//!
//! The encoding is our own, not a library's, because a receiver must know the length of a message before it
//! arrives ([`Net::gather`]).

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::{Error, Party};

use super::lot::Refused;
use crate::Result;

/// The party that proposes where all take part.
pub(super) const PROPOSER: Party = Party(0);

/// The most ranges in a claim, which then takes 128 KiB.
pub(super) const MAX_RANGES: usize = 4096;

const HEAD: usize = 32 + 4;
/// In place of a number of ranges: the proposer waits for material, and another message follows.
const WAITS: u32 = u32::MAX;
/// Bytes of a range.
pub(super) const RANGE: usize = 16 + 8 + 8;

/// Items `from..to` of a lot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lot: [u8; 16],
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Range {
    pub(super) fn encode(&self) -> [u8; RANGE] {
        let mut bytes = [0; RANGE];
        bytes[..16].copy_from_slice(&self.lot);
        bytes[16..24].copy_from_slice(&self.from.to_le_bytes());
        bytes[24..].copy_from_slice(&self.to.to_le_bytes());
        bytes
    }

    /// Reads a range from bytes.
    pub(super) fn decode(bytes: &[u8]) -> Range {
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let lot = bytes[..16].try_into().expect("16 bytes");
        Range { lot, from: number(&bytes[16..24]), to: number(&bytes[24..RANGE]) }
    }
}

/// A claim as two messages. The second may be empty.
pub(super) fn encode(epoch: &[u8; 32], ranges: &[Range]) -> [Vec<u8>; 2] {
    let head = [&epoch[..], &(ranges.len() as u32).to_le_bytes()].concat();
    let body = ranges.iter().flat_map(Range::encode).collect();
    [head, body]
}

/// Tells all other parties what they take; no ranges if the stock is dry.
pub(super) fn tell(epoch: &[u8; 32], ranges: &[Range], net: &mut dyn Net) -> Result<()> {
    let [head, body] = encode(epoch, ranges);
    for peer in Party::all(net.parties()).filter(|p| *p != PROPOSER) {
        net.send(peer, &head)?;
        if !body.is_empty() {
            net.send(peer, &body)?;
        }
    }
    Ok(())
}

/// Tells all other parties how much the proposer has, after a claim without ranges.
pub(super) fn tell_left(items: u64, net: &mut dyn Net) -> Result<()> {
    Party::all(net.parties())
        .filter(|p| *p != PROPOSER)
        .try_for_each(|peer| net.send(peer, &items.to_le_bytes()))
}

/// Receives that message.
pub(super) fn hear_left(net: &mut dyn Net) -> Result<u64> {
    let mut items = [0; 8];
    net.recv(PROPOSER, &mut items)?;
    Ok(u64::from_le_bytes(items))
}

/// Tells all other parties that a claim waits for material.
pub(super) fn tell_that_it_waits(epoch: &[u8; 32], net: &mut dyn Net) -> Result<()> {
    let head = [&epoch[..], &WAITS.to_le_bytes()].concat();
    Party::all(net.parties()).filter(|p| *p != PROPOSER).try_for_each(|peer| net.send(peer, &head))
}

/// Receives a claim.
pub(super) fn hear(
    proposer: Party,
    epoch: &[u8; 32],
    patience: Patience,
    net: &mut dyn Net,
) -> Result<Vec<Range>> {
    let count = hear_count(proposer, epoch, patience, net)?;
    hear_ranges(proposer, count, patience, net)
}

/// Receives a claim that may wait for material, as long as `may_wait` says so. One that waits for longer
/// accuses nobody and is no guess of a MAC key: nothing of the request has been opened, no check was
/// answered, and an honest proposer can be so slow, or others can have dropped its material.
pub(super) fn hear_when_it_is_there(
    epoch: &[u8; 32],
    net: &mut dyn Net,
    mut may_wait: impl FnMut() -> bool,
) -> Result<Vec<Range>> {
    let patience = Patience::of(1);
    loop {
        match hear_count(PROPOSER, epoch, patience, net)? {
            WAITS if may_wait() => {}
            WAITS => {
                let detail = "it lets a claim wait, but makes no material for it or not enough".into();
                return Err(Error::OutOfStep { peer: PROPOSER, detail });
            }
            count => return hear_ranges(PROPOSER, count, patience, net),
        }
    }
}

fn hear_count(proposer: Party, epoch: &[u8; 32], patience: Patience, net: &mut dyn Net) -> Result<u32> {
    let mut head = [0; HEAD];
    hear_within_limits(proposer, &mut head, patience, net)?;
    let (of, count) = head.split_at(32);
    if of != epoch {
        return Err(refused(Refused::OtherEpoch));
    }
    Ok(u32::from_le_bytes(count.try_into().expect("4 bytes")))
}

fn hear_ranges(proposer: Party, count: u32, patience: Patience, net: &mut dyn Net) -> Result<Vec<Range>> {
    let count = count as usize;
    if count > MAX_RANGES {
        return Err(refused(Refused::TooLong));
    }
    let mut body = vec![0; count * RANGE];
    if count > 0 {
        hear_within_limits(proposer, &mut body, patience, net)?;
    }
    Ok(body.chunks_exact(RANGE).map(Range::decode).collect())
}

/// Receives a message with `gather`, which demands a minimum of bytes a second: a message that arrives more
/// slowly is not waited for.
fn hear_within_limits(
    proposer: Party,
    message: &mut [u8],
    patience: Patience,
    net: &mut dyn Net,
) -> Result<()> {
    let nothing: Vec<&[u8]> = vec![&[]; net.parties()];
    let mut heard = vec![message];
    heard.extend((1..net.parties()).map(|_| &mut [][..]));
    heard.swap(0, proposer.index());
    let gathered = net.gather(&nothing, &mut heard, patience, &mut |_, _| false)?;
    match gathered.arrived.contains(proposer) {
        true => Ok(()),
        // The error with which it was lost.
        false => net.recv(proposer, heard[proposer.index()]),
    }
}

/// The error for a claim that is not followed. The claim has cost nothing here and touched no secret, and one
/// claim that was lost on the way makes the next ones look wrong. So no node is blamed, except for a
/// malformed message.
pub(super) fn refused(why: Refused) -> Error {
    match why {
        Refused::TooLong => Error::Peer { peer: PROPOSER, detail: why.to_string() },
        why => Error::System(format!("a claim of {PROPOSER} was not followed: {why}")),
    }
}
