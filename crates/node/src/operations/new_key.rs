//! The name of a key that a request makes or changes, and the checks for every new key.

use polyclave_api::{NewKey, Refusal, check_new_key, key_of_component};
use polyclave_cipher::Cipher;

use super::refusals::{key_refusal, refuse_unchecked};
use crate::clock::now;
use crate::requests::plan::Draft;

impl Draft<'_> {
    /// Takes the name of a key that is there.
    pub(super) fn take(&mut self, key: &str) -> Result<(), Refusal> {
        self.taken = Some(self.service.keys.take_name(key)?);
        Ok(())
    }

    /// Checks the properties of a key that is to be made, and takes its name.
    pub(super) fn new_key(&mut self, new: &NewKey) -> Result<Cipher, Refusal> {
        let (service, client) = self.by();
        if key_of_component(&new.name).is_some() {
            let message =
                format!("'{}' is how a component of a key is called; choose another name", new.name);
            return Err(key_refusal(message));
        }
        let cipher = service.library.cipher(&new.cipher)?;
        check_new_key(new, &cipher).map_err(key_refusal)?;
        refuse_unchecked(service, &new.modes)?;
        if new.expires.is_some_and(|expires| expires <= now()) {
            return Err(key_refusal("the key would have expired already, by this node's clock".into()));
        }
        self.taken = Some(service.keys.take_name(&new.name)?);
        if service.keys.has(&new.name)? {
            return Err(key_refusal(format!(
                "there is a key '{}' already; choose another name or delete it",
                new.name
            )));
        }
        service.keys.refuse_too_many_of(new, &client.name)?;
        Ok(cipher)
    }
}
