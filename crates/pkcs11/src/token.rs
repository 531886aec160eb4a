//! A token: the keys of a client under a prefix, the state of the login, and the objects behind its handles.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cryptoki_sys::*;
use parking_lot::{Mutex, RwLock};
use polyclave_client::{Client, Error};
use polyclave_config::{ClientDir, MAX_WRONG_PINS, PinOwner, SealedClient, Strength};

use crate::attributes::Object;
use crate::batches::Batches;
use crate::configuration::TokenSettings;
use crate::rv::{Doing, Result, Rv, because, of_client};

/// Between two tries while nodes are busy, or notice that one of them is gone.
const BETWEEN: Duration = Duration::from_millis(100);

/// Handles of objects, of all tokens of the process: none is used twice.
static NEXT_OBJECT: AtomicU64 = AtomicU64::new(1);

/// The user that is logged in, in all sessions of a token.
#[derive(Clone)]
pub(crate) enum Login {
    Nobody,
    User(Arc<Client>),
    /// The security officer, with the key of the client, to seal it under a new PIN.
    SecurityOfficer(Arc<ClientDir>),
}

/// A token.
pub(crate) struct Token {
    pub(crate) slot: CK_SLOT_ID,
    pub(crate) settings: TokenSettings,
    sealed: SealedClient,
    login: RwLock<Login>,
    /// How many have logged out. Counted when they have.
    logouts: AtomicU64,
    /// One login, or change of a PIN, at a time.
    changing: Mutex<()>,
    objects: Mutex<Objects>,
    pub(crate) batches: Batches,
}

#[derive(Default)]
struct Objects {
    by_handle: HashMap<CK_OBJECT_HANDLE, Arc<Object>>,
    by_id: HashMap<[u8; 16], CK_OBJECT_HANDLE>,
    /// Session objects. Thousands of sessions may be closed while thousands of objects are known.
    by_session: HashMap<CK_SESSION_HANDLE, HashSet<CK_OBJECT_HANDLE>>,
}

impl Token {
    pub(crate) fn new(slot: CK_SLOT_ID, settings: TokenSettings) -> Token {
        let sealed = SealedClient::at(&settings.client);
        let (login, changing) = (RwLock::new(Login::Nobody), Mutex::new(()));
        Token {
            slot,
            settings,
            sealed,
            login,
            logouts: AtomicU64::new(0),
            changing,
            objects: Mutex::default(),
            batches: Batches::default(),
        }
    }

    /// The flags of the token that depend on its PINs.
    pub(crate) fn flags(&self) -> CK_FLAGS {
        let mut flags = CKF_RNG | CKF_LOGIN_REQUIRED;
        if !SealedClient::is_sealed(&self.settings.client) {
            return flags;
        }
        flags |= CKF_TOKEN_INITIALIZED;
        if self.sealed.has_user_pin().unwrap_or(false) {
            flags |= CKF_USER_PIN_INITIALIZED;
        }
        let wrong = self.sealed.wrong_pins().unwrap_or(MAX_WRONG_PINS);
        if wrong > 0 {
            flags |= CKF_USER_PIN_COUNT_LOW;
        }
        if wrong == MAX_WRONG_PINS - 1 {
            flags |= CKF_USER_PIN_FINAL_TRY;
        }
        if wrong >= MAX_WRONG_PINS {
            flags |= CKF_USER_PIN_LOCKED;
        }
        flags
    }

    /// The fewest bytes of another PIN.
    pub(crate) fn least_pin(&self) -> usize {
        self.sealed.least_pin().unwrap_or(Strength::Full.least_pin())
    }

    pub(crate) fn login(&self) -> Login {
        self.login.read().clone()
    }

    /// The client of the user who is logged in.
    pub(crate) fn client(&self) -> Result<Arc<Client>> {
        match self.login() {
            Login::User(client) => Ok(client),
            Login::Nobody | Login::SecurityOfficer(_) => Err(Rv(CKR_USER_NOT_LOGGED_IN)),
        }
    }

    fn refuse_unsealed(&self) -> Result<()> {
        if SealedClient::is_sealed(&self.settings.client) {
            return Ok(());
        }
        let dir = self.settings.client.display();
        Err(because(
            CKR_USER_PIN_NOT_INITIALIZED,
            format!("{dir} has no PINs; give it some with `polyclave client seal {dir}`"),
        ))
    }

