//! Parties that cheat in one particular way, each of which the check for that case detects.

use polyclave_field::{Gf2_40, Word};

use super::rows::wide;
use super::*;
use crate::mesh::run_parties;
use crate::testkit::exchanging::{Exchanging, changing, ending_after};

const CHEATER: Party = Party(2);
const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

type F = Gf2_40;

/// How the honest parties of three end when the third cheats. A party that detects it gives the key up.
fn honest(party: impl Fn(&mut Mascot<F>, &mut dyn Net) -> Result<()> + Sync) -> [Result<()>; 2] {
    let outcomes = run_parties(3, |net| {
        let key = MacKey::<F>::generate(net)?;
        let mut mascot = Mascot::setup(b"cheaters", &key, 2, net)?;
        let outcome = mascot.guarded(|mascot| party(mascot, net));
        let found = matches!(outcome, Err(Error::CheckFailed { .. } | Error::Peer { .. }));
        assert_eq!(key.refuse_retired().is_err(), found, "{outcome:?}");
        assert!(mascot.bits(1, net).is_err() || outcome.is_ok());
        Ok(outcome)
    });
    let [first, second, _] = outcomes.try_into().expect("three");
    [first, second].map(|outcome| outcome.expect("setup is honest"))
}

/// Both find it by the MACs.
fn caught(party: impl Fn(&mut Mascot<F>, &mut dyn Net) -> Result<()> + Sync) {
    assert_eq!(honest(party), [Err(FAILED), Err(FAILED)]);
}

#[test]
fn another_share_of_the_key_towards_another_peer_is_caught() {
    caught(|mascot, net| {
        let me = net.me();
        let mut alphas = Zeroizing::new(vec![mascot.key.reveal_own_share(); 3]);
        if me == CHEATER {
            alphas[0] ^= 1 << 17;
        }
        mascot.cope = Cope::set_up_towards(me, alphas, &mut mascot.transfers, net)?;
        mascot.authenticate_shares(&[5, 6, 7], net).map(drop)
    });
}

#[test]
fn another_share_of_the_key_towards_the_owner_of_elements_is_caught() {
    caught(|mascot, net| {
        let (me, owner) = (net.me(), Party(0));
        let mut alphas = Zeroizing::new(vec![mascot.key.reveal_own_share(); 3]);
        if me == CHEATER {
            alphas[owner.index()] ^= 1 << 17;
        }
        mascot.cope = Cope::set_up_towards(me, alphas, &mut mascot.transfers, net)?;
        let own = (me == owner).then_some(&[5, 6, 7][..]);
        mascot.authenticate(owner, own, 3, net).map(drop)
    });
}

#[test]
fn a_delta_that_is_not_the_share_of_the_key_is_caught() {
    caught(|mascot, net| {
        let share = wide::<F>(mascot.key.reveal_own_share());
        let delta = if net.me() == CHEATER { share ^ 1 << 3 } else { share };
        mascot.keyed = Pairs::setup(b"again", delta, mascot.keyed.shape(), net)?;
        mascot.summed_bits(20, net).map(drop)
    });
}

/// Sessions fork one setup, so that a share of the key is fixed for all of them: a value of one session would
/// otherwise tell, in the check of another, whether it is what a cheater with another share guesses.
#[test]
fn another_share_of_the_key_in_another_session_is_caught() {
    for what in ["bits", "triples"] {
        caught(|mascot, net| {
            let mut fork = mascot.fork(b"another session");
            if net.me() == CHEATER {
                fork.key = MacKey::of_share(CHEATER, 3, fork.key.reveal_own_share() ^ 1 << 9);
                fork.cope.claim(fork.key.reveal_own_share());
            }
            match what {
                "bits" => fork.bits(20, net).map(drop),
                _ => fork.triples(5, net).map(drop),
            }
        });
    }
}

#[test]
fn forks_make_right_and_independent_material() {
    let outcomes = run_parties(2, |net| {
        let key = MacKey::<F>::generate(net)?;
        let mascot = Mascot::setup(b"root", &key, 2, net)?;
        let mut values = Vec::new();
        for label in [b"one", b"two"] {
            let mut fork = mascot.fork(label);
            values.push((fork.bits(64, net)?, fork.triples(3, net)?));
        }
        Ok((key.reveal_own_share(), values))
    });
    let [Ok((alpha, ours)), Ok((beta, theirs))] = &outcomes[..] else { panic!("both are honest") };
    let mut opened = Vec::new();
    for ((bits, triples), (their_bits, their_triples)) in ours.iter().zip(theirs) {
        for (mine, yours) in
            [(bits, their_bits), (&triples.a, &their_triples.a), (&triples.c, &their_triples.c)]
        {
            let mut sum = mine.clone();
            sum.add(yours);
            let macs = sum.values.iter().map(|value| F::multiply(alpha ^ beta, *value));
            assert!(macs.eq(sum.macs.iter().copied()));
            opened.push(sum.values.to_vec());
        }
    }
    assert!(opened[0] != opened[3] && opened[1] != opened[4], "forks repeat each other");
}

