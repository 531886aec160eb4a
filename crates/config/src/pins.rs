//! A client's key under PINs, for PKCS#11: the file `identity.pins` in the place of `identity.key`.
//!
//! The key is sealed twice, under the PIN of the user and that of the security officer (SO): XChaCha20-Poly1305 under Argon2id of the PIN
//! with a salt of its own. Either PIN opens it.
//!
//! # What this protects
//!
//! Whoever copies the directory has to guess a PIN, at 64 MiB and three passes a guess. A short PIN does not withstand that: it takes the
//! length of a passphrase. A seal for quick logins ([`Strength::Quick`]) makes a guess some seventeen times cheaper (a fifth of the work, in less
//! than a third of the memory), and so takes long PINs only. Ten wrong PINs of the user lock it for programs, which keeps a program from trying further. The count is in
//! the directory (`identity.tries`), so it binds nobody who can write there. A process that has unsealed the key holds it in its memory.
//!
//! The count is raised durably before anything depends on whether a PIN is right: a thread writes it while others make the key of the PIN,
//! and only when both are done the seal is opened. So a kill gives no further try. A try whose key could not be made, because the machine has
//! no thread or memory left, is taken back: it has tried no PIN.
//!
//! # Versions of the file
//!
//! Version 1 has no `lanes`: its keys are made by one thread. Version 2 has the costs that RFC 9106 recommends second (64 MiB, three passes,
//! four lanes). A file keeps its version until the key is sealed anew, by `client unseal` and `client seal`.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead, Payload};
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::passphrase_key::Cost;
use crate::{ClientDir, Error, Result, StoredIdentity, private, rotation, text};

const FILE: &str = "identity.pins";
const TRIES: &str = "identity.tries";
const LOCK: &str = "identity.lock";
/// The version of the file.
const VERSION: u32 = 2;
/// The version without lanes.
const WITHOUT_LANES: u32 = 1;
/// What a guess costs, by the strength of the seal.
const FULL: Cost = Cost { memory_kib: 64 << 10, passes: 3, lanes: 4 };
/// The least that OWASP recommends, with lanes.
const QUICK: Cost = Cost { memory_kib: 19 << 10, passes: 2, lanes: 4 };
/// The fewest bytes of a PIN, by strength.
const LEAST_PIN: usize = 4;
const LEAST_PIN_IF_QUICK: usize = 20;
/// The most bytes of a PIN.
pub const MOST_PIN: usize = 255;
/// After so many wrong PINs of the user in a row it is locked.
pub const MOST_WRONG_PINS: u32 = 10;

/// Whose PIN it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinOwner {
    /// The user, who uses keys.
    User,
    /// The security officer, who gives the user a new PIN.
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

/// What a guess at a PIN costs, which is also what a login takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strength {
    /// 64 MiB, three passes.
    #[default]
    Full,
    /// 19 MiB, two passes, for PINs that nobody guesses: of 20 bytes or more.
    Quick,
}

impl Strength {
    fn cost(self) -> Cost {
        match self {
            Strength::Full => FULL,
            Strength::Quick => QUICK,
        }
    }

    /// The fewest bytes of a PIN.
    pub fn least_pin(self) -> usize {
        self.cost().least_pin()
    }

    /// Refuses a PIN that a seal of this strength does not take. Sealing does so by itself.
    pub fn refuse_length(self, owner: PinOwner, pin: &[u8]) -> std::result::Result<(), PinError> {
        self.cost().refuse_length(owner, pin)
    }
}

impl Cost {
    /// A seal that costs less than the full one, for whatever reason, takes long PINs only.
    fn least_pin(self) -> usize {
        let is_full = self.memory_kib >= FULL.memory_kib && self.passes >= FULL.passes;
        if is_full { LEAST_PIN } else { LEAST_PIN_IF_QUICK }
    }

