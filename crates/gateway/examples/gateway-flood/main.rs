//! Floods a gateway, by callers without a token and by tokens, and measures how another caller is served meanwhile: a table for docs/vault.md.
//!
//! ```text
//! cargo run --release -p polyclave-gateway --example gateway-flood
//! ```
//!
//! Three nodes, the gateway and all callers run on one machine. The nodes and the gateway have processes of their own. So floods also take processors
//! from the caller that is measured.

mod floods;
#[path = "../gateway-bench/nodes.rs"]
mod nodes;
#[expect(dead_code, reason = "nothing is decrypted here")]
#[path = "../gateway-bench/transit.rs"]
mod transit;

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polyclave_api::Right;
use polyclave_config::TOKEN_RIGHTS;
use polyclave_gateway::{Running, make_token};

use floods::{FLOODS, Target};
use nodes::{Nodes, serve};
use transit::Connection;

/// Any error: it is printed, and ends the program.
type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How long each flood lasts.
const SECONDS: u64 = 15;
/// How many requests are measured without a flood.
const ROUNDS: usize = 200;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve"), Some(dir)) => serve(&dir),
        (Some("gateway"), Some(file)) => gateway(&file),
        (None, None) => measure(),
        _ => Err("it has no options".into()),
    }
}

/// Runs the gateway of a file until standard input ends.
fn gateway(file: &str) -> Outcome<()> {
    let running = Running::start(Path::new(file))?;
    println!("{}", running.addresses()[0]);
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(running);
    Ok(())
}

/// A gateway in a process of its own, until this is dropped.
struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Gateway {
    fn start(file: &Path) -> Outcome<Gateway> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.arg("gateway").arg(file).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut address = String::new();
        BufReader::new(child.stdout.take().ok_or("it has an output")?).read_line(&mut address)?;
        Ok(Gateway { child, address: address.trim().parse()? })
    }

    /// A value of the process's memory, as the system tells it, in MB.
    fn memory(&self, name: &str) -> Outcome<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("it is told")?;
        let kib: u64 = line.trim_matches([':', ' ', '\t']).trim_end_matches(" kB").parse()?;
        Ok(kib * 1024 / 1_000_000)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It stops when its input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn measure() -> Outcome<()> {
    let nodes = Nodes::start()?;
    let all = ["*".to_owned()];
    let (honest, entry) = make_token("bench", &TOKEN_RIGHTS, &all)?;
    let (bad, bad_entry) = make_token("flood", &[Right::Encrypt], &all)?;
    let file = nodes.dir().join("gateway.toml");
    let listener = "[[listener]]\naddress = \"127.0.0.1:0\"\n";
    let text = format!("client = {:?}\n{listener}{}\n{}", nodes.client, entry.to_text(), bad_entry.to_text());
    std::fs::write(&file, text)?;
    let begun = Gateway::start(&file)?;
    Connection::open(begun.address, &honest)?.post("/v1/transit/keys/bench", "{}")?;
    drop(begun);
    println!("| flood | quiet | under it (median, longest) | not served | most memory | 5 s later |");
    println!("|---|---|---|---|---|---|");
    for (what, flood) in FLOODS {
        let gateway = Gateway::start(&file)?;
        let one = || ask(gateway.address, &honest);
        let (quiet, _, _) = times(|round| round == ROUNDS, one);
        let stop = AtomicBool::new(false);
        let target = Target { address: gateway.address, token: &bad, stop: &stop };
        let until = Instant::now() + Duration::from_secs(SECONDS);
        let (median, longest, failed) = std::thread::scope(|scope| {
            scope.spawn(|| flood(&target));
            let under = times(|_| Instant::now() > until, one);
            stop.store(true, Relaxed);
            under
        });
        std::thread::sleep(Duration::from_secs(5));
        let (most, later) = (gateway.memory("VmHWM")?, gateway.memory("VmRSS")?);
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        println!(
            "| {what} | {} | {}, {} | {failed} | {most} MB | {later} MB |",
            ms(quiet),
            ms(median),
            ms(longest)
        );
    }
    Ok(())
}

/// One request of 32 bytes, on a connection of its own.
fn ask(address: SocketAddr, token: &str) -> Outcome<()> {
    Connection::open(address, token)?.encrypt(32).map(drop)
}

/// The median and the longest time of requests, one after the other, and how many failed.
fn times(is_over: impl Fn(usize) -> bool, one: impl Fn() -> Outcome<()>) -> (Duration, Duration, usize) {
    let (mut all, mut failed) = (Vec::new(), 0);
    for round in 0.. {
        if is_over(round) {
            break;
        }
        let began = Instant::now();
        if one().is_err() {
            failed += 1;
        }
        all.push(began.elapsed());
        // The caller pauses, like a program that asks now and then.
        std::thread::sleep(Duration::from_millis(5));
    }
    all.sort_unstable();
    (all[all.len() / 2], all[all.len() - 1], failed)
}
