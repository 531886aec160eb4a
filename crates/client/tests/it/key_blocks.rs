//! Key blocks of TR-31 are made and taken as other programs do it, and only for what they allow.

use polyclave_api::{BlockHeader, Mode, NewKey, Origin, Reason, Right, Usage, Wrapping};

use crate::common::from_keys::{bytes, check_value, code, only_for, refused, wrappable};
use crate::common::messages::cmac;
use crate::common::tr31::{made, opened};
use crate::common::{TestCluster, active, data, key};
use polyclave_client::{Client, Error};

/// A key that protects key blocks.
fn kbpk(name: &str, cipher: &str) -> NewKey {
    NewKey { usage: vec![Usage::Wrap, Usage::Unwrap], ..key(name, cipher, &[Mode::Tr31]) }
}

fn secret(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(73) ^ seed).collect()
}

fn unauthentic(outcome: Result<impl std::fmt::Debug, Error>) {
    match outcome {
        Err(Error::Unauthentic(message)) => {
            assert!(message.starts_with("the key block does not authenticate"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}

/// ASC X9 TR 31-2018, sections A.7.2.2, A.7.3.2 and A.7.4: what the tests compare with is right.
#[test]
fn the_oracle_opens_the_blocks_of_the_standard() {
    for (kek, kbpk, block, head, key) in [
        (
            "3des-ede2",
            "DD7515F2BFC17F85CE48F3CA25CB21F6",
            "B0080P0TE00E000094B420079CC80BA3461F86FE26EFC4A3B8E4FA4C5F5341176EED7B727B8A248E",
            16,
            "3F419E1CB7079442AA37474C2EFBF8B8",
        ),
        (
            "3des-ede2",
            "1D22BF32387C600AD97F9B97A51311AC",
            "B0104B0TX12S0100KS1800604B120F9292800000BB68BE8680A400D9191AD4ECE45B6E6C0D21C4738A52190E248719E24B433627",
            40,
            "E8BC63E5479455E26577F715D587FE68",
        ),
        (
            "aes-256",
            "88E1AB2A2E3DD38C1FA039A536500CC8A87AB9D62DC92C01058FA79F44657DE6",
            "D0112P0AE00E0000B82679114F470F540165EDFBF7E250FCEA43F810D215F8D207E2E417C07156A27E8E31DA05F7425509593D03A457DC34",
            16,
            "3F419E1CB7079442AA37474C2EFBF8B8",
        ),
    ] {
        let (found, random) = opened(kek, &bytes(kbpk), block, head).expect("authentic");
        assert_eq!(found, bytes(key));
        assert_eq!(made(kek, &bytes(kbpk), &block[..head], &found, &random), block);
    }
}

/// Made by psec 1.3.0: blocks of version D whose keys are padded, with optional blocks and without; of
/// version B with two and three keys.
const BY_PSEC: [(&str, &str, &str, &str, Usage, &str); 6] = [
    (
        "aes-128",
        "000102030405060708090a0b0c0d0e0f",
        "aes-128",
        "00112233445566778899aabbccddeeff",
        Usage::Encrypt,
        "D0144D0AB00E0000F768EAA80206E28B610C1688E6851BEF400D10FF16BE0AEF9F5D56A6CF8C68975F4CD06A5DF8726033F398213613022178FC50E43712F8130EE93D9F7AD6DB50",
    ),
    (
        "aes-256",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "aes-256",
        "00112233445566778899aabbccddeeff000102030405060708090a0b0c0d0e0f",
        Usage::Mac,
        "D0144M6AC00S0000B1EF786F31902F548773BAF7BE841C1AD49684C844F38DF420CB365B8E56ED423507824907F4FE56BC2D0377A9CD4E0083EFADA5B043150DE5A5615D0C3C8A43",
    ),
    (
        "aes-192",
        "000102030405060708090a0b0c0d0e0f1011121314151617",
        "3des-ede3",
        "0123456789abcdeffedcba98765432100011223344556677",
        Usage::Encrypt,
        "D0112D0TB12N00009F88807992C3B2FDF5532D54CCF593C07DC8381F95C823ADDB99F566EF17C39CE59BF34EE971C1CB4DA86E5E7FAB8273",
    ),
    (
        "aes-128",
        "000102030405060708090a0b0c0d0e0f",
        "aes-128",
        "00112233445566778899aabbccddeeff",
        Usage::Decrypt,
        "D0144D0AD00E0200LB0Esome labelPB1200000000000000C1C2900C11BEA4387248DC9EC4E789E6E5A08A4E5B1D806D09FE8C2E8960C23334A14E65388FC9F386E3F9BBB08486F6",
    ),
    (
        "3des-ede2",
        "0123456789abcdeffedcba9876543210",
        "3des-ede2",
        "0011223344556677889900aabbccddee",
        Usage::Decrypt,
        "B0096D0TB00E00004DCE7FE703CE4DF06E4ED256EC75FECEFD90B3EFA8393402E54694799854959F9FE2FD8389F8AB3F",
    ),
    (
        "3des-ede3",
        "0123456789abcdeffedcba98765432100011223344556677",
        "3des-ede3",
        "8aabbccddeeff0011223344556677889900aabbccddee012",
        Usage::Encrypt,
        "B0120D0TB00E0100KS1800604B120F9292800000DCD4219BE8230A411384D72217E54C93E64224BDB5AB40714B34EA4F9625F0628E27ABCAD5F8A59A",
    ),
];

/// A key for one usage, with a mode that it takes.
fn for_usage(name: &str, cipher: &str, usage: Usage) -> NewKey {
    let mode = if usage == Usage::Mac { Mode::Cmac } else { Mode::Ctr };
    NewKey { usage: vec![usage], ..key(name, cipher, &[mode]) }
}

#[test]
fn blocks_of_another_program_become_keys() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (i, (kek, kbpk_bytes, cipher, secret, usage, block)) in BY_PSEC.into_iter().enumerate() {
        let (by, name) = (format!("psec-kbpk-{i}"), format!("psec-{i}"));
        client.import(kbpk(&by, kek), &bytes(kbpk_bytes)).expect("a key");
        let new = for_usage(&name, cipher, usage);
        let info = client.unwrap_block(&by, block.as_bytes(), new).expect("unwrapped");
        assert_eq!(info.origin, Origin::Unwrapped);
        assert_eq!(info.check_value, check_value(cipher, &bytes(secret)), "{block}");
    }
    assert_eq!(
        cmac(&client, "psec-1", &data(40)).expect("a code"),
        code("aes-256", &bytes(BY_PSEC[1].3), &data(40))
    );
}

/// Wraps a key in a block that the oracle opens, and unwraps it again.
fn travels(client: &Client, (kek, cipher): (&str, &str), settled: &dyn Fn()) {
    let len = |cipher: &str| match cipher {
        "des" => 8,
        "aes-128" | "3des-ede2" => 16,
        "aes-256" => 32,
        _ => 24,
    };
    let (by, name) = (format!("travel-kbpk-{kek}-{cipher}"), format!("travel-{kek}-{cipher}"));
    let (kbpk_bytes, secret) = (secret(len(kek), 0x2d), secret(len(cipher), 0x91));
    settled();
    client.import(kbpk(&by, kek), &kbpk_bytes).expect("a key");
    settled();
    let made = client.import(wrappable(&name, cipher, &[Mode::Ctr]), &secret).expect("a key");
    let header = BlockHeader::of(&made.properties).expect("it fits");
    settled();
    let block = client.wrap_block(&by, &name, header.clone()).expect("wrapped");
    let text = std::str::from_utf8(&block).expect("ASCII");
    let (found, random) = opened(kek, &kbpk_bytes, text, 16).expect("authentic");
    assert_eq!(found, secret, "{kek} {cipher}: parity bits as they come");
    assert!(random.iter().any(|byte| *byte != 0), "the length is hidden by random bytes");
    settled();
    let again = client.wrap_block(&by, &name, header).expect("wrapped");
    assert_ne!(again, block, "random bytes of its own");
    settled();
    let back = key(&format!("{name}-back"), cipher, &[Mode::Ctr]);
    let back = client.unwrap_block(&by, &block, back).expect("unwrapped");
    assert_eq!(back.check_value, made.check_value, "{kek} {cipher}");
    let mut altered = block.clone();
    altered[20] = if altered[20] == b'0' { b'1' } else { b'0' };
    settled();
    unauthentic(client.unwrap_block(&by, &altered, key(&format!("{name}-forged"), cipher, &[Mode::Ctr])));
}

#[test]
fn keys_leave_in_blocks_that_others_open_and_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for both in [
        ("aes-128", "aes-128"),
        ("aes-256", "aes-256"),
        ("aes-256", "3des-ede3"),
        ("aes-128", "des"),
        ("3des-ede3", "3des-ede2"),
        ("3des-ede2", "3des-ede3"),
        ("3des-ede3", "des"),
    ] {
        travels(&client, both, &|| ());
    }
}

#[test]
fn key_blocks_are_made_and_taken_under_shamir_active() {
    let cluster = active::start(128, &[]);
    travels(&cluster.client(), ("aes-128", "aes-128"), &|| active::fill(&cluster));
    travels(&cluster.client(), ("3des-ede2", "3des-ede2"), &|| active::fill(&cluster));
}

fn travels_among_two(protocol: &str) {
    let mut cluster = TestCluster::define_with(protocol, 2, 1);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    travels(&cluster.client(), ("aes-128", "aes-128"), &|| ());
}

#[test]
fn key_blocks_are_made_and_taken_under_spdz_tower() {
    travels_among_two("spdz-tower");
}

#[test]
fn key_blocks_are_made_and_taken_under_spdz_lt() {
    travels_among_two("spdz-lt");
}

#[test]
fn key_blocks_are_made_and_taken_under_tinytable_linear64() {
    travels_among_two("tinytable-linear64");
}

#[test]
fn blocks_that_are_cut_altered_or_under_another_key_make_no_key() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (secret, other) = (secret(16, 1), secret(16, 2));
    client.import(kbpk("forge-kbpk", "aes-128"), &secret).expect("a key");
    client.import(kbpk("forge-other-kbpk", "aes-128"), &other).expect("a key");
    client.import(kbpk("forge-b-kbpk", "3des-ede2"), &secret).expect("a key");
    let new = || key("forged-block", "aes-128", &[Mode::Gcm]);
    let good = made("aes-128", &secret, "D0000D0AB00E0000", &[7; 16], &[9; 30]);
    let take = |block: &str| client.unwrap_block("forge-kbpk", block.as_bytes(), new());
    let digits = good.len() - 16;
    for at in (0..digits).step_by(17) {
        let mut altered = good.clone().into_bytes();
        altered[16 + at] = if altered[16 + at] == b'F' { b'0' } else { b'F' };
        unauthentic(client.unwrap_block("forge-kbpk", &altered, new()));
    }
    // The header is authenticated, too: what it allows cannot be changed.
    for header in ["D0144D0AB00S0000", "D0144D0AB01E0000", "D0144D0AN00E0000"] {
        unauthentic(take(&format!("{header}{}", &good[16..])));
    }
    unauthentic(client.unwrap_block("forge-other-kbpk", good.as_bytes(), new()));
    for len in [0, 15, 16, 48, 80, 143] {
        refused(take(&good[..len]), Reason::Malformed, "key block");
    }
    refused(take(&good.replacen("D0144", "E0144", 1)), Reason::Malformed, "unknown version E");
    refused(take(&good.replacen("D0144", "A0144", 1)), Reason::Malformed, "withdrawn");
    refused(take(&good.replacen("D0144", "D0145", 1)), Reason::Malformed, "says that it has 145 characters");
    refused(take(&good.replacen("D0144D0", "D0144\u{1}0", 1)), Reason::Malformed, "not printable ASCII");
    refused(
        client.unwrap_block("forge-b-kbpk", good.as_bytes(), new()),
        Reason::Key,
        "another version than blocks under",
    );
    // Authentic, and the length in it is that of another key, or of none.
    let long = made("aes-128", &secret, "D0000D0AB00E0000", &[7; 24], &[9; 22]);
    refused(take(&long), Reason::Key, "a key of another length than aes-128 takes");
    assert!(client.info("forged-block").is_err(), "no key was made");
    take(&good).expect("the name is free, and this one authenticates");
}

#[test]
fn a_block_gives_and_takes_no_more_than_the_key_is_for() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let secret = secret(16, 3);
    client.import(kbpk("allow-kbpk", "aes-128"), &secret).expect("a key");
    client.import(kbpk("allow-b-kbpk", "3des-ede2"), &secret).expect("a key");
    let kw = only_for("allow-kw", "aes-128", &[Usage::Wrap, Usage::Unwrap]);
    client.generate(kw).expect("a key");
    let take = |head: &str, new: NewKey| {
        let block = made("aes-128", &secret, head, &[5; 16], &[6; 30]);
        client.unwrap_block("allow-kbpk", block.as_bytes(), new)
    };
    let both = || key("allow-both", "aes-128", &[Mode::Gcm]);
    refused(take("D0000D0AD00E0000", both()), Reason::Key, "does not allow the usage encrypt");
    refused(take("D0000P0AB00E0000", both()), Reason::Key, "no use for a key of usage P0");
    refused(take("D0000M6AC00E0000", both()), Reason::Key, "does not allow the usage");
    refused(take("D0000D0TB00E0000", both()), Reason::Key, "the algorithm T");
    refused(
        take("D0000D0AB00N0000", wrappable("allow-out", "aes-128", &[Mode::Gcm])),
        Reason::Key,
        "not be exported",
    );
    take("D0000D0AB00N0000", key("allow-in", "aes-128", &[Mode::Gcm])).expect("it stays");
    take("D0000D0AB00E0000", wrappable("allow-out", "aes-128", &[Mode::Gcm])).expect("it may leave");

    let header = |text: &str| BlockHeader {
        usage: text.as_bytes()[..2].try_into().expect("two"),
        mode_of_use: text.as_bytes()[2],
        key_version: *b"00",
        exportability: b'E',
    };
    let decrypts =
        NewKey { usage: vec![Usage::Decrypt], ..wrappable("allow-decrypt", "aes-128", &[Mode::Ctr]) };
    client.generate(decrypts).expect("a key");
    refused(client.wrap_block("allow-kbpk", "allow-decrypt", header("D0B")), Reason::Key, "allows more");
    client.wrap_block("allow-kbpk", "allow-decrypt", header("D0D")).expect("what it is for");
    refused(
        client.wrap_block("allow-kbpk", "allow-in", header("D0B")),
        Reason::NotForThis,
        "never leaves the nodes",
    );
    refused(
        client.wrap_block("allow-kw", "allow-out", header("D0B")),
        Reason::Key,
        "not made for key blocks",
    );
    refused(client.wrap("allow-kbpk", "allow-out", Wrapping::Kw), Reason::NotForThis, "for key blocks only");
    let aes_under_des = client.wrap_block("allow-b-kbpk", "allow-out", header("D0B"));
    refused(aes_under_des, Reason::Key, "not protected by one of Triple DES");
    client.generate(wrappable("allow-long", "aes-256", &[Mode::Gcm])).expect("a key");
    refused(client.wrap_block("allow-kbpk", "allow-long", header("D0B")), Reason::Key, "too long");
    let mixed = NewKey { usage: vec![Usage::Encrypt, Usage::Wrap], ..kbpk("allow-mixed", "aes-128") };
    refused(client.generate(mixed), Reason::Key, "no usage except wrap and unwrap");

    let without = cluster.client_with("without-wrap", &[Right::Encrypt, Right::Unwrap], &["*"]);
    assert!(matches!(
        without.wrap_block("allow-kbpk", "allow-out", header("D0B")),
        Err(Error::Refused { .. })
    ));
}