    /// Logs somebody in, in all sessions. `read_only`: whether some session only reads.
    pub(crate) fn log_in(&self, owner: PinOwner, pin: &[u8], read_only: bool) -> Result<()> {
        let _one_at_a_time = self.changing.lock();
        match (self.login(), owner) {
            (Login::User(_), PinOwner::User) | (Login::SecurityOfficer(_), PinOwner::SecurityOfficer) => {
                return Err(Rv(CKR_USER_ALREADY_LOGGED_IN));
            }
            (Login::Nobody, _) => {}
            _ => return Err(Rv(CKR_USER_ANOTHER_ALREADY_LOGGED_IN)),
        }
        if owner == PinOwner::SecurityOfficer && read_only {
            return Err(Rv(CKR_SESSION_READ_ONLY_EXISTS));
        }
        self.refuse_unsealed()?;
        let dir = self.sealed.unseal(owner, pin)?;
        let login = match owner {
            PinOwner::SecurityOfficer => Login::SecurityOfficer(Arc::new(dir)),
            PinOwner::User => Login::User(Arc::new(open(&dir)?)),
        };
        *self.login.write() = login;
        Ok(())
    }

    /// How many have logged out since the module was initialized.
    pub(crate) fn logouts(&self) -> u64 {
        self.logouts.load(Ordering::SeqCst)
    }

