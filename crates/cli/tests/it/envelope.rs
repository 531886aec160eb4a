//! Files in envelopes, sealed files with additional data, and random bytes, as a person asks for them.

use crate::common::{Place, Running, noise};

/// More than two chunks.
const LONG: usize = (2 << 20) + 12_345;

/// Two nodes that keep little in stock.
fn two_nodes(place: &Place) -> [Running; 2] {
    place.run("cluster new try --protocol spdz-tower --parties 2");
    (1..=2).for_each(|node| place.set_stock(node, 64, 0));
    let nodes = [1, 2].map(|node| place.start(&format!("node run try/node-{node} --log warn")));
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    place.until("they serve", || place.output("key generate files --modes envelope").status.success());
    nodes
}

#[test]
fn files_in_envelopes_come_back_from_files_and_pipes_and_altered_ones_leave_nothing() {
    let place = Place::new();
    let _nodes = two_nodes(&place);
    place.write("f", &noise(LONG));
    place.run("encrypt --key files --header accounts f f.envelope");
    let file = place.read("f.envelope");
    assert!(file.starts_with(b"polyclave-envl-1") && file.windows(8).any(|part| part == b"accounts"));
    place.run("decrypt --key files f.envelope g");
    assert!(place.read("g") == noise(LONG));
    assert!(place.pipe("decrypt --key files --mode envelope f.envelope -", b"") == noise(LONG));

    let piped = place.pipe("encrypt --key files - -", &noise(LONG));
    assert_eq!(piped.len(), file.len() - "accounts".len());
    assert!(place.pipe("decrypt --key files - -", &piped) == noise(LONG));

    let mut altered = file;
    *altered.last_mut().expect("a tag") ^= 1;
    place.write("altered", &altered);
    let message = place.fails("decrypt --key files altered h");
    assert!(message.contains("does not authenticate"), "{message}");
    assert!(!place.path("h").exists());
    let output = place.output("decrypt --key files altered -");
    assert!(!output.status.success() && output.stdout.is_empty());
    for (command, why) in [
        ("encrypt --key files --raw f h", "no --raw for envelope"),
        ("encrypt --key files --mode envelope --raw f h", "no --raw for envelope"),
        ("encrypt --key files --aad-text x --mode envelope f h", "an envelope has a --header"),
        ("decrypt --key files --mode gcm f.envelope h", "a file in an envelope, not a sealed file"),
        ("decrypt --key files --mode envelope f h", "no file in an envelope"),
        ("key generate both --modes envelope,cmac", "envelope undoes cmac"),
    ] {
        let message = place.fails(command);
        assert!(message.contains(why), "{command}: {message}");
    }

    let log = String::from_utf8(place.read("try/node-1/audit.log")).expect("it is text");
    let header = format!("owner=client header=blake3:{}", blake3_of("accounts"));
    let begun = |line: &&str| line.contains(&header) && line.contains("\"begun\"");
    assert!(log.lines().filter(begun).count() >= 5, "{log}");
    assert!(log.contains("\"operation\":\"decrypt\",\"key\":\"files\""), "{log}");
}

fn blake3_of(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

#[test]
fn sealed_files_are_bound_to_additional_data_and_random_bytes_come() {
    let place = Place::new();
    let _cluster = place.cluster();
    place.run("key generate k");
    place.write("f", &noise(1000));
    place.write("aad", b"patient 7");
    place.run("encrypt --key k --aad-file aad f f.sealed");
    place.run(&format!("decrypt --key k --aad {} f.sealed g", hex::encode(b"patient 7")));
    assert_eq!(place.read("g"), noise(1000));
    assert!(place.fails("decrypt --key k f.sealed h").contains("give the same (--aad)"));
    assert!(place.fails("decrypt --key k --aad-text other f.sealed h").contains("does not authenticate"));
    place.run("encrypt --key k f plain.sealed");
    assert!(place.fails("decrypt --key k --aad-text x plain.sealed h").contains("without additional data"));
    place.run("decrypt --key k plain.sealed h");

    let (one, two) = (place.run("random 32 --hex"), place.run("random 32 --hex"));
    assert!(one.trim().len() == 64 && one != two, "{one}");
    place.run("random 1000 --out r");
    assert_eq!(place.read("r").len(), 1000);
    assert_eq!(place.pipe("random 77", b"").len(), 77);
    assert!(place.fails("random 0").contains("1 to 65536"));
}
