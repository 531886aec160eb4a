//! Block ciphers as data: each is described once, as a circuit of table lookups and GF(2)-linear maps over cells.
//!
//! [`Builder`] builds circuits. [`compile`] sorts them into layers that fit a kind of sharing. [`cleartext`] runs them on plain
//! values. The [`catalog`] lists every cipher by name. A new cipher is a new file and a line there.
//!
//! [`boolean`] builds circuits of single bits with XOR and AND, and turns any other circuit into one. [`bristol`] reads and writes
//! them as files in Bristol Fashion.

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
pub mod craft;
pub mod des;
mod digest;
mod gates;
pub mod gift;
pub mod mantis;
mod matrix;
pub mod midori;
pub mod modes;
mod permutation;
pub mod piccolo;
pub mod present;
mod pulkus_vivek;
pub mod skinny;
mod table;
pub mod twine;
pub mod univariate;
pub mod wage;

pub use builder::Builder;
pub use catalog::{Cipher, Direction};
pub use cells::{Cells, CellsError};
pub use circuit::{Circuit, Op, Port, TableId, Wire};
pub use compile::{
    AnyMap, Compiled, CompiledPort, Layer, Linear, Lookup, Maps, Slot, compile, compile_with_views,
};
pub use cost::CircuitCost;
pub use gates::{Form, Gates};
pub use matrix::Matrix;
pub use pulkus_vivek::{CLASSES, Polynomial, Polynomials};
pub use table::{Affine, Inversion, Table};
