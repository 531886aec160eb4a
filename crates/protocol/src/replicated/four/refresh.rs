//! Proactive refresh: every stored value x is opened under a random r, and becomes r plus what was opened.
//! r has fresh pseudorandom components, under the keys of the new setup.
//!
//! **Adversary**: mobile. Between two refreshes it has one node at most; a node that it has during a refresh
//! counts for the time before and after. Say it has P_a before and P_b after. It knows x + r, all components
//! of x but x_a, and all of r but r_b, as the keys of the new setup were drawn when it had P_a no more, and
//! the holders of K_b have drawn it without P_b. So it knows x_a + r_b, and every x_a is as likely. If a = b,
//! it lacks x_a and r_a, and knows their sum. The old keys must go (`node/src/material/refresh.rs`).
//!
//! **A node that cheats** can send a wrong share of x + r, which is corrected while all four take part. A
//! node whose stored shares are damaged is named by that, too, and has right ones afterwards.
//!
//! Cost: one round, 1 byte a byte to each peer.

use zeroize::Zeroizing;

use super::keys::Components;
use super::storage::{restore, restore_elements, save, save_elements};
use super::{COMPONENTS, ReplicatedFour, Shared};
use crate::Result;
use crate::interface::elements::Elements;
use crate::interface::net::Net;
use crate::interface::protocol::Owner;
use crate::interface::service::Stored;
use crate::replicated::lookup::Multiplier;
use crate::replicated::ring::add;
use crate::shamir::Symbol;

/// What was stored.
enum Part {
    Value(Shared<COMPONENTS>),
    Elements(Elements),
}

impl Part {
    /// Its components.
    fn rows(&mut self) -> Components<&mut [u8]> {
        match self {
            Part::Value(value) => value.shares_mut(),
            Part::Elements(Elements { shares, macs, thirds, .. }) => [shares, macs, thirds],
        }
    }

    /// Which bits of a byte there are.
    fn keep(&self) -> u8 {
        match self {
            Part::Value(value) => 0xff >> (8 - value.bits),
            Part::Elements(_) => 0xff,
        }
    }
}

/// Fresh shares of what is stored, in the same form. The session is one under the new setup.
pub(super) fn refresh(
    session: &mut ReplicatedFour,
    stored: &[Stored<'_>],
    net: &mut dyn Net,
) -> Result<Vec<Zeroizing<Vec<u8>>>> {
    let me = session.me();
    let mut parts = Vec::with_capacity(stored.len());
    for stored in stored {
        parts.push(match stored {
            Stored::Value(bytes) => Part::Value(restore(bytes, me)?),
            Stored::Elements(bytes) => Part::Elements(restore_elements(bytes, me)?),
        });
    }
    let mut masked: Components<Zeroizing<Vec<u8>>> = Default::default();
    for part in &mut parts {
        let keep = part.keep();
        let rows = part.rows();
        let drawn = session.joint.keys.random(rows[0].len());
        for ((row, mut drawn), masked) in rows.into_iter().zip(drawn).zip(&mut masked) {
            drawn.iter_mut().for_each(|byte| *byte &= keep);
            masked.extend(row.iter().zip(drawn.iter()).map(|(x, r)| x ^ r));
            row.copy_from_slice(&drawn);
        }
    }
    let components = masked.each_ref().map(|component| &component[..]);
    let opened = session.open(Symbol::Byte, components, Owner::All, net)?.unwrap_or_default();
    let (zero, mut at) = (session.joint.share_zero(), 0);
    for part in &mut parts {
        let rows = part.rows();
        let len = rows[0].len();
        if let Some(zero) = zero {
            add(rows[zero], &opened[at..at + len]);
        }
        at += len;
    }
    let bytes = |part: &Part| match part {
        Part::Value(value) => save(value, me),
        Part::Elements(elements) => save_elements(elements, me),
    };
    Ok(parts.iter().map(bytes).collect())
}
