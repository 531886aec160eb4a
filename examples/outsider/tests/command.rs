//! The command as people run it, with nodes as processes; and the receiver's side by OpenSSL, where it is
//! installed.

use std::path::Path;
use std::process::{Command, Output};

fn run(options: &[&str], out: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclave-outsider"));
    command.args(options).arg("--out").arg(out).output().expect("it starts")
}

fn openssl(arguments: &[&str], directory: &Path) -> Output {
    Command::new("openssl").args(arguments).current_dir(directory).output().expect("it starts")
}

/// CMS with GCM needs version 3.
fn openssl_is_there() -> bool {
    let version = Command::new("openssl").arg("version").output();
    let there = version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).starts_with("OpenSSL 3"));
    if !there {
        eprintln!("skipped: there is no OpenSSL 3 on this machine");
    }
    there
}

#[test]
fn openssl_opens_what_processes_have_sent() {
    for (bids, lowest) in [
        ("1830,1275,2100,1450", "00001275 is the bid of owner 2"),
        ("7,8,5", "00000005 is the bid of owner 3"),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        // Three nodes are too few for protocols that find cheaters.
        let protocol: &[&str] = if bids == "7,8,5" { &["--protocol", "shamir"] } else { &[] };
        let output = run(&[&["--bids", bids, "--json"][..], protocol].concat(), directory.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
        if !openssl_is_there() {
            return;
        }
        let open = ["cms", "-decrypt", "-inform", "DER", "-in", "message.p7m", "-inkey", "receiver.key.pem"];
        let opened = openssl(&open, directory.path());
        assert!(opened.status.success(), "{}", String::from_utf8_lossy(&opened.stderr));
        assert_eq!(opened.stdout.len(), 48);
        assert!(opened.stdout.starts_with(lowest.as_bytes()));

        // By hand.
        let key = openssl(
            &["pkeyutl", "-decrypt", "-inkey", "receiver.key.pem", "-in", "key.rsa"],
            directory.path(),
        );
        let (key, iv) = (hex::encode(&key.stdout), text["iv"].as_str().expect("an IV"));
        let plain = openssl(
            &["enc", "-d", "-aes-128-ctr", "-K", &key, "-iv", iv, "-in", "data.ctr"],
            directory.path(),
        );
        assert_eq!(plain.stdout, opened.stdout);

        // A changed message, and another receiver's key.
        let file = directory.path().join("message.p7m");
        let mut message = std::fs::read(&file).expect("it was written");
        let at = message.len() - 30;
        message[at] ^= 1;
        std::fs::write(&file, &message).expect("it is written");
        assert!(!openssl(&open, directory.path()).status.success(), "a changed message was opened");
        message[at] ^= 1;
        std::fs::write(&file, &message).expect("it is written");
        openssl(&["genpkey", "-algorithm", "RSA", "-out", "other.pem"], directory.path());
        let open_with_other =
            ["cms", "-decrypt", "-inform", "DER", "-in", "message.p7m", "-inkey", "other.pem"];
        assert!(!openssl(&open_with_other, directory.path()).status.success(), "another key opened it");
    }
}

#[test]
fn a_receivers_own_key_of_3072_bits_will_do() {
    if !openssl_is_there() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let make = ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072", "-out", "mine.pem"];
    openssl(&make, directory.path());
    openssl(&["pkey", "-in", "mine.pem", "-pubout", "-out", "public.pem"], directory.path());
    let public = directory.path().join("public.pem");
    let output = run(&["--receiver", public.to_str().expect("it is text")], directory.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let open = ["cms", "-decrypt", "-inform", "DER", "-in", "message.p7m", "-inkey", "mine.pem"];
    assert!(openssl(&open, directory.path()).stdout.starts_with(b"00001275"));
}

#[test]
fn bad_options_are_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let no_key = directory.path().join("no.pem");
    std::fs::write(&no_key, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
        .expect("it is written");
    for (options, because) in [
        (&["--protocol", "spdz-lt"][..], "shamir"),
        (&["--bids", "1,2"], "three or four"),
        (&["--bids", "1,2,100000000"], "99999999"),
        (&["--receiver", no_key.to_str().expect("it is text")], "no RSA public key"),
    ] {
        let output = run(options, directory.path());
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(because), "{error}");
    }
}
