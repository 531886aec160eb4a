//! One cipher under one protocol for any number of keys and blocks, in one session.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use polyclave_cipher::{
    AnyMap, Cells, Compiled, CompiledPort, Direction, Maps, cleartext, compile, compile_with_views,
};
use polyclave_protocol::Party;
use polyclave_protocol::any::{AnyProtocolConfig, AnyShared};
use polyclave_protocol::protocol::ProtocolConfig;

use super::parties::{Bill, Seat, Spent, entrance, entrance_of_all, in_session, only};
use super::target::Target;
use crate::options::Evaluator;

/// Which party gives what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owners {
    /// The key.
    pub key: Party,
    /// All blocks.
    pub blocks: Party,
    /// All tweaks.
    pub tweaks: Party,
}

/// What to compute under one key. Sizes have been checked ([`Target::check_key`], [`Target::check_blocks`],
/// [`Target::tweaks`]).
pub struct Job {
    /// Empty for a permutation. If another party gives the key, any bytes of the same length.
    pub key: Vec<u8>,
    /// Empty if the round keys are the output.
    pub passes: Vec<Pass>,
}

/// Blocks that are all encrypted or all decrypted.
pub struct Pass {
    /// The direction.
    pub direction: Direction,
    /// The input.
    pub blocks: Vec<u8>,
    /// One tweak for each block; empty if the cipher takes none.
    pub tweaks: Vec<u8>,
}

impl Pass {
    /// The inputs of a circuit that differ from block to block.
    fn inputs(&self, circuit: &DirectionCircuits) -> Result<Vec<Cells>> {
        circuit.own_ports().iter().zip([&self.blocks, &self.tweaks]).map(|(p, x)| cells(p, x)).collect()
    }
}

impl Owners {
    /// The first party gives the key, the last one everything else.
    fn first_and_last(parties: usize) -> Owners {
        let last = Party((parties - 1) as u8);
        Owners { key: Party(0), blocks: last, tweaks: last }
    }
}

/// The result of one pass, or of the key schedule if that is the target.
pub struct Outcome {
    /// The output blocks.
    pub output: Vec<u8>,
    /// The cost.
    pub bill: Bill,
}

/// Jobs of one target. The outcomes are by job, then by pass.
pub struct Evaluation<'a> {
    /// What is computed.
    pub target: &'a Target,
    /// Whether each pass evaluates the key schedule together with the cipher.
    pub key_schedule: bool,
    /// The keys, and the blocks of each.
    pub jobs: &'a [Job],
    /// Advances by one for every block done.
    pub progress: &'a ProgressBar,
}

impl Evaluation<'_> {
    /// Does all jobs. Returns the outcomes of each, one for each pass.
    pub fn run(&self, evaluator: &Evaluator) -> Result<Vec<Vec<Outcome>>> {
        match evaluator {
            Evaluator::Cleartext => {
                let circuits = Circuits::compile(self, &AnyMap);
                self.jobs.iter().map(|job| self.job_in_the_clear(&circuits, job)).collect()
            }
            Evaluator::Protocol(config) => self.under(config),
        }
    }

    fn under(&self, config: &AnyProtocolConfig) -> Result<Vec<Vec<Outcome>>> {
        let circuits = OnceLock::new();
        let owners = Owners::first_and_last(config.parties());
        let all = in_session(config, self.subject().as_bytes(), |seat| {
            // The first party that comes compiles for all of them.
            let circuits = circuits.get_or_init(|| Circuits::compile(self, seat.protocol()));
            self.jobs.iter().map(|job| self.job(circuits, job, &owners, seat)).collect()
        })?;
        busiest(all)
    }

    /// Does all jobs as one party.
    pub fn at(&self, seat: &mut Seat, owners: &Owners) -> polyclave_protocol::Result<Vec<Vec<Outcome>>> {
        let circuits = Circuits::compile(self, seat.protocol());
        self.jobs.iter().map(|job| self.job(&circuits, job, owners, seat)).collect()
    }

    /// What the parties must agree to evaluate.
    pub fn subject(&self) -> String {
        format!("{} {:?} {:?}", self.target.name, self.target.form, self.key_schedule)
    }

    fn job_in_the_clear(&self, circuits: &Circuits, job: &Job) -> Result<Vec<Outcome>> {
        let outcome = |output: Vec<Cells>| -> Result<Outcome> {
            let output = output.first().context("a circuit without outputs")?.to_blocks();
            Ok(Outcome { output, bill: Bill::default() })
        };
        let mut key = match &circuits.key {
            Some(entrance) => Some(cells(&entrance.inputs()[0], &job.key)?),
            None => None,
        };
        if let Some(key_schedule) = &circuits.key_schedule {
            let round_keys = cleartext::run(key_schedule, 1, &Vec::from_iter(key))?;
            if self.target.round_keys {
                self.progress.inc(1);
                return Ok(vec![outcome(round_keys)?]);
            }
            key = Some(round_keys.into_iter().next().context("a key schedule without outputs")?);
        }
        let pass = |pass: &Pass| {
            let circuit = circuits.pass(pass.direction)?;
            let mut inputs = pass.inputs(circuit)?;
            let lanes = inputs[0].lanes();
            inputs.extend(key.clone());
            let output = cleartext::run(&circuit.cipher, lanes, &inputs)?;
            self.progress.inc(lanes as u64);
            outcome(output)
        };
        job.passes.iter().map(pass).collect()
    }

    fn job(
        &self,
        circuits: &Circuits,
        job: &Job,
        owners: &Owners,
        seat: &mut Seat,
    ) -> polyclave_protocol::Result<Vec<Outcome>> {
        let misuse = |e: anyhow::Error| polyclave_protocol::Error::misuse(format!("{e:#}"));
        let (mut key, mut key_input) = (None, Spent::default());
        if let Some(entrance) = &circuits.key {
            let cells = cells(&entrance.inputs()[0], &job.key).map_err(misuse)?;
            let (shared, spent) = seat.share(entrance, owners.key, &cells)?;
            (key, key_input) = (Some(shared), spent);
        }
        if let Some(key_schedule) = &circuits.key_schedule {
            let (round_keys, mut bill) = seat.evaluate(key_schedule, 1, &Vec::from_iter(&key))?;
            let round_keys = only(round_keys)?;
            if self.target.round_keys {
                bill.input = key_input;
                return Ok(vec![self.reveal(seat, &round_keys, bill)?]);
            }
            key = Some(round_keys);
        }
        let mut outcomes = Vec::with_capacity(job.passes.len());
        for pass in &job.passes {
            let circuit = circuits.pass(pass.direction).map_err(misuse)?;
            let own = pass.inputs(circuit).map_err(misuse)?;
            let given: Vec<(Party, &Cells)> = [owners.blocks, owners.tweaks].into_iter().zip(&own).collect();
            let (shared, own_input) = seat.share_all(&circuit.entrance, &given)?;
            let inputs: Vec<&AnyShared> = shared.iter().chain(&key).collect();
            let (outputs, mut bill) = seat.evaluate(&circuit.cipher, own[0].lanes(), &inputs)?;
            bill.input = key_input + own_input;
            outcomes.push(self.reveal(seat, &only(outputs)?, bill)?);
        }
        Ok(outcomes)
    }

    fn reveal(
        &self,
        seat: &mut Seat,
        shared: &AnyShared,
        mut bill: Bill,
    ) -> polyclave_protocol::Result<Outcome> {
        let cells = seat.reveal(shared, &mut bill)?;
        if seat.is_first() {
            self.progress.inc(cells.lanes() as u64);
        }
        Ok(Outcome { output: cells.to_blocks(), bill })
    }
}

