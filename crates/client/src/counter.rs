//! Counter mode. It authenticates nothing: somebody who can change the ciphertext can change the data.

use std::collections::VecDeque;
use std::io::{Read, Write};

use polyclave_api::{CHUNK, Operation, Step, Use, operations};

use crate::client::Client;
use crate::conversation::Conversation;
use crate::pieces::Pieces;
use crate::{Error, Result};

/// Receives the first counter or initial block, which the nodes chose, before anything is written.
pub type OnStart<'f> = dyn FnMut(&[u8], &mut dyn Write) -> std::io::Result<()> + 'f;

/// The most pieces in progress.
const WINDOW: usize = 2;

impl Client {
    /// Encrypts a stream. `start` receives the first counter block, which the nodes chose, before anything is written. If the key's cipher
    /// takes a tweak, `start` receives the first tweak, which counts, and then the block that is encrypted under each tweak.
    pub fn encrypt_ctr(
        &self,
        key: &str,
        input: &mut dyn Read,
        output: &mut dyn Write,
        start: &mut OnStart<'_>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let operation =
            Operation::Use(operations::UseKey { key: key.into(), id: None, how: Use::CtrEncrypt });
        let (conversation, accepted) = Conversation::begin(self, &operation, None)?;
        start(&accepted.start, output).map_err(Error::writing)?;
        add_keystream(conversation, input, output, progress)
    }

    /// Decrypts a stream that began with this counter block, or with this tweak and block.
    pub fn decrypt_ctr(
        &self,
        key: &str,
        counter: &[u8],
        input: &mut dyn Read,
        output: &mut dyn Write,
        progress: &mut dyn FnMut(u64),
    ) -> Result<u64> {
        let how = Use::CtrDecrypt { counter: counter.to_vec() };
        let operation = Operation::Use(operations::UseKey { key: key.into(), id: None, how });
        let (conversation, _) = Conversation::begin(self, &operation, None)?;
        add_keystream(conversation, input, output, progress)
    }
}

/// Adds the nodes' keystream to a stream, and ends the conversation.
pub(crate) fn add_keystream(
    mut conversation: Conversation<'_>,
    input: &mut dyn Read,
    output: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> Result<u64> {
    let mut pieces = Pieces::new(input, CHUNK)?;
    let mut awaited = VecDeque::new();
    let mut done = 0;
    while let Some(data) = {
        while awaited.len() < WINDOW
            && let Some(piece) = pieces.next()?
            && !piece.data.is_empty()
        {
            conversation.step(&Step::Keystream { bytes: piece.data.len() as u32 })?;
            awaited.push_back(piece.data);
        }
        awaited.pop_front()
    } {
        let keystream = conversation.bytes(data.len())?;
        let sum: Vec<u8> = data.iter().zip(keystream.iter()).map(|(d, k)| d ^ k).collect();
        output.write_all(&sum).map_err(Error::writing)?;
        done += sum.len() as u64;
        progress(done);
    }
    conversation.finish()?;
    output.flush().map_err(Error::writing)?;
    Ok(done)
}
