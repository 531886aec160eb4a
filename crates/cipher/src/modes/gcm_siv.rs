//! GCM-SIV (RFC 8452). The keys of one message are the first halves of encrypted blocks, each of a number and
//! the nonce (section 4). Its hash POLYVAL is GHASH of blocks with their bytes in the opposite order
//! (appendix A).

use std::sync::Arc;

use crate::aes::{inverse_s_box, s_box};
use crate::key_cells::in_cells_of;
use crate::{Builder, Cipher, Circuit, Wire};

use super::maps::mapped;

/// Blocks whose halves make the key of the hash.
const OF_HASH_KEY: usize = 2;

/// Blocks that are encrypted for the keys of one message.
pub fn blocks(cipher: &Cipher) -> usize {
    OF_HASH_KEY + cipher.key_bytes / 8
}

/// These blocks, which are public.
pub fn numbered(cipher: &Cipher, nonce: &[u8; 12]) -> Vec<u8> {
    (0..blocks(cipher) as u32).flat_map(|number| [&number.to_le_bytes()[..], nonce].concat()).collect()
}

/// The encrypted blocks, `part 1`, `part 2` .. , to `hash_key`, the bytes of POLYVAL's key in the opposite
/// order, and `key`, the message's key of this cipher. The bytes of the latter go through the S-box and its
/// inverse, so that it can have any views ([`key_cells`](crate::key_cells)).
pub fn keys(cipher: &Cipher) -> Circuit {
    let (block, key) = (&cipher.encrypt.inputs()[0], &cipher.key_schedule.inputs()[0]);
    let (cells, bits) = (block.cells.len(), block.bits);
    let mut b = Builder::new(&format!("{}-keys-of-gcm-siv", cipher.name));
    let half =
        |b: &mut Builder, part: usize| b.input(&format!("part {part}"), cells, bits)[..cells / 2].to_vec();
    let halves: Vec<Vec<Wire>> = (1..=blocks(cipher)).map(|part| half(&mut b, part)).collect();
    let (of_hash_key, of_key) = halves.split_at(OF_HASH_KEY);
    let mut of_key = of_key.concat();
    if bits > 1 {
        let (there, back) = (b.table(&Arc::new(s_box())), b.table(&Arc::new(inverse_s_box())));
        let hidden = b.lookup_each(there, &of_key);
        of_key = b.lookup_each(back, &hidden);
    }
    let of_key = in_cells_of(&mut b, &of_key, bits, key.bits);
    let cells_of_byte = 8 / usize::from(bits);
    let hash_key: Vec<Wire> = of_hash_key.concat().chunks(cells_of_byte).rev().flatten().copied().collect();
    b.output("hash_key", &hash_key);
    b.output("key", &of_key);
    b.finish()
}

/// The bytes of a block in the opposite order: `block` to `reversed`. If `cut`, the first bit of the last
/// byte of the result is zero, as in the sum that becomes the tag (section 4).
pub fn reversed(cipher: &Cipher, cut: bool) -> Circuit {
    let port = &cipher.encrypt.inputs()[0];
    let mut b =
        Builder::new(&format!("{}-{}", cipher.name, if cut { "reversed-and-cut" } else { "reversed" }));
    let block = b.input("block", port.cells.len(), port.bits);
    let last = cipher.block_bytes - 1;
    let source = |bit: usize| 8 * (last - bit / 8) + bit % 8;
    let mut sources: Vec<Vec<usize>> = (0..8 * cipher.block_bytes).map(|bit| vec![source(bit)]).collect();
    if cut {
        sources[8 * last].clear();
    }
    let reversed = mapped(&mut b, &block, port.bits, &sources);
    b.output("reversed", &reversed);
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    /// RFC 8452, appendix C.1 and C.2: the keys of the first messages, for both forms of AES.
    #[test]
    fn keys_are_those_of_the_standard() {
        let nonce: [u8; 12] = hex::decode("030000000000000000000000").expect("hex").try_into().expect("12");
        let of_128 = ("aes-128", "d9b360279694941ac5dbc6987ada7377", "4004a0dcd862f2a57360219d2d44ef6c");
        let of_256 = (
            "aes-256",
            "b5d3c529dfafac43136d2d11be284d7f",
            "b914f4742be9e1d7a2f84addbf96dec3456e3c6c05ecc157cdbf0700fedad222",
        );
        for (name, hash_key, message_key) in [of_128, of_256] {
            let aes = catalog::find(name).expect("it is there");
            for cipher in [aes.clone(), crate::boolean::expanded(aes)] {
                let key = [&[1][..], &vec![0; cipher.key_bytes - 1]].concat();
                let parts = encrypted(&cipher, &key, &numbered(&cipher, &nonce));
                let outputs = cleartext::run(&compile(&keys(&cipher), &AnyMap), 1, &parts).expect("they fit");
                let mut reversed = hex::decode(hash_key).expect("hex");
                reversed.reverse();
                assert_eq!(outputs[0].to_blocks(), reversed, "{}", cipher.name);
                assert_eq!(hex::encode(outputs[1].to_blocks()), message_key, "{}", cipher.name);
            }
        }
    }

    #[test]
    fn the_bytes_of_a_block_are_reversed_and_a_bit_is_cut() {
        let block: Vec<u8> = (0..16).map(|i: u8| i.wrapping_mul(83) ^ 0x95).collect();
        let mut expected: Vec<u8> = block.iter().rev().copied().collect();
        assert!(expected[15] & 0x80 != 0);
        for cut in [false, true] {
            expected[15] &= if cut { 0x7f } else { 0xff };
            let aes = catalog::find("aes-128").expect("it is there");
            for cipher in [aes.clone(), crate::boolean::expanded(aes)] {
                let port = &cipher.encrypt.inputs()[0];
                let cells = Cells::from_blocks(port.cells.len(), port.bits, &block).expect("whole");
                let circuit = compile(&reversed(&cipher, cut), &AnyMap);
                let outputs = cleartext::run(&circuit, 1, &[cells]).expect("it fits");
                assert_eq!(outputs[0].to_blocks(), expected);
            }
        }
    }

    /// Each block by itself.
    fn encrypted(cipher: &Cipher, key: &[u8], blocks: &[u8]) -> Vec<Cells> {
        let cells = |port: &crate::Port, bytes: &[u8]| {
            Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("it fits")
        };
        let key = cells(&cipher.key_schedule.inputs()[0], key);
        let round_keys =
            cleartext::run(&compile(&cipher.key_schedule, &AnyMap), 1, &[key]).expect("it fits").remove(0);
        let encrypt = compile(&cipher.encrypt, &AnyMap);
        let one = |block: &[u8]| {
            let block = cells(&cipher.encrypt.inputs()[0], block);
            cleartext::run(&encrypt, 1, &[block, round_keys.clone()]).expect("it fits").remove(0)
        };
        blocks.chunks(16).map(one).collect()
    }
}
