//! What nodes have in stock, and how a client combines their messages.
//!
//! **At a client**: nodes send shares of degree t, of values drawn for this client or shared afresh for it.
//! So their polynomials reveal no more about the values that the nodes continue to use than the values do.
//! The client decodes them as nodes do ([`super::code`]): with four nodes, one may send anything, or nothing;
//! with three, a node that sends anything else is found, and the client gets an error.
//!
//! **In stock**, with four nodes: powers of masks for inversions, triples, triples of elements, and unit
//! vectors for masked tables of 6 bits, those of DES. Making them takes all nodes; using them takes a quorum,
//! floor((n + t) / 2) + 1 of them.

use std::sync::Arc;

use polyclave_cipher::Compiled;
use zeroize::Zeroizing;

use super::super::client;
use super::super::demand::Demand;
use super::super::masked_powers::EXPONENTS;
use super::super::masked_table;
use super::super::power::Powers;
use super::super::refresh::refresh;
use super::super::setup::{Setup, Structure};
use super::super::tables::STOCKED_BITS;
use super::super::{Batch, Inversion, Shamir};
use super::code::{Symbol, Word, decode};
use super::dealt_triples::DealtTriples;
use super::elements::ElementTriples;
use super::triples::{Triples, bytes_of_triple};
use super::{Active, AdversaryModel, Material, Preprocessing, ShamirActiveConfig, dealt_triples};
use crate::interface::net::Net;
use crate::interface::protocol::{ProtocolConfig, Session};
use crate::interface::service::{ELEMENT_BYTES, Element, Refreshed, ServiceConfig, Sharing, Stored};
use crate::interface::session::Stream;
use crate::interface::stock::{Kind, Purpose, Stock};
use crate::interface::tally::Phase;
use crate::{Error, Party, PartySet, Result};

/// S-boxes of an AES block. Stocks are counted in these.
const AES_LOOKUPS: usize = 160;
/// S-boxes of a block of 3DES.
const DES_LOOKUPS: usize = 384;
/// Products of elements: a tag takes a few. The powers of a hash key take 254, as many as come with four
/// blocks.
const TAG_PRODUCTS: usize = 64;
const POWERS: Kind = Kind {
    name: "masked powers",
    purpose: Purpose::Inversions,
    item_bytes: EXPONENTS.len(),
    per_block: AES_LOOKUPS,
};
const DEALT_TRIPLES: Kind = Kind {
    name: "dealt triples",
    purpose: Purpose::All,
    item_bytes: dealt_triples::BYTES,
    per_block: AES_LOOKUPS,
};
pub(super) const ELEMENT_TRIPLES: Kind = Kind {
    name: "element triples",
    purpose: Purpose::Tags,
    item_bytes: 3 * ELEMENT_BYTES,
    per_block: TAG_PRODUCTS,
};
const UNIT_VECTORS: Kind = Kind {
    name: "unit vectors of 6 bits",
    purpose: Purpose::Tables(STOCKED_BITS),
    item_bytes: masked_table::material_bytes(STOCKED_BITS),
    per_block: DES_LOOKUPS,
};

/// Triples. They have a part for every set of parties that a party is in.
fn triples(structure: Structure) -> Kind {
    Kind {
        name: "triples",
        purpose: Purpose::All,
        item_bytes: bytes_of_triple(structure.sets_of_a_party()),
        per_block: AES_LOOKUPS,
    }
}

/// At a client: the values of the nodes' shares, in order. A node that did not answer has no message here,
/// and is not in `serving`.
pub(super) fn combine(
    symbol: Symbol,
    structure: Structure,
    serving: PartySet,
    messages: &[&[u8]],
) -> Result<Zeroizing<Vec<u8>>> {
    let words: Vec<Word<'_>> = serving.iter().zip(messages.iter().copied()).collect();
    let mut values = Zeroizing::new(vec![0; messages.first().map_or(0, |m| m.len())]);
    match decode(symbol, structure.threshold(), None, &words, &mut values) {
        Some(_) => Ok(values),
        None => Err(Error::CheckFailed { what: "more nodes sent wrong shares than the others can correct" }),
    }
}

