//! The threads that keep control streams with peers ([`crate::peers`]): one sends orders, one receives them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_config::Role;
use polyclave_protocol::versions::{self, FeatureSet};
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::clock::now;
use crate::core::Core;
use crate::error::system;
use crate::material::preparation::{MAX_RUNS, Wanted};
use crate::material::state::Material;
use crate::material::{epoch, preparation, refresh, setup};
use crate::peers::orders::{Greeting, Order, State, control_stream};
use crate::peers::registry::{Program, Stream};
use crate::peers::rollback_guard::Judged;
use crate::requests::follow::listen_on_channel;
use crate::threads::{Crew, POLL_INTERVAL, Worker};

/// The pause between two attempts to reach a peer that refuses this node or that this node refuses.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// The most orders of one kind, other than channels, that are carried out at a time: one in progress, and one
/// that may be ending.
const MAX_OTHERS: usize = 2;

/// The threads that carry out the orders of one peer.
struct Crews {
    channels: Crew,
    setups: Crew,
    epochs: Crew,
    fills: Worker<Fill>,
    /// Where others make the material: several runs at a time, in which this node only waits.
    beside: Crew,
    refreshes: Crew,
}

/// The name of a run, and what it makes.
type Fill = ([u8; 16], Wanted);

impl Crews {
    fn new(core: &Core) -> Result<Crews> {
        let material = core.material.clone();
        let fill = move |of: Fill| join_fill(&material, of);
        Ok(Crews {
            channels: Crew::new("channel", core.most_followed),
            setups: Crew::new("setup", MAX_OTHERS),
            epochs: Crew::new("epoch", MAX_OTHERS),
            beside: Crew::new("fill", MAX_RUNS + 1),
            fills: Worker::start(&core.threads, "fill", fill)?,
            refreshes: Crew::new("refresh", MAX_OTHERS),
        })
    }
}

fn join_fill(material: &Material, (name, wanted): Fill) {
    if let Err(e) = preparation::join_fill(material, name, wanted) {
        tracing::warn!(error = material.members.message(&e), "no material was made");
    }
}

/// Keeps up the control stream on which this node gives orders to a peer.
pub(crate) fn give_orders(core: &Arc<Core>, peer: Party) {
    let Some(queue) = core.network.peers.queue(peer) else { return };
    let name = control_stream(core.members.me, peer);
    while !core.threads.is_stopping() {
        let outcome = core.network.open_with(peer, &name).and_then(|mut net| {
            let boot = greet(core, peer, Judged::Beside, &mut net)?;
            core.network.peers.note_trouble(peer, Stream::Ours, None);
            let beat = || core.service.rollback_guard.beat_to(peer, core.material.state());
            core.network
                .peers
                .send_orders(peer, boot, &queue, &mut net, &beat, &|| core.threads.is_stopping())
        });
        after_control(core, peer, Stream::Ours, outcome);
    }
}

/// Keeps up the control stream on which this node takes orders from a peer.
pub(crate) fn take_orders(core: &Arc<Core>, peer: Party) {
    let name = control_stream(peer, core.members.me);
    // Shared by all connections of this peer: a peer that connects again gets no more threads.
    let crews = match Crews::new(core) {
        Ok(crews) => crews,
        Err(e) => return tracing::error!(error = core.members.message(&e), "orders of a peer are not taken"),
    };
    while !core.threads.is_stopping() {
        let outcome = core.network.open_with(peer, &name).and_then(|mut net| {
            let boot = greet(core, peer, Judged::Here, &mut net)?;
            core.network.peers.beat_now(peer);
            core.network.peers.note_trouble(peer, Stream::Theirs, None);
            let (of, program) = (core.members.name_of(peer), core.network.peers.program(peer));
            match (&core.service.of_all, program) {
                // All nodes say the same, a moment before or after.
                (Some(_), _) => tracing::debug!(peer = of, "connected in a standby pair"),
                (None, Some(Program { release, wire, .. })) => {
                    tracing::info!(peer = of, release, wire, "connected");
                }
                (None, None) => {}
            }
            core.network.peers.receive_orders(peer, &mut net, &|| core.threads.is_stopping(), |order| {
                carry_out(core, peer, boot, &crews, order)
            })
        });
        core.service.channels.forget(peer);
        after_control(core, peer, Stream::Theirs, outcome);
    }
}

