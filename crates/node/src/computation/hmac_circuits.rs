//! Circuits of HMAC, compiled for a node's protocol. They are made on first use.

use std::sync::Arc;

use polyclave_cipher::boolean::BooleanBuilder;
use polyclave_cipher::hmac::{self, Additions, Sha2};
use polyclave_cipher::{Circuit, Compiled, compile};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::protocol::Session;

use super::key_circuits::Cached;
use crate::Result;

/// What is computed for codes of HMAC with a hash.
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
    made: Cached<(Sha2, HmacCircuit), Compiled>,
}

impl HmacCircuits {
    pub(crate) fn get(
        &self,
        (hash, which): (Sha2, HmacCircuit),
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        self.made.get((hash, which), || {
            let circuit = match which {
                HmacCircuit::States => hmac::states(hash),
                HmacCircuit::Block(how) => hmac::block(hash, how),
                HmacCircuit::KnownBlock(how) => hmac::known_block(hash, how),
                HmacCircuit::Code(how) => hmac::code(hash, how),
                HmacCircuit::LastBlock(bytes) => hmac::last_block(hash, bytes),
                HmacCircuit::Beginning(bytes) => hmac::beginning(hash, bytes),
            };
            Ok(compile(&circuit, maps))
        })
    }
}

/// How to add. Where ANDs take material that is made ahead, few of them are better. Else few levels are: also
/// with as many lanes as one request has, rounds take longer than the ANDs that save them.
pub(super) fn additions(maps: &AnyServiceSession) -> Additions {
    match maps.cost(&compile(&an_and(), maps)).material_bytes_per_lane > 0 {
        true => Additions::FewAnds,
        false => Additions::FewLevels,
    }
}

fn an_and() -> Circuit {
    let mut b = BooleanBuilder::new("an AND");
    let x = b.input("x", 2, false);
    let and = b.and(x[0], x[1]);
    b.output_words("y", &[vec![and]]);
    b.finish()
}
