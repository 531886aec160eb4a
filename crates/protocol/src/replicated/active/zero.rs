//! Whether elements are zero: opens rho d, for a random shared rho that is used for nothing else, and proves
//! the product only if what is opened is not zero.
//!
//! Everything that d rests on has been verified before. So both honest parties mean the same d, and only the
//! product rho d can be wrong: what is opened is rho d + e, where the cheater chooses e and knows it
//! (`sacrifice.rs`).
//!
//! * *Zero is opened*: then d is zero, or rho d = e for a rho that is uniform to the cheater when it chooses
//!   e, hence with probability 2^-128. A proof would show no more.
//! * *Another value is opened*: d is not zero, or e is not. A proof of the product decides which: if it
//!   holds, e = 0 and d is not zero; if not, the cheater is found. So nobody makes a right value look wrong.
//! * *Nothing else is told*: if d is not zero, rho d + e is uniform, whatever d is. If it is zero, what is
//!   opened is e. Both are known before the proof, and whether the proof holds depends on e alone.
//!
//! The factors are compared first, as before a proof: if two honest parties had different shares of d, what
//! is opened could depend on a guess of d. The digests travel with the product.
//!
//! Cost for n elements: n products, and two rounds. A value that is not zero takes the rounds of a proof
//! more.

use polyclave_kernels::secret::ct_eq;

use super::super::elements::open;
use super::super::ring::Ring;
use super::Active;
use crate::Result;
use crate::interface::elements::{ELEMENT_BYTES, Elements};
use crate::interface::net::Net;

impl Active {
    pub(super) fn zeros(
        &mut self,
        elements: &Elements,
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Vec<bool>> {
        let rho = ring.random_elements(elements.count());
        let factors = [elements, &rho];
        let products = self.compared_products(b"factors of zero tests", factors, factors, ring, net)?;
        let opened = open(&products, self, ring, net)?;
        let are_zero: Vec<bool> = opened.iter().map(|opened| ct_eq(opened, &[0; ELEMENT_BYTES])).collect();
        if are_zero.contains(&false) {
            self.elements.remember(factors, &products);
            self.sacrifice(ring, net)?;
        }
        Ok(are_zero)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::{Replicated, ReplicatedActiveConfig};
    use super::*;
    use crate::interface::elements::ElementArithmetic;
    use crate::interface::protocol::ProtocolConfig;
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;
    use crate::testkit::exchanging::Exchanging;
    use crate::{Error, Party};

    /// A session, and its elements: zero, one, and one that nobody knows.
    fn with_elements<T>(
        net: &mut dyn Net,
        work: impl FnOnce(&mut Replicated<Active>, [Elements; 3], &mut dyn Net) -> Result<T>,
    ) -> Result<(T, bool)> {
        let config = ReplicatedActiveConfig::default();
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut protocol: Replicated<Active> = config.join(&setup, session.stream(), net.members())?;
        let random = [protocol.random_elements(1, net)?, protocol.random_elements(1, net)?];
        let value = protocol.open_elements(&random[0], net)?;
        let zero = protocol.add_public(&random[0], &value);
        let mut one = [0; ELEMENT_BYTES];
        one[0] = 0x80;
        let one = protocol.add_public(&zero, &[one]);
        let [_, unknown] = random;
        let done = work(&mut protocol, [zero, one, unknown], net)?;
        Ok((done, config.join(&setup, session.stream(), net.members()).is_err()))
    }

    /// Of a cheater that multiplies another element than the one that it compares, and then behaves as if it
    /// had not.
    fn with_wrong_product(protocol: &mut Replicated<Active>, d: &Elements, net: &mut dyn Net) -> Result<()> {
        let Replicated { ring, model, .. } = protocol;
        let (rho, mut other) = (ring.random_elements(1), d.clone());
        other.shares[3] ^= 1;
        let products =
            model.compared_products(b"factors of zero tests", [d, &rho], [&other, &rho], ring, net)?;
        open(&products, model, ring, net)?;
        model.elements.remember([d, &rho], &products);
        model.sacrifice(ring, net)
    }

    #[test]
    fn only_zero_is_zero() {
        let outcomes = run_parties(3, |net| {
            with_elements(net, |protocol, [zero, one, unknown], net| {
                let all = Elements::join(&[&zero, &one, &unknown, &zero]);
                let found = protocol.are_zero(&all, net)?;
                Ok((found, protocol.is_zero(&zero, net)?))
            })
        });
        for outcome in outcomes {
            assert_eq!(outcome, Ok(((vec![true, false, false, true], true), false)));
        }
    }

    /// How often a party waits for others in some work.
    fn exchanges(net: &mut dyn Net, work: impl FnOnce(&mut dyn Net) -> Result<()>) -> Result<usize> {
        let mut count = 0;
        work(&mut Exchanging::new(net, |net: &mut dyn Net, out: &[&[u8]], into: &mut [&mut [u8]]| {
            count += 1;
            net.exchange(out, into)
        }))?;
        Ok(count)
    }

    #[test]
    fn an_opening_takes_one_round_and_a_zero_two_and_only_another_value_is_proven() {
        let outcomes = run_parties(3, |net| {
            with_elements(net, |protocol, [zero, one, _], net| {
                let opening = exchanges(net, |net| protocol.open_elements(&one, net).map(drop))?;
                let of_zero = exchanges(net, |net| protocol.is_zero(&zero, net).map(drop))?;
                let of_one = exchanges(net, |net| protocol.is_zero(&one, net).map(drop))?;
                Ok(([opening, of_zero, of_one], protocol.model.elements.count()))
            })
        });
        for outcome in outcomes {
            assert_eq!(outcome, Ok((([1, 2, 7], 0), false)));
        }
    }

    #[test]
    fn a_wrong_product_is_found_and_makes_no_value_look_wrong() {
        for which in 0..2 {
            for cheater in Party::all(3) {
                let outcomes = run_parties(3, |net| {
                    with_elements(net, |protocol, elements, net| {
                        let d = &elements[which];
                        Ok(match net.me() == cheater {
                            true => with_wrong_product(protocol, d, net).map(|()| false),
                            false => protocol.is_zero(d, net),
                        })
                    })
                });
                for (party, outcome) in Party::all(3).zip(outcomes).filter(|(party, _)| *party != cheater) {
                    let is_found = matches!(
                        outcome,
                        Ok((Err(Error::OneOfTwo { what: "products of elements", .. }), true))
                    );
                    assert!(is_found, "element {which}, {cheater} cheats, {party}: {outcome:?}");
                }
            }
        }
    }

    #[test]
    fn shares_that_two_honest_parties_have_differently_are_found_before_anything_is_opened() {
        let outcomes = run_parties(3, |net| {
            with_elements(net, |protocol, [_, mut one, _], net| {
                if net.me() == Party(0) {
                    one.shares[5] ^= 1;
                }
                Ok(protocol.is_zero(&one, net))
            })
        });
        for p in [0, 2] {
            let is_found =
                matches!(&outcomes[p], Ok((Err(Error::OneOfTwo { what: "shares of elements", .. }), true)));
            assert!(is_found, "{p}: {outcomes:?}");
        }
    }
}
