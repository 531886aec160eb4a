//! Runs that count operations. Demux makes masked tables from triples and bits, as with real material,
//! although a dealer provides those.

use parking_lot::Mutex;

use anyhow::{Context, Result};
use polyclave_field::{Gf2_40, Gf2_42, Gf2_64, Gf2_128, MacField};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::authenticated::{Authenticated, MacKey, OwnedBits, Source, Triples};
use polyclave_protocol::mesh::run_parties;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Adversary, ProtocolConfig, Session};
use polyclave_protocol::session::{HandshakeParameters, Stream, hello};
use polyclave_protocol::spdz::{LookupMethod, Packing, Spdz};
use polyclave_protocol::{Error, Party, PartySet, Result as Outcome, coins};
use polyclave_protocol_lab::dealers::insecure_dealer::{InsecureDealer, mac_key};

use super::Row;
use crate::reproduce::measure::{Taken, evaluations_under};

/// The paper's setting.
pub const PARTIES: usize = 2;

/// A source that provides triples and bits, but no finished tables.
struct Piecewise<S>(S);

impl<F: MacField, S: Source<F>> Source<F> for Piecewise<S> {
    fn triples(&mut self, count: usize, net: &mut dyn Net) -> Outcome<Triples<F>> {
        self.0.triples(count, net)
    }

    fn bits(&mut self, count: usize, net: &mut dyn Net) -> Outcome<Authenticated<F>> {
        self.0.bits(count, net)
    }

    fn bits_of(&mut self, owner: Party, count: usize, net: &mut dyn Net) -> Outcome<OwnedBits<F>> {
        self.0.bits_of(owner, count, net)
    }

    fn bit_triples(&mut self, count: usize, net: &mut dyn Net) -> Outcome<Triples<F>> {
        self.0.bit_triples(count, net)
    }

    fn zeros(&mut self, shares: &mut [F::Word]) {
        self.0.zeros(shares);
    }
}

/// A party's share of a MAC key and a source of material under it.
pub type Material<F> = (MacKey<F>, Box<dyn Source<F>>);

/// The source of a party's material.
pub type Make<F> = fn(&mut dyn Net) -> Outcome<Material<F>>;

/// Triples and bits from a dealer.
pub fn dealt<F: MacField>(net: &mut dyn Net) -> Outcome<Material<F>> {
    let seed = coins::toss(b"dealer", net)?;
    let (me, n) = (net.me(), net.parties());
    let dealer = InsecureDealer::<F>::new(&seed, b"reproduce", me, n);
    Ok((mac_key(&seed, me, n), Box::new(Piecewise(dealer))))
}

/// Authenticated sharing with any source of material, for one session.
pub struct OnMaterial<F: MacField> {
    pub way: LookupMethod,
    pub packing: Packing,
    pub make: Make<F>,
}

impl<F: MacField> ProtocolConfig for OnMaterial<F> {
    type Setup = Mutex<Option<Material<F>>>;
    type Session = Spdz<F>;

    fn name(&self) -> &'static str {
        self.way.name()
    }

    fn parties(&self) -> usize {
        PARTIES
    }

    fn adversary(&self) -> Adversary {
        Adversary::Abort
    }

    fn promise(&self) -> String {
        "all parties are in one process".into()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        parameters.with("protocol", self.name().as_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Outcome<Self::Setup> {
        Ok(Mutex::new(Some((self.make)(net)?)))
    }

    fn join(&self, setup: &Self::Setup, stream: Stream, _: PartySet) -> Outcome<Spdz<F>> {
        let material = setup.lock().take();
        let (key, source) = material.ok_or_else(|| Error::misuse("the material is for one session"))?;
        Ok(Spdz::with_source(self.way, self.packing, key, &stream, source))
    }
}

/// Encrypts a block and counts, over the paper's field.
pub fn evaluation(row: Row) -> Result<Taken> {
    match row.way {
        LookupMethod::Univariate => evaluate::<Gf2_42>(row, Gf2_42::BITS as usize, dealt),
        _ => evaluate::<Gf2_40>(row, Gf2_40::BITS as usize, dealt),
    }
}

/// The same with products of bits.
pub fn evaluation_by_bits(row: Row) -> Result<Taken> {
    evaluate::<Gf2_64>(row, 1, dealt)
}

/// Encrypts a block and counts.
pub fn evaluate<F: MacField>(row: Row, k: usize, make: Make<F>) -> Result<Taken> {
    let config = OnMaterial { way: row.way, packing: Packing::of::<F>(k)?, make };
    let cipher = polyclave_cipher::catalog::find(row.cipher).context("the catalog lacks a cipher")?;
    evaluations_under(&AnyProtocolConfig::new(config), &cipher.encrypt, 1, 1)
}

/// The triples that the unit vector of an index takes, counted while it is made.
pub fn products_of_demux(in_bits: u8, k: usize) -> Result<u64> {
    match k {
        40 => demux::<Gf2_40>(in_bits, k),
        128 => demux::<Gf2_128>(in_bits, k),
        _ => demux::<Gf2_64>(in_bits, k),
    }
}

fn demux<F: MacField>(in_bits: u8, k: usize) -> Result<u64> {
    let packing = Packing::of::<F>(k)?;
    let counted = run_parties(PARTIES, |net| {
        let stream = hello(&HandshakeParameters::new(PARTIES), net)?.stream();
        let (key, source) = dealt::<F>(net)?;
        let mut spdz = Spdz::with_source(LookupMethod::MaskedTables, packing, key, &stream, source);
        spdz.demux(in_bits, 1, net)?;
        Ok(spdz.tally().online.triples)
    });
    let counted = counted.into_iter().collect::<Outcome<Vec<_>>>()?;
    counted.into_iter().next().context("there are no parties")
}
