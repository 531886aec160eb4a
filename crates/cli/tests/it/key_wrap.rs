//! Keys that are made of others, on the command line.

use crate::common::Place;

/// RFC 3394, section 4.1.
const KEK: &str = "000102030405060708090a0b0c0d0e0f";
const KEY: &str = "00112233445566778899aabbccddeeff";
const WRAPPED: &str = "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5";

fn secret(place: &Place, name: &str, digits: &str) {
    use std::os::unix::fs::PermissionsExt;
    place.write(name, digits.as_bytes());
    std::fs::set_permissions(place.path(name), std::fs::Permissions::from_mode(0o600)).expect("set");
}

#[test]
fn keys_are_wrapped_unwrapped_and_derived_and_shown_as_what_they_are() {
    let place = Place::new();
    let _cluster = place.cluster();
    secret(&place, "kek.hex", KEK);
    secret(&place, "key.hex", KEY);
    place.run("key import kek --usage wrap,unwrap --key-file kek.hex");
    place.run("key import k --wrappable --usage mac --key-file key.hex");
    assert_eq!(place.run("key wrap kek k").trim(), WRAPPED);
    place.run("key wrap kek k --out k.wrapped");
    assert_eq!(place.read("k.wrapped"), hex::decode(WRAPPED).expect("hexadecimal"));
    let json = |said: String| -> serde_json::Value { serde_json::from_str(&said).expect("it is JSON") };
    let wrapped = json(place.run("key wrap kek k --kwp --json"));
    assert_eq!((&wrapped["how"], &wrapped["key"]), (&"kwp".into(), &"k".into()));

    let back = json(place.run("key unwrap kek k.wrapped back --modes cmac --json"));
    assert_eq!((&back["origin"], &back["wrappable"]), (&"unwrapped".into(), &false.into()));
    assert_eq!(back["check_value"], json(place.run("key show k --json"))["check_value"]);
    let message = place.fails("key wrap kek back");
    assert!(message.contains("never leaves the nodes"), "{message}");
    place.write("cut", &place.read("k.wrapped")[..16]);
    let message = place.fails("key unwrap kek cut forged");
    assert!(message.contains("the wrapped key does not authenticate"), "{message}");

    place.run("key generate master --usage derive");
    let how = "--counter --before 6c6162656c00 --after 00000080";
    place.run(&format!("key derive master child {how}"));
    let again = json(place.run(&format!("key derive master again {how} --json")));
    assert_eq!(again["check_value"], json(place.run("key show child --json"))["check_value"]);
    let message = place.fails(&format!("key derive master nothing --cipher 3des-ede3 --modes cbc {how}"));
    assert!(message.contains("keys of aes-128 were derived from the key 'master'"), "{message}");
    let message = place.run("key list --derived");
    assert!(
        message.contains("child") && message.contains("again") && !message.contains("master"),
        "{message}"
    );
    assert!(message.contains("ciphers of derived keys: aes-128."), "{message}");
    let listed = json(place.run("key list --derived --json"));
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    let shown = place.run("key show child");
    assert!(
        shown.contains("origin       derived") && shown.contains("usage        encrypt, decrypt"),
        "{shown}"
    );
    assert!(place.run("key show k").contains("wrapped under another key (wrappable)"));
    let message = place.fails("key derive k nothing --counter");
    assert!(message.contains("is for the usage mac, not derive"), "{message}");
    let message =
        place.fails("key derive master nothing --before 00 --ecb-data 00112233445566778899aabbccddeeff");
    assert!(message.contains("belong to --counter"), "{message}");
    let data = "00112233445566778899aabbccddeeff";
    let message = place.fails(&format!("key derive master nothing --iv {data} --ecb-data {data}"));
    assert!(message.contains("--iv belongs to --cbc-data"), "{message}");

    place.run("key generate moves");
    place.write("token", b"a token");
    place.run("encrypt --key moves token token.sealed");
    place.run("rewrap --key moves token.sealed token.new");
    let before = place.read("token.new");
    let message = place.fails("rewrap --key moves token.sealed token.new");
    assert!(message.contains("--force") && place.read("token.new") == before, "{message}");
    place.run("rewrap --key moves token.sealed token.new --force");
    assert!(place.read("token.new") != before);
    let help = place.run("node allow --help");
    for right in ["kdf", "rewrap", "tokenize", "observe", "configure"] {
        assert!(help.contains(right), "{right}: {help}");
    }

    secret(&place, "kbpk.hex", KEK);
    place.run("key import kbpk --modes tr31 --key-file kbpk.hex");
    place.run("key wrap kbpk k --tr31 --exportability N --out k.tr31");
    let block = String::from_utf8(place.read("k.tr31")).expect("text");
    assert!(block.starts_with("D0144M6AC00N0000"), "{block}");
    place.write("line.tr31", format!("{block}\n").as_bytes());
    let back = json(place.run("key unwrap kbpk line.tr31 from-block --tr31 --modes cmac --json"));
    assert_eq!(back["check_value"], json(place.run("key show k --json"))["check_value"]);
    let message = place.fails("key unwrap kbpk k.tr31 more --tr31 --modes gcm");
    assert!(message.contains("does not allow the usage encrypt"), "{message}");
    let message = place.fails("key unwrap kbpk k.tr31 out --tr31 --modes cmac --wrappable");
    assert!(message.contains("must not be exported"), "{message}");
    let message = place.fails("key wrap kbpk k --tr31 --mode-of-use V");
    assert!(message.contains("allows more"), "{message}");

    secret(&place, "kdf.hex", KEK);
    place.run("key import seeds --usage kdf --key-file kdf.hex");
    let bytes = place.run("key kdf seeds --bytes 20 --before 6c6162656c");
    assert_eq!(bytes.trim().len(), 40);
    place.run("key kdf seeds --bytes 32 --before 6c6162656c --out derived");
    assert_eq!(hex::encode(&place.read("derived")[..20]), bytes.trim(), "the first bytes are the same");
    let message = place.fails("key kdf master --bytes 16");
    assert!(message.contains("is for the usage derive, not kdf"), "{message}");
    let message = place.fails("key generate both --usage derive,kdf");
    assert!(message.contains("kdf undoes derive"), "{message}");

    let log = place.read("try/node-1/audit.log");
    let log = String::from_utf8(log).expect("text");
    assert!(log.lines().any(|line| line.contains("\"wrap\"")
        && line.contains("\"key\":\"k\"")
        && line.contains("under=kek")));
    assert!(log.lines().any(|line| line.contains("\"derive\"") && line.contains("from=master")));
}
