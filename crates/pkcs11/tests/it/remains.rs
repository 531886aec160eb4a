//! What the module leaves in a program when it has ended: no thread and no socket.
//!
//! The program is a process of its own, because the nodes and the other tests have threads and sockets in this one: it is this test program
//! again, which runs `as_a_program` alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use cryptoki_sys::*;

use crate::common::*;
use crate::life::in_child;

/// Names the configuration to the program.
const CONFIGURATION: &str = "POLYCLAVE_PKCS11_TEST_PROGRAM";
/// Says that a node is missing.
const IS_MISSING: &str = "POLYCLAVE_PKCS11_TEST_MISSING";
/// A thread that was joined may be listed for a moment. A thread that nobody joins may last longer: it waits for what nodes owe.
const MOMENT: Duration = Duration::from_secs(2);

#[test]
fn no_thread_and_no_socket_is_left_after_the_end() {
    let mut own = own("");
    run(&own.configuration, false);
    own.cluster.nodes[1].take().expect("it runs").stop();
    run(&own.configuration, true);
}

fn run(configuration: &Path, is_missing: bool) {
    let mut program = Command::new(std::env::current_exe().expect("it has a path"));
    program.args(["--exact", "remains::as_a_program", "--nocapture", "--test-threads", "1"]);
    program.env(CONFIGURATION, configuration);
    if is_missing {
        program.env(IS_MISSING, "1");
    }
    let ended = program.output().expect("it starts");
    let told = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&told));
    assert!(String::from_utf8_lossy(&told).contains("nothing is left"), "it ran");
}

/// The program. Without its environment it is no test.
#[test]
fn as_a_program() {
    let Some(configuration) = std::env::var_os(CONFIGURATION).map(PathBuf::from) else { return };
    let module = Module::load();
    let before = Remains::now();
    for _ in 0..3 {
        use_it(&module, &configuration);
        before.are_not_exceeded();
    }
    if std::env::var_os(IS_MISSING).is_none() {
        closes_what_it_does_not_use(&module, &configuration);
        before.are_not_exceeded();
    }
    // A child of a fork has the thread that forked, and the sockets that its parent had.
    assert_eq!(module.initialize(&configuration), CKR_OK);
    let session = logged_in(&module);
    let _ = session.find(vec![]);
    let outcome = in_child(|| {
        let before = Remains::now();
        use_it(&module, &configuration);
        before.are_not_exceeded();
        i32::from(before.threads != 1)
    });
    assert_eq!(outcome, 0);
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
    before.are_not_exceeded();
    println!("nothing is left");
}

/// A failed login, a login, requests of several threads. With a node too few these fail.
fn use_it(module: &Module, configuration: &Path) {
    let is_missing = std::env::var_os(IS_MISSING).is_some();
    assert_eq!(module.initialize(configuration), CKR_OK, "{}", log_of(configuration));
    let before = Remains::now();
    let session = Session::open(module, 0);
    assert_eq!(session.login(CKU_USER, b"another pin"), CKR_PIN_INCORRECT);
    before.are_not_exceeded();
    assert_eq!(session.login(CKU_USER, USER_PIN), CKR_OK);
    // The first program of a cluster makes it, when all nodes are there.
    let found = session.find(vec![text(CKA_LABEL, "kept")]).first().copied();
    let key = found.unwrap_or_else(|| session.import("kept", CKK_AES, &data(16), vec![]).expect("made"));
    std::thread::scope(|scope| {
        for n in 0..8 {
            scope.spawn(move || {
                let session = Session::open(module, 0);
                let gcm = session.run(Does::Encrypt, &mut gcm(&[n; 12], b"", 128), key, &data(100));
                let ecb = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &data(32));
                assert_eq!((gcm.is_err(), ecb.is_err()), (is_missing, is_missing), "{gcm:?} {ecb:?}");
            });
        }
    });
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
}

/// Many threads have connections of their own for their requests. When one thread is left that asks, those go that it does not need.
fn closes_what_it_does_not_use(module: &Module, configuration: &Path) {
    assert_eq!(module.initialize(configuration), CKR_OK, "{}", log_of(configuration));
    let before = Remains::now();
    let session = logged_in(module);
    let key = session.find(vec![text(CKA_LABEL, "kept")])[0];
    let encrypt =
        |session: Session<'_>, n| session.run(Does::Encrypt, &mut gcm(&[n; 12], b"", 128), key, &data(1));
    let together = std::sync::Barrier::new(8);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let (encrypt, together) = (&encrypt, &together);
            scope.spawn(move || {
                let session = Session::open(module, 0);
                together.wait();
                assert!((0..4).all(|i| encrypt(session, 8 * i + n).is_ok()));
            });
        }
    });
    // Two with each of three nodes.
    let most = before.files + 6;
    wait_until(|| {
        assert!(encrypt(session, 0xff).is_ok());
        Remains::now().files <= most
    });
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
}

/// What a process has of the system.
#[derive(Debug)]
struct Remains {
    threads: usize,
    files: usize,
}

impl Remains {
    fn now() -> Remains {
        let count = |of: &str| std::fs::read_dir(format!("/proc/self/{of}")).expect("Linux has it").count();
        Remains { threads: count("task"), files: count("fd") }
    }

    /// There may be less: the child of a fork closes the log that it inherited.
    fn are_not_exceeded(&self) {
        let until = Instant::now() + MOMENT;
        loop {
            let now = Remains::now();
            if now.threads <= self.threads && now.files <= self.files {
                break;
            }
            assert!(Instant::now() < until, "{now:?}, and there were {self:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
