//! Programs that load the library, use it, unload it, and load it again, as those do that look for a module
//! with keys.

use std::path::Path;
use std::ptr;
use std::sync::mpsc;

use cryptoki_sys::*;

use crate::common::*;

const ROUNDS: usize = 50;

/// Loads it, works, ends it and unloads it.
fn one_life(library: &Path, configuration: &Path, label: &str) {
    let module = Module::at(library);
    let mut info = CK_INFO::default();
    assert_eq!(call!(module, C_GetInfo(&mut info)), CKR_CRYPTOKI_NOT_INITIALIZED, "it was ended before");
    assert_eq!(module.initialize(configuration), CKR_OK, "{}", log_of(configuration));
    let session = logged_in(&module);
    let [key] = session.find(vec![text(CKA_LABEL, label)])[..] else { panic!("one key") };
    let block = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(16)).expect("encrypted");
    assert_eq!(session.run(Does::Decrypt, &mut plain(CKM_AES_ECB), key, &block), Ok(data(16)));
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
}

/// A thread of the program may end after the library was unloaded: the runtime of Rust has a destructor for
/// it, whose code must be there.
#[test]
fn it_is_loaded_used_and_unloaded_fifty_times() {
    let own = own("");
    let dir = tempfile::tempdir().expect("a directory");
    let library = copied_to(dir.path());
    {
        let module = Module::at(&library);
        assert_eq!(module.initialize(&own.configuration), CKR_OK);
        let session = logged_in(&module);
        session.import("loaded", CKK_AES, &data(16), vec![]).expect("made");
        assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
    }
    for round in 0..ROUNDS {
        let life = || one_life(&library, &own.configuration, "loaded");
        if round % 2 == 0 {
            life();
            continue;
        }
        // The thread used the library, waits until it is unloaded, and ends.
        let module = Module::at(&library);
        let ((used, is_used), (unloaded, is_unloaded)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                life();
                used.send(()).expect("awaited");
                is_unloaded.recv().expect("said");
            });
            is_used.recv().expect("it was used");
            drop(module);
            unloaded.send(()).expect("awaited");
        });
    }
}
