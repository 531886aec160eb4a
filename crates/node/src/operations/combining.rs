//! Components of a key: taken one from each client, and combined.
//!
//! The nodes keep shares of a component itself, and of no value that could be used as a key. So it survives
//! restarts, and is refreshed, backed up and deleted as keys are. Its check value is computed on shares and
//! opened, as its purpose is. The key is the sum of the components, on shares. An attacker that lacks one
//! component, and has no more shares than the protocol tolerates, knows nothing of the key.

use polyclave_api::{CheckKind, KeyCheck, KeyInfo, NewKey, Origin, Parity, Reason, Refusal};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::components::{Combination, GivenComponent};
use crate::computation::circuits::Circuits;
use crate::computation::key::{only_itself, raw_key};
use crate::computation::make::{check_value, expand};
use crate::computation::modes::StepError;
use crate::computation::pieces::run;
use crate::requests::conversation::Serving;

impl Serving<'_, '_> {
    /// Takes a component from the client. One whose check value is another than the client expects is not
    /// kept.
    pub(super) fn take_component(
        &mut self,
        mut protocol: AnyServiceSession,
        given: GivenComponent,
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        let GivenComponent { new, component, expected, replaces, .. } = given;
        let keys = self.import(&mut protocol, 1, circuits)?;
        let key = keys.first().ok_or_else(|| Error::misuse("a component without a part"))?;
        let bare = NewKey { modes: Vec::new(), usage: Vec::new(), ..new.clone() };
        let expanded = expand(&keys, &bare, &mut protocol, &mut self.net_of_peers()?, circuits);
        self.faults = protocol.faults();
        let (material, by_cmac) = expanded?;
        self.compare(&mut protocol, &material.round_keys, &by_cmac, (expected.as_ref(), circuits))?;
        if replaces {
            self.service.keys.delete(&new.name, None).map_err(StepError::Own)?;
        }
        let made = self.made(new, Origin::Imported, by_cmac)?;
        let info = KeyInfo { component: Some(component), ..made };
        self.store_everywhere(info, only_itself(key, &protocol), &[])
    }

    /// Makes a key of its components, which are deleted.
    pub(super) fn combine(
        &mut self,
        mut protocol: AnyServiceSession,
        combination: Combination,
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        let Combination { components, new, expected, parity, .. } = combination;
        let mut parts = Vec::new();
        for component in &components {
            self.complete(&component.info, component.state)?;
            parts.push(raw_key(&component.info.properties.name, &component.shares, &protocol)?);
        }
        let key = self.sum(&mut protocol, &parts, parity, circuits)?;
        let used: Vec<String> =
            components.iter().map(|component| component.info.properties.name.clone()).collect();
        self.keep_if(protocol, &[key], (new, Origin::Combined), (expected.as_ref(), circuits), &used)
    }

    /// The sum of keys, with the parity that is wanted.
    pub(super) fn sum(
        &mut self,
        protocol: &mut AnyServiceSession,
        parts: &[AnyShared],
        parity: Parity,
        circuits: &Circuits,
    ) -> Result<AnyShared, StepError> {
        let with_parity = parity != Parity::Ignore;
        let circuit = circuits.keys.sum(circuits, parts.len(), with_parity, protocol)?;
        let inputs: Vec<Input<'_, AnyShared>> = parts.iter().map(Input::Shared).collect();
        let net = &mut self.net_of_peers()?;
        let mut outputs = run(protocol, net, &circuit, 1, &inputs)?.into_iter();
        let key = outputs.next().ok_or_else(|| Error::misuse("a sum without an output"))?;
        if let (Parity::Require, Some(check)) = (parity, outputs.next()) {
            let check = protocol.elements(&check, net)?;
            if !protocol.arithmetic().is_zero(&check, net)? {
                let message = "the key that the components make does not have odd parity; --parity set makes it so, --parity ignore \
                            leaves it";
                return Err(StepError::Refused(Refusal::new(Reason::Key, message)));
            }
        }
        Ok(key)
    }

    /// Refuses a key whose check value differs from the expected one.
    pub(super) fn compare(
        &mut self,
        protocol: &mut AnyServiceSession,
        round_keys: &AnyShared,
        by_cmac: &[u8],
        (expected, circuits): (Option<&KeyCheck>, &Circuits),
    ) -> Result<(), StepError> {
        let Some(expected) = expected else { return Ok(()) };
        let found = match expected.kind {
            CheckKind::Cmac => by_cmac.to_vec(),
            CheckKind::Zeros => {
                let net = &mut self.net_of_peers()?;
                check_value(CheckKind::Zeros, &[round_keys], protocol, net, circuits)?
            }
        };
        if found == expected.value {
            return Ok(());
        }
        let message = format!(
            "the check value is {}, and {} was expected: it was mistyped, or it is another key; nothing was kept",
            hex::encode(&found),
            hex::encode(&expected.value)
        );
        Err(StepError::Refused(Refusal::new(Reason::Key, message)))
    }
}
