//! Tokens that logins have given. They are in memory only, by their hashes, and end by time.
//!
//! Their number is limited. If there is no room for one more, the identity that has most loses its oldest
//! token: so somebody who logs in without end takes the tokens of nobody else. A gateway that was started
//! again knows none of them, and another gateway does not know them: then a program logs in again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use crate::login::Identity;

/// How often those that have ended are forgotten.
const UPKEEP: Duration = Duration::from_secs(1);

/// A token that a login has given.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The path of the login.
    pub(crate) login: Arc<str>,
    pub(crate) role: Arc<str>,
    pub(crate) identity: Arc<Identity>,
    /// When it was given, by the clock of the day.
    pub(crate) since: SystemTime,
    pub(crate) given: Instant,
    pub(crate) ends: Instant,
    /// When it ends however often it is renewed.
    pub(crate) last: Instant,
    /// For how long a renewal is good.
    pub(crate) life: Duration,
}

impl Session {
    /// A token of a login and a role that is given now, with a life, and one with all renewals.
    pub(super) fn begin(
        (login, role): (&str, &str),
        identity: Identity,
        [life, most]: [Duration; 2],
        (given, since): (Instant, SystemTime),
    ) -> Session {
        let (ends, last) = (given + life, given + most);
        let (login, role, identity) = (login.into(), role.into(), Arc::new(identity));
        Session { login, role, identity, since, given, ends, last, life }
    }

    /// Whose it is, for counting.
    fn holder(&self) -> (&str, &str) {
        (&self.login, &self.identity.subject)
    }
}

/// See the [module](self).
pub(super) struct Given {
    most: usize,
    state: Mutex<State>,
}

struct State {
    by_hash: HashMap<[u8; 32], Session>,
    /// When those that have ended were forgotten last.
    upkeep: Option<Instant>,
}

impl Given {
    pub(super) fn new(most: usize) -> Given {
        Given { most, state: Mutex::new(State { by_hash: HashMap::new(), upkeep: None }) }
    }

    /// Adds a token, in the place of another one if there is no room.
    pub(super) fn add(&self, hash: [u8; 32], session: Session, now: Instant) {
        let mut state = self.state.lock();
        if state.by_hash.len() >= self.most || state.upkeep.is_none_or(|last| now - last >= UPKEEP) {
            state.by_hash.retain(|_, session| now < session.ends);
            state.upkeep = Some(now);
        }
        while state.by_hash.len() >= self.most
            && let Some(oldest) = oldest_of_most(&state.by_hash, &session)
        {
            state.by_hash.remove(&oldest);
        }
        state.by_hash.insert(hash, session);
    }

    /// The role of a token.
    pub(super) fn role_of(&self, hash: &[u8; 32], now: Instant) -> Option<Arc<str>> {
        let state = self.state.lock();
        state.by_hash.get(hash).filter(|session| now < session.ends).map(|session| session.role.clone())
    }

    pub(super) fn find(&self, hash: &[u8; 32], now: Instant) -> Option<Session> {
        self.state.lock().by_hash.get(hash).filter(|session| now < session.ends).cloned()
    }

    /// Moves the end of a token: to a wanted time from now, but not after its last end.
    pub(super) fn renew(&self, hash: &[u8; 32], wanted: Option<Duration>, now: Instant) -> Option<Session> {
        let mut state = self.state.lock();
        let session = state.by_hash.get_mut(hash).filter(|session| now < session.ends)?;
        let left = session.last - now;
        session.ends = now + wanted.unwrap_or(session.life).min(left);
        Some(session.clone())
    }

    /// Ends a token. False if it is not here.
    pub(super) fn end(&self, hash: &[u8; 32]) -> bool {
        self.state.lock().by_hash.remove(hash).is_some()
    }

    /// Ends all tokens of a role.
    pub(super) fn end_all_of(&self, role: &str) {
        self.state.lock().by_hash.retain(|_, session| &*session.role != role);
    }
}

