//! Values become shared.

use polyclave_cipher::{Cells, CompiledPort};
use zeroize::Zeroizing;

use super::ring::{Ring, add, next};
use super::shared::Shared;
use crate::interface::net::Net;
use crate::interface::protocol::check_cells;
use crate::unchecked::Unchecked;
use crate::{Error, Party, Result};

impl Ring {
    /// A public value: share 0 is the value, the others are zero.
    pub(super) fn share_public(&self, port: &CompiledPort, cells: &Cells, lanes: usize) -> Result<Shared> {
        check_cells(port, cells, lanes)?;
        let mut shared = zero(port, cells.lanes());
        if let Some(share) = self.share_zero() {
            let len = cells.rows().len();
            shared.rows[share * len..][..len].copy_from_slice(cells.rows());
        }
        Ok(shared)
    }

    /// The owner's value x: shares i and i + 1 are pseudorandom under the two keys that owner P_i has. The
    /// third, which is x plus these two, goes to both other parties, and each of them lacks the key of one
    /// that masks it.
    pub(super) fn share_own(
        &mut self,
        port: &CompiledPort,
        cells: &Cells,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared> {
        check_cells(port, cells, lanes)?;
        self.counts().rounds += 1;
        let mut shared = zero(port, cells.lanes());
        let len = cells.rows().len();
        let mut third = Zeroizing::new(cells.rows().to_vec());
        for (share, rows) in shared.rows.chunks_mut(len.max(1)).enumerate() {
            rows.copy_from_slice(&self.input_share(share, len));
            add(&mut third, rows);
        }
        for peer in self.me.peers(super::PARTIES) {
            net.send(peer, &third)?;
        }
        Ok(shared)
    }

    /// The other side of [`share_own`](Ring::share_own).
    pub(super) fn receive_share(
        &mut self,
        port: &CompiledPort,
        owner: Party,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared> {
        if owner == self.me || owner.index() >= super::PARTIES {
            return Err(Error::misuse(format!("{owner} gives no input that {} receives", self.me)));
        }
        self.counts().rounds += 1;
        let mut shared = zero(port, if port.uniform { 1 } else { lanes });
        let len = shared.count * shared.lanes;
        let (first, second) = shared.rows.split_at_mut(len);
        // The party behind the owner has share i + 1 under a common key, the party before it has share i.
        let (drawn, received) = if self.me == next(owner) { (first, second) } else { (second, first) };
        let which = usize::from(self.me != next(owner));
        drawn.copy_from_slice(&self.input_share(which, len));
        net.recv(owner, received)?;
        Ok(shared)
    }
}

fn zero(port: &CompiledPort, lanes: usize) -> Shared {
    let count = port.cells.len();
    let rows = Zeroizing::new(vec![0; 2 * count * lanes]);
    Shared { bits: port.bits, count, lanes, rows, unchecked: Unchecked::default() }
}
