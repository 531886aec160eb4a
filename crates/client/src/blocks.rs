//! CBC and ECB, which work on whole blocks. Neither authenticates anything.
//!
//! In CBC encryption the nodes compute one block after the other, which is slow. Everything else is computed in parallel.

use std::io::{Read, Write};

use polyclave_api::{CHAINED, CHUNK, End, MASKED, Operation, Step, Use, operations};
use polyclave_cipher::{Cipher, catalog};
use polyclave_protocol::session::random_bytes;
use zeroize::Zeroizing;

use crate::client::Client;
use crate::conversation::Conversation;
use crate::counter::OnStart;
use crate::padding::{fill, garbage, unfilled};
use crate::pieces::Pieces;
use crate::{Error, Result};

/// Where the initial block of a chain comes from.
enum Beginning<'s, 'f> {
    /// The nodes draw it, and whoever is given here receives it.
    OfNodes(&'s mut OnStart<'f>),
    /// The caller gave it.
    Given,
}

/// How a last, partial block is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// It is filled up by PKCS#7, which makes every message longer.
    Pkcs7,
    /// There is no padding: messages have whole blocks.
    None,
}

impl Client {
    /// Encrypts in CBC. `start` receives the initial block, which the nodes drew, before anything is written. The nodes send it with their
    /// first answer, and the last block of each step with the answer to the next step. If the stream is empty and there is no padding,
    /// nothing is encrypted: the client asks no nodes and draws the initial block itself.
    pub fn encrypt_cbc(
        &self,
        key: &str,
        padding: Padding,
        input: &mut dyn Read,
        output: &mut dyn Write,
        start: &mut OnStart<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let how = |mask| Use::CbcEncrypt { mask, initial: None };
        let chain = Some(Beginning::OfNodes(start));
        let block = self.block_bytes(key)?;
        self.encrypt_blocks((key, block), padding, CHAINED, how, input, output, chain, progress)
    }

    /// Encrypts in CBC under an initial block of the caller, which the key must have been made for (`caller_nonces`). The caller answers for
    /// it: it must be unpredictable, and new for every message. A message can be cut into several requests: the initial block of each is the
    /// last block of the one before. An empty stream without padding is nothing to encrypt, and nobody is asked.
    pub fn encrypt_cbc_under(
        &self,
        key: &str,
        padding: Padding,
        initial: &[u8],
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let how = |mask| Use::CbcEncrypt { mask, initial: Some(initial.to_vec()) };
        let (block, chain) = (self.block_bytes(key)?, Some(Beginning::Given));
        self.encrypt_blocks((key, block), padding, CHAINED, how, input, output, chain, progress)
    }

    /// Encrypts every block independently, under a key made for ECB. `tweak` is the tweak of the first block if the key's cipher takes one:
    /// a big-endian number, such as the address of the block. Every block after it has the next number. Empty for other ciphers.
    pub fn encrypt_ecb(
        &self,
        key: &str,
        tweak: &[u8],
        padding: Padding,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let block = self.block_bytes_under(key, tweak)?;
        let how = |mask| Use::EcbEncrypt { mask, tweak: tweak.to_vec() };
        self.encrypt_blocks((key, block), padding, MASKED, how, input, output, None, progress)
    }

