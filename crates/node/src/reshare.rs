//! All keys move from the nodes of one cluster to those of another: to replace lost nodes, to add and remove
//! some, to change the threshold.
//!
//! It is done while the nodes do not serve. Each operator runs it at their node, old nodes and new ones. The
//! nodes open a mesh of their own, compare both cluster files, and then
//!
//! ```text
//!   idle  --shares dealt, verified, stored beside the old ones-->  prepared  --all have prepared the same-->  done, or left
//!     ^                                                               |
//!     +------------- all are here, none is done, some lack it --------+
//! ```
//!
//! 1. Old nodes tell all others which keys they hold (`reshare/offers.rs`). The new nodes agree on fresh
//!    common secrets. Then keys move in one of two ways (`reshare/moving.rs`). Under Shamir sharing, the old
//!    nodes deal their shares to the new ones (`reshare/shares.rs`, `protocol/src/shamir/reshare.rs`). Under
//!    protocols with MACs, and from one protocol to another, keys are opened under masks that the new nodes
//!    share (`reshare/masks.rs`, `reshare/receiving.rs`, `protocol/src/handover.rs`).
//! 2. The new nodes compute the check value of every key from the new shares, and compare it with the one
//!    that was stored.
//! 3. Each new node stores its shares and common secrets beside what it has in use. Each node that leaves
//!    notes that it is about to. From then on the node refuses to run (`node.rs`). Then all nodes tell each
//!    other that they have stored it.
//! 4. Each new node takes the new shares into use in the place of the old ones. Each node that leaves
//!    destroys its shares. One transaction each. Afterwards the free pages of the store are erased
//!    (`store/src/erase.rs`).
//!
//! **No key is lost, and no two sets of nodes can use a key.** A node takes the new shares into use, or
//! destroys the old ones, only after all have said that they prepared them. So if a node is done, all others
//! are prepared or done, and a rerun completes them. If no node is done, and all are here, no node has taken
//! anything into use, and they begin anew. An old node that is prepared does not run, and the old nodes
//! outside the move are fewer than a quorum (`reshare/plan.rs`). So once any new node can serve, the old
//! cluster cannot.
//!
//! If the rules of a node want approval of a reshare, it takes part only with one for exactly these two
//! cluster files. A node that has prepared the move may complete it without.
//!
//! An operator may give a prepared move up for good ([`abandon`]) only if no other node is done.
//!
//! **Which keys**: all that every old node that takes part holds, pending or announced. A key that is
//! announced at some of them and missing or deleted at others stops the move, as it stops a refresh. The
//! exception is an interrupted deletion: it is completed or given up. Ids of deleted keys move, too, so that
//! they stay deleted.
//!
//! **Adversary**: the adversary of the protocol; if the clusters have two protocols, that of the weaker one.
//! Under a protocol that withstands cheating, a cheater can stop the move, and is named where that can be
//! known. It can understate what it has spent of a key's budget (`reshare/offers.rs`), by its own part.

#[cfg(test)]
mod fuzz;
pub(crate) mod masks;
mod moving;
mod next_step;
pub(crate) mod offers;
mod plan;
pub(crate) mod receiving;
mod shares;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_api::{Approval, Refusal, Subject};
use polyclave_config::{Cluster, NodeDir, NodeOperation};
use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_protocol::session::{AgreedSession, HandshakeParameters, hello};
use polyclave_store::{Reshared, Secret, Stage, Store};
use polyclave_transport::{Identity, Limits, Mesh, TlsNet};

use crate::audit::Event;
use crate::audit::logbook::{Logbook, open_log};
use crate::clients::approvals::Approvals;
use crate::clients::rules::Rules;
use crate::clock::now;
use crate::error::system;
use crate::keys::standby::destroy_others;
use crate::operator::reload;
use crate::peers::exchange::tell_all;
use crate::{FaultInjection, Result};
use next_step::{NextStep, ReshareState, next_step};
use plan::Plan;

