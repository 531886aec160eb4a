//! SP-LUT (Dessouky et al. 2017): only random transfers are made ahead, and a lookup sends the whole table
//! once, under a mask.
//!
//! **Ahead.** A random transfer out of N messages of one entry each. The sender has all messages m, the
//! receiver a random number s and m(s).
//!
//! **Online.** x is shared as x0 + x1, of which the receiver has x1. It sends u = s + x1. The sender draws z
//! and sends, for every q, V(q) = T(q + u + x0) + m(q) + z. At q = s the receiver has T(s + u + x0) + z =
//! T(x) + z, which is its share, and z is the sender's.
//!
//! **Security.** The sender sees u, and s is uniform to it. The receiver knows m(s) alone. Every other m(q)
//! is a hash that it cannot compute, and is used once, so V(q) is uniform to it; and V(s) hides T(x) under z,
//! which nobody else has. The transfer's random number may be corrected by u in the open (Beaver 1995,
//! "Precomputing Oblivious Transfer"), because s is used once.
//!
//! No index is secret: the table is brought in order by swaps under masks, and the receiver goes through all
//! of V.
//!
//! # Differences from the paper
//! The paper's sender moves the messages by u and the table by x0. Here it moves the table by the sum, and
//! the receiver looks at s and not at x1. What is sent is the same in another order, and u is known to both.

use polyclave_cipher::{Compiled, Table};
use zeroize::Zeroizing;

use super::Lut;
use super::ahead::{OfTable, mask_of};
use super::plan::{Group, Plan, RECEIVER, ROLES, SENDER};
use super::wire::{pack, packed_bytes, unpack};
use crate::secret_places::{choose, move_by};
use polyclave_protocol::net::Net;
use polyclave_protocol::pool::Shares;
use polyclave_protocol::{Error, Result};

/// Rounds of a layer: u, and then V.
pub(super) const ROUNDS: u64 = 2;

/// Transfers whose messages are made at a time.
const AT_ONCE: usize = 512;

/// This party's messages of all transfers for one table of the circuit.
pub(super) struct Messages {
    /// As the sender: all messages, transfer after transfer.
    all: Shares,
    /// And z of each.
    outputs: Zeroizing<Vec<u8>>,
    /// As the receiver: s of each transfer.
    choices: Zeroizing<Vec<u8>>,
    /// And m(s).
    chosen: Zeroizing<Vec<u8>>,
    /// How many are used up, by role.
    used: [usize; 2],
}

/// Bytes that a party keeps for a lookup as the sender and for one as the receiver, together.
pub(super) fn material_bytes_of_two(entries: usize) -> usize {
    entries + 1 + 2
}

impl Lut {
    /// Random transfers for all lookups, by table.
    pub(super) fn make_messages(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        net: &mut dyn Net,
    ) -> Result<Vec<Messages>> {
        let transfers = self.transfers(compiled, plan, |_| 1, net)?;
        let made = transfers.into_iter().zip(compiled.tables());
        Ok(made.map(|(of_table, table)| self.messages(table, of_table)).collect())
    }

    fn messages(&mut self, table: &Table, of_table: OfTable) -> Messages {
        let (entries, bits) = (table.entries().len(), table.out_bits());
        let [sent, received] = of_table.cells;
        let mut all = self.pool.take(sent * entries);
        let mut outputs = Zeroizing::new(vec![0; sent]);
        self.random_cells(bits, &mut outputs);
        let mut blocks = Zeroizing::new([0_u128; AT_ONCE]);
        for begin in (0..sent).step_by(AT_ONCE) {
            let some = begin..sent.min(begin + AT_ONCE);
            let blocks = &mut blocks[..some.len()];
            for i in 0..entries {
                self.many.message(&of_table.sender, some.clone(), i, blocks);
                let messages = all[some.start * entries..some.end * entries].chunks_exact_mut(entries);
                let cells = blocks.iter().map(|block| *block as u8 & mask_of(bits));
                messages.zip(cells).for_each(|(messages, cell)| messages[i] = cell);
            }
        }
        let mut chosen = Zeroizing::new(vec![0; received]);
        for begin in (0..received).step_by(AT_ONCE) {
            let some = begin..received.min(begin + AT_ONCE);
            let blocks = &mut blocks[..some.len()];
            self.many.chosen(&of_table.receiver, some.clone(), blocks);
            let cells = blocks.iter().map(|block| *block as u8 & mask_of(bits));
            chosen[some].iter_mut().zip(cells).for_each(|(chosen, cell)| *chosen = cell);
        }
        Messages { all, outputs, choices: of_table.choices, chosen, used: [0; 2] }
    }

