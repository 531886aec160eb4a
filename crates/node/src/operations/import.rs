//! Keys that a client brings whole.

use polyclave_api::operations::Import;
use polyclave_api::{End, NewKey, Origin, Refusal, Reply, Step};
use polyclave_cipher::Cipher;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::service::{ELEMENT_BYTES, ServiceSession};

use crate::Result;
use crate::computation::circuits::Circuits;
use crate::computation::modes::{StepError, misplaced};
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned};

impl Operation for Import {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let cipher = draft.new_key(&self.new)?;
        Ok(Box::new(Imported { cipher, new: self.new.clone() }))
    }
}

/// A key that the client gives.
struct Imported {
    new: NewKey,
    cipher: Cipher,
}

impl Planned for Imported {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        mut protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = serving.circuits(&self.cipher.name, &protocol)?;
        let keys = serving.import(&mut protocol, self.new.parts(), &circuits)?;
        serving.keep(protocol, &keys, self.new, Origin::Imported, &circuits)
    }
}

impl Serving<'_, '_> {
    /// Takes a key in several parts from the client, under a mask that the client has checked.
    pub(super) fn import(
        &mut self,
        protocol: &mut AnyServiceSession,
        parts: usize,
        circuits: &Circuits,
    ) -> Result<Vec<AnyShared>, StepError> {
        let of_part = circuits.cipher.key_bytes;
        let bytes = parts * of_part;
        let (mask, mut of_mask) = protocol.mask_input(bytes, &mut self.net_of_peers()?)?;
        let (blind, mut of_blind) = protocol.arithmetic().random_for_client(&mut self.net_of_peers()?)?;
        self.service.faults.spoil([&mut of_mask, &mut of_blind]);
        self.connection.reply(&Reply::Accepted {
            key: None,
            start: Vec::new(),
            mask: of_mask,
            blind: of_blind,
        });

        let admit = |step: &Step| if matches!(step, Step::Chi { .. }) { Ok(0) } else { Err(misplaced(step)) };
        let step = self.step(admit, None)?;
        let Step::Chi { chi } = step else { return Err(StepError::Refused(misplaced(&step))) };
        let opened: [u8; ELEMENT_BYTES] =
            protocol.open_mask_check(&mask, &blind, chi, &mut self.net_of_peers()?)?;
        let mut data = opened.to_vec();
        self.service.faults.spoil([&mut data, &mut Vec::new()]);
        self.connection.reply(&Reply::Data {
            data,
            mask: Vec::new(),
            initial: Vec::new(),
            opened: Vec::new(),
        });

        let admit = |step: &Step| match step {
            Step::Masked { data, next: 0, end: End::No } if data.len() == bytes => Ok(0),
            other => Err(misplaced(other)),
        };
        let step = self.step(admit, None)?;
        let Step::Masked { data, .. } = &step else { return Err(StepError::Refused(misplaced(&step))) };
        let parts = data.chunks(of_part).enumerate();
        Ok(parts
            .map(|(i, part)| protocol.unmask(&mask, i * of_part, part, &circuits.key))
            .collect::<Result<_>>()?)
    }
}
