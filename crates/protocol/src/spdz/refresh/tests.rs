use std::sync::Arc;

use polyclave_field::Gf2_64;

use super::*;
use crate::authenticated::{OwnedBits, Source, Triples};
use crate::dealers::InsecureDealing;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::spdz::proofs::Proofs;
use crate::testkit::exchanging::changing;
use crate::testkit::faults::{Promise, Sweep};
use crate::testkit::tamper::Fault;

pub(super) type F = Gf2_64;

const MASCOT: Preprocessing<F> = Preprocessing::Mascot { expansion: 2 };
pub(super) const DEALER: Preprocessing<F> = Preprocessing::Dealt(&InsecureDealing);
pub(super) const CHEATER: Party = Party(1);

/// Two setups, a session under the old one, and what moves from it to the new one.
pub(super) struct Refreshing {
    new: Setup<F>,
    pub(super) before: Arithmetic<F>,
    pub(super) refresh: Refresh<F>,
    /// What the new side's material is bound to.
    side: Vec<u8>,
    /// A stream for use after that.
    after: Stream,
    preprocessing: Preprocessing<F>,
}

impl Refreshing {
    pub(super) fn begin(preprocessing: Preprocessing<F>, net: &mut dyn Net) -> Result<Self> {
        let mut session = hello(&HandshakeParameters::new(net.parties()), net)?;
        let [old, new] =
            [Setup::generate(preprocessing, None, net)?, Setup::generate(preprocessing, None, net)?];
        let stream = session.stream();
        let source = old.source(preprocessing, &stream.label())?;
        let before = Arithmetic::new(old.key().clone(), stream.label(), source);
        let stream = session.stream();
        let side = [&stream.label(), NEW_SIDE].concat();
        let refresh = Refresh::new(&old, &new, preprocessing, &stream)?;
        Ok(Refreshing { new, before, refresh, side, after: session.stream(), preprocessing })
    }

    /// A session under the new key.
    fn after(&self) -> Result<Arithmetic<F>> {
        let source = self.new.source(self.preprocessing, &self.after.label())?;
        Ok(Arithmetic::new(self.new.key().clone(), self.after.label(), source))
    }

    /// Random cells under the old key, of `bits` bits, two to a lane, with a second image.
    pub(super) fn cells(&mut self, bits: u8, net: &mut dyn Net) -> Result<Shared<F>> {
        let (count, lanes) = (2, 3);
        let random = self.before.bits(count * lanes * usize::from(bits), net)?;
        let cell = 0xff >> (8 - bits);
        let image = Matrix::of(bits, bits, |x| (x ^ x << 1 ^ x >> (bits - 1)) & cell);
        let views = vec![Matrix::identity(bits), image];
        let len = count * lanes;
        let (mut cells, mut macs) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
        for view in &views {
            let image = image_of_bits(&random, view, len);
            let mut row = vec![0; len];
            F::project_row(&mut row, &image.values);
            cells.extend(row);
            macs.extend_from_slice(&image.macs);
        }
        let (unchecked, proofs) = (Unchecked::default(), Proofs::default());
        Ok(Shared { bits, count, lanes, views, cells, macs, unchecked, proofs, known_bits: None })
    }
}

/// Opens all views under a key, and checks.
fn opened(arithmetic: &mut Arithmetic<F>, value: &Shared<F>, net: &mut dyn Net) -> Result<Vec<u8>> {
    let (_, cells) = arithmetic.open(&Authenticated::zero(0), &value.cells, &value.macs, net)?;
    arithmetic.check(net)?;
    Ok(cells)
}

