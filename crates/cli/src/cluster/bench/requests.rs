//! Single requests as users make them, and how long they take.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use polyclave_api::{MAX_BLOCKS, MAX_SMALL_BLOCKS, Mode, NewKey, Usage, Wrapping};
use polyclave_cipher::hmac::{self, Sha2};
use polyclave_client::{Client, KeyHandle, Padding};
use polyclave_payments::{Command, Purpose};
use serde::Serialize;

/// Requests of each kind that are not measured.
const WARM_UP: usize = 4;

/// What one request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A sealed file of one block: two blocks of AES and a tag.
    Sealed,
    /// A message of one block in gcm.
    Gcm,
    /// One block in ecb.
    Ecb,
    /// The MAC of one block.
    Cmac,
    /// A PIN block under another key of Triple DES.
    Pin,
    /// A key of AES-128 wrapped under one of AES-256.
    Wrap,
    /// The code of HMAC-SHA-256 of 64 bytes. Only if it is named: it takes hundreds of rounds.
    Hmac,
    /// A new key of AES-128. Only if it is named.
    Key,
}

impl Kind {
    /// What is measured if nothing is named.
    pub(super) const USUAL: [Kind; 6] =
        [Kind::Sealed, Kind::Gcm, Kind::Ecb, Kind::Cmac, Kind::Pin, Kind::Wrap];

    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Sealed => "one block sealed",
            Kind::Gcm => "one block in gcm",
            Kind::Ecb => "one block in ecb",
            Kind::Cmac => "MAC of one block",
            Kind::Pin => "a PIN translated",
            Kind::Wrap => "a key wrapped",
            Kind::Hmac => "HMAC of 64 bytes",
            Kind::Key => "a key made",
        }
    }
}

/// How long requests took.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Times {
    median_ms: f64,
    percentile_95_ms: f64,
    percentile_99_ms: f64,
    least_ms: f64,
}

impl Times {
    /// With a rest between two requests, in which the nodes end the one before.
    fn of(requests: u32, rest: Duration, mut request: impl FnMut() -> Result<()>) -> Result<Times> {
        let mut times = Vec::new();
        for _ in 0..requests {
            let began = Instant::now();
            request()?;
            times.push(began.elapsed());
            std::thread::sleep(rest);
        }
        times.sort_unstable();
        let at = |part: usize| milliseconds(times[(times.len() * part / 100).min(times.len() - 1)]);
        Ok(Times { median_ms: at(50), percentile_95_ms: at(95), percentile_99_ms: at(99), least_ms: at(0) })
    }
}

impl std::fmt::Display for Times {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Times { median_ms, percentile_95_ms, percentile_99_ms, least_ms } = self;
        write!(
            f,
            "median {median_ms:.2} ms, 95% within {percentile_95_ms:.2} ms, 99% within {percentile_99_ms:.2} ms, \
             least {least_ms:.2} ms"
        )
    }
}

/// A client with keys of its own for some kinds of requests. It keeps their handles, as a program does that
/// makes many requests: what it has to know of a key it asks once.
pub(super) struct Requests<'c> {
    client: &'c Client,
    name: String,
    /// Of the keys for blocks.
    handles: Vec<(Kind, KeyHandle<'c>)>,
    /// A PIN under the first of the keys for PINs.
    pin_block: Vec<u8>,
    /// How many keys were made by requests.
    made: AtomicU32,
}

const PAN: &str = "1122334455667788";

impl<'c> Requests<'c> {
    /// Makes the keys. Also returns how long one takes.
    pub(super) fn new(client: &'c Client, name: String, kinds: &[Kind]) -> Result<(Requests<'c>, Duration)> {
        let keys = keys(&name, kinds);
        let began = Instant::now();
        for key in &keys {
            client.generate(key.clone()).with_context(|| format!("cannot make the key {}", key.name))?;
        }
        let of_one = began.elapsed() / keys.len() as u32;
        let of_blocks = [(Kind::Gcm, "gcm"), (Kind::Ecb, "ecb"), (Kind::Cmac, "cmac"), (Kind::Hmac, "hmac")];
        let handles = of_blocks.into_iter().filter(|(kind, _)| kinds.contains(kind));
        let handles = handles.map(|(kind, what)| Ok((kind, client.key(&format!("{name}-{what}"))?)));
        let handles = handles.collect::<Result<_>>()?;
        let mut requests = Requests { client, name, handles, pin_block: Vec::new(), made: AtomicU32::new(0) };
        if !kinds.contains(&Kind::Pin) {
            return Ok((requests, of_one));
        }
        let command = serde_json::json!({ "generate-pin": {
            "pan": PAN, "outgoing": { "format": "iso0", "key": "direct" }, "length": 4,
            "method": { "random-with-pvv": { "index": 1 } },
        }});
        let paid = requests.pay(["pins", "pvv"], command)?;
        let block = paid.first_chunk::<8>().context("the nodes made no PIN")?;
        requests.pin_block = block.to_vec();
        Ok((requests, of_one))
    }

    /// Requests of these kinds that are not measured: nodes that are far from each other notice it by them,
    /// and make what shortens the next ones.
    pub(super) fn warm_up(&self, kinds: &[Kind]) -> Result<()> {
        kinds.iter().cycle().take(WARM_UP * kinds.len()).try_for_each(|kind| self.one(*kind))
    }

    /// How long so many requests of a kind take, one after the other.
    pub(super) fn times(&self, kind: Kind, requests: u32, rest: Duration) -> Result<Times> {
        Times::of(requests, rest, || self.one(kind))
    }

