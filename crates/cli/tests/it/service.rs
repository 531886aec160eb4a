//! The service as a person runs it: nodes and clients on the command line.

use crate::common::{Place, Running, free_ports, mode, noise};

#[test]
fn three_terminals_make_a_cluster_and_rights_hold() {
    let place = Place::new();
    let ports = free_ports(6);
    let names = ["alpha", "beta", "gamma"];
    for (name, ports) in names.iter().zip(ports.chunks(2)) {
        let card = place.run(&format!(
            "node init {name} --name {name} --address 127.0.0.1:{} --client-address 127.0.0.1:{} --http none",
            ports[0], ports[1]
        ));
        assert_eq!(card.trim(), String::from_utf8_lossy(&place.read(&format!("{name}/card.toml"))).trim());
        for private in ["identity.key", "secret.key"] {
            assert_eq!(mode(&place.path(name).join(private)), 0o600);
        }
    }
    place.run("cluster define --threshold 1 --out c.toml alpha/card.toml beta/card.toml gamma/card.toml");
    place.run("client init alice --name alice --cluster c.toml");
    for name in names {
        assert!(place.fails(&format!("node run {name}")).contains("belongs to no cluster"));
        place.run(&format!("node join {name} c.toml"));
        place.run(&format!(
            "node allow {name} alice/card.toml --rights generate,encrypt,list --keys report-*"
        ));
        assert_eq!(place.output(&format!("node status {name}")).status.code(), Some(1), "it does not run");
    }
    let nodes: Vec<Running> = names.iter().map(|name| place.start(&format!("node run {name}"))).collect();
    for (node, name) in nodes.iter().zip(names) {
        let message = node.wait_for(&format!("node {name} is ready"));
        assert!(message.contains("passive, at most 1 of 3"), "{message}");
        assert_eq!(mode(&place.path(name).join("admin.sock")), 0o600);
    }
    let status: serde_json::Value =
        serde_json::from_str(&place.run("node status beta --json")).expect("it is JSON");
    assert_eq!((&status["ready"], &status["party"]), (&true.into(), &2.into()));

    place.run("key generate report-1 --client alice");
    place.write("f", b"a report");
    place.run("encrypt --key report-1 --client alice f f.sealed");
    let denied = place.fails("decrypt --key report-1 --client alice f.sealed g");
    assert!(denied.contains("does not allow alice to decrypt"), "{denied}");
    assert!(place.fails("key generate other --client alice").contains("does not allow alice to generate"));
    assert!(!place.path("g").exists());

    for name in names {
        place.run(&format!("node allow {name} alice/card.toml --rights decrypt --keys *"));
    }
    place.until("the new rights are taken", || {
        place.output("decrypt --key report-1 --client alice f.sealed g").status.success()
    });
    assert_eq!((place.read("g"), mode(&place.path("g"))), (b"a report".to_vec(), 0o600));
    for name in names {
        place.run(&format!("node revoke {name} alice"));
    }
    place.until("the client is not let in", || {
        !place.output("decrypt --key report-1 --client alice f.sealed - --force").status.success()
    });
    for (node, name) in nodes.into_iter().zip(names) {
        node.end();
        assert!(!place.path(name).join("admin.sock").exists());
    }
}