/// What the nodes are about to do, compared in the hello. It does not change: what they tell each other here
/// is of the version on which the hello agrees, the lowest of all
/// ([`NODES`](polyclave_protocol::versions::NODES), `AgreedSession::version`). The number is from before
/// there were such versions.
const PURPOSE: &[u8] = b"reshare 5";
/// How long a node may compute and store before the others hear from it again. Under protocols with MACs,
/// some nodes make material for a whole piece of the keys meanwhile (`reshare/masks.rs`): two nodes on two
/// busy cores took 15 s for the largest one. A program that ends is noticed at once, however long this is.
const IDLE: Duration = Duration::from_secs(600);
/// What the nodes say at the end.
const PREPARED: [u8; 1] = [1];
const DONE: [u8; 1] = [2];

/// What a move has done at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Whether the node has left the cluster, and destroyed its shares.
    pub left: bool,
    /// How many keys moved.
    pub keys: u64,
    /// Whether all nodes have said that they are done, too.
    pub all: bool,
}

/// Takes part in the move of all keys to the nodes of `new`, at the node of a directory, which is not
/// running. `from` is the old cluster's file, if the node does not have it. Waits for the other nodes, and
/// tries again while they come and go, for as long as `wait`.
pub fn reshare(
    dir: &NodeDir,
    new: &Cluster,
    from: Option<&Cluster>,
    approval: Option<&Approval>,
    wait: Duration,
    tell: &mut dyn FnMut(&str),
) -> Result<Done> {
    take_part(dir, (new, from, approval), (wait, FaultInjection::HONEST), tell)
}

/// [`reshare`] at a node that cheats.
#[cfg(feature = "cheats")]
pub fn reshare_and_cheat(
    dir: &NodeDir,
    new: &Cluster,
    from: Option<&Cluster>,
    (wait, cheat): (Duration, crate::Cheat),
    tell: &mut dyn FnMut(&str),
) -> Result<Done> {
    take_part(dir, (new, from, None), (wait, cheat.into()), tell)
}

fn take_part(
    dir: &NodeDir,
    (new, from, approval): (&Cluster, Option<&Cluster>, Option<&Approval>),
    (wait, faults): (Duration, FaultInjection),
    tell: &mut dyn FnMut(&str),
) -> Result<Done> {
    let secret = Secret::from_bytes(*dir.secret().map_err(system)?);
    let store = Arc::new(Store::alone_or_new(dir, &secret).map_err(system)?);
    let before = store.reshared().map_err(system)?;
    let old = old_cluster(dir, new, from, before.as_ref())?;
    let plan = Plan::new(old, new.clone())?;
    let me = plan.place_of(dir)?;
    refuse_other(before.as_ref(), new)?;
    let role = plan.role(me);
    if role.new.is_some() {
        dir.check_member(new).map_err(system)?;
    }
    if role.old.is_none() && !store.is_blank().map_err(system)? && !is_of(before.as_ref(), new) {
        return Err(Error::misuse(
            "this node already has keys or common secrets, and is no node of the old cluster that takes part; a new node needs a \
             directory of its own (`polyclave node init`)",
        ));
    }
    let audit = dir.settings().audit.enabled.then(|| open_log(dir, &store)).transpose()?;
    let logbook = Logbook::new(audit, store.clone());
    if !is_of(before.as_ref(), new) {
        approve((dir, &store, &logbook), &plan, approval)?;
    }
    let mut node = Node { plan: &plan, me, dir, store: &store, logbook: &logbook, tell, faults };
    let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key)?;
    let (nodes, listen) = (plan.addresses(), dir.settings().listen.as_str());
    let limits = Limits { idle: IDLE, ..Limits::default() };
    let mesh = Mesh::start(listen, identity, limits, plan.place(me), &nodes, plan.mesh_id())?;
    let message = |e: &Error| plan.in_names(e);
    (node.tell)(&format!("waits for {}, where the same command has to run", plan.others(me)));
    let until = Instant::now() + wait;
    let mut done = node.is_done(before.as_ref())?;
    let outcome = loop {
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_secs(1));
        let attempt = mesh.open("reshare", plan.everybody(), left).and_then(|mut net| node.attempt(&mut net));
        match attempt {
            // The others may need this node to complete what they have prepared.
            Ok(mine) if !mine.all && Instant::now() < until => {
                (node.tell)("is done, and waits for a node that was interrupted");
                done = Some(mine);
            }
            Err(e) if may_pass(&e) && Instant::now() < until => {
                (node.tell)(&format!("waits: {}", message(&e)));
            }
            outcome => {
                break done.take().filter(|_| outcome.as_ref().is_err_and(may_pass)).map_or(outcome, Ok);
            }
        }
    };
    logbook.settle(&mut None);
    outcome.map_err(|e| match e {
        Error::Misuse(_) => Error::Misuse(message(&e)),
        e => Error::System(message(&e)),
    })
}

