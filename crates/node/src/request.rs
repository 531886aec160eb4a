//! One request: from what a client sent to what it is answered.
//!
//! Every node decides for itself whether the client may do this ([`Plan::make`]). Then it gets a channel to the other serving
//! nodes, and all compare the request in the hello round. Nothing that the client said is used before that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_cipher::Cipher;
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::{self, Greeted, Session, Terms};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::wire::{
    self, KeyInfo, NewKey, Operation, Reason, Refusal, Request, Right, why_apart,
};
use polyclave_transport::{CertificateDer, TlsNet};

use crate::channels::{Channels, Lent, Turn, announce};
use crate::core::Core;
use crate::epoch::Ground;
use crate::follow::decline;
use crate::make::check_new_key;
use crate::memory::Part;
use crate::modes::{Mode, machine, needs};
use crate::names::Taken;
use crate::pending::Ticket;
use crate::store::StoredKey;
use crate::threads::POLL_INTERVAL;

/// A request waits so long for a channel at the leading node.
const QUEUE: Duration = Duration::from_secs(10);
/// And at the others, for the leading one to give it a channel.
const FOLLOW: Duration = Duration::from_secs(15);
/// When it has, they wait so long for their memory, within the time of the hello.
const FOLLOWERS_TURN: Duration = Duration::from_millis(1500);
/// A node that is not connected is waited for so long.
const RETURNING: Duration = Duration::from_secs(2);
/// A channel that does not open is tried so often.
const TRIES: usize = 2;
/// The hello has to be over in this time, however it trickles: a peer that takes longer is taken for gone.
pub(crate) const HELLO: Duration = Duration::from_secs(5);
/// A peer in the middle of a request may wait for its client as long as this, and for its processor.
const COMPUTE: Duration = Duration::from_secs(45);
/// The same where nodes correct each other, while they use a key: they wait [`ONLINE`] of these for each other's messages, and together
/// no longer than their client waits for them (60 s), so that it hears from them who was silent.
const COMPUTE_CORRECTED: Duration = Duration::from_secs(5);
/// Time limits that such nodes wait for what they cannot do without. Longer than a client may take for a step.
pub(crate) const ONLINE: u32 = 8;

/// Who asks.
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) certificate: CertificateDer<'static>,
}

/// A request that this node is ready to serve.
pub(crate) struct Plan {
    pub(crate) request: Request,
    /// Of the client and all bytes of its request.
    pub(crate) digest: [u8; 32],
    pub(crate) ticket: Ticket,
    pub(crate) task: Task,
    /// Who asks.
    client: String,
    /// The name of the key that it makes or deletes.
    _taken: Option<Taken>,
}

/// What to do.
pub(crate) enum Task {
    Generate { new: NewKey, cipher: Cipher },
    Import { new: NewKey, cipher: Cipher },
    Delete { key: String },
    Use { info: KeyInfo, key: Arc<StoredKey>, mode: Box<dyn Mode>, right: Right },
}

fn key_refusal(told: String) -> Refusal {
    Refusal::new(Reason::Key, told)
}

impl Plan {
    /// Checks a request against this node's own policy, keys and limits. Nothing is spent and nobody else is asked.
    pub(crate) fn make(
        core: &Core,
        client: &Client,
        request: Request,
        bytes: &[u8],
    ) -> Result<Plan, Refusal> {
        core.refuse_damaged()?;
        core.refuse_quarantined()?;
        let all = PartySet::all(core.nodes);
        let serving = request.serving;
        if serving.iter().any(|p| !all.contains(p)) || !serving.contains(core.me) {
            let told = format!("this is {} of {} nodes; the request is for {serving}", core.me, core.nodes);
            return Err(Refusal::new(Reason::Malformed, told));
        }
        let needs_all = !matches!(request.operation, Operation::Use { .. });
        let least = if needs_all { core.nodes } else { core.scheme.quorum() };
        if serving.len() < least {
            let told = format!("{} nodes are to serve; this takes {least}", serving.len());
            return Err(Refusal::new(Reason::Unavailable, told));
        }
        let mut taken = None;
        let task = match &request.operation {
            Operation::Generate(new) => {
                let cipher = new_key(core, client, Right::Generate, new, &mut taken)?;
                Task::Generate { cipher, new: new.clone() }
            }
            Operation::Import(new) => {
                let cipher = new_key(core, client, Right::Import, new, &mut taken)?;
                Task::Import { cipher, new: new.clone() }
            }
            Operation::Delete { key } => {
                core.allow(client, Right::Delete, key)?;
                taken = Some(core.names.take(key)?);
                Task::Delete { key: key.clone() }
            }
            Operation::Use { key, id, how } => {
                let (wanted, right) = needs(how);
                core.allow(client, right, key)?;
                let (info, stored) = core.key(key)?;
                if id.is_some_and(|id| id != info.id) {
                    return Err(key_refusal(format!(
                        "this was made under another key that was named '{key}'"
                    )));
                }
                if !info.properties.modes.contains(&wanted) {
                    let modes: Vec<String> =
                        info.properties.modes.iter().map(wire::Mode::to_string).collect();
                    let told = format!("the key '{key}' was made for {}, not for {wanted}", modes.join(", "));
                    return Err(key_refusal(told));
                }
                refuse_undoing(&info, wanted, right)?;
                let block = core.cipher(&info.properties.cipher)?.block_bytes;
                let mode = machine(how, block, info.id)?;
                Task::Use { info, key: stored, mode, right }
            }
            Operation::Status | Operation::List { .. } | Operation::Show { .. } => {
                return Err(Refusal::new(Reason::Malformed, "this needs no other nodes"));
            }
        };
        let certificate = &client.certificate;
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        hasher.update(&(certificate.len() as u64).to_le_bytes()).update(certificate).update(bytes);
        let (ticket, digest) = (ticket(client, &request.id), hasher.finalize().into());
        Ok(Plan { ticket, request, digest, task, client: client.name.clone(), _taken: taken })
    }

