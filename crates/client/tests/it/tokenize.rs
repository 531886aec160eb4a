//! Values are tokenized as by other programs, under every protocol, for who may, and only as far as the
//! standard goes.

use std::time::{Duration, Instant};

use aes_of_fpe::{Aes128, Aes192, Aes256};
use fpe::ff1::{FF1, FlexibleNumeralString};
use polyclave_api::{Mode, NewKey, Reason, Right, Usage, VersionState};
use polyclave_client::{Alphabet, CardTemplate, Client, Error, Tokenization, Tweaked};

use crate::common::from_keys::{only_for, refused};
use crate::common::{TestCluster, data, insist, key};

const SECRET: &str = "2b7e151628aed2a6abf7158809cf4f3cef4359d8d580aa4f7f036d6f04fc6a94";
const CHARACTERS: &str = "0123456789abcdefghijklmnopqrstuvwxyz";

fn secret(bytes: usize) -> Vec<u8> {
    hex::decode(SECRET).expect("hexadecimal")[..bytes].to_vec()
}

fn alphabet(radix: u32) -> Alphabet {
    Alphabet::of_radix(radix).expect("an alphabet")
}

/// The token of a text, by another program.
fn by_oracle(key: &[u8], radix: u32, tweak: &[u8], value: &str) -> String {
    let digits = value.chars().map(|c| CHARACTERS.find(c).expect("a digit") as u16);
    let string = FlexibleNumeralString::from(digits.collect::<Vec<u16>>());
    let token = match key.len() {
        16 => FF1::<Aes128>::new(key, radix).expect("a key").encrypt(tweak, &string),
        24 => FF1::<Aes192>::new(key, radix).expect("a key").encrypt(tweak, &string),
        _ => FF1::<Aes256>::new(key, radix).expect("a key").encrypt(tweak, &string),
    };
    let token: Vec<u16> = token.expect("it fits").into();
    token.iter().map(|digit| char::from(CHARACTERS.as_bytes()[usize::from(*digit)])).collect()
}

/// A text of so many digits.
fn value(radix: u32, length: usize, seed: usize) -> String {
    let digit = |i: usize| (i * i * 31 + seed * 17 + i * 7 + seed / 5) % radix as usize;
    (0..length).map(|i| char::from(CHARACTERS.as_bytes()[digit(i)])).collect()
}

/// Tokenizes and comes back, without other characters.
fn there_and_back(client: &Client, key: &str, radix: u32, tweak: &[u8], value: &str) -> String {
    let alphabet = alphabet(radix);
    let how = Tokenization { alphabet: &alphabet, keeps_others: false };
    let there = |value: &str| client.tokenize(key, how, &[Tweaked { value, tweak }]);
    let token = insist(&|| there(value)).remove(0);
    let back = insist(&|| client.detokenize(key, how, &[Tweaked { value: &token, tweak }])).remove(0);
    assert_eq!(*back, value, "of {}", *token);
    token.to_string()
}

#[test]
fn samples_of_the_standard_come_out() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (ten, eleven) = (data_of("39383736353433323130"), data_of("3737373770717273373737"));
    let (digits, letters) = ("0123456789", "0123456789abcdefghi");
    for (bytes, tokens) in [
        (16, ["2433477484", "6124200773", "a9tv40mll9kdu509eum"]),
        (24, ["2830668132", "2496655549", "xbj3kv35jrawxv32ysr"]),
        (32, ["6657667009", "1001623463", "xs8a0azh2avyalyzuwd"]),
    ] {
        let name = format!("samples-{bytes}");
        client
            .import(key(&name, &format!("aes-{}", 8 * bytes), &[Mode::Ff1]), &secret(bytes))
            .expect("a key");
        let samples = [(10, &[][..], digits), (10, &ten, digits), (36, &eleven, letters)];
        for ((radix, tweak, value), token) in samples.into_iter().zip(tokens) {
            assert_eq!(there_and_back(&client, &name, radix, tweak, value), token, "{bytes}");
        }
    }
}

