//! What nodes compute in every mode is what other programs compute.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use polyclave_api::{Mode, NewKey};

use crate::common::messages::{
    AeadDecryption, cbc, cmac, ctr, ecb, gcm, open, seal, uncbc, unctr, unecb, ungcm, ungcm_as,
};
use crate::common::oracle::{Oracle, filled};
use crate::common::vectors::{MODES, each_vector};
use crate::common::{TestCluster, data, key};
use aes_gcm::aead::consts::U12;
use aes_gcm::aead::{Aead, Payload};
use aes_gcm::{Aes128Gcm, Aes256Gcm, AesGcm, KeyInit};
use polyclave_client::{Error, HEAD, Padding};

/// Around blocks, steps and chunks.
const LENGTHS: [usize; 9] = [0, 1, 15, 16, 17, 4096, 262_143, 262_144, 262_145];

#[test]
fn sealed_files_of_all_lengths_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("sealing", "aes-128", &[Mode::Gcm])).expect("a key");
    for len in LENGTHS.into_iter().chain([3 * 262_144 + 5]) {
        let sealed = seal(&client, "sealing", &data(len)).expect("sealed");
        let chunks = len.div_ceil(262_144).max(1);
        assert_eq!(sealed.len(), HEAD + len + 16 * chunks, "{len}");
        assert!(open(&client, "sealing", &sealed).expect("opened") == data(len), "{len}");
    }
}

#[test]
fn gcm_messages_of_all_lengths_are_what_another_program_makes() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (cipher, lengths) in
        [("aes-128", &LENGTHS[..]), ("aes-192", &LENGTHS[..6]), ("aes-256", &LENGTHS[..6])]
    {
        let (name, secret) = (format!("gcm-{cipher}"), secret_key(cipher));
        client.import(key(&name, cipher, &[Mode::Gcm]), &secret).expect("a key");
        for (len, additional) in lengths.iter().zip([&b""[..], b"a", &[7; 40]].into_iter().cycle()) {
            let message = gcm(&client, &name, additional, &data(*len)).expect("encrypted");
            let (nonce, sealed) = message.split_at(12);
            assert!(sealed == gcm_oracle(cipher, &secret, nonce, additional, &data(*len)), "{cipher} {len}");
            assert!(ungcm(&client, &name, additional, &message).expect("decrypted") == data(*len), "{len}");
        }
    }
}

#[test]
fn data_from_memory_are_encrypted_as_those_from_a_stream() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let (secret, oracle) = (secret_key("aes-128"), Oracle::new("aes-128", &secret_key("aes-128")));
    for (name, mode) in [("memory-gcm", Mode::Gcm), ("memory-ctr", Mode::Ctr), ("memory-ecb", Mode::Ecb)] {
        client.import(key(name, "aes-128", &[mode]), &secret).expect("a key");
    }
    let handle = |name| client.key(name).expect("a handle");
    let (of_gcm, of_ctr, of_ecb) = (handle("memory-gcm"), handle("memory-ctr"), handle("memory-ecb"));
    for len in [0, 1, 48, 262_145] {
        let message = of_gcm.gcm().aad(b"with").encrypt(&data(len)).expect("encrypted");
        assert!(ungcm(&client, "memory-gcm", b"with", &message).expect("authentic") == data(len), "{len}");
        let mut message = gcm(&client, "memory-gcm", b"with", &data(len)).expect("encrypted");
        assert!(of_gcm.gcm().aad(b"with").decrypt(&message).expect("authentic")[..] == data(len), "{len}");
        *message.last_mut().expect("a tag") ^= 1;
        let altered = of_gcm.gcm().aad(b"with").decrypt(&message);
        assert!(matches!(altered, Err(Error::Unauthentic(_))), "{len}");

        let encrypted = of_ctr.ctr().encrypt(&data(len)).expect("encrypted");
        let (counter, ciphertext) = encrypted.split_at(16);
        assert!(ciphertext == oracle.ctr(counter, &data(len)), "{len}");
        assert!(of_ctr.ctr().decrypt(counter, ciphertext).expect("decrypted")[..] == data(len), "{len}");
    }
    let (initial, plain) = (data(16), data(64));
    let chained = || of_ecb.cbc_by_client().initial(&initial);
    let ciphertext = chained().encrypt(&plain).expect("encrypted");
    assert_eq!(ciphertext, oracle.cbc(&initial, &plain));
    assert_eq!(chained().decrypt(&ciphertext).expect("decrypted")[..], plain);
    assert!(of_ecb.cbc_by_client().encrypt(&plain).is_err(), "without an initial block");
    assert!(chained().padding(Padding::Pkcs7).encrypt(&plain).is_err(), "with padding");
    assert!(of_ecb.cbc().decrypt(&ciphertext).is_err(), "without an initial block");
}

