//! Scrambled tables for long-lived nodes (`tinytable-linear64`). Circuits of bits are evaluated by tables.
//! Elements of GF(2^128), and everything that is exchanged with clients, use authenticated sharing
//! ([`crate::spdz`]). Both use one key alpha = alpha_A + alpha_B.
//!
//! Nodes evaluate Boolean circuits, so every shared value is a row of bits with tags under alpha_A and
//! alpha_B. Such bits are also shares under the sum of both
//! ([`Bits::to_spdz`](crate::tinyot::Bits::to_spdz)), so elements and answers to clients follow without
//! communication. Bits come from [`crate::tinyot`], and triples of elements from [`crate::mascot`]. Both are
//! bound to the same shares of alpha when the nodes are set up and whenever these are renewed
//! (`mascot/bit_triples.rs`), so a cheater cannot use one alpha here and another there.
//!
//! **Adversary**: active, static, one of the two; secure with abort, error 2^-64 for each check. Two checks
//! cover what is opened, that of tags (`tinyot/opening.rs`) and that of MACs (`authenticated/check.rs`). A
//! value passes from one side to the other, to a client or to a disk only after the check of everything that
//! it depends on, and one failure retires the common key of both.
//!
//! **Material.** The stock fits every circuit (`stocked.rs`). The nodes make tables from it when a request
//! names its circuit. The tables are bound to that circuit's digest, its lanes and the session's stream
//! ([`Batch`]), are used once, and are never written to a disk.
//!
//! Cost of a block of AES-128 in addition to the paper's 40 layers, check and input: five rounds to make its
//! tables, and two openings for each AND.

mod client;

use std::sync::Arc;

use polyclave_cipher::{Cells, Compiled, CompiledPort, Linear, Lookup, Maps, Matrix};
use polyclave_field::Gf2_64;
use zeroize::Zeroizing;

use super::preprocessing::FromBits;
use super::stocked::{self, FromStock};
use super::{Batch, Macs, PreprocessingMethod, Registers, Shared, TinyTable};
use crate::interface::net::Net;
use crate::interface::protocol::{Adversary, Faults, Input, Owner, ProtocolConfig, Session};
use crate::interface::release::Checked;
use crate::interface::service::{Element, Refreshed, ServiceConfig, Stored};
use crate::interface::session::{HandshakeParameters, Stream};
use crate::interface::stock::{Kind, Stock};
use crate::interface::tally::{Cost, Phase, Tally};
use crate::spdz::{
    self, Preprocessing, Refresh, Setup, Spdz, SpdzConfig, groups, ranges, refresh_stored_elements,
    stored_values,
};
use crate::tinyot::Source;
use crate::{Error, GuessGuard, Party, PartySet, Result};

/// Sources of bits: for tables, and for clients' masks.
type Sources = [Box<dyn Source>; 2];

/// Scrambled tables between two nodes, verified by linear tags of 64 bits.
pub struct ServedConfig {
    elements: SpdzConfig<Gf2_64>,
    preprocessing: Preprocessing<Gf2_64>,
}

impl ServedConfig {
    /// Takes material from this source.
    pub fn new(preprocessing: Preprocessing<Gf2_64>) -> Result<Self> {
        let packing = spdz::Packing::of::<Gf2_64>(1)?;
        let elements = SpdzConfig::new(2, spdz::LookupMethod::MaskedTables, preprocessing, packing)?;
        Ok(ServedConfig { elements, preprocessing })
    }

    fn join_with(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        sources: Sources,
        elements: Spdz<Gf2_64>,
    ) -> Served {
        let [of_tables, masks] = sources;
        let key = setup.key().clone();
        let maker = FromBits::new(PreprocessingMethod::Demux, MACS, key.clone(), &stream, of_tables);
        Served { tables: TinyTable::new(MACS, key, &stream, Box::new(maker), None), elements, masks }
    }

