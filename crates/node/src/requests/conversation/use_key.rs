//! The use of a key: its mode answers the client's steps in turn.

use std::sync::Arc;
use std::time::Duration;

use polyclave_api::{KeyInfo, Reply, Step};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Faults, Session};
use polyclave_store::StoredKey;

use super::Serving;
use crate::computation::Computation;
use crate::computation::circuits::{Circuits, Library};
use crate::computation::modes::{Answer, Mode, StepError};
use crate::computation::progress::Progress;
use crate::keys::held::unreadable;
use crate::keys::key::{ExpandedKey, Shares};

impl Serving<'_, '_> {
    /// A stored key, ready for computing.
    pub(super) fn expanded(
        &self,
        info: &KeyInfo,
        shares: &Shares,
        protocol: &AnyServiceSession,
    ) -> Result<ExpandedKey, StepError> {
        ExpandedKey::restore(info, shares, protocol).map_err(|e| {
            tracing::error!(key = %info.properties.name, error = %e, "the shares of a key cannot be used");
            self.service.keys.note_unusable(info);
            StepError::Own(unreadable(&info.properties.name))
        })
    }

    pub(super) fn use_key(
        &mut self,
        protocol: AnyServiceSession,
        (info, shares): (&KeyInfo, &Shares),
        other: Option<&StoredKey>,
        mut mode: Box<dyn Mode>,
        mut first: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = self.circuits(&info.properties.cipher, &protocol)?;
        let key = self.expanded(info, shares, &protocol)?;
        let other = match other {
            Some(StoredKey { info, shares, .. }) => {
                let circuits = self.circuits(&info.properties.cipher, &protocol)?;
                Some((circuits, self.expanded(info, shares, &protocol)?))
            }
            None => None,
        };
        let mut held = Held {
            protocol: Some(protocol),
            circuits: &circuits,
            key: &key,
            other: other.as_ref().map(|(circuits, key)| (&**circuits, key)),
            library: &self.service.library,
            session: self.session,
            memory: self.service.memory.part_bytes(),
            progress: self.progress.clone(),
        };
        let started = held.with(&mut self.partners_for_client()?, |at| mode.start(at));
        self.faults = held.faults();
        let (start, mut mask) = started?;
        self.context.still_holds(&self.service.material)?;
        self.service.conduct.spoil([&mut mask]);
        self.line.reply(&Reply::Accepted { key: Some(info.identity()), start, mask, blind: Vec::new() });
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
            let instead = self.service.conduct.instead_of_answer();
            instead.iter().for_each(|reply| self.line.reply(reply));
            let answer = held.with(&mut self.partners_for_client()?, |at| mode.run(step, at));
            self.faults = held.faults();
            let mut answer = answer?;
            self.service.conduct.spoil([&mut answer.data, &mut answer.mask, &mut answer.initial]);
            self.context.still_holds(&self.service.material)?;
            let pause = self.service.clients.charge(&self.client.name, answer.data.len() + answer.mask.len());
            let Answer { data, mask, initial } = answer;
            if instead.is_empty() {
                self.service.conduct.delay();
                self.line.reply(&Reply::Data { data, mask, initial });
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
    other: Option<(&'k Circuits, &'k ExpandedKey)>,
    library: &'k Library,
    session: [u8; 32],
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
        let (other, library, memory, progress) = (self.other, self.library, self.memory, &*self.progress);
        let mut at = Computation { protocol, net, circuits, key, other, library, session, memory, progress };
        let outcome = work(&mut at);
        self.protocol = Some(at.protocol);
        outcome
    }
}