#[test]
fn counter_mode_is_what_another_program_makes() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (cipher, lengths) in [
        ("aes-128", &LENGTHS[..]),
        ("aes-256", &LENGTHS[..6]),
        ("3des-ede3", &LENGTHS[..6]),
        ("3des-ede2", &LENGTHS[..5]),
    ] {
        let (name, secret) = (format!("ctr-{cipher}"), secret_key(cipher));
        client.import(key(&name, cipher, &[Mode::Ctr]), &secret).expect("a key");
        for len in lengths {
            let (first, ciphertext) = ctr(&client, &name, &data(*len)).expect("encrypted");
            let expected = Oracle::new(cipher, &secret).ctr(&first, &data(*len));
            assert!(ciphertext == expected, "{cipher} {len}");
            assert!(unctr(&client, &name, &first, &ciphertext).expect("decrypted") == data(*len), "{len}");
        }
    }
}

#[test]
fn cbc_under_an_initial_block_of_the_caller_is_what_another_program_makes_also_in_several_requests() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for cipher in ["aes-128", "3des-ede3"] {
        let (name, secret) = (format!("cbc-chosen-{cipher}"), secret_key(cipher));
        let oracle = Oracle::new(cipher, &secret);
        let (block, initial) = (oracle.block, data(oracle.block));
        let new = NewKey { caller_nonces: true, ..key(&name, cipher, &[Mode::Cbc]) };
        client.import(new, &secret).expect("a key");
        let encrypt = |padding, initial: &[u8], data: &[u8]| {
            client.key(&name).and_then(|key| key.cbc().padding(padding).initial(initial).encrypt(data))
        };
        for len in [0, 1, block, 3 * block + 1, 2048 - block, 2048, 2049] {
            let encrypted = encrypt(Padding::Pkcs7, &initial, &data(len)).expect("encrypted");
            assert!(encrypted == oracle.cbc(&initial, &filled(&data(len), block)), "{cipher} {len}");
        }
        let whole = data(6 * block);
        let first = encrypt(Padding::None, &initial, &whole[..2 * block]).expect("encrypted");
        let rest = encrypt(Padding::None, &first[block..], &whole[2 * block..]).expect("encrypted");
        assert!([first, rest].concat() == oracle.cbc(&initial, &whole), "{cipher}");
        for wrong in [0, block - 1, block + 1] {
            let message = encrypt(Padding::None, &data(wrong), &whole).expect_err("refused").to_string();
            assert!(message.contains("initial block"), "{message}");
        }
        client.delete(&name).expect("deleted");
    }
    client.generate(key("cbc-not-chosen", "aes-128", &[Mode::Cbc])).expect("a key");
    let chosen = client.key("cbc-not-chosen").and_then(|key| key.cbc().initial(&[1; 16]).encrypt(b"x"));
    let message = chosen.expect_err("the key takes none").to_string();
    assert!(message.contains("takes no nonces or initial blocks of its clients"), "{message}");
}

