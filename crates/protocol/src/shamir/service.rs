//! Shamir sharing for long-lived nodes: `storage.rs` and `client.rs` under the names of
//! [`crate::interface::service`].

use std::sync::Arc;

use polyclave_cipher::{Cipher, Compiled, CompiledPort, Table, boolean};
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::refresh::refresh;
use super::security::AdversaryModel;
use super::{Mask, Passive, Setup, Shamir, ShamirConfig, Shared, Tables, client, memory, storage};
use crate::interface::net::Net;
use crate::interface::protocol::{ProtocolConfig, Session};
use crate::interface::service::{
    Element, ElementArithmetic, Elements, Refreshed, ServiceConfig, ServiceSession, Sharing, Stored,
};
use crate::interface::session::Stream;
use crate::stored::Reader;
use crate::{Party, PartySet, Result};

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

    /// All of it is stored.
    fn renew(&self, setup: &Setup, _: &mut dyn Net) -> Result<Setup> {
        Ok(setup.clone())
    }

    /// `shamir/refresh.rs`: neither setup is used, since parties deal fresh zeros.
    fn refresh(
        &self,
        _: &Setup,
        new: &Setup,
        stream: Stream,
        stored: &[Stored<'_>],
        net: &mut dyn Net,
    ) -> Result<Refreshed> {
        let mut session = self.join(new, stream, PartySet::all(self.parties()))?;
        let stored = refresh(&mut session.arithmetic, stored, net)?;
        Ok(Refreshed { stored, faults: session.faults() })
    }

    fn sharing(&self) -> Option<Sharing> {
        Some(Sharing::passive(self))
    }

    fn combine(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Zeroizing<Vec<u8>>> {
        client::combine_shares::<Passive>(self.structure, serving, messages)
    }

    fn combine_elements(&self, serving: PartySet, messages: &[&[u8]]) -> Result<Vec<Element>> {
        client::combine_elements::<Passive>(self.structure, serving, messages)
    }
}

impl<S: AdversaryModel> ServiceSession for Shamir<S>
where
    Arithmetic<S>: ElementArithmetic,
{
    type Mask = Mask;

    /// Ciphers with a table for which no polynomial is known (the 8 bits of SKINNY-128) are evaluated as
    /// Boolean circuits, in which each AND is one product: unit vectors of 256 entries, made for every
    /// lookup, take more than ten times as long.
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
                // A circuit without lanes of its own takes nothing for each of them.
                (bytes / memory::bytes_per_lane(compiled, parties, self.tables).max(1)).max(1)
            }
        }
    }

    fn can_join(&self, a: &Shared, b: &Shared) -> bool {
        a.is_alike(b)
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

    fn mask_elements(&self, mask: &Mask) -> Elements {
        self.arithmetic.mask_elements(mask)
    }

    fn unmask(&mut self, mask: &Mask, at: usize, masked: &[u8], port: &CompiledPort) -> Result<Shared> {
        self.arithmetic.unmask(mask, at, masked, port)
    }

    fn block_bytes(&self, value: &Shared) -> usize {
        value.block_bytes()
    }

    fn bytes_for_client(&mut self, value: &Shared, bytes: usize, net: &mut dyn Net) -> Result<Vec<u8>> {
        self.arithmetic.bytes_for_client(value, bytes, net)
    }

    fn elements(&mut self, blocks: &Shared, net: &mut dyn Net) -> Result<Elements> {
        self.arithmetic.elements_of_bytes(blocks.elements_rows()?, blocks.lanes, net)
    }

    fn arithmetic(&mut self) -> &mut dyn ElementArithmetic {
        &mut self.arithmetic
    }

    fn save_elements(&self, elements: &Elements) -> Zeroizing<Vec<u8>> {
        elements.save(&[])
    }

    fn restore_elements(&self, bytes: &[u8]) -> Result<Elements> {
        Elements::restore(Reader::bare(bytes, storage::PROTOCOL), 1)
    }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{Builder, compile};

    use super::super::{Inversion, Structure};
    use super::*;
    use crate::interface::session::{HandshakeParameters, hello};
    use crate::mesh::run_parties;

    #[test]
    fn a_circuit_with_nothing_of_its_own_in_a_lane_has_as_many_lanes_as_wanted() {
        let structure = Structure::new(3, 1).expect("it is valid");
        let (inversion, tables) = (Inversion::CarriedSquares, Tables::ByLanes);
        let config = ShamirConfig { structure, inversion, tables };
        let outcomes = run_parties(3, |net| {
            let setup = config.setup(net)?;
            let stream = hello(&HandshakeParameters::new(3), net)?.stream();
            let protocol = config.join(&setup, stream, net.members())?;
            let mut b = Builder::new("sum of keys");
            let [x, y] = ["x", "y"].map(|name| b.uniform_input(name, 1, 8)[0]);
            let sum = b.xor(&[x, y]);
            b.output("sum", &[sum]);
            Ok(protocol.lanes_within(&compile(&b.finish(), &protocol), 1000))
        });
        assert!(outcomes.into_iter().all(|lanes| lanes.is_ok_and(|lanes| lanes >= 1000)));
    }
}
