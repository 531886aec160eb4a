//! Starts the party processes of a command and supervises them until they end.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::BenchJob;
use super::job::{Address, Event, Start};
use crate::options::ProtocolOptions;

/// How long to wait, after a first failure, for the messages of the other parties.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The time limit for making a key and listening.
const START: Duration = Duration::from_secs(30);

/// The parameters for starting parties.
pub struct Launch<'a> {
    /// The protocol.
    pub protocol: &'a ProtocolOptions,
    /// The network to imitate.
    pub network: &'a str,
    /// Seconds that a silent peer is waited for.
    pub timeout_s: u64,
    /// The job of the parties.
    pub job: BenchJob,
}

/// Running party processes; killed on drop.
struct Parties {
    children: Vec<Child>,
    inputs: Vec<ChildStdin>,
    events: Receiver<(usize, Option<Event>)>,
}

/// Runs all parties to their end. `progress` receives that of party 1. Returns their reports, in order.
pub fn run<R: serde::de::DeserializeOwned>(
    launch: &Launch<'_>,
    mut progress: impl FnMut(u64),
) -> Result<Vec<R>> {
    let mut parties = Parties::start(launch)?;
    let count = parties.children.len();
    let mut reports: Vec<Option<R>> = (0..count).map(|_| None).collect();
    let patience = Duration::from_secs(launch.timeout_s) + LAST_WORDS;
    let mut heard = vec![Instant::now(); count];
    while reports.iter().any(Option::is_none) {
        let unfinished = (0..count).filter(|p| reports[*p].is_none());
        let (since, quietest) = unfinished.map(|p| (heard[p], p)).min().context("there is no party")?;
        let left = (since + patience).saturating_duration_since(Instant::now());
        let Ok((party, event)) = parties.events.recv_timeout(left) else {
            // Its peers time out earlier. This is for a party that nobody waits for, or if all stopped at
            // once.
            bail!(
                "party {} shows no sign of life for {patience:?}; see whether it was stopped",
                quietest + 1
            );
        };
        heard[party] = Instant::now();
        match event {
            Some(Event::Progress(done)) if party == 0 => progress(done),
            Some(Event::Report(report)) => {
                reports[party] = Some(serde_json::from_value(report).context("a report of another shape")?);
            }
            failed @ Some(Event::Failed { .. }) => return Err(parties.failure(party, failed)),
            None if reports[party].is_none() => return Err(parties.failure(party, None)),
            _ => {}
        }
    }
    Ok(reports.into_iter().flatten().collect())
}

impl Parties {
    fn start(launch: &Launch<'_>) -> Result<Parties> {
        let program = std::env::current_exe().context("cannot find this program to start parties with")?;
        let (sender, events) = channel();
        let mut parties = Parties { children: Vec::new(), inputs: Vec::new(), events };
        for me in 0..launch.protocol.parties() {
            let mut child = Command::new(&program)
                .arg("bench-party")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .context("cannot start a party process")?;
            let (input, output) = (child.stdin.take(), child.stdout.take());
            parties.children.push(child);
            let (input, output) = input.zip(output).context("a party process has no pipes")?;
            parties.inputs.push(input);
            listen(me, BufReader::new(output), sender.clone());
            let start = Start {
                me: me as u8,
                protocol: launch.protocol.clone(),
                network: launch.network.into(),
                timeout_s: launch.timeout_s,
                job: launch.job.clone(),
            };
            parties.tell(me, &start)?;
        }
        let addresses = parties.addresses()?;
        (0..parties.children.len()).try_for_each(|p| parties.tell(p, &addresses))?;
        Ok(parties)
    }

    fn tell(&mut self, party: usize, message: &impl serde::Serialize) -> Result<()> {
        let line = serde_json::to_string(message)?;
        let text = writeln!(self.inputs[party], "{line}");
        text.map_err(|_| self.failure(party, None))
    }

    fn addresses(&mut self) -> Result<Vec<Address>> {
        let mut addresses: Vec<Option<Address>> = self.children.iter().map(|_| None).collect();
        let deadline = Instant::now() + START;
        while addresses.iter().any(Option::is_none) {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok((party, Some(Event::Ready(address)))) => addresses[party] = Some(address),
                Ok((_, Some(Event::Alive))) => {}
                Ok((party, event)) => return Err(self.failure(party, event)),
                Err(_) => bail!("a party did not start within {START:?}"),
            }
        }
        Ok(addresses.into_iter().flatten().collect())
    }

    /// Finds the cause of the first failure: when a process dies its peers complain too, perhaps earlier.
    fn failure(&mut self, first: usize, event: Option<Event>) -> anyhow::Error {
        let deadline = Instant::now() + LAST_WORDS;
        let mut ended = vec![false; self.children.len()];
        let mut message: Vec<(usize, String, bool)> = Vec::new();
        let mut next = Some((first, event));
        while let Some((party, event)) = next {
            match event {
                Some(Event::Failed { error, by_peer }) => message.push((party, error, by_peer)),
                Some(_) => {}
                None => ended[party] = true,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            next = if ended.contains(&false) { self.events.recv_timeout(left).ok() } else { None };
        }
        message.sort_by_key(|(_, _, by_peer)| *by_peer);
        let silent = self.children.iter_mut().enumerate().find_map(|(p, child)| {
            let status = child.try_wait().ok().flatten()?;
            let explained = message.iter().any(|(party, ..)| *party == p) || status.success();
            (!explained).then(|| anyhow!("party {} ended without a word ({status})", p + 1))
        });
        let message = message.into_iter().next().map(|(p, error, by_peer)| match by_peer {
            true => anyhow!("{error} (seen by party {})", p + 1),
            false => anyhow!("party {}: {error}", p + 1),
        });
        silent.or(message).unwrap_or_else(|| anyhow!("party {} ended without a word", first + 1))
    }
}

/// Passes on the lines of a party; `None` at their end.
fn listen(party: usize, output: impl BufRead + Send + 'static, events: Sender<(usize, Option<Event>)>) {
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            if let Ok(event) = serde_json::from_str(&line)
                && events.send((party, Some(event))).is_err()
            {
                return;
            }
        }
        let _ = events.send((party, None));
    });
}

impl Drop for Parties {
    fn drop(&mut self) {
        // Closed pipes end the parties; killing them makes this immediate.
        self.inputs.clear();
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
