//! Templates: attributes as a program gives them, and the key that they describe.

use cryptoki_sys::*;
use polyclave_api::{Choice, Lifetime, MAX_SESSION, Mode, NewKey, Usage, most_blocks, why_apart};
use polyclave_config::check_name;
use zeroize::Zeroizing;

use crate::configuration::{GcmNonce, TokenMode, TokenSettings, VisibleTemplates};
use crate::hmac::{self, Noted};
use crate::mechanism::{Family, block_of, entry, family_of, key_bytes};
use crate::rv::{Result, Rv, because};
use crate::stored::Stored;

/// Attributes with their values. Values may be keys.
pub(crate) struct Template(pub(crate) Vec<(CK_ATTRIBUTE_TYPE, Zeroizing<Vec<u8>>)>);

/// How a key comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    Generated,
    Imported,
    Unwrapped,
    Derived,
}

/// A key that a template describes.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) new: NewKey,
    pub(crate) stored: Stored,
    /// Whether it is a session object.
    pub(crate) is_session: bool,
}

/// Attributes that a program may give when a key is made.
const KNOWN: [CK_ATTRIBUTE_TYPE; 24] = [
    CKA_CLASS,
    CKA_KEY_TYPE,
    CKA_TOKEN,
    CKA_PRIVATE,
    CKA_MODIFIABLE,
    CKA_COPYABLE,
    CKA_DESTROYABLE,
    CKA_LABEL,
    CKA_ID,
    CKA_START_DATE,
    CKA_END_DATE,
    CKA_SENSITIVE,
    CKA_EXTRACTABLE,
    CKA_ENCRYPT,
    CKA_DECRYPT,
    CKA_SIGN,
    CKA_VERIFY,
    CKA_WRAP,
    CKA_UNWRAP,
    CKA_DERIVE,
    CKA_VALUE,
    CKA_VALUE_LEN,
    CKA_ALLOWED_MECHANISMS,
    CKA_WRAP_WITH_TRUSTED,
];

/// Uses, and what nodes call them.
pub(crate) const USES: [(CK_ATTRIBUTE_TYPE, Usage); 7] = [
    (CKA_ENCRYPT, Usage::Encrypt),
    (CKA_DECRYPT, Usage::Decrypt),
    (CKA_SIGN, Usage::Mac),
    (CKA_VERIFY, Usage::Mac),
    (CKA_WRAP, Usage::Wrap),
    (CKA_UNWRAP, Usage::Unwrap),
    (CKA_DERIVE, Usage::Derive),
];

impl Template {
    pub(crate) fn get(&self, kind: CK_ATTRIBUTE_TYPE) -> Option<&[u8]> {
        self.0.iter().find(|(of, _)| *of == kind).map(|(_, value)| value.as_slice())
    }

