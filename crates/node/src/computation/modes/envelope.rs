//! The key of one file of the mode `envelope` (docs/use/envelope.md): k = CMAC(1, "file", d) and CMAC(2,
//! "file", d), computed on shares, and revealed to the client alone. Each node computes d from what the
//! client said about the file, and from the file's id.
//!
//! # Why the right to write is not the right to open
//!
//! Nodes answer with the key of any file that they are asked for, so a request to write must not name a file
//! that is there already. The id of a new file comes from the session id, which hashes a fresh nonce of every
//! serving node: neither the client nor a node chooses it, and it does not repeat as long as one of them is
//! honest. So a client that may only write gets keys of new files, and never again the key of a file that was
//! written before, not even of its own. This goes further than DiSE (Agrawal, Mohassel, Mukherjee and Rindal,
//! CCS 2018), where the writer's name in the input keeps writers apart from each other's files only. The name
//! stays in d, so that a file says truthfully who wrote it: nodes refuse to write for a name that is not the
//! client's ([`owns`]).
//!
//! # Why the codes are good for nothing else
//!
//! A key made for `envelope` serves no other mode and no other usage (`api/src/modes/`). Beside these codes
//! the nodes open one other CMAC under it, its check value, of a message of 16 bytes; these messages have 37.
//! CMAC is a PRF over messages of all lengths (Iwata and Kurosawa, OMAC, FSE 2003), so the two are
//! independent.
//!
//! Only protocols whose outputs are checked serve such a key (`operations/refusals.rs`): a wrong key would
//! encrypt a file that nobody could open.

use polyclave_api::{Envelope, FILE_KEY, MAX_HEADER, Reason, Refusal, Step};
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;

use super::gcm::BLOCK;
use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;

/// Codes that make a key.
const CODES: usize = FILE_KEY / BLOCK;
/// Blocks of the message of each code, filled up.
const BLOCKS: usize = 3;
/// The most bytes of an owner's name.
const MAX_OWNER: usize = 255;

/// Refuses to write a file in another client's name.
pub(crate) fn owns(envelope: &Envelope, client: &str) -> Result<(), Refusal> {
    if envelope.owner == client {
        return Ok(());
    }
    let message = format!(
        "this client is {client} here, and asked to write a file as {:?}: a client writes in its own name",
        envelope.owner
    );
    Err(Refusal::new(Reason::Denied, message))
}

/// Derives one key, once.
pub(crate) struct FileKey {
    envelope: Envelope,
    /// The file's id; none yet if the file is to be written.
    file: Option<[u8; 32]>,
    done: bool,
}

impl FileKey {
    pub(crate) fn write(envelope: &Envelope) -> Result<FileKey, Refusal> {
        FileKey::new(envelope, None)
    }

    pub(crate) fn open(envelope: &Envelope, file: [u8; 32]) -> Result<FileKey, Refusal> {
        FileKey::new(envelope, Some(file))
    }

    fn new(envelope: &Envelope, file: Option<[u8; 32]>) -> Result<FileKey, Refusal> {
        let (owner, header) = (envelope.owner.len(), envelope.header.len());
        if owner > MAX_OWNER || header > MAX_HEADER {
            let message = format!(
                "an owner of {owner} bytes and a header of {header}; at most {MAX_OWNER} and {MAX_HEADER} are allowed"
            );
            return Err(Refusal::new(Reason::Malformed, message));
        }
        Ok(FileKey { envelope: envelope.clone(), file, done: false })
    }
}

/// d: what the key depends on.
fn digest(envelope: &Envelope, file: &[u8; 32]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 file in an envelope");
    hasher.update(file).update(&envelope.commitment);
    for part in [envelope.owner.as_bytes(), &envelope.header] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().into()
}

/// Block number `block` of both messages, filled up as CMAC does it.
fn blocks(digest: &[u8; 32], block: usize) -> Vec<u8> {
    let message = |code: usize| {
        let mut message = [&[code as u8 + 1], &b"file"[..], digest, &[0x80]].concat();
        message.resize(BLOCKS * BLOCK, 0);
        message
    };
    (0..CODES).flat_map(|code| message(code)[block * BLOCK..][..BLOCK].to_vec()).collect()
}

