//! Options that say what somebody expects of a key: its check value, and parity bits.

use anyhow::Result;
use clap::ValueEnum;
use polyclave_api::{CheckKind, KeyCheck, Parity};
use polyclave_cipher::{Cipher, parity::has_parity};

use crate::options::hexadecimal;

/// The expected check value.
#[derive(clap::Args)]
pub struct CheckOptions {
    /// The check value that it must have, in hexadecimal; otherwise nothing is kept
    #[arg(long, value_name = "HEX")]
    kcv: Option<String>,

    /// How that is computed: cmac (of zeros: 5 bytes for AES, 3 for ciphers with smaller blocks), or zeros
    /// (their encryption, 3 bytes: the legacy form, not for keys that compute codes)
    #[arg(long, value_name = "WAY", requires = "kcv", default_value = "cmac")]
    kcv_by: Kind,
}

/// How a check value is computed.
#[derive(Clone, Copy, ValueEnum)]
pub enum Kind {
    Cmac,
    Zeros,
}

impl From<Kind> for CheckKind {
    fn from(kind: Kind) -> CheckKind {
        match kind {
            Kind::Cmac => CheckKind::Cmac,
            Kind::Zeros => CheckKind::Zeros,
        }
    }
}

impl CheckOptions {
    /// What is expected, if anything is.
    pub fn expected(&self) -> Result<Option<KeyCheck>> {
        let Some(digits) = &self.kcv else { return Ok(None) };
        Ok(Some(KeyCheck { kind: self.kcv_by.into(), value: hexadecimal("--kcv", digits)? }))
    }
}

/// What becomes of parity bits.
#[derive(clap::Args)]
pub struct ParityOption {
    /// The parity bits of a key of DES or Triple DES: they must be right (require), are made right (set), or
    /// stay as they are (ignore)
    #[arg(long, value_name = "WHAT", default_value = "ignore")]
    parity: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    Require,
    Set,
    Ignore,
}

impl ParityOption {
    /// As the nodes are told.
    pub fn parity(&self) -> Parity {
        match self.parity {
            What::Require => Parity::Require,
            What::Set => Parity::Set,
            What::Ignore => Parity::Ignore,
        }
    }

    /// Does the same to a key that is here.
    pub fn apply(&self, cipher: &Cipher, key: &mut [u8]) -> Result<()> {
        if matches!(self.parity, What::Ignore) {
            return Ok(());
        }
        anyhow::ensure!(
            has_parity(cipher),
            "keys of {} have no parity bits; leave out --parity",
            cipher.name
        );
        let mut wrong = 0;
        for byte in key {
            let flip = (byte.count_ones() as u8 & 1) ^ 1;
            wrong |= flip;
            *byte ^= flip & u8::from(matches!(self.parity, What::Set));
        }
        let required = matches!(self.parity, What::Require);
        anyhow::ensure!(
            !required || wrong == 0,
            "the key does not have odd parity; --parity set makes it so"
        );
        Ok(())
    }
}