fn data_of(text: &str) -> Vec<u8> {
    hex::decode(text).expect("hexadecimal")
}

/// Alphabets, lengths and tweaks at their limits, in batches and alone.
#[test]
fn batches_are_tokenized_as_by_another_program() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(key("batches", "aes-128", &[Mode::Ff1]), &secret(16)).expect("a key");
    for (radix, lengths) in
        [(10, &[6, 7, 16, 17, 56][..]), (2, &[20, 21, 192]), (36, &[4, 5, 36]), (26, &[10])]
    {
        let alphabet = alphabet(radix);
        let how = Tokenization { alphabet: &alphabet, keeps_others: false };
        for tweaks in [&[0][..], &[8], &[12, 13], &[0, 64, 28, 29]] {
            // One tweak for all, and then one for each.
            for is_one in [true, false] {
                let values: Vec<(String, Vec<u8>)> = (0..12)
                    .map(|i| {
                        let tweak = data(tweaks[i % tweaks.len()] + 12);
                        let from = if is_one { 0 } else { i };
                        let tweak = tweak[from..][..tweaks[i % tweaks.len()]].to_vec();
                        (value(radix, lengths[i * 5 % 7 % lengths.len()], i), tweak)
                    })
                    .collect();
                let tweaked: Vec<Tweaked<'_>> =
                    values.iter().map(|(value, tweak)| Tweaked { value, tweak }).collect();
                let tokens = client.tokenize("batches", how, &tweaked).expect("tokens");
                for ((value, tweak), token) in values.iter().zip(&tokens) {
                    assert_eq!(**token, by_oracle(&secret(16), radix, tweak, value), "{radix} {value}");
                }
                let tweaked: Vec<Tweaked<'_>> =
                    tokens.iter().zip(&values).map(|(value, (_, tweak))| Tweaked { value, tweak }).collect();
                let back = client.detokenize("batches", how, &tweaked).expect("values");
                assert!(back.iter().map(|back| &**back).eq(values.iter().map(|(value, _)| value)));
            }
        }
    }
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    assert!(client.tokenize("batches", how, &[]).expect("nothing").is_empty());
}

#[test]
fn more_values_than_one_request_takes_go_in_several() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(key("many", "aes-128", &[Mode::Ff1]), &secret(16)).expect("a key");
    let values: Vec<String> = (0..4100).map(|i| format!("{i:010}")).collect();
    let tweaked: Vec<Tweaked<'_>> = values.iter().map(|value| Tweaked { value, tweak: b"t" }).collect();
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let tokens = client.tokenize("many", how, &tweaked).expect("tokens");
    for i in [0, 1, 4095, 4096, 4099] {
        assert_eq!(*tokens[i], by_oracle(&secret(16), 10, b"t", &values[i]), "{i}");
    }
    let mut all: Vec<&str> = tokens.iter().map(|token| token.as_str()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), values.len(), "each value has a token of its own");
}

fn serves(protocol: &str, nodes: usize) {
    let mut cluster = TestCluster::define_with(protocol, nodes, 1);
    cluster.set_stock(256, 0);
    (0..nodes).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    let client = cluster.client();
    insist(&|| client.import(key("served", "aes-128", &[Mode::Ff1]), &secret(16)));
    for (radix, tweak, length) in [(10, data(20), 16), (36, Vec::new(), 5)] {
        let text = value(radix, length, 3);
        let token = there_and_back(&client, "served", radix, &tweak, &text);
        assert_eq!(token, by_oracle(&secret(16), radix, &tweak, &text), "{protocol}");
    }
    let cards = [("4111 1111 1111 1111", &b""[..]), ("5500000000000004", b"")];
    let cards = cards.map(|(value, tweak)| Tweaked { value, tweak });
    let template = CardTemplate::default();
    let tokens = insist(&|| client.tokenize_cards("served", template, &cards));
    let again: Vec<Tweaked<'_>> = tokens.iter().map(|value| Tweaked { value, tweak: b"" }).collect();
    let back = insist(&|| client.detokenize_cards("served", template, &again));
    assert!(back.iter().map(|back| back.as_str()).eq(cards.iter().map(|card| card.value)));
    let middle = by_oracle(&secret(16), 10, b"4111111111", "111111");
    assert_eq!(*tokens[0], format!("4111 11{} {} 1111", &middle[..2], &middle[2..]));
}

