//! What the commands for LoRaWAN's join server share. All values are given as they are in messages: the least
//! significant byte first.

use crate::payment::Role;
use crate::purpose::Purpose;
use crate::wiring::{Key, Value, Wiring};

/// Bytes of a message integrity code.
pub(crate) const MIC_BYTES: usize = 4;

pub(crate) fn network_role() -> Role {
    Role { name: "NwkKey", takes: |purpose| *purpose == Purpose::LorawanNetwork }
}

pub(crate) fn application_role() -> Role {
    Role { name: "AppKey", takes: |purpose| *purpose == Purpose::LorawanApplication }
}

/// Bytes of a block, filled up with zeros.
pub(crate) fn block(parts: &[&[u8]]) -> Vec<u8> {
    let mut block = parts.concat();
    block.resize(16, 0);
    block
}

/// A key from the encryption of a public block.
pub(crate) fn derived(w: &mut Wiring, key: &Key) -> Key {
    let block = w.public(16);
    let value: Value = w.encrypt(key, &block);
    let cipher = key.cipher.clone();
    w.expand(&cipher, &value)
}
