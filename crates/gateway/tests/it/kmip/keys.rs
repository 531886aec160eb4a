//! Keys: made, found, described, revoked and destroyed.

use std::time::{SystemTime, UNIX_EPOCH};

use polyclave_api::{Mode, VersionState};

use super::*;

const V1: [(i32, i32); 2] = [(1, 2), (1, 4)];
const V2: [(i32, i32); 2] = [(2, 0), (2, 1)];
/// Bits of the usage mask.
const DATA: i32 = 0x0c;
const CODES: i32 = 0x180;

fn time(tag: u32, time: i64) -> Vec<u8> {
    item(tag, 9, &time.to_be_bytes())
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64
}

/// Attributes by their tags.
type Attributes = Vec<(u32, Vec<u8>)>;

/// The attributes of a new key, by their tags.
fn attributes(name: &str, (algorithm, bits): (u32, i32), mask: i32) -> Attributes {
    let name = [text(0x42_0055, name), enumeration(0x42_0054, 1)].concat();
    vec![
        (0x42_0053, item(0x42_0053, 1, &name)),
        (0x42_0028, enumeration(0x42_0028, algorithm)),
        (0x42_002a, integer(0x42_002a, bits)),
        (0x42_002c, integer(0x42_002c, mask)),
    ]
}

/// The names of attributes in versions 1.
fn name_of(tag: u32) -> &'static str {
    match tag {
        0x42_0001 => "Activation Date",
        0x42_0028 => "Cryptographic Algorithm",
        0x42_002a => "Cryptographic Length",
        0x42_002b => "Cryptographic Parameters",
        0x42_002c => "Cryptographic Usage Mask",
        0x42_002f => "Deactivation Date",
        0x42_0053 => "Name",
        0x42_0057 => "Object Type",
        0x42_008d => "State",
        0x42_0122 => "Extractable",
        _ => panic!("{tag:x}"),
    }
}

/// Attributes as a version writes them: each with a name and a value, or all in one structure.
fn written(version: (i32, i32), attributes: &Attributes) -> Vec<u8> {
    if version >= (2, 0) {
        return item(0x42_0125, 1, &attributes.iter().flat_map(|(_, item)| item.clone()).collect::<Vec<_>>());
    }
    let one = |(tag, item): &(u32, Vec<u8>)| {
        let value = [&[0x42, 0, 0x0b], &item[3..]].concat();
        structure(0x42_0008, &[text(0x42_000a, name_of(*tag)), value])
    };
    attributes.iter().flat_map(one).collect()
}

/// The payload of Create.
fn creation(version: (i32, i32), attributes: &Attributes) -> Vec<u8> {
    let attributes = written(version, attributes);
    let attributes = if version >= (2, 0) { attributes } else { item(0x42_0091, 1, &attributes) };
    [enumeration(0x42_0057, 2), attributes].concat()
}

/// The value of an attribute in the response to Get Attributes.
fn attribute(version: (i32, i32), message: &[u8], tag: u32) -> Option<Vec<u8>> {
    if version >= (2, 0) {
        return values(&value(message, 0x42_0125), tag).pop();
    }
    let of = |one: &Vec<u8>| value(one, 0x42_000a) == name_of(tag).as_bytes();
    values(message, 0x42_0008).iter().find(|one| of(one)).map(|one| value(one, 0x42_000b))
}

fn revocation(identifier: &str, code: u32) -> Vec<u8> {
    let reason = structure(0x42_0081, &[enumeration(0x42_0082, code), text(0x42_0080, "why")]);
    [of_key(identifier), reason, time(0x42_0021, 6)].concat()
}