#[test]
fn values_are_tokenized_under_shamir_active() {
    serves("shamir-active", 4);
}

#[test]
fn values_are_tokenized_under_replicated() {
    serves("replicated", 3);
}

#[test]
fn values_are_tokenized_under_replicated_active() {
    serves("replicated-active", 3);
}

#[test]
fn values_are_tokenized_under_replicated_four() {
    serves("replicated-four", 4);
}

#[test]
fn values_are_tokenized_under_spdz_lt() {
    serves("spdz-lt", 2);
}

#[test]
fn values_are_tokenized_under_spdz_tower() {
    serves("spdz-tower", 2);
}

#[test]
fn values_are_tokenized_under_tinytable_linear64() {
    serves("tinytable-linear64", 2);
}

#[test]
fn cards_keep_what_their_template_says() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(key("cards", "aes-256", &[Mode::Ff1]), &secret(32)).expect("a key");
    let exchange = |template, values: &[&str], back: bool| {
        let values: Vec<Tweaked<'_>> = values.iter().map(|value| Tweaked { value, tweak: b"shop" }).collect();
        let exchange = if back { Client::detokenize_cards } else { Client::tokenize_cards };
        exchange(&client, "cards", template, &values)
    };
    let numbers = ["4111 1111 1111 1111", "5500-0055-5555-5559", "6011000990139424"];
    let tokens = exchange(CardTemplate::default(), &numbers, false).expect("tokens");
    let middle = by_oracle(&secret(32), 10, b"shop6011009424", "099013");
    assert_eq!(*tokens[2], format!("601100{middle}9424"));
    let kept = CardTemplate { first: 0, last: 4, keeps_check: true };
    for template in [CardTemplate::default(), kept] {
        let tokens = exchange(template, &numbers, false).expect("tokens");
        let tokens: Vec<&str> = tokens.iter().map(|token| token.as_str()).collect();
        let back = exchange(template, &tokens, true).expect("numbers");
        assert!(back.iter().map(|back| back.as_str()).eq(numbers));
        // A token with the check digit kept is the number of a card again.
        let again = exchange(kept, &tokens, false);
        assert!(!template.keeps_check || again.is_ok(), "{tokens:?}");
    }
    let message = exchange(kept, &[numbers[0], "4111111111111112"], false).expect_err("refused").to_string();
    assert!(message.contains("value 2: its check digit is wrong"), "{message}");
    let message =
        exchange(CardTemplate::default(), &["378282246310005"], false).expect_err("refused").to_string();
    assert!(message.contains("value 1: of 15 digits 5 would be free"), "{message}");
}

