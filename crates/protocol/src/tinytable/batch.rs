//! The material of one evaluation of one circuit: tables for every lookup and masks for every port, handed
//! out once.
//!
//! Tables are stored in the order of the lookups, lane after lane, each entry as one record
//! ([`super::macs`]). For Boolean gates the shares are stored apart, with one plane for every entry. So an
//! evaluation reads memory from one end to the other.

use polyclave_cipher::Compiled;
use polyclave_kernels::memory::wipe;

use super::macs::{Macs, Record};
use super::registers::Packing;
use crate::pool::Shares;
use crate::{Error, Result};

/// One party's shares of masks of cells, cell by cell, and within a cell lane by lane. Wiped on drop.
#[derive(Clone, Default)]
pub struct Masks {
    /// A share each.
    pub values: Vec<u8>,
    /// Its tag; none without verification.
    pub tags: Vec<u128>,
    /// The key of the tag of the peer's share.
    pub keys: Vec<u128>,
}

impl Masks {
    /// Shares of this many zeros.
    pub fn zero(len: usize, macs: Macs) -> Masks {
        let tags = if macs == Macs::None { 0 } else { len };
        Masks { values: vec![0; len], tags: vec![0; tags], keys: vec![0; tags] }
    }

    pub(super) fn add(&mut self, other: &Masks) {
        self.values.iter_mut().zip(&other.values).for_each(|(x, y)| *x ^= y);
        self.tags.iter_mut().zip(&other.tags).for_each(|(x, y)| *x ^= y);
        self.keys.iter_mut().zip(&other.keys).for_each(|(x, y)| *x ^= y);
    }

    /// Bytes of `len` masks.
    fn bytes(len: usize, macs: Macs) -> usize {
        len * if macs == Macs::None { 1 } else { 1 + 2 * size_of::<u128>() }
    }
}

impl Drop for Masks {
    fn drop(&mut self) {
        wipe(&mut self.values);
        wipe(&mut self.tags);
        wipe(&mut self.keys);
    }
}

/// Where the tables of one lookup stand.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which table of the circuit.
    pub table: usize,
    /// The kind of record that every entry has.
    pub record: Record,
    /// Lanes, or 1.
    pub width: usize,
    /// Where the records begin.
    pub records: usize,
    /// Where the planes begin.
    pub planes: usize,
}

impl Place {
    /// Bytes of one party's opened shares in memory: a cell each or a plane.
    pub fn row_bytes(&self, packing: Packing) -> usize {
        match packing {
            Packing::Cells => self.width,
            Packing::Planes => Packing::plane_bytes(self.width),
        }
    }
}

/// Where everything of a batch stands.
pub struct Plan<'a> {
    /// The circuit.
    pub compiled: &'a Compiled,
    /// Lanes.
    pub lanes: usize,
    /// How openings are verified.
    pub macs: Macs,
    /// How rows hold their lanes.
    pub packing: Packing,
    /// By lookup.
    pub places: Vec<Place>,
    /// Bytes of all records.
    pub records: usize,
    /// Bytes of all planes.
    pub planes: usize,
}

impl<'a> Plan<'a> {
    /// For `lanes` lanes of a circuit.
    pub fn new(compiled: &'a Compiled, lanes: usize, macs: Macs) -> Plan<'a> {
        let packing = Packing::of(compiled);
        let mut plan = Plan { compiled, lanes, macs, packing, places: Vec::new(), records: 0, planes: 0 };
        for lookup in compiled.lookups() {
            let width = if lookup.is_uniform() { 1 } else { lanes };
            let record = Record::of(&compiled.tables()[lookup.table], macs, packing);
            let (records, planes) = (plan.records, plan.planes);
            plan.places.push(Place { table: lookup.table, record, width, records, planes });
            plan.records += width * record.table_bytes();
            if packing == Packing::Planes {
                plan.planes += record.entries * Packing::plane_bytes(width);
            }
        }
        plan
    }

    /// Bytes of material: tables, MACs of them, and masks of ports.
    pub fn bytes(&self) -> usize {
        let ports = self.compiled.inputs().iter().chain(self.compiled.outputs());
        let cells = ports.map(|p| p.cells.len() * if p.uniform { 1 } else { self.lanes }).sum();
        self.records + self.planes + Masks::bytes(cells, self.macs)
    }
}

/// What a maker has made for a plan.
pub struct Made {
    /// By input port.
    pub inputs: Vec<Masks>,
    /// By output port.
    pub outputs: Vec<Masks>,
    /// The records of all tables.
    pub records: Shares,
    /// The planes of gates.
    pub planes: Shares,
    /// The number of the batch at what commits to its tables ([`Commitments`](super::Commitments)); 0
    /// without.
    pub number: u64,
    /// Bytes of those commitments.
    pub committed_bytes: usize,
}

/// Material for one evaluation.
pub struct Batch {
    /// The stream it was made on.
    stream: [u8; 40],
    circuit: [u8; 32],
    lanes: usize,
    pub(super) made: Made,
    pub(super) places: Vec<Place>,
    /// Lookups that have used theirs.
    spent: usize,
}

impl Batch {
    pub(super) fn new(stream: [u8; 40], plan: Plan<'_>, made: Made) -> Batch {
        let (circuit, lanes) = (plan.compiled.digest(), plan.lanes);
        Batch { stream, circuit, lanes, made, places: plan.places, spent: 0 }
    }

    /// Refuses another session, circuit or number of lanes than it was made for.
    pub(super) fn refuse_other(&self, stream: &[u8; 40], compiled: &Compiled, lanes: usize) -> Result<()> {
        match (&self.stream, self.circuit, self.lanes) == (stream, compiled.digest(), lanes) {
            true => Ok(()),
            false => {
                Err(Error::misuse("the batch was prepared for another session, circuit or number of lanes"))
            }
        }
    }

    /// Where the tables of each lookup stand.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// [`Made::number`].
    pub fn number(&self) -> u64 {
        self.made.number
    }

    /// Bytes of the tables alone, as the paper counts them: without the masks of inputs and outputs.
    pub fn table_bytes(&self) -> usize {
        self.made.records.len() + self.made.planes.len()
    }

    /// The tables of the next lookups: they are never handed out again.
    pub(super) fn take(&mut self, count: usize) -> Result<std::ops::Range<usize>> {
        let end = self.spent.checked_add(count).filter(|end| *end <= self.places.len());
        let end = end.ok_or_else(|| Error::misuse("the batch was prepared for fewer lookups"))?;
        Ok(std::mem::replace(&mut self.spent, end)..end)
    }

    /// Bytes that this party keeps of it before it is used.
    pub fn bytes(&self) -> usize {
        let masks = self.made.inputs.iter().chain(&self.made.outputs);
        let masks = masks.map(|m| m.values.len() + (m.tags.len() + m.keys.len()) * size_of::<u128>());
        self.made.records.len() + self.made.planes.len() + self.made.committed_bytes + masks.sum::<usize>()
    }
}
