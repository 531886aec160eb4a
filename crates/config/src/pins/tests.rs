use super::file::{SealedKey, WITHOUT_LANES};
use super::tries::TRIES;
use super::*;
use crate::identity::tests::identity;

/// PINs that a seal of little cost takes.
const USER: &[u8] = b"a PIN of the user's own";
const OFFICER: &[u8] = b"a PIN of the officer's own";
const OTHER: &[u8] = b"another PIN of one of them";

/// A client's directory with these PINs, at little cost.
fn client(user: Option<&[u8]>) -> (tempfile::TempDir, SealedClient) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("alice");
    ClientDir::init(&path, "alice", &identity(1).certificate, &identity(1).key).expect("made");
    let client = SealedClient { path, cost: Cost { memory_kib: 16, passes: 1, lanes: 2 } };
    client.seal(&identity(1), OFFICER, user).expect("sealed");
    (dir, client)
}

/// A file as it is written.
pub(crate) fn text() -> String {
    let (_dir, client) = client(Some(USER));
    fs::read_to_string(client.path.join(FILE)).expect("written")
}

#[test]
fn a_sealed_key_is_in_the_clear_nowhere_and_opens_under_either_pin_only() {
    let (_dir, client) = client(Some(USER));
    assert!(!client.path.join("identity.key").exists());
    let message = ClientDir::open(&client.path).expect_err("sealed").to_string();
    assert!(message.contains("client unseal"), "{message}");
    for (owner, pin) in [(PinOwner::User, USER), (PinOwner::SecurityOfficer, OFFICER)] {
        let dir = client.unseal(owner, pin).expect("its PIN");
        assert_eq!((dir.name(), dir.identity()), ("alice", &identity(1)));
        for wrong in [&b""[..], b"12345", b"\xff\x00"] {
            assert!(matches!(client.unseal(owner, wrong), Err(PinError::Wrong)));
        }
    }
    assert!(matches!(client.unseal(PinOwner::User, OFFICER), Err(PinError::Wrong)));
}

#[test]
fn ten_wrong_pins_lock_it_until_a_new_one_is_set_and_a_right_one_forgets_them() {
    let (_dir, client) = client(Some(USER));
    for _ in 0..9 {
        assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
    }
    client.unseal(PinOwner::User, USER).expect("its PIN");
    assert_eq!(client.wrong_pins().expect("counted"), 0);
    for _ in 0..10 {
        assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
    }
    for pin in [USER, b"0"] {
        assert!(matches!(client.unseal(PinOwner::User, pin), Err(PinError::Locked)));
    }
    let dir = client.unseal(PinOwner::SecurityOfficer, OFFICER).expect("not locked");
    client.set_pin(dir.identity(), PinOwner::User, OTHER).expect("set");
    client.unseal(PinOwner::User, OTHER).expect("the new one");
    assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Wrong)));
}

#[test]
fn a_count_of_tries_that_nobody_can_read_locks() {
    let (_dir, client) = client(Some(USER));
    private::write(&client.path.join(TRIES), b"many").expect("written");
    assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Locked)));
}

#[test]
fn without_a_user_pin_the_officer_sets_it_and_changes_the_own_one() {
    let (_dir, client) = client(None);
    assert!(!client.has_user_pin().expect("read"));
    assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::NotSet)));
    let dir = client.unseal(PinOwner::SecurityOfficer, OFFICER).expect("opened");
    client.set_pin(dir.identity(), PinOwner::User, USER).expect("set");
    client.set_pin(dir.identity(), PinOwner::SecurityOfficer, OTHER).expect("set");
    client.unseal(PinOwner::User, USER).expect("opened");
    client.unseal(PinOwner::SecurityOfficer, OTHER).expect("opened");
    assert!(matches!(client.unseal(PinOwner::SecurityOfficer, OFFICER), Err(PinError::Wrong)));
}

#[test]
fn a_changed_file_opens_under_nothing() {
    let (_dir, client) = client(Some(USER));
    let pins = client.read().expect("read");
    let with = |change: &dyn Fn(&mut Pins)| {
        let mut changed = pins.clone();
        change(&mut changed);
        client.write(&changed).expect("written");
        client.count(0).expect("counted");
        assert!(client.unseal(PinOwner::User, USER).is_err());
    };
    let user = |pins: &mut Pins| pins.user.clone().expect("there is one");
    with(&|pins| pins.user = Some(SealedKey { salt: [0; 16], ..user(pins) }));
    with(&|pins| pins.user = Some(SealedKey { nonce: [0; 24], ..user(pins) }));
    with(&|pins| pins.user.as_mut().expect("there is one").sealed[5] ^= 1);
    with(&|pins| pins.memory_kib += 8);
    with(&|pins| pins.passes += 1);
    with(&|pins| pins.lanes = Some(1));
    with(&|pins| (pins.version, pins.lanes) = (WITHOUT_LANES, None));
    with(&|pins| pins.lanes = None);
    with(&|pins| pins.user = Some(pins.security_officer.clone()));
}

/// Sealed by hand as version 1 says, under "officer" and "1234", with one lane.
pub(crate) const VERSION_1: &str = include_str!("version-1.toml");

