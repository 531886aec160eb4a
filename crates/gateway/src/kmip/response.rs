//! Responses.

use zeroize::Zeroizing;

use super::call::Done;
use super::codes::{Version, tag};
use super::refused::Refused;
use super::tell::write_version;
use super::ttlv::{Value, Writer, put};

/// Bytes of a response beside payloads and messages: of its header, and of each item.
const HEADER: usize = 128;
const AROUND: usize = 160;
/// The most characters of a message, which have 4 bytes each at most.
const MOST_MESSAGE: usize = 400;

/// The result of an item of a batch, with its operation, if it was read, and its id.
pub(super) struct Outcome<'m> {
    pub(super) operation: Option<u32>,
    pub(super) id: Option<&'m [u8]>,
    pub(super) outcome: super::refused::Result<Done>,
}

/// Writes a response. `now` are seconds since 1970.
pub(super) fn write(version: Version, outcomes: &[Outcome<'_>], now: i64) -> Zeroizing<Vec<u8>> {
    // With room for all of it: growing would leave plaintexts behind.
    let mut writer = Writer::with_capacity(HEADER + outcomes.iter().map(Outcome::bytes).sum::<usize>());
    writer.structure(tag::RESPONSE_MESSAGE, |message| {
        message.structure(tag::RESPONSE_HEADER, |header| {
            write_version(header, version);
            put(header, tag::TIME_STAMP, Value::DateTime(now));
            put(header, tag::BATCH_COUNT, Value::Integer(outcomes.len() as i32));
        });
        for outcome in outcomes {
            message.structure(tag::BATCH_ITEM, |item| outcome.write(item, version));
        }
    });
    writer.into_bytes()
}

impl Outcome<'_> {
    /// How many bytes it takes at most.
    fn bytes(&self) -> usize {
        let inner = self.outcome.as_ref().map_or(4 * MOST_MESSAGE, |done| done.payload.len());
        AROUND + self.id.map_or(0, <[u8]>::len) + inner
    }

    fn write(&self, item: &mut Writer, version: Version) {
        if let Some(operation) = self.operation {
            put(item, tag::OPERATION, Value::Enumeration(operation));
        }
        if let Some(id) = self.id {
            put(item, tag::UNIQUE_BATCH_ITEM_ID, Value::Bytes(id));
        }
        put(item, tag::RESULT_STATUS, Value::Enumeration(u32::from(self.outcome.is_err())));
        match &self.outcome {
            Ok(done) => item.written(tag::RESPONSE_PAYLOAD, &done.payload),
            Err(Refused { reason, message }) => {
                let message: String = message.chars().take(MOST_MESSAGE).collect();
                put(item, tag::RESULT_REASON, Value::Enumeration(reason.code(version)));
                put(item, tag::RESULT_MESSAGE, Value::Text(&message));
            }
        }
    }
}
