//! Keys that are made of other keys: what they should be, by other implementations.

use polyclave_api::{Mode, NewKey, Reason, Usage, Wrapping};

use super::key;
use super::oracle::Oracle;
use ::cmac::{Cmac, KeyInit, Mac};
use polyclave_client::Error;

/// RFC 3394, sections 4.1 to 4.6: key for wrapping, bytes of the key, and the key wrapped.
pub const KW: [(usize, usize, &str); 6] = [
    (16, 16, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"),
    (24, 16, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"),
    (32, 16, "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"),
    (24, 24, "031d33264e15d33268f24ec260743edce1c6c7ddee725a936ba814915c6762d2"),
    (32, 24, "a8f9bc1612c68b3ff6e6f4fbe30e71e4769c8b80a32cb8958cd5d17d6b254da1"),
    (32, 32, "28c9f404c4b810f4cbccb35cfb87f8263f5786e2d80ed326cbc7f0e71a99f43bfb988b9b7a02dd21"),
];
pub const COUNTING: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
pub const DATA: &str = "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f";

pub fn bytes(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hexadecimal")
}

/// A key that is for this and has no mode.
pub fn only_for(name: &str, cipher: &str, usage: &[Usage]) -> NewKey {
    NewKey { usage: usage.to_vec(), ..key(name, cipher, &[]) }
}

pub fn kek(name: &str, len: usize) -> NewKey {
    only_for(name, &format!("aes-{}", 8 * len), &[Usage::Wrap, Usage::Unwrap])
}

pub fn wrappable(name: &str, cipher: &str, modes: &[Mode]) -> NewKey {
    NewKey { wrappable: true, ..key(name, cipher, modes) }
}

/// The first bytes of the CMAC of a block of zeros, by another implementation.
pub fn check_value(cipher: &str, key: &[u8]) -> Vec<u8> {
    code(cipher, key, &vec![0; Oracle::new(cipher, key).block])
        [..if cipher.starts_with("aes") { 5 } else { 3 }]
        .to_vec()
}

pub fn code(cipher: &str, key: &[u8], message: &[u8]) -> Vec<u8> {
    macro_rules! of {
        ($cipher:ty) => {
            <Cmac<$cipher> as KeyInit>::new_from_slice(key)
                .expect("a key")
                .chain_update(message)
                .finalize()
                .into_bytes()
                .to_vec()
        };
    }
    match cipher {
        "aes-128" => of!(aes::Aes128),
        "aes-192" => of!(aes::Aes192),
        "aes-256" => of!(aes::Aes256),
        "des" => code("3des-ede3", &key.repeat(3), message),
        "3des-ede2" => of!(des::TdesEde2),
        "3des-ede3" => of!(des::TdesEde3),
        other => panic!("no oracle for {other}"),
    }
}

/// RFC 3394 and RFC 5649 written down by steps, over another implementation of AES.
pub fn wrapped_by_oracle(kek: &[u8], key: &[u8], how: Wrapping) -> Vec<u8> {
    let aes = Oracle::new(&format!("aes-{}", 8 * kek.len()), kek);
    let mut register = key.to_vec();
    register.resize(key.len().next_multiple_of(8), 0);
    let mut a = match how {
        Wrapping::Kw => vec![0xa6; 8],
        Wrapping::Kwp => [bytes("a65959a6"), (key.len() as u32).to_be_bytes().to_vec()].concat(),
    };
    let n = register.len() / 8;
    if n == 1 {
        return aes.encrypted(&[a, register].concat());
    }
    for step in 0..6 * n {
        let half = 8 * (step % n)..8 * (step % n) + 8;
        let block = aes.encrypted(&[&a[..], &register[half.clone()]].concat());
        a = block[..8].to_vec();
        a[7] ^= (step + 1) as u8;
        register[half].copy_from_slice(&block[8..]);
    }
    [a, register].concat()
}

#[track_caller]
pub fn refused(outcome: Result<impl std::fmt::Debug, Error>, reason: Reason, why: &str) {
    match outcome {
        Err(Error::Refused { refusal, .. }) => {
            assert_eq!(refusal.reason, reason, "{refusal}");
            assert!(refusal.message.contains(why), "{refusal}");
        }
        other => panic!("{other:?}"),
    }
}
