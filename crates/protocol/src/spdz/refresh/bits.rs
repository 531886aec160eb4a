//! Moves authenticated bits of two parties to another MAC key, in the same way as the parent module.
//!
//! The mask's bits come from [`crate::tinyot`]: r = r_A + r_B under the old key and r' = r'_A + r'_B under
//! the new one. Each party knows its own shares. So each tells the other d_i = r_i + r'_i, and both add d_A +
//! d_B to r'. The parent module's argument about bits that one party knows applies to these shares: d_i
//! reveals nothing, because r'_i is uniform and used for nothing else, and a wrong d_i is an error e that the
//! cheater fixed before the coins. Tags are opened as MACs ([`Bits::to_spdz`]).

use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::Refresh;
use crate::interface::net::Net;
use crate::tinyot::{Bits, Source};
use crate::{Error, Result};

impl Refresh<Gf2_64> {
    /// Bits under the old key, with a source of bits under either key, the old one's first.
    pub(crate) fn refresh_bits(
        &mut self,
        value: &Bits,
        sources: [&mut dyn Source; 2],
        net: &mut dyn Net,
    ) -> Result<Bits> {
        self.guarded(|refresh| {
            let count = value.len();
            let (mut mask, new) = refresh.same_bits(count, sources, net)?;
            mask.add(value);
            let masked = mask.to_spdz(&refresh.old.key);
            let (opened, _) = refresh.old.open(&masked, &[], &[], net)?;
            refresh.old.check(net)?;
            // Sums of bits are bits, now that they are checked.
            let public: Vec<u8> = opened.iter().map(|bit| (bit & 1) as u8).collect();
            let mut refreshed = new;
            refreshed.add_public(&public, &refresh.new.key);
            Ok(refreshed)
        })
    }

    /// The same random bits under the old key and the new, checked.
    fn same_bits(
        &mut self,
        count: usize,
        [of_old, of_new]: [&mut dyn Source; 2],
        net: &mut dyn Net,
    ) -> Result<(Bits, Bits)> {
        let all = count + u64::BITS as usize;
        let (old, mut new) = (of_old.bits(all, net)?, of_new.bits(all, net)?);
        let mut own = Zeroizing::new(vec![0; all.div_ceil(8)]);
        let sums = old.values.iter().zip(&new.values).enumerate();
        sums.for_each(|(j, (x, y))| own[j / 8] |= (x ^ y) << (j % 8));
        let message = self.tell(&own, net)?;
        let [first, second] = &message[..] else {
            return Err(Error::misuse("authenticated bits move between two parties"));
        };
        let public: Vec<u8> = (0..all).map(|j| (first[j / 8] ^ second[j / 8]) >> (j % 8) & 1).collect();
        new.add_public(&public, &self.new.key);
        self.check_equal(&[old.to_spdz(&self.old.key), new.to_spdz(&self.new.key)], net)?;
        Ok((old.part(0..count), new.part(0..count)))
    }
}
