//! One line: its fields, its text and its hash.

use polyclave_transport::check_identity;
use serde::{Deserialize, Serialize};

use super::{Event, Head};

/// The most bytes of a line.
pub(super) const MAX_LINE: usize = 2048;

/// The most bytes of a field's text, and of the text about a changed rule.
const MAX_TEXT: usize = 64;
const MAX_DETAIL: usize = 1024;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) client: String,
    pub(super) operation: String,
    key: String,
    pub(super) outcome: String,
    pub(super) blocks: u64,
    pub(super) detail: String,
    /// A mark that the store had reached when the line was written ([`polyclave_store::Mark`]). Lines of
    /// older versions have none; it is 0 then.
    #[serde(default, skip_serializing_if = "is_absent")]
    pub(super) mark: u64,
    #[serde(with = "hex::serde")]
    pub(super) request: [u8; 16],
    #[serde(with = "hex::serde")]
    pub(super) previous: [u8; 32],
    #[serde(with = "hex::serde")]
    pub(super) hash: [u8; 32],
}

impl Line {
    pub(super) fn new(event: &Event, time: String, before: Head, mark: u64) -> Line {
        let (seq, previous) = (before.0.saturating_add(1), before.1);
        let mut line = Line {
            seq,
            time,
            client: client(event.client),
            operation: fitting(event.operation),
            key: fitting(event.key),
            outcome: fitting(event.outcome),
            blocks: event.blocks,
            detail: described(event.detail),
            mark,
            request: event.request,
            previous,
            hash: [0; 32],
        };
        line.hash = line.computed_hash();
        line
    }

    /// Reads a line and checks that it has the bytes that were written and the right hash; `None` otherwise.
    pub(super) fn parse(text: &[u8]) -> Option<Line> {
        let line: Line = serde_json::from_slice(text).ok()?;
        let same = line.to_text().as_bytes().strip_suffix(b"\n") == Some(text);
        (same && line.hash == line.computed_hash()).then_some(line)
    }

    /// The text of the line, including the line feed.
    pub(super) fn to_text(&self) -> String {
        let mut text = serde_json::to_string(self).expect("texts and numbers have a form in JSON");
        text.push('\n');
        text
    }

    pub(super) fn head(&self) -> Head {
        (self.seq, self.hash)
    }

    pub(super) fn computed_hash(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let text = |hasher: &mut blake3::Hasher, text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        hasher.update(&self.seq.to_le_bytes());
        for field in [&self.time, &self.client, &self.operation, &self.key, &self.outcome] {
            text(&mut hasher, field);
        }
        hasher.update(&self.blocks.to_le_bytes());
        text(&mut hasher, &self.detail);
        if !is_absent(&self.mark) {
            hasher.update(&self.mark.to_le_bytes());
        }
        hasher.update(&self.request).update(&self.previous);
        *hasher.finalize().as_bytes()
    }
}

fn is_absent(mark: &u64) -> bool {
    *mark == 0
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"-_.".contains(&b)
}

/// Accepts names and words. Anything else could contain somebody's data.
fn fitting(text: &str) -> String {
    if text.len() <= MAX_TEXT && text.bytes().all(is_word) { text.into() } else { "?".into() }
}

/// Accepts names, and identities of clients of authorities, which are longer.
fn client(text: &str) -> String {
    match check_identity(text) {
        Ok(()) => text.into(),
        Err(_) => fitting(text),
    }
}

/// Accepts names, numbers and separators. A text that is too long is cut, and ends with the hash of the whole
/// text.
fn described(text: &str) -> String {
    if !text.bytes().all(|b| is_word(b) || b" =,:/*?+".contains(&b)) {
        return "?".into();
    }
    if text.len() <= MAX_DETAIL {
        return text.into();
    }
    format!("{} ... blake3:{}", &text[..MAX_DETAIL - 100], blake3::hash(text.as_bytes()).to_hex())
}
