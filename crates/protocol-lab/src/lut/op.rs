//! OP-LUT (Dessouky et al. 2017): whole tables are made ahead, and a lookup opens a masked place (Ishai et
//! al. 2013, one-time truth tables).
//!
//! **Ahead.** The sender draws r and a random table T0. If the receiver's number is s, its table has to be
//! T1(k) = T(k + r + s) + T0(k). The sender does not know s, so it sends all of these tables, one for each s,
//! under the messages of a transfer out of N. The receiver has the message of its s alone.
//!
//! **Online.** x is shared as x0 + x1. One party opens x0 + r and the other x1 + s. Then both take the entry
//! of their table at the sum p = x + r + s. The entries add up to T(x), as p + r + s = x.
//!
//! **Security.** The sender learns nothing of s from the transfer, and s is uniform. The receiver knows one
//! of N messages; the others are hidden, each under a message that nobody else has, used once. What it knows
//! is T + T0 with its places moved, and T0 is uniform, so it learns nothing of r. Hence p is uniform to each
//! of the two, and tells nothing of x. The entry of each table at p is a share: that of the sender is uniform
//! because T0 is, and a table is read once.
//!
//! No index is secret: the table of T(k + r) is brought in order by swaps under masks, and the receiver goes
//! through all N messages.

use std::ops::Range;

use polyclave_cipher::{Compiled, Table};
use polyclave_kernels::secret::mark_public;
use zeroize::Zeroizing;

use super::Lut;
use super::ahead::{OfTable, mask_of};
use super::plan::{Group, Plan, RECEIVER, ROLES, SENDER};
use super::wire::{pack, packed_bytes, unpack};
use crate::secret_places::{choose, move_by};
use polyclave_protocol::net::Net;
use polyclave_protocol::pool::Shares;
use polyclave_protocol::{Error, Result};

/// Rounds of a layer.
pub(super) const ROUNDS: u64 = 1;
/// Rounds ahead, besides those of transfers: messages go on while others come, and wait for no answer.
pub(super) const ROUNDS_AHEAD: u64 = 1;

/// Messages are made and sent in pieces of about so many cells.
const PIECE: usize = 1 << 20;
/// Bytes of a word that is moved at once, and of a block.
const WORD: usize = 16;

/// This party's tables for all lookups of one table of the circuit.
pub(super) struct Tables {
    /// This party's part of what hides the place, by role: r or s.
    masks: [Zeroizing<Vec<u8>>; 2],
    /// Entry after entry, table after table: T0 or T1.
    entries: [Shares; 2],
    /// How many are used up.
    used: [usize; 2],
}

/// Bytes that a party keeps for a lookup.
pub(super) fn material_bytes(entries: usize) -> usize {
    1 + entries
}

/// Blocks of a message: a byte for each entry.
fn blocks(entries: usize) -> usize {
    entries.div_ceil(WORD)
}

impl Lut {
    /// Tables for all lookups, by table.
    pub(super) fn make_tables(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        net: &mut dyn Net,
    ) -> Result<Vec<Tables>> {
        let transfers = self.transfers(compiled, plan, blocks, net)?;
        if !transfers.is_empty() {
            self.tally.preprocessing.rounds += ROUNDS_AHEAD;
        }
        let made = transfers.into_iter().zip(compiled.tables());
        made.map(|(of_table, table)| self.make(table, of_table, net)).collect()
    }

    fn make(&mut self, table: &Table, of_table: OfTable, net: &mut dyn Net) -> Result<Tables> {
        let (entries, bits) = (table.entries().len(), table.out_bits());
        let cells = of_table.cells;
        let mut own = Zeroizing::new(vec![0; cells[SENDER]]);
        self.random_cells(table.in_bits(), &mut own);
        let mut shares = cells.map(|cells| self.pool.take(cells * entries));
        self.random_cells(bits, &mut shares[SENDER]);

        let of_piece = (PIECE / (entries * entries)).max(1);
        let piece = |role: usize, number: usize| {
            (number * of_piece).min(cells[role])..((number + 1) * of_piece).min(cells[role])
        };
        let most = of_piece.min(cells[SENDER].max(cells[RECEIVER]));
        let mut messages = Zeroizing::new(vec![0; most * entries * entries]);
        let mut pads = Zeroizing::new(vec![0; most * blocks(entries)]);
        for number in 0..cells[SENDER].max(cells[RECEIVER]).div_ceil(of_piece) {
            let [mine, theirs] = ROLES.map(|role| piece(role, number));
            let of = |cells: &Range<usize>, size: usize| cells.start * size..cells.end * size;

            let sent = &mut messages[..mine.len() * entries * entries];
            let hidden = Sent { table, masks: &own[mine.clone()], t0: &shares[SENDER][of(&mine, entries)] };
            let pad =
                |i: usize, pads: &mut [u128]| self.many.message(&of_table.sender, mine.clone(), i, pads);
            hidden.write(pad, &mut pads[..mine.len() * blocks(entries)], sent);
            let mut out = Vec::new();
            pack(sent, bits, &mut out);

            let mut into = vec![0; packed_bytes(theirs.len() * entries * entries, bits)];
            self.swap(&out, &mut into, net)?;

            let received = &mut messages[..theirs.len() * entries * entries];
            unpack(&into, bits, received);
            let pads = &mut pads[..theirs.len() * blocks(entries)];
            self.many.chosen(&of_table.receiver, theirs.clone(), pads);
            let t1 = &mut shares[RECEIVER][of(&theirs, entries)];
            read(table, &of_table.choices[theirs], pads, received, t1);
        }
        Ok(Tables { masks: [own, of_table.choices], entries: shares, used: [0; 2] })
    }

