//! Options that several commands share, and the way from a protocol's name to its code.

use anyhow::{Result, bail, ensure};
use clap::Args;
use polyclave_cipher::{Cipher, catalog};
use polyclave_protocol::protocol::Scheme;
use polyclave_protocol::shamir::{Inversion, ShamirScheme, Structure, Tables};

/// Which protocol, and among whom.
#[derive(Args, Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct ProtocolOptions {
    /// cleartext or shamir
    #[arg(long, value_name = "P", default_value = "shamir")]
    pub protocol: String,

    /// Number of parties
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub parties: usize,

    /// Parties that together learn nothing [default: the most the protocol allows]
    #[arg(long, value_name = "T")]
    pub threshold: Option<usize>,

    /// How shamir inverts in GF(2^8): standard, shortest, shortest-least-rounds, least-rounds, masking,
    /// masked-exponentiation, viff-11, viff-9, views, carried-squares
    #[arg(long, value_name = "V", default_value = "views")]
    pub inversion: String,

    /// How shamir looks up other tables: masked (made ahead), polynomial (of tables as small as those of DES)
    #[arg(long, value_name = "W", default_value = "masked")]
    pub tables: String,
}

/// Work that runs the same under every protocol.
pub trait Task {
    /// What comes of it.
    type Output;

    /// Without any protocol, in the clear.
    fn cleartext(self) -> Result<Self::Output>;

    /// Under a protocol.
    fn under<S: Scheme>(self, scheme: &S) -> Result<Self::Output>;
}

impl ProtocolOptions {
    /// Runs a task under the protocol of these options.
    pub fn run<T: Task>(&self, task: T) -> Result<T::Output> {
        match self.protocol.to_ascii_lowercase().as_str() {
            "cleartext" => task.cleartext(),
            "shamir" => {
                let structure = match self.threshold {
                    Some(t) => Structure::new(self.parties, t)?,
                    None => Structure::with_largest_threshold(self.parties)?,
                };
                let inversion: Inversion = self.inversion.parse()?;
                let tables: Tables = self.tables.parse()?;
                task.under(&ShamirScheme { structure, inversion, tables })
            }
            other => bail!("there is no protocol '{other}' in this version; choose cleartext or shamir"),
        }
    }
}

impl ProtocolOptions {
    /// Refuses options under which parties could not start, before any is started.
    pub fn check_parties(&self) -> Result<()> {
        struct HasParties;
        impl Task for HasParties {
            type Output = ();
            fn cleartext(self) -> Result<()> {
                bail!("cleartext has no parties; choose another protocol")
            }
            fn under<S: Scheme>(self, _: &S) -> Result<()> {
                Ok(())
            }
        }
        self.run(HasParties)
    }
}

/// The cipher of a name, or an error that lists the names.
pub fn cipher(name: &str) -> Result<Cipher> {
    match catalog::find(name) {
        Some(cipher) => Ok(cipher),
        None => {
            let names: Vec<String> = catalog::all().into_iter().map(|c| c.name).collect();
            bail!("there is no cipher '{name}'; choose one of {}", names.join(", "))
        }
    }
}

/// Bytes from hexadecimal, with an error that says what was wrong.
pub fn hexadecimal(what: &str, text: &str) -> Result<Vec<u8>> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    if let Some((at, c)) = digits.chars().enumerate().find(|(_, c)| !c.is_ascii_hexdigit()) {
        bail!("{what} has '{c}' at position {}, which is no hex digit", at + 1);
    }
    let count = digits.len();
    ensure!(count.is_multiple_of(2), "{what} has {count} hex digits; two are needed for every byte");
    Ok(hex::decode(digits)?)
}