/// Refuses to take part without approval, if the rules with which the node would start want one. It is spent
/// before the node takes part, and holds from then on for every attempt of the same move, until its time is
/// over.
fn approve(
    (dir, store, logbook): (&NodeDir, &Store, &Logbook),
    plan: &Plan,
    approval: Option<&Approval>,
) -> Result<()> {
    let cluster = plan.old.id();
    let rules = Rules::new(reload::at_start(dir, store, cluster)?);
    let (from, to) = (plan.old.fingerprint().bytes(), plan.new.fingerprint().bytes());
    let approved = store.approved_reshare().map_err(system)?;
    if approved.is_some_and(|approved| (approved.from, approved.to) == (from, to) && now() <= approved.until)
    {
        return Ok(());
    }
    let approvals = Approvals { rules: &rules, store, cluster };
    let refused = |refusal: Refusal| {
        logbook.note(&Event::of_node("reshare", "refused"));
        Error::Misuse(refusal.message)
    };
    let subject = Subject::Reshare { from, to };
    let Some(approved) = approvals.check_node(NodeOperation::Reshare, &subject, approval).map_err(refused)?
    else {
        return Ok(());
    };
    approvals.spend_for_reshare(&approved, (from, to)).map_err(refused)?;
    let detail = format!("approved-by={}", approved.by.join(","));
    logbook.note(&Event { detail: &detail, ..Event::of_node("reshare", "approved") });
    Ok(())
}

/// Checks that a cluster can take the keys of another over. The error says why it cannot.
pub fn check(old: &Cluster, new: &Cluster) -> Result<()> {
    Plan::new(old.clone(), new.clone()).map(drop)
}

/// Gives up a move that this node has prepared: it can run again as before. Only for an operator who knows
/// that no node is done with it.
pub fn abandon(dir: &NodeDir) -> Result<()> {
    let secret = Secret::from_bytes(*dir.secret().map_err(system)?);
    let store = Store::alone(dir, &secret).map_err(system)?;
    match store.reshared().map_err(system)?.map(|reshared| reshared.stage) {
        Some(Stage::Prepared) => store.abandon_reshare().map_err(system),
        Some(Stage::Done | Stage::Left) => {
            Err(Error::misuse("this node is done with the reshare; it cannot go back"))
        }
        None => Err(Error::misuse("this node has prepared no reshare")),
    }
}

/// The cluster that a node belongs to when it starts, according to its store: a crash can have come between
/// the store and the file.
pub(crate) fn settle(dir: &NodeDir, cluster: Cluster, store: &Store) -> Result<Cluster> {
    let reshared = store.reshared().map_err(system)?;
    let is_blank = || store.is_blank().map_err(system);
    match reshared {
        Some(Reshared { stage: Stage::Prepared, .. }) => Err(Error::misuse(
            "this node has prepared a reshare and serves nothing until that is done: run `polyclave node reshare` again, with the same \
             file, at all nodes. (Only if it is certain that no node is done with it, --abandon gives it up)",
        )),
        Some(Reshared { stage: Stage::Left, .. }) if is_blank()? => Err(Error::misuse(
            "this node has left its cluster: its keys were handed over to other nodes, and its shares are destroyed. Make a new directory \
             if the machine is to be a node again",
        )),
        Some(Reshared { stage: Stage::Done, cluster: text, .. }) => {
            let done = Cluster::parse(&text).map_err(system)?;
            if done.lasting_digest() == cluster.lasting_digest() {
                return Ok(cluster);
            }
            dir.follow_cluster(&done).map_err(system)?;
            Ok(done)
        }
        _ if cluster.replaces().is_some() && is_blank()? => Err(Error::misuse(
            "the keys of the cluster before have not moved to this one yet: run `polyclave node reshare` at all nodes, old and new",
        )),
        _ => Ok(cluster),
    }
}

