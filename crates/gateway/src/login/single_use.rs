//! Tokens of an issuer that are good for one login, by their ids (`jti`), which an issuer never gives twice.
//!
//! An id is remembered until its token has expired. Only those of verified tokens are remembered, so nobody
//! whom the issuer does not know can fill the memory. What was used before the gateway started is not known:
//! so tokens that were issued before are not taken. Another gateway does not know them either.

use std::collections::{BTreeSet, HashSet};
use std::time::SystemTime;

use parking_lot::Mutex;
use polyclave_config::GatewayLogin;
use serde_json::{Map, Value};

use super::claims::{seconds_of, text, time};
use super::refused::Refused;

/// The most ids that are remembered for one issuer, in some 10 MiB.
const MOST: usize = 1 << 16;
/// The longest id.
const MAX_ID: usize = 1024;

/// See the [module](self).
pub(super) struct SingleUse {
    /// In seconds since 1970.
    since: i64,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    ids: HashSet<[u8; 32]>,
    /// The same with the second at which each is forgotten.
    ends: BTreeSet<(i64, [u8; 32])>,
}

impl SingleUse {
    /// Nothing was used since a time.
    pub(super) fn new(since: SystemTime) -> SingleUse {
        SingleUse { since: seconds_of(since), used: Mutex::default() }
    }

    /// Uses a verified token.
    pub(super) fn spend(
        &self,
        claims: &Map<String, Value>,
        login: &GatewayLogin,
        now: SystemTime,
    ) -> Result<(), Refused> {
        let id = text(claims, "jti")?;
        if id.is_empty() || id.len() > MAX_ID {
            return Err(Refused::WrongClaim("jti", "it has to have from 1 to 1024 bytes"));
        }
        let issued = time(claims, "iat")?.ok_or(Refused::NoClaim("iat"))?;
        if issued < self.since {
            return Err(Refused::BeforeStart);
        }
        let ends = time(claims, "exp")?.ok_or(Refused::NoClaim("exp"))?;
        self.note(hash(id), ends + login.leeway_seconds as i64, seconds_of(now))
    }

    fn note(&self, id: [u8; 32], ends: i64, now: i64) -> Result<(), Refused> {
        let mut used = self.used.lock();
        while let Some((end, id)) = used.ends.first().copied().filter(|(end, _)| *end < now) {
            used.ends.remove(&(end, id));
            used.ids.remove(&id);
        }
        if used.ids.contains(&id) {
            return Err(Refused::UsedBefore);
        }
        if used.ids.len() >= MOST {
            return Err(Refused::UsedUp);
        }
        used.ids.insert(id);
        used.ends.insert((ends, id));
        Ok(())
    }
}

fn hash(id: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(id.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> [u8; 32] {
        hash(&number.to_string())
    }

    #[test]
    fn an_id_is_good_once_until_its_token_has_expired() {
        let used = SingleUse::new(SystemTime::UNIX_EPOCH);
        assert_eq!(used.note(id(1), 100, 50), Ok(()));
        for now in [50, 99, 100] {
            assert_eq!(used.note(id(1), 100, now), Err(Refused::UsedBefore), "{now}");
        }
        assert_eq!(used.note(id(2), 300, 101), Ok(()));
        let state = used.used.lock();
        assert_eq!((state.ids.len(), state.ends.len()), (1, 1), "what has expired is forgotten");
    }

    #[test]
    fn a_full_memory_refuses_and_forgets_nothing() {
        let used = SingleUse::new(SystemTime::UNIX_EPOCH);
        for number in 0..MOST {
            used.note(id(number), 100, 50).expect("it is new");
        }
        assert_eq!(used.note(id(MOST), 200, 50), Err(Refused::UsedUp));
        assert_eq!(used.note(id(0), 100, 50), Err(Refused::UsedBefore));
        assert_eq!(used.note(id(MOST), 200, 101), Ok(()), "there is room again");
    }
}
