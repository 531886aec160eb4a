//! A cluster, copies of the library, and its functions with the types of Rust.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes128Gcm, KeyInit};
use cryptoki_sys::*;
use libloading::Library;
use polyclave_client::Client;
use polyclave_config::{ClientDir, NodeDir, NodeSettings, PinOwner, SealedClient, StockSettings};
use polyclave_node::local::{Local, create};
use polyclave_node::{Cheat, Running};

pub const USER_PIN: &[u8] = b"user pin";
pub const SO_PIN: &[u8] = b"officer pin";
/// How long a test waits for what nodes do by themselves: much longer than it takes, since machines are busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Nodes in this process, and a client whose key is sealed.
pub struct TestCluster {
    pub nodes: Vec<Option<Running>>,
    pub local: Local,
    dir: tempfile::TempDir,
}

impl TestCluster {
    pub fn start() -> TestCluster {
        let mut cluster = TestCluster::define("shamir", 3, 1);
        cluster.change_settings(|settings| {
            settings.limits.requests_at_once_per_client = 64;
            // All tokens of all tests are the same client.
            settings.limits.connections_per_client = 512;
        });
        (0..3).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        cluster
    }

    /// Makes the directories and starts nothing.
    pub fn define(protocol: &str, nodes: usize, threshold: usize) -> TestCluster {
        let dir = tempfile::tempdir().expect("a directory");
        let local = create(&dir.path().join("cluster"), protocol, nodes, threshold).expect("a cluster");
        let client = ClientDir::open(&local.client).expect("its directory");
        SealedClient::at(&local.client).seal(client.identity(), SO_PIN, Some(USER_PIN)).expect("sealed");
        TestCluster { nodes: (0..nodes).map(|_| None).collect(), local, dir }
    }

    /// Changes the settings of all nodes, which they read when they start.
    pub fn change_settings(&self, change: impl Fn(&mut NodeSettings)) {
        for path in &self.local.nodes {
            let mut node = NodeDir::open(path).expect("its directory");
            let mut settings = node.settings().clone();
            change(&mut settings);
            node.set_settings(settings).expect("saved");
        }
    }

    /// For how many blocks the nodes keep material.
    pub fn set_stock(&self, blocks: usize) {
        self.change_settings(|settings| settings.stock = StockSettings::of(blocks, 0));
    }

    pub fn start_cheating(&mut self, node: usize, how: Cheat) {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        self.nodes[node] = Some(Running::start_cheating(dir, how).expect("it starts"));
    }

    pub fn stop(&mut self, node: usize) {
        self.nodes[node].take().expect("it runs").stop();
    }

    /// Waits until the nodes are ready and have all their material.
    pub fn wait_until_full(&self) {
        self.wait_until_ready();
        let is_full = |node: &Running| {
            let stock = node.status().stock;
            !stock.is_empty() && stock.iter().all(|kind| kind.blocks >= kind.level)
        };
        wait_until(|| self.nodes.iter().flatten().all(is_full));
    }

    pub fn restart(&mut self, node: usize) {
        let dir = NodeDir::open(&self.local.nodes[node]).expect("its directory");
        self.nodes[node] = Some(Running::start(dir).expect("it starts"));
    }

    pub fn wait_until_ready(&self) {
        let running = || self.nodes.iter().flatten();
        wait_until(|| {
            running().all(|node| node.is_ready() && node.status().connected.len() >= running().count())
        });
    }

    /// The client itself, as the command line would use it.
    pub fn client(&self) -> Client {
        let dir = SealedClient::at(&self.local.client).unseal(PinOwner::User, USER_PIN).expect("its PIN");
        Client::open(&dir).expect("a client")
    }

    /// A configuration of so many tokens of the same client, with settings for all of them. Each has a prefix of its own.
    pub fn configuration(&self, name: &str, tokens: usize, settings: &str) -> PathBuf {
        let client = self.local.client.display();
        let token = |n: usize| {
            format!(
                "[[token]]\nlabel = \"{name}-{n}\"\nclient = \"{client}\"\nprefix = \"{name}{n}.\"\n{settings}\n"
            )
        };
        let path = self.dir.path().join(format!("{name}.toml"));
        std::fs::write(&path, (0..tokens).map(token).collect::<String>()).expect("written");
        path
    }
}

