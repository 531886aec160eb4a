//! One request: from what a client sent to what it is answered.
//!
//! Every node decides for itself whether the client may do this ([`Plan::make`]). Then it gets a channel to the other serving
//! nodes, and all compare the request in the hello round. Nothing that the client said is used before that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_cipher::Cipher;
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::{Session, Terms, hello};
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::wire::{self, KeyInfo, NewKey, Operation, Reason, Refusal, Request, Right};
use polyclave_transport::{CertificateDer, TlsNet};

use crate::channels::{Channels, Lent, Turn, announce};
use crate::cheat::Partners;
use crate::core::Core;
use crate::desk::Ticket;
use crate::epoch::Ground;
use crate::make::check_new_key;
use crate::modes::{Mode, machine, needs};
use crate::names::Taken;
use crate::store::StoredKey;

/// A request waits so long for a channel at the leading node.
const QUEUE: Duration = Duration::from_secs(10);
/// And at the others, for the leading one to give it a channel.
const FOLLOW: Duration = Duration::from_secs(12);
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
pub(crate) struct Plan<S: ServiceScheme> {
    pub(crate) request: Request,
    /// Of the client and all bytes of its request.
    pub(crate) digest: [u8; 32],
    pub(crate) ticket: Ticket,
    pub(crate) task: Task<S>,
    /// The name of the key that it makes or deletes.
    _taken: Option<Taken>,
}

/// What to do.
pub(crate) enum Task<S: ServiceScheme> {
    Generate { new: NewKey, cipher: Cipher },
    Import { new: NewKey, cipher: Cipher },
    Delete { key: String },
    Use { info: KeyInfo, key: Arc<StoredKey>, mode: Box<dyn Mode<S::Protocol>>, right: Right },
}

fn key_refusal(told: String) -> Refusal {
    Refusal::new(Reason::Key, told)
}

impl<S: ServiceScheme> Plan<S> {
    /// Checks a request against this node's own policy, keys and limits. Nothing is spent and nobody else is asked.
    pub(crate) fn make(
        core: &Core<S>,
        client: &Client,
        request: Request,
        bytes: &[u8],
    ) -> Result<Plan<S>, Refusal> {
        core.refuse_quarantined()?;
        let all = PartySet::all(core.nodes);
        let serving = request.serving;
        if serving.iter().any(|p| !all.contains(p)) || !serving.contains(core.me) {
            let told = format!("this is {} of {}; the request is for {serving}", core.me, core.nodes);
            return Err(Refusal::new(Reason::Malformed, told));
        }
        let needs_all = !matches!(request.operation, Operation::Use { .. });
        let least = if needs_all { core.nodes } else { core.scheme.least_servers() };
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
                let block = core.cipher(&info.properties.cipher)?.block_bytes;
                let mode = machine(how, block, info.id)?;
                Task::Use { info, key: stored, mode, right }
            }
            Operation::Status | Operation::List | Operation::Show { .. } => {
                return Err(Refusal::new(Reason::Malformed, "this needs no other nodes"));
            }
        };
        let certificate = &client.certificate;
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 request of a client");
        hasher.update(&(certificate.len() as u64).to_le_bytes()).update(certificate).update(bytes);
        let (ticket, digest) = (ticket(client, &request.id), hasher.finalize().into());
        Ok(Plan { ticket, request, digest, task, _taken: taken })
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

/// Names a request of a client among the nodes.
pub(crate) fn ticket(client: &Client, id: &[u8; 16]) -> Ticket {
    let mut ticket = blake3::Hasher::new_derive_key("polyclave 2026 ticket of a request");
    ticket.update(id).update(&client.certificate).finalize().into()
}

fn new_key<S: ServiceScheme>(
    core: &Core<S>,
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
    Ok(cipher)
}

/// A channel for one request. Goes home when dropped, to be used again if it is [`sound`](Channel::sound).
pub(crate) struct Channel<'c> {
    net: Option<TlsNet>,
    home: Home<'c>,
    sound: bool,
}

#[expect(clippy::large_enum_variant, reason = "moved once for each request")]
enum Home<'c> {
    Pool(&'c Channels, PartySet),
    Lender(Lent),
}

impl Channel<'_> {
    pub(crate) fn net(&mut self) -> Result<&mut TlsNet, Error> {
        self.net.as_mut().ok_or_else(|| Error::System("the channel is gone".into()))
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
            Home::Pool(channels, serving) => channels.put(*serving, net),
            Home::Lender(lent) => {
                if let Some(net) = net {
                    lent.give_back(net);
                }
            }
        }
    }
}

