//! The check between two parties: what it finds, and what a cheater needs to pass it.

use super::*;
use crate::authenticated::check::of_two::{Question, check_of_two, swap};

impl Seat {
    fn products(&mut self, net: &mut dyn Net) -> Result<[Product<F>; 2]> {
        Ok([self.product(net)?, self.product(net)?])
    }

    fn check_of_two(&mut self, net: &mut dyn Net) -> Result<()> {
        let products = self.products(net)?;
        check_of_two(&self.key, &mut self.openings, products, net)
    }

    /// Takes part, adds something to its parts of d and z in the test of its peer, which it may choose by the
    /// coins, and takes any answer.
    fn answer_with(
        &mut self,
        errors: impl FnOnce(&[u8; 32]) -> [Element; 2],
        net: &mut dyn Net,
    ) -> Result<()> {
        let (peer, products) = (Party(1 - net.me().0), self.products(net)?);
        let [own, theirs] = [net.me(), peer].map(|of| &products[of.index()]);
        let question = Question::<F>::new(&self.key, &self.openings, own)?;
        let mut asked = Question::<F>::from_bytes(&swap(&question.to_bytes(), peer, net)?);
        let [of_d, of_z] = errors(&asked.coins);
        // As if it had another part of sigma, which is a factor of z.
        let [part, _] = asked.answer(&self.key, &self.openings, theirs);
        asked.part ^= of_d;
        let [_, z] = asked.answer(&self.key, &self.openings, theirs);
        let mut told = [0; 16];
        F::write_row(&[part ^ of_d, z ^ of_z], &mut told);
        swap(&told, peer, net).map(|_| ())
    }
}

