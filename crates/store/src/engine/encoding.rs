//! How the value of a record is written as bytes, before it is sealed: by postcard.

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::super::{Result, StoreError};
use super::Table;

/// Encodes a value. With enough `room` the buffer does not grow, which would leave copies behind.
pub(in super::super) fn encode<T: Serialize>(value: &T, room: usize) -> Result<Zeroizing<Vec<u8>>> {
    let encoded = postcard::to_extend(value, Vec::with_capacity(room));
    encoded.map(Zeroizing::new).map_err(|e| StoreError::Failed(format!("a record cannot be written: {e}")))
}

/// Decodes a value. This node wrote every value that opens, so one that cannot be decoded is of another
/// version.
pub(in super::super) fn decode<T: DeserializeOwned>(table: Table, bytes: &[u8]) -> Result<T> {
    decode_one_of(table.name(), bytes)
}

/// Decodes a value that is in no table of records. `records` names its kind in errors.
pub(in super::super) fn decode_one_of<T: DeserializeOwned>(records: &str, bytes: &[u8]) -> Result<T> {
    let wrong = || StoreError::corrupt(format!("a record of {records} (of another version?)"));
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(|_| wrong())?;
    if rest.is_empty() { Ok(value) } else { Err(wrong()) }
}
