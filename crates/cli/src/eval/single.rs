//! One key, some blocks: the output and what it took.

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use polyclave_cipher::{AnyMap, CircuitCost, Direction, compile};
use serde::Serialize;

use super::Guarantee;
use super::evaluation::{Evaluation, Job, Outcome};
use super::parties::{Bill, Spent};
use super::target::Target;
use crate::options::{ProtocolOptions, hexadecimal};
use crate::say;

/// What was asked on the command line.
pub struct Question<'a> {
    pub cipher: &'a str,
    pub key: &'a str,
    pub input: Option<&'a str>,
    pub tweak: Option<&'a str>,
    pub decrypt: bool,
    pub key_schedule: bool,
}

/// What came of it.
pub struct Answer {
    cipher: String,
    direction: &'static str,
    blocks: usize,
    outcome: Outcome,
    circuit: CircuitCost,
}

impl Question<'_> {
    /// Runs all parties.
    pub fn ask(&self, protocol: &ProtocolOptions) -> Result<Answer> {
        let target = Target::named(self.cipher)?;
        let name = target.name.clone();
        ensure!(self.tweak.is_none(), "{name} takes no tweak; leave out --tweak");
        let key = hexadecimal("--key", self.key)?;
        target.check_key(&key)?;
        let (direction, passes) = match target.round_keys {
            true => {
                ensure!(self.input.is_none(), "{name} makes round keys from the key; leave out --input");
                ensure!(!self.decrypt, "{name} runs one way only; leave out --decrypt");
                ensure!(!self.key_schedule, "{name} is the key schedule; leave out --key-schedule");
                ("key schedule", Vec::new())
            }
            false => {
                let block = target.cipher.block_bytes;
                let input = self.input.with_context(|| {
                    format!("{name} needs --input: one or more blocks of {block} bytes in hex")
                })?;
                let input = hexadecimal("--input", input)?;
                target.check_blocks("--input", &input)?;
                let direction = if self.decrypt { Direction::Decrypt } else { Direction::Encrypt };
                ensure!(target.directions().contains(&direction), "{name} has no decryption");
                let shown = if self.decrypt { "decrypt" } else { "encrypt" };
                (shown, vec![(direction, input)])
            }
        };
        let blocks = passes.iter().map(|(_, input)| input.len() / target.cipher.block_bytes).sum();
        let jobs = [Job { key, passes }];
        let progress = ProgressBar::hidden();
        let evaluation =
            Evaluation { target: &target, key_schedule: self.key_schedule, jobs: &jobs, progress: &progress };
        let mut outcomes = protocol.run(evaluation)?.into_iter().flatten();
        let outcome = outcomes.next().context("the evaluation gave no output")?;
        let way = if self.decrypt { Direction::Decrypt } else { Direction::Encrypt };
        let circuit = target.circuit(way, self.key_schedule).context("the direction was checked")?;
        let circuit = CircuitCost::of(&compile(&circuit, &AnyMap));
        Ok(Answer { cipher: name, direction, blocks, outcome, circuit })
    }
}

/// One phase, as in the JSON document. The parties share this process's memory, so all bytes are payload.
#[derive(Serialize)]
struct Phase {
    rounds: u64,
    openings: u64,
    multiplications: u64,
    operations: u64,
    bytes: u64,
    payload_bytes: u64,
}

impl Phase {
    fn of(spent: Spent) -> Phase {
        Phase {
            rounds: spent.counts.rounds,
            openings: spent.counts.openings,
            multiplications: spent.counts.multiplications,
            operations: spent.counts.operations(),
            bytes: spent.payload_bytes,
            payload_bytes: spent.payload_bytes,
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    protocol: &'a str,
    adversary: &'a str,
    verified: bool,
    cipher: &'a str,
    direction: &'a str,
    blocks: usize,
    output: String,
    #[serde(flatten)]
    online: Phase,
    operations_per_block: f64,
    preprocessing: Phase,
    sharing_the_input: Phase,
    revealing_the_output: Phase,
}

impl Answer {
    /// Prints the output first, then what it took; or one JSON document.
    pub fn print(&self, guarantee: &Guarantee, json: bool) -> Result<()> {
        let Bill { preprocessing, input, online, output } = self.outcome.bill;
        let operations_per_block = online.counts.operations() as f64 / self.blocks.max(1) as f64;
        if json {
            let document = Document {
                protocol: guarantee.protocol,
                adversary: &guarantee.adversary,
                verified: guarantee.verified,
                cipher: &self.cipher,
                direction: self.direction,
                blocks: self.blocks,
                output: hex::encode(&self.outcome.output),
                online: Phase::of(online),
                operations_per_block,
                preprocessing: Phase::of(preprocessing),
                sharing_the_input: Phase::of(input),
                revealing_the_output: Phase::of(output),
            };
            say!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        say!("{}", hex::encode(&self.outcome.output));
        say!("");
        let blocks = match self.blocks {
            0 => String::new(),
            1 => ", 1 block".into(),
            n => format!(", {n} blocks"),
        };
        say!("{} {}{blocks}, under {}", self.cipher, self.direction, guarantee.protocol);
        if guarantee.protocol == "cleartext" {
            // Nothing is sent: what remains to be said is what the circuit holds for protocols.
            say!("{}", self.circuit);
            say!("{}", guarantee.line());
            return Ok(());
        }
        say!(
            "{:<22}{:>8}{:>17}{:>10}{:>12}{:>27}",
            "",
            "rounds",
            "multiplications",
            "openings",
            "operations",
            "bytes of the busiest party"
        );
        let parts = [
            ("evaluation", online),
            ("preprocessing", preprocessing),
            ("sharing the input", input),
            ("revealing the output", output),
        ];
        for (part, Spent { counts, payload_bytes }) in parts {
            let operations = counts.operations();
            let (rounds, products, openings) = (counts.rounds, counts.multiplications, counts.openings);
            say!("{part:<22}{rounds:>8}{products:>17}{openings:>10}{operations:>12}{payload_bytes:>27}");
        }
        let (triples, bits) = (preprocessing.counts.triples, preprocessing.counts.bits);
        if triples + bits > 0 {
            say!(
                "{triples} triples and {bits} random bits made; rounds and openings inside their making are not counted"
            );
        }
        if self.blocks > 1 {
            say!("{operations_per_block:.2} operations a block");
        }
        say!("{}", guarantee.line());
        Ok(())
    }
}