fn old_cluster(
    dir: &NodeDir,
    new: &Cluster,
    from: Option<&Cluster>,
    before: Option<&Reshared>,
) -> Result<Cluster> {
    let replaced = new.replaces().ok_or_else(|| {
        Error::misuse("the file is no reshare file: it does not say which cluster it replaces (make it with `cluster reshape`)")
    })?;
    let own = dir.cluster().map_err(system)?;
    let stored =
        before.filter(|before| is_of(Some(*before), new)).map(|before| Cluster::parse(&before.before));
    let stored = stored.transpose().map_err(system)?;
    let candidates = [from.cloned(), own.clone(), stored];
    if let Some(old) = candidates.into_iter().flatten().find(|old| old.id() == replaced.id) {
        return Ok(old);
    }
    Err(Error::misuse(match (own, from) {
        (None, None) => {
            "a new node needs the old cluster's file as well: give it with --from. (The reshare file has its fingerprint)".to_owned()
        }
        _ => format!(
            "the reshare file is of another cluster: it takes over the keys of the cluster with the id {}, which is not the one of this \
             node or of --from",
            hex::encode(replaced.id)
        ),
    }))
}

/// Whether a node has prepared or made the move to this cluster.
fn is_of(before: Option<&Reshared>, new: &Cluster) -> bool {
    let cluster = before.and_then(|before| Cluster::parse(&before.cluster).ok());
    cluster.is_some_and(|cluster| cluster.fingerprint() == new.fingerprint())
}

fn refuse_other(before: Option<&Reshared>, new: &Cluster) -> Result<()> {
    match before {
        Some(before) if before.stage == Stage::Prepared && !is_of(Some(before), new) => {
            let prepared = Cluster::parse(&before.cluster).map_err(system)?.fingerprint();
            Err(Error::Misuse(format!(
                "this node has prepared another reshare, to the cluster with the fingerprint\n  {prepared}\nRun that one again at all nodes, \
                 or give it up (--abandon) if it is certain that no node is done with it"
            )))
        }
        _ => Ok(()),
    }
}

/// Whether another try may succeed: somebody has gone, or is not there yet.
fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Closed { .. } | Error::Timeout { .. } | Error::Unanswered { .. })
}

/// One node that takes part.
struct Node<'n> {
    plan: &'n Plan,
    /// Its place in the plan.
    me: usize,
    dir: &'n NodeDir,
    store: &'n Store,
    logbook: &'n Logbook,
    tell: &'n mut dyn FnMut(&str),
    faults: FaultInjection,
}

