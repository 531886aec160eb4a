//! The same as nodes serve with it: what is stored, clients, and elements of GF(2^128).

use std::ops::Range;

use polyclave_cipher::{Cells, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::{Additive, AdditiveConfig, NAME, Setup};
use crate::byte_shares::ByteShares;
use crate::element_vector::ElementVector;
use crate::masking::{cells_of, masked_cells, powers};
use crate::net::Net;
use crate::protocol::Session;
use crate::service::{ELEMENT_BYTES, Element, ServiceConfig, ServiceSession};
use crate::stored::{Header, Reader};
use crate::tally::Phase;
use crate::{Error, Party, PartySet, Result};

/// In front of what a party stores.
fn header(kind: u8, parties: usize, me: Party) -> Header {
    [kind, 1, parties as u8, 0, me.0]
}

impl ServiceConfig for AdditiveConfig {
    fn quorum(&self) -> usize {
        self.parties
    }

    fn save_setup(&self, setup: &Setup) -> Zeroizing<Vec<u8>> {
        Zeroizing::new([&header(b'A', self.parties, setup.me)[..], &*setup.seed].concat())
    }

    fn restore_setup(&self, me: Party, bytes: &[u8]) -> Result<Setup> {
        let mut reader = Reader::new(bytes, NAME, header(b'A', self.parties, me))?;
        let seed = Zeroizing::new(reader.array()?);
        reader.finish()?;
        Ok(Setup { me, seed })
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        let mut sum = Zeroizing::new(messages.first().map(|message| message.to_vec()).unwrap_or_default());
        for (peer, message) in serving.iter().zip(messages).skip(1) {
            if message.len() != sum.len() {
                let detail = format!("{} bytes where others sent {}", message.len(), sum.len());
                return Err(Error::Peer { peer, detail });
            }
            sum.iter_mut().zip(*message).for_each(|(sum, share)| *sum ^= share);
        }
        match serving == PartySet::all(self.parties) && messages.len() == self.parties {
            true => Ok(sum),
            false => Err(Error::misuse("a message of every party puts a value together")),
        }
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        Ok(self.combine(serving, messages)?.as_chunks().0.to_vec())
    }
}

impl Additive {
    /// What a client is sent: shares that tell nothing but the value.
    fn hand_out(&mut self, shares: &[u8]) -> Vec<u8> {
        let zeros = self.dealer.zeros(8, shares.len());
        shares.iter().zip(zeros.iter()).map(|(share, zero)| share ^ zero).collect()
    }

    fn open_elements(&mut self, elements: &ElementVector, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.tally.of(self.phase).openings += elements.count() as u64;
        Ok(self.open(elements.bytes(), net)?.as_chunks().0.to_vec())
    }
}

fn bytes_of(value: &ByteShares) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(value.cells().to_blocks())
}

