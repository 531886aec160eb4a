//! Message authentication codes of streams, and CMAC (SP 800-38B). The nodes compute block after block and
//! reveal only the code.

use std::io::Read;

use polyclave_api::{CHAINED, End, MAX_CHAINED, Mode, Use};
use zeroize::Zeroizing;

use crate::operations::encrypt::KeyHandle;
use crate::operations::encrypt::pieces::{Pieces, Source};
use crate::session::first::{First, Masked};
use crate::{Error, Result};

impl KeyHandle<'_> {
    /// The message authentication code of a stream in the mode of the key: CMAC; or HMAC, of at most 64 KiB,
    /// cut to `bytes` bytes. `progress` receives the number of bytes done.
    pub fn mac_stream(
        &self,
        input: &mut dyn Read,
        bytes: Option<usize>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Zeroizing<Vec<u8>>> {
        match (self.computes_hmac()?, bytes) {
            (true, bytes) => self.hmac_of_stream(input, bytes, progress),
            (false, None) => self.cmac_stream(input, progress),
            (false, Some(_)) => {
                Err(Error::Misuse(format!("the key '{}' is not for hmac, whose codes are cut", self.name())))
            }
        }
    }

    /// Whether its codes are those of HMAC.
    pub fn computes_hmac(&self) -> Result<bool> {
        Ok(self.info()?.properties.modes.contains(&Mode::Hmac))
    }

    fn hmac_of_stream(
        &self,
        input: &mut dyn Read,
        bytes: Option<usize>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Zeroizing<Vec<u8>>> {
        // One more than is allowed, so that a longer message is noticed.
        let mut pieces = Pieces::new(Source::Stream(input), MAX_CHAINED + 1)?;
        let piece = pieces.next()?.ok_or_else(|| Error::Misuse("a stream without a piece".into()))?;
        let bytes = bytes.map_or_else(|| Ok(self.hmac_hash()?.hash_bytes()), Ok::<_, Error>)?;
        let code = self.hmac(&[&piece.data[..]], bytes)?.remove(0);
        progress(piece.data.len() as u64);
        Ok(code)
    }

    /// The message authentication code of a message.
    pub fn cmac(&self, message: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        self.cmac_from(Source::Memory(message), &mut |_| ())
    }

    /// The message authentication code of a stream. `progress` receives the number of bytes done.
    pub fn cmac_stream(
        &self,
        input: &mut dyn Read,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Zeroizing<Vec<u8>>> {
        self.cmac_from(Source::Stream(input), progress)
    }

    fn cmac_from(&self, input: Source<'_>, progress: &mut dyn FnMut(u64)) -> Result<Zeroizing<Vec<u8>>> {
        let block = self.cipher()?.block_bytes;
        let mut pieces = Pieces::new(input, CHAINED)?;
        let Some((mut data, mut end)) = ended(&mut pieces, block)? else {
            return Err(Error::Misuse("a stream without a piece".into()));
        };
        let mut next = ended(&mut pieces, block)?;
        let mut after = next.as_ref().map_or(0, |(data, _)| data.len());
        let first = First::Masked(Masked { data: &data, next: after, end });
        let (mut conversation, _) = self.begin(Use::Cmac { mask: data.len() as u32 }, first)?;
        let mut done = 0;
        loop {
            let (tag, mask) = conversation.bytes_and_mask((end != End::No).then_some(block), after)?;
            done += data.len() as u64;
            progress(done);
            let Some(piece) = next else {
                conversation.finish()?;
                return Ok(tag);
            };
            (data, end) = piece;
            next = ended(&mut pieces, block)?;
            after = next.as_ref().map_or(0, |(data, _)| data.len());
            conversation.step(&Masked { data: &data, next: after, end }.under(&mask)?)?;
        }
    }
}

/// The next piece, and whether and how the message ends with it.
fn ended(pieces: &mut Pieces<'_>, block: usize) -> Result<Option<(Zeroizing<Vec<u8>>, End)>> {
    let Some(piece) = pieces.next()? else { return Ok(None) };
    // With room for the end: growing would leave a copy behind.
    let mut data = Zeroizing::new(Vec::with_capacity(piece.data.len() + block));
    data.extend_from_slice(&piece.data);
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
