//! One party's state in a session: it evaluates circuits.

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix, Slot};
use polyclave_kernels::affine::{Map, Term, combine};
use zeroize::Zeroizing;

use super::Setup;
use super::dealer::{Dealer, MaskedTable};
use polyclave_protocol::byte_shares::ByteShares;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, Session, SharedValue, check_cells};
use polyclave_protocol::release::Unverified;
use polyclave_protocol::session::Stream;
use polyclave_protocol::tally::{Cost, Phase, Tally};
use polyclave_protocol::{Error, Party, Result};

/// One party in one session.
pub struct Additive {
    pub(super) me: Party,
    pub(super) parties: usize,
    pub(super) dealer: Dealer,
    pub(super) phase: Phase,
    pub(super) tally: Tally,
}

/// Shares by slot; wiped on drop.
pub struct Registers {
    lanes: usize,
    rows: Vec<Zeroizing<Vec<u8>>>,
    uniform: Vec<Zeroizing<Vec<u8>>>,
}

/// A masked table for every lookup of a circuit, in order.
pub struct Batch {
    tables: std::vec::IntoIter<MaskedTable>,
}

impl Registers {
    fn row(&self, slot: Slot) -> &[u8] {
        match slot {
            Slot::Lanes(i) => &self.rows[i as usize],
            Slot::Uniform(i) => &self.uniform[i as usize],
        }
    }

    fn row_mut(&mut self, slot: Slot) -> &mut Zeroizing<Vec<u8>> {
        match slot {
            Slot::Lanes(i) => &mut self.rows[i as usize],
            Slot::Uniform(i) => &mut self.uniform[i as usize],
        }
    }

    /// Sets a slot to a sum of images of rows, of which one cell stands for all lanes.
    fn set(&mut self, slot: Slot, terms: &[(&[u8], Matrix)], constant: u8) {
        let len = self.row(slot).len();
        let mut sum = Zeroizing::new(vec![constant; len]);
        for (row, matrix) in terms {
            let mut image = Zeroizing::new(vec![0; row.len()]);
            combine(&mut image, &[Term { src: row, map: &Map::new(matrix.columns()) }], 0);
            sum.iter_mut().zip(image.iter().cycle()).for_each(|(sum, image)| *sum ^= image);
        }
        *self.row_mut(slot) = sum;
    }
}

impl Additive {
    pub(super) fn new(setup: &Setup, stream: &Stream, parties: usize) -> Additive {
        let dealer = Dealer::new(setup.me, parties, &setup.seed, &stream.label());
        Additive { me: setup.me, parties, dealer, phase: Phase::Preprocessing, tally: Tally::default() }
    }

    /// Whether this party adds what is public.
    pub(super) fn is_first(&self) -> bool {
        self.me == Party(0)
    }

    /// The values of which these are shares. One round.
    pub(super) fn open(&mut self, shares: &[u8], net: &mut dyn Net) -> Result<Vec<u8>> {
        self.tally.of(self.phase).rounds += 1;
        let mut all = vec![vec![0; shares.len()]; self.parties];
        all[self.me.index()].clear();
        let peers: Vec<&[u8]> =
            Party::all(self.parties).map(|p| if p == self.me { &[][..] } else { shares }).collect();
        net.exchange(&peers, &mut all.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
        Ok(sum(shares, &all))
    }
}

/// The sum of a row and of those that are not empty.
fn sum(own: &[u8], others: &[Vec<u8>]) -> Vec<u8> {
    let mut sum = own.to_vec();
    others.iter().for_each(|other| sum.iter_mut().zip(other).for_each(|(sum, share)| *sum ^= share));
    sum
}

impl Maps for Additive {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl Session for Additive {
    type Shared = ByteShares;
    type Registers = Registers;
    type Batch = Batch;
    type Released = Unverified<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        let count = |uniform: bool| compiled.lookups().filter(|l| l.is_uniform() == uniform).count() as f64;
        let rounds = compiled.layers().iter().filter(|layer| !layer.lookups.is_empty()).count() as f64;
        let material = |l: &Lookup| match l.is_uniform() {
            true => 0,
            false => 1 + compiled.tables()[l.table].entries().len(),
        };
        Cost {
            rounds,
            operations_per_lane: count(false),
            operations_uniform: count(true),
            material_bytes_per_lane: compiled.lookups().map(material).sum(),
            ..Cost::default()
        }
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, _: &mut dyn Net) -> Result<Batch> {
        let deal = |lookup: &Lookup| {
            let lanes = if lookup.is_uniform() { 1 } else { lanes };
            self.dealer.masked_table(&compiled.tables()[lookup.table], lanes)
        };
        let tables: Vec<MaskedTable> = compiled.lookups().map(deal).collect();
        Ok(Batch { tables: tables.into_iter() })
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, _: &mut Batch) -> Result<Registers> {
        let rows = |count: usize, len: usize| vec![Zeroizing::new(vec![0; len]); count];
        Ok(Registers {
            lanes,
            rows: rows(compiled.lane_slots(), lanes),
            uniform: rows(compiled.uniform_slots(), 1),
        })
    }

