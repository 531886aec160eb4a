//! A handle to a session of a protocol with which nodes can serve.

use std::ops::Range;

use polyclave_cipher::{Cipher, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::engine::{Erasable, ErasedSession, Handle};
use super::values::{AnyElements, AnyMask, AnyShared};
use crate::Result;
use crate::net::Net;
use crate::service::{Element, ServiceSession};

/// A node in a session.
pub type AnyServiceSession = Handle<dyn ErasedServiceSession>;

/// A [`ServiceSession`] that owns all it works with, as all of them do.
pub trait ErasableService:
    Erasable + ServiceSession<Shared: 'static, Mask: 'static, Elements: 'static>
{
}

impl<P> ErasableService for P where
    P: Erasable + ServiceSession<Shared: 'static, Mask: 'static, Elements: 'static>
{
}

/// [`ServiceSession`] with handles in place of types. See there for what the methods do.
pub trait ErasedServiceSession: ErasedSession {
    /// See [`ServiceSession::form`].
    fn erased_form(&self, cipher: Cipher) -> Cipher;
    /// See [`ServiceSession::lanes_within`].
    fn erased_lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize;
    /// See [`ServiceSession::join_lanes`].
    fn erased_join_lanes(&self, parts: &[&AnyShared]) -> AnyShared;
    /// See [`ServiceSession::save`].
    fn erased_save(&self, value: &AnyShared) -> Zeroizing<Vec<u8>>;
    /// See [`ServiceSession::restore`].
    fn erased_restore(&self, bytes: &[u8]) -> Result<AnyShared>;
    /// See [`ServiceSession::lanes`].
    fn erased_lanes(&self, value: &AnyShared, lanes: Range<usize>) -> AnyShared;
    /// See [`ServiceSession::mask_input`].
    fn erased_mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)>;
    /// See [`ServiceSession::mask_blind`].
    fn erased_mask_blind(&mut self, net: &mut dyn Net) -> Result<(AnyElements, Vec<u8>)>;
    /// See [`ServiceSession::open_mask_check`].
    fn erased_open_mask_check(
        &mut self,
        mask: &AnyMask,
        blind: AnyElements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element>;
    /// See [`ServiceSession::unmask`].
    fn erased_unmask(
        &mut self,
        mask: &AnyMask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<AnyShared>;
    /// See [`ServiceSession::reveal_to_client`].
    fn erased_reveal_to_client(&mut self, value: &AnyShared, net: &mut dyn Net) -> Result<Vec<u8>>;
    /// See [`ServiceSession::reveal_bytes_to_client`].
    fn erased_reveal_bytes_to_client(
        &mut self,
        value: &AnyShared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>>;
    /// See [`ServiceSession::elements`].
    fn erased_elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<AnyElements>;
    /// See [`ServiceSession::count`].
    fn erased_count(&self, elements: &AnyElements) -> usize;
    /// See [`ServiceSession::part`].
    fn erased_part(&self, elements: &AnyElements, range: Range<usize>) -> AnyElements;
    /// See [`ServiceSession::join_elements`].
    fn erased_join_elements(&self, parts: &[&AnyElements]) -> AnyElements;
    /// See [`ServiceSession::multiply_elements`].
    fn erased_multiply_elements(
        &mut self,
        a: &AnyElements,
        b: &AnyElements,
        net: &mut dyn Net,
    ) -> Result<AnyElements>;
    /// See [`ServiceSession::inner_product`].
    fn erased_inner_product(
        &mut self,
        a: &AnyElements,
        b: &AnyElements,
        net: &mut dyn Net,
    ) -> Result<AnyElements>;
    /// See [`ServiceSession::weighted_sums`].
    fn erased_weighted_sums(&self, weights: &[Element], elements: &AnyElements) -> AnyElements;
    /// See [`ServiceSession::add_elements`].
    fn erased_add_elements(&self, a: &AnyElements, b: &AnyElements) -> AnyElements;
    /// See [`ServiceSession::add_public`].
    fn erased_add_public(&self, a: &AnyElements, public: &[Element]) -> AnyElements;
    /// See [`ServiceSession::is_zero`].
    fn erased_is_zero(&mut self, element: &AnyElements, net: &mut dyn Net) -> Result<bool>;
    /// See [`ServiceSession::reveal_elements`].
    fn erased_reveal_elements(&mut self, elements: &AnyElements, net: &mut dyn Net) -> Result<Vec<u8>>;
    /// See [`ServiceSession::save_elements`].
    fn erased_save_elements(&self, elements: &AnyElements) -> Zeroizing<Vec<u8>>;
    /// See [`ServiceSession::restore_elements`].
    fn erased_restore_elements(&self, bytes: &[u8]) -> Result<AnyElements>;
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

    fn erased_save(&self, value: &AnyShared) -> Zeroizing<Vec<u8>> {
        self.save(value.of())
    }

    fn erased_restore(&self, bytes: &[u8]) -> Result<AnyShared> {
        self.restore(bytes).map(AnyShared::new)
    }

    fn erased_lanes(&self, value: &AnyShared, lanes: Range<usize>) -> AnyShared {
        AnyShared::new(self.lanes(value.of(), lanes))
    }

    fn erased_mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)> {
        self.mask_input(len, net).map(|(mask, sent)| (AnyMask::new(mask), sent))
    }

    fn erased_mask_blind(&mut self, net: &mut dyn Net) -> Result<(AnyElements, Vec<u8>)> {
        self.mask_blind(net).map(|(blind, sent)| (AnyElements::new(blind), sent))
    }

    fn erased_open_mask_check(
        &mut self,
        mask: &AnyMask,
        blind: AnyElements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        self.open_mask_check(mask.of(), blind.of::<P::Elements>().clone(), chi, net)
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

    fn erased_reveal_to_client(&mut self, value: &AnyShared, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.reveal_to_client(value.of(), net)
    }

    fn erased_reveal_bytes_to_client(
        &mut self,
        value: &AnyShared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.reveal_bytes_to_client(value.of(), bytes, net)
    }

    fn erased_elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<AnyElements> {
        self.elements(blocks.of(), net).map(AnyElements::new)
    }

    fn erased_count(&self, elements: &AnyElements) -> usize {
        self.count(elements.of())
    }

    fn erased_part(&self, elements: &AnyElements, range: Range<usize>) -> AnyElements {
        AnyElements::new(self.part(elements.of(), range))
    }

    fn erased_join_elements(&self, parts: &[&AnyElements]) -> AnyElements {
        AnyElements::new(self.join_elements(&parts.iter().map(|part| part.of()).collect::<Vec<_>>()))
    }

    fn erased_multiply_elements(
        &mut self,
        a: &AnyElements,
        b: &AnyElements,
        net: &mut dyn Net,
    ) -> Result<AnyElements> {
        self.multiply_elements(a.of(), b.of(), net).map(AnyElements::new)
    }

    fn erased_inner_product(
        &mut self,
        a: &AnyElements,
        b: &AnyElements,
        net: &mut dyn Net,
    ) -> Result<AnyElements> {
        self.inner_product(a.of(), b.of(), net).map(AnyElements::new)
    }

    fn erased_weighted_sums(&self, weights: &[Element], elements: &AnyElements) -> AnyElements {
        AnyElements::new(self.weighted_sums(weights, elements.of()))
    }

    fn erased_add_elements(&self, a: &AnyElements, b: &AnyElements) -> AnyElements {
        AnyElements::new(self.add_elements(a.of(), b.of()))
    }

    fn erased_add_public(&self, a: &AnyElements, public: &[Element]) -> AnyElements {
        AnyElements::new(self.add_public(a.of(), public))
    }

    fn erased_is_zero(&mut self, element: &AnyElements, net: &mut dyn Net) -> Result<bool> {
        self.is_zero(element.of(), net)
    }

    fn erased_reveal_elements(&mut self, elements: &AnyElements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.reveal_elements(elements.of(), net)
    }

    fn erased_save_elements(&self, elements: &AnyElements) -> Zeroizing<Vec<u8>> {
        self.save_elements(elements.of())
    }

    fn erased_restore_elements(&self, bytes: &[u8]) -> Result<AnyElements> {
        self.restore_elements(bytes).map(AnyElements::new)
    }
}

impl ServiceSession for AnyServiceSession {
    type Mask = AnyMask;
    type Elements = AnyElements;

    fn form(&self, cipher: Cipher) -> Cipher {
        self.0.erased_form(cipher)
    }

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        self.0.erased_lanes_within(compiled, bytes)
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

    fn lanes(&self, value: &AnyShared, lanes: Range<usize>) -> AnyShared {
        self.0.erased_lanes(value, lanes)
    }

    fn mask_input(&mut self, len: usize, net: &mut dyn Net) -> Result<(AnyMask, Vec<u8>)> {
        self.0.erased_mask_input(len, net)
    }

    fn mask_blind(&mut self, net: &mut dyn Net) -> Result<(AnyElements, Vec<u8>)> {
        self.0.erased_mask_blind(net)
    }

    fn open_mask_check(
        &mut self,
        mask: &AnyMask,
        blind: AnyElements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        self.0.erased_open_mask_check(mask, blind, chi, net)
    }

    fn unmask(&mut self, mask: &AnyMask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<AnyShared> {
        self.0.erased_unmask(mask, at, masked, port)
    }

    fn reveal_to_client(&mut self, value: &AnyShared, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.0.erased_reveal_to_client(value, net)
    }

    fn reveal_bytes_to_client(
        &mut self,
        value: &AnyShared,
        bytes: usize,
        net: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.0.erased_reveal_bytes_to_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &AnyShared, net: &mut dyn Net) -> Result<AnyElements> {
        self.0.erased_elements(blocks, net)
    }

    fn count(&self, elements: &AnyElements) -> usize {
        self.0.erased_count(elements)
    }

    fn part(&self, elements: &AnyElements, range: Range<usize>) -> AnyElements {
        self.0.erased_part(elements, range)
    }

    fn join_elements(&self, parts: &[&AnyElements]) -> AnyElements {
        self.0.erased_join_elements(parts)
    }

    fn multiply_elements(
        &mut self,
        a: &AnyElements,
        b: &AnyElements,
        net: &mut dyn Net,
    ) -> Result<AnyElements> {
        self.0.erased_multiply_elements(a, b, net)
    }

    fn inner_product(&mut self, a: &AnyElements, b: &AnyElements, net: &mut dyn Net) -> Result<AnyElements> {
        self.0.erased_inner_product(a, b, net)
    }

    fn weighted_sums(&self, weights: &[Element], elements: &AnyElements) -> AnyElements {
        self.0.erased_weighted_sums(weights, elements)
    }

    fn add_elements(&self, a: &AnyElements, b: &AnyElements) -> AnyElements {
        self.0.erased_add_elements(a, b)
    }

    fn add_public(&self, a: &AnyElements, public: &[Element]) -> AnyElements {
        self.0.erased_add_public(a, public)
    }

    fn is_zero(&mut self, element: &AnyElements, net: &mut dyn Net) -> Result<bool> {
        self.0.erased_is_zero(element, net)
    }

    fn reveal_elements(&mut self, elements: &AnyElements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.0.erased_reveal_elements(elements, net)
    }

    fn save_elements(&self, elements: &AnyElements) -> Zeroizing<Vec<u8>> {
        self.0.erased_save_elements(elements)
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<AnyElements> {
        self.0.erased_restore_elements(bytes)
    }
}
