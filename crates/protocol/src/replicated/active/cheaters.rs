//! A prover that has sent a wrong product and then says at one place what makes its claim look right.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Table, aes, compile};
use polyclave_field::subfields::element;
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::planes::{Factors, Planes};

use super::super::lookup::{Round, Vectors};
use super::super::ring::previous;
use super::super::security::AdversaryModel;
use super::super::{Replicated, ReplicatedActiveConfig};
use super::Active;
use super::proof::VALUES;
use super::rows::{self, OTHERS, POINTS, Weights};
use crate::error::EARLIER_CHECK;
use crate::evaluate::{evaluate, prepare};
use crate::interface::elements::ElementArithmetic;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, ProtocolConfig, Session};
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::{Error, Party, Result};

/// What a prover adds to its messages. By default nothing.
#[derive(Default)]
pub(in crate::replicated) struct Lie {
    /// Of the product with number 0, in the message that the party before the prover has received: its
    /// coordinates.
    error: u8,
    /// Messages of the proof until the one that is changed.
    left: usize,
    /// By how much the claim is wrong.
    gap: u64,
    /// What was added to the message.
    added: u64,
}

/// Where p is right after a lie.
const BELIEVED: u64 = 2;

impl Lie {
    fn in_message(number: usize, error: u8) -> Lie {
        Lie { error, left: number, ..Lie::default() }
    }

    /// Weights are known.
    pub(super) fn begin(&mut self, weights: &Weights) {
        self.gap = Gf2_64::multiply(weights.first(), Gf2_64::embed(element(self.error).0));
    }

    /// p at the first point behind the rows is changed so that p is right at one place, although it is wrong
    /// at row 0.
    pub(super) fn of_rows(&mut self, value: &mut u64) {
        let coefficients = rows::coefficients(BELIEVED);
        let of_others = inverse(coefficients[POINTS - OTHERS]);
        let wanted = Gf2_64::multiply(self.gap, Gf2_64::multiply(coefficients[0], of_others));
        *value ^= self.add(wanted);
    }

    /// q(0, 0, 0, 0) is changed so that q(1, 1, 1, 1), which follows from the claim, is right.
    pub(super) fn message(&mut self, mut values: [u64; VALUES]) -> [u64; VALUES] {
        values[0] ^= self.add(self.gap);
        values
    }

    /// This much, if it is the message's turn.
    fn add(&mut self, wanted: u64) -> u64 {
        self.added = if self.left == 0 && self.error != 0 { wanted } else { 0 };
        self.left = self.left.wrapping_sub(1);
        self.added
    }

    /// What is wrong of the next claim, which depends so much on the claim before and on the value that is
    /// changed.
    pub(super) fn goes_on(&mut self, [of_claim, of_changed]: [u64; 2]) {
        self.gap = Gf2_64::multiply(self.gap, of_claim) ^ Gf2_64::multiply(self.added, of_changed);
    }

    /// The value at point 2 is changed so that that at point 1 is right. (Shares begin with point 0, and that
    /// of point 1 is not there.)
    pub(super) fn last(&mut self, shares: &mut [u64]) {
        shares[1] ^= self.add(self.gap);
    }
}

/// The coins, or those that a test wants of the toss with this number.
pub(super) fn forced(mut coins: [u8; 32], forced: Option<(u64, u64)>, toss: u64) -> [u8; 32] {
    if let Some((_, coin)) = forced.filter(|(wanted, _)| *wanted == toss) {
        coins[..8].copy_from_slice(&coin.to_le_bytes());
    }
    coins
}

/// x^(2^64 - 2).
fn inverse(x: u64) -> u64 {
    let powers = std::iter::successors(Some(x), |power| Some(Gf2_64::multiply(*power, *power)));
    powers.skip(1).take(63).fold(1, Gf2_64::multiply)
}

/// 4,089 lanes of one lookup: 4,096 products a round, of which 7 are padding. So both triples have rows of 64
/// bytes, hence 512 columns: vectors of 1,024 elements. After the rows there are two levels and the last
/// step.
const LANES: usize = 4089;
/// Bytes of a row.
const ROW: usize = 64;
/// The number of the last message.
const LAST: usize = 3;
/// The numbers of the groups of products.
const OF_BITS: usize = 0;
const OF_GF4: usize = 1;
const OF_GF16: usize = 2;

fn session(net: &mut dyn Net, cheat: impl FnOnce(&mut Replicated<Active>, Party)) -> Result<()> {
    session_of(LANES, false, net, cheat)
}

