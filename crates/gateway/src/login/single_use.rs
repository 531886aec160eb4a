//! Tokens of an issuer that are good for one login, by their ids (`jti`), which an issuer never gives twice.
//!
//! An id is remembered until its token has expired for every leeway that the file may have. Only those of
//! verified tokens are remembered, so nobody whom the issuer does not know can fill the memory. A subject has
//! a part of it, and so has a role, so that neither keeps others out.
//!
//! What was used before the gateway started is not known. A token that was used before was issued before the
//! start, or less than the leeway after it by a clock that is ahead: such tokens are not taken. Another
//! gateway does not know what was used here.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use polyclave_config::GatewayLogin;
use serde_json::{Map, Value};

use super::claims::{seconds_of, text, time};
use super::refused::Refused;

/// The most ids that are remembered for one issuer, in some 15 MiB, and the most of one subject.
const MOST: usize = 1 << 16;
const MOST_OF_SUBJECT: usize = 1 << 12;
/// The longest id.
const MAX_ID: usize = 1024;
/// The longest time from `iat` to `exp`, in seconds: for so long an id takes room.
const LONGEST: i64 = 24 * 3600;

/// See the [module](self).
pub(super) struct SingleUse {
    /// In seconds since 1970.
    since: i64,
    used: Mutex<Used>,
}

/// A verified token that was not used yet, as far as anybody has looked.
pub(super) struct Unused {
    id: [u8; 32],
    subject: [u8; 32],
    role: Arc<str>,
    /// The second at which its id is forgotten.
    until: i64,
}

#[derive(Default)]
struct Used {
    ids: HashSet<[u8; 32]>,
    /// Those that are forgotten first come first.
    by_end: BTreeMap<(i64, [u8; 32]), Whose>,
    of_subject: HashMap<[u8; 32], usize>,
    of_role: HashMap<Arc<str>, usize>,
    /// Ids that were good until before this second may be forgotten.
    forgotten: i64,
}

struct Whose {
    subject: [u8; 32],
    role: Arc<str>,
}

impl SingleUse {
    /// Nothing was used since a time.
    pub(super) fn new(since: SystemTime) -> SingleUse {
        SingleUse { since: seconds_of(since), used: Mutex::default() }
    }

    /// What has to be remembered of a verified token, if it may be used once for a role.
    pub(super) fn look_at(
        &self,
        claims: &Map<String, Value>,
        login: &GatewayLogin,
        role: &str,
    ) -> Result<Unused, Refused> {
        let id = text(claims, "jti")?;
        if id.is_empty() || id.len() > MAX_ID {
            return Err(Refused::WrongClaim("jti", "it has to have from 1 to 1024 bytes"));
        }
        let issued = time(claims, "iat")?.ok_or(Refused::NoClaim("iat"))?;
        let begins = self.since + login.leeway_seconds as i64;
        if issued <= begins {
            return Err(Refused::BeforeStart(login.leeway_seconds));
        }
        let ends = time(claims, "exp")?.ok_or(Refused::NoClaim("exp"))?;
        if ends - issued > LONGEST {
            return Err(Refused::LongLived(ends - issued, LONGEST));
        }
        let until = ends + GatewayLogin::MOST_LEEWAY_SECONDS as i64;
        let subject = hash(text(claims, "sub")?);
        Ok(Unused { id: hash(id), subject, role: role.into(), until })
    }

    /// Uses a token.
    pub(super) fn spend(&self, token: Unused, now: SystemTime) -> Result<(), Refused> {
        let mut used = self.used.lock();
        used.forget(seconds_of(now));
        used.add(token)
    }
}

impl Used {
    /// Forgets what nobody may use any more.
    fn forget(&mut self, now: i64) {
        self.forgotten = self.forgotten.max(now);
        while let Some(first) = self.by_end.first_entry().filter(|first| first.key().0 < now) {
            let ((_, id), Whose { subject, role }) = first.remove_entry();
            self.ids.remove(&id);
            take_one(&mut self.of_subject, &subject);
            take_one(&mut self.of_role, &role);
        }
    }

    fn add(&mut self, token: Unused) -> Result<(), Refused> {
        let Unused { id, subject, role, until } = token;
        // By a clock that was ahead and was put back, what is forgotten has not expired.
        if self.ids.contains(&id) || until < self.forgotten {
            return Err(Refused::UsedBefore);
        }
        let of_subject = self.of_subject.get(&subject).copied().unwrap_or_default() + 1;
        if of_subject > MOST_OF_SUBJECT {
            return Err(Refused::UsedUp("subject"));
        }
        // A role may have twice what is left then: so there is always room for another one.
        let of_role = self.of_role.get(&role).copied().unwrap_or_default() + 1;
        let left = MOST.saturating_sub(self.ids.len() + 1);
        if of_role > 2 * left {
            return Err(Refused::UsedUp("role"));
        }
        self.ids.insert(id);
        self.of_subject.insert(subject, of_subject);
        self.of_role.insert(role.clone(), of_role);
        self.by_end.insert((until, id), Whose { subject, role });
        Ok(())
    }
}