impl Node<'_> {
    /// One try, from the beginning.
    fn attempt(&mut self, net: &mut TlsNet) -> Result<Done> {
        let parameters = HandshakeParameters::new(net.parties())
            .with(plan::VERSION_OF_RESHARE, PURPOSE)
            .with("file of the old cluster", self.plan.old.fingerprint().to_string().as_bytes())
            .with("reshare file", self.plan.new.fingerprint().to_string().as_bytes());
        let mut session = hello(&parameters, net)?;
        let reshare_state = self.reshare_state()?;
        let all: Vec<ReshareState> =
            plan::in_order(net.me(), reshare_state.encode(), tell_all(&reshare_state.encode(), net)?)
                .iter()
                .map(ReshareState::decode)
                .collect();
        self.compare("standings", &all.iter().flat_map(ReshareState::encode).collect::<Vec<_>>(), net)?;
        let id = match next_step(&all, self.plan)? {
            NextStep::Complete(id) => id,
            NextStep::Begin(refreshed) => {
                if let Some(id) = refreshed.filter(|_| reshare_state.refresh == refreshed) {
                    self.store.commit_refresh(id, now()).map_err(system)?;
                }
                self.prepare(&mut session, net)?
            }
        };
        self.commit(id)?;
        // A node that does not hear this from all nodes needs no more shares from them.
        let all = tell_all(&DONE, net).is_ok_and(|message| message.iter().all(|(_, said)| *said == DONE));
        let left = self.plan.role(self.me).new.is_none();
        Ok(Done { left, keys: self.store.count().map_err(system)?, all })
    }

    /// What this node has done, if it is done with this move already.
    fn is_done(&self, before: Option<&Reshared>) -> Result<Option<Done>> {
        let done =
            before.filter(|before| is_of(Some(*before), &self.plan.new) && before.stage != Stage::Prepared);
        let keys = self.store.count().map_err(system)?;
        if done.is_some() {
            self.follow()?;
        }
        Ok(done.map(|done| Done { left: done.stage == Stage::Left, keys, all: false }))
    }

    /// The node's file is of the new cluster from now on, if it is one of its nodes.
    fn follow(&self) -> Result<()> {
        match self.plan.role(self.me).new {
            Some(_) => self.dir.follow_cluster(&self.plan.new).map_err(system),
            None => Ok(()),
        }
    }

    fn reshare_state(&self) -> Result<ReshareState> {
        let reshared = self.store.reshared().map_err(system)?;
        let reshared = reshared.filter(|reshared| is_of(Some(reshared), &self.plan.new));
        let is_done = reshared.as_ref().is_some_and(|reshared| reshared.stage != Stage::Prepared);
        let in_use = match self.plan.role(self.me).old {
            // What is in use then is of the new cluster, or gone.
            Some(_) if !is_done => {
                let setup = self.store.setup().map_err(system)?.filter(|setup| setup.agreed);
                let missing = "this node has no common secrets with the other old nodes: no key was ever made here. Leave it out with --lost";
                setup.ok_or_else(|| Error::misuse(missing))?.id
            }
            _ => [0; 32],
        };
        Ok(ReshareState {
            in_use,
            refresh: self.store.prepared_refresh().map_err(system)?,
            prepared: reshared.map(|reshared| reshared.id),
            is_done,
        })
    }

    /// Moves all keys. When this returns, all nodes have stored what they need.
    fn prepare(&mut self, session: &mut AgreedSession, net: &mut TlsNet) -> Result<[u8; 32]> {
        self.store.discard_reshare().map_err(system)?;
        let role = self.plan.role(self.me);
        let offer = role.old.map(|old| offers::of(self.store, self.plan, old)).transpose()?;
        let (offers, heard) = offers::exchange(offer.as_deref(), self.plan, net)?;
        self.compare("keys", &heard, net)?;
        let common = offers::common(&offers, self.plan)?;
        if common.left_behind > 0 {
            let message = "components of keys stay behind, because not all old nodes have them: they have to be given again";
            (self.tell)(&format!("{} {message}", common.left_behind));
        }
        let setup = moving::move_all(self, &common, session, net)?;
        let id = session.id();
        let files = (id, &self.plan.new.to_text()[..], &self.plan.old.to_text()[..]);
        self.store
            .prepare_reshare(files, setup.as_ref().map(|bytes| &bytes[..]), &common.deleted)
            .map_err(system)?;
        tell_all(&PREPARED, net)?;
        Ok(id)
    }

    /// Takes what is prepared into use, or leaves.
    fn commit(&self, id: [u8; 32]) -> Result<()> {
        self.store.commit_reshare(id, now()).map_err(system)?;
        // The pairs of the new cluster get the keys anew.
        destroy_others(self.dir, None)?;
        self.follow()?;
        // What was replaced is of no use to this node. It is tried again at the next start, if this fails.
        if let Err(e) = self.store.erase_replaced() {
            tracing::warn!(error = %e, "the old shares could not be erased from the free pages of the store yet");
        }
        self.logbook.note(&Event::of_node("reshare", "done"));
        Ok(())
    }

    /// All nodes have heard the same, or none goes on.
    fn compare(&self, what: &str, heard: &[u8], net: &mut TlsNet) -> Result<()> {
        let digest = blake3::derive_key("polyclave 2026 what was told in a reshare", heard);
        match tell_all(&digest, net)?.into_iter().find(|(_, theirs)| *theirs != digest) {
            Some((peer, _)) => Err(Error::System(format!(
                "{peer} says that it was told other {what} than this node: some node cheats, perhaps neither of the two"
            ))),
            None => Ok(()),
        }
    }
}
