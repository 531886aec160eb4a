//! `polyclave-lab party`: runs one party of an evaluation. The other parties run elsewhere, each with its own
//! input.
//!
//! For example, one party holds the key and another the message. Every party learns the output. What a party
//! can learn or change beyond that is what the protocol promises; the command prints that promise before it
//! sends anything.

mod cipher;
mod file;
mod session;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use polyclave_protocol::protocol::ProtocolConfig;

use crate::circuits::CircuitChoice;
use crate::eval::{BitOrderOption, Guarantee};
use crate::hosts::PlaceArguments;
use crate::options::ProtocolOptions;
use session::Meeting;

/// Options of `polyclave-lab party`.
#[derive(clap::Args)]
#[command(mut_arg("hosts", |option| option.required(true)))]
#[command(after_help = "Example, of two parties (see `polyclave-lab hosts new` for pair/):\n  \
    a: polyclave-lab party --hosts pair/hosts.toml --me 1 --protocol garbled-half --cipher aes-128 --key HEX\n  \
    b: polyclave-lab party --hosts pair/hosts.toml --me 2 --protocol garbled-half --cipher aes-128 --input HEX\n\n\
    All parties start with the same settings, in any order, and compare them before anything else. What is on a command line can be \
    seen by other users of the machine; keys that matter belong to the program polyclave.")]
pub struct Arguments {
    #[command(flatten)]
    place: PlaceArguments,

    #[command(flatten)]
    protocol: ProtocolOptions,

    /// A cipher, or NAME-keyschedule for its round keys
    #[arg(long, value_name = "C", required_unless_present = "circuit")]
    cipher: Option<String>,

    /// How the cipher is evaluated: tables (by its own tables), boolean (as a Boolean circuit of XOR and
    /// AND); or a FILE in Bristol Fashion or the old Bristol format, instead of a cipher [default: tables;
    /// boolean under garbled protocols of bits]
    #[arg(long, value_name = "tables|boolean|FILE")]
    circuit: Option<CircuitChoice>,

    /// The key, at the party that holds it
    #[arg(long, value_name = "HEX")]
    key: Option<String>,

    /// Blocks, at the party that holds them, encrypted independently as in ECB. The others learn how many
    /// there are. With --circuit FILE: the number of an input of the file, from 1, and its value, as
    /// in --input 2=HEX, once for each input that this party holds; whole bytes, with zeros before the first
    /// bit
    #[arg(long, value_name = "HEX|N=HEX")]
    input: Vec<String>,

    /// Bit order of --circuit FILE: numbers (the first wire of a value is its last bit, as in Bristol
    /// Fashion; the default) or cells (it is the first, as in the old format)
    #[arg(long, value_name = "ORDER")]
    bit_order: Option<BitOrderOption>,

    /// The tweak of a tweakable cipher, at the party that holds it: one for all blocks, or one for each
    #[arg(long, value_name = "HEX")]
    tweak: Option<String>,

    /// Run the cipher in the inverse direction
    #[arg(long)]
    decrypt: bool,

    /// Evaluate the key schedule together with the cipher and count it too (default: the round keys are
    /// shared before)
    #[arg(long)]
    key_schedule: bool,

    /// Seconds to wait for a silent party, once all are connected
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let place = arguments.place.open()?;
    let protocol = place.protocol(&arguments.protocol)?;
    let config = protocol.config()?;
    ensure!(
        !config.needs_dealer(),
        "{} would take its material from an insecure dealer, which every party could be: the others could learn what this party \
         brings. Choose another --preprocessing or another protocol; to measure with dealt material there is `polyclave-lab bench`, \
         with --hosts too, and for a trial in one process `polyclave-lab eval`",
        config.name()
    );
    let guarantee = Guarantee::of_protocol(&config);
    let meeting = Meeting {
        place: &place,
        protocol: &protocol,
        config: &config,
        idle: Duration::from_secs(arguments.timeout),
        quiet: arguments.json,
    };
    let evaluated = match CircuitChoice::of(&arguments.circuit, &protocol) {
        CircuitChoice::Cipher(form) => {
            let question = cipher::Question::new(arguments, form)?;
            meeting.announce(&guarantee);
            question.ask(&meeting, &guarantee, arguments.json)
        }
        CircuitChoice::File(file) => {
            let question = file::Question::new(arguments, &file)?;
            meeting.announce(&guarantee);
            question.ask(&meeting, &guarantee, arguments.json)
        }
    };
    evaluated.map_err(|error| place.in_addresses(&error))?;
    Ok(ExitCode::SUCCESS)
}
