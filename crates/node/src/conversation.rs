//! The rest of a request, once the nodes have agreed on it: steps of the client, each compared among the nodes before it is used.

mod attendance;
mod keys;

use std::sync::Arc;
use std::time::{Duration, Instant};

use polyclave_protocol::any::AnyServiceProtocol;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Faults, Protocol};
use polyclave_protocol::service::ServiceScheme;
use polyclave_protocol::session::Session;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_transport::TlsNet;
use polyclave_transport::wire::{self, KeyInfo, Operation, Origin, Reason, Refusal, Reply, Right, Step};

use attendance::{Attended, Attention};

use crate::agreement::{Early, agree_with_most, refused_by};
use crate::circuits::Circuits;
use crate::computation::Computation;
use crate::core::{Core, unreadable};
use crate::epoch::Footing;
use crate::key::{Material, Shares};
use crate::make::generate;
use crate::modes::{Answer, Fault, Mode, misplaced};
use crate::progress::Progress;
use crate::quarantine::judge;
use crate::request::{Channel, Client, ONLINE, Plan, Task, begin, blame, unavailable};
use crate::threads::POLL_INTERVAL;

/// A client has so long to send a step, and to take an answer, however it trickles: the other nodes wait, and somebody else may want the channel.
const STEP: Duration = Duration::from_secs(20);
/// So long at the node that leads, as soon as a client waits there that holds fewer channels ([`crate::turns`]).
const WANTED_STEP: Duration = Duration::from_secs(5);

/// When the MAC key was given up in the middle of a request.
const GIVEN_UP: &str =
    "what the nodes had made afresh was given up meanwhile; they make it again: try again later";

/// What became of a request, for the audit log.
pub(crate) struct Outcome {
    /// Blocks that were computed, or at least paid for.
    pub(crate) blocks: u64,
    /// What was made up for.
    pub(crate) faults: Faults,
    pub(crate) result: Result<(), Refusal>,
}

/// A client's line during one request.
struct Line<'l> {
    net: &'l mut TlsNet,
    client: Party,
    /// Why the client cannot be reached any more; the nodes end together, at the next step at the latest.
    gone: Option<Refusal>,
    attention: Attention,
}

