//! Parties that cheat in one particular way: the check that is there for it finds them.

use polyclave_field::{Gf2_40, Word};

use super::rows::wide;
use super::*;
use crate::mesh::run_parties;

const CHEATER: Party = Party(2);
const FAILED: Error = Error::CheckFailed { what: "the MACs of opened values" };

type F = Gf2_40;

/// Runs three parties; the honest ones must find that the third cheats, and give the key up.
fn caught(party: impl Fn(&mut Mascot<F>, &mut dyn Net) -> Result<()> + Sync) {
    let outcomes = run_parties(3, |net| {
        let key = MacKey::<F>::generate(net)?;
        let mut mascot = Mascot::set_up(b"cheaters", &key, 2, net)?;
        let outcome = mascot.guarded(|mascot| party(mascot, net));
        assert!(key.refuse_retired().is_err() == outcome.is_err());
        assert!(mascot.bits(1, net).is_err() || outcome.is_ok());
        Ok(outcome)
    });
    for outcome in &outcomes[..2] {
        assert_eq!(*outcome, Ok(Err(FAILED)));
    }
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
fn a_delta_that_is_not_the_share_of_the_key_is_caught() {
    caught(|mascot, net| {
        let share = wide::<F>(mascot.key.reveal_own_share());
        let delta = if net.me() == CHEATER { share ^ 1 << 3 } else { share };
        mascot.keyed = Pairs::set_up(b"again", delta, mascot.keyed.shape(), net)?;
        mascot.summed_bits(20, net).map(drop)
    });
}

/// Sessions fork one set-up, so that a share of the key is fixed for all of them: a value of one session would otherwise tell, in
/// the check of another, whether it is what a cheater with another share guesses.
#[test]
fn another_share_of_the_key_in_another_session_is_caught() {
    for what in ["bits", "triples"] {
        caught(|mascot, net| {
            let mut fork = mascot.fork(b"another session");
            if net.me() == CHEATER {
                fork.key = MacKey::of_share(CHEATER, 3, fork.key.reveal_own_share() ^ 1 << 9);
                let alphas = Zeroizing::new(vec![fork.key.reveal_own_share(); 3]);
                fork.cope.claim(alphas);
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
        let mascot = Mascot::set_up(b"root", &key, 2, net)?;
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

/// Adds to every message of one length to one party.
struct Adds<'a> {
    net: &'a mut dyn Net,
    len: usize,
    to: Party,
    what: fn(usize) -> u8,
}

impl Net for Adds<'_> {
    fn me(&self) -> Party {
        self.net.me()
    }
    fn parties(&self) -> usize {
        self.net.parties()
    }
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.net.send(to, message)
    }
    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.net.recv(from, into)
    }
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        let message = &mut out[self.to.index()];
        if message.len() == self.len {
            message.iter_mut().enumerate().for_each(|(i, byte)| *byte ^= (self.what)(i));
        }
        self.net.exchange(&out.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)
    }
    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}

/// Lies to party 1 in messages of one length while triples are made.
fn lies_are_caught(len: usize, what: fn(usize) -> u8) {
    caught(|mascot, net| {
        let len = if net.me() == CHEATER { len } else { 0 };
        let mut net = Adds { net, len, to: Party(0), what };
        mascot.triples_in_batches(8, &mut net).map(drop)
    });
}

/// Bytes of the d of eight triples, and of the u of their shares and one mask.
const OF_PRODUCTS: usize = 4 * 40 * 8 * 5;
const OF_SHARES: usize = 40 * (5 * 8 + 1) * 5;

#[test]
fn another_b_at_every_second_transfer_is_caught() {
    lies_are_caught(OF_PRODUCTS, |i| if i / 5 / 8 % 2 == 0 { 1 } else { 0 });
}

#[test]
fn another_b_than_the_one_authenticated_is_caught() {
    lies_are_caught(OF_PRODUCTS, |i| if i % 5 == 0 { 1 } else { 0 });
}

#[test]
fn other_elements_at_other_bits_of_the_key_are_caught() {
    lies_are_caught(OF_SHARES, |i| i as u8);
}

#[test]
fn another_element_towards_another_peer_is_caught() {
    lies_are_caught(OF_SHARES, |i| if i % (41 * 5) == 0 { 1 } else { 0 });
}

/// A guess at one bit of the key is right half of the time, and changes nothing then.
#[test]
fn a_guess_at_one_bit_is_caught_or_without_effect() {
    for _ in 0..4 {
        let outcomes = run_parties(2, |net| {
            let key = MacKey::<F>::generate(net)?;
            let mut mascot = Mascot::set_up(b"guess", &key, 2, net)?;
            let len = if net.me() == Party(1) { OF_SHARES } else { 0 };
            let mut net = Adds { net, len, to: Party(0), what: |i| if i == 12 { 1 } else { 0 } };
            Ok((key.reveal_own_share(), mascot.triples(8, &mut net)))
        });
        let [Ok((alpha, ours)), Ok((beta, theirs))] = &outcomes[..] else { panic!("set-up is honest") };
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else {
            assert_eq!(ours.as_ref().map(|_| ()), Err(&FAILED));
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
