//! TinyOT ([`crate::tinyot`]) under the same key. It makes records for inversions, and between two parties
//! triples of bits: much cheaper than triples of elements, for masked tables with k = 1.
//!
//! TinyOT has its own transfers under the parties' shares of the MAC key, and its authenticated bits are
//! shares under the whole key at once ([`Bits::to_spdz`](crate::tinyot::Bits::to_spdz)). An honest party uses
//! the same share for both. A test makes sure that a cheater does, too, and towards all parties. It is run
//! once, when the two are joined, because forks keep what was fixed then. A random element r of COPEe and the
//! sum z = sum X^i b_i of 64 random bits of TinyOT add up to y, which is opened, and whose MAC is checked by
//! the zero test.
//!
//! * *It binds.* Towards honest party h, let the cheaters' shares be e_h in COPEe and d_h in TinyOT, and z_h
//!   and r_h the parts of z and r that h's bits and element make. The MAC of y is wrong by sum (z_h d_h + r_h
//!   e_h) and what the cheaters add. What is opened reveals only the sum of all z_h and r_h, because of the
//!   sharing of zero. Each of them is uniform, so unless all d_h and e_h are one value, the error is uniform
//!   to the cheaters: they pass with probability 2^-64. (There are 64 bits, so that z_h is an element of the
//!   whole field. With a single bit the error would be zero half of the time.)
//! * *Other bits towards other parties* add alpha_h times what differs. All honest parties have the same y,
//!   so no opening makes up for that: the cheaters guess a sum of shares of the key, 2^-64.
//! * *Nothing is revealed*: r and the bits are used for nothing else. The zero test tells only whether it
//!   failed, and then the key is given up.

use polyclave_field::{Gf2_64, MacField, Word};

use super::Mascot;
use crate::authenticated::{Authenticated, Triples};
use crate::interface::net::Net;
use crate::ot::Means;
use crate::tinyot::{Bits, Kappa, Key, Source, TinyOt};
use crate::{Error, Result};

impl<F: MacField> Mascot<F> {
    /// From now on makes what TinyOT makes, too, with MACs in GF(2^64): records for inversions, and between
    /// two parties triples of bits and unit vectors. `label` is used once. About thirty rounds.
    pub fn join_tinyot(
        &mut self,
        label: &[u8],
        kappa: Kappa,
        means: impl Into<Means>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let key = self.key.for_bits().ok_or_else(missing)?;
        self.join_under(&key, label, kappa, means.into(), net)
    }

    /// Under this share of the key, which is the one of this object if the party is honest.
    fn join_under(
        &mut self,
        key: &Key,
        label: &[u8],
        kappa: Kappa,
        means: Means,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.guarded(|mascot| {
            let tinyot = TinyOt::setup(label, key, kappa, means, net)?;
            let element = tinyot.fork(&[label, b" binding"].concat()).random_element(net)?;
            mascot.bind_tinyot(&element, net)?;
            mascot.tinyot = Some(Box::new(tinyot));
            Ok(())
        })
    }

    /// Authenticated bits of which triples are made here, for whatever the label names, which is used once.
    /// Local.
    pub(crate) fn fork_bits(&self, label: &[u8]) -> Result<TinyOt> {
        let tinyot = self.tinyot.as_ref().ok_or_else(missing)?;
        Ok(tinyot.fork(&[label, b" bits"].concat()))
    }

    /// Tests that an element of TinyOT is under the same key as those made here.
    fn bind_tinyot(&mut self, element: &Authenticated<Gf2_64>, net: &mut dyn Net) -> Result<()> {
        let mut sum = self.fork(b"binding of bits").random_element(net)?;
        sum.add(&in_this_field(element));
        self.open_and_check(sum, net)
    }

    /// Random triples of bits.
    pub(super) fn triples_of_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        // Outside of `guarded`, because asking in vain spoils nothing.
        self.refuse_more_than_two()?;
        self.guarded(|mascot| mascot.make_triples_of_bits(count, net))
    }

    /// An error unless TinyOT is there, between two parties.
    pub(super) fn refuse_more_than_two(&self) -> Result<()> {
        match self.tinyot.is_some() && self.key.parties() == 2 {
            true => Ok(()),
            false => Err(missing()),
        }
    }

    fn make_triples_of_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        let tinyot = self.tinyot.as_mut().ok_or_else(missing)?;
        let made = tinyot.triples(count, net)?;
        Ok(Triples {
            a: self.as_elements(&made.x)?,
            b: self.as_elements(&made.y)?,
            c: self.as_elements(&made.z)?,
        })
    }

    /// Bits as elements of this field, which is that of their tags.
    fn as_elements(&self, bits: &Bits) -> Result<Authenticated<F>> {
        let key = self.key.for_bits().ok_or_else(|| Error::misuse("tags of bits lie in GF(2^64)"))?;
        Ok(in_this_field(&bits.to_spdz(&key)))
    }
}