#[test]
fn cbc_is_what_another_program_makes_whatever_the_padding() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let long = [0, 1, 15, 16, 17, 2031, 2032, 2033, 2047, 2048, 2049, 4096];
    for (cipher, lengths) in
        [("aes-128", &long[..]), ("aes-192", &long[..5]), ("3des-ede3", &[0, 7, 8, 9, 2048])]
    {
        let (name, secret) = (format!("cbc-{cipher}"), secret_key(cipher));
        client.import(key(&name, cipher, &[Mode::Cbc]), &secret).expect("a key");
        let oracle = Oracle::new(cipher, &secret);
        for len in lengths {
            let (first, ciphertext) = cbc(&client, &name, Padding::Pkcs7, &data(*len)).expect("encrypted");
            assert!(ciphertext == oracle.cbc(&first, &filled(&data(*len), oracle.block)), "{cipher} {len}");
            let back = uncbc(&client, &name, Padding::Pkcs7, &first, &ciphertext).expect("decrypted");
            assert!(back == data(*len), "{cipher} {len}");
        }
    }
    let whole = data(4096);
    let (first, ciphertext) = cbc(&client, "cbc-aes-128", Padding::None, &whole).expect("encrypted");
    assert_eq!(ciphertext.len(), whole.len());
    assert!(uncbc(&client, "cbc-aes-128", Padding::None, &first, &ciphertext).expect("decrypted") == whole);
}

#[test]
fn ecb_is_what_another_program_makes_whatever_the_padding() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    for (cipher, lengths) in
        [("aes-128", &LENGTHS[..]), ("aes-256", &LENGTHS[..6]), ("3des-ede2", &[0, 7, 8, 9, 4096])]
    {
        let (name, secret) = (format!("ecb-{cipher}"), secret_key(cipher));
        client.import(key(&name, cipher, &[Mode::Ecb]), &secret).expect("a key");
        let oracle = Oracle::new(cipher, &secret);
        for len in lengths {
            let ciphertext = ecb(&client, &name, Padding::Pkcs7, &data(*len)).expect("encrypted");
            assert!(ciphertext == oracle.ecb(&filled(&data(*len), oracle.block)), "{cipher} {len}");
            let back = unecb(&client, &name, Padding::Pkcs7, &ciphertext).expect("decrypted");
            assert!(back == data(*len), "{cipher} {len}");
        }
        let whole = data(48);
        let ciphertext = ecb(&client, &name, Padding::None, &whole).expect("encrypted");
        assert_eq!(ciphertext, oracle.ecb(&whole));
        assert_eq!(unecb(&client, &name, Padding::None, &ciphertext).expect("decrypted"), whole);
    }
}

#[test]
fn without_padding_the_input_has_to_be_whole_blocks() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("whole", "aes-128", &[Mode::Cbc, Mode::Ecb])).expect("a key");
    for len in [1, 15, 17] {
        let refused = cbc(&client, "whole", Padding::None, &data(len));
        assert!(matches!(refused, Err(Error::Misuse(_))), "{refused:?}");
        assert!(matches!(ecb(&client, "whole", Padding::None, &data(len)), Err(Error::Misuse(_))));
    }
    let (initial, ciphertext) =
        cbc(&client, "whole", Padding::None, &[]).expect("nothing but an initial block");
    assert_eq!((initial.len(), ciphertext.len()), (16, 0));
    assert!(uncbc(&client, "whole", Padding::None, &initial, &[]).expect("nothing").is_empty());
    assert!(ecb(&client, "whole", Padding::None, &[]).expect("nothing").is_empty());
    assert!(unecb(&client, "whole", Padding::None, &[]).expect("nothing").is_empty());
}

#[test]
fn cmac_of_3des_and_of_long_messages_is_what_another_program_makes() {
    use cmac::{Cmac, Mac};
    let cluster = TestCluster::shared();
    let client = cluster.client();
    let keys = [("mac-3des", "3des-ede3"), ("mac-aes", "aes-128")];
    for (name, cipher) in keys {
        client.import(key(name, cipher, &[Mode::Cmac]), &secret_key(cipher)).expect("a key");
    }
    for len in [0, 1, 7, 8, 9, 16, 33] {
        let expected = <Cmac<des::TdesEde3> as KeyInit>::new_from_slice(&secret_key("3des-ede3"))
            .expect("a key")
            .chain_update(data(len))
            .finalize()
            .into_bytes();
        assert_eq!(cmac(&client, "mac-3des", &data(len)).expect("a code"), expected[..], "{len}");
    }
    for len in [0, 2047, 2048, 2049] {
        let expected = <Cmac<aes::Aes128> as KeyInit>::new_from_slice(&secret_key("aes-128"))
            .expect("a key")
            .chain_update(data(len))
            .finalize()
            .into_bytes();
        assert_eq!(cmac(&client, "mac-aes", &data(len)).expect("a code"), expected[..], "{len}");
    }
}

