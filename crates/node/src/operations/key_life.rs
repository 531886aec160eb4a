//! Changes in the life of a key that is there.

use polyclave_api::operations::{Configure, Delete, DescribeKey, Retire};
use polyclave_api::{Describe, KeyInfo, Permission, Refusal, Step, check_description};
use polyclave_protocol::any::AnyServiceSession;

use super::components::asked_of_giver;
use super::refusals::key_refusal;
use super::versions::Description;
use crate::clients::client::Client;
use crate::computation::modes::StepError;
use crate::keys::states::refuse_return;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned};
use crate::requests::service::Service;

impl Operation for Delete {
    fn permissions_here(&self, service: &Service, client: &Client) -> Result<Vec<Permission>, Refusal> {
        asked_of_giver(service, client, self.permissions())
    }

    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        draft.take(&self.key)?;
        refuse_deletion(draft.service, &self.key, self.version)?;
        Ok(Box::new(Deleted(self.clone())))
    }
}

/// Refuses to delete a key that may not be deleted, and to delete only the current version, since its number
/// would be assigned again.
fn refuse_deletion(service: &Service, key: &str, version: Option<u32>) -> Result<(), Refusal> {
    let [current, _] = service.keys.newest(key)?;
    let Some(current) = current else { return Ok(()) };
    if !current.deletable {
        return Err(key_refusal(format!(
            "the key '{key}' may not be deleted; allow it first with `polyclave key configure {key} --deletable yes`"
        )));
    }
    match version {
        Some(version) if version == current.version => Err(key_refusal(format!(
            "version {version} is the current one of the key '{key}': make a new version first, or delete the whole key"
        ))),
        Some(version) if version > current.version => service.keys.version(key, version).map(drop),
        _ => Ok(()),
    }
}

/// A key or a version that goes.
struct Deleted(Delete);

impl Planned for Deleted {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        _: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        serving.delete(&self.0.key, self.0.version)
    }
}

impl Operation for Retire {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        draft.take(&self.key)?;
        refuse_return(&draft.service.keys.version(&self.key, self.version)?, self.state)?;
        Ok(Box::new(Retired(self.clone())))
    }
}

/// A version that moves on to a later state.
struct Retired(Retire);

impl Planned for Retired {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        _: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Retire { key, version, state } = self.0;
        let retire = |info: &mut KeyInfo| {
            if info.version == version {
                info.state = info.state.max(state);
            }
        };
        serving.change(&key, retire, None)
    }
}

impl Operation for Configure {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let Configure { key, least_version, withdraw_usage, .. } = self;
        draft.take(key)?;
        let (current, _) = draft.service.keys.get(key)?;
        if !(1..=current.version).contains(least_version) {
            return Err(key_refusal(format!(
                "the least version of the key '{key}' is 1 to {}, which is the current one",
                current.version
            )));
        }
        if current.properties.usage.iter().all(|usage| withdraw_usage.contains(usage)) {
            return Err(key_refusal(format!(
                "nothing would be left of the usage of the key '{key}': delete it instead"
            )));
        }
        Ok(Box::new(Configured(self.clone())))
    }
}

/// Withdraws permissions of a key, or permits its deletion.
struct Configured(Configure);

impl Planned for Configured {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        _: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Configure { key, least_version, deletable, withdraw_wrappable, withdraw_usage } = self.0;
        let configure = |info: &mut KeyInfo| {
            (info.least_version, info.deletable) = (least_version, deletable);
            info.properties.wrappable &= !withdraw_wrappable;
            info.properties.usage.retain(|usage| !withdraw_usage.contains(usage));
        };
        serving.change(&key, configure, None)
    }
}

impl Operation for DescribeKey {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let DescribeKey { key, id, revision, label, attributes } = self;
        draft.take(key)?;
        check_description(label, attributes).map_err(key_refusal)?;
        let (info, _) = draft.service.keys.with_id(key, *id)?;
        let (label, attributes) = (label.clone(), attributes.clone());
        let description = Description { id: *id, revision: *revision, label, attributes };
        description.refuse_stale(&info)?;
        Ok(Box::new(Described { key: key.clone(), description }))
    }
}

/// A version beside which something else is written down.
struct Described {
    key: String,
    description: Description,
}

impl Planned for Described {
    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        _: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let Described { key, description } = *self;
        serving.agree_on_revision(&key, &description)?;
        serving.change(&key, |info| description.write(info), Some(description.id))
    }
}
