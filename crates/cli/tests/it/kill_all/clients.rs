//! What clients do while nodes are killed, and how long they wait for answers afterwards.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::{KeyInfo, Mode, NewKey, Reason};
use polyclave_client::{Client, Error, Result};

/// Each client deletes keys beyond so many of its own.
const KEPT: usize = 3;
/// Whatever the nodes can do they do in this time, on a busy machine too.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// The pause before a client asks again.
const PAUSE: Duration = Duration::from_millis(20);

/// SP 800-38B, example 3 of AES-128: a key, a message of 40 bytes and its code.
pub(crate) const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const MESSAGE: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
pub(crate) const CODE: &str = "dfa66747de9ae63030ca32611497c827";

/// A key that the nodes have announced, and what is known of it.
pub(crate) struct Announced {
    pub(crate) info: KeyInfo,
    /// What it was first used for, and what came of it.
    used: Option<Vec<u8>>,
}

/// What a client does, and the keys that nobody else uses.
pub(crate) struct Worker {
    number: usize,
    made: usize,
    pub(crate) announced: Vec<Announced>,
    pub(crate) deleted: Vec<String>,
    /// By kind of request: since when it has waited for an answer, however often it has asked.
    waits_since: [Option<Instant>; 4],
    /// The longest time that it has waited for an answer.
    longest_wait: Duration,
}

/// A kind of request.
#[derive(Clone, Copy)]
enum Kind {
    Mac,
    Delete,
    Generate,
    Use,
}

impl Worker {
    pub(crate) fn new(number: usize) -> Worker {
        let (announced, deleted) = (Vec::new(), Vec::new());
        let (waits_since, longest_wait) = ([None; 4], Duration::ZERO);
        Worker { number, made: 0, announced, deleted, waits_since, longest_wait }
    }

    /// Makes, uses and deletes keys until it is stopped; how many answers it got. `all` counts those of all
    /// clients, as they come.
    pub(crate) fn work(&mut self, client: &Client, stop: &AtomicBool, all: &AtomicUsize) -> usize {
        let mut answers = 0;
        while !stop.load(Relaxed) {
            match self.one(client) {
                Ok(()) => {
                    answers += 1;
                    all.fetch_add(1, Relaxed);
                }
                Err(e) => self.excuse(&e),
            }
        }
        answers
    }

    /// Asks from now on, when all nodes were just started, until a request of each kind was answered. Returns
    /// the longest time for which it had to wait for an answer, however often it had to ask.
    pub(super) fn resume(&mut self, client: &Client) -> Duration {
        (self.waits_since, self.longest_wait) = ([None; 4], Duration::ZERO);
        let began = Instant::now();
        while let Err(e) = self.one(client) {
            assert!(began.elapsed() < PATIENCE, "client {}: {e}", self.number);
            self.excuse(&e);
        }
        self.longest_wait
    }

    fn excuse(&self, e: &Error) {
        assert!(is_excused(e), "client {}: {e}", self.number);
        std::thread::sleep(PAUSE);
    }

    fn one(&mut self, client: &Client) -> Result<()> {
        self.asks(Kind::Mac);
        is_known(&client.key("known").and_then(|key| key.cmac(&message()))?);
        self.is_answered(Kind::Mac);
        if self.announced.len() > KEPT {
            self.asks(Kind::Delete);
            let key = self.announced.swap_remove(0);
            // If that fails the key may be there or not.
            client.delete(&key.info.properties.name)?;
            self.is_answered(Kind::Delete);
            self.deleted.push(key.info.properties.name);
        }
        self.asks(Kind::Generate);
        self.made += 1;
        let mode = if self.made.is_multiple_of(2) { Mode::Gcm } else { Mode::Cmac };
        let name = format!("client{}-{}", self.number, self.made);
        let info = client.generate(new_key(&name, mode))?;
        self.is_answered(Kind::Generate);
        self.asks(Kind::Use);
        self.announced.push(Announced { info, used: None });
        self.announced.last_mut().expect("just made").use_it(client)?;
        self.is_answered(Kind::Use);
        Ok(())
    }

    /// It waits since it first asked, whatever else is answered meanwhile.
    fn asks(&mut self, what: Kind) {
        self.waits_since[what as usize].get_or_insert_with(Instant::now);
    }

    fn is_answered(&mut self, what: Kind) {
        let waited = self.waits_since[what as usize].take().map(|since| since.elapsed());
        self.longest_wait = self.longest_wait.max(waited.unwrap_or_default());
    }
}

impl Announced {
    /// What comes of it is what came of it the first time.
    pub(crate) fn use_it(&mut self, client: &Client) -> Result<()> {
        let name = &self.info.properties.name;
        if self.info.properties.modes == [Mode::Cmac] {
            let code = client.key(name).and_then(|key| key.cmac(&message()))?.to_vec();
            assert_eq!(*self.used.get_or_insert_with(|| code.clone()), code, "the code under {name}");
            return Ok(());
        }
        if self.used.is_none() {
            let mut sealed = Vec::new();
            client.seal(name, &mut &message()[..], &mut sealed, &mut |_| ())?;
            self.used = Some(sealed);
        }
        let mut opened = Vec::new();
        let sealed = self.used.as_deref().unwrap_or_default();
        client.open_sealed(name, &mut &sealed[..], &mut opened, &mut |_| ())?;
        assert_eq!(opened, message(), "what was sealed under {name}");
        Ok(())
    }
}

/// Whether a request may fail like this while nodes are killed. That a key is not there, or that what was
/// sealed does not authenticate, is a wrong answer; so is a quarantine, since nobody cheats.
pub(super) fn is_excused(e: &Error) -> bool {
    let disagreed = matches!(e, Error::Refused { refusal, .. } if refusal.reason == Reason::Disagreement);
    e.may_pass() || disagreed
}

/// Does something that has to be possible again soon.
pub(crate) fn insist<T>(what: &str, mut attempt: impl FnMut() -> Result<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(e) => assert!(is_excused(&e) && Instant::now() < until, "{what}: {e}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn new_key(name: &str, mode: Mode) -> NewKey {
    NewKey::for_modes(name, "aes-128", &[mode], 1 << 32)
}

pub(crate) fn message() -> Vec<u8> {
    hex::decode(MESSAGE).expect("hexadecimal")
}

pub(crate) fn is_known(code: &[u8]) {
    assert_eq!(hex::encode(code), CODE, "the code of the known message under the known key");
}
