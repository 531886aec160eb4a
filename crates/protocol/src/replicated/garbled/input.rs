//! Labels of inputs reach the evaluator (Mohassel, Rosulek and Zhang 2015, figure 2, steps 4 and 5): one
//! message from each garbler, for all inputs together. The same message serves ahead, for a key, and online.
//!
//! A wire of the circuit is the sum of three wires, one for each component of a shared value, so it costs no
//! gate.
//!
//! | component | who knows it | whose labels the evaluator gets from | and verifies by |
//! |---|---|---|---|
//! | 0 | first garbler, evaluator | the first | commitments, of which the second sends a digest |
//! | 1 | both garblers | the first | the second's digest of the same labels |
//! | 2 | second garbler, evaluator | the second | commitments, of which the first sends a digest |
//!
//! * *A component that the evaluator knows* is opened at the place of its own bit ([`super::commitments`]).
//!   So whoever shares an input cannot give two parties different components without an abort.
//! * *The one that it lacks* comes with a digest of the garbler that follows the protocol, if the other does
//!   not. Its labels have random colours, so they do not tell the bits.
//! * *A public value* comes as labels of the sums, by the first garbler. The second's digest has these labels
//!   and the value, so that all three mean the same value.
//! * *No selective failure*: the evaluator compares what it received with what follows from its own shares
//!   and from the messages. If both garblers follow the protocol all comparisons pass, and if one does not,
//!   their result follows from what this one has changed, not from a share that it lacks. Figure 2 aborts in
//!   the same places.

use polyclave_cipher::Cells;
use polyclave_kernels::label_hash::Label;
use zeroize::Zeroizing;

use super::super::shared::Shared;
use super::GarbledThree;
use super::claim::{self, Claim, What};
use super::commitments::{Commitments, Committed, OPENED, active, label_of, open};
use super::item::{Given, Item, Part};
use super::plan::{Place, Plan, Section};
use super::roles::{BY_FIRST, BY_SECOND, HIDDEN, Role};
use super::seed::{Seed, Wires, number};
use super::shape::by_lane;
use crate::Result;
use crate::garbling::LABEL;
use crate::interface::net::Net;

/// A value that is to be given: its bits lane by lane.
pub(super) struct Value {
    place: Place,
    pub(super) bits: Bits,
    digest: [u8; 32],
}

/// A bit in a byte, lane by lane.
pub(super) enum Bits {
    /// All know them.
    Public(Zeroizing<Vec<u8>>),
    /// Both shares of this party.
    Shared([Zeroizing<Vec<u8>>; 2]),
}

impl Value {
    /// A public value.
    pub(super) fn public(place: &Place, cells: &Cells) -> Value {
        let digest = digest(b"public", cells.rows());
        Value { place: place.clone(), bits: Bits::Public(by_lane(cells.rows(), cells.lanes())), digest }
    }

    /// A shared value in cells of one bit.
    pub(super) fn shared(place: &Place, value: &Shared) -> Value {
        let bits = [0, 1].map(|share| by_lane(value.share(share), value.lanes));
        Value { place: place.clone(), bits: Bits::Shared(bits), digest: digest(b"shared", &value.rows) }
    }

    /// Refuses a value that is not the one that the item belongs to.
    pub(super) fn refuse_other(&self, given: &Given) -> Result<()> {
        given.refuse_other(&self.digest)
    }

    /// Bytes that the two garblers send, without digests, for so many wires.
    fn lengths(&self, wires: usize) -> [usize; 2] {
        match self.bits {
            Bits::Public(_) => [wires * LABEL, 0],
            Bits::Shared(_) => [wires * (OPENED + LABEL), wires * OPENED],
        }
    }
}

/// Of this party's part of a value, which it keeps with its item.
fn digest(kind: &[u8], rows: &[u8]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 garbled-three: a value that is given");
    hasher.update(kind).update(rows);
    *hasher.finalize().as_bytes()
}

/// The wires of a value in one section.
struct Piece<'a> {
    value: &'a Value,
    section: Section,
    /// Where its bits are in those of the value.
    start: usize,
}

impl Piece<'_> {
    /// The bits of a component, of which this party has this share.
    fn bits(&self, share: usize) -> &[u8] {
        let bits = match &self.value.bits {
            Bits::Public(bits) => bits,
            Bits::Shared(shares) => &shares[share],
        };
        &bits[self.start..][..self.wires()]
    }

    fn wires(&self) -> usize {
        self.value.place.wires.len()
    }

    /// The number of the first wire among those that are committed to.
    fn first(&self, plan: &Plan, committed: Committed) -> u64 {
        committed.first(self.section, plan.extent(self.section)) + self.value.place.wires.start as u64
    }
}

