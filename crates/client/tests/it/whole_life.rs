//! What a key goes through in years, under every kind of protocol: versions, fresh shares, a node that comes
//! back from its backup.

use polyclave_api::Mode;

use crate::common::messages::{decrypt_siv, encrypt_siv, gcm, ungcm};
use crate::common::{TestCluster, insist, key};
use polyclave_client::Client;

/// Something encrypted under the current versions of both keys.
struct Letters {
    version: u32,
    gcm: Vec<u8>,
    siv: Vec<u8>,
}

impl Letters {
    fn write(client: &Client, version: u32) -> Letters {
        let text = text(version);
        let gcm = insist(&|| gcm(client, "letters", b"to", &text));
        let siv = insist(&|| encrypt_siv(client, "names", &[b"to".to_vec()], &text));
        Letters { version, gcm, siv }
    }

    fn are_read(&self, client: &Client) {
        let Letters { version, gcm, siv } = self;
        let read = insist(&|| ungcm(client, &format!("letters@{version}"), b"to", gcm));
        assert_eq!(read, text(*version));
        let read = insist(&|| decrypt_siv(client, &format!("names@{version}"), &[b"to".to_vec()], siv));
        assert_eq!(read[..], text(*version));
    }
}

fn text(version: u32) -> Vec<u8> {
    format!("a letter under version {version}").into_bytes()
}

fn live(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(256, 0);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    insist(&|| client.generate(key("letters", "aes-128", &[Mode::Gcm])));
    insist(&|| client.generate(key("names", "aes-128", &[Mode::Siv])));
    let mut letters = vec![Letters::write(&client, 1)];
    for name in ["letters", "names"] {
        assert_eq!(insist(&|| client.rotate(name)).version, 2);
    }
    letters.push(Letters::write(&client, 2));

    cluster.refresh();
    let client = cluster.client();
    letters.iter().for_each(|letters| letters.are_read(&client));
    for name in ["letters", "names"] {
        assert_eq!(insist(&|| client.rotate(name)).version, 3);
    }
    letters.push(Letters::write(&client, 3));

    cluster.restore_from_backup(nodes - 1);
    let client = cluster.client();
    letters.iter().for_each(|letters| letters.are_read(&client));
    for name in ["letters", "names"] {
        assert_eq!(insist(&|| client.rotate(name)).version, 4);
    }
    Letters::write(&client, 4).are_read(&client);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_shamir() {
    live("shamir", 3);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_shamir_active() {
    live("shamir-active", 4);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_replicated() {
    live("replicated", 3);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_replicated_active() {
    live("replicated-active", 3);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_replicated_four() {
    live("replicated-four", 4);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_spdz_lt() {
    live("spdz-lt", 2);
}

#[test]
fn all_versions_live_through_a_refresh_and_a_restored_node_under_tinytable_linear64() {
    live("tinytable-linear64", 2);
}
