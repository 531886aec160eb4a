//! What is done with data: a file is sealed or opened, or data are encrypted or decrypted in the plain format
//! of a mode. It works for all sources and destinations of the data.

use std::io::{self, Cursor, Read, Write};

use polyclave_api::{MessageOption, Mode};
use polyclave_cipher::catalog;
use polyclave_client::{Aead, Blocks, Client, ENVELOPE_MAGIC, Error, KeyHandle, Padding, Result, Spool};

use crate::ends::Rewindable;

/// The most of a stream that is kept in memory, where a mode reads its input twice.
const MAX_IN_MEMORY: u64 = 256 << 20;

/// Where the data come from.
pub(crate) enum Input<'a> {
    /// Bytes or a file.
    Rewindable(&'a mut dyn Rewindable),
    /// A stream, which is read once.
    Stream(&'a mut dyn Read),
}

impl Input<'_> {
    fn as_read(&mut self) -> &mut dyn Read {
        match self {
            Input::Rewindable(input) => *input,
            Input::Stream(input) => *input,
        }
    }
}

/// Receives the number of bytes that are done.
pub(crate) type Progress<'a> = &'a mut (dyn FnMut(u64) + Send);

/// Where the result goes.
pub(crate) struct Output<'a> {
    /// What takes it.
    pub(crate) to: &'a mut (dyn Write + Send),
    /// Whether what was written is seen before the task has ended: by the reader of a stream.
    pub(crate) is_seen_early: bool,
}

/// A task.
pub(crate) enum Task {
    /// Make a sealed file, or a file in an envelope.
    Seal(Seal),
    /// Open either of them, with these additional data.
    Open(Option<Vec<u8>>),
    /// Encrypt into the plain format of a mode.
    Encrypt(Plain),
    /// Decrypt from it.
    Decrypt(Plain),
}

/// How a file is sealed.
pub(crate) struct Seal {
    /// Gcm, or the mode for envelopes; `None` to ask the nodes what the key is for.
    pub(crate) mode: Option<Mode>,
    /// What a sealed file is bound to.
    pub(crate) additional: Option<Vec<u8>>,
    /// What is stored beside a file in an envelope, readable by all.
    pub(crate) header: Option<String>,
}

/// A mode in its plain format, and what goes with it.
pub(crate) struct Plain {
    pub(crate) mode: Mode,
    /// Authenticated, and neither encrypted nor stored; several strings for SIV.
    pub(crate) additional: Vec<Vec<u8>>,
    /// In a mode with nonces, if the key takes those of its clients.
    pub(crate) nonce: Option<Vec<u8>>,
    /// Bytes of the nonce with which the ciphertext begins, in a mode with nonces.
    pub(crate) nonce_bytes: Option<usize>,
    pub(crate) tag_bytes: usize,
    /// The tweak of the first block, in ECB under a cipher that takes one.
    pub(crate) tweak: Vec<u8>,
    pub(crate) padding: Padding,
}

impl Task {
    /// Does it. Returns the number of bytes that were written or read, as the client counts them.
    pub(crate) fn run(
        &self,
        client: &Client,
        key: &str,
        input: Input<'_>,
        mut output: Output<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        match self {
            Task::Seal(how) => how.run(client, key, input, &mut output, progress),
            Task::Open(additional) => open(client, key, additional.as_deref(), input, &mut output, progress),
            Task::Encrypt(how) => how.encrypt(client, key, input, output.to, progress),
            Task::Decrypt(how) => how.decrypt(client, key, input, output.to, progress),
        }
    }

    /// Whether the result is what was secret.
    pub(crate) fn reveals(&self) -> bool {
        matches!(self, Task::Open(_) | Task::Decrypt(_))
    }
}

