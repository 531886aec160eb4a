//! The fingerprint of a cluster file. Operators compare it to know that they have the same file, and that
//! nobody replaced it on its way.
//!
//! It covers everything that a node or a client trusts: the cluster's id, protocol and threshold, and every
//! card in full with its name, addresses and certificates. It is a digest (BLAKE3, with its own context) of
//! the fields in order. Each field has its length in front, so no two files give the same input to the
//! digest. It changes when a node rotates its certificate, and then people compare it again. Running nodes
//! accept a changed file each in its own time, so they compare [`Cluster::lasting_digest`] instead.
//!
//! # How hard it is to forge
//!
//! A forger can search offline without a time limit, so people must never compare only a part of a
//! fingerprint. In hexadecimal it has 256 bits; as 16 words it has the first 16 bytes, 128 bits. To find a
//! file with the fingerprint of a given file (a second preimage) takes 2^256 tries for hexadecimal and 2^128
//! for words. A person who also makes the first file can look for two files with one fingerprint (a
//! collision): that takes 2^128 tries for hexadecimal, but 2^64 for words. So compare words only if you trust
//! the person who defines the cluster, and hexadecimal otherwise.

mod words;

use std::fmt;

use crate::{Card, Cluster, Error, Place, Replaced, Result, Roles};
use words::WORDS;

/// The number of words in the short form, one for each byte.
const SPOKEN: usize = 16;

