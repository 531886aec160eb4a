//! What is left of a client in the child of a fork: nothing but what it must make anew. The nodes are behind
//! relays, which see who sends on which connection.

use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::ptr;
use std::sync::Mutex;
use std::time::Duration;

use cryptoki_sys::*;
use polyclave_api::{CHUNK, Mode, NewKey};
use polyclave_client::{Client, Spool};
use polyclave_config::Cluster;
use polyclave_harness::relay::Relay;
use polyclave_kernels::process::{PerProcess, Process};

use crate::common::*;

/// As the C library numbers it.
const SIGABRT: i32 = 6;
/// If nothing came for this time, nothing is on its way.
const QUIET: Duration = Duration::from_millis(300);

/// A cluster whose nodes the client reaches through relays.
fn behind_relays() -> (Own, Vec<Relay>) {
    let own = own("");
    let path = own.cluster.local.client.join("cluster.toml");
    let mut text = std::fs::read_to_string(&path).expect("read");
    let cards = Cluster::load(&path).expect("a cluster").cards().to_vec();
    let relays = cards.iter().map(|card| {
        let relay = Relay::to(&card.client_address);
        text = text.replace(&card.client_address, &relay.address());
        relay
    });
    let relays: Vec<Relay> = relays.collect();
    std::fs::write(&path, text).expect("written");
    (own, relays)
}

/// What was sent on each connection, once nothing is on its way any more.
fn sent(relays: &[Relay]) -> Vec<Vec<u64>> {
    let now = || relays.iter().map(Relay::sent).collect();
    let mut last: Vec<Vec<u64>> = now();
    loop {
        std::thread::sleep(QUIET);
        let next = now();
        if next == last {
            return last;
        }
        last = next;
    }
}

/// Whether nothing was sent since then on the connections that were there.
fn is_untouched(relays: &[Relay], before: &[Vec<u64>]) -> bool {
    sent(relays).iter().zip(before).all(|(now, before)| now.starts_with(before))
}

fn connections(relays: &[Relay]) -> usize {
    sent(relays).iter().map(Vec::len).sum()
}

fn sealed(client: &Client) -> bool {
    client.seal("k", &mut &b"a secret"[..], &mut Vec::new(), &mut |_| ()).is_ok()
}

fn with_key(own: &Own) -> Client {
    let client = own.cluster.client();
    client.generate(NewKey::for_modes("k", "aes-128", &[Mode::Gcm], 1 << 20)).expect("made");
    assert!(sealed(&client));
    client
}

/// Exit codes say what failed.
fn code(is_right: bool, wrong: i32) -> i32 {
    if is_right { 0 } else { wrong }
}

/// How many sockets this process has open.
fn open_sockets() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").expect("it is Linux");
    let targets = all.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

#[test]
fn a_child_is_another_process_and_so_is_each_child_of_it() {
    let parent = Process::current();
    let child = || {
        let child = Process::current();
        let of_child = || code(!parent.is_current() && !child.is_current(), 1);
        code(!parent.is_current() && child.is_current() && in_child(of_child) == 0, 2)
    };
    assert_eq!(in_child(child), 0);
    assert!(parent.is_current());
}

#[test]
fn a_child_has_a_value_of_its_own_and_waits_for_no_lock_of_its_parent() {
    let value: PerProcess<Mutex<u32>> = PerProcess::new();
    let next = |parent: Option<&Mutex<u32>>| Mutex::new(if parent.is_some() { 2 } else { 1 });
    let _held = value.get(next).lock().expect("free");
    let child = || {
        let own = value.get(next).try_lock().map(|number| *number);
        let of_child = || code(value.get(next).try_lock().is_ok_and(|number| *number == 2), 1);
        code(own.is_ok_and(|number| number == 2) && in_child(of_child) == 0, 2)
    };
    assert_eq!(in_child(child), 0);
}

