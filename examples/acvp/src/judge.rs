//! An answer beside the expected one. Where the nodes chose the counter or the nonce, no other answer can
//! equal theirs; then another implementation computes what belongs to it, under the test's key.

use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::{Aead, KeyInit, Payload, consts::U12};
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};
use serde_json::Value;

use crate::ask::Answer;
use crate::job::{Job, Task};
use crate::set::Fields;

/// Why an answer is wrong; `None` for one that is right.
pub fn fault(job: &Job, answer: &Answer, expected: Option<&Fields>) -> Option<String> {
    if let Some(chosen) = &answer.chosen {
        return fault_of_chosen(job, answer, chosen);
    }
    let Some(expected) = expected else {
        return Some("the expected results have no such test".into());
    };
    // Letters of FF1 are what they are; those of hexadecimal are not.
    let is_exact = matches!(job.task, Task::Ff1 { .. });
    let is_same = answer.fields.len() == expected.len()
        && answer
            .fields
            .iter()
            .zip(expected)
            .all(|((name, given), (other, due))| name == other && is_equal(given, due, is_exact));
    (!is_same).then(|| {
        format!("the nodes' answer is {}, and {} is expected", shown(&answer.fields), shown(expected))
    })
}

fn is_equal(given: &Value, due: &Value, is_exact: bool) -> bool {
    match (given, due) {
        (Value::String(given), Value::String(due)) if !is_exact => given.eq_ignore_ascii_case(due),
        (Value::Array(given), Value::Array(due)) => {
            given.len() == due.len() && given.iter().zip(due).all(|(g, d)| is_equal(g, d, is_exact))
        }
        (Value::Object(given), Value::Object(due)) => {
            let same = |(name, value): (&String, &Value)| {
                due.get(name).is_some_and(|due| is_equal(value, due, is_exact))
            };
            given.len() == due.len() && given.iter().all(same)
        }
        _ => given == due,
    }
}

fn fault_of_chosen(job: &Job, answer: &Answer, chosen: &[u8]) -> Option<String> {
    let (key, field) = (&job.key, |name: &str| answer.fields.get(name).and_then(Value::as_str));
    let due = match &job.task {
        Task::Ctr { data, .. } => counted(key, chosen, data).map(|output| (output, Vec::new())),
        Task::GcmEncrypt { additional, data, tag_bytes, .. } => {
            sealed(key, chosen, Payload { msg: data, aad: additional }).map(|mut message| {
                let mut tag = message.split_off(data.len());
                tag.truncate(*tag_bytes);
                (message, tag)
            })
        }
        _ => None,
    };
    let Some((output, tag)) = due else {
        return Some(format!("the nodes chose {}, which does not belong here", hex::encode_upper(chosen)));
    };
    let is_right = field("ct") == Some(&hex::encode_upper(&output))
        && field("tag").unwrap_or_default() == hex::encode_upper(&tag);
    (!is_right).then(|| {
        format!(
            "the nodes' answer is {}, and under its iv another implementation gives {}",
            shown(&answer.fields),
            { hex::encode_upper([output, tag].concat()) }
        )
    })
}

/// The output of counter mode, if lengths fit.
fn counted(key: &[u8], counter: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut output = data.to_vec();
    match key.len() {
        16 => Ctr128BE::<Aes128>::new_from_slices(key, counter).ok()?.apply_keystream(&mut output),
        24 => Ctr128BE::<Aes192>::new_from_slices(key, counter).ok()?.apply_keystream(&mut output),
        _ => Ctr128BE::<Aes256>::new_from_slices(key, counter).ok()?.apply_keystream(&mut output),
    }
    Some(output)
}

/// Ciphertext and tag of GCM, if lengths fit.
fn sealed(key: &[u8], nonce: &[u8], message: Payload<'_, '_>) -> Option<Vec<u8>> {
    let nonce: &[u8; 12] = nonce.try_into().ok()?;
    match key.len() {
        16 => AesGcm::<Aes128, U12>::new_from_slice(key).ok()?.encrypt(nonce.into(), message).ok(),
        24 => AesGcm::<Aes192, U12>::new_from_slice(key).ok()?.encrypt(nonce.into(), message).ok(),
        _ => AesGcm::<Aes256, U12>::new_from_slice(key).ok()?.encrypt(nonce.into(), message).ok(),
    }
}

/// The most characters of an answer in a message.
const SHOWN: usize = 200;

