//! Encrypt, Decrypt and MAC. The nodes compute them, and choose the initialization vectors.

use polyclave_api::{KeyVersion, Mode, Right, VersionState};
use polyclave_cipher::{hmac, keyed};
use polyclave_client::{Client, Padding};
use zeroize::Zeroizing;

use super::call::{Call, Done, key, nonsense, now};
use super::codes::{self, V1_4, Version, tag};
use super::fields::Fields;
use super::object::{Object, Stop};
use super::refused::{Reason, Refused, Result, invalid, missing};
use super::ttlv::{Value, put};

/// Bytes of an initialization vector of GCM that the nodes choose.
const GCM_IV: usize = 12;
/// Bytes of an initialization vector with which a message of GCM is decrypted.
const GCM_IVS: [usize; 2] = [12, 16];
/// Bytes of a tag.
const TAG: usize = 16;
/// The modes in which data are encrypted here, with their numbers.
const MODES: [(u32, Mode); 4] =
    [(codes::GCM, Mode::Gcm), (codes::CBC, Mode::Cbc), (codes::CTR, Mode::Ctr), (codes::ECB, Mode::Ecb)];
/// Bytes of a response's payload beside data and identifier.
const AROUND: usize = 192;

/// The mode with a number.
pub(super) fn mode(number: u32) -> Result<Mode> {
    let known = MODES.iter().find(|(known, _)| *known == number);
    known
        .map(|(_, mode)| *mode)
        .ok_or_else(|| Reason::InvalidField.because("data are encrypted in GCM, CBC, CTR or ECB here"))
}

/// The cryptographic parameters of data.
struct Parameters {
    algorithm: Option<u32>,
    mode: Option<Mode>,
    padding: Padding,
}

impl Parameters {
    fn read(payload: &mut Fields<'_>) -> Result<Parameters> {
        let mut of = payload.structure(tag::CRYPTOGRAPHIC_PARAMETERS)?.unwrap_or(Fields(Vec::new()));
        let algorithm = of.enumeration(tag::CRYPTOGRAPHIC_ALGORITHM)?;
        let mode = of.enumeration(tag::BLOCK_CIPHER_MODE)?.map(mode).transpose()?;
        let padding = match of.enumeration(tag::PADDING_METHOD)? {
            None | Some(codes::NO_PADDING) => Padding::None,
            Some(codes::PKCS5) => Padding::Pkcs7,
            Some(_) => return Err(invalid("padding method")),
        };
        if of.count(tag::TAG_LENGTH)?.is_some_and(|bytes| bytes != TAG) {
            return Err(Reason::InvalidField.because("a tag has 16 bytes"));
        }
        // It says who chooses the vector of an encryption, which the nodes do. A decryption names one.
        of.boolean(tag::RANDOM_IV)?;
        of.end()?;
        Ok(Parameters { algorithm, mode, padding })
    }

    /// The mode that is meant: that of the parameters, or the one of the key.
    fn mode_of(&self, object: &Object, version: Version) -> Result<Mode> {
        let (algorithm, _) = object.kind().unwrap_or_default();
        if self.algorithm.is_some_and(|wanted| wanted != algorithm) {
            return Err(other_algorithm());
        }
        let of_key =
            || MODES.iter().map(|(_, mode)| *mode).filter(|mode| object.info.properties.modes.contains(mode));
        let mode = match (self.mode, of_key().count()) {
            (Some(mode), _) if of_key().any(|one| one == mode) => mode,
            (None, 1) => of_key().next().unwrap_or(Mode::Gcm),
            (None, 2..) => {
                return Err(Reason::InvalidField.because("the key is for several modes: name one"));
            }
            _ => return Err(Reason::InvalidField.because("the key is not for this mode")),
        };
        if mode == Mode::Gcm && version < V1_4 {
            let why = "messages have a place for the tag of GCM from KMIP 1.4 on; take a newer version";
            return Err(Reason::FeatureNotSupported.because(why));
        }
        if self.padding == Padding::Pkcs7 && matches!(mode, Mode::Gcm | Mode::Ctr) {
            return Err(Reason::InvalidField.because(format!("messages of {mode} have no padding")));
        }
        Ok(mode)
    }
}

fn other_algorithm() -> Refused {
    Reason::InvalidField.because("the key is for another algorithm")
}

/// What is to be encrypted.
pub(super) struct Encrypt {
    key: KeyVersion,
    parameters: Parameters,
    plaintext: Zeroizing<Vec<u8>>,
    additional: Vec<u8>,
}

/// A ciphertext: its initialization vector and its tag, if its mode has them.
struct Encrypted {
    iv: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
}

