//! Openings by honest parties, and by a party whose shares are not those that the dealer gave it.
//! `tests/it/minimac_faults.rs` tests messages that are changed on the way.

use std::collections::HashSet;

use super::product::Product;
use super::*;
use crate::minimac::insecure_minimac::InsecureMiniMac;
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::{Error, Party, Result};

fn bits(seed: u8, len: usize) -> Vec<u8> {
    let mut bits = vec![0; len];
    blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bits);
    bits.iter_mut().for_each(|bit| *bit &= 1);
    bits
}

fn seed(number: u32) -> [u8; 32] {
    blake3::derive_key("polyclave minimac tests", &number.to_le_bytes())
}

fn code(message: usize, extra: usize) -> Code {
    Code::new(message, extra).expect("fits")
}

/// Strings by turns of party 1 and party 2.
fn committed(dealer: &mut InsecureMiniMac, me: Party, strings: &[Vec<u8>]) -> Vec<Committed> {
    let owner = |i: usize| Party((i % 2) as u8);
    let strings = strings.iter().enumerate();
    strings
        .map(|(i, s)| if owner(i) == me { dealer.commit(s) } else { dealer.commit_peer(s.len()) })
        .collect()
}

fn selected(strings: &[Vec<u8>], selections: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let of = |(s, i): (&Vec<u8>, &Vec<u8>)| {
        s.iter().zip(i).filter(|(_, i)| **i == 1).map(|(bit, _)| *bit).collect()
    };
    strings.iter().zip(selections).map(of).collect()
}

/// One opening of all strings; party 2 changes its shares and selections before.
fn open_all(
    code: Code,
    strings: &[Vec<u8>],
    selections: &[Vec<u8>],
    change: impl Fn(&mut [Committed], &mut [Vec<u8>]) + Sync,
) -> Vec<Result<Vec<Vec<u8>>>> {
    run_parties(2, |net| {
        let mut dealer = InsecureMiniMac::new(&seed(0), code, net.me());
        let mut opener = Opener::new(dealer.key(), b"test");
        let mut committed = committed(&mut dealer, net.me(), strings);
        let mut selections = selections.to_vec();
        if net.me() == Party(1) {
            change(&mut committed, &mut selections);
        }
        let selections: Vec<_> = selections.iter().map(Vec::as_slice).collect();
        let outcome = opener.open(committed, &selections, net);
        assert_eq!(opener.is_retired(), outcome.is_err());
        if outcome.is_err() {
            let again = opener.open(Vec::new(), &[], net);
            assert_eq!(again, Err(Error::CheckFailed { what: polyclave_protocol::EARLIER_CHECK }));
        }
        outcome
    })
}

#[test]
fn selected_bits_are_opened() {
    for code in [code(2, 1), code(4, 4), code(16, 4), Code::STANDARD, code(256, 64)] {
        for len in [0, 1, 7, 63, 64, 65, 1000, 4096, 4097, 9001] {
            let strings: Vec<_> = (0..4).map(|i| bits(i, len)).collect();
            let selections = [vec![0; len], vec![1; len], bits(8, len), bits(9, len)];
            let expected = Ok(selected(&strings, &selections));
            let outcomes = open_all(code, &strings, &selections, |_, _| ());
            assert!(outcomes.iter().all(|opened| *opened == expected), "{code:?}, {len} bits");
        }
    }
}

#[test]
fn a_key_serves_many_openings_and_nothing_is_asked_for_none() {
    let outcomes = run_parties(2, |net| {
        let mut dealer = InsecureMiniMac::new(&seed(1), Code::STANDARD, net.me());
        let mut opener = Opener::new(dealer.key(), b"test");
        (0..5)
            .map(|i| {
                let strings = [bits(i, 100), bits(i + 100, 10)];
                let committed = committed(&mut dealer, net.me(), &strings);
                assert_eq!((committed[1].owner(), committed[1].len()), (Party(1), 10));
                let opened = opener.open(committed, &[&[1; 100], &[1; 10]], net)?;
                assert_eq!(opener.open(Vec::new(), &[], net), Ok(Vec::new()));
                Ok(opened == strings)
            })
            .collect::<Result<Vec<_>>>()
    });
    assert!(outcomes.iter().all(|right| *right == Ok(vec![true; 5])));
}

