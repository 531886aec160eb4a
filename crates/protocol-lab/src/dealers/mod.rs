//! Dealers that **every party could impersonate**: all of them hold the dealer's seed. For tests, and to
//! measure the online phase alone.

pub mod insecure_dealer;
pub mod insecure_dealer_bits;
pub mod insecure_tables;

use polyclave_field::{Gf2_64, MacField};
use polyclave_protocol::authenticated::{MacKey, Source};
use polyclave_protocol::net::Net;
use polyclave_protocol::session::random_bytes;
use polyclave_protocol::spdz::{Dealer, Material, Preprocessing};
use polyclave_protocol::{Party, Result, commitment, tinyot};

use insecure_dealer::InsecureDealer;
use insecure_dealer_bits::InsecureBitDealer;

/// The name of these dealers on the command line.
pub const NAME: &str = "insecure_dealer";

/// All of them, as protocols take their material from them.
pub struct InsecureDealing;

impl Material for InsecureDealing {
    fn over<F: MacField>(&self) -> Preprocessing<F> {
        Preprocessing::Dealt(&InsecureDealing)
    }
}

impl<F: MacField> Dealer<F> for InsecureDealing {
    fn name(&self) -> &'static str {
        NAME
    }

    fn agree_on_seed(&self, net: &mut dyn Net) -> Result<[u8; 32]> {
        seed(net)
    }

    fn key(&self, seed: &[u8; 32], me: Party, parties: usize) -> MacKey<F> {
        insecure_dealer::mac_key(seed, me, parties)
    }

    fn source(&self, seed: &[u8; 32], label: &[u8], key: &MacKey<F>) -> Box<dyn Source<F>> {
        Box::new(InsecureDealer::new(seed, label, key.me(), key.parties()))
    }

    fn bits(&self, seed: &[u8; 32], label: &[u8], key: &MacKey<F>) -> Box<dyn tinyot::Source> {
        let alpha = |party| insecure_dealer::mac_key::<Gf2_64>(seed, party, 2).reveal_own_share();
        Box::new(InsecureBitDealer::with_keys(seed, label, key.me(), [Party(0), Party(1)].map(alpha)))
    }
}

/// The first party's word is the seed: there is nothing to protect.
pub(crate) fn seed(net: &mut dyn Net) -> Result<[u8; 32]> {
    let mut seed = [0; 32];
    random_bytes(&mut seed)?;
    let all = commitment::broadcast(&seed, net)?;
    seed.copy_from_slice(&all[0]);
    Ok(seed)
}
