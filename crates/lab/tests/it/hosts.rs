//! `polyclave-lab hosts new`, `party` and `bench --hosts`, with a process for each party.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

const KEY: &str = "000102030405060708090a0b0c0d0e0f";
const PLAINTEXT: &str = "00112233445566778899aabbccddeeff";
const CIPHERTEXT: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";
const ADDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../circuits/adder-64.txt");

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_polyclave-lab"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files of so many parties, on ports that are free now.
struct Parties {
    dir: tempfile::TempDir,
    addresses: Vec<String>,
}

impl Parties {
    fn new(count: usize) -> Parties {
        let dir = tempfile::tempdir().expect("a directory");
        let addresses: Vec<String> = (0..count).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        let parties = Parties { dir, addresses };
        let addresses: Vec<&str> = parties.addresses.iter().map(String::as_str).collect();
        let out = parties.file("");
        let made = [&["hosts", "new", "--out", &out, "--parties"][..], &addresses].concat();
        let output = program(&made).output().expect("the program starts");
        assert!(output.status.success(), "{}", stderr(&output));
        parties
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join("hosts").join(name).to_str().expect("text").trim_end_matches('/').into()
    }

    /// The process of a party, whose number counts from 1.
    fn command(&self, command: &str, number: usize, arguments: &[&str]) -> Command {
        let (hosts, number) = (self.file("hosts.toml"), number.to_string());
        program(&[&[command, "--hosts", &hosts, "--me", &number, "--wait", "20"], arguments].concat())
    }

    /// Runs all parties to their end.
    fn run(&self, command: &str, common: &[&str], own: &[&[&str]]) -> Vec<Output> {
        let start = |(number, own): (usize, &&[&str])| {
            self.command(command, number, &[common, own].concat()).spawn().expect("the program starts")
        };
        let running: Vec<_> = (1..).zip(own).map(start).collect();
        running.into_iter().map(|party| party.wait_with_output().expect("it ends")).collect()
    }

    /// The documents of parties that end well.
    fn documents(&self, command: &str, common: &[&str], own: &[&[&str]]) -> Vec<Map<String, Value>> {
        let outputs = self.run(command, &[common, &["--json"]].concat(), own);
        let document = |output: &Output| {
            assert!(output.status.success(), "{common:?}: {}", stderr(output));
            serde_json::from_slice(&output.stdout).expect("one JSON document and nothing else")
        };
        outputs.iter().map(document).collect()
    }

    /// Every party ends with its error.
    fn refused(&self, common: &[&str], own: &[&[&str]], messages: &[String]) {
        for (output, message) in self.run("party", common, own).iter().zip(messages) {
            assert_refused(output, message);
        }
    }

    fn named(&self, number: usize) -> String {
        format!("party {number} ({})", self.addresses[number - 1])
    }
}

fn assert_refused(output: &Output, message: &str) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(message) && !text.contains("panicked"), "{text} lacks {message}");
}

/// Below those that systems give to outgoing connections, so that nobody takes it before the party does.
fn free_port() -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (std::process::id() as u16).wrapping_mul(61).wrapping_add(tried) % 20_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[test]
fn one_party_holds_the_key_and_the_other_the_message() {
    let parties = Parties::new(2);
    for (protocol, verified) in [("garbled-half", false), ("spdz-lt", true)] {
        let common = ["--protocol", protocol, "--cipher", "aes-128"];
        let documents =
            parties.documents("party", &common, &[&["--key", KEY], &["--input", &PLAINTEXT.repeat(2)]]);
        for (number, shown) in (1..).zip(&documents) {
            assert_eq!(shown["output"], CIPHERTEXT.repeat(2), "{protocol}");
            assert_eq!((&shown["party"], &shown["blocks"]), (&Value::from(number), &2.into()));
            assert_eq!((&shown["inputs"]["key"], &shown["inputs"]["input"]), (&1.into(), &2.into()));
            assert_eq!(shown["verified"], verified);
        }
        let total = |party: usize, field: &str| documents[party]["total"][field].as_u64().expect("a number");
        assert_eq!(total(0, "payload_bytes"), total(1, "payload_bytes_received"), "{protocol}");
        assert_eq!(total(1, "payload_bytes"), total(0, "payload_bytes_received"), "{protocol}");
        assert!(total(0, "bytes") > total(0, "payload_bytes"), "TLS adds something");
    }
    let common = ["--protocol", "spdz-lt", "--cipher", "aes-128", "--decrypt"];
    for shown in parties.documents("party", &common, &[&["--input", CIPHERTEXT], &["--key", KEY]]) {
        assert_eq!((&shown["output"], &shown["inputs"]["key"]), (&PLAINTEXT.into(), &2.into()));
    }
}

