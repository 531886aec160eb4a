//! What a version of a key may still be used for (SP 800-57 part 1 r5, section 7).
//!
//! | state | who has the right for the use | who has the right `configure`, too |
//! |---|---|---|
//! | active | all uses | all uses |
//! | deactivated, or expired | decrypts, unwraps | also computes codes, to verify old ones, and tokenizes, to invert old tokens |
//! | compromised | nothing | decrypts, unwraps, computes codes, tokenizes |
//! | older than the least version, or a session key whose time has ended | nothing | nothing |
//!
//! Nodes cannot tell a code that is computed to verify another from a new one, nor a token that is inverted
//! from one that is made, so they take `mac` and `tokenize` for uses that protect. Each node reads its own
//! clock. While the nodes' clocks disagree about an expiry, those that have passed it refuse, and a request
//! succeeds as long as enough nodes accept it: for as long as the clocks are apart.

use polyclave_api::{KeyInfo, Reason, Refusal, Right, VersionState};

/// The state of a version at a time in seconds since 1970.
pub(crate) fn state_at(info: &KeyInfo, now: u64) -> VersionState {
    let is_expired = info.properties.expires.is_some_and(|expires| expires <= now);
    info.state.max(if is_expired { VersionState::Deactivated } else { VersionState::Active })
}

/// Refuses a use that the version's state does not allow. `configures` says whether the client has the right
/// `configure` for the key.
pub(crate) fn refuse_retired(
    info: &KeyInfo,
    right: Right,
    configures: bool,
    now: u64,
) -> Result<(), Refusal> {
    let (name, version) = (&info.properties.name, info.version);
    let refused = |message: String| Err(Refusal::new(Reason::NotForThis, message));
    if info.ends().is_some_and(|ends| ends <= now) {
        let what = if info.component.is_some() { "component" } else { "session key" };
        return refused(format!("the time of the {what} '{name}' has ended"));
    }
    if version < info.least_version {
        let least = info.least_version;
        return refused(format!(
            "version {version} of the key '{name}' computes nothing: its least version is {least} (`polyclave key configure`)"
        ));
    }
    let only_processes = matches!(right, Right::Decrypt | Right::Unwrap);
    let may_process = matches!(right, Right::Mac | Right::Tokenize | Right::Pay);
    match state_at(info, now) {
        VersionState::Active => Ok(()),
        VersionState::Deactivated if only_processes || (may_process && configures) => Ok(()),
        VersionState::Compromised if configures && (only_processes || may_process) => Ok(()),
        VersionState::Deactivated => {
            let what = if info.state == VersionState::Active { "has expired" } else { "is deactivated" };
            refused(format!(
                "version {version} of the key '{name}' {what}: it only decrypts, verifies and unwraps; make a new version \
                 (`polyclave key rotate {name}`)"
            ))
        }
        VersionState::Compromised => refused(format!(
            "version {version} of the key '{name}' is compromised: it processes old data for clients with the right configure only"
        )),
    }
}

/// Refuses a move to an earlier state. Repeating the present one is no error.
pub(crate) fn refuse_return(info: &KeyInfo, state: VersionState) -> Result<(), Refusal> {
    if state >= info.state {
        return Ok(());
    }
    let (name, version, is) = (&info.properties.name, info.version, info.state);
    Err(Refusal::new(
        Reason::Key,
        format!(
            "version {version} of the key '{name}' is {is}, and does not become {state} again; make a new version"
        ),
    ))
}

#[cfg(test)]
mod tests {
    use polyclave_api::{Component, Lifetime, Mode, NewKey, Origin};

    use super::*;
    use VersionState::{Active, Compromised, Deactivated};

    const NOW: u64 = 1_800_000_000;

    fn version(state: VersionState) -> KeyInfo {
        let new = NewKey::for_modes("k", "aes-128", &[Mode::Gcm, Mode::Cmac], 1 << 20);
        KeyInfo { version: 2, state, ..KeyInfo::first(new, [7; 16], Origin::Generated, 1, vec![1; 5]) }
    }

    #[test]
    fn each_state_allows_what_its_table_says() {
        use Right::{Decrypt, Derive, Encrypt, Mac, Tokenize, Unwrap, Wrap};
        let rights = [Encrypt, Decrypt, Mac, Wrap, Unwrap, Derive, Tokenize];
        let allowed = |info: &KeyInfo, configures| {
            rights
                .into_iter()
                .filter(|r| refuse_retired(info, *r, configures, NOW).is_ok())
                .collect::<Vec<_>>()
        };
        let mut expired = version(Active);
        expired.properties.expires = Some(NOW);
        for (info, plain, configuring) in [
            (version(Active), &rights[..], &rights[..]),
            (version(Deactivated), &[Decrypt, Unwrap], &[Decrypt, Mac, Unwrap, Tokenize]),
            (expired, &[Decrypt, Unwrap], &[Decrypt, Mac, Unwrap, Tokenize]),
            (version(Compromised), &[], &[Decrypt, Mac, Unwrap, Tokenize]),
            (KeyInfo { least_version: 3, ..version(Active) }, &[], &[]),
        ] {
            assert_eq!((&allowed(&info, false)[..], &allowed(&info, true)[..]), (plain, configuring));
        }
    }

    #[test]
    fn a_session_key_and_a_component_do_nothing_from_their_end_on() {
        let mut of_session = version(Active);
        (of_session.made, of_session.properties.lifetime) = (NOW, Lifetime::Session { seconds: 60 });
        let component = Some(Component { number: 1, of: 2, giver: [1; 32] });
        let part = KeyInfo { made: NOW, component, ..version(Active) };
        for (info, what) in
            [(of_session, "the session key 'k' has ended"), (part, "the component 'k' has ended")]
        {
            let ends = info.ends().expect("it ends");
            for right in [Right::Encrypt, Right::Decrypt, Right::Wrap] {
                assert!(refuse_retired(&info, right, true, ends - 1).is_ok());
                let text = refuse_retired(&info, right, true, ends).expect_err("it has ended");
                assert!(text.message.contains(what), "{text}");
            }
        }
    }

    #[test]
    fn a_key_expires_at_its_second_and_a_state_only_moves_on() {
        let mut info = version(Active);
        info.properties.expires = Some(NOW);
        assert_eq!((state_at(&info, NOW - 1), state_at(&info, NOW)), (Active, Deactivated));
        info.state = Compromised;
        assert_eq!(state_at(&info, NOW), Compromised);
        let states = [Active, Deactivated, Compromised];
        for (from, before) in states.iter().enumerate() {
            for (to, after) in states.iter().enumerate() {
                assert_eq!(refuse_return(&version(*before), *after).is_ok(), to >= from);
            }
        }
    }
}
