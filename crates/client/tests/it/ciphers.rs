//! Every cipher of the catalog that has a key, at nodes under every protocol of the catalog that serves.

use polyclave_api::Mode;
use polyclave_cipher::{AnyMap, Cells, Cipher, Direction, catalog, cleartext, compile};
use polyclave_client::{Client, Error, Padding};
use polyclave_config::StockSettings;
use polyclave_protocol::catalog as protocols;
use polyclave_protocol::protocol::Adversary;
use polyclave_protocol::stock::Transfers;

use crate::common::messages::{ctr, unctr};
use crate::common::{TestCluster, active, data, key};

/// One cipher for each width of tables: what there is to try where the stocks of nodes are dear.
const ONE_OF_EACH_WIDTH: [&str; 5] = ["aes-128", "3des-ede3", "skinny-64-128", "skinny-128-128", "craft"];

/// The tweak of the first of some blocks; a carry goes through the next ones.
const TWEAK: [u8; 8] = [0x80, 1, 2, 3, 4, 5, 0xff, 0xfe];

#[test]
fn every_cipher_is_served_under_every_protocol_that_serves() {
    for protocol in protocols::serving() {
        let nodes = protocol.usual_parties;
        let mut cluster = TestCluster::define_with(protocol.name, nodes, protocol.threshold.most(nodes));
        (0..nodes).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let client = cluster.client();
        let has_stock = !cluster.nodes[0].as_ref().expect("it runs").status().stock.is_empty();
        let is_dear = protocol.adversary == Adversary::Abort;
        for cipher in catalog::all().into_iter().filter(|cipher| cipher.key_bytes > 0) {
            if is_dear && !ONE_OF_EACH_WIDTH.contains(&&*cipher.name) {
                continue;
            }
            // Under `shamir` few blocks go by masked tables and many by polynomials.
            let blocks = if has_stock { &[2][..] } else { &[2, 40] };
            for blocks in blocks {
                let fill = || has_stock.then(|| active::fill(&cluster));
                single_blocks_are_right(&client, &cipher, *blocks, protocol.name, fill);
            }
        }
    }
}

/// What nodes of more than two make for `spdz-tower`.
#[test]
fn three_nodes_serve_under_the_tower() {
    let mut cluster = TestCluster::define_with("spdz-tower", 3, 2);
    cluster.set_stock(64, 2);
    (0..3).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let cipher = catalog::find("aes-128").expect("listed");
    let fill = || {
        active::fill(&cluster);
        Some(())
    };
    single_blocks_are_right(&cluster.client(), &cipher, 2, "spdz-tower", fill);
}

/// So much stock that each run makes batches of silent transfers.
#[test]
fn two_nodes_serve_under_the_tower_with_transfers_that_send_less() {
    for transfers in [Transfers::Silent, Transfers::Small] {
        let mut cluster = TestCluster::define_with("spdz-tower", 2, 1);
        cluster.set_stock_settings(&StockSettings { transfers, ..StockSettings::of(2048, 2) });
        (0..2).for_each(|node| cluster.restart(node));
        cluster.wait_until_ready();
        let cipher = catalog::find("aes-128").expect("listed");
        let fill = || {
            active::fill(&cluster);
            Some(())
        };
        single_blocks_are_right(&cluster.client(), &cipher, 40, "spdz-tower", fill);
    }
}

/// Imports a key and compares what nodes compute with what the circuit gives in the clear.
fn single_blocks_are_right(
    client: &Client,
    cipher: &Cipher,
    blocks: usize,
    protocol: &str,
    fill: impl Fn() -> Option<()>,
) {
    let what = format!("{blocks} blocks of {} under {protocol}", cipher.name);
    let name = format!("{}-{blocks}", cipher.name);
    let (tweak, secret) = (&TWEAK[..cipher.tweak_bytes], (1..=cipher.key_bytes as u8).collect::<Vec<_>>());
    let plain = data(blocks * cipher.block_bytes);
    fill();
    client.import(key(&name, &cipher.name, &[Mode::Ecb]), &secret).expect(&what);
    fill();
    let handle = client.key(&name).expect(&what);
    let ecb = || handle.ecb().tweak(tweak).padding(Padding::None);
    let ciphertext = ecb().encrypt(&plain).expect(&what);
    assert!(ciphertext == in_the_clear(cipher, &tweaks(tweak, blocks), &plain, &secret), "{what}");
    fill();
    let back = ecb().decrypt(&ciphertext).expect(&what);
    assert!(*back == plain, "{what}");
}

