//! The rest of a request, after the nodes have agreed on it. The nodes compare each step of the client before they use it.

mod attendance;
mod components;
mod from_keys;
mod keys;
mod line;
mod sealed;
mod steps;
mod use_key;
mod versions;

use std::sync::Arc;

use polyclave_api::{KeyInfo, Origin, Permission, Reason, Refusal, Step};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Faults;
use polyclave_protocol::session::AgreedSession;
use polyclave_protocol::{Error, Party};
use polyclave_transport::TlsNet;

use crate::clients::approvals::Approved;
use crate::clients::rules::Client;
use crate::computation::circuits::Circuits;
use crate::computation::modes::{StepError, misplaced};
use crate::computation::progress::Progress;
use crate::keys::key_copy;
use crate::material::delivery::refuse_at_maker;
use crate::material::epoch::SessionContext;
use crate::material::rotation::HeldOff;
use crate::requests::agreement::agree;
use crate::requests::begin::{NotBegun, begin};
use crate::requests::lending::Channel;
use crate::requests::plan::{Plan, Task, UnwrappedBlock};
use crate::requests::service::Service;
use crate::requests::strategy::Ending;
use attendance::Attended;
use line::Line;
pub(crate) use versions::Description;

/// The outcome of a request, for the audit log.
pub(crate) struct Outcome {
    /// Blocks that were computed, or at least charged to the key's budget.
    pub(crate) blocks: u64,
    /// The faults of other nodes that the protocol corrected.
    pub(crate) faults: Faults,
    pub(crate) result: Result<(), Refusal>,
}

/// One request in its session.
struct Serving<'a, 'c> {
    service: &'a Service,
    client: &'a Client,
    /// What it asks of the rules.
    asked: Vec<Permission>,
    context: &'a SessionContext,
    channel: &'a mut Channel<'c>,
    line: Line<'a>,
    session: [u8; 32],
    blocks: u64,
    progress: Arc<Progress>,
    faults: Faults,
}

/// A request gave way to a rotation before it began. Nothing was used, but so many blocks were paid for.
pub(crate) struct GaveWay {
    pub(crate) blocks: u64,
}

/// Serves a planned request. A rotation was held off since before the plan read any share.
pub(crate) fn serve(
    service: &Service,
    client: &Client,
    plan: Plan,
    held_off: HeldOff<'_>,
    net: &mut TlsNet,
) -> Result<Outcome, GaveWay> {
    let (mut blocks, mut faults) = (0, Faults::default());
    let result = match try_serve(service, client, (plan, held_off), net, &mut blocks, &mut faults) {
        Ok(()) => Ok(()),
        Err(NotBegun::GaveWay) => return Err(GaveWay { blocks }),
        Err(NotBegun::Refused(refusal)) => Err(refusal),
    };
    if let Err(refusal) = &result {
        service.members.refuse(net, refusal);
    }
    Ok(Outcome { blocks, faults, result })
}

