//! Keys that the nodes make by themselves: a new one, the next version of one, and a copy of one.

use std::sync::Arc;

use polyclave_api::operations::{CopyKey, Generate, Rotate};
use polyclave_api::{self as api, KeyInfo, NewKey, Origin, Refusal, Step};
use polyclave_cipher::Cipher;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_store::StoredKey;

use super::refusals::{key_refusal, refuse_state};
use crate::computation::modes::StepError;
use crate::keys::key_copy;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned, identity};

impl Operation for Generate {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let cipher = draft.new_key(&self.new)?;
        Ok(Box::new(NewlyMade { cipher, new: self.new.clone() }))
    }
}

/// A key that is generated.
struct NewlyMade {
    new: NewKey,
    cipher: Cipher,
}

impl Planned for NewlyMade {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        mut protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = serving.circuits(&self.cipher.name, &protocol)?;
        let keys = serving.generate(&mut protocol, self.new.parts(), &circuits)?;
        serving.keep(protocol, &keys, self.new, Origin::Generated, &circuits)
    }
}

impl Operation for Rotate {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let (service, key) = (draft.service, &self.key);
        draft.take(key)?;
        let (current, _) = service.keys.get(key)?;
        service.library.cipher(&current.properties.cipher)?;
        if current.is_of_session() {
            return Err(key_refusal(format!("the key '{key}' is a session key, which has one version")));
        }
        if current.version == u32::MAX {
            return Err(key_refusal(format!("the key '{key}' has no more versions: make another key")));
        }
        service.keys.refuse_too_many()?;
        Ok(Box::new(NextVersion { key: key.clone(), current }))
    }
}

/// The next version of a key.
struct NextVersion {
    key: String,
    /// The current version here. Another node may not have announced it yet.
    current: KeyInfo,
}

impl Planned for NextVersion {
    /// Which version is current is settled afterwards.
    fn identity(&self) -> Vec<u8> {
        let properties = NewKey { expires: None, ..self.current.identity().properties };
        api::encode(&properties).unwrap_or_default()
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        serving.rotate(protocol, &self.key)
    }
}

impl Operation for CopyKey {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let CopyKey { key, id, new } = self;
        draft.new_key(new)?;
        let (service, client) = draft.by();
        let (info, source) = service.keys.with_id(key, *id)?;
        key_copy::may_be_made(&info, new).map_err(key_refusal)?;
        let rights = draft.asked.iter().filter(|asked| asked.key == *key).map(|asked| asked.right);
        rights.into_iter().try_for_each(|right| refuse_state(service, client, &info, right))?;
        Ok(Box::new(Copied { source, new: new.clone() }))
    }
}

/// A key under a second name and id.
struct Copied {
    source: Arc<StoredKey>,
    new: NewKey,
}

impl Planned for Copied {
    fn identity(&self) -> Vec<u8> {
        identity(&self.source.info)
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        _: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Copied { source, new } = *self;
        serving.complete(&source.info, source.state)?;
        let shares = key_copy::shares(&source, &new).map_err(StepError::Own)?;
        let made = serving.made(new, Origin::Copied, source.info.check_value.clone())?;
        let info = KeyInfo { account: source.info.account, ..made };
        serving.store_everywhere(info, shares, &[])
    }
}
