//! Nodes compute on shared data and send the result to an outsider, in a form that standard tools open: the
//! first application of Damgård and Keller, "Secure multiparty AES" (FC 2010), section 1. The README says
//! what it shows, and what not.
//!
//! | file | what |
//! |---|---|
//! | `bids.rs`, `circuits.rs` | what is computed: the lowest bid, encrypted under a key that nobody knows |
//! | `delivery.rs` | one node, under any protocol with an honest majority |
//! | `modulus/` | the key, encrypted with the receiver's RSA key without being put together |
//! | `receiver.rs`, `message.rs` | the receiver's key, and what it is sent |
//! | `protocols.rs` | which protocol |

mod bids;
mod circuits;
mod delivery;
mod message;
mod modulus;
mod protocols;
mod receiver;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand, value_parser};
use polyclave_example_processes::{self as processes, Ended};
use polyclave_protocol::metered::Meter;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::shamir::Structure;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use delivery::{NONCE_BYTES, Report, deliver};
use protocols::{PROTOCOLS, THRESHOLD, service};
use receiver::PublicKey;

/// Nodes find the lowest of their owners' bids without seeing any, encrypt it under a key that nobody knows,
/// and encrypt that key for an outsider, who opens both with OpenSSL.
#[derive(Parser)]
#[command(name = "polyclave-outsider", args_conflicts_with_subcommands = true)]
struct Options {
    /// What the nodes run
    #[arg(long, value_name = "P", default_value = PROTOCOLS[0], value_parser = PROTOCOLS)]
    protocol: String,

    /// The owners' bids, one for each node, three or four. With four nodes every opening of the key's
    /// encryption is checked
    #[arg(long, value_name = "N,N,..", value_delimiter = ',', default_value = "1830,1275,2100,1450",
          value_parser = value_parser!(u32).range(0..=99_999_999))]
    bids: Vec<u32>,

    /// The receiver's RSA public key in PEM, 2048 to 4096 bits [default: a pair is made, for the
    /// demonstration]
    #[arg(long, value_name = "FILE")]
    receiver: Option<PathBuf>,

    /// Where the outsider's files go
    #[arg(long, value_name = "DIR", default_value = "delivery")]
    out: PathBuf,

    /// One line of JSON instead of text
    #[arg(long)]
    json: bool,

    #[command(subcommand)]
    command: Option<Hidden>,
}

#[derive(Subcommand)]
enum Hidden {
    /// The process of a node; not started by people.
    #[command(name = processes::PARTY, hide = true)]
    Party,
}

/// What one node is told.
#[derive(Serialize, Deserialize)]
struct Orders {
    protocol: String,
    parties: usize,
    /// In PEM.
    receiver: String,
    bid: Zeroizing<Vec<u8>>,
}