/// Waits until something is the case.
pub fn wait_until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it did not become so");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks again while nodes that have just started do not serve: the client leaves one that it did not reach alone for a moment.
pub fn until_served<T>(ask: impl Fn() -> Result<T, CK_RV>) -> Result<T, CK_RV> {
    let until = Instant::now() + PATIENCE;
    loop {
        let told = ask();
        if told.is_ok() || Instant::now() >= until {
            return told;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// The library that cargo has built beside this test.
pub fn built() -> PathBuf {
    let test = std::env::current_exe().expect("it has a path");
    let deps = test.parent().expect("it is in a directory");
    let name = "libpolyclave_pkcs11.so";
    let places = [deps.join(name), deps.parent().expect("deps is in a directory").join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the library of the package under test")
}

/// Copies the library into a directory.
pub fn copied_to(dir: &Path) -> PathBuf {
    let path = dir.join("module.so");
    std::fs::copy(built(), &path).expect("copied");
    path
}

/// A copy of the library with statics of its own, not initialized.
pub struct Module {
    pub list: &'static CK_FUNCTION_LIST_3_0,
    _library: Library,
    _dir: Option<tempfile::TempDir>,
}

impl Module {
    pub fn load() -> Module {
        let dir = tempfile::tempdir().expect("a directory");
        let path = copied_to(dir.path());
        Module { _dir: Some(dir), ..Module::at(&path) }
    }

    /// The library at a path, which may be loaded already. It is unloaded when the last of these is gone.
    pub fn at(path: &Path) -> Module {
        let library = unsafe { Library::new(path) }.expect("it loads");
        let mut interface: *mut CK_INTERFACE = ptr::null_mut();
        let list = unsafe {
            let get: libloading::Symbol<
                unsafe extern "C" fn(
                    *mut CK_UTF8CHAR,
                    *mut CK_VERSION,
                    *mut *mut CK_INTERFACE,
                    CK_FLAGS,
                ) -> CK_RV,
            > = library.get(b"C_GetInterface\0").expect("exported");
            assert_eq!(get(ptr::null_mut(), ptr::null_mut(), &mut interface, 0), CKR_OK);
            &*(*interface).pFunctionList.cast::<CK_FUNCTION_LIST_3_0>()
        };
        Module { list, _library: library, _dir: None }
    }

    /// Initializes it with a configuration.
    pub fn initialize(&self, configuration: &Path) -> CK_RV {
        self.initialize_with(configuration, ptr::null_mut())
    }

    /// The same, with arguments.
    pub fn initialize_with(&self, configuration: &Path, arguments: *mut c_void) -> CK_RV {
        in_environment(configuration, || unsafe { self.list.C_Initialize.expect("listed")(arguments) })
    }

    pub fn with(configuration: &Path) -> Module {
        let module = Module::load();
        assert_eq!(module.initialize(configuration), CKR_OK, "{}", log_of(configuration));
        module
    }
}

/// Does something while the environment names a configuration, and no other test changes that.
pub fn in_environment<T>(configuration: &Path, work: impl FnOnce() -> T) -> T {
    static ENVIRONMENT: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _alone = ENVIRONMENT.lock().unwrap_or_else(|broken| broken.into_inner());
    unsafe {
        std::env::set_var("POLYCLAVE_PKCS11_CONFIG", configuration);
        std::env::set_var("POLYCLAVE_PKCS11_LOG", configuration.with_extension("log"));
    }
    work()
}

pub fn log_of(configuration: &Path) -> String {
    std::fs::read_to_string(configuration.with_extension("log")).unwrap_or_default()
}

/// What the tests share.
pub struct Shared {
    _cluster: TestCluster,
    pub configuration: PathBuf,
    pub module: Module,
    next: AtomicUsize,
}

/// Nodes and an initialized module that all tests of this program share, which change neither.
pub fn shared() -> &'static Shared {
    static SHARED: OnceLock<Shared> = OnceLock::new();
    SHARED.get_or_init(|| {
        let cluster = TestCluster::start();
        let configuration = cluster.configuration("t", 60, "");
        let module = Module::with(&configuration);
        Shared { _cluster: cluster, configuration, module, next: AtomicUsize::new(0) }
    })
}

/// A token of the shared module that no other test uses.
pub fn slot() -> CK_SLOT_ID {
    shared().next.fetch_add(1, Ordering::Relaxed) as CK_SLOT_ID
}

/// A session of a token that no other test uses, where the user is logged in, and may write.
pub fn session() -> Session<'static> {
    logged_in_at(&shared().module, slot())
}

/// The same with the first token of a module.
pub fn logged_in(module: &Module) -> Session<'_> {
    logged_in_at(module, 0)
}

fn logged_in_at(module: &Module, slot: CK_SLOT_ID) -> Session<'_> {
    let session = Session::open(module, slot);
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    session
}