    pub(crate) fn flag(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<bool>> {
        match self.get(kind) {
            None => Ok(None),
            Some([0]) => Ok(Some(false)),
            Some([1]) => Ok(Some(true)),
            Some(_) => Err(not_a_value(kind)),
        }
    }

    pub(crate) fn number(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Option<CK_ULONG>> {
        let read =
            |value: &[u8]| value.try_into().map(CK_ULONG::from_ne_bytes).map_err(|_| not_a_value(kind));
        self.get(kind).map(read).transpose()
    }

    /// Refuses attributes that contradict each other, and those that no key has.
    fn refuse_strange(&self) -> Result<()> {
        for (i, (kind, value)) in self.0.iter().enumerate() {
            if self.0[..i].iter().any(|(of, other)| of == kind && other != value) {
                return Err(because(
                    CKR_TEMPLATE_INCONSISTENT,
                    format!("attribute {kind:#x} has two values"),
                ));
            }
            if !KNOWN.contains(kind) {
                return Err(because(
                    CKR_ATTRIBUTE_TYPE_INVALID,
                    format!("no key has the attribute {kind:#x}"),
                ));
            }
        }
        Ok(())
    }

    /// The key that it describes. `fixed`: the cipher and the type of key, if the mechanism decides them.
    pub(crate) fn describe(
        &self,
        token: &TokenSettings,
        making: Making,
        fixed: Option<(&str, CK_KEY_TYPE)>,
    ) -> Result<Described> {
        self.refuse_strange()?;
        if self.number(CKA_CLASS)?.unwrap_or(CKO_SECRET_KEY) != CKO_SECRET_KEY {
            return Err(because(CKR_TEMPLATE_INCONSISTENT, "the nodes hold secret keys only"));
        }
        self.refuse_visible(token)?;
        for (kind, must) in [(CKA_COPYABLE, true), (CKA_DESTROYABLE, true), (CKA_WRAP_WITH_TRUSTED, false)] {
            if self.flag(kind)?.unwrap_or(must) != must {
                return Err(because(
                    CKR_TEMPLATE_INCONSISTENT,
                    format!("attribute {kind:#x} must be {must}"),
                ));
            }
        }
        let cipher = match fixed {
            Some((cipher, _)) => cipher.to_owned(),
            None => self.cipher(making)?,
        };
        let mechanisms = self.mechanisms(&cipher)?;
        let (usage, off) = self.usage(&cipher, &mechanisms)?;
        let kind = fixed.map(|(_, kind)| kind).or(self.number(CKA_KEY_TYPE)?);
        let of_value = self.get(CKA_VALUE).filter(|_| making == Making::Imported).map(<[u8]>::len);
        let bytes = of_value.unwrap_or(key_bytes(&cipher)) as u32;
        let is_hmac = matches!(family_of(&cipher), Some(Family::Hmac(_)));
        let of_hmac = is_hmac.then_some(Noted { bytes, is_generic: kind == Some(CKK_GENERIC_SECRET) });
        let modes = modes_for(token, &cipher, &usage, mechanisms.as_deref());
        let stored = Stored {
            label: self.get(CKA_LABEL).unwrap_or_default().to_vec(),
            id: self.get(CKA_ID).unwrap_or_default().to_vec(),
            start_date: self.date(CKA_START_DATE)?,
            end_date: self.date(CKA_END_DATE)?,
            off,
            mechanisms,
            is_fixed: !self.flag(CKA_MODIFIABLE)?.unwrap_or(true),
            of_hmac,
            ..Stored::default()
        };
        let attributes = stored.to_bytes().ok_or_else(|| {
            because(CKR_ATTRIBUTE_VALUE_INVALID, "the attributes of the key are longer than nodes keep")
        })?;
        let of_program = modes.contains(&Mode::Gcm) && token.gcm_nonce == GcmNonce::Caller;
        // Nodes refuse that for a key that does not encrypt. Decryption takes the nonce from the program in
        // any case.
        let caller_nonces = usage.contains(&Usage::Encrypt)
            && (of_program || modes.iter().any(|mode| mode.choice() == Choice::InitialBlock));
        let is_session = !self.flag(CKA_TOKEN)?.unwrap_or(false);
        let new = NewKey {
            name: String::new(),
            budget_blocks: most_blocks(block_of(&cipher), &modes),
            cipher,
            modes,
            usage,
            wrappable: self.flag(CKA_EXTRACTABLE)?.unwrap_or(false),
            attributes,
            caller_nonces,
            label: readable(&stored.label),
            expires: None,
            lifetime: lifetime(is_session),
        };
        Ok(Described { new, stored, is_session })
    }

    /// Keys of the nodes can never be read, and nobody sees them without a login: a program that asks for
    /// another key is told so.
    pub(crate) fn refuse_visible(&self, token: &TokenSettings) -> Result<()> {
        for (kind, what) in [
            (CKA_SENSITIVE, "can never be read (CKA_SENSITIVE)"),
            (CKA_PRIVATE, "is seen only after a login (CKA_PRIVATE)"),
        ] {
            if self.flag(kind)? == Some(false) && token.visible_templates == VisibleTemplates::Refuse {
                let why = format!(
                    "a key of the nodes {what}; with visible_templates = \"make-sensitive\" in pkcs11.toml it is made so in silence"
                );
                return Err(because(CKR_TEMPLATE_INCONSISTENT, why));
            }
        }
        Ok(())
    }

    /// Refuses a value of a key that comes from another key.
    pub(crate) fn refuse_value(&self) -> Result<()> {
        match self.get(CKA_VALUE) {
            None => Ok(()),
            Some(_) => Err(because(
                CKR_TEMPLATE_INCONSISTENT,
                "CKA_VALUE is not given: the key comes from another key",
            )),
        }
    }

    /// A date, or nothing.
    pub(crate) fn date(&self, kind: CK_ATTRIBUTE_TYPE) -> Result<Vec<u8>> {
        match self.get(kind).unwrap_or_default() {
            value if value.is_empty() || (value.len() == 8 && value.iter().all(u8::is_ascii_digit)) => {
                Ok(value.to_vec())
            }
            _ => Err(not_a_value(kind)),
        }
    }

    /// The cipher by key type and length.
    fn cipher(&self, making: Making) -> Result<String> {
        let of_value = self.get(CKA_VALUE).filter(|_| making == Making::Imported).map(<[u8]>::len);
        let given = self.number(CKA_VALUE_LEN)?;
        let bytes = of_value.map(|len| len as CK_ULONG).or(given);
        if of_value.is_some() && given.is_some() && given != bytes {
            return Err(because(CKR_TEMPLATE_INCONSISTENT, "the key has another length than CKA_VALUE_LEN"));
        }
        let incomplete = || because(CKR_TEMPLATE_INCOMPLETE, "key type or length is missing");
        match self.number(CKA_KEY_TYPE)?.ok_or_else(incomplete)? {
            CKK_AES => match bytes.ok_or_else(incomplete)? {
                16 => Ok("aes-128".into()),
                24 => Ok("aes-192".into()),
                32 => Ok("aes-256".into()),
                other => Err(because(CKR_KEY_SIZE_RANGE, format!("no AES key has {other} bytes"))),
            },
            CKK_DES2 if bytes.unwrap_or(16) == 16 => Ok("3des-ede2".into()),
            CKK_DES3 if bytes.unwrap_or(24) == 24 => Ok("3des-ede3".into()),
            CKK_DES2 | CKK_DES3 => Err(because(
                CKR_KEY_SIZE_RANGE,
                "keys of Triple DES have 16 bytes (CKK_DES2) or 24 (CKK_DES3)",
            )),
            kind if hmac::is_type(kind) => {
                let mechanisms = self.mechanism_list()?.unwrap_or_default();
                let length = (making == Making::Imported, bytes);
                hmac::cipher(kind, &mechanisms, length).map(str::to_owned)
            }
            other => {
                Err(because(CKR_TEMPLATE_INCONSISTENT, format!("the nodes have no keys of type {other:#x}")))
            }
        }
    }

    /// `CKA_ALLOWED_MECHANISMS`.
    pub(crate) fn mechanism_list(&self) -> Result<Option<Vec<CK_MECHANISM_TYPE>>> {
        const BYTES: usize = size_of::<CK_ULONG>();
        let Some(value) = self.get(CKA_ALLOWED_MECHANISMS) else { return Ok(None) };
        let (numbers, rest) = value.as_chunks::<BYTES>();
        if !rest.is_empty() {
            return Err(not_a_value(CKA_ALLOWED_MECHANISMS));
        }
        Ok(Some(numbers.iter().map(|number| CK_ULONG::from_ne_bytes(*number)).collect()))
    }

    fn mechanisms(&self, cipher: &str) -> Result<Option<Vec<CK_MECHANISM_TYPE>>> {
        let Some(list) = self.mechanism_list()? else { return Ok(None) };
        for kind in &list {
            if entry(*kind).map(|entry| Some(entry.family)).unwrap_or(None) != family_of(cipher) {
                return Err(because(
                    CKR_TEMPLATE_INCONSISTENT,
                    format!("no key of {cipher} serves mechanism {kind:#x}"),
                ));
            }
        }
        Ok(Some(list))
    }

    /// What the key is for, and which attributes are off although nodes do not distinguish them. If the
    /// template says nothing of uses, it encrypts and decrypts. If it lists no mechanism, the key has no use,
    /// as the standard allows. It can only be exported, wrapped, if it is extractable. No key of Triple DES
    /// wraps, and a key for HMAC only signs and verifies: programs that ask for every use at once get those.
    fn usage(&self, cipher: &str, mechanisms: &Option<Vec<u64>>) -> Result<(Vec<Usage>, Vec<u64>)> {
        let (by_default, never, only): ([_; 2], &[_], _) = match family_of(cipher) {
            Some(Family::Hmac(_)) => (
                [CKA_SIGN, CKA_VERIFY],
                &[CKA_ENCRYPT, CKA_DECRYPT, CKA_WRAP, CKA_UNWRAP, CKA_DERIVE],
                "a key for HMAC only signs and verifies",
            ),
            Some(Family::Des) => (
                [CKA_ENCRYPT, CKA_DECRYPT],
                &[CKA_WRAP, CKA_UNWRAP],
                "the nodes wrap and unwrap under keys of AES only",
            ),
            _ => ([CKA_ENCRYPT, CKA_DECRYPT], &[], ""),
        };
        let mut on = Vec::new();
        for (kind, _) in USES {
            if self.flag(kind)? == Some(true) {
                on.push(kind);
            }
        }
        if on.is_empty() {
            let does = |flag| {
                let list = mechanisms.as_deref().unwrap_or_default();
                list.iter().any(|kind| entry(*kind).is_ok_and(|entry| entry.flags & flag != 0))
            };
            let may = |kind| self.flag(kind).map(|flag| flag != Some(false));
            for (kind, flag) in [
                (CKA_ENCRYPT, CKF_ENCRYPT),
                (CKA_DECRYPT, CKF_DECRYPT),
                (CKA_SIGN, CKF_SIGN),
                (CKA_VERIFY, CKF_VERIFY),
                (CKA_WRAP, CKF_WRAP),
                (CKA_UNWRAP, CKF_UNWRAP),
                (CKA_DERIVE, CKF_DERIVE),
            ] {
                let is_default = match mechanisms {
                    None => by_default.contains(&kind),
                    Some(_) => does(flag),
                };
                if is_default && may(kind)? {
                    on.push(kind);
                }
            }
        }
        let asks_for_some = !on.is_empty();
        on.retain(|kind| !never.contains(kind));
        if asks_for_some && on.is_empty() {
            return Err(because(CKR_TEMPLATE_INCONSISTENT, only));
        }
        let mut usage: Vec<Usage> =
            USES.iter().filter(|(kind, _)| on.contains(kind)).map(|(_, usage)| *usage).collect();
        usage.sort();
        usage.dedup();
        let off = USES.iter().filter(|(kind, of)| usage.contains(of) && !on.contains(kind));
        let off = off.map(|(kind, _)| *kind).collect();
        Ok((usage, off))
    }
}

/// What nodes make the key for.
fn modes_for(token: &TokenSettings, cipher: &str, usage: &[Usage], mechanisms: Option<&[u64]>) -> Vec<Mode> {
    let mut modes = Vec::new();
    let is_for_data = usage.contains(&Usage::Encrypt) || usage.contains(&Usage::Decrypt);
    match mechanisms {
        Some(list) => modes.extend(list.iter().filter_map(|kind| entry(*kind).ok()?.modes.first().copied())),
        None => {
            let of = |mode: &TokenMode| match mode {
                TokenMode::Gcm => Mode::Gcm,
                TokenMode::Ctr => Mode::Ctr,
                TokenMode::Cbc => Mode::Cbc,
                TokenMode::Ecb => Mode::Ecb,
            };
            if is_for_data {
                modes.extend(token.modes.iter().map(of));
            }
            if usage.contains(&Usage::Mac) {
                let is_hmac = matches!(family_of(cipher), Some(Family::Hmac(_)));
                modes.push(if is_hmac { Mode::Hmac } else { Mode::Cmac });
            }
        }
    }
    if family_of(cipher) == Some(Family::Des) {
        modes.retain(|mode| matches!(mode, Mode::Ecb | Mode::Cbc | Mode::Cmac));
        if is_for_data && modes.iter().all(|mode| *mode == Mode::Cmac) {
            modes.push(Mode::Ecb);
        }
    }
    retain_used(&mut modes, usage);
    // Nodes refuse CBC beside some modes. A key for single blocks serves it, too.
    if why_apart(&modes).is_some() {
        modes.iter_mut().filter(|mode| **mode == Mode::Cbc).for_each(|mode| *mode = Mode::Ecb);
    }
    modes.sort();
    modes.dedup();
    modes
}

/// Keeps the modes that a key with these uses needs: nodes refuse others.
pub(crate) fn retain_used(modes: &mut Vec<Mode>, usage: &[Usage]) {
    modes.retain(|mode| mode.usages().iter().any(|of_mode| usage.contains(of_mode)));
}

/// The name of a key: after the label, if nodes take that and no key has it.
pub(crate) fn name_for(prefix: &str, label: &[u8], is_taken: impl Fn(&str) -> bool) -> Result<String> {
    if let Ok(label) = str::from_utf8(label) {
        let name = format!("{prefix}{label}");
        if !label.is_empty() && check_name("key", &name).is_ok() && !is_taken(&name) {
            return Ok(name);
        }
    }
    let mut drawn = [0; 8];
    getrandom::fill(&mut drawn).map_err(|_| Rv(CKR_FUNCTION_FAILED))?;
    Ok(format!("{prefix}p11-{}", hex::encode(drawn)))
}

/// How long nodes keep a key: one of a session for a day at most.
pub(crate) fn lifetime(is_session: bool) -> Lifetime {
    if is_session { Lifetime::Session { seconds: MAX_SESSION } } else { Lifetime::Stored }
}

/// A label as nodes show it to people, if they take it.
pub(crate) fn readable(label: &[u8]) -> String {
    let fits = |text: &&str| text.len() <= polyclave_api::MAX_LABEL && !text.contains(char::is_control);
    str::from_utf8(label).ok().filter(fits).unwrap_or_default().to_owned()
}

fn not_a_value(kind: CK_ATTRIBUTE_TYPE) -> Rv {
    because(CKR_ATTRIBUTE_VALUE_INVALID, format!("attribute {kind:#x} cannot have the value that was given"))
}
