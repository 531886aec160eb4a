//! Triples of bits between two parties, from TinyOT ([`crate::tinyot`]): much cheaper than triples of elements, for masked tables with
//! k = 1.
//!
//! TinyOT has its own transfers under the parties' shares of the MAC key, and its authenticated bits are shares under the whole key at
//! once ([`Bits::to_spdz`](crate::tinyot::Bits::to_spdz)). An honest party uses the same share for both. A test makes sure that a cheater
//! does, too. It is run once, when the two are joined, because forks keep what was fixed then. A random element r of COPEe and the sum
//! z = sum X^i b_i of 64 random bits of TinyOT add up to y, which is opened, and whose MAC is checked by the zero test.
//!
//! * *It binds.* Let the cheater's share be e in COPEe and d in TinyOT. Let z_h be the part of z that the honest party's bits make. The
//!   MAC of y is wrong by z_h (d + e) and what the cheater adds. The cheater knows y, but r hides z, so z_h is uniform to it. It passes
//!   with probability 2^-64 unless d = e. (There are 64 bits, so that z_h is an element of the whole field. With a single bit the error
//!   would be zero half of the time.)
//! * *Nothing is revealed*: r and the bits are used for nothing else. The zero test tells only whether it failed, and then the key is
//!   given up.

use polyclave_field::{MacField, Word};

use super::Mascot;
use crate::net::Net;
use crate::spdz::{Authenticated, Triples};
use crate::tinyot::{Bits, Kappa, Key, Source, TinyOt};
use crate::{Error, Result};

impl<F: MacField> Mascot<F> {
    /// From now on makes triples of bits, too: between two parties, with MACs in GF(2^64). `label` is used once. About thirty rounds.
    pub fn join_bit_triples(
        &mut self,
        label: &[u8],
        kappa: Kappa,
        expansion: usize,
        net: &mut dyn Net,
    ) -> Result<()> {
        let missing = || Error::misuse("triples of bits are made between two parties, with MACs in GF(2^64)");
        let key = self.key.for_bits().filter(|_| self.key.parties() == 2).ok_or_else(missing)?;
        self.join_under(&key, label, kappa, expansion, net)
    }

    /// Under this share of the key, which is the one of this object if the party is honest.
    fn join_under(
        &mut self,
        key: &Key,
        label: &[u8],
        kappa: Kappa,
        expansion: usize,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.guarded(|mascot| {
            let tinyot = TinyOt::set_up(label, key, kappa, expansion, net)?;
            let bits = tinyot.fork(&[label, b" binding"].concat()).bits(F::BITS as usize, net)?;
            mascot.bind_bits(&bits, net)?;
            mascot.tinyot = Some(Box::new(tinyot));
            Ok(())
        })
    }

    /// Authenticated bits of which triples are made here, for whatever the label names, which is used once. Local.
    pub(crate) fn fork_bits(&self, label: &[u8]) -> Result<TinyOt> {
        let tinyot = self.tinyot.as_ref().ok_or_else(missing)?;
        Ok(tinyot.fork(&[label, b" bits"].concat()))
    }

    fn bind_bits(&mut self, bits: &Bits, net: &mut dyn Net) -> Result<()> {
        let mut sum = self.fork(b"binding of bits").random_element(net)?;
        let bits = self.as_elements(bits)?;
        for (i, (value, mac)) in bits.values.iter().zip(bits.macs.iter()).enumerate() {
            let place = F::Word::ONE.shift_left(i as u32);
            sum.values[0] ^= F::multiply(*value, place);
            sum.macs[0] ^= F::multiply(*mac, place);
        }
        self.zeros.add_to::<F>(&mut sum.values);
        self.openings.open(&sum, &[], &[], net)?;
        self.check_openings(net)
    }

    /// Random triples of bits.
    pub(super) fn triples_of_bits(&mut self, count: usize, net: &mut dyn Net) -> Result<Triples<F>> {
        // Outside of `guarded`, because asking in vain spoils nothing.
        if self.tinyot.is_none() {
            return Err(missing());
        }
        self.guarded(|mascot| mascot.make_triples_of_bits(count, net))
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
        let shares = bits.to_spdz(&key);
        let mut elements = Authenticated::zero(bits.len());
        let read = |word: &u64| F::Word::from_bytes(&word.to_le_bytes());
        elements.values.iter_mut().zip(shares.values.iter()).for_each(|(to, word)| *to = read(word));
        elements.macs.iter_mut().zip(shares.macs.iter()).for_each(|(to, word)| *to = read(word));
        Ok(elements)
    }
}

pub(super) fn missing() -> Error {
    Error::misuse(
        "triples of bits and records for inversions take two parties, MACs in GF(2^64), and have to be wanted when the setup is made",
    )
}

#[cfg(test)]
mod tests {
    use polyclave_field::{Gf2_40, Gf2_64};

    use super::*;
    use crate::Party;
    use crate::mesh::run_parties;
    use crate::spdz::{MacKey, Source};

    fn joined(alpha_of_second: impl Fn(u64) -> u64 + Sync) -> Vec<Result<usize>> {
        run_parties(2, |net| {
            let key = MacKey::<Gf2_64>::generate(net)?;
            let mut mascot = Mascot::set_up(b"test", &key, 2, net)?;
            let share = key.reveal_own_share();
            let share = if net.me() == Party(1) { alpha_of_second(share) } else { share };
            mascot.join_under(&MacKey::of_share(net.me(), 2, share), b"bits", Kappa::Bits64, 2, net)?;
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

    #[test]
    fn smaller_fields_and_more_parties_are_refused() {
        let outcomes = run_parties(2, |net| {
            let mut mascot = Mascot::set_up(b"test", &MacKey::<Gf2_40>::generate(net)?, 2, net)?;
            mascot.join_bit_triples(b"bits", Kappa::Bits64, 2, net)
        });
        assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Misuse(_)))), "{outcomes:?}");
    }
}