#[test]
fn another_bit_towards_another_peer_is_caught() {
    caught(|mascot, net| {
        let bits = [0x35; 8];
        let mut other = bits;
        if net.me() == CHEATER {
            other[1] ^= 1 << 2;
        }
        let extended = mascot.extend_choosing(&[&other, &bits, &bits], 64, net)?;
        mascot.sum_checked(extended, net).map(drop)
    });
}

/// A network that adds to every message of one length to party 1. `what` has the byte to add at each place.
fn adding<'n>(net: &'n mut dyn Net, len: usize, what: fn(usize) -> u8) -> impl Net + 'n {
    changing(net, move |out| {
        let message = &mut out[0];
        if message.len() == len {
            message.iter_mut().enumerate().for_each(|(i, byte)| *byte ^= what(i));
        }
    })
}

/// Lies to party 1 in messages of one length while triples are made.
fn lies_are_caught(len: usize, what: fn(usize) -> u8) {
    caught(|mascot, net| lie(mascot, len, what, net));
}

fn lie(mascot: &mut Mascot<F>, len: usize, what: fn(usize) -> u8, net: &mut dyn Net) -> Result<()> {
    let len = if net.me() == CHEATER { len } else { 0 };
    let mut net = adding(net, len, what);
    mascot.triples_in_batches(8, &mut net).map(drop)
}

/// Bytes of the d of eight triples, and of eight products for zero tests, and of the u of the triples' shares
/// and two masks.
const OF_PRODUCTS: usize = 4 * 40 * 8 * 5;
const OF_ZERO_TESTS: usize = 40 * 8 * 5;
const OF_SHARES: usize = 40 * (5 * 8 + 2) * 5;

#[test]
fn another_b_at_every_second_transfer_is_caught() {
    lies_are_caught(OF_PRODUCTS, |i| if i / 5 / 8 % 2 == 0 { 1 } else { 0 });
}

#[test]
fn another_b_than_the_one_authenticated_is_caught() {
    lies_are_caught(OF_PRODUCTS, |i| if i % 5 == 0 { 1 } else { 0 });
}

/// By the holder of the bits, and before anything is opened that depends on them.
#[test]
fn other_elements_at_other_bits_of_the_key_are_caught() {
    let [lied_to, other] = honest(|mascot, net| lie(mascot, OF_SHARES, |i| i as u8, net));
    assert!(matches!(lied_to, Err(Error::Peer { peer: CHEATER, .. })), "{lied_to:?}");
    assert!(matches!(other, Err(Error::Closed { .. })), "{other:?}");
}

#[test]
fn another_b_for_the_products_of_zero_tests_is_caught_or_without_effect() {
    lies_are_caught(OF_ZERO_TESTS, |i| if i % 5 == 0 { 1 } else { 0 });
}

#[test]
fn another_element_towards_another_peer_is_caught() {
    caught(|mascot, net| {
        let own = rows::with_mask::<F>(&rows::with_mask::<F>(&[5, 6, 7])?)?;
        let mut towards = vec![own.clone(); 3];
        if net.me() == CHEATER {
            towards[0][1] ^= 1 << 5;
        }
        let mut macs = rows::zeros::<F>(4);
        for shares in mascot.cope.extend_towards(&towards, &[4; 3], net)? {
            rows::add::<F>(&mut macs, &shares);
        }
        let shares = Authenticated { values: Zeroizing::new(own[..4].to_vec()), macs };
        mascot.check_authentication(&[&shares.part(0..3)], shares.part(3..4), net)
    });
}