#[test]
fn the_document_has_all_that_eval_shows_and_the_same_counts() {
    let common = ["--cipher", "aes-128"];
    let parties = Parties::new(3);
    let documents = parties.documents("party", &common, &[&["--input", PLAINTEXT], &[], &["--key", KEY]]);
    let eval = [&["eval", "--json", "--key", KEY, "--input", PLAINTEXT][..], &common].concat();
    let eval = program(&eval).output().expect("the program starts").stdout;
    let eval: Map<String, Value> = serde_json::from_slice(&eval).expect("a document");
    for (number, shown) in (1..).zip(&documents) {
        for (field, value) in eval.iter().filter(|(field, _)| *field != "bytes") {
            match value {
                Value::Object(phase) => {
                    assert!(phase.keys().all(|inner| shown[field].get(inner).is_some()), "{field}")
                }
                value => assert_eq!(&shown[field], value, "{field}"),
            }
        }
        assert_eq!((&shown["party"], &shown["parties"]), (&Value::from(number), &3.into()));
        for phase in
            ["preprocessing", "sharing_the_input", "revealing_the_output", "setup", "total", "connecting"]
        {
            assert!(shown[phase]["seconds"].is_f64() && shown[phase]["bytes_received"].is_u64(), "{phase}");
        }
    }
}

#[test]
fn a_tweak_may_come_from_a_third_party() {
    let vectors = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/lightweight-ciphers.json");
    let vectors: Value =
        serde_json::from_str(&std::fs::read_to_string(vectors).expect("it is there")).expect("JSON");
    let of_craft =
        |entry: &&Value| entry["cipher"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("craft"));
    let entry = vectors.as_array().expect("a list").iter().find(of_craft).expect("an entry of CRAFT");
    let text = |field: &str| entry[field].as_str().expect("text");
    let own: [&[&str]; 3] =
        [&["--tweak", text("tweak")], &["--key", text("key")], &["--input", text("plaintext")]];
    for shown in Parties::new(3).documents("party", &["--cipher", "craft"], &own) {
        assert_eq!(shown["output"], text("ciphertext").to_lowercase());
        assert_eq!(shown["inputs"]["tweak"], 1);
    }
}

#[test]
fn inputs_of_a_circuit_from_a_file_come_by_number() {
    let common = ["--circuit", ADDER, "--protocol", "garbled-half"];
    let own: [&[&str]; 2] = [&["--input", "2=000000000000000a"], &["--input", "1=000000000000000b"]];
    let parties = Parties::new(2);
    for shown in parties.documents("party", &common, &own) {
        assert_eq!(shown["outputs"], Value::from(vec!["0000000000000015"]));
        assert_eq!((&shown["inputs"]["input 1"], &shown["inputs"]["input 2"]), (&2.into(), &1.into()));
    }
    let twice = "party 2 both bring the input 1; give --input 1=HEX at one party only";
    let own: [&[&str]; 2] = [own[1], &["--input", "1=00000000000000ff", "--input", "2=00000000000000ff"]];
    let output = &parties.run("party", &common, &own)[1];
    assert_refused(output, twice);
}

#[test]
fn a_difference_is_named_at_both_parties() {
    let parties = Parties::new(2);
    let (one, two) = (parties.named(1), parties.named(2));
    let cases: [([&[&str]; 2], [String; 2]); 4] = [
        (
            [&["--protocol", "garbled-half", "--key", KEY], &["--protocol", "spdz-lt", "--input", PLAINTEXT]],
            [
                format!("{two} runs with protocol spdz-lt, this party with garbled-half"),
                format!("{one} runs with protocol garbled-half, this party with spdz-lt"),
            ],
        ),
        (
            [
                &["--protocol", "spdz-lt", "--key", KEY],
                &["--protocol", "spdz-lt", "--input", PLAINTEXT, "--decrypt"],
            ],
            [
                format!("{two} runs with direction decrypt, this party with encrypt"),
                format!("{one} runs with direction encrypt, this party with decrypt"),
            ],
        ),
        (
            [
                &["--protocol", "spdz-lt", "--key", KEY, "--input", PLAINTEXT],
                &["--protocol", "spdz-lt", "--key", KEY],
            ],
            [
                format!("party 1 and {two} both bring the key; give --key HEX at one party only"),
                format!("{one} and party 2 both bring the key; give --key HEX at one party only"),
            ],
        ),
        (
            [&["--protocol", "spdz-lt", "--input", PLAINTEXT], &["--protocol", "spdz-lt"]],
            [
                "no party brings the key; give --key HEX".into(),
                "no party brings the key; give --key HEX".into(),
            ],
        ),
    ];
    for (own, messages) in cases {
        parties.refused(&["--cipher", "aes-128"], &own, &messages);
    }
}

