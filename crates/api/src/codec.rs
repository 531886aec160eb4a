//! Messages as bytes: a length, and a postcard encoding.

use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::MAX_MESSAGE;

/// Encodes a message, its length in front.
pub fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>> {
    let broken = |e| Error::System(format!("cannot encode a message: {e}"));
    let bytes = postcard::to_extend(message, vec![0; 4]).map_err(broken)?;
    let len = bytes.len() - 4;
    if len > MAX_MESSAGE {
        return Err(Error::misuse(format!("a message of {len} bytes; at most {MAX_MESSAGE} are allowed")));
    }
    let mut bytes = bytes;
    bytes[..4].copy_from_slice(&(len as u32).to_le_bytes());
    Ok(bytes)
}

/// Sends a message to one party.
pub fn send<T: Serialize>(net: &mut dyn Net, to: Party, message: &T) -> Result<()> {
    let bytes = encode(message)?;
    net.send(to, &bytes[..4])?;
    net.send(to, &bytes[4..])
}

/// Receives the bytes of a message from one party.
pub fn receive_bytes(net: &mut dyn Net, from: Party) -> Result<Vec<u8>> {
    receive_at_most(MAX_MESSAGE, net, from)
}

/// The same for a message of so many bytes at most.
pub fn receive_at_most(most: usize, net: &mut dyn Net, from: Party) -> Result<Vec<u8>> {
    let mut len = [0; 4];
    net.recv(from, &mut len)?;
    let len = u32::from_le_bytes(len) as usize;
    if len == 0 || len > most {
        let detail = format!("a message of {len} bytes; 1 to {most} are allowed");
        return Err(Error::Peer { peer: from, detail });
    }
    let mut bytes = vec![0; len];
    net.recv(from, &mut bytes)?;
    Ok(bytes)
}

/// The version that a request claims to have, without a look at the rest; `None` if it does not begin with a
/// version.
pub fn version_of(request: &[u8]) -> Option<u16> {
    postcard::take_from_bytes(request).ok().map(|(version, _)| version)
}

/// Reads a message of a party. All bytes must belong to it.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], from: Party) -> Result<T> {
    let wrong = |detail: &str| Error::Peer { peer: from, detail: detail.into() };
    let (message, rest) = postcard::take_from_bytes(bytes)
        .map_err(|e| wrong(&format!("a message that cannot be read ({e}); is it of another version?")))?;
    if rest.is_empty() { Ok(message) } else { Err(wrong("a message with bytes left over")) }
}

#[cfg(test)]
mod tests {
    use polyclave_protocol::PartySet;

    use super::super::{
        CHUNK, KEYS, KeyInfo, Lifetime, MASKED, MAX_LABEL, Mode, NewKey, Operation, Origin, Reply, Request,
        Step, Use, VERSION, operations,
    };
    use super::*;

    #[test]
    fn a_message_comes_back() {
        let request = Request {
            version: VERSION,
            id: [7; 16],
            serving: PartySet::all(3),
            operation: Operation::Use(operations::UseKey { key: "k".into(), id: None, how: Use::CtrEncrypt }),
            first: Some(Step::Keystream { bytes: 16 }),
            dealt: vec![[3; 32]; 3],
            approval: None,
            on_behalf_of: "billing".into(),
            trace: None,
        };
        let bytes = encode(&request).expect("it is small");
        assert_eq!(decode::<Request>(&bytes[4..], Party(0)), Ok(request));
    }

    /// For data that a client verifies by itself, a node sends twice as much as the client learns, and 52
    /// bytes. In a chain of blocks this applies to each block.
    #[test]
    fn the_longest_answers_fit() {
        let verified = |bytes: usize| vec![0; 2 * bytes + 52];
        for (data, mask, initial) in [
            (verified(CHUNK), Vec::new(), Vec::new()),
            (verified(MASKED), verified(MASKED), Vec::new()),
            ([0; 84].repeat(2048 / 16), verified(2048), verified(16)),
        ] {
            assert!(encode(&Reply::Data { data, mask, initial, opened: Vec::new() }).is_ok());
        }
        use Mode::{Cbc, Ccm, Cmac, Ctr, Ecb, Envelope, Gcm, Siv, Tr31};
        let modes = [Gcm, Ctr, Cbc, Cmac, Ecb, Envelope, Tr31, Siv, Ccm];
        let mut properties = NewKey::for_modes(&"n".repeat(64), &"c".repeat(64), &modes, u64::MAX);
        (properties.label, properties.expires) = ("l".repeat(MAX_LABEL), Some(u64::MAX));
        properties.lifetime = Lifetime::Session { seconds: u32::MAX };
        let (id, check_value) = ([0xff; 16], vec![0xff; 16]);
        let first = KeyInfo::first(properties, id, Origin::Imported, u64::MAX, check_value);
        let (version, least_version, revision) = (u32::MAX, u32::MAX, u64::MAX);
        let key = KeyInfo { version, least_version, revision, ..first };
        assert!(encode(&Reply::Keys { keys: vec![key; KEYS], more: true }).is_ok(), "a page of a list");
    }

    /// A request of version 5, with a key that has no usage, cannot be read; its version can.
    #[test]
    fn the_version_of_a_request_is_read_whatever_follows_it() {
        assert_eq!(version_of(&[5, 1, 2, 3]), Some(5));
        assert_eq!(version_of(&[0x80, 0x02]), Some(256));
        assert_eq!((version_of(&[]), version_of(&[0x80])), (None, None));
    }

    #[test]
    fn cut_and_lengthened_messages_are_errors() {
        let bytes = encode(&Step::Seal { ciphertext: vec![1; 100], last: true }).expect("it is small");
        for cut in 4..bytes.len() {
            assert!(decode::<Step>(&bytes[4..cut], Party(0)).is_err(), "{cut}");
        }
        let longer = [&bytes[4..], &[0]].concat();
        assert!(decode::<Step>(&longer, Party(0)).is_err());
    }
}
