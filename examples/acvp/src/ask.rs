//! The nodes' answers. Each key of a test is a session key, so nothing is left of it if this program dies.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use polyclave_api::{Lifetime, Mode, NewKey, Usage};
use polyclave_client::{Client, Error, KeyHandle, Padding, Result, Tokenization, Tweaked};
use polyclave_protocol::session::random_bytes;
use serde_json::Value;

use crate::job::{Chain, Job, Task};
use crate::monte_carlo;
use crate::set::Fields;

/// How long a key of a test lives if it is not deleted before. A test uses one for minutes at most.
const KEY_SECONDS: u32 = 3600;
/// More blocks than a test computes under a key.
const BUDGET_BLOCKS: u64 = 1 << 20;
/// How long nodes that are busy, or do not answer, are asked again.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// The answer to a test.
pub struct Answer {
    /// As it stands in a response.
    pub fields: Fields,
    /// The counter or nonce, if the nodes chose it.
    pub chosen: Option<Vec<u8>>,
}

/// Nodes that answer tests.
pub struct Nodes<'c> {
    client: &'c Client,
    /// Distinguishes the keys of this run from others.
    run: String,
    keys: AtomicU64,
}

impl<'c> Nodes<'c> {
    /// Those of a client that may import, use and delete keys of any name that begins with `acvp-`.
    pub fn new(client: &'c Client) -> Result<Nodes<'c>> {
        let mut run = [0; 4];
        random_bytes(&mut run)?;
        Ok(Nodes { client, run: hex::encode(run), keys: AtomicU64::new(0) })
    }

    /// Has the nodes answer a test. What may pass is asked again for a while.
    pub fn answer(&self, job: &Job) -> Result<Answer> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.answer_once(job) {
                Err(error) if error.may_pass() && Instant::now() < until => std::thread::sleep(PAUSE),
                outcome => return outcome,
            }
        }
    }

    fn answer_once(&self, job: &Job) -> Result<Answer> {
        match &job.task {
            Task::Ecb { encrypts, data } => self.using(job, Mode::Ecb, |key| {
                let output = ecb(key, *encrypts, data)?;
                Ok(Answer::of([(text_of(!encrypts), hexadecimal(&output))]))
            }),
            Task::Cbc { encrypts, initial, data } => self.using(job, Mode::Cbc, |key| {
                let output = cbc(key, *encrypts, initial, data)?;
                Ok(Answer::of([(text_of(!encrypts), hexadecimal(&output))]))
            }),
            Task::Ctr { encrypts, counter, data } => self.using(job, Mode::Ctr, |key| match counter {
                // With a given counter encryption is the same computation as decryption.
                Some(counter) => {
                    let output = key.ctr().decrypt(counter, data)?;
                    Ok(Answer::of([(text_of(!encrypts), hexadecimal(&output))]))
                }
                None => {
                    let message = key.ctr().encrypt(data)?;
                    let (counter, output) = message.split_at(message.len() - data.len());
                    let fields = [("iv", hexadecimal(counter)), ("ct", hexadecimal(output))];
                    Ok(Answer { chosen: Some(counter.to_vec()), ..Answer::of(fields) })
                }
            }),
            Task::GcmEncrypt { nonce, additional, data, tag_bytes } => self.using(job, Mode::Gcm, |key| {
                let gcm = key.gcm().aad(additional).nonce(nonce.as_deref()).tag_bytes(*tag_bytes);
                let message = gcm.encrypt(data)?;
                let (begin, tag) = message.split_at(message.len() - tag_bytes);
                let (used, output) = begin.split_at(begin.len() - data.len());
                let mut answer = Answer::of([("ct", hexadecimal(output)), ("tag", hexadecimal(tag))]);
                if nonce.is_none() {
                    answer.fields.insert("iv".into(), hexadecimal(used));
                    answer.chosen = Some(used.to_vec());
                }
                Ok(answer)
            }),
            Task::GcmDecrypt { nonce, additional, data, tag } => self.using(job, Mode::Gcm, |key| {
                let gcm = key.gcm().aad(additional).nonce_bytes(nonce.len()).tag_bytes(tag.len());
                match gcm.decrypt(&[&nonce[..], data, tag].concat()) {
                    Ok(data) => Ok(Answer::of([("pt", hexadecimal(&data))])),
                    Err(Error::Unauthentic(_)) => Ok(Answer::of([("testPassed", false.into())])),
                    Err(other) => Err(other),
                }
            }),
            Task::Cmac { message, bytes } => self.using(job, Mode::Cmac, |key| {
                Ok(Answer::of([("mac", hexadecimal(&key.cmac(message)?[..*bytes]))]))
            }),
            Task::CmacVerify { message, code } => self.using(job, Mode::Cmac, |key| {
                let is_right = key.cmac(message)?.starts_with(code);
                Ok(Answer::of([("testPassed", is_right.into())]))
            }),
            Task::Wrap { how, cipher, wrapped } => {
                let by = NewKey { usage: vec![Usage::Wrap], ..for_mode(job.cipher, None) };
                let wrappable = NewKey { wrappable: true, ..for_mode(cipher, None) };
                self.with_key(by, &job.key, |by| {
                    self.with_key(wrappable, wrapped, |key| {
                        let output = self.client.wrap(by, key, *how)?;
                        Ok(Answer::of([("ct", hexadecimal(&output))]))
                    })
                })
            }
            Task::Ff1 { encrypts, alphabet, tweak, value } => {
                self.with_key(for_mode(job.cipher, Some(Mode::Ff1)), &job.key, |key| {
                    let how = Tokenization { alphabet, keeps_others: false };
                    let values = [Tweaked { value, tweak }];
                    let outputs = match encrypts {
                        true => self.client.tokenize(key, how, &values)?,
                        false => self.client.detokenize(key, how, &values)?,
                    };
                    Ok(Answer::of([(text_of(!encrypts), Value::from(outputs[0].as_str()))]))
                })
            }
            Task::MonteCarlo { encrypts, chain, data } => {
                let results = self.monte_carlo(job, *encrypts, chain, data)?;
                Ok(Answer::of([("resultsArray", results.into())]))
            }
        }
    }

    /// The results of a Monte Carlo test.
    fn monte_carlo(&self, job: &Job, encrypts: bool, chain: &Chain, data: &[u8]) -> Result<Vec<Value>> {
        let (mode, initial) = match chain {
            Chain::Ecb => (Mode::Ecb, None),
            Chain::Cbc(initial) => (Mode::Cbc, Some(&initial[..])),
        };
        monte_carlo::results(&job.key, initial, data, encrypts, |key, initial, input| {
            self.with_key(for_mode(job.cipher, Some(mode)), key, |name| {
                let handle = self.client.key(name)?;
                monte_carlo::under_one_key(encrypts, initial, input, |chained, input| match chained {
                    None => ecb(&handle, encrypts, input),
                    Some(initial) => cbc(&handle, encrypts, initial, input),
                })
            })
        })
    }

    /// Uses the key of a test in a mode.
    fn using(
        &self,
        job: &Job,
        mode: Mode,
        ask: impl FnOnce(&KeyHandle<'_>) -> Result<Answer>,
    ) -> Result<Answer> {
        self.with_key(for_mode(job.cipher, Some(mode)), &job.key, |name| ask(&self.client.key(name)?))
    }

    /// Imports a key, uses it, and deletes it.
    fn with_key<T>(&self, new: NewKey, key: &[u8], ask: impl FnOnce(&str) -> Result<T>) -> Result<T> {
        let name = format!("acvp-{}-{}", self.run, self.keys.fetch_add(1, Ordering::Relaxed));
        self.client.import(NewKey { name: name.clone(), ..new }, key)?;
        let outcome = ask(&name);
        let deleted = self.client.delete(&name);
        // What failed first is told.
        let outcome = outcome?;
        deleted.map(|_| outcome)
    }
}

