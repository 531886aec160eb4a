//! What was evaluated becomes shared: the evaluator tells the garbler the masked values of all outputs, with
//! a hash of their labels. One message, and the only one of the evaluator online.
//!
//! The mask lambda of an output is an authenticated bit, so the output V + lambda is one after V is public.
//! Nothing is revealed: each party has its share and its share of the MAC, as under `spdz-tower`.
//!
//! * *The evaluator cheats*: to tell another V it needs the hash of another label, which is Delta away. It
//!   has one label of each wire, so that is a guess at Delta, and the key is given up after a wrong one. (In
//!   the papers the evaluator learns the masks of outputs, and nothing goes back.)
//! * *The garbler cheats*: it is told nothing before all tags of gates were right, so V is right
//!   (`gates.rs`).
//! * *What V tells the garbler*: nothing, because it lacks the evaluator's shares of masks.
//! * *What the hash tells the garbler*: if it is honest, the hash follows from V and what it knows. A
//!   cheating one can make labels depend on the evaluator's shares of masks: with another Delta or wrong
//!   rows, T\[s\] does not cancel. But a label of a gate depends on s through T\[s'_c\] + V_a T\[s_b\] +
//!   V_b T\[s_a\] only. This is the tag of S = s'_c + V_a s_b + V_b s_a = V_c + V_a V_b + R, where R is a
//!   function of V_a, V_b and of the garbler's bits. For a public input v the label depends on s = V + v + r.
//!   So all that the garbler can see, whether there is an error or not, is a function of masked values and
//!   of what it knows. Masked values are uniform to it, and independent of all values, also of outputs that
//!   are released later.

use polyclave_cipher::Compiled;
use polyclave_field::Gf2_64;
use polyclave_kernels::secret::{ct_eq, mark_public, mask};
use zeroize::Zeroizing;

use super::ahead::outputs_of;
use super::gates;
use super::input::{pack, unpack};
use super::item::{Item, Part};
use super::plan::Plan;
use super::wires::{Active, Wires};
use super::{GarbledAuthenticated, LABEL};
use crate::authenticated::Authenticated;
use crate::interface::net::Net;
use crate::spdz::Shared;
use crate::{Error, Result};

/// Bytes of a hash of labels.
pub(super) const DIGEST: usize = 32;

const WRONG_GATES: Error = Error::CheckFailed { what: "the tags of the gates of a garbled circuit" };
const WRONG_LABELS: Error = Error::CheckFailed { what: "the labels of the outputs of a garbled circuit" };

/// What an evaluation ends with.
pub(super) struct Settled {
    /// By the names of their ports.
    pub(super) outputs: Vec<(String, Shared<Gf2_64>)>,
    /// Which both parties know.
    pub(super) masked: Zeroizing<Vec<u8>>,
}

impl GarbledAuthenticated {
    /// Evaluates, and shares all outputs, of which it gives the masked bits, too. Uses the item up.
    pub(super) fn share_outputs(
        &mut self,
        compiled: &Compiled,
        plan: &Plan,
        item: Item,
        wires: Wires<Active>,
        net: &mut dyn Net,
    ) -> Result<Settled> {
        let Item { name, lanes, outputs: masks, part, .. } = item;
        let ands = plan.gates(lanes) as u64;
        let counts = self.counts();
        counts.rounds += 1;
        counts.multiplications += ands;
        let masked = match part {
            Part::Evaluator { gates } => {
                self.counts().hash_calls += 4 * ands;
                self.tell(plan, (&name, lanes), &gates, wires, net)?
            }
            Part::Garbler { delta, outputs, .. } => self.verify((&name, *delta), &outputs, net)?,
        };
        Ok(Settled { outputs: self.unmasked((compiled, plan), lanes, masks, &masked), masked })
    }

    /// Outputs of which both parties know the masked values. `shares` are those of their masks.
    pub(super) fn unmasked(
        &self,
        (compiled, plan): (&Compiled, &Plan),
        lanes: usize,
        mut shares: Authenticated<Gf2_64>,
        masked: &[u8],
    ) -> Vec<(String, Shared<Gf2_64>)> {
        let public: Vec<u64> = masked.iter().map(|bit| u64::from(*bit)).collect();
        shares.add_public(&public, &self.under.arithmetic.key);
        let unchecked = self.under.arithmetic.unchecked();
        let mut start = 0;
        let values = compiled.outputs().iter().zip(&plan.outputs).map(|(port, place)| {
            let bits = shares.part(start..start + place.bits(lanes));
            start += bits.len();
            let mut value = Shared::of_bits(port, place.lanes(lanes), &bits);
            value.unchecked = unchecked.clone();
            (port.name.clone(), value)
        });
        values.collect()
    }

    fn tell(
        &mut self,
        plan: &Plan,
        (name, lanes): (&[u8; 32], usize),
        gates: &[gates::Gate],
        mut wires: Wires<Active>,
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let key = &self.under.arithmetic.key;
        let is_right = gates::evaluate(plan, (name, key.reveal_own_share()), gates, &mut wires);
        key.judge(|| (!is_right).then_some(WRONG_GATES))?;
        let outputs = outputs_of(plan, lanes, &wires);
        let told: Zeroizing<Vec<u8>> = Zeroizing::new(outputs.iter().map(|of| of.bit).collect());
        let digest = hash_of_labels(name, outputs.iter().map(|of| of.label));
        net.send(self.peer, &[&pack(&told)[..], &digest].concat())?;
        // They are sent.
        mark_public(&told);
        Ok(told)
    }

    fn verify(
        &mut self,
        (name, delta): (&[u8; 32], u128),
        zeros: &[u128],
        net: &mut dyn Net,
    ) -> Result<Zeroizing<Vec<u8>>> {
        let mut message = vec![0; zeros.len().div_ceil(8) + DIGEST];
        net.recv(self.peer, &mut message)?;
        let (told, shown) = message.split_at(zeros.len().div_ceil(8));
        let told = unpack(told, zeros.len());
        let labels = zeros.iter().zip(told.iter()).map(|(zero, bit)| zero ^ (mask(u128::from(*bit)) & delta));
        let expected = hash_of_labels(name, labels);
        let key = &self.under.arithmetic.key;
        key.judge(|| (!ct_eq(&expected[..], shown)).then_some(WRONG_LABELS))?;
        Ok(told)
    }
}

fn hash_of_labels(name: &[u8; 32], labels: impl Iterator<Item = u128>) -> [u8; DIGEST] {
    let mut hasher =
        blake3::Hasher::new_derive_key("polyclave 2026 garbled-authenticated: labels of outputs");
    hasher.update(name);
    labels.for_each(|label| {
        let bytes: Zeroizing<[u8; LABEL]> = Zeroizing::new(label.to_le_bytes());
        hasher.update(&*bytes);
    });
    *hasher.finalize().as_bytes()
}
