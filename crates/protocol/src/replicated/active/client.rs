//! What a client hears of the nodes, of which one may cheat: of each value from P_i its length, share i, and
//! a digest of share i + 1, both blinded (`../client.rs`).
//!
//! So the client gets every share from one node and a digest of it from another. One of these two is honest.
//! If they fit, the share is the one that an honest node has; if all fit, the value is right, since it was
//! verified before. It is no secret from the client what the digest says, because the client has the share.
//! If two do not fit, one of the two nodes cheats, and the client cannot tell which.

use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::ring::{add, previous};
use super::super::{PARTIES, Pair};
use super::DIGEST_BYTES;
use crate::{Error, Party, Result};

/// The message about a value; empty if the value is.
pub(super) fn message([first, second]: Pair<&[u8]>) -> Result<Vec<u8>> {
    if first.is_empty() {
        return Ok(Vec::new());
    }
    let len = u32::try_from(first.len())
        .map_err(|_| Error::Misuse(format!("{} bytes are too many for a client at once", first.len())))?;
    Ok([&len.to_le_bytes()[..], first, blake3::hash(second).as_bytes()].concat())
}

/// The bytes of all values in the messages.
pub(super) fn combine(mut rest: [&[u8]; PARTIES]) -> Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(rest.iter().map(|message| message.len()).sum()));
    while rest.iter().any(|message| !message.is_empty()) {
        let mut text = None;
        let mut parts = [(&[][..], &[][..]); PARTIES];
        for (message, part) in rest.iter_mut().zip(&mut parts) {
            let (len, behind) = message.split_first_chunk().ok_or(UNEQUAL)?;
            let len = u32::from_le_bytes(*len) as usize;
            if len == 0 || *text.get_or_insert(len) != len {
                return Err(UNEQUAL);
            }
            let (share, behind) = behind.split_at_checked(len).ok_or(UNEQUAL)?;
            let (digest, behind) = behind.split_at_checked(DIGEST_BYTES).ok_or(UNEQUAL)?;
            (*part, *message) = ((share, digest), behind);
        }
        let start = bytes.len();
        bytes.resize(start + text.unwrap_or(0), 0);
        for holder in Party::all(PARTIES) {
            let share = parts[holder.index()].0;
            let other = previous(holder);
            if !ct_eq(blake3::hash(share).as_bytes(), parts[other.index()].1) {
                return Err(Error::OneOfTwo {
                    first: other,
                    second: holder,
                    what: "what nodes sent to a client",
                });
            }
            add(&mut bytes[start..], share);
        }
    }
    Ok(bytes)
}

/// Three nodes, of which one cheats.
const UNEQUAL: Error = Error::CheckFailed { what: "the form of what nodes sent to a client" };
