//! Changes in the life of a key that is there.

use polyclave_api::{Refusal, Usage, VersionState, check_description};

use super::refusals::key_refusal;
use super::{Draft, Task};
use crate::keys::states::refuse_return;
use crate::requests::conversation::Description;
use crate::requests::service::Service;

impl Draft<'_> {
    pub(super) fn delete(&mut self, key: &str, version: Option<u32>) -> Result<Task, Refusal> {
        let service = self.service;
        self.take(key)?;
        refuse_deletion(service, key, version)?;
        Ok(Task::Delete { key: key.to_owned(), version })
    }

    pub(super) fn rotate(&mut self, key: &str) -> Result<Task, Refusal> {
        let service = self.service;
        self.take(key)?;
        let (current, _) = service.keys.get(key)?;
        service.library.cipher(&current.properties.cipher)?;
        if current.is_of_session() {
            return Err(key_refusal(format!("the key '{key}' is a session key, which has one version")));
        }
        if current.version == u32::MAX {
            return Err(key_refusal(format!("the key '{key}' has no more versions: make another key")));
        }
        service.keys.refuse_too_many()?;
        Ok(Task::Rotate { key: key.to_owned(), current })
    }

    pub(super) fn retire(&mut self, key: &str, version: u32, state: VersionState) -> Result<Task, Refusal> {
        let service = self.service;
        self.take(key)?;
        refuse_return(&service.keys.version(key, version)?, state)?;
        Ok(Task::Retire { key: key.to_owned(), version, state })
    }

    pub(super) fn configure(
        &mut self,
        key: &str,
        least_version: u32,
        deletable: bool,
        withdraw_wrappable: bool,
        withdraw_usage: &[Usage],
    ) -> Result<Task, Refusal> {
        let service = self.service;
        self.take(key)?;
        let (current, _) = service.keys.get(key)?;
        if !(1..=current.version).contains(&least_version) {
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
        Ok(Task::Configure {
            key: key.to_owned(),
            least_version,
            deletable,
            withdraw_wrappable,
            withdraw_usage: withdraw_usage.to_vec(),
        })
    }

    pub(super) fn describe(
        &mut self,
        (key, id): (&str, [u8; 16]),
        revision: u64,
        label: &str,
        attributes: &[u8],
    ) -> Result<Task, Refusal> {
        let service = self.service;
        self.take(key)?;
        check_description(label, attributes).map_err(key_refusal)?;
        let (info, _) = service.keys.with_id(key, id)?;
        let (label, attributes) = (label.to_owned(), attributes.to_vec());
        let description = Description { id, revision, label, attributes };
        description.refuse_stale(&info)?;
        Ok(Task::Describe { key: key.to_owned(), description })
    }

    /// Takes the name of a key that is there.
    fn take(&mut self, key: &str) -> Result<(), Refusal> {
        self.taken = Some(self.service.keys.take_name(key)?);
        Ok(())
    }
}

/// Refuses to delete a key that may not be deleted, and the current version alone: its number would be given again.
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