#[test]
fn a_key_is_made_found_used_revoked_and_destroyed_in_all_versions() {
    let kmip = Kmip::start();
    let mut maker = kmip.session(&["maker.test"]);
    for version in V1.into_iter().chain(V2) {
        let name = format!("m-{}-{}", version.0, version.1);
        // A version that has no place for tags encrypts in CBC.
        let mut asked = attributes(&name, (3, 256), DATA);
        if version < (1, 4) {
            asked.push((0x42_002b, mode(1)));
        }
        let made = maker.done_in(version, CREATE, &creation(version, &asked));
        let id = identifier(&made);
        assert!(id.starts_with(&format!("{name}:")) && value(&made, 0x42_0057) == 2_u32.to_be_bytes());
        maker.done_in(version, ACTIVATE, &of_key(&id));
        let state_of = |maker: &mut Session| {
            let answer = maker.done_in(version, GET_ATTRIBUTES, &of_key(&id));
            assert_eq!(identifier(&answer), id);
            (attribute(version, &answer, 0x42_008d).expect("a state"), answer)
        };
        let (state, answer) = state_of(&mut maker);
        assert_eq!(state, 2_u32.to_be_bytes());
        for (tag, expected) in [(0x42_0028, 3_u32), (0x42_002a, 256), (0x42_002c, 0x0c), (0x42_0057, 2)] {
            assert_eq!(
                attribute(version, &answer, tag).expect("it is there"),
                expected.to_be_bytes(),
                "{tag:x}"
            );
        }
        let named = attribute(version, &answer, 0x42_0053).expect("a name");
        assert_eq!(value(&named, 0x42_0055), name.as_bytes());
        let extractable = (version >= (1, 4)).then(|| 0_u64.to_be_bytes().to_vec());
        assert_eq!(attribute(version, &answer, 0x42_0122), extractable);
        // Some attributes only, of which some are unknown here or not there; and all that there are.
        let digest = match version >= (2, 0) {
            true => [enumeration(0x42_013b, 0x42_0034), enumeration(0x42_013b, 0x42_008d)].concat(),
            false => [text(0x42_000a, "Digest"), text(0x42_000a, "State")].concat(),
        };
        let one = maker.done_in(version, GET_ATTRIBUTES, &[of_key(&id), digest].concat());
        assert!(
            attribute(version, &one, 0x42_008d).is_some() && attribute(version, &one, 0x42_0028).is_none()
        );
        let list = maker.done_in(version, GET_ATTRIBUTE_LIST, &of_key(&id));
        let listed = if version >= (2, 0) { 0x42_013b } else { 0x42_000a };
        assert_eq!(values(&list, listed).len(), if version >= (1, 4) { 11 } else { 9 });
        // It is found by its name, its kind and its state.
        let filters = vec![asked[0].clone(), asked[1].clone(), (0x42_008d, enumeration(0x42_008d, 2))];
        let located = maker.done_in(version, LOCATE, &written(version, &filters));
        assert_eq!(identifier(&located), id);
        let encrypted = maker.done_in(version, ENCRYPT, &[of_key(&id), data(&[7; 16])].concat());
        // An active key is not destroyed. One that is revoked decrypts, and encrypts no more.
        let wrong_state = if version >= (2, 0) { WRONG_STATE } else { DENIED };
        maker.refused(version, DESTROY, &of_key(&id), wrong_state);
        maker.done_in(version, REVOKE, &revocation(&id, 6));
        assert_eq!(state_of(&mut maker).0, 3_u32.to_be_bytes());
        maker.refused(version, ENCRYPT, &[of_key(&id), data(&[7; 16])].concat(), wrong_state);
        maker.refused(version, ACTIVATE, &of_key(&id), wrong_state);
        let tag = values(&encrypted, 0x42_00ff).pop().map_or_else(Vec::new, |tag| item(0x42_00ff, 8, &tag));
        let (iv, ciphertext) = (value(&encrypted, 0x42_003d), value(&encrypted, 0x42_00c2));
        let payload = [of_key(&id), data(&ciphertext), item(0x42_003d, 8, &iv), tag].concat();
        assert_eq!(value(&maker.done_in(version, DECRYPT, &payload), 0x42_00c2), [7; 16]);
        maker.done_in(version, REVOKE, &revocation(&id, 2));
        assert_eq!(state_of(&mut maker).0, 4_u32.to_be_bytes());
        maker.refused(version, REVOKE, &revocation(&id, 6), wrong_state);
        maker.done_in(version, DESTROY, &of_key(&id));
        let not_found = if version >= (2, 0) { 0x37 } else { 1 };
        maker.refused(version, GET_ATTRIBUTES, &of_key(&id), not_found);
        assert_eq!(values(&maker.done_in(version, LOCATE, &written(version, &filters)), 0x42_0094).len(), 0);
    }
}

