//! A cipher under a protocol: its circuits compiled so that they fit each other, and a shared key expanded
//! once.

use anyhow::{Context, Result, ensure};
use polyclave_cipher::{Builder, Cells, Cipher, Circuit, Compiled, Direction, compile, compile_with_views};
use polyclave_protocol::any::{AnySession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Session};

/// The most lanes of a batch: enough to hide the latency of a round, few enough to remain near the cache.
const MAX_LANES: usize = 16384;
/// The size of material that remains near the processor.
const NEAR_MATERIAL_BYTES: usize = 32 << 20;
/// For larger material, at least enough lanes to hide the latency,
const ENOUGH_LANES: usize = 4096;
/// but at most this much material at once.
const MAX_MATERIAL_BYTES: usize = 2 << 30;

/// Circuits compiled for one protocol.
pub struct Workload {
    /// `key` to `round_keys`, with the views that `cipher` needs of them.
    pub key_schedule: Compiled,
    /// `block` and `round_keys` to `block`; or `block` and `key` to `block`, if it contains the key schedule.
    pub cipher: Compiled,
}

impl Workload {
    /// Compiles for a protocol.
    pub fn new(
        cipher: &Cipher,
        direction: Direction,
        with_key_schedule: bool,
        protocol: &impl Session,
    ) -> Result<Workload> {
        check_shape(cipher)?;
        let one_way = || format!("{} has no decryption", cipher.name);
        let compiled = match with_key_schedule {
            true => compile(&cipher.circuit_with_key_schedule(direction).with_context(one_way)?, protocol),
            false => compile(&*cipher.circuit(direction).with_context(one_way)?, protocol),
        };
        let views = compiled.inputs()[1].views();
        let key_schedule = match with_key_schedule {
            true => compile_with_views(&pass_through(cipher), protocol, |_| views.clone()),
            false => compile_with_views(&cipher.key_schedule, protocol, |_| views.clone()),
        };
        Ok(Workload { key_schedule, cipher: compiled })
    }

    /// Computes from a key what the cipher circuit takes as its second input.
    pub fn expand(
        &self,
        key: &Input<'_, AnyShared>,
        protocol: &mut AnySession,
        net: &mut dyn Net,
    ) -> Result<AnyShared> {
        let batch = prepare(protocol, &self.key_schedule, 1, net)?;
        let key = std::slice::from_ref(key);
        let mut outputs = evaluate(protocol, &self.key_schedule, 1, key, batch, net)?;
        Ok(outputs.remove(0))
    }

    /// The number of lanes to run at once.
    pub fn lanes_at_once(&self, protocol: &impl Session) -> usize {
        let material = protocol.cost(&self.cipher).material_bytes_per_lane.max(1);
        let enough = (MAX_MATERIAL_BYTES / material).min(ENOUGH_LANES);
        let lanes = (NEAR_MATERIAL_BYTES / material).clamp(1, MAX_LANES).max(enough);
        lanes.min(protocol.lanes_at_once(&self.cipher))
    }
}

/// Refuses permutations and ciphers with a tweak: benchmarks provide only a key and blocks.
pub fn check_shape(cipher: &Cipher) -> Result<()> {
    let name = &cipher.name;
    ensure!(cipher.key_bytes > 0, "{name} has no key; eval and party run it");
    ensure!(cipher.tweak_bytes == 0, "{name} takes a tweak with each block; eval and party run it");
    Ok(())
}

/// A circuit that returns the key unchanged.
fn pass_through(cipher: &Cipher) -> Circuit {
    let port = &cipher.key_schedule.inputs()[0];
    let mut b = Builder::new("key");
    let key = b.uniform_input("key", port.cells.len(), port.bits);
    b.output("key", &key);
    b.finish()
}

/// A key in the cells of the key schedule's input.
pub fn key_cells(cipher: &Cipher, key: &[u8]) -> Result<Cells> {
    let port = &cipher.key_schedule.inputs()[0];
    Ok(Cells::from_blocks(port.cells.len(), port.bits, key)?)
}
