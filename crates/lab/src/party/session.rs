//! Seats a party of a hosts file in a session, and prints the outcome.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::metered::Metered;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::ProtocolConfig;
use polyclave_protocol::session::HandshakeParameters;
use serde::Serialize;

use crate::eval::Guarantee;
use crate::eval::bill::{self, Transfer};
use crate::eval::parties::{Bill, Seat, Spent, Stopwatch};
use crate::hosts::{Agreed, Needed, Place, Proposal};
use crate::options::ProtocolOptions;
use crate::say;

/// Where and how the parties meet.
pub struct Meeting<'a> {
    pub place: &'a Place,
    pub protocol: &'a ProtocolOptions,
    pub config: &'a AnyProtocolConfig,
    /// How long to wait for a silent party.
    pub idle: Duration,
    /// Whether only the result is printed.
    pub quiet: bool,
}

/// What a party is about to run, besides the protocol.
pub struct Subject<'a> {
    /// Names and values that must be equal at all parties.
    pub settings: Vec<(&'static str, String)>,
    /// What this party brings: names and bytes.
    pub brings: Vec<(String, usize)>,
    /// What all parties together have to bring.
    pub needed: Vec<Needed>,
    /// What is evaluated, as the hello round compares it.
    pub digested: &'a [u8],
}

/// A party in a session with others elsewhere.
pub struct Session {
    pub seat: Seat,
    /// Which party brings which input.
    pub agreed: Agreed,
    connecting: Spent,
    setup: Spent,
    since_connected: Stopwatch,
}

impl Meeting<'_> {
    /// Prints what the protocol promises, before anything is sent.
    pub fn announce(&self, guarantee: &Guarantee) {
        if !self.quiet {
            eprintln!("{}", guarantee.line());
        }
    }

    /// Connects with the others and agrees with them. `check` checks the size of each input before anything
    /// secret is used.
    pub fn open(&self, subject: &Subject<'_>, check: impl FnOnce(&Agreed) -> Result<()>) -> Result<Session> {
        let began = Instant::now();
        let (net, wire) = self.place.connect(self.idle, self.quiet)?;
        let connecting = Spent {
            socket_bytes: wire.sent(),
            socket_bytes_received: wire.received(),
            time: began.elapsed(),
            ..Spent::default()
        };
        let mut net = Metered::new(Box::new(net) as Box<dyn Net>);
        let watch = || Stopwatch::start(net.meter(), Some(wire.clone()));
        let (since_connected, setting_up) = (watch(), watch());
        let settings = self.protocol.settings()?.into_iter().chain(subject.settings.iter().cloned());
        let mut proposal = Proposal::new([("command", "party".to_owned())].into_iter().chain(settings));
        subject.brings.iter().for_each(|(name, bytes)| proposal.bring(name, *bytes));
        let agreed = proposal.agree(&subject.needed, &mut net)?;
        check(&agreed)?;
        let terms = self
            .config
            .handshake(HandshakeParameters::new(self.place.parties()))
            .with("circuits", subject.digested)
            .with("inputs", &agreed.digested());
        let seat = Seat::take(self.config, &terms, net, Some(wire))?;
        Ok(Session { seat, agreed, connecting, setup: setting_up.stop(), since_connected })
    }
}

/// The document of `eval`, with what only a single party knows.
#[derive(Serialize)]
struct Document<'a, A> {
    #[serde(flatten)]
    answer: A,
    party: usize,
    parties: usize,
    address: &'a str,
    /// Which party brought which input.
    inputs: BTreeMap<&'a str, usize>,
    /// Time spent waiting for the others, and in their TLS handshakes.
    connecting: Transfer,
    /// Time to agree on a session, and for the protocol's setup.
    setup: Transfer,
    /// Time of everything after the connections were made.
    total: Transfer,
}

impl Session {
    /// Prints the outcome, as `eval` does, with what this party knows in addition.
    pub fn print(
        self,
        place: &Place,
        bill: Bill,
        answer: impl Serialize,
        guarantee: &Guarantee,
        json: bool,
    ) -> Result<()> {
        let total = self.since_connected.stop();
        if json {
            let document = Document {
                answer,
                party: place.me().index() + 1,
                parties: place.parties(),
                address: place.address(),
                inputs: self.agreed.numbers(),
                connecting: Transfer::of(self.connecting),
                setup: Transfer::of(self.setup),
                total: Transfer::of(total),
            };
            say!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        let inputs: Vec<String> = self
            .agreed
            .numbers()
            .iter()
            .map(|(name, number)| format!("{name} from party {number}"))
            .collect();
        say!("{} of {}: {}", place.me(), place.parties(), inputs.join(", "));
        bill::print_at_one_party(bill);
        say!(
            "in all {} bytes sent and {} received in {:.3} s, of it {:.3} s of setup; before that {:.3} s until all had come",
            total.socket_bytes,
            total.socket_bytes_received,
            total.time.as_secs_f64(),
            self.setup.time.as_secs_f64(),
            self.connecting.time.as_secs_f64()
        );
        say!("{}", guarantee.line());
        Ok(())
    }
}
