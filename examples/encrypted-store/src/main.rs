//! Records lie encrypted in an untrusted place; nodes that share the key decide on them without seeing them:
//! the second application of Damgård and Keller, "Secure multiparty AES" (FC 2010), section 1. The README
//! says what it shows, and what not.
//!
//! | file | what |
//! |---|---|
//! | `record.rs` | a record, and how it lies in the store |
//! | `disk.rs` | what a node keeps |
//! | `circuits.rs` | what is evaluated |
//! | `node.rs` | one node, under any protocol that can keep shared values |
//! | `owner.rs` | who knows the records first: shares them among the nodes |
//! | `protocols.rs` | which protocol |

mod circuits;
mod disk;
mod node;
mod owner;
mod protocols;
mod record;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand, value_parser};
use polyclave_example_processes as processes;
use polyclave_protocol::metered::Meter;
use polyclave_protocol::net::Net;
use zeroize::Zeroizing;

use node::{Job, Orders, Report};
use protocols::{PROTOCOLS, THRESHOLD, service};
use record::{Record, Sealed};

/// The number under which totals are written back.
const TOTALS: u32 = 100;

/// Records lie encrypted in a store that nobody trusts. Nodes that share the key decide on chosen ones, on
/// shares, and write their totals back encrypted. Then the store cheats.
#[derive(Parser)]
#[command(name = "polyclave-encrypted-store", args_conflicts_with_subcommands = true)]
struct Options {
    /// What the nodes run
    #[arg(long, value_name = "P", default_value = PROTOCOLS[0], value_parser = PROTOCOLS)]
    protocol: String,

    /// How many nodes, three or four
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u8).range(3..=4))]
    nodes: u8,

    /// Numbers of the records to decide on, each once, of 1 to 6
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', default_value = "1,3,4")]
    choose: Vec<u32>,

    /// Do their debts together exceed this?
    #[arg(long, value_name = "LIMIT", default_value_t = 60_000)]
    limit: u64,

    /// Where the store and the nodes' directories go, which must not be there yet [default: a temporary
    /// directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,

    #[command(subcommand)]
    command: Option<Hidden>,
}

