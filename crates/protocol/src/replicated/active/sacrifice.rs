//! Products of elements of GF(2^128) are verified by the sacrifice of others (Damgard, Pastro, Smart and
//! Zakarias, CRYPTO 2012, section 4, for triples; cited from memory). There are few of them, since only GHASH
//! and zero tests multiply elements.
//!
//! For each product c = a b, the parties draw a random r and multiply d = r b. Then they toss s and chi, open
//! e = s a + r, and open w = sum of chi^k (s c_k + d_k + e_k b_k), which is zero if all products are right.
//!
//! **Soundness.** Every share of a, b and r is held by two parties, and the two honest parties agree on the
//! one that they have in common: it was drawn, received from each other, or compared ([`Active::agree_on`]).
//! So a cheater can only add to a product the difference between what it sent and what it should have sent.
//! With errors of c_k and d_k, w = sum of chi^k (s error_c + error_d). All errors are fixed before s and chi
//! are tossed, and e is what it should be, since openings are compared. If error_c is not 0, one s at most
//! makes a term zero; and if a term is not zero, n chi at most make the sum zero. So a wrong product of n
//! passes with probability (n + 1) / 2^128.
//!
//! **Secrecy.** r is uniform to every party, because each lacks a key. So e is uniform, whatever a is. w
//! follows from the errors and the coins, all of which the cheater knows. What a party receives of an opening
//! is the one share that it lacks.
//!
//! If the shares of two honest parties differed, the errors would depend on secrets. So factors are compared
//! first, by digests under the key of the two parties that hold a share.
//!
//! Cost: for n products n more, and 16 n bytes and five rounds.

use polyclave_field::Gf128;
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::super::client::of_shares;
use super::super::elements::open;
use super::super::ring::Ring;
use super::{Active, DIGEST_BYTES, are_alike};
use crate::interface::elements::{ELEMENT_BYTES, Element, Elements};
use crate::interface::masking::powers;
use crate::interface::net::Net;
use crate::unchecked::Unchecked;
use crate::{Error, Result, coins};

/// Products that wait: factors, and what they gave.
#[derive(Default)]
pub(super) struct Products {
    a: Vec<Elements>,
    b: Vec<Elements>,
    c: Vec<Elements>,
    count: usize,
}

impl Products {
    pub(super) fn remember(&mut self, [a, b]: [&Elements; 2], c: &Elements) {
        self.a.push(a.clone());
        self.b.push(b.clone());
        self.c.push(c.clone());
        self.count += c.count();
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// As if a product that this party has were another one.
    #[cfg(test)]
    pub(super) fn spoil(&mut self) {
        self.c[0].shares[0] ^= 1;
    }
}

impl Active {
    /// Verifies all products of elements, which are forgotten.
    pub(super) fn sacrifice(&mut self, ring: &mut Ring, net: &mut dyn Net) -> Result<()> {
        let Products { a, b, c, count } = std::mem::take(&mut self.elements);
        if count == 0 {
            return Ok(());
        }
        let [a, b, c] = [a, b, c].map(|parts| Elements::join(&parts.iter().collect::<Vec<_>>()));
        let r = ring.random_elements(count);
        let d = self.compared_products(b"factors of elements", [&a, &b], [&r, &b], ring, net)?;
        let context = [
            b"polyclave replicated sacrifice 1",
            &self.label[..],
            &(count as u64).to_le_bytes(),
            &self.compared.to_le_bytes(),
        ]
        .concat();
        ring.counts().rounds += 2;
        let coins = coins::toss(&context, net)?;
        let [s, chi] = [0, ELEMENT_BYTES].map(|at| -> Element {
            coins[at..at + ELEMENT_BYTES].try_into().expect("the coins are two elements")
        });
        let e = open(&scaled(&a, s, count).add(&r), self, ring, net)?;
        let weights = powers(chi, count);
        let products = |factors: &dyn Fn(usize) -> Element| -> Vec<Element> {
            let product = |(k, weight): (usize, &Element)| {
                (Gf128::from_bytes(*weight) * Gf128::from_bytes(factors(k))).to_bytes()
            };
            weights.iter().enumerate().map(product).collect()
        };
        let mut w = c.weighted_sums(&products(&|_| s));
        w.add_assign(&d.weighted_sums(&weights));
        w.add_assign(&b.weighted_sums(&products(&|k| e[k])));
        let w = open(&w, self, ring, net)?;
        match w.iter().all(|w| ct_eq(w, &[0; ELEMENT_BYTES])) {
            true => Ok(()),
            false => Err(Error::CheckFailed { what: "products of elements" }),
        }
    }
}

impl Active {
    /// Products of two factors, beside a comparison of what both honest parties have of others: of those that
    /// an opening behind it rests on. The products are masked, so they may go before it. One round.
    pub(super) fn compared_products(
        &mut self,
        context: &[u8],
        compared: [&Elements; 2],
        [a, b]: [&Elements; 2],
        ring: &mut Ring,
        net: &mut dyn Net,
    ) -> Result<Elements> {
        let rows = compared.map(|elements| [&elements.shares[..], &elements.macs]);
        let [of_first, of_second] = self.digests_of(context, &rows);
        let own = ring.own_products(a, b);
        let message = Zeroizing::new([&own[..], &of_first].concat());
        let lengths = [DIGEST_BYTES, message.len()];
        let [from_before, from_behind] = ring.exchange_with_both([&message, &of_second], lengths, net)?;
        let (received, digest) = from_behind.split_at(own.len());
        are_alike([of_first, of_second], [&from_before, digest], "shares of elements", ring)?;
        let received = Zeroizing::new(received.to_vec());
        Ok(of_shares([own, received], Unchecked::default()))
    }
}

/// Each element times a public one.
fn scaled(elements: &Elements, factor: Element, count: usize) -> Elements {
    elements.multiply(vec![factor; count].as_flattened())
}

#[cfg(test)]
mod tests {
    use super::super::super::{Replicated, ReplicatedActiveConfig};
    use super::*;
    use crate::interface::elements::ElementArithmetic;
    use crate::interface::protocol::{ProtocolConfig, Session};
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;
    use crate::testkit::exchanging::Exchanging;
    use crate::{Party, PartySet};

