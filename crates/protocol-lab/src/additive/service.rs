//! Additive sharing for long-lived nodes: stored values, clients, and elements of GF(2^128).

use polyclave_cipher::{Cells, Compiled, CompiledPort};
use zeroize::Zeroizing;

use super::{Additive, AdditiveConfig, NAME, Setup};
use polyclave_protocol::byte_shares::ByteShares;
use polyclave_protocol::interface::masking::{cells_of, masked_cells};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::Session;
use polyclave_protocol::service::{
    ELEMENT_BYTES, Element, ElementArithmetic, Elements, ServiceConfig, ServiceSession,
};
use polyclave_protocol::stored::{Header, Reader};
use polyclave_protocol::{Error, Party, PartySet, Result};

/// The header of everything that a party stores.
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
    /// The message to a client: shares that reveal nothing but the value.
    fn hand_out(&mut self, shares: &[u8]) -> Vec<u8> {
        let zeros = self.dealer.zeros(8, shares.len());
        shares.iter().zip(zeros.iter()).map(|(share, zero)| share ^ zero).collect()
    }
}

fn bytes_of(value: &ByteShares) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(value.cells().to_blocks())
}

impl ServiceSession for Additive {
    type Mask = Zeroizing<Vec<u8>>;

    fn lanes_within(&self, compiled: &Compiled, bytes: usize) -> usize {
        (bytes / self.cost(compiled).material_bytes_per_lane.max(1)).max(1)
    }

    fn can_join(&self, a: &ByteShares, b: &ByteShares) -> bool {
        a.is_alike(b)
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

    fn mask_elements(&self, mask: &Self::Mask) -> Elements {
        let mut padded = Zeroizing::new(vec![0; mask.len().next_multiple_of(ELEMENT_BYTES)]);
        padded[..mask.len()].copy_from_slice(mask);
        Elements::of(padded)
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

    fn block_bytes(&self, value: &ByteShares) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(&mut self, value: &ByteShares, bytes: usize, _: &mut dyn Net) -> Result<Vec<u8>> {
        Ok(self.hand_out(&bytes_of(value)[..bytes]))
    }

    fn elements(&mut self, blocks: &ByteShares, _: &mut dyn Net) -> Result<Elements> {
        match Cells::block_bytes(blocks.count, blocks.bits) {
            ELEMENT_BYTES => Ok(Elements::of(bytes_of(blocks))),
            bytes => Err(Error::Misuse(format!("blocks of {bytes} bytes are no elements of GF(2^128)"))),
        }
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        self
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        elements.save(&[])
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        Elements::restore(Reader::bare(bytes, NAME), 1)
    }
}

impl ElementArithmetic for Additive {
    fn random_elements(&mut self, count: usize, _: &mut dyn Net) -> Result<Elements> {
        Ok(Elements::of(self.dealer.masks(ELEMENT_BYTES * count)))
    }

    fn add_public(&self, a: &Elements, public: &[Element]) -> Elements {
        if self.is_first() { a.add_to_shares(public) } else { a.clone() }
    }

    fn multiply_elements(&mut self, a: &Elements, b: &Elements, net: &mut dyn Net) -> Result<Elements> {
        a.same_count(b)?;
        let [r, s, mut product] = self.dealer.triples(a.count());
        let masked = Elements::join(&[&a.add(&r), &b.add(&s)]);
        self.tally.of(self.phase).multiplications += a.count() as u64;
        let opened = self.open(&masked.shares, net)?;
        // a b = d e + d s + e r + r s, of d = a + r and e = b + s.
        let (d, e) = opened.split_at(opened.len() / 2);
        product.add_assign(&self.add_public(&s, e.as_chunks().0).multiply(d));
        product.add_assign(&r.multiply(e));
        Ok(product)
    }

    fn open_elements(&mut self, elements: &Elements, net: &mut dyn Net) -> Result<Vec<Element>> {
        self.tally.of(self.phase).openings += elements.count() as u64;
        Ok(self.open(&elements.shares, net)?.as_chunks().0.to_vec())
    }

    fn elements_for_client(&mut self, elements: &Elements, _: &mut dyn Net) -> Result<Vec<u8>> {
        Ok(self.hand_out(&elements.shares))
    }
}