/// `ands` adds a product of bits to each lane.
fn session_of(
    lanes: usize,
    ands: bool,
    net: &mut dyn Net,
    cheat: impl FnOnce(&mut Replicated<Active>, Party),
) -> Result<()> {
    let config = ReplicatedActiveConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let mut protocol = config.join(&config.setup(net)?, session.stream(), net.members())?;
    let mut b = Builder::new("a lookup");
    let table = b.table(&Arc::new(aes::s_box()));
    let x = b.input("x", 1, 8)[0];
    let y = b.lookup(table, x);
    b.output("y", &[y]);
    let (cells, bits) = (Cells::zero(1, 8, lanes), Cells::zero(1, 2, lanes));
    let mut inputs = vec![Input::Public(&cells)];
    if ands {
        let table = b.table(&Arc::new(Table::new("AND", 2, 1, vec![0, 0, 0, 1])));
        let x = b.input("bits", 1, 2)[0];
        let y = b.lookup(table, x);
        b.output("and", &[y]);
        inputs.push(Input::Public(&bits));
    }
    let compiled = compile(&b.finish(), &protocol);
    let batch = prepare(&mut protocol, &compiled, lanes, net)?;
    evaluate(&mut protocol, &compiled, lanes, &inputs, batch, net)?;
    cheat(&mut protocol, net.me());
    protocol.check(net)
}

/// What the parties say of the proof if the party before the cheater has received a wrong product, and the
/// cheater corrects a message.
fn with_lie(cheater: Party, message: usize, forced: Option<(u64, u64)>) -> Vec<Result<()>> {
    run_parties(3, |net| {
        session(net, |protocol, me| {
            protocol.model.prover.forced = forced;
            if me == cheater {
                protocol.model.prover.lie = Lie::in_message(message, 0b11);
            } else if me == previous(cheater) {
                protocol.model.products.spoil([OF_GF4, 0, 0], 0b11);
            }
        })
    })
}

fn is_found(outcome: &Result<()>) -> bool {
    matches!(outcome, Err(Error::OneOfTwo { what, .. }) if what.contains("proof"))
}

#[test]
fn a_prover_that_corrects_any_one_of_its_messages_is_found() {
    for cheater in Party::all(3) {
        for message in 0..=LAST {
            let outcomes = with_lie(cheater, message, None);
            assert!(outcomes.iter().all(is_found), "{cheater}, message {message}: {outcomes:?}");
        }
    }
}

/// The lies of the tests are good ones: they are believed with the coin at which the value that follows from
/// the claim counts alone.
#[test]
fn only_coins_find_a_prover_that_corrects_a_message() {
    // The first toss is of weights. At 1 a polynomial does not depend on its value at 0.
    for (message, coin) in [(0, BELIEVED), (1, 1), (2, 1)] {
        for cheater in Party::all(3) {
            let outcomes = with_lie(cheater, message, Some((message as u64 + 2, coin)));
            assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())], "{cheater}, message {message}");
        }
    }
}

/// What the parties say if the party before the cheater has received wrong products: so many lanes, with
/// products of bits or without, and the group, product and byte of each error.
fn with_errors(
    cheater: Party,
    lanes: usize,
    ands: bool,
    errors: &[[usize; 3]],
    error: u8,
) -> Vec<Result<()>> {
    run_parties(3, |net| {
        session_of(lanes, ands, net, |protocol, me| {
            let wrong = errors.iter().filter(|_| me == previous(cheater));
            wrong.for_each(|place| protocol.model.products.spoil(*place, error));
        })
    })
}

/// Equal errors would cancel if they had the same weight: in two places of a tile, in two tiles that work
/// together and in two that do not, in two products of a triple. So would those in two rows, if the claims of
/// rows were one.
#[test]
fn equal_errors_are_found() {
    // Five tiles of eight rows of 64 bytes work together.
    let (tile, lanes) = (8 * 64, 6 * 8 * 8 * 64);
    let cases: [(usize, [[usize; 2]; 2]); 6] = [
        (LANES, [[0, 0], [0, ROW]]),
        (LANES, [[0, 0], [0, 1]]),
        (lanes, [[0, 0], [0, tile]]),
        (lanes, [[0, 0], [0, 5 * tile]]),
        (LANES, [[0, 0], [1, 0]]),
        (LANES, [[1, 0], [2, 0]]),
    ];
    for cheater in Party::all(3) {
        for (group, (lanes, errors)) in
            [OF_GF4, OF_GF16].into_iter().flat_map(|group| cases.map(|case| (group, case)))
        {
            let errors = errors.map(|[product, byte]| [group, product, byte]);
            let outcomes = with_errors(cheater, lanes, false, &errors, 0b11);
            assert!(outcomes.iter().all(is_found), "{cheater}, {errors:?}: {outcomes:?}");
        }
    }
}

