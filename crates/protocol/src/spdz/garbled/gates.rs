//! ANDs: the half gates of Katz, Ranellucci, Rosulek and Wang 2018, section 3 (ePrint 2018/578), with the
//! authenticated bits of Wang, Ranellucci and Katz 2017 in the form of half gates.
//!
//! Let a gate have the input wires a and b and the output wire c. Wire w has the mask lambda_w = r_w + s_w,
//! with r_w at the garbler and s_w at the evaluator; its masked value V_w; and its labels L_w for V_w = 0 and
//! L_w + Delta for V_w = 1, where Delta is the garbler's. K\[s\] and T\[s\] = K\[s\] + s Delta are key and
//! tag of s (128 bits), M\[r\] = k\[r\] + r alpha tag and key of r (64 bits) under the evaluator's alpha.
//! Let p_c = lambda_a lambda_b + lambda_c, which is authenticated, too (`ahead.rs`), p_c = r'_c + s'_c. The
//! garbler sends
//!
//! * G_1 = H(L_a) + H(L_a + Delta) + K\[s_b\] + r_b Delta
//! * G_2 = H'(L_b) + H'(L_b + Delta) + K\[s_a\] + r_a Delta + L_a
//! * C_1 = h(L_a) + h(L_a + Delta) + M\[r_b\]
//! * C_2 = h'(L_b) + h'(L_b + Delta) + M\[r_a\]
//! * C_3 = h(L_a) + h'(L_b) + M\[r'_c\]
//!
//! and sets L_c = H(L_a) + H'(L_b) + K\[s'_c\] + r'_c Delta. H, H', h, h' are hashes under keys of their own,
//! with the number of the gate as the tweak. The evaluator, which has one label of a and of b and so the
//! hashes of these, adds up h + h' + V_a C_1 + V_b C_2 + C_3. This is the tag of
//!
//! R = V_a r_b + V_b r_a + r'_c,
//!
//! since tags are linear. It knows the key of this tag, so it has R or finds an error, and with it V_c = V_a
//! V_b + R + (V_a s_b + V_b s_a + s'_c). For V_a = v_a + lambda_a and V_b alike this is v_a v_b + lambda_c.
//! The label of c is H + H' + T\[s'_c\] + V_a (G_1 + T\[s_b\]) + V_b (G_2 + T\[s_a\] + its label of a): all
//! terms but L_c and Delta V_c cancel.
//!
//! **Why masked values are right** (garbler cheats): the evaluator takes R from tags only, and the garbler
//! knows no tag of another bit than its own but by a guess at alpha, 2^-64. So V_c follows from V_a and V_b
//! as it should, gate by gate, whatever labels are. A wrong label leads to wrong hashes, and so to an error
//! later, or to nothing.
//!
//! **No selective failure**: whether an error is found depends on what the garbler changed and on V_a and
//! V_b. Masked values are uniform to the garbler, which lacks all s_w, and independent of the values.
//!
//! **Why the evaluator learns nothing** (evaluator cheats): it has one label of each wire. Every row has a
//! hash of a label that it lacks as a summand. So of a gate it learns R. It has the s of the gate, V_a, V_b
//! and what was opened ahead (`ahead.rs`), and given these, R and V_c determine each other. So a gate tells
//! V_c and nothing else. V_c = v_c + lambda_c is uniform, because r_c is a random bit of this wire, and what
//! else the evaluator sees of it is masked by other random bits. If c is an output that is released, lambda_c
//! becomes known then, and with it v_c, which is the output.
//!
//! # Differences from the papers
//! * WRK17 sends four rows for each gate, of which the evaluator opens one, with the tag of one bit. R is
//!   linear in V_a and V_b, so three rows in the form of half gates are enough: 24 bytes instead of 32.
//! * KRRW18 sends no tags. Its evaluator sends all masked values to the garbler, which answers with a hash of
//!   the tags of all R, and sends colours for V_c. Here the evaluator verifies alone, with one delay there and
//!   back less, for 24 bytes a gate, ahead. Since masked values come from tags, no label has a colour, and
//!   Delta needs no bit that is 1.

