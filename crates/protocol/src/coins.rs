//! Coin tossing: public random values that nobody controls. Every party commits to a random value, all
//! parties open theirs, and the coins are a hash of the values (Blum 1983, "Coin flipping by telephone").
//!
//! A party fixes its value before it sees another's, so it cannot steer the outcome. It can refuse to open
//! once it knows the coins, and then nobody has coins. If the others then try again, it can choose among as
//! many tosses as they make. Three rules follow. What the coins check must be fixed before the toss. Nothing
//! is tried again after a failed check. And if somebody could be guessing at a secret of this party, silence
//! after the toss counts as a failed check (`toss_for_check`).

use zeroize::Zeroizing;

use crate::commitment::{Commitments, Committed, broadcast};
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::{Party, Result};

/// Tosses 256 coins among the members of the network ([`Net::members`]). Uniform as long as one of them is
/// honest. `context` says what they are for; parties that see different contexts get none. Two rounds.
pub fn toss(context: &[u8], net: &mut dyn Net) -> Result<[u8; 32]> {
    let mine = fresh()?;
    Ok(coins_of(&Commitments::exchange(context, &*mine, net)?.open(net)?))
}

/// The same for a check that could test a peer's guess at a secret of this party. Once this party has opened,
/// a silent peer may know the coins, and the error is [`Error::Unanswered`](crate::Error::Unanswered).
pub(crate) fn toss_for_check(context: &[u8], net: &mut dyn Net) -> Result<[u8; 32]> {
    let toss = Toss::begin(context, net.me())?;
    let commitments = broadcast(toss.commitment(), net)?;
    toss.open_for_check(commitments, net)
}

/// A toss whose commitments travel with other messages. What the coins check may travel with them: a party
/// that verifies a message opens only when it has the message and the commitments of all others, and until
/// then nobody knows the coins.
pub(crate) struct Toss<'c>(Committed<'c>);

impl<'c> Toss<'c> {
    /// Draws this party's value.
    pub(crate) fn begin(context: &'c [u8], me: Party) -> Result<Self> {
        Ok(Toss(Committed::to(context, &*fresh()?, me)?))
    }

    /// What every member is sent.
    pub(crate) fn commitment(&self) -> &[u8; 32] {
        self.0.commitment()
    }

    /// With the commitments of all parties, this one's included. One round.
    pub(crate) fn open(self, commitments: Vec<Vec<u8>>, net: &mut dyn Net) -> Result<[u8; 32]> {
        Ok(coins_of(&self.0.with(commitments).open(net)?))
    }

    /// The same for a check, see [`toss_for_check`].
    pub(crate) fn open_for_check(self, commitments: Vec<Vec<u8>>, net: &mut dyn Net) -> Result<[u8; 32]> {
        self.open(commitments, net).map_err(crate::Error::in_a_check)
    }
}

fn fresh() -> Result<Zeroizing<[u8; 32]>> {
    let mut mine = Zeroizing::new([0; 32]);
    random_bytes(&mut *mine)?;
    Ok(mine)
}

fn coins_of(parts: &[Vec<u8>]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 coins");
    parts.iter().for_each(|part| _ = hasher.update(part));
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::mesh::{Mesh, mesh, mesh_with_timeout, run_members, run_parties};
    use crate::testkit::faults::accused;
    use crate::testkit::tamper::{Fault, Tamper};
    use crate::{Error, PartySet};

    #[test]
    fn all_members_get_the_same_fresh_coin() {
        for members in [PartySet::all(2), PartySet::all(4), PartySet::from_bits(0b1101)] {
            let tosses = run_members(4, members, |net| Ok([toss(b"", net)?, toss(b"", net)?]));
            let first = tosses[0].clone().expect("honest parties finish");
            assert!(tosses.iter().all(|t| *t == Ok(first)));
            assert_ne!(first[0], first[1]);
        }
    }

    /// Messages 0 and 1 are the cheater's commitments, 2 and 3 its openings.
    #[test]
    fn a_message_that_is_changed_ends_in_an_error_or_in_equal_coins() {
        let timeout = Duration::from_millis(200);
        let faults = [0, 31, 33, 63, 64, 95].map(|byte| Fault::FlipBit { byte, bit: 3 });
        for fault in faults.into_iter().chain([Fault::Drop, Fault::Truncate, Fault::Replay]) {
            for at in 0..4 {
                let nets: Vec<Mesh> = mesh_with_timeout(3, timeout);
                let nets = nets.into_iter().map(|net| {
                    let at = if net.me() == Party(1) { at } else { u64::MAX };
                    Tamper::new(net, at, fault)
                });
                let threads: Vec<_> =
                    nets.map(|mut net| std::thread::spawn(move || toss(b"", &mut net))).collect();
                let coins: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
                let honest = [&coins[0], &coins[2]];
                let accused = honest.into_iter().flat_map(|coin| coin.as_ref().err().map(accused));
                let is_just =
                    accused.flat_map(|accused| accused.iter().collect::<Vec<_>>()).all(|p| p == Party(1));
                assert!(is_just, "{fault:?} {at}: {coins:?}");
                let honest: Vec<_> = honest.into_iter().flatten().collect();
                assert!(honest.len() < 2 || (fault == Fault::Replay && at < 2), "{fault:?} {at}");
            }
        }
    }

    /// One of three parties commits to something else towards one of the others. These two contradict each
    /// other, and nobody is named. If a party opens something else to one of them, that party names it.
    #[test]
    fn nobody_is_named_for_what_a_third_party_did() {
        for (at, named) in [(0, false), (1, false), (2, true), (3, true)] {
            let nets = mesh(3).into_iter().map(|net| {
                let at = if net.me() == Party(1) { at } else { u64::MAX };
                Tamper::new(net, at, Fault::FlipBit { byte: 40, bit: 0 })
            });
            let threads: Vec<_> =
                nets.map(|mut net| std::thread::spawn(move || toss(b"", &mut net))).collect();
            let coins: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
            let lied_to = if at % 2 == 0 { &coins[0] } else { &coins[2] };
            let is_right = match lied_to {
                Err(Error::Peer { peer: Party(1), .. }) => named,
                Err(Error::Equivocation { .. }) => !named,
                _ => false,
            };
            assert!(is_right, "{at}: {coins:?}");
        }
    }

    #[test]
    fn a_wrong_opening_names_the_cheater() {
        let nets = mesh(2).into_iter().map(|net| {
            let at = if net.me() == Party(0) { 1 } else { u64::MAX };
            Tamper::new(net, at, Fault::FlipBit { byte: 40, bit: 0 })
        });
        let threads: Vec<_> = nets.map(|mut net| std::thread::spawn(move || toss(b"", &mut net))).collect();
        let coins: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
        assert!(matches!(coins[1], Err(Error::Peer { peer: Party(0), .. })), "{:?}", coins[1]);
    }

    #[test]
    fn a_coin_is_never_seen_twice() {
        let coins = run_parties(2, |net| (0..50).map(|_| toss(b"", net)).collect::<Result<Vec<_>>>());
        let mut coins = coins.into_iter().next().expect("two").expect("honest parties finish");
        coins.sort();
        coins.dedup();
        assert_eq!(coins.len(), 50);
    }
}
