//! What nodes ask of a session: all but evaluations is that of the protocol.

use std::ops::Range;

use polyclave_cipher::{Cells, Cipher, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::{FewRounds, FewRoundsBatch, Garbles, LANES, Masked, Shared, Value, Way};
use crate::evaluate::{evaluate, prepare};
use crate::interface::dealt::HeldSeeds;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, Session};
use crate::interface::service::{ElementArithmetic, Elements, OwnMask, ServiceSession};
use crate::interface::tally::Phase;
use crate::{Error, Party, Result};

impl<G: Garbles> ServiceSession for FewRounds<G> {
    type Mask = <G::Rounds as ServiceSession>::Mask;

    fn form(&self, cipher: Cipher) -> Cipher {
        self.rounds().form(cipher)
    }

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.rounds().lanes_within(compiled, bytes)
    }

    fn can_join(&self, a: &Shared<G>, b: &Shared<G>) -> bool {
        self.rounds().can_join(a, b)
    }

    fn join_lanes(&self, parts: &[&Shared<G>]) -> Shared<G> {
        self.rounds().join_lanes(parts)
    }

    fn save(&self, value: &Shared<G>) -> Zeroizing<Vec<u8>> {
        self.rounds().save(value)
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared<G>> {
        self.rounds().restore(bytes)
    }

    fn lanes(&self, value: &Shared<G>, lanes: Range<usize>) -> Shared<G> {
        self.rounds().lanes(value, lanes)
    }

    fn mask_of(
        &mut self,
        owner: Party,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<OwnMask<Self::Mask>>> {
        self.rounds_mut().mask_of(owner, len, net)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(Self::Mask, Vec<u8>)> {
        self.rounds_mut().mask_input(len, net)
    }

    fn dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<Self::Mask> {
        self.rounds_mut().dealt_mask(seeds, len)
    }

    fn mask_elements(&self, mask: &Self::Mask) -> Elements {
        self.rounds().mask_elements(mask)
    }

    fn unmask(
        &mut self,
        mask: &Self::Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<Shared<G>> {
        self.rounds_mut().unmask(mask, at, masked, port)
    }

    fn evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &Shared<G>,
        masked: Masked<'_, G>,
        net: &mut dyn Net,
    ) -> Result<Option<(Shared<G>, Vec<u8>)>> {
        let lanes = blocks.lanes();
        let is_kept = || Way::of(&compiled.digest()).is_some();
        if !G::OPENS_SUMS || self.stock.is_none() || lanes > LANES || !is_kept() {
            return Ok(None);
        }
        if masked.1.len() != lanes.saturating_sub(1) * 16 {
            return Err(Error::misuse("there is not a block of text for each block but the first"));
        }
        match prepare(self, compiled, lanes, net)? {
            FewRoundsBatch::Circuits(way, circuits) => {
                self.enter(Phase::Online);
                let keys = self.cells_of_keys(way, &compiled.inputs()[1], round_keys)?;
                let values = [Value::Public(blocks.clone()), keys];
                let done = self.garbled.open_sums(way.kept, circuits, values, masked, net);
                self.garbled.or_give_up(done).map(Some)
            }
            batch => {
                let inputs = [Input::Public(blocks), Input::Shared(round_keys)];
                let output = evaluate(self, compiled, lanes, &inputs, batch, net)?.remove(0);
                let sum = self.open_sum(&self.lanes(&output, 1..lanes), masked, net)?;
                Ok(Some((self.lanes(&output, 0..1), sum)))
            }
        }
    }

    fn block_bytes(&self, value: &Shared<G>) -> usize {
        self.rounds().block_bytes(value)
    }

    fn bytes_for_client(&mut self, value: &Shared<G>, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.rounds_mut().bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared<G>, net: &mut dyn Net) -> Result<Elements> {
        self.rounds_mut().elements(blocks, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.rounds_mut().arithmetic()
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.rounds().save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.rounds().restore_elements(bytes)
    }
}