    /// The lookups of a layer.
    pub(super) fn look_up_by_messages(
        &mut self,
        groups: &[Group],
        messages: &mut [Messages],
        compiled: &Compiled,
        inputs: &mut [Zeroizing<Vec<u8>>],
        net: &mut dyn Net,
    ) -> Result<()> {
        let is_first = self.is_first;
        let of_roles = |group: &Group| group.of_roles(is_first);
        let table = |group: &Group| &compiled.tables()[group.table];
        let (mut out, mut due, mut begins) = (Vec::new(), 0, Vec::new());
        for (group, x) in groups.iter().zip(&*inputs) {
            let [sent, received] = of_roles(group);
            let messages = &mut messages[group.table];
            // Used up before anything is sent.
            let begin = messages.take([sent.len(), received.len()])?;
            let choices = &messages.choices[begin[RECEIVER]..];
            let u: Zeroizing<Vec<u8>> =
                Zeroizing::new(x[received].iter().zip(choices).map(|(x, s)| x ^ s).collect());
            pack(&u, table(group).in_bits(), &mut out);
            due += packed_bytes(sent.len(), table(group).in_bits());
            begins.push(begin);
        }
        let mut into = vec![0; due];
        self.swap(&out, &mut into, net)?;

        out.clear();
        let (mut rest, mut due) = (&into[..], 0);
        for ((group, x), begin) in groups.iter().zip(inputs.iter_mut()).zip(&begins) {
            let [sent, received] = of_roles(group);
            let (table, messages) = (table(group), &messages[group.table]);
            let (bytes, later) = rest.split_at(packed_bytes(sent.len(), table.in_bits()));
            rest = later;
            let mut u = vec![0; sent.len()];
            unpack(bytes, table.in_bits(), &mut u);
            messages.write_tables(table, begin[SENDER], &u, &mut x[sent], &mut out);
            due += packed_bytes(received.len() * table.entries().len(), table.out_bits());
        }
        let mut into = vec![0; due];
        self.swap(&out, &mut into, net)?;
        self.counts().rounds += ROUNDS;

        let mut rest = &into[..];
        for ((group, x), begin) in groups.iter().zip(inputs).zip(&begins) {
            let [_, received] = of_roles(group);
            let (table, messages) = (table(group), &messages[group.table]);
            let cells = received.len() * table.entries().len();
            let (bytes, later) = rest.split_at(packed_bytes(cells, table.out_bits()));
            rest = later;
            messages.read_tables(table, begin[RECEIVER], bytes, &mut x[received]);
        }
        Ok(())
    }
}

impl Messages {
    /// Where the next transfers begin, by role. They are never handed out again.
    fn take(&mut self, cells: [usize; 2]) -> Result<[usize; 2]> {
        let begin = self.used;
        let end = ROLES.map(|role| begin[role] + cells[role]);
        if end[SENDER] > self.outputs.len() || end[RECEIVER] > self.choices.len() {
            return Err(Error::misuse("the batch was prepared for fewer lookups"));
        }
        self.used = end;
        Ok(begin)
    }

    /// Appends V of each cell, and puts z in the place of x0.
    fn write_tables(&self, table: &Table, begin: usize, u: &[u8], x: &mut [u8], to: &mut Vec<u8>) {
        let entries = table.entries().len();
        let mut all = Zeroizing::new(table.entries().repeat(x.len()));
        let messages = self.all[begin * entries..].chunks_exact(entries).zip(&self.outputs[begin..]);
        let cells = all.chunks_exact_mut(entries).zip(x.iter_mut().zip(u));
        for ((v, (x, u)), (messages, z)) in cells.zip(messages) {
            move_by(v, *x ^ u);
            v.iter_mut().zip(messages).for_each(|(v, message)| *v ^= message ^ z);
            *x = *z;
        }
        pack(&all, table.out_bits(), to);
    }

    /// Reads V of each cell, and puts T(x) + z in the place of x1.
    fn read_tables(&self, table: &Table, begin: usize, bytes: &[u8], x: &mut [u8]) {
        let entries = table.entries().len();
        let mut all = Zeroizing::new(vec![0; x.len() * entries]);
        unpack(bytes, table.out_bits(), &mut all);
        let transfers = self.choices[begin..].iter().zip(&self.chosen[begin..]);
        for ((v, x), (s, message)) in all.chunks_exact_mut(entries).zip(x).zip(transfers) {
            choose(v, 1, *s);
            *x = v[0] ^ message;
        }
    }
}
