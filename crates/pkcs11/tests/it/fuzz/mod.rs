//! Any sequence of calls of all functions, over real nodes: null in every argument, handles of nothing, wrong
//! lengths and order, broken parameters of mechanisms, buffers too small by one, templates that contradict
//! themselves, any bytes as PINs. Each call answers with a value that the standard has for its kind, and
//! writes no more than it says.
//!
//! With `POLYCLAVE_PKCS11_CLIENT=DIR` the nodes are those of another process, such as
//! `polyclave cluster run`, and `DIR` is their client's directory, whose key is sealed under the PINs of
//! these tests. So valgrind observes the library alone.

mod arguments;
mod calls;
mod memory;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr;
use std::sync::Mutex;

use cryptoki_sys::*;
use polyclave_config::{ClientDir, PinOwner, SealedClient};

use self::arguments::Choice;
use self::calls::Sequence;
use crate::common::*;

/// Calls of an input.
const CALLS: usize = 24;

/// Functions that some input must have reached with right arguments: a test in which they only fail shows
/// little.
const MUST_BE_SERVED: [&str; 7] =
    ["C_Encrypt", "C_Decrypt", "C_Sign", "C_Digest", "C_GenerateKey", "C_WrapKey", "C_FindObjects"];

/// Inputs that are tried besides the random ones while one of those functions was not served. About one in
/// eighty serves the rarest.
const MAX_MORE_INPUTS: u32 = 8_000;

/// Kinds of functions, by what they may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Library,
    List,
    Session,
    Cipher,
    Code,
    Digest,
    Object,
    /// A function that need not be there.
    Any,
}

/// What every function may answer.
const ALWAYS: [CK_RV; 4] = [CKR_OK, CKR_ARGUMENTS_BAD, CKR_CRYPTOKI_NOT_INITIALIZED, CKR_DEVICE_ERROR];
/// What every function of a session may answer.
const SESSION: [CK_RV; 3] = [CKR_SESSION_HANDLE_INVALID, CKR_USER_NOT_LOGGED_IN, CKR_FUNCTION_FAILED];
/// What every function may answer that uses a key.
const KEY: [CK_RV; 10] = [
    CKR_KEY_HANDLE_INVALID,
    CKR_KEY_TYPE_INCONSISTENT,
    CKR_KEY_FUNCTION_NOT_PERMITTED,
    CKR_KEY_SIZE_RANGE,
    CKR_KEY_EXHAUSTED,
    CKR_MECHANISM_INVALID,
    CKR_MECHANISM_PARAM_INVALID,
    CKR_OPERATION_ACTIVE,
    CKR_OPERATION_NOT_INITIALIZED,
    CKR_BUFFER_TOO_SMALL,
];

impl Kind {
    /// What a function of this kind may answer besides.
    fn answers(self) -> &'static [CK_RV] {
        match self {
            Kind::Library => &[CKR_SLOT_ID_INVALID, CKR_MECHANISM_INVALID, CKR_FUNCTION_FAILED],
            Kind::List => &[CKR_SLOT_ID_INVALID, CKR_BUFFER_TOO_SMALL],
            Kind::Session => &[
                CKR_SLOT_ID_INVALID,
                CKR_CANT_LOCK,
                CKR_CRYPTOKI_ALREADY_INITIALIZED,
                CKR_SESSION_PARALLEL_NOT_SUPPORTED,
                CKR_SESSION_READ_ONLY,
                CKR_SESSION_READ_ONLY_EXISTS,
                CKR_SESSION_READ_WRITE_SO_EXISTS,
                CKR_SESSION_EXISTS,
                CKR_PIN_INCORRECT,
                CKR_PIN_INVALID,
                CKR_PIN_LEN_RANGE,
                CKR_PIN_LOCKED,
                CKR_USER_PIN_NOT_INITIALIZED,
                CKR_USER_TYPE_INVALID,
                CKR_USER_ALREADY_LOGGED_IN,
                CKR_USER_ANOTHER_ALREADY_LOGGED_IN,
                CKR_OPERATION_NOT_INITIALIZED,
                CKR_TOKEN_WRITE_PROTECTED,
            ],
            Kind::Cipher => &[
                CKR_DATA_LEN_RANGE,
                CKR_ENCRYPTED_DATA_INVALID,
                CKR_ENCRYPTED_DATA_LEN_RANGE,
                CKR_AEAD_DECRYPT_FAILED,
            ],
            Kind::Code => &[CKR_DATA_LEN_RANGE, CKR_SIGNATURE_INVALID, CKR_SIGNATURE_LEN_RANGE],
            Kind::Digest => &[CKR_KEY_INDIGESTIBLE],
            Kind::Object => &[
                CKR_OBJECT_HANDLE_INVALID,
                CKR_SESSION_READ_ONLY,
                CKR_ACTION_PROHIBITED,
                CKR_ATTRIBUTE_READ_ONLY,
                CKR_ATTRIBUTE_SENSITIVE,
                CKR_ATTRIBUTE_TYPE_INVALID,
                CKR_ATTRIBUTE_VALUE_INVALID,
                CKR_TEMPLATE_INCOMPLETE,
                CKR_TEMPLATE_INCONSISTENT,
                CKR_KEY_UNEXTRACTABLE,
                CKR_KEY_NOT_WRAPPABLE,
                CKR_WRAPPING_KEY_HANDLE_INVALID,
                CKR_WRAPPING_KEY_TYPE_INCONSISTENT,
                CKR_UNWRAPPING_KEY_HANDLE_INVALID,
                CKR_UNWRAPPING_KEY_TYPE_INCONSISTENT,
                CKR_WRAPPED_KEY_INVALID,
                CKR_WRAPPED_KEY_LEN_RANGE,
            ],
            Kind::Any => &[],
        }
    }

    fn allows(self, rv: CK_RV) -> bool {
        let has = |all: &[CK_RV]| all.contains(&rv);
        let of_session = self != Kind::Library && self != Kind::List && has(&SESSION);
        let of_key = [Kind::Cipher, Kind::Code, Kind::Digest, Kind::Object].contains(&self) && has(&KEY);
        has(&ALWAYS) || of_session || of_key || has(self.answers()) || (self == Kind::Any && is_any(rv))
    }
}