    fn refuse_length(self, owner: PinOwner, pin: &[u8]) -> std::result::Result<(), PinError> {
        let least = self.least_pin();
        if (least..=MOST_PIN).contains(&pin.len()) { Ok(()) } else { Err(PinError::Length { owner, least }) }
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
        "the user's PIN is locked after {MOST_WRONG_PINS} wrong ones; the security officer sets a new one"
    )]
    Locked,
    /// There is no such PIN.
    #[error("there is no such PIN yet; the security officer sets it")]
    NotSet,
    /// It is too short or too long for the seal.
    #[error("the PIN of the {owner} has {least} to {MOST_PIN} bytes here")]
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pins {
    version: u32,
    memory_kib: u32,
    passes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    security_officer: SealedKey,
    user: Option<SealedKey>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedKey {
    #[serde(with = "hex::serde")]
    salt: [u8; 16],
    #[serde(with = "hex::serde")]
    nonce: [u8; 24],
    /// Key and certificate as in `identity.key`, and the tag.
    #[serde(with = "hex::serde")]
    sealed: Vec<u8>,
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

    /// Seals the key of a client's directory, and removes it from there. It must be in the clear, or given by who has unsealed it.
    pub fn seal(
        &self,
        identity: &StoredIdentity,
        officer: &[u8],
        user: Option<&[u8]>,
    ) -> std::result::Result<(), PinError> {
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

    /// Sets the PIN of one of the two, for who has unsealed the key. The user's PIN is no longer locked then.
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

    /// How many wrong PINs of the user were tried in a row.
    pub fn wrong_pins(&self) -> Result<u32> {
        let path = self.path.join(TRIES);
        if !path.exists() {
            return Ok(0);
        }
        let text = private::read(&path)?;
        let count = str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        // Who cannot say how many were tried allows no more.
        Ok(count.unwrap_or(MOST_WRONG_PINS))
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
                if tried >= MOST_WRONG_PINS {
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

    fn count(&self, wrong: u32) -> Result<()> {
        private::write(&self.path.join(TRIES), format!("{wrong}\n").as_bytes())
    }

    fn forget_tries(&self) -> Result<()> {
        remove(&self.path.join(TRIES))?;
        private::sync_dir(&self.path)
    }

    fn remove_clear_key(&self) -> Result<()> {
        remove(&self.path.join(rotation::KEY))?;
        private::sync_dir(&self.path)
    }

    /// Until it is dropped, no other process tries or changes a PIN.
    fn lock(&self) -> Result<Locked> {
        let path = self.path.join(LOCK);
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let file = file.map_err(Error::io(&path, "open"))?;
        file.lock().map_err(Error::io(&path, "lock"))?;
        Ok(Locked(file))
    }
}

/// The lock of a directory. It is released by name: closing the file would leave it to the child of a fork that another thread made
/// meanwhile, which has the same file open, and would wait for itself.
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

/// Counts a try while `make` makes the key of its PIN. What was made is given only if the try was counted: nothing depends on a PIN before.
/// Where no thread can be had, it is counted first.
fn counted<T>(count: impl Fn() -> Result<()> + Sync, make: impl FnOnce() -> T) -> Result<T> {
    std::thread::scope(|scope| {
        let Ok(counting) = std::thread::Builder::new().spawn_scoped(scope, &count) else {
            count()?;
            return Ok(make());
        };
        let made = make();
        counting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(made)
    })
}

/// Reads the file. An error says what is wrong.
pub(crate) fn parse(text: &str) -> Result<Pins> {
    let pins: Pins = text::parse(text)?;
    match (pins.version, pins.lanes) {
        (WITHOUT_LANES, None) | (VERSION, Some(_)) => {}
        (WITHOUT_LANES | VERSION, _) => {
            return Err(Error::misuse("was changed: version 1 has no lanes, and version 2 does"));
        }
        (version, _) => {
            return Err(Error::misuse(format!(
                "has version {version}, and this program reads versions {WITHOUT_LANES} and {VERSION}; use the program that wrote it"
            )));
        }
    }
    pins.costs().cost.refuse_excessive()?;
    Ok(pins)
}

impl Pins {
    fn costs(&self) -> Costs {
        let lanes = self.lanes.unwrap_or(1);
        let cost = Cost { memory_kib: self.memory_kib, passes: self.passes, lanes };
        Costs { version: self.version, cost }
    }
}

/// What keys cost, as a version of the file says it.
#[derive(Clone, Copy)]
struct Costs {
    version: u32,
    cost: Cost,
}

impl Costs {
    /// What is authenticated with the key.
    fn head(self, owner: PinOwner, salt: &[u8; 16]) -> Vec<u8> {
        let owner = match owner {
            PinOwner::User => 0,
            PinOwner::SecurityOfficer => 1,
        };
        let Cost { memory_kib, passes, lanes } = self.cost;
        let words = match self.version {
            WITHOUT_LANES => vec![WITHOUT_LANES, memory_kib, passes, owner],
            version => vec![version, memory_kib, passes, lanes, owner],
        };
        let words: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        [b"polyclave client pins", &words[..], salt].concat()
    }

    fn seal(
        self,
        identity: &StoredIdentity,
        owner: PinOwner,
        pin: &[u8],
    ) -> std::result::Result<SealedKey, PinError> {
        self.cost.refuse_length(owner, pin)?;
        let (mut salt, mut nonce) = ([0; 16], [0; 24]);
        for drawn in [&mut salt[..], &mut nonce[..]] {
            random_bytes(drawn).map_err(|e| Error::misuse(e.to_string()))?;
        }
        let (pem, head) = (identity.to_pem(), self.head(owner, &salt));
        let payload = Payload { msg: pem.as_bytes(), aad: &head };
        let sealed = self.cost.cipher(pin, &salt)?.encrypt(&nonce.into(), payload);
        let sealed = sealed.map_err(|_| Error::misuse("the key could not be sealed"))?;
        Ok(SealedKey { salt, nonce, sealed })
    }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, "remove")(e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::identity::tests::identity;

    /// PINs that a seal of little cost takes.
    const USER: &[u8] = b"a PIN of the user's own";
    const OFFICER: &[u8] = b"a PIN of the officer's own";
    const OTHER: &[u8] = b"another PIN of one of them";

    /// A client's directory with these PINs, at little cost.
    fn client(user: Option<&[u8]>) -> (tempfile::TempDir, SealedClient) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("alice");
        ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
        let client = SealedClient { path, cost: Cost { memory_kib: 16, passes: 1, lanes: 2 } };
        client.seal(&identity(1), OFFICER, user).expect("sealed");
        (dir, client)
    }

    /// A file as it is written.
    pub(crate) fn text() -> String {
        let (_dir, client) = client(Some(USER));
        fs::read_to_string(client.path.join(FILE)).expect("written")
    }

    #[test]
    fn a_sealed_key_is_in_the_clear_nowhere_and_opens_under_either_pin_only() {
        let (_dir, client) = client(Some(USER));
        assert!(!client.path.join("identity.key").exists());
        let told = ClientDir::open(&client.path).expect_err("sealed").to_string();
        assert!(told.contains("client unseal"), "{told}");
        for (owner, pin) in [(PinOwner::User, USER), (PinOwner::SecurityOfficer, OFFICER)] {
            let dir = client.unseal(owner, pin).expect("its PIN");
            assert_eq!((dir.name(), dir.identity()), ("alice", &identity(1)));
            for wrong in [&b""[..], b"12345", b"\xff\x00"] {
                assert!(matches!(client.unseal(owner, wrong), Err(PinError::Wrong)));
            }
        }
        assert!(matches!(client.unseal(PinOwner::User, OFFICER), Err(PinError::Wrong)));
    }

    #[test]
    fn ten_wrong_pins_lock_it_until_a_new_one_is_set_and_a_right_one_forgets_them() {
        let (_dir, client) = client(Some(USER));
        for _ in 0..9 {
            assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
        }
        client.unseal(PinOwner::User, USER).expect("its PIN");
        assert_eq!(client.wrong_pins().expect("counted"), 0);
        for _ in 0..10 {
            assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
        }
        for pin in [USER, b"0"] {
            assert!(matches!(client.unseal(PinOwner::User, pin), Err(PinError::Locked)));
        }
        let dir = client.unseal(PinOwner::SecurityOfficer, OFFICER).expect("not locked");
        client.set_pin(dir.identity(), PinOwner::User, OTHER).expect("set");
        client.unseal(PinOwner::User, OTHER).expect("the new one");
        assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Wrong)));
    }

    #[test]
    fn a_count_of_tries_that_nobody_can_read_locks() {
        let (_dir, client) = client(Some(USER));
        private::write(&client.path.join(TRIES), b"many").expect("written");
        assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Locked)));
    }

    #[test]
    fn without_a_user_pin_the_officer_sets_it_and_changes_the_own_one() {
        let (_dir, client) = client(None);
        assert!(!client.has_user_pin().expect("read"));
        assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::NotSet)));
        let dir = client.unseal(PinOwner::SecurityOfficer, OFFICER).expect("opened");
        client.set_pin(dir.identity(), PinOwner::User, USER).expect("set");
        client.set_pin(dir.identity(), PinOwner::SecurityOfficer, OTHER).expect("set");
        client.unseal(PinOwner::User, USER).expect("opened");
        client.unseal(PinOwner::SecurityOfficer, OTHER).expect("opened");
        assert!(matches!(client.unseal(PinOwner::SecurityOfficer, OFFICER), Err(PinError::Wrong)));
    }

    #[test]
    fn a_changed_file_opens_under_nothing() {
        let (_dir, client) = client(Some(USER));
        let pins = client.read().expect("read");
        let with = |change: &dyn Fn(&mut Pins)| {
            let mut changed = pins.clone();
            change(&mut changed);
            client.write(&changed).expect("written");
            client.count(0).expect("counted");
            assert!(client.unseal(PinOwner::User, USER).is_err());
        };
        let user = |pins: &mut Pins| pins.user.clone().expect("there is one");
        with(&|pins| pins.user = Some(SealedKey { salt: [0; 16], ..user(pins) }));
        with(&|pins| pins.user = Some(SealedKey { nonce: [0; 24], ..user(pins) }));
        with(&|pins| pins.user.as_mut().expect("there is one").sealed[5] ^= 1);
        with(&|pins| pins.memory_kib += 8);
        with(&|pins| pins.passes += 1);
        with(&|pins| pins.lanes = Some(1));
        with(&|pins| (pins.version, pins.lanes) = (WITHOUT_LANES, None));
        with(&|pins| pins.lanes = None);
        with(&|pins| pins.user = Some(pins.security_officer.clone()));
    }

    /// Sealed by hand as version 1 says, under "officer" and "1234", with one lane.
    pub(crate) const VERSION_1: &str = include_str!("pins/version-1.toml");

    #[test]
    fn a_directory_from_before_lanes_opens_and_keeps_its_version_until_it_is_sealed_anew() {
        let (_dir, client) = client(None);
        private::write(&client.path.join(FILE), VERSION_1.as_bytes()).expect("written");
        let opens =
            |owner, pin: &[u8]| client.unseal(owner, pin).expect("its PIN").identity() == &identity(1);
        assert!(opens(PinOwner::User, b"1234") && opens(PinOwner::SecurityOfficer, b"officer"));
        client.set_pin(&identity(1), PinOwner::User, OTHER).expect("set");
        assert!(opens(PinOwner::User, OTHER) && opens(PinOwner::SecurityOfficer, b"officer"));
        assert_eq!(client.read().expect("read").lanes, None);
        client.unseal_for_good(PinOwner::User, OTHER).expect("its PIN");
        client.seal(&identity(1), OFFICER, Some(USER)).expect("sealed");
        assert!(opens(PinOwner::User, USER));
        assert_eq!(client.read().expect("read").lanes, Some(2));
    }

    #[test]
    fn a_seal_that_costs_less_says_so_in_its_file_and_takes_long_pins_only() {
        let (_dir, client) = client(Some(USER));
        let (pin, other) = (b"correct horse battery", b"battery horse correct");
        for (strength, cost, least) in [(Strength::Quick, (19456, 2), 20), (Strength::Full, (65536, 3), 4)] {
            let client = SealedClient::at(&client.path).of_strength(strength);
            client.seal(&identity(1), pin, Some(pin)).expect("sealed");
            let least = |client: &SealedClient| client.least_pin().expect("read") == least;
            assert!(least(&client) && strength.least_pin() == client.least_pin().expect("read"));
            // Whoever opens it need not know.
            let client = SealedClient::at(&client.path);
            client.unseal(PinOwner::User, pin).expect("its PIN");
            client.set_pin(&identity(1), PinOwner::User, other).expect("set");
            client.unseal(PinOwner::User, other).expect("the new one");
            let pins = client.read().expect("read");
            assert_eq!((pins.memory_kib, pins.passes), cost, "another PIN costs as much");
            assert!(least(&client));
        }
    }

    #[test]
    fn a_seal_refuses_pins_that_are_too_short_or_too_long_for_it_and_stays_as_it_was() {
        let (_dir, client) = client(Some(USER));
        let before = client.read().expect("read");
        for (strength, least) in [(Strength::Quick, 20), (Strength::Full, 4)] {
            let other = client.clone().of_strength(strength);
            for pin in [vec![b'1'; least - 1], vec![b'1'; MOST_PIN + 1]] {
                let told = other.seal(&identity(1), &pin, None).expect_err("the officer's");
                assert!(
                    matches!(told, PinError::Length { owner: PinOwner::SecurityOfficer, least: l } if l == least)
                );
                let told = other.seal(&identity(1), OFFICER, Some(&pin)).expect_err("the user's");
                assert!(matches!(told, PinError::Length { owner: PinOwner::User, least: l } if l == least));
                assert!(strength.refuse_length(PinOwner::User, &pin).is_err());
            }
            let few = vec![b'1'; least];
            assert!(strength.refuse_length(PinOwner::User, &few).is_ok());
        }
        let told = client.set_pin(&identity(1), PinOwner::User, &[b'1'; 19]).expect_err("its cost is small");
        assert_eq!(told.to_string(), "the PIN of the user has 20 to 255 bytes here");
        assert_eq!(client.read().expect("read"), before);
    }

    #[test]
    fn a_lock_ends_although_a_process_has_inherited_its_file() {
        let (_dir, client) = client(Some(USER));
        let locked = client.lock().expect("locked");
        let inherited = locked.0.try_clone().expect("the same file, as after a fork");
        drop(locked);
        client.unseal(PinOwner::User, USER).expect("nobody holds the lock");
        drop(inherited);
    }

    #[test]
    fn a_wrong_try_stays_counted_and_a_right_one_leaves_no_count() {
        let (_dir, client) = client(Some(USER));
        assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
        assert_eq!(client.wrong_pins().expect("counted"), 1);
        client.unseal(PinOwner::User, USER).expect("its PIN");
        assert!(!client.path.join(TRIES).exists());
    }

    #[test]
    fn a_right_pin_that_cannot_be_counted_opens_nothing_and_tells_nothing() {
        let (_dir, client) = client(Some(USER));
        let full = |_| Err(Error::misuse("the disk is full"));
        for pin in [USER, b"0"] {
            let told = client.unseal_counting(PinOwner::User, pin, full).expect_err("not counted");
            assert!(matches!(&told, PinError::Files(e) if e.to_string().contains("disk is full")), "{told}");
        }
        client
            .unseal_counting(PinOwner::SecurityOfficer, OFFICER, full)
            .expect("nobody counts the officer's");
    }

    #[test]
    fn a_try_whose_key_cannot_be_made_does_not_count() {
        let (_dir, client) = client(Some(USER));
        assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
        let pins = client.read().expect("read");
        // Too little memory for so many lanes: no key can be made, as if the machine had no thread for it.
        client.write(&Pins { lanes: Some(64), ..pins.clone() }).expect("written");
        for _ in 0..=MOST_WRONG_PINS {
            assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Files(_))));
            assert_eq!(client.wrong_pins().expect("counted"), 1);
        }
        client.write(&pins).expect("written");
        client.unseal(PinOwner::User, USER).expect("not locked");
    }

    #[test]
    fn an_unsealed_client_is_as_it_was() {
        let (_dir, client) = client(Some(USER));
        assert!(client.unseal_for_good(PinOwner::User, b"0").is_err());
        client.unseal_for_good(PinOwner::User, USER).expect("its PIN");
        assert_eq!(ClientDir::open(&client.path).expect("opened").identity(), &identity(1));
        assert!(!SealedClient::is_sealed(&client.path));
    }
}
