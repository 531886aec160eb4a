//! Cheaters whose cheating fails a check in one session of a set-up, and who then try another session.

use polyclave_cipher::{Builder, Cells, Matrix, Table, compile};
use polyclave_field::Gf2_64;

use super::*;
use crate::evaluate::{evaluate, prepare};
use crate::garbled::projection::{Labels, ProjectionConfig};
use crate::garbled::{GarbledConfig, Gates};
use crate::mascot::Mascot;
use crate::mesh::run_parties;
use crate::net::Net;
use crate::ot::{Pairs, Shape};
use crate::protocol::{Input, ProtocolConfig};
use crate::session::{HandshakeParameters, hello};
use crate::spdz::{MacKey, Source};
use crate::testkit::tamper::{Fault, Tamper};
use crate::tinyot::{Kappa, TinyOt};
use crate::{Party, PartySet};

const CHEATER: Party = Party(1);
const SESSIONS: usize = 16;

/// Runs sessions under one set-up. In each, the second of two parties sends one wrong bit in its first message, each time in another
/// column. Returns how each session ends at the first party.
fn sessions<S>(
    set_up: impl Fn(&mut dyn Net) -> Result<S> + Sync,
    session: impl Fn(&S, &[u8], &mut dyn Net) -> Result<()> + Sync,
) -> Vec<Result<()>> {
    let outcomes = run_parties(2, |net| {
        let set_up = set_up(net)?;
        let mut ends = Vec::new();
        for label in 0..SESSIONS as u8 {
            let fork = net.fork()?;
            let spoils = net.me() == CHEATER;
            let fault = Fault::FlipBit { byte: 700 * (1 + usize::from(label)), bit: 1 };
            let mut fork = Tamper::new(fork, if spoils { 0 } else { u64::MAX }, fault);
            ends.push(session(&set_up, &[label], &mut fork));
        }
        Ok(ends)
    });
    outcomes.into_iter().next().expect("two").expect("set-up is honest")
}

/// A wrong bit in a column is a guess that the secret's two or four bits of that column are zero, and passes if they are. So some
/// sessions may end well; the check of the first one whose guess is wrong finds it. No session after that one comes to a check, and so to
/// other bits of the secret.
fn none_is_checked_after_the_first_failure(what: &str, ends: &[Result<()>]) {
    let failed = ends.iter().position(Result::is_err).unwrap_or(SESSIONS);
    // All other guesses are right once in 2^30 runs.
    assert!(failed < SESSIONS - 1, "{what}: {ends:?}");
    assert!(matches!(ends[failed], Err(Error::Peer { peer: CHEATER, .. })), "{what}: {ends:?}");
    let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
    assert!(ends[failed + 1..].iter().all(|end| *end == earlier), "{what}: {ends:?}");
}

fn pairs(net: &mut dyn Net) -> Result<Pairs> {
    Pairs::set_up(b"retirement", 0x1234_5678, Shape::new(128, 4)?, net)
}

/// Transfers that this party chooses from the other one.
fn extend(pairs: &mut Pairs, net: &mut dyn Net) -> Result<()> {
    let choices = [0x5a; 100];
    let mut by_peer = [&choices[..]; 2];
    by_peer[net.me().index()] = &[];
    pairs.extend(&by_peer, 800, net).map(drop)
}

#[test]
fn one_failed_check_of_transfers_ends_all_forks_and_the_parent() {
    let ends = sessions(pairs, |pairs, label, net| {
        let mut fork = pairs.fork(label);
        extend(&mut fork, net)?;
        fork.check(net)
    });
    none_is_checked_after_the_first_failure("transfers", &ends);
    let outcomes = run_parties(2, |net| {
        let mut parent = pairs(net)?;
        // One that is there already, of the second generation.
        let mut other = parent.fork(b"a").fork(b"b");
        let mut spoilt = parent.fork(b"c");
        let at = if net.me() == CHEATER { 0 } else { u64::MAX };
        let mut tampered = Tamper::new(net.fork()?, at, Fault::FlipBit { byte: 700, bit: 1 });
        extend(&mut spoilt, &mut tampered)?;
        let failed = spoilt.check(&mut tampered).is_err();
        let earlier = Err(Error::CheckFailed { what: EARLIER_CHECK });
        for ended in [&mut parent, &mut other] {
            assert_eq!(extend(ended, net), if failed { earlier.clone() } else { Ok(()) });
        }
        Ok(failed)
    });
    assert_eq!(outcomes[0], Ok(true));
}

