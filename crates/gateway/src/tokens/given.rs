//! Tokens that logins have given. They are in memory only, by their hashes, and end by time.
//!
//! Their number is limited. If there is no room for one more, the role that has most loses one (`shares.rs`):
//! so somebody who logs in without end takes no tokens of roles that have fewer, and in its own role none of
//! identities that have fewer. A gateway that was started again knows none of them, and another gateway does
//! not know them: then a program logs in again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::shares::{Dated, Shares};
use crate::login::Identity;
use crate::moment::Moment;

/// The most that are forgotten with each new one, of those that have ended.
const AT_ONCE: usize = 8;

/// A token that a login has given.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The path of the login.
    pub(crate) login: Arc<str>,
    pub(crate) role: Arc<str>,
    pub(crate) identity: Arc<Identity>,
    pub(crate) given: Moment,
    /// How old it is when it ends,
    pub(crate) ends: Duration,
    /// and however often it is renewed.
    pub(crate) last: Duration,
    /// For how long a renewal is good.
    pub(crate) life: Duration,
}

/// For how long tokens of a role are good.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Lives {
    pub(super) life: Duration,
    /// However often they are renewed.
    pub(super) most: Duration,
}

impl Session {
    /// A token of a login and a role that is given now.
    pub(super) fn begin(
        (login, role): (&str, &str),
        identity: Identity,
        Lives { life, most }: Lives,
        given: Moment,
    ) -> Session {
        let (login, role, identity) = (login.into(), role.into(), Arc::new(identity));
        Session { login, role, identity, given, ends: life, last: most, life }
    }

    /// For how long it is still good.
    pub(crate) fn left(&self, now: Moment) -> Duration {
        self.ends.saturating_sub(now.since(self.given))
    }

    fn lives(&self, now: Moment) -> bool {
        !self.left(now).is_zero()
    }
}

/// See the [module](self).
pub(super) struct Given {
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_hash: HashMap<[u8; 32], Session>,
    shares: Shares,
    /// When each ends, the first one first.
    ends: BTreeSet<Dated>,
}

impl Given {
    pub(super) fn new(most: usize) -> Given {
        Given { most, state: Mutex::default() }
    }

    /// Adds a token, in the place of another one if there is no room.
    pub(super) fn add(&self, hash: [u8; 32], session: Session, now: Moment) {
        let mut state = self.state.lock();
        state.forget_some(now);
        while state.by_hash.len() >= self.most
            && let Some(other) = state.shares.next(&session.role, &session.identity.subject)
        {
            state.remove(&other);
        }
        state.add(hash, session);
    }

    /// The role of a token.
    pub(super) fn role_of(&self, hash: &[u8; 32], now: Moment) -> Option<Arc<str>> {
        let state = self.state.lock();
        state.by_hash.get(hash).filter(|session| session.lives(now)).map(|session| session.role.clone())
    }

    pub(super) fn find(&self, hash: &[u8; 32], now: Moment) -> Option<Session> {
        self.state.lock().by_hash.get(hash).filter(|session| session.lives(now)).cloned()
    }

    /// Moves the end of a token: to a wanted time from now, but not after its last end.
    pub(super) fn renew(&self, hash: &[u8; 32], wanted: Option<Duration>, now: Moment) -> Option<Session> {
        let mut state = self.state.lock();
        state.change(hash, |session| {
            if session.lives(now) {
                let life = wanted.unwrap_or(session.life);
                session.ends = now.since(session.given).saturating_add(life).min(session.last);
            }
        });
        state.by_hash.get(hash).filter(|session| session.lives(now)).cloned()
    }

    /// Shortens the lives of a role's tokens: they end no later than if they were renewed now with these.
    pub(super) fn shorten(&self, role: &str, Lives { life, most }: Lives, now: Moment) {
        let mut state = self.state.lock();
        for hash in state.shares.of(role) {
            state.change(&hash, |session| {
                session.life = session.life.min(life);
                session.last = session.last.min(most);
                session.ends = session.ends.min(now.since(session.given) + life).min(session.last);
            });
        }
    }

