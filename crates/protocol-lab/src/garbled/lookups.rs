//! Lookups of two bits: ANDs by a garbling scheme ([`super::half_gates`] or [`super::three_halves`]), and
//! sums by sums of labels.
//!
//! A table of two bits with an odd number of ones is an AND up to negations. A negation changes the label for
//! zero by Delta at the garbler, and costs nothing. Any other table is a sum. One call of a kernel garbles
//! all lanes of a gate and writes the ciphertexts directly into the message. Gates are public, and so is what
//! is done for them.

use polyclave_cipher::{Lookup, Slot};

use super::flight::{self, Flight, Run, messages};
use super::{EVALUATOR, GARBLER, Garbled, Gates, Registers, Side, half_gates, three_halves};
use polyclave_protocol::Result;
use polyclave_protocol::garbling::{Kind, LABEL, Rows};
use polyclave_protocol::net::Net;

impl Garbled {
    pub(super) fn look_up(
        &mut self,
        lookups: &[Lookup],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut flight = std::mem::take(&mut self.flight);
        flight.runs.clear();
        for lookup in lookups {
            for (_, to) in &lookup.views {
                let kind = registers.labels.kinds[lookup.table];
                self.begin(kind, lookup.xs[0], *to, registers, &mut flight);
            }
        }
        let gates: usize = flight.runs.iter().map(|run| run.lanes).sum();
        let is_first = gates > 0 && !registers.is_under_way;
        registers.is_under_way |= is_first;
        let (calls, ciphertexts) = (self.gates.hash_calls(), self.gates.ciphertexts());
        let calls = match self.side {
            Side::Garbler { .. } => calls[0],
            Side::Evaluator => calls[1],
        };
        let counts = self.counts();
        counts.rounds += u64::from(is_first);
        counts.multiplications += gates as u64;
        counts.ciphertexts += ciphertexts * gates as u64;
        counts.hash_calls += calls * gates as u64;
        let outcome = match &self.side {
            Side::Garbler { .. } => self.garble(&mut flight, registers, net),
            Side::Evaluator => self.evaluate(&mut flight, registers, net),
        };
        self.flight = flight;
        outcome
    }

    /// Does a sum, and makes a note of an AND.
    fn begin(&self, kind: Kind, from: Slot, to: Slot, registers: &mut Registers, flight: &mut Flight) {
        let (rows, from, to, is_uniform) = match (from, to) {
            (Slot::Lanes(from), Slot::Lanes(to)) => (&mut registers.labels.lanes, from, to, false),
            (Slot::Uniform(from), Slot::Uniform(to)) => (&mut registers.labels.uniform, from, to, true),
            _ => unreachable!("a lookup is the same for all lanes as its input is"),
        };
        let operands = [rows.at(from, 0), rows.at(from, 1)];
        let to = rows.at(to, 0);
        match kind {
            Kind::Sum(of, one) => {
                let sources: Vec<usize> =
                    operands.into_iter().zip(of).filter(|(_, is_term)| *is_term).map(|(at, _)| at).collect();
                rows.sum(to, rows.lanes(), &sources, &self.side.of_constant(one));
            }
            Kind::And(negated) => {
                let [a, b] = operands;
                for start in (0..rows.lanes()).step_by(flight::LANES) {
                    let lanes = flight::LANES.min(rows.lanes() - start);
                    let rows = [a, b, to].map(|at| at + start * LABEL);
                    flight.runs.push(Run { is_uniform, rows, lanes, negated });
                }
            }
        }
    }

    fn garble(&mut self, flight: &mut Flight, registers: &mut Registers, net: &mut dyn Net) -> Result<()> {
        let Side::Garbler { delta, coins } = &mut self.side else { return Ok(()) };
        for (runs, bytes) in messages(&flight.runs, self.gates.bytes()) {
            // Longer than before at times, and never shorter: what is there is overwritten.
            flight.message.resize(bytes.max(flight.message.len()), 0);
            let mut rest = &mut flight.message[..bytes];
            for run in runs {
                let labels = rows_of(run, registers).labels_mut(run.rows, run.lanes);
                let hash = self.hash.take(run.lanes);
                let here = rest.split_off_mut(..run.lanes * self.gates.bytes()).expect("they were counted");
                match self.gates {
                    Gates::Half => half_gates::garble(hash, delta, run, labels, here),
                    Gates::ThreeHalves => three_halves::garble(hash, delta, run, labels, coins, here),
                }
            }
            net.send(EVALUATOR, &flight.message[..bytes])?;
        }
        Ok(())
    }

    fn evaluate(&mut self, flight: &mut Flight, registers: &mut Registers, net: &mut dyn Net) -> Result<()> {
        for (runs, bytes) in messages(&flight.runs, self.gates.bytes()) {
            flight.message.resize(bytes.max(flight.message.len()), 0);
            net.recv(GARBLER, &mut flight.message[..bytes])?;
            let mut rest = &flight.message[..bytes];
            for run in runs {
                let labels = rows_of(run, registers).labels_mut(run.rows, run.lanes);
                let hash = self.hash.take(run.lanes);
                let here = rest.split_off(..run.lanes * self.gates.bytes()).expect("they were counted");
                match self.gates {
                    Gates::Half => half_gates::evaluate(hash, run, labels, here),
                    Gates::ThreeHalves => three_halves::evaluate(hash, labels, here),
                }
            }
        }
        Ok(())
    }
}

fn rows_of<'a>(run: &Run, registers: &'a mut Registers) -> &'a mut Rows {
    if run.is_uniform { &mut registers.labels.uniform } else { &mut registers.labels.lanes }
}
