//! A handle to a session of a protocol with which nodes can serve.

use polyclave_cipher::{Cells, Cipher, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::engine::{Erasable, ErasedSession, Handle};
use super::values::{AnyMask, AnyShared};
use crate::interface::dealt::HeldSeeds;
use crate::interface::net::Net;
use crate::interface::service::{ElementArithmetic, Elements, OwnMask, ServiceSession};
use crate::{Party, Result};

/// A node in a session.
pub type AnyServiceSession = Handle<dyn ErasedServiceSession>;

/// A [`ServiceSession`] that owns all it works with, as all of them do.
pub trait ErasableService: Erasable + ServiceSession<Shared: 'static, Mask: 'static> {}

impl<P> ErasableService for P where P: Erasable + ServiceSession<Shared: 'static, Mask: 'static> {}

/// [`ServiceSession`] with handles in place of types. See there for what the methods do.
pub trait ErasedServiceSession: ErasedSession {
    /// See [`ServiceSession::form`].
    fn erased_form(&self, cipher: Cipher) -> Cipher;
    /// See [`ServiceSession::lanes_within`].
    fn erased_lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize;
    /// See [`ServiceSession::join_lanes`].
    fn erased_join_lanes(&self, parts: &[&AnyShared]) -> AnyShared;
    /// See [`ServiceSession::can_join`].
    fn erased_can_join(&self, a: &AnyShared, b: &AnyShared) -> bool;
    /// See [`ServiceSession::save`].
    fn erased_save(&self, value: &AnyShared) -> Zeroizing<Vec<u8>>;
    /// See [`ServiceSession::restore`].
    fn erased_restore(&self, bytes: &[u8]) -> Result<AnyShared>;
    /// See [`ServiceSession::mask_of`].
    fn erased_mask_of(
        &mut self,
        owner: Party,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<OwnMask<AnyMask>>>;
    /// See [`ServiceSession::mask_input`].
    fn erased_mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)>;
    /// See [`ServiceSession::dealt_mask`].
    fn erased_dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<AnyMask>;
    /// See [`ServiceSession::mask_elements`].
    fn erased_mask_elements(&self, mask: &AnyMask) -> Elements;
    /// See [`ServiceSession::unmask`].
    fn erased_unmask(
        &mut self,
        mask: &AnyMask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<AnyShared>;
    /// See [`ServiceSession::evaluate_and_open_sum`].
    fn erased_evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &AnyShared,
        masked: (&AnyMask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<Option<(AnyShared, Vec<u8>)>>;
    /// See [`ServiceSession::block_bytes`].
    fn erased_block_bytes(&self, value: &AnyShared) -> usize;
    /// See [`ServiceSession::bytes_for_client`].
    fn erased_bytes_for_client(
        &mut self,
        value: &AnyShared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>>;
    /// See [`ServiceSession::elements`].
    fn erased_elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<Elements>;
    /// See [`ServiceSession::arithmetic`].
    fn erased_arithmetic(&mut self) -> &mut dyn ElementArithmetic;
    /// See [`ServiceSession::save_elements`].
    fn erased_save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>>;
    /// See [`ServiceSession::restore_elements`].
    fn erased_restore_elements(&self, bytes: &[u8]) -> Result<Elements>;
}

impl<P: ErasableService> ErasedServiceSession for P {
    fn erased_form(&self, cipher: Cipher) -> Cipher {
        self.form(cipher)
    }

    fn erased_lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.lanes_within(compiled, bytes)
    }

    fn erased_join_lanes(&self, parts: &[&AnyShared]) -> AnyShared {
        AnyShared::new(self.join_lanes(&parts.iter().map(|part| part.of()).collect::<Vec<_>>()))
    }

    fn erased_can_join(&self, a: &AnyShared, b: &AnyShared) -> bool {
        self.can_join(a.of(), b.of())
    }

    fn erased_save(&self, value: &AnyShared) -> Zeroizing<Vec<u8>> {
        self.save(value.of())
    }

    fn erased_restore(&self, bytes: &[u8]) -> Result<AnyShared> {
        self.restore(bytes).map(AnyShared::new)
    }

    fn erased_mask_of(
        &mut self,
        owner: Party,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<OwnMask<AnyMask>>> {
        Ok(self.mask_of(owner, len, net)?.map(|(mask, known)| (AnyMask::new(mask), known)))
    }

    fn erased_mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)> {
        self.mask_input(len, net).map(|(mask, sent)| (AnyMask::new(mask), sent))
    }

    fn erased_dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<AnyMask> {
        self.dealt_mask(seeds, len).map(AnyMask::new)
    }

    fn erased_mask_elements(&self, mask: &AnyMask) -> Elements {
        self.mask_elements(mask.of())
    }

    fn erased_unmask(
        &mut self,
        mask: &AnyMask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<AnyShared> {
        self.unmask(mask.of(), at, masked, port).map(AnyShared::new)
    }

    fn erased_evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &AnyShared,
        (mask, masked): (&AnyMask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<Option<(AnyShared, Vec<u8>)>> {
        let done = self.evaluate_and_open_sum(compiled, blocks, round_keys.of(), (mask.of(), masked), net)?;
        Ok(done.map(|(first, sum)| (AnyShared::new(first), sum)))
    }

    fn erased_block_bytes(&self, value: &AnyShared) -> usize {
        self.block_bytes(value.of())
    }

    fn erased_bytes_for_client(
        &mut self,
        value: &AnyShared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.bytes_for_client(value.of(), bytes, net)
    }

    fn erased_elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<Elements> {
        self.elements(blocks.of(), net)
    }

    fn erased_arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.arithmetic()
    }

    fn erased_save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.save_elements(elements)
    }

    fn erased_restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.restore_elements(bytes)
    }
}

impl ServiceSession for AnyServiceSession {
    type Mask = AnyMask;

    fn form(&self, cipher: Cipher) -> Cipher {
        self.0.erased_form(cipher)
    }

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.0.erased_lanes_within(compiled, bytes)
    }

    fn can_join(&self, a: &AnyShared, b: &AnyShared) -> bool {
        self.0.erased_can_join(a, b)
    }

    fn join_lanes(&self, parts: &[&AnyShared]) -> AnyShared {
        self.0.erased_join_lanes(parts)
    }

    fn save(&self, value: &AnyShared) -> Zeroizing<Vec<u8>> {
        self.0.erased_save(value)
    }

    fn restore(&self, bytes: &[u8]) -> Result<AnyShared> {
        self.0.erased_restore(bytes)
    }

    fn mask_of(&mut self, owner: Party, len: usize, net: &mut dyn Net) -> Result<Option<OwnMask<AnyMask>>> {
        self.0.erased_mask_of(owner, len, net)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)> {
        self.0.erased_mask_input(len, net)
    }

    fn dealt_mask(&mut self, seeds: &HeldSeeds, len: usize) -> Result<AnyMask> {
        self.0.erased_dealt_mask(seeds, len)
    }

    fn mask_elements(&self, mask: &AnyMask) -> Elements {
        self.0.erased_mask_elements(mask)
    }

    fn unmask(&mut self, mask: &AnyMask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<AnyShared> {
        self.0.erased_unmask(mask, at, masked, port)
    }

    fn evaluate_and_open_sum(
        &mut self,
        compiled: &Compiled,
        blocks: &Cells,
        round_keys: &AnyShared,
        masked: (&AnyMask, &[u8]),
        net: &mut dyn Net,
    ) -> Result<Option<(AnyShared, Vec<u8>)>> {
        self.0.erased_evaluate_and_open_sum(compiled, blocks, round_keys, masked, net)
    }

    fn block_bytes(&self, value: &AnyShared) -> usize {
        self.0.erased_block_bytes(value)
    }

    fn bytes_for_client(&mut self, value: &AnyShared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.0.erased_bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<Elements> {
        self.0.erased_elements(blocks, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self.0.erased_arithmetic()
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        self.0.erased_save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        self.0.erased_restore_elements(bytes)
    }
}