#[test]
fn another_certificate_than_the_listed_one_ends_both() {
    let (parties, others) = (Parties::new(2), Parties::new(2));
    let arguments = ["--protocol", "garbled-half", "--cipher", "aes-128", "--wait", "4"];
    // Under the same addresses, but with the certificates of another run of `hosts new`.
    let text = std::fs::read_to_string(others.file("hosts.toml")).expect("it is there");
    let moved = text
        .replace(&others.addresses[0], &parties.addresses[0])
        .replace(&others.addresses[1], &parties.addresses[1]);
    std::fs::write(others.file("hosts.toml"), moved).expect("written");
    let (hosts, other_hosts) = (parties.file("hosts.toml"), others.file("hosts.toml"));
    let start = |hosts: &str, me: &str, own: [&str; 2]| {
        let command = [&["party", "--hosts", hosts, "--me", me][..], &arguments, &own].concat();
        program(&command).spawn().expect("the program starts")
    };
    let one = start(&hosts, "1", ["--key", KEY]);
    let two = start(&other_hosts, "2", ["--input", PLAINTEXT]);
    let message =
        format!("{} sent something that does not fit: its certificate is not the one", parties.named(2));
    assert_refused(&one.wait_with_output().expect("it ends"), &message);
    let message = "did not connect within 4s, but others were turned away";
    assert_refused(&two.wait_with_output().expect("it ends"), message);
}

#[test]
fn a_party_that_does_not_come_is_named_in_time() {
    let parties = Parties::new(3);
    let began = Instant::now();
    let own = ["--cipher", "aes-128", "--key", KEY, "--wait", "2"];
    let hosts = parties.file("hosts.toml");
    let arguments = [&["party", "--hosts", &hosts, "--me", "2"][..], &own].concat();
    let output = program(&arguments).output().expect("the program starts");
    let message = stderr(&output);
    let named = [1, 3].map(|number| format!("error: {}", parties.named(number)));
    assert!(named.iter().any(|named| message.contains(named)) && message.contains("within 2"), "{message}");
    assert!(began.elapsed() < Duration::from_secs(15));
}

/// It says nothing, and holds its connection to the end.
#[test]
fn a_stranger_at_the_port_stops_nobody() {
    let parties = Parties::new(2);
    let common = ["--protocol", "garbled-half", "--cipher", "aes-128"];
    let second = parties.command("party", 2, &[&common[..], &["--input", PLAINTEXT]].concat()).spawn();
    let second = second.expect("the program starts");
    let deadline = Instant::now() + Duration::from_secs(20);
    let stranger = loop {
        if let Ok(stranger) = TcpStream::connect(&parties.addresses[1]) {
            break stranger;
        }
        assert!(Instant::now() < deadline, "party 2 does not listen");
        std::thread::sleep(Duration::from_millis(20));
    };
    let first = parties.command("party", 1, &[&common[..], &["--key", KEY]].concat()).output();
    assert!(first.expect("the program starts").status.success());
    let second = second.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&second.stdout).starts_with(CIPHERTEXT), "{}", stderr(&second));
    drop(stranger);
}

#[test]
fn keys_are_private_and_nothing_is_overwritten() {
    let parties = Parties::new(2);
    let mode =
        |name: &str| std::fs::metadata(parties.file(name)).expect("it is there").permissions().mode() & 0o777;
    assert_eq!([mode("party-1.key"), mode("party-2.key"), mode("")], [0o600, 0o600, 0o700]);
    let public = std::fs::read_to_string(parties.file("hosts.toml")).expect("it is there");
    assert!(!public.contains("PRIVATE") && public.contains("version = 1"));
    let again = ["hosts", "new", "--parties", "a:1", "b:1", "--out", &parties.file("")];
    assert_refused(&program(&again).output().expect("the program starts"), "is there already");
    let refused = |parties: [&str; 2], message: &str| {
        let dir = tempfile::tempdir().expect("a directory");
        let out: PathBuf = dir.path().join("x");
        let arguments =
            ["hosts", "new", "--parties", parties[0], parties[1], "--out", out.to_str().expect("text")];
        assert_refused(&program(&arguments).output().expect("the program starts"), message);
        assert!(!Path::new(&out).exists());
    };
    refused(["a:1", "a:1"], "parties 1 and 2 have one address");
    refused(["a:1", "b"], "is not an address");
}

