//! Modes of operation by other people's block ciphers.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

/// Changes a block in place.
type OneBlock = Box<dyn Fn(&mut [u8])>;

/// Encrypts and decrypts one block.
pub struct Oracle {
    pub block: usize,
    encrypt: OneBlock,
    decrypt: OneBlock,
}

impl Oracle {
    /// Of a cipher by its name here.
    pub fn new(cipher: &str, key: &[u8]) -> Oracle {
        match cipher {
            "aes-128" => Self::of::<aes::Aes128>(16, key),
            "aes-192" => Self::of::<aes::Aes192>(16, key),
            "aes-256" => Self::of::<aes::Aes256>(16, key),
            "des" => Self::of::<des::TdesEde3>(8, &key.repeat(3)),
            "3des-ede2" => Self::of::<des::TdesEde2>(8, key),
            "3des-ede3" => Self::of::<des::TdesEde3>(8, key),
            other => panic!("no oracle for {other}"),
        }
    }

    fn of<C: KeyInit + BlockCipherEncrypt + BlockCipherDecrypt + Clone + 'static>(
        block: usize,
        key: &[u8],
    ) -> Oracle {
        let cipher = C::new_from_slice(key).expect("a key of this cipher");
        let again = cipher.clone();
        let of = |b: &[u8]| Array::try_from(b).expect("one block");
        Oracle {
            block,
            encrypt: Box::new(move |b| {
                let mut whole = of(b);
                cipher.encrypt_block(&mut whole);
                b.copy_from_slice(&whole);
            }),
            decrypt: Box::new(move |b| {
                let mut whole = of(b);
                again.decrypt_block(&mut whole);
                b.copy_from_slice(&whole);
            }),
        }
    }

    pub fn encrypted(&self, block: &[u8]) -> Vec<u8> {
        let mut block = block.to_vec();
        (self.encrypt)(&mut block);
        block
    }

    pub fn ecb(&self, data: &[u8]) -> Vec<u8> {
        data.chunks(self.block).flat_map(|block| self.encrypted(block)).collect()
    }

    pub fn unecb(&self, data: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        data.chunks_mut(self.block).for_each(|block| (self.decrypt)(block));
        data
    }

    pub fn cbc(&self, initial: &[u8], data: &[u8]) -> Vec<u8> {
        let mut chain = initial.to_vec();
        let mut out = Vec::new();
        for block in data.chunks(self.block) {
            chain = self.encrypted(&xor(&chain, block));
            out.extend(&chain);
        }
        out
    }

    pub fn ctr(&self, first: &[u8], data: &[u8]) -> Vec<u8> {
        let mut counter = first.to_vec();
        let mut out = Vec::new();
        for block in data.chunks(self.block) {
            out.extend(xor(block, &self.encrypted(&counter)));
            for byte in counter.iter_mut().rev() {
                *byte = byte.wrapping_add(1);
                if *byte != 0 {
                    break;
                }
            }
        }
        out
    }
}

/// Filled up by PKCS#7.
pub fn filled(data: &[u8], block: usize) -> Vec<u8> {
    let count = block - data.len() % block;
    [data, &vec![count as u8; count]].concat()
}

fn xor(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}