/// The oldest token of the identity that has most; of the newcomer's, if no other has more.
fn oldest_of_most(by_hash: &HashMap<[u8; 32], Session>, newcomer: &Session) -> Option<[u8; 32]> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    by_hash.values().for_each(|session| *counts.entry(session.holder()).or_default() += 1);
    let own = newcomer.holder();
    let (most, _) = counts.into_iter().max_by_key(|(holder, count)| (*count, *holder == own))?;
    let of_most = by_hash.iter().filter(|(_, session)| session.holder() == most);
    of_most.min_by_key(|(hash, session)| (session.given, **hash)).map(|(hash, _)| *hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn session(subject: &str, role: &str, now: Instant) -> Session {
        let identity = Identity { subject: subject.into(), metadata: Vec::new() };
        Session::begin(("jwt", role), identity, [MINUTE, 3 * MINUTE], (now, SystemTime::now()))
    }

    fn hash(number: usize) -> [u8; 32] {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[test]
    fn a_token_ends_by_time_and_lives_on_if_it_is_renewed_in_time() {
        let (given, began) = (Given::new(8), Instant::now());
        given.add(hash(1), session("a", "ci", began), began);
        assert_eq!(given.role_of(&hash(1), began + MINUTE / 2).as_deref(), Some("ci"));
        assert!(given.role_of(&hash(1), began + MINUTE).is_none(), "at its end");
        assert!(given.renew(&hash(1), None, began + MINUTE).is_none(), "what has ended is not renewed");
        let renewed = given.renew(&hash(1), None, began + MINUTE / 2).expect("in time");
        assert_eq!(renewed.ends, began + MINUTE * 3 / 2);
        let renewed = given.renew(&hash(1), Some(100 * MINUTE), began + MINUTE).expect("in time");
        assert_eq!(renewed.ends, began + 3 * MINUTE, "never after its last end");
        let renewed = given.renew(&hash(1), Some(Duration::from_secs(5)), began + MINUTE).expect("in time");
        assert_eq!(renewed.ends, began + MINUTE + Duration::from_secs(5), "a shorter life is one, too");
        assert!(given.find(&hash(1), began + 2 * MINUTE).is_none());
        given.add(hash(2), session("a", "ci", began), began + 2 * MINUTE);
        assert_eq!(given.state.lock().by_hash.len(), 1, "what has ended is forgotten");
    }

    #[test]
    fn a_token_and_all_of_a_role_can_be_ended() {
        let (given, now) = (Given::new(8), Instant::now());
        for (number, role) in ["ci", "ci", "shop"].into_iter().enumerate() {
            given.add(hash(number), session("a", role, now), now);
        }
        assert!(given.end(&hash(0)) && !given.end(&hash(0)) && given.role_of(&hash(0), now).is_none());
        given.end_all_of("ci");
        let left = [1, 2].map(|number| given.role_of(&hash(number), now).is_some());
        assert_eq!(left, [false, true]);
    }

    #[test]
    fn somebody_who_logs_in_without_end_takes_no_tokens_of_others_and_no_more_memory() {
        let (given, began) = (Given::new(100), Instant::now());
        let mut number = 0;
        let mut add = |subject: &str| {
            number += 1;
            let now = began + Duration::from_micros(number as u64);
            given.add(hash(number), session(subject, "ci", now), now);
            number
        };
        let quiet: Vec<usize> = (0..40).map(|_| add("quiet")).collect();
        let single = add("single");
        let loud: Vec<usize> = (0..1000).map(|_| add("loud")).collect();
        let later = add("later");
        let now = began + MINUTE / 2;
        let has = |number: &usize| given.role_of(&hash(*number), now).is_some();
        assert_eq!(given.state.lock().by_hash.len(), 100);
        assert!(quiet.iter().all(has) && has(&single) && has(&later));
        assert_eq!(loud.iter().filter(|number| has(number)).count(), 58);
        assert!(loud.iter().rev().take(58).all(has), "its newest are left");
    }
}
