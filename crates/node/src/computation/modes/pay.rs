//! Payment commands (the crate `payments`): each lane of one circuit is a command.
//!
//! # What is opened
//! Of each command the nodes open whether it holds: a random multiple of its check
//! ([`are_zero`](polyclave_protocol::service::ElementArithmetic::are_zero)). This is 0 if the command holds,
//! and uniform otherwise, so nothing else shows which of its conditions failed. The answers of the commands
//! that hold go to the client alone. No share of an answer leaves a node before its check was opened, and
//! shares of the others never do. PINs, PIN blocks, codes that were computed to be compared, and derived keys
//! stay shared.
//!
//! # Failures
//! A command that fails tells its client that a guess was wrong. So commands count as failed, durably, before
//! anything is computed (`requests/attempts.rs`). Those that hold are given back, and all of them if the
//! request ends before the check is opened.

use polyclave_api::{Refusal, Step};
use polyclave_cipher::Cells;
use polyclave_payments::{Command, Purpose};
use polyclave_protocol::Error;
use polyclave_protocol::any::AnyShared;
use polyclave_protocol::protocol::{Input, Session};
use polyclave_protocol::service::ServiceSession;
use polyclave_store::Attempts;

use super::{Answer, Mode, StepError, misplaced};
use crate::computation::Computation;
use crate::computation::payment_circuits::facts;
use crate::computation::pieces::evaluate_within;

/// Some commands, computed when the request begins.
pub(crate) struct Commands {
    commands: Vec<Command>,
    /// Of their keys, in order.
    purposes: Vec<Purpose>,
    /// Blocks that the first key pays.
    blocks: u64,
    /// Under each key that counts them, if they have a condition.
    attempted: Vec<Attempted>,
    asked: bool,
    /// The answers of the commands that hold.
    answers: Option<AnyShared>,
}

/// Commands that count as failed before they are computed.
pub(crate) struct Attempted {
    attempts: Attempts,
    /// As what each of them counts.
    each: u64,
}

impl Attempted {
    pub(crate) fn new(attempts: Attempts, each: u64) -> Attempted {
        Attempted { attempts, each }
    }

    /// It is about to be told whether they hold: from now on they have failed, except for those that succeed.
    fn begin(&mut self) {
        self.attempts.begin();
    }

    /// So many of them have succeeded.
    fn succeed(&mut self, succeeded: u64) {
        self.attempts.succeed(succeeded * self.each);
    }
}

/// The outcome of some commands.
struct Computed {
    holds: Vec<bool>,
    /// Of all commands.
    answers: Option<AnyShared>,
}

impl Commands {
    /// Of one circuit, which have passed their checks.
    pub(crate) fn new(
        commands: Vec<Command>,
        purposes: Vec<Purpose>,
        blocks: u64,
        attempted: Vec<Attempted>,
    ) -> Commands {
        Commands { commands, purposes, blocks, attempted, asked: false, answers: None }
    }

    fn compute(&mut self, at: &mut Computation<'_>) -> Result<Computed, Error> {
        let (lanes, library) = (self.commands.len(), at.library);
        let first = self.commands.first().ok_or_else(|| Error::misuse("no command"))?.payment();
        let of_keys: Vec<_> = [(at.circuits, at.key)].into_iter().chain(at.others.iter().copied()).collect();
        let ciphers: Vec<_> = of_keys.iter().map(|(circuits, _)| &circuits.cipher).collect();
        let facts = facts(&self.purposes, &ciphers);
        let circuit = library.payments.get(first, &facts, &at.protocol)?;
        let port = |name: &str| circuit.inputs().iter().find(|port| port.name == name);

        let public = match port("public") {
            Some(port) => {
                let bytes: Vec<u8> =
                    self.commands.iter().flat_map(|command| command.payment().public(&facts)).collect();
                let cells = Cells::from_blocks(port.cells.len(), port.bits, &bytes);
                Some(cells.map_err(|e| Error::misuse(e.to_string()))?)
            }
            None => None,
        };
        let random = match port("random") {
            Some(port) => {
                // A mask that masks nothing is a random value that nobody knows; this node's part of its
                // message to a client goes nowhere.
                let bytes = lanes * first.random_bytes();
                let (mask, _) = at.protocol.mask_input(bytes, at.net)?;
                Some(at.protocol.unmask(&mask, 0, &vec![0; bytes], port)?)
            }
            None => None,
        };
        let mut inputs: Vec<Input<'_, AnyShared>> =
            of_keys.iter().map(|(_, key)| Input::Shared(&key.round_keys)).collect();
        inputs.extend(public.as_ref().map(Input::Public));
        inputs.extend(random.as_ref().map(Input::Shared));
        let within = (at.memory, at.progress);
        let outputs = evaluate_within(&mut at.protocol, at.net, &circuit, lanes, &inputs, within)?;
        let mut outputs: Vec<_> =
            circuit.outputs().iter().map(|port| port.name.as_str()).zip(outputs).collect();
        let mut take = |name: &str| {
            let at = outputs.iter().position(|(output, _)| *output == name)?;
            Some(outputs.swap_remove(at).1)
        };
        let (check, answers) = (take("check"), take("answer"));
        let holds = match check {
            Some(check) => {
                let check = at.protocol.elements(&check, at.net)?;
                // Nothing was told so far. What ends before, such as for lack of material, has not failed.
                if self.attempted.is_empty() {
                    return Err(Error::misuse("a command with a condition that no key counts"));
                }
                self.attempted.iter_mut().for_each(Attempted::begin);
                at.protocol.arithmetic().are_zero(&check, at.net)?
            }
            None => vec![true; lanes],
        };
        Ok(Computed { holds, answers })
    }
}

impl Mode for Commands {
    fn blocks_at_start(&self) -> u64 {
        self.blocks
    }

    /// One byte for each command: 1 if it holds.
    fn start(&mut self, at: &mut Computation<'_>) -> Result<(Vec<u8>, Vec<u8>), StepError> {
        let Computed { holds, answers } = self.compute(at)?;
        let held: Vec<usize> = (0..holds.len()).filter(|i| holds[*i]).collect();
        self.attempted.iter_mut().for_each(|attempted| attempted.succeed(held.len() as u64));
        self.answers =
            answers.filter(|_| !held.is_empty()).map(|answers| at.protocol.select_lanes(&answers, &held));
        Ok((holds.into_iter().map(u8::from).collect(), Vec::new()))
    }

    fn admit(&mut self, step: &Step) -> Result<u64, Refusal> {
        if self.asked || *step != Step::Answers {
            return Err(misplaced(step));
        }
        self.asked = true;
        Ok(0)
    }

    fn run(&mut self, _: Step, at: &mut Computation<'_>) -> Result<Answer, StepError> {
        let data = match &self.answers {
            Some(answers) => at.protocol.reveal_to_client(answers, at.net)?,
            None => Vec::new(),
        };
        Ok(Answer::data(data))
    }
}
