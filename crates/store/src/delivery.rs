//! How workers of a party hand material to each other: one asks for a lot, another one makes it and delivers
//! it through the server of the store.
//!
//! ```text
//! worker that serves                     server                          worker that makes
//!   one-time key pair
//!   request with the public key   ->   sealed under the node's secret  ->   makes a lot, together with its peers
//!   opens it once, forgets the key <-  sealed to the one-time key      <-   and under the node's secret
//! ```
//!
//! # Why no lot comes back
//!
//! Material must not be used twice, also if the server loses changes or is put back to an old copy, and also
//! if every other node cheats. So nothing rests on what the server remembers. A lot is sealed to a key pair
//! that its receiver has drawn for this one request, and has in memory only. It opens one lot with the
//! private key, and wipes that key. An old copy of a lot is of no use to anybody: not to the process that
//! received it, not to the next start of the worker, and not to an attacker that finds it on a disk later,
//! together with the node's secret. From then on the lot is in memory, as if it had been made here
//! (`material/stock.rs`).
//!
//! # What the server can do
//!
//! The server can lose lots and requests, keep them back, or mix them up. The worker that asked then waits
//! until it gives up, and asks for another lot. It cannot make a lot, since it lacks the node's secret, under
//! which both messages are sealed together with the request's id.
//!
//! HPKE (RFC 9180) in base mode, with the suite of `transport/src/sealing.rs`.

use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::X25519HkdfSha256 as Kem;
use hpke::{Deserializable, Kem as _, OpModeR, OpModeS, Serializable};
use polyclave_protocol::session::random_bytes;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::engine::{Deliveries, decode_one_of, encode};
use super::{Result, Store, StoreError};

pub use super::engine::LotState;

const INFO: &[u8] = b"polyclave 2026 lot for one request of a worker";
/// What the two messages are sealed as.
const REQUESTS: &str = "requests for lots";
const LOTS: &str = "delivered lots";

type PublicKey = <Kem as hpke::Kem>::PublicKey;
type PrivateKey = <Kem as hpke::Kem>::PrivateKey;
type EncappedKey = <Kem as hpke::Kem>::EncappedKey;

/// A lot that is asked for. Workers of the same number at all nodes ask for the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedLot {
    /// Drawn by all nodes together.
    pub id: [u8; 16],
    /// The common secrets under which it is to be made.
    pub setup: [u8; 32],
    /// The number of the kind.
    pub kind: u8,
    /// How many items.
    pub count: u32,
}

/// A request, as the worker that makes the lot sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LotRequest {
    /// What is wanted.
    pub wanted: WantedLot,
    /// To what it is sealed.
    key: [u8; 32],
}

/// A lot as it was delivered.
pub struct DeliveredLot {
    /// The id of the run in which it was made: all nodes must have got their parts of the same run.
    pub run: [u8; 32],
    /// This party's parts of the items.
    pub items: Zeroizing<Vec<u8>>,
}

/// A request of this process. When it is dropped, the request ends, and nobody can open a lot that is still
/// delivered for it.
pub struct AskedLot<'s> {
    store: &'s Store,
    wanted: WantedLot,
    key: PrivateKey,
}

#[derive(Serialize, Deserialize)]
struct SealedLot {
    run: [u8; 32],
    encapsulated: [u8; 32],
    #[serde(with = "serde_bytes")]
    ciphertext: Vec<u8>,
}

