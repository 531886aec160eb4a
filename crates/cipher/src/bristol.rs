//! Boolean circuits as files in Bristol Fashion, the format in which circuits for multiparty computation are
//! exchanged ([description and circuits](https://nigelsmart.github.io/MPC-Circuits/)).
//!
//! ```text
//! 3 7                  gates, wires
//! 2 2 2                number of inputs, and the bits of each
//! 1 2                  number of outputs, and the bits of each
//!
//! 2 1 0 2 4 XOR        operands, results, their wires, the gate
//! 2 1 1 3 5 AND
//! 1 1 5 6 INV
//! ```
//!
//! Wires are numbered from 0; the first are the bits of the inputs, one after another, the last those of the
//! outputs. Gates are `XOR`, `AND`, `INV`, `EQW` (a copy), `EQ` (the operand is the constant 0 or 1), and
//! `MAND` (k products: k left operands, k right operands, k results). [`read`] also takes the old Bristol
//! format, whose second line has the bits of two inputs (the second perhaps 0) and one output, and which has
//! no third.
//!
//! # BitOrder of bits
//!
//! Ports hold bytes with the most significant bit of the first byte in the first cell ([`crate::Cells`]).
//! Files hold numbers with the least significant bit in the first wire ([`BitOrder::Numbers`]): bit i of a
//! value of n bits is wire i of that value and cell n - 1 - i of its port. So the port of an adder takes
//! big-endian bytes, and the AES circuits that are published in Bristol Fashion (first the key, then the
//! message), which number a block from its last bit, take the bytes of the standard. Those of the old format
//! number it from its first bit (and take the message first): they are read with [`BitOrder::Cells`], which
//! takes wire i as cell i.

#[cfg(test)]
mod fuzz;
mod read;
mod write;

pub use read::{MAX_GATES, MAX_INPUT_BITS, read};
pub use write::{WriteError, write};

/// How the wires of a value in a file correspond to the cells of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitOrder {
    /// The value is a number, its least significant bit first in the file and last in the port.
    #[default]
    Numbers,
    /// Wire i is cell i.
    Cells,
}

impl BitOrder {
    /// From wires to cells, or back.
    fn arranged<T>(self, mut bits: Vec<T>) -> Vec<T> {
        if self == BitOrder::Numbers {
            bits.reverse();
        }
        bits
    }
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct BristolError {
    /// Counted from 1.
    pub line: usize,
    /// What to mend.
    pub problem: Problem,
}

/// What can be wrong with a file in Bristol Fashion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file ends before its header or its gates do.
    #[error("the file ends after this line, but {0} should follow; it may be cut off")]
    Ends(&'static str),
    /// Not a number where one belongs.
    #[error("`{0}` stands where a number from 0 to 4294967295 belongs")]
    Number(String),
    /// A line of the header of another length.
    #[error("this line of the header has {found} numbers instead of {expected}")]
    Header {
        /// Numbers that belong there.
        expected: usize,
        /// Numbers that are there.
        found: usize,
    },
    /// An input or output of no bits, or none at all.
    #[error(
        "every circuit has an input and an output, and every one of them has bits; write their sizes here"
    )]
    Empty,
    /// More than this program reads.
    #[error("{what} are {found}; at most {limit} are read")]
    TooMany {
        /// What the number counts.
        what: &'static str,
        /// Announced.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// The number of wires cannot be right.
    #[error("{announced} wires are announced, but inputs and gates make {made}; correct the first line")]
    Wires {
        /// In the first line.
        announced: usize,
        /// By inputs and gates.
        made: usize,
    },
    /// The outputs have more bits than there are wires.
    #[error("the outputs have more bits than the circuit has wires ({0}); correct one of the two")]
    Outputs(usize),
    /// Lines after the last gate.
    #[error(
        "a line after the last of {0} gates; correct the number in the first line, or remove what follows"
    )]
    Trailing(usize),
    /// A gate that is none.
    #[error("`{0}` is no gate; XOR, AND, INV, EQ, EQW and MAND are, at the end of a line")]
    Gate(String),
    /// A gate with other operands or results.
    #[error(
        "{0} takes other numbers of operands or results, or the line has fewer or more wires than it announces"
    )]
    Arity(&'static str),
    /// The operand of EQ.
    #[error("EQ takes the constant 0 or 1, not {0}")]
    Constant(usize),
    /// A wire that the first line does not know.
    #[error("wire {wire} does not exist: the first line announces {wires}, numbered from 0")]
    Unknown {
        /// Its number.
        wire: usize,
        /// How many there are.
        wires: usize,
    },
    /// A wire that no gate before has set.
    #[error("wire {0} is used before it is set; put the gates in order of dependency")]
    Unset(usize),
    /// A wire with two values.
    #[error("wire {0} is set a second time; give every gate a wire of its own")]
    SetTwice(usize),
    /// The caller names an input that the file does not have.
    #[error("input {input} should be the same in all lanes, but the file has only {inputs}, numbered from 0")]
    NoSuchInput {
        /// Its number.
        input: usize,
        /// How many there are.
        inputs: usize,
    },
}