#[test]
fn keys_are_made_as_the_attributes_say_or_not_at_all() {
    let kmip = Kmip::start();
    let mut maker = kmip.session(&["maker.test"]);
    let kinds = [
        ((3, 128), DATA, "aes-128", Mode::Gcm),
        ((3, 192), DATA, "aes-192", Mode::Gcm),
        ((2, 168), DATA, "3des-ede3", Mode::Cbc),
        ((3, 128), CODES, "aes-128", Mode::Cmac),
        ((9, 512), 0x80, "hmac-sha-256", Mode::Hmac),
        ((10, 1024), 0x80, "hmac-sha-384", Mode::Hmac),
        ((11, 1024), 0x80, "hmac-sha-512", Mode::Hmac),
    ];
    for (i, (kind, mask, cipher, mode)) in kinds.into_iter().enumerate() {
        let name = format!("m-{i}");
        maker.done_in((2, 1), CREATE, &creation((2, 1), &attributes(&name, kind, mask)));
        let info = kmip.world.client().info(&name).expect("it is there");
        assert_eq!((info.properties.cipher.as_str(), &info.properties.modes[..]), (cipher, &[mode][..]));
        let payload = [of_key(&name), data(&[1; 16])].concat();
        maker.done(if mask == DATA { ENCRYPT } else { MAC }, &payload);
    }
    // Only what the mask says, and until the time that is said.
    let mut only = attributes("m-only", (3, 128), 0x04);
    only.extend([(0x42_0001, time(0x42_0001, now() - 3600)), (0x42_002f, time(0x42_002f, now() + 3600))]);
    let made = maker.done_in((1, 4), CREATE, &creation((1, 4), &only));
    let encrypted = maker.done(ENCRYPT, &[of_key("m-only"), data(b"x")].concat());
    let refused = maker.ask((1, 4), DECRYPT, &decryption("m-only", &encrypted, b""));
    assert_ne!(results(&refused), [0], "the mask does not say so");
    let answer = maker.done(GET_ATTRIBUTES, &of_key(&identifier(&made)));
    assert!(attribute((1, 4), &answer, 0x42_002f).is_some(), "it has an end");
    // A name is taken once.
    maker.refused((2, 1), CREATE, &creation((2, 1), &attributes("m-0", (3, 128), DATA)), 7);
    let with = |tag: u32, value: Vec<u8>| {
        let mut all = attributes("m-new", (3, 128), DATA);
        all.retain(|(of, _)| *of != tag);
        all.push((tag, value));
        all
    };
    let without = |tag: u32| {
        let mut all = attributes("m-new", (3, 128), DATA);
        all.retain(|(of, _)| *of != tag);
        all
    };
    let cases = [
        (without(0x42_0053), 6),
        (without(0x42_0028), 6),
        (without(0x42_002a), 6),
        (without(0x42_002c), 6),
        (attributes("m new", (3, 128), DATA), 7),
        (attributes("m-new", (3, 64), DATA), 7),
        (attributes("m-new", (3, -1), DATA), 7),
        (attributes("m-new", (9, 256), CODES), 7),
        (attributes("m-new", (9, 512), DATA), 7),
        (attributes("m-new", (4, 2048), DATA), 7),
        (attributes("m-new", (3, 128), DATA | CODES), 7),
        (attributes("m-new", (3, 128), 0), 7),
        (attributes("m-new", (3, 128), DATA | 0x10), 7),
        (attributes("m-new", (3, 128), -1), 7),
        (with(0x42_0001, time(0x42_0001, now() + 3600)), 7),
        (with(0x42_002f, time(0x42_002f, now() - 3600)), 7),
        (with(0x42_002b, mode(11)), 7),
        (with(0x42_0122, item(0x42_0122, 6, &1_u64.to_be_bytes())), 7),
        (with(0x42_002a, enumeration(0x42_002a, 128)), 4),
        (attributes("other", (3, 128), DATA), DENIED),
    ];
    for (attributes, reason) in cases {
        for version in [(1, 4), (2, 1)] {
            maker.refused(version, CREATE, &creation(version, &attributes), reason);
        }
    }
    maker.refused(
        (2, 1),
        CREATE,
        &[enumeration(0x42_0057, 2), item(0x42_0125, 1, &text(0x42_0056, "x"))].concat(),
        6,
    );
    let unknown = structure(0x42_0008, &[text(0x42_000a, "x-Own"), text(0x42_000b, "1")]);
    let payload = [enumeration(0x42_0057, 2), structure(0x42_0091, &[unknown])].concat();
    maker.refused((1, 2), CREATE, &payload, 7);
    assert!(kmip.world.client().info("m-new").is_err(), "nothing was made");
}

