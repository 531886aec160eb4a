//! Random elements, and the check that freshly made material is under the MAC key of stored values.
//!
//! Transfers are not stored (security-notes J). After a start of a node [`Mascot::setup`] makes them anew,
//! with the shares alpha_i of the key that the parties have stored. Honest parties use their stored shares. A
//! cheater could use another share, so that the new material is under alpha + e. Whether a check of stored
//! values together with new ones fails would then tell it bits of the values. So before the material is used
//! for anything else, an old value is tested together with a new one. The old value is the *anchor* A, a
//! random element that was authenticated when the key was made and is kept for this purpose. The new value is
//! a random element r. All parties open y = A + r and check its MAC by the zero test.
//!
//! * *It binds.* The shares of the MAC of r add up to (alpha + e) r. So what is tested is e r plus what the
//!   cheater adds (or sum e_i r_i plus that, if its share differs from peer to peer; r_i is the part of
//!   honest party i). The cheater knows y; but A is uniform, so r is uniform to it. It passes with
//!   probability 2^-k unless e = 0. r must be an element of the whole field. If r were a bit, e r would be
//!   zero half of the time, and a cheater that guessed r = 0 would go on with another key.
//! * *The anchor can be used again*: every r is fresh and uniform, so all y together reveal nothing of A. If
//!   the cheater fails, it learns that e r was not what it had guessed, and the key is given up.
//! * *Elements and bits together.* r is an element of COPEe. That all other material is under the same share
//!   is checked when it is made (`authenticate.rs`, `bits.rs`).
//! * *Nothing of alpha is revealed*, as for every zero test. In new transfers a cheater learns no more of an
//!   honest share than in the first ones. Guesses at its bits retire the key if they fail (`cope.rs`,
//!   [`crate::ot`]).

use polyclave_field::MacField;

use super::Mascot;
use super::rows::with_mask;
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::{Error, Result};

impl<F: MacField> Mascot<F> {
    /// One random element that nobody knows. Thirteen rounds.
    pub fn random_element(&mut self, net: &mut dyn Net) -> Result<Authenticated<F>> {
        self.guarded(|mascot| mascot.authenticate_shares(&with_mask::<F>(&[])?, net))
    }

    /// Tests that what is made here is under the same key as an anchor of an earlier setup, which stays
    /// hidden; after an error that is a cheater's the key is given up. Twenty rounds, and five for products.
    pub fn bind(&mut self, anchor: &Authenticated<F>, net: &mut dyn Net) -> Result<()> {
        if anchor.len() != 1 {
            return Err(Error::misuse("an anchor is one element"));
        }
        let mut sum = self.random_element(net)?;
        sum.add(anchor);
        self.guarded(|mascot| mascot.open_and_check(sum, net))
    }
}
