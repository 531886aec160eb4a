//! What is refused: by design, as malformed, or because of who asks.

use polyclave_api::Mode;

use super::*;
use crate::common::replace;

#[test]
fn requests_are_judged_by_what_they_say() {
    let kmip = Kmip::start();
    let mut database = kmip.session(&["db.test"]);
    for version in [(1, 2), (1, 3), (1, 4), (2, 0), (2, 1)] {
        let answer = database.done_in(version, DISCOVER, &[]);
        assert_eq!(values(&answer, 0x42_006a).len(), 6, "{version:?}");
        assert_eq!(value(&answer, 0x42_006b), version.1.to_be_bytes(), "it answers in the version");
    }
    let asked = structure(0x42_0069, &[integer(0x42_006a, 1), integer(0x42_006b, 0)]);
    assert_eq!(values(&database.done(DISCOVER, &asked), 0x42_0069).len(), 1, "1.0 is not spoken");
    let answer = database.done(QUERY, &[enumeration(0x42_0074, 1), enumeration(0x42_0074, 3)].concat());
    assert_eq!(value(&answer, 0x42_009d), b"Polyclave");
    for version in [(1, 1), (2, 2), (3, 0), (-1, 4)] {
        database.refused(version, QUERY, &[], 4);
    }
    // A batch ends with the first item that fails.
    let batch = [(QUERY, &[][..]), (GET, &[]), (QUERY, &[])];
    let answer = database.send(&request((1, 4), &batch)).expect("a response");
    assert_eq!(results(&answer), [0, NOT_EXTRACTABLE]);
    let long = vec![(QUERY, &[][..]); 33];
    assert_eq!(results(&database.send(&request((1, 4), &long)).expect("a response")), [4]);
    assert_eq!(results(&database.send(&request((1, 4), &long[1..])).expect("a response")), [0; 32]);
    // TTLV that is malformed inside of a message is answered, and the connection goes on.
    let deep = (0..40).fold(Vec::new(), |inner, _| item(0x42_0078, 1, &inner));
    assert_eq!(results(&database.send(&deep).expect("a response")), [4]);
    let cut = structure(0x42_0078, &[b"\x42\0\x77\x01\xff\xff\xff\xff".to_vec()]);
    assert_eq!(results(&database.send(&cut).expect("a response")), [4]);
    database.done(QUERY, &[]);
    // A message that is too long is not waited for, and what is no TTLV is not answered.
    assert_eq!(results(&database.send(b"\x42\0\x78\x01\xff\xff\xff\xf8").expect("a response")), [4]);
    assert_eq!(database.send(&request((1, 4), &batch)), None, "it is closed");
    assert_eq!(kmip.session(&["db.test"]).send(b"GET / HTTP/1.1\r\n\r\n"), None);
}

#[test]
fn keys_neither_leave_nor_come_in_the_clear_and_query_tells_just_what_is_served() {
    let kmip = Kmip::start();
    kmip.generate("m-gcm", "aes-128", Mode::Gcm);
    let mut maker = kmip.session(&["maker.test"]);
    for operation in [GET, EXPORT] {
        maker.refused((1, 4), operation, &of_key("m-gcm"), NOT_EXTRACTABLE);
        maker.refused((2, 1), operation, &of_key("m-gcm"), NOT_EXTRACTABLE);
        maker.refused((1, 2), operation, &of_key("m-gcm"), DENIED);
    }
    for operation in [REGISTER, IMPORT] {
        maker.refused((2, 1), operation, &[], 5);
    }
    let answer = maker.done(QUERY, &enumeration(0x42_0074, 1));
    let told: Vec<u32> = values(&value(&answer, 0x42_007c), 0x42_005c)
        .into_iter()
        .map(|one| u32::from_be_bytes(one.try_into().expect("4 bytes")))
        .collect();
    assert!(!told.is_empty());
    for operation in 0..0x40 {
        let is_known = results(&maker.ask((2, 1), operation, &[])) != [5];
        let is_served = is_known && ![GET, EXPORT].contains(&operation);
        assert_eq!(told.contains(&operation), is_served, "{operation:x}");
    }
}

#[test]
fn only_certificates_that_mean_one_client_are_served_and_the_file_is_looked_at_with_every_request() {
    let kmip = Kmip::start();
    let query = request((1, 4), &[(QUERY, &[])]);
    let answered = |session: &mut Session| session.send(&query).map(|answer| results(&answer));
    let mut database = kmip.session(&["db.test"]);
    assert_eq!(answered(&mut database), Some(vec![0]));
    for names in [&["other.test"][..], &["x.db.test"], &["db.test", "reader.test"], &["*.test"]] {
        let mut session = kmip.session(names);
        assert_eq!(answered(&mut session), Some(vec![3]), "{names:?}");
        assert_eq!(answered(&mut session), None, "it is closed");
    }
    assert_eq!(answered(&mut kmip.session_of(None)), None);
    let (stranger, _) = authority();
    assert_eq!(answered(&mut kmip.session_of(Some((&stranger, &["db.test"])))), None);
    // An entry is changed: the open connection has the new rights, or none.
    kmip.generate("db-gcm", "aes-128", Mode::Gcm);
    let payload = [of_key("db-gcm"), data(b"")].concat();
    database.done(ENCRYPT, &payload);
    let text = std::fs::read_to_string(kmip.world.file()).expect("read");
    let fewer = text.replace("rights = [\"encrypt\", \"decrypt\", \"mac\", \"list\"]", "rights = [\"mac\"]");
    assert_ne!(fewer, text);
    replace(&kmip.world.file(), &fewer);
    database.refused((1, 4), ENCRYPT, &payload, DENIED);
    replace(&kmip.world.file(), &fewer.replace("db.test", "gone.test"));
    assert_eq!(answered(&mut database), Some(vec![3]));
    assert_eq!(answered(&mut database), None, "it is closed");
}