/// A cheater that lies at the bits of the key and then falls silent has learnt nothing: what honest parties
/// have said by then does not depend on the key. Only the party that finds the failure could tell the cheater
/// what the failure reveals, and that party has given the key up. It also gives the key up if the cheater
/// falls silent once it could know the coins. Silence before that costs the session only.
#[test]
fn the_holder_of_guessed_bits_finds_it_first_whatever_the_cheater_withholds() {
    /// Exchanges up to the commitment to the coins that the check of products with shares of the key tosses.
    const COMMITTED: usize = 5 + 2 + 1 + 1;
    let unanswered: fn(&Error) -> bool = |e| matches!(e, Error::Unanswered { peer: Party(1), .. });
    let gone: fn(&Error) -> bool = |e| matches!(e, Error::Closed { peer: Party(1), .. });
    let found: fn(&Error) -> bool = |e| matches!(e, Error::Peer { peer: Party(1), .. });
    let cases = [
        (COMMITTED - 1, gone, false),
        (COMMITTED, unanswered, true),
        (COMMITTED + 1, unanswered, true),
        (usize::MAX, found, true),
    ];
    for (exchanges, ends, retired) in cases {
        let outcomes = run_parties(2, |net| {
            let key = MacKey::<F>::generate(net)?;
            let mut mascot = Mascot::setup(b"silence", &key, 2, net)?;
            let cheats = net.me() == Party(1);
            let mut net = adding(net, if cheats { OF_SHARES } else { 0 }, |_| 1);
            let mut net = ending_after(&mut net, if cheats { exchanges } else { usize::MAX });
            Ok((mascot.triples(8, &mut net).map(drop), key.refuse_retired().is_err()))
        });
        let Ok((Err(error), given_up)) = &outcomes[0] else { panic!("{exchanges}: {outcomes:?}") };
        assert!(ends(error) && *given_up == retired, "{exchanges}: {error:?}, {given_up}");
    }
}

/// As if the cheater had another share of the key towards party 1 (`authenticate.rs`, `binding.rs`,
/// `bit_triples.rs`): the MAC is wrong by the difference times that party's part of what is opened. The
/// cheater hears first what that party tells, and corrects its own MAC by it.
#[test]
fn another_share_of_the_key_is_caught_since_no_part_of_what_is_opened_is_told() {
    const OTHER: u64 = 1 << 17;
    caught(|mascot, net| {
        let mut sum = mascot.random_element(net)?;
        match net.me() {
            Party(0) => sum.macs[0] ^= F::multiply(OTHER, sum.values[0]),
            CHEATER => {
                let mut heard = [[0; F::BYTES]; 2];
                for (p, message) in Party::all(2).zip(&mut heard) {
                    net.recv(p, message)?;
                }
                sum.macs[0] ^= F::multiply(OTHER, rows::read::<F>(&heard[0]));
                mascot.open_hiding_shares(sum, &mut having_heard(net, heard))?;
                return mascot.check_openings(net);
            }
            _ => {}
        }
        mascot.open_and_check(sum, net)
    });
}

/// A network of three on which the messages of the first two have come already.
fn having_heard<'n>(net: &'n mut dyn Net, heard: [[u8; F::BYTES]; 2]) -> impl Net + 'n {
    Exchanging::new(net, move |net: &mut dyn Net, out: &[&[u8]], into: &mut [&mut [u8]]| {
        for (p, message) in Party::all(2).zip(&heard) {
            net.send(p, out[p.index()])?;
            into[p.index()].copy_from_slice(message);
        }
        Ok(())
    })
}

/// A guess at one bit of the key is right half of the time, and changes nothing then.
#[test]
fn a_guess_at_one_bit_is_caught_or_without_effect() {
    for _ in 0..4 {
        let outcomes = run_parties(2, |net| {
            let key = MacKey::<F>::generate(net)?;
            let mut mascot = Mascot::setup(b"guess", &key, 2, net)?;
            let len = if net.me() == Party(1) { OF_SHARES } else { 0 };
            let mut net = adding(net, len, |i| if i == 12 { 1 } else { 0 });
            Ok((key.reveal_own_share(), mascot.triples(8, &mut net)))
        });
        let [Ok((alpha, ours)), Ok((beta, theirs))] = &outcomes[..] else { panic!("setup is honest") };
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else {
            let found = matches!(ours, Err(Error::Peer { peer: Party(1), .. }));
            assert!(found, "{:?}", ours.as_ref().err());
            continue;
        };
        for (ours, theirs) in [(&ours.a, &theirs.a), (&ours.b, &theirs.b), (&ours.c, &theirs.c)] {
            let mut sum = ours.clone();
            sum.add(theirs);
            let macs = sum.values.iter().map(|value| F::multiply(alpha ^ beta, *value));
            assert!(macs.eq(sum.macs.iter().copied()) && sum.values[0] != u64::ZERO);
        }
    }
}