fn shown(fields: &Fields) -> String {
    let mut text = serde_json::to_string(fields).unwrap_or_default();
    if let Some((cut, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(cut);
        text.push_str("..");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        serde_json::from_str(text).expect("an object")
    }

    fn job(task: Task) -> Job {
        Job { cipher: "aes-128", key: vec![7; 16], task }
    }

    #[test]
    fn an_answer_has_all_that_is_expected_and_nothing_else() {
        let ecb = job(Task::Ecb { encrypts: true, data: vec![0; 16] });
        let fault = |given: &str, due: &str| {
            fault(&ecb, &Answer { fields: fields(given), chosen: None }, Some(&fields(due)))
        };
        for (given, due) in [
            (r#"{"ct": "0A"}"#, r#"{"ct": "0a"}"#),
            (r#"{"testPassed": false}"#, r#"{"testPassed": false}"#),
            (r#"{"resultsArray": [{"ct": "0A"}]}"#, r#"{"resultsArray": [{"ct": "0A"}]}"#),
        ] {
            assert_eq!(fault(given, due), None);
        }
        for (given, due) in [
            (r#"{"ct": "0A"}"#, r#"{"ct": "0B"}"#),
            (r#"{"ct": "0A"}"#, r#"{"pt": "0A"}"#),
            (r#"{"ct": "0A"}"#, r#"{"ct": "0A", "tag": "00"}"#),
            (r#"{"ct": "0A", "tag": "00"}"#, r#"{"ct": "0A"}"#),
            (r#"{"pt": "0A"}"#, r#"{"testPassed": false}"#),
            (r#"{"testPassed": true}"#, r#"{"testPassed": false}"#),
            (r#"{"resultsArray": [{"ct": "0A"}]}"#, r#"{"resultsArray": [{"ct": "0A"}, {"ct": "0A"}]}"#),
            (r#"{"resultsArray": [{"ct": "0A"}]}"#, r#"{"resultsArray": [{"ct": "0B"}]}"#),
        ] {
            assert!(fault(given, due).expect("a fault").contains("is expected"), "{given} {due}");
        }
        let answer = Answer { fields: fields("{}"), chosen: None };
        assert!(super::fault(&ecb, &answer, None).expect("a fault").contains("no such test"));
    }

    #[test]
    fn letters_of_tokens_are_not_those_of_hexadecimal() {
        let alphabet = polyclave_client::Alphabet::new("abAB").expect("an alphabet");
        let ff1 = job(Task::Ff1 { encrypts: true, alphabet, tweak: Vec::new(), value: "ab".repeat(5) });
        let answer = Answer { fields: fields(r#"{"ct": "ab"}"#), chosen: None };
        assert!(fault(&ff1, &answer, Some(&fields(r#"{"ct": "AB"}"#))).is_some());
    }

    /// Every changed part of an answer is noticed.
    #[test]
    fn what_nodes_chose_is_computed_again() {
        let data = b"under a nonce of the nodes".to_vec();
        let ctr = job(Task::Ctr { encrypts: true, counter: None, data: data.clone() });
        let counter = vec![0xff; 16];
        let output = counted(&ctr.key, &counter, &data).expect("computed");
        let gcm = job(Task::GcmEncrypt {
            nonce: None,
            additional: b"more".to_vec(),
            data: data.clone(),
            tag_bytes: 12,
        });
        let nonce = vec![3; 12];
        let sealed = sealed(&gcm.key, &nonce, Payload { msg: &data, aad: b"more" }).expect("computed");
        let (ciphertext, tag) = sealed.split_at(data.len());
        for (job, chosen, output, tag) in
            [(ctr, counter, &output[..], &[][..]), (gcm, nonce, ciphertext, &tag[..12])]
        {
            let answer = |chosen: &[u8], output: &[u8], tag: &[u8]| {
                let mut fields = Fields::from([("ct".to_owned(), hex::encode_upper(output).into())]);
                if !tag.is_empty() {
                    fields.insert("tag".into(), hex::encode_upper(tag).into());
                }
                Answer { fields, chosen: Some(chosen.to_vec()) }
            };
            let flipped = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                if let Some(last) = bytes.last_mut() {
                    *last ^= 1;
                }
                bytes
            };
            assert_eq!(fault(&job, &answer(&chosen, output, tag), None), None);
            assert!(fault(&job, &answer(&flipped(&chosen), output, tag), None).is_some());
            assert!(fault(&job, &answer(&chosen, &flipped(output), tag), None).is_some());
            assert!(fault(&job, &answer(&chosen[1..], output, tag), None).is_some());
            if !tag.is_empty() {
                assert!(fault(&job, &answer(&chosen, output, &flipped(tag)), None).is_some());
                assert!(fault(&job, &answer(&chosen, output, &tag[1..]), None).is_some());
            }
        }
    }
}
