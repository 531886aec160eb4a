//! Circuits between two keys: those that wrap one under the other, unwrap it, or derive it. They are made on
//! first use, and kept with the circuits of the key that computes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_api::Wrapping;
use polyclave_cipher::independent::{self, Independent};
use polyclave_cipher::key_wrap::{self, Padding};
use polyclave_cipher::keyed::key_shape;
use polyclave_cipher::{Cipher, Compiled, CompiledPort, Matrix, compile, compile_with_views};
use polyclave_cipher::{key_block, key_cells, modes, parity};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::{Error, Result};

use super::circuits::{Circuits, union};
use crate::computation::make::sum_of_keys;
use crate::computation::payment_circuits::element_bits;

/// Those of the keys of one cipher.
#[derive(Default)]
pub(crate) struct KeyCircuits {
    wraps: Cached<(Wrapping, usize, u8), Compiled>,
    unwraps: Cached<(Wrapping, String), Unwrapping>,
    derivations: Cached<String, Deriving>,
    codes_of_blocks: Cached<(), Compiled>,
    sums: Cached<(usize, bool), Compiled>,
    zeros: Cached<(), Compiled>,
    key_blocks: Cached<String, Compiled>,
    block_unwraps: Cached<String, BlockUnwrapping>,
    kept: Cached<(), Option<KeptBits>>,
}

/// Circuits by what they are for.
pub(super) struct Cached<K, C>(Mutex<HashMap<K, Arc<C>>>);

impl<K, C> Default for Cached<K, C> {
    fn default() -> Self {
        Cached(Mutex::default())
    }
}

impl<K: Hash + Eq, C> Cached<K, C> {
    pub(super) fn get(&self, key: K, make: impl FnOnce() -> Result<C>) -> Result<Arc<C>> {
        let mut known = self.0.lock();
        if let Some(circuits) = known.get(&key) {
            return Ok(circuits.clone());
        }
        let made = Arc::new(make()?);
        known.insert(key, made.clone());
        Ok(made)
    }
}

/// From a wrapped key to a key.
pub(crate) struct Unwrapping {
    /// `wrapped` and `round_keys` to `check` and `key`, its bytes.
    pub(crate) unwrap: Compiled,
    /// These bytes to `key`.
    pub(crate) key: Compiled,
}

/// From blocks to a key.
pub(crate) struct Deriving {
    /// The cipher's own circuits, with the views that [`key`](Deriving::key) needs.
    pub(crate) encrypt: Compiled,
    pub(crate) chain: Compiled,
    pub(crate) last_of_cmac: Compiled,
    /// As many blocks as it takes to `key`.
    pub(crate) key: Compiled,
}

/// From a key block to a key.
pub(crate) struct BlockUnwrapping {
    /// `block`, `previous` and `round_keys` to `plain`.
    pub(crate) decrypt: Compiled,
    /// The MAC, and another, to `check`.
    pub(crate) whole: Compiled,
    /// The first block of the plaintext, and a block that begins with the length, to `check`.
    pub(crate) length: Compiled,
    /// The blocks of the plaintext that hold the key to `key`.
    pub(crate) key: Compiled,
}

/// Round keys by the bits from which the others follow.
pub(crate) struct KeptBits {
    /// All bits to the kept ones, one key a lane.
    pub(crate) keep: Compiled,
    /// The kept bits of a key to its round keys.
    pub(crate) whole: Compiled,
}

/// As the circuits call it.
pub(crate) fn padding(how: Wrapping) -> Padding {
    match how {
        Wrapping::Kw => Padding::None,
        Wrapping::Kwp => Padding::Zeros,
    }
}

impl KeyCircuits {
    /// `key` and `round_keys` to `wrapped`, for a key of this cipher under one of `kek`. Both have the form
    /// in which nodes evaluate them.
    pub(crate) fn wrap(
        &self,
        kek: &Cipher,
        how: Wrapping,
        key: &Cipher,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        let shape = key_shape(key);
        self.wraps.get((how, key.key_bytes, shape.1), || {
            Ok(compile(&key_wrap::wrap(kek, padding(how), key.key_bytes, shape), maps))
        })
    }

