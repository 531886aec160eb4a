//! Inputs get their values: from the garbler labels, and before that, for shared values, an opening (Katz,
//! Ranellucci, Rosulek and Wang 2018, input processing, where each input is one party's).
//!
//! * **A public value** v: the garbler sends, for each wire with mask lambda = r + s, the label of the masked
//!   value v + lambda, though it knows s no more than the evaluator knows r. It sends r, and L + (v + r)
//!   Delta + K\[s\]; the evaluator adds its tag K\[s\] + s Delta. One message. A hash of the tags of all r
//!   shows that they are right. The evaluator learns r, and so the mask of a public value.
//! * **A shared value** x: the parties open x + lambda in authenticated sharing, and the garbler sends its
//!   label. One round and one message, and the MACs are checked at the next check of the session.
//!
//! What is opened is uniform, as lambda is and is used once. If a cheater opens x + lambda wrongly, the
//! circuit is evaluated on another value, of which masked values tell nothing, and the check fails before
//! anything is released, except with probability about 2^-62.
//!
//! Both kinds of values can be given ahead, in which case MACs are checked at once.
//!
//! With labels the garbler sends the name of the circuit. If the parties take different ones out of their
//! stocks, the evaluator so finds it before it looks for a fault that would cost the key.

use polyclave_cipher::{Cells, CompiledPort, Matrix};
use polyclave_field::{Gf2_64, MacField};
use polyclave_kernels::secret::{ct_eq, mask};
use zeroize::Zeroizing;

use super::ahead::put;
use super::item::{Given, Item, Masked, Part};
use super::plan::Plan;
use super::wires::{Active, Mask, Wires};
use super::{GarbledAuthenticated, LABEL, spent};
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::interface::protocol::{Input, check_cells};
use crate::spdz::Shared;
use crate::spdz::shared::image_of_bits;
use crate::{Error, Result};

/// Bytes of a hash of tags.
const DIGEST: usize = 32;
/// Bytes of the name of a circuit.
const NAME: usize = 32;

/// An input that is to be given.
pub(super) struct Value {
    port: usize,
    of: Of,
    digest: [u8; 32],
}

enum Of {
    /// Bits, all lanes of each.
    Public(Vec<u8>),
    Shared(Shared<Gf2_64>),
}

impl Value {
    pub(super) fn public(port: usize, cells: &Cells) -> Value {
        let digest = digest(b"public", [cells.rows(), &[]]);
        Value { port, of: Of::Public(cells.rows().to_vec()), digest }
    }

    pub(super) fn shared(port: usize, value: Shared<Gf2_64>) -> Value {
        let macs: Zeroizing<Vec<u8>> =
            Zeroizing::new(value.macs.iter().flat_map(|mac| mac.to_le_bytes()).collect());
        Value { port, digest: digest(b"shared", [&value.cells, &macs]), of: Of::Shared(value) }
    }
}

/// Of this party's part of a value, which it keeps with its item.
fn digest(kind: &[u8], rows: [&[u8]; 2]) -> [u8; 32] {
    let mut hasher =
        blake3::Hasher::new_derive_key("polyclave 2026 garbled-authenticated: a value that is given");
    hasher.update(kind);
    rows.iter().for_each(|row| _ = hasher.update(row));
    *hasher.finalize().as_bytes()
}

impl GarbledAuthenticated {
    /// Refuses a value that does not fit a port: it has as many bits, in cells of any width.
    pub(super) fn refuse_other_shape(
        port: &CompiledPort,
        value: &Shared<Gf2_64>,
        lanes: usize,
    ) -> Result<()> {
        let lanes = if port.uniform { 1 } else { lanes };
        let fits = value.lanes == lanes
            && [1, 2, 4, 8].contains(&value.bits)
            && value.count * usize::from(value.bits) == port.cells.len();
        if fits {
            Ok(())
        } else {
            Err(Error::Misuse(format!("the shared value does not fit input {}", port.name)))
        }
    }