impl Seal {
    fn run(
        &self,
        client: &Client,
        key: &str,
        mut input: Input<'_>,
        output: &mut Output<'_>,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let additional = self.additional.as_deref();
        match self.mode(client, key)? {
            Mode::Gcm => client.seal_bound(key, additional, input.as_read(), output.to, progress),
            _ => {
                let header = self.header.as_deref().unwrap_or_default().as_bytes();
                // It reads its input twice.
                let progress = &mut |done: u64| progress(done / 2);
                match input {
                    Input::Rewindable(mut twice) => {
                        client.write_envelope(key, header, &mut twice, output.to, progress)
                    }
                    Input::Stream(stream) => {
                        let mut spool = Spool::new()?;
                        io::copy(stream, &mut spool).map_err(reading)?;
                        client.write_envelope(key, header, &mut spool.finish()?, output.to, progress)
                    }
                }
            }
        }
    }

    fn mode(&self, client: &Client, key: &str) -> Result<Mode> {
        let mode = match self.mode {
            Some(mode) => mode,
            None if self.header.is_some() => Mode::Envelope,
            None if self.additional.is_some() => Mode::Gcm,
            None if client.info(key)?.properties.modes.contains(&Mode::Envelope) => Mode::Envelope,
            None => Mode::Gcm,
        };
        match mode {
            Mode::Gcm if self.header.is_some() => misuse("header is for keys of the mode envelope"),
            Mode::Envelope if self.additional.is_some() => {
                misuse("a file in an envelope has a header and no additional data; leave aad out")
            }
            Mode::Gcm | Mode::Envelope => Ok(mode),
            mode => {
                misuse(&format!("files are sealed in the modes gcm and envelope, not in {mode}; use encrypt"))
            }
        }
    }
}

fn open(
    client: &Client,
    key: &str,
    additional: Option<&[u8]>,
    mut input: Input<'_>,
    output: &mut Output<'_>,
    progress: Progress<'_>,
) -> Result<u64> {
    let mut beginning = Vec::new();
    let most = ENVELOPE_MAGIC.len() as u64;
    input.as_read().take(most).read_to_end(&mut beginning).map_err(reading)?;
    let is_envelope = beginning == ENVELOPE_MAGIC;
    let mut whole = Cursor::new(beginning).chain(input.as_read());
    if !is_envelope {
        return client.open_bound(key, additional, &mut whole, output.to, progress);
    }
    if additional.is_some() {
        return misuse("this is a file in an envelope, which has no additional data; leave aad out");
    }
    if !output.is_seen_early {
        return client.open_envelope(key, &mut whole, output.to, progress);
    }
    // Its reader must see nothing before all of it is verified.
    let mut spool = Spool::new()?;
    client.open_envelope(key, &mut whole, &mut spool, progress)?;
    io::copy(&mut spool.finish()?, output.to).map_err(writing)
}

impl Plain {
    /// Refuses what the mode does not have.
    pub(crate) fn check(&self) -> Result<()> {
        let mode = self.mode;
        if !mode.takes(MessageOption::Plain) {
            return misuse(&format!(
                "{mode} is no mode of encrypt and decrypt; cmac is for mac, envelope for seal, ff1 for tokenize"
            ));
        }
        if !self.additional.is_empty() && !mode.takes(MessageOption::Additional) {
            return misuse(&format!("{mode} authenticates nothing, so it takes no aad"));
        }
        if self.additional.len() > 1 && !mode.takes(MessageOption::SeveralAdditional) {
            return misuse(&format!("{mode} takes one aad; only siv takes several"));
        }
        if let Some(nonce) = &self.nonce {
            mode.check_nonce(nonce.len()).map_err(Error::Misuse)?;
        }
        if self.tag_bytes != 16 {
            mode.check_tag(self.tag_bytes).map_err(Error::Misuse)?;
        }
        if !self.tweak.is_empty() && !mode.takes(MessageOption::Tweak) {
            return misuse("tweak is for ecb");
        }
        Ok(())
    }

