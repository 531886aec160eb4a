//! One of the two servers, under any protocol between two parties.
//!
//! It has its shares of the devices' keys and all messages. Together with the other one it
//!
//! 1. expands the keys, a lane a device: no key is ever put together;
//! 2. decrypts, a lane a block, all devices at once: the readings stay shared;
//! 3. computes the statistics, in one lane with an input for each block, and
//! 4. opens these. That is the only thing that is opened to anybody.
//!
//! What the three evaluations use up is made before: it depends on how much comes, and not on what.

use std::collections::HashSet;
use std::time::Instant;

use polyclave_cipher::{Cells, Circuit, CompiledPort, compile};
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::metered::Meter;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::Tally;
use polyclave_protocol::{Error, Party, Result};
use serde::{Deserialize, Serialize};

use crate::circuits;
use crate::devices::Message;
use crate::encryption::{Encryption, KEY_BYTES, READING_BYTES};
use crate::statistics::{self, Statistics};

/// What both servers know, and compare before they begin.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    /// How the readings are encrypted.
    pub encryption: Encryption,
    /// Readings in each message.
    pub readings: usize,
    /// Readings larger than this are counted.
    pub threshold: u16,
    /// What the devices sent.
    pub messages: Vec<Message>,
}

/// What one server learned, and what that took.
#[derive(Serialize, Deserialize)]
pub struct Report {
    /// All that it learned.
    pub statistics: Statistics,
    /// Bits of shared values that were opened: those of the statistics.
    pub opened_bits: usize,
    /// In order.
    pub steps: Vec<Step>,
    /// What the protocol counted.
    pub tally: Tally,
}

/// A part of the session.
#[derive(Serialize, Deserialize)]
pub struct Step {
    /// What was done.
    pub name: String,
    /// How long it took.
    pub seconds: f64,
    /// Exchanges, one after another; not counted before the protocol has begun.
    pub rounds: Option<u64>,
    /// What this server sent, without TLS.
    pub payload_bytes: u64,
}

/// Runs one server's side.
pub fn serve(
    config: &AnyProtocolConfig,
    job: &Job,
    key_shares: &[u8],
    net: &mut dyn Net,
    meter: &Meter,
) -> Result<Report> {
    if !key_shares.len().is_multiple_of(KEY_BYTES) {
        let bytes = key_shares.len();
        return Err(Error::Misuse(format!("{bytes} bytes are no shares of keys of {KEY_BYTES} bytes each")));
    }
    let devices = key_shares.len() / KEY_BYTES;
    job.check(devices)?;
    let mut steps = Steps::new(meter);
    let said = serde_json::to_vec(job).map_err(|e| Error::System(format!("cannot write the job: {e}")))?;
    let terms = HandshakeParameters::new(net.parties())
        .with("number of devices", &devices.to_le_bytes())
        .with("job", &said);
    let mut session = hello(&config.handshake(terms), net)?;
    let setup = config.setup(net)?;
    let mut protocol = config.join(&setup, session.stream(), net.members())?;
    let blocks = job.messages.len() * job.blocks();
    let [round_keys, decryption, statistics] = job.circuits().map(|circuit| compile(&circuit, &protocol));
    steps.done("setup", None);

    let for_keys = prepare(&mut protocol, &round_keys, devices, net)?;
    let for_blocks = prepare(&mut protocol, &decryption, blocks, net)?;
    let for_statistics = prepare(&mut protocol, &statistics, 1, net)?;
    steps.done("material", Some(protocol.tally()));

    let share = cells(&round_keys.inputs()[0], key_shares)?;
    let inputs = [0, 1].map(Party).map(|owner| match owner == net.me() {
        true => Input::Mine(&share),
        false => Input::From(owner),
    });
    let keys = evaluate(&mut protocol, &round_keys, devices, &inputs, for_keys, net)?.remove(0);
    steps.done("keys", Some(protocol.tally()));

    let [counters, ciphertexts] = [job.counter_blocks(), job.ciphertext_blocks()];
    let counters = cells(&decryption.inputs()[0], &counters)?;
    let ciphertexts = cells(&decryption.inputs()[1], &ciphertexts)?;
    let keys = protocol.select_lanes(&keys, &job.device_of_each_block());
    let inputs = [Input::Public(&counters), Input::Public(&ciphertexts), Input::Shared(&keys)];
    let readings = evaluate(&mut protocol, &decryption, blocks, &inputs, for_blocks, net)?.remove(0);
    steps.done("decryption", Some(protocol.tally()));

    let readings: Vec<_> = (0..blocks).map(|block| protocol.select_lanes(&readings, &[block])).collect();
    let inputs: Vec<_> = readings.iter().map(Input::Shared).collect();
    let shared = evaluate(&mut protocol, &statistics, 1, &inputs, for_statistics, net)?.remove(0);
    steps.done("statistics", Some(protocol.tally()));

    let opened = release(&mut protocol, &shared, Owner::All, net)?;
    let opened = opened.ok_or_else(|| Error::misuse("an output for all did not come"))?.accept();
    steps.done("opening", Some(protocol.tally()));
    Ok(Report {
        statistics: Statistics::from_cells(&opened, job.messages.len() * job.readings),
        opened_bits: opened.count(),
        steps: steps.done,
        tally: protocol.tally(),
    })
}