/// Counts one less.
fn take_one<K: Eq + Hash>(counts: &mut HashMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

fn hash(text: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use polyclave_config::GatewaySettings;
    use serde_json::json;

    use super::*;

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    /// The token of a number.
    fn token(number: usize, (subject, role): (&str, &str), until: i64) -> Unused {
        Unused { id: hash(&number.to_string()), subject: hash(subject), role: role.into(), until }
    }

    /// A login whose clocks may differ by so many seconds.
    fn login(leeway: u64) -> GatewayLogin {
        let text = format!(
            "client = 'c'\n[[listener]]\naddress = '127.0.0.1:1'\n[[login]]\npath = 'jwt'\nkind = 'jwt'\nissuer = 'i'\nkeys_file = 'k'\n\
             leeway_seconds = {leeway}\n[[login.role]]\nname = 'ci'\naudiences = ['a']\nsubjects = ['*']\nrights = ['random']\n"
        );
        GatewaySettings::parse(&text).expect("read").logins.remove(0)
    }

    fn look_at(used: &SingleUse, leeway: u64, iat: i64, exp: i64) -> Result<Unused, Refused> {
        let claims = json!({ "jti": "1", "sub": "a", "iat": iat, "exp": exp });
        used.look_at(claims.as_object().expect("an object"), &login(leeway), "ci")
    }

    #[test]
    fn an_id_is_good_once_until_its_token_has_expired() {
        let used = SingleUse::new(SystemTime::UNIX_EPOCH);
        let spend = |number, until, now| used.spend(token(number, ("a", "ci"), until), at(now));
        assert_eq!(spend(1, 100, 50), Ok(()));
        for now in [50, 99, 100] {
            assert_eq!(spend(1, 100, now), Err(Refused::UsedBefore), "{now}");
        }
        assert_eq!(spend(2, 300, 101), Ok(()));
        let state = used.used.lock();
        let lengths = [state.ids.len(), state.by_end.len(), state.of_subject.len(), state.of_role.len()];
        assert_eq!(lengths, [1; 4], "what has expired is forgotten");
        assert_eq!((state.of_subject.values().sum::<usize>(), state.of_role["ci"]), (1, 1));
    }

    #[test]
    fn a_clock_that_was_ahead_and_is_put_back_makes_no_used_token_good() {
        let used = SingleUse::new(SystemTime::UNIX_EPOCH);
        let spend = |number, until, now| used.spend(token(number, ("a", "ci"), until), at(now));
        assert_eq!(spend(1, 100, 50), Ok(()));
        assert_eq!(spend(2, 5000, 4000), Ok(()), "the clock is ahead");
        assert_eq!(spend(1, 100, 60), Err(Refused::UsedBefore));
        assert_eq!(spend(3, 4000, 60), Ok(()));
    }

    #[test]
    fn a_token_that_may_have_been_used_before_the_start_is_not_taken() {
        let used = SingleUse::new(at(1000));
        for (leeway, iat, is_taken) in
            [(0, 1000, false), (0, 1001, true), (30, 999, false), (30, 1030, false), (30, 1031, true)]
        {
            let refused = look_at(&used, leeway, iat, iat + 300).err();
            assert_eq!(refused, Some(Refused::BeforeStart(leeway)).filter(|_| !is_taken), "{leeway}, {iat}");
        }
    }

    #[test]
    fn a_token_that_was_used_stays_so_if_the_leeway_grows() {
        let used = SingleUse::new(at(1000));
        let unused = || look_at(&used, 0, 1001, 1100).expect("it is new");
        assert_eq!(used.spend(unused(), at(1050)), Ok(()));
        // With the longest leeway it is good for so long.
        assert_eq!(used.spend(unused(), at(1399)), Err(Refused::UsedBefore));
    }

    #[test]
    fn a_token_that_would_take_room_for_long_is_refused() {
        let used = SingleUse::new(at(1000));
        assert!(look_at(&used, 0, 2000, 2000 + LONGEST).is_ok());
        let refused = look_at(&used, 0, 2000, 2001 + LONGEST).err();
        assert_eq!(refused, Some(Refused::LongLived(LONGEST + 1, LONGEST)));
    }

    #[test]
    fn a_subject_and_a_role_have_a_part_of_the_memory_and_nothing_is_forgotten() {
        let used = SingleUse::new(SystemTime::UNIX_EPOCH);
        let mut number = 0;
        let mut fill = |subject: &dyn Fn(usize) -> String, role: &str| {
            let first = number;
            loop {
                let spent = used.spend(token(number, (&subject(number), role), 100), at(50));
                number += 1;
                if let Err(refused) = spent {
                    return (number - 1 - first, refused);
                }
            }
        };
        assert_eq!(fill(&|_| "loud".into(), "ci"), (MOST_OF_SUBJECT, Refused::UsedUp("subject")));
        let (many, refused) = fill(&|number| format!("branch {number}"), "ci");
        assert_eq!((many, refused), (MOST / 3 * 2 - MOST_OF_SUBJECT, Refused::UsedUp("role")));
        let (others, _) = fill(&|number| format!("pod {number}"), "shop");
        assert!(others > MOST / 5, "{others}");
        let first = used.spend(token(0, ("loud", "ci"), 100), at(50));
        assert_eq!(first, Err(Refused::UsedBefore));
        let later = used.spend(token(number, ("loud", "ci"), 200), at(101));
        assert_eq!(later, Ok(()), "there is room again");
    }
}
