//! What is computed around circuits of the stock: wrapping and unwrapping of keys, rounds of FF1, check
//! values. It goes in [`Parts`]: the kept circuits inside, one after the other as they need
//! each other, and what is before, between and behind them.
//!
//! * **Circuits inside** go as a block of a mode goes. Their inputs are shares, as those of CBC are: what
//!   they rest on is proven before if nobody has ([`Garbles::give`]), and they are tied to what all parties
//!   hold in the same way. What comes out is shared.
//! * **Other parts** that look up nothing are sums, which are local. A party that holds other shares of them
//!   than it should is found as where it gives other shares of any value: by digests or MACs, as soon as they
//!   go into a circuit, into rounds or to a client. Parts that look something up go in rounds, with all that
//!   rounds compare and check.
//!
//! So nothing is opened or released here, and no check is left out: each of the values in between is one that
//! a mode could have made, and what leaves the session is checked as all that leaves it.
//!
//! **Round keys** that go into a circuit are those of some key, wherever they were computed: a kept circuit
//! takes only the bits from which the others follow (`kept.rs`). A computation that encrypted under other
//! values would not be the same in circuits as in rounds.
//!
//! **All or nothing.** The circuits of all parts are claimed at once, of all kinds, before the first is used.
//! If one kind has too few, none is spent, and the whole goes in rounds. Which parts there are follows from
//! the circuit, and who has how many from claims that all parties hear. So all of them go the same way. (A
//! first node that tells others different things makes them fail on each other's messages. It learns nothing:
//! labels are for one garbler, and messages of rounds are masked.)

use std::sync::Arc;

use polyclave_cipher::{Compiled, CompiledPort, Inserted, Part, Parts};

use super::{COUNT, FewRounds, Garbles, Kept, KeyCells, LANES, Shared, Value, Way};
use crate::evaluate::evaluate;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session};
use crate::interface::service::ServiceSession;
use crate::interface::tally::Phase;
use crate::{Error, Result};

/// An evaluation in parts, from its claims to its outputs.
pub struct InParts<G: Garbles> {
    parts: Arc<Parts>,
    pub(super) lanes: usize,
    /// What each part takes in rounds, if it looks something up.
    rounds: Vec<Option<<G::Rounds as Session>::Batch>>,
    /// By kind, those that are left.
    circuits: Vec<Vec<G::Circuit>>,
    /// By number, as soon as they are there.
    values: Vec<Option<Shared<G>>>,
}

impl<G: Garbles> InParts<G> {
    fn value(&self, number: usize) -> Result<&Shared<G>> {
        self.values[number].as_ref().ok_or_else(|| Error::misuse("a part needs a value of a later one"))
    }

    fn keep(&mut self, numbers: &[usize], values: Vec<Shared<G>>) {
        numbers.iter().zip(values).for_each(|(number, value)| self.values[*number] = Some(value));
    }

    /// How many lanes a value has.
    fn lanes_of(&self, number: usize) -> usize {
        if self.parts.uniform[number] { 1 } else { self.lanes }
    }

    /// An output of the whole, which is there after the last part.
    pub(super) fn output(&mut self, port: &CompiledPort) -> Shared<G> {
        let last = self.parts.parts.last().expect("there is a part");
        let at = last.circuit.outputs().iter().position(|of_part| of_part.name == port.name);
        let number = last.gives[at.expect("the last part has the outputs of the whole")];
        self.values[number].take().expect("an output is taken once, after the evaluation")
    }
}