    /// Gives all inputs that have no value yet theirs, and sets the active labels of all.
    pub(super) fn put_in(
        &mut self,
        (ports, plan): (&[CompiledPort], &Plan),
        inputs: &[Input<'_, Shared<Gf2_64>>],
        item: &mut Item,
        net: &mut dyn Net,
    ) -> Result<Wires<Active>> {
        let mut values = Vec::new();
        for (index, (port, input)) in ports.iter().zip(inputs).enumerate() {
            let value = match input {
                Input::Public(cells) => {
                    check_cells(port, cells, item.lanes)?;
                    Value::public(index, cells)
                }
                Input::Shared(shared) => {
                    self.under.arithmetic.refuse_unchecked(&shared.unchecked)?;
                    Self::refuse_other_shape(port, shared, item.lanes)?;
                    Value::shared(index, (*shared).clone())
                }
                Input::Mine(cells) => {
                    check_cells(port, cells, item.lanes)?;
                    let lanes = if port.uniform { 1 } else { item.lanes };
                    let shared = self.under.arithmetic.share(net.me(), Some(cells), port, lanes, net)?;
                    Value::shared(index, shared)
                }
                Input::From(owner) => {
                    let lanes = if port.uniform { 1 } else { item.lanes };
                    Value::shared(index, self.under.arithmetic.share(*owner, None, port, lanes, net)?)
                }
            };
            match &item.inputs[index] {
                Masked::Given(given) => given.refuse_other(&value.digest)?,
                Masked::Waiting(_) => values.push(value),
            }
        }
        self.deliver(&mut [(&mut *item, values)], plan, net)?;
        self.wires_of(item, plan)
    }

    /// Of a circuit whose inputs all have values: what the evaluator has of them.
    pub(super) fn wires_of(&self, item: &Item, plan: &Plan) -> Result<Wires<Active>> {
        let mut wires = Wires::new(plan, item.lanes);
        for (port, input) in plan.inputs.iter().zip(&item.inputs) {
            let Masked::Given(given) = input else { return Err(spent()) };
            if !self.garbles() {
                put(&mut wires, &port.rows, port.lanes(item.lanes), &given.active);
            }
        }
        Ok(wires)
    }

    /// Gives some inputs of some circuits their values. None of them has one. What is opened for all is
    /// opened together. Nothing is sent if there are none.
    pub(super) fn deliver(
        &mut self,
        items: &mut [(&mut Item, Vec<Value>)],
        plan: &Plan,
        net: &mut dyn Net,
    ) -> Result<()> {
        let masked = self.open(items, plan, net)?;
        self.label(items, masked, net)
    }

    /// The labels of some inputs of some circuits. `masked` are their masked bits, as [`open`](Self::open)
    /// gives them.
    pub(super) fn label(
        &mut self,
        items: &mut [(&mut Item, Vec<Value>)],
        masked: Vec<Vec<Vec<u8>>>,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.counts().rounds += u64::from(items.iter().any(|(_, values)| !values.is_empty()));
        for ((item, values), masked) in items.iter_mut().zip(masked) {
            self.send_labels(item, values, masked, net)?;
        }
        Ok(())
    }

    /// The labels of some inputs of one circuit. One message.
    fn send_labels(
        &self,
        item: &mut Item,
        values: &[Value],
        masked: Vec<Vec<u8>>,
        net: &mut dyn Net,
    ) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut waiting = Vec::new();
        for (value, masked) in values.iter().zip(masked) {
            let given = Given { digest: value.digest, active: Zeroizing::default() };
            let Masked::Waiting(masks) =
                std::mem::replace(&mut item.inputs[value.port], Masked::Given(given))
            else {
                return Err(spent());
            };
            waiting.push(Wanted { value, masks, masked });
        }
        match &item.part {
            Part::Garbler { delta, inputs, .. } => {
                let message = message((&item.name, **delta), inputs, &waiting);
                net.send(self.peer, &message)
            }
            Part::Evaluator { .. } => {
                let active = self.receive(&item.name, &waiting, net)?;
                for (value, active) in values.iter().zip(active) {
                    item.inputs[value.port] = Masked::Given(Given { digest: value.digest, active });
                }
                Ok(())
            }
        }
    }

