//! The module of this process. The child of a fork has none: what its parent had is forgotten there, without touching it, because the
//! sockets are the parent's, and locks may be held by threads that the child does not have.

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use cryptoki_sys::{CKR_CRYPTOKI_ALREADY_INITIALIZED, CKR_CRYPTOKI_NOT_INITIALIZED};
use parking_lot::Mutex;

use crate::module::Module;
use crate::rv::{Result, Rv};

struct Cell {
    process: u32,
    module: Mutex<Option<Arc<Module>>>,
}

/// The cell of the process that used it last.
static CELL: AtomicPtr<Cell> = AtomicPtr::new(ptr::null_mut());

fn cell() -> &'static Cell {
    let process = std::process::id();
    loop {
        let known = CELL.load(Ordering::Acquire);
        if !known.is_null() {
            // SAFETY: it comes from `Box::into_raw` below, and a cell that was published is never freed.
            let cell = unsafe { &*known };
            if cell.process == process {
                return cell;
            }
        }
        let fresh = Box::into_raw(Box::new(Cell { process, module: Mutex::new(None) }));
        if CELL.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: it was made above and not published.
            drop(unsafe { Box::from_raw(fresh) });
        }
    }
}

/// The module, if it is initialized in this process.
pub(super) fn module() -> Result<Arc<Module>> {
    cell().module.lock().clone().ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}

/// Initializes it.
pub(super) fn begin(make: impl FnOnce() -> Result<Module>) -> Result<()> {
    let mut module = cell().module.lock();
    if module.is_some() {
        return Err(Rv(CKR_CRYPTOKI_ALREADY_INITIALIZED));
    }
    *module = Some(Arc::new(make()?));
    Ok(())
}

/// Takes it away, to be ended.
pub(super) fn end() -> Result<Arc<Module>> {
    cell().module.lock().take().ok_or(Rv(CKR_CRYPTOKI_NOT_INITIALIZED))
}