    /// Authenticated sharing on the same stream, and sources of bits: for tables, and for clients' masks.
    fn live(
        &self,
        setup: &Setup<Gf2_64>,
        stream: &Stream,
        serving: PartySet,
    ) -> Result<(Spdz<Gf2_64>, Sources)> {
        if serving != PartySet::all(2) {
            return Err(Error::Misuse(format!("{serving} serve, but both parties have to")));
        }
        let label = stream.label();
        let source = setup.source(self.preprocessing, &label)?;
        let packing = spdz::Packing::of::<Gf2_64>(1)?;
        let key = setup.key().clone();
        let elements = Spdz::with_source(spdz::LookupMethod::MaskedTables, packing, key, stream, source);
        let bits = |name: &[u8]| setup.bits(self.preprocessing, &[&label, name].concat());
        Ok((elements, [bits(b" of tables")?, bits(b" of masks")?]))
    }
}

const MACS: Macs = Macs::Linear64;

impl ProtocolConfig for ServedConfig {
    type Setup = Setup<Gf2_64>;
    type Session = Served;

    fn name(&self) -> &'static str {
        MACS.protocol()
    }

    fn parties(&self) -> usize {
        2
    }

    fn adversary(&self) -> Adversary {
        self.elements.adversary()
    }

    fn promise(&self) -> String {
        match self.preprocessing {
            Preprocessing::Mascot { .. } => {
                "active, static, one of two parties: secure with abort, statistical error 2^-64 for each check and each batch of \
                 triples; no fairness"
                    .into()
            }
            Preprocessing::Dealt(_) => self.elements.promise(),
        }
    }

    fn verifies(&self) -> bool {
        self.elements.verifies()
    }

    fn handshake(&self, parameters: HandshakeParameters) -> HandshakeParameters {
        self.elements.handshake(parameters).with("tables", self.name().as_bytes())
    }

    fn setup(&self, net: &mut dyn Net) -> Result<Setup<Gf2_64>> {
        self.elements.setup(net)
    }

    fn join(&self, setup: &Setup<Gf2_64>, stream: Stream, serving: PartySet) -> Result<Served> {
        let (elements, sources) = self.live(setup, &stream, serving)?;
        Ok(self.join_with(setup, stream, sources, elements))
    }
}

impl ServiceConfig for ServedConfig {
    fn quorum(&self) -> usize {
        2
    }

