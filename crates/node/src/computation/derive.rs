//! Deriving a key from another on shares: the base key encrypts blocks that everybody knows, or computes
//! codes of messages that everybody knows, and the first bytes of the result are the new key. Nothing of it
//! is opened.
//!
//! **One base derives keys of one cipher.** The same data gives the same bytes for every cipher. So a key of
//! DES would be the first bytes of a key of AES, and a client that finds it by trying all keys has these
//! bytes. Neither PKCS#11 nor SP 800-108 makes the cipher an input of the computation, and other programs
//! compute the same keys. So the first derived key fixes the cipher of the base, at all nodes
//! (`store/src/children.rs`). They note it before they compute the key.
//!
//! **No two blocks of `EcbData` are equal.** Otherwise equal blocks under a base of Triple DES would make a
//! key of Triple DES with equal parts. With three equal parts it is a key of DES.
//!
//! * `EcbData`, `CbcData`: the encryption of given blocks (PKCS#11 3.1, sections 6.17 and 6.27).
//! * `Counter`: SP 800-108 r1, section 4.1, with CMAC as PRF, or HMAC if the base is a key for it. The input
//!   of code i is `before`, i and `after`, as the caller has put them together; label, context and length are
//!   the caller's.
//! * `HkdfExpand`: RFC 5869, section 2.3, if the base is a key for HMAC.
//!
//! A client that can have the base key encrypt chosen blocks in another way, or for `Counter` compute codes,
//! knows the keys that are derived from it. So a key for HMAC that derives computes no codes for a client,
//! and of other keys a client that makes them is warned (`api/src/modes/pairs.rs`).

use std::collections::HashSet;
use std::sync::Arc;

use polyclave_api::{Derivation, MAX_DERIVATION_DATA};
use polyclave_cipher::key_cells::key_of;
use polyclave_cipher::{Cells, Cipher, compile_with_views, hmac};
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyServiceSession, AnyShared};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};

use crate::Result;
use crate::computation::circuits::{Circuits, Own};
use crate::computation::cmac::Coding;
use crate::computation::codes::{Codes, too_much};
use crate::computation::hmac_circuits::{Hashing, Within};
use crate::computation::key::ExpandedKey;
use crate::computation::key_circuits::Deriving;
use crate::computation::pieces::run;
use crate::computation::progress::Progress;

/// Blocks that a derivation computes under the base key. The error says why it is refused.
pub(crate) fn blocks(how: &Derivation, base: &Cipher, new: &Cipher) -> Result<u64, String> {
    let (block, needed) = (base.block_bytes, new.key_bytes.div_ceil(base.block_bytes));
    let (Derivation::EcbData { data } | Derivation::CbcData { data, .. }) = how else {
        return Ok(Codes::new(how, base, new.key_bytes)?.blocks);
    };
    let given = data.len();
    if given > MAX_DERIVATION_DATA {
        return Err(too_much(given));
    }
    match how {
        _ if hmac::is_hmac(base) => {
            Err(format!("a key for {} encrypts no blocks; derive with the counter of SP 800-108", base.name))
        }
        Derivation::CbcData { iv, .. } if iv.len() != block => {
            Err(format!("the initial block has {} bytes; {} takes {block}", iv.len(), base.name))
        }
        _ if given == 0 || !given.is_multiple_of(block) => {
            Err(format!("{given} bytes of data are not whole blocks of {block} bytes"))
        }
        _ if given < new.key_bytes => Err(format!(
            "{given} bytes of data give no key of {} bytes, which {} takes",
            new.key_bytes, new.name
        )),
        Derivation::EcbData { data } if repeats(data.chunks(block).take(needed)) => {
            Err("equal blocks of data would make equal parts of the key; take blocks that differ".into())
        }
        _ => Ok(needed as u64),
    }
}

fn repeats<'d>(mut blocks: impl Iterator<Item = &'d [u8]>) -> bool {
    let mut seen = HashSet::new();
    blocks.any(|block| !seen.insert(block))
}

