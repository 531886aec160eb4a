//! Parties that cheat in the check itself, with everything that they could know.

mod of_two;
mod sessions;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use polyclave_field::{Gf2_64, MacField, Word};

use super::*;
use crate::authenticated::{Authenticated, Source};
use crate::dealers::insecure_dealer::{InsecureDealer, mac_key};
use crate::mesh::mesh_with_timeout;
use crate::testkit::faults::{LATE, SOON, run_over};
use crate::{EARLIER_CHECK, Party};

type F = Gf2_64;
type Element = <F as MacField>::Word;

const SEED: [u8; 32] = [7; 32];
const CHEATER: Party = Party(1);

/// What a party has in a session.
struct Seat {
    key: MacKey<F>,
    dealer: InsecureDealer<F>,
    openings: Openings<F>,
}

impl Seat {
    fn new(net: &dyn Net) -> Seat {
        Seat {
            key: mac_key(&SEED, net.me(), net.parties()),
            dealer: InsecureDealer::new(&SEED, b"a stream", net.me(), net.parties()),
            openings: Openings::default(),
        }
    }

    fn random(&mut self, count: usize, net: &mut dyn Net) -> Result<Authenticated<F>> {
        Ok(self.dealer.triples(count, net)?.a)
    }

    /// Opens elements and cells; the cheater shifts one element.
    fn open(&mut self, shift: Element, net: &mut dyn Net) -> Result<()> {
        let mut elements = self.random(5, net)?;
        let cells = self.dealer.bits(3, net)?;
        if net.me() == CHEATER {
            elements.values[2] ^= shift;
        }
        let mut bytes = vec![0; 3];
        F::project_row(&mut bytes, &cells.values);
        self.openings.open(&elements, &bytes, &cells.macs, net)?;
        Ok(())
    }

    fn product(&mut self, net: &mut dyn Net) -> Result<Product<F>> {
        Ok(self.dealer.triples(1, net)?.product(0))
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        let product = self.product(net)?;
        check(&self.key, &mut self.openings, product, net)
    }

    /// A zero test with errors in this party's sigma, d and z.
    fn check_with_errors(&mut self, errors: [Element; 3], net: &mut dyn Net) -> Result<()> {
        let Product { a, b, c } = &self.product(net)?;
        let (context, sigma) = difference(&self.key, &self.openings, net)?;
        let d = open_sum::<F>(&context, *sigma ^ errors[0] ^ *a ^ errors[1], net)?;
        open_sum::<F>(&context, F::multiply(d, *b) ^ *c ^ errors[2], net)?;
        Ok(())
    }
}

const FAILED_EARLIER: Result<()> = Err(Error::CheckFailed { what: EARLIER_CHECK });

fn parties(
    n: usize,
    timeout: Duration,
    party: impl Fn(&mut Seat, &mut dyn Net) -> Result<()> + Send + Sync + 'static,
) -> Vec<Result<()>> {
    run_over(mesh_with_timeout(n, timeout), move |net| party(&mut Seat::new(net), net))
}

fn assert_honest(outcomes: &[Result<()>], is: impl Fn(&Result<()>) -> bool) {
    for (p, outcome) in Party::all(outcomes.len()).zip(outcomes).filter(|(p, _)| *p != CHEATER) {
        assert!(is(outcome), "{p}: {outcome:?}");
    }
}

#[test]
fn honest_openings_pass_again_and_again() {
    for n in [2, 3, 5] {
        let outcomes = parties(n, LATE, |seat, net| {
            for _ in 0..3 {
                seat.open(Element::ZERO, net)?;
                seat.check(net)?;
            }
            Ok(())
        });
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    }
}