#[test]
fn a_directory_from_before_lanes_opens_and_keeps_its_version_until_it_is_sealed_anew() {
    let (_dir, client) = client(None);
    private::write(&client.path.join(FILE), VERSION_1.as_bytes()).expect("written");
    let opens = |owner, pin: &[u8]| client.unseal(owner, pin).expect("its PIN").identity() == &identity(1);
    assert!(opens(PinOwner::User, b"1234") && opens(PinOwner::SecurityOfficer, b"officer"));
    client.set_pin(&identity(1), PinOwner::User, OTHER).expect("set");
    assert!(opens(PinOwner::User, OTHER) && opens(PinOwner::SecurityOfficer, b"officer"));
    assert_eq!(client.read().expect("read").lanes, None);
    client.unseal_for_good(PinOwner::User, OTHER).expect("its PIN");
    client.seal(&identity(1), OFFICER, Some(USER)).expect("sealed");
    assert!(opens(PinOwner::User, USER));
    assert_eq!(client.read().expect("read").lanes, Some(2));
}

#[test]
fn a_seal_that_costs_less_says_so_in_its_file_and_takes_long_pins_only() {
    let (_dir, client) = client(Some(USER));
    let (pin, other) = (b"correct horse battery", b"battery horse correct");
    for (strength, cost, least) in [(Strength::Quick, (19456, 2), 20), (Strength::Full, (65536, 3), 4)] {
        let client = SealedClient::at(&client.path).of_strength(strength);
        client.seal(&identity(1), pin, Some(pin)).expect("sealed");
        let least = |client: &SealedClient| client.least_pin().expect("read") == least;
        assert!(least(&client) && strength.least_pin() == client.least_pin().expect("read"));
        // Whoever opens it need not know.
        let client = SealedClient::at(&client.path);
        client.unseal(PinOwner::User, pin).expect("its PIN");
        client.set_pin(&identity(1), PinOwner::User, other).expect("set");
        client.unseal(PinOwner::User, other).expect("the new one");
        let pins = client.read().expect("read");
        assert_eq!((pins.memory_kib, pins.passes), cost, "another PIN costs as much");
        assert!(least(&client));
    }
}

#[test]
fn a_seal_refuses_pins_that_are_too_short_or_too_long_for_it_and_stays_as_it_was() {
    let (_dir, client) = client(Some(USER));
    let before = client.read().expect("read");
    for (strength, least) in [(Strength::Quick, 20), (Strength::Full, 4)] {
        let other = client.clone().of_strength(strength);
        for pin in [vec![b'1'; least - 1], vec![b'1'; MAX_PIN + 1]] {
            let message = other.seal(&identity(1), &pin, None).expect_err("the officer's");
            assert!(
                matches!(message, PinError::Length { owner: PinOwner::SecurityOfficer, least: l } if l == least)
            );
            let message = other.seal(&identity(1), OFFICER, Some(&pin)).expect_err("the user's");
            assert!(matches!(message, PinError::Length { owner: PinOwner::User, least: l } if l == least));
            assert!(strength.refuse_length(PinOwner::User, &pin).is_err());
        }
        let few = vec![b'1'; least];
        assert!(strength.refuse_length(PinOwner::User, &few).is_ok());
    }
    let message = client.set_pin(&identity(1), PinOwner::User, &[b'1'; 19]).expect_err("its cost is small");
    assert_eq!(message.to_string(), "the PIN of the user has 20 to 255 bytes here");
    assert_eq!(client.read().expect("read"), before);
}

#[test]
fn a_lock_ends_although_a_process_has_inherited_its_file() {
    let (_dir, client) = client(Some(USER));
    let locked = client.lock().expect("locked");
    let inherited = locked.0.try_clone().expect("the same file, as after a fork");
    drop(locked);
    client.unseal(PinOwner::User, USER).expect("nobody holds the lock");
    drop(inherited);
}

#[test]
fn a_wrong_try_stays_counted_and_a_right_one_leaves_no_count() {
    let (_dir, client) = client(Some(USER));
    assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
    assert_eq!(client.wrong_pins().expect("counted"), 1);
    client.unseal(PinOwner::User, USER).expect("its PIN");
    assert!(!client.path.join(TRIES).exists());
}

#[test]
fn a_right_pin_that_cannot_be_counted_opens_nothing_and_tells_nothing() {
    let (_dir, client) = client(Some(USER));
    let full = |_| Err(Error::misuse("the disk is full"));
    for pin in [USER, b"0"] {
        let message = client.unseal_counting(PinOwner::User, pin, full).expect_err("not counted");
        assert!(
            matches!(&message, PinError::Files(e) if e.to_string().contains("disk is full")),
            "{message}"
        );
    }
    client.unseal_counting(PinOwner::SecurityOfficer, OFFICER, full).expect("nobody counts the officer's");
}

#[test]
fn a_try_whose_key_cannot_be_made_does_not_count() {
    let (_dir, client) = client(Some(USER));
    assert!(matches!(client.unseal(PinOwner::User, b"0"), Err(PinError::Wrong)));
    let pins = client.read().expect("read");
    // Too little memory for so many lanes: no key can be made, as if the machine had no thread for it.
    client.write(&Pins { lanes: Some(64), ..pins.clone() }).expect("written");
    for _ in 0..=MAX_WRONG_PINS {
        assert!(matches!(client.unseal(PinOwner::User, USER), Err(PinError::Files(_))));
        assert_eq!(client.wrong_pins().expect("counted"), 1);
    }
    client.write(&pins).expect("written");
    client.unseal(PinOwner::User, USER).expect("not locked");
}

#[test]
fn an_unsealed_client_is_as_it_was() {
    let (_dir, client) = client(Some(USER));
    assert!(client.unseal_for_good(PinOwner::User, b"0").is_err());
    client.unseal_for_good(PinOwner::User, USER).expect("its PIN");
    assert_eq!(ClientDir::open(&client.path).expect("opened").identity(), &identity(1));
    assert!(!SealedClient::is_sealed(&client.path));
}
