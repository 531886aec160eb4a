//! The threads that serve clients, one for each connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use polyclave_api::{self as api, KeyVersion, Operation, Reason, Refusal, Reply, Request, Use};
use polyclave_config::check_name;
use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_transport::{Caller, Reception, TlsNet};

use crate::Result;
use crate::clients::random::draw;
use crate::clients::rules::Client;
use crate::clients::together::Asking;
use crate::core::Core;
use crate::operator::audit::{BEGUN, Event};
use crate::operator::report::report;
use crate::requests::conversation::kind;
use crate::requests::plan::ticket;
use crate::threads::{IDLE_LOOK, POLL_INTERVAL};

/// How long a client may be silent, between requests and within one.
const IDLE_CLIENT: Duration = Duration::from_secs(120);
const SLOW_CLIENT: Duration = Duration::from_secs(20);
/// How long a client that was refused has to close the connection.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long running requests may take to end when the node stops.
const LAST_REQUESTS: Duration = Duration::from_secs(5);

/// Accepts and serves clients until the node stops.
pub(crate) fn receive_clients(core: &Arc<Core>, reception: &Reception) {
    let running = Arc::new(AtomicUsize::new(0));
    while !core.threads.is_stopping() {
        let Some(caller) = reception.next(POLL_INTERVAL) else { continue };
        let counted = running.clone();
        counted.fetch_add(1, Relaxed);
        let served = core.spawn("client", move |core| {
            serve_client(core, caller);
            counted.fetch_sub(1, Relaxed);
        });
        if let Err(e) = served {
            running.fetch_sub(1, Relaxed);
            tracing::error!(error = core.members.told(&e), "a client was not served");
        }
    }
    let until = Instant::now() + LAST_REQUESTS;
    while running.load(Relaxed) > 0 && Instant::now() < until {
        thread::sleep(POLL_INTERVAL / 10);
    }
}

