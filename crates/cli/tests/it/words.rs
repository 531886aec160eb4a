//! What people are told who did something that cannot be, and what commands find out by themselves.

use std::process::Command;

use crate::common::{Place, free_ports};

#[test]
fn encryption_and_decryption_take_the_mode_of_the_key() {
    let place = Place::new();
    let _cluster = place.cluster();
    place.write("f", b"a message");
    for (mode, raw) in
        [("siv", ""), ("ccm", ""), ("gcm-siv", ""), ("ctr", " --raw"), ("gcm", " --raw"), ("gcm", "")]
    {
        let key = format!("{mode}{}", raw.len());
        place.run(&format!("key generate {key} --modes {mode}"));
        place.run(&format!("encrypt --key {key} f f.{key}{raw}"));
        place.run(&format!("decrypt --key {key} f.{key} g --force{raw}"));
        assert_eq!(place.read("g"), b"a message", "{key}");
    }
    place.run("key generate xaes --modes xaes --cipher aes-256");
    place.run("encrypt --key xaes f f.xaes");
    place.run("decrypt --key xaes f.xaes g --force");
    assert_eq!(place.read("g"), b"a message");
    assert_eq!(place.pipe("decrypt --key xaes -", &place.read("f.xaes")), b"a message");
    let message = place.fails("encrypt --key ctr6 f out");
    assert!(message.contains("ctr authenticates nothing") && message.contains("--raw"), "{message}");
    let message = place.fails("decrypt --key gcm0 f out");
    assert!(message.contains("no sealed file") && message.contains("--raw"), "{message}");
    let message = place.fails("encrypt --key siv0 f out --iv-out iv");
    assert!(message.contains("--iv-out is for ctr and cbc"), "{message}");
}

#[test]
fn a_file_of_another_key_is_not_said_to_be_of_one_that_had_this_name() {
    let place = Place::new();
    let _cluster = place.cluster();
    place.write("f", b"a message");
    place.run("key generate payroll");
    place.run("key generate gm");
    place.run("encrypt --key payroll f f.sealed");
    let message = place.fails("decrypt --key gm f.sealed g");
    assert!(
        message.contains("was not made under the key 'gm'") && !message.contains("that was named"),
        "{message}"
    );
}

#[test]
fn a_command_without_a_client_names_the_variable() {
    for arguments in [&["key", "list"][..], &["approval", "sign", "f"], &["dashboard"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_polyclave"));
        let output = command.args(arguments).env_remove("POLYCLAVE_CLIENT").output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && message.contains("POLYCLAVE_CLIENT"),
            "{arguments:?}: {message}"
        );
    }
}

#[test]
fn a_cluster_that_cannot_be_made_leaves_no_directory() {
    let (place, port) = (Place::new(), free_ports(1)[0]);
    place.fails(&format!("cluster new try --workers 2 --store postgresql://nobody@127.0.0.1:{port}/none"));
    assert!(!place.path("try").exists());
}

/// The budgets of the keys are too small, so nothing is encrypted after that.
#[test]
fn of_a_file_that_takes_long_it_is_said_before_anything_is_asked_of_the_nodes() {
    let place = Place::new();
    let _cluster = place.cluster();
    place.run("key generate k --budget 1000");
    place.run("key generate c --budget 1000 --modes ctr");
    let long = std::fs::File::create(place.path("long")).expect("made");
    long.set_len(100_000_000).expect("of zeros");
    for command in ["encrypt --key k long out", "decrypt --key c --raw long out"] {
        let message = place.fails(command);
        assert!(
            message.contains("note: 100.00 MB take about") && message.contains("budget"),
            "{command}: {message}"
        );
    }
}