/// The circuits behind a part, those together which are the same circuit.
fn by_kind(part: &Part) -> Result<Vec<(&'static Way, Vec<&Inserted>)>> {
    let mut all: Vec<(&'static Way, Vec<&Inserted>)> = Vec::new();
    for inserted in &part.inserted {
        let way = Way::of(&inserted.circuit);
        let way = way.ok_or_else(|| Error::misuse("a part is behind a circuit that is not kept"))?;
        // Others that take the same kind from the stock may have other views of their outputs.
        match all.iter_mut().find(|(_, same)| same[0].circuit == inserted.circuit) {
            Some((_, same)) => same.push(inserted),
            None => all.push((way, vec![inserted])),
        }
    }
    Ok(all)
}

/// How many circuits of each kind an evaluation takes; `None` if more than [`LANES`] go together.
fn wanted(parts: &Parts, lanes: usize) -> Result<Option<[usize; COUNT]>> {
    let mut counts = [0; COUNT];
    let of = |inserted: &&Inserted| if parts.uniform[inserted.gives] { 1 } else { lanes };
    for part in &parts.parts {
        for (way, inserted) in by_kind(part)? {
            let together: usize = inserted.iter().map(of).sum();
            if together > LANES {
                return Ok(None);
            }
            counts[way.kept.at] += together;
        }
    }
    Ok(Some(counts))
}

impl<G: Garbles> FewRounds<G> {
    /// Circuits for all parts of a computation, if it has some and there are enough.
    pub(super) fn take_for_parts(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Option<InParts<G>>> {
        let Some(parts) = compiled.parts().filter(|_| self.stock.is_some()) else { return Ok(None) };
        let Some(counts) = wanted(parts, lanes)? else { return Ok(None) };
        let kinds: Vec<_> = Kept::all().iter().zip(counts).filter(|(_, count)| *count > 0).collect();
        let Some(taken) = self.take_kept(&kinds, net)? else { return Ok(None) };
        let mut circuits: Vec<Vec<G::Circuit>> = (0..COUNT).map(|_| Vec::new()).collect();
        kinds.iter().zip(taken).for_each(|((kept, _), taken)| circuits[kept.at] = taken);
        let mut rounds = Vec::with_capacity(parts.parts.len());
        for part in &parts.parts {
            let looks_up = part.circuit.lookups().next().is_some();
            let batch = looks_up.then(|| self.rounds_mut().prepare(&part.circuit, lanes, net)).transpose()?;
            rounds.push(batch);
        }
        let values = parts.uniform.iter().map(|_| None).collect();
        Ok(Some(InParts { parts: parts.clone(), lanes, rounds, circuits, values }))
    }

    /// Shares of all inputs.
    pub(super) fn shared_inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<G>>],
        in_parts: &mut InParts<G>,
        net: &mut dyn Net,
    ) -> Result<()> {
        for (number, (port, input)) in ports.iter().zip(inputs).enumerate() {
            let shared = self.garbled.share(port, input, in_parts.lanes, net)?;
            in_parts.keep(&[number], vec![shared]);
        }
        Ok(())
    }

    /// Evaluates all parts, and the circuits between them.
    pub(super) fn evaluate_parts(&mut self, in_parts: &mut InParts<G>, net: &mut dyn Net) -> Result<()> {
        let parts = in_parts.parts.clone();
        for (part, batch) in parts.parts.iter().zip(std::mem::take(&mut in_parts.rounds)) {
            let inputs = part.takes.iter().map(|number| in_parts.value(*number));
            let inputs: Vec<&Shared<G>> = inputs.collect::<Result<_>>()?;
            let outputs = match batch {
                Some(batch) => {
                    let inputs: Vec<_> = inputs.into_iter().map(Input::Shared).collect();
                    evaluate(self.rounds_mut(), &part.circuit, in_parts.lanes, &inputs, batch, net)?
                }
                None => self.garbled.sums(&part.circuit, &inputs, in_parts.lanes)?,
            };
            in_parts.keep(&part.gives, outputs);
            self.enter(Phase::Online);
            for (way, inserted) in by_kind(part)? {
                self.evaluate_inserted(way, &inserted, in_parts, net)?;
            }
        }
        Ok(())
    }

    /// Evaluates circuits of one kind that do not wait for each other, all lanes of all of them together.
    fn evaluate_inserted(
        &mut self,
        way: &'static Way,
        inserted: &[&Inserted],
        in_parts: &mut InParts<G>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let kept = way.kept;
        let lanes: Vec<usize> = inserted.iter().map(|one| in_parts.lanes_of(one.gives)).collect();
        let (mut blocks, mut keys) = (Vec::new(), Vec::new());
        for (one, lanes) in inserted.iter().zip(&lanes) {
            let [block, of_key] = self.given(way, one, *lanes, in_parts)?;
            blocks.push(block);
            keys.push(of_key);
        }
        let joined = |of_all: Vec<Shared<G>>| self.rounds().join_lanes(&of_all.iter().collect::<Vec<_>>());
        let values = [blocks, keys].map(|of_all| Value::Shared(joined(of_all)));
        let (left, wanted) = (&mut in_parts.circuits[kept.at], lanes.iter().sum::<usize>());
        if left.len() < wanted {
            return Err(Error::misuse("fewer circuits were claimed than the parts take"));
        }
        let circuits: Vec<G::Circuit> = left.drain(..wanted).collect();
        let mut evaluations = self.garbled.begin(kept, circuits)?;
        self.garbled.give(kept, values, &mut evaluations, net)?;
        self.garbled.settle(kept, &mut evaluations, net)?;
        let outputs = self.garbled.output(kept, &inserted[0].output, &mut evaluations)?;
        let mut first = 0;
        for (one, lanes) in inserted.iter().zip(lanes) {
            let output = self.rounds().lanes(&outputs, first..first + lanes);
            in_parts.keep(&[one.gives], vec![output]);
            first += lanes;
        }
        Ok(())
    }

    /// The block, and the cells of round keys that go in; or both halves of a key.
    fn given(
        &self,
        way: &Way,
        inserted: &Inserted,
        lanes: usize,
        in_parts: &InParts<G>,
    ) -> Result<[Shared<G>; 2]> {
        let Some((of_key, of_block)) = inserted.takes.split_last() else {
            return Err(Error::misuse("a circuit inside another one takes nothing"));
        };
        let key = self.in_lanes(*of_key, lanes, in_parts)?;
        let cells = |cells: &[usize]| self.garbled.cells(&key, way.key(), cells);
        match (of_block, way.key_cells()) {
            ([], KeyCells::Halves([first, second])) => Ok([cells(first)?, cells(second)?]),
            ([first, others @ ..], KeyCells::OfRoundKeys(of_key)) => {
                let mut sum = self.in_lanes(*first, lanes, in_parts)?;
                for number in others {
                    let block = self.in_lanes(*number, lanes, in_parts)?;
                    sum = self.garbled.plus(&sum, &block)?;
                }
                Ok([sum, cells(of_key)?])
            }
            _ => Err(Error::misuse("a circuit inside another one takes other inputs than the kept one")),
        }
    }

    /// A value in so many lanes, of which it has all or one.
    fn in_lanes(&self, number: usize, lanes: usize, in_parts: &InParts<G>) -> Result<Shared<G>> {
        let value = in_parts.value(number)?;
        Ok(match in_parts.lanes_of(number) == lanes {
            true => self.rounds().lanes(value, 0..lanes),
            false => self.rounds().select_lanes(value, &vec![0; lanes]),
        })
    }
}
