//! One entry for each mode: everything that is true of the mode wherever it is used.

use std::ops::RangeInclusive;

use polyclave_cipher::{Cipher, hmac};

use super::MessageOption::{
    self, Additional, Header, Initial, Nonce, Padding, Plain, Sealed, SeveralAdditional, Tweak,
};
use super::{Mode, Usage};
use crate::{MAX_ADDITIONAL_DATA, MAX_CHAINED, MAX_NONCE, MAX_STRINGS, XAES_NONCE};

/// What a client may choose of what a message is encrypted under, if its key allows that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing.
    Nothing,
    /// The nonce. The same nonce gives the same keystream, or with GCM-SIV the same tag for the same message.
    /// So a client that encrypts under the nonce of an old message can decrypt it, or guess it.
    Nonce,
    /// The initial block. So a client can have any single block encrypted.
    InitialBlock,
}

/// Limits of a mode whose messages the nodes take whole.
#[derive(Clone, Copy)]
pub(super) struct Whole {
    /// The most bytes of a message.
    pub(super) message: usize,
    /// The most bytes of additional data.
    pub(super) additional: usize,
    /// The most strings of additional data.
    pub(super) strings: usize,
}

/// What is true of a mode.
pub(super) struct Facts {
    pub(super) name: &'static str,
    /// Everything that a key for this mode can be used for.
    pub(super) usages: &'static [Usage],
    /// What a message may have.
    pub(super) options: &'static [MessageOption],
    /// Bytes of a nonce; `None` in modes without nonces.
    pub(super) nonces: Option<RangeInclusive<usize>>,
    /// Bytes of a tag that a message may have.
    pub(super) tags: &'static [usize],
    /// Whether the tag stands before the ciphertext in its plain format.
    pub(super) begins_with_tag: bool,
    /// For a mode whose messages the nodes take whole.
    pub(super) whole: Option<Whole>,
    pub(super) authenticates: bool,
    /// Whether the key is two keys of its cipher, which the mode uses for different purposes.
    pub(super) takes_two_keys: bool,
    /// Whether a client gives the tweaks of a cipher that takes them.
    pub(super) gives_tweaks: bool,
    /// Whether it computes the inverse of the cipher.
    pub(super) decrypts_blocks: bool,
    /// Whether its blocks do not depend on each other.
    pub(super) is_parallel: bool,
    /// The ciphers that it takes, where these are few.
    pub(super) ciphers: Option<&'static [&'static str]>,
    pub(super) choice: Choice,
    /// Whether nodes keep the subkeys of CMAC for it.
    pub(super) needs_subkeys: bool,
    /// Whether nodes keep the hash key of GHASH for it.
    pub(super) needs_hash_key: bool,
    /// Whether it needs a protocol that checks its outputs: with a wrong key a file would be lost.
    pub(super) needs_checked_outputs: bool,
    /// Why a key for it is for no other mode.
    pub(super) alone: Option<&'static str>,
    /// Why data should not be encrypted in it without care.
    pub(super) caution: Option<&'static str>,
}

const AES: Option<&[&str]> = Some(&["aes-128", "aes-192", "aes-256"]);

pub(super) const ENCRYPTS: &[Usage] = &[Usage::Encrypt, Usage::Decrypt];

const UNAUTHENTICATED: &str =
    "authenticates nothing: somebody who can change the ciphertext can change the data unnoticed";

/// A mode that encrypts data in parallel and authenticates nothing.
const PLAIN: Facts = Facts {
    name: "",
    usages: ENCRYPTS,
    options: &[Plain],
    nonces: None,
    tags: &[],
    begins_with_tag: false,
    whole: None,
    authenticates: false,
    takes_two_keys: false,
    gives_tweaks: false,
    decrypts_blocks: false,
    is_parallel: true,
    ciphers: None,
    choice: Choice::Nothing,
    needs_subkeys: false,
    needs_hash_key: false,
    needs_checked_outputs: false,
    alone: None,
    caution: None,
};

/// Messages whose blocks are computed one after the other.
const CHAINED: Whole = Whole { message: MAX_CHAINED, additional: MAX_ADDITIONAL_DATA, strings: 1 };

const GCM: Facts = Facts {
    name: "gcm",
    options: &[Plain, Sealed, Additional, Nonce],
    nonces: Some(1..=MAX_NONCE),
    // Below 96 bits a guess is too likely to be right (SP 800-38D, section 5.2.1.2).
    tags: &[12, 13, 14, 15, 16],
    authenticates: true,
    choice: Choice::Nonce,
    needs_hash_key: true,
    ..PLAIN
};

const CTR: Facts = Facts {
    name: "ctr",
    options: &[Plain, Initial],
    gives_tweaks: true,
    caution: Some(UNAUTHENTICATED),
    ..PLAIN
};

const CBC: Facts = Facts {
    name: "cbc",
    options: &[Plain, Initial, Padding],
    decrypts_blocks: true,
    is_parallel: false,
    choice: Choice::InitialBlock,
    caution: Some(UNAUTHENTICATED),
    ..PLAIN
};

const CMAC: Facts = Facts {
    name: "cmac",
    usages: &[Usage::Mac],
    options: &[],
    is_parallel: false,
    needs_subkeys: true,
    ..PLAIN
};

const ECB: Facts = Facts {
    name: "ecb",
    options: &[Plain, Tweak, Padding],
    gives_tweaks: true,
    decrypts_blocks: true,
    caution: Some("authenticates nothing, and shows which blocks are equal: do not encrypt data with it"),
    ..PLAIN
};

const ENVELOPE: Facts = Facts {
    name: "envelope",
    options: &[Sealed, Header],
    authenticates: true,
    is_parallel: false,
    ciphers: AES,
    needs_subkeys: true,
    needs_checked_outputs: true,
    alone: Some("the keys of files are codes of cmac, and must come from a key that computes nothing else"),
    ..PLAIN
};