impl ServiceSession for Additive {
    type Mask = Zeroizing<Vec<u8>>;
    type Elements = ElementVector;

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        (bytes / self.cost(compiled).material_bytes_per_lane.max(1)).max(1)
    }

    fn join_lanes(&self, parts: &[&ByteShares]) -> ByteShares {
        ByteShares::join(parts)
    }

    fn save(&self, value: &ByteShares) -> Zeroizing<Vec<u8>> {
        value.save(header(b'V', self.parties, self.me))
    }

    fn restore(&self, bytes: &[u8]) -> Result<ByteShares> {
        ByteShares::restore(bytes, NAME, header(b'V', self.parties, self.me))
    }

    fn mask_input(&mut self, len: usize, _: &mut dyn Net) -> Result<(Self::Mask, Vec<u8>)> {
        let mask = self.dealer.masks(len);
        let message = self.hand_out(&mask);
        Ok((mask, message))
    }

    fn mask_blind(&mut self, _: &mut dyn Net) -> Result<(ElementVector, Vec<u8>)> {
        let blind = ElementVector::of(self.dealer.masks(ELEMENT_BYTES));
        let message = self.hand_out(blind.bytes());
        Ok((blind, message))
    }

    fn open_mask_check(
        &mut self,
        mask: &Self::Mask,
        blind: ElementVector,
        chi: Element,
        net: &mut dyn Net,
    ) -> Result<Element> {
        let mut padded = Zeroizing::new(vec![0; mask.len().next_multiple_of(ELEMENT_BYTES)]);
        padded[..mask.len()].copy_from_slice(mask);
        let (elements, mut sum) = (ElementVector::of(padded), blind);
        if elements.count() > 0 {
            sum.add_assign(&elements.weighted_sums(&powers(chi, elements.count())));
        }
        Ok(self.open_elements(&sum, net)?[0])
    }

    fn unmask(
        &mut self,
        mask: &Self::Mask,
        at: usize,
        masked: &[u8],
        port: &CompiledPort,
    ) -> Result<ByteShares> {
        let public = masked_cells(port, masked, at, mask.len())?;
        let mut cells = cells_of(port, &mask[at..at + masked.len()])?;
        if self.is_first() {
            cells.rows_mut().iter_mut().zip(public.rows()).for_each(|(share, public)| *share ^= public);
        }
        Ok(ByteShares::of_cells(&cells))
    }

    fn reveal_to_client(&mut self, value: &ByteShares, _: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        Ok(self.hand_out(&bytes_of(value)))
    }

    fn reveal_bytes_to_client(
        &mut self,
        value: &ByteShares,
        bytes: usize,
        _: &mut dyn Net,
    ) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        let all = bytes_of(value);
        let first = all.get(..bytes);
        let first =
            first.ok_or_else(|| Error::Misuse(format!("a value of {} bytes has no {bytes}", all.len())))?;
        Ok(self.hand_out(first))
    }

    fn elements(&mut self, blocks: &ByteShares, _: &mut dyn Net) -> Result<ElementVector> {
        match Cells::block_bytes(blocks.count, blocks.bits) {
            ELEMENT_BYTES => Ok(ElementVector::of(bytes_of(blocks))),
            bytes => Err(Error::Misuse(format!("blocks of {bytes} bytes are no elements of GF(2^128)"))),
        }
    }

    fn count(&self, elements: &ElementVector) -> usize {
        elements.count()
    }

    fn part(&self, elements: &ElementVector, range: Range<usize>) -> ElementVector {
        elements.part(range)
    }

    fn join_elements(&self, parts: &[&ElementVector]) -> ElementVector {
        ElementVector::join(parts)
    }

    fn multiply_elements(
        &mut self,
        a: &ElementVector,
        b: &ElementVector,
        net: &mut dyn Net,
    ) -> Result<ElementVector> {
        a.same_count(b)?;
        let [r, s, mut product] = self.dealer.triples(a.count());
        let masked = ElementVector::join(&[&a.add(&r), &b.add(&s)]);
        self.tally.of(self.phase).multiplications += a.count() as u64;
        let opened = self.open(masked.bytes(), net)?;
        // a b = d e + d s + e r + r s, of d = a + r and e = b + s.
        let (d, e) = opened.split_at(opened.len() / 2);
        let e_and_s = if self.is_first() { s.add_public(e.as_chunks().0) } else { s };
        product.add_assign(&e_and_s.multiply(d));
        product.add_assign(&r.multiply(e));
        Ok(product)
    }

    fn inner_product(
        &mut self,
        a: &ElementVector,
        b: &ElementVector,
        net: &mut dyn Net,
    ) -> Result<ElementVector> {
        Ok(self.multiply_elements(a, b, net)?.sum())
    }

    fn weighted_sums(&self, weights: &[Element], elements: &ElementVector) -> ElementVector {
        elements.weighted_sums(weights)
    }

    fn add_elements(&self, a: &ElementVector, b: &ElementVector) -> ElementVector {
        a.add(b)
    }

    fn add_public(&self, a: &ElementVector, public: &[Element]) -> ElementVector {
        if self.is_first() { a.add_public(public) } else { a.clone() }
    }

    fn is_zero(&mut self, element: &ElementVector, net: &mut dyn Net) -> Result<bool> {
        let factor = ElementVector::of(self.dealer.masks(ELEMENT_BYTES));
        let multiple = self.multiply_elements(element, &factor, net)?;
        Ok(self.open_elements(&multiple, net)? == [[0; ELEMENT_BYTES]])
    }

    fn reveal_elements(&mut self, elements: &ElementVector, _: &mut dyn Net) -> Result<Vec<u8>> {
        self.enter(Phase::Output);
        Ok(self.hand_out(elements.bytes()))
    }

    fn save_elements(&self, elements: &ElementVector) -> Zeroizing<Vec<u8>> {
        elements.save()
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<ElementVector> {
        ElementVector::restore(bytes)
    }
}