#[derive(Subcommand)]
enum Hidden {
    /// The process of a node; not started by people.
    #[command(name = processes::PARTY, hide = true)]
    Party,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.command.is_some() {
        processes::party(party);
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

/// The records of the demonstration, with numbers from 1.
fn records() -> Vec<Record> {
    let records = [
        ("Adams", 41_000, 12_500),
        ("Baker", 38_500, 71_000),
        ("Clark", 52_300, 33_250),
        ("Davis", 29_900, 18_400),
        ("Evans", 63_700, 0),
        ("Foster", 47_100, 9_900),
    ];
    records.map(|(name, income, debts)| Record { name: name.into(), income, debts }).into()
}

fn run(options: &Options) -> Result<()> {
    let records = records();
    let known = 1..=records.len() as u32;
    ensure!(
        options.choose.iter().all(|number| known.contains(number)),
        "there are records 1 to {} here; --choose names others",
        records.len()
    );
    let temporary = tempfile::tempdir()?;
    let directory = match &options.dir {
        Some(directory) => {
            ensure!(!directory.exists(), "{} is there already; name a new directory", directory.display());
            directory.clone()
        }
        None => temporary.path().to_owned(),
    };
    let place = Place { options, store: directory.join("store"), directory };
    std::fs::create_dir_all(&place.store)?;

    println!("1. The nodes made a key.");
    place.run(Job::Create, &[])?;
    println!(
        "   {} nodes, processes of their own joined by TLS 1.3. Session {}. Each drew 16 bytes; the key is\n   \
         their sum, was never put together, and lies on their disks as shares. Every step below is a fresh start of all.\n",
        options.nodes, options.protocol
    );

    println!("2. An owner shared {} records among the nodes, which encrypted them on shares.", records.len());
    place.put(&known.clone().collect::<Vec<_>>(), &records)?;
    println!(
        "   The store has them, with AES-128-GCM: {} bytes each.\n",
        std::fs::metadata(Sealed::file(&place.store, 1))?.len()
    );

    println!("3. Do the debts of records {} together exceed {}?", list(&options.choose), options.limit);
    let decided = place.decide(&options.choose, options.limit)?;
    let expected: u64 = options.choose.iter().map(|number| records[*number as usize - 1].debts).sum();
    ensure!(
        decided == (expected > options.limit),
        "the nodes decided wrongly: this is a defect, please report it"
    );
    println!(
        "   {}. Opened: this, that the records' tags are right, and the totals' ciphertext, now record {TOTALS}.\n",
        if decided { "Yes" } else { "No" }
    );

    println!("4. Are the totals of record {TOTALS} right, if nobody sees them? Two more decisions:");
    for (limit, expected) in [(expected, false), (expected.saturating_sub(1), expected > 0)] {
        ensure!(
            place.decide_on_totals(limit)? == expected,
            "the totals are wrong: this is a defect, please report it"
        );
        println!("   the debts in it {} more than {limit}", if expected { "are" } else { "are not" });
    }

    println!("\n5. The store cheats.");
    let file = |number| Sealed::file(&place.store, number);
    let old = std::fs::read(file(1))?;
    let other = std::fs::read(file(2))?;
    let mut flipped = old.clone();
    flipped[20] ^= 1;
    place.is_refused("a flipped bit in record 1", &flipped)?;
    place.is_refused("record 2 in the place of record 1", &other)?;
    place.put(&[1], &records[..1])?;
    place.is_refused("record 1 as it was before it was written anew", &old)?;
    if options.dir.is_some() {
        println!("\nLook around in {}: store, node-1, node-2 and so on.", place.directory.display());
    }
    Ok(())
}

fn list(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Where everything lies.
struct Place<'a> {
    options: &'a Options,
    directory: PathBuf,
    store: PathBuf,
}

impl Place<'_> {
    /// Starts all nodes for one job, puts into the store what they return, and shows what it took.
    fn run(&self, job: Job, shares: &[Zeroizing<Vec<u8>>]) -> Result<Report> {
        let orders = (0..usize::from(self.options.nodes)).map(|node| Orders {
            protocol: self.options.protocol.clone(),
            nodes: self.options.nodes.into(),
            directory: self.directory.clone(),
            store: self.store.clone(),
            job: job.clone(),
            shares: shares.get(node).cloned().unwrap_or_default(),
        });
        let ended = processes::run::<Report>(&orders.collect::<Vec<_>>())?;
        let mut reports = ended.into_iter().map(|ended| ended.outcome);
        let first = reports.next().context("there are no nodes")?;
        ensure!(
            reports.all(|other| (&other.sealed, other.decision) == (&first.sealed, first.decision)),
            "the nodes ended with different results: one of them did not follow the protocol"
        );
        first.sealed.iter().try_for_each(|sealed| sealed.write(&self.store))?;
        for step in &first.steps {
            let (ms, bytes) = (1000.0 * step.seconds, step.payload_bytes);
            println!(
                "   {:<22} {ms:>7.1} ms {:>5} exchanges {bytes:>8} bytes sent",
                step.name, step.exchanges
            );
        }
        Ok(first)
    }

    fn put(&self, numbers: &[u32], records: &[Record]) -> Result<Report> {
        self.run(Job::Put { numbers: numbers.to_vec() }, &owner::shares(records, self.options.nodes.into())?)
    }

    fn decide(&self, chosen: &[u32], limit: u64) -> Result<bool> {
        let job = Job::Decide { chosen: chosen.to_vec(), limit, totals: TOTALS };
        self.run(job, &[])?.decision.context("no decision came")
    }

    fn decide_on_totals(&self, limit: u64) -> Result<bool> {
        let job = Job::Decide { chosen: vec![TOTALS], limit, totals: TOTALS + 1 };
        self.run(job, &[])?.decision.context("no decision came")
    }

    /// Puts something into the place of record 1, and back what was there.
    fn is_refused(&self, what: &str, bytes: &[u8]) -> Result<()> {
        let file = Sealed::file(&self.store, 1);
        let right = std::fs::read(&file)?;
        std::fs::write(&file, bytes)?;
        let decided = self.decide(&[1], 0);
        std::fs::write(&file, right)?;
        match decided {
            Ok(_) => bail!("{what} was taken for record 1: this is a defect, please report it"),
            Err(error) => {
                let error = format!("{error:#}");
                ensure!(error.contains(node::UNAUTHENTIC), "{error}");
                println!("   {what}: {}", error.split("; node").next().unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// One node.
fn party(orders: Orders, net: &mut dyn Net, meter: &Meter) -> Result<Report> {
    node::work(&service(&orders.protocol, orders.nodes, THRESHOLD)?, &orders, net, meter)
}
