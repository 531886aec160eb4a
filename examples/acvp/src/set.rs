//! The JSON of vector sets (draft-fussell-acvp-spec, section 12, and the drafts for symmetric ciphers and
//! MACs): `prompt.json`, and `expectedResults.json`, which has the form of a response.
//!
//! A file is a vector set, or, as it comes from a server, a list of the protocol's version and the set.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The most bytes of a file. NIST's largest sets for the algorithms here have 5 MB.
pub const MOST_BYTES: u64 = 64 << 20;

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The number of the set.
    pub vs_id: u64,
    /// Such as `ACVP-AES-ECB`.
    pub algorithm: String,
    /// Of the algorithm's tests, such as `1.0`.
    pub revision: String,
    /// Tests that have much in common.
    pub test_groups: Vec<Group>,
}

/// A group of tests. Lengths are in bits. Which of them a group has depends on the algorithm.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they are called as in the drafts")]
pub struct Group {
    pub tg_id: u64,
    /// `AFT`: each test is one computation. `MCT`: a Monte Carlo test.
    pub test_type: String,
    /// `encrypt` or `decrypt`; of MACs `gen` or `ver`.
    pub direction: Option<String>,
    pub key_len: Option<u64>,
    /// Of Triple DES: 1 for three keys, 2 for two.
    pub keying_option: Option<u64>,
    pub tag_len: Option<u64>,
    pub mac_len: Option<u64>,
    /// Who chooses the initial block: `external` is the server.
    pub iv_gen: Option<String>,
    /// The section of SP 800-38D that says how: `8.2.1` or `8.2.2`.
    pub iv_gen_mode: Option<String>,
    /// Of key wrap: which direction of the block cipher wraps.
    pub kw_cipher: Option<String>,
    /// Of FF1.
    pub alphabet: Option<String>,
    pub tests: Vec<Test>,
}

/// A test. All is hexadecimal, except for plain texts and ciphertexts of FF1.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "they are called as in the drafts")]
pub struct Test {
    pub tc_id: u64,
    pub key: Option<String>,
    pub key1: Option<String>,
    pub key2: Option<String>,
    pub key3: Option<String>,
    pub iv: Option<String>,
    pub pt: Option<String>,
    pub ct: Option<String>,
    pub aad: Option<String>,
    pub tag: Option<String>,
    pub message: Option<String>,
    pub mac: Option<String>,
    pub tweak: Option<String>,
    /// In bits.
    pub payload_len: Option<u64>,
}

/// What was answered, or is expected.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The number of the set.
    pub vs_id: u64,
    /// As in the prompt.
    pub algorithm: String,
    /// As in the prompt.
    pub revision: String,
    /// As in the prompt. Tests that were not answered are left out.
    pub test_groups: Vec<AnsweredGroup>,
}

/// The answers to a group.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredGroup {
    /// The number of the group.
    pub tg_id: u64,
    /// Those to its tests.
    pub tests: Vec<AnsweredTest>,
}

/// The answer to a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnsweredTest {
    /// The number of the test.
    pub tc_id: u64,
    /// What else there is, such as `ct`.
    #[serde(flatten)]
    pub fields: Fields,
}

/// Fields of an answer by their names.
pub type Fields = BTreeMap<String, serde_json::Value>;

/// The version of the protocol, in front of a set.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    acv_version: String,
}

impl Prompt {
    /// Reads a prompt. No two of its tests may have the same number.
    pub fn parse(bytes: &[u8]) -> Result<Prompt> {
        let prompt: Prompt = parse(bytes)?;
        let (mut groups, mut tests) = (HashSet::new(), HashSet::new());
        for group in &prompt.test_groups {
            ensure!(groups.insert(group.tg_id), "two groups have the tgId {}", group.tg_id);
            for test in &group.tests {
                ensure!(tests.insert(test.tc_id), "two tests have the tcId {}", test.tc_id);
            }
        }
        Ok(prompt)
    }
}

impl Response {
    /// Reads a response, or expected results.
    pub fn parse(bytes: &[u8]) -> Result<Response> {
        parse(bytes)
    }

    /// What is said about each test, by its number. It has to be about the same set.
    pub fn by_test(self, prompt: &Prompt) -> Result<BTreeMap<u64, Fields>> {
        let (of, about) = ((self.vs_id, &self.algorithm), (prompt.vs_id, &prompt.algorithm));
        ensure!(of == about, "the expected results are those of set {of:?}, and the prompt is set {about:?}");
        let tests = self.test_groups.into_iter().flat_map(|group| group.tests);
        let mut answers = BTreeMap::new();
        for AnsweredTest { tc_id, fields } in tests {
            ensure!(answers.insert(tc_id, fields).is_none(), "two expected results have the tcId {tc_id}");
        }
        Ok(answers)
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    let is_list = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    match is_list {
        true => serde_json::from_slice(bytes).map(|(Version { .. }, set)| set),
        false => serde_json::from_slice(bytes),
    }
    .context("this is no vector set of ACVP as this program knows it")
}

/// The bytes of a file that is not too large.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let shown = path.display();
    let file = std::fs::File::open(path).with_context(|| format!("cannot open {shown}"))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
    ensure!(
        bytes.len() as u64 <= MOST_BYTES,
        "{shown} has more than {MOST_BYTES} bytes, which is the most here"
    );
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &str = r#"{"vsId": 1, "algorithm": "ACVP-AES-ECB", "revision": "1.0", "testGroups": [
        {"tgId": 1, "testType": "AFT", "tests": [{"tcId": 1}, {"tcId": 2}]}]}"#;

    #[test]
    fn a_set_is_read_with_the_version_of_the_protocol_and_without() {
        for text in [SET.into(), format!("\n [{{\"acvVersion\": \"1.0\"}}, {SET}]")] {
            assert_eq!(Prompt::parse(text.as_bytes()).expect("a set").test_groups[0].tests.len(), 2);
        }
    }

    #[test]
    fn what_is_no_set_is_an_error_that_says_where() {
        for (text, because) in [
            ("", "EOF while parsing"),
            ("{", "line 1 column 1"),
            ("[]", "invalid length 0"),
            (&SET.replace("\"tcId\": 2", "\"tcId\": 1"), "two tests have the tcId 1"),
            (&SET.replace("\"vsId\": 1", "\"vsId\": 1e99"), "invalid type"),
            (&SET.replace("\"tcId\": 2", "\"tcId\": 99999999999999999999999"), "line 2"),
            (&SET.replace("\"tcId\": 2", "\"tcId\": 2, \"pt\": 7"), "expected a string"),
            (&SET.replace("\"tgId\": 1,", ""), "missing field `tgId`"),
            (&"[".repeat(100_000), "no vector set"),
        ] {
            let error = format!("{:#}", Prompt::parse(text.as_bytes()).expect_err("refused"));
            assert!(error.contains(because), "{error}");
        }
    }

    #[test]
    fn expected_results_of_another_set_are_refused() {
        let prompt = Prompt::parse(SET.as_bytes()).expect("a set");
        let response = |text: String| Response::parse(text.as_bytes()).expect("a response").by_test(&prompt);
        assert_eq!(response(SET.into()).expect("the same set").len(), 2);
        for other in [SET.replace("ECB", "CBC"), SET.replace("\"vsId\": 1", "\"vsId\": 2")] {
            assert!(response(other).expect_err("refused").to_string().contains("the prompt is set"));
        }
        let twice = SET.replace("\"tcId\": 2", "\"tcId\": 1");
        assert!(response(twice).expect_err("refused").to_string().contains("two expected results"));
    }
}
