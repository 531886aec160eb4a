//! Finite fields of characteristic two, one element at a time: the readable reference beside the vector kernels.

mod gf128;
mod gf256;

pub use gf128::Gf128;
pub use gf256::Gf256;
