//! GCM with other nonces and short tags, CCM and SIV are what other programs make, and nothing that was
//! altered is decrypted.

use aes_gcm::AesGcm;
use aes_siv::siv::{Aes128Siv, Aes256Siv};
use ccm::Ccm;
use ccm::aead::consts::{U8, U12, U16};
use ccm::aead::{Aead, KeyInit, Payload};
use polyclave_api::{Mode, NewKey, Reason, Usage};
use polyclave_client::{Client, Error};

use crate::common::active::{fill, start};
use crate::common::from_keys::refused;
use crate::common::messages::{
    AeadDecryption, AeadEncryption, decrypt_ccm, decrypt_siv, encrypt_ccm, encrypt_gcm, encrypt_siv, gcm,
    ungcm_as,
};
use crate::common::vectors::{AUTHENTICATED, each_vector, vectors};
use crate::common::{TestCluster, data, key};

/// Around blocks and steps.
const LENGTHS: [usize; 11] = [0, 1, 15, 16, 17, 31, 32, 33, 2047, 2049, 4096];

#[track_caller]
fn unauthentic<T: std::fmt::Debug>(outcome: Result<T, Error>, what: &str) {
    assert!(matches!(outcome, Err(Error::Unauthentic(_))), "{what}: {outcome:?}");
}

#[test]
fn vectors_of_gcm_with_other_nonces_and_short_tags_decrypt_and_forged_ones_do_not() {
    let run = each_vector(AUTHENTICATED, "-GCM", &[Mode::Gcm], &|client, name, v| {
        let additional = v.bytes("ad");
        let (nonce_bytes, tag_bytes) = (v.bytes("nonce").len(), v.bytes("tag").len());
        let how = AeadDecryption { additional: &additional, nonce_bytes, tag_bytes };
        let message = [v.bytes("nonce"), v.bytes("ciphertext"), v.bytes("tag")].concat();
        let outcome = ungcm_as(client, name, &how, &message);
        match v.has("plaintext") {
            true => assert_eq!(outcome.expect("authentic"), v.bytes("plaintext"), "{v:?}"),
            false => unauthentic(outcome, v.text("source")),
        }
    });
    assert_eq!(run, 60);
}

#[test]
fn vectors_of_ccm_decrypt_and_forged_ones_do_not() {
    let run = each_vector(AUTHENTICATED, "-CCM", &[Mode::Ccm], &|client, name, v| {
        let additional = v.bytes("ad");
        let (nonce_bytes, tag_bytes) = (v.bytes("nonce").len(), v.bytes("tag").len());
        let how = AeadDecryption { additional: &additional, nonce_bytes, tag_bytes };
        let message = [v.bytes("nonce"), v.bytes("ciphertext"), v.bytes("tag")].concat();
        let outcome = decrypt_ccm(client, name, &how, &message);
        match v.has("plaintext") {
            true => assert_eq!(outcome.expect("authentic")[..], v.bytes("plaintext"), "{v:?}"),
            false => unauthentic(outcome, v.text("source")),
        }
    });
    assert_eq!(run, 84);
}

#[test]
fn vectors_of_siv_come_out_and_decrypt() {
    let run = each_vector(AUTHENTICATED, "-SIV", &[Mode::Siv], &|client, name, v| {
        let (additional, plaintext) = (v.strings("ads"), v.bytes("plaintext"));
        let expected = [v.bytes("tag"), v.bytes("ciphertext")].concat();
        let message = encrypt_siv(client, name, &additional, &plaintext).expect("encrypted");
        assert_eq!(hex::encode(&message), hex::encode(&expected), "{v:?}");
        assert_eq!(decrypt_siv(client, name, &additional, &expected).expect("authentic")[..], plaintext);
    });
    assert_eq!(run, 4);
}