    /// With a beginning the blocks are chained: the last block of a step arrives only once the next block is fixed.
    #[expect(clippy::too_many_arguments, reason = "the public functions above are its callers")]
    fn encrypt_blocks(
        &self,
        (key, block): (&str, usize),
        padding: Padding,
        most: usize,
        how: impl Fn(u32) -> Use,
        input: &mut dyn Read,
        output: &mut dyn Write,
        chain: Option<Beginning<'_, '_>>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let is_chained = chain.is_some();
        let mut start = match chain {
            Some(Beginning::OfNodes(start)) => Some(start),
            Some(Beginning::Given) | None => None,
        };
        // Padding may add a block to the last piece.
        let mut pieces = Pieces::new(input, most - block)?;
        let mut next = filled(&mut pieces, padding, block)?;
        let Some(first) = &next else {
            if let Some(start) = start {
                let mut initial = vec![0; block];
                random_bytes(&mut initial)?;
                start(&initial, output).map_err(Error::writing)?;
            }
            output.flush().map_err(Error::writing)?;
            return Ok(0);
        };
        let operation =
            Operation::Use(operations::UseKey { key: key.into(), id: None, how: how(first.len() as u32) });
        let (mut conversation, accepted) = Conversation::begin(self, &operation, None)?;
        // Bytes of ciphertext that the nodes send with the next answer.
        let (mut mask, mut done, mut owed) = (accepted.mask, 0, 0);
        while let Some(data) = next {
            next = filled(&mut pieces, padding, block)?;
            let masked = under(&mask, &data)?;
            let after = next.as_ref().map_or(0, |data| data.len());
            conversation.step(&Step::Masked { data: masked, next: after as u32, end: End::No })?;
            let held = if is_chained && after > 0 { block } else { 0 };
            let due = Some(owed + data.len() - held).filter(|due| *due > 0);
            owed = held;
            let (answer, of_next) = match start.take() {
                Some(start) => {
                    let (initial, answer) = conversation.initial_bytes_and_mask(block, due, after)?;
                    start(&initial, output).map_err(Error::writing)?;
                    answer
                }
                None => conversation.bytes_and_mask(due, after)?,
            };
            mask = of_next;
            output.write_all(&answer).map_err(Error::writing)?;
            done += data.len() as u64;
            progress(done);
        }
        conversation.finish()?;
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }

    /// Decrypts CBC that began with this initial block.
    pub fn decrypt_cbc(
        &self,
        key: &str,
        padding: Padding,
        initial: &[u8],
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let block = self.block_bytes(key)?;
        if initial.len() != block {
            return Err(Error::Misuse(format!(
                "an initial block of {} bytes; this key takes {block}",
                initial.len()
            )));
        }
        let chain = Some(initial.to_vec());
        self.decrypt_blocks((key, block), padding, Use::CbcDecrypt, chain, input, output, progress)
    }

    /// Decrypts every block independently. `tweak` as in encryption.
    pub fn decrypt_ecb(
        &self,
        key: &str,
        tweak: &[u8],
        padding: Padding,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let block = self.block_bytes_under(key, tweak)?;
        let how = Use::EcbDecrypt { tweak: tweak.to_vec() };
        self.decrypt_blocks((key, block), padding, how, None, input, output, progress)
    }

    #[expect(clippy::too_many_arguments, reason = "the two public functions above are its callers")]
    fn decrypt_blocks(
        &self,
        (key, block): (&str, usize),
        padding: Padding,
        how: Use,
        mut chain: Option<Vec<u8>>,
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let mut pieces = Pieces::new(input, CHUNK)?;
        let operation = Operation::Use(operations::UseKey { key: key.into(), id: None, how });
        let mut conversation: Option<Conversation<'_>> = None;
        let mut done = 0;
        while let Some(piece) = pieces.next()? {
            let ciphertext = piece.data;
            if !ciphertext.len().is_multiple_of(block) || (ciphertext.is_empty() && padding == Padding::Pkcs7)
            {
                return Err(garbage());
            }
            if ciphertext.is_empty() {
                break;
            }
            let step = Step::Blocks { ciphertext: ciphertext.clone() };
            let conversation = match &mut conversation {
                Some(conversation) => {
                    conversation.step(&step)?;
                    conversation
                }
                none => none.insert(Conversation::begin(self, &operation, Some(&step))?.0),
            };
            let mut data = conversation.bytes(ciphertext.len())?;
            if let Some(chain) = &mut chain {
                let before = chain.iter().chain(&ciphertext);
                data.iter_mut().zip(before).for_each(|(d, c)| *d ^= c);
                chain.copy_from_slice(&ciphertext[ciphertext.len() - block..]);
            }
            if piece.last && padding == Padding::Pkcs7 {
                let whole = data.len() - block;
                let kept = unfilled(&data[whole..])?;
                data.truncate(whole + kept);
            }
            output.write_all(&data).map_err(Error::writing)?;
            done += data.len() as u64;
            progress(done);
        }
        if let Some(conversation) = conversation {
            conversation.finish()?;
        }
        output.flush().map_err(Error::writing)?;
        Ok(done)
    }