/// A digest of a whole cluster file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(crate) fn of(cluster: &Cluster) -> Fingerprint {
        let mut fields =
            Fields(blake3::Hasher::new_derive_key("polyclave 2026 fingerprint of a cluster file"));
        fields.bytes(&cluster.id());
        fields.bytes(cluster.protocol().as_bytes());
        fields.number(cluster.threshold());
        fields.number(cluster.nodes());
        for card in cluster.cards() {
            // Taken apart, so that a new field is not forgotten here.
            let Card { name, address, client_address, certificates, workers: _ } = card;
            for text in [name, address, client_address] {
                fields.bytes(text.as_bytes());
            }
            fields.number(certificates.len());
            certificates.iter().for_each(|certificate| fields.bytes(certificate));
        }
        // Nothing for a cluster that replaces none. Everything before is of known length here, so no two
        // files meet.
        if let Some(Replaced { id, fingerprint, lost }) = cluster.replaces() {
            fields.bytes(id);
            fields.bytes(fingerprint.as_bytes());
            fields.number(lost.len());
            lost.iter().for_each(|name| fields.bytes(name.as_bytes()));
        }
        // Nothing for nodes of one worker. The word has another length than the id of a cluster.
        if cluster.cards().iter().any(|card| !card.workers.is_empty()) {
            fields.bytes(b"workers");
            for card in cluster.cards() {
                fields.number(card.workers.len());
                for Place { address, client_address } in &card.workers {
                    fields.bytes(address.as_bytes());
                    fields.bytes(client_address.as_bytes());
                }
            }
        }
        // Nothing where all workers do both. This word has another length, too.
        if !cluster.roles().is_empty() {
            fields.bytes(b"duties");
            let Roles { serve_only, make_only } = cluster.roles();
            for numbers in [serve_only, make_only] {
                fields.number(numbers.len());
                numbers.iter().for_each(|number| fields.number((*number).into()));
            }
        }
        // The version of the file stands for no more than the fields that it has.
        // Nothing without standby pairs. This word has another length, too.
        if cluster.has_standby() {
            fields.bytes(b"standby pairs");
        }
        Fingerprint(*fields.0.finalize().as_bytes())
    }

    /// The digest itself.
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The short form, to be read aloud: 16 words, 128 bits.
    pub fn words(&self) -> String {
        self.0[..SPOKEN].iter().map(|byte| WORDS[usize::from(*byte)]).collect::<Vec<_>>().join(" ")
    }

    /// Checks that this is the whole fingerprint that a person expects, in hexadecimal or words. Case, spaces
    /// and dashes do not matter.
    pub fn check(&self, expected: &str) -> Result<()> {
        let fits = match Expected::parse(expected)? {
            Expected::Whole(bytes) => bytes == self.0,
            Expected::Spoken(bytes) => bytes == self.0[..SPOKEN],
        };
        let message = || {
            format!(
                "the cluster file has another fingerprint than was expected, so it is not the file that was meant, or somebody \
                 changed it on its way; nothing was changed here. It has\n  {self}\n  {}\nAsk whoever gave the expected one \
                 which file it is of",
                self.words()
            )
        };
        if fits { Ok(()) } else { Err(Error::misuse(message())) }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Fields with their lengths, so that each can be told from the next.
struct Fields(blake3::Hasher);

impl Fields {
    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    fn number(&mut self, number: usize) {
        self.0.update(&(number as u64).to_le_bytes());
    }
}

/// A fingerprint as a person entered it.
enum Expected {
    Whole([u8; 32]),
    Spoken([u8; SPOKEN]),
}

impl Expected {
    fn parse(text: &str) -> Result<Expected> {
        let text = text.to_ascii_lowercase();
        let parts: Vec<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|p| !p.is_empty()).collect();
        let digits = parts.concat();
        let mut whole = [0; 32];
        if hex::decode_to_slice(&digits, &mut whole).is_ok() {
            return Ok(Expected::Whole(whole));
        }
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(Error::misuse(format!(
                "the expected fingerprint has {} hexadecimal digits, and takes all 64: part of one can be forged",
                digits.len()
            )));
        }
        let number = |word: &&str| WORDS.iter().position(|known| known == word);
        if let Some(unknown) = parts.iter().find(|part| number(part).is_none()) {
            return Err(Error::misuse(format!(
                "'{unknown}' is no word of a fingerprint; the expected one is 64 hexadecimal digits or {SPOKEN} words"
            )));
        }
        let bytes: Vec<u8> = parts.iter().filter_map(number).map(|number| number as u8).collect();
        let count = bytes.len();
        bytes.try_into().map(Expected::Spoken).map_err(|_| {
            Error::misuse(format!(
                "the expected fingerprint has {count} words, and takes all {SPOKEN}: part of one can be forged"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::card::tests::{card, certificate};

    fn cluster() -> Cluster {
        let mut cards = vec![card("a", 1), card("b", 2), card("c", 3)];
        cards[1].certificates.push(certificate(12));
        Cluster::define("shamir", 1, cards).expect("it fits")
    }

    /// Every file that differs from this one in one value, whatever fields there are.
    fn changed(value: &toml::Value) -> Vec<toml::Value> {
        match value {
            toml::Value::String(text) => {
                // Hexadecimal and base64 stay what they are.
                let at = text.len() / 2;
                let other = if &text[at..=at] == "1" { "2" } else { "1" };
                vec![toml::Value::String(format!("{}{other}{}", &text[..at], &text[at + 1..]))]
            }
            toml::Value::Integer(number) => vec![toml::Value::Integer(number + 1)],
            toml::Value::Table(table) => {
                let one = |(key, value): (&String, &toml::Value)| {
                    let with = |other| {
                        let mut table = table.clone();
                        table.insert(key.clone(), other);
                        toml::Value::Table(table)
                    };
                    changed(value).into_iter().map(with).collect::<Vec<_>>()
                };
                table.iter().flat_map(one).collect()
            }
            toml::Value::Array(items) => {
                let mut all = Vec::new();
                for (i, item) in items.iter().enumerate() {
                    for other in changed(item) {
                        let mut items = items.clone();
                        items[i] = other;
                        all.push(toml::Value::Array(items));
                    }
                    let mut fewer = items.clone();
                    fewer.remove(i);
                    all.push(toml::Value::Array(fewer));
                }
                let turned = toml::Value::Array(items.iter().rev().cloned().collect());
                all.extend((items.len() > 1).then_some(turned));
                all
            }
            other => panic!("a field of a kind that this test does not know: {other}"),
        }
    }

    #[test]
    fn every_value_of_the_file_is_in_the_fingerprint() {
        let before = cluster();
        let file: toml::Value = toml::from_str(&before.to_text()).expect("it is TOML");
        let all = changed(&file);
        // Id, protocol and threshold; of 3 cards 3 texts, 4 certificates changed and left out, one pair of
        // them turned; cards left out and turned.
        assert_eq!(all.len(), 3 + 3 * 3 + 2 * 4 + 1 + 3 + 1);
        let mut seen = vec![before.fingerprint()];
        for other in all {
            let text = toml::to_string(&other).expect("it is TOML");
            // Not checked: it only has to be told from the right one.
            let after: Cluster = toml::from_str(&text).expect("the same fields");
            assert_ne!(after, before, "{text}");
            assert!(!seen.contains(&after.fingerprint()), "{text}");
            seen.push(after.fingerprint());
        }
    }

    #[test]
    fn what_a_file_says_of_the_cluster_before_is_in_the_fingerprint() {
        let change =
            crate::Change { lost: vec!["a".into()], added: vec![card("d", 4)], ..Default::default() };
        let before = cluster().reshaped(&change).expect("it fits");
        let file: toml::Value = toml::from_str(&before.to_text()).expect("it is TOML");
        let replaced = &file["replaces"];
        let all = changed(replaced);
        // Id, fingerprint, the lost node changed and left out.
        assert_eq!(all.len(), 2 + 2);
        let mut seen = vec![before.fingerprint()];
        for other in all {
            let mut file = file.clone();
            file["replaces"] = other;
            let after: Cluster =
                toml::from_str(&toml::to_string(&file).expect("TOML")).expect("the same fields");
            assert!(!seen.contains(&after.fingerprint()));
            seen.push(after.fingerprint());
        }
    }

    #[test]
    fn what_moves_from_one_field_to_the_next_shows() {
        let with = |address: &str, client_address: &str| {
            let mut card = card("a", 1);
            (card.address, card.client_address) = (address.into(), client_address.into());
            let mut cluster = cluster();
            cluster.update(card).expect("it fits");
            cluster
        };
        let text = with("h:1", "1h:2").to_text();
        let id = cluster().id();
        let of = |text: String| {
            let same_id = text.replace(&hex::encode(with("h:1", "1h:2").id()), &hex::encode(id));
            Cluster::parse(&same_id).expect("it fits").fingerprint()
        };
        let moved = text.replace("\"h:1\"", "\"h:11\"").replace("\"1h:2\"", "\"h:2\"");
        assert_ne!(of(text), of(moved));
    }

    #[test]
    fn the_expected_one_is_taken_in_either_form_however_it_is_written_and_whole_only() {
        let cluster = cluster();
        let fingerprint = cluster.fingerprint();
        let (hex, words) = (fingerprint.to_string(), fingerprint.words());
        assert_eq!((hex.len(), words.split(' ').count()), (64, 16));
        let grouped: Vec<&str> = (0..8).map(|i| &hex[8 * i..8 * i + 8]).collect();
        let good = [
            hex.clone(),
            hex.to_uppercase(),
            grouped.join(" "),
            grouped.join(":\n"),
            words.clone(),
            words.to_uppercase(),
            words.replace(' ', "-"),
            format!("  {}\n", words.replace(' ', "\n  ")),
        ];
        for good in good {
            fingerprint.check(&good).expect(&good);
        }
        let (last_hex, last_word) = (hex.len() - 1, words.rfind(' ').expect("several"));
        let wrong_digit = format!("{}{}", &hex[..last_hex], if hex.ends_with('0') { '1' } else { '0' });
        let wrong_word =
            if words.ends_with("zebra") || words.ends_with("zigzag") { "acorn" } else { "zigzag" };
        let wrong_word = format!("{} {wrong_word}", &words[..last_word]);
        for bad in [wrong_digit, wrong_word] {
            let error = fingerprint.check(&bad).expect_err(&bad).to_string();
            assert!(
                error.contains("another fingerprint than was expected") && error.contains(&hex),
                "{error}"
            );
        }
        for part in [&hex[..last_hex], &hex[..32], &hex[..16], &words[..last_word], ""] {
            assert!(fingerprint.check(part).is_err(), "{part:?} is only part of it");
        }
        assert!(fingerprint.check(&hex[..32]).expect_err("a part").to_string().contains("all 64"));
        assert!(
            fingerprint
                .check("what is this")
                .expect_err("no words")
                .to_string()
                .contains("'what' is no word")
        );
    }
}
