//! Values become shared.
//!
//! **A party's input** x: of a random r the owner P_o knows three components, under the three keys that it
//! has. Component o of r is zero. Each other party lacks one of the three. The owner broadcasts x + r, which
//! is uniform to each other party. It is public then, and is added to r as other public values are. So all
//! parties have the same sharing, whatever the owner sent. An owner that broadcasts nothing gives no input,
//! and all parties know it.
//!
//! If only three parties are there, a broadcast among them bears no cheater. What it could make of it, two
//! different inputs, is found when the three compare their shares before the first product
//! ([`active`](super::super::active)).

use polyclave_cipher::{Cells, CompiledPort};
use zeroize::Zeroizing;

use super::keys::place;
use super::products::Joint;
use super::{BEHIND, COMPONENTS, PARTIES, ReplicatedFour, Shared};
use crate::interface::net::Net;
use crate::interface::protocol::{Input, check_cells};
use crate::replicated::lookup::Multiplier;
use crate::replicated::ring::add;
use crate::shamir::Broadcast;
use crate::unchecked::Unchecked;
use crate::{Error, Party, PartySet, Result};

impl ReplicatedFour {
    /// The shares of an input, among four.
    pub(super) fn share(
        &mut self,
        port: &CompiledPort,
        input: &Input<'_, Shared<COMPONENTS>>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<COMPONENTS>> {
        match input {
            Input::Public(cells) => {
                check_cells(port, cells, lanes)?;
                let mut shared = zero(port, cells.lanes());
                self.joint.add_public(&mut shared.rows, cells.rows());
                Ok(shared)
            }
            Input::Mine(cells) => {
                check_cells(port, cells, lanes)?;
                self.share_of(port, self.me(), Some(cells), cells.lanes(), net)
            }
            Input::From(owner) => {
                if *owner == self.me() || !self.serving.contains(*owner) {
                    let me = self.me();
                    return Err(Error::misuse(format!("{owner} gives no input that {me} receives")));
                }
                let lanes = if port.uniform { 1 } else { lanes };
                self.share_of(port, *owner, None, lanes, net)
            }
            Input::Shared(shared) => Ok((*shared).clone()),
        }
    }

    fn share_of(
        &mut self,
        port: &CompiledPort,
        owner: Party,
        cells: Option<&Cells>,
        lanes: usize,
        net: &mut dyn Net,
    ) -> Result<Shared<COMPONENTS>> {
        let mut shared = zero(port, lanes);
        let len = shared.count * lanes;
        if len == 0 {
            return Ok(shared);
        }
        let keep = 0xff >> (8 - port.bits);
        let mut masked = cells.map(|cells| Zeroizing::new(cells.rows().to_vec()));
        let drawn = self.joint.keys.random(len);
        for (at, (row, drawn)) in shared.rows.chunks_mut(len).zip(&drawn).enumerate() {
            if place(self.me(), owner) == Some(at) {
                continue;
            }
            row.iter_mut().zip(drawn.iter()).for_each(|(row, drawn)| *row = drawn & keep);
            if let Some(masked) = &mut masked {
                add(masked, row);
            }
        }
        let mut lens = [0; PARTIES];
        lens[owner.index()] = len;
        let broadcast = Broadcast { members: self.serving, threshold: 1, lens: &lens, behind: BEHIND };
        let mine = masked.unwrap_or_default();
        let mut heard = broadcast.run(&mine, net)?;
        self.joint.tally.of(self.joint.phase).rounds += heard.rounds;
        self.joint.lost = self.joint.lost.and(heard.lost);
        let Some(mut public) = heard.messages[owner.index()].take() else {
            let there: PartySet = self.serving.without([owner].into_iter().collect());
            return Err(Error::Missing {
                there,
                needed: PARTIES,
                purpose: "give an input that all parties hear",
            });
        };
        public.iter_mut().for_each(|byte| *byte &= keep);
        self.joint.add_public(&mut shared.rows, &public);
        Ok(shared)
    }
}

impl Joint {
    /// Adds a public value to components that follow each other.
    pub(super) fn add_public(&self, rows: &mut [u8], public: &[u8]) {
        if let Some(at) = self.share_zero() {
            add(&mut rows[at * public.len()..], public);
        }
    }
}

fn zero(port: &CompiledPort, lanes: usize) -> Shared<COMPONENTS> {
    let count = port.cells.len();
    let rows = Zeroizing::new(vec![0; COMPONENTS * count * lanes]);
    Shared { bits: port.bits, count, lanes, rows, unchecked: Unchecked::default() }
}
