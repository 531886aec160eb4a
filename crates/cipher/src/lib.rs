#![doc = include_str!("../README.md")]

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
pub mod ff1;
mod gates;
pub mod gift;
pub mod hmac;
pub mod independent;
pub mod key_block;
pub mod key_cells;
pub mod key_wrap;
pub mod keyed;
pub mod mantis;
mod matrix;
pub mod midori;
pub mod modes;
pub mod parity;
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
    AnyMap, Compiled, CompiledPort, Inserted, Layer, Linear, Lookup, Maps, Part, Parts, Slot, compile,
    compile_with_views,
};
pub use cost::CircuitCost;
pub use gates::{Form, Gates};
pub use matrix::Matrix;
pub use pulkus_vivek::{CLASSES, Polynomial, Polynomials};
pub use table::{Affine, Inversion, Table};