/// Serves one client's requests, one after the other, until the client leaves.
fn serve_client(core: &Arc<Core>, caller: Caller) {
    let Caller { certificate, mut net, from } = caller;
    let Some(name) = core.rules.client_of(&certificate) else { return };
    let party = core.members.client();
    let connection = match core.service.clients.connection(&name) {
        Ok(held) => held,
        Err(refusal) => {
            core.members.refuse(&mut net, &refusal);
            return linger(core, &mut net);
        }
    };
    tracing::debug!(client = %name, %from, "connected");
    net.set_idle_limit(SLOW_CLIENT);
    let client = Client { name, certificate };
    let (mut quiet_since, mut watches) = (Instant::now(), false);
    while !core.threads.is_stopping() && quiet_since.elapsed() < IDLE_CLIENT {
        if connection.is_given_away() {
            return give_away(core, &client.name, &mut net);
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
        net.set_deadline(Some(Instant::now() + SLOW_CLIENT));
        let Ok(bytes) = api::receive_bytes(&mut net, party) else { return };
        net.set_deadline(None);
        if !answer(core, &client, &bytes, &mut net, &mut watches) {
            return linger(core, &mut net);
        }
        connection.end();
        quiet_since = Instant::now();
    }
}

/// Ends a connection that was given away. Its client may be sending a request, or have sent one: the refusal tells it that nothing has
/// happened, and that it may ask again. A client that has asked nothing finds words that it did not ask for, and leaves the connection.
fn give_away(core: &Core, client: &str, net: &mut TlsNet) {
    let told = format!("this connection was closed for another one of {client}; try again");
    core.members.refuse(net, &Refusal::new(Reason::Busy, told));
    linger(core, net);
}

/// Reads what a client had sent before it could know that it was refused. Closing the connection with unread bytes would reset it, and the
/// client would not receive the reason.
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

/// Answers one request. Returns whether the connection can serve another. `watches` says whether a report was given on it before.
fn answer(core: &Arc<Core>, client: &Client, bytes: &[u8], net: &mut TlsNet, watches: &mut bool) -> bool {
    let began = Instant::now();
    let party = core.members.client();
    // The version first: a request of another version can have other bytes from there on.
    let request: Result<Request, Refusal> = match api::version_of(bytes) {
        Some(other) if other != api::VERSION => {
            let older = if other < api::VERSION { "the client" } else { "this node" };
            let told = format!(
                "the client speaks version {other}, this node version {}: upgrade {older}",
                api::VERSION
            );
            // During an upgrade another worker of this node may serve that version.
            Err(Refusal::new(Reason::Unavailable, told))
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
    let kind = kind(&request.operation);
    let key = key_of(&request.operation).to_owned();
    let mut detail = match behalf(&request.on_behalf_of) {
        Ok(whom) => format!("{whom} {}", described(&request.operation)).trim().to_owned(),
        Err(refusal) => {
            core.members.refuse(net, &refusal);
            return false;
        }
    };
    let (ticket, id) = (ticket(client, &request.id), request.id);
    let event = Event { client: &client.name, operation: kind, key: &key, request: id, ..Event::default() };
    // What other workers have changed is shown, too.
    let known = || core.material.sync();
    let begun = |detail: &str| core.logbook.admit(&Event { outcome: BEGUN, detail, ..event });
    let (blocks, result) = match &request.operation {
        Operation::Random { bytes } => {
            (0, tell(core, begun(&detail).and_then(|()| draw(core, client, *bytes)), net))
        }
        // Always answered, so that a client can learn why other requests are refused.
        Operation::Status => (0, tell(core, Ok(Reply::Status(core.status())), net)),
        // Asked for every second. The first one on a connection has its lines in the audit log, and the others are not counted.
        Operation::Report if *watches => return tell(core, report(core, client), net).is_ok(),
        Operation::Report => {
            let told = tell(core, begun(&detail).and_then(|()| report(core, client)), net);
            *watches = told.is_ok();
            (0, told)
        }
        Operation::Show { key } => (
            0,
            tell(
                core,
                begun(&detail)
                    .and_then(|()| known())
                    .and_then(|()| core.service.keys.show(&core.rules, client, key)),
                net,
            ),
        ),
        Operation::List { after, version } => {
            let listed = || core.service.keys.list(&core.rules, client, (after, *version));
            (0, tell(core, begun(&detail).and_then(|()| known()).and_then(|()| listed()), net))
        }
        _ => {
            let asking = Asking { core, client, ticket, bytes };
            let mut told = detail.clone();
            let served = asking.serve(request, net, (event, &mut told));
            detail = told;
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
    core.logbook.note(&Event { outcome, blocks, detail: &detail, ..event });
    result.is_ok()
}

/// Answers a request that a node answers alone: with a reply, or with the reason why there is none.
fn tell(core: &Core, reply: Result<Reply, Refusal>, net: &mut TlsNet) -> Result<(), Refusal> {
    let reply = reply.inspect_err(|refusal| core.members.refuse(net, refusal))?;
    api::send(net, core.members.client(), &reply).map_err(lost)
}

fn lost(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, e.to_string())
}

fn key_of(operation: &Operation) -> &str {
    match operation {
        Operation::Status | Operation::Report | Operation::List { .. } | Operation::Random { .. } => "",
        Operation::Generate(new) | Operation::Import(new) | Operation::ImportComponent { new, .. } => {
            &new.name
        }
        Operation::ImportSealed(sealed) => &sealed.new.name,
        Operation::Derive { new, .. }
        | Operation::Copy { new, .. }
        | Operation::Unwrap { new, .. }
        | Operation::UnwrapBlock { new, .. } => &new.name,
        Operation::Show { key }
        | Operation::Delete { key, .. }
        | Operation::Rotate { key }
        | Operation::Retire { key, .. }
        | Operation::Configure { key, .. }
        | Operation::Describe { key, .. }
        | Operation::Combine { key, .. }
        | Operation::Use { key, .. }
        | Operation::Rewrap { key, .. } => key,
        Operation::Wrap { key, .. } | Operation::WrapBlock { key, .. } | Operation::Kdf { key, .. } => {
            &key.name
        }
    }
}

/// What the audit log says of an operation besides its key: the other key of an operation on two, which component of a key it is about, what is
/// changed, the file of an envelope, and how much randomness.
fn described(operation: &Operation) -> String {
    match operation {
        Operation::Use { how: Use::EnvelopeWrite(envelope) | Use::EnvelopeOpen { envelope, .. }, .. } => {
            let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex();
            let (header, commitment) = (hash(&envelope.header), hex::encode(envelope.commitment));
            // In an opening it is whatever the client says.
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let owner = Some(&envelope.owner).filter(|owner| owner.chars().all(is_name));
            let owner = owner.map_or("?", String::as_str);
            format!("owner={owner} header=blake3:{header} commitment={commitment}")
        }
        // In which direction is what the client says.
        Operation::Use { how: Use::Tokenize { values, inverse, .. }, .. } => {
            format!("values={values} inverse={inverse}")
        }
        Operation::Random { bytes } => format!("bytes={bytes}"),
        Operation::Derive { base, .. } => version_of("from", "id", base),
        Operation::Kdf { key: KeyVersion { id: Some(id), .. }, .. } => format!("id={}", hex::encode(id)),
        Operation::Rewrap { old, id: Some(id), .. } => format!("from={old} id={}", hex::encode(id)),
        Operation::Rewrap { old, .. } => format!("from={old}"),
        Operation::Copy { key, id, .. } => format!("of={key} id={}", hex::encode(id)),
        Operation::ImportComponent { number, of, .. } => format!("component={number}/{of}"),
        Operation::ImportSealed(sealed) => format!("sealed={}", hex::encode(sealed.nonce)),
        Operation::Wrap { wrapping, key, .. } | Operation::WrapBlock { wrapping, key, .. } => {
            let under = version_of("under", "under_id", wrapping);
            key.id.map_or(under.clone(), |id| format!("{under} id={}", hex::encode(id)))
        }
        Operation::Unwrap { unwrapping, .. } | Operation::UnwrapBlock { unwrapping, .. } => {
            version_of("under", "under_id", unwrapping)
        }
        Operation::Delete { version: Some(version), .. } => format!("version={version}"),
        Operation::Retire { version, state, .. } => format!("version={version} state={state}"),
        Operation::Configure { least_version, deletable, withdraw_wrappable, withdraw_usage, .. } => {
            let mut told = format!("least_version={least_version} deletable={deletable}");
            if *withdraw_wrappable {
                told += " withdrawn=wrappable";
            }
            withdraw_usage.iter().for_each(|usage| told += &format!(" withdrawn={usage}"));
            told
        }
        Operation::Describe { id, .. } => format!("id={}", hex::encode(id)),
        _ => String::new(),
    }
}

/// For whom the client says that it asks, for the audit log. A name of users of the client, whatever it is, can be no other field of a line.
fn behalf(whom: &str) -> Result<String, Refusal> {
    if whom.is_empty() {
        return Ok(String::new());
    }
    check_name("user of a client", whom).map_err(|e| Refusal::new(Reason::Malformed, e.to_string()))?;
    Ok(format!("for={whom}"))
}

/// A key, with the id of its version if the request names one.
fn version_of(name: &str, id: &str, key: &KeyVersion) -> String {
    let of_version = key.id.map_or(String::new(), |of| format!(" {id}={}", hex::encode(of)));
    format!("{name}={}{of_version}", key.name)
}