/// Why a base does not derive a key of a cipher: it has derived keys of another one.
pub(crate) fn other_cipher(base: &str, known: &str, wanted: &str) -> String {
    format!(
        "keys of {known} were derived from the key '{base}', so it derives none of {wanted}: the same data would give both the same bytes. Take another \
         base for {wanted}"
    )
}

/// Computes a derivation that [`blocks`] has accepted.
pub(crate) fn derive(
    how: &Derivation,
    base: &ExpandedKey,
    (of_base, of_new): (&Circuits, &Circuits),
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<AnyShared> {
    if let Own::Hmac(hashing) = of_base.own() {
        return with_hmac(how, (hashing, &base.round_keys), (of_base, of_new), protocol, net);
    }
    let circuits = of_base.keys.derive(of_base, of_new, protocol)?;
    let block = of_base.cipher.block_bytes;
    let needed = of_new.cipher.key_bytes.div_ceil(block);
    let mut at = At { base, of_base, circuits: &circuits, protocol, net };
    let parts = match how {
        Derivation::EcbData { data } => {
            let blocks = of_base.blocks(&data[..needed * block])?;
            let inputs = [Input::Public(&blocks), Input::Shared(&base.round_keys)];
            let encrypted = run(at.protocol, at.net, &circuits.encrypt, needed, &inputs)?.remove(0);
            at.each_lane(&encrypted, needed)
        }
        Derivation::CbcData { iv, data } => at.cbc(&of_base.blocks(iv)?, &data[..needed * block])?,
        Derivation::Counter { .. } | Derivation::HkdfExpand { .. } => {
            let coding =
                Coding { key: base, of_key: of_base, chain: &circuits.chain, last: &circuits.last_of_cmac };
            let messages = codes(how, of_base, of_new)?.messages;
            let codes = coding.of_public(messages, at.protocol, at.net)?;
            at.each_lane(&codes, needed)
        }
    };
    let parts: Vec<Input<'_, AnyShared>> = parts.iter().map(Input::Shared).collect();
    Ok(run(protocol, net, &circuits.key, 1, &parts)?.remove(0))
}

/// The codes that a key is made of.
fn codes(how: &Derivation, of_base: &Circuits, of_new: &Circuits) -> Result<Codes> {
    Codes::new(how, &of_base.cipher, of_new.cipher.key_bytes).map_err(Error::Misuse)
}

/// A key from codes of HMAC. They have cells of one bit, and to put these together takes no AND.
fn with_hmac(
    how: &Derivation,
    (hashing, round_keys): (&Hashing, &AnyShared),
    (of_base, of_new): (&Circuits, &Circuits),
    protocol: &mut AnyServiceSession,
    net: &mut dyn Net,
) -> Result<AnyShared> {
    let codes = codes(how, of_base, of_new)?;
    let (count, bits) = (codes.messages.len(), 8 * hashing.hash.hash_bytes());
    let progress = Progress::new(Arc::default());
    let codes = hashing.codes(&codes, round_keys, &mut Within::for_a_key(protocol, net, &progress))?;
    let codes: Vec<AnyShared> = (0..count).map(|lane| protocol.select_lanes(&codes, &[lane])).collect();
    let key = key_of(&of_new.cipher, count, (bits, 1), 0);
    let key = compile_with_views(&key, protocol, |_| of_new.key.views());
    let codes: Vec<Input<'_, AnyShared>> = codes.iter().map(Input::Shared).collect();
    Ok(run(protocol, net, &key, 1, &codes)?.remove(0))
}

/// A derivation under way.
struct At<'a> {
    base: &'a ExpandedKey,
    of_base: &'a Circuits,
    circuits: &'a Deriving,
    protocol: &'a mut AnyServiceSession,
    net: &'a mut dyn Net,
}

