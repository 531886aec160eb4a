//! Signatures that were shown already. The signature of a request covers its time and the id that KMS gives
//! each request. So no two requests of KMS have the same one, and whoever shows one again has copied the
//! request.
//!
//! A signature is remembered for as long as its time is accepted. Only those that have been verified are
//! remembered, so nobody without a secret can fill the memory. An access key has a part of it: the holders of
//! others find room. A gateway that was started again has forgotten them, and another gateway does not know
//! them.

use std::collections::{BTreeMap, HashMap, HashSet};

use parking_lot::Mutex;
use time::{Duration, OffsetDateTime};

use super::error::{Kind, Result};
use crate::signed::SignedRequest;

/// How far the time of a signature may be from that of this machine, as the specification has it.
pub(super) const WITHIN: Duration = Duration::minutes(5);
/// The most signatures that are remembered, in some 60 MiB. An access key may have two thirds of them: 3,400
/// a second.
const MOST: usize = 3 << 19;
/// Seconds that have a set of their own.
const SPAN: i64 = 60;

/// See the [module](self).
#[derive(Default)]
pub(super) struct Replays(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    /// The first halves of signatures, by the span of their times. Two different signatures of a secret that
    /// have the same half are not to be found: they are codes of HMAC.
    by_span: BTreeMap<i64, Span>,
}

#[derive(Default)]
struct Span {
    halves: HashSet<[u8; 16]>,
    /// How many each access key has, by its id.
    of: HashMap<String, usize>,
}

impl Replays {
    /// Refuses a signature that was shown before.
    pub(super) fn check(&self, signed: &SignedRequest, now: OffsetDateTime) -> Result<()> {
        self.note((&signed.signature, &signed.access_key.entry.id), signed.at, now)
    }

    fn note(
        &self,
        (signature, access_key): (&[u8; 32], &str),
        at: OffsetDateTime,
        now: OffsetDateTime,
    ) -> Result<()> {
        let span = |time: OffsetDateTime| time.unix_timestamp().div_euclid(SPAN);
        let mut seen = self.0.lock();
        // Nothing of a span that is over is accepted any more.
        seen.by_span = seen.by_span.split_off(&span(now - WITHIN));
        let number = |count: fn(&Span, &str) -> usize| {
            seen.by_span.values().map(|span| count(span, access_key)).sum::<usize>() + 1
        };
        let all = number(|span, _| span.halves.len());
        let own = number(|span, access_key| span.of.get(access_key).copied().unwrap_or_default());
        // An access key may have twice what is left then: so there is always room for another one.
        if own > 2 * MOST.saturating_sub(all) {
            let why = "more signed requests within minutes than there is memory for; ask again later";
            return Err(Kind::Throttling.exception(why));
        }
        let half = signature.first_chunk().copied().unwrap_or_default();
        let span = seen.by_span.entry(span(at)).or_default();
        if !span.halves.insert(half) {
            return Err(Kind::AuthenticationFailed.exception("this signed request was sent before"));
        }
        match span.of.get_mut(access_key) {
            Some(count) => *count += 1,
            None => drop(span.of.insert(access_key.into(), 1)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_good_once_and_remembered_for_as_long_as_its_time_is_accepted() {
        let replays = Replays::default();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time");
        let note =
            |signature: u8, at, now| replays.note((&[signature; 32], "a"), at, now).map_err(|e| e.kind);
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
    fn an_access_key_has_a_part_of_the_memory_and_nothing_is_forgotten() {
        let replays = Replays::default();
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).expect("a time");
        let number = |n: usize| {
            let mut signature = [0; 32];
            signature[..8].copy_from_slice(&n.to_be_bytes());
            signature
        };
        let note = |n, access_key, now| replays.note((&number(n), access_key), now, now).map_err(|e| e.kind);
        let most = MOST / 3 * 2;
        (0..most).for_each(|n| note(n, "a", now).expect("it is new"));
        assert_eq!(note(most, "a", now), Err(Kind::Throttling));
        assert_eq!(note(most + 1, "b", now), Ok(()), "another one has room");
        assert_eq!(note(0, "b", now), Err(Kind::AuthenticationFailed), "nothing is forgotten");
        let later = now + Duration::minutes(7);
        assert_eq!(note(most, "a", later), Ok(()), "there is room again");
    }
}
