//! Vector kernels: GF(2)-affine maps, products in GF(2^8) and GF(2^128), an AES counter stream and hash,
//! transposes, garbled gates, and rows of words that are elements of larger fields.
//!
//! This crate holds all the SIMD and all the unsafe code of the workspace. Every kernel has a portable
//! form on 64-bit words and, on x86-64, forms for wider registers chosen once at run time; all forms of
//! a kernel give the same bytes. The fields are GF(2^8) with the polynomial of AES (FIPS 197, section 4),
//! x^8 + x^4 + x^3 + x + 1, and GF(2^128) as GCM writes it (SP 800-38D, section 6.3).
//! Rows of words take their field as a type, [`Modulus`].
//!
//! The bytes are shares of secrets, so no branch and no memory address depends on them; register shuffles do.
//! Masks of their bits are made in [`secret`]. Lengths, strides, linear maps and nonces are public.

pub mod aes_hash;
pub mod aes_prg;
pub mod aes_sum;
pub mod affine;
pub mod bit_transpose;
mod carryless;
pub mod cells;
pub mod column_words;
pub mod fold;
pub mod gf128;
pub mod gf256;
mod isa;
pub mod label_hash;
pub mod label_sums;
pub mod leaf_streams;
pub mod memory;
pub mod planes;
pub mod process;
pub mod secret;
pub mod self_test;
pub mod transpose;
pub mod unit_sums;
mod words;
pub mod words128;
pub mod words64;

pub use isa::{instruction_set, use_portable_forms};
pub use words::Modulus;
