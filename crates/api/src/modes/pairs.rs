//! Which modes one key may be made for together.
//!
//! A mode undoes another if a right to use it gives something that breaks what the other promises. The right
//! to decrypt in CTR and the right to encrypt in ECB give E_K(x) for every x. The right to decrypt in CBC or
//! ECB gives D_K(y) for every y.
//!
//! * E_K(0) is the hash key of GCM, with which tags can be forged, and the subkeys of CMAC follow from it.
//!   E_K of a counter block is keystream of GCM and of CTR, where a right to encrypt is no right to decrypt.
//! * D_K of a CMAC of one block is that block plus the subkey.
//! * E_K of the first block of a code of CCM, or of one of its counter blocks, gives codes, keystream and
//!   what covers tags.
//! * The keystream of GCM and CCM is E_K of counter blocks. A client that knows a message knows it. With it
//!   one code of CMAC gives another: if C is the code of a block M, it is also the code of the counter block
//!   followed by M plus its keystream. (Our own observation. EAX, which has counter mode and CMAC under one
//!   key, puts a block in front of every message of CMAC that no counter block equals.)
//! * The right to encrypt in CBC does not give E_K of a block that the client chose (`modes/chain.rs` of a
//!   node). CBC is still kept apart from GCM and CCM, so that they do not depend on that alone.
//!
//! * The keys of files of the mode `envelope` are codes of CMAC: a client that may compute codes, or single
//!   blocks, can compute them.
//!
//! Pairs that nobody expects to be harmful are **refused**: CBC with GCM, CCM or CMAC, and with everything
//! the modes that [`facts`](super::facts) says are alone, such as `envelope` and `ff1`. CTR and ECB give
//! E_K(anything) by definition. Programs written for an HSM use one key in them and in other modes, so a
//! client that makes such a key is **warned** and gets it.
//!
//! A key that wraps, unwraps or derives should have no mode: with one, a client is warned of what the mode
//! undoes.
//!
//! A key for SIV has no other mode: it is two keys, and a node refuses more ([`super::new_key`]).
//!
//! * A round of FF1 is a CBC-MAC, and a client gets up to the whole last block of it. A client that can get
//!   E_K of any block computes the rounds, and inverts every token. The other way round, a client that knows
//!   two of these blocks, R and R', makes a second code of CMAC from one: the codes of R's input followed by
//!   M, and of R' 's input followed by M + R + R', are equal. (Our own observation.) So `ff1`, too, is
//!   **refused** with everything.
//!
//! These pairs undo nothing:
//! * CTR with CBC, because a client that may decrypt may do so in both.
//! * CBC with ECB, except that the right to encrypt in ECB confirms guesses of CBC's blocks.

use crate::{Mode, Usage};

/// Why no key is made for these modes together; `None` if it may be.
pub fn why_apart(modes: &[Mode]) -> Option<String> {
    let (mode, other, what) = pairs(modes).find(|(mode, ..)| is_apart(*mode))?;
    Some(format!(
        "{mode} undoes {other} under the same key: {what}. Make one key for {mode} and another for {other}"
    ))
}

/// Warnings for a client that makes a key for these modes and usages: which modes undo other modes or usages.
pub fn warnings(modes: &[Mode], usage: &[Usage]) -> Vec<String> {
    let allowed = pairs(modes).filter(|(mode, ..)| !is_apart(*mode));
    let message =
        allowed.map(|(mode, other, what)| format!("{mode} undoes {other} under the same key: {what}"));
    let usages = usage.iter().flat_map(|usage| modes.iter().map(move |mode| (*mode, *usage)));
    let told_of_usages = usages.filter_map(|(mode, usage)| {
        let what = undoing_usage(mode, usage)?;
        Some(format!("{mode} undoes the usage {usage} under the same key: {what}"))
    });
    message.chain(told_of_usages).collect()
}

