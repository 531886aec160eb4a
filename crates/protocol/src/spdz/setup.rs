//! The setup: a party's share of the MAC key, and the state from which the material of sessions is made.
//!
//! The share, and an anchor under it, can be stored; the transfers cannot, and are made anew after every
//! start of a node ([`Setup::renew`]): a copy of a disk that is restored would repeat streams that have been
//! used (security-notes J). [`Mascot::bind`] tests that the new ones are under the stored key, and says why
//! this suffices.
//!
//! A renewed setup is under the same key as the one it was made from, and shares its fate: a check that fails
//! in a session of one is the end of both, since what could have been learnt is a part of alpha. What is
//! stored says whether that has happened.

use std::sync::Arc;

use polyclave_field::{Gf2_64, MacField, Word};
use polyclave_kernels::secret::ct_eq;
use zeroize::Zeroizing;

use super::config::{MAX_PARTIES, OfBits, Preprocessing};
use crate::authenticated::{Authenticated, MacKey, Source};
use crate::interface::net::Net;
use crate::mascot::{Mascot, Unforked};
use crate::ot::Means;
use crate::tinyot::TinyOt;
use crate::{Error, Party, Result, coins};

/// What a party keeps from session to session.
pub struct Setup<F: MacField> {
    key: MacKey<F>,
    material: Root<F>,
    /// A random element for [`Mascot::bind`].
    anchor: Authenticated<F>,
}

/// What the material of every session under the setup comes from.
enum Root<F: MacField> {
    /// Set up once, so that every party's share of the MAC key is the same in all sessions.
    Mascot(Arc<Mascot<F>>),
    Dealer([u8; 32]),
    /// It was stored. A dealer's seed is, since its MAC key comes from it.
    Stored(Option<[u8; 32]>),
}

const FORMAT: u8 = 1;
const FROM_TRANSFERS: u8 = 0;
const FROM_DEALER: u8 = 1;

impl<F: MacField> Setup<F> {
    /// A fresh key, and what material is made from; what TinyOT makes, too, if it is wanted and can be made.
    pub(super) fn generate(
        preprocessing: Preprocessing<F>,
        bits: Option<OfBits>,
        net: &mut dyn Net,
    ) -> Result<Self> {
        match preprocessing {
            Preprocessing::Mascot { expansion } => {
                let key = MacKey::generate(net)?;
                let label = coins::toss(b"set-up of authenticated sharing", net)?;
                let mut mascot = Mascot::setup(&label, &key, expansion, net)?;
                let anchor = mascot.fork(b"anchor").random_element(net)?;
                join_bits(&mut mascot, bits, &label, expansion, net)?;
                Ok(Setup { key, material: Root::Mascot(Arc::new(mascot)), anchor })
            }
            Preprocessing::Dealt(dealer) => {
                let seed = dealer.agree_on_seed(net)?;
                let key = dealer.key(&seed, net.me(), net.parties());
                let anchor = dealer.source(&seed, b"anchor", &key).triples(1, net)?.a;
                Ok(Setup { key, material: Root::Dealer(seed), anchor })
            }
        }
    }

    /// Material for the purpose that the label names. A label is used once.
    pub(crate) fn source(&self, preprocessing: Preprocessing<F>, label: &[u8]) -> Result<Box<dyn Source<F>>> {
        match (preprocessing, &self.material) {
            (Preprocessing::Mascot { .. }, Root::Mascot(mascot)) => {
                Ok(Box::new(Unforked::new(mascot.clone(), label)))
            }
            (Preprocessing::Dealt(dealer), Root::Dealer(seed)) => Ok(dealer.source(seed, label, &self.key)),
            (_, Root::Stored(_)) => Err(not_renewed()),
            _ => Err(other_preprocessing()),
        }
    }

    /// The MAC key.
    pub fn key(&self) -> &MacKey<F> {
        &self.key
    }

    /// What is stored: the share of the key, the anchor, whether the key was given up.
    pub fn save(&self) -> Zeroizing<Vec<u8>> {
        let seed = match &self.material {
            Root::Dealer(seed) => Some(seed),
            Root::Stored(Some(seed)) => Some(seed),
            Root::Mascot(_) | Root::Stored(None) => None,
        };
        let words = [self.key.reveal_own_share(), self.anchor.values[0], self.anchor.macs[0]];
        let mut bytes = Zeroizing::new(vec![0; len::<F>(seed.is_some())]);
        bytes[..HEAD].copy_from_slice(&[
            FORMAT,
            F::BITS as u8,
            self.key.parties() as u8,
            self.key.me().0,
            if seed.is_some() { FROM_DEALER } else { FROM_TRANSFERS },
            u8::from(self.key.refuse_retired().is_err()),
        ]);
        for (word, bytes) in words.iter().zip(bytes[HEAD..].chunks_exact_mut(F::BYTES)) {
            word.write_to(bytes);
        }
        if let Some(seed) = seed {
            bytes[HEAD + 3 * F::BYTES..].copy_from_slice(seed);
        }
        bytes
    }

