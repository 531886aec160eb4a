//! Key blocks as text, and what they allow.

use polyclave_payments::Purpose;

use super::*;
use crate::{Mode, NewKey, Usage};

/// Of version D, without optional blocks; the digits are no real key.
fn block() -> Vec<u8> {
    ["D0144D0AB00E0000", &"0123456789ABCDEF".repeat(8)].concat().into_bytes()
}

#[test]
fn blocks_are_parsed_into_their_parts() {
    let parsed = KeyBlock::parse(&block()).expect("a block");
    assert_eq!((parsed.version, parsed.algorithm), (Version::D, b'A'));
    let header = BlockHeader { usage: *b"D0", mode_of_use: b'B', key_version: *b"00", exportability: b'E' };
    assert_eq!(parsed.header, header);
    assert_eq!((parsed.encrypted.len(), parsed.mac.len()), (48, 16));
    assert_eq!(parsed.head, b"D0144D0AB00E0000");
    assert_eq!(header.text(Version::D, b'A', 48), parsed.head);
    let with = |optional: &str, count: &str| {
        let body = "0123456789ABCDEF".repeat(5);
        let length = 16 + optional.len() + body.len();
        format!("B{length:04}M6TG12N{count}00{optional}{body}").into_bytes()
    };
    let parsed = KeyBlock::parse(&with("KS0800FFTS00020010ABCDEFPB08BBBB", "03")).expect("a block");
    assert_eq!((parsed.version, parsed.head.len(), parsed.encrypted.len()), (Version::B, 48, 32));
    for (optional, count, why) in [
        ("KS0800F", "01", "pairs of capital"),
        ("KS0300FF", "01", "wrong length"),
        ("KSFF00FF", "01", "wrong length"),
        ("KS00030010ABCDEF", "01", "four digits"),
        ("KS0800FFKS0800FF", "02", "two optional blocks have the id KS"),
        ("PB0800FFKS0800FF", "02", "follows the padding"),
        ("K!0800FF", "01", "no id"),
        ("KS0600", "01", "whole blocks"),
        ("", "0x", "not two digits"),
        ("", "99", "wrong length"),
    ] {
        let message = KeyBlock::parse(&with(optional, count)).expect_err(optional);
        assert!(message.contains(why), "{optional}: {message}");
    }
}

#[test]
fn headers_that_are_wrong_are_refused_with_what_is_wrong() {
    let good = block();
    for (at, with, why) in [
        (0, "A", "withdrawn"),
        (0, "C", "withdrawn"),
        (0, "E", "unknown version E"),
        (1, "0140", "says that it has 140 characters"),
        (1, "01x4", "not four digits"),
        (5, "d0", "two capital letters"),
        (7, "1", "capital letters"),
        (8, "b", "capital letters"),
        (9, "c1", "a component of a key"),
        (9, "0-", "two letters or digits"),
        (11, "X", "not E, N or S"),
        (14, "01", "not 00"),
        (20, "a", "capital hexadecimal"),
        (30, "\u{7f}", "not printable ASCII"),
        (30, "\n", "not printable ASCII"),
    ] {
        let mut bad = good.clone();
        bad[at..at + with.len()].copy_from_slice(with.as_bytes());
        let message = KeyBlock::parse(&bad).expect_err(with);
        assert!(message.contains(why), "{with}: {message}");
    }
    assert!((0..good.len()).all(|len| KeyBlock::parse(&good[..len]).is_err()));
    let mut umlaut = good.clone();
    umlaut[3] = 0xe4;
    assert!(KeyBlock::parse(&umlaut).expect_err("refused").contains("character 4"));
    let long = vec![b'D'; MAX_BLOCK + 1];
    assert!(KeyBlock::parse(&long).expect_err("refused").contains("at most 1024"));
    // A MAC, and no encrypted key; and half a block of it.
    for (digits, length) in [(2, "0048"), (3, "0064")] {
        let short = ["D", length, "D0AB00E0000", &"0123456789ABCDEF".repeat(digits)].concat();
        let message = KeyBlock::parse(short.as_bytes()).expect_err("refused");
        assert!(message.contains("one or more whole blocks"), "{message}");
    }
}