#[test]
fn siv_of_every_length_is_what_another_program_makes() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (half, whole) = (data(32), data(64));
    client.import(key("siv-128", "aes-128", &[Mode::Siv]), &half).expect("a key");
    client.import(key("siv-256", "aes-256", &[Mode::Siv]), &whole).expect("a key");
    let strings = [vec![], data(1), data(16), data(40)];
    for (i, len) in LENGTHS.into_iter().enumerate() {
        let additional = &strings[..i % 5];
        let message = encrypt_siv(&client, "siv-128", additional, &data(len)).expect("encrypted");
        let mut oracle = Aes128Siv::new_from_slice(&half).expect("a key");
        assert!(message == oracle.encrypt(additional, &data(len)).expect("any"), "{len}");
        let back = decrypt_siv(&client, "siv-128", additional, &message).expect("authentic");
        assert!(back[..] == data(len), "{len}");
    }
    let message = encrypt_siv(&client, "siv-256", &strings, &data(100)).expect("encrypted");
    let mut oracle = Aes256Siv::new_from_slice(&whole).expect("a key");
    assert_eq!(message, oracle.encrypt(&strings, &data(100)).expect("any"));
}

#[test]
fn ccm_of_every_length_is_what_another_program_makes() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let secret = data(16);
    client.import(key("ccm-128", "aes-128", &[Mode::Ccm]), &secret).expect("a key");
    for (len, additional) in LENGTHS.into_iter().zip([&b""[..], b"a", &[7; 40]].into_iter().cycle()) {
        for tag_bytes in [16, 8] {
            let how = AeadEncryption { additional, tag_bytes, ..AeadEncryption::default() };
            let message = encrypt_ccm(&client, "ccm-128", &how, &data(len)).expect("encrypted");
            let (nonce, sealed) = message.split_at(12);
            let nonce: [u8; 12] = nonce.try_into().expect("12 bytes");
            let text = data(len);
            let payload = Payload { msg: &text, aad: additional };
            let expected = match tag_bytes {
                16 => Ccm::<aes::Aes128, U16, U12>::new_from_slice(&secret)
                    .expect("a key")
                    .encrypt(&nonce.into(), payload),
                _ => Ccm::<aes::Aes128, U8, U12>::new_from_slice(&secret)
                    .expect("a key")
                    .encrypt(&nonce.into(), payload),
            };
            assert!(sealed == expected.expect("any"), "{len} with {tag_bytes}");
            let how = AeadDecryption { additional, tag_bytes, ..AeadDecryption::default() };
            assert!(
                decrypt_ccm(&client, "ccm-128", &how, &message).expect("authentic")[..] == data(len),
                "{len}"
            );
        }
    }
}

/// Decrypts a message under one of two keys, with strings of additional data.
type Decrypting<'d> = dyn Fn(&str, &[&[u8]], &[u8]) -> Result<Vec<u8>, Error> + 'd;

/// One bit anywhere, a byte less or more, other additional data, another key.
fn nothing_altered_decrypts(message: &[u8], decrypt: &Decrypting<'_>) {
    assert_eq!(decrypt("right", &[b"with"], message).expect("authentic"), data(20));
    for bit in (0..8 * message.len()).step_by(37) {
        let mut changed = message.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        unauthentic(decrypt("right", &[b"with"], &changed), &format!("bit {bit}"));
    }
    for len in [0, 1, 15, 16, message.len() - 1] {
        unauthentic(decrypt("right", &[b"with"], &message[..len]), &format!("{len} bytes"));
    }
    unauthentic(decrypt("right", &[b"with"], &[message, &[0]].concat()), "a byte more");
    unauthentic(decrypt("right", &[b"without"], message), "other data");
    unauthentic(decrypt("right", &[], message), "no data");
    unauthentic(decrypt("wrong", &[b"with"], message), "another key");
}

fn two_keys(client: &Client, mode: Mode, cipher: &str) {
    for name in ["right", "wrong"] {
        client.generate(key(&format!("{name}-{mode}"), cipher, &[mode])).expect("a key");
    }
}

