//! Block ciphers as data: each is described once, as a circuit of table lookups and GF(2)-linear maps over cells.
//!
//! [`Builder`] writes circuits, [`compile`] sorts them into layers for a way of sharing, [`cleartext`] runs them on
//! plain values, and the [`catalog`] knows every cipher by name. A new cipher is a new file and a line there.
//!
//! [`boolean`] writes circuits of single bits with XOR and AND (and any other circuit as such), [`bristol`] reads and
//! writes them as files in Bristol Fashion.

pub mod aes;
pub mod boolean;
pub mod bristol;

mod builder;
pub mod catalog;
mod cells;
mod circuit;
pub mod cleartext;
mod compile;
mod cost;
pub mod des;
mod digest;
mod matrix;
pub mod modes;
mod pulkus_vivek;
mod table;
pub mod univariate;

pub use builder::Builder;
pub use catalog::{Cipher, Direction};
pub use cells::{Cells, CellsError};
pub use circuit::{Circuit, Op, Port, TableId, Wire};
pub use compile::{
    AnyMap, Compiled, CompiledPort, Layer, Linear, Lookup, Maps, Slot, compile, compile_with_views,
};
pub use cost::CircuitCost;
pub use matrix::Matrix;
pub use pulkus_vivek::{CLASSES, Polynomial, Polynomials};
pub use table::{Affine, Inversion, Table};
