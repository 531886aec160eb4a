//! The runs of lookups in which circuits go, under a protocol whose messages depend on them.

use polyclave_cipher::{Compiled, Lookup};

use crate::Result;
use crate::computation::circuits::Circuits;

/// Those of all circuits of AES, by name.
pub(super) fn of_circuits(circuits: &Circuits) -> Result<[(&'static str, Vec<u8>); 5]> {
    let own = circuits.of_cipher()?;
    Ok([
        ("runs of key schedule", of(&own.key_schedule)),
        ("runs of encrypt", of(&own.encrypt)),
        ("runs of decrypt", of(own.decrypt.as_ref().expect("AES has it"))),
        ("runs of check value", of(&own.check_value)),
        ("runs of subkeys", of(&circuits.chained()?.subkeys)),
    ])
}

/// For each layer how many runs of lookups it has, and how many lookups each of them has: those of
/// `protocol/src/shamir/runs.rs`.
fn of(circuit: &Compiled) -> Vec<u8> {
    let views = |lookup: &Lookup| lookup.views.iter().map(|(matrix, _)| *matrix).collect::<Vec<_>>();
    let is_one = |a: &Lookup, b: &Lookup| a.table == b.table && views(a) == views(b);
    let of_layer = |lookups: &[Lookup]| {
        let lengths: Vec<u8> = lookups.chunk_by(is_one).map(|run| run.len() as u8).collect();
        [vec![lengths.len() as u8], lengths].concat()
    };
    let layers = circuit.layers().iter().filter(|layer| !layer.lookups.is_empty());
    layers.flat_map(|layer| of_layer(&layer.lookups)).collect()
}
