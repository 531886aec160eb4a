//! CBC and ECB, which work on whole blocks. Neither authenticates anything.
//!
//! In CBC encryption the nodes compute one block after the other, which is slow. Everything else is computed
//! in parallel.
//!
//! Programs written for an HSM give their own initial blocks. That takes a key that was made for it
//! (`caller_nonces`), or one for ECB: then the client chains single blocks. Both give who may encrypt E_K of
//! any block: the initial block, with a first block of zeros.

use std::io::{Read, Write};

use polyclave_api::{CHAINED, CHUNK, End, MASKED, Step, Use};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use super::KeyHandle;
use super::counter::{OnStart, begin_output};
use super::padding::{fill, garbage, unfilled};
use super::pieces::{Pieces, Progress, Source, add};
use crate::session::first::{First, Masked};
use crate::{Error, Result};

/// Who adds each block of ciphertext to the next block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    None,
    Nodes,
    Client,
}

/// How a last, partial block is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// It is filled up by PKCS#7, which makes every message longer.
    Pkcs7,
    /// There is no padding: messages have whole blocks.
    None,
}

/// Encrypts and decrypts in CBC or ECB under a key, with padding if nothing else is said.
///
/// Without padding an empty input is nothing to encrypt: the nodes are not asked, and the client draws an
/// initial block itself.
pub struct Blocks<'k> {
    key: &'k KeyHandle<'k>,
    chain: Chain,
    padding: Padding,
    tweak: &'k [u8],
    initial: Option<&'k [u8]>,
    start: Option<&'k mut OnStart<'k>>,
}