impl Answer {
    fn of<const N: usize>(fields: [(&str, Value); N]) -> Answer {
        let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Answer { fields, chosen: None }
    }
}

/// A key of a test, without its name. Servers choose nonces and initial blocks.
fn for_mode(cipher: &str, mode: Option<Mode>) -> NewKey {
    NewKey {
        caller_nonces: matches!(mode, Some(Mode::Cbc | Mode::Gcm)),
        lifetime: Lifetime::Session { seconds: KEY_SECONDS },
        ..NewKey::for_modes("", cipher, mode.as_slice(), BUDGET_BLOCKS)
    }
}

fn ecb(key: &KeyHandle<'_>, encrypts: bool, data: &[u8]) -> Result<Vec<u8>> {
    let blocks = key.ecb().padding(Padding::None);
    if encrypts { blocks.encrypt(data) } else { Ok(blocks.decrypt(data)?.to_vec()) }
}

fn cbc(key: &KeyHandle<'_>, encrypts: bool, initial: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    let blocks = key.cbc().padding(Padding::None).initial(initial);
    if encrypts { blocks.encrypt(data) } else { Ok(blocks.decrypt(data)?.to_vec()) }
}

/// What the input of an encryption is called; else that of a decryption.
fn text_of(encrypts: bool) -> &'static str {
    if encrypts { "pt" } else { "ct" }
}

fn hexadecimal(bytes: &[u8]) -> Value {
    hex::encode_upper(bytes).into()
}
