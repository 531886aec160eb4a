//! The devices, simulated: each has a key and a number for its next message, and encrypts readings in plain
//! code.

use ctr::cipher::{KeyIvInit, StreamCipher};
use polyclave_protocol::Result;
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::encryption::{Encryption, KEY_BYTES};
use crate::skinny;

/// One device. It knows nothing of servers and shares.
pub struct Device {
    id: usize,
    key: Zeroizing<[u8; KEY_BYTES]>,
    next_message: u32,
}

/// What a device sends, to both servers the same.
#[derive(Clone, Serialize, Deserialize)]
pub struct Message {
    /// Who sends it.
    pub device: usize,
    /// Its number among the device's messages.
    pub number: u32,
    /// The readings, encrypted.
    pub ciphertext: Vec<u8>,
}

impl Device {
    /// With a key of its own, before its first message.
    pub fn new(id: usize, key: Zeroizing<[u8; KEY_BYTES]>) -> Device {
        Device { id, key, next_message: 0 }
    }

    /// Encrypts readings.
    pub fn send(&mut self, encryption: Encryption, readings: &[u16]) -> Message {
        let number = self.next_message;
        self.next_message += 1;
        let mut bytes: Vec<u8> = readings.iter().flat_map(|reading| reading.to_be_bytes()).collect();
        match encryption {
            Encryption::Aes128 => {
                let first = encryption.counter_block(number, 0);
                let key = self.key.as_slice();
                let mut keystream = ctr::Ctr32BE::<aes::Aes128>::new_from_slices(key, &first)
                    .expect("a key and a block of AES-128");
                keystream.apply_keystream(&mut bytes);
            }
            Encryption::Skinny64_128 => {
                for (i, block) in (0..).zip(bytes.chunks_mut(8)) {
                    let counter = u64::from(number) << 32 | i;
                    let keystream = skinny::encrypt(&self.key, counter).to_be_bytes();
                    block.iter_mut().zip(keystream).for_each(|(x, k)| *x ^= k);
                }
            }
        }
        Message { device: self.id, number, ciphertext: bytes }
    }
}

/// What the servers hold of the devices' keys, device by device: each a share, of which the sum (XOR) is the
/// key.
pub type KeyShares = Zeroizing<Vec<u8>>;

/// So many devices with fresh keys, and the two servers' shares of these: what happens once, ahead, when
/// devices are made.
pub fn provision(devices: usize) -> Result<(Vec<Device>, [KeyShares; 2])> {
    let mut shares = [0, 1].map(|_| Zeroizing::new(vec![0; devices * KEY_BYTES]));
    shares.iter_mut().try_for_each(|share| random_bytes(share))?;
    let made = (0..devices).map(|id| {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        for share in &shares {
            key.iter_mut().zip(&share[id * KEY_BYTES..]).for_each(|(x, share)| *x ^= share);
        }
        Device::new(id, key)
    });
    Ok((made.collect(), shares))
}

/// Readings of one device: temperatures about a room's, in hundredths of a degree.
pub fn readings(count: usize) -> Result<Vec<u16>> {
    let mut noise = vec![0; 2 * count];
    random_bytes(&mut noise)?;
    Ok(noise.as_chunks::<2>().0.iter().map(|noise| 1800 + u16::from_be_bytes(*noise) % 800).collect())
}
