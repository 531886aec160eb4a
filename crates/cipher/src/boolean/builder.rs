//! Writes circuits of XOR, NOT and AND over single bits.

use std::collections::HashMap;
use std::ops::Not;

use super::emit::Emitter;
use crate::Circuit;

/// A one-bit wire of a [`BooleanBuilder`], possibly negated, or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bit(u32);

impl Bit {
    /// Always 0.
    pub const ZERO: Bit = Bit(0);
    /// Always 1.
    pub const ONE: Bit = Bit(1);

    /// The bit that always has this value.
    pub fn constant(value: bool) -> Bit {
        Bit(u32::from(value))
    }

    fn of(node: usize, negated: bool) -> Bit {
        Bit((node as u32) << 1 | u32::from(negated))
    }

    pub(super) fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(super) fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    fn negated_if(self, negate: bool) -> Bit {
        Bit(self.0 ^ u32::from(negate))
    }
}

/// The negation, which costs nothing.
impl Not for Bit {
    type Output = Bit;

    fn not(self) -> Bit {
        self.negated_if(true)
    }
}

/// A number in bits, the least significant first.
pub type Word = Vec<Bit>;

/// Bits as numbers of this width, each written with its most significant bit first.
pub fn words_of(bits: &[Bit], width: usize) -> Vec<Word> {
    bits.chunks(width).map(|word| word.iter().rev().copied().collect()).collect()
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Zero,
    Input,
    /// The sum of bits that are neither constant nor negated, in order.
    Xor(Bit, Bit),
    /// The product of bits that are not constant, in order.
    And(Bit, Bit),
}

pub(super) struct InputPort {
    pub(super) name: String,
    pub(super) nodes: std::ops::Range<usize>,
    pub(super) uniform: bool,
}

/// A Boolean circuit under construction.
///
/// A negation is a mark on a [`Bit`] and ends in the constant of a linear map; gates on constants or on equal
/// bits are decided at once; a gate that was written before is the same gate; and gates that no output needs
/// are left out. At most 2^31 gates.
pub struct BooleanBuilder {
    pub(super) name: String,
    pub(super) nodes: Vec<Node>,
    shared: HashMap<Node, usize>,
    pub(super) inputs: Vec<InputPort>,
    pub(super) outputs: Vec<(String, Vec<Bit>)>,
}

impl BooleanBuilder {
    /// An empty circuit of this name.
    pub fn new(name: &str) -> BooleanBuilder {
        BooleanBuilder {
            name: name.into(),
            nodes: vec![Node::Zero],
            shared: HashMap::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        }
    }

    /// An input of `count` bits: the same in all lanes (a key) if `uniform`, or one value per lane.
    pub fn input(&mut self, name: &str, count: usize, uniform: bool) -> Vec<Bit> {
        let nodes = self.nodes.len()..self.nodes.len() + count;
        let bits = nodes.clone().map(|node| Bit::of(node, false)).collect();
        self.nodes.resize(nodes.end, Node::Input);
        self.inputs.push(InputPort { name: name.into(), nodes, uniform });
        bits
    }

    /// An input of `count` numbers of `width` bits per lane, each written with its most significant bit
    /// first.
    pub fn input_words(&mut self, name: &str, count: usize, width: usize) -> Vec<Word> {
        words_of(&self.input(name, count * width, false), width)
    }

    /// a + b.
    pub fn xor(&mut self, a: Bit, b: Bit) -> Bit {
        let negate = a.is_negated() != b.is_negated();
        let (a, b) = (Bit::of(a.node(), false), Bit::of(b.node(), false));
        let sum = match (a.min(b), a.max(b)) {
            (a, b) if a == b => Bit::ZERO,
            (Bit::ZERO, b) => b,
            (a, b) => self.gate(Node::Xor(a, b)),
        };
        sum.negated_if(negate)
    }

    /// The sum of bits, 0 if there are none.
    pub fn xor_all(&mut self, bits: &[Bit]) -> Bit {
        bits.iter().fold(Bit::ZERO, |sum, bit| self.xor(sum, *bit))
    }

