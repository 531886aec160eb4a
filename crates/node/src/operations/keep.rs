//! Requests that make, complete and delete keys.

use polyclave_api::{
    self as api, KeyCheck, KeyInfo, MAX_COMPONENTS, NewKey, Origin, Reason, Refusal, Reply, component_name,
};
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Session;
use polyclave_store::KeyState;

use crate::Result;
use crate::clock::now;
use crate::computation::circuits::Circuits;
use crate::computation::key::Shares;
use crate::computation::make::{expand, generate};
use crate::computation::modes::StepError;
use crate::error::system;
use crate::requests::agreement::agree;
use crate::requests::conversation::Serving;

impl Serving<'_, '_> {
    /// A key that is pending at this node is complete if it is announced at a node with the same id (which
    /// the nodes compared), or if all nodes are here. Otherwise making it has failed, because some nodes lack
    /// their shares.
    pub(super) fn complete(&mut self, info: &KeyInfo, state: KeyState) -> Result<(), StepError> {
        let announced = state == KeyState::Announced;
        let serving = self.net()?.members().len();
        if serving < self.service.members.nodes && !self.is_announced(announced)? {
            let name = &info.properties.name;
            let text = format!("the key '{name}' was not made completely; delete it, and make it again");
            return Err(StepError::Refused(Refusal::new(Reason::Key, text)));
        }
        if !announced {
            self.service.keys.announce(info).map_err(|refusal| system(refusal.message))?;
            if info.origin == Origin::Combined {
                self.remove_components(&info.properties.name).map_err(|refusal| system(refusal.message))?;
            }
        }
        Ok(())
    }

    fn is_announced(&mut self, here: bool) -> Result<bool, StepError> {
        Ok(self.service.strategy.is_announced(here, self.net()?)?)
    }

    /// The keys that a new one consists of: two for a mode that takes two.
    pub(super) fn generate(
        &mut self,
        protocol: &mut AnyServiceSession,
        parts: usize,
        circuits: &Circuits,
    ) -> Result<Vec<AnyShared>, StepError> {
        let keys = (0..parts).map(|_| Ok(generate(protocol, &mut self.net_of_peers()?, circuits)?)).collect();
        self.faults = protocol.faults();
        keys
    }

    /// Expands a new key and stores it as the first version of its name.
    pub(super) fn keep(
        &mut self,
        protocol: AnyServiceSession,
        keys: &[AnyShared],
        new: NewKey,
        origin: Origin,
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        self.keep_if(protocol, keys, (new, origin), (None, circuits), &[])
    }

    /// The same, if the key has the check value that is expected. Its components are deleted as soon as it is
    /// there.
    pub(super) fn keep_if(
        &mut self,
        mut protocol: AnyServiceSession,
        keys: &[AnyShared],
        (new, origin): (NewKey, Origin),
        (expected, circuits): (Option<&KeyCheck>, &Circuits),
        components: &[String],
    ) -> Result<(), StepError> {
        let expanded = expand(keys, &new, &mut protocol, &mut self.net_of_peers()?, circuits);
        self.faults = protocol.faults();
        let (material, check_value) = expanded?;
        self.compare(&mut protocol, &material.round_keys, &check_value, (expected, circuits))?;
        let info = self.made(new, origin, check_value)?;
        let raw = keys.first().filter(|_| info.properties.wrappable);
        let shares = material.save(raw, &protocol);
        self.store_everywhere(info, shares, components)
    }

    /// Expands the next version of a key and stores it. Its id, its time and its check value are filled in.
    /// `expires` says when it expires if it is made now.
    pub(super) fn keep_version(
        &mut self,
        mut protocol: AnyServiceSession,
        keys: &[AnyShared],
        (next, expires): (KeyInfo, impl FnOnce(u64) -> Option<u64>),
        circuits: &Circuits,
    ) -> Result<(), StepError> {
        let expanded = expand(keys, &next.properties, &mut protocol, &mut self.net_of_peers()?, circuits);
        self.faults = protocol.faults();
        let (material, check_value) = expanded?;
        let made = self.made(next.properties.clone(), next.origin, check_value)?;
        let KeyInfo { version, least_version, deletable, .. } = next;
        let mut info = KeyInfo { version, least_version, deletable, ..made };
        info.properties.expires = expires(info.made);
        let raw = keys.first().filter(|_| info.properties.wrappable);
        let shares = material.save(raw, &protocol);
        self.store_everywhere(info, shares, &[])
    }