/// In each product of each group, at the first and the last place; and equal ones in two groups at the same
/// place, and of bits in two rows, two places of a tile and two tiles, of which sixteen work together.
#[test]
fn errors_in_every_group_are_found() {
    let last = LANES / 8;
    let products =
        [[OF_BITS, 0], [OF_GF4, 0], [OF_GF4, 1], [OF_GF4, 2], [OF_GF16, 0], [OF_GF16, 1], [OF_GF16, 2]];
    let single =
        products.into_iter().flat_map(|[group, product]| [0, last].map(|byte| vec![[group, product, byte]]));
    let mut cases: Vec<(usize, Vec<[usize; 3]>)> = single.map(|errors| (LANES, errors)).collect();
    for groups in [[OF_BITS, OF_GF4], [OF_BITS, OF_GF16], [OF_GF4, OF_GF16]] {
        cases.push((LANES, groups.map(|group| [group, 0, 0]).to_vec()));
    }
    cases.push((LANES, [OF_GF4, OF_GF16].map(|group| [group, 2, 1]).to_vec()));
    let (tile, lanes) = (8 * 64, 17 * 8 * 8 * 64);
    for (lanes, byte) in [(LANES, 1), (LANES, ROW), (lanes, tile), (lanes, 16 * tile)] {
        cases.push((lanes, [0, byte].map(|byte| [OF_BITS, 0, byte]).to_vec()));
    }
    for cheater in Party::all(3) {
        for (lanes, errors) in &cases {
            let outcomes = with_errors(cheater, *lanes, true, errors, 1);
            assert!(outcomes.iter().all(is_found), "{cheater}, {errors:?}: {outcomes:?}");
        }
    }
}

/// The second products of a triple would come when the first one is forgotten.
#[test]
fn products_are_not_proven_in_the_middle_of_a_lookup() {
    const LEN: usize = 8;
    let outcomes = run_parties(3, |net| {
        session(net, |protocol, _| {
            let Replicated { ring, model, .. } = protocol;
            let shares = [Planes { bytes: &[0; 4 * LEN], stride: LEN }; 2];
            let vectors = Vectors { x: shares, y: shares, len: LEN };
            let round = Round::new(Factors::Gf16, vec![vectors], 8 * LEN);
            let masks = model.zero_share(4 * LEN, ring);
            model.remember(&[round], &masks, ring);
        })
    });
    for outcome in outcomes {
        let is_refused = matches!(&outcome, Err(Error::Misuse(what)) if what.contains("in the middle"));
        assert!(is_refused, "{outcome:?}");
    }
}

/// Two honest parties that differ in what their products are, or in where they are in the session, would tell
/// the third a linear function of a share with each proof. They get no coins.
#[test]
fn parties_that_do_not_prove_the_same_get_no_coins() {
    let differences: [fn(&mut Active); 4] = [
        |model| model.products.miscount(1, 0),
        |model| model.products.miscount(0, 1),
        |model| model.prover.label[0] ^= 1,
        |model| model.prover.tosses += 1,
    ];
    for (number, differ) in differences.into_iter().enumerate() {
        for party in Party::all(3) {
            let outcomes = run_parties(3, |net| {
                session(net, |protocol, me| {
                    if me == party {
                        differ(&mut protocol.model);
                    }
                })
            });
            let is_found = |o: &Result<()>| matches!(o, Err(Error::Equivocation { .. }));
            assert!(outcomes.iter().all(is_found), "{number}, {party}: {outcomes:?}");
        }
    }
}

/// The hook itself changes nothing else: with no error there is no gap.
#[test]
fn a_prover_without_an_error_is_believed() {
    let outcomes = run_parties(3, |net| {
        session(net, |protocol, _| assert_eq!(protocol.model.products.count(), 4 * 4096))
    });
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())]);
}

/// As a party remembers other products than another after an error, it proves nothing any more.
#[test]
fn nothing_is_proven_in_a_session_after_an_error() {
    let outcomes = run_parties(3, |net| {
        session(net, |protocol, _| {
            let killed = Error::Closed { peer: Party(1), detail: "it was killed".into() };
            assert!(protocol.or_give_up::<()>(Err(killed)).is_err());
        })
    });
    for outcome in outcomes {
        let is_refused = matches!(&outcome, Err(Error::Misuse(what)) if what.contains("ended with an error"));
        assert!(is_refused, "{outcome:?}");
    }
}

/// A session that was there before a check failed in another one proves and releases nothing any more.
#[test]
fn a_failed_check_ends_the_other_sessions_under_the_set_up() {
    let outcomes = run_parties(3, |net| {
        let config = ReplicatedActiveConfig::default();
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let setup = config.setup(net)?;
        let mut join = |net: &dyn Net| config.join(&setup, session.stream(), net.members());
        let (mut failing, mut other) = (join(net)?, join(net)?);
        let elements = failing.random_elements(1, net)?;
        failing.multiply_elements(&elements, &elements, net)?;
        failing.model.elements.spoil();
        assert!(matches!(failing.check(net), Err(Error::OneOfTwo { .. })));
        let refused = Err(Error::CheckFailed { what: EARLIER_CHECK });
        assert_eq!(other.check(net), refused);
        let value = other.random_elements(1, net)?;
        assert_eq!(other.open_elements(&value, net).map(drop), refused);
        assert_eq!(other.elements_for_client(&value, net).map(drop), refused);
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(()), Ok(())]);
}