impl<'k> Blocks<'k> {
    pub(crate) fn new(key: &'k KeyHandle<'k>, chain: Chain) -> Blocks<'k> {
        let padding = if chain == Chain::Client { Padding::None } else { Padding::Pkcs7 };
        Blocks { key, chain, padding, tweak: &[], initial: None, start: None }
    }

    /// How a last, partial block is handled.
    pub fn padding(self, padding: Padding) -> Blocks<'k> {
        Blocks { padding, ..self }
    }

    /// ECB: the tweak of the first block if the key's cipher takes one: a big-endian number, such as the
    /// address of the block. Every block after it has the next number.
    pub fn tweak(self, tweak: &'k [u8]) -> Blocks<'k> {
        Blocks { tweak, ..self }
    }

    /// CBC: the initial block. To decrypt it has to be given. To encrypt under one the key must have been
    /// made for that (`caller_nonces`), and the caller answers for it: it must be unpredictable, and new for
    /// every message. A message can be cut into several requests: the initial block of each is the last block
    /// of the one before.
    pub fn initial(self, initial: &'k [u8]) -> Blocks<'k> {
        Blocks { initial: Some(initial), ..self }
    }

    /// CBC: gives the initial block, which the nodes drew, to this function. Otherwise the output begins with
    /// it.
    pub fn on_start(self, start: &'k mut OnStart<'k>) -> Blocks<'k> {
        Blocks { start: Some(start), ..self }
    }

    /// Encrypts data.
    pub fn encrypt(self, data: &[u8]) -> Result<Vec<u8>> {
        // The data, an initial block and padding.
        let mut out = Vec::with_capacity(data.len() + 32);
        self.encrypt_from(Source::Memory(data), &mut out, &mut |_| ())?;
        Ok(out)
    }

    /// Encrypts a stream. `progress` receives the number of bytes done.
    pub fn encrypt_stream(
        self,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.encrypt_from(Source::Stream(input), output, progress)
    }

    /// Decrypts data.
    pub fn decrypt(&self, data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        // Its full size at once: growing would leave a copy behind.
        let mut out = Zeroizing::new(Vec::with_capacity(data.len()));
        self.decrypt_from(Source::Memory(data), &mut *out, &mut |_| ())?;
        Ok(out)
    }

    /// Decrypts a stream.
    pub fn decrypt_stream(
        &self,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        self.decrypt_from(Source::Stream(input), output, progress)
    }

    /// Where the nodes chain the blocks, the last block of a step arrives only once the next block is fixed.
    fn encrypt_from(
        mut self,
        input: Source<'_>,
        output: &mut dyn Write,
        progress: Progress<'_>,
    ) -> Result<u64> {
        let block = self.block_bytes()?;
        let by_nodes = self.chain == Chain::Nodes;
        let most = match self.chain {
            Chain::Client => block,
            Chain::Nodes => CHAINED,
            Chain::None => MASKED,
        };
        // Padding may add a block to the last piece.
        let room = if self.padding == Padding::Pkcs7 { block } else { 0 };
        let mut pieces = Pieces::new(input, most - room)?;
        let Some(mut data) = self.filled(&mut pieces, block)? else {
            if by_nodes && self.initial.is_none() {
                let mut initial = vec![0; block];
                random_bytes(&mut initial)?;
                begin_output(self.start, &initial, output)?;
            }
            output.flush().map_err(Error::writing)?;
            return Ok(0);
        };
        let mut next = self.filled(&mut pieces, block)?;
        let mask = data.len() as u32;
        let how = match by_nodes {
            true => Use::CbcEncrypt { mask, initial: self.initial.map(<[u8]>::to_vec) },
            false => Use::EcbEncrypt { mask, tweak: self.tweak.to_vec() },
        };
        // The client adds what was encrypted last.
        let mut before = match self.chain {
            Chain::Client => self.initial.unwrap_or_default().to_vec(),
            Chain::None | Chain::Nodes => Vec::new(),
        };
        add(&mut data, &before);
        let mut after = next.as_ref().map_or(0, |data| data.len());
        let first = First::Masked(Masked { data: &data, next: after, end: End::No });
        let (mut conversation, _) = self.key.begin(how, first)?;
        let mut is_due = by_nodes && self.initial.is_none();
        // Bytes of ciphertext that the nodes send with the next answer.
        let (mut done, mut owed) = (0, 0);
        loop {
            let held = if by_nodes && after > 0 { block } else { 0 };
            let due = Some(owed + data.len() - held).filter(|due| *due > 0);
            owed = held;
            let (answer, mask) = match std::mem::take(&mut is_due) {
                true => {
                    let (initial, answer) = conversation.initial_bytes_and_mask(block, due, after)?;
                    begin_output(self.start.take(), &initial, output)?;
                    answer
                }
                false => conversation.bytes_and_mask(due, after)?,
            };
            if self.chain == Chain::Client {
                before.copy_from_slice(&answer[answer.len() - block..]);
            }
            output.write_all(&answer).map_err(Error::writing)?;
            done += data.len() as u64;
            progress(done);
            let Some(piece) = next else { break };
            data = piece;
            next = self.filled(&mut pieces, block)?;
            add(&mut data, &before);
            after = next.as_ref().map_or(0, |data| data.len());
            conversation.step(&Masked { data: &data, next: after, end: End::No }.under(&mask)?)?;
        }
        conversation.finish()?;
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }

    fn decrypt_from(&self, input: Source<'_>, output: &mut dyn Write, progress: Progress<'_>) -> Result<u64> {
        let block = self.block_bytes()?;
        let mut chain = match (self.chain, self.initial) {
            (Chain::None, _) => None,
            (_, Some(initial)) => Some(initial.to_vec()),
            (_, None) => return Err(Error::Misuse("an initial block has to be given".into())),
        };
        let mut pieces = Pieces::new(input, CHUNK)?;
        let Some(first) = pieces.next_filled()? else {
            return if self.padding == Padding::Pkcs7 { Err(garbage()) } else { Ok(0) };
        };
        let step = |data: &[u8]| match data.len().is_multiple_of(block) {
            true => Ok((Step::Blocks { ciphertext: data.to_vec() }, data.len())),
            false => Err(garbage()),
        };
        let how = match self.chain {
            Chain::Nodes => Use::CbcDecrypt,
            Chain::None | Chain::Client => Use::EcbDecrypt { tweak: self.tweak.to_vec() },
        };
        let (mut conversation, _) = self.key.begin(how, First::Step(&step(&first.data)?.0))?;
        let mut done = 0;
        pieces.answered(
            &mut conversation,
            Some(first),
            |piece| step(&piece.data),
            |piece, mut data| {
                let ciphertext = &piece.data;
                if let Some(chain) = &mut chain {
                    let before = chain.iter().chain(ciphertext.iter());
                    data.iter_mut().zip(before).for_each(|(d, c)| *d ^= c);
                    chain.copy_from_slice(&ciphertext[ciphertext.len() - block..]);
                }
                if piece.last && self.padding == Padding::Pkcs7 {
                    let whole = data.len() - block;
                    let kept = unfilled(&data[whole..])?;
                    data.truncate(whole + kept);
                }
                output.write_all(&data).map_err(Error::writing)?;
                done += data.len() as u64;
                progress(done);
                Ok(())
            },
        )?;
        conversation.finish()?;
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }

    /// The next piece with its padding; `None` at the end.
    fn filled(&self, pieces: &mut Pieces<'_>, block: usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let Some(piece) = pieces.next()? else { return Ok(None) };
        // With room for the padding: growing would leave a copy behind.
        let mut data = Zeroizing::new(Vec::with_capacity(piece.data.len() + block));
        data.extend_from_slice(&piece.data);
        if piece.last && self.padding == Padding::Pkcs7 {
            fill(&mut data, block);
        }
        if !data.len().is_multiple_of(block) {
            return Err(Error::Misuse(format!(
                "without padding the input has to be whole blocks of {block} bytes"
            )));
        }
        Ok(Some(data).filter(|data| !data.is_empty()))
    }

    /// Bytes of a block of the key's cipher, if it takes such a tweak and such an initial block.
    fn block_bytes(&self) -> Result<usize> {
        let cipher = self.key.cipher()?;
        let (key, name, bytes, given) = (self.key.name(), &cipher.name, cipher.tweak_bytes, self.tweak.len());
        match self.initial.map_or(cipher.block_bytes, <[u8]>::len) {
            block if block == cipher.block_bytes => {}
            given => {
                let due = cipher.block_bytes;
                return Err(Error::Misuse(format!(
                    "an initial block of {given} bytes; this key takes {due}"
                )));
            }
        }
        if self.chain == Chain::Client && (self.initial.is_none() || self.padding == Padding::Pkcs7) {
            let why = "blocks that this client chains have an initial block and no padding";
            return Err(Error::Misuse(why.into()));
        }
        match bytes {
            _ if given == bytes || self.chain != Chain::None => Ok(cipher.block_bytes),
            0 => Err(Error::Misuse(format!("the key '{key}' is one of {name}, which takes no tweak"))),
            _ => Err(Error::Misuse(format!(
                "the key '{key}' is one of {name}, which takes a tweak of {bytes} bytes with each block; {given} bytes were given for the first",
            ))),
        }
    }
}