    fn encrypt(
        &self,
        client: &Client,
        key: &str,
        mut input: Input<'_>,
        to: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let (key, from) = (client.key(key)?, input.as_read());
        match self.mode {
            mode if !mode.tag_bytes().is_empty() => {
                self.aead(&key)?.nonce(self.nonce.as_deref()).encrypt_stream(from, to, progress)
            }
            Mode::Ctr => key.ctr().encrypt_stream(from, to, progress),
            Mode::Cbc => key.cbc().padding(self.padding).encrypt_stream(from, to, progress),
            Mode::Ecb => self.ecb(&key).encrypt_stream(from, to, progress),
            mode => misuse(&format!("{mode} encrypts no data")),
        }
    }

    fn decrypt(
        &self,
        client: &Client,
        key: &str,
        mut input: Input<'_>,
        to: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let key = client.key(key)?;
        let aead = || Ok::<_, Error>(self.aead(&key)?.nonce_bytes(self.nonce_bytes));
        match (self.mode, &mut input) {
            (Mode::Gcm | Mode::Xaes, Input::Rewindable(twice)) => aead()?.decrypt_stream(twice, to, progress),
            (Mode::Gcm | Mode::Xaes, Input::Stream(stream)) => {
                let mut kept = Cursor::new(in_memory(*stream)?);
                aead()?.decrypt_stream(&mut kept, to, progress)
            }
            (mode, _) if mode.most_whole().is_some() => aead()?.decrypt_gathered(input.as_read(), to),
            (mode @ (Mode::Ctr | Mode::Cbc), _) => {
                let mut initial = vec![0; initial_bytes(&key, mode)?];
                let from = input.as_read();
                from.read_exact(&mut initial).map_err(|e| match e.kind() {
                    io::ErrorKind::UnexpectedEof => Error::Misuse(
                        "the data are shorter than the initial block that they begin with".into(),
                    ),
                    _ => reading(e),
                })?;
                match mode {
                    Mode::Ctr => key.ctr().decrypt_stream(&initial, from, to, progress),
                    _ => key.cbc().padding(self.padding).initial(&initial).decrypt_stream(from, to, progress),
                }
            }
            (Mode::Ecb, _) => self.ecb(&key).decrypt_stream(input.as_read(), to, progress),
            (mode, _) => misuse(&format!("{mode} decrypts no data")),
        }
    }

    fn aead<'k>(&'k self, key: &'k KeyHandle<'k>) -> Result<Aead<'k>> {
        Ok(key.aead(self.mode)?.aads(&self.additional).tag_bytes(self.tag_bytes))
    }

    fn ecb<'k>(&'k self, key: &'k KeyHandle<'k>) -> Blocks<'k> {
        key.ecb().tweak(&self.tweak).padding(self.padding)
    }
}

/// How many bytes the output of a mode begins with before the first encrypted block.
fn initial_bytes(key: &KeyHandle<'_>, mode: Mode) -> Result<usize> {
    let name = &key.info()?.properties.cipher;
    let cipher = catalog::find(name)
        .ok_or_else(|| Error::Misuse(format!("this program does not know the cipher {name}")))?;
    Ok(mode.initial_bytes(&cipher))
}

/// Ciphertext, which is not secret.
fn in_memory(stream: &mut dyn Read) -> Result<Vec<u8>> {
    let mut data = Vec::new();
    let count = stream.take(MAX_IN_MEMORY + 1).read_to_end(&mut data).map_err(reading)? as u64;
    match count <= MAX_IN_MEMORY {
        true => Ok(data),
        false => {
            misuse("the stream has more than 256 MiB, and gcm reads its input twice; give a file, or seal")
        }
    }
}

fn reading(error: io::Error) -> Error {
    Error::Io { what: "cannot read the input", error }
}

fn writing(error: io::Error) -> Error {
    Error::Io { what: "cannot write the output", error }
}

fn misuse<T>(message: &str) -> Result<T> {
    Err(Error::Misuse(message.into()))
}
