//! The boundary with C. A function copies what a program gave, calls safe code, and writes the answer where
//! the program said.
//!
//! # Safety
//!
//! As the standard has it, the program vouches for its pointers: each is null, or points to as much memory as
//! it says, for as long as the call takes. Nothing is kept of them after the call. Null is refused where
//! something is needed; lengths are limited before memory is allocated. No panic leaves a function.

#![expect(unsafe_code, reason = "the boundary with C")]

mod ciphers;
mod general;
mod lists;
mod memory;
mod messages;
mod objects;
mod parameters;
mod process;
mod signing;
mod unsupported;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cryptoki_sys::{CK_MECHANISM, CK_RV, CK_SESSION_HANDLE, CKR_GENERAL_ERROR, CKR_OK, CKR_OPERATION_ACTIVE};

pub use lists::{C_GetFunctionList, C_GetInterface, C_GetInterfaceList};

use crate::rv::{Result, Rv};
use crate::session::{Operations, Session};

/// What every function runs in.
fn entry(work: impl FnOnce() -> Result<()>) -> CK_RV {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => CKR_OK,
        Ok(Err(Rv(rv))) => rv,
        Err(_) => {
            crate::log::line("a function of the module panicked; please report this");
            CKR_GENERAL_ERROR
        }
    }
}

/// Begins an operation of a session in its place. No mechanism ends the one that is there.
fn begin<T>(
    of: CK_SESSION_HANDLE,
    how: *const CK_MECHANISM,
    place: impl FnOnce(&mut Operations) -> &mut Option<T>,
    work: impl FnOnce(&Session) -> Result<T>,
) -> CK_RV {
    entry(|| {
        let session = session(of)?;
        let mut operations = session.operations();
        let place = place(&mut operations);
        if how.is_null() {
            *place = None;
            return Ok(());
        }
        if place.is_some() {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        *place = Some(work(&session)?);
        Ok(())
    })
}

/// A session of the module.
fn session(handle: CK_SESSION_HANDLE) -> Result<Arc<Session>> {
    process::module()?.session(handle)
}