/// Gets a channel and agrees on the request with the other serving nodes. A channel that turns out to be dead is replaced:
/// nothing has been used yet.
pub(crate) fn begin<'c, S: ServiceScheme>(
    core: &'c Core<S>,
    plan: &Plan<S>,
    ground: Ground,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<(Channel<'c>, Session), Refusal> {
    let deadline = Instant::now() + FOLLOW;
    loop {
        let mut channel = acquire(core, plan, deadline, client_is_there)?;
        let net = channel.net().map_err(unavailable)?;
        match greet(core, plan, ground, net) {
            Ok(session) => {
                net.set_idle_limit(match plan.task {
                    Task::Use { .. } if core.scheme.corrects() => COMPUTE_CORRECTED,
                    _ => COMPUTE,
                });
                return Ok((channel, session));
            }
            Err(e @ Error::Disagreement { .. }) => {
                channel.sound();
                return Err(blame(Refusal::new(Reason::Disagreement, disagreement(&e)), &e));
            }
            // Who cheats is not known; and others may go on over this channel.
            Err(e @ Error::Equivocation { .. }) => {
                return Err(Refusal::new(Reason::Disagreement, e.to_string()));
            }
            // There the client can go on without it.
            Err(e @ Error::Timeout { .. }) if core.scheme.corrects() => {
                return Err(blame(unavailable(e.clone()), &e));
            }
            Err(e) if Instant::now() + HELLO < deadline => {
                tracing::debug!(error = %e, "a channel failed before use");
                // The others with this peer that were free as long have likely died of the same.
                if let Error::Closed { peer, .. } | Error::Timeout { peer, .. } = &e {
                    core.channels.forget(*peer);
                }
            }
            Err(e) => return Err(blame(unavailable(e.clone()), &e)),
        }
    }
}

/// Announces the request, as the leading node does, and says hello, in a limited time.
fn greet<S: ServiceScheme>(
    core: &Core<S>,
    plan: &Plan<S>,
    ground: Ground,
    net: &mut TlsNet,
) -> Result<Session, Error> {
    net.set_idle_limit(HELLO);
    net.set_deadline(Some(Instant::now() + HELLO));
    if plan.request.serving.iter().next() == Some(core.me) {
        announce(Some(&plan.ticket), net)?;
    }
    let terms = terms(core, ground, b"accepted", &plan.digest, &plan.key_digest());
    let session = hello(&terms, &mut Partners { net, cheat: core.cheat });
    net.set_deadline(None);
    session
}

/// A refusal because of an error, and of the node that the error names.
pub(crate) fn blame(refusal: Refusal, error: &Error) -> Refusal {
    match error {
        Error::Closed { peer, .. }
        | Error::Timeout { peer, .. }
        | Error::Peer { peer, .. }
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
pub(crate) fn terms<S: ServiceScheme>(
    core: &Core<S>,
    ground: Ground,
    acceptance: &[u8],
    digest: &[u8; 32],
    key: &[u8; 32],
) -> Terms {
    // First whether it is accepted: a node that cannot serve now says why in its own answer.
    let terms = Terms::new(core.nodes)
        .with("cluster", &core.cluster_digest)
        .with("acceptance of the request", acceptance)
        .with("common secrets", &ground.set_up)
        .with("epoch", &ground.epoch);
    core.scheme.terms(terms).with("request", digest).with("key", key)
}

/// The nodes cannot be reached, or one failed.
pub(crate) fn unavailable(e: Error) -> Refusal {
    Refusal::new(Reason::Unavailable, format!("the nodes could not compute this together: {e}"))
}

fn acquire<'c, S: ServiceScheme>(
    core: &'c Core<S>,
    plan: &Plan<S>,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Channel<'c>, Refusal> {
    let serving = plan.request.serving;
    let leader = serving.iter().next().unwrap_or(core.me);
    if leader == core.me { lead(core, plan) } else { follow(core, plan, leader, deadline, client_is_there) }
}

fn lead<'c, S: ServiceScheme>(core: &'c Core<S>, plan: &Plan<S>) -> Result<Channel<'c>, Refusal> {
    let serving = plan.request.serving;
    if let Some(missing) = serving.iter().find(|p| !core.peers.connected().contains(*p)) {
        let told =
            format!("{missing} is not connected with {} at present; ask other nodes, or later", core.me);
        return Err(Refusal::new(Reason::Unavailable, told).because_of(missing));
    }
    let net = match core.channels.take(serving, QUEUE) {
        Turn::Free(net) => Some(net),
        Turn::Open => None,
        Turn::Busy => {
            let told = "all channels of these nodes are in use; try again later";
            return Err(Refusal::new(Reason::Busy, told));
        }
    };
    // From here on the channel counts as open, until this is dropped.
    let mut channel = Channel { net, home: Home::Pool(&core.channels, serving), sound: false };
    if channel.net.is_none() {
        channel.net = Some(core.open_channel(serving).map_err(|e| blame(unavailable(e.clone()), &e))?);
    }
    Ok(channel)
}

fn follow<'c, S: ServiceScheme>(
    core: &'c Core<S>,
    plan: &Plan<S>,
    leader: Party,
    deadline: Instant,
    client_is_there: &mut dyn FnMut() -> bool,
) -> Result<Channel<'c>, Refusal> {
    let taken = || Refusal::new(Reason::Malformed, "a request with this id is under way");
    let waiting = core.desk.bring(plan.ticket, leader).ok_or_else(taken)?;
    loop {
        match waiting.recv_timeout(Duration::from_millis(200)) {
            Ok(mut lent) => {
                let net = lent.net();
                return Ok(Channel { net, home: Home::Lender(lent), sound: false });
            }
            Err(_) if Instant::now() < deadline && client_is_there() && !core.is_stopping() => {}
            Err(_) => {
                core.desk.leave(&plan.ticket);
                let told = format!(
                    "{leader}, which leads these nodes, did not begin the request; see its own answer"
                );
                return Err(Refusal::new(Reason::Unavailable, told).because_of(leader));
            }
        }
    }
}