use polyclave_kernels::aes_hash::AesHash;
use polyclave_kernels::secret::{is_zero, mask};
use zeroize::{Zeroize, Zeroizing};

use super::plan::Plan;
use super::wires::{Active, Mask, Wires};

/// Bytes of an AND.
pub(super) const GATE: usize = 2 * LABEL + 3 * TAG;
const LABEL: usize = size_of::<u128>();
const TAG: usize = size_of::<u64>();

/// The masks of one AND, without those of negations: of a, of b, and p_c.
pub(super) type GateMasks = [Mask; 3];

/// What the evaluator keeps of an AND: what was sent, with its tags and keys added.
#[derive(Clone, Copy, Default, Zeroize)]
pub(super) struct Gate {
    /// G_1 + T\[s_b\], G_2 + T\[s_a\], T\[s'_c\].
    pub(super) labels: [u128; 3],
    /// C_1 + k\[r_b\], C_2 + k\[r_a\], C_3 + k\[r'_c\].
    pub(super) tags: [u64; 3],
    /// s_b, s_a, s'_c.
    pub(super) bits: [u8; 3],
}

#[cfg(test)]
impl Gate {
    /// All that is random in it.
    pub(super) fn words(&self) -> [u128; 6] {
        let [first, second, third] = self.tags.map(u128::from);
        let [one, two, three] = self.labels;
        [one, two, three, first, second, third]
    }
}

/// The four hashes of a circuit.
struct Hashes {
    labels: [AesHash; 2],
    tags: [AesHash; 2],
}

impl Hashes {
    /// `name` is that of the circuit, and no other has it.
    fn new(name: &[u8; 32]) -> Hashes {
        let hash = |which: u8| {
            let mut hasher = blake3::Hasher::new_derive_key("polyclave 2026 garbled-authenticated: hashes");
            let mut key = [0; 16];
            hasher.update(&[which]).update(name).finalize_xof().fill(&mut key);
            AesHash::new(&key)
        };
        Hashes { labels: [hash(0), hash(1)], tags: [hash(2), hash(3)] }
    }

    /// Hashes of operands: for labels, and for tags.
    fn of(&self, first: u64, operands: &[&[u128]; 2]) -> [[Zeroizing<Vec<u128>>; 2]; 2] {
        [&self.labels, &self.tags].map(|hashes| {
            std::array::from_fn(|side| {
                let mut blocks = Zeroizing::new(operands[side].to_vec());
                hashes[side].hash(first, &mut blocks);
                blocks
            })
        })
    }
}

/// Garbles all ANDs. `labels` has those of inputs before, and those of outputs behind.
pub(super) fn garble(
    plan: &Plan,
    (name, delta): (&[u8; 32], u128),
    masks: &[GateMasks],
    labels: &mut Wires<u128>,
) -> Vec<u8> {
    let hashes = Hashes::new(name);
    let mut table = Vec::with_capacity(masks.len() * GATE);
    let mut first = 0;
    for step in &plan.steps {
        labels.add_up(&step.sums, delta);
        let [a, b] = labels.operands(step, delta);
        let ones = [&a, &b].map(|zeros| Zeroizing::new(zeros.iter().map(|x| x ^ delta).collect::<Vec<_>>()));
        let [of_zeros, of_zero_tags] = hashes.of(first as u64, &[&a, &b]);
        let [of_ones, of_one_tags] = hashes.of(first as u64, &[&ones[0], &ones[1]]);
        let mut results = Zeroizing::new(Vec::with_capacity(a.len()));
        for (i, [of_a, of_b, of_c]) in masks[first..][..a.len()].iter().enumerate() {
            // K + r Delta.
            let offset = |of: &Mask| of.block ^ (mask(u128::from(of.bit)) & delta);
            let [rows, tags] = [(&of_zeros, &of_ones), (&of_zero_tags, &of_one_tags)].map(|(zeros, ones)| {
                [zeros[0][i] ^ ones[0][i], zeros[1][i] ^ ones[1][i], zeros[0][i] ^ zeros[1][i]]
            });
            table.extend((rows[0] ^ offset(of_b)).to_le_bytes());
            table.extend((rows[1] ^ offset(of_a) ^ a[i]).to_le_bytes());
            for (pad, of) in tags.iter().zip([of_b, of_a, of_c]) {
                table.extend((*pad as u64 ^ of.word).to_le_bytes());
            }
            results.push(rows[2] ^ offset(of_c));
        }
        labels.set_results(step, delta, &results);
        first += a.len();
    }
    table
}

