//! A cheater that tries one session after another under the same setup.

use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::{EARLIER_CHECK, Error, Party, Result};

use super::tamper::{Fault, Tamper};

/// The second of two parties cheats.
pub const CHEATER: Party = Party(1);

const SESSIONS: usize = 16;

/// Runs sessions under one setup. In each, the second of two parties sends one wrong bit in its first
/// message, each time in another column. Returns how each session ends at the first party.
pub fn sessions<S>(
    setup: impl Fn(&mut dyn Net) -> Result<S> + Sync,
    session: impl Fn(&S, &[u8], &mut dyn Net) -> Result<()> + Sync,
) -> Vec<Result<()>> {
    let outcomes = run_parties(2, |net| {
        let setup = setup(net)?;
        let mut ends = Vec::new();
        for label in 0..SESSIONS as u8 {
            let fork = net.fork()?;
            let spoils = net.me() == CHEATER;
            let fault = Fault::FlipBit { byte: 700 * (1 + usize::from(label)), bit: 1 };
            let mut fork = Tamper::new(fork, if spoils { 0 } else { u64::MAX }, fault);
            ends.push(session(&setup, &[label], &mut fork));
        }
        Ok(ends)
    });
    outcomes.into_iter().next().expect("two").expect("setup is honest")
}

/// A wrong bit in a column is a guess that the secret's two or four bits of that column are zero, and passes
/// if they are. So some sessions may end well; the check of the first one whose guess is wrong finds it. No
/// session after that one comes to a check, and so to other bits of the secret.
///
/// # Panics
/// If it does.
pub fn none_is_checked_after_the_first_failure(what: &str, ends: &[Result<()>]) {
    let failed = ends.iter().position(Result::is_err).unwrap_or(SESSIONS);
    // All other guesses are right once in 2^30 runs.
    assert!(failed < SESSIONS - 1, "{what}: {ends:?}");
    assert!(matches!(ends[failed], Err(Error::Peer { peer: CHEATER, .. })), "{what}: {ends:?}");
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert!(ends[failed + 1..].iter().all(|end| *end == earlier), "{what}: {ends:?}");
}