impl Store {
    /// Asks the other workers for a lot.
    pub fn ask_for_lot(&self, wanted: WantedLot) -> Result<AskedLot<'_>> {
        let mut seed = Zeroizing::new([0; 32]);
        random_bytes(&mut *seed)?;
        let (key, public) = Kem::derive_keypair(&*seed);
        let request = LotRequest { wanted, key: public.to_bytes().into() };
        let sealed = self.engine.seal().seal(REQUESTS, &wanted.id, encode(&request, 256)?)?;
        self.deliveries()?.ask(&wanted.id, &sealed)?;
        Ok(AskedLot { store: self, wanted, key })
    }

    /// Undertakes to make the lot that was asked for first, if any of those that asked still runs and nobody
    /// makes it.
    pub fn undertake_next_lot(&self) -> Result<Option<LotRequest>> {
        let found = self.deliveries()?.undertake_next()?;
        found.map(|(id, sealed)| self.opened_request(&id, &sealed)).transpose()
    }

    /// Undertakes to make a lot with this id. `None` if it is not asked for here, or if another worker makes
    /// it.
    pub fn undertake_lot(&self, id: &[u8; 16]) -> Result<Option<LotRequest>> {
        let found = self.deliveries()?.undertake(id)?;
        found.map(|sealed| self.opened_request(id, &sealed)).transpose()
    }

    fn opened_request(&self, id: &[u8], sealed: &[u8]) -> Result<LotRequest> {
        let request: LotRequest = decode_one_of(REQUESTS, &self.engine.seal().open(REQUESTS, id, sealed)?)?;
        match request.wanted.id == id {
            true => Ok(request),
            false => Err(StoreError::corrupt("a request for a lot")),
        }
    }

    /// Delivers a lot that was made in a run. Returns whether it was still asked for.
    pub fn deliver_lot(&self, request: &LotRequest, run: [u8; 32], items: &[u8]) -> Result<bool> {
        let to = PublicKey::from_bytes(&request.key).map_err(unsealable)?;
        let associated = associated(&request.wanted, &run)?;
        let (encapsulated, ciphertext) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, Kem>(
            &OpModeS::Base,
            &to,
            INFO,
            items,
            &associated,
        )
        .map_err(unsealable)?;
        let room = ciphertext.len() + 256;
        let lot = SealedLot { run, encapsulated: encapsulated.to_bytes().into(), ciphertext };
        let id = &request.wanted.id;
        let sealed = self.engine.seal().seal(LOTS, id, encode(&lot, room)?)?;
        self.deliveries()?.deliver(id, &sealed)
    }

    /// Gives a request up that this worker has made or undertaken.
    pub fn give_up_lot(&self, id: &[u8; 16]) -> Result<()> {
        self.deliveries()?.remove(id)
    }

    fn deliveries(&self) -> Result<&dyn Deliveries> {
        self.engine.deliveries().ok_or_else(|| {
            StoreError::unusable(
                self.engine.place(),
                "is a file, and workers can hand material to each other only through a PostgreSQL server",
            )
        })
    }
}

impl AskedLot<'_> {
    /// How far it is.
    pub fn state(&self) -> Result<LotState> {
        self.store.deliveries()?.state(&self.wanted.id)
    }

    /// Takes the lot out, once it is delivered.
    pub fn receive(self) -> Result<DeliveredLot> {
        let id = &self.wanted.id;
        let lost = || StoreError::Failed("a lot that was delivered is gone".into());
        let sealed = self.store.deliveries()?.receive(id)?.ok_or_else(lost)?;
        let lot: SealedLot = decode_one_of(LOTS, &self.store.engine.seal().open(LOTS, id, &sealed)?)?;
        let encapsulated = EncappedKey::from_bytes(&lot.encapsulated).map_err(unsealable)?;
        let items = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, Kem>(
            &OpModeR::Base,
            &self.key,
            &encapsulated,
            INFO,
            &lot.ciphertext,
            &associated(&self.wanted, &lot.run)?,
        );
        Ok(DeliveredLot { run: lot.run, items: items.map(Zeroizing::new).map_err(unsealable)? })
    }
}

impl Drop for AskedLot<'_> {
    fn drop(&mut self) {
        // A worker that still makes the lot finds that nobody waits for it. If the server does not answer,
        // the next start of this worker removes it.
        let _ = self.store.give_up_lot(&self.wanted.id);
    }
}

/// What is authenticated with a lot.
fn associated(wanted: &WantedLot, run: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>> {
    encode(&(wanted, run), 256)
}

fn unsealable(_: hpke::HpkeError) -> StoreError {
    StoreError::corrupt("a lot that another worker has delivered, or the request for it,")
}

#[cfg(test)]
mod tests;
