//! Material for workers that only serve, made by other workers of their nodes ([`polyclave_config::Roles`]).
//!
//! A worker group that lacks material begins a run as any worker group does ([`super::stock::fill`]). But
//! where others compute, its workers ask: each asks, in the store of its own node, for its part of the same
//! lot ([`ask`]), and waits together with its peers. A worker group that makes material looks for such
//! requests ([`next`]). Its first node's worker undertakes one and orders the others to make it; each finds
//! the request with the same id in its own store, makes its part, and delivers it ([`make`]).
//!
//! # Why the parts fit together
//!
//! * The id of a request is derived from the hello of those that ask, so it never repeats, and no node
//!   chooses it. Those that make the lot compare it in theirs, with kind, number and common secrets.
//! * A lot is made once at most: at each node one worker undertakes it. The answer names the run in which it
//!   was made, and those that asked compare it before they use anything. If one of the makers is killed, or
//!   the parts of two nodes are of different runs, all give the lot up and ask for another one. That accuses
//!   nobody.
//! * The items are checked before they are delivered ([`ServiceConfig::make_material`]), and authenticated
//!   under the MAC key of the common secrets, which all worker groups have. Peers that deliver something
//!   wrong do the same as peers that send wrong shares: the next check fails.
//! * A node trusts its own workers, which have the same shares of keys. `store/src/delivery.rs` says why no
//!   lot can be used twice, and what the server learns.

use std::thread::sleep;
use std::time::{Duration, Instant};

use polyclave_api::{Reason, Refusal};
use polyclave_config::Role;
use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::session::{Stream, hello};
use polyclave_protocol::stock::Kind;
use polyclave_store::{AskedLot, DeliveredLot, LotRequest, LotState, StoreError, WantedLot};
use polyclave_transport::TlsNet;
use zeroize::Zeroizing;

use crate::Result;
use crate::error::system;
use crate::material::epoch::Epoch;
use crate::material::state::Material;
use crate::material::stock::MAX_BYTES_AT_ONCE;
use crate::material::stock::fill::{Run, make_on_streams};
use crate::material::strategy::Preparation;
use crate::peers::exchange::tell_all;

/// How long a worker waits for a lot. The makers may be busy with those of other worker groups.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 4 } else { 100 });
/// How often workers that wait tell each other so: well within the limit for a silent peer.
const TOLD_EVERY: Duration = Duration::from_millis(250);
/// How often the store is asked meanwhile.
const LOOKED_EVERY: Duration = Duration::from_millis(20);
/// How long the request of a peer's worker may take to be in this node's store, too.
const ON_ITS_WAY: Duration = Duration::from_secs(5);

const WAITS: u8 = 0;
const THERE: u8 = 1;
const GONE: u8 = 2;

/// Refuses requests of clients at a worker that only makes material.
pub(crate) fn refuse_at_maker(material: &Material) -> Result<(), Refusal> {
    match material.role().serves() {
        true => Ok(()),
        false => Err(Refusal::new(
            Reason::Unavailable,
            "this worker only makes material, as the cluster's file says; ask another one, or get the present file",
        )),
    }
}

impl Material {
    /// What this worker does.
    pub(crate) fn role(&self) -> Role {
        self.members.cluster.role()
    }
}

/// Whether others may ask this worker for material.
pub(crate) fn is_asked(material: &Material) -> bool {
    material.role().makes() && !material.members.cluster.roles().serve_only.is_empty()
}

/// At the leading node: a request that this worker group makes next.
pub(crate) fn next(material: &Material) -> Option<Preparation> {
    if !is_asked(material) {
        return None;
    }
    if material.epoch().is_none() || !material.network.is_complete() || !material.may_use_mac_key() {
        return None;
    }
    let request = match material.store.undertake_next_lot() {
        Ok(request) => request?,
        Err(e @ StoreError::Server { .. }) => {
            tracing::debug!(error = %e, "the store was not asked whether other workers need material");
            return None;
        }
        Err(e) => {
            tracing::error!(error = %e, "a request of another worker for material cannot be read");
            return None;
        }
    };
    let WantedLot { id, kind, count, .. } = request.wanted;
    if let Err(e) = check(material, &request) {
        tracing::warn!(error = material.members.message(&e), "a request of another worker is not served");
        give_up(material, &id);
        return None;
    }
    Some(Preparation::Fill { kind, count, request: Some(id) })
}

