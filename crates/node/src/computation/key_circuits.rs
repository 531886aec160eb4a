//! Circuits between two keys: those that wrap one under the other, unwrap it, or derive it. They are made on first use, and kept with the
//! circuits of the key that computes.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;
use polyclave_cipher::key_wrap::{self, Padding};
use polyclave_cipher::{Cipher, Compiled, CompiledPort, compile, compile_with_views, key_cells, modes};
use polyclave_protocol::any::AnyServiceSession;
use polyclave_protocol::{Error, Result};
use polyclave_transport::wire::Wrapping;

use super::circuits::{Circuits, union};

/// Those of the keys of one cipher.
#[derive(Default)]
pub(crate) struct KeyCircuits {
    wraps: Cached<(Wrapping, usize, u8), Compiled>,
    unwraps: Cached<(Wrapping, String), Unwrapping>,
    derivations: Cached<String, Deriving>,
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

/// As the circuits call it.
pub(crate) fn padding(how: Wrapping) -> Padding {
    match how {
        Wrapping::Kw => Padding::None,
        Wrapping::Kwp => Padding::Zeros,
    }
}

impl KeyCircuits {
    /// `key` and `round_keys` to `wrapped`, for a key of this cipher under one of `kek`. Both have the form in which nodes evaluate them.
    pub(crate) fn wrap(
        &self,
        kek: &Cipher,
        how: Wrapping,
        key: &Cipher,
        maps: &AnyServiceSession,
    ) -> Result<Arc<Compiled>> {
        let port = &key.key_schedule.inputs()[0];
        let shape = (port.cells.len(), port.bits);
        self.wraps.get((how, key.key_bytes, port.bits), || {
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
            let key = key_cells::key_of(&new.cipher, 1, bytes.cells.len(), bytes.bits);
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
            let key = key_cells::key_of(&new.cipher, blocks, block.cells.len(), block.bits);
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
}

/// A port for keys of a cipher with all views that its schedule, and wrapping it, start from.
pub(super) fn key_port(cipher: &Cipher, key_schedule: &Compiled, maps: &AnyServiceSession) -> CompiledPort {
    let wrapped = compile(&key_cells::looked_up(cipher), maps);
    let views = union([&key_schedule.inputs()[0], &wrapped.inputs()[0]].map(CompiledPort::views).into_iter());
    compile_with_views(&key_cells::same_key(cipher), maps, |_| views.clone()).outputs()[0].clone()
}
