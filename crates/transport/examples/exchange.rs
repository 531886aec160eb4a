//! Measures exchanges among three processes over TLS on loopback: the median latency of 16-byte messages and
//! the throughput of 160 KB messages. With `gather`, of gatherings from all instead.
//!
//! `cargo run --release -p polyclave-transport --example exchange [PARTIES] [LARGE_BYTES] [gather]`

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyclave_protocol::net::{Net, Patience};
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress};

const SMALL: usize = 16;
const LARGE: usize = 160_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or(default);
    match arguments.first().map(String::as_str) {
        Some("party") => party(number(1, 0), number(2, LARGE), arguments.len() > 3),
        _ => parent(number(0, 3), number(1, LARGE), arguments.get(2)),
    }
}

/// Starts the parties, tells each where the others are, and waits for them.
fn parent(parties: usize, large: usize, gather: Option<&String>) -> Result<()> {
    let program = std::env::current_exe().map_err(system)?;
    let mut children = Vec::new();
    for me in 0..parties {
        let mut command = Command::new(&program);
        command.args(["party", &me.to_string(), &large.to_string()]).args(gather);
        children.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(system)?);
    }
    let mut outputs: Vec<_> =
        children.iter_mut().filter_map(|c| c.stdout.take()).map(BufReader::new).collect();
    let mut list = String::new();
    for output in &mut outputs {
        output.read_line(&mut list).map_err(system)?;
    }
    for Child { stdin, .. } in &mut children {
        let mut stdin = stdin.take().ok_or_else(|| Error::System("no pipe to a party".into()))?;
        stdin.write_all(list.as_bytes()).map_err(system)?;
    }
    for line in outputs.into_iter().flat_map(BufRead::lines) {
        println!("{}", line.map_err(system)?);
    }
    for mut child in children {
        child.wait().map_err(system)?;
    }
    Ok(())
}

fn party(me: usize, large: usize, gather: bool) -> Result<()> {
    let endpoint = Endpoint::bind("127.0.0.1:0", Identity::generate()?, Limits::default())?;
    let certificate: String = endpoint.certificate().iter().map(|byte| format!("{byte:02x}")).collect();
    println!("{} {certificate}", endpoint.local_addr());
    let lines = std::io::stdin().lines().map(|line| parse(&line.map_err(system)?));
    let parties = lines.collect::<Result<Vec<PeerAddress>>>()?;
    let mut net = endpoint.join(Party(me as u8), &parties)?;

    measure(&mut net, SMALL, 1000, gather);
    let cpu = cpu_time();
    let times = measure(&mut net, SMALL, 20_000, gather);
    let cpu = (cpu_time() - cpu) / 20_000;
    let [median, p90, p99] = [50, 90, 99].map(|percent| times[times.len() * percent / 100]);
    println!(
        "{} {SMALL} bytes: median {median:?}, 90% {p90:?}, 99% {p99:?}, {cpu:?} of processor time",
        net.me()
    );

    measure(&mut net, large, 100, gather);
    let wire = net.wire_meter();
    let (before, cpu, start) = (wire.sent(), cpu_time(), Instant::now());
    let times = measure(&mut net, large, 1000, gather);
    let gigabytes = (wire.sent() - before) as f64 / 1e9;
    let rate = gigabytes / start.elapsed().as_secs_f64();
    let (me, median, cpu) = (net.me(), times[times.len() / 2], (cpu_time() - cpu) / 1000);
    println!("{me} {large} bytes: median {median:?}, {rate:.2} GB/s each way, {cpu:?} of processor time");
    Ok(())
}

/// Exchanges `rounds` times with all, or gathers; how long each took, sorted.
fn measure(net: &mut dyn Net, len: usize, rounds: usize, gather: bool) -> Vec<Duration> {
    let (me, n) = (net.me(), net.parties());
    let message = vec![1; len];
    let out: Vec<&[u8]> = Party::all(n).map(|p| if p == me { &[][..] } else { &message[..] }).collect();
    let mut into: Vec<Vec<u8>> = Party::all(n).map(|p| vec![0; if p == me { 0 } else { len }]).collect();
    let mut into: Vec<&mut [u8]> = into.iter_mut().map(Vec::as_mut_slice).collect();
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        let done = if gather {
            net.gather(&out, &mut into, Patience::of(1), &mut |arrived, _| arrived.len() == n - 1).map(drop)
        } else {
            net.exchange(&out, &mut into)
        };
        done.unwrap_or_else(|e| panic!("{me}: {e}"));
        times.push(start.elapsed());
    }
    times.sort_unstable();
    times
}

/// Of this process so far, which tells the cost of an exchange even on a machine that is busy with other
/// things.
fn cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = schedstat.split_whitespace().next().and_then(|field| field.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

fn parse(line: &str) -> Result<PeerAddress> {
    let wrong = || Error::misuse(format!("not an address and a certificate: {line}"));
    let (address, certificate) = line.split_once(' ').ok_or_else(wrong)?;
    let bytes = (0..certificate.len() / 2).map(|i| u8::from_str_radix(&certificate[2 * i..2 * i + 2], 16));
    let bytes = bytes.collect::<std::result::Result<Vec<u8>, _>>().map_err(|_| wrong())?;
    Ok(PeerAddress { address: address.into(), certificate: bytes.into() })
}

fn system(e: std::io::Error) -> Error {
    Error::System(e.to_string())
}
