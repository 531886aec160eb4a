//! One run of preprocessing: all nodes make a lot together.
//!
//! A lot can be claimed when it is known that all nodes hold their parts.
//! [`Claiming`](super::claiming::Claiming) decides who tells whom. A node that has reported its part and
//! hears nothing cannot know what others heard. It keeps the lot and uses it if it is claimed
//! ([`MAX_IN_DOUBT`](super::MAX_IN_DOUBT)), but does not count it.

use std::thread;

use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, Stream, hello};
use polyclave_protocol::stock::{Kind, Purpose};
use zeroize::Zeroizing;

use super::Lots;
use crate::Result;

/// What one run makes.
pub(crate) struct Run<'k> {
    pub(crate) kind: &'k Kind,
    /// Items.
    pub(crate) count: usize,
    /// The target level of the kind.
    pub(crate) level: usize,
    /// How many streams make it side by side, the same number at all nodes.
    pub(crate) streams: usize,
}

impl Run<'_> {
    /// What the nodes compare before they make something in an epoch.
    pub(crate) fn compared(&self, parameters: HandshakeParameters, epoch: &[u8; 32]) -> HandshakeParameters {
        let Run { kind, count, streams, .. } = self;
        // Each node keeps another part of a circuit.
        let item_bytes = if kind.purpose == Purpose::Circuits { 0 } else { kind.item_bytes };
        parameters
            .with("renewal", epoch)
            .with("kind of material", kind.name.as_bytes())
            .with("bytes of an item", &item_bytes.to_le_bytes())
            .with("items to make", &count.to_le_bytes())
            .with("streams to make them on", &streams.to_le_bytes())
    }
}

/// What a run does with an error before anything else.
pub(crate) type Judge<'j> = dyn Fn(&Error) + Sync + 'j;

/// Makes a lot. All nodes do this at once. `make` makes and checks this node's parts of a number of items on
/// one stream of the session. Every stream has its own connections and its own thread. `judge` gets every
/// error, once.
pub(crate) fn fill(
    lots: &Lots,
    parameters: HandshakeParameters,
    run: &Run<'_>,
    net: &mut dyn Net,
    judge: &Judge<'_>,
    make: impl Fn(Stream, usize, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> + Sync,
) -> Result<()> {
    let mut session = begin(lots, parameters, run, net).inspect_err(judge)?;
    let items = make_on_streams(&mut session, run, net, judge, &make)?;
    hold(lots, &session, run.kind, items, net).inspect_err(judge)
}

fn begin(
    lots: &Lots,
    parameters: HandshakeParameters,
    run: &Run<'_>,
    net: &mut dyn Net,
) -> Result<AgreedSession> {
    let Run { kind, count, level, .. } = *run;
    lots.room_for(kind, count)?;
    let session = hello(&run.compared(parameters, &lots.epoch), net)?;
    lots.claiming.compare(lots, kind, level, net)?;
    Ok(session)
}

fn hold(
    lots: &Lots,
    session: &AgreedSession,
    kind: &Kind,
    items: Zeroizing<Vec<u8>>,
    net: &mut dyn Net,
) -> Result<()> {
    // No party chooses the name: it follows from what all drew.
    let id = blake3::derive_key("polyclave 2026 lot", &session.id());
    let id = *id.first_chunk().expect("16 of 32 bytes");
    lots.hold(id, kind, items)?;
    let heard = lots.claiming.hear_that_all_hold(net);
    lots.settle(id, heard.is_ok());
    heard?;
    lots.claiming.tell_that_all_hold(net)
}

/// This node's parts of all items of a run, made on several streams side by side.
///
/// The error of a stream is judged as soon as that stream ends. A peer can keep another stream going for as
/// long as it likes, and a failure must count before the peer can use it. Returns the error that says most.
pub(crate) fn make_on_streams(
    session: &mut AgreedSession,
    run: &Run<'_>,
    net: &mut dyn Net,
    judge: &Judge<'_>,
    make: &(impl Fn(Stream, usize, &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> + Sync),
) -> Result<Zeroizing<Vec<u8>>> {
    let Run { kind, count, streams, .. } = *run;
    // A stream for each block at most.
    let streams = streams.clamp(1, count.div_ceil(kind.per_block.max(1)));
    let share = |i: usize| count * (i + 1) / streams - count * i / streams;
    let forks = (1..streams).map(|_| net.fork()).collect::<Result<Vec<_>>>().inspect_err(judge)?;
    let make = |stream, count, net: &mut dyn Net| make(stream, count, net).inspect_err(judge);
    let first = session.stream();
    let others = forks.into_iter().map(|net| (session.stream(), net)).collect::<Vec<_>>();
    let parts = thread::scope(|scope| {
        let threads: Vec<_> = (1..)
            .zip(others)
            .map(|(i, (stream, mut net))| scope.spawn(move || make(stream, share(i), &mut *net)))
            .collect();
        let mut parts = vec![make(first, share(0), net)];
        let ended = || Err(Error::System("a thread that made material has ended".into()));
        parts.extend(threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| ended())));
        parts
    });
    let parts = match parts.iter().filter_map(|part| part.as_ref().err()).min_by_key(|e| e.rank()) {
        Some(error) => return Err(error.clone()),
        None => parts.into_iter().collect::<Result<Vec<_>>>()?,
    };
    let items = joined(parts);
    let bytes = count * kind.item_bytes;
    if items.len() != bytes {
        let (name, got) = (kind.name, items.len());
        return Err(Error::System(format!(
            "the protocol made {got} bytes for {count} {name}, which take {bytes}"
        )));
    }
    Ok(items)
}

/// The parts of all streams, one after another.
fn joined(mut parts: Vec<Zeroizing<Vec<u8>>>) -> Zeroizing<Vec<u8>> {
    if parts.len() == 1 {
        return parts.remove(0);
    }
    // Allocated at its full size: growing would leave copies behind.
    let mut items = Zeroizing::new(Vec::with_capacity(parts.iter().map(|part| part.len()).sum()));
    parts.iter().for_each(|part| items.extend_from_slice(part));
    items
}
