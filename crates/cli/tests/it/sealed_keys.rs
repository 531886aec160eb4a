//! A key that is sealed on a machine without a network, carried by somebody, and imported, on the command
//! line.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::common::{Place, Running};

/// SP 800-38B, example 3 of AES-128.
const KEY: &str = "2b7e151628aed2a6abf7158809cf4f3c";
const MESSAGE: &str = "6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e5130c81c46a35ce411";
const CODE: &str = "dfa66747de9ae63030ca32611497c827";

fn fingerprint(place: &Place) -> String {
    let message = place.run("cluster show try/cluster.toml");
    let line = message.lines().find(|line| line.contains("fingerprint")).expect("it is shown");
    line.split_whitespace().last().expect("64 digits").to_owned()
}

fn write_key(place: &Place) {
    place.write("known.hex", KEY.as_bytes());
    std::fs::set_permissions(place.path("known.hex"), std::fs::Permissions::from_mode(0o600)).expect("set");
}

fn seal(place: &Place, name: &str, expect: &str) -> String {
    format!(
        "key seal-import {name} --modes cmac --key-file known.hex --cluster try/cluster.toml --expect {expect} --out {}",
        place.path(&format!("{name}.sealed")).display()
    )
}

/// The check value on a line of the output.
fn check_value(message: &str) -> String {
    let line = message.lines().find(|line| line.contains("check value")).expect("it is told");
    line.split_whitespace().last().expect("its digits").to_owned()
}

#[test]
fn a_key_is_sealed_without_nodes_and_imported_once_by_whoever_carries_it() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    write_key(&place);
    let expect = fingerprint(&place);
    let refused = place.fails(&seal(&place, "k", &"0".repeat(64)));
    assert!(refused.contains("is refused"), "{refused}");
    let sealed = place.run(&seal(&place, "k", &expect));
    let file = String::from_utf8(place.read("k.sealed")).expect("text");
    assert!(!file.contains(KEY));
    let _cluster = place.cluster_again();
    // A file that was cut or altered says so, and keeps nothing.
    let at = file.len() - 40;
    for wrong in
        [file[..at].to_owned(), file.replacen("sealed_key", "sealed", 1), file.replacen("= \"", "= \"A", 1)]
    {
        place.write("wrong.sealed", wrong.as_bytes());
        let error = place.fails("key import-sealed wrong.sealed");
        assert!(error.contains("wrong.sealed"), "{error}");
    }
    let altered =
        format!("{}{}{}", &file[..at], if file[at..].starts_with('A') { "B" } else { "A" }, &file[at + 1..]);
    place.write("wrong.sealed", altered.as_bytes());
    let error = place.fails("key import-sealed wrong.sealed");
    assert!(error.contains("cannot open its part") || error.contains("wrong.sealed"), "{error}");
    assert!(!place.run("key list").contains("cmac"), "nothing was kept");

    let imported = place.run("key import-sealed k.sealed");
    assert_eq!(check_value(&sealed), check_value(&imported));
    place.write("message", &hex::decode(MESSAGE).expect("hexadecimal"));
    assert!(place.run("mac --key k message").contains(CODE));
    place.run("key delete k --yes");
    let error = place.fails("key import-sealed k.sealed");
    assert!(error.contains("was imported before"), "{error}");

    place.run("cluster new other --parties 3 --threshold 1");
    let elsewhere = seal(&place, "k3", &expect).replace("try/cluster.toml", "other/cluster.toml");
    assert!(place.fails(&elsewhere).contains("is refused"));
    let siv = seal(&place, "k4", &expect).replace("--modes cmac", "--modes siv");
    place.write("known.hex", KEY.repeat(2).as_bytes());
    assert!(place.fails(&siv).contains("cannot be sealed"));
}

/// All nodes are killed at several moments of an import. The key is there, or the file can be imported again,
/// and never after the key was deleted.
#[test]
fn an_import_that_was_killed_has_made_the_key_or_can_be_done_again() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --threshold 1");
    write_key(&place);
    let expect = fingerprint(&place);
    place.write("message", &hex::decode(MESSAGE).expect("hexadecimal"));
    let start = || -> Vec<Running> {
        let nodes: Vec<Running> =
            (1..=3).map(|node| place.start(&format!("node run try/node-{node} --log error"))).collect();
        nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
        nodes
    };
    let mut nodes = start();
    for delay_ms in [0, 30, 60, 120, 240] {
        let name = format!("k{delay_ms}");
        place.run(&seal(&place, &name, &expect));
        let import = place.start(&format!("key import-sealed {name}.sealed"));
        std::thread::sleep(Duration::from_millis(delay_ms));
        nodes.iter_mut().for_each(Running::kill);
        nodes.drain(..).for_each(|mut node| node.wait_until_gone());
        drop(import);
        nodes = start();
        let again = place.output(&format!("key import-sealed {name}.sealed"));
        let message = String::from_utf8_lossy(&again.stderr);
        let done_before = message.contains("is a key") || message.contains("was imported before");
        assert!(again.status.success() || done_before, "{delay_ms}: {message}");
        assert!(place.run(&format!("mac --key {name} message")).contains(CODE), "{delay_ms}");
        place.run(&format!("key delete {name} --yes"));
        let message = place.fails(&format!("key import-sealed {name}.sealed"));
        assert!(message.contains("was imported before"), "{message}");
    }
}