fn try_serve(
    service: &Service,
    client: &Client,
    (mut plan, mut held_off): (Plan, HeldOff<'_>),
    net: &mut TlsNet,
    blocks: &mut u64,
    faults: &mut Faults,
) -> Result<(), NotBegun> {
    let first = plan.request.first.take();
    let ready = refuse_at_maker(&service.material).and_then(|()| service.material.context());
    let ready = ready.and_then(|context| {
        *blocks = admit_first(service, client, &mut plan, first.as_ref())?;
        Ok(context)
    });
    // The request was refused here. The other nodes' channel need not wait for it.
    let context = ready.inspect_err(|_| service.pending.refuse(plan.ticket))?;
    held_off.has_read();
    let (mut channel, session) = begin(service, &plan, context.id(), &mut || net.is_alive())?;
    let line = Line::new(net, Party(service.members.nodes as u8));
    let (id, blocks_paid) = (session.id(), *blocks);
    let mut serving = Serving {
        service,
        client,
        asked: plan.asked,
        context: &context,
        channel: &mut channel,
        line,
        session: id,
        blocks: blocks_paid,
        progress: Arc::new(Progress::new(service.computed.clone())),
        faults: Faults::default(),
    };
    let spent = match plan.request.approval {
        Some(_) => serving.spend_approval(plan.approved.as_ref(), plan.digest),
        None => Ok(()),
    };
    let outcome = spent.and_then(|()| serving.run(plan.task, first, session));
    (*blocks, *faults) = (serving.blocks, serving.faults);
    let ending = Ending { outcome, gone: serving.line.gone };
    Ok(service.strategy.end(&service.material, &mut channel, ending, faults)?)
}

/// Checks the first step and charges its blocks, before the nodes compare it with the request. Returns the number of blocks.
fn admit_first(
    service: &Service,
    client: &Client,
    plan: &mut Plan,
    first: Option<&Step>,
) -> Result<u64, Refusal> {
    let (by, serving) = ((client, plan.asked.as_slice()), plan.request.serving);
    match (&mut plan.task, first) {
        (Task::Use { info, mode, other, .. }, first) => {
            let blocks = mode.blocks_at_start() + first.map_or(Ok(0), |step| mode.admit(step))?;
            service.pay(by, info, blocks, serving)?;
            let of_other = other.as_ref().map_or(0, |other| other.blocks);
            if let Some(other) = other {
                service.pay(by, &other.key.info, of_other, serving)?;
            }
            Ok(blocks + of_other)
        }
        (_, Some(step)) => Err(misplaced(step)),
        (Task::UnwrapBlock(task), None) => {
            service.pay(by, &task.kek.info, task.blocks, serving)?;
            Ok(task.blocks)
        }
        (Task::Derive { base: key, blocks, .. } | Task::Unwrap { kek: key, blocks, .. }, None) => {
            service.pay(by, &key.info, *blocks, serving)?;
            Ok(*blocks)
        }
        (_, None) => Ok(0),
    }
}

impl<'a> Serving<'a, '_> {
    fn run(&mut self, task: Task, first: Option<Step>, mut session: AgreedSession) -> Result<(), StepError> {
        let serving = self.net()?.members();
        let mut protocol = {
            let memory = self.service.memory.part_bytes();
            self.context.join(&self.service.material, memory, session.stream(), serving)?
        };
        match task {
            Task::Use { info, key, mode, other } => {
                self.complete(&info, key.state)?;
                if let Some(other) = &other {
                    self.complete(&other.key.info, other.key.state)?;
                }
                let other = other.filter(|other| other.blocks > 0).map(|other| other.key);
                self.use_key(protocol, (&info, &key.shares), other.as_deref(), mode, first)
            }
            Task::Derive { base, new, cipher, how, .. } => {
                self.complete(&base.info, base.state)?;
                self.note_child(&base.info, &cipher.name)?;
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let key = self.derive(&mut protocol, &base, &circuits, &how)?;
                self.keep(protocol, &[key], new, Origin::Derived, &circuits)
            }
            Task::Unwrap { kek, new, cipher, wrapped, how, .. } => {
                self.complete(&kek.info, kek.state)?;
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let key = self.unwrap(&mut protocol, &kek, &circuits, (&wrapped, how))?;
                self.keep(protocol, &[key], new, Origin::Unwrapped, &circuits)
            }
            Task::UnwrapBlock(task) => {
                let UnwrappedBlock { kek, new, cipher, block, .. } = *task;
                self.complete(&kek.info, kek.state)?;
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let key = self.unwrap_block(&mut protocol, &kek, &circuits, &block)?;
                self.keep(protocol, &[key], new, Origin::Unwrapped, &circuits)
            }
            Task::Generate { new, cipher } => {
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let keys = self.generate(&mut protocol, new.parts(), &circuits)?;
                self.keep(protocol, &keys, new, Origin::Generated, &circuits)
            }
            Task::Import { new, cipher } => {
                let circuits = self.circuits(&cipher.name, &protocol)?;
                let keys = self.import(&mut protocol, new.parts(), &circuits)?;
                self.keep(protocol, &keys, new, Origin::Imported, &circuits)
            }
            Task::ImportComponent(given) => {
                let circuits = self.circuits(&given.cipher.name, &protocol)?;
                self.take_component(protocol, *given, &circuits)
            }
            Task::ImportSealed(sealed) => {
                let circuits = self.circuits(&sealed.cipher.name, &protocol)?;
                self.take_sealed(protocol, *sealed, &circuits)
            }
            Task::Combine(combination) => {
                let circuits = self.circuits(&combination.cipher.name, &protocol)?;
                self.combine(protocol, *combination, &circuits)
            }
            Task::Copy { source, new } => {
                self.complete(&source.info, source.state)?;
                let shares = key_copy::shares(&source, &new).map_err(StepError::Own)?;
                let made = self.made(new, Origin::Copied, source.info.check_value.clone())?;
                let info = KeyInfo { account: source.info.account, ..made };
                self.store_everywhere(info, shares, &[])
            }
            Task::Delete { key, version } => self.delete(&key, version),
            Task::Rotate { key, .. } => self.rotate(protocol, &key),
            Task::Retire { key, version, state } => {
                let retire = |info: &mut KeyInfo| {
                    if info.version == version {
                        info.state = info.state.max(state);
                    }
                };
                self.change(&key, retire, None)
            }
            Task::Configure { key, least_version, deletable, withdraw_wrappable, withdraw_usage } => {
                let configure = |info: &mut KeyInfo| {
                    (info.least_version, info.deletable) = (least_version, deletable);
                    info.properties.wrappable &= !withdraw_wrappable;
                    info.properties.usage.retain(|usage| !withdraw_usage.contains(usage));
                };
                self.change(&key, configure, None)
            }
            Task::Describe { key, description } => {
                self.agree_on_revision(&key, &description)?;
                self.change(&key, |info| description.write(info), Some(description.id))
            }
        }
    }

    /// Spends the approval where this node's rules want one, and begins only if all serving nodes say that they have done so. All nodes come
    /// here, because they have compared the request with its approval.
    fn spend_approval(&mut self, approved: Option<&Approved>, digest: [u8; 32]) -> Result<(), StepError> {
        let serving = self.net()?.members();
        let service = self.service;
        let spent = approved.map_or(Ok(()), |approved| {
            service.approvals().spend(approved).and_then(|()| service.marks.protect(serving))
        });
        agree(spent.map(|()| digest), self.net()?)?.map_err(StepError::Refused)
    }

    fn net(&mut self) -> Result<&mut TlsNet, Error> {
        self.channel.net()
    }

    /// The network that the protocol uses while it makes a key. Making a key continues even if the client is gone.
    fn partners(&mut self) -> Result<Attended<'_, 'a>, Error> {
        let partners = self.service.conduct.partners(self.channel.net()?);
        Ok(Attended { partners, line: &mut self.line, progress: &self.progress, ends: false })
    }

    /// The network that the protocol uses while it uses a key.
    fn partners_for_client(&mut self) -> Result<Attended<'_, 'a>, Error> {
        let ends = self.service.strategy.ends_without_client();
        Ok(Attended { ends, ..self.partners()? })
    }

    fn circuits(&self, cipher: &str, protocol: &AnyServiceSession) -> Result<Arc<Circuits>, StepError> {
        let unknown =
            || StepError::Refused(Refusal::new(Reason::Key, format!("there is no cipher '{cipher}' here")));
        self.service.library.of(cipher, protocol).ok_or_else(unknown)
    }
}