    /// For a key of this cipher under one of `kek`.
    pub(crate) fn unwrap(
        &self,
        kek: &Cipher,
        how: Wrapping,
        new: &Circuits,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Unwrapping>> {
        self.unwraps.get((how, new.cipher.name.clone()), || {
            let none = || Error::Misuse(format!("{} has no decryption", kek.name));
            let circuit = key_wrap::unwrap(kek, padding(how), new.cipher.key_bytes).ok_or_else(none)?;
            let bytes = &circuit.outputs()[1];
            let key = key_cells::key_of(&new.cipher, 1, (bytes.cells.len(), bytes.bits), 0);
            let key = compile_with_views(&key, maps, |_| new.key.views());
            let unwrap = compile_with_views(&circuit, maps, |port| match port.name.as_str() {
                "key" => key.inputs()[0].views(),
                _ => Vec::new(),
            });
            Ok(Unwrapping { unwrap, key })
        })
    }

    /// For a key of this cipher from one of `base`.
    pub(crate) fn derive(
        &self,
        base: &Circuits,
        new: &Circuits,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Deriving>> {
        self.derivations.get(new.cipher.name.clone(), || {
            let cipher = &base.cipher;
            let block = &cipher.encrypt.inputs()[0];
            let blocks = new.cipher.key_bytes.div_ceil(cipher.block_bytes);
            let key = key_cells::key_of(&new.cipher, blocks, (block.cells.len(), block.bits), 0);
            let key = compile_with_views(&key, maps, |_| new.key.views());
            let wanted = union(key.inputs().iter().map(CompiledPort::views));
            let chained = base.chained()?.chain.outputs()[0].views();
            let both = union([wanted.clone(), chained].into_iter());
            Ok(Deriving {
                encrypt: compile_with_views(&cipher.encrypt, maps, |_| wanted.clone()),
                chain: compile_with_views(&modes::chain(cipher), maps, |_| both.clone()),
                last_of_cmac: compile_with_views(&modes::last_of_cmac(cipher), maps, |_| wanted.clone()),
                key,
            })
        })
    }

    /// The sum of several keys of `of`; with parity, also `check`.
    pub(crate) fn sum(
        &self,
        of: &Circuits,
        parts: usize,
        with_parity: bool,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        self.sums.get((parts, with_parity), || {
            let circuit = match with_parity {
                true => parity::sum_with_parity(&of.cipher, parts, element_bits(maps)?),
                false => sum_of_keys(&of.cipher, parts),
            };
            Ok(compile_with_views(&circuit, maps, |port| match port.name.as_str() {
                "key" => of.key.views(),
                _ => Vec::new(),
            }))
        })
    }

    /// The bits of round keys that are stored, and all from these; `None` if round keys of this cipher are
    /// stored as they are.
    pub(crate) fn kept_bits(&self, of: &Circuits, maps: &AnyServiceSession) -> Result<Arc<Option<KeptBits>>> {
        self.kept.get((), || {
            let views = of.round_keys.views();
            Ok(independent::round_keys(&of.cipher).map(|Independent { keep, whole }| KeptBits {
                keep: compile(&keep, maps),
                whole: compile_with_views(&whole, maps, |_| views.clone()),
            }))
        })
    }

    /// `zero` and `round_keys` to the first bytes of the encryption of zeros.
    pub(crate) fn encrypted_zeros(&self, of: &Circuits, maps: &AnyServiceSession) -> Result<Arc<Compiled>> {
        self.zeros.get((), || Ok(compile(&modes::encrypted_zeros(&of.cipher), maps)))
    }

    /// The last block of the MAC of a key block under a key of `kek`, with the views that encryption begins
    /// with.
    pub(crate) fn code_of_block(&self, kek: &Circuits, maps: &AnyServiceSession) -> Result<Arc<Compiled>> {
        self.codes_of_blocks.get((), || {
            let chained = kek.chained()?.chain.inputs()[1].views();
            Ok(compile_with_views(&modes::last_of_cmac(&kek.cipher), maps, |_| chained.clone()))
        })
    }

    /// `key` and `random` to the blocks of the plaintext of a key block, for a key of a cipher in the form in
    /// which nodes evaluate it.
    pub(crate) fn key_block(
        &self,
        kek: &Circuits,
        key: &Cipher,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        self.key_blocks.get(key.name.clone(), || {
            let wanted = as_message(kek)?;
            Ok(compile_with_views(&key_block::plaintext(&kek.cipher, key), maps, |_| wanted.clone()))
        })
    }

    /// For a key of this cipher in a key block under one of `kek`.
    pub(crate) fn unwrap_block(
        &self,
        kek: &Circuits,
        new: &Circuits,
        maps: &AnyServiceSession,
    ) -> Result<Arc<BlockUnwrapping>> {
        self.block_unwraps.get(new.cipher.name.clone(), || {
            let (cipher, block) = (&kek.cipher, &kek.cipher.encrypt.inputs()[0]);
            let none = || Error::Misuse(format!("{} has no decryption", cipher.name));
            let decrypt = key_block::decrypt(cipher).ok_or_else(none)?;
            let skip = key_block::LENGTH_BYTES;
            let blocks = (skip + new.cipher.key_bytes).div_ceil(cipher.block_bytes);
            let key = key_cells::key_of(&new.cipher, blocks, (block.cells.len(), block.bits), skip);
            let key = compile_with_views(&key, maps, |_| new.key.views());
            let bits = element_bits(maps)?;
            let whole = compile(&key_block::difference(cipher, cipher.block_bytes, bits), maps);
            let length = compile(&key_block::difference(cipher, skip, bits), maps);
            let users = key.inputs().iter().chain([&length.inputs()[0]]).map(CompiledPort::views);
            let plain = union(users.chain([as_message(kek)?]));
            let decrypt = compile_with_views(&decrypt, maps, |_| plain.clone());
            Ok(BlockUnwrapping { decrypt, whole, length, key })
        })
    }
}

/// The views of a message's block that a chain needs of it, the last one or another.
fn as_message(of: &Circuits) -> Result<Vec<Matrix>> {
    let chained = of.chained()?;
    Ok(union([&chained.chain, &chained.last_of_cmac].map(|c| c.inputs()[0].views()).into_iter()))
}

/// A port for keys of a cipher with all views that its schedule, and wrapping it, start from.
pub(super) fn key_port(cipher: &Cipher, expanded: &CompiledPort, maps: &AnyServiceSession) -> CompiledPort {
    let wrapped = compile(&key_cells::looked_up(cipher), maps);
    let views = union([expanded, &wrapped.inputs()[0]].map(CompiledPort::views).into_iter());
    compile_with_views(&key_cells::same_key(cipher), maps, |_| views.clone()).outputs()[0].clone()
}
