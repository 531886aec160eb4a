//! What was computed becomes a replicated sharing of it. One message, from the evaluator to the first
//! garbler. Argued here; the paper opens its outputs to all.
//!
//! For an output z the three parties have, ahead: the evaluator's mask y, which the second garbler knows, and
//! the garblers' mask m ([`super::ahead`]). The evaluator's label of the wire z + y decodes to e = z + y + m.
//! It sends e to the first garbler, with a digest of all these labels. The first garbler computes which
//! labels stand for e, and compares.
//!
//! Then z = e + m + y, and each two parties have one summand in common: the first garbler and the evaluator
//! e, both garblers m, the second garbler and the evaluator y.
//!
//! * *Correct*: if the first garbler follows the protocol, it takes e only if the evaluator has the label of
//!   each e. The evaluator has no other labels of outputs than those of the inputs that it was given: it would
//!   need Delta for another (authenticity of half gates). m and y are each known to the parties that use them
//!   before anything is computed, so nobody can move them. If the evaluator or the first garbler cheats, the
//!   others' parts still are one sharing: a cheater can change what it says of its own components later, as
//!   under `replicated-active`, which catches it.
//! * *Private*: e is masked by m, which the evaluator lacks, and by y, which the first garbler lacks. The
//!   second garbler is sent nothing. The digest says nothing that e does not say to a party that knows both
//!   labels of each wire.
//! * *An abort tells nothing*: an evaluator that follows the protocol always passes. One that does not can
//!   make the first garbler abort, as by silence, and knows the outcome beforehand.

use polyclave_cipher::Compiled;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::super::shared::Shared;
use super::GarbledThree;
use super::claim::{self, Claim, What};
use super::commitments::active;
use super::gates::collect;
use super::item::{Item, Part};
use super::plan::{Plan, Section};
use super::seed::{mask_bits, number};
use super::shape::{by_cell, pack, unpack};
use crate::garbling::Registers;
use crate::interface::net::Net;
use crate::unchecked::Unchecked;
use crate::{Error, Result};

impl GarbledThree {
    /// Shares of all outputs, by the names of their ports. `labels` is what the evaluator has computed. Uses
    /// the item up. One round.
    pub(super) fn share_outputs(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        item: Item,
        labels: Option<&Registers>,
        net: &mut dyn Net,
    ) -> Result<Vec<(String, Shared)>> {
        self.under.ring.counts().rounds += 1;
        // This party's first share of all outputs, and its second.
        let shares = match (&item.part, labels) {
            (Part::First { .. }, _) => self.verify_outputs(plan, &item, net)?,
            (Part::Second { seed, masks, .. }, _) => {
                let all = |bits: &dyn Fn(Section) -> Zeroizing<Vec<u8>>| {
                    let sections = Section::all(item.name.lanes.clone());
                    Zeroizing::new(sections.flat_map(|section| bits(section).to_vec()).collect::<Vec<u8>>())
                };
                let own = |section: Section| {
                    let bits = seed.wires(section, plan.extent(section)).own_masks().collect();
                    Zeroizing::new(bits)
                };
                let common = |section: Section| mask_bits(masks, section, plan.extent(section));
                [all(&own), all(&common)]
            }
            (Part::Evaluator { .. }, Some(labels)) => {
                self.tell_outputs(compiled, plan, &item, labels, net)?
            }
            (Part::Evaluator { .. }, None) => return Err(Error::misuse("nothing was evaluated")),
        };
        Ok(by_port(compiled, plan, &item, &shares))
    }