    /// Logs out. The caller ends the operations of all sessions then: each holds the client of its login. So
    /// the client's key is gone from the memory when the last call has ended that was under way. No thread is
    /// left, and no connection besides those of such calls.
    pub(crate) fn log_out(&self) -> Result<()> {
        let _one_at_a_time = self.changing.lock();
        let login = std::mem::replace(&mut *self.login.write(), Login::Nobody);
        match login {
            Login::Nobody => return Err(Rv(CKR_USER_NOT_LOGGED_IN)),
            Login::User(client) => client.end(),
            Login::SecurityOfficer(_) => {}
        }
        // After the login is gone: an operation that begins from here on has the client of another one.
        self.logouts.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// The security officer gives the user a PIN.
    pub(crate) fn init_pin(&self, pin: &[u8]) -> Result<()> {
        let _one_at_a_time = self.changing.lock();
        match self.login() {
            Login::SecurityOfficer(dir) => Ok(self.sealed.set_pin(dir.identity(), PinOwner::User, pin)?),
            Login::Nobody | Login::User(_) => Err(Rv(CKR_USER_NOT_LOGGED_IN)),
        }
    }

    /// Changes the PIN of the owner that is logged in, or of the user if nobody is.
    pub(crate) fn set_pin(&self, old: &[u8], new: &[u8]) -> Result<()> {
        let _one_at_a_time = self.changing.lock();
        self.refuse_unsealed()?;
        let owner = match self.login() {
            Login::SecurityOfficer(_) => PinOwner::SecurityOfficer,
            Login::Nobody | Login::User(_) => PinOwner::User,
        };
        let dir = self.sealed.unseal(owner, old)?;
        Ok(self.sealed.set_pin(dir.identity(), owner, new)?)
    }

    /// Deletes the token's keys and seals the client's key anew, under the PIN of the security officer alone.
    pub(crate) fn init(&self, pin: &[u8], label: &[u8; 32]) -> Result<()> {
        let _one_at_a_time = self.changing.lock();
        if !self.settings.allow_init {
            let why = "pkcs11.toml does not allow to delete all keys of this token (allow_init)";
            return Err(because(CKR_TOKEN_WRITE_PROTECTED, why));
        }
        if label.trim_ascii_end() != self.settings.label.as_bytes() {
            return Err(because(CKR_ARGUMENTS_BAD, "the label of a token is the one in pkcs11.toml"));
        }
        // It is sealed anew, at full strength: if that takes no such PIN, nothing is deleted either.
        Strength::Full.refuse_length(PinOwner::SecurityOfficer, pin)?;
        let dir = match SealedClient::is_sealed(&self.settings.client) {
            true => self.sealed.unseal(PinOwner::SecurityOfficer, pin)?,
            false => ClientDir::open(&self.settings.client)?,
        };
        let client = open(&dir)?;
        let deleted = self.delete_all(&client);
        client.end();
        deleted?;
        *self.objects.lock() = Objects::default();
        Ok(self.sealed.seal(dir.identity(), pin, None)?)
    }

    fn delete_all(&self, client: &Client) -> Result<()> {
        let listing = self.ask(client, Doing::Managing, || client.keys())?;
        let mut names: Vec<String> = listing.keys.into_iter().map(|key| key.info.properties.name).collect();
        names.dedup();
        for name in names.iter().filter(|name| name.starts_with(&self.settings.prefix)) {
            self.ask(client, Doing::Managing, || client.delete(name))?;
        }
        Ok(())
    }

    /// Asks the nodes. While they are busy or have no material, they are asked again for as long as the
    /// configuration says; if a node was lost on the way, at once, as often as there are nodes.
    pub(crate) fn ask<T>(
        &self,
        client: &Client,
        doing: Doing,
        work: impl FnMut() -> polyclave_client::Result<T>,
    ) -> Result<T> {
        self.ask_until(self.until(), client, doing, work)
    }

    /// Until when busy nodes are asked again for what is asked now.
    pub(crate) fn until(&self) -> Instant {
        Instant::now() + Duration::from_secs(self.settings.retry_seconds.into())
    }

    /// The same for what was to be asked earlier, at least once.
    pub(crate) fn ask_until<T>(
        &self,
        until: Instant,
        client: &Client,
        doing: Doing,
        mut work: impl FnMut() -> polyclave_client::Result<T>,
    ) -> Result<T> {
        let mut lost = client.cluster().nodes();
        loop {
            let error = match work() {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let waits = matches!(&error, Error::Refused { refusal, .. } if {
                use polyclave_api::Reason;
                matches!(refusal.reason, Reason::Busy | Reason::OutOfMaterial)
            }) || matches!(error, Error::Contested(_));
            // What makes or changes a key may have happened although the answer was lost.
            let is_use = matches!(doing, Doing::Using | Doing::Message);
            let repeats = is_use && error.may_be_repeated();
            if repeats && lost > 0 {
                lost -= 1;
            } else if !waits || Instant::now() >= until {
                return Err(of_client(&error, doing));
            }
            crate::log::detail(&format!("asked again: {error}"));
            std::thread::sleep(BETWEEN);
        }
    }

    /// The handle of an object: always the same for the same version of a key.
    pub(crate) fn handle_of(&self, object: Object) -> CK_OBJECT_HANDLE {
        let mut objects = self.objects.lock();
        let id = object.info.id;
        let handle = *objects.by_id.entry(id).or_insert_with(|| NEXT_OBJECT.fetch_add(1, Ordering::Relaxed));
        // What nodes list says nothing about sessions.
        let session = objects.by_handle.get(&handle).and_then(|known| known.session).or(object.session);
        if let Some(session) = session {
            objects.by_session.entry(session).or_default().insert(handle);
        }
        objects.by_handle.insert(handle, Arc::new(Object { session, ..object }));
        handle
    }

    /// Whether a session of this process made it.
    pub(crate) fn has_session_object(&self, object: &Object) -> bool {
        let objects = self.objects.lock();
        let known = objects.by_id.get(&object.info.id).and_then(|handle| objects.by_handle.get(handle));
        known.is_some_and(|known| known.session.is_some())
    }

    /// What a handle stands for.
    pub(crate) fn object(&self, handle: CK_OBJECT_HANDLE) -> Option<Arc<Object>> {
        self.objects.lock().by_handle.get(&handle).cloned()
    }

    /// Forgets what a handle stands for.
    pub(crate) fn forget(&self, handle: CK_OBJECT_HANDLE) {
        let mut objects = self.objects.lock();
        let Some(object) = objects.by_handle.remove(&handle) else { return };
        objects.by_id.remove(&object.info.id);
        let Some(session) = object.session else { return };
        if let Some(others) = objects.by_session.get_mut(&session) {
            others.remove(&handle);
            if others.is_empty() {
                objects.by_session.remove(&session);
            }
        }
    }

    /// The session objects of a session; of all sessions for `None`.
    pub(crate) fn session_objects(
        &self,
        session: Option<CK_SESSION_HANDLE>,
    ) -> Vec<(CK_OBJECT_HANDLE, Arc<Object>)> {
        let objects = self.objects.lock();
        let handles: Vec<CK_OBJECT_HANDLE> = match session {
            Some(session) => objects.by_session.get(&session).into_iter().flatten().copied().collect(),
            None => objects.by_session.values().flatten().copied().collect(),
        };
        let known = |handle| objects.by_handle.get(&handle).map(|object| (handle, object.clone()));
        handles.into_iter().filter_map(known).collect()
    }
}

fn open(dir: &ClientDir) -> Result<Client> {
    let client = Client::open(dir).map_err(|e| of_client(&e, Doing::Managing))?;
    Ok(client.on_remark(|remark| crate::log::line(&format!("warning: {remark}"))))
}