    /// Ends a token. False if it is not here.
    pub(super) fn end(&self, hash: &[u8; 32]) -> bool {
        self.state.lock().remove(hash)
    }

    /// Ends all tokens of a role.
    pub(super) fn end_all_of(&self, role: &str) {
        let mut state = self.state.lock();
        for hash in state.shares.of(role) {
            state.remove(&hash);
        }
    }
}

impl State {
    fn add(&mut self, hash: [u8; 32], session: Session) {
        self.shares.add(&session.role, &session.identity.subject, (session.given, hash));
        self.ends.insert((session.given + session.ends, hash));
        self.by_hash.insert(hash, session);
    }

    fn remove(&mut self, hash: &[u8; 32]) -> bool {
        let Some(session) = self.by_hash.remove(hash) else { return false };
        self.shares.remove(&session.role, &session.identity.subject, (session.given, *hash));
        self.ends.remove(&(session.given + session.ends, *hash));
        true
    }

    /// Changes the times of a token.
    fn change(&mut self, hash: &[u8; 32], change: impl FnOnce(&mut Session)) {
        let Some(session) = self.by_hash.get_mut(hash) else { return };
        let before = session.ends;
        change(session);
        if session.ends != before {
            self.ends.remove(&(session.given + before, *hash));
            self.ends.insert((session.given + session.ends, *hash));
        }
    }