    /// The properties of a key that is made in this session.
    pub(super) fn made(
        &mut self,
        new: NewKey,
        origin: Origin,
        check_value: Vec<u8>,
    ) -> Result<KeyInfo, StepError> {
        let made = self.time_of_the_first()?;
        let mut id = [0; 16];
        blake3::Hasher::new_derive_key("polyclave 2026 id of a key")
            .update(&self.session)
            .finalize_xof()
            .fill(&mut id);
        Ok(KeyInfo::first(new, id, origin, made, check_value))
    }

    /// Stores a key, and deletes the components that it was made of. First all nodes store it, then all
    /// announce it, then the client is told.
    pub(super) fn store_everywhere(
        &mut self,
        info: KeyInfo,
        shares: Shares,
        components: &[String],
    ) -> Result<(), StepError> {
        let digest = blake3::derive_key("polyclave 2026 properties of a key", &api::encode(&info)?);
        // Either all nodes have stored the key, or no node announces it.
        let serving = self.net()?.members();
        let stored = self.service.keys.store_pending(&info, shares, &self.client.name);
        // A node could forget the key again if it is put back to an old copy of its disk. The others then
        // know that it had stored something since.
        let stored = stored.and_then(|()| self.service.rollback_guard.protect(serving));
        agree(stored.map(|()| digest), self.net()?)?.map_err(StepError::Refused)?;
        let announced = self.service.keys.announce(&info);
        // At a node that dies before this, what is left of the components is removed when it starts, and if
        // it dies before it has announced the key, when the key is first used there
        // ([`complete`](Self::complete)).
        let gone = |name: &String| self.service.keys.delete(name, None).map(drop);
        let announced = announced.and_then(|()| components.iter().try_for_each(gone));
        agree(announced.map(|()| digest), self.net()?)?.map_err(StepError::Refused)?;
        self.connection.reply(&Reply::Done(Some(info)));
        Ok(())
    }

    /// Seconds since 1970 by the clock of the first serving node.
    fn time_of_the_first(&mut self) -> Result<u64, StepError> {
        let me = self.service.members.me;
        let net = self.net()?;
        let first = net.members().iter().next().unwrap_or(me);
        let mut seconds = now().to_le_bytes();
        if first == me {
            for peer in net.members().iter().filter(|p| *p != me) {
                net.send(peer, &seconds)?;
            }
        } else {
            net.recv(first, &mut seconds)?;
        }
        Ok(u64::from_le_bytes(seconds))
    }

    /// Deletes what is left of the components of a key.
    fn remove_components(&self, key: &str) -> Result<(), Refusal> {
        let mut names = (1..=MAX_COMPONENTS).map(|number| component_name(key, number));
        names.try_for_each(|name| self.service.keys.delete(&name, None).map(drop))
    }

    /// Deletes a version of a key, or all, wherever they still exist. So a deletion that was interrupted can
    /// be repeated. First all nodes note that they are about to delete it: then a refresh can complete it if
    /// nobody repeats it (`material/refresh/common.rs`).
    pub(super) fn delete(&mut self, key: &str, version: Option<u32>) -> Result<(), StepError> {
        let serving = self.net()?.members();
        let begun = self.service.keys.begin_deletion(key, version);
        let outcome = begun.as_ref().map(|_| [0; 32]).map_err(Clone::clone);
        if let Err(refusal) = agree(outcome, self.net()?)? {
            // No node deletes anything.
            if let Err(e) = begun.and_then(|ids| self.service.keys.withdraw_deletion(&ids)) {
                tracing::debug!(error = %e, "it is not forgotten that a key was about to be deleted");
            }
            return Err(StepError::Refused(refusal));
        }
        let deleted = self.service.keys.delete(key, version);
        // Otherwise a key that was deleted could be made again of what was left of its components.
        let deleted = deleted.and_then(|info| {
            version.map_or_else(|| self.remove_components(key), |_| Ok(()))?;
            Ok(info)
        });
        let deleted = deleted.and_then(|info| self.service.rollback_guard.protect(serving).map(|()| info));
        let outcome = deleted.as_ref().map(|_| [0; 32]).map_err(Clone::clone);
        agree(outcome, self.net()?)?.map_err(StepError::Refused)?;
        self.connection.reply(&Reply::Done(deleted.map_err(StepError::Refused)?.map(|info| info.identity())));
        Ok(())
    }
}

#[cfg(test)]
mod tests;