#[test]
fn files_come_back_and_what_was_altered_leaves_nothing_behind() {
    let place = Place::new();
    let story = place.run("cluster new try --parties 3 --threshold 1");
    assert!(
        story.contains("separates no trust") && story.contains("polyclave node run try/node-1"),
        "{story}"
    );
    let cluster = place.start("cluster run try");
    cluster.wait_for("all 3 nodes are ready");
    place.run("key generate k");
    for len in [0, 1, 300_000] {
        place.write("f", &noise(len));
        place.run("encrypt --force --key k f f.sealed");
        place.run("decrypt --force --key k f.sealed g");
        assert_eq!(place.read("g"), noise(len));
    }
    assert!(place.fails("decrypt --key k f.sealed g").contains("is there already"));
    assert_eq!(place.read("g"), noise(300_000));
    let sealed = place.pipe("encrypt --key k -", &noise(70_000));
    assert_eq!(place.pipe("decrypt --key k - -", &sealed), noise(70_000));

    let whole = place.read("f.sealed");
    let before = place.names();
    let chunk = 64 + (256 << 10) + 16;
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    for broken in [altered, whole[..whole.len() - 1].to_vec(), whole[..chunk].to_vec(), whole[..40].to_vec()]
    {
        place.write("f.sealed", &broken);
        place.fails("decrypt --key k f.sealed h");
        assert_eq!(place.names(), before, "nothing is left of it");
    }
    assert!(place.fails("encrypt --key nope f h").contains("there is no key 'nope'"));
    assert!(place.fails("encrypt --key k --mode ctr f h").contains("authenticates nothing"));
    assert!(place.fails("encrypt --key k --mode ctr --raw f h").contains("was made for gcm"));
    assert!(place.fails("key generate k").contains("already"));
    assert!(place.fails("key delete k").contains("--yes"));
    assert_eq!(place.names(), before);

    let raw = place.pipe("encrypt --key k --raw --aad 0102 - -", &noise(5000));
    assert_eq!(raw.len(), 12 + 5000 + 16);
    assert_eq!(place.pipe("decrypt --key k --raw --aad 0102 - -", &raw), noise(5000));
    place.write("raw", &raw);
    assert!(place.fails("decrypt --key k --raw raw h").contains("does not authenticate"));

    let before = place.names();
    for signal in ["-INT", "-TERM", "-KILL"] {
        let mut waiting = place.start("encrypt --key k /dev/stdin h");
        place.until("it has begun to write", || waiting.has_open("h") || place.names() != before);
        waiting.signal(signal);
        waiting.wait_until_gone();
        if signal == "-KILL" && place.names() != before {
            // A file system on which a file on its way has a name: who writes there next takes it away.
            place.run("encrypt --key k f h");
            std::fs::remove_file(place.path("h")).expect("removed");
        }
        assert_eq!(place.names(), before, "nothing is left of it");
    }

    // Empty files, and those that are too short.
    place.write("empty", b"");
    place.run("key generate chained --modes cbc");
    place.run("encrypt --key chained --mode cbc --raw --no-padding empty empty.cbc");
    assert_eq!(place.read("empty.cbc").len(), 16, "an initial block and nothing");
    place.run("decrypt --key chained --mode cbc --raw --no-padding empty.cbc empty.again");
    assert_eq!(place.read("empty.again"), b"");
    let message = place.fails("decrypt --key chained --mode cbc --raw empty h");
    assert!(
        message.contains("shorter than the initial block") && !message.contains("whole buffer"),
        "{message}"
    );
    place.run("key delete chained --yes");

    place.run("key delete k --yes");
    assert_eq!(place.run("key list --json").trim(), "[]");
    cluster.end();
    assert!(!place.path("try/node-1/admin.sock").exists(), "the nodes have ended, too");
}

#[test]
fn a_pipe_is_begun_anew_if_a_node_is_killed_under_it_and_again_when_it_is_back() {
    let place = Place::new();
    place.run("cluster new try --parties 5 --threshold 1");
    let start = |n: usize| place.start(&format!("node run try/node-{n} --log error"));
    let mut nodes: Vec<Running> = (1..=5).map(start).collect();
    nodes.iter().for_each(|node| drop(node.wait_for("is ready")));
    place.run("key generate k --modes ctr");
    let message = noise(3 << 17);
    let (first, rest) = message.split_at(message.len() - 1000);
    let piped = |kill: &mut dyn FnMut()| {
        let mut encrypting = place.start("encrypt --force --key k --mode ctr --raw - sealed");
        encrypting.feed(first);
        // It waits for the rest, in the middle of its request.
        std::thread::sleep(std::time::Duration::from_secs(2));
        kill();
        encrypting.feed(rest);
        assert!(encrypting.finish());
        place.run("decrypt --force --key k --mode ctr --raw sealed opened");
        assert!(place.read("opened") == message);
    };
    piped(&mut || {
        nodes[0].signal("-KILL");
        nodes[0].wait_until_gone();
    });
    nodes[0] = start(1);
    // While it comes back another one goes.
    piped(&mut || {
        nodes[1].signal("-KILL");
        nodes[1].wait_until_gone();
    });
}

