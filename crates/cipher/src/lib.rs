//! Block ciphers as data: each is described once, as a circuit of table lookups and GF(2)-linear maps over cells.
//!
//! [`Builder`] builds circuits. [`compile`] sorts them into layers that fit a kind of sharing. [`cleartext`] runs them on plain
//! values. The [`catalog`] lists every cipher by name. A new cipher is a new file and a line there.
//!
//! [`boolean`] builds circuits of single bits with XOR and AND, and turns any other circuit into one. [`bristol`] reads and writes
//! them as files in Bristol Fashion.
//!
//! A cipher by its name, evaluated in the clear (FIPS-197, appendix C.1):
//!
//! ```
//! use polyclave_cipher::{AnyMap, Cells, Direction, catalog, cleartext, compile};
//!
//! let aes = catalog::find("AES-128").expect("it is in the catalog");
//! let circuit = aes.circuit_with_key_schedule(Direction::Encrypt).expect("it encrypts");
//! let cells = |hex: &str| Cells::from_blocks(16, 8, &hex::decode(hex).expect("hex")).expect("16 bytes");
//! let inputs = [cells("00112233445566778899aabbccddeeff"), cells("000102030405060708090a0b0c0d0e0f")];
//! let outputs = cleartext::run(&compile(&circuit, &AnyMap), 1, &inputs).expect("a block and a key");
//! assert_eq!(hex::encode(outputs[0].to_blocks()), "69c4e0d86a7b0430d8cdb78070b4c55a");
//! ```

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
pub mod key_block;
pub mod key_cells;
pub mod key_wrap;
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
    AnyMap, Compiled, CompiledPort, Layer, Linear, Lookup, Maps, Slot, compile, compile_with_views,
};
pub use cost::CircuitCost;
pub use gates::{Form, Gates};
pub use matrix::Matrix;
pub use pulkus_vivek::{CLASSES, Polynomial, Polynomials};
pub use table::{Affine, Inversion, Table};
