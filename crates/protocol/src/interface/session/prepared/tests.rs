//! Sessions that follow each other on the same connections, and parties that cheat in the second.

use super::super::{greet, hello};
use super::*;
use crate::mesh::{Mesh, mesh, run_parties};
use crate::versions::Feature;

type Outcome = Result<(AgreedSession, Prepared)>;

fn terms() -> HandshakeParameters {
    HandshakeParameters::new(3).with("circuit", b"aes-128")
}

fn first(net: &mut dyn Net) -> Outcome {
    greet(&terms(), net)?.open_and_prepare(net, None)
}

#[test]
fn one_session_after_the_other_has_a_fresh_id_that_all_share() {
    let ids = run_parties(3, |net| {
        let (session, mut prepared) = first(net)?;
        let mut ids = vec![session.id()];
        for turn in 0..3_u8 {
            let terms = terms().with("turn", &[turn]);
            assert!(prepared.fits(&terms));
            let (session, next) = prepared.begin(&terms, net, None)?;
            (ids, prepared) = ([ids, vec![session.id()]].concat(), next);
        }
        Ok::<_, Error>(ids)
    });
    let ids: Vec<Vec<[u8; 32]>> = ids.into_iter().collect::<Result<_>>().expect("agreed");
    assert!(ids.iter().all(|of_party| *of_party == ids[0]));
    let mut different = ids[0].clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), 4);
}