#[test]
fn versions_of_a_key_are_objects_of_which_the_newest_has_the_name() {
    let kmip = Kmip::start();
    let client = kmip.world.client();
    for name in ["m-a", "m-b", "db-a"] {
        kmip.generate(name, "aes-128", Mode::Gcm);
    }
    kmip.generate("m-ff1", "aes-128", Mode::Ff1);
    client.rotate("m-a").expect("rotated");
    let (mut maker, mut watcher) = (kmip.session(&["maker.test"]), kmip.session(&["watcher.test"]));
    let all = watcher.done(LOCATE, &[]);
    assert_eq!(value(&all, 0x42_00d5), 3_u32.to_be_bytes(), "no keys of others, and none for other modes");
    let located = values(&all, 0x42_0094);
    assert_eq!(located.len(), 3);
    let by_name = watcher.done(LOCATE, &written((1, 4), &attributes("m-a", (3, 128), DATA)[..1].to_vec()));
    assert_eq!(values(&by_name, 0x42_0094), located[..1], "the newest version");
    let page = [integer(0x42_004f, 1), integer(0x42_00d4, 2)].concat();
    let page = watcher.done(LOCATE, &page);
    assert_eq!(
        (value(&page, 0x42_00d5), values(&page, 0x42_0094)),
        (3_u32.to_be_bytes().to_vec(), located[2..].to_vec())
    );
    for name in ["db-a", "m-none", "no name"] {
        let none = watcher.done(LOCATE, &written((1, 4), &attributes(name, (3, 128), DATA)[..1].to_vec()));
        assert_eq!(values(&none, 0x42_0094).len(), 0, "{name}");
    }
    for (filters, count) in [
        (vec![(0x42_0028, enumeration(0x42_0028, 2))], 0),
        (vec![(0x42_002a, integer(0x42_002a, 128))], 3),
        (vec![(0x42_008d, enumeration(0x42_008d, 3))], 0),
        (vec![(0x42_0057, enumeration(0x42_0057, 3))], 0),
    ] {
        assert_eq!(
            values(&watcher.done_in((2, 1), LOCATE, &written((2, 1), &filters)), 0x42_0094).len(),
            count
        );
    }
    maker.refused((2, 1), LOCATE, &written((2, 1), &vec![(0x42_0001, time(0x42_0001, 1))]), 7);
    maker.refused((1, 4), LOCATE, &integer(0x42_004f, -1), 7);
    // The old version has no name. It goes before the newest one does.
    let [new, old] = [0, 1].map(|i| String::from_utf8(located[i].clone()).expect("text"));
    let answer = maker.done(GET_ATTRIBUTES, &of_key(&old));
    assert!(attribute((1, 4), &answer, 0x42_0053).is_none());
    maker.done(REVOKE, &revocation(&new, 1));
    maker.refused((2, 1), DESTROY, &of_key(&new), WRONG_STATE);
    maker.refused((2, 1), DESTROY, &of_key(&old), WRONG_STATE);
    client.retire("m-a", 1, VersionState::Deactivated).expect("retired");
    maker.done(DESTROY, &of_key(&old));
    maker.refused((2, 1), GET_ATTRIBUTES, &of_key(&old), 0x37);
    maker.done(DESTROY, &of_key(&new));
    maker.refused((2, 1), DESTROY, &of_key(&new), 0x37);
    // A client that may only look changes nothing, and one that may not look finds nothing.
    let of = of_key("m-b");
    watcher.refused((1, 4), CREATE, &creation((1, 4), &attributes("m-c", (3, 128), DATA)), DENIED);
    for (operation, payload) in
        [(ACTIVATE, of.clone()), (DESTROY, of.clone()), (REVOKE, revocation("m-b", 1))]
    {
        watcher.refused((1, 4), operation, &payload, DENIED);
    }
    let mut reader = kmip.session(&["reader.test"]);
    assert_eq!(values(&reader.done(LOCATE, &[]), 0x42_0094).len(), 0);
    for operation in [GET_ATTRIBUTES, GET_ATTRIBUTE_LIST] {
        reader.refused((1, 4), operation, &of, DENIED);
        reader.refused((1, 4), operation, &of_key("db-gcm"), DENIED);
    }
}