#[test]
fn nodes_end_with_a_cluster_that_was_killed() {
    let place = Place::new();
    let cluster = place.cluster();
    assert!(place.run("node status try/node-3").contains("ready      yes"));
    cluster.signal("-KILL");
    for n in 1..=3 {
        place.until("the nodes end", || !place.path(&format!("try/node-{n}/admin.sock")).exists());
    }
    // The socket is gone a moment before the store is free.
    std::thread::sleep(std::time::Duration::from_secs(4));
    let output = place.output("node status try/node-3");
    assert!(String::from_utf8_lossy(&output.stdout).contains("is not running"));
    drop(cluster);
    // What a killed node leaves is no obstacle.
    let node = place.start("node run try/node-2");
    node.wait_for("passive");
    node.signal("-KILL");
    drop(node);
    assert!(place.path("try/node-2/admin.sock").exists());
    place.start("cluster run try").wait_for("all 3 nodes are ready");
}

/// Runs `openssl`; none if it is not installed.
fn openssl(place: &Place, arguments: &str) -> Option<String> {
    let command = std::process::Command::new("openssl")
        .args(arguments.split_whitespace())
        .current_dir(place.path("."))
        .output();
    match command {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Err(_) => {
            eprintln!("skipped: openssl is not installed");
            None
        }
    }
}

#[test]
fn openssl_reads_what_is_written_and_writes_what_is_read() {
    let place = Place::new();
    if openssl(&place, "version").is_none() {
        return;
    }
    let _cluster = place.cluster();
    let aes = "2b7e151628aed2a6abf7158809cf4f3c";
    let des = "0123456789abcdef23456789abcdef01456789abcdef0123";
    let cases = [
        ("aes-128", "cbc", "aes-128-cbc", aes, 333),
        ("aes-128", "ctr", "aes-128-ctr", aes, 1001),
        ("aes-128", "ecb", "aes-128-ecb", aes, 160),
        ("3des-ede3", "cbc", "des-ede3-cbc", des, 50),
    ];
    for (cipher, mode_of, theirs, key, len) in cases {
        let name = format!("{cipher}-{mode_of}");
        place.write("key.hex", key.as_bytes());
        chmod(&place, "key.hex", 0o644);
        let import = format!("key import {name} --cipher {cipher} --modes {mode_of} --key-file key.hex");
        assert!(place.fails(&import).contains("chmod 600"));
        chmod(&place, "key.hex", 0o600);
        place.run(&import);
        place.write("f", &noise(len));
        let ours = format!("--key {name} --mode {mode_of} --raw --force");

        let has_iv = mode_of != "ecb";
        let iv_out = if has_iv { "--iv-out iv" } else { "" };
        let said = place.output(&format!("encrypt {ours} {iv_out} f c"));
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        assert!(String::from_utf8_lossy(&said.stderr).contains("authenticates nothing"));
        let iv = if has_iv { String::from_utf8(place.read("iv")).expect("hex") } else { String::new() };
        let their_iv = if has_iv { format!("-iv {}", iv.trim()) } else { String::new() };
        openssl(&place, &format!("enc -d -{theirs} -K {key} {their_iv} -in c -out g"));
        assert_eq!(place.read("g"), noise(len), "openssl reads {name}");

        let iv = if cipher == "aes-128" { "00112233445566778899aabbfffffffe" } else { "0011223344556677" };
        let their_iv = if has_iv { format!("-iv {iv}") } else { String::new() };
        openssl(&place, &format!("enc -{theirs} -K {key} {their_iv} -in f -out c"));
        let our_iv = if has_iv { format!("--iv {iv}") } else { String::new() };
        place.run(&format!("decrypt {ours} {our_iv} c g"));
        assert_eq!(place.read("g"), noise(len), "openssl writes {name}");

        // The initial block in front, without --iv-out and --iv.
        let both = place.pipe(&format!("encrypt {ours} -"), &noise(len));
        assert_eq!(place.pipe(&format!("decrypt {ours} -"), &both), noise(len));
    }
    place.run("key import tags --modes cmac --key-file key.hex --cipher 3des-ede3");
    place.write("key.hex", aes.as_bytes());
    place.run("key import aes-tags --modes cmac --key-file key.hex");
    for len in [0, 16, 100] {
        place.write("f", &noise(len));
        let ours = place.run("mac --key aes-tags f").trim().to_owned();
        let theirs = openssl(&place, &format!("mac -cipher AES-128-CBC -macopt hexkey:{aes} -in f CMAC"));
        assert_eq!(ours, theirs.expect("it is installed").to_lowercase());
        place.run(&format!("mac --key aes-tags f --verify {ours}"));
        place.run("mac --key aes-tags f code --force");
        assert_eq!(hex::encode(place.read("code")), ours);
        place.write("f", &noise(len + 1));
        assert!(place.fails(&format!("mac --key aes-tags f --verify {ours}")).contains("does not fit"));
    }
}

