//! All three parties learn the sum of an output and a shared value, such as a ciphertext: keystream and text.
//! In the two messages in which an output would become shared ([`super::output`]). Argued here; the paper
//! opens its outputs to all.
//!
//! The value has wires of its own, as an input has, and its labels come with those of the inputs
//! ([`super::input`]). The label of the sum is the sum of the two labels. Both garblers know its label for
//! zero. The first tells the evaluator the colours of these, and the second a digest of them. So the
//! evaluator decodes the sum. It tells the sum to both garblers, with a digest of the active labels, and each
//! garbler computes which labels stand for this sum, and compares.
//!
//! * *Correct*: the evaluator has one label of each output and of each wire of the value, and would need
//!   Delta for another label of the sum (authenticity of half gates). So a garbler takes no other sum. If a
//!   garbler cheats in what it sends, the digest of the other one does not fit.
//! * *Private*: the evaluator lacks one component of the value. Its labels have random colours, and so has
//!   the output. What it is told is one bit for a sum of both, and that is what it is to learn. It learns it
//!   before the garblers do: an output that is to be opened needs no more than that, because it is correct
//!   when it is decoded. The garblers are told the sum, and a digest that they can compute from it.
//! * *An abort tells nothing*: whether the evaluator's comparisons pass depends on what a garbler changed. A
//!   garbler's comparison fails only if the evaluator tells something else than it has.

use polyclave_cipher::Compiled;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::super::shared::Shared;
use super::claim::{self, Claim, What};
use super::commitments::active;
use super::gates::collect;
use super::input::Value;
use super::item::{Given, Item};
use super::plan::{Place, Plan, Section};
use super::roles::Role;
use super::seed::{Seed, number};
use super::shape::{pack, unpack};
use super::{GarbledRegisters, GarbledThree, spent};
use crate::interface::net::Net;
use crate::interface::protocol::Input;
use crate::{Error, Result};

/// What is added to the output, at the evaluator: active labels, and the colours of the sums' labels for
/// zero.
pub(super) struct Addend {
    labels: Given,
    decoding: Vec<u8>,
}

#[cfg(test)]
impl Addend {
    /// The colours of its labels, and the bits that decode sums.
    pub(super) fn seen(&self) -> [Vec<u8>; 2] {
        [self.labels.labels().iter().map(|label| label[0] & 1).collect(), self.decoding.clone()]
    }
}