    /// What the key of the request is, for the nodes to compare.
    fn key_digest(&self) -> [u8; 32] {
        let key = match &self.task {
            Task::Use { info, .. } => wire::encode(info).unwrap_or_default(),
            _ => Vec::new(),
        };
        blake3::derive_key("polyclave 2026 properties of a key", &key)
    }
}

/// Keys for CBC and what it undoes were made before such keys were refused: nothing more is encrypted under them in CBC. What was
/// encrypted can be decrypted.
fn refuse_undoing(info: &KeyInfo, wanted: wire::Mode, right: Right) -> Result<(), Refusal> {
    if (wanted, right) != (wire::Mode::Cbc, Right::Encrypt) {
        return Ok(());
    }
    let Some(why) = why_apart(&info.properties.modes) else { return Ok(()) };
    let name = &info.properties.name;
    Err(key_refusal(format!(
        "the key '{name}' was made before this was refused: {why}. What there is can be decrypted"
    )))
}

/// Names a request of a client among the nodes.
pub(crate) fn ticket(client: &Client, id: &[u8; 16]) -> Ticket {
    let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
    ticket.update(id).update(&client.certificate).finalize().into()
}

fn new_key(
    core: &Core,
    client: &Client,
    right: Right,
    new: &NewKey,
    taken: &mut Option<Taken>,
) -> Result<Cipher, Refusal> {
    core.allow(client, right, &new.name)?;
    let cipher = core.cipher(&new.cipher)?;
    check_new_key(new, &cipher).map_err(key_refusal)?;
    *taken = Some(core.names.take(&new.name)?);
    if core.has_key(&new.name)? {
        return Err(key_refusal(format!(
            "there is a key '{}' already; choose another name or delete it",
            new.name
        )));
    }
    core.refuse_too_many_keys()?;
    Ok(cipher)
}

/// A channel for one request. Goes home when dropped, to be used again if it is [`sound`](Channel::sound).
pub(crate) struct Channel<'c> {
    net: Option<TlsNet>,
    home: Home<'c>,
    /// In which the request is computed, unless it only makes or deletes a key.
    _memory: Option<Part<'c>>,
    sound: bool,
}

#[expect(clippy::large_enum_variant, reason = "moved once for each request")]
enum Home<'c> {
    Pool(&'c Channels, PartySet, String),
    Lender(Lent),
}

impl Channel<'_> {
    pub(crate) fn net(&mut self) -> Result<&mut TlsNet, Error> {
        self.net.as_mut().ok_or_else(|| Error::System("the channel is gone".into()))
    }

    /// Whether the client, which lets it idle, is to give it back, since one waits that holds fewer. Only the node that leads knows.
    pub(crate) fn is_to_yield(&self) -> bool {
        match &self.home {
            Home::Pool(channels, serving, client) => channels.is_to_yield(*serving, client),
            Home::Lender(_) => false,
        }
    }

    /// All nodes are in step: the channel can serve again.
    pub(crate) fn sound(&mut self) {
        self.sound = true;
    }
}

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        let net = self.net.take().filter(|_| self.sound);
        match &mut self.home {
            Home::Pool(channels, serving, client) => channels.put(*serving, client, net),
            Home::Lender(lent) => {
                if let Some(net) = net {
                    lent.give_back(net);
                }
            }
        }
    }
}

