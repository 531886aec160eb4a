//! A client's key under PINs, for PKCS#11: the file `identity.pins` in the place of `identity.key`.
//!
//! The key is sealed twice, under the PIN of the user and under the PIN of the security officer (SO):
//! XChaCha20-Poly1305 under Argon2id of the PIN with a salt of its own. Either PIN opens it.
//!
//! # What this protects
//!
//! An attacker that copies the directory has to guess a PIN, at 64 MiB and three passes a guess. A short PIN
//! does not withstand that: the PIN must be as long as a passphrase. A seal for quick logins
//! ([`Strength::Quick`]) makes a guess some seventeen times cheaper (a fifth of the work, in less than a
//! third of the memory). So it takes long PINs only, and refuses all others. Ten wrong PINs of the user lock
//! it for programs, which keeps a program from trying further. The count is in the directory
//! (`identity.tries`), so it does not bind an attacker that can write there. A process that has unsealed the
//! key holds it in its memory.
//!
//! The count is raised durably before anything depends on whether a PIN is right: a thread writes it while
//! others make the key of the PIN, and the seal is opened only when both are done. So a kill gives no further
//! try. A try whose key could not be made, because the machine has no thread or memory left, is taken back:
//! it has tried no PIN.
//!
//! # What the time of a try says
//!
//! Whether a PIN is right is public: the caller gets the key or an error. A PIN is compared with nothing: the
//! seal opens under the key made of it, and its tag is compared in constant time. Making that key takes a
//! time that depends on the PIN's length, which a program gives with it, and not on the PIN. But which parts
//! of its memory Argon2id reads depends on the PIN from the second half of its first pass on (RFC 9106,
//! section 3.4.1). That makes guesses expensive, and shows something of the PIN to a program on the same
//! processor that can see in the caches what another one reads.
//!
//! # Versions of the file
//!
//! Version 1 has no `lanes`: its keys are made by one thread. Version 2 has the costs that RFC 9106
//! recommends second (64 MiB, three passes, four lanes). A file keeps its version until the key is sealed
//! anew, by `client unseal` and `client seal`.

mod file;
mod strength;
#[cfg(test)]
pub(crate) mod tests;
mod tries;

use std::fs;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, Payload};
use zeroize::Zeroizing;

use crate::client;
use crate::passphrase_key::Cost;
use crate::{ClientDir, Error, Result, StoredIdentity, private, rotation, text};
use file::{Costs, VERSION};
pub(crate) use file::{Pins, parse};
use strength::FULL;
pub use strength::{MAX_PIN, Strength};
pub use tries::MAX_WRONG_PINS;
use tries::{TRIES, counted};

const FILE: &str = "identity.pins";

/// Whose PIN it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinOwner {
    /// The user of the keys.
    User,
    /// The security officer gives the user a new PIN.
    SecurityOfficer,
}

impl std::fmt::Display for PinOwner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PinOwner::User => "user",
            PinOwner::SecurityOfficer => "security officer",
        })
    }
}

/// Why a PIN opens nothing.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It is wrong, or the file was changed.
    #[error("the PIN is wrong, or the file {FILE} was changed")]
    Wrong,
    /// Too many wrong PINs were tried.
    #[error(
        "the user's PIN is locked after {MAX_WRONG_PINS} wrong ones; the security officer sets a new one"
    )]
    Locked,
    /// There is no such PIN.
    #[error("there is no such PIN yet; the security officer sets it")]
    NotSet,
    /// It is too short or too long for the seal.
    #[error("the PIN of the {owner} has {least} to {MAX_PIN} bytes here")]
    Length {
        /// Whose PIN it is.
        owner: PinOwner,
        /// The fewest bytes that it may have.
        least: usize,
    },
    /// The files could not be used.
    #[error(transparent)]
    Files(#[from] Error),
}

/// A client's directory whose key is sealed under PINs.
#[derive(Clone, Debug)]
pub struct SealedClient {
    path: PathBuf,
    cost: Cost,
}

impl SealedClient {
    /// Whether the key in a client's directory is sealed. After a crash between sealing and removing, it is.
    pub fn is_sealed(path: &Path) -> bool {
        path.join(FILE).exists()
    }

    /// The directory, whether or not its key is sealed already.
    pub fn at(path: &Path) -> SealedClient {
        SealedClient { path: path.into(), cost: FULL }
    }

    /// The same, to be sealed with another strength.
    pub fn of_strength(self, strength: Strength) -> SealedClient {
        SealedClient { cost: strength.cost(), ..self }
    }

    /// The fewest bytes of another PIN of the seal that there is.
    pub fn least_pin(&self) -> Result<usize> {
        Ok(self.read()?.costs().cost.least_pin())
    }