impl At<'_> {
    fn each_lane(&self, value: &AnyShared, lanes: usize) -> Vec<AnyShared> {
        (0..lanes).map(|lane| self.protocol.select_lanes(value, &[lane])).collect()
    }

    /// One block of a chain in each lane.
    fn chained(&mut self, message: &Cells, chain: Input<'_, AnyShared>) -> Result<AnyShared> {
        let inputs = [Input::Public(message), chain, Input::Shared(&self.base.round_keys)];
        Ok(run(self.protocol, self.net, &self.circuits.chain, message.lanes(), &inputs)?.remove(0))
    }

    /// The blocks of CBC, each in one lane.
    fn cbc(&mut self, iv: &Cells, data: &[u8]) -> Result<Vec<AnyShared>> {
        let mut blocks: Vec<AnyShared> = Vec::new();
        for message in data.chunks(self.of_base.cipher.block_bytes) {
            let message = self.of_base.blocks(message)?;
            let chain = blocks.last().map_or(Input::Public(iv), Input::Shared);
            let block = self.chained(&message, chain)?;
            blocks.push(block);
        }
        Ok(blocks)
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::keyed;

    use super::*;

    #[test]
    fn what_gives_too_few_bytes_or_no_whole_blocks_is_refused() {
        let cipher = |name: &str| keyed::find(name).expect("there is such a cipher");
        let (aes, aes_256, des) = (cipher("aes-128"), cipher("aes-256"), cipher("3des-ede3"));
        let hmac = cipher("hmac-sha-256");
        let ecb = |len: usize| Derivation::EcbData { data: (0..len).map(|i| (i / 8) as u8).collect() };
        let cbc = |iv: usize, len: usize| Derivation::CbcData { iv: vec![2; iv], data: vec![1; len] };
        let counter = |counter_bits, len: usize| Derivation::Counter {
            before: vec![1; len],
            counter_bits,
            after: vec![3; 8],
        };
        assert_eq!(blocks(&ecb(16), &aes, &aes), Ok(1));
        assert_eq!(blocks(&ecb(64), &aes, &aes_256), Ok(2));
        assert_eq!(blocks(&ecb(24), &des, &des), Ok(3));
        // The second block is not needed.
        assert_eq!(blocks(&Derivation::EcbData { data: vec![1; 32] }, &aes, &aes), Ok(1));
        assert_eq!(blocks(&cbc(16, 32), &aes, &des), Ok(2));
        assert_eq!(blocks(&counter(32, 4), &aes, &aes_256), Ok(2));
        assert_eq!(blocks(&counter(8, 8), &aes, &aes), Ok(2));
        assert_eq!(blocks(&counter(32, 4), &des, &aes), Ok(4));
        assert_eq!(blocks(&counter(32, 4), &hmac, &aes_256), Ok(2));
        assert_eq!(blocks(&counter(32, 4), &aes, &hmac), Ok(4));
        for (how, base, new, why) in [
            (ecb(16), &aes, &aes_256, "give no key of 32 bytes"),
            (ecb(0), &aes, &aes, "not whole blocks"),
            (ecb(17), &aes, &aes, "not whole blocks"),
            (ecb(4112), &aes, &aes, "at most 4096 bytes"),
            (Derivation::EcbData { data: vec![1; 32] }, &aes, &aes_256, "blocks that differ"),
            (
                Derivation::EcbData { data: [[1; 8], [2; 8], [1; 8]].concat() },
                &des,
                &des,
                "blocks that differ",
            ),
            (cbc(8, 16), &aes, &aes, "initial block has 8 bytes"),
            (counter(12, 8), &aes, &aes, "8, 16, 24 or 32 bits"),
            (counter(0, 8), &aes, &aes, "8, 16, 24 or 32 bits"),
            (counter(8, 4089), &aes, &aes, "at most 4096 bytes"),
            (ecb(32), &hmac, &aes, "a key for hmac-sha-256 encrypts no blocks"),
            (cbc(32, 32), &hmac, &aes, "a key for hmac-sha-256 encrypts no blocks"),
        ] {
            let message = blocks(&how, base, new).expect_err("refused");
            assert!(message.contains(why), "{message}");
        }
    }
}