#[test]
fn what_cannot_work_is_said_before_anything_is_sent() {
    let (parties, others) = (Parties::new(2), Parties::new(2));
    let (other_key, second_key) = (others.file("party-1.key"), parties.file("party-2.key"));
    let exposed = parties.dir.path().join("exposed.key");
    std::fs::copy(parties.file("party-1.key"), &exposed).expect("copied");
    std::fs::set_permissions(&exposed, std::fs::Permissions::from_mode(0o644)).expect("set");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = listener.local_addr().expect("it listens").to_string();
    let garbled = ["--protocol", "garbled-half", "--cipher", "aes-128"];
    let cases: [(usize, Vec<&str>, &str); 14] = [
        (3, garbled.to_vec(), "lists 2 parties, so it takes 1 to 2"),
        (0, garbled.to_vec(), "lists 2 parties, so it takes 1 to 2"),
        (1, [&garbled[..], &["--identity", &second_key]].concat(), "is the key of party 2"),
        (1, [&garbled[..], &["--identity", &other_key]].concat(), "different runs of `hosts new`"),
        (1, [&garbled[..], &["--identity", exposed.to_str().expect("text")]].concat(), "chmod 600"),
        (1, [&garbled[..], &["--listen", &taken]].concat(), "cannot listen on"),
        (1, [&garbled[..], &["--parties", "3"]].concat(), "the hosts file lists 2"),
        (1, vec!["--cipher", "aes-128"], "shamir runs among 3 to 9 parties, and the hosts file lists 2"),
        (1, vec!["--cipher", "aes-128", "--protocol", "cleartext"], "`polyclave-lab eval`"),
        (
            1,
            vec!["--cipher", "aes-128", "--protocol", "spdz-lt", "--preprocessing", "insecure_dealer"],
            "insecure dealer, which every party could be",
        ),
        (1, [&garbled[..], &["--key", "00"]].concat(), "has 16 bytes"),
        (1, [&garbled[..], &["--tweak", "00"]].concat(), "takes no tweak"),
        (1, vec!["--circuit", ADDER, "--protocol", "garbled-half", "--input", "00"], "as in --input 1=HEX"),
        (
            1,
            vec!["--circuit", ADDER, "--protocol", "garbled-half", "--input", "3=00"],
            "has 2 inputs, counted from 1",
        ),
    ];
    for (me, arguments, message) in cases {
        let output = parties.command("party", me, &arguments).output().expect("the program starts");
        assert_refused(&output, message);
    }
    drop(listener);
    let file = parties.file("hosts.toml");
    let text = std::fs::read_to_string(&file).expect("it is there");
    std::fs::write(&file, text.replace("version = 1", "version = 2")).expect("written");
    let output = parties.command("party", 1, &garbled).output().expect("the program starts");
    assert_refused(&output, "a hosts file of version 2, and this program reads version 1");
}

#[test]
fn bench_runs_one_party_and_prints_the_same_document_at_each() {
    let parties = Parties::new(2);
    let common = ["--protocol", "garbled-half", "--blocks", "20", "--repeats", "2"];
    let documents = parties.documents("bench", &common, &[&[], &[]]);
    assert_eq!(documents[0], documents[1]);
    let alone = program(&[&["bench", "--json"][..], &common].concat()).output().expect("the program starts");
    let alone: Map<String, Value> = serde_json::from_slice(&alone.stdout).expect("a document");
    let shape = |document: &Map<String, Value>| -> Vec<String> { document.keys().cloned().collect() };
    assert_eq!(shape(&documents[0]), shape(&alone));
    assert_eq!(
        (&documents[0]["network"], &documents[0]["parties"], &documents[0]["blocks"]),
        (&"hosts".into(), &2.into(), &20.into())
    );
    let outputs = parties.run("bench", &common[..2], &[&["--blocks", "20"], &["--blocks", "21"]]);
    for (output, message) in outputs.iter().zip(["number of blocks 21, this", "number of blocks 20, this"]) {
        assert_refused(output, message);
    }
}