fn after_control(core: &Core, peer: Party, stream: Stream, outcome: Result<()>) {
    if let Err(e) = &outcome
        && !core.threads.is_stopping()
    {
        let message = match e {
            Error::Closed { detail, .. } | Error::Peer { detail, .. } => core.members.message(detail),
            e => core.members.message(e),
        };
        if core.network.peers.note_trouble(peer, stream, Some(message.clone())) {
            let peer = core.members.name_of(peer);
            match core.service.of_all {
                Some(_) => tracing::debug!(peer, error = message, "not connected in a standby pair"),
                None => tracing::info!(peer, error = message, "not connected"),
            }
        }
    }
    match outcome {
        _ if core.threads.is_stopping() => {}
        Err(e @ (Error::Misuse(_) | Error::System(_) | Error::Disagreement { .. })) => {
            tracing::error!(peer = core.members.name_of(peer), error = core.members.message(&e), "refused");
            let until = Instant::now() + AFTER_REFUSAL;
            while Instant::now() < until && !core.threads.is_stopping() {
                thread::sleep(POLL_INTERVAL);
            }
        }
        Err(_) | Ok(()) => {}
    }
}

/// Exchanges greetings with a peer and judges the peer's. Returns the boot id of the start that the peer is
/// in.
fn greet(core: &Core, peer: Party, judged: Judged, net: &mut TlsNet) -> Result<[u8; 16]> {
    let setup = core.material.setup().map_or([0; 32], |setup| setup.id);
    let prepared = core.store.prepared_refresh().map_err(system)?.unwrap_or_default();
    let past = core.store.past().map_err(system)?;
    let (cluster, holds) = (core.members.digest, core.service.rollback_guard.held_of(peer));
    let (state, release) = (core.material.state(), versions::release().to_owned());
    let lists = core.members.digest_of_last(peer);
    let knows = FeatureSet::known();
    let mine = Greeting { cluster, past, holds, setup, prepared, state, release, knows, lists };
    let theirs = mine.exchange(peer, net)?;
    if theirs.cluster != mine.cluster {
        return Err(Error::Disagreement { peer, field: "cluster file" });
    }
    core.service.rollback_guard.note_holds(peer, theirs.holds);
    let boot = core.service.rollback_guard.judge_past(peer, &theirs.past, judged)?;
    let both = theirs.setup != [0; 32] && setup != [0; 32];
    // The peer has finished a refresh that this node has not finished, or the other way round. The next round
    // settles it.
    let unfinished = theirs.prepared == setup || theirs.setup == prepared;
    if both && theirs.setup != setup && !unfinished && !core.members.is_first_worker() {
        return Err(Error::System(format!(
            "{peer} has other common secrets than this node; after a refresh its worker and this one start again, one of them a little later"
        )));
    }
    if both && theirs.setup != setup && !unfinished {
        let message = Error::System(format!(
            "{peer} has other common secrets than this node: one of the two was put back to a disk or backup from before a refresh. Its \
             shares of keys are of no use any more; restore its backup from after that refresh"
        ));
        core.material.note_trouble(&message);
        return Err(message);
    }
    core.network.peers.note_set_up(peer, theirs.setup != [0; 32]);
    let before = core.network.peers.boot(peer);
    let program = Program {
        release: theirs.shown_release(),
        wire: net.version().unwrap_or_default(),
        knows: theirs.knows,
    };
    core.network.peers.note_greeting(peer, boot, theirs.state, (program, theirs.lists));
    core.material.strategy.peer_started(&core.material, peer, before, boot);
    hear(core, peer, theirs.state);
    Ok(boot)
}