    /// Reads what party `me` of this many has stored. It can be used after it is [renewed](Setup::renew).
    pub fn restore(me: Party, parties: usize, bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &str| Error::Misuse(format!("the stored setup of authenticated sharing {what}"));
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else {
            return Err(damaged("ends too early"));
        };
        let [format, bits, of, party, from, retired] = *head;
        let is_dealt = from == FROM_DEALER;
        if format != FORMAT || from > FROM_DEALER || retired > 1 {
            return Err(damaged("has an unknown format"));
        }
        if u32::from(bits) != F::BITS {
            return Err(Error::Misuse(format!("the stored setup is of another field than {}", F::NAME)));
        }
        if !(2..=MAX_PARTIES).contains(&parties) || usize::from(of) != parties || party != me.0 || party >= of
        {
            return Err(damaged("is another party's, or of another number of parties"));
        }
        if bytes.len() != len::<F>(is_dealt) {
            return Err(damaged("has another length than it should have"));
        }
        let mut words = Zeroizing::new([F::Word::ZERO; 3]);
        for (word, bytes) in words.iter_mut().zip(rest.chunks_exact(F::BYTES)) {
            *word = F::Word::from_bytes(bytes);
            // No bit of an element.
            if !ct_eq(&[F::truncate(*word)], &[*word]) {
                return Err(damaged("has an element beyond its field"));
            }
        }
        let key = MacKey::of_share(me, parties, words[0]);
        if retired == 1 {
            key.retire();
        }
        let mut anchor = Authenticated::zero(1);
        (anchor.values[0], anchor.macs[0]) = (words[1], words[2]);
        let seed = rest[3 * F::BYTES..].try_into().ok();
        Ok(Setup { key, material: Root::Stored(seed), anchor })
    }

    /// Fresh transfers under the same key, for a setup that was stored or that has served; those of TinyOT,
    /// too, if they are wanted and can be made. All parties do so together.
    pub fn renew(
        &self,
        preprocessing: Preprocessing<F>,
        bits: Option<OfBits>,
        net: &mut dyn Net,
    ) -> Result<Self> {
        self.key.refuse_retired()?;
        let material = match (preprocessing, &self.material) {
            (Preprocessing::Mascot { expansion }, Root::Mascot(_) | Root::Stored(None)) => {
                let label = coins::toss(b"renewal of authenticated sharing", net)?;
                let mut mascot = Mascot::setup(&label, &self.key, expansion, net)?;
                mascot.fork(b"binding").bind(&self.anchor, net)?;
                join_bits(&mut mascot, bits, &label, expansion, net)?;
                Root::Mascot(Arc::new(mascot))
            }
            (Preprocessing::Dealt(_), Root::Dealer(seed) | Root::Stored(Some(seed))) => Root::Dealer(*seed),
            _ => return Err(other_preprocessing()),
        };
        Ok(Setup { key: self.key.clone(), material, anchor: self.anchor.clone() })
    }
}

impl Setup<Gf2_64> {
    /// Authenticated bits of two parties under the same key, for the purpose that the label names. A label is
    /// used once.
    pub(crate) fn bits(
        &self,
        preprocessing: Preprocessing<Gf2_64>,
        label: &[u8],
    ) -> Result<Box<dyn crate::tinyot::Source>> {
        match (preprocessing, &self.material) {
            (Preprocessing::Dealt(dealer), Root::Dealer(seed)) => Ok(dealer.bits(seed, label, &self.key)),
            (Preprocessing::Mascot { .. }, _) => Ok(Box::new(self.tinyot(label)?)),
            (_, Root::Stored(_)) => Err(not_renewed()),
            _ => Err(other_preprocessing()),
        }
    }

    /// What makes such bits, without a dealer.
    pub(crate) fn tinyot(&self, label: &[u8]) -> Result<TinyOt> {
        match &self.material {
            Root::Mascot(mascot) => mascot.fork_bits(label),
            Root::Stored(_) => Err(not_renewed()),
            Root::Dealer(_) => Err(other_preprocessing()),
        }
    }
}

fn not_renewed() -> Error {
    Error::misuse("the setup was stored: it must be renewed before it serves")
}

fn other_preprocessing() -> Error {
    Error::misuse("the setup was made for another preprocessing")
}

/// TinyOT with MACs in GF(2^64), if it is wanted, with this statistical parameter.
fn join_bits<F: MacField>(
    mascot: &mut Mascot<F>,
    wanted: Option<OfBits>,
    label: &[u8],
    expansion: usize,
    net: &mut dyn Net,
) -> Result<()> {
    match wanted.filter(|_| F::BITS == Gf2_64::BITS) {
        Some(OfBits { kappa, silent }) => {
            let means = Means { expansion, silent };
            mascot.join_tinyot(&[label, b" triples of bits"].concat(), kappa, means, net)
        }
        None => Ok(()),
    }
}

/// Format, field, number of parties, party, where material comes from, whether the key was given up.
const HEAD: usize = 6;

const fn len<F: MacField>(is_dealt: bool) -> usize {
    HEAD + 3 * F::BYTES + if is_dealt { 32 } else { 0 }
}

#[cfg(test)]
mod tests;
