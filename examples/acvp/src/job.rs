//! What a test asks of the nodes. A test that is wrong in itself is an error; one that nodes do not do by
//! design has the reason why.

mod authenticated;
mod block;
mod keys;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail, ensure};
use polyclave_api::Wrapping;
use polyclave_client::Alphabet;

use crate::set::{Group, Prompt, Test};

/// One computation under one key, or a chain of them.
#[derive(Debug)]
pub struct Job {
    /// The cipher as nodes call it.
    pub cipher: &'static str,
    /// The key of the test.
    pub key: Vec<u8>,
    /// What is computed.
    pub task: Task,
}

/// What is computed. `encrypts` is false for a decryption.
#[derive(Debug)]
#[allow(missing_docs, reason = "they are what they are in each mode")]
pub enum Task {
    Ecb {
        encrypts: bool,
        data: Vec<u8>,
    },
    Cbc {
        encrypts: bool,
        initial: Vec<u8>,
        data: Vec<u8>,
    },
    /// Without a counter the nodes choose it.
    Ctr {
        encrypts: bool,
        counter: Option<Vec<u8>>,
        data: Vec<u8>,
    },
    /// Without a nonce the nodes choose it.
    GcmEncrypt {
        nonce: Option<Vec<u8>>,
        additional: Vec<u8>,
        data: Vec<u8>,
        tag_bytes: usize,
    },
    GcmDecrypt {
        nonce: Vec<u8>,
        additional: Vec<u8>,
        data: Vec<u8>,
        tag: Vec<u8>,
    },
    Cmac {
        message: Vec<u8>,
        bytes: usize,
    },
    CmacVerify {
        message: Vec<u8>,
        code: Vec<u8>,
    },
    /// A key of this cipher is wrapped.
    Wrap {
        how: Wrapping,
        cipher: &'static str,
        wrapped: Vec<u8>,
    },
    Ff1 {
        encrypts: bool,
        alphabet: Alphabet,
        tweak: Vec<u8>,
        value: String,
    },
    MonteCarlo {
        encrypts: bool,
        chain: Chain,
        data: Vec<u8>,
    },
}

/// How a Monte Carlo test chains blocks.
#[derive(Debug)]
pub enum Chain {
    /// Each block is the output of the one before.
    Ecb,
    /// From this initial block on.
    Cbc(Vec<u8>),
}

/// What becomes of a test.
#[derive(Debug)]
pub enum Plan {
    /// It is asked of the nodes.
    Ask(Job),
    /// The nodes do not do this: why.
    NotSupported(String),
}

/// A test with its group.
struct Asked<'p> {
    group: &'p Group,
    test: &'p Test,
}

/// What a test of a set asks.
pub fn plan(prompt: &Prompt, group: &Group, test: &Test) -> Result<Plan> {
    let asked = Asked { group, test };
    let job = match prompt.algorithm.as_str() {
        _ if prompt.revision != "1.0" => {
            bail!("this program knows revision 1.0 of {}, not {}", prompt.algorithm, prompt.revision)
        }
        "ACVP-AES-ECB" | "ACVP-TDES-ECB" => block::ecb(&asked, &prompt.algorithm),
        "ACVP-AES-CBC" | "ACVP-TDES-CBC" => block::cbc(&asked, &prompt.algorithm),
        "ACVP-AES-CTR" => block::ctr(&asked),
        "ACVP-AES-GCM" => authenticated::gcm(&asked),
        "CMAC-AES" | "CMAC-TDES" => authenticated::cmac(&asked, &prompt.algorithm),
        "ACVP-AES-KW" => keys::wrap(&asked, Wrapping::Kw),
        "ACVP-AES-KWP" => keys::wrap(&asked, Wrapping::Kwp),
        "ACVP-AES-FF1" => keys::ff1(&asked),
        other => bail!(
            "this program does not know the algorithm {other:?}; it knows ACVP-AES-ECB, -CBC, -CTR, -GCM, -KW, -KWP and -FF1, \
             ACVP-TDES-ECB and -CBC, CMAC-AES and CMAC-TDES"
        ),
    };
    job.with_context(|| format!("test {} of group {}", test.tc_id, group.tg_id))
}

fn not_supported(why: impl Into<String>) -> Result<Plan> {
    Ok(Plan::NotSupported(why.into()))
}

impl Asked<'_> {
    /// Whether it encrypts; else it decrypts.
    fn encrypts(&self) -> Result<bool> {
        match self.group.direction.as_deref() {
            Some("encrypt") => Ok(true),
            Some("decrypt") => Ok(false),
            other => bail!("the direction is encrypt or decrypt, not {}", other.unwrap_or("missing")),
        }
    }

    /// What is encrypted or decrypted, as it is written.
    fn input(&self, encrypts: bool) -> Result<&str> {
        let (name, text) = if encrypts { ("pt", &self.test.pt) } else { ("ct", &self.test.ct) };
        text.as_deref().with_context(|| format!("it has no {name}"))
    }

    /// What is encrypted or decrypted.
    fn data(&self, encrypts: bool) -> Result<Vec<u8>> {
        bytes("what is asked about", Some(self.input(encrypts)?))
    }

    /// A key of AES, and its cipher.
    fn aes_key(&self) -> Result<(&'static str, Vec<u8>)> {
        let key = bytes("key", self.test.key.as_deref())?;
        let said = self.group.key_len.unwrap_or(8 * key.len() as u64);
        ensure!(
            said == 8 * key.len() as u64,
            "its group has keys of {said} bits, and it has {} bytes",
            key.len()
        );
        let cipher = aes(key.len()).with_context(|| format!("AES has no keys of {} bytes", key.len()))?;
        Ok((cipher, key))
    }

    /// A key of AES or of Triple DES, as the algorithm says.
    fn key(&self, algorithm: &str) -> Result<(&'static str, Vec<u8>)> {
        if !algorithm.contains("TDES") {
            return self.aes_key();
        }
        let part = |name, text: &Option<String>| {
            let part = bytes(name, text.as_deref())?;
            ensure!(part.len() == 8, "{name} has {} bytes, and keys of DES have 8", part.len());
            Ok(part)
        };
        let (first, second) = (part("key1", &self.test.key1)?, part("key2", &self.test.key2)?);
        let third = part("key3", &self.test.key3)?;
        match self.group.keying_option {
            Some(1) => Ok(("3des-ede3", [first, second, third].concat())),
            Some(2) if first == third => Ok(("3des-ede2", [first, second].concat())),
            Some(2) => bail!("under keyingOption 2 key1 and key3 are the same, and these differ"),
            _ => bail!("keyingOption is 1 or 2"),
        }
    }
}

/// The cipher with keys of so many bytes.
fn aes(key_bytes: usize) -> Option<&'static str> {
    match key_bytes {
        16 => Some("aes-128"),
        24 => Some("aes-192"),
        32 => Some("aes-256"),
        _ => None,
    }
}

/// Bytes of the tests' hexadecimal. The error does not repeat them: they may be long.
fn bytes(name: &str, text: Option<&str>) -> Result<Vec<u8>> {
    let text = text.with_context(|| format!("it has no {name}"))?;
    hex::decode(text).with_context(|| format!("{name} is not hexadecimal"))
}

/// Bytes that have so many bits, if these are whole bytes.
fn whole_bytes(name: &str, bits: Option<u64>) -> Result<usize> {
    let bits = bits.with_context(|| format!("its group has no {name}"))?;
    ensure!(bits.is_multiple_of(8), "{name} is {bits} bits, and codes and tags have whole bytes");
    usize::try_from(bits / 8).with_context(|| format!("{name} is {bits} bits"))
}