impl Encrypt {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Encrypt> {
        let key = key(payload, placeholder)?;
        let parameters = Parameters::read(payload)?;
        if payload.take(tag::IV)?.is_some() {
            let why = "the nodes choose the initialization vector; send none, and take that of the response";
            return Err(Reason::InvalidField.because(why));
        }
        let plaintext = payload.bytes(tag::DATA)?.ok_or_else(|| missing("data"))?;
        let additional = payload.bytes(tag::ADDITIONAL_DATA)?.unwrap_or_default().to_vec();
        Ok(Encrypt { key, parameters, plaintext: Zeroizing::new(plaintext.to_vec()), additional })
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Encrypt, &self.key.name)?;
        let version = call.version;
        call.ask(move |client| {
            let object = Object::find(client, &self.key)?;
            object.check_active(now())?;
            let mode = self.parameters.mode_of(&object, version)?;
            let Encrypted { iv, ciphertext, tag } = self.encrypted(client, (&object, mode))?;
            let bytes = AROUND + iv.len() + ciphertext.len() + tag.len();
            Ok(Done::to(object.identifier(), bytes, |payload, identifier| {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
                put(payload, tag::DATA, Value::Bytes(&ciphertext));
                for (tag, bytes) in [(tag::IV, iv), (tag::AUTHENTICATION_TAG, tag)] {
                    if !bytes.is_empty() {
                        put(payload, tag, Value::Bytes(&bytes));
                    }
                }
            }))
        })
        .await
    }

    fn encrypted(
        &self,
        client: &Client,
        (object, mode): (&Object, Mode),
    ) -> std::result::Result<Encrypted, Stop> {
        let handle = client.key_with_info(&object.info);
        check_additional(&self.additional, mode)?;
        let data = &self.plaintext;
        let message = match mode {
            Mode::Gcm => handle.gcm().aad(&self.additional).encrypt(data)?,
            Mode::Ctr => handle.ctr().encrypt(data)?,
            Mode::Cbc => handle.cbc().padding(self.parameters.padding).encrypt(data)?,
            _ => handle.ecb().padding(self.parameters.padding).encrypt(data)?,
        };
        let (iv, tag) = match mode {
            Mode::Gcm => (GCM_IV, TAG),
            Mode::Ctr | Mode::Cbc => (block_bytes(object)?, 0),
            _ => (0, 0),
        };
        let short = || nonsense("their ciphertext is shorter than its initialization vector and its tag");
        let (iv, rest) = message.split_at_checked(iv).ok_or_else(short)?;
        let at = rest.len().checked_sub(tag).ok_or_else(short)?;
        let (ciphertext, tag) = rest.split_at(at);
        let [iv, ciphertext, tag] = [iv, ciphertext, tag].map(<[u8]>::to_vec);
        Ok(Encrypted { iv, ciphertext, tag })
    }
}

/// What is to be decrypted.
pub(super) struct Decrypt {
    key: KeyVersion,
    parameters: Parameters,
    iv: Vec<u8>,
    ciphertext: Vec<u8>,
    tag: Vec<u8>,
    additional: Vec<u8>,
}

impl Decrypt {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Decrypt> {
        let key = key(payload, placeholder)?;
        let parameters = Parameters::read(payload)?;
        let ciphertext = payload.bytes(tag::DATA)?.ok_or_else(|| missing("data"))?.to_vec();
        let mut bytes = |tag| -> Result<Vec<u8>> { Ok(payload.bytes(tag)?.unwrap_or_default().to_vec()) };
        let (iv, tag, additional) =
            (bytes(tag::IV)?, bytes(tag::AUTHENTICATION_TAG)?, bytes(tag::ADDITIONAL_DATA)?);
        Ok(Decrypt { key, parameters, iv, ciphertext, tag, additional })
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Decrypt, &self.key.name)?;
        let (version, saves) = (call.version, call.may(Right::Configure, &self.key.name).is_ok());
        call.ask(move |client| {
            let object = Object::find(client, &self.key)?;
            // The nodes allow it to the gateway, which may configure keys. So it is judged here for whom.
            if object.info.state == VersionState::Compromised && !saves {
                let why = "the key is compromised, and decrypts for clients with the right configure only";
                return Err(Reason::WrongState.because(why).into());
            }
            let mode = self.parameters.mode_of(&object, version)?;
            let plaintext = self.decrypted(client, (&object, mode))?;
            Ok(Done::to(object.identifier(), AROUND + plaintext.len(), |payload, identifier| {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
                put(payload, tag::DATA, Value::Bytes(&plaintext));
            }))
        })
        .await
    }

    fn decrypted(
        &self,
        client: &Client,
        (object, mode): (&Object, Mode),
    ) -> std::result::Result<Zeroizing<Vec<u8>>, Stop> {
        let handle = client.key_with_info(&object.info);
        check_additional(&self.additional, mode)?;
        let (ivs, tag): (&[usize], usize) = match mode {
            Mode::Gcm => (&GCM_IVS, TAG),
            Mode::Ctr | Mode::Cbc => (&[block_bytes(object)?], 0),
            _ => (&[0], 0),
        };
        if !ivs.contains(&self.iv.len()) || self.tag.len() != tag {
            let ivs = ivs.iter().map(usize::to_string).collect::<Vec<_>>().join(" or ");
            return Err(Reason::InvalidField
                .because(format!("with {mode} an initialization vector has {ivs} bytes, and a tag {tag}"))
                .into());
        }
        Ok(match mode {
            Mode::Gcm => {
                let message = [&self.iv[..], &self.ciphertext, &self.tag].concat();
                handle.gcm().nonce_bytes(self.iv.len()).aad(&self.additional).decrypt(&message)?
            }
            Mode::Ctr => handle.ctr().decrypt(&self.iv, &self.ciphertext)?,
            Mode::Cbc => {
                let cbc = handle.cbc().padding(self.parameters.padding);
                cbc.initial(&self.iv).decrypt(&self.ciphertext)?
            }
            _ => handle.ecb().padding(self.parameters.padding).decrypt(&self.ciphertext)?,
        })
    }
}