#[test]
fn a_key_gets_no_use_that_its_block_does_not_allow_in_either_direction() {
    use Usage::{Decrypt, Derive, Encrypt, Kdf, Mac, Unwrap, Wrap};
    let key = |modes: &[Mode], usage: &[Usage]| NewKey {
        usage: usage.to_vec(),
        ..NewKey::for_modes("k", "aes-128", modes, 1)
    };
    let header = |usage: &[u8; 2], mode_of_use: u8| BlockHeader {
        usage: *usage,
        mode_of_use,
        key_version: *b"00",
        exportability: b'E',
    };
    for (modes, usage, (of, mode_of_use)) in [
        (&[Mode::Gcm][..], &[Encrypt, Decrypt][..], (b"D0", b'B')),
        (&[Mode::Ctr, Mode::Cbc], &[Decrypt], (b"D0", b'D')),
        (&[Mode::Cmac], &[Mac], (b"M6", b'C')),
        (&[], &[Wrap, Unwrap], (b"K0", b'B')),
        (&[Mode::Tr31], &[Wrap], (b"K1", b'E')),
        (&[], &[Derive], (b"B3", b'X')),
        (&[], &[Kdf], (b"B3", b'X')),
    ] {
        let (key, of) = (key(modes, usage), header(of, mode_of_use));
        assert_eq!(BlockHeader::of(&key).as_ref(), Ok(&of));
        assert_eq!(of.may_become(&key), Ok(()));
    }
    assert!(BlockHeader::of(&key(&[Mode::Gcm, Mode::Cmac], &[Encrypt, Decrypt, Mac])).is_err());
    assert!(BlockHeader::of(&key(&[], &[Wrap, Derive])).is_err());
    let decrypts = key(&[Mode::Gcm], &[Decrypt]);
    assert!(header(b"D0", b'B').may_leave_as(&decrypts).is_err(), "it would encrypt elsewhere");
    assert!(header(b"D0", b'E').may_leave_as(&key(&[Mode::Gcm], &[Encrypt, Decrypt])).is_ok());
    assert!(header(b"K0", b'B').may_leave_as(&key(&[Mode::Tr31], &[Wrap, Unwrap])).is_err());
    assert!(header(b"P0", b'B').may_leave_as(&decrypts).is_err());
    let both = key(&[Mode::Gcm], &[Encrypt, Decrypt]);
    assert!(header(b"D0", b'D').may_become(&both).expect_err("refused").contains("usage encrypt"));
    assert!(header(b"P0", b'B').may_become(&both).expect_err("refused").contains("no use"));
    assert!(header(b"D0", b'V').may_become(&both).is_err());
    let mac = key(&[Mode::Cmac], &[Mac]);
    assert!(header(b"M6", b'V').may_become(&mac).is_err(), "verifying alone is no usage here");
    assert!(header(b"D0", b'B').may_become(&mac).is_err());
    let never = BlockHeader { exportability: b'N', ..header(b"D0", b'B') };
    let leaves = NewKey { wrappable: true, ..both.clone() };
    assert!(never.may_become(&leaves).expect_err("refused").contains("must not be exported"));
    assert_eq!(never.may_become(&both), Ok(()));
}

#[test]
fn a_key_for_payments_has_the_block_of_its_purpose_and_no_other() {
    let of = |purpose| NewKey {
        usage: vec![Usage::Payment(purpose)],
        ..NewKey::for_modes("k", "3des-ede2", &[], 1)
    };
    let key = |purpose: &str| of(purpose.parse().expect("a purpose"));
    let all: Vec<Purpose> = Purpose::all("0123456789012345".parse().expect("a table")).collect();
    let (purposes, others): (Vec<Purpose>, Vec<Purpose>) =
        all.into_iter().partition(|purpose| BlockHeader::of(&of(*purpose)).is_ok());
    let name = |purpose: &Purpose| purpose.to_string();
    assert!(others.iter().map(name).all(|name| name.starts_with("milenage") || name.starts_with("lorawan")));
    for &purpose in &purposes {
        let header = BlockHeader::of(&of(purpose)).expect("it has one");
        for &other in &purposes {
            let fits = purpose == other;
            assert_eq!(header.may_become(&of(other)).is_ok(), fits, "{purpose} {other}");
            assert_eq!(header.may_leave_as(&of(other)).is_ok(), fits, "{purpose} {other}");
        }
        let never = BlockHeader { exportability: b'N', ..header };
        assert!(never.may_become(&NewKey { wrappable: true, ..of(purpose) }).is_err());
        assert!(BlockHeader { mode_of_use: b'S', ..never }.may_become(&of(purpose)).is_err());
    }
    let wraps = NewKey { usage: vec![Usage::Wrap], ..NewKey::for_modes("k", "3des-ede2", &[], 1) };
    let of_pins = BlockHeader::of(&key("pin-encryption")).expect("it has one");
    assert!(of_pins.may_become(&wraps).is_err() && of_pins.may_leave_as(&wraps).is_err());
    assert!(BlockHeader::of(&wraps).expect("it has one").may_become(&key("pin-encryption")).is_err());
    assert!(BlockHeader::of(&key("milenage-subscriber")).is_err());
}

#[test]
fn a_block_holds_a_key_of_its_algorithm_only() {
    let block = KeyBlock::parse(&block()).expect("a block");
    assert_eq!(block.holds("aes-256", 32), Ok(()));
    assert!(block.holds("3des-ede3", 24).is_err() && block.holds("present-80", 10).is_err());
    let weak = KeyBlock { version: Version::B, ..block.clone() };
    assert!(weak.holds("aes-128", 16).expect_err("refused").contains("Triple DES"));
    let short = KeyBlock { encrypted: vec![0; 32], ..block };
    assert!(short.holds("aes-256", 32).expect_err("refused").contains("too short"));
}