/// The circuits of an evaluation, compiled once for all jobs.
struct Circuits {
    /// The circuit through which the key enters; a permutation has none.
    key: Option<Compiled>,
    /// Runs once for every key, unless the cipher's own circuit contains it.
    key_schedule: Option<Compiled>,
    passes: Vec<DirectionCircuits>,
}

/// The circuits of one direction.
struct DirectionCircuits {
    direction: Direction,
    /// The circuit through which blocks and tweaks enter.
    entrance: Compiled,
    /// From blocks, tweaks and key, or round keys, to blocks.
    cipher: Compiled,
}

impl DirectionCircuits {
    /// The ports of blocks and tweaks, which come before that of the key.
    fn own_ports(&self) -> &[CompiledPort] {
        own_ports(&self.cipher)
    }
}

fn own_ports(cipher: &Compiled) -> &[CompiledPort] {
    let own = cipher.inputs().iter().take_while(|port| !port.uniform).count();
    &cipher.inputs()[..own]
}

impl Circuits {
    /// Shares the key and compiles the key schedule, with the views that the circuits after it start from.
    fn compile(evaluation: &Evaluation<'_>, maps: &impl Maps) -> Circuits {
        let cipher = &evaluation.target.cipher;
        let mut directions: Vec<Direction> = Vec::new();
        for pass in evaluation.jobs.iter().flat_map(|job| &job.passes) {
            if !directions.contains(&pass.direction) {
                directions.push(pass.direction);
            }
        }
        let pass = |direction: Direction| {
            let compiled = match evaluation.key_schedule {
                true => compile(&cipher.circuit_with_key_schedule(direction)?, maps),
                false => compile(&*cipher.circuit(direction)?, maps),
            };
            let entrance = entrance_of_all(own_ports(&compiled), maps);
            Some(DirectionCircuits { direction, entrance, cipher: compiled })
        };
        let passes: Vec<DirectionCircuits> = directions.into_iter().filter_map(pass).collect();
        let inputs = passes.iter().flat_map(|pass| pass.cipher.inputs());
        let key_ports: Vec<&CompiledPort> = inputs.filter(|port| port.uniform).collect();
        let has_key = cipher.key_bytes > 0;
        let apart = has_key && (evaluation.target.round_keys || !evaluation.key_schedule);
        let key_schedule = apart.then(|| {
            let views = |_: &polyclave_cipher::Port| key_ports.iter().flat_map(|p| p.views()).collect();
            compile_with_views(&cipher.key_schedule, maps, views)
        });
        let key = match &key_schedule {
            Some(key_schedule) => Some(entrance(&[&key_schedule.inputs()[0]], maps)),
            None => has_key.then(|| entrance(&key_ports, maps)),
        };
        Circuits { key, key_schedule, passes }
    }

    fn pass(&self, direction: Direction) -> Result<&DirectionCircuits> {
        self.passes.iter().find(|p| p.direction == direction).context("the cipher does not run this way")
    }
}

fn cells(port: &CompiledPort, blocks: &[u8]) -> Result<Cells> {
    Ok(Cells::from_blocks(port.cells.len(), port.bits, blocks)?)
}

/// Checks that all parties have learned the same outcomes, and returns them once.
fn busiest(all: Vec<Vec<Vec<Outcome>>>) -> Result<Vec<Vec<Outcome>>> {
    let mut parties = all.into_iter();
    let mut first = parties.next().context("there are no parties")?;
    for other in parties {
        for (a, b) in first.iter_mut().flatten().zip(other.iter().flatten()) {
            anyhow::ensure!(a.output == b.output, "the parties learned different outputs");
            a.bill = a.bill.busiest(b.bill);
        }
    }
    Ok(first)
}
