//! `key derive`: makes a key from another key of the nodes.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_api::Derivation;

use super::made::{Properties, json, tell};
use crate::client_option::ClientOption;
use crate::options::hexadecimal;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate master --usage derive\n  \
    polyclave key derive master tenant-7 --counter --before 74656e616e742d3700 --after 00000080\n  \
    polyclave key derive master terminal --ecb-data 00112233445566778899aabbccddeeff\n  \
    polyclave key generate root --cipher hmac-sha-256 --usage derive\n  \
    polyclave key derive root disk-7 --counter --before 6469736b2d3700 --after 00000080\n  \
    polyclave key derive root backups --hkdf-info 6261636b757073\n\n\
    --counter is SP 800-108 in counter mode: the first code is that of --before, the counter (1) and --after. \
    A base of AES, DES or Triple DES computes codes by CMAC, one for hmac by HMAC. \
    --hkdf-info is the step Expand of HKDF (RFC 5869): the base is its PRK. \
    --ecb-data and --cbc-data encrypt the data. The first bytes of the result are the new key; it is never in one place. \
    The same base and data give the same key again. The base needs the usage derive, and the client the right derive for both names.")]
pub struct Arguments {
    /// The name of the key to derive from
    base: String,

    #[command(flatten)]
    properties: Properties,

    #[command(flatten)]
    how: How,

    #[command(flatten)]
    counter: Counter,

    /// With --cbc-data: the initial block, in hexadecimal
    #[arg(long, value_name = "HEX")]
    iv: Option<String>,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// The data of SP 800-108 in counter mode.
#[derive(clap::Args)]
pub struct Counter {
    /// What stands before the counter, in hexadecimal
    #[arg(long, value_name = "HEX")]
    before: Option<String>,

    /// What stands after the counter, in hexadecimal
    #[arg(long, value_name = "HEX")]
    after: Option<String>,

    /// The width of the counter: 8, 16, 24 or 32 [default: 8]
    #[arg(long, value_name = "BITS")]
    counter_bits: Option<u8>,
}

impl Counter {
    fn is_given(&self) -> bool {
        self.before.is_some() || self.after.is_some() || self.counter_bits.is_some()
    }

    /// The derivation from this data.
    pub fn derivation(&self) -> Result<Derivation> {
        let given = |option: &str, text: &Option<String>| {
            text.as_deref().map_or(Ok(Vec::new()), |text| hexadecimal(option, text))
        };
        Ok(Derivation::Counter {
            before: given("--before", &self.before)?,
            counter_bits: self.counter_bits.unwrap_or(8),
            after: given("--after", &self.after)?,
        })
    }
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct How {
    /// SP 800-108 in counter mode, with CMAC, or with HMAC if the base is a key for it
    #[arg(long)]
    counter: bool,

    /// Encrypt these blocks each by itself, in hexadecimal
    #[arg(long, value_name = "HEX")]
    ecb_data: Option<String>,

    /// Encrypt these blocks in CBC, in hexadecimal
    #[arg(long, value_name = "HEX", requires = "iv")]
    cbc_data: Option<String>,

    /// HKDF-Expand with this info, in hexadecimal; the base is a key for hmac
    #[arg(long, value_name = "HEX")]
    hkdf_info: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let how = how(arguments)?;
    let (new, _) = arguments.properties.check()?;
    let info = arguments.client.open()?.derive(&arguments.base, new, how)?;
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&json(&info))?),
        false => tell(&info),
    }
    Ok(ExitCode::SUCCESS)
}

/// HKDF-Expand with info in hexadecimal.
pub fn hkdf(info: &str) -> Result<Derivation> {
    Ok(Derivation::HkdfExpand { info: hexadecimal("--hkdf-info", info)? })
}

fn how(arguments: &Arguments) -> Result<Derivation> {
    // clap does not ask for an option that conflicts with one that is given.
    let Arguments { how, counter, iv, .. } = arguments;
    ensure!(
        how.counter || !counter.is_given(),
        "--before, --after and --counter-bits belong to --counter; leave them out"
    );
    ensure!(how.cbc_data.is_some() || iv.is_none(), "--iv belongs to --cbc-data; leave it out");
    if let Some(data) = &arguments.how.ecb_data {
        return Ok(Derivation::EcbData { data: hexadecimal("--ecb-data", data)? });
    }
    if let (Some(data), Some(iv)) = (&arguments.how.cbc_data, &arguments.iv) {
        let (iv, data) = (hexadecimal("--iv", iv)?, hexadecimal("--cbc-data", data)?);
        return Ok(Derivation::CbcData { iv, data });
    }
    if let Some(info) = &arguments.how.hkdf_info {
        return hkdf(info);
    }
    ensure!(arguments.how.counter, "say how: --counter, --hkdf-info, --ecb-data or --cbc-data");
    counter.derivation()
}
