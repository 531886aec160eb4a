//! What a node decides alone about requests with components of a key: which client gives which component, and
//! when all are there.
//!
//! Separation of duties: a client gives one component of a key, and no two components of a key may come from
//! one certificate. Two certificates of one person look like two people to the nodes; the operators know to
//! whom they gave rights. They do not know whom a pattern of identities fits: one person could have many
//! certificates under it. So a client that is known by a pattern alone gives no component.

use std::sync::Arc;

use polyclave_api::operations::{Combine, ImportComponent};
use polyclave_api::{
    self as api, COMPONENT_SECONDS, CheckKind, Component, KeyCheck, Lifetime, MAX_COMPONENTS, NewKey, Parity,
    Permission, Reason, Refusal, Right, Step, check_new_key, component_name, key_of_component, why_no_zeros,
};
use polyclave_cipher::{Cipher, modes, parity};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_store::{KeyState, StoredKey};

use super::refusals::{refuse_two_keys, refuse_unchecked};
use crate::clients::client::Client;
use crate::clock::now;
use crate::computation::modes::StepError;
use crate::keys::names::Taken;
use crate::requests::conversation::Serving;
use crate::requests::plan::{Draft, Operation, Planned, identity};
use crate::requests::service::Service;

impl Operation for ImportComponent {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let ImportComponent { new, number, of, expected } = self;
        let (service, client) = draft.by();
        refuse_two_keys(new)?;
        let which = (new, *number, *of);
        Ok(Box::new(give(service, client, which, expected.as_ref(), &mut draft.taken)?))
    }
}

impl Operation for Combine {
    fn plan(&self, draft: &mut Draft<'_>) -> Result<Box<dyn Planned>, Refusal> {
        let expected = (self.expected.as_ref(), self.parity);
        Ok(Box::new(combine(draft.service, &self.key, expected, &mut draft.taken)?))
    }
}

/// A component that a client gives.
pub(super) struct GivenComponent {
    /// The properties of the key, with the component's name.
    pub(super) new: NewKey,
    pub(super) cipher: Cipher,
    pub(super) component: Component,
    pub(super) expected: Option<KeyCheck>,
    /// Whether one that has expired is there under this name.
    pub(super) replaces: bool,
}

/// A key that is made of its components.
pub(super) struct Combination {
    pub(super) components: Vec<Arc<StoredKey>>,
    pub(super) new: NewKey,
    pub(super) cipher: Cipher,
    pub(super) expected: Option<KeyCheck>,
    pub(super) parity: Parity,
}

impl Planned for GivenComponent {
    fn identity(&self) -> Vec<u8> {
        api::encode(&self.component).unwrap_or_default()
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = serving.circuits(&self.cipher.name, &protocol)?;
        serving.take_component(protocol, *self, &circuits)
    }
}

impl Planned for Combination {
    fn identity(&self) -> Vec<u8> {
        self.components.iter().flat_map(|key| identity(&key.info)).collect()
    }

    fn run(
        self: Box<Self>,
        serving: &mut Serving<'_, '_>,
        protocol: AnyServiceSession,
        _: Option<Step>,
    ) -> Result<(), StepError> {
        let circuits = serving.circuits(&self.cipher.name, &protocol)?;
        serving.combine(protocol, *self, &circuits)
    }
}

fn refusal(message: impl Into<String>) -> Refusal {
    Refusal::new(Reason::Key, message)
}

fn giver(client: &Client) -> [u8; 32] {
    blake3::derive_key("polyclave 2026 giver of a component", client.bound())
}

/// What a request asks of the rules, if the client wants to take back a component that it gave: then the
/// right to import is enough.
pub(super) fn asked_of_giver(
    service: &Service,
    client: &Client,
    asked: Vec<Permission>,
) -> Result<Vec<Permission>, Refusal> {
    let [Permission { right: Right::Delete, key: name, .. }] = &asked[..] else { return Ok(asked) };
    let Some(key) = key_of_component(name) else { return Ok(asked) };
    let component = service.keys.component(name)?.and_then(|stored| stored.info.component.clone());
    let may_delete = service.rules.allow(client, &asked[0]).is_ok();
    if may_delete || component.is_none_or(|component| component.giver != giver(client)) {
        return Ok(asked);
    }
    Ok(vec![Permission::of(Right::Import, key)])
}

