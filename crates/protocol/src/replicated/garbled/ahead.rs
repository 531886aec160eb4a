//! Garbling, before the inputs are known (Mohassel, Rosulek and Zhang 2015, figure 2, steps 1 to 4). One
//! message from each garbler to the evaluator, whatever its length.
//!
//! * Both garblers garble from their common seed. The first sends tables and the decoding of outputs, the
//!   second a digest of the same bytes. One of them follows the protocol, so what passes is the right circuit
//!   ([`super::claim`]).
//! * The wires of the evaluator's masks have values that the second garbler and the evaluator draw from a
//!   common key. The second garbler opens their labels ([`super::commitments`]), and the first sends the
//!   digest.
//! * *Decoding*: the colour of an output's label for zero, plus the garblers' mask of it, which is uniform
//!   and of no other use. So the bit that the evaluator decodes is uniform, whatever colours it has seen.

use polyclave_cipher::Compiled;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::claim::{self, Claim, What};
use super::commitments::{Commitments, Committed, OPENED, label_of, open};
use super::gates::{GATE, Garbled, garble};
use super::item::{Item, Name, Part};
use super::plan::{Plan, Section};
use super::seed::{Seed, mask_bits, of_lot};
use super::{GarbledThree, Keys};
use crate::Result;
use crate::garbling::LABEL;
use crate::interface::net::Net;

/// A message is sent in pieces of so many bytes, so that one end sends while the other receives.
const PIECE: usize = 1 << 20;

impl GarbledThree {
    /// Garbles a circuit in some lanes.
    pub(super) fn garble(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Item> {
        let name = Name { lot: self.next_lot(compiled, lanes), lanes: 0..lanes as u64 };
        let gates = plan.total(lanes, |extent| extent.gates) as u64;
        let counts = self.under.ring.counts();
        counts.rounds += 1;
        counts.ciphertexts += 2 * gates;
        let part = match &self.keys {
            Keys::First { garbling } => {
                let seed = Seed::of(garbling, &name.lot);
                self.garble_and_send(compiled, plan, &name, seed, net)?
            }
            Keys::Second { garbling, masking } => {
                let (seed, masks) = (Seed::of(garbling, &name.lot), of_lot(masking, &name.lot));
                self.garble_and_vouch(compiled, plan, &name, (seed, masks), net)?
            }
            Keys::Evaluator { masking } => {
                let masks = of_lot(masking, &name.lot);
                self.receive_circuit(plan, &name, masks, net)?
            }
        };
        if !matches!(part, Part::Evaluator { .. }) {
            self.under.ring.counts().hash_calls += 4 * gates;
        }
        Ok(Item { name, circuit: compiled.digest(), part, given: vec![None; compiled.inputs().len()] })
    }

    fn garble_and_send(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        name: &Name,
        seed: Seed,
        net: &mut dyn Net,
    ) -> Result<Part> {
        let Garbled { tables, outputs } =
            garble(compiled, plan, (&name.lot, &seed), name.lanes.clone(), &self.under.ring.pool);
        let decoding = decoding(plan, name, &seed, &outputs);
        let masks = mask_commitments(plan, name, &seed);
        let vouched = claim_of_masks(name, &masks).digest();
        for piece in tables.chunks(PIECE) {
            net.send(self.seats.evaluator, piece)?;
        }
        net.send(self.seats.evaluator, &[&decoding[..], &vouched].concat())?;
        Ok(Part::First { seed, outputs: Zeroizing::new(outputs.as_flattened().to_vec()) })
    }

    fn garble_and_vouch(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        name: &Name,
        (seed, masks): (Seed, Zeroizing<[u8; 16]>),
        net: &mut dyn Net,
    ) -> Result<Part> {
        let Garbled { tables, outputs } =
            garble(compiled, plan, (&name.lot, &seed), name.lanes.clone(), &self.under.ring.pool);
        let decoding = decoding(plan, name, &seed, &outputs);
        let all = mask_commitments(plan, name, &seed);
        let mut rest: &[Label] = &all;
        let mut message = Zeroizing::new(claim_of_circuit(name, &tables, &decoding).digest().to_vec());
        for section in Section::all(name.lanes.clone()) {
            let extent = plan.extent(section);
            let bits = mask_bits(&masks, section, extent);
            let wires = seed.wires(section, extent);
            let commitments = rest.split_off(..2 * extent.outputs).expect("they are of all sections");
            message.extend_from_slice(&open(wires.masks(), *seed.delta(), commitments, &bits));
        }
        net.send(self.seats.evaluator, &message)?;
        Ok(Part::Second { seed, outputs: Zeroizing::new(outputs.as_flattened().to_vec()), masks })
    }

    fn receive_circuit(
        &mut self,
        plan: &Plan,
        name: &Name,
        masks: Zeroizing<[u8; 16]>,
        net: &mut dyn Net,
    ) -> Result<Part> {
        let lanes = (name.lanes.end - name.lanes.start) as usize;
        let outputs = plan.total(lanes, |extent| extent.outputs);
        let mut tables = vec![0; plan.total(lanes, |extent| extent.gates) * GATE];
        for piece in tables.chunks_mut(PIECE) {
            net.recv(self.seats.first, piece)?;
        }
        let mut decoding = vec![0; outputs + claim::BYTES];
        net.recv(self.seats.first, &mut decoding)?;
        let vouched_masks = decoding.split_off(outputs);
        let mut message = Zeroizing::new(vec![0; claim::BYTES + outputs * OPENED]);
        net.recv(self.seats.second, &mut message)?;
        let (vouched_circuit, opened) = message.split_at(claim::BYTES);
        if !claim_of_circuit(name, &tables, &decoding).is(vouched_circuit) {
            return Err(self.garblers_differ("a garbled circuit"));
        }
        let mut hash = Commitments::new(&name.lot);
        let mut claim = Claim::new(What::Masks, name);
        let (mut rest, mut labels) = (opened, Zeroizing::new(Vec::with_capacity(outputs * LABEL)));
        for section in Section::all(name.lanes.clone()) {
            let extent = plan.extent(section);
            let opened = rest.split_off(..extent.outputs * OPENED).expect("they are of all sections");
            let (opened, bits) = (opened.as_chunks().0, mask_bits(&masks, section, extent));
            claim.update(
                hash.of_opened(Committed::Masks.first(section, extent), opened, &bits).as_flattened(),
            );
            opened.iter().for_each(|opened| labels.extend_from_slice(&label_of(opened)));
        }
        match claim.is(&vouched_masks) {
            true => Ok(Part::Evaluator { tables, decoding, masks, mask_labels: labels }),
            false => Err(self.garblers_differ("labels of masks")),
        }
    }

    /// A name that no other lot has: of the stream, a number in it, and what is garbled.
    fn next_lot(&mut self, compiled: &Compiled, lanes: usize) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 garbled-three: name of a lot");
        hasher.update(&self.label).update(&self.made.to_le_bytes()).update(&compiled.digest());
        hasher.update(&(lanes as u64).to_le_bytes());
        self.made += 1;
        *hasher.finalize().as_bytes()
    }
}

