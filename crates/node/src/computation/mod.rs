//! What nodes compute under a key: [`modes`] of operation over [`circuits`] of ciphers, in [`pieces`] that
//! fit into memory; and how keys are made ([`make`]), from others too ([`derive`], [`unwrap`],
//! [`key_block`]).

pub(crate) mod block_circuits;
pub(crate) mod blocks;
pub(crate) mod circuits;
pub(crate) mod cmac;
pub(crate) mod codes;
pub(crate) mod derive;
pub(crate) mod hmac_circuits;
pub(crate) mod hmac_codes;
pub(crate) mod key;
pub(crate) mod key_block;
pub(crate) mod key_circuits;
pub(crate) mod make;
pub(crate) mod modes;
pub(crate) mod payment_circuits;
pub(crate) mod pieces;
pub(crate) mod progress;
pub(crate) mod unwrap;

use crate::Result;
use polyclave_cipher::Compiled;
use polyclave_protocol::Error;
use polyclave_protocol::any::{AnyMask, AnyServiceSession, AnyShared};
use polyclave_protocol::dealt::HeldSeeds;
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Input;
use polyclave_protocol::service::ServiceSession;

use crate::computation::circuits::{Circuits, Library};
use crate::computation::hmac_circuits::Within;
use crate::computation::key::ExpandedKey;
use crate::computation::modes::StepError;
use crate::computation::pieces::{evaluate_within, reborrow, run};
use crate::computation::progress::Progress;

/// The protocol in one session, its peers, and the key in use.
pub(crate) struct Computation<'a> {
    pub(crate) protocol: AnyServiceSession,
    pub(crate) net: &'a mut dyn Net,
    pub(crate) circuits: &'a Circuits,
    pub(crate) key: &'a ExpandedKey,
    /// Further keys under which something is computed, and the circuits of their ciphers.
    pub(crate) others: Vec<(&'a Circuits, &'a ExpandedKey)>,
    pub(crate) library: &'a Library,
    pub(crate) session: [u8; 32],
    /// What the client deals of the first mask, until it is used.
    pub(crate) dealt: Option<HeldSeeds>,
    /// The bytes of memory that an evaluation may take.
    pub(crate) memory: usize,
    pub(crate) progress: &'a Progress,
}

impl Computation<'_> {
    /// Encrypts public blocks (counters), with their tweaks if the cipher takes one. The result stays shared.
    pub(crate) fn encrypt(&mut self, blocks: &[u8], tweaks: &[u8]) -> Result<AnyShared> {
        self.of_public(&self.circuits.of_cipher()?.encrypt, blocks, tweaks)
    }

    /// Decrypts public blocks by the cipher's decryption; the result stays shared.
    pub(crate) fn decrypt(&mut self, circuit: &Compiled, blocks: &[u8], tweaks: &[u8]) -> Result<AnyShared> {
        self.of_public(circuit, blocks, tweaks)
    }

    /// Encrypts public counters, and opens the sum of keystream and text. The text is under a mask, and the
    /// keystream is all blocks but the first, which stays shared.
    pub(crate) fn encrypt_and_open_sum(
        &mut self,
        counters: &[u8],
        text: (&AnyMask, &[u8]),
    ) -> Result<(AnyShared, Vec<u8>)> {
        let (circuit, blocks) = (&self.circuits.of_cipher()?.encrypt, self.circuits.blocks(counters)?);
        let (lanes, round_keys) = (blocks.lanes(), &self.key.round_keys);
        let at_once = self.protocol.evaluate_and_open_sum(circuit, &blocks, round_keys, text, self.net)?;
        if let Some(done) = at_once {
            return Ok(done);
        }
        let blocks = self.one(circuit, lanes, &[Input::Public(&blocks)])?;
        let keystream = self.protocol.lanes(&blocks, 1..lanes);
        let sum = self.protocol.open_sum(&keystream, text, self.net)?;
        Ok((self.protocol.lanes(&blocks, 0..1), sum))
    }

    fn of_public(&mut self, circuit: &Compiled, blocks: &[u8], tweaks: &[u8]) -> Result<AnyShared> {
        let (blocks, tweaks) = (self.circuits.blocks(blocks)?, self.circuits.tweaks(tweaks)?);
        let inputs: Vec<Input<'_, AnyShared>> =
            [&blocks].into_iter().chain(&tweaks).map(Input::Public).collect();
        self.one(circuit, blocks.lanes(), &inputs)
    }

    /// Evaluates a circuit with one output. Its last input must be the round keys. Many lanes are evaluated
    /// in pieces.
    pub(crate) fn one(
        &mut self,
        circuit: &Compiled,
        lanes: usize,
        inputs: &[Input<'_, AnyShared>],
    ) -> Result<AnyShared> {
        self.one_under(&self.key.round_keys, circuit, lanes, inputs)
    }

    /// The same under other round keys.
    pub(crate) fn one_under(
        &mut self,
        round_keys: &AnyShared,
        circuit: &Compiled,
        lanes: usize,
        inputs: &[Input<'_, AnyShared>],
    ) -> Result<AnyShared> {
        let mut all: Vec<Input<'_, AnyShared>> = Vec::with_capacity(inputs.len() + 1);
        all.extend(inputs.iter().map(reborrow));
        all.push(Input::Shared(round_keys));
        let within = (self.memory, self.progress);
        Ok(evaluate_within(&mut self.protocol, self.net, circuit, lanes, &all, within)?.remove(0))
    }

    /// The same of a circuit that takes no round keys and has no AND, so no blocks of it are counted.
    pub(crate) fn rearranged(
        &mut self,
        circuit: &Compiled,
        lanes: usize,
        inputs: &[Input<'_, AnyShared>],
    ) -> Result<AnyShared> {
        Ok(run(&mut self.protocol, self.net, circuit, lanes, inputs)?.remove(0))
    }

    /// For evaluations of HMAC: what they take, and whom they tell how far they are.
    pub(crate) fn within(&mut self) -> Within<'_> {
        Within { protocol: &mut self.protocol, net: &mut *self.net, memory: (self.memory, self.progress) }
    }

    /// Does some work under the second key.
    pub(crate) fn under_other<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let Some((circuits, key)) = self.others.pop() else {
            return Err(StepError::Failed(Error::misuse("there is no second key")));
        };
        let first = (self.circuits, self.key);
        (self.circuits, self.key) = (circuits, key);
        let outcome = work(self);
        (self.circuits, self.key) = first;
        self.others.push((circuits, key));
        outcome
    }

    /// Bytes that belong to this session and this purpose, and that no party could choose.
    pub(crate) fn derived<const N: usize>(&self, purpose: &str) -> [u8; N] {
        let mut bytes = [0; N];
        blake3::Hasher::new_derive_key(purpose).update(&self.session).finalize_xof().fill(&mut bytes);
        bytes
    }
}