impl<'l> Line<'l> {
    fn new(net: &'l mut TlsNet, client: Party) -> Line<'l> {
        Line { net, client, gone: None, attention: Attention::now() }
    }

    /// Notices if the client has ended its connection.
    fn look(&mut self) {
        if !self.net.is_alive() {
            self.gone.get_or_insert_with(went_away);
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.net.set_deadline(Some(Instant::now() + STEP));
        let sent = wire::send(self.net, self.client, reply);
        self.net.set_deadline(None);
        if let Err(e) = sent {
            self.gone.get_or_insert(lost(&e, "took no answer"));
        }
        self.attention = Attention::now();
    }

    /// Receives the step that has begun to arrive.
    fn step(&mut self, until: Instant) -> Result<(Step, [u8; 32]), Refusal> {
        self.net.set_deadline(Some(until));
        let received = wire::receive_bytes(self.net, self.client);
        self.net.set_deadline(None);
        let bytes = received.map_err(|e| lost(&e, "sent nothing"))?;
        let step =
            wire::decode(&bytes, self.client).map_err(|e| Refusal::new(Reason::Malformed, e.to_string()))?;
        self.attention = Attention::now();
        Ok((step, blake3::derive_key("polyclave 2026 step of a request", &bytes)))
    }
}

/// What became of a client in the middle of its request, or what it left undone for too long.
fn lost(error: &Error, undone: &str) -> Refusal {
    let told = match error {
        Error::Timeout { .. } => {
            format!("the client {undone} for {} s in the middle of its request", STEP.as_secs())
        }
        _ => return went_away(),
    };
    Refusal::new(Reason::Unavailable, told)
}

fn went_away() -> Refusal {
    Refusal::new(Reason::Unavailable, "the client went away in the middle of its request")
}

/// One request in its session.
struct Serving<'a, 'c> {
    core: &'a Core,
    client: &'a Client,
    footing: &'a Footing,
    channel: &'a mut Channel<'c>,
    line: Line<'a>,
    session: [u8; 32],
    blocks: u64,
    progress: Arc<Progress>,
    faults: Faults,
}

/// Serves a planned request.
pub(crate) fn serve(core: &Core, client: &Client, plan: Plan, net: &mut TlsNet) -> Outcome {
    let (mut blocks, mut faults) = (0, Faults::default());
    let result = try_serve(core, client, plan, net, &mut blocks, &mut faults);
    if let Err(refusal) = &result {
        core.refuse(net, refusal);
    }
    Outcome { blocks, faults, result }
}

fn try_serve(
    core: &Core,
    client: &Client,
    mut plan: Plan,
    net: &mut TlsNet,
    blocks: &mut u64,
    faults: &mut Faults,
) -> Result<(), Refusal> {
    let first = plan.request.first.take();
    let ready = core.footing().and_then(|footing| {
        *blocks = admit_first(core, &mut plan.task, first.as_ref(), plan.request.serving)?;
        Ok(footing)
    });
    // The others' channel need not wait for a request that was refused here.
    let footing = ready.inspect_err(|_| core.pending.refuse(plan.ticket))?;
    let (mut channel, session) = begin(core, &plan, footing.ground(), &mut || net.is_alive())?;
    let line = Line::new(net, Party(core.nodes as u8));
    let (id, blocks_paid) = (session.id(), *blocks);
    let mut serving = Serving {
        core,
        client,
        footing: &footing,
        channel: &mut channel,
        line,
        session: id,
        blocks: blocks_paid,
        progress: Arc::new(Progress::new(core.computed.clone())),
        faults: Faults::default(),
    };
    let outcome = serving.run(plan.task, first, session);
    (*blocks, *faults) = (serving.blocks, serving.faults);
    let gone = serving.line.gone;
    if core.scheme.guarantees_output() {
        return end_among_most(core, &mut channel, outcome, faults);
    }
    match outcome {
        Ok(()) => {
            channel.sound();
            Ok(())
        }
        // All nodes come to this at the same place.
        Err(Fault::Refused(refusal)) => {
            channel.sound();
            Err(refusal)
        }
        Err(Fault::Own(refusal)) => Err(refusal),
        // All come to this, too. Nothing was used and nothing given out.
        Err(Fault::Failed(Error::Dry { detail })) => {
            channel.sound();
            Err(Refusal::new(Reason::Dry, detail))
        }
        Err(Fault::Failed(e)) => {
            judge(core, "serving a request", &e);
            if let Some(gone) = gone {
                core.refuse_quarantined()?;
                return Err(gone);
            }
            tracing::warn!(error = core.told(&e), "a request failed among the nodes");
            // Of a check nothing is told but that it failed.
            core.refuse_quarantined()?;
            match e {
                Error::CheckFailed { .. } => Err(Refusal::new(Reason::Unavailable, GIVEN_UP)),
                e => Err(blame(unavailable(e.clone()), &e)),
            }
        }
    }
}

/// The end of a request of nodes that correct each other: one may have refused what others go on with.
fn end_among_most(
    core: &Core,
    channel: &mut Channel<'_>,
    outcome: Result<(), Fault>,
    faults: &mut Faults,
) -> Result<(), Refusal> {
    let lost = channel.net().map(|net| net.lost()).unwrap_or_default();
    faults.silent = faults.silent.and(lost);
    if lost.is_empty() && matches!(outcome, Ok(()) | Err(Fault::Failed(Error::Dry { .. }))) {
        channel.sound();
    }
    outcome.map_err(|fault| match fault {
        Fault::Refused(refusal) | Fault::Own(refusal) => refusal,
        Fault::Failed(Error::Dry { detail }) => Refusal::new(Reason::Dry, detail),
        Fault::Failed(e) => {
            tracing::warn!(error = core.told(&e), "a request failed among the nodes");
            let refusal = blame(unavailable(e.clone()), &e);
            match (&e, lost.iter().next()) {
                (Error::Missing { .. }, Some(silent)) => refusal.because_of(silent),
                _ => refusal,
            }
        }
    })
}

/// The first step is admitted, and paid for, before the nodes compare it with the request. How many blocks that were.
fn admit_first(
    core: &Core,
    task: &mut Task,
    first: Option<&Step>,
    serving: PartySet,
) -> Result<u64, Refusal> {
    match (task, first) {
        (Task::Use { info, mode, .. }, first) => {
            let blocks = mode.blocks_at_start() + first.map_or(Ok(0), |step| mode.admit(step))?;
            core.spend(info, blocks, serving)?;
            Ok(blocks)
        }
        (_, Some(step)) => Err(misplaced(step)),
        (_, None) => Ok(0),
    }
}

impl<'a> Serving<'a, '_> {
    fn run(&mut self, task: Task, first: Option<Step>, mut session: Session) -> Result<(), Fault> {
        let serving = self.net()?.members();
        let mut protocol = self.footing.join(self.core, session.stream(), serving)?;
        match task {
            Task::Use { info, key, mode, right } => {
                self.complete(&info, key.state)?;
                self.use_key(protocol, (&info, right), &key.shares, mode, first)
            }
            Task::Generate { new, cipher } => {
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let key = generate(&mut protocol, &mut self.partners()?, &circuits);
                self.faults = protocol.faults();
                let key = key?;
                self.keep(protocol, &key, new, Origin::Generated, &circuits)
            }
            Task::Import { new, cipher } => {
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let key = self.import(&mut protocol, &circuits)?;
                self.keep(protocol, &key, new, Origin::Imported, &circuits)
            }
            Task::Delete { key } => self.delete(&key),
        }
    }

    fn net(&mut self) -> Result<&mut TlsNet, Error> {
        self.channel.net()
    }

    /// The same for the protocol, while it makes a key: that goes on though the client is gone.
    fn partners(&mut self) -> Result<Attended<'_, 'a>, Error> {
        let partners = self.core.conduct.partners(self.channel.net()?);
        Ok(Attended { partners, line: &mut self.line, progress: &self.progress, ends: false })
    }

    /// The same while it uses one.
    fn partners_for_client(&mut self) -> Result<Attended<'_, 'a>, Error> {
        let ends = !self.core.scheme.guarantees_output();
        Ok(Attended { ends, ..self.partners()? })
    }

    fn circuits(&self, cipher: &str, protocol: &AnyServiceProtocol) -> Result<Arc<Circuits>, Fault> {
        let unknown =
            || Fault::Refused(Refusal::new(Reason::Key, format!("there is no cipher '{cipher}' here")));
        self.core.library.of(cipher, protocol).ok_or_else(unknown)
    }

    /// Receives the next step, has `admit` judge it, and compares it with the other nodes.
    fn step(
        &mut self,
        admit: impl FnOnce(&Step) -> Result<u64, Refusal>,
        paid_by: Option<(&KeyInfo, Right)>,
    ) -> Result<Step, Fault> {
        let serving = self.net()?.members();
        let (until, mut early) = (Instant::now() + STEP, Early::default());
        let received = match self.await_step(&mut early)? {
            Some(refusal) => Err(refusal),
            None => self.line.step(until),
        };
        let judged = received.and_then(|(step, digest)| {
            self.core.footing()?;
            let blocks = admit(&step)?;
            if let Some((info, right)) = paid_by {
                // The policy may have changed since the request began.
                self.core.allow(self.client, right, &info.properties.name)?;
                self.core.spend(info, blocks, serving)?;
            }
            self.blocks += blocks;
            Ok((step, digest))
        });
        let mine = judged.as_ref().map(|(_, digest)| *digest).map_err(Clone::clone);
        let agreed = match self.core.scheme.guarantees_output() {
            true => {
                let (session, quorum) = (self.session, self.core.scheme.quorum());
                let patience = if paid_by.is_some() { ONLINE } else { 1 };
                agree_with_most(mine, &session, quorum, patience, self.net()?)?
            }
            false => early.agree(mine, self.net()?)?,
        };
        match agreed {
            Ok(()) => judged.map(|(step, _)| step).map_err(Fault::Refused),
            Err(refusal) => Err(Fault::Refused(refusal)),
        }
    }

    /// Waits until the next step begins to arrive; why it is not waited for any more, if so.
    fn await_step(&mut self, early: &mut Early) -> Result<Option<Refusal>, Error> {
        let began = Instant::now();
        let client = [self.line.client].into_iter().collect();
        loop {
            if let Some(gone) = &self.line.gone {
                return Ok(Some(gone.clone()));
            }
            // What begins to arrive is received to its end; so is what cannot arrive any more.
            if !matches!(self.line.net.wait(client, POLL_INTERVAL), Ok(None)) {
                return Ok(None);
            }
            let silent = began.elapsed();
            if silent >= STEP {
                let paused = Error::Timeout { peer: self.line.client, waited: STEP };
                return Ok(Some(lost(&paused, "sent nothing")));
            }
            if silent >= WANTED_STEP && self.channel.is_to_yield() {
                let told = format!(
                    "the client sent nothing for {} s in the middle of its request, while a client waited that has fewer \
                     requests under way",
                    silent.as_secs()
                );
                return Ok(Some(Refusal::new(Reason::Unavailable, told)));
            }
            if !self.core.scheme.guarantees_output()
                && let Some(peer) = early.listen(self.channel.net()?)?
            {
                return Ok(Some(refused_by(peer)));
            }
        }
    }

    fn use_key(
        &mut self,
        protocol: AnyServiceProtocol,
        (info, right): (&KeyInfo, Right),
        shares: &Shares,
        mut mode: Box<dyn Mode>,
        mut first: Option<Step>,
    ) -> Result<(), Fault> {
        let circuits = self.circuits(&info.properties.cipher, &protocol)?;
        let key = Material::restore(info, shares, &protocol).map_err(|e| {
            tracing::error!(key = %info.properties.name, error = %e, "the shares of a key cannot be used");
            self.core.store.note_unusable(&info.properties.name);
            Fault::Own(unreadable(&info.properties.name))
        })?;
        let mut held = Held {
            protocol: Some(protocol),
            circuits: &circuits,
            key: &key,
            session: self.session,
            memory: self.core.memory.part_bytes(),
            progress: self.progress.clone(),
        };
        let started = held.with(&mut self.partners_for_client()?, |at| mode.start(at));
        self.faults = held.faults();
        let (start, mut mask) = started?;
        self.footing.still_holds(self.core)?;
        self.core.conduct.spoil([&mut mask]);
        self.line.reply(&Reply::Accepted { key: Some(info.clone()), start, mask, blind: Vec::new() });
        loop {
            let step = match first.take() {
                Some(step) => step,
                None => {
                    let admit = |step: &Step| if *step == Step::Finish { Ok(0) } else { mode.admit(step) };
                    self.step(admit, Some((info, right)))?
                }
            };
            if step == Step::Finish {
                return Ok(());
            }
            let instead = self.core.conduct.instead_of_answer();
            instead.iter().for_each(|reply| self.line.reply(reply));
            let answer = held.with(&mut self.partners_for_client()?, |at| mode.run(step, at));
            self.faults = held.faults();
            let mut answer = answer?;
            self.core.conduct.spoil([&mut answer.data, &mut answer.mask, &mut answer.initial]);
            self.footing.still_holds(self.core)?;
            let pause = self.core.clients.charge(&self.client.name, answer.data.len() + answer.mask.len());
            let Answer { data, mask, initial } = answer;
            if instead.is_empty() {
                self.core.conduct.delay();
                self.line.reply(&Reply::Data { data, mask, initial });
            }
            if pause > Duration::ZERO {
                std::thread::sleep(pause);
            }
        }
    }
}

/// A protocol between steps.
struct Held<'k> {
    protocol: Option<AnyServiceProtocol>,
    circuits: &'k Circuits,
    key: &'k Material,
    session: [u8; 32],
    memory: usize,
    progress: Arc<Progress>,
}