#[test]
fn other_characters_stay_in_place_if_asked_and_are_refused_otherwise() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.import(key("others", "aes-128", &[Mode::Ff1]), &secret(16)).expect("a key");
    let greek = Alphabet::new("0123456789αβγδεζηθικλμνξοπρςστυφχψω").expect("an alphabet");
    let exchange = |alphabet: &Alphabet, keeps_others, value: &str| {
        let how = Tokenization { alphabet, keeps_others };
        client.tokenize("others", how, &[Tweaked { value, tweak: b"" }]).map(|mut tokens| tokens.remove(0))
    };
    let token = exchange(&alphabet(10), true, "+49 (171) 123-4567").expect("a token");
    let plain = by_oracle(&secret(16), 10, b"", "491711234567");
    let parts = [&plain[..2], &plain[2..5], &plain[5..8], &plain[8..]];
    assert_eq!(*token, format!("+{} ({}) {}-{}", parts[0], parts[1], parts[2], parts[3]));
    let token = exchange(&greek, true, "Ω αβγδεζ").expect("a token");
    assert_eq!(token.chars().count(), 8);
    assert!(token.starts_with("Ω ") && *token != "Ω αβγδεζ");
    for (alphabet, value, why) in [
        (&alphabet(10), "12345x7", "value 1: its character number 6 is not in the alphabet"),
        (&alphabet(36), "ABCDEF", "character number 1"),
        (&alphabet(10), "12345", "at least 1000000"),
        (&alphabet(10), "", "at least 1000000"),
        (&alphabet(10), &"1".repeat(57), "is too long"),
    ] {
        let message = exchange(alphabet, false, value).expect_err("refused");
        assert!(matches!(message, Error::Misuse(_)) && message.to_string().contains(why), "{message}");
        assert!(value.is_empty() || !message.to_string().contains(value), "a value is shown: {message}");
    }
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let message = client.tokenize("others", how, &[Tweaked { value: "1234567", tweak: &[1; 65] }]);
    assert!(message.expect_err("refused").to_string().contains("a tweak of 65 bytes; 64 are allowed"));
}

#[test]
fn keys_for_ff1_do_nothing_else_and_nothing_else_tokenizes() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for other in [Mode::Gcm, Mode::Ctr, Mode::Cbc, Mode::Cmac, Mode::Ecb, Mode::Ccm] {
        let mut both = vec![other, Mode::Ff1];
        both.sort();
        refused(client.generate(key("not", "aes-128", &both)), Reason::Key, "ff1 undoes");
    }
    let more = NewKey { usage: vec![Usage::Wrap, Usage::Tokenize], ..key("not", "aes-128", &[Mode::Ff1]) };
    refused(client.generate(more), Reason::Key, "for the usage tokenize alone");
    refused(
        client.generate(only_for("not", "aes-128", &[Usage::Tokenize])),
        Reason::Key,
        "one mode at least",
    );
    refused(client.generate(key("not", "3des-ede3", &[Mode::Ff1])), Reason::Key, "keys of aes-128");
    client.generate(key("gcm-not-ff1", "aes-128", &[Mode::Gcm])).expect("a key");
    client.generate(key("ff1-not-gcm", "aes-128", &[Mode::Ff1])).expect("a key");
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let one = [Tweaked { value: "1234567890", tweak: b"" }];
    refused(client.tokenize("gcm-not-ff1", how, &one), Reason::NotForThis, "made for gcm, not for ff1");
    let sealed = client.seal("ff1-not-gcm", &mut &b"x"[..], &mut Vec::new(), &mut |_| ());
    refused(sealed, Reason::NotForThis, "made for ff1, not for gcm");
}

#[test]
fn one_right_is_for_both_directions_and_no_other_is_for_either() {
    let cluster = TestCluster::shared();
    cluster.client().generate(key("rights-ff1", "aes-128", &[Mode::Ff1])).expect("a key");
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let one = [Tweaked { value: "1234567890", tweak: b"" }];
    let others = [Right::Encrypt, Right::Decrypt, Right::Mac, Right::Derive, Right::Kdf, Right::List];
    let without = cluster.client_with("without-tokenize", &others, &["*"]);
    refused(without.tokenize("rights-ff1", how, &one), Reason::Denied, "");
    refused(without.detokenize("rights-ff1", how, &one), Reason::Denied, "");
    let with = cluster.client_with("with-tokenize", &[Right::Tokenize], &["rights-*"]);
    let token = with.tokenize("rights-ff1", how, &one).expect("it may").remove(0);
    let token = [Tweaked { value: &token, tweak: b"" }];
    assert_eq!(*with.detokenize("rights-ff1", how, &token).expect("it may")[0], "1234567890");
    refused(with.tokenize("other-ff1", how, &one), Reason::Denied, "");
}