#[test]
fn a_child_sends_nothing_on_the_connections_of_its_parent_and_makes_its_own() {
    let (own, relays) = behind_relays();
    let client = with_key(&own);
    let (before, made) = (sent(&relays), connections(&relays));
    // It is asked, asked again in a child of the child, and ended; the last without having been asked is what
    // a child does that only exits.
    let asked = || code(sealed(&client) && in_child(|| code(sealed(&client), 1)) == 0, 2);
    // Otherwise a node would not see that the parent has closed one.
    let closes = || {
        let before = open_sockets();
        code(sealed(&client) && open_sockets() <= before, 3)
    };
    let ended = || {
        client.end();
        0
    };
    let dropped = || {
        // SAFETY: this process ends before the original is used or dropped.
        drop(unsafe { ptr::read(&client) });
        0
    };
    for child in [&asked as &dyn Fn() -> i32, &closes, &ended, &dropped] {
        assert_eq!(in_child(child), 0);
        assert!(is_untouched(&relays, &before), "{:?} after {before:?}", sent(&relays));
    }
    assert!(
        connections(&relays) >= made + 2 * before.len(),
        "the child and its child have connections of their own"
    );
    let made = connections(&relays);
    assert!(sealed(&client), "the parent's connections live");
    assert!(!is_untouched(&relays, &before));
    assert_eq!(connections(&relays), made, "and it needs no others");
}

/// Forks when it is read in the middle of a request. The parent waits there until the child has ended.
struct Forks<'r> {
    data: Cursor<Vec<u8>>,
    relays: &'r [Relay],
    is_child: Option<bool>,
}

impl Read for Forks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        // Two pieces are read before the nodes are asked.
        if self.is_child.is_none() && self.data.position() >= 3 * CHUNK as u64 {
            let before = sent(self.relays);
            let child = forked();
            self.is_child = Some(child.is_none());
            if let Some(child) = child {
                assert_eq!(exit_code(child), 0);
                assert!(is_untouched(self.relays, &before), "{:?} after {before:?}", sent(self.relays));
            }
        }
        self.data.read(buffer)
    }
}

#[test]
fn a_request_that_is_under_way_goes_on_in_the_parent_only() {
    let (own, relays) = behind_relays();
    let client = with_key(&own);
    let (data, mut out) = (data(6 * CHUNK), Vec::new());
    let mut input = Forks { data: Cursor::new(data.clone()), relays: &relays, is_child: None };
    let outcome = client.seal("k", &mut input, &mut out, &mut |_| ());
    match input.is_child {
        Some(true) => ended(code(outcome.is_err(), 1)),
        Some(false) => {}
        None => panic!("it was not read so far"),
    }
    outcome.expect("sealed");
    let mut opened = Vec::new();
    client.open_sealed("k", &mut &out[..], &mut opened, &mut |_| ()).expect("opened");
    assert!(opened == data);
}

/// Forks when it is read or written for the third time in the pass of its number. The parent waits there
/// until the child has ended.
struct ForksInPass {
    data: Cursor<Vec<u8>>,
    pass: usize,
    left: usize,
}

impl ForksInPass {
    fn new(data: Vec<u8>, pass: usize) -> ForksInPass {
        ForksInPass { data: Cursor::new(data), pass, left: 3 }
    }

    /// The child has none of the other threads that work on the file. It must not wait for them: an alarm
    /// would end it after a while.
    fn pass(&mut self) {
        if self.pass > 0 || self.left == 0 {
            return;
        }
        self.left -= 1;
        if self.left == 0
            && let Some(child) = forked()
        {
            assert_eq!(ending_signal(child), SIGABRT);
        }
    }
}

impl Read for ForksInPass {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.pass();
        self.data.read(buffer)
    }
}

impl Write for ForksInPass {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.pass();
        self.data.write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for ForksInPass {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        if to != SeekFrom::Current(0) {
            self.pass = self.pass.saturating_sub(1);
        }
        self.data.seek(to)
    }
}

