//! Openings verified by commitments to the tables, all at once (Damgard et al. 2016, section 6; figure 11).
//!
//! Each party is committed to its *table string*: the bits of its shares of all entries, of all lookups and
//! lanes of a batch (`table_string`). Online both parties send shares without MACs, as in the passive
//! protocol. They note which entry of each table was used, which both know, and what the peer sent for it. A
//! check opens from both strings the bits of the entries that were used ([`crate::minimac`]), and each party
//! compares its peer's bits with what it was sent. A commitment is used once: a check uses up the commitments
//! of all batches that were begun before it. If a batch was begun and not finished, the rest of it cannot be
//! used. To try that is a misuse, because an evaluation has to run to its end.
//!
//! A check takes 5 rounds if there is something to open, whatever its size, and none otherwise.
//!
//! **Why this is enough** (lemma 2). The functionality behind the check gives out bits of the strings that
//! the dealer fixed, or ends (lemma 1; `minimac/opening.rs`). A simulator that plays the honest party and the
//! dealer acts as for the passive protocol:
//!
//! * *Before the check* the cheater sees one entry of each of the honest party's tables, at a masked input
//!   that both know, and nothing else. The share of an entry is masked by the mask of the output. That mask
//!   is uniform and used in this table alone, and the cheater has only a share of it, or none. This holds
//!   wherever the masked input points, so also after the cheater has opened wrong entries. These only lead
//!   the honest party to other entries, which are as uniform as the right ones. The honest party's messages
//!   are uniform bits, whatever the inputs, and the simulator sends such bits.
//! * *In the check* the honest party opens the entries that it has sent, by its own account of the masked
//!   inputs, and nothing that it has not sent. The selection is bound into the opening, so if the cheater
//!   uses another selection, the opening ends.
//! * *Whether the check passes* depends on what the cheater sent and on the shares that it was dealt, and on
//!   no input or mask. It passes if all the cheater's entries are right, and otherwise with probability
//!   2^-256 ([`crate::minimac::Code::STANDARD`]: 2^-270; digests: 2^-256). So an abort reveals nothing.
//! * *After it* all masked values are those of an honest run. Only now are the masks of outputs opened. Their
//!   tags are checked (2^-64) before anybody hears a result. Masks of inputs, opened at the beginning, were
//!   checked with the entries.
//!
//! After any difference the linear MAC key is retired, too, for all sessions.

mod insecure_committed_tables;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::Lookup;
use polyclave_kernels::secret::ct_eq;
use polyclave_protocol::tinytable::{Batch, Commitments, Made, Packing, Place, Plan, Registers, Theirs};

use crate::minimac::{Code, Committed, KeyShare, Opener};
use polyclave_protocol::net::Net;
use polyclave_protocol::tinyot::peer_of;
use polyclave_protocol::{Error, Result};

/// Rounds of an opening of commitments (`minimac/opening.rs`).
const ROUNDS: u64 = 5;

/// What a check has to open, on one stream of a session.
pub struct CommittedTables {
    opener: Opener,
    made: Strings,
    in_use: Vec<InUse>,
}

/// Commitments to the table strings of both parties, in their order, by the number of the batch, until it is
/// begun.
pub(crate) type Strings = Arc<Mutex<BTreeMap<u64, [Committed; 2]>>>;

/// Bits of the table string that one lookup has.
fn string_bits(place: &Place) -> usize {
    place.width * place.record.entries * usize::from(place.record.out_bits)
}

/// A batch that was begun after the last check.
struct InUse {
    number: u64,
    /// By lookup, where its bits of the strings begin.
    firsts: Vec<usize>,
    /// To the strings of both parties, in their order.
    strings: [Committed; 2],
    /// For each bit of the strings: 1 if it was sent. Public.
    selection: Vec<u8>,
    /// The bits that the peer sent, in the order of its string.
    theirs: Vec<u8>,
}

impl CommittedTables {
    /// `label` names the stream and is used once. The dealer puts commitments into `made`.
    pub(crate) fn new(key: KeyShare, label: &[u8], made: Strings) -> Self {
        CommittedTables { opener: Opener::new(key, label), made, in_use: Vec::new() }
    }