/// Plans to take a component.
fn give(
    service: &Service,
    client: &Client,
    (new, number, of): (&NewKey, u8, u8),
    expected: Option<&KeyCheck>,
    taken: &mut Option<Taken>,
) -> Result<GivenComponent, Refusal> {
    if !service.rules.names(client) {
        let message = format!(
            "components of a key come from clients that the rules name one by one, and a pattern fits {0}: one person could have any number of certificates under it. \
             An entry for this identity makes it one of them (`node authority allow --identity {0}`)",
            client.name
        );
        return Err(Refusal::new(Reason::Denied, message));
    }
    let cipher = service.library.cipher(&new.cipher)?;
    check_new_key(new, &cipher).map_err(refusal)?;
    if new.lifetime != Lifetime::Stored {
        return Err(refusal("a key that several people put together is no session key"));
    }
    if !(2..=MAX_COMPONENTS).contains(&of) || !(1..=of).contains(&number) {
        return Err(refusal(format!(
            "a key has 2 to {MAX_COMPONENTS} components, counted from 1; this is number {number} of {of}"
        )));
    }
    refuse_unchecked(service, &new.modes)?;
    // The component is a key without a use.
    let bare = NewKey { modes: Vec::new(), usage: Vec::new(), ..new.clone() };
    check_expected(expected, &bare, &cipher)?;
    let named = NewKey { name: component_name(&new.name, number), ..new.clone() };
    check_new_key(&named, &cipher).map_err(refusal)?;
    *taken = Some(service.keys.take_name(&new.name)?);
    refuse_existing(service, &new.name)?;
    service.keys.refuse_too_many()?;
    let component = Component { number, of, giver: giver(client) };
    let mut replaces = false;
    for other in 1..=MAX_COMPONENTS {
        let Some(stored) = service.keys.component(&component_name(&new.name, other))? else { continue };
        let Some(there) = &stored.info.component else { continue };
        // A pending one was not taken by all nodes, and is replaced like a key.
        if has_expired(&stored) || stored.state != KeyState::Announced {
            replaces |= other == number && stored.state == KeyState::Announced;
            continue;
        }
        if other == number {
            return Err(refusal(format!(
                "component {number} of the key '{}' is there already; who gave it can delete '{}'",
                new.name, named.name
            )));
        }
        if there.giver == component.giver {
            return Err(refusal(format!(
                "this client gave component {other} of the key '{}'; another person gives component {number}, with another certificate",
                new.name
            )));
        }
        if there.of != of || with_name(&stored, &new.name) != *new {
            return Err(refusal(format!(
                "component {other} of the key '{}' was given for {} components or with other properties of the key; give all of them alike",
                new.name, there.of
            )));
        }
    }
    Ok(GivenComponent { new: named, cipher, component, expected: expected.cloned(), replaces })
}

/// Plans to make a key of its components.
fn combine(
    service: &Service,
    key: &str,
    (expected, parity): (Option<&KeyCheck>, Parity),
    taken: &mut Option<Taken>,
) -> Result<Combination, Refusal> {
    *taken = Some(service.keys.take_name(key)?);
    refuse_existing(service, key)?;
    service.keys.refuse_too_many()?;
    let none = || refusal(format!("component 1 of the key '{key}' is not there"));
    let first = service.keys.component(&component_name(key, 1))?.ok_or_else(none)?;
    let (of, new) = (first.info.component.as_ref().map_or(0, |c| c.of), with_name(&first, key));
    let (mut components, mut givers): (Vec<Arc<StoredKey>>, Vec<[u8; 32]>) = (Vec::new(), Vec::new());
    for number in 1..=of {
        let none = || refusal(format!("component {number} of {of} of the key '{key}' is not there yet"));
        let stored = service.keys.component(&component_name(key, number))?.ok_or_else(none)?;
        let component = stored.info.component.clone().ok_or_else(none)?;
        if has_expired(&stored) {
            return Err(refusal(format!(
                "component {number} of the key '{key}' is older than {} days; it has to be given again",
                COMPONENT_SECONDS / (24 * 3600)
            )));
        }
        if component.of != of || component.number != number || with_name(&stored, key) != new {
            return Err(refusal(format!(
                "the components of the key '{key}' do not belong together; delete them"
            )));
        }
        if givers.contains(&component.giver) {
            return Err(refusal(format!("one client gave two components of the key '{key}'; delete them")));
        }
        givers.push(component.giver);
        components.push(stored);
    }
    let cipher = service.library.cipher(&new.cipher)?;
    check_new_key(&new, &cipher).map_err(refusal)?;
    check_expected(expected, &new, &cipher)?;
    if parity != Parity::Ignore && !parity::has_parity(&cipher) {
        return Err(refusal(format!("keys of {} have no parity bits", cipher.name)));
    }
    Ok(Combination { components, new, cipher, expected: expected.cloned(), parity })
}

fn with_name(stored: &StoredKey, name: &str) -> NewKey {
    NewKey { name: name.into(), ..stored.info.properties.clone() }
}

fn has_expired(stored: &StoredKey) -> bool {
    stored.info.ends().is_some_and(|ends| ends <= now())
}

fn refuse_existing(service: &Service, key: &str) -> Result<(), Refusal> {
    match service.keys.has(key)? {
        true => Err(refusal(format!("there is a key '{key}' already; choose another name or delete it"))),
        false => Ok(()),
    }
}

fn check_expected(expected: Option<&KeyCheck>, key: &NewKey, cipher: &Cipher) -> Result<(), Refusal> {
    let Some(KeyCheck { kind, value }) = expected else { return Ok(()) };
    let bytes = match kind {
        CheckKind::Cmac => modes::check_value_bytes(cipher),
        CheckKind::Zeros => {
            why_no_zeros(key, cipher).map_or(Ok(modes::ENCRYPTED_ZEROS), |why| Err(refusal(why)))?
        }
    };
    if value.len() != bytes {
        let (name, given) = (&cipher.name, value.len());
        return Err(refusal(format!("this check value of a key of {name} has {bytes} bytes, not {given}")));
    }
    Ok(())
}