/// Functions that this library may or may not have. A panic is none of their answers.
fn is_any(rv: CK_RV) -> bool {
    rv == CKR_FUNCTION_NOT_SUPPORTED
        || rv == CKR_FUNCTION_NOT_PARALLEL
        || rv == CKR_NO_EVENT
        || rv == CKR_SAVED_STATE_INVALID
        || rv == CKR_STATE_UNSAVEABLE
        || rv == CKR_KEY_NOT_NEEDED
        || rv == CKR_KEY_CHANGED
        || rv == CKR_KEY_NEEDED
        || KEY.contains(&rv)
        || [Kind::Session, Kind::Cipher, Kind::Code, Kind::Object]
            .iter()
            .any(|kind| kind.answers().contains(&rv))
}

/// Nodes, a module, and a user who is logged in while sequences come and go.
pub struct World {
    /// Nodes in this process, and where files are.
    _nodes: Option<TestCluster>,
    _files: tempfile::TempDir,
    /// The directory of the nodes' client.
    place: PathBuf,
    client: ClientDir,
    pub module: Module,
    configuration: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The session that keeps the user logged in.
    keeper: CK_SESSION_HANDLE,
    /// Keys of AES and Triple DES, for everything and for little.
    keys: Vec<CK_OBJECT_HANDLE>,
    /// How often each function answered what.
    answers: BTreeMap<(&'static str, CK_RV), u64>,
}

impl World {
    fn start() -> World {
        let elsewhere = std::env::var_os("POLYCLAVE_PKCS11_CLIENT").map(PathBuf::from);
        let nodes = elsewhere.is_none().then(TestCluster::start);
        let place = elsewhere.or(nodes.as_ref().map(|nodes| nodes.local.client.clone())).expect("a client");
        if let Ok(client) = ClientDir::open(&place) {
            SealedClient::at(&place).seal(client.identity(), SO_PIN, Some(USER_PIN)).expect("sealed");
        }
        let files = tempfile::tempdir().expect("a directory");
        // The nodes of the second token are not there, and the third may be begun anew.
        let client = place.display();
        let token = |n: u32, client: &str, more: &str| {
            format!(
                "[[token]]\nlabel = \"fuzz-{n}\"\nclient = \"{client}\"\nprefix = \"f{n}.\"\nretry_seconds = 60\n{more}\n"
            )
        };
        let text = [
            token(0, &client.to_string(), ""),
            token(1, "/nowhere", ""),
            token(2, &client.to_string(), "allow_init = true"),
        ];
        let configuration = files.path().join("fuzz.toml");
        std::fs::write(&configuration, text.concat()).expect("written");
        let module = Module::with(&configuration);
        let client = SealedClient::at(&place).unseal(PinOwner::SecurityOfficer, SO_PIN).expect("its PIN");
        let (_nodes, _files, state) = (nodes, files, Mutex::default());
        let world = World { _nodes, _files, place, client, module, configuration, state };
        world.repair();
        world
    }

    pub fn initialize(&self, arguments: *mut c_void) -> CK_RV {
        self.module.initialize_with(&self.configuration, arguments)
    }

    pub fn keys(&self) -> Vec<CK_OBJECT_HANDLE> {
        self.lock().keys.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|broken| broken.into_inner())
    }

    fn sealed(&self) -> SealedClient {
        SealedClient::at(&self.place)
    }

