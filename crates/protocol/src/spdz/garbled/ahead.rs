//! What happens before inputs are known: masks of wires, products of masks, and the garbled circuit (Katz,
//! Ranellucci, Rosulek and Wang 2018, function-independent and function-dependent preprocessing).
//!
//! 1. TinyOT makes a random authenticated bit for each input bit, and two and a triple (x, y, z) for each
//!    AND. The first are the masks lambda of inputs and of results; those of sums follow.
//! 2. For an AND with input masks lambda_a and lambda_b both parties open d = lambda_a + x and e = lambda_b +
//!    y. Then z + d y + e x + d e is lambda_a lambda_b (Beaver 1991).
//! 3. They open f = lambda_a lambda_b + t for the second bit t. Then t + f is lambda_a lambda_b, too. (The
//!    triples have tags of 64 bits, and t one of 128.)
//! 4. They compare the tags of all d, e and f.
//! 5. The garbler sends the gates.
//!
//! x, y and t are uniform, and used once. So d, e and f tell nothing. Before tags have been compared nothing
//! is sent that depends on them.
//!
//! A public bit is added to the garbler's share of t. So the evaluator's tag stays as it is, and its key of
//! the garbler's tag changes.

use polyclave_field::Gf2_64;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::secret::mask;
use zeroize::Zeroizing;

use super::gates::{self, GATE, GateMasks};
use super::item::{Item, Masked, Part};
use super::plan::Plan;
use super::wires::{Mask, Wires};
use super::{GarbledAuthenticated, upper};
use crate::Result;
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::interface::session::random_bytes;
use crate::tinyot::{Bits, Source, Triples, WideBits};

/// The masks of one circuit.
struct Masks {
    inputs: Vec<Zeroizing<Vec<Mask>>>,
    outputs: Zeroizing<Vec<Mask>>,
    /// By gate: of both operands and of the result, to which the operands' product is added later.
    gates: Zeroizing<Vec<GateMasks>>,
}

/// Random bits that are handed out one after another.
struct Bag<'a> {
    bits: &'a WideBits,
    garbles: bool,
    spent: usize,
}

impl Bag<'_> {
    fn take(&mut self, count: usize) -> Zeroizing<Vec<Mask>> {
        let range = self.spent..self.spent + count;
        self.spent = range.end;
        let mask = |i: usize| {
            let (tag, key) = (self.bits.tags[i], self.bits.keys[i]);
            let (block, word) = if self.garbles { (key, tag) } else { (tag, key) };
            Mask { block, word: upper(word), bit: self.bits.values[i] }
        };
        Zeroizing::new(range.map(mask).collect())
    }
}

impl GarbledAuthenticated {
    /// Makes some garbled circuits. Between the material and the gates, which are one message for each
    /// circuit, three rounds.
    pub(super) fn garble(
        &mut self,
        circuit: &[u8; 32],
        plan: &Plan,
        (lanes, count): (usize, usize),
        net: &mut dyn Net,
    ) -> Result<Vec<Item>> {
        let (gates, inputs) = (plan.gates(lanes), plan.input_bits(lanes));
        let tinyot = self.tinyot()?;
        let triples = tinyot.triples(count * gates, net)?;
        let bits = tinyot.wide_bits(count * (inputs + 2 * gates), net)?;
        let counts = self.counts();
        counts.triples += (count * gates) as u64;
        counts.bits += bits.values.len() as u64;
        counts.rounds += 4;
        counts.openings += 3 * (count * gates) as u64;
        counts.ciphertexts += (count * gates * GATE / size_of::<u128>()) as u64;
        let mut bag = Bag { bits: &bits, garbles: self.garbles(), spent: 0 };
        let mut made: Vec<Masks> = (0..count).map(|_| Masks::of(plan, lanes, &mut bag)).collect();
        let second = bag.take(count * gates);
        self.add_products(&mut made, second, triples, net)?;
        made.into_iter().map(|masks| self.finish(circuit, plan, lanes, masks, net)).collect()
    }

    /// Steps 2 to 4: adds the product of the operands' masks to the masks of results.
    fn add_products(
        &mut self,
        made: &mut [Masks],
        mut second: Zeroizing<Vec<Mask>>,
        triples: Triples,
        net: &mut dyn Net,
    ) -> Result<()> {
        let key = self.under.arithmetic.key.clone();
        let Triples { mut x, mut y, mut z } = triples;
        let len = z.len();
        let operand =
            |which: usize| made.iter().flat_map(|masks| masks.gates.iter()).map(move |of| &of[which]);
        let mut masked = self.bits_of(operand(0).chain(operand(1)), 2 * len);
        masked.add(&Bits::join(&[&x, &y]));
        let opened = self.openings.open(&masked, &key, net)?;
        let (d, e) = opened.split_at(len);
        times_public(&mut y, d);
        times_public(&mut x, e);
        z.add(&y);
        z.add(&x);
        let product: Vec<u8> = d.iter().zip(e).map(|(d, e)| d & e).collect();
        z.add_public(&product, &key);
        z.add(&self.bits_of(second.iter(), len));
        let opened = self.openings.open(&z, &key, net)?;
        self.openings.check(&key, net)?;

        let alpha = key.reveal_own_share();
        for (mask, public) in second.iter_mut().zip(opened) {
            match self.garbles() {
                true => mask.bit ^= public,
                false => mask.word ^= alpha & u64::from(public).wrapping_neg(),
            }
        }
        let results = made.iter_mut().flat_map(|masks| masks.gates.iter_mut());
        results.zip(second.iter()).for_each(|([_, _, result], product)| *result ^= *product);
        Ok(())
    }

