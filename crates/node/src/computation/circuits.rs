//! The circuits of one cipher, compiled so that each delivers the views that the others need.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use polyclave_api::{Reason, Refusal};

use crate::Result;
use crate::computation::block_circuits::BlockCircuits;
use crate::computation::hmac_circuits::{Hashing, HmacCircuits};
use crate::computation::key_circuits::{KeyCircuits, key_port};
use crate::computation::payment_circuits::PaymentCircuits;
use polyclave_cipher::{Cells, Cipher, Compiled, CompiledPort, Direction, Matrix, Port, compile_with_views};
use polyclave_cipher::{compile, hmac, keyed, modes};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::service::ServiceSession;

/// All circuits that nodes evaluate for keys of one cipher, or for HMAC with one hash.
pub(crate) struct Circuits {
    pub(crate) cipher: Cipher,
    own: Own,
    /// A key, with the views that it needs to be expanded and to be wrapped.
    pub(crate) key: CompiledPort,
    /// What is kept of an expanded key.
    pub(crate) round_keys: CompiledPort,
    /// Circuits between keys of this cipher and others.
    pub(crate) keys: KeyCircuits,
    /// Circuits of single blocks, for AES.
    pub(crate) blocks_of_aes: BlockCircuits,
}

/// What is computed under a key.
pub(crate) enum Own {
    /// Blocks are encrypted.
    Cipher(Box<OfCipher>),
    /// Messages are hashed.
    Hmac(Hashing),
}

/// The circuits of a block cipher alone.
pub(crate) struct OfCipher {
    /// `key` to `round_keys`, with the views of them that all the other circuits need.
    pub(crate) key_schedule: Compiled,
    /// `block`, `tweak` if the cipher takes one, and `round_keys` to `block`.
    pub(crate) encrypt: Compiled,
    /// The same for decryption.
    pub(crate) decrypt: Option<Compiled>,
    /// `None` for a cipher that takes a tweak, since no mode that chains blocks provides one.
    chained: Option<Chained>,
    /// `zero` and `round_keys` to `check_value`.
    pub(crate) check_value: Compiled,
}

/// Circuits of the modes that chain blocks: CBC, CMAC, and the hash key of GCM.
pub(crate) struct Chained {
    /// `message`, `chain` and `round_keys` to `block`, with the views that the `chain` input needs.
    pub(crate) chain: Compiled,
    /// `message`, `chain`, `subkey` and `round_keys` to `block`.
    pub(crate) last_of_cmac: Compiled,
    /// `zero` and `round_keys` to `hash_key`, `k1` and `k2`.
    pub(crate) subkeys: Compiled,
}

impl Chained {
    fn new(cipher: &Cipher, maps: &AnyServiceSession) -> Chained {
        let last_of_cmac = compile(&modes::last_of_cmac(cipher), maps);
        let chain = modes::chain(cipher);
        let wants_of_chain = |port: &CompiledPort| port.views();
        let chained = union(
            [&compile(&chain, maps).inputs()[1], &last_of_cmac.inputs()[1]].map(wants_of_chain).into_iter(),
        );
        let chain = compile_with_views(&chain, maps, |_| chained.clone());
        let subkey = last_of_cmac.inputs()[2].views();
        let subkeys = compile_with_views(&modes::subkeys(cipher), maps, |_| subkey.clone());
        Chained { chain, last_of_cmac, subkeys }
    }

    fn all(&self) -> [&Compiled; 3] {
        [&self.chain, &self.last_of_cmac, &self.subkeys]
    }
}

impl OfCipher {
    fn new(cipher: &Cipher, maps: &AnyServiceSession) -> OfCipher {
        let encrypt = compile(&cipher.encrypt, maps);
        let decrypt = cipher.circuit(Direction::Decrypt).map(|circuit| compile(&circuit, maps));
        let chained = (cipher.tweak_bytes == 0).then(|| Chained::new(cipher, maps));
        let check_value = compile(&modes::check_value(cipher), maps);
        let users = [&encrypt, &check_value].into_iter().chain(&decrypt);
        let users = users.chain(chained.iter().flat_map(Chained::all));
        let round_keys = union(users.map(|c| c.inputs().last().map(CompiledPort::views).unwrap_or_default()));
        let key_schedule = compile_with_views(&cipher.key_schedule, maps, |_| round_keys.clone());
        OfCipher { key_schedule, encrypt, decrypt, chained, check_value }
    }
}

impl Circuits {
    fn new(cipher: Cipher, hmac: &Arc<HmacCircuits>, maps: &AnyServiceSession) -> Circuits {
        let (own, key, round_keys) = match hmac::hash_of(&cipher.name) {
            Some(hash) => {
                let [key, round_keys] =
                    [hmac::padded(hash), hmac::round_keys(hash)].map(|circuit| compile(&circuit, maps));
                (
                    Own::Hmac(Hashing::new(hash, hmac)),
                    key.inputs()[0].clone(),
                    round_keys.outputs()[0].clone(),
                )
            }
            None => {
                let own = OfCipher::new(&cipher, maps);
                let schedule = &own.key_schedule;
                let (key, round_keys) = (schedule.inputs()[0].clone(), schedule.outputs()[0].clone());
                (Own::Cipher(own.into()), key, round_keys)
            }
        };
        let key = key_port(&cipher, &key, maps);
        let (keys, blocks_of_aes) = (KeyCircuits::default(), BlockCircuits::default());
        Circuits { cipher, own, key, round_keys, keys, blocks_of_aes }
    }

