//! Fuzz target: arbitrary bytes as a prompt, with what each of its tests asks, and as a response.

use polyclave_harness::fuzz;

use crate::job::plan;
use crate::set::{Prompt, Response};

/// Algorithms, fields and values.
const WORDS: [&str; 40] = [
    "ACVP-AES-ECB",
    "ACVP-AES-CBC",
    "ACVP-AES-CTR",
    "ACVP-AES-GCM",
    "ACVP-AES-KW",
    "ACVP-AES-KWP",
    "ACVP-AES-FF1",
    "ACVP-TDES-ECB",
    "ACVP-TDES-CBC",
    "CMAC-AES",
    "CMAC-TDES",
    "\"acvVersion\": ",
    "\"testType\": ",
    "\"AFT\"",
    "\"MCT\"",
    "\"direction\": ",
    "\"encrypt\"",
    "\"decrypt\"",
    "\"gen\"",
    "\"ver\"",
    "\"keyLen\": ",
    "\"keyingOption\": ",
    "\"tagLen\": ",
    "\"macLen\": ",
    "\"ivGen\": ",
    "\"internal\"",
    "\"payloadLen\": ",
    "\"alphabet\": ",
    "\"iv\": ",
    "\"key\": ",
    "\"tweak\": ",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "1e99",
    "null",
    "[",
    "]",
    "{",
    "}",
];

#[test]
fn any_bytes_are_a_set_or_an_error() {
    let valid = [
        include_bytes!("../../../vectors/acvp/ACVP-AES-GCM-1.0/prompt.json").to_vec(),
        include_bytes!("../../../vectors/acvp/ACVP-AES-CTR-1.0/prompt.json").to_vec(),
        include_bytes!("../../../vectors/acvp/ACVP-AES-FF1-1.0/prompt.json").to_vec(),
        include_bytes!("../../../vectors/acvp/ACVP-TDES-CBC-1.0/prompt.json").to_vec(),
        include_bytes!("../../../vectors/acvp/CMAC-AES-1.0/prompt.json").to_vec(),
        include_bytes!("../../../vectors/acvp/CMAC-AES-1.0/expectedResults.json").to_vec(),
    ];
    fuzz!("vector-sets", &WORDS, valid.to_vec(), |bytes: &[u8]| {
        let prompt = Prompt::parse(bytes);
        if let Ok(prompt) = &prompt {
            for group in &prompt.test_groups {
                group.tests.iter().for_each(|test| drop(plan(prompt, group, test)));
            }
        }
        if let (Ok(response), Ok(prompt)) = (Response::parse(bytes), &prompt) {
            drop(response.by_test(prompt));
        }
    });
}
