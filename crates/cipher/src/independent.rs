//! The bits of a cipher's round keys from which all their other bits follow by sums.
//!
//! Most of a key schedule is linear: of the 1,408 bits of the round keys of AES-128, 448 are the key and the
//! words that went through the S-box, and the others are sums of these. The round keys of DES are bits of the
//! key, each many times. So it is enough to store the shares of these bits. The others are computed from them
//! without a message.
//!
//! The bits of inputs and of lookups are taken as variables. Then every bit of the output is a sum of
//! variables and a constant. An output bit is *kept* unless it is a sum of kept ones (Gauss). So what is kept
//! follows from the circuit, and no cipher says it.

use crate::circuit::{Op, Port};
use crate::key_cells::in_cells_of;
use crate::{Builder, Cipher, Circuit, Matrix, Wire, hmac};

/// Round keys by their independent bits.
pub struct Independent {
    /// `bits`, all bits of the round keys in the order of the bytes that people write, to `kept`. One key a
    /// lane.
    pub keep: Circuit,
    /// `kept` to `round_keys`.
    pub whole: Circuit,
}

/// Of a cipher; `None` if cells of its round keys do not fill bytes, so that they are not written bit by bit.
/// None of HMAC either: every bit of its states comes from lookups of its own.
pub fn round_keys(cipher: &Cipher) -> Option<Independent> {
    if hmac::is_hmac(cipher) {
        return None;
    }
    let schedule = &cipher.key_schedule;
    let port = &schedule.outputs()[0];
    if !8u8.is_multiple_of(port.bits) {
        return None;
    }
    let of_outputs = sums_of_kept(&bits_of(schedule, port));
    let kept: Vec<usize> = (0..of_outputs.len()).filter(|bit| of_outputs[*bit].is_kept(*bit)).collect();

    let mut keep = Builder::new(&format!("{}-keep-bits", cipher.name));
    let all = keep.input("bits", of_outputs.len(), 1);
    keep.output("kept", &kept.iter().map(|bit| all[*bit]).collect::<Vec<_>>());

    let mut whole = Builder::new(&format!("{}-whole-round-keys", cipher.name));
    let cells = whole.uniform_input("kept", kept.len(), 1);
    let of_bit = |bit: &usize| cells[kept.partition_point(|kept| kept < bit)];
    let bits: Vec<Wire> = of_outputs
        .iter()
        .map(|sum| {
            // A bit that is the same under every key is still a cell.
            let terms: Vec<Wire> = sum.of.iter().map(of_bit).collect();
            match terms.is_empty() {
                true => whole.linear(vec![(cells[0], Matrix::of(1, 1, |_| 0))], u8::from(sum.constant)),
                false => whole.xor_constant(&terms, u8::from(sum.constant)),
            }
        })
        .collect();
    let cells = in_cells_of(&mut whole, &bits, 1, port.bits);
    whole.output("round_keys", &cells);
    Some(Independent { keep: keep.finish(), whole: whole.finish() })
}

/// A sum of variables and a constant.
#[derive(Clone, Default)]
struct Affine {
    /// By variable, 64 in a word.
    variables: Vec<u64>,
    constant: bool,
}

impl Affine {
    fn variable(number: usize) -> Affine {
        let mut variables = vec![0; number / 64 + 1];
        variables[number / 64] = 1 << (number % 64);
        Affine { variables, constant: false }
    }

    fn add(&mut self, other: &Affine) {
        if self.variables.len() < other.variables.len() {
            self.variables.resize(other.variables.len(), 0);
        }
        self.variables.iter_mut().zip(&other.variables).for_each(|(sum, x)| *sum ^= x);
        self.constant ^= other.constant;
    }

    fn first_variable(&self) -> Option<usize> {
        let word = self.variables.iter().position(|word| *word != 0)?;
        Some(64 * word + self.variables[word].trailing_zeros() as usize)
    }

    fn has(&self, variable: usize) -> bool {
        self.variables.get(variable / 64).is_some_and(|word| word >> (variable % 64) & 1 == 1)
    }
}