/// Why no key is made for these usages together; `None` if it may be. What is derived as bytes for a client
/// and what is derived as a key that nobody knows are the same function of the same data.
pub fn why_usages_apart(usage: &[Usage]) -> Option<&'static str> {
    let both = [Usage::Derive, Usage::Kdf].iter().all(|one| usage.contains(one));
    both.then_some(
        "kdf undoes derive under the same key: who may have bytes derived could know the derived keys. Make one key for derive and \
         another for kdf",
    )
}

/// Whether the pairs of this mode are refused, and not only warned of.
fn is_apart(mode: Mode) -> bool {
    mode == Mode::Cbc || mode.facts().alone.is_some()
}

/// What a mode gives that undoes what a key does with other keys.
fn undoing_usage(mode: Mode, usage: Usage) -> Option<&'static str> {
    match (mode, usage) {
        (Mode::Ecb | Mode::Cbc, Usage::Wrap | Usage::Unwrap) => {
            Some("who may decrypt in it can open wrapped keys")
        }
        (Mode::Ctr, Usage::Wrap | Usage::Unwrap) => {
            Some("who may decrypt in ctr can wrap a key of its own choice")
        }
        (Mode::Ecb | Mode::Ctr, Usage::Derive) => {
            Some("who may encrypt in ecb or decrypt in ctr can compute the derived keys")
        }
        (Mode::Gcm | Mode::Ccm, Usage::Derive) => {
            Some("who knows a message knows blocks of keystream, and keys can be derived that equal them")
        }
        (Mode::Cmac, Usage::Derive) => {
            Some("who may compute codes can compute the keys that are derived with cmac")
        }
        (Mode::Ecb | Mode::Ctr, Usage::Kdf) => {
            Some("who may encrypt in ecb or decrypt in ctr can compute the derived bytes")
        }
        (Mode::Cbc, Usage::Kdf) => Some(
            "who may decrypt single blocks gets the subkeys of cmac, with which the derived bytes are computed",
        ),
        (Mode::Gcm | Mode::Ccm, Usage::Kdf) => Some(
            "who knows a message knows blocks of keystream, and gets with them other derived bytes from some",
        ),
        (Mode::Cmac, Usage::Kdf) => {
            Some("who may compute codes can compute the derived bytes, and these are codes of messages")
        }
        _ => None,
    }
}

/// Which of these modes undo another one, and how.
fn pairs(modes: &[Mode]) -> impl Iterator<Item = (Mode, Mode, &'static str)> {
    let pairs = modes.iter().flat_map(|mode| modes.iter().map(move |other| (*mode, *other)));
    pairs.filter_map(|(mode, other)| Some((mode, other, undoing(mode, other)?)))
}

