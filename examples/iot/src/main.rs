//! Encrypted readings of devices, and their statistics by two servers that see neither readings nor keys: the
//! use case of Pohle, Abidin and Preneel ("Fast evaluation of S-boxes in MPC", NDSS 2022, poster). The README
//! says what it shows, and what not.
//!
//! | file | what |
//! |---|---|
//! | `encryption.rs` | what devices and servers agree on |
//! | `devices.rs`, `skinny.rs` | the devices, in plain code; their keys and shares of them |
//! | `circuits.rs`, `statistics.rs` | what is evaluated |
//! | `server.rs` | one server, under any protocol |
//! | `protocols.rs` | which protocol |
//! | `processes.rs` | both servers as processes, over TLS |

mod circuits;
mod devices;
mod encryption;
mod processes;
mod protocols;
mod server;
mod skinny;
mod statistics;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{Parser, Subcommand, value_parser};
use polyclave_example_processes::Ended;
use serde::Serialize;

use encryption::Encryption;
use processes::{Outcome, Start};
use protocols::PROTOCOLS;
use server::Job;
use statistics::Statistics;

/// The most readings in all: their statistics are one circuit.
const MAX_READINGS: usize = 4096;

/// Simulated devices encrypt readings; two servers, which hold shares of the keys, decrypt them by secure
/// multi-party computation and learn the mean, the maximum and how many are above a threshold, and nothing
/// else.
#[derive(Parser)]
#[command(name = "polyclave-iot", args_conflicts_with_subcommands = true)]
struct Options {
    /// What the two servers run. Under tinytable-linear64 and spdz-lt one of them may cheat; tinytable and
    /// the garbled ones are passive: both are trusted to run them unmodified
    #[arg(long, value_name = "P", default_value = PROTOCOLS[0], value_parser = PROTOCOLS)]
    protocol: String,

    /// What the devices encrypt with, in counter mode
    #[arg(long, value_name = "C", default_value = "skinny-64-128")]
    cipher: Encryption,

    /// Number of devices, 1 to 256
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u16).range(1..=256))]
    devices: u16,

    /// Readings that each device sends, 1 to 256; at most 4096 of all devices together
    #[arg(long, value_name = "M", default_value_t = 8, value_parser = value_parser!(u16).range(1..=256))]
    readings: u16,

    /// Readings larger than this, from 0 to 65535, are counted
    #[arg(long, value_name = "T", default_value_t = 2200)]
    threshold: u16,

    /// Where the servers' material comes from [default: they make it themselves]. insecure_dealer, which each
    /// server could be, shows how quick the rest is
    #[arg(long, value_name = "M", value_parser = ["insecure_dealer"])]
    preprocessing: Option<String>,

    /// One line of JSON instead of text
    #[arg(long)]
    json: bool,

    #[command(subcommand)]
    command: Option<Hidden>,
}

#[derive(Subcommand)]
enum Hidden {
    /// The process of a server; not started by people.
    #[command(name = processes::SERVER, hide = true)]
    Server,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.command.is_some() {
        processes::server();
        return ExitCode::SUCCESS;
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let (devices, readings) = (usize::from(options.devices), usize::from(options.readings));
    ensure!(
        devices * readings <= MAX_READINGS,
        "{devices} devices with {readings} readings each send {} in all; at most {MAX_READINGS} fit the circuit",
        devices * readings
    );

    // Ahead: every device gets a key, each server its share of it.
    let (mut fleet, key_shares) = devices::provision(devices)?;

    // On the devices.
    let (mut messages, mut all) = (Vec::new(), Vec::new());
    for device in &mut fleet {
        let measured = devices::readings(readings)?;
        messages.push(device.send(options.cipher, &measured));
        all.extend(measured);
    }

    // On the servers.
    let job = Job { encryption: options.cipher, readings, threshold: options.threshold, messages };
    let insecure_dealer = options.preprocessing.is_some();
    let start = Start { protocol: options.protocol.clone(), insecure_dealer, job };
    let ended = processes::run(&start, key_shares)?;

    // Whoever simulates the devices knows what ought to come of it.
    let expected = Statistics::of(&all, options.threshold);
    for (server, ended) in ended.iter().enumerate() {
        let learned = ended.outcome.report.statistics;
        ensure!(
            learned == expected,
            "server {} learned {learned:?}, not {expected:?}: this is a defect, please report it",
            server + 1
        );
    }
    let [first, _] = ended;
    if options.json { print_json(options, first, all.len()) } else { print_text(options, &first, all.len()) }
}

fn print_json(options: &Options, ended: Ended<Outcome>, readings: usize) -> Result<()> {
    #[derive(Serialize)]
    struct Printed<'a> {
        protocol: &'a str,
        preprocessing: &'a str,
        cipher: &'a str,
        devices: u16,
        readings: usize,
        threshold: u16,
        mean: f64,
        #[serde(flatten)]
        outcome: Outcome,
        wire_bytes: u64,
    }
    let printed = Printed {
        protocol: &options.protocol,
        preprocessing: options.preprocessing.as_deref().unwrap_or("own"),
        cipher: options.cipher.name(),
        devices: options.devices,
        readings,
        threshold: options.threshold,
        mean: mean(&ended.outcome, readings),
        outcome: ended.outcome,
        wire_bytes: ended.wire_bytes,
    };
    println!("{}", serde_json::to_string(&printed)?);
    Ok(())
}

fn print_text(options: &Options, ended: &Ended<Outcome>, readings: usize) -> Result<()> {
    let Ended { outcome, wire_bytes } = ended;
    let Options { protocol, cipher, devices, threshold, .. } = options;
    let Statistics { sum, maximum, above } = outcome.report.statistics;
    let blocks = usize::from(*devices) * cipher.blocks(options.readings.into());
    println!(
        "{devices} devices sent {readings} readings in {blocks} blocks, encrypted with {} in counter mode, each under a key of \
         its own.\nTwo servers, processes of their own joined by TLS 1.3, hold a share of each key. Session {protocol}:\n{}.\n",
        cipher.name(),
        outcome.adversary
    );
    println!("mean             {:.2}  (sum {sum}, divided in public)", mean(outcome, readings));
    println!("maximum          {maximum}");
    println!("above {threshold:<10} {above}\n");
    println!(
        "The readings give the same in plain code. Opened: these numbers, {} bits, to both servers, and nothing else.\n",
        outcome.report.opened_bits
    );
    println!("{:<12} {:>9} {:>7} {:>12}", "", "ms", "rounds", "bytes sent");
    for step in &outcome.report.steps {
        let rounds = step.rounds.map_or("-".into(), |rounds| rounds.to_string());
        println!("{:<12} {:>9.1} {rounds:>7} {:>12}", step.name, 1000.0 * step.seconds, step.payload_bytes);
    }
    println!("\nWith TLS the first server sent {wire_bytes} bytes.");
    Ok(())
}

fn mean(outcome: &Outcome, readings: usize) -> f64 {
    outcome.report.statistics.sum as f64 / readings as f64
}
