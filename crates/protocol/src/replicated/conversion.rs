//! From replicated sharing to Shamir sharing among the same three parties, without a message (Cramer, Damgard
//! and Ishai, TCC 2005).
//!
//! Share j of a value is known to two parties, as a part r_A of pseudorandom Shamir sharing is to those of a
//! set A. With the polynomial f_A of degree 1 that is 1 at 0 and 0 at the point of the third party, x = x_0 +
//! x_1 + x_2 is shared by the sum of x_j f_A: a polynomial of degree 1 with x at 0. At P_i's own point it
//! depends on x_i and x_(i+1) alone, since f_A is 0 there for the share that P_i lacks. A linear image M(x)
//! is shared by the sum of M(x_j) f_A.
//!
//! **Secrecy**: a party computes its share from its own shares, and nothing is sent. **Correctness**: if a
//! party may cheat, the value has to be an output of a circuit or an element of this session, and verified.
//! The shares of a value that was read from a disk or unmasked have not been compared yet. What follows is as
//! secure as Shamir sharing among three, which is passive.
//!
//! Values go the other way, and to and from every other protocol, through masks
//! ([`handover`](crate::handover)), also among the same parties.

use polyclave_cipher::Matrix;
use polyclave_field::Gf256;
use polyclave_kernels::affine::{Map, Term, combine};
use zeroize::Zeroizing;

use super::config::structure;
use super::ring::{next, previous};
use super::security::AdversaryModel;
use super::{Pair, Replicated, Shared};
use crate::{Error, PartySet, Result, shamir};

impl<A: AdversaryModel> Replicated<A> {
    /// This party's Shamir shares of an output of a circuit, which has been verified, and of these images of
    /// it; the first is the value itself. Local.
    ///
    /// # Errors
    /// [`Error::Misuse`] if the value waits for a check, or the first view is not the identity.
    pub fn to_shamir(&self, value: &Shared, views: &[Matrix]) -> Result<shamir::Shared> {
        self.model.refuse_unverified(&value.unchecked)?;
        if views.first() != Some(&Matrix::identity(value.bits)) {
            return Err(Error::misuse("the first view of a value is the value itself"));
        }
        let me = self.ring.me;
        let weights: Pair<Gf256> = [previous(me), next(me)]
            .map(|peer| structure().weight([me, peer].into_iter().collect::<PartySet>(), me));
        let len = value.count * value.lanes;
        let mut rows = Zeroizing::new(vec![0; views.len() * len]);
        for (view, row) in views.iter().zip(rows.chunks_mut(len.max(1))) {
            let maps =
                weights.map(|weight| Map::new(view.columns().map(|column| (weight * Gf256(column)).0)));
            let terms: Vec<_> =
                maps.iter().zip(0..).map(|(map, share)| Term { src: value.share(share), map }).collect();
            combine(row, &terms, 0);
        }
        let Shared { bits, count, lanes, .. } = *value;
        Ok(shamir::Shared { bits, count, lanes, views: views.to_vec(), rows })
    }
}
