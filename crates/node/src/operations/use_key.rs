//! The use of a key: its mode answers the client's steps in turn.

use std::sync::Arc;
use std::time::Duration;

use polyclave_api::{KeyInfo, Refusal, Reply, Step};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::dealt::HeldSeeds;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Faults, Session};
use polyclave_store::StoredKey;
use polyclave_traces::part;

use crate::computation::Computation;
use crate::computation::circuits::{Circuits, Library};
use crate::computation::key::{ExpandedKey, Shares, StoredShares, unreadable};
use crate::computation::modes::{Answer, Mode, StepError};
use crate::computation::progress::Progress;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Planned, identity};

/// A use of a key, in a mode that answers the client's steps.
pub(super) struct Used {
    info: KeyInfo,
    key: Arc<StoredKey>,
    mode: Box<dyn Mode>,
    others: Vec<Other>,
}

/// A further key of a use: one that is wrapped, or under which something is computed, too.
pub(super) struct Other {
    pub(super) key: Arc<StoredKey>,
    /// Blocks that are computed under it, which it pays for.
    pub(super) blocks: u64,
    /// Whether it is computed with, and not only wrapped.
    pub(super) computes: bool,
}

impl Used {
    pub(super) fn alone(info: KeyInfo, key: Arc<StoredKey>, mode: Box<dyn Mode>) -> Used {
        Used { info, key, mode, others: Vec::new() }
    }

    pub(super) fn with(key: Arc<StoredKey>, mode: Box<dyn Mode>, others: Vec<Other>) -> Used {
        Used { info: key.info.clone(), key, mode, others }
    }
}

impl Planned for Used {
    fn identity(&self) -> Vec<u8> {
        let mut keys = identity(&self.info);
        keys.extend(self.others.iter().flat_map(|other| identity(&other.key.info)));
        keys
    }

    fn blocks(&mut self, first: Option<&Step>) -> Result<Vec<(&KeyInfo, u64)>, Refusal> {
        let blocks = self.mode.blocks_at_start() + first.map_or(Ok(0), |step| self.mode.admit(step))?;
        let others = self.others.iter().map(|other| (&other.key.info, other.blocks));
        Ok([(&self.info, blocks)].into_iter().chain(others).collect())
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        first: Option<Step>,
    ) -> Result<(), StepError> {
        let Used { info, key, mode, others } = *self;
        serving.complete(&info, key.state)?;
        for other in &others {
            serving.complete(&other.key.info, other.key.state)?;
        }
        let others: Vec<Arc<StoredKey>> =
            others.into_iter().filter(|other| other.computes).map(|other| other.key).collect();
        serving.use_key(protocol, (&info, &key.shares), &others, mode, first)
    }
}

impl Serving<'_, '_> {
    /// A stored key, ready for computing.
    pub(super) fn expanded(
        &mut self,
        (info, shares): (&KeyInfo, &Shares),
        circuits: &Circuits,
        protocol: &mut AnyServiceSession,
    ) -> Result<ExpandedKey, StepError> {
        let stored = StoredShares::restore(info, shares, protocol).map_err(|e| {
            tracing::error!(key = %info.properties.name, error = %e, "the shares of a key cannot be used");
            self.service.keys.note_unusable(info);
            StepError::Own(unreadable(&info.properties.name))
        })?;
        Ok(stored.expand(circuits, protocol, &mut self.net_of_peers()?)?)
    }

    fn use_key(
        &mut self,
        mut protocol: AnyServiceSession,
        (info, shares): (&KeyInfo, &Shares),
        others: &[Arc<StoredKey>],
        mut mode: Box<dyn Mode>,
        mut first: Option<Step>,
    ) -> Result<(), StepError> {
        let evaluation = part("evaluate");
        let circuits = self.circuits(&info.properties.cipher, &protocol)?;
        let key = self.expanded((info, shares), &circuits, &mut protocol)?;
        let mut of_others = Vec::with_capacity(others.len());
        for other in others {
            let circuits = self.circuits(&other.info.properties.cipher, &protocol)?;
            let key = self.expanded((&other.info, &other.shares), &circuits, &mut protocol)?;
            of_others.push((circuits, key));
        }
        let mut held = Held {
            protocol: Some(protocol),
            circuits: &circuits,
            key: &key,
            others: of_others.iter().map(|(circuits, key)| (&**circuits, key)).collect(),
            library: &self.service.library,
            session: self.session,
            dealt: self.dealt.take(),
            memory: self.service.memory.part_bytes(),
            progress: self.progress.clone(),
        };
        let started = held.with(&mut self.partners_for_client()?, |at| mode.start(at));
        self.note_waits();
        drop(evaluation);
        self.faults = held.faults();
        let (start, mut mask) = started?;
        self.context.still_holds(&self.service.material)?;
        self.service.faults.spoil([&mut mask]);
        self.connection.reply(&Reply::Accepted {
            key: Some(info.identity()),
            start,
            mask,
            blind: Vec::new(),
        });
        loop {
            let step = match first.take() {
                Some(step) => step,
                None => {
                    let admit = |step: &Step| if *step == Step::Finish { Ok(0) } else { mode.admit(step) };
                    self.step(admit, Some(info))?
                }
            };
            if step == Step::Finish {
                return Ok(());
            }
            let instead = self.service.faults.instead_of_answer();
            instead.iter().for_each(|reply| self.connection.reply(reply));
            let evaluation = part("evaluate");
            let answer = held.with(&mut self.partners_for_client()?, |at| mode.run(step, at));
            self.note_waits();
            drop(evaluation);
            self.faults = held.faults();
            let mut answer = answer?;
            let Answer { data, mask, initial, opened } = &mut answer;
            self.service.faults.spoil([data, mask, initial, opened]);
            self.context.still_holds(&self.service.material)?;
            let Answer { data, mask, initial, opened } = answer;
            let sent = data.len() + mask.len() + opened.len();
            let pause = self.service.clients.charge(&self.client.name, sent);
            if instead.is_empty() {
                self.service.faults.delay();
                self.connection.reply(&Reply::Data { data, mask, initial, opened });
            }
            if pause > Duration::ZERO {
                std::thread::sleep(pause);
            }
        }
    }
}

/// A protocol between two steps.
struct Held<'k> {
    protocol: Option<AnyServiceSession>,
    circuits: &'k Circuits,
    key: &'k ExpandedKey,
    others: Vec<(&'k Circuits, &'k ExpandedKey)>,
    library: &'k Library,
    session: [u8; 32],
    dealt: Option<HeldSeeds>,
    memory: usize,
    progress: Arc<Progress>,
}

impl Held<'_> {
    fn faults(&self) -> Faults {
        self.protocol.as_ref().map(Session::faults).unwrap_or_default()
    }

    fn with<T>(
        &mut self,
        net: &mut dyn Net,
        work: impl FnOnce(&mut Computation<'_>) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let ended = || Error::System("the session has ended".into());
        let protocol = self.protocol.take().ok_or_else(ended)?;
        let (circuits, key, session) = (self.circuits, self.key, self.session);
        let (library, memory, progress) = (self.library, self.memory, &*self.progress);
        let (others, dealt) = (self.others.clone(), self.dealt.take());
        let mut at =
            Computation { protocol, net, circuits, key, others, library, session, dealt, memory, progress };
        let outcome = work(&mut at);
        (self.protocol, self.dealt) = (Some(at.protocol), at.dealt);
        outcome
    }
}