/// The pieces of some values, in the order of messages.
fn pieces<'a>(values: &'a [Value], item: &Item) -> Vec<Piece<'a>> {
    let lanes = || item.name.lanes.clone();
    let of_value = |value: &'a Value| {
        let sections = value.place.sections(lanes()).enumerate();
        sections.map(|(i, section)| Piece { value, section, start: i * value.place.wires.len() })
    };
    values.iter().flat_map(of_value).collect()
}

impl GarbledThree {
    /// Gives the evaluator the labels of some values, none of which it has any label of. Nothing is sent if
    /// there are none. One round.
    pub(super) fn deliver(
        &mut self,
        item: &Item,
        plan: &Plan,
        values: &[Value],
        net: &mut dyn Net,
    ) -> Result<Vec<Given>> {
        if values.is_empty() {
            return Ok(Vec::new());
        }
        self.under.ring.counts().rounds += 1;
        let pieces = pieces(values, item);
        let labels = match &item.part {
            Part::First { seed, .. } => {
                net.send(self.seats.evaluator, &first_message(item, plan, seed, &pieces))?;
                Zeroizing::default()
            }
            Part::Second { seed, .. } => {
                net.send(self.seats.evaluator, &second_message(item, plan, seed, &pieces))?;
                Zeroizing::default()
            }
            Part::Evaluator { .. } => self.receive_labels(item, plan, &pieces, net)?,
        };
        let mut rest: &[Label] = &labels;
        let given = values.iter().map(|Value { place, digest, .. }| {
            let wires = place.sections(item.name.lanes.clone()).count() * place.wires.len();
            let labels = match item.part {
                Part::Evaluator { .. } => rest.split_off(..wires).expect("there is a label for each wire"),
                _ => &[],
            };
            Given { digest: *digest, labels: Zeroizing::new(labels.as_flattened().to_vec()) }
        });
        Ok(given.collect())
    }