impl Shamir<Active> {
    /// The material that an evaluation takes from the stock.
    pub(super) fn take_batch(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        demand: &Demand,
        stock: &dyn Stock,
        net: &mut dyn Net,
    ) -> Result<Batch<Active>> {
        let arithmetic = &self.arithmetic;
        let powers = match demand.inversions {
            0 => None,
            _ if self.inversion != Inversion::MaskedPowers => {
                return Err(Error::misuse("in stock are powers for inversion by masked-powers only"));
            }
            count => Some(Powers::restore(&stock.take(&POWERS, count, net)?, &arithmetic.pool)),
        };
        let mut products = Material::default();
        match arithmetic.security.preprocessing {
            Preprocessing::Pseudorandom => {
                let items = stock.take(&triples(arithmetic.structure), demand.products, net)?;
                products.triples = Triples::restore(&items, arithmetic.prss.sets(), &arithmetic.pool);
            }
            Preprocessing::HyperInvertible => {
                let items = stock.take(&DEALT_TRIPLES, demand.products, net)?;
                products.dealt = DealtTriples::restore(&items, &arithmetic.pool);
            }
        }
        let vectors = |bits: u8, count: usize| match bits {
            STOCKED_BITS => stock.take(&UNIT_VECTORS, count, net),
            other => Err(Error::Misuse(format!("no unit vectors for tables of {other} bits are in stock"))),
        };
        let stock = masked_table::Stock::of(compiled, &demand.masked, vectors, &arithmetic.pool)?;
        let (stream, circuit) = (arithmetic.stream, compiled.digest());
        Ok(Batch { stream, circuit, lanes, powers, stock, products })
    }

    /// Makes items of a kind, which all nodes have accepted.
    fn make_items(&mut self, kind: &Kind, count: usize, net: &mut dyn Net) -> Result<Zeroizing<Vec<u8>>> {
        self.enter(Phase::Preprocessing);
        let arithmetic = &mut self.arithmetic;
        loop {
            let items = match *kind {
                POWERS => Powers::products(arithmetic, count, net)?.save(),
                kind if kind == triples(arithmetic.structure) => {
                    Triples::make(arithmetic, count, net)?.save()
                }
                DEALT_TRIPLES => DealtTriples::make(arithmetic, count, net)?.save(),
                ELEMENT_TRIPLES => ElementTriples::make(arithmetic, count, net)?.save(),
                UNIT_VECTORS => masked_table::Masks::prepare(arithmetic, STOCKED_BITS, count, net)?.save(),
                other => return Err(Error::Misuse(format!("no {} are kept in stock", other.name))),
            };
            if arithmetic.is_accepted(net)? {
                return Ok(items);
            }
        }
    }
}

impl ServiceConfig for ShamirActiveConfig {
    /// The smallest number such that any two sets of this many nodes have t + 1 nodes in common. For n = 3t +
    /// 1 it is 2t + 1, and it is never less.
    fn quorum(&self) -> usize {
        (self.structure().parties() + self.structure().threshold()) / 2 + 1
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        setup.save(Active::KINDS[0])
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        Setup::restore(Active::KINDS[0], self.structure(), me, bytes)
    }

    fn renew(&self, setup: &Setup, _: &mut dyn Net) -> Result<Setup> {
        Ok(setup.clone())
    }

    fn kinds(&self, _: Party) -> Vec<Kind> {
        let triples = match self.preprocessing() {
            Preprocessing::Pseudorandom => triples(self.structure()),
            Preprocessing::HyperInvertible => DEALT_TRIPLES,
        };
        vec![POWERS, triples, ELEMENT_TRIPLES, UNIT_VECTORS]
    }

    fn make_material(
        &self,
        setup: &Setup,
        stream: Stream,
        kind: &Kind,
        count: usize,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let serving = net.members();
        self.join(setup, stream, serving)?.make_items(kind, count, net)
    }

    fn join_stocked(
        &self,
        setup: &Setup,
        stream: Stream,
        serving: PartySet,
        stock: Arc<dyn Stock>,
    ) -> Result<Shamir<Active>> {
        let mut protocol = self.join(setup, stream, serving)?;
        protocol.arithmetic.security.stock = Some(stock);
        Ok(protocol)
    }

    /// `shamir/refresh.rs`: neither setup is used, since parties deal fresh zeros.
    fn refresh(
        &self,
        _: &Setup,
        new: &Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        let mut session = self.join(new, stream, PartySet::all(self.parties()))?;
        let stored = refresh(&mut session.arithmetic, stored, net)?;
        Ok(Refreshed { stored, faults: session.faults() })
    }

    fn sharing(&self) -> Option<Sharing> {
        Some(Sharing::active(self))
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine_shares::<Active>(self.structure(), serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        client::combine_elements::<Active>(self.structure(), serving, messages)
    }
}
