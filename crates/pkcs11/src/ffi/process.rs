//! The module of this process. The child of a fork has none: what its parent had is forgotten there, without
//! touching it, because the sockets are the parent's, and locks may be held by threads that the child does
//! not have.

use std::sync::Arc;

use cryptoki_sys::{CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_CRYPTOKI_NOT_INITIALIZED};
use parking_lot::Mutex;
use polyclave_kernels::process::PerProcess;

use crate::module::Module;
use crate::rv::{Result, Rv};

static MODULE: PerProcess<Mutex<Option<Arc<Module>>>> = PerProcess::new();

fn place() -> &'static Mutex<Option<Arc<Module>>> {
    MODULE.get(|_| Mutex::new(None))
}

/// The module, if it is initialized in this process.
pub(super) fn module() -> Result<Arc<Module>> {
    place().lock().clone().ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}

/// Initializes it.
pub(super) fn begin(make: impl FnOnce() -> Result<Module>) -> Result<()> {
    let mut module = place().lock();
    if module.is_some() {
        return Err(Rv(CKR_CRYPTOKI_ALREADY_INITIALIZED));
    }
    *module = Some(Arc::new(make()?));
    Ok(())
}

/// Takes it away, to be ended.
pub(super) fn end() -> Result<Arc<Module>> {
    place().lock().take().ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}
