//! Circuits of HMAC, compiled for a node's protocol. They are made on first use.

use std::sync::{Arc, OnceLock};

use polyclave_cipher::hmac::{self, Additions};
use polyclave_cipher::{Compiled, compile};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::protocol::Session;

use super::key_circuits::Cached;
use crate::Result;

/// What is computed for codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum HmacCircuit {
    /// `round_keys` to `inner` and `outer`.
    States,
    /// `block` and `state` to `state`.
    Block(Additions),
    /// `schedule` and `state` to `state`.
    KnownBlock(Additions),
    /// `hash` and `state` to `code`.
    Code(Additions),
    /// `block` and `filling` to `block`, of which so many bytes are those of the message.
    LastBlock(usize),
    /// `code` to its first bytes.
    Beginning(usize),
}

/// Those of one protocol.
#[derive(Default)]
pub(crate) struct HmacCircuits {
    made: Cached<HmacCircuit, Compiled>,
    /// Whether ANDs take material that is made ahead.
    takes_material: OnceLock<bool>,
}

impl HmacCircuits {
    pub(crate) fn get(&self, which: HmacCircuit, maps: &AnyServiceSession) -> Result<Arc<Compiled>> {
        self.made.get(which, || {
            let circuit = match which {
                HmacCircuit::States => hmac::states(),
                HmacCircuit::Block(how) => hmac::block(how),
                HmacCircuit::KnownBlock(how) => hmac::known_block(how),
                HmacCircuit::Code(how) => hmac::code(how),
                HmacCircuit::LastBlock(bytes) => hmac::last_block(bytes),
                HmacCircuit::Beginning(bytes) => hmac::beginning(bytes),
            };
            Ok(compile(&circuit, maps))
        })
    }

    /// How to add. Where ANDs take material that is made ahead, few of them are better. Else few levels are:
    /// also with as many lanes as one request has, rounds take longer than the ANDs that save them.
    /// `of_ands` is a circuit that has some.
    pub(crate) fn additions(&self, of_ands: &Compiled, maps: &AnyServiceSession) -> Additions {
        let takes_material =
            self.takes_material.get_or_init(|| maps.cost(of_ands).material_bytes_per_lane > 0);
        match *takes_material {
            true => Additions::FewAnds,
            false => Additions::FewLevels,
        }
    }
}