    /// Both messages, compared. Returns the active labels of all wires.
    fn receive_labels(
        &mut self,
        item: &Item,
        plan: &Plan,
        pieces: &[Piece<'_>],
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<Label>>> {
        let lengths = pieces.iter().map(|piece| piece.value.lengths(piece.wires()));
        let lengths = lengths.fold([claim::BYTES; 2], |[a, b], [c, d]| [a + c, b + d]);
        let [mut by_first, mut by_second] = lengths.map(|len| Zeroizing::new(vec![0; len]));
        net.recv(self.seats.first, &mut by_first)?;
        net.recv(self.seats.second, &mut by_second)?;
        let (mut of_first, vouched_second) = by_first.split_at(lengths[0] - claim::BYTES);
        let (mut of_second, vouched_first) = by_second.split_at(lengths[1] - claim::BYTES);

        let [share_0, share_2] = [BY_FIRST, BY_SECOND].map(|component| own_share(Role::Evaluator, component));
        let mut hash = Commitments::new(&item.name.lot);
        let mut first = Claim::new(What::SentByFirst, &item.name);
        let mut second = Claim::new(What::SentBySecond, &item.name);
        let mut labels = Zeroizing::new(Vec::new());
        for piece in pieces {
            let wires = piece.wires();
            let [len_0, len_2] = piece.value.lengths(wires);
            let from_first = of_first.split_off(..len_0).expect("lengths were added up");
            let from_second = of_second.split_off(..len_2).expect("lengths were added up");
            let Bits::Shared(_) = piece.value.bits else {
                first.update(piece.bits(0));
                first.update(from_first);
                labels.extend_from_slice(from_first.as_chunks().0);
                continue;
            };
            let (opened, hidden) = from_first.split_at(wires * OPENED);
            let [opened_0, opened_2] = [opened, from_second].map(|opened| opened.as_chunks().0);
            let list = hash.of_opened(piece.first(plan, Committed::ByFirst), opened_0, piece.bits(share_0));
            first.update(list.as_flattened());
            first.update(hidden);
            let list = hash.of_opened(piece.first(plan, Committed::BySecond), opened_2, piece.bits(share_2));
            second.update(list.as_flattened());
            let parts = opened_0.iter().zip(hidden.as_chunks().0).zip(opened_2);
            labels.extend(
                parts.map(|((a, b), c)| {
                    (number(&label_of(a)) ^ number(b) ^ number(&label_of(c))).to_le_bytes()
                }),
            );
        }
        if !first.is(vouched_first) {
            return Err(self.garblers_differ("labels that the first garbler sent"));
        }
        match second.is(vouched_second) {
            true => Ok(labels),
            false => Err(self.garblers_differ("labels that the second garbler sent")),
        }
    }
}

/// Labels of what the first garbler knows, and a digest of the commitments to what the second opens.
fn first_message(item: &Item, plan: &Plan, seed: &Seed, pieces: &[Piece<'_>]) -> Zeroizing<Vec<u8>> {
    let (delta, mut hash) = (seed.delta(), Commitments::new(&item.name.lot));
    let mut claim = Claim::new(What::SentBySecond, &item.name);
    let length = pieces.iter().map(|piece| piece.value.lengths(piece.wires())[0]).sum::<usize>();
    let mut message = Zeroizing::new(Vec::with_capacity(length + claim::BYTES));
    for piece in pieces {
        let wires = seed.wires(piece.section, plan.extent(piece.section));
        let range = piece.value.place.wires.clone();
        match piece.value.bits {
            Bits::Public(_) => message.extend_from_slice(&public_labels(piece, &wires, *delta)),
            Bits::Shared(_) => {
                let zeros = &wires.component(BY_FIRST)[range.clone()];
                let list = hash.of_wires(piece.first(plan, Committed::ByFirst), zeros, *delta);
                let bits = piece.bits(own_share(Role::First, BY_FIRST));
                message.extend_from_slice(&open(zeros, *delta, &list, bits));
                message.extend_from_slice(&hidden_labels(piece, &wires, *delta, Role::First));
                let zeros = &wires.component(BY_SECOND)[range];
                let list = hash.of_wires(piece.first(plan, Committed::BySecond), zeros, *delta);
                claim.update(list.as_flattened());
            }
        }
    }
    message.extend_from_slice(&claim.digest());
    message
}

/// Labels of what the second garbler alone opens, and a digest of what the first one sends.
fn second_message(item: &Item, plan: &Plan, seed: &Seed, pieces: &[Piece<'_>]) -> Zeroizing<Vec<u8>> {
    let (delta, mut hash) = (seed.delta(), Commitments::new(&item.name.lot));
    let mut claim = Claim::new(What::SentByFirst, &item.name);
    let length = pieces.iter().map(|piece| piece.value.lengths(piece.wires())[1]).sum::<usize>();
    let mut message = Zeroizing::new(Vec::with_capacity(length + claim::BYTES));
    for piece in pieces {
        let wires = seed.wires(piece.section, plan.extent(piece.section));
        let range = piece.value.place.wires.clone();
        match piece.value.bits {
            Bits::Public(_) => {
                claim.update(piece.bits(0));
                claim.update(&public_labels(piece, &wires, *delta));
            }
            Bits::Shared(_) => {
                let zeros = &wires.component(BY_SECOND)[range.clone()];
                let list = hash.of_wires(piece.first(plan, Committed::BySecond), zeros, *delta);
                let bits = piece.bits(own_share(Role::Second, BY_SECOND));
                message.extend_from_slice(&open(zeros, *delta, &list, bits));
                let zeros = &wires.component(BY_FIRST)[range];
                let list = hash.of_wires(piece.first(plan, Committed::ByFirst), zeros, *delta);
                claim.update(list.as_flattened());
                claim.update(&hidden_labels(piece, &wires, *delta, Role::Second));
            }
        }
    }
    message.extend_from_slice(&claim.digest());
    message
}

/// Active labels of the component that the evaluator lacks, at a garbler.
fn hidden_labels(piece: &Piece<'_>, wires: &Wires, delta: u128, role: Role) -> Zeroizing<Vec<u8>> {
    let zeros = &wires.component(HIDDEN)[piece.value.place.wires.clone()];
    let labels = zeros.iter().zip(piece.bits(own_share(role, HIDDEN)));
    Zeroizing::new(labels.flat_map(|(zero, bit)| active(zero, delta, *bit)).collect())
}

/// Active labels of a public value.
fn public_labels(piece: &Piece<'_>, wires: &Wires, delta: u128) -> Zeroizing<Vec<u8>> {
    let labels = piece.value.place.wires.clone().zip(piece.bits(0));
    let label = |(wire, bit): (usize, &u8)| active(&wires.input(wire).to_le_bytes(), delta, *bit);
    Zeroizing::new(labels.flat_map(label).collect())
}

/// Which share of a party is a component that it has.
fn own_share(role: Role, component: usize) -> usize {
    role.share_of(component).expect("the role has this component")
}