/// The vector of the paper (Beierle et al. 2016, appendix B.2), and two blocks that continue from its tweak.
#[test]
fn a_tweak_is_the_address_of_a_block() {
    let place = Place::new();
    let _cluster = place.cluster();
    place.write("key.hex", b"92f09952c625e3e9d7a060f714c0292b");
    chmod(&place, "key.hex", 0o600);
    place.run("key import m --cipher mantis7 --modes ecb,ctr --key-file key.hex");
    let block = hex::decode("60e43457311936fd").expect("hex");
    let ours = "--key m --mode ecb --raw --no-padding --tweak";
    let ciphertext = place.pipe(&format!("encrypt {ours} ba912e6f1055fed2 -"), &block);
    assert_eq!(hex::encode(&ciphertext), "308e8a07f168f517");
    let two = place.pipe(&format!("encrypt {ours} ba912e6f1055fed1 -"), &block.repeat(2));
    assert_eq!(two[8..], ciphertext, "the second block has the next tweak");
    assert_eq!(place.pipe(&format!("decrypt {ours} ba912e6f1055fed1 -"), &two), block.repeat(2));
    place.write("f", &block);
    let without = place.fails("encrypt --key m --mode ecb --raw --no-padding f c");
    assert!(without.contains("takes a tweak of 8 bytes with each block"), "{without}");
    assert!(place.fails("encrypt --key m --mode ctr --raw --tweak 00 f c").contains("--tweak is for ecb"));
    let stream = place.pipe("encrypt --key m --mode ctr --raw -", &noise(100));
    assert_eq!(stream.len(), 8 + 8 + 100, "the first tweak, the block, the ciphertext");
    assert_eq!(place.pipe("decrypt --key m --mode ctr --raw -", &stream), noise(100));
    assert!(
        place.fails("key generate n --cipher craft --modes cbc").contains("only ctr and ecb give, not cbc")
    );
}

fn chmod(place: &Place, name: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(place.path(name), permissions).expect("set");
}

#[test]
fn a_node_comes_back_from_a_backup_once_its_peers_readmit_it() {
    let place = Place::new();
    place.run("cluster new try");
    let start = |n: usize| place.start(&format!("node run try/node-{n} --log error"));
    let (one, two, three) = (start(1), start(2), start(3));
    [&one, &two, &three].iter().for_each(|node| drop(node.wait_for("is ready")));
    place.run("key generate k");
    place.write("f", &noise(1000));
    place.run("encrypt --key k f f.sealed");
    place.run("node backup try/node-2 backup --key backup.key");
    assert_eq!((mode(&place.path("backup")), mode(&place.path("backup.key"))), (0o600, 0o600));
    two.end();
    // Its peers see a start that the backup knows nothing of.
    let two = start(2);
    two.wait_for("is ready");
    two.end();
    place.run("node backup try/node-2 stopped --key backup.key");
    std::fs::rename(place.path("try/node-2"), place.path("lost")).expect("moved");

    place.write("other.key", hex::encode([7; 32]).as_bytes());
    chmod(&place, "other.key", 0o600);
    place.fails("node restore backup try/node-2 --key other.key");
    assert!(!place.path("try/node-2").exists());
    place.run("node restore backup try/node-2 --key backup.key");
    let two = start(2);
    two.wait_for("passive");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let status = place.output("node status try/node-1");
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("missing    node-2"), "{status}");
    place.run("node readmit try/node-1 node-2");
    place.run("node readmit try/node-3 node-2");
    assert!(place.fails("node readmit try/node-3 node-9").contains("no node 'node-9'"));
    place.until("the nodes work together again", || {
        place.output("decrypt --key k f.sealed g --force").status.success()
    });
    assert_eq!(place.read("g"), noise(1000));
    for node in [one, two, three] {
        node.end();
    }
}