#[test]
fn a_party_sends_more_behind_its_message() {
    let outcomes = run_parties(3, |net| {
        let (_, prepared) = first(net)?;
        let mut more = |net: &mut dyn Net| [1, 2].into_iter().try_for_each(|p| net.send(Party(p), b"more"));
        match net.me() {
            Party(0) => prepared.begin(&terms(), net, Some(&mut more)).map(drop),
            _ => {
                prepared.begin(&terms(), net, None)?;
                let mut heard = [0; 4];
                net.recv(Party(0), &mut heard)?;
                assert_eq!(&heard, b"more");
                Ok(())
            }
        }
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[test]
fn a_difference_is_named() {
    let with = |terms: fn(Party) -> HandshakeParameters| {
        run_parties(3, |net| {
            let (_, prepared) = first(net)?;
            prepared.begin(&terms(net.me()), net, None).map(drop)
        })
    };
    let culprits = |field| {
        let culprit = |p| Err(Error::Disagreement { peer: Party(p), field });
        [culprit(2), culprit(2), culprit(0)]
    };
    assert_eq!(with(|p| terms().with("request", &[u8::from(p == Party(2))])), culprits("request"));
    let others_know = |p| if p == Party(2) { "color" } else { "colour" };
    assert_eq!(
        run_parties(3, |net| {
            let (_, prepared) = first(net)?;
            prepared.begin(&terms().with(others_know(net.me()), &[]), net, None).map(drop)
        }),
        culprits("kind of session")
    );
}

/// It would otherwise go on with what was in use before.
#[test]
fn a_party_whose_features_have_changed_takes_two_rounds() {
    let features = [Feature { name: "a feature", bit: 1, release: "0.3.0", about: "" }];
    let fit = run_parties(3, |net| {
        let (_, prepared) = first(net)?;
        Ok::<_, Error>((prepared.fits(&terms()), prepared.fits(&terms().offering(features.iter().collect()))))
    });
    assert!(fit.iter().all(|fit| *fit == Ok((true, false))));
}

/// What the third of three parties makes of its message in the second session. It has all others' messages
/// then, and says other things to the first party than to the second, if it likes.
type Cheat = fn(Party, &[Vec<u8>], &mut Vec<u8>);

/// What the first two end with.
fn beside(cheat: Cheat) -> Vec<Outcome> {
    /// Hears what the others send before it sends anything.
    struct Late(Mesh, Cheat);
    impl Net for Late {
        crate::forward_net!(self => self.0; me, parties, members, send, recv, fork);

        fn exchange(&mut self, _: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
            let mut heard = Vec::new();
            for peer in [Party(0), Party(1)] {
                self.0.recv(peer, into[peer.index()])?;
                heard.push(into[peer.index()].to_vec());
            }
            for peer in [Party(0), Party(1)] {
                // Everything but the nonce fits.
                let mut said = heard[peer.index()].clone();
                (self.1)(peer, &heard, &mut said);
                self.0.send(peer, &said)?;
            }
            Ok(())
        }
    }
    let mut nets = mesh(3);
    let mut third = nets.pop().expect("three");
    std::thread::scope(|scope| {
        let honest: Vec<_> = nets
            .into_iter()
            .map(|mut net| {
                scope.spawn(move || {
                    let (_, prepared) = first(&mut net)?;
                    prepared.begin(&terms(), &mut net, None)
                })
            })
            .collect();
        let cheater = scope.spawn(move || {
            let (_, prepared) = first(&mut third).expect("it is honest at first");
            let mut late = Late(third, cheat);
            // The nonce that it has committed to, for cheats that open it.
            NONCE.with(|nonce| nonce.set(prepared.nonce));
            drop(prepared.begin(&terms(), &mut late, None));
            late
        });
        let outcomes = honest.into_iter().map(|party| party.join().expect("no panic")).collect();
        drop(cheater.join().expect("no panic"));
        outcomes
    })
}

thread_local! {
    static NONCE: std::cell::Cell<[u8; NONCE_BYTES]> = const { std::cell::Cell::new([0; NONCE_BYTES]) };
}

/// Where the nonce is in a message: before it are the settings of [`terms`], and what is in use.
const NONCE_AT: usize = SET_BYTES + DIGEST_BYTES + 3 * DIGEST_BYTES;

fn open(message: &mut [u8], nonce: [u8; NONCE_BYTES]) {
    message[NONCE_AT..][..NONCE_BYTES].copy_from_slice(&nonce);
}

#[test]
fn a_party_that_speaks_last_and_opens_what_it_has_committed_to_is_accepted() {
    let outcomes = beside(|_, _, said| open(said, NONCE.get()));
    let ids: Vec<[u8; 32]> = outcomes.iter().map(|o| o.as_ref().expect("agreed").0.id()).collect();
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn who_speaks_last_cannot_choose_the_session_id() {
    // The nonce of the first party too.
    let cheats: [Cheat; 2] = [
        |_, _, said| open(said, [7; NONCE_BYTES]),
        |_, heard, said| open(said, *heard[0][NONCE_AT..].first_chunk().expect("it has one")),
    ];
    for cheat in cheats {
        for outcome in beside(cheat) {
            let error = outcome.map(drop).expect_err("it opened another nonce");
            assert!(matches!(error, Error::Peer { peer: Party(2), .. }), "{error}");
        }
    }
}

#[test]
fn a_party_that_says_it_heard_other_commitments_ends_the_session_at_all() {
    let outcomes = beside(|_, _, said| {
        open(said, NONCE.get());
        said[NONCE_AT + NONCE_BYTES] ^= 1;
    });
    for outcome in outcomes {
        let ended = outcome.map(drop);
        assert_eq!(ended, Err(Error::Equivocation { what: "commitments to the session" }));
    }
}

#[test]
fn a_party_that_sends_other_settings_to_one_ends_it_there() {
    let outcomes = beside(|to, _, said| {
        open(said, NONCE.get());
        said[SET_BYTES + DIGEST_BYTES] ^= u8::from(to == Party(0));
    });
    let names = |outcome: &Outcome| match outcome {
        Err(Error::Disagreement { peer, .. }) => Some(*peer),
        _ => None,
    };
    assert_eq!([names(&outcomes[0]), names(&outcomes[1])], [Some(Party(2)), None]);
    assert!(outcomes[1].is_ok());
}

/// In the session before, it commits to one nonce towards the first party and to another towards the second.
#[test]
fn one_that_commits_to_different_nonces_ends_the_next_session_at_all() {
    struct Two(Mesh);
    impl Net for Two {
        crate::forward_net!(self => self.0; me, parties, members, send, recv, fork);

        fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
            let mut to_first = out[0].to_vec();
            to_first[1 + NONCE_BYTES + HASH_BYTES] ^= 1;
            self.0.exchange(&[&to_first, out[1], out[2]], into)
        }
    }
    let mut nets = mesh(3);
    let mut third = Two(nets.pop().expect("three"));
    let outcomes: Vec<Result<()>> = std::thread::scope(|scope| {
        let honest: Vec<_> = nets
            .into_iter()
            .map(|mut net| {
                scope.spawn(move || {
                    let (_, prepared) = first(&mut net)?;
                    prepared.begin(&terms(), &mut net, None).map(drop)
                })
            })
            .collect();
        let cheater = scope.spawn(move || {
            let greeted = greet(&terms(), &mut third.0).expect("as the others");
            let (_, prepared) = greeted.open_and_prepare(&mut third, None).expect("as the others");
            let mut net = third.0;
            drop(prepared.begin(&terms(), &mut net, None));
            net
        });
        let outcomes = honest.into_iter().map(|party| party.join().expect("no panic")).collect();
        drop(cheater.join().expect("no panic"));
        outcomes
    });
    // The first one finds that the nonce does not fit its commitment, or that the second has heard another.
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn a_session_of_others_is_not_what_was_prepared() {
    let outcomes = run_parties(3, |net| {
        let (_, prepared) = first(net)?;
        hello(&terms(), net)?;
        let of_two = Prepared { serving: PartySet::all(2), ..prepared };
        of_two.begin(&terms(), net, None).map(drop)
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{outcomes:?}");
}
