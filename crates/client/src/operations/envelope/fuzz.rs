//! No head of a file in an envelope panics or takes memory on its word, and one that is read is written back
//! the same.

use polyclave_api::Envelope;
use polyclave_harness::{fuzz, within_memory};

use super::format::{Head, MAGIC};

#[test]
fn no_head_of_an_envelope_panics_and_one_that_is_read_has_one_form() {
    let head = |owner: &str, header: &[u8]| {
        let envelope = Envelope { owner: owner.into(), header: header.to_vec(), commitment: [3; 32] };
        Head { key: [1; 16], file: [2; 32], envelope }.to_bytes()
    };
    let valid = vec![head("alice", b"invoices"), head("", b""), head(&"n".repeat(255), &[7; 300])];
    let words = [std::str::from_utf8(MAGIC).expect("it is ASCII")];
    fuzz!("envelopes", &words, valid, |bytes: &[u8]| {
        let read = within_memory(16 * bytes.len() + (16 << 10), || Head::read(&mut &bytes[..]));
        if let Ok((head, of_head)) = read {
            assert!(bytes.starts_with(&of_head));
            assert_eq!(head.to_bytes(), of_head);
        }
    });
}