fn cells_move(n: usize, preprocessing: Preprocessing<F>, bits: u8) {
    let outcomes = run_parties(n, |net| {
        let mut refreshing = Refreshing::begin(preprocessing, net)?;
        let value = refreshing.cells(bits, net)?;
        let refreshed = refreshing.refresh.refresh_cells(&value, net)?;
        assert!(*refreshed.cells != *value.cells, "fresh shares");
        let mut after = refreshing.after()?;
        let right = opened(&mut refreshing.before, &value, net)?;
        assert_eq!(opened(&mut after, &refreshed, net)?, right);
        // Old MACs are of no use under the new key.
        Ok((right, opened(&mut after, &value, net)))
    });
    let right = outcomes[0].as_ref().expect("all are honest").0.clone();
    let (cells, images) = right.split_at(right.len() / 2);
    assert!(cells != images && cells.iter().any(|cell| *cell != 0));
    for outcome in outcomes {
        let failed = Err(Error::CheckFailed { what: "the MACs of opened values" });
        assert_eq!(outcome, Ok((right.clone(), failed)));
    }
}

#[test]
fn cells_move_with_their_views_to_another_key() {
    for n in [2, 3] {
        cells_move(n, MASCOT, 8);
        cells_move(n, DEALER, 8);
        cells_move(n, DEALER, 3);
    }
}

#[test]
fn elements_move_to_another_key() {
    for (n, preprocessing) in [(2, MASCOT), (3, MASCOT), (3, DEALER)] {
        let outcomes = run_parties(n, |net| {
            let mut refreshing = Refreshing::begin(preprocessing, net)?;
            let value = refreshing.before.triples(3, net)?.a;
            let refreshed = refreshing.refresh.refresh_elements(&value, net)?;
            let mut after = refreshing.after()?;
            let right = refreshing.before.open(&value, &[], &[], net)?.0;
            let moved = after.open(&refreshed, &[], &[], net)?.0;
            refreshing.before.check(net)?;
            after.check(net)?;
            assert_eq!(moved, right);
            // Old MACs are of no use under the new key.
            after.open(&value, &[], &[], net)?;
            Ok(after.check(net).is_err())
        });
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(true)), "{outcomes:?}");
    }
}

/// What is not checked could be wrong by a difference that a cheater chose, and would be authenticated under
/// the new key.
#[test]
fn a_value_that_its_session_has_not_checked_does_not_move() {
    let outcomes = run_parties(2, |net| {
        let mut refreshing = Refreshing::begin(DEALER, net)?;
        let mut value = refreshing.cells(8, net)?;
        let session = crate::unchecked::Checks::default();
        value.unchecked = session.next();
        assert!(matches!(refreshing.refresh.refresh_cells(&value, net), Err(Error::Misuse(_))));
        session.pass();
        Ok(refreshing.refresh.refresh_cells(&value, net).is_ok())
    });
    assert!(outcomes.iter().all(|outcome| *outcome == Ok(true)), "{outcomes:?}");
}

#[test]
fn values_move_among_the_parties_that_share_them() {
    let [two, three] = [2, 3].map(|n| {
        let setups = run_parties(n, |net| Setup::<F>::generate(DEALER, None, net));
        setups.into_iter().next().expect("the first party").expect("a setup")
    });
    let stream = run_parties(2, |net| Ok(hello(&HandshakeParameters::new(2), net)?.stream()));
    let stream = stream[0].as_ref().expect("a stream");
    assert!(matches!(Refresh::new(&two, &three, DEALER, stream), Err(Error::Misuse(_))));
}

/// A network that adds to messages of one length to some parties.
pub(super) fn adding<'n>(net: &'n mut dyn Net, len: usize, to: fn(Party) -> bool) -> impl Net + 'n {
    changing(net, move |out| {
        for (p, message) in Party::all(out.len()).zip(out) {
            if message.len() == len && to(p) {
                message[3] ^= 4;
            }
        }
    })
}

/// One cell's bits and those that mask the check.
const D: usize = (2 * 3 * 8 + 64) / 8;

fn other_d_is_caught(n: usize, to: fn(Party) -> bool) -> Vec<Error> {
    let outcomes = run_parties(n, |net| {
        let mut refreshing = Refreshing::begin(DEALER, net)?;
        let value = refreshing.cells(8, net)?;
        let len = if net.me() == CHEATER { D } else { usize::MAX };
        let refreshed = refreshing.refresh.refresh_cells(&value, &mut adding(net, len, to));
        assert!(refreshing.new.key().refuse_retired().is_err(), "both keys are given up");
        assert!(refreshing.before.key.refuse_retired().is_err());
        assert!(refreshing.refresh.refresh_cells(&value, net).is_err());
        Ok(refreshed.map(drop))
    });
    let honest = Party::all(n).zip(outcomes).filter(|(p, _)| *p != CHEATER);
    honest.map(|(_, outcome)| outcome.expect("setup is honest").expect_err("it is caught")).collect()
}

