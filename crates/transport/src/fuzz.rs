//! Fuzz targets: arbitrary bytes for every parser of this crate, which are those for frames, greetings and
//! certificates.

use std::time::{Duration, SystemTime};

use polyclave_harness::authority::{Authority, svid};
use polyclave_harness::{fuzz, within_memory};
use polyclave_protocol::Party;
use polyclave_protocol::versions::{CLIENTS, NODES, Spoken};
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::authority::Anchors;
use crate::buffer::Buffer;
use crate::client_identity::{check_identity, identity_of};
use crate::frame::Passage;
use crate::greeting::{GREETING, Terms, stream_of};
use crate::identity::Identity;
use crate::limits::Limits;
use crate::socket::tests::{not_read, pair, preloaded};
use crate::stream::StreamId;
use crate::validity;

const PEER: Party = Party(1);

/// In front of the frames: the length of the message that is due, and the frame limit less one.
#[test]
fn frames_are_the_message_that_was_due_or_an_error() {
    let frames = |due: usize, most: usize| {
        let message: Vec<u8> = (0..due).map(|i| i as u8).collect();
        let mut travels = Buffer::default();
        Passage::default().keep_rest(&message, most, &mut travels);
        [&[due as u8, (most - 1) as u8], travels.filled()].concat()
    };
    let valid =
        [(0, 1), (1, 1), (7, 10), (10, 10), (23, 10), (255, 256)].map(|(due, most)| frames(due, most));
    let (_peer, socket) = pair();
    let socket = parking_lot::Mutex::new(socket);
    fuzz!("frames", &[], valid.to_vec(), |bytes: &[u8]| {
        let &[due, most, ref travels @ ..] = bytes else { return };
        let (mut into, most) = (vec![0; usize::from(due)], usize::from(most) + 1);
        let mut socket = socket.lock();
        preloaded(&mut socket, travels);
        let mut passage = Passage::default();
        let whole = loop {
            let left = not_read(&socket);
            match passage.receive(&mut socket, &mut into, most) {
                Ok(true) => break true,
                Ok(false) if not_read(&socket) < left => {}
                Ok(false) | Err(_) => break false,
            }
        };
        let mut same = Buffer::default();
        Passage::default().keep_rest(&into, most, &mut same);
        assert_eq!(whole, travels.starts_with(same.filled()), "{due} due, {most} a frame: {travels:?}");
    });
}

#[test]
fn a_greeting_that_is_accepted_is_the_one_that_was_due() {
    let terms = Terms::nodes(&Limits::default(), &[5; 16]);
    let valid = [StreamId([0; 32]), StreamId([0xa5; 32])].map(|stream| terms.greeting(stream).to_vec());
    fuzz!("greetings", &["polyclav"], valid.to_vec(), |bytes: &[u8]| {
        let Some((greeting, _)) = bytes.split_first_chunk::<GREETING>() else { return };
        let spoken = Spoken { oldest: greeting[8], newest: greeting[9] };
        let is_like = *greeting == Terms { spoken, ..terms }.greeting(stream_of(greeting));
        let is_due = is_like && spoken.oldest <= spoken.newest && spoken.meet(terms.spoken).is_some();
        assert_eq!(terms.check(PEER, greeting).is_ok(), is_due);
    });
}

#[test]
fn no_certificate_panics_and_its_dates_are_an_answer_or_an_error() {
    let valid = (0..2).map(|_| Identity::generate().expect("made").certificate().to_vec()).collect();
    let words = ["\x17\x0d491231235959Z", "\x18\x0f99991231235959Z", "\x18\x0f00000101000000Z", "\x30\u{80}"];
    let now = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
    fuzz!("certificates", &words, valid, |bytes: &[u8]| {
        let certificate = CertificateDer::from(bytes);
        within_memory((4 << 20) + 64 * bytes.len(), || {
            let dates = validity::expiry(&certificate);
            match validity::check(&certificate, now) {
                Ok(()) => assert!(dates.is_ok()),
                Err(e) => assert!(!validity::message_of(&e).unwrap_or_default().is_empty()),
            }
        });
    });
}

/// Whatever a stranger shows, before it has shown a key.
#[test]
fn no_certificate_of_a_client_panics_and_none_but_those_that_were_signed_are_accepted() {
    let (authority, now) = (Authority::new("corp"), SystemTime::now());
    let anchors = Anchors::from_pem(authority.pem().as_bytes()).expect("an authority");
    let id = "spiffe://corp.example/web";
    let signed = authority.sign(&svid(id)).certificate;
    let below = authority.below(Authority::params("below"));
    let between = below.sign(&svid(id)).certificate;
    let words =
        [id, "spiffe://", "\x06\x03\x55\x1d\x11", "\x06\x03\x55\x1d\x25", "\x30\u{80}", "\x01\x01\x7f"];
    let valid = vec![signed.clone(), between, authority.sign(&svid("spiffe://corp.example/a/b")).certificate];
    let was_signed = valid.clone();
    fuzz!("client-certificates", &words, valid, |bytes: &[u8]| {
        let certificate = CertificateDer::from(bytes);
        within_memory((4 << 20) + 64 * bytes.len(), || {
            if let Ok(identity) = identity_of(&certificate) {
                check_identity(&identity).expect("it was checked");
            }
            let is_accepted = anchors.verify(&[certificate], Duration::from_secs(7200), now).is_ok();
            assert_eq!(is_accepted, bytes == was_signed[0] || bytes == was_signed[2]);
        });
    });
}

/// A change of these bytes needs another version of the wire between nodes and of that of clients;
/// CONTRIBUTING.md says how. The greeting never changes.
#[test]
fn the_bytes_of_frames_and_greetings_are_those_of_this_version() {
    let mut travels = Buffer::default();
    Passage::default().keep_rest(&[7; 40], 16, &mut travels);
    let spoken = Spoken { oldest: 1, newest: 2 };
    let greeting = Terms { spoken, ..Terms::nodes(&Limits::default(), &[5; 16]) }.greeting(StreamId([9; 32]));
    let digest = blake3::hash(&[travels.filled(), &greeting].concat()).to_hex();
    assert_eq!((NODES.spoken().newest, CLIENTS.spoken().newest, &digest[..16]), (5, 12, "d78da3be2b318d4e"));
}