    /// Seals the key of a client's directory, and removes it from there. The key must be in the clear, or the
    /// caller has unsealed it.
    pub fn seal(
        &self,
        identity: &StoredIdentity,
        officer: &[u8],
        user: Option<&[u8]>,
    ) -> std::result::Result<(), PinError> {
        client::refuse_renewed_at(&self.path)?;
        let _locked = self.lock()?;
        let costs = Costs { version: VERSION, cost: self.cost };
        let pins = Pins {
            version: VERSION,
            memory_kib: self.cost.memory_kib,
            passes: self.cost.passes,
            lanes: Some(self.cost.lanes),
            security_officer: costs.seal(identity, PinOwner::SecurityOfficer, officer)?,
            user: user.map(|pin| costs.seal(identity, PinOwner::User, pin)).transpose()?,
        };
        self.forget_tries()?;
        self.write(&pins)?;
        Ok(self.remove_clear_key()?)
    }

    /// Sets the PIN of one of the two, for a caller that has unsealed the key. The user's PIN is no longer
    /// locked then.
    pub fn set_pin(
        &self,
        identity: &StoredIdentity,
        owner: PinOwner,
        pin: &[u8],
    ) -> std::result::Result<(), PinError> {
        let _locked = self.lock()?;
        let mut pins = self.read()?;
        let sealed = pins.costs().seal(identity, owner, pin)?;
        match owner {
            PinOwner::User => pins.user = Some(sealed),
            PinOwner::SecurityOfficer => pins.security_officer = sealed,
        }
        self.write(&pins)?;
        if owner == PinOwner::User {
            self.forget_tries()?;
        }
        Ok(())
    }

    /// Whether the user has a PIN.
    pub fn has_user_pin(&self) -> Result<bool> {
        Ok(self.read()?.user.is_some())
    }

    /// Opens the directory with the key under a PIN.
    pub fn unseal(&self, owner: PinOwner, pin: &[u8]) -> std::result::Result<ClientDir, PinError> {
        self.unseal_counting(owner, pin, |tries| self.count(tries))
    }

    /// The same. `count` makes a number of tries durable.
    fn unseal_counting(
        &self,
        owner: PinOwner,
        pin: &[u8],
        count: impl Fn(u32) -> Result<()> + Sync,
    ) -> std::result::Result<ClientDir, PinError> {
        // One try at a time, so that no try is uncounted.
        let _locked = self.lock()?;
        let pins = self.read()?;
        let costs = pins.costs();
        let sealed = match owner {
            PinOwner::SecurityOfficer => &pins.security_officer,
            PinOwner::User => pins.user.as_ref().ok_or(PinError::NotSet)?,
        };
        let cipher = || costs.cost.cipher(pin, &sealed.salt);
        let cipher = match owner {
            PinOwner::SecurityOfficer => cipher()?,
            PinOwner::User => {
                let tried = self.wrong_pins()?;
                if tried >= MAX_WRONG_PINS {
                    return Err(PinError::Locked);
                }
                match counted(|| count(tried + 1), cipher)? {
                    Ok(cipher) => cipher,
                    Err(error) => {
                        // Without its key no PIN was tried.
                        count(tried)?;
                        return Err(error.into());
                    }
                }
            }
        };
        let head = costs.head(owner, &sealed.salt);
        let payload = Payload { msg: &sealed.sealed, aad: &head };
        let opened = cipher.decrypt(&sealed.nonce.into(), payload).map(Zeroizing::new);
        let pem = opened.map_err(|_| PinError::Wrong)?;
        let identity = StoredIdentity::from_pem(&pem);
        let identity = identity.map_err(|what| Error::malformed(&self.path.join(FILE), what))?;
        if owner == PinOwner::User {
            self.forget_tries()?;
        }
        Ok(ClientDir::with_identity(&self.path, identity)?)
    }

    /// Puts the key into the clear again.
    pub fn unseal_for_good(&self, owner: PinOwner, pin: &[u8]) -> std::result::Result<(), PinError> {
        let dir = self.unseal(owner, pin)?;
        dir.identity().save_private(&self.path.join(rotation::KEY))?;
        for file in [FILE, TRIES] {
            remove(&self.path.join(file))?;
        }
        Ok(private::sync_dir(&self.path)?)
    }

    fn read(&self) -> Result<Pins> {
        let path = self.path.join(FILE);
        let bytes = private::read(&path)?;
        let text = str::from_utf8(&bytes).map_err(|_| Error::malformed(&path, "is not text"))?;
        parse(text).map_err(|e| e.in_file(&path))
    }

    fn write(&self, pins: &Pins) -> Result<()> {
        let text = text::render("The key of a client of Polyclave, sealed under PINs.", pins);
        private::write(&self.path.join(FILE), text.as_bytes())
    }

    fn remove_clear_key(&self) -> Result<()> {
        remove(&self.path.join(rotation::KEY))?;
        private::sync_dir(&self.path)
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "remove")(e)),
        _ => Ok(()),
    }
}
