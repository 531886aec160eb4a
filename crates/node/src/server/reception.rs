//! The threads that serve clients, one for each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::{self as api, Detail, Operation, Reason, Refusal, Reply, Request, operations};
use polyclave_config::check_name;
use polyclave_protocol::dealt::{MAX_COMPONENTS, SEED_BYTES};
use polyclave_protocol::net::Net;
use polyclave_protocol::versions::{CLIENTS, Spoken};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::{Caller, Reception, TlsNet};
use zeroize::Zeroizing;

use crate::Result;
use crate::audit::{BEGUN, Event};
use crate::clients::client::Client;
use crate::core::Core;
use crate::error::stops;
use crate::operator::report::report;
use crate::requests::plan::ticket;
use crate::server::random::draw;
use crate::server::together::Asking;
use crate::threads::{IDLE_LOOK, POLL_INTERVAL};

/// How long a client may be silent, between requests and within one.
const IDLE_CLIENT: Duration = Duration::from_secs(120);
const SLOW_CLIENT: Duration = Duration::from_secs(20);
/// How long a client that was refused has to close the connection.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long running requests may take to end when the node stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Accepts and serves clients until the node stops. Then it closes the port at once, so that clients ask
/// other nodes, and waits a while for running requests. `pair_of` gives the standby pair of these nodes, if
/// it is there.
pub(crate) fn receive_clients(
    core: &Arc<Core>,
    reception: Reception,
    pair_of: &dyn Fn(PartySet) -> Option<Arc<Core>>,
) {
    let running = Arc::new(AtomicUsize::new(0));
    while !core.threads.is_stopping() {
        let Some(caller) = reception.next(POLL_INTERVAL) else { continue };
        // If there is no such pair at present, the connection is closed: nothing was asked yet.
        let Some(of) = caller.among.map_or(Some(core.clone()), pair_of) else { continue };
        let counted = running.clone();
        counted.fetch_add(1, Relaxed);
        let served = of.spawn("client", move |core| {
            serve_client(core, caller);
            counted.fetch_sub(1, Relaxed);
        });
        if let Err(e) = served {
            running.fetch_sub(1, Relaxed);
            tracing::error!(error = core.members.message(&e), "a client was not served");
        }
    }
    drop(reception);
    let until = Instant::now() + LAST_REQUESTS;
    while running.load(Relaxed) > 0 && Instant::now() < until {
        thread::sleep(POLL_INTERVAL / 10);
    }
}

/// Serves one client's requests, one after the other, until the client leaves.
fn serve_client(core: &Arc<Core>, caller: Caller) {
    let Caller { certificates, mut net, from, .. } = caller;
    let Ok(client) = core.rules.know(&certificates) else { return };
    let party = core.members.client();
    let connection = match core.service.clients.connection(&client.name) {
        Ok(held) => held,
        Err(refusal) => {
            core.members.refuse(&mut net, &refusal);
            return linger(core, &mut net);
        }
    };
    tracing::debug!(client = %client.name, %from, "connected");
    net.set_idle_limit(SLOW_CLIENT);
    let (mut quiet_since, mut watches) = (Instant::now(), false);
    while !core.threads.is_stopping() && quiet_since.elapsed() < IDLE_CLIENT {
        if connection.is_given_away() {
            return give_away(core, &client.name, &mut net);
        }
        if let Err(refusal) = core.rules.refuse_ended(&client) {
            core.members.refuse(&mut net, &refusal);
            return linger(core, &mut net);
        }
        match net.wait(net.members(), IDLE_LOOK) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(_) => return,
        }
        if connection.begin().is_none() {
            return give_away(core, &client.name, &mut net);
        }
        // A limit for the whole request, however slowly the bytes arrive.
        let until = Instant::now() + SLOW_CLIENT;
        net.set_deadline(Some(until));
        let Ok(bytes) = api::receive_bytes(&mut net, party) else { return };
        net.set_deadline(None);
        if core.threads.is_stopping() {
            return core.members.refuse(&mut net, &stops(core.members.me));
        }
        if let Err(refusal) = core.rules.refuse_ended(&client) {
            core.members.refuse(&mut net, &refusal);
            return linger(core, &mut net);
        }
        if !answer(core, &client, (&bytes, until), &mut net, &mut watches) {
            return linger(core, &mut net);
        }
        connection.end();
        quiet_since = Instant::now();
    }
}

