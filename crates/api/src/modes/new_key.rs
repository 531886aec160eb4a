//! Whether a key can be made with the properties that a client asks for.

use polyclave_cipher::{Cipher, hmac};

use super::facts::{Choice, ENCRYPTS};
use super::options::alternatives;
use super::{Mode, Usage, why_apart, why_usages_apart};
use crate::key_block::Version;
use crate::{Lifetime, MAX_ATTRIBUTES, MAX_LABEL, MAX_SESSION, NewKey};

/// The most characters of a key's name.
const MAX_NAME: usize = 64;

/// The most blocks under one key of a cipher with blocks of 8 bytes. With more, equal blocks become likely
/// enough to distinguish the output.
pub const MAX_SMALL_BLOCKS: u64 = 1 << 20;

/// The most blocks under one key of another cipher: with random nonces of 96 bits, at most 2^32 messages (SP
/// 800-38D, section 8.3), each of at least one block.
pub const MAX_BLOCKS: u64 = 1 << 32;

/// The most blocks under one key for [`Mode::Xaes`]. Of each message two blocks at least are under the key
/// itself; 2^47 messages are far from 2^64 blocks, where equal ones become likely.
pub const MAX_XAES_BLOCKS: u64 = 1 << 48;

/// The most blocks under one key for some modes of a cipher with blocks of `block_bytes` bytes.
pub fn most_blocks(block_bytes: usize, modes: &[Mode]) -> u64 {
    match modes {
        _ if block_bytes < 16 => MAX_SMALL_BLOCKS,
        [Mode::Xaes] => MAX_XAES_BLOCKS,
        _ => MAX_BLOCKS,
    }
}

/// Checks whether a key can be made with these properties. The error says what is wrong.
pub fn check_new_key(key: &NewKey, cipher: &Cipher) -> Result<(), String> {
    let named = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if key.name.is_empty() || key.name.len() > MAX_NAME || !key.name.chars().all(named) {
        return Err(format!(
            "a key's name has 1 to {MAX_NAME} letters, digits, '-', '_' or '.', not '{}'",
            key.name
        ));
    }
    check_usage(key, cipher)?;
    check_description(&key.label, &key.attributes)?;
    if let Lifetime::Session { seconds } = key.lifetime
        && !(1..=MAX_SESSION).contains(&seconds)
    {
        return Err(format!("a session key lives for 1 to {MAX_SESSION} seconds, not {seconds}"));
    }
    if let Some(why) = why_apart(&key.modes) {
        return Err(why);
    }
    if cipher.key_bytes == 0 {
        return Err(format!("{} is a permutation without a key; nodes have no use for it", cipher.name));
    }
    if let Some(mode) = key.modes.iter().find(|mode| cipher.tweak_bytes != 0 && !mode.facts().gives_tweaks) {
        return Err(format!(
            "{} takes a tweak with each block, which only ctr and ecb give, not {mode}",
            cipher.name
        ));
    }
    if cipher.block_bytes != 16 && key.modes.iter().any(|mode| mode.needs_hash_key()) {
        return Err(format!("gcm needs blocks of 16 bytes, {} has {}", cipher.name, cipher.block_bytes));
    }
    if cipher.decrypt.is_none() && key.modes.iter().any(|mode| mode.facts().decrypts_blocks) {
        return Err(format!("{} has no decryption, which cbc and ecb need", cipher.name));
    }
    let most = most_blocks(cipher.block_bytes, &key.modes);
    if key.budget_blocks == 0 || key.budget_blocks > most {
        return Err(format!("the budget of a key of {} is 1 to {most} blocks", cipher.name));
    }
    Ok(())
}

/// Checks what is written down beside a key.
pub fn check_description(label: &str, attributes: &[u8]) -> Result<(), String> {
    if attributes.len() > MAX_ATTRIBUTES {
        let given = attributes.len();
        return Err(format!("a key has at most {MAX_ATTRIBUTES} bytes of attributes, not {given}"));
    }
    if label.len() > MAX_LABEL || label.chars().any(char::is_control) {
        return Err(format!("a key's label has at most {MAX_LABEL} bytes and no control characters"));
    }
    Ok(())
}

