//! Parties whose settings differ, and parties that cheat in the hello round.

use std::time::Duration;

use super::*;
use crate::mesh::{Mesh, mesh, mesh_with_timeout, run_members};
use crate::versions::Feature;

fn hello_of_three(terms: [HandshakeParameters; 3]) -> Vec<Result<AgreedSession>> {
    hello_over(mesh(3).into_iter().zip(terms))
}

fn hello_over<N: Net + 'static>(
    parties: impl Iterator<Item = (N, HandshakeParameters)>,
) -> Vec<Result<AgreedSession>> {
    let threads = parties.map(|(mut net, terms)| std::thread::spawn(move || hello(&terms, &mut net)));
    let threads: Vec<_> = threads.collect();
    threads.into_iter().map(|t| t.join().expect("no panic")).collect()
}

#[test]
fn equal_terms_give_one_fresh_id() {
    let terms = || HandshakeParameters::new(3).with("circuit", b"aes-128");
    let first = hello_of_three([terms(), terms(), terms()]);
    let second = hello_of_three([terms(), terms(), terms()]);
    assert!(first[0].is_ok() && first.iter().all(|id| *id == first[0]));
    assert_ne!(first[0], second[0]);
}

/// What the first party sends with its nonce is there when the others have the session, one way earlier than
/// if it had waited for theirs.
#[test]
fn a_party_sends_more_behind_its_nonce() {
    let ids = crate::mesh::run_parties(3, |net| {
        let greeted = greet(&HandshakeParameters::new(3), net)?;
        if net.me() == Party(0) {
            let mut more =
                |net: &mut dyn Net| [1, 2].into_iter().try_for_each(|p| net.send(Party(p), b"more"));
            return greeted.open_and_prepare(net, Some(&mut more)).map(|(session, _)| session.id());
        }
        let session = greeted.open(net)?;
        let mut more = [0; 4];
        net.recv(Party(0), &mut more)?;
        assert_eq!(&more, b"more");
        Ok::<_, Error>(session.id())
    });
    assert!(ids[0].is_ok() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn a_session_hands_out_every_stream_once() {
    let mut session = hello_of_three([
        HandshakeParameters::new(3),
        HandshakeParameters::new(3),
        HandshakeParameters::new(3),
    ])
    .remove(0)
    .expect("agreed");
    let labels = [session.stream().label(), session.stream().label()];
    assert_ne!(labels[0], labels[1]);
}

#[test]
fn a_difference_is_named() {
    let terms = |c: &[u8]| HandshakeParameters::new(3).with("circuit", c).with("lanes", &[1]);
    let outcomes = hello_of_three([terms(b"aes-128"), terms(b"aes-128"), terms(b"aes-256")]);
    let culprit = |p| Err(Error::Disagreement { peer: Party(p), field: "circuit" });
    assert_eq!(outcomes, [culprit(2), culprit(2), culprit(0)]);
}

#[test]
fn another_kind_of_session_is_refused() {
    let other = HandshakeParameters::new(3).with("colour", b"");
    let outcomes = hello_of_three([HandshakeParameters::new(3), HandshakeParameters::new(3), other]);
    assert_eq!(outcomes[0], Err(Error::Disagreement { peer: Party(2), field: "kind of session" }));
}

fn speaking(oldest: u8, newest: u8, features: &[u8]) -> HandshakeParameters {
    let of = |bit: &u8| Feature { name: "a feature", bit: *bit, release: "0.3.0", about: "" };
    let features: Vec<Feature> = features.iter().map(of).collect();
    let terms = HandshakeParameters::new(3).offering(features.iter().collect());
    HandshakeParameters { spoken: Spoken { oldest, newest }, ..terms }
}

#[test]
fn a_session_is_of_the_lowest_version_and_has_what_all_have_switched_on() {
    let sessions =
        hello_of_three([speaking(5, 6, &[1, 2]), speaking(5, 6, &[0, 1, 2]), speaking(5, 5, &[1])]);
    let expected = speaking(5, 5, &[1]);
    assert!(sessions.iter().all(|session| *session == sessions[0]));
    let session = sessions[0].as_ref().expect("agreed");
    assert_eq!((session.version(), session.features()), (5, expected.features));
}

/// One that speaks both of two releases that are apart would go on; the others name each other.
#[test]
fn releases_that_are_apart_do_not_compute_together() {
    let terms = [speaking(6, 7, &[]), speaking(6, 7, &[]), speaking(4, 5, &[])];
    let outcomes = hello_of_three(terms);
    let named = || Err(Error::Disagreement { peer: Party(2), field: "version" });
    assert_eq!(outcomes[..2], [named(), named()]);
    assert!(outcomes[2].is_err());
}

/// It offers the first of two others less than the second. Neither computes, and neither is named.
#[test]
fn one_that_offers_different_versions_ends_the_session_at_all() {
    let outcomes = honest_beside(3, |cheater| {
        let heard = cheater.hear(GREETING);
        let me = cheater.net.me();
        let own = cheater.committed(&[5; NONCE_BYTES]);
        let (as_it_is, terms) = (cheater.greets(&own), cheater.terms.clone());
        let mut more = as_it_is.clone();
        more[HASH_BYTES + 1] ^= 1;
        let said = |p: Party| if p == Party(0) { more.clone() } else { as_it_is.clone() };
        cheater.tell(said);
        cheater.tell(|p| opening(&terms, [&[5; NONCE_BYTES], &seen(&told_by(&heard, me, &said(p))), &NEXT]));
    });
    let message = || Err(Error::Equivocation { what: "commitments to the session" });
    assert_eq!(outcomes, [message(), message()]);
}

#[test]
fn who_speaks_less_is_known_before_the_session_begins() {
    let mut nets = mesh(2);
    let (older, mut net) = (nets.pop().expect("two"), nets.pop().expect("two"));
    let other = std::thread::spawn(move || greet(&speaking(5, 5, &[]), &mut { older }).map(drop));
    let greeted = greet(&speaking(5, 6, &[]), &mut net).expect("they agree");
    assert_eq!(greeted.older().collect::<Vec<_>>(), [(Party(1), 5)]);
    other.join().expect("no panic").expect("they agree");
}

/// A party that sends what it likes to whom it likes, and hears all before.
struct Cheater {
    net: Mesh,
    terms: HandshakeParameters,
    all: PartySet,
}

impl Cheater {
    /// The next message of every other party.
    fn hear(&mut self, len: usize) -> Vec<(Party, Vec<u8>)> {
        let me = self.net.me();
        let heard = self.all.iter().filter(|p| *p != me).map(|p| {
            let mut message = vec![0; len];
            self.net.recv(p, &mut message).expect("it has said something");
            (p, message)
        });
        heard.collect()
    }

    fn tell(&mut self, said: impl Fn(Party) -> Vec<u8>) {
        let me = self.net.me();
        for p in self.all.iter().filter(|p| *p != me) {
            self.net.send(p, &said(p)).expect("sent");
        }
    }

    fn committed(&self, nonce: &[u8; NONCE_BYTES]) -> [u8; HASH_BYTES] {
        commitment(self.net.me(), self.all, &self.terms, nonce)
    }

    /// The greeting with a commitment.
    fn greets(&self, commitment: &[u8; HASH_BYTES]) -> Vec<u8> {
        greeting(commitment, self.all, &self.terms)
    }
}

/// What the others of this many end with if the last cheats.
fn honest_beside(parties: usize, cheat: impl FnOnce(&mut Cheater) + Send) -> Vec<Result<AgreedSession>> {
    let (all, terms) = (PartySet::all(parties), HandshakeParameters::new(parties));
    let mut nets = mesh(parties);
    let net = nets.pop().expect("there are some");
    let honest: Vec<_> = nets.into_iter().map(|net| (net, terms.clone())).collect();
    std::thread::scope(|scope| {
        let mut cheater = Cheater { net, terms, all };
        let cheater = scope.spawn(move || {
            cheat(&mut cheater);
            // Its ends stay open until all others have ended.
            cheater
        });
        let outcomes = hello_over(honest.into_iter());
        cheater.join().expect("no panic");
        outcomes
    })
}

const GREETING: usize = TOLD_BYTES + SET_BYTES + 2 * DIGEST_BYTES;
/// The length of a second message, in sessions in which all parties have the same settings.
const SECOND: usize = 1 + NONCE_BYTES + 2 * HASH_BYTES;

/// A commitment to a nonce of the next session, which a cheater does not open.
const NEXT: [u8; HASH_BYTES] = [9; HASH_BYTES];

/// What all have told, this cheater with its own greeting.
fn told_by(heard: &[(Party, Vec<u8>)], me: Party, own: &[u8]) -> Vec<(Party, Vec<u8>)> {
    let theirs = heard.iter().map(|(p, greeting)| (*p, greeting[..TOLD_BYTES].to_vec()));
    theirs.chain([(me, own[..TOLD_BYTES].to_vec())]).collect()
}

/// It speaks last in each round. When it knows all other nonces it looks for one of its own that makes the id
/// begin with a byte that it wants, which takes some 256 tries. That nonce is not the one it has committed
/// to.
#[test]
fn who_speaks_last_cannot_choose_the_session_id() {
    for parties in [2, 3] {
        let outcomes = honest_beside(parties, |cheater| {
            let me = cheater.net.me();
            let heard = cheater.hear(GREETING);
            let own = cheater.committed(&[0; NONCE_BYTES]);
            let said = cheater.greets(&own);
            cheater.tell(|_| said.clone());
            let openings = cheater.hear(SECOND);
            let mut nonces: Vec<[u8; NONCE_BYTES]> = Vec::new();
            nonces.extend(openings.iter().map(|(_, m)| *m[1..].first_chunk().expect("it has one")));
            nonces.push([0; NONCE_BYTES]);
            let agreed = offer_of(&said);
            let wanted = (1..1u64 << 20).find(|i| {
                nonces[parties - 1][..8].copy_from_slice(&i.to_le_bytes());
                session_id(&nonces, cheater.all, &cheater.terms, agreed)[0] == 0x77
            });
            assert!(wanted.is_some(), "it takes some 256 tries");
            let seen = seen(&told_by(&heard, me, &said));
            let said = opening(&cheater.terms, [&nonces[parties - 1], &seen, &NEXT]);
            cheater.tell(|_| said.clone());
        });
        let cheater = Party(parties as u8 - 1);
        for outcome in &outcomes {
            assert!(matches!(outcome, Err(Error::Peer { peer, .. }) if *peer == cheater), "{outcomes:?}");
        }
    }
}

/// It greets with the commitment of the first party, and opens the nonce of the first party.
#[test]
fn the_commitment_of_another_party_is_of_no_use() {
    let outcomes = honest_beside(3, |cheater| {
        let me = cheater.net.me();
        let heard = cheater.hear(GREETING);
        let copied = *heard[0].1.first_chunk().expect("it has one");
        let said = cheater.greets(&copied);
        cheater.tell(|_| said.clone());
        let openings = cheater.hear(SECOND);
        let nonce = *openings[0].1[1..].first_chunk().expect("it has one");
        let said = opening(&cheater.terms, [&nonce, &seen(&told_by(&heard, me, &said)), &NEXT]);
        cheater.tell(|_| said.clone());
    });
    let named = |outcome: &Result<AgreedSession>| matches!(outcome, Err(Error::Peer { peer: Party(2), .. }));
    assert!(outcomes.iter().all(named), "{outcomes:?}");
}

/// It tells the first of three others another commitment, opens to each what it has told it, and says to each
/// that it has heard what that one has. All end, and nobody is named: each was contradicted by an honest
/// party.
#[test]
fn one_that_tells_different_nonces_ends_the_session_at_all() {
    let outcomes = honest_beside(4, |cheater| {
        let me = cheater.net.me();
        let heard = cheater.hear(GREETING);
        let nonce = |p: Party| [u8::from(p == Party(0)); NONCE_BYTES];
        let [first, others] = [Party(0), Party(1)].map(|p| cheater.committed(&nonce(p)));
        let own = |p: Party| if p == Party(0) { first } else { others };
        let greetings: Vec<_> = Party::all(3).map(|p| cheater.greets(&own(p))).collect();
        cheater.tell(|p| greetings[p.index()].clone());
        let terms = cheater.terms.clone();
        let said = |p: Party| seen(&told_by(&heard, me, &greetings[p.index()]));
        cheater.tell(|p| opening(&terms, [&nonce(p), &said(p), &NEXT]));
    });
    let message = || Err(Error::Equivocation { what: "commitments to the session" });
    assert_eq!(outcomes, [message(), message(), message()]);
}

/// It tells the first of two others other settings: that one sends its settings, and the second opens.
/// Neither takes the other for one that sends what is no message.
#[test]
fn one_that_tells_different_settings_has_nobody_else_named() {
    let outcomes = honest_beside(3, |cheater| {
        let heard = cheater.hear(GREETING);
        let me = cheater.net.me();
        let own = cheater.committed(&[5; NONCE_BYTES]);
        let other = cheater.terms.clone().with("circuit", b"another");
        let (as_it_is, terms) = (cheater.greets(&own), cheater.terms.clone());
        let mut greeting = as_it_is.clone();
        greeting[TOLD_BYTES + SET_BYTES..][..DIGEST_BYTES].copy_from_slice(&other.digest());
        cheater.tell(|p| if p == Party(0) { greeting.clone() } else { as_it_is.clone() });
        let seen = seen(&told_by(&heard, me, &as_it_is));
        cheater.tell(|_| opening(&terms, [&[5; NONCE_BYTES], &seen, &NEXT]));
    });
    let message = || Err(Error::Equivocation { what: "settings" });
    assert_eq!(outcomes, [message(), message()]);
}

/// The nonce that a party has drawn is known to nobody before all have committed: who fails in the first
/// round may try again.
#[test]
fn nothing_is_opened_before_all_have_committed() {
    let mut nets = mesh_with_timeout(2, Duration::from_millis(200));
    let (mut silent, mut net) = (nets.pop().expect("two"), nets.pop().expect("two"));
    let honest = std::thread::spawn(move || greet(&HandshakeParameters::new(2), &mut net).map(drop));
    let mut greeting = [0; GREETING];
    silent.recv(Party(0), &mut greeting).expect("it greets");
    assert!(matches!(honest.join().expect("no panic"), Err(Error::Timeout { peer: Party(1), .. })));
    assert!(silent.recv(Party(0), &mut [0; SECOND]).is_err(), "it has opened");
}

#[test]
fn those_who_serve_agree_without_the_others() {
    let serving = PartySet::from_bits(0b11010);
    let outcomes = run_members(5, serving, |net| hello(&HandshakeParameters::new(5), net));
    assert_eq!(outcomes.len(), 3);
    assert!(outcomes[0].is_ok() && outcomes.iter().all(|session| *session == outcomes[0]));
}

/// Parties 1 and 2 see three servers, party 3 believes that party 4 serves too, and party 4 agrees with it.
#[test]
fn differing_serving_sets_are_named() {
    struct Believes(Mesh, PartySet);
    impl Net for Believes {
        crate::forward_net!(self => self.0; me, parties, send, recv, exchange, fork);

        fn members(&self) -> PartySet {
            self.1
        }
    }
    let (three, four) = (PartySet::all(3), PartySet::all(4));
    let nets = mesh_with_timeout(4, Duration::from_secs(3)).into_iter().zip([three, three, four, four]);
    let outcomes = hello_over(nets.map(|(net, set)| (Believes(net, set), HandshakeParameters::new(4))));
    for outcome in &outcomes[..2] {
        assert_eq!(*outcome, Err(Error::Disagreement { peer: Party(2), field: "serving set" }));
    }
    // Party 3 hears the others' sets, unless party 4 is gone before: that one hears nothing from those who do
    // not count it in, and its end may come first.
    let named = Err(Error::Disagreement { peer: Party(0), field: "serving set" });
    let party_4_gone = matches!(&outcomes[2], Err(Error::Closed { peer: Party(3), .. }));
    assert!(outcomes[2] == named || party_4_gone, "{:?}", outcomes[2]);
    assert!(outcomes[3].is_err());
}