#[test]
fn a_value_shifted_for_everybody_fails_the_check_and_the_key() {
    for n in [2, 3] {
        let outcomes = parties(n, LATE, move |seat, net| {
            seat.open(F::embed(0x40), net)?;
            let outcome = seat.check(net);
            assert_eq!(seat.key.refuse_retired(), FAILED_EARLIER);
            // Other sessions have clones.
            assert_eq!(seat.key.clone().refuse_retired(), FAILED_EARLIER);
            assert_eq!(seat.check(net), FAILED_EARLIER);
            outcome
        });
        assert_honest(&outcomes, |outcome| *outcome == Err(FAILED));
    }
}

/// A cheater sees by the messages of a test whether its guess at the key was right. So no other test begins.
#[test]
fn nothing_is_sent_under_a_key_that_was_given_up() {
    let outcomes = parties(2, SOON, |seat, net| {
        if net.me() == CHEATER {
            return Ok(());
        }
        seat.key.judge(|| Some(FAILED)).expect_err("it fails");
        assert_eq!(seat.check(net), FAILED_EARLIER, "and not that the peer is silent");
        let product = seat.product(net)?;
        zero_test_of(&seat.key, &[1; 32], Element::ZERO, product, net)
    });
    assert_honest(&outcomes, |outcome| *outcome == FAILED_EARLIER);
}

#[test]
fn a_sum_about_which_parties_were_told_different_things_costs_the_key() {
    let outcomes = parties(3, LATE, |seat, net| {
        let product = seat.product(net)?;
        let coin = [net.me().0; 32];
        let tested = zero_test_of(&seat.key, &coin, Element::ZERO, product, net);
        assert!(tested.is_err() && seat.key.refuse_retired().is_err(), "{tested:?}");
        tested
    });
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn coefficients_depend_on_the_coins() {
    let [one, same, other] = [1, 1, 2].map(|coins| Coefficients::<F>::new(&[coins; 32]).next(3).to_vec());
    assert_eq!(one, same);
    assert!(one.iter().zip(&other).all(|(a, b)| a != b));
}

#[test]
fn an_error_in_sigma_d_or_z_fails_the_zero_test() {
    for n in [2, 3] {
        for wrong in 0..3 {
            let outcomes = parties(n, LATE, move |seat, net| {
                seat.open(Element::ZERO, net)?;
                if net.me() != CHEATER {
                    return seat.check(net);
                }
                let mut errors = [Element::ZERO; 3];
                errors[wrong] = F::embed(0x03);
                seat.check_with_errors(errors, net)
            });
            assert_honest(&outcomes, |outcome| *outcome == Err(FAILED));
        }
    }
}

/// A party that knows alpha passes the check. That is why alpha is secret, and why a key about which a
/// failure may have revealed something is given up.
#[test]
fn a_cheater_that_knows_the_mac_key_passes() {
    let shift = F::embed(0x11);
    let outcomes = parties(3, LATE, move |seat, net| {
        seat.open(shift, net)?;
        if net.me() != CHEATER {
            return seat.check(net);
        }
        let keys = Party::all(3).map(|p| mac_key::<F>(&SEED, p, 3).reveal_own_share());
        let alpha = keys.fold(Element::ZERO, |sum, share| sum ^ share);
        let product = seat.product(net)?;
        let (context, sigma) = difference(&seat.key, &seat.openings, net)?;
        let mut seed = [0; 32];
        seed.copy_from_slice(&context[32..]);
        let chi = Coefficients::<F>::new(&seed).next(5)[2];
        let repaired = *sigma ^ F::multiply(alpha, F::multiply(chi, shift));
        let d = open_sum::<F>(&context, repaired ^ product.a, net)?;
        open_sum::<F>(&context, F::multiply(d, product.b) ^ product.c, net)?;
        Ok(())
    });
    assert_honest(&outcomes, Result::is_ok);
}

#[test]
fn parties_that_were_opened_different_values_get_no_coins() {
    let outcomes = parties(3, LATE, |seat, net| {
        let elements = seat.random(1, net)?;
        if net.me() == CHEATER {
            let mut message = [0; 8];
            F::write_row(&elements.values, &mut message);
            net.send(Party(0), &message)?;
            message[3] ^= 1;
            net.send(Party(2), &message)?;
            net.recv(Party(0), &mut message)?;
            net.recv(Party(2), &mut message)?;
            // It knows what either has seen, and agrees with the first.
            seat.openings.elements.push(Element::ZERO);
            seat.openings.element_macs.push(elements.macs[0]);
        } else {
            seat.openings.open(&elements, &[], &[], net)?;
        }
        let checked = seat.check(net);
        assert!(seat.key.refuse_retired().is_err());
        checked
    });
    // Each is contradicted by the other, and neither is named.
    assert_honest(&outcomes, |outcome| matches!(outcome, Err(Error::Equivocation { .. })));
}

#[test]
fn a_broadcast_that_differs_is_found_though_nothing_was_opened() {
    let outcomes = parties(3, LATE, |seat, net| {
        seat.openings.note(if net.me() == Party(2) { b"this" } else { b"that" });
        seat.check(net)
    });
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Equivocation { .. }))),
        "{outcomes:?}"
    );
}