#[test]
fn no_altered_message_of_siv_decrypts() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    two_keys(&client, Mode::Siv, "aes-128");
    let message = encrypt_siv(&client, "right-siv", &[b"with".to_vec()], &data(20)).expect("encrypted");
    nothing_altered_decrypts(&message, &|key, additional, message| {
        let additional: Vec<Vec<u8>> = additional.iter().map(|string| string.to_vec()).collect();
        Ok(decrypt_siv(&client, &format!("{key}-siv"), &additional, message)?.to_vec())
    });
    // Strings are not run together, and their order counts.
    let two = [b"wi".to_vec(), b"th".to_vec()];
    let of_two = encrypt_siv(&client, "right-siv", &two, &data(20)).expect("encrypted");
    for other in [vec![b"with".to_vec()], vec![two[1].clone(), two[0].clone()]] {
        unauthentic(decrypt_siv(&client, "right-siv", &other, &of_two), "other strings");
    }
}

#[test]
fn no_altered_message_of_ccm_decrypts() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    two_keys(&client, Mode::Ccm, "aes-256");
    for tag_bytes in [16, 8] {
        let how = AeadEncryption { additional: b"with", tag_bytes, ..AeadEncryption::default() };
        let message = encrypt_ccm(&client, "right-ccm", &how, &data(20)).expect("encrypted");
        nothing_altered_decrypts(&message, &|key, additional, message| {
            let additional = &additional.concat()[..];
            let how = AeadDecryption { additional, tag_bytes, ..AeadDecryption::default() };
            Ok(decrypt_ccm(&client, &format!("{key}-ccm"), &how, message)?.to_vec())
        });
    }
}

#[test]
fn no_altered_message_of_gcm_with_a_short_tag_decrypts_and_the_bytes_that_were_cut_do_not_matter() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    two_keys(&client, Mode::Gcm, "aes-128");
    let whole = gcm(&client, "right-gcm", b"with", &data(20)).expect("encrypted");
    for tag_bytes in [12, 13, 15] {
        let message = &whole[..whole.len() - 16 + tag_bytes];
        nothing_altered_decrypts(message, &|key, additional, message| {
            let additional = &additional.concat()[..];
            let how = AeadDecryption { additional, tag_bytes, ..AeadDecryption::default() };
            ungcm_as(&client, &format!("{key}-gcm"), &how, message)
        });
    }
    let how = AeadEncryption { tag_bytes: 12, ..AeadEncryption::default() };
    let out = encrypt_gcm(&client, "right-gcm", &how, &data(5)).expect("encrypted");
    let how = AeadDecryption { tag_bytes: 12, ..AeadDecryption::default() };
    assert_eq!((out.len(), ungcm_as(&client, "right-gcm", &how, &out).expect("authentic")), (29, data(5)));
}

#[test]
fn equal_messages_of_siv_have_equal_ciphertexts_and_no_others_do() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("equal", "aes-128", &[Mode::Siv])).expect("a key");
    let siv = |additional: &[u8], message: &[u8]| {
        encrypt_siv(&client, "equal", &[additional.to_vec()], message).expect("encrypted")
    };
    let first = siv(b"a", &data(30));
    assert_eq!(first, siv(b"a", &data(30)));
    for other in [siv(b"b", &data(30)), siv(b"a", &data(31)), siv(b"a", &[9; 30])] {
        assert_ne!(first[..16], other[..16]);
        assert_ne!(first[16..46], other[16..46]);
    }
}