/// Elements of the field of tags as those of F, which is the same field.
fn in_this_field<F: MacField>(shares: &Authenticated<Gf2_64>) -> Authenticated<F> {
    let mut elements = Authenticated::zero(shares.len());
    let read = |word: &u64| F::Word::from_bytes(&word.to_le_bytes());
    elements.values.iter_mut().zip(shares.values.iter()).for_each(|(to, word)| *to = read(word));
    elements.macs.iter_mut().zip(shares.macs.iter()).for_each(|(to, word)| *to = read(word));
    elements
}

pub(super) fn missing() -> Error {
    Error::misuse(
        "records for inversions, and between two parties triples of bits and unit vectors, take MACs in GF(2^64), and have to be wanted \
         when the setup is made",
    )
}

#[cfg(test)]
mod tests {
    use polyclave_field::Gf2_40;

    use super::*;
    use crate::Party;
    use crate::authenticated::{MacKey, Source};
    use crate::mesh::run_parties;

    fn joined(alpha_of_second: impl Fn(u64) -> u64 + Sync) -> Vec<Result<usize>> {
        run_parties(2, |net| {
            let key = MacKey::<Gf2_64>::generate(net)?;
            let mut mascot = Mascot::setup(b"test", &key, 2, net)?;
            let share = key.reveal_own_share();
            let share = if net.me() == Party(1) { alpha_of_second(share) } else { share };
            mascot.join_under(
                &MacKey::of_share(net.me(), 2, share),
                b"bits",
                Kappa::Bits64,
                2.into(),
                net,
            )?;
            Ok(mascot.fork(b"fork").bit_triples(5, net)?.c.len())
        })
    }

    #[test]
    fn another_key_for_bits_than_for_elements_is_caught() {
        assert_eq!(joined(|alpha| alpha), [Ok(5), Ok(5)]);
        for cheated in [joined(|alpha| alpha ^ 1), joined(|_| 0)] {
            assert!(matches!(cheated[0], Err(Error::CheckFailed { .. })), "{cheated:?}");
        }
    }

    /// As if party 1 had another share of the key towards party 3 in TinyOT, or the same other one towards
    /// both.
    #[test]
    fn another_key_towards_one_honest_party_is_caught() {
        for wrong in [&[][..], &[2], &[1, 2]] {
            let outcomes = run_parties(3, |net| {
                let key = MacKey::<Gf2_64>::generate(net)?;
                let mut mascot = Mascot::setup(b"test", &key, 2, net)?;
                let mut tinyot = TinyOt::setup(b"bits", &key, Kappa::Bits64, 2, net)?;
                let mut element = tinyot.random_element(net)?;
                if wrong.contains(&net.me().index()) {
                    element.macs[0] ^= Gf2_64::multiply(1 << 40, element.values[0]);
                }
                mascot.bind_tinyot(&element, net)
            });
            for outcome in outcomes {
                assert_eq!(outcome.is_ok(), wrong.is_empty(), "{outcome:?}");
                assert!(outcome.is_ok() || matches!(outcome, Err(Error::CheckFailed { .. })));
            }
        }
    }

    #[test]
    fn smaller_fields_are_refused_and_triples_of_bits_of_more_parties() {
        let outcomes = run_parties(3, |net| {
            let mut mascot = Mascot::setup(b"test", &MacKey::<Gf2_64>::generate(net)?, 2, net)?;
            mascot.join_tinyot(b"bits", Kappa::Bits64, 2, net)?;
            let refused = mascot.bit_triples(1, net).map(drop);
            Ok((refused, mascot.inverses(1, net)?.len()))
        });
        for outcome in outcomes {
            assert!(matches!(outcome, Ok((Err(Error::Misuse(_)), 1))), "{outcome:?}");
        }
        let outcomes = run_parties(2, |net| {
            let mut mascot = Mascot::setup(b"test", &MacKey::<Gf2_40>::generate(net)?, 2, net)?;
            mascot.join_tinyot(b"bits", Kappa::Bits64, 2, net)
        });
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{outcomes:?}");
    }
}