/// What the party sees of the others' d and z in a check in which it opens its own part of z last, or never.
fn withholds_z(seat: &mut Seat, net: &mut dyn Net) -> Result<[Element; 2]> {
    let Product { a, b, c } = &seat.product(net)?;
    let (context, sigma) = difference(&seat.key, &seat.openings, net)?;
    let d = open_sum::<F>(&context, *sigma ^ *a, net)?;
    let own = F::multiply(d, *b) ^ *c;
    // The commitment, whatever it is, and the others' parts, after which nothing comes.
    let mut z = own;
    let n = net.parties();
    for p in net.me().peers(n) {
        net.send(p, &[0; 32])?;
    }
    for p in net.me().peers(n) {
        net.recv(p, &mut [0; 32])?;
    }
    for p in net.me().peers(n) {
        let mut opening = [0; 32 + 8 + 32];
        net.recv(p, &mut opening)?;
        let mut share = [Element::ZERO];
        F::read_row(&opening[32..40], &mut share);
        z ^= share[0];
    }
    Ok([d, z])
}

/// The cheater sees that its error was found, and nothing else. The others see a silent peer, and keep the
/// key.
#[test]
fn a_peer_that_withholds_z_does_not_cost_the_key() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    let outcomes = parties(3, SOON, move |seat, net| {
        seat.open(F::embed(0x01), net)?;
        if net.me() == CHEATER {
            let dz = withholds_z(seat, net)?;
            into.lock().push(dz);
            std::thread::sleep(3 * SOON);
            return Ok(());
        }
        let outcome = seat.check(net);
        assert_eq!(seat.key.refuse_retired(), Ok(()));
        assert!(!seat.openings.is_empty(), "what was opened does not count");
        outcome
    });
    assert_honest(&outcomes, |outcome| matches!(outcome, Err(Error::Timeout { .. } | Error::Closed { .. })));
    assert!(outcomes.contains(&Err(Error::Timeout { peer: CHEATER, waited: SOON })), "{outcomes:?}");
    let seen = seen.lock();
    assert!(seen.len() == 1 && seen[0][1] != Element::ZERO);
}

#[test]
fn a_peer_that_withholds_after_the_coins_does_not_cost_the_key() {
    let outcomes = parties(2, SOON, |seat, net| {
        seat.open(F::embed(0x01), net)?;
        if net.me() == CHEATER {
            difference(&seat.key, &seat.openings, net)?;
            std::thread::sleep(3 * SOON);
            return Ok(());
        }
        let outcome = seat.check(net);
        assert_eq!(seat.key.refuse_retired(), Ok(()));
        outcome
    });
    assert_honest(&outcomes, |o| *o == Err(Error::Timeout { peer: CHEATER, waited: SOON }));
}
