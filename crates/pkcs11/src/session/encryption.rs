//! Encryption and decryption, of one part or of several.
//!
//! ECB, CBC and CTR send what they have with every part: each part is a request of its own. GCM is gathered
//! until the last part, because nothing is given before the tag was compared, and nodes wait for a program
//! between its calls for a short time only ([`crate::session::gcm`]). Short parts of ECB may go together with
//! those of other threads ([`crate::batches`]).
//!
//! CBC with padding tells a program whether the padding was good, as every module of PKCS#11 does. A caller
//! that can have chosen ciphertexts decrypted there can use that to decrypt others (Vaudenay, Eurocrypt
//! 2002). The padding itself is looked at in constant time.

use std::sync::Arc;

use cryptoki_sys::*;
use polyclave_api::{self as api, MAX_CHAINED};
use polyclave_client::{Client, Padding, pad, unpadded};
use polyclave_kernels::secret::ct_eq;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::attributes::Object;
use crate::batches::Kind;
use crate::gathered::Gathered;
use crate::mechanism::{Mechanism, Parameter, block_of, entry_for, family_of};
use crate::rv::{Doing, Result, Rv, because};
use crate::session::gcm::{Gcm, NONCE, Nonce, begun_message, choose, tag_bytes};
use crate::session::{Output, Session, known_length};
use crate::token::Token;

/// The most bytes of a message that is gathered.
pub(crate) const MAX_GATHERED: usize = 64 << 20;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

/// A mode and where it is.
enum Mode {
    Ecb,
    Cbc { chain: Vec<u8>, is_padded: bool },
    Ctr { counter: u128, blocks_left: u128, keystream: Zeroizing<Vec<u8>> },
    Gcm { nonce: Nonce, additional: Vec<u8>, tag_bytes: usize },
}

/// An encryption or decryption under way.
pub(crate) struct Encryption {
    token: Arc<Token>,
    client: Arc<Client>,
    key: Arc<Object>,
    direction: Direction,
    block: usize,
    mode: Mode,
    /// What came in earlier parts and was not sent yet.
    held: Gathered,
    is_multipart: bool,
    /// What the last part gave, if it did not fit: until the program asks again with the same data.
    ready: Option<([u8; 32], Zeroizing<Vec<u8>>)>,
}

impl Encryption {
    pub(crate) fn begin(
        session: &Session,
        mechanism: &Mechanism,
        key: CK_OBJECT_HANDLE,
        direction: Direction,
    ) -> Result<Encryption> {
        let (flag, usage) = match direction {
            Direction::Encrypt => (CKF_ENCRYPT, CKA_ENCRYPT),
            Direction::Decrypt => (CKF_DECRYPT, CKA_DECRYPT),
        };
        let key = usable(session, mechanism, key, flag, usage)?;
        let client = session.token.client()?;
        let block = block_of(&key.info.properties.cipher);
        let mode = match &mechanism.parameter {
            Parameter::None => Mode::Ecb,
            Parameter::Initial(initial) => {
                if direction == Direction::Encrypt && !key.takes_initial_blocks() {
                    let why =
                        "the nodes draw the initial blocks of this key: it was not made with --caller-nonces";
                    return Err(because(CKR_KEY_FUNCTION_NOT_PERMITTED, why));
                }
                let is_padded = matches!(mechanism.kind, CKM_AES_CBC_PAD | CKM_DES3_CBC_PAD);
                Mode::Cbc { chain: initial.clone(), is_padded }
            }
            Parameter::Counter { bits, block } => {
                let counter = u128::from_be_bytes(*block);
                // Nodes have no block with the highest number of all.
                let until_wrapped = if *bits < 128 { (1 << bits) - counter % (1 << bits) } else { u128::MAX };
                let left = until_wrapped.min(u128::MAX - counter);
                Mode::Ctr { counter, blocks_left: left, keystream: Zeroizing::default() }
            }
            Parameter::Gcm { iv, additional, tag_bits } => {
                let (additional, tag_bytes) = (additional.clone(), tag_bytes(*tag_bits)?);
                let chosen = choose(&session.token, &key, iv, direction)?;
                let nonce =
                    Nonce::of(chosen, (&session.token, &client), &key.info, (&additional, tag_bytes))?;
                Mode::Gcm { nonce, additional, tag_bytes }
            }
            _ => return Err(Rv(CKR_MECHANISM_INVALID)),
        };
        Ok(Encryption {
            token: session.token.clone(),
            client,
            key,
            direction,
            block,
            mode,
            held: Gathered::default(),
            is_multipart: false,
            ready: None,
        })
    }

