//! The next step of a client: this node waits for it and judges it, then all nodes compare it before they use
//! it.

use std::time::{Duration, Instant};

use polyclave_api::{KeyInfo, Reason, Refusal, Right, Step};
use polyclave_protocol::Error;
use polyclave_protocol::net::Net;
use polyclave_traces::part;

use super::Serving;
use super::client_connection::{STEP, lost};
use crate::computation::modes::StepError;
use crate::keys::states::refuse_retired;
use crate::requests::agreement::{Early, refused_by};
use crate::requests::strategy::StepOf;
use crate::threads::POLL_INTERVAL;

/// How long the leading node waits for a step when another client with fewer channels waits for one
/// ([`crate::requests::turns`]).
const WANTED_STEP: Duration = Duration::from_secs(5);

impl Serving<'_, '_> {
    /// Receives the next step, has `admit` judge it, and compares it with the other nodes.
    pub(crate) fn step(
        &mut self,
        admit: impl FnOnce(&Step) -> Result<u64, Refusal>,
        paid_by: Option<&KeyInfo>,
    ) -> Result<Step, StepError> {
        let _part = part("step");
        let serving = self.net()?.members();
        let (until, mut early) = (Instant::now() + STEP, Early::default());
        let received = match self.await_step(&mut early)? {
            Some(refusal) => Err(refusal),
            None => self.connection.step(until),
        };
        let judged = received.and_then(|(step, digest)| {
            self.service.material.refuse_further_steps()?;
            self.context.refuse_outlived(&self.service.material)?;
            let blocks = admit(&step)?;
            if let Some(info) = paid_by {
                // The policy may have changed since the request began, and the client's certificate ended.
                self.service.rules.refuse_ended(self.client)?;
                self.asked.iter().try_for_each(|asked| self.service.rules.allow(self.client, asked))?;
                self.refuse_retired_since(info)?;
                self.service.pay((self.client, &self.asked), info, blocks, serving)?;
            }
            self.blocks += blocks;
            Ok((step, digest))
        });
        let mine = judged.as_ref().map(|(_, digest)| *digest).map_err(Clone::clone);
        let session = self.session;
        let step = StepOf { session: &session, uses_key: paid_by.is_some() };
        let agreed = self.service.strategy.agree(mine, step, &early, self.net()?);
        self.note_waits();
        match agreed? {
            Ok(()) => judged.map(|(step, _)| step).map_err(StepError::Refused),
            Err(refusal) => Err(StepError::Refused(refusal)),
        }
    }

    /// Refuses a step under a version that was retired since the request began. A request that began before
    /// an expiry goes on.
    fn refuse_retired_since(&self, info: &KeyInfo) -> Result<(), Refusal> {
        let name = &info.properties.name;
        let (info, _) = self.service.keys.with_id(name, info.id)?;
        let configures = self.service.rules.allows(self.client, Right::Configure, name);
        self.asked.first().map_or(Ok(()), |asked| refuse_retired(&info, asked.right, configures, 0))
    }

    /// Waits until the next step begins to arrive. Returns a refusal if the node stops waiting for it.
    fn await_step(&mut self, early: &mut Early) -> Result<Option<Refusal>, Error> {
        let began = Instant::now();
        let client = [self.connection.client].into_iter().collect();
        loop {
            if let Some(gone) = &self.connection.gone {
                return Ok(Some(gone.clone()));
            }
            // A step that has begun to arrive is received to its end. A broken connection is noticed there,
            // too.
            if !matches!(self.connection.net.wait(client, POLL_INTERVAL), Ok(None)) {
                return Ok(None);
            }
            let silent = began.elapsed();
            if silent >= STEP {
                let paused = Error::Timeout { peer: self.connection.client, waited: STEP };
                return Ok(Some(lost(&paused, "sent nothing")));
            }
            if silent >= WANTED_STEP && self.channel.is_to_yield() {
                let message = format!(
                    "the client sent nothing for {} s in the middle of its request, while a client waited that has fewer \
                     requests under way",
                    silent.as_secs()
                );
                return Ok(Some(Refusal::new(Reason::Unavailable, message)));
            }
            if let Some(peer) = self.service.strategy.listen(early, self.channel.net()?)? {
                return Ok(Some(refused_by(peer)));
            }
        }
    }
}