    /// The lookups of a layer.
    pub(super) fn look_up_tables(
        &mut self,
        groups: &[Group],
        tables: &mut [Tables],
        compiled: &Compiled,
        inputs: &mut [Zeroizing<Vec<u8>>],
        net: &mut dyn Net,
    ) -> Result<()> {
        let mut out = Vec::new();
        let mut begins = Vec::new();
        for (group, x) in groups.iter().zip(inputs.iter_mut()) {
            let tables = &mut tables[group.table];
            // Used up before anything is sent.
            let begin = tables.take(group.of_roles(self.is_first).map(|cells| cells.len()))?;
            for (role, cells) in group.of_roles(self.is_first).into_iter().enumerate() {
                let masks = &tables.masks[role][begin[role]..];
                x[cells].iter_mut().zip(masks).for_each(|(x, mask)| *x ^= mask);
            }
            pack(x, compiled.tables()[group.table].in_bits(), &mut out);
            begins.push(begin);
        }
        let mut into = vec![0; out.len()];
        self.swap(&out, &mut into, net)?;
        self.counts().rounds += ROUNDS;

        let mut rest = &into[..];
        for ((group, x), begin) in groups.iter().zip(inputs).zip(begins) {
            let table = &compiled.tables()[group.table];
            let (bits, entries) = (table.in_bits(), table.entries().len());
            let (message, later) = rest.split_at(packed_bytes(group.cells, bits));
            rest = later;
            let mut theirs = vec![0; group.cells];
            unpack(message, bits, &mut theirs);
            // It is sent. So the places are public, and what is read there is a share.
            mark_public(x);
            for (role, cells) in group.of_roles(self.is_first).into_iter().enumerate() {
                let shares = &tables[group.table].entries[role][begin[role] * entries..];
                let places = x[cells.clone()].iter_mut().zip(&theirs[cells]);
                for ((x, theirs), entries) in places.zip(shares.chunks_exact(entries)) {
                    *x = entries[usize::from(*x ^ theirs)];
                }
            }
        }
        Ok(())
    }
}

impl Tables {
    /// Where the next tables begin, by role. They are never handed out again.
    fn take(&mut self, cells: [usize; 2]) -> Result<[usize; 2]> {
        let begin = self.used;
        let end = ROLES.map(|role| begin[role] + cells[role]);
        if ROLES.iter().any(|role| end[*role] > self.masks[*role].len()) {
            return Err(Error::misuse("the batch was prepared for fewer lookups"));
        }
        self.used = end;
        Ok(begin)
    }
}

/// What the sender has of some cells.
struct Sent<'a> {
    table: &'a Table,
    /// r of each.
    masks: &'a [u8],
    /// T0 of each.
    t0: &'a [u8],
}

impl Sent<'_> {
    /// Writes for each cell all tables that the receiver may have: that of number i under message i of the
    /// transfer. `pad` writes those messages, for all cells.
    fn write(&self, pad: impl Fn(usize, &mut [u128]), pads: &mut [u128], messages: &mut [u8]) {
        let (entries, bits) = (self.table.entries().len(), mask_of(self.table.out_bits()));
        let word = WORD.min(entries);
        let mut moved = Zeroizing::new(self.table.entries().repeat(self.masks.len()));
        moved.chunks_exact_mut(entries).zip(self.masks).for_each(|(moved, mask)| move_by(moved, *mask));
        let mut within = Zeroizing::new(vec![0; moved.len()]);
        for low in 0..word {
            // T(k + r + low); what else is added to k moves whole words.
            within.copy_from_slice(&moved);
            within.chunks_exact_mut(entries).for_each(|moved| move_by(moved, low as u8));
            for high in 0..entries / word {
                let i = high * word + low;
                pad(i, pads);
                let cells =
                    messages.chunks_exact_mut(entries * entries).zip(pads.chunks_exact(entries / word));
                let tables = within.chunks_exact(entries).zip(self.t0.chunks_exact(entries));
                for ((message, pads), (moved, t0)) in cells.zip(tables) {
                    let message = message[i * entries..][..entries].chunks_exact_mut(word);
                    let words = message.zip(t0.chunks_exact(word)).zip(pads);
                    for (place, ((message, t0), pad)) in words.enumerate() {
                        let moved = &moved[(place ^ high) * word..][..word];
                        let sums = moved.iter().zip(t0).zip(pad.to_le_bytes());
                        let sums = sums.map(|((moved, t0), pad)| moved ^ t0 ^ pad & bits);
                        message.iter_mut().zip(sums).for_each(|(message, sum)| *message = sum);
                    }
                }
            }
        }
    }
}

/// Reads T1 of some cells: of the tables that came, the one under the message that the receiver has. The
/// tables are overwritten.
fn read(table: &Table, choices: &[u8], pads: &[u128], tables: &mut [u8], t1: &mut [u8]) {
    let (entries, bits) = (table.entries().len(), mask_of(table.out_bits()));
    let cells = tables.chunks_exact_mut(entries * entries).zip(t1.chunks_exact_mut(entries));
    for (((tables, t1), pads), choice) in cells.zip(pads.chunks_exact(blocks(entries))).zip(choices) {
        choose(tables, entries, *choice);
        for ((t1, table), pad) in t1.chunks_mut(WORD).zip(tables.chunks(WORD)).zip(pads) {
            let opened = table.iter().zip(pad.to_le_bytes()).map(|(table, pad)| table ^ pad & bits);
            t1.iter_mut().zip(opened).for_each(|(t1, entry)| *t1 = entry);
        }
    }
}
