//! What garbled circuits share, among two parties (in the laboratory) and among three
//! ([`crate::replicated`]): labels of wires by slot, free sums of them, and which lookups are ANDs.
//!
//! A wire has two labels of 128 bits, `W` for zero and `W + Delta` for one. An evaluator has one of them and
//! does not know which. Sums are sums of labels (free XOR: Kolesnikov and Schneider 2008). Circuits are
//! Boolean ones: tables of two bits, ports of one ([`polyclave_cipher::boolean`]). ANDs are in
//! [`polyclave_kernels::label_hash`].
//!
//! | file | what |
//! |---|---|
//! | `kind.rs` | which lookups are ANDs, and which are sums |
//! | `registers.rs` | labels by slot, and sums of them |

mod kind;
mod registers;

pub use kind::Kind;
pub use registers::{LABEL, Registers, Rows, lanes_near, refuse_unless_boolean};
