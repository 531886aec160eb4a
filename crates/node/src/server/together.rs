//! A request that the nodes serve together. If it has to wait for a refresh, it waits here, before anything
//! is decided about it.
//!
//! **No deadlock.** A refresh waits for the requests that keep it off ([`HeldOff`]), and a request waits for
//! the other nodes to begin it. So a request could keep a refresh off at one node while it waits for it at
//! another, and each would wait for the other. Therefore a request that has not begun gives way: the nodes at
//! which it waits for the refresh say so to the others (`requests/follow.rs`), and these let the refresh go
//! on, wait as well, and plan the request anew with the shares that they have then. Until a request begins,
//! nothing is done to a key. No nonce is opened, except in a hello of one round, which is not tried a second
//! time. What the request has paid for its first step stays paid, and is not paid again. Circuits that were
//! claimed ahead are spent.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::{self as api, Reason, Refusal, Request};
use polyclave_traces::part;
use polyclave_transport::TlsNet;

use crate::audit::{BEGUN, Event};
use crate::clients::client::Client;
use crate::core::Core;
use crate::error::stops;
use crate::material::refresh::{HeldOff, REFRESHING};
use crate::operations;
use crate::requests::conversation::{Paid, serve};
use crate::requests::pending::Ticket;
use crate::requests::plan::{Asked, Plan};
use crate::threads::POLL_INTERVAL;

/// How long a request waits for a refresh at most. A refresh of some hundred keys takes less, and then its
/// client notices no more than a pause. A client takes a node for gone after a minute without an answer, and
/// people, and programs with time limits of their own, sooner.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// How long it waits for an epoch where its client can ask two nodes, or all three, in place of these.
const SOON: Duration = Duration::from_secs(1);

/// A request and its client.
pub(super) struct Asking<'a> {
    pub(super) core: &'a Arc<Core>,
    pub(super) client: &'a Client,
    pub(super) ticket: Ticket,
    /// The request as it came.
    pub(super) bytes: &'a [u8],
    /// What followed it.
    pub(super) seeds: &'a [u8],
}

impl Asking<'_> {
    /// Serves the request. Returns the blocks that were computed or paid, and what came of it. `detail` is
    /// what the audit log says of it.
    pub(super) fn serve(
        &self,
        mut request: Request,
        net: &mut TlsNet,
        (event, detail): (Event<'_>, &mut String),
    ) -> (u64, Result<(), Refusal>) {
        let Asking { core, client, ticket, bytes, seeds } = *self;
        let (until, mut blocks_before, mut tries) = (Instant::now() + MAX_WAIT, 0, 0);
        let mut paid = Paid::default();
        let refusal = match core.service.clients.request(&client.name) {
            Err(refusal) => refusal,
            Ok(_held) => loop {
                tries += 1;
                let planned = self.hold_off_refresh(request.operation.describe().only_uses(), until, net);
                let planned = planned.and_then(|held_off| {
                    let asked = Asked { request, bytes, seeds, is_first_try: tries == 1 };
                    let _part = part("plan");
                    Ok((held_off, Plan::make(&core.service, client, asked, operations::of)?))
                });
                if let Ok((_, Plan { approved: Some(approved), .. })) = &planned
                    && tries == 1
                {
                    let by = approved.by.join(",");
                    *detail = format!("{detail} approved-by={by}").trim_start().to_owned();
                }
                let begun = || match tries {
                    1 => core.logbook.admit(&Event { outcome: BEGUN, detail, ..event }),
                    _ => Ok(()),
                };
                let (held_off, plan) = match planned.and_then(|planned| begun().map(|()| planned)) {
                    Ok(planned) => planned,
                    Err(refusal) => break refusal,
                };
                match serve(&core.service, client, (plan, paid), held_off, net) {
                    Ok(outcome) => {
                        core.seen.note(
                            &client.name,
                            event.operation,
                            event.key,
                            event.request,
                            outcome.faults,
                        );
                        return (blocks_before + outcome.blocks, outcome.result);
                    }
                    Err(gave_way) => {
                        blocks_before += gave_way.blocks;
                        paid = gave_way.paid;
                    }
                }
                if Instant::now() >= until {
                    break waited_too_long();
                }
                thread::sleep(POLL_INTERVAL / 2);
                request = match api::decode(bytes, core.members.client()) {
                    Ok(request) => request,
                    Err(e) => break Refusal::new(Reason::Malformed, e.to_string()),
                };
            },
        };
        core.service.pending.refuse(ticket);
        core.members.refuse(net, &refusal);
        (blocks_before, Err(refusal))
    }

    /// Waits until no refresh is under way, and holds the next one off.
    fn hold_off_refresh(
        &self,
        only_uses: bool,
        until: Instant,
        net: &mut TlsNet,
    ) -> Result<HeldOff<'_>, Refusal> {
        let service = &self.core.service;
        let others_may_serve = service.members.cluster.has_standby() || service.of_all.is_some();
        let soon = if others_may_serve && only_uses { Instant::now() + SOON } else { until };
        let mut waits = None;
        loop {
            let held_off = self.core.material.hold_off_refresh(only_uses)?;
            let is_over = Instant::now() >= until;
            // In the end the request is told what is lacking.
            let is_ready = is_over || Instant::now() >= soon || !self.core.material.awaits_epoch();
            if let Some(held_off) = held_off.filter(|_| is_ready) {
                return Ok(held_off);
            }
            if self.core.threads.is_stopping() {
                return Err(stops(self.core.members.me));
            }
            if is_over || !net.is_alive() {
                return Err(waited_too_long());
            }
            waits.get_or_insert_with(|| {
                (self.core.service.pending.hold_back(self.ticket), part("wait for a refresh"))
            });
            thread::sleep(POLL_INTERVAL / 5);
        }
    }
}

fn waited_too_long() -> Refusal {
    let message = format!("{REFRESHING} (this request has waited for it for {} s)", MAX_WAIT.as_secs());
    Refusal::new(Reason::Unavailable, message)
}
