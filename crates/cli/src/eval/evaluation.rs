//! One cipher under one protocol for any number of keys and blocks, in one session.

use std::sync::OnceLock;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use polyclave_cipher::{
    AnyMap, Cells, Compiled, CompiledPort, Direction, Maps, cleartext, compile, compile_with_views,
};
use polyclave_protocol::Party;
use polyclave_protocol::protocol::{Protocol, Scheme};

use super::parties::{Bill, Seat, entrance, in_session, only};
use super::target::Target;
use crate::options::Task;

/// What to compute under one key. Sizes have been checked ([`Target::check_key`], [`Target::check_blocks`]).
pub struct Job {
    /// Given by the first party.
    pub key: Vec<u8>,
    /// Blocks given by the last party, and which way they go. None for round keys.
    pub passes: Vec<(Direction, Vec<u8>)>,
}

/// What came of one pass, or of the key schedule if that is the target.
pub struct Outcome {
    /// The output blocks.
    pub output: Vec<u8>,
    /// What it took.
    pub bill: Bill,
}

/// Jobs of one target. The outcomes are by job, then by pass.
pub struct Evaluation<'a> {
    /// What is computed.
    pub target: &'a Target,
    /// Whether each pass evaluates the key schedule along with the cipher.
    pub key_schedule: bool,
    /// Under which keys, on which blocks.
    pub jobs: &'a [Job],
    /// Moves on by one for every block done.
    pub progress: &'a ProgressBar,
}

impl Task for Evaluation<'_> {
    type Output = Vec<Vec<Outcome>>;

    fn cleartext(self) -> Result<Self::Output> {
        let circuits = Circuits::compile(&self, &AnyMap);
        self.jobs.iter().map(|job| self.job_in_the_clear(&circuits, job)).collect()
    }

    fn under<S: Scheme>(self, scheme: &S) -> Result<Self::Output> {
        let circuits = OnceLock::new();
        let last = Party((scheme.parties() - 1) as u8);
        let subject = format!("{} {:?} {:?}", self.target.name, self.target.form, self.key_schedule);
        let all = in_session(scheme, subject.as_bytes(), |seat| {
            // Whichever party comes first compiles for all of them.
            let circuits = circuits.get_or_init(|| Circuits::compile(&self, seat.protocol()));
            self.jobs.iter().map(|job| self.job(circuits, job, last, seat)).collect()
        })?;
        busiest(all)
    }
}

impl Evaluation<'_> {
    fn job_in_the_clear(&self, circuits: &Circuits, job: &Job) -> Result<Vec<Outcome>> {
        let outcome = |output: Vec<Cells>| -> Result<Outcome> {
            let output = output.first().context("a circuit without outputs")?.to_blocks();
            Ok(Outcome { output, bill: Bill::default() })
        };
        let mut key = cells(&circuits.key.inputs()[0], &job.key)?;
        if let Some(key_schedule) = &circuits.key_schedule {
            let round_keys = cleartext::run(key_schedule, 1, &[key])?;
            if self.target.round_keys {
                self.progress.inc(1);
                return Ok(vec![outcome(round_keys)?]);
            }
            key = round_keys.into_iter().next().context("a key schedule without outputs")?;
        }
        let pass = |(direction, blocks): &(Direction, Vec<u8>)| {
            let circuit = circuits.pass(*direction)?;
            let blocks = cells(&circuit.cipher.inputs()[0], blocks)?;
            let lanes = blocks.lanes();
            let output = cleartext::run(&circuit.cipher, lanes, &[blocks, key.clone()])?;
            self.progress.inc(lanes as u64);
            outcome(output)
        };
        job.passes.iter().map(pass).collect()
    }

    fn job<P: Protocol>(
        &self,
        circuits: &Circuits,
        job: &Job,
        last: Party,
        seat: &mut Seat<P>,
    ) -> polyclave_protocol::Result<Vec<Outcome>> {
        let misuse = |e: anyhow::Error| polyclave_protocol::Error::misuse(format!("{e:#}"));
        let key = cells(&circuits.key.inputs()[0], &job.key).map_err(misuse)?;
        let (mut key, key_input) = seat.share(&circuits.key, Party(0), &key)?;
        if let Some(key_schedule) = &circuits.key_schedule {
            let (round_keys, mut bill) = seat.evaluate(key_schedule, 1, &[&key])?;
            key = only(round_keys)?;
            if self.target.round_keys {
                bill.input = key_input;
                return Ok(vec![self.reveal(seat, &key, bill)?]);
            }
        }
        let mut outcomes = Vec::with_capacity(job.passes.len());
        for (direction, blocks) in &job.passes {
            let circuit = circuits.pass(*direction).map_err(misuse)?;
            let blocks = cells(&circuit.cipher.inputs()[0], blocks).map_err(misuse)?;
            let (block, block_input) = seat.share(&circuit.block, last, &blocks)?;
            let (outputs, mut bill) = seat.evaluate(&circuit.cipher, blocks.lanes(), &[&block, &key])?;
            bill.input = key_input + block_input;
            outcomes.push(self.reveal(seat, &only(outputs)?, bill)?);
        }
        Ok(outcomes)
    }

    fn reveal<P: Protocol>(
        &self,
        seat: &mut Seat<P>,
        shared: &P::Shared,
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
    /// Where the key enters.
    key: Compiled,
    /// Runs once for every key, unless the cipher's own circuit holds it.
    key_schedule: Option<Compiled>,
    passes: Vec<Pass>,
}

/// The circuits of one direction.
struct Pass {
    direction: Direction,
    /// Where the blocks enter.
    block: Compiled,
    /// From blocks and key, or round keys.
    cipher: Compiled,
}

impl Circuits {
    /// The key is shared, and the key schedule compiled, with the views that the circuits after it start from.
    fn compile(evaluation: &Evaluation<'_>, maps: &impl Maps) -> Circuits {
        let cipher = &evaluation.target.cipher;
        let mut directions: Vec<Direction> = Vec::new();
        for (direction, _) in evaluation.jobs.iter().flat_map(|job| &job.passes) {
            if !directions.contains(direction) {
                directions.push(*direction);
            }
        }
        let pass = |direction: Direction| {
            let compiled = match evaluation.key_schedule {
                true => compile(&cipher.circuit_with_key_schedule(direction)?, maps),
                false => compile(&*cipher.circuit(direction)?, maps),
            };
            Some(Pass { direction, block: entrance(&[&compiled.inputs()[0]], maps), cipher: compiled })
        };
        let passes: Vec<Pass> = directions.into_iter().filter_map(pass).collect();
        let key_ports: Vec<&CompiledPort> = passes.iter().map(|pass| &pass.cipher.inputs()[1]).collect();
        let apart = evaluation.target.round_keys || !evaluation.key_schedule;
        let key_schedule = apart.then(|| {
            let views = |_: &polyclave_cipher::Port| key_ports.iter().flat_map(|p| p.views()).collect();
            compile_with_views(&cipher.key_schedule, maps, views)
        });
        let key = match &key_schedule {
            Some(key_schedule) => entrance(&[&key_schedule.inputs()[0]], maps),
            None => entrance(&key_ports, maps),
        };
        Circuits { key, key_schedule, passes }
    }

    fn pass(&self, direction: Direction) -> Result<&Pass> {
        self.passes.iter().find(|p| p.direction == direction).context("the cipher does not run this way")
    }
}

fn cells(port: &CompiledPort, blocks: &[u8]) -> Result<Cells> {
    Ok(Cells::from_blocks(port.cells.len(), port.bits, blocks)?)
}

/// One list of outcomes from those of all parties, who must have learned the same.
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