impl GarbledThree {
    /// Gives a circuit its inputs, and what is added to its only output, which has the cells of this output.
    /// One round.
    pub(super) fn put_in_with_addend(
        &mut self,
        compiled: &Compiled,
        inputs: &[Input<'_, Shared>],
        addend: &Shared,
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<()> {
        let plan = registers.plan.clone();
        let place = only(&plan)?;
        let addend = self.bits_of(&compiled.outputs()[0], addend, registers.lanes)?;
        let value = Value::shared(place, &addend);
        let labels = self.put_in(compiled.inputs(), inputs, Some(value), registers, net)?;
        let item = registers.item.as_ref().ok_or_else(spent)?;
        let decoding = self.tell_decoding(item, &plan, net)?;
        registers.addend = labels.map(|labels| Addend { labels, decoding });
        Ok(())
    }

    /// The sum of the output and the addend, instead of shares of the output: a bit in a byte, lane by lane.
    /// Uses the item up. One round.
    pub(super) fn open_sum(
        &mut self,
        compiled: &Compiled,
        registers: &mut GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.under.ring.counts().rounds += 1;
        let item = registers.item.take().ok_or_else(spent)?;
        let plan = &registers.plan;
        let Some(seed) = item.part.seed() else { return self.tell_sum(compiled, item, registers, net) };
        let zeros = sums(&item, plan, seed)?;
        let mut message = vec![0; zeros.len().div_ceil(8) + claim::BYTES];
        net.recv(self.seats.evaluator, &mut message)?;
        let (sum, digest) = message.split_at(zeros.len().div_ceil(8));
        let sum = unpack(sum, zeros.len()).to_vec();
        let (delta, mut claim) = (seed.delta(), Claim::new(What::Opened, &item.name));
        zeros.iter().zip(&sum).for_each(|(zero, bit)| claim.update(&active(zero, *delta, *bit)));
        match claim.is(digest) {
            true => Ok(sum),
            false => {
                let detail = "it has not evaluated the sums that it tells".into();
                Err(Error::Peer { peer: self.seats.evaluator, detail })
            }
        }
    }

    /// Colours of the labels for zero of sums, and a digest of them. Returns them at the evaluator.
    fn tell_decoding(&mut self, item: &Item, plan: &Plan, net: &mut dyn Net) -> Result<Vec<u8>> {
        if let Some(seed) = item.part.seed() {
            let zeros = sums(item, plan, seed)?;
            let colours = pack(&zeros.iter().map(|zero| zero[0] & 1).collect::<Vec<u8>>());
            let message = match self.role {
                Role::First => colours,
                _ => claim_of_decoding(item, &colours).digest().to_vec(),
            };
            net.send(self.seats.evaluator, &message)?;
            return Ok(Vec::new());
        }
        let count = item.lanes() * only(plan)?.wires.len();
        let (mut colours, mut digest) = (vec![0; count.div_ceil(8)], [0; claim::BYTES]);
        net.recv(self.seats.first, &mut colours)?;
        net.recv(self.seats.second, &mut digest)?;
        match claim_of_decoding(item, &colours).is(&digest) {
            true => Ok(unpack(&colours, count).to_vec()),
            false => Err(self.garblers_differ("what decodes an output that is opened")),
        }
    }

    /// At the evaluator: the sum goes to both garblers.
    fn tell_sum(
        &mut self,
        compiled: &Compiled,
        item: Item,
        registers: &GarbledRegisters,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        let unevaluated = || Error::misuse("nothing was evaluated, or nothing is added");
        let (labels, _) = registers.labels.as_ref().ok_or_else(unevaluated)?;
        let addend = registers.addend.as_ref().ok_or_else(unevaluated)?;
        let mut outputs = Zeroizing::new(Vec::with_capacity(addend.decoding.len()));
        for at in 0..item.lanes() {
            let section = Section::Lane(item.name.lanes.start + at as u64);
            collect(compiled, &registers.plan, labels, (section, at), &mut outputs);
        }
        let mut claim = Claim::new(What::Opened, &item.name);
        let mut sum = Vec::with_capacity(addend.decoding.len());
        let both = outputs.iter().zip(addend.labels.labels());
        for ((output, addend), decoding) in both.zip(&addend.decoding) {
            let label = (number(output) ^ number(addend)).to_le_bytes();
            claim.update(&label);
            sum.push((label[0] ^ decoding) & 1);
        }
        let message = [&pack(&sum)[..], &claim.digest()].concat();
        net.send(self.seats.first, &message)?;
        net.send(self.seats.second, &message)?;
        Ok(sum)
    }
}

/// The wires of what is added, in a circuit with one output.
fn only(plan: &Plan) -> Result<&Place> {
    match &plan.addends[..] {
        [place] if !place.is_uniform => Ok(place),
        _ => Err(Error::misuse(
            "a sum is opened of the only output of a circuit, which each lane has for itself",
        )),
    }
}

/// The labels for zero of all sums, at a garbler.
fn sums(item: &Item, plan: &Plan, seed: &Seed) -> Result<Zeroizing<Vec<Label>>> {
    let place = only(plan)?;
    let [outputs, ..] = item.part.rows();
    let of_lanes = outputs.as_chunks().0.chunks(place.wires.len().max(1));
    let mut sums = Zeroizing::new(Vec::with_capacity(outputs.len()));
    for (section, outputs) in place.sections(item.name.lanes.clone()).zip(of_lanes) {
        let wires = seed.wires(section, plan.extent(section));
        let both = outputs.iter().zip(place.wires.clone());
        sums.extend(both.map(|(output, wire)| (number(output) ^ wires.input(wire)).to_le_bytes()));
    }
    Ok(sums)
}

fn claim_of_decoding(item: &Item, colours: &[u8]) -> Claim {
    let mut claim = Claim::new(What::Decoding, &item.name);
    claim.update(colours);
    claim
}