/// What another program makes of a message in AES-128-GCM with the additional data "header": ciphertext and tag.
pub fn sealed_by_another(secret: &[u8], nonce: &[u8], message: &[u8]) -> Vec<u8> {
    let cipher = Aes128Gcm::new_from_slice(secret).expect("a key");
    let nonce = nonce.try_into().expect("12 bytes");
    cipher.encrypt(&nonce, Payload { msg: message, aad: b"header" }).expect("encrypted")
}

/// A session of a module.
#[derive(Clone, Copy)]
pub struct Session<'m> {
    pub module: &'m Module,
    pub handle: CK_SESSION_HANDLE,
}

macro_rules! call {
    ($module:expr, $function:ident($($argument:expr),* $(,)?)) => {
        unsafe { ($module.list.$function.expect("listed"))($($argument),*) }
    };
}
pub(crate) use call;

/// An attribute of a template.
pub type Attribute = (CK_ATTRIBUTE_TYPE, Vec<u8>);

pub fn flag(kind: CK_ATTRIBUTE_TYPE, is: bool) -> Attribute {
    (kind, vec![is.into()])
}

pub fn number(kind: CK_ATTRIBUTE_TYPE, n: CK_ULONG) -> Attribute {
    (kind, n.to_ne_bytes().to_vec())
}

pub fn text(kind: CK_ATTRIBUTE_TYPE, text: &str) -> Attribute {
    (kind, text.into())
}

/// A template in C, which points into the attributes.
pub fn template(attributes: &mut [Attribute]) -> Vec<CK_ATTRIBUTE> {
    let of = |(kind, value): &mut Attribute| CK_ATTRIBUTE {
        type_: *kind,
        pValue: value.as_mut_ptr().cast(),
        ulValueLen: value.len() as CK_ULONG,
    };
    attributes.iter_mut().map(of).collect()
}

/// A mechanism with a parameter in memory.
pub struct Mechanism<P> {
    kind: CK_MECHANISM_TYPE,
    pub parameter: Option<P>,
}

pub fn plain(kind: CK_MECHANISM_TYPE) -> Mechanism<u8> {
    Mechanism { kind, parameter: None }
}

pub fn with<P>(kind: CK_MECHANISM_TYPE, parameter: P) -> Mechanism<P> {
    Mechanism { kind, parameter: Some(parameter) }
}

/// GCM with a nonce. All of it lives as long as the test.
pub fn gcm(iv: &[u8], additional: &[u8], tag_bits: u64) -> Mechanism<CK_GCM_PARAMS> {
    let (iv, additional) = (iv.to_vec().leak(), additional.to_vec().leak());
    let parameter = CK_GCM_PARAMS {
        pIv: if iv.is_empty() { ptr::null_mut() } else { iv.as_mut_ptr() },
        ulIvLen: iv.len() as CK_ULONG,
        ulIvBits: 8 * iv.len() as CK_ULONG,
        pAAD: additional.as_mut_ptr(),
        ulAADLen: additional.len() as CK_ULONG,
        ulTagBits: tag_bits,
    };
    with(CKM_AES_GCM, parameter)
}

impl<P> Mechanism<P> {
    pub fn raw(&mut self) -> CK_MECHANISM {
        let (at, len) = match &mut self.parameter {
            Some(parameter) => (ptr::from_mut(parameter).cast::<c_void>(), size_of::<P>()),
            None => (ptr::null_mut(), 0),
        };
        CK_MECHANISM { mechanism: self.kind, pParameter: at, ulParameterLen: len as CK_ULONG }
    }
}

/// Which function of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Encrypt,
    Decrypt,
    Sign,
}