#[test]
fn a_key_that_is_made_anew_keeps_its_name_and_its_use_and_its_versions_stay() {
    let kmip = Kmip::start();
    let (mut maker, mut watcher) = (kmip.session(&["maker.test"]), kmip.session(&["watcher.test"]));
    for version in V1.into_iter().chain(V2) {
        let name = format!("m-{}-{}", version.0, version.1);
        let asked = attributes(&name, (3, 128), CODES);
        let first = identifier(&maker.done_in(version, CREATE, &creation(version, &asked)));
        let code = value(&maker.done_in(version, MAC, &[of_key(&first), data(b"x")].concat()), 0x42_00c6);
        let second = identifier(&maker.done_in(version, REKEY, &of_key(&name)));
        assert!(second.starts_with(&format!("{name}:")) && second != first, "{second}");
        let located = maker.done_in(version, LOCATE, &written(version, &asked[..1].to_vec()));
        assert_eq!(identifier(&located), second, "the name is the new version's");
        let mask = maker.done_in(version, GET_ATTRIBUTES, &of_key(&second));
        assert_eq!(attribute(version, &mask, 0x42_002c).expect("a mask"), CODES.to_be_bytes());
        let of = |id: &str| [of_key(id), data(b"x")].concat();
        assert_eq!(value(&maker.done_in(version, MAC, &of(&first)), 0x42_00c6), code);
        assert_ne!(value(&maker.done_in(version, MAC, &of(&name)), 0x42_00c6), code);
        // Not of a version that was replaced, and not with other attributes.
        maker.refused(version, REKEY, &of_key(&first), 7);
        let others = written(version, &asked);
        let others = if version >= (2, 0) { others } else { item(0x42_0091, 1, &others) };
        let answer = maker.ask(version, REKEY, &[of_key(&second), others].concat());
        assert_ne!(results(&answer), [0], "other attributes");
        watcher.refused(version, REKEY, &of_key(&second), DENIED);
        assert_eq!(kmip.world.client().versions(&name).expect("they are listed").len(), 2);
        // What follows in a batch means the new version.
        let batch = [(REKEY, &of_key(&second)[..]), (GET_ATTRIBUTE_LIST, &[])];
        let answer = maker.send(&request(version, &batch)).expect("a response");
        let ids = values(&answer, 0x42_0094);
        assert!(results(&answer) == [0; 2] && ids[0] == ids[1] && ids[0] != second.as_bytes());
    }
}