/// At a worker that only serves: gets this node's part of `count` items, while its peers get theirs.
pub(crate) fn ask(
    material: &Material,
    stream: &Stream,
    kind: &Kind,
    count: usize,
    net: &mut dyn Net,
) -> Result<Zeroizing<Vec<u8>>> {
    let setup = material.setup().map_err(|refusal| Error::System(refusal.message))?;
    let at = material.targets.iter().position(|target| target.kind == *kind);
    let too_many = || Error::misuse("a lot of this kind or size cannot be asked for");
    let wanted = WantedLot {
        id: id_of(stream),
        setup: setup.id,
        kind: at.and_then(|at| u8::try_from(at).ok()).ok_or_else(too_many)?,
        count: u32::try_from(count).map_err(|_| too_many())?,
    };
    let is_stopping = || material.threads.is_stopping();
    let lot = wait(material.store.ask_for_lot(wanted).map_err(system), &is_stopping, net)?;
    let items = together(lot, net)?;
    let due = count * kind.item_bytes;
    match items.len() == due {
        true => Ok(items),
        false => {
            Err(Error::System(format!("another worker delivered {} bytes in place of {due}", items.len())))
        }
    }
}

/// Waits until all nodes have their parts. A node that cannot get its own, or stops, tells the others.
fn wait<'s>(
    asked: Result<AskedLot<'s>>,
    is_stopping: &dyn Fn() -> bool,
    net: &mut dyn Net,
) -> Result<AskedLot<'s>> {
    let until = Instant::now() + PATIENCE;
    loop {
        let state = asked.as_ref().map_err(Clone::clone).and_then(|asked| look(asked, is_stopping, until));
        let theirs = tell_all(&[*state.as_ref().unwrap_or(&GONE)], net)?;
        let state = state?;
        if state == GONE {
            let message = "no worker of this node has made the material that this one asked for; see whether those that make material run";
            return Err(Error::System(message.into()));
        }
        if let Some((peer, _)) = theirs.iter().find(|(_, [said])| *said > THERE) {
            return Err(Error::System(format!(
                "the workers of {peer} have not made the material that was asked for"
            )));
        }
        if theirs.iter().all(|(_, [said])| *said == THERE) && state == THERE {
            return asked;
        }
    }
}

/// Looks for a while whether the lot is there. After the time limit it counts as gone also if it is there: a
/// peer could say for ever that it waits.
fn look(asked: &AskedLot<'_>, is_stopping: &dyn Fn() -> bool, until: Instant) -> Result<u8> {
    let answer_by = Instant::now() + TOLD_EVERY;
    loop {
        if is_stopping() || Instant::now() >= until {
            return Ok(GONE);
        }
        match asked.state().map_err(system)? {
            LotState::Delivered => return Ok(THERE),
            LotState::Gone => return Ok(GONE),
            LotState::Awaited if Instant::now() >= answer_by => return Ok(WAITS),
            LotState::Awaited => sleep(LOOKED_EVERY),
        }
    }
}

/// The items, if all nodes have got those of one run.
fn together(asked: AskedLot<'_>, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
    let lot = asked.receive().map_err(system);
    let run = lot.as_ref().map_or([0; 32], |lot| lot.run);
    let theirs = tell_all(&run, net)?;
    let DeliveredLot { run, items } = lot?;
    match theirs.iter().find(|(_, of)| *of != run) {
        None => Ok(items),
        Some((peer, _)) => {
            Err(Error::System(format!("{peer} got material of another run, or none; all ask again")))
        }
    }
}