    /// a b.
    pub fn and(&mut self, a: Bit, b: Bit) -> Bit {
        match (a.min(b), a.max(b)) {
            (a, b) if a == b => a,
            (a, b) if a == !b => Bit::ZERO,
            (Bit::ZERO, _) => Bit::ZERO,
            (Bit::ONE, b) => b,
            (a, b) => self.gate(Node::And(a, b)),
        }
    }

    /// Declares an output.
    ///
    /// # Panics
    /// If it has no bits.
    pub fn output(&mut self, name: &str, bits: &[Bit]) {
        assert!(!bits.is_empty(), "an output has a bit");
        self.outputs.push((name.into(), bits.to_vec()));
    }

    /// Declares an output of numbers, each written with its most significant bit first.
    pub fn output_words(&mut self, name: &str, words: &[Word]) {
        let bits: Vec<Bit> = words.iter().flat_map(|word| word.iter().rev().copied()).collect();
        self.output(name, &bits);
    }

    fn gate(&mut self, node: Node) -> Bit {
        let nodes = &mut self.nodes;
        let index = *self.shared.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() - 1
        });
        assert!(index < 1 << 31, "a Boolean circuit has at most 2^31 gates");
        Bit::of(index, false)
    }

    /// How often a gate is used by gates that an output needs, or by outputs; 0 for all others.
    pub(super) fn uses(&self) -> Vec<u32> {
        let mut uses = vec![0; self.nodes.len()];
        self.outputs.iter().flat_map(|(_, bits)| bits).for_each(|bit| uses[bit.node()] += 1);
        for (i, node) in self.nodes.iter().enumerate().rev().filter(|(_, node)| node.is_gate()) {
            let (Node::Xor(a, b) | Node::And(a, b)) = node else { continue };
            if uses[i] > 0 {
                uses[a.node()] += 1;
                uses[b.node()] += 1;
            }
        }
        uses
    }

    /// The circuit: its ports are cells of one bit.
    ///
    /// # Panics
    /// If it has an output that is constant and no input.
    pub fn finish(self) -> Circuit {
        Emitter::new(&self).run(&self)
    }
}

impl Node {
    pub(super) fn is_gate(self) -> bool {
        matches!(self, Node::Xor(..) | Node::And(..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn constants_negations_and_repetitions_cost_nothing() {
        let mut b = BooleanBuilder::new("folded");
        let x = b.input("x", 2, false);
        let product = b.and(!x[0], x[1]);
        assert_eq!(b.and(x[1], !x[0]), product);
        assert_eq!(b.and(x[0], Bit::ONE), x[0]);
        assert_eq!(b.and(x[0], Bit::ZERO), Bit::ZERO);
        assert_eq!(b.and(x[0], !x[0]), Bit::ZERO);
        assert_eq!(b.and(!x[0], !x[0]), !x[0]);
        assert_eq!(b.xor(x[0], Bit::ONE), !x[0]);
        assert_eq!(b.xor(!x[0], x[0]), Bit::ONE);
        let (sum, other) = (b.xor(!x[0], x[1]), b.xor(x[0], !x[1]));
        assert_eq!(sum, other);
        let unused = b.and(sum, product);
        b.output("y", &[product]);
        assert_ne!(unused, product);
        let circuit = b.finish();
        // Two inputs, the operands put together with the negation in the constant, and the lookup.
        assert_eq!(circuit.ops().len(), 4);
        assert!(matches!(circuit.ops()[2], Op::Linear { constant: 1 | 2, bits: 2, .. }));
    }

    #[test]
    fn sums_that_are_used_once_are_one_operation() {
        let mut b = BooleanBuilder::new("sum");
        let x = b.input("x", 5, true);
        let sum = b.xor_all(&x);
        b.output("y", &[!sum, Bit::ONE, x[0]]);
        let circuit = b.finish();
        assert_eq!(circuit.ops().len(), 5 + 3);
        assert!(circuit.outputs()[0].uniform);
    }
}