    pub(crate) fn own(&self) -> &Own {
        &self.own
    }

    /// The circuits of a block cipher.
    pub(crate) fn of_cipher(&self) -> Result<&OfCipher> {
        match &self.own {
            Own::Cipher(own) => Ok(own),
            Own::Hmac(_) => Err(Error::misuse(format!("a key for {} encrypts nothing", self.cipher.name))),
        }
    }

    /// What computes codes of HMAC.
    pub(crate) fn hashing(&self) -> Result<&Hashing> {
        match &self.own {
            Own::Hmac(hashing) => Ok(hashing),
            Own::Cipher(_) => {
                Err(Error::misuse(format!("a key of {} computes no codes of hmac", self.cipher.name)))
            }
        }
    }

    /// A block of zeros in the cells of this cipher.
    pub(crate) fn zero(&self) -> Result<Cells> {
        let block = self.port(0)?;
        Ok(Cells::zero(block.cells.len(), block.bits, 1))
    }

    /// Whole blocks in the cells of this cipher.
    pub(crate) fn blocks(&self, bytes: &[u8]) -> Result<Cells> {
        cells(self.port(0)?, bytes)
    }

    /// Tweaks in the cells of this cipher, one a block; `None` if it takes none.
    pub(crate) fn tweaks(&self, bytes: &[u8]) -> Result<Option<Cells>> {
        match self.cipher.tweak_bytes {
            0 => Ok(None),
            _ => cells(self.port(1)?, bytes).map(Some),
        }
    }

    /// An input of the encryption.
    fn port(&self, number: usize) -> Result<&Port> {
        let inputs = self.cipher.encrypt.inputs();
        inputs.get(number).ok_or_else(|| Error::misuse(format!("{} encrypts no blocks", self.cipher.name)))
    }

    /// Whether a mode could chain blocks.
    pub(crate) fn chains_blocks(&self) -> bool {
        matches!(&self.own, Own::Cipher(own) if own.chained.is_some())
    }

    /// The circuits of modes that chain blocks.
    pub(crate) fn chained(&self) -> Result<&Chained> {
        let chained = self.of_cipher()?.chained.as_ref();
        chained.ok_or_else(|| Error::misuse(format!("no mode chains blocks of {}", self.cipher.name)))
    }
}

fn cells(port: &Port, bytes: &[u8]) -> Result<Cells> {
    Cells::from_blocks(port.cells.len(), port.bits, bytes).map_err(|e| Error::misuse(e.to_string()))
}

/// The union of some views, the identity first.
pub(super) fn union(views: impl Iterator<Item = Vec<Matrix>>) -> Vec<Matrix> {
    let mut all: Vec<Matrix> = views.flatten().collect();
    all.sort_by_key(|m| (!m.is_identity(), *m));
    all.dedup();
    all
}

/// Ciphers and their circuits by name. They are made on first use.
#[derive(Default)]
pub(crate) struct Library {
    ciphers: Mutex<HashMap<String, Cipher>>,
    circuits: Mutex<HashMap<String, Arc<Circuits>>>,
    pub(crate) payments: PaymentCircuits,
    hmac: Arc<HmacCircuits>,
}

/// A cipher in the form in which nodes evaluate it.
pub(crate) fn form(cipher: Cipher, maps: &AnyServiceSession) -> Cipher {
    match hmac::is_hmac(&cipher) {
        true => cipher,
        false => maps.form(cipher),
    }
}

impl Library {
    /// A cipher of the catalog.
    pub(crate) fn cipher(&self, name: &str) -> Result<Cipher, Refusal> {
        let mut ciphers = self.ciphers.lock();
        if let Some(cipher) = ciphers.get(name) {
            return Ok(cipher.clone());
        }
        let unknown = || {
            Refusal::new(
                Reason::Key,
                format!("there is no cipher '{name}'; choose one of {}", keyed::names().join(", ")),
            )
        };
        let cipher = keyed::find(name).filter(|c| c.name == name).ok_or_else(unknown)?;
        ciphers.insert(name.to_owned(), cipher.clone());
        Ok(cipher)
    }

    /// The circuits of a cipher of the catalog; `None` if there is no such cipher.
    pub(crate) fn of(&self, cipher: &str, maps: &AnyServiceSession) -> Option<Arc<Circuits>> {
        if let Some(circuits) = self.circuits.lock().get(cipher) {
            return Some(circuits.clone());
        }
        // No mode works without a key.
        let cipher_found = keyed::find(cipher).filter(|cipher| cipher.key_bytes > 0)?;
        // Not under the lock: requests with keys of other ciphers do not wait. What is made twice is alike.
        let circuits = Arc::new(Circuits::new(form(cipher_found, maps), &self.hmac, maps));
        Some(self.circuits.lock().entry(cipher.to_owned()).or_insert(circuits).clone())
    }
}
