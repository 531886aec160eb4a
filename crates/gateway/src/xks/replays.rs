//! Signatures that were shown already. The signature of a request covers its time and the id that KMS gives
//! each request. So no two requests of KMS have the same one, and whoever shows one again has copied the
//! request.
//!
//! A signature is remembered for as long as its time is accepted. Only those that have been verified are
//! remembered, so nobody without a secret can fill the memory. A gateway that was started again has forgotten
//! them, and another gateway does not know them.

use std::collections::{BTreeMap, HashSet};

use parking_lot::Mutex;
use time::{Duration, OffsetDateTime};

use super::error::{Kind, Result};
use crate::signed::SignedRequest;

/// How far the time of a signature may be from that of this machine, as the specification has it.
pub(super) const WITHIN: Duration = Duration::minutes(5);
/// The most signatures that are remembered: 3,400 a second, in some 40 MiB.
const MOST: usize = 1 << 20;
/// Seconds that have a set of their own.
const SPAN: i64 = 60;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Replays(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// The first halves of signatures, by the span of their times. Two different signatures of a secret that
    /// have the same half are not to be found: they are codes of HMAC.
    by_span: BTreeMap<i64, HashSet<[u8; 16]>>,
}

impl Replays {
    /// Refuses a signature that was shown before.
    pub(super) fn check(&self, signed: &SignedRequest, now: OffsetDateTime) -> Result<()> {
        self.note(&signed.signature, signed.at, now)
    }

    fn note(&self, signature: &[u8; 32], at: OffsetDateTime, now: OffsetDateTime) -> Result<()> {
        let span = |time: OffsetDateTime| time.unix_timestamp().div_euclid(SPAN);
        let mut seen = self.0.lock();
        // Nothing of a span that is over is accepted any more.
        seen.by_span = seen.by_span.split_off(&span(now - WITHIN));
        if seen.by_span.values().map(HashSet::len).sum::<usize>() >= MOST {
            let why = "more signed requests within minutes than there is memory for; ask again later";
            return Err(Kind::Throttling.exception(why));
        }
        let half = signature.first_chunk().copied().unwrap_or_default();
        match seen.by_span.entry(span(at)).or_default().insert(half) {
            true => Ok(()),
            false => Err(Kind::AuthenticationFailed.exception("this signed request was sent before")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_once_and_remembered_for_as_long_as_its_time_is_accepted() {
        let replays = Replays::default();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time");
        let note = |signature: u8, at, now| replays.note(&[signature; 32], at, now).map_err(|e| e.kind);
        // Requests of all times that are accepted, shown again until they are not.
        for minutes in -5..=5 {
            let at = now + Duration::minutes(minutes);
            let signature = minutes as u8;
            assert_eq!(note(signature, at, now), Ok(()), "{minutes}");
            assert_eq!(note(signature, at, now), Err(Kind::AuthenticationFailed), "{minutes}");
        }
        let last = now + Duration::minutes(5);
        for seconds in [1, 59, 61, 299, 300, 599, 600] {
            let later = now + Duration::seconds(seconds);
            assert_eq!(note(5, last, later), Err(Kind::AuthenticationFailed), "{seconds}");
        }
        assert_eq!(note(100, last, now + Duration::minutes(12)), Ok(()));
        assert_eq!(replays.0.lock().by_span.len(), 1, "what is over is forgotten");
    }

    #[test]
    fn a_full_memory_refuses_and_forgets_nothing() {
        let replays = Replays::default();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time");
        let number = |n: usize| {
            let mut signature = [0; 32];
            signature[..8].copy_from_slice(&n.to_be_bytes());
            signature
        };
        for n in 0..MOST {
            replays.note(&number(n), now, now).expect("it is new");
        }
        let refused = replays.note(&number(MOST), now, now).map_err(|e| e.kind);
        assert_eq!(refused, Err(Kind::Throttling));
        let later = now + Duration::minutes(7);
        assert_eq!(replays.note(&number(MOST), later, later), Ok(()), "there is room again");
    }
}