/// What the client refuses before it asks the nodes.
fn misused<T: std::fmt::Debug>(outcome: polyclave_client::Result<T>, why: &str) {
    match outcome {
        Err(Error::Misuse(message)) => assert!(message.contains(why), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn lengths_that_a_mode_does_not_have_are_refused_with_words() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for mode in [Mode::Siv, Mode::Ccm, Mode::Gcm] {
        client.generate(key(&format!("lengths-{mode}"), "aes-128", &[mode])).expect("a key");
    }
    let long = data((64 << 10) + 1);
    let message = encrypt_siv(&client, "lengths-siv", &[], &long).expect_err("too long").to_string();
    assert!(message.contains("siv takes messages of at most 65536 bytes"), "{message}");
    let message =
        encrypt_ccm(&client, "lengths-ccm", &AeadEncryption::default(), &long).expect_err("too long");
    assert!(message.to_string().contains("ccm takes messages of at most 65536 bytes"), "{message}");
    for tag_bytes in [0, 4, 6, 9, 17] {
        let how = AeadEncryption { tag_bytes, ..AeadEncryption::default() };
        let outcome = encrypt_ccm(&client, "lengths-ccm", &how, b"x");
        misused(outcome, "ccm has tags of 8, 10, 12, 14 or 16 bytes");
    }
    for tag_bytes in [0, 8, 11, 17] {
        let how = AeadDecryption { tag_bytes, ..AeadDecryption::default() };
        refused(
            ungcm_as(&client, "lengths-gcm", &how, &data(50)),
            Reason::Malformed,
            "tags of 12, 13, 14, 15 or 16",
        );
    }
    for nonce_bytes in [0, 6, 14] {
        let how = AeadDecryption { nonce_bytes, ..AeadDecryption::default() };
        let outcome = decrypt_ccm(&client, "lengths-ccm", &how, &data(50));
        misused(outcome, "ccm takes nonces of 7 to 13 bytes");
    }
    let how = AeadDecryption { nonce_bytes: 1025, ..AeadDecryption::default() };
    refused(ungcm_as(&client, "lengths-gcm", &how, &data(2000)), Reason::Malformed, "1 to 1024 bytes");
    let how = AeadDecryption { nonce_bytes: 16, ..AeadDecryption::default() };
    let outcome = ungcm_as(&client, "lengths-gcm", &how, &data(32 + 65_537));
    refused(outcome, Reason::Malformed, "at most 65536 bytes");
    let strings = vec![Vec::new(); 17];
    misused(encrypt_siv(&client, "lengths-siv", &strings, b"x"), "siv takes at most 16 strings");
}

#[test]
fn a_key_for_siv_is_two_keys_for_that_mode_alone() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let siv = |name: &str| key(name, "aes-192", &[Mode::Siv]);
    for new in [
        key("not", "aes-128", &[Mode::Gcm, Mode::Siv]),
        NewKey { usage: vec![Usage::Encrypt, Usage::Decrypt, Usage::Derive], ..siv("not") },
        NewKey { wrappable: true, ..siv("not") },
    ] {
        refused(client.generate(new.clone()), Reason::Key, "two keys");
        refused(client.import(new, &[1; 48]), Reason::Key, "two keys");
    }
    refused(client.generate(key("not", "3des-ede3", &[Mode::Siv])), Reason::Key, "keys of aes-128");
    refused(client.generate(key("not", "skinny-128-128", &[Mode::Ccm])), Reason::Key, "keys of aes-128");
    for len in [16, 24, 47, 49] {
        assert!(matches!(client.import(siv("not"), &vec![1; len]), Err(Error::Misuse(_))), "{len}");
    }
    let base = NewKey { usage: vec![Usage::Derive], ..key("base", "aes-128", &[]) };
    client.generate(base).expect("a key");
    let how = polyclave_api::Derivation::EcbData { data: data(48) };
    refused(client.derive("base", siv("not"), how), Reason::Key, "two keys");
    // Both halves are checked, each for itself.
    let values: Vec<Vec<u8>> = [[1, 2], [2, 1]]
        .iter()
        .enumerate()
        .map(|(i, halves)| {
            let secret: Vec<u8> = halves.iter().flat_map(|half| vec![*half; 24]).collect();
            client.import(siv(&format!("halves-{i}")), &secret).expect("a key").check_value
        })
        .collect();
    assert_eq!(values[0].len(), 10);
    assert_eq!((&values[0][..5], &values[0][5..]), (&values[1][5..], &values[1][..5]));
}

/// The nonce is that of the vector, so all of it must come out.
#[test]
fn under_a_nonce_of_the_client_the_vectors_come_out_if_the_key_takes_one() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let mut encrypted = 0;
    for (i, v) in vectors(AUTHENTICATED, "").iter().enumerate().filter(|(_, v)| v.has("nonce")) {
        let (cipher, mode) = match v.text("cipher") {
            "AES-128-GCM" => ("aes-128", Mode::Gcm),
            "AES-256-CCM" => ("aes-256", Mode::Ccm),
            _ => continue,
        };
        if !v.has("plaintext") {
            continue;
        }
        let name = format!("own-nonces-{i}");
        let new = NewKey { caller_nonces: true, ..key(&name, cipher, &[mode]) };
        client.import(new, &v.bytes("key")).expect("a key");
        let (additional, nonce, text) = (v.bytes("ad"), v.bytes("nonce"), v.bytes("plaintext"));
        let tag_bytes = v.bytes("tag").len();
        let how = AeadEncryption { additional: &additional, nonce: Some(&nonce), tag_bytes };
        let message = match mode {
            Mode::Gcm => encrypt_gcm(&client, &name, &how, &text).expect("encrypted"),
            _ => encrypt_ccm(&client, &name, &how, &text).expect("encrypted"),
        };
        assert_eq!(message, [nonce, v.bytes("ciphertext"), v.bytes("tag")].concat(), "{v:?}");
        encrypted += 1;
    }
    assert_eq!(encrypted, 35);
    for mode in [Mode::Gcm, Mode::Ccm] {
        client.generate(key(&format!("no-nonces-{mode}"), "aes-128", &[mode])).expect("a key");
    }
    let how = AeadEncryption { nonce: Some(&[7; 12]), ..AeadEncryption::default() };
    let outcome = encrypt_gcm(&client, "no-nonces-gcm", &how, b"x");
    refused(outcome, Reason::NotForThis, "takes no nonces");
    let outcome = encrypt_ccm(&client, "no-nonces-ccm", &how, b"x");
    refused(outcome, Reason::NotForThis, "takes no nonces");
}

