//! `key wrap`: a wrappable key leaves the nodes under another key.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use polyclave_api::{BlockHeader, Wrapping};
use polyclave_client::Client;

use crate::client_option::ClientOption;
use crate::files::{Output, Readers};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate transport --cipher aes-256 --usage wrap,unwrap\n  \
    polyclave key generate payroll --wrappable\n  \
    polyclave key wrap transport payroll --out payroll.wrapped\n  \
    polyclave key generate kbpk --cipher aes-256 --modes tr31\n  \
    polyclave key wrap kbpk payroll --tr31 --out payroll.tr31\n\n\
    The key that wraps needs the usage wrap, the other one must be wrappable, and the client needs the right wrap for both names. \
    A key block of TR-31 says what the key is for, which follows from the key, and is of version D under a key of AES, and of \
    version B under one of Triple DES. Whoever has the wrapping key in the clear can open the result: under a key that somebody \
    holds, such as an imported one, this is export. The nodes' audit logs name both keys.")]
pub struct Arguments {
    /// The name of the key that wraps: one of AES, or with mode tr31 one of Triple DES
    wrapping: String,

    /// The name of the key that is wrapped
    key: String,

    /// Take AES key wrap with padding (RFC 5649), for keys of any length, in place of AES key wrap (RFC 3394)
    #[arg(long, conflicts_with = "tr31")]
    kwp: bool,

    /// Make a key block of TR-31 (ANSI X9.143)
    #[arg(long)]
    tr31: bool,

    #[command(flatten)]
    header: Header,

    /// Write the wrapped key to this file [default: print it; as hexadecimal, if it is no key block]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace FILE if it exists
    #[arg(long, requires = "out")]
    force: bool,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

/// What a key block says beside what follows from the key.
#[derive(clap::Args)]
struct Header {
    /// With --tr31: let the receiver do less with the key than it is for, such as D to decrypt only [default:
    /// all]
    #[arg(long, value_name = "LETTER", requires = "tr31")]
    mode_of_use: Option<String>,

    /// With --tr31: whether the receiver may export the key: E, N or S [default: E]
    #[arg(long, value_name = "LETTER", requires = "tr31")]
    exportability: Option<String>,

    /// With --tr31: the version number of the key, two letters or digits [default: 00]
    #[arg(long, value_name = "VV", requires = "tr31")]
    key_version: Option<String>,
}

/// The way of wrapping that `--kwp` chooses.
pub fn wrapping(kwp: bool) -> Wrapping {
    if kwp { Wrapping::Kwp } else { Wrapping::Kw }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (by, key) = (&arguments.wrapping, &arguments.key);
    let client = arguments.client.open()?;
    let output = match arguments.out.as_deref() {
        Some(path) => Some(Output::begin(Some(path), Readers::All, arguments.force)?),
        None => None,
    };
    let (how, wrapped) = match arguments.tr31 {
        true => (serde_json::json!("tr31"), client.wrap_block(by, key, arguments.header.of(&client, key)?)?),
        false => {
            let how = wrapping(arguments.kwp);
            (serde_json::json!(how), client.wrap(by, key, how)?)
        }
    };
    let text = match arguments.tr31 {
        true => String::from_utf8_lossy(&wrapped).into_owned(),
        false => hex::encode(&wrapped),
    };
    match output {
        Some(mut output) => {
            output.write_all(&wrapped)?;
            output.finish()?;
        }
        None if arguments.json => {
            let document = serde_json::json!({ "wrapping": by, "key": key, "how": how, "wrapped": text });
            say!("{}", serde_json::to_string_pretty(&document)?);
        }
        None => say!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

impl Header {
    /// The header for a key, as the options change it.
    fn of(&self, client: &Client, key: &str) -> Result<BlockHeader> {
        let mut header = BlockHeader::of(&client.info(key)?.properties).map_err(|why| anyhow!(why))?;
        let letter =
            |option: &str, given: &Option<String>, usual: u8| match given.as_deref().map(str::as_bytes) {
                None => Ok(usual),
                Some([letter]) => Ok(*letter),
                Some(_) => Err(anyhow!("{option} is one letter")),
            };
        header.mode_of_use = letter("--mode-of-use", &self.mode_of_use, header.mode_of_use)?;
        header.exportability = letter("--exportability", &self.exportability, header.exportability)?;
        if let Some(version) = &self.key_version {
            ensure!(version.len() == 2, "--key-version is two letters or digits");
            header.key_version.copy_from_slice(version.as_bytes());
        }
        Ok(header)
    }
}
