//! `polyclave-lab eval`: one cipher or circuit on given inputs, or a file of known answers, with all parties
//! in this process.
//!
//! It is for known answers, for measuring the cost of an evaluation, and for trying out a protocol. One
//! process sees the key, so it protects nothing.

pub mod bill;
pub mod evaluation;
pub mod file;
mod known_answers;
pub mod parties;
mod report;
pub mod single;
pub mod target;
pub mod values;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use polyclave_cipher::bristol::BitOrder;
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::protocol::ProtocolConfig;

use crate::circuits::CircuitChoice;
use crate::options::{Evaluator, ProtocolOptions};

/// Options of `polyclave-lab eval`.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    protocol: ProtocolOptions,

    /// A cipher, or NAME-keyschedule for its round keys; with --vectors only the entries of this name
    #[arg(long, value_name = "C", required_unless_present_any = ["vectors", "circuit"])]
    cipher: Option<String>,

    /// How the cipher is evaluated: tables (by its own tables), boolean (as a Boolean circuit of XOR and
    /// AND); or a FILE in Bristol Fashion or the old Bristol format, instead of a cipher [default: tables;
    /// boolean under garbled protocols of bits]
    #[arg(long, value_name = "tables|boolean|FILE")]
    circuit: Option<CircuitChoice>,

    /// The key, which party 1 gives as its secret input; "" for a permutation, which has none
    #[arg(long, value_name = "HEX", required_unless_present_any = ["vectors", "circuit"])]
    key: Option<String>,

    /// Blocks, which the last party gives as its secret input. Several blocks run in parallel, independently
    /// as in ECB: this is for known answers, and not a mode for data. With --circuit FILE: once for each
    /// input of the file, in order; the first is secret to party 1, all others to the last party; in whole
    /// bytes with zeros before the first bit, or without them, as 1 for a bit
    #[arg(long, value_name = "HEX")]
    input: Vec<String>,

    /// Bit order of --circuit FILE: numbers (the first wire of a value is its last bit, as in Bristol
    /// Fashion; the default) or cells (it is the first, as in the old format)
    #[arg(long, value_name = "ORDER")]
    bit_order: Option<BitOrderOption>,

    /// The tweak of a tweakable cipher, which the last party gives: one for all blocks, or one for each
    #[arg(long, value_name = "HEX")]
    tweak: Option<String>,

    /// Run the cipher in the inverse direction
    #[arg(long)]
    decrypt: bool,

    /// Evaluate the key schedule together with the cipher and count it too (default: the round keys are
    /// shared before)
    #[arg(long)]
    key_schedule: bool,

    /// Instead, check every known answer of this file, in both directions. The file holds a list of {cipher,
    /// key, plaintext, ciphertext} in hex, with tweak where the cipher takes one; entries are numbered from 1
    #[arg(long, value_name = "FILE.json", conflicts_with_all = ["key", "input", "tweak", "decrypt"])]
    vectors: Option<PathBuf>,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// [`BitOrder`] as an option of the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum BitOrderOption {
    Numbers,
    Cells,
}

impl From<BitOrderOption> for BitOrder {
    fn from(order: BitOrderOption) -> BitOrder {
        match order {
            BitOrderOption::Numbers => BitOrder::Numbers,
            BitOrderOption::Cells => BitOrder::Cells,
        }
    }
}

impl Arguments {
    /// Refuses options that only ciphers take.
    fn check_for_file(&self) -> Result<()> {
        let given = [
            ("--cipher", self.cipher.is_some()),
            ("--key", self.key.is_some()),
            ("--tweak", self.tweak.is_some()),
            ("--decrypt", self.decrypt),
            ("--key-schedule", self.key_schedule),
            ("--vectors", self.vectors.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                bail!("{option} is for ciphers, not for a circuit from a file; leave one of them out")
            }
            None => Ok(()),
        }
    }
}

/// Runs `polyclave-lab eval`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let guarantee = Guarantee::of(&arguments.protocol.evaluator()?);
    let form = match &CircuitChoice::of(&arguments.circuit, &arguments.protocol) {
        CircuitChoice::Cipher(form) => *form,
        CircuitChoice::File(file) => {
            arguments.check_for_file()?;
            let order = arguments.bit_order.unwrap_or(BitOrderOption::Numbers).into();
            let question = file::Question { file, order, inputs: &arguments.input };
            question.ask(&arguments.protocol)?.print(&guarantee, arguments.json)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    ensure!(arguments.bit_order.is_none(), "--bit-order is for --circuit FILE; leave it out");
    if let Some(file) = &arguments.vectors {
        let filter = arguments.cipher.as_deref();
        let report = known_answers::check(file, filter, form, &arguments.protocol, arguments.key_schedule)?;
        report.print(&guarantee, arguments.json)?;
        return Ok(report.exit_code());
    }
    let (Some(name), Some(key)) = (&arguments.cipher, &arguments.key) else {
        bail!("--cipher and --key are needed without --vectors and without a file as --circuit");
    };
    let question = single::Question {
        cipher: name,
        form,
        key,
        inputs: &arguments.input,
        tweak: arguments.tweak.as_deref(),
        decrypt: arguments.decrypt,
        key_schedule: arguments.key_schedule,
    };
    let answer = question.ask(&arguments.protocol)?;
    answer.print(&guarantee, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// What a protocol promises about an output.
pub struct Guarantee {
    /// Its name.
    pub protocol: &'static str,
    /// Whom it protects against.
    adversary: String,
    /// Whether outputs were checked before they were revealed.
    verified: bool,
}

impl Guarantee {
    fn of(evaluator: &Evaluator) -> Guarantee {
        match evaluator {
            Evaluator::Cleartext => {
                let adversary = "no protocol and protects nothing".into();
                Guarantee { protocol: "cleartext", adversary, verified: false }
            }
            Evaluator::Protocol(config) => Guarantee::of_protocol(config),
        }
    }

    /// The promise of a protocol.
    pub fn of_protocol(config: &AnyProtocolConfig) -> Guarantee {
        Guarantee { protocol: config.name(), adversary: config.promise(), verified: config.verifies() }
    }

    /// The promise in one line for people.
    pub fn line(&self) -> String {
        match self.verified {
            true => format!("verified: {} is {}", self.protocol, self.adversary),
            false => format!("unverified: {} is {}", self.protocol, self.adversary),
        }
    }
}
