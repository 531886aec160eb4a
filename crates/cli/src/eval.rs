//! `polyclave eval`: one cipher on given inputs, or a file of known answers, with all parties in this process.
//!
//! For known answers, for measuring what an evaluation takes, and for trying a protocol out. One process sees the key, so
//! it protects nothing.

mod evaluation;
mod known_answers;
pub mod parties;
mod report;
mod single;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_protocol::protocol::Scheme;

use crate::options::{ProtocolOptions, Task};

/// Options of `polyclave eval`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    protocol: ProtocolOptions,

    /// A cipher, or NAME-keyschedule for its round keys; with --vectors only the entries of this name
    #[arg(long, value_name = "C", required_unless_present = "vectors")]
    cipher: Option<String>,

    /// The key, which party 1 gives as its secret input
    #[arg(long, value_name = "HEX", required_unless_present = "vectors")]
    key: Option<String>,

    /// Blocks, which the last party gives as its secret input. Several blocks run side by side, each by itself as in ECB:
    /// right for known answers, not a mode for data
    #[arg(long, value_name = "HEX")]
    input: Option<String>,

    /// The tweak of a tweakable cipher
    #[arg(long, value_name = "HEX")]
    tweak: Option<String>,

    /// Run the cipher backwards
    #[arg(long)]
    decrypt: bool,

    /// Evaluate the key schedule alongside the cipher and count it too (default: the round keys are shared before)
    #[arg(long)]
    key_schedule: bool,

    /// Check every known answer of this file instead, in both directions. It holds a list of {cipher, key,
    /// plaintext, ciphertext} in hex; entries are numbered from 1
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["key", "input", "tweak", "decrypt"])]
    vectors: Option<PathBuf>,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs `polyclave eval`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let guarantee = arguments.protocol.run(Describe)?;
    if let Some(file) = &arguments.vectors {
        let filter = arguments.cipher.as_deref();
        let report = known_answers::check(file, filter, &arguments.protocol, arguments.key_schedule)?;
        report.print(&guarantee, arguments.json)?;
        return Ok(report.exit_code());
    }
    let (Some(name), Some(key)) = (&arguments.cipher, &arguments.key) else {
        bail!("--cipher and --key are needed without --vectors");
    };
    let question = single::Question {
        cipher: name,
        key,
        input: arguments.input.as_deref(),
        tweak: arguments.tweak.as_deref(),
        decrypt: arguments.decrypt,
        key_schedule: arguments.key_schedule,
    };
    let answer = question.ask(&arguments.protocol)?;
    answer.print(&guarantee, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// What a protocol promises about an output.
struct Guarantee {
    protocol: &'static str,
    /// Whom it protects against.
    adversary: String,
    /// Whether outputs were checked before they were revealed.
    verified: bool,
}

impl Guarantee {
    /// One line for people.
    fn line(&self) -> String {
        match self.verified {
            true => format!("verified: {} is {}", self.protocol, self.adversary),
            false => format!("unverified: {} is {}", self.protocol, self.adversary),
        }
    }
}

struct Describe;

impl Task for Describe {
    type Output = Guarantee;

    fn cleartext(self) -> Result<Guarantee> {
        let adversary = "no protocol and protects nothing".into();
        Ok(Guarantee { protocol: "cleartext", adversary, verified: false })
    }

    fn under<S: Scheme>(self, scheme: &S) -> Result<Guarantee> {
        Ok(Guarantee { protocol: scheme.name(), adversary: scheme.adversary(), verified: scheme.verifies() })
    }
}
