//! A dealer of scrambled tables: **either party could compute both parties' tables, masks and keys**.
//!
//! For tests, and for measuring the online phase alone. Both parties hold one seed; what the dealer would
//! hand out each derives for itself (Damgard et al. 2016, figures 3 and 6): the first party's shares are
//! random, the second's what they leave.

use polyclave_cipher::Table;
use polyclave_kernels::aes_prg::AesPrg;

use polyclave_protocol::authenticated::MacKey;
use polyclave_protocol::net::Net;
use polyclave_protocol::pool::{Pool, Shares};
use polyclave_protocol::tally::Counts;
use polyclave_protocol::tinyot::Key;
use polyclave_protocol::tinytable::{
    Macs, Made, Maker, MaskMaps, Masks, Packing, Place, Plan, Registers, pack, product, tag_bytes, unpack,
    write_tag,
};
use polyclave_protocol::{Party, Result};

/// Lanes dealt at once.
const AT_ONCE: usize = 256;

/// The dealer's side of one stream of a session, as either party runs it.
pub struct InsecureTables {
    me: Party,
    /// Products of both parties' keys with every cell.
    products: [Box<[u128; 256]>; 2],
    values: [u8; 16],
    /// What each party would be given at random.
    given: [[u8; 16]; 2],
    /// Everything dealt has a stream of its own.
    dealt: u64,
}

fn derived(seed: &[u8; 32], role: &[u8]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 insecure tables");
    let mut key = [0; 16];
    hasher.update(seed).update(role).finalize_xof().fill(&mut key);
    key
}

fn alpha(seed: &[u8; 32], party: Party) -> u64 {
    let bytes = derived(seed, &[b"alpha".as_slice(), &[party.0]].concat());
    bytes[..8].iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// The key that the dealer of a seed gives a party.
pub fn table_key(seed: &[u8; 32], me: Party) -> Key {
    MacKey::of_share(me, 2, alpha(seed, me))
}

/// One lane's table to deal.
struct Lane<'a> {
    table: &'a Table,
    macs: Macs,
    /// Masks of input and output.
    masks: [u8; 2],
    /// The first party's shares of the entries.
    first: &'a [u8],
}

impl InsecureTables {
    /// The dealer of a seed that both parties know, for one stream.
    pub fn new(seed: &[u8; 32], stream: &[u8], me: Party) -> Self {
        let role = |name: &[u8]| derived(seed, &[stream, name].concat());
        let products = [0, 1].map(|p| {
            let alpha = alpha(seed, Party(p));
            Box::new(std::array::from_fn(|cell| product(alpha, cell as u8)))
        });
        InsecureTables {
            me,
            products,
            values: role(b"values"),
            given: [role(b"first"), role(b"second")],
            dealt: 0,
        }
    }

    /// Streams of the values, and of what each party is given.
    fn streams(&mut self) -> [AesPrg; 3] {
        self.dealt += 1;
        [&self.values, &self.given[0], &self.given[1]].map(|key| AesPrg::new(key, self.dealt))
    }

    fn is_first(&self) -> bool {
        self.me.0 == 0
    }

    fn random_cells(&mut self, count: usize, bits: u8) -> Vec<u8> {
        let mut cells = vec![0; count];
        self.streams()[0].fill(&mut cells);
        cells.iter_mut().for_each(|cell| *cell &= 0xff >> (8 - bits));
        cells
    }

    /// This party's shares of cells.
    fn deal_masks(&mut self, cells: &[u8], bits: u8, macs: Macs) -> Masks {
        let [_, mut first, mut second] = self.streams();
        let mut masks = Masks::zero(cells.len(), macs);
        let size = if macs == Macs::None { 0 } else { tag_bytes(bits) };
        let (mut of_first, mut of_second) = (vec![0; 1 + size], vec![0; size]);
        for (i, cell) in cells.iter().enumerate() {
            first.fill(&mut of_first);
            second.fill(&mut of_second);
            let share = of_first[0] & (0xff >> (8 - bits));
            let shares = [share, share ^ cell];
            masks.values[i] = shares[self.me.index()];
            if size > 0 {
                let keys = [read_key(&of_first[1..], bits), read_key(&of_second, bits)];
                let (me, peer) = (self.me.index(), 1 - self.me.index());
                masks.keys[i] = keys[me];
                masks.tags[i] = keys[peer] ^ self.products[peer][usize::from(shares[me])];
            }
        }
        masks
    }

