use std::sync::LazyLock;
use std::time::Duration;

use polyclave_protocol::mesh::{mesh_with_timeout, run_parties};
use polyclave_protocol::net::Net;
use polyclave_protocol::shamir::Structure;
use polyclave_protocol::{Error, Party, Result};
use polyclave_protocol_lab::testkit::tamper::{Fault, Tamper};
use rsa::pkcs8::DecodePrivateKey;
use rsa::{Pkcs1v15Encrypt, PrivateKey};

use super::ring::{Residue, add, multiply};
use super::*;
use crate::receiver::{PublicKey, generate};

/// The receiver, and what the nodes know of it.
static RECEIVER: LazyLock<(PrivateKey, PublicKey)> = LazyLock::new(|| {
    let (private, public) = generate(2048).expect("a key is made");
    let private = PrivateKey::from_pkcs8_pem(&private).expect("it was just written");
    (private, PublicKey::from_pem(&public).expect("it was just written"))
});

fn ring() -> Ring {
    Ring::new(RECEIVER.1.modulus()).expect("an RSA modulus")
}

/// The ciphertext, and this party's parts of the key: a byte for the set, and the part.
type Encrypted = (Vec<u8>, Vec<(u16, Vec<u8>)>);

fn party(structure: Structure, net: &mut dyn Net) -> Result<Encrypted> {
    let ring = ring();
    let parts = Parts::agree(structure, net)?;
    let own = parts.of(KEY, KEY_BYTES).into_iter().map(|(set, part)| (set.bits(), part.to_vec())).collect();
    let mut at = Arithmetic::new(&ring, net.me(), parts);
    Ok((encrypt(&mut at, net)?, own))
}

fn decrypted(c: &[u8]) -> rsa::Result<Vec<u8>> {
    RECEIVER.0.decrypt(Pkcs1v15Encrypt, c)
}

#[test]
fn receiver_decrypts_the_sum_of_the_parts_whatever_the_number_of_nodes() {
    for (n, t) in [(3, 1), (4, 1), (5, 2)] {
        let structure = Structure::new(n, t).expect("it is valid");
        let all: Vec<Encrypted> =
            run_parties(n, |net| party(structure, net)).into_iter().map(|o| o.expect("honest")).collect();
        assert!(all.iter().all(|(c, _)| *c == all[0].0));
        let mut parts: Vec<_> = all.iter().flat_map(|(_, parts)| parts.clone()).collect();
        parts.sort();
        parts.dedup();
        assert_eq!(parts.len(), sets(structure).count(), "members of a set have the same part");
        let key = (0..KEY_BYTES).map(|i| parts.iter().fold(0, |sum, (_, part)| sum ^ part[i]));
        assert_eq!(decrypted(&all[0].0).expect("the padding is right"), key.collect::<Vec<u8>>());
    }
}

#[test]
fn keys_are_fresh_for_every_delivery() {
    let structure = Structure::new(3, 1).expect("it is valid");
    let run = || run_parties(3, |net| party(structure, net)).remove(0).expect("honest parties finish");
    assert_ne!(decrypted(&run().0), decrypted(&run().0));
}

/// Messages of a cheater among four: 0 to 2 its randomness for the sets, 3 to 5 the comparison, then three
/// for each opening.
#[test]
fn flipped_bit_ends_in_an_error_or_in_the_right_ciphertext_and_never_at_whom_it_hit() {
    let structure = Structure::new(4, 1).expect("it is valid");
    let messages = 3 * (2 + 2 + 16 + 1);
    for at in [0, 2, 4, 6, 7, 11, 12, 14, 31, messages - 4, messages - 3, messages - 1] {
        for byte in [3, 1000] {
            let nets = mesh_with_timeout(4, Duration::from_secs(20)).into_iter().map(|net| {
                let at = if net.me() == Party(2) { at } else { u64::MAX };
                Tamper::new(net, at, Fault::FlipBit { byte, bit: 5 })
            });
            let nets: Vec<_> = nets.collect();
            let tampering = nets[2].tampering();
            let outcomes: Vec<_> = std::thread::scope(|scope| {
                let threads = nets.into_iter().map(|mut net| scope.spawn(move || party(structure, &mut net)));
                let threads: Vec<_> = threads.collect();
                threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
            });
            let hit = tampering.hit().expect("the message was sent");
            assert!(outcomes[hit.index()].is_err(), "message {at}");
            let finished = outcomes.iter().enumerate().filter(|(i, _)| *i != 2);
            for (c, _) in finished.filter_map(|(_, outcome)| outcome.as_ref().ok()) {
                assert_eq!(decrypted(c).expect("it is right").len(), KEY_BYTES, "message {at}");
            }
        }
    }
}