    /// The owner adds its cells to shares of zero.
    fn input(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, ByteShares>,
        registers: &mut Registers,
        _: &mut dyn Net,
    ) -> Result<()> {
        let lanes = if port.uniform { 1 } else { registers.lanes };
        if let Input::Shared(shared) = input {
            shared.check_port(port, registers.lanes)?;
        }
        if let Input::Public(cells) | Input::Mine(cells) = input {
            check_cells(port, cells, registers.lanes)?;
        }
        for (i, views) in port.cells.iter().enumerate() {
            let mut row = match input {
                Input::Shared(shared) => Zeroizing::new(shared.row(i, 0).to_vec()),
                Input::Public(_) => Zeroizing::new(vec![0; lanes]),
                Input::Mine(_) | Input::From(_) => self.dealer.zeros(port.bits, lanes),
            };
            let added = match input {
                Input::Public(cells) if self.is_first() => cells.row(i),
                Input::Mine(cells) => cells.row(i),
                _ => &[],
            };
            row.iter_mut().zip(added).for_each(|(share, cell)| *share ^= cell);
            views.iter().for_each(|(image, slot)| registers.set(*slot, &[(&row, *image)], 0));
        }
        Ok(())
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        for linear in maps {
            let constant = if self.is_first() { linear.constant } else { 0 };
            let rows: Vec<_> =
                linear.terms.iter().map(|(slot, m)| (registers.row(*slot).to_vec(), *m)).collect();
            let terms: Vec<_> = rows.iter().map(|(row, m)| (&row[..], *m)).collect();
            registers.set(linear.dst, &terms, constant);
        }
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        let tables: Vec<MaskedTable> = batch.tables.by_ref().take(lookups.len()).collect();
        let mut masked = Vec::new();
        for (i, lookup) in lookups.iter().enumerate() {
            let (row, size) = (registers.row(lookup.xs[0]), compiled.tables()[lookup.table].entries().len());
            let table = tables.get(i).filter(|table| table.entries.len() == row.len() * size);
            let table = table.ok_or_else(|| {
                Error::misuse("the batch was prepared for another circuit or number of lanes")
            })?;
            masked.extend(row.iter().zip(table.masks.iter()).map(|(x, mask)| x ^ mask));
        }
        self.tally.of(self.phase).openings += masked.len() as u64;
        let opened = self.open(&masked, net)?;
        let mut opened = opened.iter();
        for (lookup, table) in lookups.iter().zip(&tables) {
            // The place is public, and whatever a peer sent makes a place of the table.
            let size = table.entries.len() / table.masks.len();
            let entries = table.entries.chunks(size).zip(opened.by_ref());
            let row: Zeroizing<Vec<u8>> =
                Zeroizing::new(entries.map(|(entries, place)| entries[usize::from(*place) % size]).collect());
            lookup.views.iter().for_each(|(image, slot)| registers.set(*slot, &[(&row, *image)], 0));
        }
        Ok(())
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> ByteShares {
        ByteShares::of_port(port, registers.lanes, |slot| registers.row(slot))
    }

    fn select_lanes(&self, shared: &ByteShares, lanes: &[usize]) -> ByteShares {
        shared.select(lanes)
    }

    fn check(&mut self, _: &mut dyn Net) -> Result<()> {
        Ok(())
    }

    /// Shares are added to shares of zero before they go out, so they tell nothing but the value.
    fn release(
        &mut self,
        shared: &ByteShares,
        to: Owner,
        net: &mut dyn Net,
    ) -> Result<Option<Unverified<Cells>>> {
        let zeros = self.dealer.zeros(shared.bits, shared.count * shared.lanes);
        let shares = sum(shared.reveal_own_shares(), &[zeros.to_vec()]);
        self.tally.of(self.phase).openings += shares.len() as u64;
        let values = match to {
            Owner::All => self.open(&shares, net)?,
            Owner::Party(owner) if owner == self.me => {
                let mut all = vec![vec![0; shares.len()]; self.parties];
                self.me.peers(self.parties).try_for_each(|peer| net.recv(peer, &mut all[peer.index()]))?;
                sum(&shares, &all)
            }
            Owner::Party(owner) => return net.send(owner, &shares).map(|()| None),
        };
        let mut cells = Cells::zero(shared.count, shared.bits, shared.lanes);
        cells.rows_mut().copy_from_slice(&values);
        Ok(Some(Unverified::new(cells)))
    }

    polyclave_protocol::counted_session!(self => self.phase, self.tally);
}