/// Checks what a key is for: modes and usages fit each other and the cipher.
fn check_usage(key: &NewKey, cipher: &Cipher) -> Result<(), String> {
    let is_for = |usage: Usage| key.usage.contains(&usage);
    let without_mode = || key.usage.iter().filter(|usage| usage.needs_no_mode());
    // A key without usages is allowed, as in PKCS#11. It can only leave the nodes wrapped, if it is
    // wrappable.
    if !key.usage.is_sorted_by(|a, b| a < b) {
        return Err("each usage of a key is named once, and in order".into());
    }
    if !key.modes.is_sorted_by(|a, b| a < b) {
        return Err("each mode of a key is named once, and in order".into());
    }
    if key.modes.is_empty() && !key.usage.iter().all(|usage| usage.needs_no_mode()) {
        return Err(
            "a key that encrypts, decrypts, tokenizes or computes codes is made for one mode at least".into(),
        );
    }
    if let Some(purpose) = key.purpose() {
        if key.usage.len() > 1 || !key.modes.is_empty() || key.caller_nonces {
            return Err(format!(
                "a key for {purpose} has no mode, and no usage beside it: other uses undo it"
            ));
        }
        return purpose.check(cipher);
    }
    let encrypts = is_for(Usage::Encrypt) || is_for(Usage::Decrypt);
    let wraps = |usage: &Usage| matches!(usage, Usage::Wrap | Usage::Unwrap);
    for mode in &key.modes {
        match mode {
            Mode::Tr31 if key.modes.len() > 1 || key.usage.is_empty() || !key.usage.iter().all(wraps) => {
                return Err("a key for tr31 has no other mode, and no usage except wrap and unwrap".into());
            }
            // Another mode beside it is refused with the reason ([`why_apart`]).
            Mode::Ff1 if key.modes.len() == 1 && key.usage != [Usage::Tokenize] => {
                return Err("a key for ff1 is for the usage tokenize alone".into());
            }
            Mode::Tr31 | Mode::Ff1 => {}
            _ if mode.usages().iter().any(|usage| is_for(*usage)) => {}
            _ => {
                let needed: Vec<String> = mode.usages().iter().map(Usage::to_string).collect();
                return Err(format!("a key for {mode} needs the usage {}", needed.join(" or ")));
            }
        }
    }
    let computes_codes = |mode: &Mode| matches!(mode, Mode::Cmac | Mode::Hmac);
    if encrypts && key.modes.iter().all(computes_codes) {
        let all: Vec<Mode> = Mode::ALL.into_iter().filter(|mode| mode.encrypts()).collect();
        return Err(format!("a key that encrypts or decrypts needs a mode for it: {}", alternatives(&all)));
    }
    if is_for(Usage::Tokenize) && !key.modes.contains(&Mode::Ff1) {
        return Err("a key that tokenizes needs the mode ff1".into());
    }
    if is_for(Usage::Mac) && !key.modes.iter().any(computes_codes) {
        return Err("a key that computes codes needs the mode cmac, or hmac for a cipher of hmac".into());
    }
    let has_nonces = key.modes.iter().any(|mode| mode.choice() != Choice::Nothing);
    if key.caller_nonces && !(is_for(Usage::Encrypt) && has_nonces) {
        let all: Vec<Mode> = Mode::ALL.into_iter().filter(|mode| mode.choice() != Choice::Nothing).collect();
        return Err(format!("a client chooses nonces only for keys that encrypt in {}", alternatives(&all)));
    }
    // With an initial block of its own a client has any block encrypted.
    let takes_blocks =
        key.caller_nonces && key.modes.iter().any(|mode| mode.choice() == Choice::InitialBlock);
    if let Some(usage) = without_mode().find(|_| takes_blocks) {
        return Err(format!(
            "a key for cbc with initial blocks of its clients encrypts any single block for them, which undoes {usage}"
        ));
    }
    let name = &cipher.name;
    let is_aes = name.starts_with("aes-");
    if let Some(other) = key.modes.iter().find(|mode| **mode != Mode::Hmac && hmac::is_hmac(cipher)) {
        return Err(format!("a key of {name} is for the mode hmac alone, not for {other}"));
    }
    for mode in &key.modes {
        let facts = mode.facts();
        if let Some(ciphers) = facts.ciphers.filter(|ciphers| !ciphers.contains(&name.as_str())) {
            return Err(format!("{mode} is for keys of {}, not of {name}", alternatives(ciphers)));
        }
        if let Some(usage) = without_mode().next().filter(|_| facts.alone.is_some()) {
            return Err(format!(
                "a key for {mode} serves nothing else; make another key for the usage {usage}"
            ));
        }
    }
    if key.parts() > 1 && (key.modes.len() > 1 || !key.usage.iter().all(|usage| ENCRYPTS.contains(usage))) {
        return Err("a key for siv is two keys, for that mode alone: it only encrypts and decrypts".into());
    }
    if key.parts() > 1 && key.wrappable {
        return Err("a key for siv is two keys, and cannot be wrapped".into());
    }
    let wraps_blocks = key.modes.contains(&Mode::Tr31);
    if wraps_blocks && Version::under(name).is_none() {
        return Err(format!("key blocks are protected by keys of AES and Triple DES, not of {name}"));
    }
    if key.usage.iter().any(wraps) && !is_aes && !wraps_blocks {
        return Err(format!(
            "keys are wrapped and unwrapped under keys of AES, or with mode tr31 of Triple DES, not of {name}"
        ));
    }
    let derives = is_for(Usage::Derive) || is_for(Usage::Kdf);
    if derives && !is_aes && !name.contains("des") && !hmac::is_hmac(cipher) {
        return Err(format!(
            "keys and bytes are derived from keys of AES, DES and Triple DES, and from keys for hmac, not of {name}"
        ));
    }
    why_usages_apart(&key.usage).map_or(Ok(()), |why| Err(why.into()))
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{catalog, keyed};

    use super::*;

    #[test]
    fn no_key_is_made_for_cbc_with_gcm_or_cmac() {
        let cipher = catalog::find("aes-128").expect("the catalog has it");
        let checked = |modes: &[Mode]| check_new_key(&NewKey::for_modes("k", "aes-128", modes, 1), &cipher);
        for undone in [Mode::Gcm, Mode::Cmac] {
            let mut pair = [undone, Mode::Cbc];
            pair.sort();
            let message = checked(&pair).expect_err("refused");
            assert!(message.starts_with(&format!("cbc undoes {undone} under the same key")), "{message}");
        }
        assert_eq!(checked(&[Mode::Gcm, Mode::Cmac]), Ok(()));
        assert_eq!(checked(&[Mode::Ctr, Mode::Cbc, Mode::Ecb]), Ok(()));
    }

    #[test]
    fn keys_are_made_for_ciphers_with_a_key_and_for_modes_that_give_their_tweak() {
        let checked = |name: &str, mode| {
            let cipher = catalog::find(name).expect("the catalog has it");
            check_new_key(&NewKey::for_modes("k", name, &[mode], 1), &cipher)
        };
        for name in ["skinny-64-128", "mantis7", "craft"] {
            assert_eq!((checked(name, Mode::Ctr), checked(name, Mode::Ecb)), (Ok(()), Ok(())));
        }
        assert_eq!(checked("skinny-64-128", Mode::Cmac), Ok(()));
        let refused = |name: &str, mode| checked(name, mode).expect_err("it is refused");
        assert!(refused("wage-permutation", Mode::Ctr).contains("a permutation without a key"));
        for mode in [Mode::Gcm, Mode::Cbc, Mode::Cmac] {
            assert!(refused("craft", mode).contains(&format!("only ctr and ecb give, not {mode}")));
        }
    }

    #[test]
    fn usages_and_modes_have_to_fit_each_other_and_the_cipher() {
        use Mode::{Cmac, Ff1, Gcm, Hmac, Tr31};
        use Usage::{Decrypt, Derive, Encrypt, Kdf, Mac, Tokenize, Unwrap, Wrap};
        let checked = |cipher: &str, modes: &[Mode], usage: &[Usage]| {
            let of_catalog = keyed::find(cipher).expect("there is such a cipher");
            let key = NewKey { usage: usage.to_vec(), ..NewKey::for_modes("k", cipher, modes, 1) };
            check_new_key(&key, &of_catalog)
        };
        for (modes, usage) in [
            (&[Gcm][..], &[Decrypt][..]),
            (&[Gcm, Cmac], &[Encrypt, Mac]),
            (&[], &[Wrap, Unwrap, Derive]),
            (&[Cmac], &[Mac, Derive]),
            (&[], &[Kdf]),
            (&[Tr31], &[Wrap, Unwrap]),
            (&[Ff1], &[Tokenize]),
            (&[], &[]),
        ] {
            assert_eq!(checked("aes-256", modes, usage), Ok(()));
        }
        assert_eq!(checked("3des-ede3", &[], &[Derive]), Ok(()));
        for usage in [Derive, Kdf] {
            assert_eq!(checked("hmac-sha-384", &[], &[usage]), Ok(()));
        }
        assert_eq!(checked("3des-ede2", &[Tr31], &[Unwrap]), Ok(()));
        for (cipher, modes, usage, why) in [
            ("aes-128", &[Gcm][..], &[][..], "gcm needs the usage encrypt or decrypt"),
            ("aes-128", &[Cmac], &[], "cmac needs the usage mac"),
            ("aes-128", &[Ff1], &[], "the usage tokenize alone"),
            ("aes-128", &[Gcm], &[Decrypt, Encrypt], "once, and in order"),
            ("aes-128", &[Gcm], &[Encrypt, Encrypt], "once, and in order"),
            ("aes-128", &[], &[Encrypt], "one mode at least"),
            ("aes-128", &[Gcm], &[Wrap], "gcm needs the usage encrypt or decrypt"),
            ("aes-128", &[Gcm, Cmac], &[Encrypt], "cmac needs the usage mac"),
            ("aes-128", &[Cmac], &[Encrypt, Mac], "needs a mode for it"),
            ("aes-128", &[Gcm], &[Encrypt, Mac], "needs the mode cmac"),
            ("3des-ede3", &[], &[Wrap], "keys of AES"),
            ("present-80", &[], &[Derive], "keys of AES, DES and Triple DES"),
            ("present-80", &[], &[Kdf], "keys of AES, DES and Triple DES"),
            ("aes-128", &[], &[Derive, Kdf], "kdf undoes derive"),
            ("hmac-sha-256", &[], &[Derive, Kdf], "kdf undoes derive"),
            ("hmac-sha-256", &[Hmac], &[Mac, Derive], "another key for the usage derive"),
            ("hmac-sha-256", &[Hmac], &[Mac, Kdf], "another key for the usage kdf"),
            ("hmac-sha-256", &[Hmac], &[Derive], "needs the usage mac"),
            ("hmac-sha-256", &[], &[Mac], "one mode at least"),
            ("hmac-sha-256", &[Cmac], &[Mac, Derive], "for the mode hmac alone"),
            ("hmac-sha-256", &[], &[Unwrap], "under keys of AES"),
            ("aes-128", &[Gcm, Tr31], &[Encrypt, Wrap], "no other mode"),
            ("aes-128", &[Tr31], &[Wrap, Derive], "no usage except wrap"),
            ("des", &[Tr31], &[Wrap], "AES and Triple DES"),
            ("3des-ede3", &[Ff1], &[Tokenize], "ff1 is for keys of aes-128, aes-192 or aes-256"),
            ("aes-128", &[Ff1], &[Encrypt, Decrypt], "the usage tokenize alone"),
            ("aes-128", &[Ff1], &[Wrap, Tokenize], "the usage tokenize alone"),
            ("aes-128", &[Ff1], &[Derive, Tokenize], "the usage tokenize alone"),
            ("aes-128", &[Gcm], &[Encrypt, Tokenize], "needs the mode ff1"),
            ("aes-128", &[], &[Tokenize], "one mode at least"),
        ] {
            let message = checked(cipher, modes, usage).expect_err("refused");
            assert!(message.contains(why), "{message}");
        }
        let cipher = catalog::find("aes-128").expect("the catalog has it");
        let attributed =
            |len: usize| NewKey { attributes: vec![1; len], ..NewKey::for_modes("k", "aes-128", &[Gcm], 1) };
        let nonces =
            |modes: &[Mode]| NewKey { caller_nonces: true, ..NewKey::for_modes("k", "aes-128", modes, 1) };
        for mode in [Gcm, Mode::Ccm, Mode::Cbc] {
            assert_eq!(check_new_key(&nonces(&[mode]), &cipher), Ok(()));
        }
        for usage in [Wrap, Unwrap, Derive, Kdf] {
            let key = NewKey { usage: vec![Encrypt, usage], ..nonces(&[Mode::Cbc]) };
            let message = check_new_key(&key, &cipher).expect_err("refused");
            assert!(message.ends_with(&format!("undoes {usage}")), "{message}");
        }
        let session = |seconds| NewKey {
            lifetime: Lifetime::Session { seconds },
            ..NewKey::for_modes("k", "aes-128", &[Gcm], 1)
        };
        for seconds in [1, 86_400] {
            assert_eq!(check_new_key(&session(seconds), &cipher), Ok(()));
        }
        for seconds in [0, 86_401, u32::MAX] {
            assert!(check_new_key(&session(seconds), &cipher).expect_err("refused").contains("1 to 86400"));
        }
        for modes in [&[Mode::Ctr][..], &[Cmac], &[Mode::Siv]] {
            let message = check_new_key(&nonces(modes), &cipher).expect_err("refused");
            assert!(message.contains("chooses nonces only"), "{message}");
        }
        let labelled =
            |label: &str| NewKey { label: label.into(), ..NewKey::for_modes("k", "aes-128", &[Gcm], 1) };
        assert_eq!(check_new_key(&labelled(&"l".repeat(128)), &cipher), Ok(()));
        for label in ["l".repeat(129), "a\u{1b}[2J".into()] {
            assert!(check_new_key(&labelled(&label), &cipher).expect_err("refused").contains("label"));
        }
        assert_eq!(check_new_key(&attributed(4096), &cipher), Ok(()));
        assert!(check_new_key(&attributed(4097), &cipher).is_err());
    }
}
