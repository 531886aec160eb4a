//! A session: evaluations through circuits if there are some, and through rounds if not.

use polyclave_cipher::{Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Table};

use super::{FewRounds, FewRoundsBatch, FewRoundsRegisters, Garbles, Shared, Way};
use crate::interface::net::Net;
use crate::interface::protocol::{Faults, Input, Owner, Session};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::{Error, Result};

impl<G: Garbles> Maps for FewRounds<G> {
    fn is_local(&self, matrix: &Matrix) -> bool {
        self.rounds().is_local(matrix)
    }

    fn split(&self, matrix: &Matrix) -> (Matrix, Matrix) {
        self.rounds().split(matrix)
    }

    fn pays_for_views(&self) -> bool {
        self.rounds().pays_for_views()
    }

    fn wants(&self, table: &Table) -> Vec<Matrix> {
        self.rounds().wants(table)
    }

    fn has_another_way(&self, circuit: &[u8; 32]) -> bool {
        Way::of(circuit).is_some()
    }
}

impl<G: Garbles> Session for FewRounds<G> {
    type Shared = Shared<G>;
    type Registers = FewRoundsRegisters<G>;
    type Batch = FewRoundsBatch<G>;
    type Released = <G::Rounds as Session>::Released;

    /// Of rounds: what a computation costs at most.
    fn cost(&self, compiled: &Compiled) -> Cost {
        self.rounds().cost(compiled)
    }

    fn lanes_at_once(&self, compiled: &Compiled) -> usize {
        self.rounds().lanes_at_once(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<FewRoundsBatch<G>> {
        let taken = self.take(compiled, lanes, net);
        // After a claim that failed here the others may be in the middle of an evaluation.
        if let Some((way, circuits)) = self.garbled.or_give_up(taken)? {
            return Ok(FewRoundsBatch::Circuits(way, circuits));
        }
        // Of what is kept itself there are too few circuits, or it has too many lanes.
        if self.stock.is_none() || Way::of_whole(compiled).is_some() {
            return self.rounds_mut().prepare(compiled, lanes, net).map(FewRoundsBatch::Rounds);
        }
        let taken = self.take_for_parts(compiled, lanes, net);
        match self.garbled.or_give_up(taken)? {
            Some(in_parts) => Ok(FewRoundsBatch::Parts(Some(Box::new(in_parts)))),
            None => self.rounds_mut().prepare(compiled, lanes, net).map(FewRoundsBatch::Rounds),
        }
    }

    fn registers(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        batch: &mut FewRoundsBatch<G>,
    ) -> Result<FewRoundsRegisters<G>> {
        match batch {
            FewRoundsBatch::Rounds(batch) => {
                let registers = self.rounds_mut().registers(compiled, lanes, batch)?;
                Ok(FewRoundsRegisters::Rounds(Box::new(registers)))
            }
            FewRoundsBatch::Circuits(way, circuits) => {
                if circuits.len() != lanes {
                    return Err(Error::misuse("there is not a circuit for each lane"));
                }
                let begun = self.garbled.begin(way.kept, std::mem::take(circuits))?;
                Ok(FewRoundsRegisters::Circuits(way, lanes, begun))
            }
            FewRoundsBatch::Parts(in_parts) => match in_parts.take_if(|in_parts| in_parts.lanes == lanes) {
                Some(in_parts) => Ok(FewRoundsRegisters::Parts(in_parts)),
                None => Err(Error::misuse("there are no circuits for these lanes")),
            },
        }
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<G>>],
        registers: &mut FewRoundsRegisters<G>,
        net: &mut dyn Net,
    ) -> Result<()> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().inputs(ports, inputs, registers, net),
            FewRoundsRegisters::Circuits(way, lanes, evaluations) => {
                let values = self.values(way, ports, inputs, *lanes, net);
                let values = self.garbled.or_give_up(values)?;
                let given = self.garbled.give(way.kept, values, evaluations, net);
                self.garbled.or_give_up(given)
            }
            FewRoundsRegisters::Parts(in_parts) => {
                let values = self.shared_inputs(ports, inputs, in_parts, net);
                self.garbled.or_give_up(values)
            }
        }
    }

    /// A garbled circuit is evaluated as a whole, at the end. So are parts.
    fn linear(&mut self, maps: &[Linear], registers: &mut FewRoundsRegisters<G>) {
        if let FewRoundsRegisters::Rounds(registers) = registers {
            self.rounds_mut().linear(maps, registers);
        }
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut FewRoundsRegisters<G>,
        batch: &mut FewRoundsBatch<G>,
        net: &mut dyn Net,
    ) -> Result<()> {
        match (registers, batch) {
            (FewRoundsRegisters::Rounds(registers), FewRoundsBatch::Rounds(batch)) => {
                self.rounds_mut().lookup(compiled, lookups, registers, batch, net)
            }
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        compiled: &Compiled,
        registers: &mut FewRoundsRegisters<G>,
        net: &mut dyn Net,
    ) -> Result<bool> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().settle(compiled, registers, net),
            FewRoundsRegisters::Circuits(way, _, evaluations) => {
                let settled = self.garbled.settle(way.kept, evaluations, net);
                self.garbled.or_give_up(settled).map(|()| true)
            }
            FewRoundsRegisters::Parts(in_parts) => {
                // After any error the others may be in the middle of a circuit, also if it is one of use.
                let evaluated = self.evaluate_parts(in_parts, net).map_err(|error| match error {
                    Error::Misuse(why) => Error::System(why),
                    other => other,
                });
                self.garbled.or_give_up(evaluated).map(|()| true)
            }
        }
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut FewRoundsRegisters<G>) -> Shared<G> {
        match registers {
            FewRoundsRegisters::Rounds(registers) => self.rounds_mut().output(port, registers),
            FewRoundsRegisters::Circuits(way, _, evaluations) => {
                self.garbled.output(way.kept, port, evaluations).expect("bits of whole cells")
            }
            FewRoundsRegisters::Parts(in_parts) => in_parts.output(port),
        }
    }

    fn select_lanes(&self, shared: &Shared<G>, lanes: &[usize]) -> Shared<G> {
        self.rounds().select_lanes(shared, lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.rounds_mut().check(net)
    }

    fn release(
        &mut self,
        shared: &Shared<G>,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Self::Released>> {
        self.rounds_mut().release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.rounds_mut().enter(phase);
    }

    fn tally(&self) -> Tally {
        self.rounds().tally()
    }

    fn faults(&self) -> Faults {
        self.rounds().faults()
    }
}
