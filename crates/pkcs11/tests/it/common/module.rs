//! Copies of the library, and one that all tests share.

use std::ffi::c_void;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use cryptoki_sys::*;
use libloading::Library;

use super::*;

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
    path: PathBuf,
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
        Module { list, _library: library, path: path.to_owned(), _dir: None }
    }

    /// Where it was loaded from.
    pub fn path(&self) -> &Path {
        &self.path
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