    fn in_use_of(&mut self, batch: &Batch) -> Result<&mut InUse> {
        let spent = || Error::misuse("a check has used up the batch: it comes after the whole evaluation");
        self.in_use.iter_mut().find(|in_use| in_use.number == batch.number()).ok_or_else(spent)
    }
}

impl Commitments for CommittedTables {
    fn bytes(&self, plan: &Plan<'_>) -> usize {
        2 * Committed::bytes_of(Code::STANDARD, plan.places.iter().map(string_bits).sum())
    }

    fn begin(&mut self, batch: &Batch) -> Result<()> {
        if let Some(strings) = self.made.lock().remove(&batch.number()) {
            let mut end = 0;
            let firsts = batch.places().iter().map(|place| {
                let first = end;
                end += string_bits(place);
                first
            });
            let (firsts, selection) = (firsts.collect(), vec![0; strings[0].len()]);
            let number = batch.number();
            self.in_use.push(InUse { number, firsts, strings, selection, theirs: Vec::new() });
        }
        self.in_use_of(batch).map(|_| ())
    }

    fn note(
        &mut self,
        lookups: &[Lookup],
        places: std::ops::Range<usize>,
        registers: &Registers,
        batch: &Batch,
        theirs: &[u8],
    ) -> Result<()> {
        let in_use = self.in_use_of(batch)?;
        let (mut entries, mut row) = (Vec::new(), 0);
        for (lookup, number) in lookups.iter().zip(places) {
            let (place, start) = (&batch.places()[number], in_use.firsts[number]);
            let bits = usize::from(place.record.out_bits);
            entries.resize(place.width, 0);
            registers.copy_indices_to(lookup.xs[0], &mut entries);
            for (lane, entry) in entries.iter().enumerate() {
                let first = start + (lane * place.record.entries + usize::from(*entry)) * bits;
                in_use.selection[first..first + bits].fill(1);
                let share = Theirs(theirs, registers.packing).of(row, lane);
                in_use.theirs.extend((0..bits).map(|bit| share >> bit & 1));
            }
            row += place.row_bytes(registers.packing);
        }
        Ok(())
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<u64> {
        let peer = peer_of(net)?;
        let begun = std::mem::take(&mut self.in_use);
        let rounds = if begun.is_empty() { 0 } else { ROUNDS };
        let (mut strings, mut selections, mut sent) = (Vec::new(), Vec::new(), Vec::new());
        for InUse { strings: both, selection, theirs, .. } in begun {
            strings.extend(both);
            selections.push(selection);
            sent.push(theirs);
        }
        // The same selections for both strings.
        let selections: Vec<_> = selections.iter().flat_map(|s| [s.as_slice(); 2]).collect();
        // Without strings, too: it refuses after an earlier failure.
        let opened = self.opener.open(strings, &selections, net)?;
        let is_right =
            opened.chunks_exact(2).zip(&sent).all(|(opened, sent)| ct_eq(&opened[peer.index()], sent));
        match is_right {
            true => Ok(rounds),
            false => {
                Err(Error::CheckFailed { what: "the entries that were opened, by the committed tables" })
            }
        }
    }
}

/// The bits of a party's shares of all entries: lookup by lookup, lane by lane, entry by entry, the lowest
/// bit first; 0 or 1 each.
fn table_string(plan: &Plan<'_>, made: &Made) -> Vec<u8> {
    let mut string = Vec::with_capacity(plan.places.iter().map(string_bits).sum());
    for place in &plan.places {
        let (entries, table) = (place.record.entries, place.record.table_bytes());
        let plane = Packing::plane_bytes(place.width);
        for lane in 0..place.width {
            for entry in 0..entries {
                let share = match plan.packing {
                    Packing::Cells => made.records[place.records + lane * table + entry * place.record.bytes],
                    Packing::Planes => made.planes[place.planes + entry * plane + lane / 8] >> (lane % 8),
                };
                string.extend((0..place.record.out_bits).map(|bit| share >> bit & 1));
            }
        }
    }
    string
}
