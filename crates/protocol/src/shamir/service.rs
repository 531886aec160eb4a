//! Shamir sharing as long-lived nodes offer it: `storage.rs` and `client.rs` under the names of [`crate::service`].

use std::ops::Range;
use std::sync::Arc;

use polyclave_cipher::{Cipher, Compiled, CompiledPort, Table, boolean};
use zeroize::Zeroizing;

use super::security::AdversaryModel;
use super::{Elements, Mask, Passive, Setup, Shamir, ShamirConfig, Shared, Tables, client, memory, storage};
use crate::net::Net;
use crate::protocol::Session;
use crate::service::{Element, ServiceConfig, ServiceSession};
use crate::tally::Phase;
use crate::{Error, Party, PartySet, Result};

impl ServiceConfig for ShamirConfig {
    fn quorum(&self) -> usize {
        self.structure.quorum()
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        setup.save(Passive::KINDS[0])
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        Setup::restore(Passive::KINDS[0], self.structure, me, bytes)
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine_shares::<Passive>(self.structure, serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        client::combine_elements::<Passive>(self.structure, serving, messages)
    }
}

impl<S: AdversaryModel> ServiceSession for Shamir<S> {
    type Mask = Mask;
    type Elements = Elements;

    /// Ciphers with a table that no polynomial is known for (the 8 bits of SKINNY-128) run by their ANDs: those of two bits have one,
    /// and unit vectors of 256 entries, made for every lookup, take ten times as long.
    fn form(&self, cipher: Cipher) -> Cipher {
        let is_large = |table: &Arc<Table>| table.inversion().is_none() && table.pulkus_vivek().is_none();
        let is_of_nodes = matches!(self.tables, Tables::ByLanes | Tables::InStock);
        match is_of_nodes && cipher.encrypt.tables().iter().any(is_large) {
            true => boolean::expanded(cipher),
            false => cipher,
        }
    }

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        match S::HOLDS_STOCK {
            true => usize::MAX,
            false => {
                let parties = self.arithmetic.structure.parties();
                (bytes / memory::bytes_per_lane(compiled, parties, self.tables)).max(1)
            }
        }
    }

    fn join_lanes(&self, parts: &[&Shared]) -> Shared {
        Shared::join(parts)
    }

    fn save(&self, value: &Shared) -> Zeroizing<Vec<u8>> {
        value.save(storage::header(S::KINDS[1], self.arithmetic.structure, self.arithmetic.me))
    }

    fn restore(&self, bytes: &[u8]) -> Result<Shared> {
        Shared::restore(
            bytes,
            storage::PROTOCOL,
            storage::header(S::KINDS[1], self.arithmetic.structure, self.arithmetic.me),
        )
    }

    fn mask_input(&mut self, len: usize, _net: &mut dyn Net) -> Result<(Mask, Vec<u8>)> {
        Ok(self.arithmetic.mask_input(len))
    }

    fn mask_blind(&mut self, _net: &mut dyn Net) -> Result<(Elements, Vec<u8>)> {
        let blind = self.arithmetic.random_elements(1);
        let mut message = blind.bytes().to_vec();
        S::hand_out_random_elements(&mut self.arithmetic, &mut message);
        Ok((blind, message))
    }

    fn open_mask_check(
        &mut self,
        mask: &Mask,
        blind: Elements,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        self.arithmetic.open_mask_check(mask, &blind, chi, net)
    }

    fn unmask(&mut self, mask: &Mask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<Shared> {
        self.arithmetic.unmask(mask, at, masked, port)
    }

    fn reveal_to_client(&mut self, value: &Shared, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        self.check(net)?;
        self.arithmetic.reveal_blocks(value, net)
    }

    fn reveal_bytes_to_client(&mut self, value: &Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        let mut message = self.reveal_to_client(value, net)?;
        if bytes > message.len() {
            return Err(Error::Misuse(format!("a value of {} bytes has no {bytes}", message.len())));
        }
        message.truncate(bytes);
        Ok(message)
    }

    fn elements(&mut self, blocks: &Shared, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.elements_of_bytes(blocks.elements_rows()?, blocks.lanes, net)
    }

    fn count(&self, elements: &Elements) -> usize {
        elements.count()
    }

    fn part(&self, elements: &Elements, range: Range<usize>) -> Elements {
        elements.part(range)
    }

    fn join_elements(&self, parts: &[&Elements]) -> Elements {
        Elements::join(parts)
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.multiply_elements(a, b, net)
    }

    fn inner_product(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.inner_product(a, b, net)
    }

    fn weighted_sums(&self, weights: &[Element], elements: &Elements) -> Elements {
        elements.weighted_sums(weights)
    }

    fn add_elements(&self, a: &Elements, b: &Elements) -> Elements {
        a.add(b)
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        a.add_public(public)
    }

    fn is_zero(&mut self, element: &Elements, net: &mut dyn Net) -> Result<bool> {
        if element.count() != 1 {
            return Err(Error::misuse("one element is compared with zero at a time"));
        }
        self.check(net)?;
        self.arithmetic.element_is_zero(element, net)
    }

    fn reveal_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        self.check(net)?;
        self.arithmetic.reveal_elements(elements, net)
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        elements.save()
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        Elements::restore(bytes)
    }
}