/// The tweaks of consecutive blocks.
fn tweaks(first: &[u8], blocks: usize) -> Vec<u8> {
    let Ok(first) = first.try_into().map(u64::from_be_bytes) else { return Vec::new() };
    (0..blocks as u64).flat_map(|i| (first + i).to_be_bytes()).collect()
}

fn in_the_clear(cipher: &Cipher, tweaks: &[u8], blocks: &[u8], secret: &[u8]) -> Vec<u8> {
    let circuit = cipher.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
    let inputs = [blocks, tweaks, secret].into_iter().filter(|bytes| !bytes.is_empty());
    let cells =
        circuit.inputs().iter().zip(inputs).map(|(port, bytes)| {
            Cells::from_blocks(port.cells.len(), port.bits, bytes).expect("whole blocks")
        });
    let (cells, lanes) = (cells.collect::<Vec<_>>(), blocks.len() / cipher.block_bytes);
    let compiled = compile(&circuit, &AnyMap);
    cleartext::run(&compiled, lanes, &cells).expect("the inputs fit").remove(0).to_blocks()
}

/// In counter mode the tweak counts, and the block stays the same in a message.
#[test]
fn counter_mode_counts_the_tweak() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for name in ["mantis7", "craft"] {
        let cipher = catalog::find(name).expect("the catalog has it");
        let secret: Vec<u8> = (1..=cipher.key_bytes as u8).collect();
        client.import(key(&format!("stream-{name}"), name, &[Mode::Ctr]), &secret).expect("a key");
        let message = data(2 * 8 + 3);
        let (start, ciphertext) = ctr(&client, &format!("stream-{name}"), &message).expect("encrypted");
        let (tweak, block) = start.split_at(8);
        let keystream = in_the_clear(&cipher, &tweaks(tweak, 3), &block.repeat(3), &secret);
        let expected: Vec<u8> = message.iter().zip(&keystream).map(|(m, k)| m ^ k).collect();
        assert_eq!(ciphertext, expected);
        let back = unctr(&client, &format!("stream-{name}"), &start, &ciphertext).expect("decrypted");
        assert_eq!(back, message);
        let (again, _) = ctr(&client, &format!("stream-{name}"), &message).expect("encrypted");
        assert!(again[..8] != start[..8] && again[8..] != start[8..], "both are fresh for each message");
    }
}

#[test]
fn wrong_tweaks_are_refused_before_nodes_are_asked() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("addressed", "mantis7", &[Mode::Ecb])).expect("a key");
    client.generate(key("not-addressed", "skinny-64-128", &[Mode::Ecb])).expect("a key");
    let message = |name: &str, tweak: &[u8]| {
        let key = client.key(name).expect("a key");
        let refused = key.ecb().tweak(tweak).padding(Padding::None).encrypt(&[0; 8]);
        match refused.expect_err("refused") {
            Error::Misuse(message) => message,
            other => panic!("{other}"),
        }
    };
    assert!(
        message("addressed", &[]).contains("takes a tweak of 8 bytes with each block; 0 bytes were given")
    );
    assert!(message("addressed", &[0; 16]).contains("16 bytes were given"));
    assert!(message("not-addressed", &[0; 8]).contains("takes no tweak"));
    let key = client.key("addressed").expect("a key");
    let wraps = key.ecb().tweak(&[255; 8]).padding(Padding::None).encrypt(&[0; 16]);
    assert!(wraps.expect_err("refused").to_string().contains("the tweak would wrap around"));
}