/// Messages that take every way there is: a short tag, a nonce that has to be hashed, additional data, and an
/// end inside of a block.
fn every_mode_works(cluster: &TestCluster, fill: impl Fn()) {
    let client = cluster.client();
    for (mode, len) in [(Mode::Gcm, 16), (Mode::Ccm, 16), (Mode::Siv, 32)] {
        fill();
        client.import(key(&format!("every-{mode}"), "aes-128", &[mode]), &data(len)).expect("a key");
    }
    let (text, secret) = (data(21), data(16));
    fill();
    let nonce = data(8);
    let payload = Payload { msg: &text, aad: b"with" };
    let sealed = AesGcm::<aes::Aes128, U8>::new_from_slice(&secret)
        .expect("a key")
        .encrypt(&<[u8; 8]>::try_from(&nonce[..]).expect("8 bytes").into(), payload);
    let mut message = [nonce, sealed.expect("any")].concat();
    message.truncate(message.len() - 4);
    let how = AeadDecryption { additional: b"with", nonce_bytes: 8, tag_bytes: 12 };
    assert_eq!(ungcm_as(&client, "every-gcm", &how, &message).expect("authentic"), text);
    *message.last_mut().expect("a tag") ^= 1;
    fill();
    unauthentic(ungcm_as(&client, "every-gcm", &how, &message), "a changed tag");

    fill();
    let how = AeadEncryption { additional: b"with", tag_bytes: 8, ..AeadEncryption::default() };
    let mut message = encrypt_ccm(&client, "every-ccm", &how, &text).expect("encrypted");
    let (nonce, sealed) = message.split_at(12);
    let payload = Payload { msg: &text, aad: b"with" };
    let nonce = <[u8; 12]>::try_from(nonce).expect("12 bytes").into();
    let oracle = Ccm::<aes::Aes128, U8, U12>::new_from_slice(&secret).expect("a key");
    assert_eq!(sealed, oracle.encrypt(&nonce, payload).expect("any"));
    fill();
    let how = AeadDecryption { additional: b"with", tag_bytes: 8, ..AeadDecryption::default() };
    assert_eq!(decrypt_ccm(&client, "every-ccm", &how, &message).expect("authentic")[..], text);
    message[13] ^= 1;
    fill();
    unauthentic(decrypt_ccm(&client, "every-ccm", &how, &message), "a changed message");

    fill();
    let additional = [b"with".to_vec()];
    let mut message = encrypt_siv(&client, "every-siv", &additional, &text).expect("encrypted");
    let mut oracle = Aes128Siv::new_from_slice(&data(32)).expect("a key");
    assert_eq!(message, oracle.encrypt(&additional, &text).expect("any"));
    fill();
    assert_eq!(decrypt_siv(&client, "every-siv", &additional, &message).expect("authentic")[..], text);
    message[3] ^= 1;
    fill();
    unauthentic(decrypt_siv(&client, "every-siv", &additional, &message), "a changed tag");
}