const TR31: Facts = Facts {
    name: "tr31",
    usages: &[Usage::Wrap, Usage::Unwrap],
    options: &[],
    is_parallel: false,
    needs_subkeys: true,
    ..PLAIN
};

const SIV: Facts = Facts {
    name: "siv",
    options: &[Plain, Additional, SeveralAdditional],
    tags: &[16],
    begins_with_tag: true,
    whole: Some(Whole { strings: MAX_STRINGS, ..CHAINED }),
    authenticates: true,
    takes_two_keys: true,
    is_parallel: false,
    ciphers: AES,
    needs_subkeys: true,
    ..PLAIN
};

const CCM: Facts = Facts {
    name: "ccm",
    options: &[Plain, Additional, Nonce],
    nonces: Some(7..=13),
    // Below 64 bits a guess is too likely to be right (SP 800-38C, appendix B.2).
    tags: &[8, 10, 12, 14, 16],
    whole: Some(CHAINED),
    authenticates: true,
    is_parallel: false,
    ciphers: AES,
    choice: Choice::Nonce,
    ..PLAIN
};

const FF1: Facts = Facts {
    name: "ff1",
    usages: &[Usage::Tokenize],
    options: &[],
    is_parallel: false,
    ciphers: AES,
    alone: Some(
        "a round of ff1 is a chain of encrypted blocks, so tokens could be inverted with the other mode or its messages be forged, and \
         tokens must come from a key that computes nothing else",
    ),
    ..PLAIN
};

const GCM_SIV: Facts = Facts {
    name: "gcm-siv",
    options: &[Plain, Additional, Nonce],
    nonces: Some(12..=12),
    tags: &[16],
    // Two products for each block.
    whole: Some(Whole { message: 1 << 10, additional: 1 << 10, strings: 1 }),
    authenticates: true,
    is_parallel: false,
    ciphers: Some(&["aes-128", "aes-256"]),
    choice: Choice::Nonce,
    alone: Some(
        "the keys of its messages are encrypted nonces, and must come from a key that computes nothing else",
    ),
    ..PLAIN
};

const XAES: Facts = Facts {
    name: "xaes",
    options: &[Plain, Additional, Nonce],
    nonces: Some(XAES_NONCE..=XAES_NONCE),
    tags: &[16],
    authenticates: true,
    ciphers: Some(&["aes-256"]),
    choice: Choice::Nonce,
    needs_subkeys: true,
    alone: Some(
        "the keys of its messages are codes of cmac, and must come from a key that computes nothing else",
    ),
    ..PLAIN
};

const HMAC: Facts = Facts {
    name: "hmac",
    usages: &[Usage::Mac],
    options: &[],
    is_parallel: false,
    ciphers: Some(&hmac::NAMES),
    alone: Some("a key for hmac computes codes of hmac and nothing else"),
    ..PLAIN
};

impl Mode {
    pub(super) const fn facts(self) -> &'static Facts {
        match self {
            Mode::Gcm => &GCM,
            Mode::Ctr => &CTR,
            Mode::Cbc => &CBC,
            Mode::Cmac => &CMAC,
            Mode::Ecb => &ECB,
            Mode::Envelope => &ENVELOPE,
            Mode::Tr31 => &TR31,
            Mode::Siv => &SIV,
            Mode::Ccm => &CCM,
            Mode::Ff1 => &FF1,
            Mode::GcmSiv => &GCM_SIV,
            Mode::Xaes => &XAES,
            Mode::Hmac => &HMAC,
        }
    }

    /// Everything that a key for this mode can be used for.
    pub fn usages(self) -> &'static [Usage] {
        self.facts().usages
    }

    /// Whether data are encrypted in it.
    pub fn encrypts(self) -> bool {
        self.usages().contains(&Usage::Encrypt)
    }

    /// Whether it authenticates what it encrypts.
    pub fn authenticates(self) -> bool {
        self.facts().authenticates
    }

    /// Whether a key for this mode is two keys of its cipher, which the mode uses for different purposes.
    pub fn takes_two_keys(self) -> bool {
        self.facts().takes_two_keys
    }

    /// Whether a key for this mode is for no other.
    pub fn is_alone(self) -> bool {
        self.facts().alone.is_some() || self.takes_two_keys()
    }

    /// Whether its blocks do not depend on each other, so that the nodes compute many at once.
    pub fn is_parallel(self) -> bool {
        self.facts().is_parallel
    }

    /// What a client may choose of what a message is encrypted under, if its key allows that.
    pub fn choice(self) -> Choice {
        self.facts().choice
    }

    /// Whether nodes keep the subkeys of CMAC with a key for it.
    pub fn needs_subkeys(self) -> bool {
        self.facts().needs_subkeys
    }

    /// Whether nodes keep the hash key of GHASH with a key for it.
    pub fn needs_hash_key(self) -> bool {
        self.facts().needs_hash_key
    }

    /// Whether it needs a protocol that checks its outputs.
    pub fn needs_checked_outputs(self) -> bool {
        self.facts().needs_checked_outputs
    }

    /// Why data should not be encrypted in it without care, for people.
    pub fn caution(self) -> Option<String> {
        self.facts().caution.map(|why| format!("{self} {why}"))
    }

    /// How many bytes the ciphertext begins with in its plain format before the first block: one block, in
    /// counter mode with a tweak the tweak before it, too. Nothing in modes without an initial block.
    pub fn initial_bytes(self, cipher: &Cipher) -> usize {
        match self.takes(Initial) {
            true => cipher.block_bytes + if self.facts().gives_tweaks { cipher.tweak_bytes } else { 0 },
            false => 0,
        }
    }
}
