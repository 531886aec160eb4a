//! Files in envelopes without nodes: a hash stands for what they compute.

use std::io::Cursor;

use super::*;

/// What the nodes would answer: any change of what they are sent gives another key.
fn key_of(head: &Head) -> [u8; FILE_KEY] {
    let of_nodes = Head { key: [0; 16], ..head.clone() };
    blake3::derive_key("a test of envelopes", &of_nodes.to_bytes())
}

fn written(data: &[u8], header: &[u8], rho: [u8; RHO]) -> Vec<u8> {
    let (commitment, seen) =
        committed(&mut &data[..], header, &rho, &mut |_| ()).expect("memory can be read");
    let envelope = Envelope { owner: "alice".into(), header: header.to_vec(), commitment };
    let head = Head { key: [1; 16], file: blake3::hash(&rho).into(), envelope };
    let mut file = Vec::new();
    write_under(&key_of(&head), &head, (&rho, &seen), &mut &data[..], &mut file, &mut |_| ())
        .expect("written");
    file
}

fn opened(file: &[u8]) -> Result<Vec<u8>> {
    let mut input = file;
    let (head, bytes) = Head::read(&mut input)?;
    let mut data = Vec::new();
    open_under(&key_of(&head), (&head, &bytes), &mut input, &mut data, &mut |_| ())?;
    Ok(data)
}

fn data(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8).collect()
}

const HEAD: usize = 99 + "alice".len() + "header".len();

fn sample(len: usize) -> Vec<u8> {
    written(&data(len), b"header", [7; RHO])
}

#[test]
fn files_of_all_lengths_come_back_and_are_as_long_as_the_page_says() {
    for len in [0, 1, 1000, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 9] {
        let file = sample(len);
        assert_eq!(file.len(), HEAD + 48 + len + TAG * len.div_ceil(CHUNK).max(1), "{len}");
        assert!(opened(&file).expect("opened") == data(len), "{len}");
    }
}

/// The format as docs/use/envelope.md has it, by another implementation of AES-GCM.
#[test]
fn another_program_with_the_key_opens_a_file() {
    use aes_gcm::aead::{Aead, KeyInit, Payload};
    let len = CHUNK + 100;
    let file = sample(len);
    let (head, bytes) = Head::read(&mut &file[..]).expect("its head");
    let aes = aes_gcm::Aes256Gcm::new_from_slice(&key_of(&head)).expect("a key");
    let aad = blake3::derive_key("polyclave 2026 head of an envelope", &bytes);
    let open = |number: u8, last: u8, chunk: &[u8]| {
        let nonce = [last, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number];
        aes.decrypt(&nonce.into(), Payload { msg: chunk, aad: &aad }).expect("authentic")
    };
    let rest = &file[HEAD..];
    let rho = open(0, 0, &rest[..48]);
    let whole = [open(1, 0, &rest[48..][..CHUNK + TAG]), open(2, 1, &rest[48 + CHUNK + TAG..])].concat();
    assert!(whole == data(len));
    let committed = [&whole[..], b"header", &rho, &(len as u64).to_le_bytes(), &6u64.to_le_bytes()].concat();
    assert_eq!(
        blake3::derive_key("polyclave 2026 commitment of an envelope", &committed),
        head.envelope.commitment
    );
}

#[test]
fn a_file_with_any_byte_changed_does_not_open() {
    let file = sample(60);
    assert!(opened(&file).is_ok());
    for at in 0..file.len() {
        let mut changed = file.clone();
        changed[at] ^= 1;
        assert!(opened(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn a_file_that_was_cut_lengthened_or_reordered_does_not_open() {
    let file = sample(2 * CHUNK + 100);
    let (first, second) = (HEAD + 48, HEAD + 48 + CHUNK + TAG);
    let third = second + CHUNK + TAG;
    for cut in [0, 10, HEAD, HEAD + 10, first, first + 5, second, third, file.len() - 1] {
        assert!(opened(&file[..cut]).is_err(), "cut at {cut}");
    }
    let parts = [&file[..first], &file[first..second], &file[second..third], &file[third..]];
    let [head, one, two, three] = parts;
    for order in [
        vec![head, two, one, three],
        vec![head, one, one, two, three],
        vec![head, one, three],
        vec![head, one, two, three, three],
    ] {
        assert!(opened(&order.concat()).is_err());
    }
    assert!(opened(&[&file[..], b"more"].concat()).is_err());
    assert!(opened(&parts.concat()).is_ok());
}

/// Somebody who once had the key of a file can authenticate other chunks under it. The commitment does not
/// fit them.
#[test]
fn a_file_that_was_written_again_under_its_own_key_does_not_open() {
    let rho = [7; RHO];
    let (commitment, _) = committed(&mut &data(100)[..], b"header", &rho, &mut |_| ()).expect("read");
    let envelope = Envelope { owner: "alice".into(), header: b"header".to_vec(), commitment };
    let head = Head { key: [1; 16], file: [2; 32], envelope };
    let written_as = |data: &[u8], rho: &[u8; RHO]| {
        let (_, seen) = committed(&mut &data[..], b"header", rho, &mut |_| ()).expect("read");
        let mut file = Vec::new();
        write_under(&key_of(&head), &head, (rho, &seen), &mut &data[..], &mut file, &mut |_| ())
            .expect("written");
        file
    };
    assert!(opened(&written_as(&data(100), &rho)).is_ok());
    for file in [written_as(&data(101), &rho), written_as(&data(100), &[8; RHO])] {
        let error = opened(&file).expect_err("refused");
        assert!(error.to_string().contains("not the one that its envelope was made for"), "{error}");
    }
}

#[test]
fn the_same_file_under_other_random_bytes_is_another_ciphertext() {
    let (one, other) = (written(&data(1000), b"header", [1; RHO]), written(&data(1000), b"header", [2; RHO]));
    let same = one[HEAD..].iter().zip(&other[HEAD..]).filter(|(a, b)| a == b).count();
    assert!(same < 40, "{same} of about 1064 bytes are equal; 4 are expected by chance");
    assert_ne!(one[64..96], other[64..96], "the commitments");
}

#[test]
fn an_input_that_changes_between_its_two_readings_is_refused() {
    for changed in [data(CHUNK + 10), data(CHUNK + 12), data(10), {
        let mut same_length = data(CHUNK + 11);
        same_length[CHUNK + 3] ^= 1;
        same_length
    }] {
        let (_, seen) = committed(&mut &data(CHUNK + 11)[..], b"", &[7; RHO], &mut |_| ()).expect("read");
        let sealer = Sealer::new(&[1; FILE_KEY], b"head").expect("a key");
        let mut output = Cursor::new(Vec::new());
        let error = sealed(&mut &changed[..], &sealer, &seen, &mut output, &mut |_| ()).expect_err("refused");
        assert!(error.to_string().contains("changed while it was read"), "{error}");
    }
}
