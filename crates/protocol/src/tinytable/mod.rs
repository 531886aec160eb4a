//! TinyTable: two parties, scrambled tables (Damgard, Nielsen, Nielsen, Ranellucci 2016, "The TinyTable
//! protocol for 2-Party Secure Computation, or: Gate-scrambling Revisited", ePrint 2016/695).
//!
//! Both parties know the value of every wire under a mask that neither of them knows. For each lookup they
//! share a table whose entry at the masked input is the masked output. Each party sends its share of that one
//! entry. Linear maps are applied directly to masked values, and to the masks when the tables are made. So
//! tables are bound to one circuit, and are used once.
//!
//! | file | what | source |
//! |---|---|---|
//! | `lookup.rs`, `scratch.rs` | lookups | figure 7, step 3; 2.3 |
//! | `input.rs` | inputs and outputs | figure 7, steps 2 and 4 |
//! | `macs.rs` | what verifies an entry, and its size | figure 3; section 3; table 1 |
//! | `commitments.rs` | where openings are verified by commitments to whole tables: by the laboratory, `protocol-lab/src/committed/` | section 6, figure 11 |
//! | `batch.rs` | tables and masks of one evaluation | |
//! | `registers.rs` | masked values | 2.1 |
//! | `config.rs` | the protocols and their parameters | |
//! | `service.rs`, `stocked.rs`, `storage.rs` | what long-lived nodes do and keep | |
//!
//! **Adversary.** `tinytable`: passive, one of two. A party that departs from the protocol can make the other
//! compute what it likes. The other variants: active, static, one of two; secure with abort, error 2^-k for
//! each check, k = 32 or 64 ([`Macs::security_bits`]). A party that opens a wrong entry must name a string or
//! a tag that it does not know:
//!
//! * *Lookup*: the strings are independent and uniform, and their sum contains one that the party does not
//!   have (theorem 1).
//! * *Linear*: the tag of another share differs by alpha times the difference, and alpha is uniform to the
//!   party (3.1). `tinyot/opening.rs` has the argument for the hash of all tags.
//! * *Minimac*: what was opened is opened once more, from strings to which the parties are committed (lemma
//!   2, `protocol-lab/src/committed/`).
//!
//! Nothing is released before everything that was opened has been checked. The opening of outputs is checked
//! once more.
//!
//! # Differences from the paper
//! * Public constants, except NOT, are added to masked values and not to masks (2.2 and figure 8 contradict
//!   each other on this). A NOT costs nothing in circuits that were built with [`polyclave_cipher`]: it
//!   becomes the constant of the next sum.
//! * The tag hash binds position and direction.
//! * All variants but the passive one have linear tags on the masks of inputs and outputs, 64 bits. In
//!   section 6 these masks are bits of committed strings, too. Their openings would take as many strings
//!   more, and a check of them before outputs are known.
//! * Commitments are over GF(2^16) instead of bits (`protocol-lab/src/minimac/opening.rs`). They come from a
//!   dealer only.

mod batch;
mod commitments;
mod config;
mod descriptor;
mod input;
mod lookup;
mod macs;
mod preprocessing;
mod registers;
mod scratch;
mod service;
mod shared;
mod stocked;
mod storage;
mod wire;