    /// At the evaluator: e goes to the first garbler. Returns y and e.
    fn tell_outputs(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        item: &Item,
        registers: &Registers,
        net: &mut dyn Net,
    ) -> Result<[Zeroizing<Vec<u8>>; 2]> {
        let Part::Evaluator { decoding, masks, mask_labels, .. } = &item.part else {
            return Err(Error::misuse("the garbled circuit is another party's"));
        };
        let mut own = Zeroizing::new(Vec::with_capacity(decoding.len()));
        let mut labels = Zeroizing::new(Vec::with_capacity(decoding.len()));
        for section in Section::all(item.name.lanes.clone()) {
            own.extend_from_slice(&mask_bits(masks, section, plan.extent(section)));
            let at = match section {
                Section::Lane(lane) => (lane - item.name.lanes.start) as usize,
                Section::Uniform => 0,
            };
            collect(compiled, plan, registers, (section, at), &mut labels);
        }
        let mut claim = Claim::new(What::Outputs, &item.name);
        let mut told = Zeroizing::new(Vec::with_capacity(decoding.len()));
        let masked = labels.iter().zip(mask_labels.as_chunks().0);
        for ((label, mask), decoding) in masked.zip(decoding) {
            let label = (number(label) ^ number(mask)).to_le_bytes();
            claim.update(&label);
            told.push((label[0] ^ decoding) & 1);
        }
        let message = Zeroizing::new([&pack(&told)[..], &claim.digest()].concat());
        net.send(self.seats.first, &message)?;
        Ok([own, told])
    }

    /// At the first garbler: e, if the labels are those of e. Returns e and m.
    fn verify_outputs(
        &mut self,
        plan: &Plan,
        item: &Item,
        net: &mut dyn Net,
    ) -> Result<[Zeroizing<Vec<u8>>; 2]> {
        let Part::First { seed, outputs } = &item.part else {
            return Err(Error::misuse("the garbled circuit is another party's"));
        };
        let mut rest: &[Label] = outputs.as_chunks().0;
        let count = rest.len();
        let mut message = Zeroizing::new(vec![0; count.div_ceil(8) + claim::BYTES]);
        net.recv(self.seats.evaluator, &mut message)?;
        let (told, digest) = message.split_at(count.div_ceil(8));
        let told = unpack(told, count);
        let (delta, mut claim) = (seed.delta(), Claim::new(What::Outputs, &item.name));
        let mut own = Zeroizing::new(Vec::with_capacity(count));
        for section in Section::all(item.name.lanes.clone()) {
            let wires = seed.wires(section, plan.extent(section));
            let zeros = rest.split_off(..plan.extent(section).outputs).expect("they are of all sections");
            for ((zero, mask), bit) in zeros.iter().zip(wires.masks()).zip(wires.own_masks()) {
                let zero = (number(zero) ^ number(mask)).to_le_bytes();
                // The wire's value is e + m.
                claim.update(&active(&zero, *delta, told[own.len()] ^ bit));
                own.push(bit);
            }
        }
        match claim.is(digest) {
            true => Ok([told, own]),
            false => {
                let detail = "it has not evaluated the outputs that it tells".into();
                Err(Error::Peer { peer: self.seats.evaluator, detail })
            }
        }
    }
}

/// The shares of each port, from those of all sections one after another.
pub(super) fn by_port(
    compiled: &Compiled,
    plan: &Plan,
    item: &Item,
    shares: &[Zeroizing<Vec<u8>>; 2],
) -> Vec<(String, Shared)> {
    let uniform = plan.extent(Section::Uniform).outputs;
    let of_lane = plan.extent(Section::Lane(0)).outputs;
    let mut values = Vec::new();
    for (port, place) in compiled.outputs().iter().zip(&plan.outputs) {
        let (count, lanes) = (place.wires.len(), if place.is_uniform { 1 } else { item.lanes() });
        let mut rows = Zeroizing::new(Vec::with_capacity(2 * count * lanes));
        for share in shares {
            let section = |lane: usize| if place.is_uniform { 0 } else { uniform + lane * of_lane };
            let bits = (0..lanes).flat_map(|lane| &share[section(lane) + place.wires.start..][..count]);
            let bits = Zeroizing::new(bits.copied().collect::<Vec<u8>>());
            rows.extend_from_slice(&by_cell(&bits, lanes));
        }
        let value = Shared { bits: 1, count, lanes, rows, unchecked: Unchecked::default() };
        values.push((port.name.clone(), value));
    }
    values
}