#[test]
fn another_difference_than_the_one_of_its_bits_is_caught() {
    for n in [2, 3] {
        for error in other_d_is_caught(n, |_| true) {
            // The cheater has added to what it has told, and not to its own copy: among two its MAC of V does
            // not fit, and among three it is found before V is opened.
            match n {
                2 => assert_eq!(error, Error::CheckFailed { what: "the MACs of opened values" }),
                _ => assert!(matches!(error, Error::Equivocation { .. }), "{error:?}"),
            }
        }
    }
}

#[test]
fn different_differences_to_two_peers_are_caught() {
    for error in other_d_is_caught(3, |p| p == Party(0)) {
        assert!(matches!(error, Error::Equivocation { .. }), "{error:?}");
    }
}

/// A difference that is wrong for everybody, the cheater included.
#[test]
fn bits_that_differ_under_the_two_keys_are_caught() {
    for (n, at) in [(2, 0), (3, 0), (3, D - 1)] {
        let outcomes = run_parties(n, |net| {
            let mut refreshing = Refreshing::begin(DEALER, net)?;
            if net.me() == CHEATER {
                let source = refreshing.new.source(DEALER, &refreshing.side)?;
                refreshing.refresh.new.source = Box::new(Lies { source, at: 8 * at });
            }
            let value = refreshing.cells(8, net)?;
            Ok(refreshing.refresh.refresh_cells(&value, net).map(drop))
        });
        let failed = Error::CheckFailed { what: "that bits under two MAC keys are the same" };
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(Err(failed.clone()))), "{outcomes:?}");
    }
}

/// A party that believes another value of one of its own bits.
struct Lies {
    source: Box<dyn Source<F>>,
    at: usize,
}

impl Source<F> for Lies {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.source.triples(count, net)
    }
    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.source.bits(count, net)
    }
    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Result<OwnedBits<F>> {
        let (shares, mut known) = self.source.bits_of(owner, count, net)?;
        if let Some(known) = &mut known {
            known[self.at] ^= 1;
        }
        Ok((shares, known))
    }
    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        self.source.bit_triples(count, net)
    }

    fn zeros(&mut self, shares: &mut [<F as MacField>::Word]) {
        self.source.zeros(shares);
    }
}

/// One bit of every message of the cheater, and a whole run for each: setup by a dealer.
#[test]
fn no_fault_in_any_message_makes_a_wrong_value() {
    let party = |net: &mut dyn Net| {
        let mut refreshing = Refreshing::begin(DEALER, net)?;
        let value = refreshing.cells(8, net)?;
        let refreshed = refreshing.refresh.refresh_cells(&value, net)?;
        let elements = refreshing.before.triples(2, net)?.a;
        let moved = refreshing.refresh.refresh_elements(&elements, net)?;
        let mut after = refreshing.after()?;
        let is_same = opened(&mut refreshing.before, &value, net)? == opened(&mut after, &refreshed, net)?;
        let old = refreshing.before.open(&elements, &[], &[], net)?.0;
        let new = after.open(&moved, &[], &[], net)?.0;
        refreshing.before.check(net)?;
        after.check(net)?;
        Ok(is_same && old == new)
    };
    let party = Arc::new(party);
    for parties in [2, 3] {
        let faults = vec![Fault::FlipBit { byte: 9, bit: 2 }, Fault::Truncate, Fault::Replay];
        let sweep = Sweep { faults, drop_every: 4, ..Sweep::new(parties, CHEATER, Promise::RightOrAborted) };
        let party = party.clone();
        let swept = sweep.run(move |net| party(net));
        println!("{parties} parties: {swept:?}");
        assert!(swept.messages > 30 && swept.survived * 4 < swept.faults, "{swept:?}");
    }
}