    /// Masks as bits whose tags both have 64 bits.
    fn bits_of<'a>(&self, masks: impl Iterator<Item = &'a Mask>, len: usize) -> Bits {
        let mut bits = Bits::zero(len);
        for (i, mask) in masks.enumerate() {
            let (block, word) = (upper(mask.block), mask.word);
            bits.values[i] = mask.bit;
            (bits.tags[i], bits.keys[i]) = if self.garbles() { (word, block) } else { (block, word) };
        }
        bits
    }

    /// Step 5.
    fn finish(
        &mut self,
        circuit: &[u8; 32],
        plan: &Plan,
        lanes: usize,
        masks: Masks,
        net: &mut dyn Net,
    ) -> Result<Item> {
        let name = self.next_name();
        let ands = masks.gates.len();
        let part = match self.garbles() {
            true => {
                let mut seed = Zeroizing::new([0; 16]);
                random_bytes(&mut *seed)?;
                let mut random = AesPrg::new(&seed, 0);
                let mut labels = Wires::<u128>::new(plan, lanes);
                let mut inputs = Vec::new();
                for port in &plan.inputs {
                    let of_port = random_labels(&mut random, port.bits(lanes));
                    put(&mut labels, &port.rows, port.lanes(lanes), &of_port);
                    inputs.push(of_port);
                }
                let delta = self.tinyot()?.delta();
                let table = gates::garble(plan, (&name, *delta), &masks.gates, &mut labels);
                self.counts().hash_calls += 8 * ands as u64;
                net.send(self.peer, &table)?;
                Part::Garbler { delta, inputs, outputs: outputs_of(plan, lanes, &labels) }
            }
            false => {
                let mut table = vec![0; ands * GATE];
                net.recv(self.peer, &mut table)?;
                Part::Evaluator { gates: gates::keep(&table, &masks.gates) }
            }
        };
        Ok(Item {
            name,
            circuit: *circuit,
            lanes,
            inputs: masks.inputs.into_iter().map(Masked::Waiting).collect(),
            outputs: self.in_authenticated_sharing(&masks.outputs),
            part,
        })
    }

    /// Masks as bits in authenticated sharing, as [`Bits::to_spdz`].
    pub(super) fn in_authenticated_sharing(&self, masks: &[Mask]) -> Authenticated<Gf2_64> {
        let alpha = self.under.arithmetic.key.reveal_own_share();
        let mut shares = Authenticated::zero(masks.len());
        for (i, of) in masks.iter().enumerate() {
            shares.values[i] = u64::from(of.bit);
            shares.macs[i] = (mask(u64::from(of.bit)) & alpha) ^ upper(of.block) ^ of.word;
        }
        shares
    }
}

impl Masks {
    /// Step 1.
    fn of(plan: &Plan, lanes: usize, bag: &mut Bag<'_>) -> Masks {
        let mut wires = Wires::<Mask>::new(plan, lanes);
        let mut inputs = Vec::new();
        for port in &plan.inputs {
            let of_port = bag.take(port.bits(lanes));
            put(&mut wires, &port.rows, port.lanes(lanes), &of_port);
            inputs.push(of_port);
        }
        let nothing = Mask::default();
        let mut gates = Zeroizing::new(Vec::with_capacity(plan.gates(lanes)));
        for step in &plan.steps {
            // A public bit changes no mask.
            wires.add_up(&step.sums, nothing);
            let [a, b] = wires.operands(step, nothing);
            let results = bag.take(a.len());
            wires.set_results(step, nothing, &results);
            gates.extend(a.iter().zip(b.iter()).zip(results.iter()).map(|((a, b), c)| [*a, *b, *c]));
        }
        Masks { inputs, outputs: outputs_of(plan, lanes, &wires), gates }
    }
}

/// Bits times bits that both parties know.
fn times_public(bits: &mut Bits, public: &[u8]) {
    let words = || public.iter().map(|bit| u64::from(*bit).wrapping_neg());
    bits.values.iter_mut().zip(public).for_each(|(value, bit)| *value &= bit);
    bits.tags.iter_mut().zip(words()).for_each(|(tag, all)| *tag &= all);
    bits.keys.iter_mut().zip(words()).for_each(|(key, all)| *key &= all);
}

fn random_labels(random: &mut AesPrg, count: usize) -> Zeroizing<Vec<u128>> {
    let mut bytes = Zeroizing::new(vec![0; count * size_of::<u128>()]);
    random.fill(&mut bytes);
    Zeroizing::new(bytes.as_chunks().0.iter().map(|label| u128::from_le_bytes(*label)).collect())
}

/// Writes what belongs to a port's bits to their rows.
pub(super) fn put<T: super::wires::Wire>(
    wires: &mut Wires<T>,
    rows: &[Vec<super::plan::Row>],
    lanes: usize,
    values: &[T],
) {
    for (rows, values) in rows.iter().zip(values.chunks(lanes)) {
        rows.iter().for_each(|row| wires.row_mut(*row).copy_from_slice(values));
    }
}

/// What belongs to all outputs, port by port.
pub(super) fn outputs_of<T: super::wires::Wire>(
    plan: &Plan,
    lanes: usize,
    wires: &Wires<T>,
) -> Zeroizing<Vec<T>> {
    let mut outputs = Zeroizing::new(Vec::with_capacity(plan.output_bits(lanes)));
    for port in &plan.outputs {
        for rows in &port.rows {
            let row = rows.first().map_or(&[][..], |row| wires.row(*row));
            match row {
                // A uniform wire among others.
                [same] => outputs.extend(std::iter::repeat_n(*same, port.lanes(lanes))),
                row => outputs.extend_from_slice(row),
            }
        }
    }
    outputs
}
