//! A check between two parties whose messages travel alongside others, so that nobody waits for it: the
//! question behind what was opened, the answer behind the question. It is the check of
//! `authenticated/check/of_two.rs`, whose argument takes two messages in each direction, one after the other,
//! and does not ask what else is sent in between.
//!
//! Until it has ended nothing is opened or shared, and nothing is released ([`Arithmetic::refuse_over`]). So
//! it covers all that was opened before. If it ends with an error, that stays so for good.

use polyclave_field::MacField;

use super::Arithmetic;
use crate::authenticated::{Answered, Asked, Product};
use crate::interface::net::Net;
use crate::{Error, Party, Result};

/// How far such a check is.
#[derive(Default)]
pub(super) enum Alongside<F: MacField> {
    /// There is none.
    #[default]
    Nothing,
    Asked(Asked<F>),
    Answered(Answered<F>),
    /// It ended with an error, and what was opened is not checked. The peer may have seen the question: it is
    /// not asked again.
    Failed,
}

impl<F: MacField> Alongside<F> {
    /// Refuses to go on in the middle of a check, and after one that failed.
    pub(super) fn refuse(&self) -> Result<()> {
        match self {
            Alongside::Nothing => Ok(()),
            Alongside::Failed => Err(Error::misuse("a check has failed; begin another session")),
            _ => Err(Error::misuse("a check is under way; nothing is opened before it has ended")),
        }
    }
}

impl<F: MacField> Arithmetic<F> {
    /// Asks about everything that was opened since the last check. Uses up two products: one for the test of
    /// each party, in their order. Sends, and does not wait.
    pub(in crate::spdz) fn ask(
        &mut self,
        products: [Product<F>; 2],
        peer: Party,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.refuse_over()?;
        self.key.refuse_retired()?;
        let (asked, question) = Asked::new(net.me(), &self.key, &self.openings, products)?;
        net.send(peer, &question)?;
        self.alongside = Alongside::Asked(asked);
        Ok(())
    }

    /// Waits for the peer's question, and answers it.
    pub(in crate::spdz) fn answer(&mut self, peer: Party, net: &mut dyn Net) -> Result<()> {
        let asked = match std::mem::replace(&mut self.alongside, Alongside::Failed) {
            Alongside::Asked(asked) => asked,
            other => return Err(self.out_of_order(other)),
        };
        let mut question = vec![0; Asked::<F>::BYTES];
        net.recv(peer, &mut question)?;
        self.key.refuse_retired()?;
        let (answered, answer) = asked.answer(&self.key, &self.openings, &question);
        net.send(peer, &answer)?;
        self.alongside = Alongside::Answered(answered);
        Ok(())
    }

    /// Waits for the peer's answer. If it is wrong the key is given up.
    pub(in crate::spdz) fn judge_answer(&mut self, peer: Party, net: &mut dyn Net) -> Result<()> {
        let answered = match std::mem::replace(&mut self.alongside, Alongside::Failed) {
            Alongside::Answered(answered) => answered,
            other => return Err(self.out_of_order(other)),
        };
        let mut answer = vec![0; Answered::<F>::BYTES];
        net.recv(peer, &mut answer)?;
        answered.judge(&self.key, &answer)?;
        self.alongside = Alongside::Nothing;
        self.openings.clear();
        self.checks.pass();
        Ok(())
    }

    /// Leaves a check as far as it was.
    fn out_of_order(&mut self, check: Alongside<F>) -> Error {
        self.alongside = check;
        Error::misuse("a check is asked, then answered, then judged")
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, Builder, CompiledPort, compile};
    use polyclave_field::Gf2_64;

    use super::*;
    use crate::authenticated::BYTES;
    use crate::dealers::insecure_dealer::{InsecureDealer, mac_key};
    use crate::mesh::run_parties;

    fn arithmetic(net: &dyn Net) -> Arithmetic<Gf2_64> {
        let (seed, stream, me) = ([7; 32], [0; 40], net.me());
        let dealer = InsecureDealer::new(&seed, &stream, me, 2);
        Arithmetic::new(mac_key(&seed, me, 2), stream, Box::new(dealer))
    }

    fn peer(net: &dyn Net) -> Party {
        Party(1 - net.me().0)
    }

    /// Opens some values, of which the second party may mean another one, and gives products for a check.
    fn opened(
        arithmetic: &mut Arithmetic<Gf2_64>,
        cheats: bool,
        net: &mut dyn Net,
    ) -> Result<[Product<Gf2_64>; 2]> {
        let triples = arithmetic.triples(4, net)?;
        let mut values = triples.a.part(0..2);
        values.values[1] ^= u64::from(cheats && net.me() == Party(1));
        arithmetic.open(&values, &[], &[], net)?;
        Ok([2, 3].map(|at| triples.product(at)))
    }

    #[test]
    fn a_wrong_opening_is_found_and_costs_the_key() {
        for cheats in [false, true] {
            let outcomes = run_parties(2, |net| {
                let (mut arithmetic, peer) = (arithmetic(net), peer(net));
                let products = opened(&mut arithmetic, cheats, net)?;
                let unchecked = arithmetic.unchecked();
                arithmetic.ask(products, peer, net)?;
                arithmetic.answer(peer, net)?;
                assert!(unchecked.is_pending());
                let judged = arithmetic.judge_answer(peer, net);
                assert_eq!(unchecked.is_pending(), cheats);
                assert_eq!(arithmetic.openings.is_empty(), !cheats);
                assert_eq!(arithmetic.key.refuse_retired().is_err(), cheats);
                judged
            });
            let failed = Err(Error::CheckFailed { what: "the MACs of opened values" });
            let expected = if cheats { failed } else { Ok(()) };
            assert_eq!(outcomes, [expected.clone(), expected]);
        }
    }