#[test]
fn published_vectors_of_gcm_authenticate_and_changed_tags_do_not() {
    let others = AtomicUsize::new(0);
    let run = each_vector(MODES, "-GCM", &[Mode::Gcm], &|client, name, v| {
        let (additional, nonce_bytes) = (v.bytes("ad"), v.bytes("nonce").len());
        others.fetch_add(usize::from(nonce_bytes != 12), Relaxed);
        let how = AeadDecryption { additional: &additional, nonce_bytes, ..AeadDecryption::default() };
        let mut message = [v.bytes("nonce"), v.bytes("ciphertext"), v.bytes("tag")].concat();
        assert_eq!(ungcm_as(client, name, &how, &message).expect("authentic"), v.bytes("plaintext"), "{v:?}");
        let bit = message.len() * 31 % 128;
        let tag = message.len() - 16;
        message[tag + bit / 8] ^= 1 << (bit % 8);
        let refused = ungcm_as(client, name, &how, &message);
        assert!(matches!(refused, Err(Error::Unauthentic(_))), "{refused:?} {v:?}");
    });
    assert_eq!((run, others.into_inner()), (267, 151));
}

#[test]
fn published_vectors_of_cmac_come_out() {
    let run = each_vector(MODES, "-CMAC", &[Mode::Cmac], &|client, name, v| {
        assert_eq!(
            cmac(client, name, &v.bytes("plaintext")).expect("a code"),
            v.bytes("ciphertext"),
            "{v:?}"
        );
    });
    assert_eq!(run, 45);
}

#[test]
fn published_vectors_of_cbc_and_counter_mode_decrypt() {
    let cbc = each_vector(MODES, "-CBC", &[Mode::Cbc], &|client, name, v| {
        let back = uncbc(client, name, Padding::None, &v.bytes("iv"), &v.bytes("ciphertext"));
        assert_eq!(back.expect("decrypted"), v.bytes("plaintext"), "{v:?}");
    });
    let ctr = each_vector(MODES, "-CTR", &[Mode::Ctr], &|client, name, v| {
        let back = unctr(client, name, &v.bytes("iv"), &v.bytes("ciphertext")).expect("decrypted");
        assert_eq!(back, v.bytes("plaintext"), "{v:?}");
    });
    assert_eq!((cbc, ctr), (3, 3));
}

fn secret_key(cipher: &str) -> Vec<u8> {
    let len = match cipher {
        "aes-128" | "3des-ede2" => 16,
        "aes-192" | "3des-ede3" => 24,
        _ => 32,
    };
    (0..len).map(|i: u8| i.wrapping_mul(37).wrapping_add(cipher.len() as u8)).collect()
}

fn gcm_oracle(cipher: &str, key: &[u8], nonce: &[u8], additional: &[u8], data: &[u8]) -> Vec<u8> {
    let nonce: [u8; 12] = nonce.try_into().expect("12 bytes");
    let (nonce, payload) = (nonce.into(), Payload { msg: data, aad: additional });
    let sealed = match cipher {
        "aes-128" => Aes128Gcm::new_from_slice(key).expect("a key").encrypt(&nonce, payload),
        "aes-192" => AesGcm::<aes::Aes192, U12>::new_from_slice(key).expect("a key").encrypt(&nonce, payload),
        _ => Aes256Gcm::new_from_slice(key).expect("a key").encrypt(&nonce, payload),
    };
    sealed.expect("it encrypts anything")
}

#[test]
fn long_messages_of_single_blocks_come_back() {
    let cluster = TestCluster::shared();
    let client = cluster.client();
    client.generate(key("long-ecb", "aes-128", &[Mode::Ecb])).expect("a key");
    let sent = data(400_000);
    let ciphertext = ecb(&client, "long-ecb", Padding::Pkcs7, &sent).expect("encrypted");
    assert!(unecb(&client, "long-ecb", Padding::Pkcs7, &ciphertext).expect("decrypted") == sent);
}
