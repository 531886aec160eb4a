//! Protocols as nodes serve with them where they are far from each other: a few blocks at a time go through
//! garbled circuits from the stock, if there are some. That takes two or three one-way messages in place of
//! thirty or forty rounds.
//!
//! Everything else is the protocol that the nodes serve with: setup, stored values, clients, elements,
//! checks. [`Garbles`] is what circuits on its values have to do: those of `replicated-active`
//! ([`crate::replicated`]) and those of `spdz-tower` ([`crate::spdz`]).
//!
//! **When a circuit is used** is the same at all parties: for a circuit that is [kept](Kept), for at most
//! [`LANES`] lanes (a key schedule alone: one), if the stock gives one for each lane. Its claim is durable at
//! each party before the party uses the circuit ([`Stock`]). What is computed around such circuits, as where
//! a key is wrapped, goes in parts (`parts.rs`).
//!
//! **Order of messages.** What all lanes are given is sent before anything is waited for, and so are the
//! outputs of all lanes.

mod config;
mod garbles;
mod kept;
mod parts;
mod service;
mod session;

use std::sync::Arc;

use polyclave_cipher::hmac::{self, Sha2};
use polyclave_cipher::{Cells, Compiled, CompiledPort};
use zeroize::Zeroizing;

pub use config::{FewRoundsConfig, GarblesConfig};
pub use garbles::{Garbles, Masked, Shared, Value, refuse_other_lanes};
pub use kept::{COUNT, Kept, Size};
use kept::{KeyCells, Way};
pub use parts::InParts;

use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session};
use crate::interface::stock::{Kind, Stock};
use crate::{Error, Result};

/// The most lanes that go through garbled circuits together. More of them take so many bytes that rounds are
/// faster: a circuit of AES-128 takes 9 to 46 kB online and 174 to 760 kB ahead.
const LANES: usize = 8;

/// Circuits with so many ANDs are garbled at a time: more of them no longer fit the processor's cache. They
/// are sixteen of AES-128.
const LOT: usize = 16 * 5440;

/// One party in one session.
pub struct FewRounds<G: Garbles> {
    garbled: G,
    stock: Option<Arc<dyn Stock>>,
}

