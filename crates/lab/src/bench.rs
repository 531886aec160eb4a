//! `polyclave-lab bench`: a cipher measured with the parties as processes of their own over TLS.

pub mod child;
mod cleartext;
mod elsewhere;
mod job;
mod launch;
mod measure;
mod party;
mod plot;
mod plot_active;
mod rates;
mod summary;
mod sweep;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use serde::{Deserialize, Serialize};

use measure::Measurement;
pub use measure::Spread;
pub use rates::{EXPANSION, Rates, Setting};
pub use sweep::{Point, Sweep};

use crate::circuits::{CircuitChoice, Form};
use crate::hosts::PlaceArguments;
use crate::options::ProtocolOptions;
use crate::say;
use crate::workload::check_shape;
use launch::{Launch, run as launch};
use summary::Summary;

/// Options and arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    protocol: ProtocolOptions,

    #[command(flatten)]
    place: PlaceArguments,

    /// The cipher
    #[arg(long, value_name = "C", default_value = "aes-128")]
    cipher: String,

    /// How the cipher is evaluated: tables (by its own tables) or boolean (as a Boolean circuit of XOR and
    /// AND) [default: tables; boolean under garbled protocols of bits]
    #[arg(long, value_name = "tables|boolean")]
    circuit: Option<CircuitChoice>,

    /// Blocks to encrypt in each repeat
    #[arg(long, value_name = "B", default_value_t = 10_000)]
    blocks: usize,

    /// Threads in each party
    #[arg(long, value_name = "T", default_value_t = 1)]
    threads: usize,

    /// The network to simulate on the loopback interface: loopback, lan (0.2 ms, 1 Gbit), wan (50 ms, 100
    /// Mbit), or RTT,RATE such as 10ms,100Mbit
    #[arg(long, value_name = "NET", default_value = "loopback", conflicts_with = "hosts")]
    network: String,

    /// Run the key schedule with every batch [default: the key is stored expanded]
    #[arg(long)]
    key_schedule: bool,

    /// Measure decryption
    #[arg(long)]
    decrypt: bool,

    /// How often to measure; minimum, median and maximum are printed
    #[arg(long, value_name = "R", default_value_t = 5)]
    repeats: usize,

    /// Instead: measure blocks/s against batch size for every inversion, as a plot, with the data beside it
    /// in FILE.json
    #[arg(long, value_name = "FILE.svg", conflicts_with = "hosts")]
    plot: Option<PathBuf>,

    /// Instead: measure blocks/s against batch size for every protocol against active adversaries, material
    /// and use together, as a plot, with the data beside it in FILE.json
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["hosts", "plot"])]
    plot_active: Option<PathBuf>,

    /// Seconds to wait for a silent party
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// What the parties measure.
#[derive(Clone, Serialize, Deserialize)]
pub struct BenchJob {
    cipher: String,
    form: Form,
    decrypt: bool,
    key_schedule: bool,
    threads: usize,
    /// Numbers of blocks, measured one after another.
    sizes: Vec<usize>,
    repeats: usize,
    /// How many single blocks to measure the latency of; 0 for none.
    latency_samples: usize,
}

/// The most threads; a larger number is a typing error.
const MAX_THREADS: usize = 256;
/// The most blocks, 16 GiB of them; a larger number is a typing error.
const MAX_BLOCKS: usize = 1 << 30;
const LATENCY_SAMPLES: usize = 101;

impl Arguments {
    /// The form of the cipher's circuit.
    fn form(&self) -> Result<Form> {
        match CircuitChoice::of(&self.circuit, &self.protocol) {
            CircuitChoice::Cipher(form) => Ok(form),
            CircuitChoice::File(_) => {
                bail!(
                    "bench takes --circuit tables or boolean; a circuit from a file runs under `polyclave-lab eval`"
                )
            }
        }
    }

    /// Measures several sizes with one start of the parties.
    fn measure(
        &self,
        protocol: &ProtocolOptions,
        sizes: &[usize],
        latency_samples: usize,
    ) -> Result<Vec<Summary>> {
        let job = self.job(sizes, latency_samples)?;
        let bar = self.bar(&job);
        let launched = Launch { protocol, network: &self.network, timeout_s: self.timeout, job };
        let summaries = measure(&launched, |done| bar.set_position(done))?;
        bar.finish_and_clear();
        Ok(summaries)
    }

    fn job(&self, sizes: &[usize], latency_samples: usize) -> Result<BenchJob> {
        Ok(BenchJob {
            cipher: self.cipher.clone(),
            form: self.form()?,
            decrypt: self.decrypt,
            key_schedule: self.key_schedule,
            threads: self.threads,
            sizes: sizes.to_vec(),
            repeats: self.repeats,
            latency_samples,
        })
    }

    fn bar(&self, job: &BenchJob) -> ProgressBar {
        if self.json { ProgressBar::hidden() } else { ProgressBar::new(job.steps()) }
    }

    /// The network, as it is shown.
    fn shown_network(&self) -> &str {
        if self.place.is_given() { "hosts" } else { &self.network }
    }
}

impl BenchJob {
    /// The number of steps for the progress bar: every repeat of every size, and a first one that warms up.
    fn steps(&self) -> u64 {
        (self.sizes.len() * (self.repeats + 1)) as u64
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    check_shape(&arguments.form()?.cipher(&arguments.cipher)?)?;
    ensure!((1..=MAX_BLOCKS).contains(&arguments.blocks), "--blocks takes 1 to {MAX_BLOCKS}");
    ensure!((1..=MAX_THREADS).contains(&arguments.threads), "--threads takes 1 to {MAX_THREADS}");
    ensure!((1..=1000).contains(&arguments.repeats), "--repeats takes 1 to 1000");
    arguments.network.parse::<polyclave_transport::Shape>()?;
    if let Some(path) = &arguments.plot {
        return plot::run(arguments, path);
    }
    if let Some(path) = &arguments.plot_active {
        return plot_active::run(arguments, path);
    }
    if arguments.place.is_given() {
        return elsewhere::run(arguments, &arguments.place.open()?);
    }
    let summary = if arguments.protocol.is_cleartext() {
        Summary::new(&[cleartext::measure(arguments)?])
    } else {
        arguments.protocol.check_parties()?;
        arguments.measure(&arguments.protocol, &[arguments.blocks], LATENCY_SAMPLES)?.remove(0)
    };
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&summary.json(arguments, &arguments.protocol))?);
    } else {
        summary.print(arguments, &arguments.protocol);
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts the parties and returns the measurements for every size. `progress` receives the number of the
/// job's steps that are done.
fn measure(launched: &Launch<'_>, progress: impl FnMut(u64)) -> Result<Vec<Summary>> {
    let by_party: Vec<Vec<Measurement>> = launch(launched, progress)?;
    let of_size = |i: usize| by_party.iter().map(|party| party.get(i).cloned()).collect::<Option<Vec<_>>>();
    let sizes = 0..launched.job.sizes.len();
    sizes.map(|i| Ok(Summary::new(&of_size(i).context("a party left a measurement out")?))).collect()
}
