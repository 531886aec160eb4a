//! Bytes in commands: hexadecimal digits where people read them, such as JSON, and bytes between programs.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Writes bytes.
pub(crate) fn serialize<S: Serializer>(bytes: impl AsRef<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    match serializer.is_human_readable() {
        true => hex::encode(bytes).serialize(serializer),
        false => serde_bytes::Bytes::new(bytes.as_ref()).serialize(serializer),
    }
}

/// Reads bytes, as many as fit.
pub(crate) fn deserialize<'de, D: Deserializer<'de>, T: TryFrom<Vec<u8>>>(
    deserializer: D,
) -> Result<T, D::Error> {
    let bytes = match deserializer.is_human_readable() {
        true => hex::decode(String::deserialize(deserializer)?)
            .map_err(|_| de::Error::custom("bytes are written in pairs of hexadecimal digits"))?,
        false => serde_bytes::ByteBuf::deserialize(deserializer)?.into_vec(),
    };
    let count = bytes.len();
    T::try_from(bytes).map_err(|_| de::Error::custom(format!("{count} bytes are too few or too many here")))
}