/// A circuit for each lane.
type Taken<G> = (&'static Way, Vec<<G as Garbles>::Circuit>);

/// What an evaluation goes through.
pub enum FewRoundsBatch<G: Garbles> {
    Rounds(<G::Rounds as Session>::Batch),
    /// A circuit for each lane.
    Circuits(&'static Way, Vec<G::Circuit>),
    /// Until its only use.
    Parts(Option<Box<InParts<G>>>),
}

/// An evaluation under way.
pub enum FewRoundsRegisters<G: Garbles> {
    Rounds(Box<<G::Rounds as Session>::Registers>),
    /// In so many lanes.
    Circuits(&'static Way, usize, G::Evaluations),
    Parts(Box<InParts<G>>),
}

impl<G: Garbles> FewRounds<G> {
    fn new(garbled: G, stock: Option<Arc<dyn Stock>>) -> Self {
        FewRounds { garbled, stock }
    }

    fn rounds(&self) -> &G::Rounds {
        self.garbled.rounds()
    }

    fn rounds_mut(&mut self) -> &mut G::Rounds {
        self.garbled.rounds_mut()
    }

    /// This party's parts of new circuits, one after another.
    fn make_circuits(
        &mut self,
        kept: &Kept,
        (kind, count): (&Kind, usize),
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        compare_forms(&kept.compiled().digest(), net)?;
        // Allocated at its full size: growing would leave copies behind.
        let mut items = Zeroizing::new(Vec::with_capacity(count * kind.item_bytes));
        let lot = (LOT / kept.size.ands).max(1);
        for first in (0..count).step_by(lot) {
            for item in self.garbled.make(kept, lot.min(count - first), net)? {
                items.extend_from_slice(&item);
            }
        }
        Ok(items)
    }

    /// Circuits for some lanes, if there are any for this computation.
    fn take(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Option<Taken<G>>> {
        if self.stock.is_none() {
            return Ok(None);
        }
        let fits = |way: &&Way| lanes <= way.kept.most_lanes();
        let Some(way) = Way::of_whole(compiled).filter(fits) else { return Ok(None) };
        Ok(self.take_kept(&[(way.kept, lanes)], net)?.map(|mut circuits| (way, circuits.remove(0))))
    }

    /// So many circuits of each kind, if there are enough of all kinds.
    fn take_kept(
        &mut self,
        wanted: &[(&Kept, usize)],
        net: &mut dyn Net,
    ) -> Result<Option<Vec<Vec<G::Circuit>>>> {
        let Some(stock) = &self.stock else { return Ok(None) };
        let kind = |(kept, count): &(&Kept, usize)| (kept.kind(self.garbled.item_bytes(kept)), *count);
        let wanted: Vec<(Kind, usize)> = wanted.iter().map(kind).collect();
        let Some(items) = stock.take_if_there(&wanted, net)? else { return Ok(None) };
        let restored = items.iter().zip(&wanted).map(|(items, (kind, count))| {
            let circuits = items.chunks(kind.item_bytes).map(|item| self.garbled.restore(item));
            let circuits: Vec<G::Circuit> = circuits.collect::<Result<_>>()?;
            match circuits.len() == *count {
                true => Ok(circuits),
                false => Err(Error::System(format!("the stock gave other than {count} {}", kind.name))),
            }
        });
        restored.collect::<Result<Vec<_>>>().map(Some)
    }

    /// The block, and the cells of round keys that go in; or both halves of a key; or a block of a message
    /// and a state. What is added to a block is added before.
    fn values(
        &mut self,
        way: &Way,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared<G>>],
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<[Value<Shared<G>>; 2]> {
        match (way.key_cells(), ports, inputs) {
            (KeyCells::Halves(_), [port], [key]) => {
                let key = self.garbled.share(port, key, lanes, net)?;
                return self.halves(way, port, &key);
            }
            (KeyCells::State, [of_block, of_state], [block, state]) => {
                let block = match (block, way.kept.hash()) {
                    (Input::Public(schedule), Some(hash)) => {
                        Value::Public(hash_blocks(hash, schedule, lanes)?)
                    }
                    (block, _) => Value::Shared(self.garbled.share(of_block, block, lanes, net)?),
                };
                return Ok([block, Value::Shared(self.garbled.share(of_state, state, lanes, net)?)]);
            }
            _ => {}
        }
        let is_of_key = |(port, _): &(&CompiledPort, &Input<'_, Shared<G>>)| port.uniform;
        let (keys, blocks): (Vec<_>, Vec<_>) = ports.iter().zip(inputs).partition(is_of_key);
        let (&[(port, keys)], &[(of_block, first), ref others @ ..]) = (&keys[..], &blocks[..]) else {
            return Err(Error::misuse("a circuit of a block takes blocks, and round keys behind them"));
        };
        let keys = self.garbled.share(port, keys, lanes, net)?;
        let keys = self.cells_of_keys(way, port, &keys)?;
        let block = match first {
            Input::Public(cells) if others.is_empty() => Value::Public((*cells).clone()),
            first => {
                let mut sum = self.garbled.share(of_block, first, lanes, net)?;
                for (port, other) in others {
                    let other = self.garbled.share(port, other, lanes, net)?;
                    sum = self.garbled.plus(&sum, &other)?;
                }
                Value::Shared(sum)
            }
        };
        Ok([block, keys])
    }

    /// Both halves of a key.
    fn halves(&self, way: &Way, port: &CompiledPort, key: &Shared<G>) -> Result<[Value<Shared<G>>; 2]> {
        let KeyCells::Halves([first, second]) = way.key_cells() else {
            return Err(Error::misuse("a circuit of a block takes a block, too"));
        };
        let half = |cells: &[usize]| Ok(Value::Shared(self.garbled.cells(key, port, cells)?));
        Ok([half(first)?, half(second)?])
    }

    /// What goes in of round keys.
    fn cells_of_keys(
        &self,
        way: &Way,
        port: &CompiledPort,
        round_keys: &Shared<G>,
    ) -> Result<Value<Shared<G>>> {
        let KeyCells::OfRoundKeys(cells) = way.key_cells() else {
            return Err(Error::misuse("a key schedule takes no round keys"));
        };
        Ok(Value::Shared(self.garbled.cells(round_keys, port, cells)?))
    }
}

/// Blocks that everybody knows, from their schedules.
fn hash_blocks(hash: Sha2, schedules: &Cells, lanes: usize) -> Result<Cells> {
    let other = || Error::misuse("a block that everybody knows is given by its schedule, in each lane");
    let bytes = schedules.to_blocks();
    if bytes.len() != lanes * hash.schedule_bytes() {
        return Err(other());
    }
    let block = |schedule: &[u8]| {
        let block = hmac::scheduled(hash, schedule);
        (hmac::schedule(hash, &block) == schedule).then_some(block)
    };
    let blocks: Option<Vec<Vec<u8>>> = bytes.chunks(hash.schedule_bytes()).map(block).collect();
    let blocks = blocks.ok_or_else(other)?;
    Cells::from_blocks(8 * hash.block_bytes(), 1, &blocks.concat())
        .map_err(|error| Error::Misuse(error.to_string()))
}

/// All parties make circuits of one form. A program of another release may garble another circuit for the
/// same cipher. Without this, honest parties would fail the checks of what they make, and be taken for
/// cheaters. A party that lies here gains nothing: it could as well not take part.
fn compare_forms(digest: &[u8; 32], net: &mut dyn Net) -> Result<()> {
    let (me, members) = (net.me(), net.members());
    let others = || members.iter().filter(|peer| *peer != me);
    others().try_for_each(|peer| net.send(peer, digest))?;
    for peer in others() {
        let mut other = [0; 32];
        net.recv(peer, &mut other)?;
        if other != *digest {
            return Err(Error::Disagreement { peer, field: "form of the garbled circuits" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Party;
    use crate::mesh::run_parties;

    #[test]
    fn parties_whose_circuits_differ_make_none_and_nobody_is_taken_for_a_cheater() {
        let outcomes = run_parties(3, |net| compare_forms(&[u8::from(net.me() == Party(2)); 32], net));
        let differs =
            |peer| Err(Error::Disagreement { peer: Party(peer), field: "form of the garbled circuits" });
        // The one that sees it first may be gone before another one has sent.
        let is_closed = |outcome: &Result<()>| matches!(outcome, Err(Error::Closed { .. }));
        assert!(outcomes.contains(&differs(2)) || outcomes.contains(&differs(0)));
        for (outcome, peer) in outcomes.iter().zip([2, 2, 0]) {
            assert!(*outcome == differs(peer) || is_closed(outcome), "{outcome:?}");
        }
        assert_eq!(run_parties(3, |net| compare_forms(&[7; 32], net)), [Ok(()), Ok(()), Ok(())]);
    }
}
