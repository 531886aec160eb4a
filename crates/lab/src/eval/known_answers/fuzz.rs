//! Fuzz targets: foreign bytes in place of a file of known answers.

use polyclave_harness::fuzz;

use super::*;

const WORDS: [&str; 14] = [
    "\"cipher\":",
    "\"key\":",
    "\"plaintext\":",
    "\"ciphertext\":",
    "\"tweak\":",
    "\"nonce\":",
    "\"mantis-7\"",
    "\"aes-128-keyschedule\"",
    "\"aes-128-gcm\"",
    "{",
    "}",
    "null",
    "0x",
    "\u{e9}",
];

/// An accepted entry has the sizes of its cipher.
#[test]
fn no_file_of_known_answers_panics_and_an_answer_has_the_sizes_of_its_cipher() {
    let zeros = "00".repeat(16);
    let entry = |cipher: &str| {
        format!(
            "{{\"cipher\":\"{cipher}\",\"key\":\"{zeros}\",\"plaintext\":\"{zeros}\",\"ciphertext\":\"{zeros}\"}}"
        )
    };
    let valid = vec![
        format!("[{}]", entry("aes-128")).into_bytes(),
        format!("[{},{}]", entry("AES-128"), entry("aes-128-gcm")).into_bytes(),
    ];
    let targets = parking_lot::Mutex::new(Targets { form: Form::Tables, known: HashMap::new() });
    fuzz!("known-answers", &WORDS, valid, |bytes: &[u8]| {
        let Ok(entries) = parse("foreign", &String::from_utf8_lossy(bytes)) else { return };
        let mut targets = targets.lock();
        for (number, entry) in (1..).zip(&entries) {
            if let Ok(Classified::Answer(target, answer)) = classify(number, entry, &mut targets) {
                assert_eq!(answer.key.len(), target.cipher.key_bytes);
                assert!(answer.plaintext.len().is_multiple_of(target.cipher.block_bytes));
                assert!(target.round_keys || answer.plaintext.len() == answer.ciphertext.len());
            }
        }
        // Unknown names are remembered, too.
        if targets.known.len() > 100 {
            targets.known.retain(|_, target| target.is_ok());
        }
    });
}