    fn keeper(&self) -> Session<'_> {
        Session { module: &self.module, handle: self.lock().keeper }
    }

    /// Makes what the last sequence took away: the library's state, the login, the PIN, the keys.
    fn repair(&self) {
        let mut info = CK_SESSION_INFO::default();
        let message = call!(self.module, C_GetSessionInfo(self.keeper().handle, &mut info));
        if message != CKR_OK || info.state != CKS_RW_USER_FUNCTIONS {
            let _ = self.initialize(ptr::null_mut());
            call!(self.module, C_CloseAllSessions(0));
            self.lock().keeper = Session::open(&self.module, 0).handle;
            if self.keeper().login(CKU_USER, USER_PIN) != CKR_OK {
                // A sequence has changed a PIN, taken it away, or locked it.
                self.sealed().seal(self.client.identity(), SO_PIN, Some(USER_PIN)).expect("sealed");
                assert_eq!(self.keeper().login(CKU_USER, USER_PIN), CKR_OK);
            }
            // Handles are forgotten when the library ends, and known again when the nodes were asked.
            self.keeper().find(vec![]);
        }
        let mut keys = self.keys();
        for (at, (kind, attributes)) in recipes().into_iter().enumerate() {
            let is_good = |key: &CK_OBJECT_HANDLE| {
                let has = |(kind, value): &Attribute| {
                    *kind == CKA_VALUE_LEN || self.keeper().attribute(*key, *kind).as_ref() == Ok(value)
                };
                attributes.iter().all(has)
            };
            // Nodes on a busy machine may take too long for each other.
            let make = || until_served(|| self.keeper().generate(kind, attributes.clone())).expect("a key");
            match keys.get(at) {
                Some(key) if is_good(key) => continue,
                Some(_) => keys[at] = make(),
                None => keys.push(make()),
            }
        }
        self.lock().keys = keys;
    }

    /// Does what an input says.
    fn run(&self, input: &[u8]) {
        self.repair();
        let mut choice = Choice::new(input);
        let mut sequence = Sequence::new(self);
        sequence.sessions.push(Session::open(&self.module, 0).handle);
        for _ in 0..CALLS {
            let (name, kind, rv) = sequence.step(&mut choice);
            assert!(kind.allows(rv), "{name} answers {rv:#x}\n{}", self.end_of_log());
            *self.lock().answers.entry((name, rv)).or_default() += 1;
        }
        for object in sequence.made {
            call!(self.module, C_DestroyObject(self.keeper().handle, object));
        }
        for session in sequence.sessions {
            call!(self.module, C_CloseSession(session));
        }
    }

    /// One of the functions that every run serves at least once, if it was not served yet.
    fn never_served(&self) -> Option<&'static str> {
        let state = self.lock();
        MUST_BE_SERVED.into_iter().find(|name| !state.answers.contains_key(&(*name, CKR_OK)))
    }

    fn end_of_log(&self) -> String {
        let log = log_of(&self.configuration);
        log.lines().rev().take(5).collect::<Vec<_>>().join("\n")
    }
}

/// Keys that all sequences use: for data and codes, for keys, for little.
fn recipes() -> Vec<(CK_MECHANISM_TYPE, Vec<Attribute>)> {
    let yes = |kinds: &[CK_ATTRIBUTE_TYPE]| kinds.iter().map(|kind| flag(*kind, true)).collect::<Vec<_>>();
    let of_data = [CKA_TOKEN, CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_EXTRACTABLE];
    let of_keys = [CKA_TOKEN, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE, CKA_EXTRACTABLE];
    let aes = |kinds: &[CK_ATTRIBUTE_TYPE], bytes| {
        let mut attributes = yes(kinds);
        attributes.push(number(CKA_VALUE_LEN, bytes));
        (CKM_AES_KEY_GEN, attributes)
    };
    vec![
        aes(&of_data, 32),
        aes(&of_keys, 16),
        (CKM_DES3_KEY_GEN, yes(&[CKA_TOKEN, CKA_ENCRYPT, CKA_DECRYPT, CKA_SIGN, CKA_VERIFY, CKA_DERIVE])),
        aes(&[CKA_TOKEN, CKA_ENCRYPT], 16),
    ]
}

#[test]
fn no_sequence_of_calls_breaks_the_library() {
    let world = std::panic::AssertUnwindSafe(World::start());
    let valid = (0..12u8).map(|group| [0, group].repeat(4)).collect();
    polyclave_harness::fuzz!(quick = 400, "pkcs11-calls", &[], valid, |input: &[u8]| world.run(input));
    // A campaign may be too short for some function to be served.
    if std::env::var_os("BOLERO_RANDOM_ITERATIONS").is_none() {
        // Random inputs may never reach a function that takes several calls in the right order. More inputs
        // are tried until they do.
        let mut more = (0..MAX_MORE_INPUTS).map(u32::to_le_bytes);
        while let (Some(name), Some(input)) = (world.never_served(), more.next()) {
            println!("{name} was not served yet");
            world.run(&input);
        }
        assert_eq!(world.never_served(), None, "a function that was never served");
    }
    let answers = std::mem::take(&mut world.lock().answers);
    for ((name, rv), count) in &answers {
        println!("{name} {rv:#x} {count}");
    }
    println!("{} calls", answers.values().sum::<u64>());
}