    /// One request.
    pub(super) fn one(&self, kind: Kind) -> Result<()> {
        const BLOCK: [u8; 16] = [7; 16];
        match kind {
            Kind::Sealed => {
                let (key, mut sealed) = (self.sealing_key(), Vec::new());
                self.client.seal(&key, &mut &BLOCK[..], &mut sealed, &mut |_| ())?;
            }
            Kind::Gcm => drop(self.handle(kind)?.gcm().encrypt(&BLOCK)?),
            Kind::Ecb => drop(self.handle(kind)?.ecb().padding(Padding::None).encrypt(&BLOCK)?),
            Kind::Cmac => drop(self.handle(kind)?.cmac(&BLOCK)?),
            Kind::Hmac => drop(self.handle(kind)?.hmac(&[&[7; 64]], 32)?),
            Kind::Key => {
                let name = made(&self.name, self.made.fetch_add(1, Relaxed));
                self.client.generate(NewKey::for_modes(&name, "aes-128", &[Mode::Gcm], MAX_BLOCKS))?;
            }
            Kind::Pin => {
                let incoming = serde_json::json!({
                    "format": "iso0", "block": hex::encode(&self.pin_block), "key": "direct",
                });
                let outgoing = serde_json::json!({ "format": "iso0", "key": "direct" });
                let command = serde_json::json!({ "translate-pin": {
                    "incoming": incoming, "pan": PAN, "outgoing": outgoing,
                }});
                self.pay(["pins", "other-pins"], command)?;
            }
            Kind::Wrap => {
                drop(self.client.wrap(self.of("wrapping").as_str(), self.of("gcm").as_str(), Wrapping::Kw)?)
            }
        }
        Ok(())
    }

    /// Deletes the keys that requests made.
    pub(super) fn delete_made(&self) -> Result<()> {
        for number in 0..self.made.load(Relaxed) {
            self.client.delete(&made(&self.name, number))?;
        }
        Ok(())
    }

    fn handle(&self, kind: Kind) -> Result<&KeyHandle<'c>> {
        let found = self.handles.iter().find(|(of, _)| *of == kind);
        found.map(|(_, handle)| handle).context("no key was made for requests of this kind")
    }

    /// The key under which files are sealed.
    pub(super) fn sealing_key(&self) -> String {
        self.of("gcm")
    }

    fn of(&self, what: &str) -> String {
        format!("{}-{what}", self.name)
    }

    fn pay(&self, keys: [&str; 2], command: serde_json::Value) -> Result<Vec<u8>> {
        let command: Command = serde_json::from_value(command)?;
        let keys = keys.map(|key| self.of(key));
        let paid = self.client.pay(&[&keys[0], &keys[1]], &command)?;
        Ok(paid.context("a payment command does not hold")?.to_vec())
    }
}

/// The name of a key that a request makes.
fn made(name: &str, number: u32) -> String {
    format!("{name}-made-{number}")
}

/// Deletes the keys of this name that are there.
pub(super) fn delete_keys(client: &Client, name: &str, kinds: &[Kind]) -> Result<()> {
    keys(name, kinds).iter().try_for_each(|key| client.delete(&key.name).map(drop))?;
    Ok(())
}

/// The keys that some kinds of requests take, and the one under which files are sealed.
fn keys(name: &str, kinds: &[Kind]) -> Vec<NewKey> {
    let key = |what: &str, cipher: &str, modes: &[Mode], blocks: u64| {
        NewKey::for_modes(&format!("{name}-{what}"), cipher, modes, blocks)
    };
    let of_mode = |mode: Mode| key(&mode.to_string(), "aes-128", &[mode], MAX_BLOCKS);
    let of_payments = |what: &str, purpose: Purpose| NewKey {
        usage: vec![Usage::Payment(purpose)],
        ..key(what, "3des-ede2", &[], MAX_SMALL_BLOCKS)
    };
    let of_kind = |kind: &Kind| match kind {
        Kind::Sealed | Kind::Gcm | Kind::Key => Vec::new(),
        Kind::Hmac => vec![key("hmac", hmac::name(Sha2::Sha256), &[Mode::Hmac], MAX_BLOCKS)],
        Kind::Ecb => vec![of_mode(Mode::Ecb)],
        Kind::Cmac => vec![of_mode(Mode::Cmac)],
        Kind::Wrap => {
            vec![NewKey { usage: vec![Usage::Wrap], ..key("wrapping", "aes-256", &[], MAX_BLOCKS) }]
        }
        Kind::Pin => vec![
            of_payments("pins", Purpose::PinEncryption),
            of_payments("other-pins", Purpose::PinEncryption),
            of_payments("pvv", Purpose::PinVerificationVisa),
        ],
    };
    let of_files = NewKey { wrappable: kinds.contains(&Kind::Wrap), ..of_mode(Mode::Gcm) };
    std::iter::once(of_files).chain(kinds.iter().flat_map(of_kind)).collect()
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    /// A client may have few rights.
    #[test]
    fn no_key_is_made_for_what_is_not_measured() {
        let names =
            |kinds: &[Kind]| -> Vec<String> { keys("k", kinds).into_iter().map(|key| key.name).collect() };
        assert_eq!(names(&[Kind::Sealed, Kind::Gcm]), ["k-gcm"]);
        assert_eq!(names(&[Kind::Ecb, Kind::Wrap]), ["k-gcm", "k-ecb", "k-wrapping"]);
        assert_eq!(names(Kind::value_variants()).len(), 8);
    }
}