    /// The tables of one lookup on a cell a byte.
    fn deal_cells(&mut self, plan: &Plan<'_>, place: &Place, masks: [&[u8]; 2], records: &mut [u8]) {
        let table = &plan.compiled.tables()[place.table];
        let size = place.record.table_bytes();
        let [_, mut first, mut second] = self.streams();
        let entries = table.entries().len();
        let mask = 0xff >> (8 - table.out_bits());
        let mut shares = vec![0; AT_ONCE * entries];
        for (block, records) in records[..place.width * size].chunks_mut(AT_ONCE * size).enumerate() {
            let shares = &mut shares[..records.len() / size * entries];
            first.fill(shares);
            shares.iter_mut().for_each(|share| *share &= mask);
            let lanes = records.chunks_exact_mut(size).zip(shares.chunks_exact(entries));
            for (i, (records, shares)) in lanes.enumerate() {
                let masks = masks.map(|masks| masks[block * AT_ONCE + i]);
                let lane = Lane { table, macs: plan.macs, masks, first: shares };
                self.write_lane(&lane, [&mut first, &mut second], place.record.share_bytes, records);
            }
        }
    }

    /// The tables of one gate: planes of shares, and for each lane the verification of its four entries.
    fn deal_planes(
        &mut self,
        plan: &Plan<'_>,
        place: &Place,
        masks: [&[u8]; 2],
        planes: &mut [u8],
        records: &mut [u8],
    ) {
        let table = &plan.compiled.tables()[place.table];
        let plane = Packing::plane_bytes(place.width);
        let [_, mut first, mut second] = self.streams();
        let planes = &mut planes[place.planes..][..4 * plane];
        first.fill(planes);
        let mut of_first = vec![0; 4 * place.width];
        for (entry, plane) in planes.chunks_exact_mut(plane).enumerate() {
            let mut bits = vec![0; place.width];
            unpack(plane, &mut bits);
            for (lane, bit) in bits.iter_mut().enumerate() {
                of_first[4 * lane + entry] = *bit;
                if !self.is_first() {
                    *bit ^= table.entries()[entry ^ usize::from(masks[0][lane])] ^ masks[1][lane];
                }
            }
            pack(&bits, plane);
        }
        let size = place.record.table_bytes();
        if size > 0 {
            let lanes = records[place.records..][..place.width * size].chunks_exact_mut(size);
            for (lane, (records, shares)) in lanes.zip(of_first.chunks_exact(4)).enumerate() {
                let masks = masks.map(|masks| masks[lane]);
                let lane = Lane { table, macs: plan.macs, masks, first: shares };
                self.write_lane(&lane, [&mut first, &mut second], 0, records);
            }
        }
    }

    /// Share and verification of every entry of one lane.
    fn write_lane(&self, lane: &Lane<'_>, given: [&mut AesPrg; 2], share_bytes: usize, records: &mut [u8]) {
        let [s, o] = lane.masks;
        let entries = lane.table.entries();
        let shares = |entry: usize| {
            let first = lane.first[entry];
            [first, first ^ entries[entry ^ usize::from(s)] ^ o]
        };
        let (me, peer) = (self.me.index(), 1 - self.me.index());
        let bits = lane.table.out_bits();
        let size = lane.macs.mac_bytes(bits);
        let string = lane.macs.string_bytes();
        // For each party what it verifies the other's share with: a key, or all strings.
        let each = if lane.macs == Macs::Linear64 { tag_bytes(bits) } else { string << bits };
        let mut keys = [vec![0; each * entries.len()], vec![0; each * entries.len()]];
        if size > 0 {
            given.into_iter().zip(&mut keys).for_each(|(prg, keys)| prg.fill(keys));
        }
        for (entry, record) in records.chunks_exact_mut(share_bytes + size).enumerate() {
            let mine = shares(entry)[me];
            let (share, rest) = record.split_at_mut(share_bytes);
            share.fill(mine);
            let of = |party: usize| &keys[party][entry * each..][..each];
            match lane.macs {
                Macs::None | Macs::Minimac => {}
                Macs::Linear64 => {
                    let (tag, key) = rest.split_at_mut(each);
                    write_tag(read_key(of(peer), bits) ^ self.products[peer][usize::from(mine)], tag);
                    write_tag(read_key(of(me), bits), key);
                }
                Macs::Lookup32 | Macs::Lookup64 => {
                    rest[..string].copy_from_slice(&of(peer)[string * usize::from(mine)..][..string]);
                    rest[string..].copy_from_slice(of(me));
                }
            }
        }
    }
}