    /// Opens x + lambda for all shared values. Gives, by circuit, the masked bits of each value, none of
    /// public ones.
    pub(super) fn open(
        &mut self,
        items: &[(&mut Item, Vec<Value>)],
        plan: &Plan,
        net: &mut dyn Net,
    ) -> Result<Vec<Vec<Vec<u8>>>> {
        let (mut cells, mut macs) = (Zeroizing::new(Vec::new()), Zeroizing::new(Vec::new()));
        let shared = |value: &Value| match &value.of {
            Of::Shared(shared) => shared.count * shared.lanes,
            Of::Public(_) => 0,
        };
        let total = items.iter().flat_map(|(_, values)| values).map(shared).sum();
        // Growing would leave copies behind.
        cells.reserve_exact(total);
        macs.reserve_exact(total);
        for (item, values) in items {
            for value in values {
                let (Of::Shared(shared), Masked::Waiting(masks)) = (&value.of, &item.inputs[value.port])
                else {
                    continue;
                };
                let len = shared.count * shared.lanes;
                let bits = self.in_authenticated_sharing(&in_places(shared, masks));
                let mask = image_of_bits(&bits, &Matrix::identity(shared.bits), len);
                let mut mask_cells = Zeroizing::new(vec![0; len]);
                Gf2_64::project_row(&mut mask_cells, &mask.values);
                cells.extend(shared.cells[..len].iter().zip(mask_cells.iter()).map(|(x, mask)| x ^ mask));
                macs.extend(shared.macs[..len].iter().zip(mask.macs.iter()).map(|(x, mask)| x ^ mask));
            }
        }
        let nothing = Authenticated::zero(0);
        let opened = match total {
            0 => Vec::new(),
            _ => self.under.arithmetic.open(&nothing, &cells, &macs, net)?.1,
        };
        let mut rest = &opened[..];
        let mut masked = |value: &Value| match &value.of {
            Of::Public(_) => Ok(Vec::new()),
            Of::Shared(shared) => {
                let (now, later) = rest.split_at(shared.count * shared.lanes);
                rest = later;
                let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
                // A cheater can open bits beyond a cell. The check is of the whole, and fails.
                let cell = 0xff >> (8 - shared.bits);
                cells.rows_mut().iter_mut().zip(now).for_each(|(to, x)| *to = x & cell);
                let bits = Cells::from_blocks(plan.inputs[value.port].rows.len(), 1, &cells.to_blocks());
                Ok(bits.map_err(|error| Error::Misuse(error.to_string()))?.rows().to_vec())
            }
        };
        items.iter().map(|(_, values)| values.iter().map(&mut masked).collect()).collect()
    }

