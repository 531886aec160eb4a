//! Byte-vector kernels: GF(2)-affine maps, products in GF(2^8), an AES counter stream, block transposes.
//!
//! This crate holds all the SIMD and all the unsafe code of the workspace. Every kernel has a portable
//! form on 64-bit words and, on x86-64, forms for wider registers chosen once at run time; all forms of
//! a kernel give the same bytes. The field is GF(2^8) with the polynomial of AES (FIPS 197, section 4),
//! x^8 + x^4 + x^3 + x + 1.
//!
//! The bytes are shares of secrets, so no branch and no memory address depends on them; register
//! shuffles do. Lengths, strides, linear maps and nonces are public.

pub mod aes_prg;
pub mod affine;
pub mod gf256;
mod isa;
pub mod transpose;

pub use isa::instruction_set;
