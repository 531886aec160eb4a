//! The codes from which keys and bytes are derived.
//!
//! * SP 800-108 r1, section 4.1, in counter mode: a key of a block cipher computes codes by CMAC, a key for
//!   HMAC by HMAC. They are of messages that everybody knows.
//! * HKDF-Expand (RFC 5869, section 2.3), under a key for HMAC: the message of each code except the first
//!   begins with the code before, which stays shared.
//!
//! No message consists of zeros, since the counter begins at 1. So no code is that of a check value.

use polyclave_api::{Derivation, MAX_DERIVATION_DATA};
use polyclave_cipher::Cipher;
use polyclave_cipher::hmac::{self, Sha2};

/// The codes that give a key or bytes, and what they cost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Codes {
    /// What everybody knows of the message of each code, all of one length.
    pub(crate) messages: Vec<Vec<u8>>,
    /// Whether each message except the first begins with the code before.
    pub(crate) chained: bool,
    /// Blocks that the key computes, or compressions.
    pub(crate) blocks: u64,
}

/// What computes codes.
#[derive(Clone, Copy)]
enum Prf {
    Cmac { block: usize },
    Hmac(Sha2),
}

impl Codes {
    /// The codes under a key of `base` that give so many bytes. The error says why there are none.
    pub(crate) fn new(how: &Derivation, base: &Cipher, bytes: usize) -> Result<Codes, String> {
        let prf = Prf::of(base);
        let (before, counter_bits, after, chained) = match (how, prf) {
            (Derivation::Counter { before, counter_bits, after }, _) => {
                (&before[..], *counter_bits, &after[..], false)
            }
            (Derivation::HkdfExpand { info }, Prf::Hmac(_)) => (&info[..], 8, &[][..], true),
            (Derivation::HkdfExpand { .. }, Prf::Cmac { .. }) => {
                return Err(format!("hkdf is computed under keys for hmac, not of {}", base.name));
            }
            (Derivation::EcbData { .. } | Derivation::CbcData { .. }, _) => {
                return Err(
                    "blocks are encrypted, which gives no codes: take the counter of SP 800-108".into()
                );
            }
        };
        let given = before.len().saturating_add(after.len());
        if given > MAX_DERIVATION_DATA {
            return Err(too_much(given));
        }
        if !matches!(counter_bits, 8 | 16 | 24 | 32) {
            return Err(format!("the counter has 8, 16, 24 or 32 bits, not {counter_bits}"));
        }
        let codes = bytes.div_ceil(prf.code_bytes());
        if codes as u64 >= 1 << counter_bits {
            return Err(format!(
                "a counter of {counter_bits} bits does not count {codes} codes; take more bits"
            ));
        }
        let counter = |i: usize| (i as u32).to_be_bytes()[4 - usize::from(counter_bits) / 8..].to_vec();
        let messages: Vec<Vec<u8>> = (1..=codes).map(|i| [before, &counter(i), after].concat()).collect();
        let before = |i: usize| if chained && i > 0 { prf.code_bytes() } else { 0 };
        let lengths = messages.iter().enumerate().map(|(i, message)| before(i) + message.len());
        let blocks = lengths.map(|bytes| prf.blocks(bytes)).sum();
        Ok(Codes { messages, chained, blocks })
    }
}

impl Prf {
    fn of(cipher: &Cipher) -> Prf {
        match hmac::hash_of(&cipher.name) {
            Some(hash) => Prf::Hmac(hash),
            None => Prf::Cmac { block: cipher.block_bytes },
        }
    }

    fn code_bytes(self) -> usize {
        match self {
            Prf::Cmac { block } => block,
            Prf::Hmac(hash) => hash.hash_bytes(),
        }
    }

    /// The cost of the code of a message of so many bytes, one at least.
    fn blocks(self, bytes: usize) -> u64 {
        match self {
            Prf::Cmac { block } => bytes.div_ceil(block) as u64,
            // One more is the outer hash.
            Prf::Hmac(hash) => hmac::blocks(hash, bytes as u64) + 1,
        }
    }
}