    /// The message authentication code of a stream (SP 800-38B). The nodes compute block after block and reveal only the code.
    pub fn cmac(&self, key: &str, input: &mut dyn Read, progress: &mut dyn FnMut(u64)) -> Result<Vec<u8>> {
        let block = self.block_bytes(key)?;
        let mut pieces = Pieces::new(input, CHAINED)?;
        let mut next = ended(&mut pieces, block)?;
        let Some((first, _)) = &next else { return Err(Error::Misuse("a stream without a piece".into())) };
        let how = Use::Cmac { mask: first.len() as u32 };
        let operation = Operation::Use(operations::UseKey { key: key.into(), id: None, how });
        let (mut conversation, accepted) = Conversation::begin(self, &operation, None)?;
        let (mut mask, mut done, mut tag) = (accepted.mask, 0, Vec::new());
        while let Some((data, end)) = next {
            next = ended(&mut pieces, block)?;
            let masked = under(&mask, &data)?;
            let after = next.as_ref().map_or(0, |(data, _)| data.len());
            conversation.step(&Step::Masked { data: masked, next: after as u32, end })?;
            let (answer, of_next) = conversation.bytes_and_mask((end != End::No).then_some(block), after)?;
            mask = of_next;
            if end != End::No {
                tag = answer.to_vec();
            }
            done += data.len() as u64;
            progress(done);
        }
        conversation.finish()?;
        Ok(tag)
    }

    /// Bytes of a block of the key's cipher.
    fn block_bytes(&self, key: &str) -> Result<usize> {
        Ok(self.cipher(key)?.block_bytes)
    }

    /// The same, if the cipher takes a tweak of this length. The nodes are asked once for both.
    fn block_bytes_under(&self, key: &str, tweak: &[u8]) -> Result<usize> {
        let cipher = self.cipher(key)?;
        let (name, bytes) = (&cipher.name, cipher.tweak_bytes);
        match bytes {
            _ if tweak.len() == bytes => Ok(cipher.block_bytes),
            0 => Err(Error::Misuse(format!("the key '{key}' is one of {name}, which takes no tweak"))),
            _ => Err(Error::Misuse(format!(
                "the key '{key}' is one of {name}, which takes a tweak of {bytes} bytes with each block; {} bytes were given for the first",
                tweak.len()
            ))),
        }
    }

    /// The key's cipher.
    pub(crate) fn cipher(&self, key: &str) -> Result<Cipher> {
        let cipher = self.info(key)?.properties.cipher;
        let unknown = || {
            Error::Misuse(format!("the nodes know a cipher '{cipher}' that this program does not; update it"))
        };
        catalog::find(&cipher).ok_or_else(unknown)
    }
}

/// Adds a mask of the same length to data.
pub(crate) fn under(mask: &[u8], data: &[u8]) -> Result<Vec<u8>> {
    if mask.len() != data.len() {
        return Err(Error::Answers(format!("{} bytes where {} were due", mask.len(), data.len())));
    }
    Ok(data.iter().zip(mask).map(|(d, m)| d ^ m).collect())
}

/// The next piece with its padding; `None` at the end.
fn filled(pieces: &mut Pieces<'_>, padding: Padding, block: usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
    let Some(piece) = pieces.next()? else { return Ok(None) };
    let mut data = piece.data;
    if piece.last && padding == Padding::Pkcs7 {
        fill(&mut data, block);
    }
    if !data.len().is_multiple_of(block) {
        return Err(Error::Misuse(format!(
            "without padding the input has to be whole blocks of {block} bytes"
        )));
    }
    Ok(Some(Zeroizing::new(data)).filter(|data| !data.is_empty()))
}

/// The next piece for CMAC, and whether and how the message ends with it.
fn ended(pieces: &mut Pieces<'_>, block: usize) -> Result<Option<(Zeroizing<Vec<u8>>, End)>> {
    let Some(piece) = pieces.next()? else { return Ok(None) };
    let mut data = Zeroizing::new(piece.data);
    if !piece.last {
        return Ok(Some((data, End::No)));
    }
    if !data.is_empty() && data.len().is_multiple_of(block) {
        return Ok(Some((data, End::Whole)));
    }
    let whole = data.len() + block - data.len() % block;
    data.push(0x80);
    data.resize(whole, 0);
    Ok(Some((data, End::Filled)))
}