impl Job {
    /// Keys to round keys, blocks to readings, readings to statistics.
    fn circuits(&self) -> [Circuit; 3] {
        let (messages, block_bits) = (self.messages.len(), 8 * self.encryption.block_bytes());
        [
            circuits::round_keys(self.encryption),
            circuits::decryption(self.encryption),
            statistics::circuit(messages, self.readings, block_bits, self.threshold),
        ]
    }

    /// Blocks of a message.
    fn blocks(&self) -> usize {
        self.encryption.blocks(self.readings)
    }

    /// Message after message.
    fn counter_blocks(&self) -> Vec<u8> {
        let messages = self.messages.iter().map(|message| message.number);
        let blocks =
            messages.flat_map(|message| (0..self.blocks() as u32).map(move |block| (message, block)));
        blocks.flat_map(|(message, block)| self.encryption.counter_block(message, block)).collect()
    }

    /// Message after message, the last block of each filled up: what comes of that is ignored.
    fn ciphertext_blocks(&self) -> Vec<u8> {
        let bytes = self.blocks() * self.encryption.block_bytes();
        let filled =
            |message: &Message| [&message.ciphertext[..], &vec![0; bytes]].concat()[..bytes].to_vec();
        self.messages.iter().flat_map(filled).collect()
    }

    fn device_of_each_block(&self) -> Vec<usize> {
        self.messages.iter().flat_map(|message| vec![message.device; self.blocks()]).collect()
    }

    /// Refuses messages that do not fit, and two of one number of a device: their keystreams would be the
    /// same.
    fn check(&self, devices: usize) -> Result<()> {
        if self.messages.is_empty() || self.readings == 0 {
            return Err(Error::misuse("there are no readings; statistics need one at least"));
        }
        let mut seen = HashSet::new();
        for Message { device, number, ciphertext } in &self.messages {
            let (given, expected) = (ciphertext.len(), self.readings * READING_BYTES);
            let named = format!("message {number} of device {device}");
            if *device >= devices {
                return Err(Error::Misuse(format!(
                    "{named}: there are key shares for {devices} devices only"
                )));
            }
            if given != expected {
                return Err(Error::Misuse(format!(
                    "{named} has {given} bytes; {} readings have {expected}",
                    self.readings
                )));
            }
            if !seen.insert((device, number)) {
                return Err(Error::Misuse(format!("{named} came twice; a device numbers its messages")));
            }
        }
        Ok(())
    }
}

fn cells(port: &CompiledPort, blocks: &[u8]) -> Result<Cells> {
    Cells::from_blocks(port.cells.len(), port.bits, blocks).map_err(|e| Error::misuse(e.to_string()))
}

/// Clock and counters, read between steps.
struct Steps<'a> {
    done: Vec<Step>,
    meter: &'a Meter,
    began: Instant,
    rounds: u64,
    sent: u64,
}

impl<'a> Steps<'a> {
    fn new(meter: &'a Meter) -> Self {
        let sent = meter.snapshot().payload_sent;
        Steps { done: Vec::new(), meter, began: Instant::now(), rounds: 0, sent }
    }

    fn done(&mut self, name: &str, tally: Option<Tally>) {
        let rounds =
            tally.map(|t| [t.preprocessing, t.input, t.online, t.output].iter().map(|c| c.rounds).sum());
        let (sent, now) = (self.meter.snapshot().payload_sent, Instant::now());
        self.done.push(Step {
            name: name.into(),
            seconds: (now - self.began).as_secs_f64(),
            rounds: rounds.map(|rounds: u64| rounds - self.rounds),
            payload_bytes: sent - self.sent,
        });
        (self.began, self.sent, self.rounds) = (now, sent, rounds.unwrap_or(0));
    }
}

#[cfg(test)]
mod tests;
