//! Where programs find the reason of a refusal.

use std::os::unix::net::UnixDatagram;
use std::ptr;

use cryptoki_sys::*;

use crate::common::*;

#[test]
fn the_reason_of_a_refusal_goes_to_syslog_as_a_line_of_the_program() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("pkcs11.toml");
    std::fs::write(&path, "[[token]]\nlabel = \"a\"\nclient = \"/nowhere\"\n").expect("written");
    // Where the tests have their log there is a socket, as at /dev/log.
    let syslog = UnixDatagram::bind(path.with_extension("log")).expect("bound");
    syslog.set_nonblocking(true).expect("set");
    let next = || {
        let mut line = [0; 4096];
        syslog.recv(&mut line).map(|len| String::from_utf8_lossy(&line[..len]).into_owned())
    };
    let module = Module::load();
    assert_eq!(module.initialize(&path), CKR_OK);
    let session = Session::open(&module, 0);
    assert_eq!(session.login(CKU_USER, b"a secret pin"), CKR_USER_PIN_NOT_INITIALIZED);
    let message = next().expect("a line was sent");
    let begin = format!("<12>polyclave-pkcs11[{}]: {CKR_USER_PIN_NOT_INITIALIZED:#x}: ", std::process::id());
    assert!(message.starts_with(&begin) && message.contains("polyclave client seal"), "{message}");
    assert!(!message.contains("a secret pin"));
    assert!(next().is_err(), "a refusal is one line");
    // A log that is gone, or that nobody reads, stops nothing.
    drop(syslog);
    assert_eq!(session.login(CKU_USER, b"a secret pin"), CKR_USER_PIN_NOT_INITIALIZED);
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
}
