//! A copy of a key: the same shares under another id and name.
//!
//! Nothing is computed and nothing is opened: every node stores its own shares again. So a copy is as secret
//! as the key, and both together reveal no more than one of them: an attacker that knows one knows both. A
//! refresh gives each of them fresh shares of its own.
//!
//! **What a copy is for only shrinks.** Each node judges that by its own record of the key: cipher, modes,
//! usage, whether it may be wrapped, and whether clients choose nonces. The limits of a key bound how much is
//! computed under its bits, under any name. So both pay from one *account* (`store/src/accounts.rs`), and the
//! budget of the copy is at most the budget of the key.

use polyclave_api::{KeyInfo, NewKey, Reason, Refusal, VersionState};
use polyclave_store::StoredKey;

use crate::computation::key::{Shares, shares_for};

/// Whether a copy of a key may be made with these properties. The error says why not.
pub(crate) fn may_be_made(of: &KeyInfo, new: &NewKey) -> Result<(), String> {
    let key = &of.properties;
    let name = &key.name;
    if of.component.is_some() {
        return Err(format!("'{name}' is a component of a key, and is not copied"));
    }
    if of.state != VersionState::Active {
        let (version, state) = (of.version, of.state);
        return Err(format!("version {version} of the key '{name}' is {state}, and is not copied"));
    }
    if new.cipher != key.cipher {
        return Err(format!("the key '{name}' is one of {}, and so is its copy", key.cipher));
    }
    if let Some(mode) = new.modes.iter().find(|mode| !key.modes.contains(mode)) {
        return Err(format!("the key '{name}' is not for {mode}, and neither is its copy"));
    }
    if let Some(usage) = new.usage.iter().find(|usage| !key.usage.contains(usage)) {
        return Err(format!("the key '{name}' is not for the usage {usage}, and neither is its copy"));
    }
    if new.parts() != of.properties.parts() {
        return Err(format!("the key '{name}' is two keys, and so is its copy"));
    }
    for (wanted, has, what) in [
        (new.wrappable, key.wrappable, "may leave the nodes"),
        (new.caller_nonces, key.caller_nonces, "takes nonces of its clients"),
    ] {
        if wanted && !has {
            return Err(format!("no copy of the key '{name}' {what}, because the key does not"));
        }
    }
    if new.budget_blocks > key.budget_blocks {
        return Err(format!(
            "the budget of the key '{name}' is {} blocks, and both pay from it: that of the copy is no larger",
            key.budget_blocks
        ));
    }
    let is_later = |expires: u64| new.expires.is_none_or(|of_copy| of_copy > expires);
    if let Some(expires) = key.expires.filter(|expires| is_later(*expires)) {
        return Err(format!("the key '{name}' expires {expires} seconds after 1970, and its copy not later"));
    }
    Ok(())
}

/// What a node stores of a copy: its shares of the values that the permitted uses of the copy need.
pub(crate) fn shares(of: &StoredKey, new: &NewKey) -> Result<Shares, Refusal> {
    let name = &of.info.properties.name;
    let missing = |part: &str| {
        let message =
            format!("its share of the key '{name}' lacks its {part}; restore a backup of this node");
        Refusal::new(Reason::Internal, message)
    };
    let part = |part: &'static str| {
        let share = of.shares.get(part).ok_or_else(|| missing(part))?;
        Ok((part.to_owned(), share.clone()))
    };
    shares_for(new).into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Mode, Origin, Usage};

    use super::*;

    #[test]
    fn a_copy_is_for_no_more_than_its_key() {
        let key = NewKey {
            expires: Some(2000),
            ..NewKey::for_modes("k", "aes-128", &[Mode::Gcm, Mode::Cmac], 1 << 20)
        };
        let of = KeyInfo::first(key.clone(), [7; 16], Origin::Generated, 1, vec![1; 5]);
        let refused = |of: &KeyInfo, new: NewKey| may_be_made(of, &new).expect_err("it is refused");
        assert_eq!(may_be_made(&of, &key), Ok(()));
        let less = NewKey {
            modes: vec![Mode::Gcm],
            usage: vec![Usage::Decrypt],
            budget_blocks: 1,
            expires: Some(1999),
            ..key.clone()
        };
        assert_eq!(may_be_made(&of, &less), Ok(()));
        for (new, why) in [
            (NewKey { cipher: "aes-256".into(), ..key.clone() }, "one of aes-128"),
            (NewKey { modes: vec![Mode::Gcm, Mode::Ctr], ..key.clone() }, "not for ctr"),
            (NewKey { usage: vec![Usage::Encrypt, Usage::Derive], ..key.clone() }, "usage derive"),
            (NewKey { wrappable: true, ..key.clone() }, "leave the nodes"),
            (NewKey { caller_nonces: true, ..key.clone() }, "nonces"),
            (NewKey { budget_blocks: (1 << 20) + 1, ..key.clone() }, "1048576 blocks"),
            (NewKey { expires: Some(2001), ..key.clone() }, "expires"),
            (NewKey { expires: None, ..key.clone() }, "expires"),
        ] {
            let message = refused(&of, new);
            assert!(message.contains(why), "{message}");
        }
        for state in [VersionState::Deactivated, VersionState::Compromised] {
            let of = KeyInfo { state, ..of.clone() };
            assert!(refused(&of, less.clone()).contains(&state.to_string()));
        }
    }
}
