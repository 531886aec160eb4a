//! A prover that has sent a wrong product and then says at one place what makes its claim look right.

use polyclave_cipher::{Builder, Cells, aes, compile};
use polyclave_field::subfields::element;
use polyclave_field::{Gf2_64, MacField};

use super::super::{Replicated, ReplicatedActiveConfig};
use super::Active;
use super::rows::Weights;
use crate::evaluate::{evaluate, prepare};
use crate::mesh::run_parties;
use crate::net::Net;
use crate::protocol::{Input, ProtocolConfig, Session};
use crate::session::{HandshakeParameters, hello};
use crate::{Error, Party, Result};

/// What a prover adds to its messages. By default nothing.
#[derive(Default)]
pub(in crate::replicated) struct Lie {
    /// Of the product with number 0, in the message that the party before the prover has received: its coordinates.
    error: u8,
    /// Messages of the proof until the one that is changed.
    left: usize,
    /// By how much the claim is wrong.
    gap: u64,
    /// The weight of row 1.
    of_row: u64,
    is_told: bool,
}

impl Lie {
    fn in_message(number: usize, error: u8) -> Lie {
        Lie { error, left: number, ..Lie::default() }
    }

    /// Weights are known.
    pub(super) fn begin(&mut self, weights: &Weights) {
        let [of_product, of_row] = weights.first();
        self.gap = Gf2_64::multiply(of_product, Gf2_64::embed(element(self.error).0));
        self.of_row = of_row;
    }

    /// p(row 1) is changed so that p(row 0), which follows from the claim, is right.
    pub(super) fn of_rows(&mut self, at_row_1: &mut u64) {
        if self.is_next() {
            self.gap = Gf2_64::multiply(self.gap, inverse(self.of_row));
            *at_row_1 ^= self.gap;
        }
    }

    /// q(0) is changed so that q(1), which follows from the claim, is right.
    pub(super) fn told(&mut self, [at_zero, of_square]: [u64; 2]) -> [u64; 2] {
        [if self.is_next() { at_zero ^ self.gap } else { at_zero }, of_square]
    }

    fn is_next(&mut self) -> bool {
        self.is_told = self.left == 0 && self.error != 0;
        self.left = self.left.wrapping_sub(1);
        self.is_told
    }

    /// What is wrong of the next claim: by how much it depends on the value that follows from the claim, and on the one that is changed.
    pub(super) fn goes_on(&mut self, [followed, changed]: [u64; 2]) {
        self.gap = Gf2_64::multiply(self.gap, if self.is_told { changed } else { followed });
    }

    /// The value at point 2 is changed so that that at point 1 is right. (Shares begin with point 0, and that of point 1 is not there.)
    pub(super) fn last(&mut self, shares: &mut [u64]) {
        if self.left == 0 && self.error != 0 {
            shares[1] ^= self.gap;
        }
    }
}

/// x^(2^64 - 2).
fn inverse(x: u64) -> u64 {
    let powers = std::iter::successors(Some(x), |power| Some(Gf2_64::multiply(*power, *power)));
    powers.skip(1).take(63).fold(1, Gf2_64::multiply)
}

/// 505 lanes of one lookup: 512 products a round, of which 7 are padding. So each of four groups has rows of four bytes, hence 32 columns: 256
/// elements of a vector. After the rows they are halved twice before the last step.
const LANES: usize = 505;
const LEVELS: usize = 3;

fn session(net: &mut dyn Net, cheat: impl FnOnce(&mut Replicated<Active>, Party)) -> Result<()> {
    let config = ReplicatedActiveConfig::default();
    let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
    let mut protocol = config.join(&config.set_up(net)?, session.stream(), net.members())?;
    let mut b = Builder::new("a lookup");
    let table = b.table(&std::sync::Arc::new(aes::s_box()));
    let x = b.input("x", 1, 8)[0];
    let y = b.lookup(table, x);
    b.output("y", &[y]);
    let compiled = compile(&b.finish(), &protocol);
    let batch = prepare(&mut protocol, &compiled, LANES, net)?;
    evaluate(&mut protocol, &compiled, LANES, &[Input::Public(&Cells::zero(1, 8, LANES))], batch, net)?;
    cheat(&mut protocol, net.me());
    protocol.check(net)
}

#[test]
fn a_prover_that_corrects_any_one_of_its_messages_is_found() {
    for cheater in Party::all(3) {
        for message in 0..=LEVELS {
            let outcomes = run_parties(3, |net| {
                session(net, |protocol, me| {
                    if me == cheater {
                        protocol.model.prover.lie = Lie::in_message(message, 0b11);
                    } else if me == Party((cheater.0 + 2) % 3) {
                        protocol.model.products.spoil(0b11);
                    }
                })
            });
            for outcome in outcomes {
                let is_found = matches!(outcome, Err(Error::OneOfTwo { what, .. }) if what.contains("proof"));
                assert!(is_found, "{cheater}, message {message}: {outcome:?}");
            }
        }
    }
}

/// The hook itself changes nothing else: with no error there is no gap.
#[test]
fn a_prover_without_an_error_is_believed() {
    let outcomes = run_parties(3, |net| {
        session(net, |protocol, _| assert_eq!(protocol.model.products.count(), 4 * 512))
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
        assert!(
            matches!(outcome, Err(Error::CheckFailed { what: crate::error::EARLIER_CHECK })),
            "{outcome:?}"
        );
    }
}