/// Ends a connection that was given away. Its client may be sending a request, or have sent one: the refusal
/// tells it that nothing has happened, and that it may ask again. A client that has asked nothing finds words
/// that it did not ask for, and leaves the connection.
fn give_away(core: &Core, client: &str, net: &mut TlsNet) {
    let message = format!("this connection was closed for another one of {client}; try again");
    core.members.refuse(net, &Refusal::new(Reason::Busy, message));
    linger(core, net);
}

/// Reads what a client had sent before it could know that it was refused. Closing the connection with unread
/// bytes would reset it, and the client would not receive the reason.
fn linger(core: &Core, net: &mut TlsNet) {
    let Some(_counted) = core.service.clients.leave() else { return };
    let party = core.members.client();
    let until = Instant::now() + LAST_WORDS;
    net.set_idle_limit(LAST_WORDS);
    net.set_deadline(Some(until));
    while Instant::now() < until && !core.threads.is_stopping() {
        match net.wait(net.members(), POLL_INTERVAL) {
            Ok(Some(_)) if api::receive_bytes(net, party).is_ok() => {}
            Ok(None) => {}
            _ => return,
        }
    }
}

/// Answers one request. Returns whether the connection can serve another. `watches` says whether a report was
/// given on it before. All of the request has to be there `until` then.
fn answer(
    core: &Arc<Core>,
    client: &Client,
    (bytes, until): (&[u8], Instant),
    net: &mut TlsNet,
    watches: &mut bool,
) -> bool {
    let began = Instant::now();
    let party = core.members.client();
    // The version first: a request of another version can have other bytes from there on.
    let request: Result<Request, Refusal> = match api::version_of(bytes) {
        Some(other) if !CLIENTS.spoken().contains(other) => {
            let theirs = u8::try_from(other).unwrap_or(u8::MAX);
            let theirs = Spoken { oldest: theirs, newest: theirs };
            let message = CLIENTS.apart((CLIENTS.spoken(), "this node"), (theirs, "the client"));
            // During an upgrade another worker of this node may serve that version.
            Err(Refusal::new(Reason::Unavailable, message))
        }
        _ => api::decode(bytes, party).map_err(|e| Refusal::new(Reason::Malformed, e.to_string())),
    };
    let request = match request {
        Ok(request) => request,
        Err(refusal) => {
            core.members.refuse(net, &refusal);
            return false;
        }
    };
    let seeds = match seeds_of(&request, (party, until), net) {
        Ok(seeds) => seeds,
        Err(refusal) => {
            core.members.refuse(net, &refusal);
            return false;
        }
    };
    let traced = core.traces.as_ref().and_then(|traces| traces.begin(&request));
    let _in_log = traced.as_ref().map(|of| tracing::info_span!("request", trace = of.number).entered());
    let kind = request.operation.describe().kind();
    let Detail { key, text } = request.operation.describe().audit();
    let key = key.to_owned();
    let mut detail = match behalf(&request.on_behalf_of) {
        Ok(whom) => format!("{whom} {text}").trim().to_owned(),
        Err(refusal) => {
            core.members.refuse(net, &refusal);
            return false;
        }
    };
    let (ticket, id) = (ticket(client, &request.id), request.id);
    if core.service.of_all.is_some() {
        let pair = core.members.names_of(core.members.all()).join(",");
        detail = format!("standby={pair} {detail}").trim_end().to_owned();
    }
    if let Some(traced) = &traced {
        detail = format!("trace={} {detail}", traced.number).trim_end().to_owned();
    }
    let event = Event { client: &client.name, operation: kind, key: &key, request: id, ..Event::default() };
    // What other workers have changed is shown, too.
    let known = || core.material.sync();
    let begun = |detail: &str| core.logbook.admit(&Event { outcome: BEGUN, detail, ..event });
    let (blocks, result) = match &request.operation {
        Operation::Random(operations::Random { bytes }) => {
            (0, tell(core, begun(&detail).and_then(|()| draw(core, client, *bytes)), net))
        }
        // Always answered, so that a client can learn why other requests are refused.
        Operation::Status => (0, tell(core, Ok(Reply::Status(core.status())), net)),
        // Asked for every second. The first one on a connection has its lines in the audit log, and the
        // others are not counted.
        Operation::Report if *watches => return tell(core, report(core, client), net).is_ok(),
        Operation::Report => {
            let message = tell(core, begun(&detail).and_then(|()| report(core, client)), net);
            *watches = message.is_ok();
            (0, message)
        }
        Operation::Show(operations::Show { key }) => (
            0,
            tell(
                core,
                begun(&detail)
                    .and_then(|()| known())
                    .and_then(|()| core.service.keys.show(&core.rules, client, key)),
                net,
            ),
        ),
        Operation::List(operations::List { after, version }) => {
            let listed = || core.service.keys.list(&core.rules, client, (after, *version));
            (0, tell(core, begun(&detail).and_then(|()| known()).and_then(|()| listed()), net))
        }
        _ => {
            let asking = Asking { core, client, ticket, bytes, seeds: &seeds };
            let mut extended = detail.clone();
            let served = asking.serve(request, net, (event, &mut extended));
            detail = extended;
            served
        }
    };
    let outcome = result.as_ref().map_or_else(|refusal| refusal.reason.code(), |()| "done");
    metrics::counter!("polyclave_requests_total", "operation" => kind, "outcome" => outcome).increment(1);
    metrics::counter!("polyclave_blocks_total", "operation" => kind).increment(blocks);
    metrics::histogram!("polyclave_request_seconds", "operation" => kind)
        .record(began.elapsed().as_secs_f64());
    if !matches!(kind, "report" | "status") || result.is_err() {
        core.tally.count(kind, outcome, began.elapsed());
    }
    tracing::debug!(client = %client.name, operation = kind, key = %key, outcome, blocks, "request");
    let event = Event { outcome, blocks, detail: &detail, ..event };
    core.logbook.note(&event);
    traced.iter().for_each(|traced| traced.end(&event, bytes.len()));
    result.is_ok()
}