/// What the evaluator keeps of a message.
pub(super) fn keep(table: &[u8], masks: &[GateMasks]) -> Zeroizing<Vec<Gate>> {
    let gate = |(sent, [of_a, of_b, of_c]): (&[u8; GATE], &GateMasks)| {
        let (labels, tags) = sent.split_at(2 * LABEL);
        let label = |at: usize| u128::from_le_bytes(labels.as_chunks().0[at]);
        let tag = |at: usize| u64::from_le_bytes(tags.as_chunks().0[at]);
        Gate {
            labels: [label(0) ^ of_b.block, label(1) ^ of_a.block, of_c.block],
            tags: [tag(0) ^ of_b.word, tag(1) ^ of_a.word, tag(2) ^ of_c.word],
            bits: [of_b.bit, of_a.bit, of_c.bit],
        }
    };
    Zeroizing::new(table.as_chunks().0.iter().zip(masks).map(gate).collect())
}

/// Evaluates all ANDs, and says whether all tags were right. `wires` has inputs before, and outputs behind.
/// `alpha` is the evaluator's key.
pub(super) fn evaluate(
    plan: &Plan,
    (name, alpha): (&[u8; 32], u64),
    gates: &[Gate],
    wires: &mut Wires<Active>,
) -> bool {
    let hashes = Hashes::new(name);
    let one = Active { label: 0, bit: 1 };
    let mut first = 0;
    let mut wrong = 0;
    for step in &plan.steps {
        wires.add_up(&step.sums, one);
        let [a, b] = wires.operands(step, one);
        let labels = [&a, &b].map(|row| Zeroizing::new(row.iter().map(|of| of.label).collect::<Vec<_>>()));
        let [of_labels, of_tags] = hashes.of(first as u64, &[&labels[0], &labels[1]]);
        let mut results = Zeroizing::new(Vec::with_capacity(a.len()));
        for (i, gate) in gates[first..][..a.len()].iter().enumerate() {
            let [bit_a, bit_b] = [a[i].bit, b[i].bit];
            let [tag_a, tag_b] = [bit_a, bit_b].map(|bit| mask(u64::from(bit)));
            let tag = of_tags[0][i] as u64
                ^ of_tags[1][i] as u64
                ^ (tag_a & gate.tags[0])
                ^ (tag_b & gate.tags[1])
                ^ gate.tags[2];
            // The keys are added, so what is left is 0 for R = 0 and alpha for R = 1.
            let [is_one, is_other] = [tag, tag ^ alpha].map(|rest| (rest | rest.wrapping_neg()) >> 63);
            wrong |= is_one & is_other;
            let [of_b, of_a, of_c] = gate.bits;
            let bit = (bit_a & bit_b) ^ is_one as u8 ^ (bit_a & of_b) ^ (bit_b & of_a) ^ of_c;
            let [label_a, label_b] = [bit_a, bit_b].map(|bit| mask(u128::from(bit)));
            let label = of_labels[0][i]
                ^ of_labels[1][i]
                ^ gate.labels[2]
                ^ (label_a & gate.labels[0])
                ^ (label_b & (gate.labels[1] ^ a[i].label));
            results.push(Active { label, bit });
        }
        wires.set_results(step, one, &results);
        first += a.len();
    }
    is_zero(&[wrong])
}