/// The bits of a port, in the order in which people write them, each as a sum of variables.
fn bits_of(circuit: &Circuit, port: &Port) -> Vec<Affine> {
    let mut variables = 0;
    let mut fresh = |bits: u8| -> Vec<Affine> {
        variables += usize::from(bits);
        (variables - usize::from(bits)..variables).map(Affine::variable).collect()
    };
    // By wire, the lowest bit first.
    let mut wires: Vec<Vec<Affine>> = Vec::with_capacity(circuit.ops().len());
    for op in circuit.ops() {
        let bits = match op {
            Op::Input { bits, .. } => fresh(*bits),
            Op::Lookup { table, .. } => fresh(circuit.tables()[table.index()].out_bits()),
            Op::Linear { terms, constant, bits } => {
                let mut sums = vec![Affine::default(); usize::from(*bits)];
                for (out, sum) in sums.iter_mut().enumerate() {
                    sum.constant = constant >> out & 1 == 1;
                    for (wire, matrix) in terms {
                        let inputs = wires[wire.index()].iter().zip(matrix.columns());
                        inputs.filter(|(_, column)| column >> out & 1 == 1).for_each(|(x, _)| sum.add(x));
                    }
                }
                sums
            }
        };
        wires.push(bits);
    }
    port.cells.iter().flat_map(|cell| wires[cell.index()].iter().rev().cloned()).collect()
}

/// An output bit as a sum of kept ones.
struct OfKept {
    of: Vec<usize>,
    constant: bool,
}

impl OfKept {
    fn is_kept(&self, bit: usize) -> bool {
        self.of.as_slice() == [bit]
    }
}

/// Which bits are kept, and the others as sums of these.
fn sums_of_kept(bits: &[Affine]) -> Vec<OfKept> {
    // Each row is a sum of kept bits that has this variable, which no earlier row has as its own.
    struct Row {
        variable: usize,
        sum: Affine,
        of: Affine,
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut sums = Vec::with_capacity(bits.len());
    for (number, bit) in bits.iter().enumerate() {
        let (mut rest, mut of) = (bit.clone(), Affine::default());
        for row in &rows {
            if rest.has(row.variable) {
                rest.add(&row.sum);
                of.add(&row.of);
            }
        }
        sums.push(match rest.first_variable() {
            Some(variable) => {
                of.add(&Affine::variable(number));
                rows.push(Row { variable, sum: rest, of });
                OfKept { of: vec![number], constant: false }
            }
            None => {
                OfKept { of: (0..number).filter(|kept| of.has(*kept)).collect(), constant: rest.constant }
            }
        });
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boolean::expanded;
    use crate::{AnyMap, Cells, catalog, cleartext, compile};

    fn ran(circuit: &Circuit, input: Cells) -> Cells {
        let lanes = if circuit.inputs()[0].uniform { 1 } else { input.lanes() };
        cleartext::run(&compile(circuit, &AnyMap), lanes, &[input]).expect("it fits").remove(0)
    }

    /// For every cipher with a key, as it is and of bits alone.
    #[test]
    fn round_keys_come_back_from_their_kept_bits() {
        let ciphers = catalog::all().into_iter().filter(|cipher| cipher.key_bytes > 0);
        for cipher in ciphers.flat_map(|cipher| [expanded(cipher.clone()), cipher]) {
            let Some(Independent { keep, whole }) = round_keys(&cipher) else {
                assert!(!8u8.is_multiple_of(cipher.key_schedule.outputs()[0].bits), "{}", cipher.name);
                continue;
            };
            for seed in [0u8, 0x55, 0xc3] {
                let key: Vec<u8> =
                    (0..cipher.key_bytes).map(|i| (i as u8).wrapping_mul(157) ^ seed).collect();
                let port = &cipher.key_schedule.inputs()[0];
                let key = Cells::from_blocks(port.cells.len(), port.bits, &key).expect("whole bytes");
                let round_keys = ran(&cipher.key_schedule, key);
                let bytes = round_keys.to_blocks();
                let bits = Cells::from_blocks(keep.inputs()[0].cells.len(), 1, &bytes).expect("whole bytes");
                assert!(ran(&whole, ran(&keep, bits)) == round_keys, "{} {seed:02x}", cipher.name);
            }
        }
    }

    #[test]
    fn what_is_kept_is_the_key_and_what_was_looked_up() {
        let kept = |name: &str| {
            let cipher = catalog::find(name).expect("it is there");
            round_keys(&cipher).expect("bytes").whole.inputs()[0].cells.len()
        };
        // A word of the S-box in each of 10, 8 and 13 steps.
        assert_eq!(
            [kept("aes-128"), kept("aes-192"), kept("aes-256")].map(|bits| bits / 8),
            [16 + 10 * 4, 24 + 8 * 4, 32 + 13 * 4]
        );
        assert_eq!(kept("3des-ede3"), 3 * 56);
    }
}