fn check_additional(additional: &[u8], mode: Mode) -> Result<()> {
    match mode.authenticates() || additional.is_empty() {
        true => Ok(()),
        false => Err(Reason::InvalidField.because(format!("{mode} takes no additional data"))),
    }
}

fn block_bytes(object: &Object) -> std::result::Result<usize, Stop> {
    let cipher = keyed::find(&object.info.properties.cipher);
    cipher
        .map(|cipher| cipher.block_bytes)
        .ok_or_else(|| nonsense("they know a cipher that this gateway does not"))
}

/// What a code is to be computed of.
pub(super) struct Mac {
    key: KeyVersion,
    data: Zeroizing<Vec<u8>>,
    /// The algorithm of its key; that of the key if absent.
    algorithm: Option<u32>,
}

impl Mac {
    pub(super) fn read(payload: &mut Fields<'_>, placeholder: Option<&str>) -> Result<Mac> {
        let key = key(payload, placeholder)?;
        let mut of = payload.structure(tag::CRYPTOGRAPHIC_PARAMETERS)?.unwrap_or(Fields(Vec::new()));
        let algorithm = of.enumeration(tag::CRYPTOGRAPHIC_ALGORITHM)?;
        let mode = of.enumeration(tag::BLOCK_CIPHER_MODE)?;
        of.end()?;
        let fits = match algorithm {
            Some(of_hmac) if codes::is_hmac(of_hmac) => mode.is_none(),
            Some(codes::AES | codes::TRIPLE_DES) => mode == Some(codes::CMAC),
            None => mode.is_none(),
            Some(_) => false,
        };
        if !fits {
            let why = "codes are those of HMAC-SHA256, -SHA384 and -SHA512, or of AES or 3DES with CMAC";
            return Err(Reason::InvalidField.because(why));
        }
        let data = payload.bytes(tag::DATA)?.ok_or_else(|| missing("data"))?;
        Ok(Mac { key, data: Zeroizing::new(data.to_vec()), algorithm })
    }

    pub(super) async fn done(self, call: &Call<'_>) -> Result<Done> {
        call.may(Right::Mac, self.key_name())?;
        call.ask(move |client| {
            let object = self.object(client)?;
            object.check_active(now())?;
            let code = self.code(client, &object)?;
            Ok(Done::to(object.identifier(), AROUND, |payload, identifier| {
                put(payload, tag::UNIQUE_IDENTIFIER, Value::Text(identifier));
                put(payload, tag::MAC_DATA, Value::Bytes(&code));
            }))
        })
        .await
    }

    pub(super) fn key_name(&self) -> &str {
        &self.key.name
    }

    pub(super) fn object(&self, client: &Client) -> std::result::Result<Object, Stop> {
        Object::find(client, &self.key)
    }

    pub(super) fn code(
        &self,
        client: &Client,
        object: &Object,
    ) -> std::result::Result<Zeroizing<Vec<u8>>, Stop> {
        let (algorithm, _) = object.kind().unwrap_or_default();
        if self.algorithm.is_some_and(|wanted| wanted != algorithm) {
            return Err(other_algorithm().into());
        }
        let handle = client.key_with_info(&object.info);
        Ok(match hmac::hash_of(&object.info.properties.cipher) {
            Some(hash) => handle.hmac(&[&self.data], hash.hash_bytes())?.pop().unwrap_or_default(),
            None => handle.cmac(&self.data)?,
        })
    }
}