#[test]
fn a_batch_lists_all_keys_once_and_silent_connections_keep_no_client_out() {
    let kmip = Kmip::start();
    // More than there may be of one address, and messages that are announced and do not come.
    let address = kmip.world.gateway.as_ref().expect("it runs").kmip_addresses()[0];
    let _silent: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(address).expect("connected")).collect();
    let mut halves: Vec<Session> = (0..8).map(|_| kmip.session(&["maker.test"])).collect();
    for half in &mut halves {
        half.done(QUERY, &[]);
        half.0.write_all(b"\x42\0\x78\x01\0\x01\0\0").and_then(|()| half.0.flush()).expect("sent");
    }
    // Names as long as they may be.
    for i in 0..41 {
        kmip.generate(&format!("m-{i:062}"), "aes-128", Mode::Gcm);
    }
    let mut watcher = kmip.session(&["watcher.test"]);
    assert_eq!(values(&watcher.done(LOCATE, &[]), 0x42_0094).len(), 41);
    let batch = vec![(LOCATE, &[][..]); 32];
    let answer = watcher.send(&request((1, 4), &batch)).expect("a response");
    assert_eq!((results(&answer), answer.len() < 16 << 10), (vec![0, 256], true), "a general failure");
    // A client is told what would be longer than it takes.
    let limit = integer(0x42_0050, 1000);
    let version = structure(0x42_0069, &[integer(0x42_006a, 1), integer(0x42_006b, 4)]);
    let header = structure(0x42_0077, &[version, limit, integer(0x42_000d, 1)]);
    let item = structure(0x42_000f, &[enumeration(0x42_005c, LOCATE), item(0x42_0079, 1, &[])]);
    let answer = watcher.send(&structure(0x42_0078, &[header, item])).expect("a response");
    assert_eq!((results(&answer), answer.len() < 1000), (vec![2], true));
}

#[test]
fn what_a_request_says_beside_its_operations_is_understood_or_refused() {
    let kmip = Kmip::start();
    let mut database = kmip.session(&["db.test"]);
    let batch = [(QUERY, &[][..])];
    let mut told =
        |more: &[Vec<u8>]| results(&database.send(&request_with((2, 1), more, &batch)).expect("a response"));
    // A time, the order of the batch, a value that connects messages; and what nobody has defined.
    let known = [item(0x42_0092, 9, &[0; 8]), item(0x42_0010, 6, &1_u64.to_be_bytes()), text(0x42_0105, "a")];
    assert_eq!(told(&known), [0]);
    assert_ne!(told(&[text(0x42_01ff, "a")]), [0]);
    assert_ne!(told(&[structure(0x42_000c, &[])]), [0], "credentials");
    assert_ne!(told(&[item(0x42_0007, 6, &1_u64.to_be_bytes())]), [0], "an answer later");
    assert_ne!(told(&[enumeration(0x42_000e, 3)]), [0], "undo");
    // An extension that has to be understood.
    let extension = structure(0x42_0051, &[text(0x42_007d, "x"), item(0x42_0026, 6, &1_u64.to_be_bytes())]);
    let one = structure(0x42_000f, &[enumeration(0x42_005c, QUERY), item(0x42_0079, 1, &[]), extension]);
    let version = structure(0x42_0069, &[integer(0x42_006a, 2), integer(0x42_006b, 1)]);
    let header = structure(0x42_0077, &[version, integer(0x42_000d, 1)]);
    let message = structure(0x42_0078, &[header, one]);
    assert_ne!(results(&database.send(&message).expect("a response")), [0]);
}

#[test]
fn who_a_client_is_is_decided_when_its_message_is_there() {
    let kmip = Kmip::start();
    let mut database = kmip.session(&["db.test"]);
    let message = request((1, 4), &[(QUERY, &[][..])]);
    let (begin, end) = message.split_at(20);
    database.0.write_all(begin).expect("sent");
    database.0.flush().expect("sent");
    // So that the head was read.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let settings = std::fs::read_to_string(kmip.world.file()).expect("read");
    replace(&kmip.world.file(), &settings.replace("db.test", "gone.test"));
    assert_eq!(database.send(end).map(|answer| results(&answer)), Some(vec![3]));
}
