//! The two servers as processes of their own on this machine, joined by TLS over the loopback interface.
//!
//! Each makes its own TLS key and says where it listens; it is told the other's certificate and its own part of what was
//! given out ahead, in lines of JSON over its standard input. It ends when that ends, so it never outlives this program.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use polyclave_protocol::Party;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::protocol::Scheme;
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::devices::KeyShares;
use crate::protocols::{self, Task};
use crate::server::{self, Job, Report};

/// The hidden command of a server.
pub const SERVER: &str = "server";
/// How long a server waits for the other to move: material takes its time.
const IDLE: Duration = Duration::from_secs(120);
/// After a first failure, how long the other server's word is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The process that started this one is gone.
const ORPHANED: i32 = 3;

/// What all servers are started with.
#[derive(Clone, Serialize, Deserialize)]
pub struct Start {
    /// The name of the protocol.
    pub protocol: String,
    /// Whether material comes from a dealer that each server could be.
    pub insecure_dealer: bool,
    /// What they compute.
    pub job: Job,
}

/// What one server is told.
#[derive(Serialize, Deserialize)]
struct Orders {
    me: u8,
    start: Start,
    /// In hexadecimal.
    key_shares: String,
    servers: Vec<Address>,
}

/// Where a server listens, and its certificate in hexadecimal.
#[derive(Clone, Serialize, Deserialize)]
struct Address {
    address: String,
    certificate: String,
}

/// A line from a server.
#[derive(Serialize, Deserialize)]
enum Event {
    Ready(Address),
    Done(Box<Outcome>),
    Failed(String),
}

/// How it ended at one server.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    /// What it learned.
    pub report: Report,
    /// One sentence on whom the protocol protects against.
    pub adversary: String,
    /// What it sent, TLS included.
    pub wire_bytes: u64,
}

/// Runs both servers to their end.
pub fn run(start: &Start, key_shares: &[KeyShares; 2]) -> Result<[Outcome; 2]> {
    let mut servers = Servers::start()?;
    let addresses = servers.gather("ready", |event| match event {
        Event::Ready(address) => Some(address),
        _ => None,
    })?;
    for (me, key_shares) in (0..).zip(key_shares) {
        let key_shares = hex::encode(key_shares);
        let mut orders = Orders { me, start: start.clone(), key_shares, servers: addresses.to_vec() };
        let line = Zeroizing::new(serde_json::to_string(&orders)?);
        orders.key_shares.zeroize();
        // If it is gone, its end is heard of below.
        let _ = writeln!(servers.inputs[usize::from(me)], "{}", *line);
    }
    servers.gather("done", |event| match event {
        Event::Done(outcome) => Some(*outcome),
        _ => None,
    })
}

/// Running servers; killed on drop.
struct Servers {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    events: Receiver<(usize, Option<Event>)>,
}

impl Servers {
    fn start() -> Result<Servers> {
        let program = std::env::current_exe().context("cannot find this program to start servers with")?;
        let (sender, events) = channel();
        let mut servers = Servers { children: Vec::new(), inputs: Vec::new(), events };
        for me in 0..2 {
            let mut command = Command::new(&program);
            command.arg(SERVER).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().context("cannot start a server")?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            servers.children.push(child);
            let (input, output) = pipes.context("a server has no pipes")?;
            servers.inputs.push(input);
            listen(me, BufReader::new(output), sender.clone());
        }
        Ok(servers)
    }

    /// Waits for one event of each.
    fn gather<T>(&mut self, what: &str, wanted: impl Fn(Event) -> Option<T>) -> Result<[T; 2]> {
        let mut found = [None, None];
        while found.iter().any(Option::is_none) {
            let (server, event) = self.events.recv().context("no server is heard of any more")?;
            match event {
                Some(Event::Failed(error)) => bail!(self.failure(server, error)),
                Some(event) => found[server] = Some(wanted(event).context("a server is out of step")?),
                None if found[server].is_none() => {
                    bail!(self.failure(server, format!("ended before it was {what}")))
                }
                None => {}
            }
        }
        let [first, second] = found;
        first.zip(second).map(|(first, second)| [first, second]).context("both have come")
    }

    /// When one fails, the other complains, too, perhaps sooner: both are shown.
    fn failure(&self, server: usize, error: String) -> String {
        let mut told = vec![format!("server {}: {error}", server + 1)];
        if let Ok((server, Some(Event::Failed(error)))) = self.events.recv_timeout(LAST_WORDS) {
            told.push(format!("server {}: {error}", server + 1));
        }
        told.join("; ")
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Closed pipes end the servers; killing them does not wait for that.
        self.inputs.clear();
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Passes a server's lines on; `None` at their end.
fn listen(server: usize, output: impl BufRead + Send + 'static, events: Sender<(usize, Option<Event>)>) {
    std::thread::spawn(move || {
        for line in output.lines().map_while(std::io::Result::ok) {
            if let Ok(event) = serde_json::from_str(&line)
                && events.send((server, Some(event))).is_err()
            {
                return;
            }
        }
        let _ = events.send((server, None));
    });
}

/// The process of one server. How it ends is told to the process that started it.
pub fn server() {
    let outcome = follow_orders();
    tell(&outcome.unwrap_or_else(|error| Event::Failed(format!("{error:#}"))));
}

fn follow_orders() -> Result<Event> {
    let limits = Limits { idle: IDLE, ..Limits::default() };
    let endpoint = Endpoint::bind("127.0.0.1:0", Identity::generate()?, limits)?;
    let address = endpoint.local_addr().to_string();
    tell(&Event::Ready(Address { address, certificate: hex::encode(endpoint.certificate()) }));
    let mut line = Zeroizing::new(String::new());
    ensure!(std::io::stdin().read_line(&mut line)? > 0, "a server is started by this program only");
    let Orders { me, start, key_shares, servers } =
        serde_json::from_str(&line).context("these are no orders")?;
    let key_shares = Zeroizing::new(key_shares);
    std::thread::spawn(end_with_standard_input);

    let servers = servers.into_iter().map(|server| {
        let certificate = hex::decode(&server.certificate).context("a certificate is not hexadecimal")?;
        Ok(PeerAddress { address: server.address, certificate: certificate.into() })
    });
    let servers = servers.collect::<Result<Vec<_>>>()?;
    let key_shares = Zeroizing::new(hex::decode(&*key_shares).context("a key share is not hexadecimal")?);
    let work = Work { me: Party(me), job: &start.job, key_shares: &key_shares, endpoint, servers: &servers };
    Ok(Event::Done(Box::new(protocols::run(&start.protocol, start.insecure_dealer, work)?)))
}

/// Ends the process when the one that started it is gone.
fn end_with_standard_input() {
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    std::process::exit(ORPHANED);
}

fn tell(event: &Event) {
    let line = serde_json::to_string(event).expect("events are plain data");
    let mut out = std::io::stdout().lock();
    // If nobody listens any more, the watch on standard input ends this process.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

struct Work<'a> {
    me: Party,
    job: &'a Job,
    key_shares: &'a [u8],
    endpoint: Endpoint,
    servers: &'a [PeerAddress],
}

impl Task for Work<'_> {
    type Output = Outcome;

    fn under<S: Scheme>(self, scheme: &S) -> Result<Outcome> {
        let wire = self.endpoint.wire_meter();
        let mut net = Metered::new(self.endpoint.join(self.me, self.servers)?);
        let report = server::serve(scheme, self.job, self.key_shares, &mut net)?;
        Ok(Outcome { report, adversary: scheme.adversary(), wire_bytes: wire.sent() })
    }
}