    /// At the evaluator: active labels of all values.
    fn receive(
        &self,
        name: &[u8; 32],
        values: &[Wanted<'_>],
        net: &mut dyn Net,
    ) -> Result<Vec<Zeroizing<Vec<Active>>>> {
        let mut message = Zeroizing::new(vec![0; message_bytes(values)]);
        net.recv(self.peer, &mut message)?;
        // Before anything is compared that could cost the key.
        let (message, of) = message.split_at(message.len() - name.len());
        if of != name {
            let detail = "it gives labels of another garbled circuit".into();
            return Err(Error::OutOfStep { peer: self.peer, detail });
        }
        let count = public_masks(values).count();
        let wires: usize = values.iter().map(|wanted| wanted.masks.len()).sum();
        let (labels, rest) = message.split_at(wires * LABEL);
        let (shares, shown) = rest.split_at(count.div_ceil(8));
        let shares = unpack(shares, count);
        let key = &self.under.arithmetic.key;
        let alpha = key.reveal_own_share();
        if count > 0 {
            let expected = public_masks(values).zip(shares.iter());
            let expected =
                hash_of_tags(name, expected.map(|(of, bit)| of.word ^ (mask(u64::from(*bit)) & alpha)));
            key.judge(|| (!ct_eq(&expected[..], shown)).then_some(WRONG_TAGS))?;
        }
        let (mut labels, mut shares) = (labels.as_chunks().0.iter(), shares.iter());
        let mut label = || labels.next().map_or(0, |label| u128::from_le_bytes(*label));
        let mut active = Vec::new();
        for Wanted { value, masks, masked } in values {
            let mut of_port = Zeroizing::new(Vec::with_capacity(masks.len()));
            match &value.of {
                Of::Public(bits) => {
                    for ((of, bit), share) in masks.iter().zip(bits).zip(&mut shares) {
                        of_port.push(Active { label: label() ^ of.block, bit: bit ^ of.bit ^ share });
                    }
                }
                Of::Shared(_) => {
                    of_port.extend(masked.iter().map(|bit| Active { label: label(), bit: *bit }))
                }
            }
            active.push(of_port);
        }
        Ok(active)
    }
}

/// What the garbler sends: labels of all values, then all r of public ones and a hash of their tags, then the
/// name of the circuit.
fn message(
    (name, delta): (&[u8; 32], u128),
    labels: &[Zeroizing<Vec<u128>>],
    values: &[Wanted<'_>],
) -> Zeroizing<Vec<u8>> {
    let mut message = Zeroizing::new(Vec::with_capacity(message_bytes(values)));
    for Wanted { value, masks, masked } in values {
        let labels = &labels[value.port];
        match &value.of {
            Of::Public(bits) => {
                for ((label, of), bit) in labels.iter().zip(masks.iter()).zip(bits) {
                    let offset = mask(u128::from(bit ^ of.bit)) & delta;
                    message.extend((label ^ offset ^ of.block).to_le_bytes());
                }
            }
            Of::Shared(_) => {
                for (label, bit) in labels.iter().zip(masked) {
                    let offset = mask(u128::from(*bit)) & delta;
                    message.extend((label ^ offset).to_le_bytes());
                }
            }
        }
    }
    let public = || public_masks(values);
    let shares: Zeroizing<Vec<u8>> = Zeroizing::new(public().map(|of| of.bit).collect());
    message.extend(pack(&shares));
    if public().next().is_some() {
        message.extend(hash_of_tags(name, public().map(|of| of.word)));
    }
    message.extend(name);
    message
}

/// A value whose labels are on their way.
struct Wanted<'a> {
    value: &'a Value,
    masks: Zeroizing<Vec<Mask>>,
    /// Of a shared value.
    masked: Vec<u8>,
}

const WRONG_TAGS: Error = Error::CheckFailed { what: "the tags of masks of public inputs" };

/// The masks of all public values.
fn public_masks<'a>(values: &'a [Wanted<'_>]) -> impl Iterator<Item = &'a Mask> {
    let public = values.iter().filter(|wanted| matches!(wanted.value.of, Of::Public(_)));
    public.flat_map(|wanted| wanted.masks.iter())
}

fn message_bytes(values: &[Wanted<'_>]) -> usize {
    let wires: usize = values.iter().map(|wanted| wanted.masks.len()).sum();
    let public = public_masks(values).count();
    wires * LABEL + public.div_ceil(8) + if public > 0 { DIGEST } else { 0 } + NAME
}

/// A cheater that changes an r has to guess its tag.
fn hash_of_tags(name: &[u8; 32], tags: impl Iterator<Item = u64>) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 garbled-authenticated: tags of masks");
    hasher.update(name);
    tags.for_each(|tag| _ = hasher.update(&tag.to_le_bytes()));
    *hasher.finalize().as_bytes()
}

/// The masks of a port's bits where the bits of a value's cells are: the lowest of all cells, then the next.
fn in_places(value: &Shared<Gf2_64>, masks: &[Mask]) -> Zeroizing<Vec<Mask>> {
    let (width, lanes) = (usize::from(value.bits), value.lanes);
    let mut placed = Zeroizing::new(vec![Mask::default(); masks.len()]);
    for (bit, row) in masks.chunks(lanes).enumerate() {
        let (cell, place) = place_of(bit, width);
        let at = (place * value.count + cell) * lanes;
        placed[at..at + lanes].copy_from_slice(row);
    }
    placed
}

/// In which cell of some bits, and in which place of it from the lowest, a bit of a block is: as
/// [`Cells::place`], the first bit is the highest of the first cell.
pub(super) fn place_of(bit: usize, width: usize) -> (usize, usize) {
    (bit / width, width - 1 - bit % width)
}

/// Bits, eight in a byte.
pub(super) fn pack(bits: &[u8]) -> Vec<u8> {
    let byte = |bits: &[u8]| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | bit << i);
    bits.chunks(8).map(byte).collect()
}

/// So many bits of a message.
pub(super) fn unpack(bytes: &[u8], count: usize) -> Zeroizing<Vec<u8>> {
    Zeroizing::new((0..count).map(|i| bytes[i / 8] >> (i % 8) & 1).collect())
}