/// What a mode gives that undoes another.
fn undoing(mode: Mode, other: Mode) -> Option<&'static str> {
    if let Some(why) = mode.facts().alone.filter(|_| mode != other) {
        return Some(why);
    }
    match (mode, other) {
        (Mode::Ctr, Mode::Gcm) => {
            Some("who may decrypt in ctr gets the encryption of any block, and so the key of gcm's tags")
        }
        (Mode::Ctr, Mode::Ccm) => Some(
            "who may decrypt in ctr gets the encryption of any block, and so can decrypt and forge in ccm",
        ),
        (Mode::Ecb, Mode::Ccm) => Some(
            "who may encrypt in ecb gets the encryption of any block, and so can decrypt and forge in ccm",
        ),
        (Mode::Gcm | Mode::Ccm, Mode::Cmac) => {
            Some("who knows a message knows blocks of keystream, and gets with them a second code from one")
        }
        (Mode::Gcm, Mode::Ccm) => {
            Some("with a nonce that a client chose, keystream of one is a block of the other")
        }
        (Mode::Ctr, Mode::Cmac) => {
            Some("who may decrypt in ctr gets the encryption of any block, and so the subkeys of cmac")
        }
        (Mode::Ecb, Mode::Gcm) => {
            Some("who may encrypt in ecb gets the encryption of any block, and so the key of gcm's tags")
        }
        (Mode::Ecb, Mode::Ctr) => {
            Some("who may encrypt in ecb gets the encryption of any block, and so can decrypt in ctr")
        }
        (Mode::Cbc | Mode::Ecb, Mode::Cmac) => {
            Some("who may decrypt single blocks gets the subkeys of cmac from one code")
        }
        (Mode::Cbc, Mode::Gcm | Mode::Ccm) => {
            Some("who may use it sees single blocks encrypted and decrypted, and the other must show none")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cbc_is_for_no_key_of_gcm_ccm_or_cmac_and_other_pairs_that_undo_each_other_are_warned_of() {
        use Mode::{Cbc, Ccm, Cmac, Ctr, Ecb, Gcm};
        let all = [Gcm, Ctr, Cbc, Cmac, Ecb, Ccm];
        for other in all {
            let message = why_apart(&[other, Mode::Envelope]).expect("refused");
            assert!(message.starts_with(&format!("envelope undoes {other}")), "{message}");
        }
        assert_eq!(why_apart(&[Mode::Envelope]), None);
        for other in all.into_iter().chain([Mode::Siv, Mode::Tr31]) {
            let message = why_apart(&[other, Mode::Ff1]).expect("refused");
            assert!(message.starts_with(&format!("ff1 undoes {other}")), "{message}");
        }
        assert_eq!(why_apart(&[Mode::Ff1]), None);
        let pairs = || all.iter().flat_map(|a| all.iter().map(move |b| [*a, *b])).filter(|[a, b]| a < b);
        let apart: Vec<_> = pairs().filter(|pair| why_apart(pair).is_some()).collect();
        assert_eq!(apart, [[Gcm, Cbc], [Cbc, Cmac], [Cbc, Ccm]]);
        let warned: Vec<_> = pairs().filter(|pair| !warnings(pair, &[]).is_empty()).collect();
        let of_gcm = [[Gcm, Ctr], [Gcm, Cmac], [Gcm, Ecb], [Gcm, Ccm]];
        let of_others = [[Ctr, Cmac], [Ctr, Ecb], [Ctr, Ccm], [Cmac, Ecb], [Cmac, Ccm], [Ecb, Ccm]];
        assert_eq!(warned, [&of_gcm[..], &of_others].concat());
        assert!(all.iter().all(|mode| why_apart(&[*mode]).is_none() && warnings(&[*mode], &[]).is_empty()));
        let message = why_apart(&[Gcm, Cbc, Cmac]).expect("refused");
        assert!(
            message.starts_with("cbc undoes gcm") && message.ends_with("one key for cbc and another for gcm"),
            "{message}"
        );
    }

    #[test]
    fn no_key_both_derives_keys_and_gives_derived_bytes() {
        assert!(why_usages_apart(&[Usage::Derive, Usage::Kdf]).is_some());
        for alone in [Usage::Derive, Usage::Kdf] {
            assert!(why_usages_apart(&[Usage::Wrap, alone]).is_none());
        }
    }

    #[test]
    fn who_makes_a_key_that_wraps_or_derives_and_has_a_mode_is_warned_of_what_undoes_it() {
        use Mode::{Cbc, Ccm, Cmac, Ctr, Ecb, Gcm};
        let warned = |usage: Usage| -> Vec<Mode> {
            [Gcm, Ctr, Cbc, Cmac, Ecb, Ccm]
                .into_iter()
                .filter(|m| !warnings(&[*m], &[usage]).is_empty())
                .collect()
        };
        assert_eq!((warned(Usage::Wrap), warned(Usage::Unwrap)), (vec![Ctr, Cbc, Ecb], vec![Ctr, Cbc, Ecb]));
        assert_eq!(warned(Usage::Derive), [Gcm, Ctr, Cmac, Ecb, Ccm]);
        assert_eq!(warned(Usage::Kdf), [Gcm, Ctr, Cbc, Cmac, Ecb, Ccm]);
        assert!(
            [Usage::Encrypt, Usage::Decrypt, Usage::Mac].into_iter().all(|usage| warned(usage).is_empty())
        );
    }
}