/// What one node tells.
#[derive(Serialize, Deserialize)]
struct Outcome {
    adversary: String,
    report: Report,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.command.is_some() {
        processes::party(node);
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
    let parties = options.bids.len();
    ensure!(
        (3..=4).contains(&parties),
        "{parties} bids were given; there are three or four nodes, with one each"
    );
    std::fs::create_dir_all(&options.out).with_context(|| cannot("make", &options.out))?;
    let (public, private) = match &options.receiver {
        Some(file) => {
            (std::fs::read_to_string(file).with_context(|| cannot("read", file))?, "receiver.key.pem".into())
        }
        None => {
            let (private, public) = receiver::generate(2048)?;
            let file = options.out.join("receiver.key.pem");
            write_private(&file, private.as_bytes())?;
            (public, file.display().to_string())
        }
    };
    let key = PublicKey::from_pem(&public)?;

    let orders = (1..).zip(&options.bids).map(|(owner, amount)| {
        let (protocol, receiver) = (options.protocol.clone(), public.clone());
        Ok(Orders { protocol, parties, receiver, bid: bids::bid(owner, *amount)? })
    });
    let ended: Vec<Ended<Outcome>> = processes::run(&orders.collect::<Result<Vec<_>>>()?)?;
    let delivery = &ended[0].outcome.report.delivery;
    ensure!(
        ended.iter().all(|other| other.outcome.report.delivery == *delivery),
        "the nodes ended with different deliveries: one of them did not follow the protocol, and nothing is sent"
    );

    let write = |name: &str, bytes: &[u8]| {
        let file = options.out.join(name);
        std::fs::write(&file, bytes).with_context(|| cannot("write", &file))
    };
    write("message.p7m", &message::cms(delivery, &key.id()))?;
    write("key.rsa", &delivery.key)?;
    write("data.ctr", &delivery.ciphertext)?;
    if options.json { print_json(options, &ended[0]) } else { print_text(options, &private, &ended[0]) }
}

fn print_json(options: &Options, ended: &Ended<Outcome>) -> Result<()> {
    #[derive(Serialize)]
    struct Printed<'a> {
        protocol: &'a str,
        nodes: usize,
        iv: String,
        outcome: &'a Outcome,
        wire_bytes: u64,
    }
    let iv = iv(&ended.outcome.report.delivery.nonce);
    let (protocol, nodes) = (&options.protocol[..], options.bids.len());
    let printed = Printed { protocol, nodes, iv, outcome: &ended.outcome, wire_bytes: ended.wire_bytes };
    println!("{}", serde_json::to_string(&printed)?);
    Ok(())
}

fn print_text(options: &Options, private: &str, ended: &Ended<Outcome>) -> Result<()> {
    let Outcome { adversary, report } = &ended.outcome;
    let (nodes, out) = (options.bids.len(), options.out.display());
    let checked = match nodes > 3 * THRESHOLD {
        true => "every opening modulo the receiver's N is checked on all points",
        false => "with three nodes no opening modulo the receiver's N can be checked",
    };
    println!(
        "{nodes} nodes, processes of their own joined by TLS 1.3, hold a sealed bid each. Session {}:\n{adversary};\n{checked}.\n",
        options.protocol
    );
    println!("{:<28} {:>9} {:>10} {:>12}", "", "ms", "exchanges", "bytes sent");
    for step in &report.steps {
        let ms = 1000.0 * step.seconds;
        println!("{:<28} {ms:>9.1} {:>10} {:>12}", step.name, step.exchanges, step.payload_bytes);
    }
    println!("\nWith TLS the first node sent {} bytes.\n", ended.wire_bytes);
    println!("The receiver opens the lowest bid with OpenSSL 3, which also verifies that it is whole:\n");
    println!("  openssl cms -decrypt -inform DER -in {out}/message.p7m -inkey {private}\n");
    println!("The same by hand, unverified (counter mode):\n");
    println!(
        "  K=$(openssl pkeyutl -decrypt -inkey {private} -in {out}/key.rsa | od -An -v -tx1 | tr -d ' \\n')"
    );
    println!("  openssl enc -d -aes-128-ctr -K $K -iv {} -in {out}/data.ctr", iv(&report.delivery.nonce));
    if options.receiver.is_none() {
        println!(
            "\n({private} was made for this demonstration. A receiver makes its own and shows the public half.)"
        );
    }
    Ok(())
}

/// The first counter block of the data.
fn iv(nonce: &[u8; NONCE_BYTES]) -> String {
    format!("{}00000002", hex::encode(nonce))
}

fn cannot(what: &str, file: &Path) -> String {
    format!("cannot {what} {}", file.display())
}

/// Only its owner can read it.
fn write_private(file: &Path, bytes: &[u8]) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    opened.and_then(|mut file| file.write_all(bytes)).with_context(|| cannot("write", file))
}

/// One node.
fn node(orders: Orders, net: &mut dyn Net, meter: &Meter) -> Result<Outcome> {
    let structure = Structure::new(orders.parties, THRESHOLD)?;
    let receiver = PublicKey::from_pem(&orders.receiver)?;
    let config = service(&orders.protocol, orders.parties, THRESHOLD)?;
    let report = deliver(&config, structure, &receiver, &orders.bid, net, meter)?;
    Ok(Outcome { adversary: config.promise(), report })
}
