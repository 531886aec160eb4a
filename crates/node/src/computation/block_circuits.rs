//! Circuits of single blocks of AES, for modes whose blocks stay shared: SIV, CCM, GCM-SIV, FF1, and GCM
//! where a tag is short or a nonce long. They are made on first use. Each of them takes the outputs of all
//! others: their outputs have the views that their inputs need.

use std::sync::{Arc, OnceLock};

use polyclave_cipher::modes::{self, gcm_siv};
use polyclave_cipher::{Compiled, CompiledPort, Matrix, compile, compile_with_views, ff1};
use polyclave_protocol::any::AnyServiceSession;

use super::circuits::{Circuits, union};
use super::key_circuits::Cached;
use crate::Result;

/// The last bits of a block that are a counter (SP 800-38D, section 6.2).
pub(crate) const COUNTER_BITS: usize = 32;

/// What is computed of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BlockCircuit {
    /// `block` and `round_keys` to its encryption.
    Encrypted,
    /// `message`, `chain` and `round_keys` to the encryption of the sum of the first two.
    Chained,
    /// The same with a third term, the last input before the round keys.
    ChainedWith,
    /// `block` and `other`: the first bytes of the one, then zeros, plus the other.
    Beginning(usize),
    /// `block` to `before` and `behind`, for a message with this number of bytes after its last whole block.
    Overlapping(usize),
    /// `block` to its double.
    Doubled,
    /// `block` to each of its last [`COUNTER_BITS`] bits.
    CounterBits,
    /// The encrypted blocks of a nonce to `hash_key` and `key`, the keys of one message of GCM-SIV.
    KeysOfGcmSiv,
    /// `block` to the same with its bytes in the opposite order; if the field says so, without the first bit
    /// of the last byte.
    Reversed(bool),
    /// The last block of a round of FF1: `number`, `public`, `chain` and `round_keys` to `sum`. The fields
    /// are the numbers of bytes of `number` and of `sum`.
    Ff1Round(usize, usize),
}

/// Those of one cipher.
#[derive(Default)]
pub(crate) struct BlockCircuits {
    made: Cached<BlockCircuit, Compiled>,
    /// The views that an encryption begins with.
    views: OnceLock<Vec<Matrix>>,
}

impl BlockCircuits {
    /// A circuit for the cipher of `of`, which has these.
    pub(crate) fn get(
        &self,
        which: BlockCircuit,
        of: &Circuits,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        let cipher = &of.cipher;
        let views = self.views.get_or_init(|| {
            let takers = [modes::last_of_cmac(cipher), modes::doubled_block(cipher)];
            let takers = takers.map(|circuit| compile(&circuit, maps));
            let blocks = |circuit: &Compiled| {
                let blocks = circuit.inputs().iter().filter(|port| !port.uniform);
                blocks.map(CompiledPort::views).collect::<Vec<_>>()
            };
            union(takers.iter().flat_map(blocks))
        });
        self.made.get(which, || {
            let circuit = match which {
                BlockCircuit::Encrypted => cipher.encrypt.as_ref().clone(),
                BlockCircuit::Chained => modes::chain(cipher),
                BlockCircuit::ChainedWith => modes::last_of_cmac(cipher),
                BlockCircuit::Beginning(bytes) => modes::beginning(cipher, bytes),
                BlockCircuit::Overlapping(bytes) => modes::overlapping(cipher, bytes),
                BlockCircuit::Doubled => modes::doubled_block(cipher),
                BlockCircuit::CounterBits => modes::alone(cipher, 0..COUNTER_BITS),
                BlockCircuit::KeysOfGcmSiv => gcm_siv::keys(cipher),
                BlockCircuit::Reversed(cut) => gcm_siv::reversed(cipher, cut),
                BlockCircuit::Ff1Round(number, sum) => ff1::round(cipher, number, sum),
            };
            let is_last = matches!(which, BlockCircuit::CounterBits | BlockCircuit::Ff1Round(..));
            let wanted: &[Matrix] = if is_last { &[] } else { views };
            Ok(compile_with_views(&circuit, maps, |port| match port.name.as_str() {
                "key" => of.key.views(),
                _ => wanted.to_vec(),
            }))
        })
    }
}