/// Gets a channel and agrees on the request with the other serving nodes. A channel that turns out to be dead is replaced as
/// long as this node has not opened its nonce: nothing has been used yet, and nobody knows any session id.
///
/// After that an error is the request's last. Somebody who speaks last in the hello sees the session id, from which nonces and
/// counters come, and could end one attempt after the other until it likes what it sees, thousands in the time of one request.
/// So a cheater has one draw for each request: q requests that it makes fail give it the best of q + 1 ids, which is log2 (q + 1) bits,
/// and each is a refusal in the audit logs. (A client asks again by itself a few times only. One that cheats as well can ask for
/// any number of sessions and take the one that it likes, whoever speaks last.)
pub(crate) fn begin<'c>(
    core: &'c Core,
    plan: &Plan,
    ground: Ground,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<(Channel<'c>, Session), Refusal> {
    let deadline = Instant::now() + FOLLOW;
    loop {
        let mut channel = acquire(core, plan, deadline, client_is_there)?;
        let net = channel.net().map_err(unavailable)?;
        let until = Instant::now() + HELLO;
        match greet(core, plan, ground, net, until) {
            Ok(_) if core.conduct.leaves_hello() => {}
            Ok(greeted) => {
                let opened = greeted.open(&mut core.conduct.partners(net));
                net.set_deadline(None);
                net.set_idle_limit(match plan.task {
                    Task::Use { .. } if core.scheme.guarantees_output() => COMPUTE_CORRECTED,
                    _ => COMPUTE,
                });
                return match opened {
                    Ok(session) => Ok((channel, session)),
                    // Who cheats is not known; and others may go on over this channel.
                    Err(e @ Error::Equivocation { .. }) => {
                        Err(Refusal::new(Reason::Disagreement, e.to_string()))
                    }
                    Err(e) => Err(blame(unavailable(e.clone()), &e)),
                };
            }
            Err(e @ Error::Disagreement { .. }) => {
                channel.sound();
                return Err(blame(Refusal::new(Reason::Disagreement, disagreement(&e)), &e));
            }
            Err(e @ Error::Equivocation { .. }) => {
                return Err(Refusal::new(Reason::Disagreement, e.to_string()));
            }
            // There the client can go on without it.
            Err(e @ Error::Timeout { .. }) if core.scheme.guarantees_output() => {
                return Err(blame(unavailable(e.clone()), &e));
            }
            Err(e) if Instant::now() + HELLO < deadline => {
                tracing::debug!(error = core.told(&e), "a channel failed before use");
                // The others with this peer that were free as long have likely died of the same.
                if let Error::Closed { peer, .. } | Error::Timeout { peer, .. } = &e {
                    core.channels.forget(*peer);
                }
            }
            Err(e) => return Err(blame(unavailable(e.clone()), &e)),
        }
    }
}

/// Announces the request, as the leading node does, and takes the first round of the hello, in a limited time that the second
/// has to keep, too.
fn greet(
    core: &Core,
    plan: &Plan,
    ground: Ground,
    net: &mut TlsNet,
    until: Instant,
) -> Result<Greeted, Error> {
    net.set_idle_limit(HELLO);
    net.set_deadline(Some(until));
    if plan.request.serving.iter().next() == Some(core.me) {
        announce(Some(&plan.ticket), net)?;
    }
    let terms = terms(core, ground, b"accepted", &plan.digest, &plan.key_digest());
    let greeted = session::greet(&terms, &mut core.conduct.partners(net));
    if greeted.is_err() {
        net.set_deadline(None);
    }
    greeted
}

/// A refusal because of an error, and of the node that the error names.
pub(crate) fn blame(refusal: Refusal, error: &Error) -> Refusal {
    match error {
        Error::Closed { peer, .. }
        | Error::Timeout { peer, .. }
        | Error::Peer { peer, .. }
        | Error::Unanswered { peer, .. }
        | Error::Disagreement { peer, .. } => refusal.because_of(*peer),
        _ => refusal,
    }
}

fn disagreement(e: &Error) -> String {
    match e {
        Error::Disagreement { peer, field: "acceptance of the request" } => {
            format!("{peer} has not accepted the request, or was not asked; see its own answer")
        }
        Error::Disagreement { peer, field: "request" } => {
            format!("this node and {peer} were asked different things: a client must tell all nodes the same")
        }
        Error::Disagreement { peer, field: "key" } => {
            format!("this node and {peer} hold different keys of this name")
        }
        other => other.to_string(),
    }
}

