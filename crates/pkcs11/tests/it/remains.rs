//! What the module leaves in a program when it has ended: no thread and no socket.
//!
//! The program is a process of its own, because the nodes and the other tests have threads and sockets in
//! this one: it is this test program again, which runs `as_a_program` alone.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;
use std::time::{Duration, Instant};

use cryptoki_sys::*;

use crate::common::*;

/// Names the configuration to the program.
const CONFIGURATION: &str = "POLYCLAVE_PKCS11_TEST_PROGRAM";
/// Says that a node is missing.
const IS_MISSING: &str = "POLYCLAVE_PKCS11_TEST_MISSING";
/// A thread whose work is over may be listed until it gets a processor and ends. One that nobody joins sleeps
/// longer than this: it waits for what nodes owe.
const MOMENT: Duration = Duration::from_secs(2);
/// So many requests are under way at once, each with a message that the nodes wait for: as many as they allow
/// a client by themselves.
const REQUESTS: usize = 8;

#[test]
fn no_thread_and_no_socket_is_left_after_the_end() {
    let mut own = own("gcm_nonce = \"overwrite\"");
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
    let message = [ended.stdout, ended.stderr].concat();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&message));
    assert!(String::from_utf8_lossy(&message).contains("nothing is left"), "it ran");
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

/// Many threads have connections of their own for their requests. When one thread is left that asks, those go
/// that it does not need.
fn closes_what_it_does_not_use(module: &Module, configuration: &Path) {
    assert_eq!(module.initialize(configuration), CKR_OK, "{}", log_of(configuration));
    let before = Remains::now();
    let session = logged_in(module);
    let key = session.find(vec![text(CKA_LABEL, "kept")])[0];
    let encrypt =
        |session: Session<'_>, n| session.run(Does::Encrypt, &mut gcm(&[n; 12], b"", 128), key, &data(1));
    // A message whose nonce the nodes have drawn is a request under way, on connections of its own.
    let together = std::sync::Barrier::new(REQUESTS + 1);
    std::thread::scope(|scope| {
        for n in 0..REQUESTS as u8 {
            let (encrypt, together) = (&encrypt, &together);
            scope.spawn(move || {
                let session = Session::open(module, 0);
                let begun =
                    until_served(|| match session.init(Does::Encrypt, &mut gcm(&[0; 12], b"", 128), key) {
                        CKR_OK => Ok(()),
                        rv => Err(rv),
                    });
                together.wait();
                together.wait();
                assert_eq!(begun, Ok(()));
                // Nodes wait for a message for some time only, which may be over on a busy machine.
                let message = session.whole(Does::Encrypt, &data(1), Some(64)).0;
                assert!([CKR_OK, CKR_DEVICE_ERROR].contains(&message), "{message:#x}");
                assert!(until_served(|| encrypt(session, n + 1)).is_ok());
            });
        }
        together.wait();
        // As many with each of the nodes that serve one request, at least a quorum of two.
        let there = Remains::now().files - before.files;
        together.wait();
        assert!(there >= 2 * REQUESTS, "{there}");
    });
    // Two with each of three nodes.
    let most = before.files + 6;
    wait_until(|| {
        assert!(until_served(|| encrypt(session, 0xff)).is_ok());
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

/// A thread of this process.
struct Task {
    /// It has begun to end, as one that was joined has.
    is_exiting: bool,
    /// It waits for something that is not a processor.
    sleeps: bool,
}

impl Task {
    /// The threads of this process. One may end while they are looked at.
    fn all() -> Vec<Task> {
        let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
        let message = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        message.filter_map(|message| Task::of(&message)).collect()
    }

    /// From what Linux tells of it: after the name, which is in brackets, its state, and six numbers further
    /// its flags.
    fn of(message: &str) -> Option<Task> {
        const EXITING: u64 = 4;
        let fields: Vec<&str> = message.rsplit_once(')')?.1.split_whitespace().collect();
        let flags: u64 = fields.get(6)?.parse().ok()?;
        Some(Task { is_exiting: flags & EXITING != 0, sleeps: fields[0] == "S" })
    }
}

impl Remains {
    fn now() -> Remains {
        let files = std::fs::read_dir("/proc/self/fd").expect("Linux has it").count();
        Remains { threads: Task::all().iter().filter(|task| !task.is_exiting).count(), files }
    }

    /// There may be less: the child of a fork closes the log that it inherited. What is too much may go as
    /// long as it only waits for a processor. If a thread too many sleeps at every look for a while, or a
    /// file stays open, it is left.
    fn are_not_exceeded(&self) {
        let (patience, mut since) = (Instant::now() + PATIENCE, Instant::now());
        loop {
            let now = Remains::now();
            if now.threads <= self.threads && now.files <= self.files {
                break;
            }
            // This thread, which looks, does not sleep, and was counted.
            let asleep = Task::all().iter().filter(|task| !task.is_exiting && task.sleeps).count();
            if asleep < self.threads && now.files <= self.files {
                since = Instant::now();
            }
            assert!(
                since.elapsed() < MOMENT && Instant::now() < patience,
                "{now:?}, of which {asleep} sleep, and there were {self:?}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