    /// Three products of which the cheater sends some with an error, and from then on behaves as if they were
    /// right.
    fn verified(cheater: Option<Party>, errors: [u8; 3], net: &mut dyn Net) -> Result<[bool; 2]> {
        let config = ReplicatedActiveConfig::default();
        let setup = config.setup(net)?;
        let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
        let mut join = |net: &mut dyn Net| -> Result<Replicated<Active>> {
            config.join(&setup, session.stream(), net.members())
        };
        let mut protocol = join(net)?;
        let a = protocol.random_elements(3, net)?;
        protocol.multiply_elements(&a, &a, net)?;
        // Its first share is the second one of the party before it.
        let c = &mut protocol.model.elements.c[0];
        let share = match cheater.map(|cheater| (net.me().0 + 3 - cheater.0) % 3) {
            Some(0) => Some(&mut c.shares),
            Some(2) => Some(&mut c.macs),
            _ => None,
        };
        if let Some(share) = share {
            share.chunks_mut(ELEMENT_BYTES).zip(errors).for_each(|(element, error)| element[7] ^= error);
        }
        let found = protocol.check(net);
        let others = PartySet::all(3).without([net.me()].into_iter().collect());
        let is_pair = match found {
            Ok(()) => false,
            Err(Error::OneOfTwo { first, second, what: "products of elements" }) => {
                [first, second].into_iter().collect::<PartySet>() == others
            }
            Err(other) => return Err(other),
        };
        let retired = join(net).is_err();
        Ok([is_pair, retired])
    }

    /// Parties 1 and 3 have different shares of a factor, for example since the storage of one is damaged.
    /// Without the comparison w would be opened to party 2, and would be the difference times what that party
    /// does not know of the other factor.
    #[test]
    fn factors_of_which_two_honest_parties_have_different_shares_are_found_before_anything_is_opened() {
        for which in [0, 1] {
            let outcomes = run_parties(3, |net| {
                let config = ReplicatedActiveConfig::default();
                let setup = config.setup(net)?;
                let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
                let mut protocol: Replicated<Active> =
                    config.join(&setup, session.stream(), net.members())?;
                let mut factors = [protocol.random_elements(2, net)?, protocol.random_elements(2, net)?];
                if net.me() == Party(0) {
                    factors[which].shares[20] ^= 1;
                }
                protocol.multiply_elements(&factors[0], &factors[1], net)?;
                Ok(protocol.check(net))
            });
            for p in [0, 2] {
                let is_found =
                    matches!(&outcomes[p], Ok(Err(Error::OneOfTwo { what: "shares of elements", .. })));
                assert!(is_found, "factor {which}, {p}: {outcomes:?}");
            }
        }
    }

    #[test]
    fn a_check_of_products_counts_the_rounds_that_it_takes() {
        let outcomes = run_parties(3, |net| {
            let config = ReplicatedActiveConfig::default();
            let setup = config.setup(net)?;
            let mut session = hello(&config.handshake(HandshakeParameters::new(3)), net)?;
            let mut protocol: Replicated<Active> = config.join(&setup, session.stream(), net.members())?;
            let a = protocol.random_elements(3, net)?;
            protocol.multiply_elements(&a, &a, net)?;
            let rounds = |protocol: &Replicated<Active>| {
                let tally = protocol.tally();
                [tally.preprocessing, tally.input, tally.online, tally.output]
                    .iter()
                    .map(|c| c.rounds)
                    .sum::<u64>()
            };
            let (before, mut exchanges) = (rounds(&protocol), 0);
            protocol.check(&mut Exchanging::new(
                &mut *net,
                |net: &mut dyn Net, out: &[&[u8]], into: &mut [&mut [u8]]| {
                    exchanges += 1;
                    net.exchange(out, into)
                },
            ))?;
            Ok((rounds(&protocol) - before, exchanges))
        });
        for outcome in outcomes {
            let (counted, exchanges) = outcome.expect("all are honest");
            assert_eq!((counted, exchanges), (5, 5));
        }
    }

    #[test]
    fn wrong_products_are_found_at_all_parties_and_retire_the_set_up() {
        // An error, and two that would cancel if they had the same weight.
        for errors in [[0, 1, 0], [0x80, 0, 0x80]] {
            for cheater in Party::all(3) {
                let outcomes = run_parties(3, |net| verified(Some(cheater), errors, net));
                assert!(outcomes.iter().all(|o| *o == Ok([true, true])), "{cheater}: {outcomes:?}");
            }
        }
        let outcomes = run_parties(3, |net| verified(None, [0; 3], net));
        assert!(outcomes.iter().all(|o| *o == Ok([false, false])), "{outcomes:?}");
    }
}