/// What follows a request whose first mask the client deals: the seeds of this node. Nothing of another one.
fn seeds_of(
    request: &Request,
    (client, until): (Party, Instant),
    net: &mut TlsNet,
) -> Result<Zeroizing<Vec<u8>>, Refusal> {
    if request.dealt.is_empty() {
        return Ok(Zeroizing::default());
    }
    let malformed = |message: String| Refusal::new(Reason::Malformed, message);
    if request.dealt.len() > MAX_COMPONENTS || !matches!(request.operation, Operation::Use(_)) {
        return Err(malformed("a mask is dealt for the use of a key only, in few components".into()));
    }
    net.set_deadline(Some(until));
    let seeds = api::receive_at_most(SEED_BYTES * request.dealt.len(), net, client);
    net.set_deadline(None);
    let missing =
        |e: Error| malformed(format!("the seeds of the mask that the client deals did not come: {e}"));
    seeds.map(Zeroizing::new).map_err(missing)
}

/// Answers a request that a node answers alone: with a reply, or with the reason why there is none.
fn tell(core: &Core, reply: Result<Reply, Refusal>, net: &mut TlsNet) -> Result<(), Refusal> {
    let reply = reply.inspect_err(|refusal| core.members.refuse(net, refusal))?;
    api::send(net, core.members.client(), &reply).map_err(lost)
}

fn lost(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, e.to_string())
}

/// The user on whose behalf the client says that it asks, for the audit log. No such name can pass for
/// another field of a line.
fn behalf(whom: &str) -> Result<String, Refusal> {
    if whom.is_empty() {
        return Ok(String::new());
    }
    check_name("user of a client", whom).map_err(|e| Refusal::new(Reason::Malformed, e.to_string()))?;
    Ok(format!("for={whom}"))
}
