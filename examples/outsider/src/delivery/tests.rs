use std::time::Duration;

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes128Gcm, Nonce};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};
use rsa::pkcs8::DecodePrivateKey;
use rsa::{Pkcs1v15Encrypt, PrivateKey};

use super::*;
use crate::bids::bid;
use crate::protocols::{PROTOCOLS, THRESHOLD, service};
use crate::receiver::generate;

fn node(protocol: &str, receiver: &PublicKey, bid: &[u8], net: &mut dyn Net) -> Result<Report> {
    let config = service(protocol, net.parties(), THRESHOLD)?;
    let structure = Structure::new(net.parties(), THRESHOLD)?;
    deliver(&config, structure, receiver, bid, net, &Meter::default())
}

/// All nodes; the first one commits a fault.
fn run(protocol: &str, receiver: &PublicKey, amounts: &[u32], at: u64) -> Vec<Result<Report>> {
    let n = amounts.len();
    let nets = mesh_with_timeout(n, Duration::from_secs(20)).into_iter().map(|net| {
        let at = if net.me() == Party(0) { at } else { u64::MAX };
        Tamper::new(net, at, Fault::FlipBit { byte: 0, bit: 1 })
    });
    std::thread::scope(|scope| {
        let threads = nets.map(|mut net| {
            let bid = bid(net.me().index() + 1, amounts[net.me().index()]).expect("it fits");
            scope.spawn(move || node(protocol, receiver, &bid, &mut net))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

fn pair() -> (PrivateKey, PublicKey) {
    let (private, public) = generate(2048).expect("a key is made");
    let private = PrivateKey::from_pkcs8_pem(&private).expect("it was just written");
    (private, PublicKey::from_pem(&public).expect("it was just written"))
}

#[test]
fn receiver_gets_the_lowest_bid_and_other_keys_get_nothing() {
    let ((private, public), (other, _)) = (pair(), pair());
    for protocol in PROTOCOLS {
        let reports = run(protocol, &public, &[900, 700, 800, 701], u64::MAX);
        let reports: Vec<Report> = reports.into_iter().map(|r| r.expect("honest nodes finish")).collect();
        let delivery = &reports[0].delivery;
        assert!(reports.iter().all(|report| report.delivery == *delivery));
        let key = private.decrypt(Pkcs1v15Encrypt, &delivery.key).expect("the padding is right");
        let cipher = Aes128Gcm::new_from_slice(&key).expect("16 bytes");
        let nonce = Nonce::try_from(&delivery.nonce[..]).expect("12 bytes");
        let mut sealed = [&delivery.ciphertext[..], &delivery.tag].concat();
        assert_eq!(
            cipher.decrypt(&nonce, &sealed[..]).expect("the tag is right"),
            **bid(2, 700).expect("it fits")
        );
        sealed[3] ^= 1;
        assert!(cipher.decrypt(&nonce, &sealed[..]).is_err());
        assert_ne!(other.decrypt(Pkcs1v15Encrypt, &delivery.key).ok(), Some(key));
    }
}

/// The first node's messages before its inputs: 6 of the hello, 3 of the setup, 6 for keys of sets, 3 for
/// material. The first byte of an input is the share of its first cell as it is; others are of images of it.
#[test]
fn member_that_puts_in_another_part_of_the_key_ends_the_delivery() {
    let (_, public) = pair();
    let found = (18..21).all(|at| {
        let outcomes = run("shamir", &public, &[4, 3, 2, 1], at);
        outcomes[1..].iter().all(|outcome| {
            matches!(outcome, Err(Error::CheckFailed { what }) if what.contains("members of a set"))
        })
    });
    assert!(found);
}

#[test]
fn nodes_that_were_told_other_receivers_stop_at_once() {
    let ((_, first), (_, second)) = (pair(), pair());
    let nets = mesh_with_timeout(3, Duration::from_secs(20)).into_iter();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let threads = nets.map(|mut net| {
            let receiver = if net.me() == Party(1) { &second } else { &first };
            let bid = bid(1, 1).expect("it fits");
            scope.spawn(move || node("shamir", receiver, &bid, &mut net))
        });
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(
        outcomes.into_iter().all(|o| matches!(o, Err(Error::Disagreement { field: "receiver's key", .. })))
    );
}
