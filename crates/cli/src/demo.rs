//! `polyclave demo`: party processes make a key that nobody holds, encrypt and decrypt a file with it, and this command says
//! in plain words what happened.

mod party;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

pub use party::party;

use crate::job::Job;
use crate::launch::{Launch, run as launch};
use crate::options::ProtocolOptions;
use crate::say;

/// What a person can choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// The file to encrypt and decrypt; it is only read [default: a sample of 1 MiB]
    file: Option<PathBuf>,

    #[command(flatten)]
    protocol: ProtocolOptions,

    /// Seconds that a silent party is waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// What the parties do.
#[derive(Clone, Serialize, Deserialize)]
pub struct DemoJob {
    /// What party 1 encrypts; the other parties never open it.
    file: Option<PathBuf>,
}

/// What one party saw.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DemoReport {
    adversary: String,
    verified: bool,
    set_up_ms: f64,
    key_ms: f64,
    /// What party 2 keeps of the key; the others do not tell.
    own_key_share: Option<String>,
    known_answer: String,
    bytes: u64,
    encrypt_seconds: f64,
    decrypt_seconds: f64,
    /// Party 1 only: the first block of the file, and of the ciphertext.
    first_blocks: Option<(String, String)>,
    /// Party 1 only: whether every byte came back.
    came_back: Option<bool>,
    payload_sent: u64,
    wire_sent: u64,
    peak_memory_bytes: Option<u64>,
}

/// FIPS-197, appendix C.1.
const KNOWN_KEY: &str = "000102030405060708090a0b0c0d0e0f";
const KNOWN_PLAINTEXT: &str = "00112233445566778899aabbccddeeff";
const KNOWN_CIPHERTEXT: &str = "69c4e0d86a7b0430d8cdb78070b4c55a";

/// Bytes of the sample.
const SAMPLE_BYTES: u64 = 1 << 20;

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    arguments.protocol.check_parties()?;
    let size = match &arguments.file {
        Some(path) => {
            let named = || format!("cannot read {}", path.display());
            let metadata = std::fs::metadata(path).with_context(named)?;
            ensure!(metadata.is_file(), "{} is no regular file; give a file to encrypt", path.display());
            std::fs::File::open(path).with_context(named)?;
            metadata.len()
        }
        None => SAMPLE_BYTES,
    };
    if !arguments.json {
        story::opening(arguments, size);
    }
    let bar = progress(2 * size, arguments.json);
    let job = Job::Demo(DemoJob { file: arguments.file.clone() });
    let (protocol, timeout_s) = (&arguments.protocol, arguments.timeout);
    let reports: Vec<DemoReport> =
        launch(&Launch { protocol, network: "loopback", timeout_s, job }, |done| bar.set_position(done))?;
    bar.finish_and_clear();
    let holds = came_back(&reports) && reports.iter().all(|r| r.known_answer == KNOWN_CIPHERTEXT);
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&story::summary(&arguments.protocol, &reports, holds))?);
    } else {
        story::tell(&reports);
    }
    ensure!(holds, "the answers are wrong: this is a defect, please report it with the output above");
    Ok(ExitCode::SUCCESS)
}

fn came_back(reports: &[DemoReport]) -> bool {
    reports[0].came_back == Some(true)
}

fn progress(bytes: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} encrypted and decrypted, {eta} left");
    ProgressBar::new(bytes).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