/// What the nodes compare in the hello round.
pub(crate) fn terms(
    core: &Core,
    ground: Ground,
    acceptance: &[u8],
    digest: &[u8; 32],
    key: &[u8; 32],
) -> Terms {
    // First whether it is accepted: a node that cannot serve now says why in its own answer.
    let terms = Terms::new(core.nodes)
        .with("cluster", &core.cluster_digest)
        .with("acceptance of the request", acceptance)
        .with("memory_per_request_mib (node.toml)", &core.memory.part_bytes().to_le_bytes())
        .with("common secrets", &ground.set_up)
        .with("epoch", &ground.epoch);
    core.scheme.terms(terms).with("request", digest).with("key", key)
}

/// The nodes cannot be reached, or one failed.
pub(crate) fn unavailable(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, format!("the nodes could not compute this together: {e}"))
}

fn acquire<'c>(
    core: &'c Core,
    plan: &Plan,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Channel<'c>, Refusal> {
    let serving = plan.request.serving;
    let leader = serving.iter().next().unwrap_or(core.me);
    if leader == core.me {
        lead(core, plan, client_is_there)
    } else {
        follow(core, plan, leader, deadline, client_is_there)
    }
}

/// What a request may take of this node's memory; nothing if it computes a few blocks at most.
fn memory<'c>(core: &'c Core, plan: &Plan, until: Instant) -> Result<Option<Part<'c>>, Refusal> {
    matches!(plan.task, Task::Use { .. }).then(|| core.memory.take(until)).transpose()
}

fn lead<'c>(
    core: &'c Core,
    plan: &Plan,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Channel<'c>, Refusal> {
    let serving = plan.request.serving;
    let until = Instant::now() + QUEUE;
    let mut tries = 0;
    loop {
        tries += 1;
        await_members(core, serving)?;
        let net = match core.channels.take(serving, &plan.client, QUEUE, client_is_there) {
            Turn::Free(net) => Some(net),
            Turn::Open => None,
            Turn::Busy => {
                let told = format!(
                    "all channels of these nodes that {} may have are in use for {} s now; try again later",
                    plan.client,
                    QUEUE.as_secs()
                );
                return Err(Refusal::new(Reason::Busy, told));
            }
        };
        // From here on the channel counts as lent, until this is dropped.
        let home = Home::Pool(&core.channels, serving, plan.client.clone());
        let mut channel = Channel { net, home, _memory: None, sound: false };
        channel._memory = memory(core, plan, until)?;
        if channel.net.is_some() {
            return Ok(channel);
        }
        match core.open_channel(serving) {
            Ok(net) => {
                channel.net = Some(net);
                return Ok(channel);
            }
            // A node that has just come back may not have been ready for it, and nothing has been used.
            Err(e) if tries < TRIES && !core.scheme.guarantees_output() => {
                tracing::debug!(error = core.told(&e), "a channel did not open");
            }
            Err(e) => return Err(blame(unavailable(e.clone()), &e)),
        }
    }
}

/// The client has reached all of these nodes, so one that is not connected here may just be coming back: it is waited for a
/// moment. Not where the client goes on without it.
fn await_members(core: &Core, serving: PartySet) -> Result<(), Refusal> {
    let until = Instant::now() + if core.scheme.guarantees_output() { Duration::ZERO } else { RETURNING };
    loop {
        let Some(missing) = serving.without(core.peers.connected()).iter().next() else { return Ok(()) };
        if Instant::now() >= until || core.is_stopping() {
            let told =
                format!("{missing} is not connected with {} at present; ask other nodes, or later", core.me);
            return Err(Refusal::new(Reason::Unavailable, told).because_of(missing));
        }
        std::thread::sleep(POLL_INTERVAL / 5);
    }
}

fn follow<'c>(
    core: &'c Core,
    plan: &Plan,
    leader: Party,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Channel<'c>, Refusal> {
    let taken = || Refusal::new(Reason::Malformed, "a request with this id is under way");
    let waiting = core.pending.bring(plan.ticket, leader).ok_or_else(taken)?;
    loop {
        match waiting.recv_timeout(Duration::from_millis(200)) {
            Ok(mut lent) => {
                return match memory(core, plan, Instant::now() + FOLLOWERS_TURN) {
                    Ok(memory) => {
                        let net = lent.net();
                        Ok(Channel { net, home: Home::Lender(lent), _memory: memory, sound: false })
                    }
                    Err(busy) => {
                        // The others need not wait for this node.
                        if let Some(net) = lent.net().and_then(|net| decline(core, net)) {
                            lent.give_back(net);
                        }
                        Err(busy)
                    }
                };
            }
            Err(_) if Instant::now() < deadline && client_is_there() && !core.is_stopping() => {}
            Err(_) => {
                core.pending.leave(&plan.ticket);
                let told = format!(
                    "{leader}, which leads these nodes, did not begin the request; see its own answer"
                );
                return Err(Refusal::new(Reason::Unavailable, told).because_of(leader));
            }
        }
    }
}