use polyclave_cipher::{Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use zeroize::Zeroizing;

pub use batch::{Batch, Made, Masks, Place, Plan};
pub use commitments::Commitments;
pub use config::{Preprocessing, Setup, TableDealer, TinyTableConfig};
pub use descriptor::{LINEAR_64, LOOKUP_32, LOOKUP_64, PREPROCESSING, WITHOUT_MACS};
pub use macs::{Macs, Record, product, tag_bytes, write_tag};
pub use preprocessing::PreprocessingMethod;
pub use registers::{Maps as MaskMaps, Packing, Registers, pack, unpack};
pub use scratch::Theirs;
pub use service::{Served, ServedConfig};
pub use shared::{Shared, Worth};

use crate::interface::net::Net;
use crate::interface::protocol::{Input, Owner, Session};
use crate::interface::session::Stream;
use crate::interface::tally::{Cost, Counts, Phase, Tally};
use crate::pool::Pool;
use crate::tinyot::{Key, Openings};
use crate::unchecked::Checks;
use crate::{Error, Result};
use scratch::Scratch;

/// Makes the tables of evaluations.
pub trait Maker: Send {
    /// What one evaluation takes. Nothing is handed out that has not been checked.
    fn make(&mut self, plan: &Plan<'_>, pool: &Pool, counts: &mut Counts, net: &mut dyn Net) -> Result<Made>;
}

/// Sums of the strings that prove openings: this party's, and those that the peer's should have.
#[derive(Default)]
struct Strings {
    shown: u64,
    expected: u64,
}

impl Strings {
    fn add(&mut self, shown: u64, expected: u64) {
        self.shown ^= shown;
        self.expected ^= expected;
    }
}

/// One party in one session.
pub struct TinyTable<R> {
    macs: Macs,
    key: Key,
    /// The products of this party's key with every cell.
    products: Box<Zeroizing<[u128; 256]>>,
    openings: Openings,
    strings: Strings,
    commitments: Option<Box<dyn Commitments>>,
    checks: Checks,
    maker: Box<dyn Maker>,
    stream: [u8; 40],
    phase: Phase,
    tally: Tally,
    maps: registers::Maps,
    pool: Pool,
    scratch: Scratch,
    worth: std::marker::PhantomData<fn() -> R>,
}

impl<R: Worth> TinyTable<R> {
    /// `commitments` are to the tables that the maker makes, if there are any.
    pub(crate) fn new(
        macs: Macs,
        key: Key,
        stream: &Stream,
        maker: Box<dyn Maker>,
        commitments: Option<Box<dyn Commitments>>,
    ) -> Self {
        TinyTable {
            macs,
            commitments,
            products: lookup::products(key.reveal_own_share()),
            openings: Openings::new(&stream.label(), key.me()),
            key,
            strings: Strings::default(),
            checks: Checks::default(),
            maker,
            stream: stream.label(),
            phase: Phase::Online,
            tally: Tally::default(),
            maps: registers::Maps::default(),
            pool: Pool::default(),
            scratch: Scratch::default(),
            worth: std::marker::PhantomData,
        }
    }
}

/// Every map of masked values is free.
impl<R> Maps for TinyTable<R> {
    fn is_local(&self, _: &Matrix) -> bool {
        true
    }
}

impl<R: Worth> Session for TinyTable<R> {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch;
    type Released = R;

    /// Checks are counted where they run, and not here.
    fn cost(&self, compiled: &Compiled) -> Cost {
        const LANES: usize = 64;
        let layers = compiled.layers().iter().filter(|layer| !layer.lookups.is_empty()).count();
        let uniform = compiled.lookups().filter(|lookup| lookup.is_uniform()).count();
        let bytes = |lanes| {
            let plan = Plan::new(compiled, lanes, self.macs);
            plan.bytes() + self.commitments.as_ref().map_or(0, |commitments| commitments.bytes(&plan))
        };
        Cost {
            rounds: layers as f64,
            operations_per_lane: (compiled.lookups().count() - uniform) as f64,
            operations_uniform: uniform as f64,
            material_bytes_per_lane: (bytes(2 * LANES) - bytes(LANES)) / LANES,
            ..Cost::default()
        }
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch> {
        self.key.refuse_retired()?;
        let plan = Plan::new(compiled, lanes, self.macs);
        let made = self.maker.make(&plan, &self.pool, self.tally.of(Phase::Preprocessing), net)?;
        Ok(Batch::new(self.stream, plan, made))
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, batch: &mut Batch) -> Result<Registers> {
        batch.refuse_other(&self.stream, compiled, lanes)?;
        self.maps.prepare(compiled);
        let mut registers = Registers::new(compiled, lanes, &self.pool);
        let named = |ports: &[CompiledPort], masks: &mut Vec<Masks>| {
            ports.iter().map(|port| port.name.clone()).zip(std::mem::take(masks)).collect()
        };
        registers.inputs = named(compiled.inputs(), &mut batch.made.inputs);
        registers.outputs = named(compiled.outputs(), &mut batch.made.outputs);
        Ok(registers)
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.put_in(ports, inputs, registers, net)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        registers.linear(maps, &self.maps, true);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.look_up(compiled, lookups, registers, batch, net)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        self.take_out(port, registers)
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        shared.select(lanes)
    }

    /// Figure 5, step 4: both compare what the other shows. One round, which counts as online; without
    /// verification none. Figure 11: before that, five for the entries that were opened since the last check.
    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        if self.macs == Macs::None {
            return Ok(());
        }
        self.key.refuse_retired()?;
        if let Some(commitments) = &mut self.commitments {
            let checked = commitments.check(net).inspect_err(|error| self.key.retire_after(error));
            self.tally.online.rounds += checked?;
        }
        let size = self.macs.string_bytes();
        let talks = size > 0 || self.openings.is_unchecked();
        let (shown, expected) = (self.strings.shown.to_le_bytes(), self.strings.expected.to_le_bytes());
        self.openings.check_also(&shown[..size], &expected[..size], &self.key, net)?;
        self.tally.online.rounds += u64::from(talks);
        self.checks.pass();
        Ok(())
    }

    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<R>> {
        self.key.refuse_retired()?;
        self.refuse_unfit(shared)?;
        if !R::allows(self.macs) {
            return Err(Error::misuse("the protocol's verification is another than its outputs say"));
        }
        // Everything that the value depends on is checked before it is opened, also if the caller has not
        // asked for that.
        if shared.unchecked.is_pending() {
            self.check(net)?;
        }
        let cells = self.reveal(shared, to, net)?;
        // Nothing leaves before its own opening is checked, too.
        self.check(net)?;
        Ok(cells.map(R::of))
    }

    crate::counted_session!(self => self.phase, self.tally);
}

#[cfg(test)]
mod cheaters;
