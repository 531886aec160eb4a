//! The threads that keep control streams with peers ([`crate::peers`]): one that gives orders, one that takes them.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::Result;
use crate::core::{CONNECT, Core, system};
use crate::follow::listen_on_channel;
use crate::peers::{Greeting, Order, control_stream};
use crate::set_up;
use crate::threads::{LOOK, spawn};

/// Between two attempts to reach a peer that refuses this node or is refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(5);

/// Keeps a control stream to a peer.
pub(crate) fn give_orders<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party) {
    let Some(queue) = core.peers.queue(peer) else { return };
    let name = control_stream(core.me, peer);
    while !core.is_stopping() {
        let outcome =
            core.mesh.open(&name, [core.me, peer].into_iter().collect(), CONNECT).and_then(|mut net| {
                greet(core, peer, &mut net)?;
                core.peers.send_orders(peer, &queue, &mut net, &|| core.is_stopping())
            });
        after_control(core, peer, outcome);
    }
}

/// Keeps a control stream from a peer.
pub(crate) fn take_orders<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party) {
    let name = control_stream(peer, core.me);
    while !core.is_stopping() {
        let outcome =
            core.mesh.open(&name, [core.me, peer].into_iter().collect(), CONNECT).and_then(|mut net| {
                greet(core, peer, &mut net)?;
                tracing::info!(peer = %peer, "connected");
                core.peers.receive_orders(peer, &mut net, &|| core.is_stopping(), |order| {
                    carry_out(core, peer, order)
                })
            });
        core.channels.forget(peer);
        after_control(core, peer, outcome);
    }
}

fn after_control<S: ServiceScheme>(core: &Core<S>, peer: Party, outcome: Result<()>) {
    match outcome {
        _ if core.is_stopping() => {}
        Err(e @ (Error::Misuse(_) | Error::System(_) | Error::Disagreement { .. })) => {
            tracing::error!(peer = %peer, error = %e, "refused");
            let until = Instant::now() + AFTER_REFUSAL;
            while Instant::now() < until && !core.is_stopping() {
                thread::sleep(LOOK);
            }
        }
        Err(e) => tracing::debug!(peer = %peer, error = %e, "not connected"),
        Ok(()) => {}
    }
}

/// Greets a peer and judges its greeting.
fn greet<S: ServiceScheme>(core: &Core<S>, peer: Party, net: &mut TlsNet) -> Result<()> {
    let setup = core.set_up().map_or([0; 32], |set_up| set_up.id);
    let mine = Greeting { cluster: core.cluster_digest, incarnation: core.incarnation.clone(), setup };
    let theirs = mine.exchange(peer, net)?;
    if theirs.cluster != mine.cluster {
        return Err(Error::Disagreement { peer, field: "cluster file" });
    }
    core.store.peer_seen(peer, &theirs.incarnation).map_err(system)?;
    let both = theirs.setup != [0; 32] && setup != [0; 32];
    if both && theirs.setup != setup {
        return Err(Error::Disagreement { peer, field: "set of common secrets" });
    }
    core.peers.note_set_up(peer, theirs.setup != [0; 32]);
    Ok(())
}

fn carry_out<S: ServiceScheme>(core: &Arc<Core<S>>, peer: Party, order: Order) {
    let done = match order {
        Order::Beat => return,
        Order::Channel { serving, name } => {
            if serving.iter().next() != Some(peer) || !serving.contains(core.me) {
                tracing::warn!(peer = %peer, "ordered a channel that it does not lead");
                return;
            }
            spawn("channel", core, move |core| listen_on_channel(core, peer, serving, &name))
        }
        Order::SetUp { name } => spawn("set-up", core, move |core| {
            if let Err(e) = set_up::join(core, name) {
                tracing::warn!(error = %e, "the common secrets were not agreed on");
            }
        }),
    };
    if let Err(e) = done {
        tracing::error!(error = %e, "an order was not carried out");
    }
}
