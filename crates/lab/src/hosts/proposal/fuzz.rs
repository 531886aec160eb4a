//! Fuzz targets: foreign bytes in place of a peer's proposal.

use polyclave_harness::{fuzz, within_memory};

use super::*;

#[test]
fn no_proposal_panics_and_what_is_read_comes_back() {
    let mut valid = Proposal::new([("protocol", "shamir".to_owned()), ("evaluates", "aes-128".to_owned())]);
    valid.bring("key", 16);
    let valid = vec![serde_json::to_vec(&valid).expect("plain data")];
    let words = [
        "\"settings\":",
        "\"brings\":",
        "[[",
        "]]",
        "{",
        "}",
        "\\u0000",
        "-1",
        "1e999",
        "18446744073709551616",
    ];
    fuzz!("proposals", &words, valid, |bytes: &[u8]| {
        within_memory((1 << 20) + 512 * bytes.len(), || {
            if let Ok(proposal) = Proposal::parse(bytes) {
                let again = serde_json::to_vec(&proposal).expect("plain data");
                assert_eq!(Proposal::parse(&again), Ok(proposal));
            }
        });
    });
}
