//! The parties of an example as processes of their own on this machine, joined by TLS over the loopback
//! interface.
//!
//! The program starts copies of itself with the hidden command [`PARTY`]; a copy calls [`party`]. Each makes
//! its own TLS key and says where it listens; it is told the others' certificates and its own orders, in
//! lines of JSON over its standard input. It ends when that ends, so it never outlives the program. All
//! examples use it; [`steps`] tells what the parts of a run took.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use polyclave_protocol::Party;
use polyclave_protocol::metered::{Meter, Metered};
use polyclave_protocol::net::Net;
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

pub mod steps;

/// The hidden command of a party.
pub const PARTY: &str = "party";
/// How long a party waits for another to move: material takes its time.
const IDLE: Duration = Duration::from_secs(120);
/// After a first failure, how long the others' words are waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The process that started this one is gone.
const ORPHANED: i32 = 3;

/// What one party is told.
#[derive(Serialize, Deserialize)]
struct Orders {
    me: u8,
    /// In JSON; they may hold secrets.
    orders: String,
    parties: Vec<Address>,
}

/// Where a party listens, and its certificate in hexadecimal.
#[derive(Clone, Serialize, Deserialize)]
struct Address {
    address: String,
    certificate: String,
}

/// A line from a party.
#[derive(Serialize, Deserialize)]
enum Event {
    Ready(Address),
    Done {
        /// In JSON.
        outcome: String,
        wire_bytes: u64,
    },
    Failed(String),
}

/// How it ended at one party.
#[derive(Debug)]
pub struct Ended<T> {
    /// What it told.
    pub outcome: T,
    /// What it sent to the others, TLS included.
    pub wire_bytes: u64,
}

/// Runs one party for each orders, to their end. If one fails, all do.
pub fn run<T: DeserializeOwned>(orders: &[impl Serialize]) -> Result<Vec<Ended<T>>> {
    let mut running = Running::start(orders.len())?;
    let parties = running.gather("ready", |event| match event {
        Event::Ready(address) => Some(address),
        _ => None,
    })?;
    for (me, orders) in (0..).zip(orders) {
        let mut message = Orders { me, orders: serde_json::to_string(orders)?, parties: parties.clone() };
        let line = Zeroizing::new(serde_json::to_string(&message)?);
        message.orders.zeroize();
        // If it is gone, its end is heard of below.
        let _ = writeln!(running.inputs[usize::from(me)], "{}", *line);
    }
    let done = running.gather("done", |event| match event {
        Event::Done { outcome, wire_bytes } => Some((outcome, wire_bytes)),
        _ => None,
    })?;
    done.into_iter()
        .map(|(outcome, wire_bytes)| Ok(Ended { outcome: serde_json::from_str(&outcome)?, wire_bytes }))
        .collect()
}

/// The process of one party: does its work, connected to all others. How it ends is told to the process that
/// started it.
pub fn party<O: DeserializeOwned, T: Serialize>(work: impl FnOnce(O, &mut dyn Net, &Meter) -> Result<T>) {
    tell(&follow_orders(work).unwrap_or_else(|error| Event::Failed(format!("{error:#}"))));
}

fn follow_orders<O: DeserializeOwned, T: Serialize>(
    work: impl FnOnce(O, &mut dyn Net, &Meter) -> Result<T>,
) -> Result<Event> {
    let limits = Limits { idle: IDLE, ..Limits::default() };
    let endpoint = Endpoint::bind("127.0.0.1:0", Identity::generate()?, limits)?;
    let address = endpoint.local_addr().to_string();
    tell(&Event::Ready(Address { address, certificate: hex::encode(endpoint.certificate()) }));
    let mut line = Zeroizing::new(String::new());
    ensure!(std::io::stdin().read_line(&mut line)? > 0, "a party is started by this program only");
    let Orders { me, orders, parties } = serde_json::from_str(&line).context("these are no orders")?;
    let orders = Zeroizing::new(orders);
    let orders = serde_json::from_str(&orders).context("these are no orders")?;
    std::thread::spawn(end_with_standard_input);

    let parties = parties.into_iter().map(|party| {
        let certificate = hex::decode(&party.certificate).context("a certificate is not hexadecimal")?;
        Ok(PeerAddress { address: party.address, certificate: certificate.into() })
    });
    let parties = parties.collect::<Result<Vec<_>>>()?;
    let wire = endpoint.wire_meter();
    let mut net = Metered::new(endpoint.join(Party(me), &parties)?);
    let meter = net.meter();
    let outcome = serde_json::to_string(&work(orders, &mut net, &meter)?)?;
    Ok(Event::Done { outcome, wire_bytes: wire.sent() })
}

/// Running parties; killed on drop.
struct Running {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    events: Receiver<(usize, Option<Event>)>,
}

impl Running {
    fn start(parties: usize) -> Result<Running> {
        let program = std::env::current_exe().context("cannot find this program to start parties with")?;
        let (sender, events) = channel();
        let mut running = Running { children: Vec::new(), inputs: Vec::new(), events };
        for me in 0..parties {
            let mut command = Command::new(&program);
            command.arg(PARTY).stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().context("cannot start a party")?;
            let pipes = child.stdin.take().zip(child.stdout.take());
            running.children.push(child);
            let (input, output) = pipes.context("a party has no pipes")?;
            running.inputs.push(input);
            listen(me, BufReader::new(output), sender.clone());
        }
        Ok(running)
    }

    /// Waits for one event of each.
    fn gather<T>(&mut self, what: &str, wanted: impl Fn(Event) -> Option<T>) -> Result<Vec<T>> {
        let mut found: Vec<Option<T>> = self.children.iter().map(|_| None).collect();
        while found.iter().any(Option::is_none) {
            let (party, event) = self.events.recv().context("no party is heard of any more")?;
            match event {
                Some(Event::Failed(error)) => bail!(self.failure(party, error)),
                Some(event) => found[party] = Some(wanted(event).context("a party is out of step")?),
                None if found[party].is_none() => {
                    bail!(self.failure(party, format!("ended before it was {what}")))
                }
                None => {}
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// When one fails, the others complain, too, perhaps sooner: all are shown.
    fn failure(&self, party: usize, error: String) -> String {
        let mut message = vec![format!("node {}: {error}", party + 1)];
        while let Ok((party, event)) = self.events.recv_timeout(LAST_WORDS) {
            if let Some(Event::Failed(error)) = event {
                message.push(format!("node {}: {error}", party + 1));
            }
        }
        message.join("; ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Closed pipes end the parties; killing them does not wait for that.
        self.inputs.clear();
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Passes a party's lines on; `None` at their end.
fn listen(party: usize, output: impl BufRead + Send + 'static, events: Sender<(usize, Option<Event>)>) {
    std::thread::spawn(move || {
        for line in output.lines().map_while(std::io::Result::ok) {
            if let Ok(event) = serde_json::from_str(&line)
                && events.send((party, Some(event))).is_err()
            {
                return;
            }
        }
        let _ = events.send((party, None));
    });
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