    /// An input of one cell.
    fn port() -> CompiledPort {
        let mut b = Builder::new("a copy");
        let x = b.input("x", 1, 8);
        b.output("y", &x);
        compile(&b.finish(), &AnyMap).inputs()[0].clone()
    }

    fn is_misuse<T>(outcome: Result<T>) -> bool {
        matches!(outcome, Err(Error::Misuse(_)))
    }

    /// What was opened in between would count as checked.
    #[test]
    fn until_it_has_ended_nothing_is_opened_and_no_other_check_begins() {
        let port = port();
        let outcomes = run_parties(2, |net| {
            let (mut arithmetic, peer) = (arithmetic(net), peer(net));
            let products = opened(&mut arithmetic, false, net)?;
            assert!(is_misuse(arithmetic.answer(peer, net)), "nobody has asked");
            arithmetic.ask(products, peer, net)?;
            assert!(is_misuse(arithmetic.judge_answer(peer, net)), "not answered");
            for asked in [true, false] {
                assert!(is_misuse(opened(&mut arithmetic, false, net)));
                assert!(is_misuse(arithmetic.share(peer, None, &port, 1, net)));
                assert!(is_misuse(arithmetic.check(net)));
                let triples = arithmetic.triples(2, net)?;
                assert!(is_misuse(arithmetic.ask([0, 1].map(|at| triples.product(at)), peer, net)));
                if asked {
                    arithmetic.answer(peer, net)?;
                }
            }
            assert!(is_misuse(arithmetic.answer(peer, net)), "an answer is given once");
            arithmetic.judge_answer(peer, net)?;
            opened(&mut arithmetic, false, net).map(|_| ())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }

    /// The peer falls silent in the middle of a check, and a wrong opening is not checked.
    #[test]
    fn after_a_check_that_did_not_end_nothing_is_opened_and_it_does_not_begin_again() {
        for answers in [false, true] {
            let outcomes = run_parties(2, |net| {
                let (mut arithmetic, peer) = (arithmetic(net), peer(net));
                let products = opened(&mut arithmetic, true, net)?;
                let triples = arithmetic.triples(2, net)?;
                arithmetic.ask(products, peer, net)?;
                if net.me() == Party(1) {
                    return match answers {
                        true => arithmetic.answer(peer, net),
                        false => net.recv(peer, &mut [0; Asked::<Gf2_64>::BYTES]),
                    };
                }
                let ended = arithmetic.answer(peer, net).and_then(|()| arithmetic.judge_answer(peer, net));
                assert!(ended.is_err());
                assert!(is_misuse(arithmetic.ask([0, 1].map(|at| triples.product(at)), peer, net)));
                assert!(is_misuse(arithmetic.check(net)));
                assert!(is_misuse(opened(&mut arithmetic, false, net)));
                assert!(!arithmetic.openings.is_empty());
                Ok(())
            });
            assert_eq!(outcomes, [Ok(()), Ok(())]);
        }
    }

    /// Another session may have given it up in between.
    #[test]
    fn under_a_key_that_was_given_up_nothing_is_asked_or_answered_and_no_mask_is_given() {
        let outcomes = run_parties(2, |net| {
            let (mut arithmetic, peer) = (arithmetic(net), peer(net));
            let products = opened(&mut arithmetic, false, net)?;
            let triples = arithmetic.triples(2, net)?;
            arithmetic.ask(products, peer, net)?;
            let fault = Error::CheckFailed { what: "another check" };
            assert!(arithmetic.key.judge(|| Some(fault)).is_err());
            let is_refused = |error| matches!(error, Some(Error::CheckFailed { .. }));
            assert!(is_refused(arithmetic.answer(peer, net).err()));
            arithmetic.alongside = Alongside::Nothing;
            assert!(is_refused(arithmetic.ask([0, 1].map(|at| triples.product(at)), peer, net).err()));
            assert!(is_refused(arithmetic.mask_from_stock(16, net).err()));
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }

    /// After an error of a peer in a circuit: each of these would tell the peer something, or take something
    /// from it.
    #[test]
    fn a_session_that_is_over_opens_nothing_checks_nothing_and_gives_no_masks() {
        let port = port();
        let outcomes = run_parties(2, |net| {
            let mut arithmetic = arithmetic(net);
            let products = opened(&mut arithmetic, false, net)?;
            arithmetic.is_over = true;
            assert!(is_misuse(arithmetic.share(peer(net), None, &port, 1, net)));
            assert!(is_misuse(arithmetic.open_packed(&BYTES, &[0], &mut [0], 1, |_| (), net)));
            assert!(is_misuse(opened(&mut arithmetic, false, net)));
            assert!(is_misuse(arithmetic.ask(products, peer(net), net)));
            assert!(is_misuse(arithmetic.check(net)));
            assert!(is_misuse(arithmetic.mask_from_stock(16, net)));
            assert!(!arithmetic.openings.is_empty());
            Ok(())
        });
        assert_eq!(outcomes, [Ok(()), Ok(())]);
    }
}
