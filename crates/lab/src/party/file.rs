//! A circuit from a file. This party gives some of its inputs, the others give the rest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use polyclave_cipher::{Cells, Circuit};
use polyclave_protocol::Party;

use super::Arguments;
use super::session::{Meeting, Subject};
use crate::eval::bill::Phases;
use crate::eval::file::{Compiled, Document, read};
use crate::eval::{BitOrderOption, Guarantee, values};
use crate::hosts::Needed;
use crate::say;

/// The request to one party on the command line.
pub struct Question {
    file: PathBuf,
    circuit: Circuit,
    /// The inputs that this party holds, by their place in the file, from 0.
    inputs: BTreeMap<usize, Cells>,
}

impl Question {
    /// Reads the file and the inputs that this party holds.
    pub fn new(arguments: &Arguments, file: &Path) -> Result<Question> {
        let of_ciphers = [
            ("--cipher", arguments.cipher.is_some()),
            ("--key", arguments.key.is_some()),
            ("--tweak", arguments.tweak.is_some()),
            ("--decrypt", arguments.decrypt),
            ("--key-schedule", arguments.key_schedule),
        ];
        if let Some((option, _)) = of_ciphers.into_iter().find(|(_, given)| *given) {
            bail!("{option} is for ciphers, not for a circuit from a file; leave one of them out");
        }
        let circuit = read(file, arguments.bit_order.unwrap_or(BitOrderOption::Numbers).into())?;
        let mut inputs = BTreeMap::new();
        for text in &arguments.input {
            let (number, cells) = input(&circuit, file, text)?;
            ensure!(inputs.insert(number, cells).is_none(), "--input {}=... is given twice", number + 1);
        }
        Ok(Question { file: file.into(), circuit, inputs })
    }

    /// Evaluates it with the others, and prints the outcome.
    pub fn ask(&self, meeting: &Meeting<'_>, guarantee: &Guarantee, json: bool) -> Result<()> {
        let (ports, digest) = (self.circuit.inputs(), self.circuit.digest());
        let bytes = |number: usize| ports[number].cells.len().div_ceil(8);
        let subject = Subject {
            settings: vec![("circuit", format!("from a file, with digest {}", hex::encode(&digest[..8])))],
            brings: self.inputs.keys().map(|number| (name(*number), bytes(*number))).collect(),
            needed: (0..ports.len()).map(needed).collect(),
            digested: &digest,
        };
        let mut session = meeting.open(&subject, |agreed| {
            (0..ports.len()).try_for_each(|number| {
                let (party, given) = agreed.giver(&name(number)).context("every input has an owner")?;
                ensure!(given == bytes(number), "the {} of {party} has another size", name(number));
                Ok(())
            })
        })?;
        let mut given: Vec<(Party, Cells)> = Vec::with_capacity(ports.len());
        for (number, port) in ports.iter().enumerate() {
            let (party, _) = session.agreed.giver(&name(number)).context("every input has an owner")?;
            let zeros = || Cells::zero(port.cells.len(), port.bits, 1);
            given.push((party, self.inputs.get(&number).cloned().unwrap_or_else(zeros)));
        }
        let given: Vec<(Party, &Cells)> = given.iter().map(|(party, cells)| (*party, cells)).collect();
        let compiled = Compiled::for_seat(&self.circuit, &session.seat);
        let (outputs, bill) = compiled.evaluate(&given, &mut session.seat)?;
        let outputs: Vec<String> = outputs.iter().map(values::to_hex).collect();
        if !json {
            outputs.iter().for_each(|output| say!("{output}"));
            say!("\n{} under {}", self.file.display(), guarantee.protocol);
        }
        let document = Document::new(&self.file, &outputs, guarantee, Phases::at_one_party(bill));
        session.print(meeting.place, bill, document, guarantee, json)
    }
}

/// The name of an input, by its place from 0.
fn name(number: usize) -> String {
    format!("input {}", number + 1)
}

fn needed(number: usize) -> Needed {
    Needed { name: name(number), option: format!("--input {}=HEX", number + 1) }
}

/// Parses `N=HEX`.
fn input(circuit: &Circuit, file: &Path, text: &str) -> Result<(usize, Cells)> {
    let (count, shown) = (circuit.inputs().len(), file.display());
    let parsed =
        text.split_once('=').and_then(|(number, value)| Some((number.parse::<usize>().ok()?, value)));
    let form =
        "with a circuit from a file, --input takes the number of an input and its value, as in --input 1=HEX";
    let (number, value) = parsed.context(form)?;
    ensure!(
        (1..=count).contains(&number),
        "--input {number}=...: {shown} has {count} inputs, counted from 1"
    );
    let bits = circuit.inputs()[number - 1].cells.len();
    Ok((number - 1, values::from_hex(&format!("--input number {number}"), value, bits)?))
}
