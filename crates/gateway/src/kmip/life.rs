//! Activate, Revoke and Destroy. The states of KMIP are those of the nodes, except that there are no keys
//! which are not active yet, and that nothing is left of a key that was destroyed.

use polyclave_api::{KeyVersion, Right, VersionState};

use super::call::{Call, Done, key, now};
use super::codes::{self, tag};
use super::fields::Fields;
use super::object::{Object, Stop, identifier};
use super::refused::{Reason, Result, invalid, missing};
use super::ttlv::{Value, put};

/// A key that is to be active. It is already, or it never will be again.
pub(super) struct Activate(KeyVersion);

impl Activate {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Activate> {
        Ok(Activate(key(payload, placeholder)?))
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Configure, &self.0.name)?;
        call.ask(move |client| {
            let object = Object::find(client, &self.0)?;
            match object.state(now()) {
                codes::ACTIVE => Ok(done_with(object.identifier())),
                _ => {
                    Err(Reason::WrongState.because("the key was retired, and cannot be active again").into())
                }
            }
        })
        .await
    }
}

/// A key that is to be retired.
pub(super) struct Revoke {
    key: KeyVersion,
    to: VersionState,
}

impl Revoke {
    /// Nodes keep neither a message nor the time when a key became known, so these are not kept.
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Revoke> {
        let key = key(payload, placeholder)?;
        let mut reason =
            payload.structure(tag::REVOCATION_REASON)?.ok_or_else(|| missing("revocation reason"))?;
        let code = reason.enumeration(tag::REVOCATION_REASON_CODE)?;
        let to = match code.ok_or_else(|| missing("revocation reason code"))? {
            codes::KEY_COMPROMISE | codes::CA_COMPROMISE => VersionState::Compromised,
            1..=codes::LAST_REVOCATION => VersionState::Deactivated,
            _ => return Err(invalid("revocation reason code")),
        };
        reason.text(tag::REVOCATION_MESSAGE)?;
        reason.end()?;
        payload.time(tag::COMPROMISE_OCCURRENCE_DATE)?;
        Ok(Revoke { key, to })
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Configure, &self.key.name)?;
        call.change(move |client| {
            let object = Object::find(client, &self.key)?;
            if object.info.state > self.to {
                let why = "the key is compromised already, and cannot be deactivated only";
                return Err(Reason::WrongState.because(why).into());
            }
            client.retire(&self.key.name, object.info.version, self.to)?;
            Ok(done_with(object.identifier()))
        })
        .await
    }
}

/// A key that is to be deleted for ever.
pub(super) struct Destroy(KeyVersion);

impl Destroy {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Destroy> {
        Ok(Destroy(key(payload, placeholder)?))
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Delete, &self.0.name)?;
        call.change(move |client| {
            let object = Object::find(client, &self.0)?;
            if object.state(now()) == codes::ACTIVE {
                return Err(Reason::WrongState.because("the key is active: revoke it before").into());
            }
            let (name, version) = (&self.0.name, object.info.version);
            let deleted = match (object.is_current, object.versions) {
                (false, _) => client.delete_version(name, version)?,
                (true, 1) => client.delete(name)?,
                (true, _) => {
                    let why = "nodes keep the current version of a key while they have older ones: destroy those before";
                    return Err(Reason::WrongState.because(why).into());
                }
            };
            // Somebody else was faster.
            let none = || Stop::Refused(Reason::ItemNotFound.because("there is no such key"));
            let deleted = deleted.ok_or_else(none)?;
            Ok(done_with(identifier(&(&deleted).into())))
        })
        .await
    }
}

/// What was done with an object, by its unique identifier.
fn done_with(identifier: String) -> Done {
    Done::to(identifier, 32, |payload, identifier| {
        put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
    })
}