/// The second is silent where it may know the coins, or before that.
#[test]
fn silence_counts_once_the_coins_may_be_known_and_not_before() {
    for (messages, counts) in [(0, false), (1, false), (2, true), (3, true)] {
        let outcomes = run_parties(2, |net| {
            let pairs = pairs(net)?;
            let mut fork = pairs.fork(b"fork");
            // Corrections, the coins' commitment, their opening, the answer.
            let left = if net.me() == CHEATER { messages } else { usize::MAX };
            let mut net = Until { net, left };
            let checked = extend(&mut fork, &mut net).and_then(|()| fork.check(&mut net));
            Ok((checked, pairs.refuse_retired().is_err()))
        });
        let Ok((checked, retired)) = &outcomes[0] else { panic!("set-up is honest") };
        assert_eq!(*retired, counts, "{messages}: {checked:?}");
        assert_eq!(matches!(checked, Err(Error::Unanswered { peer: CHEATER, .. })), counts, "{checked:?}");
    }
}

/// Says nothing after this many exchanges.
struct Until<'a> {
    net: &'a mut dyn Net,
    left: usize,
}

impl Net for Until<'_> {
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
        let Some(left) = self.left.checked_sub(1) else {
            return Err(Error::misuse("this party says no more"));
        };
        self.left = left;
        self.net.exchange(out, into)
    }
    fn fork(&mut self) -> Result<Box<dyn Net>> {
        self.net.fork()
    }
}

#[test]
fn one_failed_check_ends_all_sessions_of_a_maker_of_material() {
    let ends = sessions(
        |net| Mascot::set_up(b"mascot", &MacKey::<Gf2_64>::generate(net)?, 2, net),
        |mascot, label, net| mascot.fork(label).bits(800, net).map(drop),
    );
    none_is_checked_after_the_first_failure("mascot", &ends);
    let ends = sessions(
        |net| TinyOt::set_up(b"tinyot", &MacKey::generate(net)?, Kappa::Bits40, 2, net),
        |tinyot, label, net| {
            use crate::tinyot::Source;
            tinyot.fork(label).bits(800, net).map(drop)
        },
    );
    none_is_checked_after_the_first_failure("tinyot", &ends);
}

/// The attack: an evaluator that spoils one column of its transfers in each session learns a bit of Delta from each. Now the
/// garbler goes into no second one.
fn evaluator_spoils<S: ProtocolConfig + Sync>(config: &S)
where
    S::Setup: Sync,
{
    let ends = sessions(
        |net| {
            let session = hello(&config.handshake(HandshakeParameters::new(2)), net)?;
            Ok((config.set_up(net)?, parking_lot::Mutex::new(session)))
        },
        |(setup, session), _, net| {
            let stream = session.lock().stream();
            let mut protocol = config.join(setup, stream, PartySet::all(2))?;
            let mut b = Builder::new("gate");
            let and = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
            let x = b.input("x", 2, 1);
            let pair = b.linear(vec![(x[0], Matrix::place(2, 0)), (x[1], Matrix::place(2, 1))], 0);
            let z = b.lookup(and, pair);
            b.output("z", &[z]);
            let compiled = compile(&b.finish(), &protocol);
            let lanes = 400;
            let x = Cells::zero(2, 1, lanes);
            let input = if net.me() == CHEATER { Input::Mine(&x) } else { Input::From(CHEATER) };
            let batch = prepare(&mut protocol, &compiled, lanes, net)?;
            evaluate(&mut protocol, &compiled, lanes, &[input], batch, net).map(drop)
        },
    );
    none_is_checked_after_the_first_failure(config.name(), &ends);
}

#[test]
fn an_evaluator_that_spoils_one_column_a_session_gets_no_second_session() {
    for gates in Gates::ALL {
        evaluator_spoils(&GarbledConfig { gates, expansion: 4 });
    }
    evaluator_spoils(&ProjectionConfig { labels: Labels::Long, expansion: 4 });
}
