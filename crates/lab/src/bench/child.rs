//! A party process. `bench` starts it, not people.
//!
//! It makes its own TLS key, listens on the loopback interface, learns its peers' certificates from the
//! command that started it, and runs its part of the job. It ends when its standard input ends, so that it
//! never outlives that command.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use polyclave_protocol::metered::{Meter, Metered};
use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Party};
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress, Shape, Shaped, WireMeter};

use super::job::{Address, Event, Start, tell};
use super::party::party;

/// The interval between two signs of life.
const SIGN_OF_LIFE: Duration = Duration::from_millis(250);
/// The exit status when the process that started this one is gone.
const ORPHANED: i32 = 3;

/// A party's connections, with their counters.
pub struct Connected<N> {
    /// The network to all peers.
    pub net: Metered<N>,
    /// Payload bytes.
    pub payload: Arc<Meter>,
    /// Bytes at the sockets.
    pub wire: Arc<WireMeter>,
}

/// Runs one party's part of the job that it reads from standard input.
pub fn run() -> Result<ExitCode> {
    let outcome = run_job();
    if let Err(error) = &outcome {
        let by_peer = matches!(
            error.downcast_ref(),
            Some(Error::Closed { .. } | Error::Timeout { .. } | Error::Unanswered { .. })
        );
        tell(&Event::Failed { error: format!("{error:#}"), by_peer });
    }
    Ok(if outcome.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_job() -> Result<()> {
    let start: Start = serde_json::from_str(&next_line()?).context("the first line is no job")?;
    let idle = Duration::from_secs(start.timeout_s);
    let limits = Limits { idle, ..Limits::default() };
    let endpoint = Endpoint::bind("127.0.0.1:0", Identity::generate()?, limits)?;
    let address = endpoint.local_addr().to_string();
    tell(&Event::Ready(Address { address, certificate: hex::encode(endpoint.certificate()) }));
    let peers: Vec<Address> =
        serde_json::from_str(&next_line()?).context("the second line names no peers")?;
    std::thread::spawn(end_with_standard_input);
    std::thread::spawn(show_signs_of_life);

    let peers = peers.into_iter().map(|p| {
        let certificate = hex::decode(&p.certificate).context("a certificate is not hexadecimal")?;
        Ok(PeerAddress { address: p.address, certificate: certificate.into() })
    });
    let wire = endpoint.wire_meter();
    let shape: Shape = start.network.parse()?;
    let net = endpoint.join(Party(start.me), &peers.collect::<Result<Vec<_>>>()?)?;
    let net = Metered::new(Shaped::new(net, shape));
    let mut connected = Connected { payload: net.meter(), wire, net };
    let progress = |done| tell(&Event::Progress(done));
    let measured = party(&start.protocol.config()?, &start.job, &mut connected, progress)?;
    let report = serde_json::to_value(measured)?;
    tell(&Event::Report(report));
    Ok(())
}

fn next_line() -> Result<String> {
    let mut line = String::new();
    // Locks standard input for this line only: the thread that watches it needs it afterwards.
    let read = std::io::stdin().read_line(&mut line)?;
    ensure!(read > 0, "`polyclave-lab bench-party` is started by `polyclave-lab bench` only");
    Ok(line)
}

/// Sends signs of life, by which the command tells a working party from a stopped one.
fn show_signs_of_life() {
    loop {
        tell(&Event::Alive);
        std::thread::sleep(SIGN_OF_LIFE);
    }
}

/// Ends the process when the one that started it is gone.
fn end_with_standard_input() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    std::process::exit(ORPHANED);
}

/// Sends a message of fixed size from one party to all others, which send it back.
pub fn announce<const N: usize>(from: Party, message: [u8; N], net: &mut dyn Net) -> Result<[u8; N], Error> {
    let mut received = message;
    if net.me() == from {
        for p in from.peers(net.parties()) {
            net.send(p, &message)?;
        }
    } else {
        net.recv(from, &mut received)?;
    }
    Ok(received)
}

/// Returns when every party has reached this point.
pub fn meet(net: &mut dyn Net) -> Result<(), Error> {
    let me = net.me();
    let out: Vec<&[u8]> =
        Party::all(net.parties()).map(|p| if p == me { &[][..] } else { &[0][..] }).collect();
    let mut into: Vec<Vec<u8>> = out.iter().map(|m| m.to_vec()).collect();
    net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
}

/// The most memory this process has used so far, if the system reports it.
pub fn peak_memory_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}