/// Why nothing is derived from so many bytes.
pub(crate) fn too_much(given: usize) -> String {
    format!("keys and bytes are derived from at most {MAX_DERIVATION_DATA} bytes of data, not {given}")
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::keyed;

    use super::*;

    fn codes(base: &str, counter_bits: u8, given: usize, bytes: usize) -> Result<Codes, String> {
        let how = Derivation::Counter { before: vec![0; given], counter_bits, after: vec![0; given.min(4)] };
        Codes::new(&how, &keyed::find(base).expect("there is such a cipher"), bytes)
    }

    #[test]
    fn they_are_as_many_as_it_takes_and_cost_blocks_or_compressions() {
        for (base, counter_bits, given, bytes, count, blocks) in [
            ("aes-128", 8, 11, 33, 3, 3),
            ("aes-128", 8, 12, 33, 3, 6),
            ("3des-ede3", 32, 0, 1024, 128, 128),
            // A message of 55 bytes leaves room for what fills it up; one of 56 bytes does not.
            ("hmac-sha-256", 8, 50, 32, 1, 2),
            ("hmac-sha-256", 8, 51, 32, 1, 3),
            ("hmac-sha-256", 8, 50, 33, 2, 4),
            ("hmac-sha-384", 16, 105, 97, 3, 6),
            ("hmac-sha-512", 16, 106, 64, 1, 3),
        ] {
            let found = codes(base, counter_bits, given, bytes).expect("accepted");
            assert_eq!((found.messages.len(), found.blocks), (count, blocks), "{base}, {given}");
        }
    }

    fn expanded(base: &str, info: &[u8], bytes: usize) -> Result<Codes, String> {
        let how = Derivation::HkdfExpand { info: info.to_vec() };
        Codes::new(&how, &keyed::find(base).expect("there is such a cipher"), bytes)
    }

    /// The code before, info and a counter fit into a block if they have 55 bytes, or 111.
    #[test]
    fn what_hkdf_costs_has_the_code_before_in_it() {
        for (base, info, bytes, count, blocks) in [
            ("hmac-sha-256", 54, 32, 1, 2),
            ("hmac-sha-256", 22, 64, 2, 4),
            ("hmac-sha-256", 23, 64, 2, 5),
            ("hmac-sha-384", 62, 97, 3, 6),
            ("hmac-sha-512", 47, 65, 2, 5),
        ] {
            let found = expanded(base, &vec![0; info], bytes).expect("accepted");
            assert_eq!((found.messages.len(), found.blocks), (count, blocks), "{base}, {info}");
        }
        let codes = expanded("hmac-sha-256", b"ab", 65).expect("accepted");
        assert_eq!(codes.messages, [b"ab\x01", b"ab\x02", b"ab\x03"]);
        assert!(codes.chained);
        assert!(
            expanded("hmac-sha-256", &[0; 4097], 32).expect_err("refused").contains("at most 4096 bytes")
        );
        assert!(expanded("aes-256", b"", 32).expect_err("refused").contains("not of aes-256"));
    }

    #[test]
    fn a_message_is_no_string_of_zeros_and_none_comes_twice() {
        for base in ["aes-128", "hmac-sha-256"] {
            let mut messages = codes(base, 16, 3, 1024).expect("accepted").messages;
            assert!(messages.iter().all(|message| message.iter().any(|byte| *byte != 0)));
            let all = messages.len();
            messages.dedup();
            assert_eq!(messages.len(), all);
            assert_eq!(messages[0], [0, 0, 0, 0, 1, 0, 0, 0]);
        }
    }

    #[test]
    fn what_is_too_long_or_not_counted_is_refused() {
        for (base, counter_bits, given, bytes, why) in [
            ("aes-128", 12, 8, 16, "8, 16, 24 or 32 bits"),
            ("hmac-sha-256", 0, 8, 16, "8, 16, 24 or 32 bits"),
            ("aes-128", 8, 4093, 16, "at most 4096 bytes"),
            ("hmac-sha-512", 8, 4093, 16, "at most 4096 bytes"),
            ("3des-ede3", 8, 4, 2048, "does not count 256 codes; take more bits"),
        ] {
            let message = codes(base, counter_bits, given, bytes).expect_err("refused");
            assert!(message.contains(why), "{message}");
        }
        let aes = keyed::find("aes-128").expect("there is such a cipher");
        let ecb = Codes::new(&Derivation::EcbData { data: vec![1; 16] }, &aes, 16);
        assert!(ecb.expect_err("refused").contains("gives no codes"));
    }
}
