//! Evaluates one key with some blocks, and reports the output and its cost.

use anyhow::{Context, Result, bail, ensure};
use indicatif::ProgressBar;
use polyclave_cipher::{AnyMap, CircuitCost, Direction, compile};
use serde::Serialize;

use super::Guarantee;
use super::bill::{self, Phases};
use super::evaluation::{Evaluation, Job, Outcome, Pass};
use super::target::Target;
use crate::circuits::Form;
use crate::options::{ProtocolOptions, hexadecimal};
use crate::say;

/// The request on the command line.
pub struct Question<'a> {
    pub cipher: &'a str,
    pub form: Form,
    pub key: &'a str,
    pub inputs: &'a [String],
    pub tweak: Option<&'a str>,
    pub decrypt: bool,
    pub key_schedule: bool,
}

/// The outcome.
pub struct Answer {
    result: Evaluated,
    circuit: CircuitCost,
}

/// What was evaluated, and the outcome.
pub struct Evaluated {
    /// The name of the cipher.
    pub cipher: String,
    /// How it was evaluated.
    pub form: Form,
    /// The direction, as shown.
    pub direction: &'static str,
    /// Number of blocks.
    pub blocks: usize,
    /// The output, and its cost.
    pub outcome: Outcome,
}

impl Question<'_> {
    /// Runs all parties.
    pub fn ask(&self, protocol: &ProtocolOptions) -> Result<Answer> {
        let target = Target::named(self.cipher, self.form)?;
        let name = target.name.clone();
        let takes_tweak = !target.round_keys && target.cipher.tweak_bytes > 0;
        ensure!(takes_tweak || self.tweak.is_none(), "{name} takes no tweak; leave out --tweak");
        let key = hexadecimal("--key", self.key)?;
        target.check_key(&key)?;
        let (direction, passes) = match target.round_keys {
            true => {
                ensure!(self.inputs.is_empty(), "{name} makes round keys from the key; leave out --input");
                ensure!(!self.decrypt, "{name} runs one way only; leave out --decrypt");
                ensure!(!self.key_schedule, "{name} is the key schedule; leave out --key-schedule");
                ("key schedule", Vec::new())
            }
            false => {
                let block = target.cipher.block_bytes;
                let input = match self.inputs {
                    [input] => hexadecimal("--input", input)?,
                    [] => bail!("{name} needs --input: one or more blocks of {block} bytes in hex"),
                    _ => bail!("{name} takes one --input; write several blocks one after another in it"),
                };
                target.check_blocks("--input", &input)?;
                let direction = if self.decrypt { Direction::Decrypt } else { Direction::Encrypt };
                ensure!(target.directions().contains(&direction), "{name} has no decryption");
                let shown = if self.decrypt { "decrypt" } else { "encrypt" };
                let tweak = match self.tweak {
                    Some(tweak) => hexadecimal("--tweak", tweak)?,
                    None if takes_tweak => {
                        bail!("{name} needs --tweak: {} bytes in hex", target.cipher.tweak_bytes)
                    }
                    None => Vec::new(),
                };
                let tweaks = target.tweaks("--tweak", &tweak, input.len() / block)?;
                (shown, vec![Pass { direction, blocks: input, tweaks }])
            }
        };
        let blocks = passes.iter().map(|pass| pass.blocks.len() / target.cipher.block_bytes).sum();
        let jobs = [Job { key, passes }];
        let progress = ProgressBar::hidden();
        let evaluation =
            Evaluation { target: &target, key_schedule: self.key_schedule, jobs: &jobs, progress: &progress };
        let mut outcomes = evaluation.run(&protocol.evaluator()?)?.into_iter().flatten();
        let outcome = outcomes.next().context("the evaluation gave no output")?;
        let way = if self.decrypt { Direction::Decrypt } else { Direction::Encrypt };
        let circuit = target.circuit(way, self.key_schedule).context("the direction was checked")?;
        let circuit = CircuitCost::of(&compile(&circuit, &AnyMap));
        let result = Evaluated { cipher: name, form: self.form, direction, blocks, outcome };
        Ok(Answer { result, circuit })
    }
}

/// The JSON document.
#[derive(Serialize)]
pub struct Document<'a> {
    protocol: &'a str,
    adversary: &'a str,
    verified: bool,
    cipher: &'a str,
    circuit: Form,
    direction: &'a str,
    blocks: usize,
    output: String,
    operations_per_block: f64,
    #[serde(flatten)]
    phases: Phases,
}

impl Evaluated {
    /// The JSON document, with the cost by phases.
    pub fn document<'a>(&'a self, guarantee: &'a Guarantee, phases: Phases) -> Document<'a> {
        Document {
            protocol: guarantee.protocol,
            adversary: &guarantee.adversary,
            verified: guarantee.verified,
            cipher: &self.cipher,
            circuit: self.form,
            direction: self.direction,
            blocks: self.blocks,
            output: hex::encode(&self.outcome.output),
            operations_per_block: self.operations_per_block(),
            phases,
        }
    }

    /// Prints the output, and what was evaluated.
    pub fn print(&self, guarantee: &Guarantee) {
        say!("{}", hex::encode(&self.outcome.output));
        say!("");
        let blocks = match self.blocks {
            0 => String::new(),
            1 => ", 1 block".into(),
            n => format!(", {n} blocks"),
        };
        let form = if self.form == Form::Boolean { ", as a Boolean circuit" } else { "" };
        say!("{} {}{blocks}{form}, under {}", self.cipher, self.direction, guarantee.protocol);
    }

    fn operations_per_block(&self) -> f64 {
        self.outcome.bill.online.counts.operations() as f64 / self.blocks.max(1) as f64
    }
}

impl Answer {
    /// Prints the output first, then its cost; or one JSON document.
    pub fn print(&self, guarantee: &Guarantee, json: bool) -> Result<()> {
        let bill = self.result.outcome.bill;
        if json {
            let document = self.result.document(guarantee, Phases::of(bill));
            say!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        self.result.print(guarantee);
        if guarantee.protocol == "cleartext" {
            // Nothing is sent. What remains to be reported is the size of the circuit for protocols.
            say!("{}", self.circuit);
            say!("{}", guarantee.line());
            return Ok(());
        }
        bill::print(bill);
        if self.result.blocks > 1 {
            say!("{:.2} operations a block", self.result.operations_per_block());
        }
        say!("{}", guarantee.line());
        Ok(())
    }
}