/// The child would encrypt other chunks under the numbers that its parent uses.
#[test]
fn a_file_in_an_envelope_is_written_and_read_on_in_the_parent_only() {
    let cluster = TestCluster::start_under("replicated-active", 3);
    let client = cluster.client();
    client.generate(NewKey::for_modes("e", "aes-128", &[Mode::Envelope], 1 << 20)).expect("made");
    let data = data(6 << 20);
    // While it is read for the commitment, while it is read to be encrypted, and while the file is written.
    for pass in [0, 1] {
        let (mut input, mut file) = (ForksInPass::new(data.clone(), pass), Vec::new());
        client.write_envelope("e", b"", &mut input, &mut file, &mut |_| ()).expect("written");
        assert_eq!(input.left, 0, "it was not read so often");
    }
    let mut output = ForksInPass::new(Vec::new(), 0);
    client.write_envelope("e", b"", &mut Cursor::new(&data), &mut output, &mut |_| ()).expect("written");
    assert_eq!(output.left, 0, "it was not written so often");
    let file = output.data.into_inner();
    // Behind the head of the file: a child that begins with it opens the file on its own.
    let (mut input, mut opened) = (ForksInPass { left: 12, ..ForksInPass::new(file, 0) }, Vec::new());
    client.open_envelope("e", &mut input, &mut opened, &mut |_| ()).expect("opened");
    assert!(input.left == 0 && opened == data);
}

/// Both would write other data under one key and one nonce.
#[test]
fn data_that_wait_in_a_file_are_not_written_on_by_a_child() {
    let mut spool = Spool::new().expect("made");
    let piece = vec![7; 3 << 20];
    spool.write_all(&piece[..100]).expect("written");
    let child = || {
        // SAFETY: this process ends before the original is used or dropped.
        let mut spool = unsafe { ptr::read(&spool) };
        let written = spool.write_all(&piece).is_err();
        std::mem::forget(spool);
        code(written, 1)
    };
    assert_eq!(in_child(child), 0);
    spool.write_all(&piece).expect("written");
    let mut read = Vec::new();
    spool.finish().expect("finished").read_to_end(&mut read).expect("read");
    assert_eq!(read.len(), piece.len() + 100);
}

/// As a program does that forks its workers after it has used the module.
#[test]
fn the_module_of_a_child_sends_nothing_on_the_connections_of_its_parent() {
    let (own, relays) = behind_relays();
    let module = Module::with(&own.configuration);
    let session = logged_in(&module);
    let key = session.import("k", CKK_AES, &data(16), vec![]).expect("made");
    let encrypt = || session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[1; 16]);
    let expected = encrypt().expect("encrypted");
    let before = sent(&relays);
    let child = || {
        if encrypt() != Err(CKR_CRYPTOKI_NOT_INITIALIZED) {
            return 1;
        }
        if call!(module, C_Initialize(ptr::null_mut())) != CKR_OK {
            return 2;
        }
        let session = logged_in(&module);
        let [key] = session.find(vec![text(CKA_LABEL, "k")])[..] else { return 3 };
        let made = session.run(Does::Encrypt, &mut plain(CKM_AES_ECB), key, &[1; 16]);
        code(made.as_ref() == Ok(&expected) && call!(module, C_Finalize(ptr::null_mut())) == CKR_OK, 4)
    };
    assert_eq!(in_environment(&own.configuration, || in_child(child)), 0);
    assert!(is_untouched(&relays, &before), "{:?} after {before:?}", sent(&relays));
    assert_eq!(encrypt().as_ref(), Ok(&expected));
}

/// The function that the C library calls in children is still there, or is not called any more.
#[test]
fn a_program_forks_after_the_library_was_unloaded() {
    let own = own("");
    let dir = tempfile::tempdir().expect("a directory");
    let module = Module::at(&copied_to(dir.path()));
    assert_eq!(module.initialize(&own.configuration), CKR_OK);
    assert_eq!(call!(module, C_Finalize(ptr::null_mut())), CKR_OK);
    drop(module);
    assert_eq!(in_child(|| 0), 0);
}