#[test]
fn what_was_changed_in_the_audit_log_shows() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate k");
    place.fails("encrypt --key nope try/cluster.toml x");
    assert!(place.run("node audit verify try/node-1").contains("none is missing"));
    let shown = place.run("node audit show try/node-1");
    assert!(shown.lines().any(|line| line.contains("generate") && line.contains("done")), "{shown}");
    cluster.end();
    let log = String::from_utf8(place.read("try/node-1/audit.log")).expect("it is text");
    let lines: Vec<&str> = log.lines().collect();
    let without_the_end = lines[..lines.len() - 1].join("\n") + "\n";
    for (tampered, message) in
        [(log.replacen("generate", "generale", 1), "tampered with"), (without_the_end, "cut off")]
    {
        place.write("try/node-1/audit.log", tampered.as_bytes());
        let error = place.fails("node audit verify try/node-1");
        assert!(error.contains(message), "{error}");
        let error = place.fails("node run try/node-1");
        assert!(error.contains(message), "{error}");
    }
    place.run("node audit renew try/node-1");
    assert!(place.run("node audit show try/node-1").contains("renewed"));
    place.run("node audit verify try/node-1");
    place.start("cluster run try").wait_for("all 3 nodes are ready");
}

#[test]
fn a_node_changes_its_certificate_without_a_moment_in_which_nobody_knows_it() {
    let place = Place::new();
    let cluster = place.cluster();
    place.run("key generate k");
    place.write("f", &noise(100));
    place.run("encrypt --key k f f.sealed");
    let all = |file: &str| {
        (1..=3).for_each(|n| drop(place.run(&format!("node join try/node-{n} {file}"))));
        place.run(&format!("client join try/client {file}"));
    };
    place.run("node rotate try/node-2");
    assert!(place.fails("node rotate try/node-2").contains("already being changed"));
    place.run("cluster update try/cluster.toml try/node-2/card.toml");
    all("try/cluster.toml");
    cluster.end();
    let cluster = place.cluster_again();
    place.run("decrypt --key k f.sealed g");
    cluster.end();
    place.run("node rotate try/node-2 --finish --anyway");
    let cluster = place.cluster_again();
    place.run("decrypt --key k f.sealed g --force");
    place.run("cluster update try/cluster.toml try/node-2/card.toml");
    all("try/cluster.toml");
    cluster.end();
    let _cluster = place.cluster_again();
    place.run("decrypt --key k f.sealed g --force");
    assert_eq!(place.read("g"), noise(100));
}

#[test]
fn a_new_cluster_takes_the_ports_that_are_named() {
    let place = Place::new();
    place.run("cluster new try --parties 3 --first-port 31000");
    for (node, first) in [(1, 31_000), (2, 31_003), (3, 31_006)] {
        let settings = String::from_utf8(place.read(&format!("try/node-{node}/node.toml"))).expect("text");
        for port in first..first + 3 {
            assert!(settings.contains(&format!("127.0.0.1:{port}")), "{port} in {settings}");
        }
    }
    let message = place.fails("cluster new more --parties 3 --first-port 65530");
    assert!(message.contains("3 nodes take 9 ports") && message.contains("from 1 to 65527"), "{message}");
}