/// No party chooses it: it follows from what all drew.
fn id_of(stream: &Stream) -> [u8; 16] {
    let id = blake3::derive_key("polyclave 2026 request for a lot", &stream.label());
    *id.first_chunk().expect("16 of 32 bytes")
}

/// Whether a request can be served by this worker.
fn check(material: &Material, request: &LotRequest) -> Result<()> {
    let WantedLot { setup, kind, count, .. } = request.wanted;
    let own = material.setup().map_err(|refusal| Error::System(refusal.message))?;
    if own.id != setup {
        return Err(Error::System("it is for other common secrets".into()));
    }
    let kind = &material
        .targets
        .get(usize::from(kind))
        .ok_or_else(|| Error::misuse("it is for an unknown kind"))?
        .kind;
    let bytes = (count as usize).saturating_mul(kind.item_bytes);
    match count > 0 && bytes <= MAX_BYTES_AT_ONCE {
        true => Ok(()),
        false => Err(Error::Misuse(format!("it is for {count} {}", kind.name))),
    }
}

/// At a worker that makes material: makes a lot that another worker has asked for, together with its peers,
/// and delivers it.
pub(crate) fn make(
    material: &Material,
    epoch: &Epoch,
    id: [u8; 16],
    streams: usize,
    net: &mut TlsNet,
) -> Result<()> {
    let request = find(material, &id)?;
    check(material, &request)?;
    let WantedLot { id, setup, kind, count } = request.wanted;
    let kind = &material.targets[usize::from(kind)].kind;
    let run = Run { kind, count: count as usize, level: 0, streams };
    let parameters = run.compared(material.config.handshake(material.members.handshake()), &epoch.id);
    let parameters = parameters.with("request for a lot", &id).with("common secrets", &setup);
    let judge = |error: &Error| material.judge_making(epoch, error);
    let mut session = hello(&parameters, net).inspect_err(judge)?;
    let items = make_on_streams(&mut session, &run, net, &judge, &|stream, count, net: &mut dyn Net| {
        material.config.make_material(&epoch.setup, stream, kind, count, net)
    })?;
    let id_of_run = blake3::derive_key("polyclave 2026 run for a request", &session.id());
    deliver(material, &request, id_of_run, &items, net).inspect_err(judge)
}

/// The request at this node, which may come a moment after that at the first one.
fn find(material: &Material, id: &[u8; 16]) -> Result<LotRequest> {
    let until = Instant::now() + ON_ITS_WAY;
    loop {
        if let Some(request) = material.store.undertake_lot(id).map_err(system)? {
            return Ok(request);
        }
        if Instant::now() >= until {
            return Err(Error::System(
                "no worker of this node waits for the material that was ordered".into(),
            ));
        }
        sleep(LOOKED_EVERY);
    }
}

fn deliver(
    material: &Material,
    request: &LotRequest,
    run: [u8; 32],
    items: &[u8],
    net: &mut TlsNet,
) -> Result<()> {
    let delivered = material.store.deliver_lot(request, run, items).map_err(system);
    // Then the worker that asked learns at once if one part is missing.
    let theirs = tell_all(&[u8::from(delivered.is_ok())], net)?;
    if !delivered? {
        tracing::info!("a worker that had asked for material does not wait for it any more");
    }
    match theirs.iter().find(|(_, [done])| *done != 1) {
        None => Ok(()),
        Some((peer, _)) => Err(Error::System(format!("{peer} could not deliver its part of a lot"))),
    }
}

/// Gives a request up, if this worker has undertaken it. The worker that asked sees it soon, and asks again.
pub(crate) fn give_up(material: &Material, id: &[u8; 16]) {
    if let Err(e) = material.store.give_up_lot(id) {
        tracing::warn!(error = %e, "a request of another worker was not given up; that worker waits until it is tired of it");
    }
}

#[cfg(test)]
mod tests;