/// Remembers a peer's state.
fn hear(core: &Core, peer: Party, state: State) {
    core.network.peers.note_state(peer, state);
    let lacks = core.members.features().without(state.features);
    if core.network.peers.note_lacks(peer, lacks) {
        let (peer, features) = (core.members.name_of(peer), lacks.names().join(", "));
        tracing::warn!(peer, features, "a peer has not switched on what is on here: it is not used with it");
    }
    if state.quarantined {
        core.material.strategy.give_up(&core.material, "a peer is under quarantine");
    }
}

fn carry_out(core: &Arc<Core>, peer: Party, boot: [u8; 16], crews: &Crews, order: Order) -> Result<()> {
    let done = match order {
        Order::Beat(beat) => {
            hear(core, peer, beat.state);
            core.service.rollback_guard.note_holds(peer, beat.holds);
            core.network.peers.note_clock(peer, beat.now, now());
            return core.service.rollback_guard.note_mark(peer, boot, beat.mark);
        }
        Order::Channel { serving, name } => {
            if serving.iter().next() != Some(peer) || !serving.contains(core.members.me) {
                tracing::warn!(peer = core.members.name_of(peer), "ordered a channel that it does not lead");
                return Ok(());
            }
            let service = core.service.clone();
            crews.channels.spawn(&core.threads, move || listen_on_channel(&service, peer, serving, &name))
        }
        Order::Setup { .. } if peer != Party(0) || !core.members.is_first_worker() => {
            tracing::warn!(peer = core.members.name_of(peer), "ordered a setup that it does not lead");
            return Ok(());
        }
        Order::Setup { name } => {
            let material = core.material.clone();
            crews.setups.spawn(&core.threads, move || {
                if let Err(e) = setup::join(&material, name) {
                    tracing::warn!(
                        error = material.members.message(&e),
                        "the nodes did not agree on common secrets"
                    );
                }
            })
        }
        Order::Renew { .. } | Order::Rotate { .. } | Order::Fill { .. }
            if peer != Party(0)
                || !core.material.strategy.follows(&order)
                || (matches!(order, Order::Rotate { .. }) && !core.members.is_first_worker()) =>
        {
            tracing::warn!(peer = core.members.name_of(peer), "ordered a preparation that it does not lead");
            return Ok(());
        }
        Order::Standby { .. } if peer != Party(0) => {
            tracing::warn!(peer = core.members.name_of(peer), "ordered a preparation that it does not lead");
            return Ok(());
        }
        // One that comes while another is carried out is not needed.
        Order::Standby { name, pair } => {
            let _ = core.pairs.orders.try_send((name, pair));
            return Ok(());
        }
        Order::Renew { name } => {
            let material = core.material.clone();
            crews.epochs.spawn(&core.threads, move || {
                if let Err(e) = epoch::join(&material, name) {
                    tracing::warn!(error = material.members.message(&e), "no epoch was made");
                }
            })
        }
        Order::Fill { name, kind, count, request } => {
            let of = (name, Wanted { kind, count, request });
            let material = core.material.clone();
            match material.role() {
                Role::Serve => crews.beside.spawn(&core.threads, move || join_fill(&material, of)),
                Role::Both | Role::Make => crews.fills.give(of),
            }
        }
        Order::Rotate { name } => {
            let material = core.material.clone();
            crews.refreshes.spawn(&core.threads, move || {
                if let Err(e) = refresh::join(&material, name) {
                    tracing::warn!(error = material.members.message(&e), "the refresh was not completed");
                }
            })
        }
    };
    if let Err(e) = done {
        tracing::error!(
            peer = core.members.name_of(peer),
            error = core.members.message(&e),
            "an order was not carried out"
        );
    }
    Ok(())
}