/// A cheater that multiplies with x + 1 instead of x, and says the same to all.
fn wrong_factor(n: usize) -> Vec<Result<Vec<u8>>> {
    let structure = Structure::new(n, 1).expect("it is valid");
    run_parties(n, |net| {
        let ring = ring();
        let parts = Parts::agree(structure, net)?;
        let own: Vec<_> = parts.held().collect();
        let mut at = Arithmetic::new(&ring, net.me(), parts);
        // 3 for every set.
        let shares = own.iter().enumerate().map(|(held, _)| at.share_of_part(held, &ring.small(3)));
        let x = shares.reduce(|x, y| add(&x, &y)).expect("a party is in a set");
        let mine = if net.me() == Party(1) { add(&x, &ring.small(1)) } else { x.clone() };
        let product: Residue = at.multiply(&[(&mine, &x)], net)?.remove(0);
        Ok(ring.to_bytes(&at.open_product(&product, &x, net)?))
    })
}

#[test]
fn wrong_share_said_to_all_is_found_by_all_of_four() {
    for (i, outcome) in wrong_factor(4).into_iter().enumerate().filter(|(i, _)| *i != 1) {
        assert!(matches!(outcome, Err(Error::CheckFailed { .. })), "party {i}");
    }
}

/// What passive means, and why four nodes are the default.
#[test]
fn wrong_share_is_not_found_by_three() {
    let right = ring().to_bytes(&ring().small(9 * 9 * 9));
    assert!(wrong_factor(3).into_iter().all(|outcome| outcome.expect("nobody notices") != right));
}

#[test]
fn the_same_product_is_never_opened_the_same_way() {
    let structure = Structure::new(3, 1).expect("it is valid");
    let outcomes = run_parties(3, |net| {
        let ring = ring();
        let mut at = Arithmetic::new(&ring, net.me(), Parts::agree(structure, net)?);
        let x = at.share_of_part(0, &ring.small(7));
        let products = at.multiply(&[(&x, &x), (&x, &x)], net)?;
        Ok(products[0] != products[1])
    });
    assert!(outcomes.into_iter().all(|differ| differ.expect("honest parties finish")));
}

#[test]
fn quotients_and_negative_numbers_are_right() {
    let ring = ring();
    for (x, y) in [(6, 3), (-1, 7), (5, -8), (0, 2)] {
        assert!(multiply(&ring.quotient(x, y), &ring.small(y)) == ring.small(x), "{x} / {y}");
    }
}

#[test]
fn numbers_that_are_no_rsa_modulus_are_refused() {
    let good = RECEIVER.1.modulus().to_vec();
    assert!(Ring::new(&good).is_ok());
    assert!(Ring::new(&good[..128]).is_err(), "1024 bits");
    assert!(Ring::new(&[&[0], &good[1..]].concat()).is_err(), "a leading zero");
    let mut even = good.clone();
    even[255] ^= 1;
    assert!(Ring::new(&even).is_err());
    // Of three odd numbers in a row one is a multiple of 3.
    let is_taken = |last: u8| Ring::new(&[&good[..255], &[last]].concat()).is_ok();
    assert!(![1, 3, 5].into_iter().all(is_taken));
    assert!(ring().read(&[0xff; 256], Party(1)).is_err(), "not below N");
    assert!(ring().read(&[0; 256], Party(1)).is_ok());
}