#[test]
fn operations_of_a_batch_mean_the_object_of_the_one_before() {
    let kmip = Kmip::start();
    let mut maker = kmip.session(&["maker.test"]);
    let create = creation((1, 4), &attributes("m-batch", (3, 128), DATA));
    let text = data(b"boxes");
    let batch =
        [(CREATE, &create[..]), (ACTIVATE, &[]), (QUERY, &[]), (ENCRYPT, &text), (GET_ATTRIBUTE_LIST, &[])];
    let answer = maker.send(&request((1, 4), &batch)).expect("a response");
    assert_eq!(results(&answer), [0; 5]);
    assert!(values(&answer, 0x42_0094).windows(2).all(|pair| pair[0] == pair[1]), "one object");
    let name = written((1, 4), &attributes("m-batch", (3, 128), DATA)[..1].to_vec());
    let answer = maker.send(&request((1, 4), &[(LOCATE, &name[..]), (ENCRYPT, &text)])).expect("a response");
    assert_eq!(results(&answer), [0; 2]);
    maker.refused((1, 4), ENCRYPT, &text, 6);
}

#[test]
fn an_operation_without_a_name_never_means_an_object_of_an_item_that_was_in_vain() {
    let kmip = Kmip::start();
    let mut maker = kmip.session(&["maker.test"]);
    let asked = |name: &str| creation((1, 4), &attributes(name, (3, 128), DATA));
    let kept = identifier(&maker.done(CREATE, &asked("m-kept")));
    let nothing = written((1, 4), &attributes("m-none", (3, 128), DATA)[..1].to_vec());
    let reason = structure(0x42_0081, &[enumeration(0x42_0082, 1)]);
    // Found by the first item, but the second finds nothing.
    let batch = [(GET_ATTRIBUTES, &of_key(&kept)[..]), (LOCATE, &nothing), (REVOKE, &reason), (DESTROY, &[])];
    let answer = maker.send(&request((1, 4), &batch)).expect("a response");
    let told = results(&answer);
    assert!(told.len() == 3 && told[..2] == [0, 0] && told[2] != 0, "{told:?}");
    // The second item fails, and the batch goes on.
    let again = asked("m-kept");
    let batch = [(GET_ATTRIBUTES, &of_key(&kept)[..]), (CREATE, &again), (REVOKE, &reason), (DESTROY, &[])];
    let goes_on = [enumeration(0x42_000e, 1)];
    let told = results(&maker.send(&request_with((1, 4), &goes_on, &batch)).expect("a response"));
    assert!(told.len() == 4 && told[0] == 0 && told[1..].iter().all(|reason| *reason != 0), "{told:?}");
    let answer = maker.done(GET_ATTRIBUTES, &of_key(&kept));
    assert_eq!(attribute((1, 4), &answer, 0x42_008d), Some(2_u32.to_be_bytes().to_vec()), "it is active");
}

#[test]
fn a_response_that_is_too_long_still_tells_what_was_made() {
    let kmip = Kmip::start();
    let mut maker = kmip.session(&["maker.test"]);
    let asked = creation((1, 4), &attributes("m-short", (3, 128), DATA));
    let batch = [(CREATE, &asked[..]), (GET_ATTRIBUTES, &[])];
    let at_most = [integer(0x42_0050, 300)];
    let answer = maker.send(&request_with((1, 4), &at_most, &batch)).expect("a response");
    let told = results(&answer);
    assert!(told.len() == 2 && told[0] == 0 && told[1] != 0, "{told:?}");
    assert!(identifier(&answer).starts_with("m-short:"));
}