impl<'m> Session<'m> {
    pub fn open(module: &'m Module, slot: CK_SLOT_ID) -> Session<'m> {
        Session::open_with(module, slot, CKF_SERIAL_SESSION | CKF_RW_SESSION).expect("opened")
    }

    pub fn open_with(module: &'m Module, slot: CK_SLOT_ID, flags: CK_FLAGS) -> Result<Session<'m>, CK_RV> {
        let mut handle = 0;
        match call!(module, C_OpenSession(slot, flags, ptr::null_mut(), None, &mut handle)) {
            CKR_OK => Ok(Session { module, handle }),
            rv => Err(rv),
        }
    }

    pub fn close(&self) -> CK_RV {
        call!(self.module, C_CloseSession(self.handle))
    }

    pub fn login(&self, who: CK_USER_TYPE, pin: &[u8]) -> CK_RV {
        call!(self.module, C_Login(self.handle, who, pin.as_ptr().cast_mut(), pin.len() as CK_ULONG))
    }

    pub fn state(&self) -> CK_STATE {
        let mut info = CK_SESSION_INFO::default();
        assert_eq!(call!(self.module, C_GetSessionInfo(self.handle, &mut info)), CKR_OK);
        info.state
    }

    pub fn generate(
        &self,
        kind: CK_MECHANISM_TYPE,
        mut attributes: Vec<Attribute>,
    ) -> Result<CK_OBJECT_HANDLE, CK_RV> {
        let (mut template, mut handle) = (template(&mut attributes), 0);
        let (mut mechanism, count) = (plain(kind).raw(), template.len() as CK_ULONG);
        let to = &mut handle;
        match call!(self.module, C_GenerateKey(self.handle, &mut mechanism, template.as_mut_ptr(), count, to))
        {
            CKR_OK => Ok(handle),
            rv => Err(rv),
        }
    }

    /// Imports a token key with these attributes besides the necessary ones.
    pub fn import(
        &self,
        label: &str,
        kind: CK_KEY_TYPE,
        key: &[u8],
        more: Vec<Attribute>,
    ) -> Result<CK_OBJECT_HANDLE, CK_RV> {
        let mut attributes = vec![
            number(CKA_CLASS, CKO_SECRET_KEY),
            number(CKA_KEY_TYPE, kind),
            flag(CKA_TOKEN, true),
            text(CKA_LABEL, label),
            (CKA_VALUE, key.to_vec()),
        ];
        attributes.extend(more);
        let (mut template, mut handle) = (template(&mut attributes), 0);
        let count = template.len() as CK_ULONG;
        match call!(self.module, C_CreateObject(self.handle, template.as_mut_ptr(), count, &mut handle)) {
            CKR_OK => Ok(handle),
            rv => Err(rv),
        }
    }

    pub fn find(&self, mut attributes: Vec<Attribute>) -> Vec<CK_OBJECT_HANDLE> {
        let mut template = template(&mut attributes);
        let count = template.len() as CK_ULONG;
        assert_eq!(call!(self.module, C_FindObjectsInit(self.handle, template.as_mut_ptr(), count)), CKR_OK);
        let (mut all, mut page, mut got) = (Vec::new(), [0; 3], 0);
        loop {
            assert_eq!(
                call!(self.module, C_FindObjects(self.handle, page.as_mut_ptr(), 3, &mut got)),
                CKR_OK
            );
            all.extend(&page[..got as usize]);
            if got == 0 {
                break;
            }
        }
        assert_eq!(call!(self.module, C_FindObjectsFinal(self.handle)), CKR_OK);
        all
    }

    pub fn attribute(&self, object: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> Result<Vec<u8>, CK_RV> {
        let mut attribute = CK_ATTRIBUTE { type_: kind, pValue: ptr::null_mut(), ulValueLen: 0 };
        match call!(self.module, C_GetAttributeValue(self.handle, object, &mut attribute, 1)) {
            CKR_OK => {}
            rv => {
                let is_of_attribute = rv != CKR_OBJECT_HANDLE_INVALID;
                assert_eq!(attribute.ulValueLen == CK_UNAVAILABLE_INFORMATION, is_of_attribute);
                return Err(rv);
            }
        }
        let mut value = vec![0; attribute.ulValueLen as usize];
        attribute.pValue = value.as_mut_ptr().cast();
        assert_eq!(call!(self.module, C_GetAttributeValue(self.handle, object, &mut attribute, 1)), CKR_OK);
        Ok(value)
    }

    pub fn is(&self, object: CK_OBJECT_HANDLE, kind: CK_ATTRIBUTE_TYPE) -> bool {
        self.attribute(object, kind).expect("every key has it") == [1]
    }

    pub fn set(&self, object: CK_OBJECT_HANDLE, mut attributes: Vec<Attribute>) -> CK_RV {
        let mut template = template(&mut attributes);
        let count = template.len() as CK_ULONG;
        call!(self.module, C_SetAttributeValue(self.handle, object, template.as_mut_ptr(), count))
    }

    pub fn destroy(&self, object: CK_OBJECT_HANDLE) -> CK_RV {
        call!(self.module, C_DestroyObject(self.handle, object))
    }

    pub fn init<P>(&self, does: Does, mechanism: &mut Mechanism<P>, key: CK_OBJECT_HANDLE) -> CK_RV {
        let how = &mut mechanism.raw();
        match does {
            Does::Encrypt => call!(self.module, C_EncryptInit(self.handle, how, key)),
            Does::Decrypt => call!(self.module, C_DecryptInit(self.handle, how, key)),
            Does::Sign => call!(self.module, C_SignInit(self.handle, how, key)),
        }
    }

    /// One call with a buffer of so many bytes; `None` for no buffer. The length that was told, and the bytes.
    pub fn whole(&self, does: Does, data: &[u8], room: Option<usize>) -> (CK_RV, usize, Vec<u8>) {
        let (mut out, mut len) = (vec![0xee; room.unwrap_or(0)], room.unwrap_or(0) as CK_ULONG);
        let to = if room.is_some() { out.as_mut_ptr() } else { ptr::null_mut() };
        let (from, count) = (data.as_ptr().cast_mut(), data.len() as CK_ULONG);
        let rv = match does {
            Does::Encrypt => call!(self.module, C_Encrypt(self.handle, from, count, to, &mut len)),
            Does::Decrypt => call!(self.module, C_Decrypt(self.handle, from, count, to, &mut len)),
            Does::Sign => call!(self.module, C_Sign(self.handle, from, count, to, &mut len)),
        };
        if rv == CKR_OK {
            out.truncate(len as usize);
        }
        (rv, len as usize, out)
    }

    /// In one part.
    pub fn run<P>(
        &self,
        does: Does,
        mechanism: &mut Mechanism<P>,
        key: CK_OBJECT_HANDLE,
        data: &[u8],
    ) -> Result<Vec<u8>, CK_RV> {
        match self.init(does, mechanism, key) {
            CKR_OK => {}
            rv => return Err(rv),
        }
        match self.whole(does, data, Some(data.len() + 64)) {
            (CKR_OK, _, out) => Ok(out),
            (rv, ..) => Err(rv),
        }
    }

    /// In parts of so many bytes.
    pub fn in_parts<P>(
        &self,
        does: Does,
        mechanism: &mut Mechanism<P>,
        key: CK_OBJECT_HANDLE,
        data: &[u8],
        part: usize,
    ) -> Result<Vec<u8>, CK_RV> {
        assert_eq!(self.init(does, mechanism, key), CKR_OK);
        let (mut all, mut out) = (Vec::new(), vec![0; data.len() + 64]);
        for piece in data.chunks(part) {
            let mut len = out.len() as CK_ULONG;
            let (from, count, to) = (piece.as_ptr().cast_mut(), piece.len() as CK_ULONG, out.as_mut_ptr());
            let rv = match does {
                Does::Encrypt => call!(self.module, C_EncryptUpdate(self.handle, from, count, to, &mut len)),
                Does::Decrypt => call!(self.module, C_DecryptUpdate(self.handle, from, count, to, &mut len)),
                Does::Sign => {
                    len = 0;
                    call!(self.module, C_SignUpdate(self.handle, from, count))
                }
            };
            if rv != CKR_OK {
                return Err(rv);
            }
            all.extend(&out[..len as usize]);
        }
        let mut len = out.len() as CK_ULONG;
        let to = out.as_mut_ptr();
        let rv = match does {
            Does::Encrypt => call!(self.module, C_EncryptFinal(self.handle, to, &mut len)),
            Does::Decrypt => call!(self.module, C_DecryptFinal(self.handle, to, &mut len)),
            Does::Sign => call!(self.module, C_SignFinal(self.handle, to, &mut len)),
        };
        if rv != CKR_OK {
            return Err(rv);
        }
        all.extend(&out[..len as usize]);
        Ok(all)
    }
}

/// So many bytes, not all the same.
pub fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

/// Keeps a cluster of a test's own alive together with its configuration.
pub struct Own {
    pub cluster: TestCluster,
    pub configuration: PathBuf,
}

pub fn own(settings: &str) -> Own {
    let cluster = TestCluster::start();
    let configuration = cluster.configuration("own", 1, settings);
    Own { cluster, configuration }
}