#[test]
fn a_changed_share_of_any_kind_is_found() {
    let strings = [bits(1, 300), bits(2, 300)];
    let selections = [bits(3, 300), bits(4, 300)];
    let on = |set: u8| selections[0].iter().position(|bit| *bit == set).expect("both occur");
    let (chosen, passed_over) = (on(1), on(0));
    let flip = |s: &mut Shares, i: usize| s.bits[i / 8] ^= 1 << (i % 8);
    type Change<'a> = Box<dyn Fn(&mut Shares) + Sync + 'a>;
    let changes: Vec<(&str, Change)> = vec![
        ("a selected bit", Box::new(|s| flip(s, chosen))),
        ("a bit that is not selected", Box::new(|s| flip(s, passed_over))),
        ("many bits", Box::new(|s| s.bits.iter_mut().take(30).for_each(|byte| *byte ^= 0x5a))),
        ("a symbol of the mask", Box::new(|s| s.mask[17] ^= 1)),
        ("all of the mask", Box::new(|s| s.mask.iter_mut().for_each(|x| *x ^= 0x8001))),
        // A MAC of one of five lanes, at a place beyond the message: where nothing is selected C(I) is zero,
        // and the MAC does not matter.
        ("a MAC", Box::new(|s| s.macs[100 * 5 + 1] ^= 0x10)),
        ("a MAC of the mask", Box::new(|s| s.mask_macs[0] ^= 2)),
        ("all MACs of the mask", Box::new(|s| s.mask_macs.iter_mut().for_each(|x| *x ^= 7))),
    ];
    for (what, change) in &changes {
        // Changes the cheater's shares of its own string, and those of the peer's string.
        for of in 0..2 {
            let outcomes = open_all(Code::STANDARD, &strings, &selections, |c, _| change(&mut c[of].shares));
            assert!(
                outcomes.iter().all(|o| matches!(o, Err(Error::CheckFailed { .. }))),
                "{what}: {outcomes:?}"
            );
        }
    }
}

/// Each error of two alone would be in another word.
#[test]
fn errors_in_several_words_do_not_cancel() {
    let (strings, selections) = (vec![bits(1, 128 * 64); 2], vec![vec![1; 128 * 64]; 2]);
    let change = |c: &mut [Committed], _: &mut [Vec<u8>]| {
        // Lanes 0 and 1 of the first tile, and the same lane of the second.
        for i in [0, 1, 64 * 64] {
            c[0].shares.bits[i / 8] ^= 1 << (i % 8);
        }
    };
    let outcomes = open_all(Code::STANDARD, &strings, &selections, change);
    assert!(outcomes.iter().all(|o| matches!(o, Err(Error::CheckFailed { .. }))), "{outcomes:?}");
}

#[test]
fn a_wrong_share_of_the_key_is_found() {
    let outcomes = run_parties(2, |net| {
        let mut dealer = InsecureMiniMac::new(&seed(2), Code::STANDARD, net.me());
        let mut symbols = dealer.key().symbols().to_vec();
        symbols[143] ^= u16::from(net.me().0);
        let mut opener = Opener::new(KeyShare::new(net.me(), Code::STANDARD, symbols), b"test");
        let committed = committed(&mut dealer, net.me(), &[bits(1, 64)]);
        opener.open(committed, &[&[1; 64]], net)
    });
    assert!(outcomes.iter().all(|o| matches!(o, Err(Error::CheckFailed { .. }))), "{outcomes:?}");
}

#[test]
fn parties_that_open_different_things_open_nothing() {
    let (strings, selections) = (vec![bits(1, 100); 2], vec![bits(3, 100); 2]);
    let other_selection = |_: &mut [Committed], s: &mut [Vec<u8>]| s[0].rotate_left(1);
    let more = |_: &mut [Committed], s: &mut [Vec<u8>]| s[0].fill(1);
    let other_order = |c: &mut [Committed], _: &mut [Vec<u8>]| c.reverse();
    for outcomes in [
        open_all(Code::STANDARD, &strings, &selections, other_selection),
        open_all(Code::STANDARD, &strings, &selections, more),
        open_all(Code::STANDARD, &strings, &selections, other_order),
    ] {
        assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
        assert!(outcomes.iter().any(|o| matches!(o, Err(Error::Peer { .. }))), "{outcomes:?}");
    }
}