#[test]
fn honest_openings_pass_again_and_again() {
    let outcomes = parties(2, LATE, |seat, net| {
        for _ in 0..3 {
            seat.open(Element::ZERO, net)?;
            seat.check_of_two(net)?;
            assert!(seat.openings.is_empty());
        }
        Ok(())
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

#[test]
fn a_shifted_value_fails_the_check_and_the_key() {
    let outcomes = parties(2, LATE, |seat, net| {
        seat.open(F::embed(0x40), net)?;
        let outcome = seat.check_of_two(net);
        assert_eq!(seat.key.refuse_retired(), FAILED_EARLIER);
        assert_eq!(seat.check_of_two(net), FAILED_EARLIER);
        outcome
    });
    assert_honest(&outcomes, |outcome| *outcome == Err(FAILED));
}

/// Whoever knew them before it opens could make a sum of errors that is zero.
#[test]
fn coins_are_drawn_for_each_question() {
    let outcomes = parties(2, LATE, |seat, net| {
        let product = seat.product(net)?;
        let coins = [(); 2].map(|()| Question::new(&seat.key, &seat.openings, &product).map(|of| of.coins));
        let [first, second] = coins;
        assert_ne!(first?, second?);
        Ok(())
    });
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Errors in what the cheater tells in the test of its peer: its part of sigma and its part of z.
#[test]
fn an_error_in_an_answer_fails_the_test_of_the_peer() {
    for wrong in 0..2 {
        let outcomes = parties(2, LATE, move |seat, net| {
            seat.open(Element::ZERO, net)?;
            if net.me() != CHEATER {
                return seat.check_of_two(net);
            }
            let mut errors = [Element::ZERO; 2];
            errors[wrong] = F::embed(0x03);
            seat.answer_with(|_| errors, net)
        });
        assert_honest(&outcomes, |outcome| *outcome == Err(FAILED));
    }
}

/// A verifier asks with coins that it chose and with another part of d than its own: what it is answered is
/// under a share of the product that it lacks, and the other party goes on.
#[test]
fn a_verifier_that_asks_otherwise_gets_a_masked_answer_and_costs_its_peer_nothing() {
    const TIMES: usize = 4;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let into = seen.clone();
    let outcomes = parties(2, LATE, move |seat, net| {
        for _ in 0..TIMES {
            seat.open(Element::ZERO, net)?;
            if net.me() != CHEATER {
                seat.check_of_two(net)?;
                continue;
            }
            let (peer, products) = (Party(1 - net.me().0), seat.products(net)?);
            let [own, theirs] = [net.me(), peer].map(|of| &products[of.index()]);
            let mut question = Question::<F>::new(&seat.key, &seat.openings, own)?;
            question.coins = [0; 32];
            let of_coins = Question::<F>::from_bytes(&question.to_bytes());
            let [part, _] = of_coins.answer(&seat.key, &seat.openings, own);
            question.part = part ^ F::embed(0x01);
            let asked = Question::<F>::from_bytes(&swap(&question.to_bytes(), peer, net)?);
            let mut told = [0; 16];
            F::write_row(&asked.answer(&seat.key, &seat.openings, theirs), &mut told);
            let mut answer = [Element::ZERO; 2];
            F::read_row(&swap(&told, peer, net)?, &mut answer);
            // What it would expect of an honest question.
            let expected = F::multiply(question.part ^ answer[0], own.b) ^ own.c;
            into.lock().push(expected ^ answer[1]);
            seat.openings.clear();
        }
        Ok(())
    });
    assert_honest(&outcomes, Result::is_ok);
    // It is the peer's share of b, which is another one each time.
    let mut seen = seen.lock().clone();
    assert!(seen.len() == TIMES && !seen.contains(&Element::ZERO));
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), TIMES);
}

/// The cheater opened wrongly and asks with a guess at alpha. It sees whether the guess is right, and its
/// peer finds the opening in its own test in either case.
#[test]
fn a_verifier_that_opened_wrongly_learns_whether_one_guess_at_the_key_is_right_and_is_found() {
    let shift = F::embed(0x11);
    for lacks in [false, true] {
        let passed = Arc::new(Mutex::new(Vec::new()));
        let into = passed.clone();
        let outcomes = parties(2, LATE, move |seat, net| {
            seat.open(shift, net)?;
            if net.me() != CHEATER {
                return seat.check_of_two(net);
            }
            let (peer, products) = (Party(1 - net.me().0), seat.products(net)?);
            let [own, theirs] = [net.me(), peer].map(|of| &products[of.index()]);
            let keys = Party::all(2).map(|p| mac_key::<F>(&SEED, p, 2).reveal_own_share());
            let alpha = keys.fold(Element::from(lacks), |sum, share| sum ^ share);
            let mut question = Question::<F>::new(&seat.key, &seat.openings, own)?;
            let chi = Coefficients::<F>::new(&question.coins).next(5)[2];
            question.part ^= F::multiply(alpha, F::multiply(chi, shift));
            let asked = Question::<F>::from_bytes(&swap(&question.to_bytes(), peer, net)?);
            let mut told = [0; 16];
            F::write_row(&asked.answer(&seat.key, &seat.openings, theirs), &mut told);
            let mut answer = [Element::ZERO; 2];
            F::read_row(&swap(&told, peer, net)?, &mut answer);
            let expected = F::multiply(question.part ^ answer[0], own.b) ^ own.c;
            into.lock().push(expected == answer[1]);
            Ok(())
        });
        assert_honest(&outcomes, |outcome| *outcome == Err(FAILED));
        assert_eq!(*passed.lock(), [!lacks]);
    }
}

/// Whoever knows alpha sees by the coins of its peer what to add. Nobody passes with less.
#[test]
fn a_cheater_that_knows_the_mac_key_passes_and_one_that_lacks_a_bit_of_it_does_not() {
    let shift = F::embed(0x11);
    for lacks in [false, true] {
        let outcomes = parties(2, LATE, move |seat, net| {
            seat.open(shift, net)?;
            if net.me() != CHEATER {
                return seat.check_of_two(net);
            }
            let keys = Party::all(2).map(|p| mac_key::<F>(&SEED, p, 2).reveal_own_share());
            let alpha = keys.fold(Element::from(lacks), |sum, share| sum ^ share);
            let repair = move |coins: &[u8; 32]| {
                let chi = Coefficients::<F>::new(coins).next(5)[2];
                [F::multiply(alpha, F::multiply(chi, shift)), Element::ZERO]
            };
            seat.answer_with(repair, net)
        });
        assert_honest(&outcomes, |outcome| outcome.is_err() == lacks);
    }
}