    /// Forgets some of those that have ended: more than one, so that there is room for one.
    fn forget_some(&mut self, now: Moment) {
        for _ in 0..AT_ONCE {
            let first = self.ends.first().map(|(_, hash)| *hash);
            let over = |hash: &[u8; 32]| self.by_hash.get(hash).is_some_and(|session| !session.lives(now));
            let Some(hash) = first.filter(over) else { return };
            self.remove(&hash);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn session(subject: &str, role: &str, now: Moment) -> Session {
        let identity = Identity { subject: subject.into(), metadata: Vec::new() };
        let lives = Lives { life: MINUTE, most: 3 * MINUTE };
        Session::begin(("jwt", role), identity, lives, now)
    }

    fn hash(number: usize) -> [u8; 32] {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_be_bytes());
        hash
    }

    #[test]
    fn a_token_ends_by_time_and_lives_on_if_it_is_renewed_in_time() {
        let (given, began) = (Given::new(8), Moment::now());
        given.add(hash(1), session("a", "ci", began), began);
        assert_eq!(given.role_of(&hash(1), began + MINUTE / 2).as_deref(), Some("ci"));
        assert!(given.role_of(&hash(1), began + MINUTE).is_none(), "at its end");
        assert!(given.renew(&hash(1), None, began + MINUTE).is_none(), "what has ended is not renewed");
        let renewed = given.renew(&hash(1), None, began + MINUTE / 2).expect("in time");
        assert_eq!(renewed.ends, MINUTE * 3 / 2);
        let renewed = given.renew(&hash(1), Some(100 * MINUTE), began + MINUTE).expect("in time");
        assert_eq!(renewed.ends, 3 * MINUTE, "never after its last end");
        let renewed = given.renew(&hash(1), Some(Duration::from_secs(5)), began + MINUTE).expect("in time");
        assert_eq!(renewed.ends, MINUTE + Duration::from_secs(5), "a shorter life is one, too");
        assert!(given.find(&hash(1), began + 2 * MINUTE).is_none());
        given.add(hash(2), session("a", "ci", began), began + 2 * MINUTE);
        assert_eq!(given.state.lock().by_hash.len(), 1, "what has ended is forgotten");
    }

    #[test]
    fn a_token_ends_while_the_machine_is_suspended() {
        let (given, began) = (Given::new(8), Moment::now());
        given.add(hash(1), session("a", "ci", began), began);
        assert!(given.role_of(&hash(1), began.after_suspension(MINUTE / 2)).is_some());
        assert!(given.role_of(&hash(1), began.after_suspension(MINUTE)).is_none());
        given.add(hash(2), session("a", "ci", began), began.after_suspension(MINUTE));
        assert_eq!(given.state.lock().by_hash.len(), 1, "and is forgotten");
    }

    #[test]
    fn a_token_and_all_of_a_role_can_be_ended() {
        let (given, now) = (Given::new(8), Moment::now());
        for (number, role) in ["ci", "ci", "shop"].into_iter().enumerate() {
            given.add(hash(number), session("a", role, now), now);
        }
        assert!(given.end(&hash(0)) && !given.end(&hash(0)) && given.role_of(&hash(0), now).is_none());
        given.end_all_of("ci");
        let left = [1, 2].map(|number| given.role_of(&hash(number), now).is_some());
        assert_eq!(left, [false, true]);
        given.end_all_of("shop");
        let state = given.state.lock();
        assert!(state.by_hash.is_empty() && state.ends.is_empty());
    }

    #[test]
    fn somebody_who_logs_in_without_end_takes_no_tokens_of_others_and_no_more_memory() {
        let (given, began) = (Given::new(100), Moment::now());
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

    #[test]
    fn somebody_with_many_subjects_takes_no_tokens_of_other_roles() {
        let (given, began) = (Given::new(100), Moment::now());
        let mut number = 0;
        let mut add = |subject: &str, role: &str| {
            number += 1;
            let now = began + Duration::from_micros(number as u64);
            given.add(hash(number), session(subject, role, now), now);
            number
        };
        let quiet: Vec<usize> = (0..40).map(|_| add("quiet", "shop")).collect();
        let loud: Vec<usize> = (0..1000).map(|branch| add(&format!("branch {branch}"), "ci")).collect();
        let later = add("later", "shop");
        let now = began + MINUTE / 2;
        let has = |number: &usize| given.role_of(&hash(*number), now).is_some();
        assert!(quiet.iter().all(has) && has(&later));
        assert_eq!(loud.iter().filter(|number| has(number)).count(), 59);
        assert!(loud.iter().rev().take(59).all(has), "its newest are left");
    }

    #[test]
    fn shorter_lives_hold_for_tokens_that_are_there_and_longer_ones_do_not() {
        let (given, began) = (Given::new(8), Moment::now());
        for (number, role) in ["ci", "ci", "shop"].into_iter().enumerate() {
            given.add(hash(number), session("a", role, began), began);
        }
        let ends = |number| given.find(&hash(number), began).expect("it is good").ends;
        given.shorten("ci", Lives { life: 100 * MINUTE, most: 100 * MINUTE }, began);
        assert_eq!(ends(0), MINUTE);
        let (life, now) = (MINUTE / 6, began + MINUTE / 3);
        given.shorten("ci", Lives { life, most: MINUTE * 2 / 3 }, now);
        assert_eq!((ends(0), ends(2)), (MINUTE / 2, MINUTE), "those of one role");
        let renewed = given.renew(&hash(0), None, now).expect("in time");
        assert_eq!(renewed.ends, MINUTE / 3 + life);
        let renewed = given.renew(&hash(0), Some(MINUTE), now).expect("in time");
        assert_eq!(renewed.ends, MINUTE * 2 / 3, "its last end is earlier, too");
        given.shorten("ci", Lives { life, most: life }, now);
        assert!(given.role_of(&hash(1), now).is_none(), "it is older than that");
        assert!(given.renew(&hash(1), None, now).is_none());
    }

    #[test]
    fn tokens_that_have_ended_make_room_before_others_do() {
        let (given, began) = (Given::new(100), Moment::now());
        for number in 0..100 {
            let now = began + Duration::from_micros(number as u64);
            given.add(hash(number), session("a", "ci", now), now);
        }
        let renewed = given.renew(&hash(0), None, began + MINUTE / 2).expect("in time");
        let later = began + MINUTE * 5 / 4;
        assert!(later.since(began) < renewed.ends);
        (100..199).for_each(|number| given.add(hash(number), session("a", "ci", later), later));
        assert!(given.role_of(&hash(0), later).is_some(), "the oldest one, which was renewed");
        let state = given.state.lock();
        assert_eq!((state.by_hash.len(), state.ends.len()), (100, 100));
    }
}
