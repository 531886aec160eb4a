//! The command line.
#![allow(unsafe_code, reason = "it sets a flag of its process")]

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use polyclave_simulation::cluster::Kind;
use polyclave_simulation::life::{Disaster, Plan, live};
use polyclave_simulation::machines::{most_waits, simulate};

/// Lets clusters live under seeds, each in a process of its own. A seed that fails is named.
#[derive(Parser)]
struct Options {
    /// Only this seed, in this process
    #[arg(long)]
    seed: Option<u64>,
    /// Seeds from A to B - 1
    #[arg(long, value_name = "A..B", default_value = "0..10")]
    seeds: String,
    /// How long a life is, in minutes
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// Nights in it, in which all clocks go on by a day and nothing else happens
    #[arg(long, default_value_t = 0)]
    nights: u32,
    /// The longest pause of a client and between disasters, in seconds
    #[arg(long, default_value_t = 60)]
    pause: u64,
    /// Clients at once
    #[arg(long, default_value_t = 2)]
    clients: u16,
    /// The protocol; otherwise the seed chooses one
    #[arg(long)]
    protocol: Option<String>,
    /// Nothing goes wrong
    #[arg(long)]
    calm: bool,
    /// What goes wrong every second time
    #[arg(long)]
    favour: Option<Disaster>,
    /// No pair of nodes goes on while the third one is away, where the protocol has that
    #[arg(long)]
    no_standby: bool,
    /// Syncs of disks do nothing: lives must fail
    #[arg(long)]
    disks_lie: bool,
    /// Print what threads waited for most
    #[arg(long)]
    waits: bool,
    /// Print what the nodes log
    #[arg(long)]
    log: bool,
}

/// What lives are lived with. Seeds choose among all but the last, whose standby pairs take several times as
/// much of a processor.
const KINDS: [Kind; 6] = [
    Kind { protocol: "shamir", needs_all: true, nodes: 3, stock: 64, has_checks: false, standby: false },
    Kind { protocol: "replicated", needs_all: true, nodes: 3, stock: 64, has_checks: false, standby: false },
    Kind {
        protocol: "replicated-four",
        needs_all: false,
        nodes: 4,
        stock: 64,
        has_checks: true,
        standby: false,
    },
    Kind { protocol: "spdz-tower", needs_all: true, nodes: 2, stock: 8, has_checks: true, standby: false },
    Kind {
        protocol: "shamir-active",
        needs_all: false,
        nodes: 4,
        stock: 8,
        has_checks: true,
        standby: false,
    },
    Kind {
        protocol: "replicated-active",
        needs_all: false,
        nodes: 3,
        stock: 8,
        has_checks: true,
        standby: true,
    },
];
const CHOSEN: u64 = 5;

/// Runs the command.
pub fn main() -> Result<ExitCode> {
    let options = Options::parse();
    match options.seed {
        Some(seed) => one(seed, &options),
        None => many(&options),
    }
}

/// Begins this program anew without random addresses, on which the order of locks depends. Where the system
/// refuses that, a life may differ from run to run.
fn without_random_addresses() -> Result<()> {
    let flag = libc::ADDR_NO_RANDOMIZE as libc::c_ulong;
    // SAFETY: this asks for the flags, and changes none.
    let flags = unsafe { libc::personality(0xffff_ffff) } as libc::c_ulong;
    if flags & flag != 0 {
        return Ok(());
    }
    // SAFETY: this sets a flag for programs that begin later.
    if unsafe { libc::personality(flags | flag) } == -1 {
        eprintln!("this system insists on random addresses: a life may differ from run to run");
        return Ok(());
    }
    Err(Command::new(std::env::current_exe()?).args(std::env::args_os().skip(1)).exec().into())
}

fn one(seed: u64, options: &Options) -> Result<ExitCode> {
    without_random_addresses()?;
    if options.log {
        tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    }
    let kind = match &options.protocol {
        Some(name) => KINDS.iter().find(|kind| kind.protocol == name).context("no such protocol here")?,
        None => &KINDS[(seed % CHOSEN) as usize],
    };
    let kind = Kind { standby: kind.standby && !options.no_standby, ..*kind };
    let plan = Plan {
        kind,
        length: Duration::from_secs(options.minutes * 60),
        nights: options.nights,
        clients: options.clients,
        pause: Duration::from_secs(options.pause),
        disasters: !options.calm,
        favoured: options.favour,
        disks_lie: options.disks_lie,
    };
    let dir = tempfile::tempdir()?;
    // Names of files that are the same in each run.
    std::env::set_current_dir(&dir)?;
    let began = Instant::now();
    let (outcome, digest) = simulate(seed, || {
        let outcome = live(Path::new("life"), plan);
        if options.waits {
            eprintln!("{}", most_waits());
        }
        outcome
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error) => {
            let (protocol, files) = (kind.protocol, dir.path().display());
            println!("seed {seed}, {protocol}: {error:#}, digest {digest:016x}, files in {files}");
            std::process::exit(1)
        }
    };
    let (protocol, took, processor) = (kind.protocol, began.elapsed(), processor_time());
    print!("seed {seed}, {protocol}: {outcome:?}, {took:.1?}, of a processor {processor:.1?}, ");
    println!("digest {digest:016x}");
    // Threads of crashed machines still wait for their turn, so the process ends without them.
    drop(dir);
    std::process::exit(0)
}

/// How much time of a processor this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn many(options: &Options) -> Result<ExitCode> {
    let (from, to) = options.seeds.split_once("..").context("seeds are given as A..B")?;
    let seeds = from.parse::<u64>()?..to.parse::<u64>()?;
    let mut failed = Vec::new();
    for seed in seeds.clone() {
        let mut of_one = Command::new(std::env::current_exe()?);
        of_one.args(std::env::args().skip(1)).arg(format!("--seed={seed}"));
        if !of_one.status()?.success() {
            failed.push(seed);
        }
    }
    if !failed.is_empty() {
        bail!("{} of {} lives failed; their seeds: {failed:?}", failed.len(), seeds.count());
    }
    Ok(ExitCode::SUCCESS)
}
