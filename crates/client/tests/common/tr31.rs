//! Key blocks of TR-31 in the clear, over other people's ciphers: versions B and D, written down from ASC X9
//! TR 31-2018, section 5.3.2.

use super::from_keys::code;
use super::oracle::Oracle;

/// The keys that encrypt and authenticate: CMAC in counter mode.
fn keys(kek: &str, kbpk: &[u8]) -> [Vec<u8>; 2] {
    let algorithm = match kek {
        "3des-ede2" => 0,
        "3des-ede3" => 1,
        "aes-128" => 2,
        "aes-192" => 3,
        "aes-256" => 4,
        other => panic!("no blocks under {other}"),
    };
    let [high, low] = (8 * kbpk.len() as u16).to_be_bytes();
    let codes =
        |purpose| (1..=4).flat_map(move |i| code(kek, kbpk, &[i, 0, purpose, 0, 0, algorithm, high, low]));
    [0, 1].map(|purpose| codes(purpose).take(kbpk.len()).collect())
}

/// A block with this head, whose length field is filled in, for a key and the bytes behind it.
pub fn made(kek: &str, kbpk: &[u8], head: &str, key: &[u8], random: &[u8]) -> String {
    let [encryption, authentication] = keys(kek, kbpk);
    let plain = [&(8 * key.len() as u16).to_be_bytes()[..], key, random].concat();
    let oracle = Oracle::new(kek, &encryption);
    let length = head.len() + 2 * (plain.len() + oracle.block);
    let head = format!("{}{length:04}{}", &head[..1], &head[5..]);
    let mac = code(kek, &authentication, &[head.as_bytes(), &plain].concat());
    let encrypted = oracle.cbc(&mac, &plain);
    format!("{head}{}{}", hex::encode_upper(encrypted), hex::encode_upper(mac))
}

/// The key in a block whose head has so many characters, and the bytes behind the key; `None` if it does not
/// authenticate.
pub fn opened(kek: &str, kbpk: &[u8], block: &str, head: usize) -> Option<(Vec<u8>, Vec<u8>)> {
    let [encryption, authentication] = keys(kek, kbpk);
    let oracle = Oracle::new(kek, &encryption);
    let bytes = hex::decode(&block[head..]).expect("hexadecimal");
    let (encrypted, mac) = bytes.split_at(bytes.len() - oracle.block);
    let previous = [mac, encrypted].concat();
    let plain: Vec<u8> = oracle.unecb(encrypted).iter().zip(previous).map(|(d, p)| d ^ p).collect();
    let expected = code(kek, &authentication, &[&block.as_bytes()[..head], &plain].concat());
    let length = usize::from(u16::from_be_bytes([plain[0], plain[1]])) / 8;
    (expected == mac).then(|| (plain[2..][..length].to_vec(), plain[2 + length..].to_vec()))
}