#[test]
fn each_version_has_its_own_tokens_and_a_deactivated_one_serves_who_configures() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("versions-ff1", "aes-128", &[Mode::Ff1])).expect("a key");
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let one = [Tweaked { value: "1234567890", tweak: b"" }];
    let first = client.tokenize("versions-ff1", how, &one).expect("a token").remove(0);
    client.rotate("versions-ff1").expect("version 2");
    assert_ne!(client.tokenize("versions-ff1", how, &one).expect("a token")[0], first);
    assert_eq!(client.tokenize("versions-ff1@1", how, &one).expect("a token")[0], first);
    client.retire("versions-ff1", 1, VersionState::Deactivated).expect("deactivated");
    let token = [Tweaked { value: &first, tweak: b"" }];
    assert_eq!(*client.detokenize("versions-ff1@1", how, &token).expect("it configures")[0], "1234567890");
    let rights = [Right::Tokenize, Right::List];
    let plain = cluster.client_with("plain-tokenize", &rights, &["versions-ff1"]);
    assert!(plain.detokenize("versions-ff1", how, &token).is_ok());
    refused(plain.detokenize("versions-ff1@1", how, &token), Reason::NotForThis, "is deactivated");
}

#[test]
fn the_blocks_that_are_computed_are_paid_for() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let poor = |name: &str, budget_blocks| NewKey { budget_blocks, ..key(name, "aes-128", &[Mode::Ff1]) };
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    let tokenize = |name: &str, tweaks: &[&[u8]]| {
        let values: Vec<Tweaked<'_>> =
            tweaks.iter().map(|tweak| Tweaked { value: "1234567890", tweak }).collect();
        client.tokenize(name, how, &values)
    };
    // One block for all, and ten for each value; with long tweaks also the first blocks of each tweak.
    let (long, other) = ([1; 64], [2; 64]);
    for (name, blocks, tweaks) in [
        ("poor-one", 11, &[&b"t"[..]][..]),
        ("poor-three", 31, &[b"t", b"t", b"t"]),
        ("poor-others", 31, &[b"t", b"u", b"v"]),
        ("poor-long", 1 + 4 + 20, &[&long, &long]),
        ("poor-long-others", 1 + 8 + 20, &[&long, &other]),
    ] {
        client.generate(poor(name, blocks)).expect("a key");
        tokenize(name, tweaks).expect("it is enough");
        refused(tokenize(name, &[b"t"]), Reason::Spent, "");
        let name = format!("{name}-er");
        client.generate(poor(&name, blocks - 1)).expect("a key");
        refused(tokenize(&name, tweaks), Reason::Spent, "");
    }
}

/// How long a batch takes, for docs/use/tokens.md:
/// `cargo test --release -p polyclave-client --test it -- --ignored --nocapture batches_take`.
#[test]
#[ignore = "it measures, and asserts nothing"]
fn batches_take_so_long() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("timed", "aes-128", &[Mode::Ff1])).expect("a key");
    let values: Vec<String> = (0..1000).map(|i| format!("{:016}", i * 7_919_333_u64)).collect();
    let tweaks: Vec<[u8; 10]> =
        (0..1000_u64).map(|i| [[i as u8; 5], [(i / 7) as u8; 5]].concat().try_into().expect("ten")).collect();
    let how = Tokenization { alphabet: &alphabet(10), keeps_others: false };
    for (what, count, own) in
        [("1 value", 1, false), ("1,000 values", 1000, false), ("1,000 values, own tweaks", 1000, true)]
    {
        let tweaked: Vec<Tweaked<'_>> = values[..count]
            .iter()
            .zip(&tweaks)
            .map(|(value, tweak)| Tweaked { value, tweak: if own { tweak } else { b"tweak" } })
            .collect();
        let mut times: Vec<Duration> = (0..15)
            .map(|_| {
                let began = Instant::now();
                client.tokenize("timed", how, &tweaked).expect("tokens");
                began.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{what}: median {:?}, {:?} to {:?}", times[7], times[0], times[14]);
    }
}
