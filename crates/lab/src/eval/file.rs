//! `--circuit FILE`: a circuit in Bristol Fashion on one value for each of its inputs.

use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use polyclave_cipher::bristol::{self, BitOrder};
use polyclave_cipher::{AnyMap, Cells, Circuit, CircuitCost, Port, cleartext, compile};
use polyclave_protocol::Party;
use polyclave_protocol::any::AnyProtocolConfig;
use polyclave_protocol::protocol::ProtocolConfig;
use serde::Serialize;

use super::bill::{self, Phases};
use super::parties::{Bill, Seat, entrance_of_all, in_session};
use super::{Guarantee, values};
use crate::options::{Evaluator, ProtocolOptions};
use crate::say;

/// The largest circuit file that is read takes about this many bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The request on the command line.
pub struct Question<'a> {
    pub file: &'a Path,
    pub order: BitOrder,
    /// In hex, in the order of the file.
    pub inputs: &'a [String],
}

/// The outcome.
pub struct Answer<'a> {
    file: &'a Path,
    /// In hex, in the order of the file.
    outputs: Vec<String>,
    bill: Bill,
    circuit: CircuitCost,
}

impl<'a> Question<'a> {
    /// Runs all parties.
    pub fn ask(&self, protocol: &ProtocolOptions) -> Result<Answer<'a>> {
        let circuit = read(self.file, self.order)?;
        let (ports, given) = (circuit.inputs(), self.inputs.len());
        let sizes: Vec<String> = ports.iter().map(|port| port.cells.len().to_string()).collect();
        ensure!(
            given == ports.len(),
            "{} takes {} --input, of {} bits in this order; {given} given",
            self.file.display(),
            ports.len(),
            sizes.join(" and ")
        );
        let value = |(number, (port, text)): (usize, (&Port, &String))| {
            values::from_hex(&format!("--input number {number}"), text, port.cells.len())
        };
        let inputs = (1..).zip(ports.iter().zip(self.inputs)).map(value).collect::<Result<Vec<Cells>>>()?;
        let (outputs, bill) =
            Evaluation { circuit: &circuit, inputs: &inputs }.run(&protocol.evaluator()?)?;
        let outputs = outputs.iter().map(values::to_hex).collect();
        Ok(Answer { file: self.file, outputs, bill, circuit: CircuitCost::of(&compile(&circuit, &AnyMap)) })
    }
}

/// Reads a circuit from a file.
pub fn read(file: &Path, order: BitOrder) -> Result<Circuit> {
    let shown = file.display();
    let cannot = || format!("--circuit is neither tables nor boolean, and the file {shown} cannot be read");
    let metadata = std::fs::metadata(file).with_context(cannot)?;
    ensure!(metadata.is_file(), "{shown} is no regular file");
    ensure!(metadata.len() <= MAX_BYTES, "{shown} has {} bytes; the most is {MAX_BYTES}", metadata.len());
    let text = std::fs::read_to_string(file).with_context(cannot)?;
    let name = file.file_stem().map_or_else(|| "file".into(), |stem| stem.to_string_lossy());
    bristol::read(&name, &text, order, &[])
        .with_context(|| format!("{shown} is no circuit in Bristol Fashion"))
}

/// A circuit, and the circuit through which its inputs enter.
pub struct Compiled {
    entrance: polyclave_cipher::Compiled,
    circuit: polyclave_cipher::Compiled,
}

impl Compiled {
    /// Compiles for the protocol of a seat.
    pub fn for_seat(circuit: &Circuit, seat: &Seat) -> Compiled {
        let circuit = compile(circuit, seat.protocol());
        Compiled { entrance: entrance_of_all(circuit.inputs(), seat.protocol()), circuit }
    }

    /// Evaluates the circuit on one value for each input. Only an input's owner reads its value.
    pub fn evaluate(
        &self,
        given: &[(Party, &Cells)],
        seat: &mut Seat,
    ) -> polyclave_protocol::Result<(Vec<Cells>, Bill)> {
        let (shared, input) = seat.share_all(&self.entrance, given)?;
        let (shared, mut bill) = seat.evaluate(&self.circuit, 1, &shared.iter().collect::<Vec<_>>())?;
        let mut outputs = Vec::with_capacity(shared.len());
        for shared in &shared {
            outputs.push(seat.reveal(shared, &mut bill)?);
        }
        bill.input = input;
        Ok((outputs, bill))
    }
}

/// One evaluation on values that have the sizes of the circuit's inputs.
struct Evaluation<'a> {
    circuit: &'a Circuit,
    inputs: &'a [Cells],
}

impl Evaluation<'_> {
    fn run(self, evaluator: &Evaluator) -> Result<(Vec<Cells>, Bill)> {
        match evaluator {
            Evaluator::Cleartext => {
                Ok((cleartext::run(&compile(self.circuit, &AnyMap), 1, self.inputs)?, Bill::default()))
            }
            Evaluator::Protocol(config) => self.under(config),
        }
    }

    fn under(self, config: &AnyProtocolConfig) -> Result<(Vec<Cells>, Bill)> {
        // The first party gives the first input, the last party the others.
        let last = Party((config.parties() - 1) as u8);
        let owners = std::iter::once(Party(0)).chain(std::iter::repeat(last));
        let given: Vec<(Party, &Cells)> = owners.zip(self.inputs).collect();
        let compiled = OnceLock::new();
        let all = in_session(config, &self.circuit.digest(), |seat| {
            // The first party that comes compiles for all of them.
            let compiled = compiled.get_or_init(|| Compiled::for_seat(self.circuit, seat));
            compiled.evaluate(&given, seat)
        })?;
        let mut parties = all.into_iter();
        let first = parties.next().context("there are no parties")?;
        parties.try_fold(first, |(outputs, bill), (theirs, their_bill)| {
            ensure!(outputs == theirs, "the parties learned different outputs");
            Ok((outputs, bill.busiest(their_bill)))
        })
    }
}

/// The JSON document.
#[derive(Serialize)]
pub struct Document<'a> {
    protocol: &'a str,
    adversary: &'a str,
    verified: bool,
    circuit: String,
    outputs: &'a [String],
    #[serde(flatten)]
    phases: Phases,
}

impl<'a> Document<'a> {
    /// The document for the outputs of a file, with the cost by phases.
    pub fn new(file: &Path, outputs: &'a [String], guarantee: &'a Guarantee, phases: Phases) -> Document<'a> {
        Document {
            protocol: guarantee.protocol,
            adversary: &guarantee.adversary,
            verified: guarantee.verified,
            circuit: file.display().to_string(),
            outputs,
            phases,
        }
    }
}

impl Answer<'_> {
    /// Prints each output on a line of its own, then the cost; or one JSON document.
    pub fn print(&self, guarantee: &Guarantee, json: bool) -> Result<()> {
        let shown = self.file.display();
        if json {
            let document = Document::new(self.file, &self.outputs, guarantee, Phases::of(self.bill));
            say!("{}", serde_json::to_string_pretty(&document)?);
            return Ok(());
        }
        self.outputs.iter().for_each(|output| say!("{output}"));
        say!("");
        say!("{shown} under {}", guarantee.protocol);
        match guarantee.protocol {
            // Nothing is sent. What remains to be reported is the size of the circuit for protocols.
            "cleartext" => say!("{}", self.circuit),
            _ => bill::print(self.bill),
        }
        say!("{}", guarantee.line());
        Ok(())
    }
}