fn claim_of_circuit(name: &Name, tables: &[u8], decoding: &[u8]) -> Claim {
    let mut claim = Claim::new(What::Circuit, name);
    claim.update(tables);
    claim.update(decoding);
    claim
}

fn claim_of_masks(name: &Name, commitments: &[Label]) -> Claim {
    let mut claim = Claim::new(What::Masks, name);
    claim.update(commitments.as_flattened());
    claim
}

/// What the evaluator adds to the colours of outputs.
fn decoding(plan: &Plan, name: &Name, seed: &Seed, outputs: &[Label]) -> Vec<u8> {
    let mut rest = outputs;
    let mut decoding = Vec::with_capacity(outputs.len());
    for section in Section::all(name.lanes.clone()) {
        let wires = seed.wires(section, plan.extent(section));
        let labels = rest.split_off(..plan.extent(section).outputs).expect("they are of all sections");
        let zeros = labels.iter().zip(wires.masks()).zip(wires.own_masks());
        decoding.extend(zeros.map(|((label, mask), own)| (label[0] ^ mask[0]) & 1 ^ own));
    }
    decoding
}

/// Commitments to both labels of all masks.
fn mask_commitments(plan: &Plan, name: &Name, seed: &Seed) -> Zeroizing<Vec<Label>> {
    let mut hash = Commitments::new(&name.lot);
    let mut all = Zeroizing::new(Vec::new());
    for section in Section::all(name.lanes.clone()) {
        let extent = plan.extent(section);
        let wires = seed.wires(section, extent);
        let zeros = wires.masks();
        all.extend_from_slice(&hash.of_wires(Committed::Masks.first(section, extent), zeros, *seed.delta()));
    }
    all
}