/// The CMAC of both messages, each in a lane (SP 800-38B, section 6.2).
fn codes(digest: &[u8; 32], at: &mut Computation<'_>) -> Result<AnyShared, StepError> {
    let circuits = at.circuits.chained()?;
    let missing = || polyclave_protocol::Error::misuse("the key has no subkeys of CMAC");
    let (_, k2) = at.key.subkeys.as_ref().ok_or_else(missing)?;
    let subkey = at.protocol.select_lanes(k2, &[0; CODES]);
    let zero = at.circuits.blocks(&[0; CODES * BLOCK])?;
    let mut link: Option<AnyShared> = None;
    for block in 0..BLOCKS - 1 {
        let message = at.circuits.blocks(&blocks(digest, block))?;
        let chain = link.as_ref().map_or(Input::Public(&zero), Input::Shared);
        link = Some(at.one(&circuits.chain, CODES, &[Input::Public(&message), chain])?);
    }
    let message = at.circuits.blocks(&blocks(digest, BLOCKS - 1))?;
    let chain = link.as_ref().map_or(Input::Public(&zero), Input::Shared);
    let inputs = [Input::Public(&message), chain, Input::Shared(&subkey)];
    Ok(at.one(&circuits.last_of_cmac, CODES, &inputs)?)
}

impl Mode for FileKey {
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let file = *self.file.get_or_insert_with(|| at.derived("polyclave 2026 id of a file in an envelope"));
        Ok((file.to_vec(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        if self.done || *step != Step::FileKey {
            return Err(misplaced(step));
        }
        self.done = true;
        Ok((CODES * BLOCKS) as u64)
    }

    fn run(&mut self, step: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let file = self.file.ok_or_else(|| StepError::Refused(misplaced(&step)))?;
        let codes = codes(&digest(&self.envelope, &file), at)?;
        Ok(Answer::data(at.protocol.reveal_bytes_to_client(&codes, FILE_KEY, at.net)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope() -> Envelope {
        Envelope { owner: "alice".into(), header: b"header".to_vec(), commitment: [7; 32] }
    }

    #[test]
    fn each_part_of_what_names_a_file_changes_its_key_and_none_runs_into_another() {
        let other = |owner: &str, header: &[u8], commitment| {
            let envelope =
                Envelope { owner: owner.into(), header: header.to_vec(), commitment: [commitment; 32] };
            digest(&envelope, &[1; 32])
        };
        let mut digests = vec![
            digest(&envelope(), &[1; 32]),
            digest(&envelope(), &[2; 32]),
            other("alicf", b"header", 7),
            other("alice", b"headers", 7),
            other("aliceh", b"eader", 7),
            other("alice", b"header", 8),
        ];
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), 6);
    }

    #[test]
    fn messages_are_37_bytes_filled_up_and_differ_in_the_first() {
        let all: Vec<u8> = (0..BLOCKS).flat_map(|block| blocks(&[9; 32], block)[..BLOCK].to_vec()).collect();
        assert_eq!(all, [&b"\x01file"[..], &[9; 32], &[0x80], &[0; 10]].concat());
        assert_eq!(blocks(&[9; 32], 0)[BLOCK..], [&b"\x02file"[..], &[9; 11]].concat());
    }

    #[test]
    fn a_client_writes_in_its_own_name_only_and_says_no_more_than_fits() {
        assert_eq!(owns(&envelope(), "alice"), Ok(()));
        assert_eq!(owns(&envelope(), "bob").map_err(|refusal| refusal.reason), Err(Reason::Denied));
        let long = Envelope { header: vec![0; MAX_HEADER + 1], ..envelope() };
        assert!(FileKey::write(&long).is_err() && FileKey::open(&long, [0; 32]).is_err());
    }
}