impl Held<'_> {
    fn faults(&self) -> Faults {
        self.protocol.as_ref().map(Protocol::faults).unwrap_or_default()
    }

    fn with<T>(
        &mut self,
        net: &mut dyn Net,
        work: impl FnOnce(&mut Computation<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let ended = || Error::System("the session has ended".into());
        let protocol = self.protocol.take().ok_or_else(ended)?;
        let (circuits, key, session) = (self.circuits, self.key, self.session);
        let (memory, progress) = (self.memory, &*self.progress);
        let mut at = Computation { protocol, net, circuits, key, session, memory, progress };
        let outcome = work(&mut at);
        self.protocol = Some(at.protocol);
        outcome
    }
}

/// Kinds of operations, for logs and metrics.
pub(crate) fn kind(operation: &Operation) -> &'static str {
    use wire::Use;
    match operation {
        Operation::Status => "status",
        Operation::List { .. } => "list",
        Operation::Show { .. } => "show",
        Operation::Generate(_) => "generate",
        Operation::Import(_) => "import",
        Operation::Delete { .. } => "delete",
        Operation::Use { how, .. } => match how {
            Use::Seal
            | Use::GcmEncrypt { .. }
            | Use::CtrEncrypt
            | Use::CbcEncrypt { .. }
            | Use::EcbEncrypt { .. } => "encrypt",
            Use::Open { .. }
            | Use::GcmDecrypt { .. }
            | Use::CtrDecrypt { .. }
            | Use::CbcDecrypt
            | Use::EcbDecrypt => "decrypt",
            Use::Cmac { .. } => "mac",
        },
    }
}