#[test]
fn they_work_under_shamir_active() {
    let cluster = start(64, &[]);
    every_mode_works(&cluster, || fill(&cluster));
}

fn works_among_two(protocol: &str) {
    let mut cluster = TestCluster::define_with(protocol, 2, 1);
    cluster.set_stock(64, 2);
    (0..2).for_each(|node| cluster.restart(node));
    cluster.wait_until_ready();
    every_mode_works(&cluster, || ());
}

#[test]
fn they_work_under_spdz_tower() {
    works_among_two("spdz-tower");
}

#[test]
fn they_work_under_spdz_lt() {
    works_among_two("spdz-lt");
}

#[test]
fn they_work_under_tinytable_linear64() {
    works_among_two("tinytable-linear64");
}

/// No speed is asserted:
/// `cargo test --release -p polyclave-client --test it costs_of_modes -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn costs_of_modes() {
    let cluster = TestCluster::start(3, 1);
    let client = cluster.client();
    for mode in [Mode::Gcm, Mode::Ccm, Mode::Siv] {
        client.generate(key(&mode.to_string(), "aes-128", &[mode])).expect("a key");
    }
    client.import(key("known", "aes-128", &[Mode::Gcm]), &data(16)).expect("a key");
    let long_nonce = |len: usize| {
        let (text, nonce) = (data(len), data(8));
        let oracle = AesGcm::<aes::Aes128, U8>::new_from_slice(&data(16)).expect("a key");
        let sealed = oracle.encrypt(&<[u8; 8]>::try_from(&nonce[..]).expect("8 bytes").into(), &text[..]);
        [nonce, sealed.expect("any")].concat()
    };
    let default = AeadEncryption::default();
    for len in [16, 1024, 65_536] {
        let text = data(len);
        let with_nonce = long_nonce(len);
        let of_gcm = gcm(&client, "gcm", b"", &text).expect("encrypted");
        let of_siv = encrypt_siv(&client, "siv", &[], &text).expect("encrypted");
        let of_ccm = encrypt_ccm(&client, "ccm", &default, &text).expect("encrypted");
        let how = AeadDecryption::default();
        let short = AeadDecryption { tag_bytes: 12, ..how };
        let nonce = AeadDecryption { nonce_bytes: 8, ..how };
        let what: [(&str, &dyn Fn()); 8] = [
            ("gcm encrypts", &|| drop(gcm(&client, "gcm", b"", &text).expect("encrypted"))),
            ("gcm decrypts", &|| drop(ungcm_as(&client, "gcm", &how, &of_gcm).expect("authentic"))),
            ("gcm decrypts, a tag of 12 bytes", &|| {
                let cut = &of_gcm[..of_gcm.len() - 4];
                drop(ungcm_as(&client, "gcm", &short, cut).expect("authentic"));
            }),
            ("gcm decrypts, a nonce of 8 bytes", &|| {
                drop(ungcm_as(&client, "known", &nonce, &with_nonce).expect("authentic"));
            }),
            ("siv encrypts", &|| drop(encrypt_siv(&client, "siv", &[], &text).expect("encrypted"))),
            ("siv decrypts", &|| drop(decrypt_siv(&client, "siv", &[], &of_siv).expect("authentic"))),
            ("ccm encrypts", &|| drop(encrypt_ccm(&client, "ccm", &default, &text).expect("encrypted"))),
            ("ccm decrypts", &|| drop(decrypt_ccm(&client, "ccm", &how, &of_ccm).expect("authentic"))),
        ];
        for (name, run) in what {
            let mut times: Vec<f64> = (0..if len > 10_000 { 3 } else { 15 })
                .map(|_| {
                    let began = std::time::Instant::now();
                    run();
                    began.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("{name}, {len} bytes: median {:.1} ms", times[times.len() / 2]);
        }
    }
}