    /// The nonce that the nodes have drawn, which a program learns before it gives the message.
    pub(crate) fn drawn_nonce(&self) -> Option<&[u8]> {
        match &self.mode {
            Mode::Gcm { nonce, .. } => nonce.drawn(),
            Mode::Ecb | Mode::Cbc { .. } | Mode::Ctr { .. } => None,
        }
    }

    /// The whole of the data at once.
    pub(crate) fn whole(&mut self, data: &[u8], room: Option<usize>) -> Result<Output> {
        if self.is_multipart {
            return Err(Rv(CKR_OPERATION_ACTIVE));
        }
        self.last(data, room)
    }

    /// A part that is not the last.
    pub(crate) fn part(&mut self, data: &[u8], room: Option<usize>) -> Result<Output> {
        if let Some(output) = known_length(self.bytes_of_part(data.len()), room) {
            return Ok(output);
        }
        self.is_multipart = true;
        if self.held.len() + data.len() > MAX_GATHERED {
            return Err(self.length_error());
        }
        match self.mode {
            Mode::Gcm { .. } => {
                self.held.extend(data);
                Ok(Output::Bytes(Zeroizing::default()))
            }
            Mode::Ctr { .. } => self.process(data).map(Output::Bytes),
            Mode::Ecb | Mode::Cbc { .. } => {
                let bytes = self.bytes_of_part(data.len());
                self.held.extend(data);
                let now = self.held.split_off_first(bytes);
                self.process(&now).map(Output::Bytes)
            }
        }
    }

    /// The end of several parts.
    pub(crate) fn end(&mut self, room: Option<usize>) -> Result<Output> {
        self.last(&[], room)
    }

    fn last(&mut self, data: &[u8], room: Option<usize>) -> Result<Output> {
        let of_data: [u8; 32] = Sha256::digest(data).into();
        if let Some((_, ready)) = self.ready.take_if(|(of, _)| ct_eq(of, &of_data)) {
            return Ok(self.fitting(of_data, ready, room));
        }
        let total = self.held.len() + data.len();
        let most = self.refuse_length(total)?;
        let is_exact =
            !matches!((&self.mode, self.direction), (Mode::Cbc { is_padded: true, .. }, Direction::Decrypt));
        // Padding takes a block at most away.
        let least = if is_exact { most } else { most - self.block };
        match room {
            None => return Ok(Output::Length(most)),
            Some(room) if room < least => return Ok(Output::TooSmall(most)),
            Some(_) => {}
        }
        let mut whole = Zeroizing::new(Vec::with_capacity(total + self.block));
        whole.extend_from_slice(&self.held);
        whole.extend_from_slice(data);
        if let (Mode::Cbc { is_padded: true, .. }, Direction::Encrypt) = (&self.mode, self.direction) {
            pad(&mut whole, self.block);
        }
        let mut made = self.process(&whole)?;
        if !is_exact {
            let last = made.len() - self.block;
            let kept = unpadded(&made[last..]).map_err(|_| Rv(CKR_ENCRYPTED_DATA_INVALID))?;
            made.truncate(last + kept);
        }
        Ok(self.fitting(of_data, made, room))
    }