fn read_tag(bytes: &[u8]) -> u128 {
    let mut tag = [0; 16];
    tag[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(tag)
}

/// A key as random bytes have it. What they have beyond the bits of a tag is not a part of it.
fn read_key(bytes: &[u8], bits: u8) -> u128 {
    read_tag(bytes) & ((1 << (63 + bits)) - 1)
}

impl Maker for InsecureTables {
    fn make(&mut self, plan: &Plan<'_>, pool: &Pool, _: &mut Counts, _: &mut dyn Net) -> Result<Made> {
        let mut maps = MaskMaps::default();
        maps.prepare(plan.compiled);
        let mut registers = Registers::new(plan.compiled, plan.lanes, pool);
        let (mut records, mut planes) = (pool.take(plan.records), pool.take(plan.planes));
        let mut inputs = Vec::new();
        for port in plan.compiled.inputs() {
            let lanes = if port.uniform { 1 } else { plan.lanes };
            let cells = self.random_cells(port.cells.len() * lanes, port.bits);
            for (views, row) in port.cells.iter().zip(cells.chunks(lanes)) {
                for (matrix, slot) in views {
                    registers.put(*slot, &row.iter().map(|x| matrix.apply(*x)).collect::<Vec<_>>());
                }
            }
            inputs.push(self.deal_masks(&cells, port.bits, plan.macs));
        }
        let mut places = plan.places.iter();
        for layer in plan.compiled.layers() {
            registers.linear(&layer.linear, &maps, false);
            let mut outputs = Vec::new();
            for (lookup, place) in layer.lookups.iter().zip(&mut places) {
                let bits = plan.compiled.tables()[lookup.table].out_bits();
                let mut s = vec![0; place.width];
                registers.copy_indices_to(lookup.xs[0], &mut s);
                let o = self.random_cells(place.width, bits);
                self.deal(plan, place, [&s, &o], &mut planes, &mut records);
                outputs.push((lookup, o));
            }
            for (lookup, o) in outputs {
                for (matrix, slot) in &lookup.views {
                    registers.put(*slot, &o.iter().map(|x| matrix.apply(*x)).collect::<Vec<_>>());
                }
            }
        }
        let mut outputs = Vec::new();
        for port in plan.compiled.outputs() {
            let lanes = if port.uniform { 1 } else { plan.lanes };
            let mut cells = vec![0; port.cells.len() * lanes];
            for (views, row) in port.cells.iter().zip(cells.chunks_mut(lanes)) {
                registers.copy_to(views[0].1, row);
            }
            outputs.push(self.deal_masks(&cells, port.bits, plan.macs));
        }
        Ok(Made { inputs, outputs, records, planes, number: 0, committed_bytes: 0 })
    }
}

impl InsecureTables {
    fn deal(
        &mut self,
        plan: &Plan<'_>,
        place: &Place,
        masks: [&[u8]; 2],
        planes: &mut Shares,
        records: &mut Shares,
    ) {
        match plan.packing {
            Packing::Cells => self.deal_cells(plan, place, masks, &mut records[place.records..]),
            Packing::Planes => self.deal_planes(plan, place, masks, planes, records),
        }
    }
}