    fn save_setup(&self, setup: &Setup<Gf2_64>) -> Zeroizing<Vec<u8>> {
        setup.save()
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup<Gf2_64>> {
        Setup::restore(me, 2, bytes)
    }

    fn renew(&self, setup: &Setup<Gf2_64>, net: &mut dyn Net) -> Result<Setup<Gf2_64>> {
        self.elements.renew(setup, net)
    }

    fn has_mac_key(&self) -> bool {
        true
    }

    fn guard_guesses(&self, setup: &Setup<Gf2_64>, guard: Arc<dyn GuessGuard>) {
        setup.key().guard(guard);
    }

    fn kinds(&self, _: Party) -> Vec<Kind> {
        stocked::kinds()
    }

    fn make_material(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let (mut elements, [mut bits, _]) = self.live(setup, &stream, net.members())?;
        match stocked::make(&mut *bits, kind, count, net)? {
            Some(items) => Ok(items),
            None => elements.make_items(kind, count, net),
        }
    }

    fn join_stocked(
        &self,
        setup: &Setup<Gf2_64>,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<Served> {
        let (elements, _) = self.live(setup, &stream, serving)?;
        let sources =
            [stock.clone(), stock.clone()].map(|stock| Box::new(FromStock(stock)) as Box<dyn Source>);
        Ok(self.join_with(setup, stream, sources, elements.with_stock(stock)))
    }

    fn refresh(
        &self,
        old: &Setup<Gf2_64>,
        new: &Setup<Gf2_64>,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        let label = stream.label();
        let bits =
            |setup: &Setup<Gf2_64>, side: &[u8]| setup.bits(self.preprocessing, &[&label, side].concat());
        let mut refresh = Refresh::new(old, new, self.preprocessing, &stream)?;
        let (mut of_old, mut of_new) = (bits(old, b" of the old key")?, bits(new, b" of the new key")?);
        let mut refreshed = vec![Zeroizing::default(); stored.len()];
        refresh_stored_elements(&mut refresh, [old, new], stored, &mut refreshed, net)?;
        let (places, values) = stored_values(stored, |bytes| Shared::restore(bytes, old.key()))?;
        for group in groups(&values, Shared::is_alike, |value| value.count * value.lanes) {
            let mut moved = Shared::join(&group.iter().map(|value| &values[*value]).collect::<Vec<_>>());
            let bits = refresh.refresh_bits(&moved.as_bits()?, [&mut *of_old, &mut *of_new], net)?;
            moved.set_bits(&bits);
            for (value, lanes) in group.iter().zip(ranges(group.iter().map(|value| values[*value].lanes))) {
                refreshed[places[*value]] = moved.select(&lanes.collect::<Vec<_>>()).save(new.key());
            }
        }
        Ok(Refreshed { stored: refreshed, faults: Faults::default() })
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        self.elements.combine(serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        self.elements.combine_elements(serving, messages)
    }
}

/// One node in one session.
pub struct Served {
    tables: TinyTable<Checked<Cells>>,
    /// Elements under the same key; a failure of either retires it for both.
    elements: Spdz<Gf2_64>,
    /// Random bits that mask what clients send.
    masks: Box<dyn Source>,
}

impl Maps for Served {
    fn is_local(&self, m: &Matrix) -> bool {
        self.tables.is_local(m)
    }
}

/// Circuits are evaluated by the tables.
impl Session for Served {
    type Shared = Shared;
    type Registers = Registers;
    type Batch = Batch;
    type Released = Checked<Cells>;

    fn cost(&self, compiled: &Compiled) -> Cost {
        self.tables.cost(compiled)
    }

    fn prepare(&mut self, compiled: &Compiled, lanes: usize, net: &mut dyn Net) -> Result<Batch> {
        self.tables.prepare(compiled, lanes, net)
    }

    fn registers(&mut self, compiled: &Compiled, lanes: usize, batch: &mut Batch) -> Result<Registers> {
        self.tables.registers(compiled, lanes, batch)
    }

    fn inputs(
        &mut self,
        ports: &[CompiledPort],
        inputs: &[Input<'_, Shared>],
        registers: &mut Registers,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.tables.inputs(ports, inputs, registers, net)
    }

    fn linear(&mut self, maps: &[Linear], registers: &mut Registers) {
        self.tables.linear(maps, registers);
    }

    fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers,
        batch: &mut Batch,
        net: &mut dyn Net,
    ) -> Result<()> {
        self.tables.lookup(compiled, lookups, registers, batch, net)
    }

    fn output(&mut self, port: &CompiledPort, registers: &mut Registers) -> Shared {
        self.tables.output(port, registers)
    }

    fn select_lanes(&self, shared: &Shared, lanes: &[usize]) -> Shared {
        self.tables.select_lanes(shared, lanes)
    }

    fn check(&mut self, net: &mut dyn Net) -> Result<()> {
        self.tables.check(net)?;
        self.elements.check(net)
    }

    fn release(&mut self, shared: &Shared, to: Owner, net: &mut dyn Net) -> Result<Option<Checked<Cells>>> {
        self.tables.release(shared, to, net)
    }

    fn enter(&mut self, phase: Phase) {
        self.tables.enter(phase);
        self.elements.enter(phase);
    }

    fn tally(&self) -> Tally {
        let mut tally = self.tables.tally();
        tally += self.elements.tally();
        tally
    }
}
