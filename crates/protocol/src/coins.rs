//! Coins that nobody controls: every party commits to a random value, all open, and the coin is the sum of the values.
//!
//! The commitment is a hash of the party's number, a nonce and the value (hiding and binding when BLAKE3 is a random oracle:
//! Blum 1983, "Coin flipping by telephone", with the number against a copied commitment). A party who fixes its value before
//! it sees another's cannot steer the sum; it can refuse to open once it knows the coin, and then there is no coin for
//! anybody. So what the coin checks must be fixed before the toss, and nothing may be tried again after a failed one.
//!
//! With the openings every party sends a digest of the commitments that it received: a party that told several peers several
//! commitments is found before a coin is used, though not always by whom. Two rounds: 32 bytes, then 96 bytes to every peer.

use zeroize::Zeroizing;

use crate::net::Net;
use crate::session::random_bytes;
use crate::{Error, Party, Result};

const VALUE_BYTES: usize = 32;
const NONCE_BYTES: usize = 32;
const HASH_BYTES: usize = 32;
const OPENING_BYTES: usize = NONCE_BYTES + VALUE_BYTES;

/// Tosses 256 coins among the members of the network ([`Net::members`]). Uniform as long as one of them is honest.
pub fn toss(net: &mut dyn Net) -> Result<[u8; VALUE_BYTES]> {
    let me = net.me();
    let mut opening = Zeroizing::new([0; OPENING_BYTES]);
    random_bytes(&mut *opening)?;
    let commitments = broadcast(&commitment(me, &opening[..]), net)?;

    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 coin commitments of all");
    commitments.iter().for_each(|commitment| _ = hasher.update(commitment));
    let seen = *hasher.finalize().as_bytes();
    let openings = broadcast(&[&opening[..], &seen].concat(), net)?;

    let mut coin = [0; VALUE_BYTES];
    for p in net.members().iter() {
        let (opened, peer_saw) = openings[p.index()].split_at(OPENING_BYTES);
        if commitment(p, opened)[..] != commitments[p.index()][..] {
            return Err(Error::Peer { peer: p, detail: "a coin that is not the one it committed to".into() });
        }
        if peer_saw != seen {
            let detail = "it received other commitments to coins than this party".into();
            return Err(Error::Peer { peer: p, detail });
        }
        coin.iter_mut().zip(&opened[NONCE_BYTES..]).for_each(|(coin, value)| *coin ^= value);
    }
    Ok(coin)
}

fn commitment(party: Party, opening: &[u8]) -> [u8; HASH_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 coin commitment");
    *hasher.update(&[party.0]).update(opening).finalize().as_bytes()
}

/// Sends the same message to every member and returns those of all, this party's own too; empty for those who are none.
fn broadcast(message: &[u8], net: &mut dyn Net) -> Result<Vec<Vec<u8>>> {
    let (me, members) = (net.me(), net.members());
    let due = |p: Party| if p != me && members.contains(p) { message.len() } else { 0 };
    let out: Vec<&[u8]> = Party::all(net.parties()).map(|p| &message[..due(p)]).collect();
    let mut all: Vec<Vec<u8>> = Party::all(net.parties()).map(|p| vec![0; due(p)]).collect();
    net.exchange(&out, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    all[me.index()] = message.to_vec();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::PartySet;
    use crate::mesh::{Mesh, mesh, mesh_with_timeout, run_members, run_parties};
    use crate::testkit::tamper::{Fault, Tamper};

    #[test]
    fn all_members_get_the_same_fresh_coin() {
        for members in [PartySet::all(2), PartySet::all(4), PartySet::from_bits(0b1101)] {
            let tosses = run_members(4, members, |net| Ok([toss(net)?, toss(net)?]));
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
                    nets.map(|mut net| std::thread::spawn(move || toss(&mut net))).collect();
                let coins: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
                let honest: Vec<_> = [&coins[0], &coins[2]].into_iter().flatten().collect();
                assert!(honest.len() < 2 || (fault == Fault::Replay && at < 2), "{fault:?} {at}");
            }
        }
    }

    #[test]
    fn a_wrong_opening_names_the_cheater() {
        let nets = mesh(2).into_iter().map(|net| {
            let at = if net.me() == Party(0) { 1 } else { u64::MAX };
            Tamper::new(net, at, Fault::FlipBit { byte: 40, bit: 0 })
        });
        let threads: Vec<_> = nets.map(|mut net| std::thread::spawn(move || toss(&mut net))).collect();
        let coins: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
        assert!(matches!(coins[1], Err(Error::Peer { peer: Party(0), .. })), "{:?}", coins[1]);
    }

    #[test]
    fn a_coin_is_never_seen_twice() {
        let coins = run_parties(2, |net| (0..50).map(|_| toss(net)).collect::<Result<Vec<_>>>());
        let mut coins = coins.into_iter().next().expect("two").expect("honest parties finish");
        coins.sort();
        coins.dedup();
        assert_eq!(coins.len(), 50);
    }
}