    fn fitting(&mut self, of: [u8; 32], made: Zeroizing<Vec<u8>>, room: Option<usize>) -> Output {
        match known_length(made.len(), room) {
            Some(output) => {
                self.ready = Some((of, made));
                output
            }
            None => Output::Bytes(made),
        }
    }

    /// How many bytes a part gives.
    fn bytes_of_part(&self, part: usize) -> usize {
        let total = self.held.len().saturating_add(part);
        match (&self.mode, self.direction) {
            (Mode::Gcm { .. }, _) => 0,
            (Mode::Ctr { .. }, _) => part,
            // The last block may be padding.
            (Mode::Cbc { is_padded: true, .. }, Direction::Decrypt) => {
                total.saturating_sub(1) / self.block * self.block
            }
            (Mode::Ecb | Mode::Cbc { .. }, _) => total / self.block * self.block,
        }
    }

    /// How many bytes the last part gives at most, with all that is held. Refuses lengths that the mode does
    /// not have.
    fn refuse_length(&self, total: usize) -> Result<usize> {
        let is_whole = total.is_multiple_of(self.block);
        match (&self.mode, self.direction) {
            _ if total > MAX_GATHERED + 64 => Err(self.length_error()),
            // The nodes compute the blocks of such a message one after the other.
            (Mode::Gcm { nonce: Nonce::Given(nonce), tag_bytes, .. }, _)
                if nonce.len() != NONCE && total > MAX_CHAINED + tag_bytes =>
            {
                Err(self.length_error())
            }
            (Mode::Ctr { .. }, _) => Ok(total),
            (Mode::Gcm { nonce, tag_bytes, .. }, Direction::Encrypt) => {
                let nonce = if matches!(nonce, Nonce::Appended) { NONCE } else { 0 };
                Ok(total + tag_bytes + nonce)
            }
            (Mode::Gcm { nonce, tag_bytes, .. }, Direction::Decrypt) => {
                let nonce = if matches!(nonce, Nonce::Appended) { NONCE } else { 0 };
                total.checked_sub(tag_bytes + nonce).ok_or(self.length_error())
            }
            (Mode::Cbc { is_padded: true, .. }, Direction::Encrypt) => {
                Ok((total / self.block + 1) * self.block)
            }
            (Mode::Cbc { is_padded: true, .. }, Direction::Decrypt) if is_whole && total > 0 => Ok(total),
            (Mode::Ecb | Mode::Cbc { is_padded: false, .. }, _) if is_whole => Ok(total),
            _ => Err(self.length_error()),
        }
    }

    fn length_error(&self) -> Rv {
        match self.direction {
            Direction::Encrypt => Rv(CKR_DATA_LEN_RANGE),
            Direction::Decrypt => Rv(CKR_ENCRYPTED_DATA_LEN_RANGE),
        }
    }

