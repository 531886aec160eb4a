//! The head of a file in an envelope. Everything in it is public, and every chunk is bound to all of it.

use std::io::Read;

use polyclave_api::{Envelope, MAX_HEADER};

use crate::{Error, Result};

/// The first bytes of a file in an envelope.
pub const MAGIC: &[u8; 16] = b"polyclave-envl-1";

/// The most bytes of an owner's name.
const MAX_OWNER: usize = 255;
/// Bytes before the owner's name: the format's name, ids of key and file, the commitment, and two lengths.
const FIXED: usize = 16 + 16 + 32 + 32 + 1 + 2;

/// What a file in an envelope says before the ciphertext.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key: [u8; 16],
    pub(super) file: [u8; 32],
    pub(super) envelope: Envelope,
}

/// What anybody can read in a file in an envelope. Nothing of it is verified before the file is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeHead {
    /// The client that wrote the file, as it says.
    pub owner: String,
    /// What it says about the file.
    pub header: Vec<u8>,
    /// The id of the key.
    pub key: [u8; 16],
}

impl EnvelopeHead {
    /// Reads it from the beginning of a file.
    pub fn read(input: &mut dyn Read) -> Result<EnvelopeHead> {
        let Head { key, envelope, .. } = Head::read(input)?.0;
        Ok(EnvelopeHead { owner: envelope.owner, header: envelope.header, key })
    }
}

impl Head {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Envelope { owner, header, commitment } = &self.envelope;
        let (of_owner, of_header) = (owner.len() as u8, (header.len() as u16).to_le_bytes());
        [MAGIC, &self.key, &self.file[..], commitment, &[of_owner], &of_header, owner.as_bytes(), header]
            .concat()
    }

    /// Reads a head; also returns its bytes.
    pub(super) fn read(input: &mut dyn Read) -> Result<(Head, Vec<u8>)> {
        let mut bytes = vec![0; FIXED];
        read(input, &mut bytes)?;
        let (owner, header) =
            (usize::from(bytes[96]), usize::from(u16::from_le_bytes([bytes[97], bytes[98]])));
        if bytes[..16] != MAGIC[..] || header > MAX_HEADER {
            return Err(no_envelope());
        }
        bytes.resize(FIXED + owner + header, 0);
        read(input, &mut bytes[FIXED..])?;
        let name = std::str::from_utf8(&bytes[FIXED..FIXED + owner]).map_err(|_| no_envelope())?;
        let part = |from: usize| bytes[from..from + 32].try_into().map_err(|_| no_envelope());
        let envelope =
            Envelope { owner: name.into(), header: bytes[FIXED + owner..].to_vec(), commitment: part(64)? };
        let key = bytes[16..32].try_into().map_err(|_| no_envelope())?;
        Ok((Head { key, file: part(32)?, envelope }, bytes))
    }
}

const _: () = assert!(MAX_OWNER == u8::MAX as usize && MAX_HEADER <= u16::MAX as usize);

fn read(input: &mut dyn Read, into: &mut [u8]) -> Result<()> {
    input.read_exact(into).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => no_envelope(),
        _ => Error::reading(e),
    })
}

fn no_envelope() -> Error {
    Error::Unauthentic("this is no file in an envelope, or its beginning is lost".into())
}