#[test]
fn misuse_is_said_before_anything_is_sent() {
    let outcomes = run_parties(2, |net| {
        let mut dealer = InsecureMiniMac::new(&seed(3), Code::STANDARD, net.me());
        let mut opener = Opener::new(dealer.key(), b"test");
        let me = net.me();
        let mut string = || committed(&mut dealer, me, &[bits(1, 10)]);
        let no_bit = opener.open(string(), &[&[2; 10]], net);
        let too_short = opener.open(string(), &[&[1; 9]], net);
        let none = opener.open(string(), &[], net);
        let other_code = InsecureMiniMac::new(&seed(3), code(16, 4), me).commit(&[1; 10]);
        let other_code = opener.open(vec![other_code], &[&[1; 10]], net);
        for outcome in [no_bit, too_short, none, other_code] {
            assert!(matches!(outcome, Err(Error::Misuse(_))), "{outcome:?}");
        }
        opener.open(string(), &[&[1; 10]], net)
    });
    assert!(outcomes.iter().all(|opened| *opened == Ok(vec![bits(1, 10)])));
}

/// The first free symbol of the share that the owner sends, and of the whole word; with the mask or without.
fn symbols_seen(number: u32, string: &[u8], selection: &[u8], is_masked: bool) -> [u16; 2] {
    let [sent, other] = [Party(0), Party(1)].map(|me| {
        let mut dealer = InsecureMiniMac::new(&seed(number), code(8, 2), me);
        let mut committed = committed(&mut dealer, me, &[string.to_vec()]).remove(0);
        if !is_masked {
            committed.shares.mask.fill(0);
        }
        let mut message = Vec::new();
        Product::of(committed, selection).write(&mut message);
        u16::from_le_bytes([message[1], message[2]])
    });
    [sent, sent ^ other]
}

/// The sum of squared deviations of the frequencies of 16 values from the mean, over the mean: 15 on average
/// for uniform ones, and above 60 with a probability below 10^-6.
fn chi_squared(values: impl Iterator<Item = u16> + Clone) -> f64 {
    let mut counts = [0u32; 16];
    values.for_each(|value| counts[usize::from(value)] += 1);
    let mean = f64::from(counts.iter().sum::<u32>()) / 16.;
    counts.iter().map(|count| (f64::from(*count) - mean).powi(2) / mean).sum()
}

#[test]
fn what_is_opened_tells_only_selected_bits() {
    let selection = [1, 0, 1, 0, 0, 1, 1, 0];
    // They differ where nothing is selected.
    let strings = [[1, 0, 0, 1, 0, 1, 0, 0], [1, 1, 0, 0, 1, 1, 0, 0]];
    for string in &strings {
        let seen: Vec<_> = (0..4000).map(|number| symbols_seen(number, string, &selection, true)).collect();
        for which in 0..2 {
            for shift in [0, 4, 8, 12] {
                let nibbles = seen.iter().map(|symbols| symbols[which] >> shift & 15);
                assert!(chi_squared(nibbles) < 60., "{string:?}, symbol {which}, bits from {shift} on");
            }
        }
    }
    // Without the mask the opened word does tell them apart: the test can fail.
    let opened = |string| (0..100).map(|number| symbols_seen(number, string, &selection, false)[1]).collect();
    let [first, second]: [HashSet<u16>; 2] = strings.each_ref().map(|string| opened(string));
    assert!(first.len() == 1 && second.len() == 1 && first != second);
}

#[test]
fn data_are_eleven_bytes_for_a_bit() {
    let mut dealer = InsecureMiniMac::new(&seed(4), Code::STANDARD, Party(0));
    let committed = dealer.commit(&bits(1, 1 << 14));
    assert_eq!(committed.bytes(), (1 << 11) + 2 * 256 * (63 + 2 * 144));
}