    /// Asks the nodes.
    fn process(&mut self, data: &[u8]) -> Result<Zeroizing<Vec<u8>>> {
        let length_error = self.length_error();
        let (token, client, key, block) = (&self.token, &*self.client, &self.key.info, self.block);
        let encrypts = self.direction == Direction::Encrypt;
        match &mut self.mode {
            Mode::Ecb => {
                let known = client.key_with_info(key);
                let ecb = || known.ecb().padding(Padding::None);
                let login = Arc::as_ptr(&self.client).addr();
                let (kind, until) = (Kind { login, key: key.id, encrypts }, token.until());
                token.batches.run(&kind, data, until, |data| {
                    token.ask_until(until, client, Doing::Using, || match encrypts {
                        true => ecb().encrypt(data).map(Zeroizing::new),
                        false => ecb().decrypt(data),
                    })
                })
            }
            Mode::Cbc { chain, .. } => {
                let known = client.key_with_info(key);
                let cbc = || match key.properties.modes.contains(&api::Mode::Cbc) {
                    true => known.cbc().padding(Padding::None).initial(chain),
                    false => known.cbc_by_client().initial(chain),
                };
                let made = token.ask(client, Doing::Using, || match encrypts {
                    true => cbc().encrypt(data).map(Zeroizing::new),
                    false => cbc().decrypt(data),
                })?;
                let ciphertext = if encrypts { &made[..] } else { data };
                if let Some(last) = ciphertext.len().checked_sub(block) {
                    chain.copy_from_slice(&ciphertext[last..]);
                }
                Ok(made)
            }
            Mode::Ctr { counter, blocks_left, keystream } => {
                let fresh = data.len().saturating_sub(keystream.len());
                let blocks = fresh.div_ceil(block) as u128;
                if blocks > *blocks_left {
                    return Err(length_error);
                }
                if blocks > 0 {
                    // Whole blocks of keystream, so that the next part begins where this one ends.
                    let zeros = vec![0; blocks as usize * block];
                    let (at, known) = (counter.to_be_bytes(), client.key_with_info(key));
                    let more = token.ask(client, Doing::Using, || known.ctr().decrypt(&at, &zeros))?;
                    *counter = counter.wrapping_add(blocks);
                    *blocks_left -= blocks;
                    let mut joined = Zeroizing::new(Vec::with_capacity(keystream.len() + more.len()));
                    joined.extend_from_slice(keystream);
                    joined.extend_from_slice(&more);
                    *keystream = joined;
                }
                let made = data.iter().zip(keystream.iter()).map(|(d, k)| d ^ k).collect();
                *keystream = Zeroizing::new(keystream[data.len()..].to_vec());
                Ok(Zeroizing::new(made))
            }
            Mode::Gcm { nonce, additional, tag_bytes } => {
                let gcm = Gcm { token, client, key, additional, tag_bytes: *tag_bytes };
                match (nonce, encrypts) {
                    (Nonce::Begun(begun), _) => begun_message(begun, data).map(Zeroizing::new),
                    (Nonce::Given(nonce), true) => {
                        Ok(Zeroizing::new(gcm.encrypt(Some(&nonce[..]), data)?.split_off(nonce.len())))
                    }
                    (Nonce::Appended, true) => {
                        let mut made = gcm.encrypt(None, data)?;
                        made.rotate_left(NONCE);
                        Ok(Zeroizing::new(made))
                    }
                    (Nonce::Given(nonce), false) => gcm.decrypt(nonce, data, Doing::Using),
                    (Nonce::Appended, false) => {
                        let (sealed, nonce) = data.split_at(data.len() - NONCE);
                        gcm.decrypt(nonce, sealed, Doing::Using)
                    }
                }
            }
        }
    }
}

/// Refuses a use that a key is not for.
pub(crate) fn refuse_other_use(key: &Object, usage: CK_ATTRIBUTE_TYPE) -> Result<()> {
    if key.is_for(usage) {
        return Ok(());
    }
    let name = &key.info.properties.name;
    Err(because(
        CKR_KEY_FUNCTION_NOT_PERMITTED,
        format!("the key {name} is not for this (attribute {usage:#x})"),
    ))
}

/// The key of an operation, if it is for that.
pub(crate) fn usable(
    session: &Session,
    mechanism: &Mechanism,
    key: CK_OBJECT_HANDLE,
    flag: CK_FLAGS,
    usage: CK_ATTRIBUTE_TYPE,
) -> Result<Arc<Object>> {
    let entry = entry_for(mechanism.kind, flag)?;
    let key = session.key(key)?;
    if family_of(&key.info.properties.cipher) != Some(entry.family) {
        return Err(because(CKR_KEY_TYPE_INCONSISTENT, "the mechanism is for keys of another type"));
    }
    refuse_other_use(&key, usage)?;
    if !key.mechanisms().contains(&mechanism.kind) {
        return Err(because(
            CKR_MECHANISM_INVALID,
            "the key does not serve this mechanism (CKA_ALLOWED_MECHANISMS)",
        ));
    }
    Ok(key)
}
