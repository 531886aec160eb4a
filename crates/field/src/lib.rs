//! Finite fields of characteristic two, one element at a time: the readable reference for the vector kernels. The fields of message
//! authentication codes are here too; rows of their elements go through the kernels.

mod binary;
mod gf128;
mod gf256;
mod gf2_128;
mod gf2_16;
mod gf2_40;
mod gf2_42;
mod gf2_64;
mod mac_field;
pub mod tower;

pub use gf2_16::Gf2_16;
pub use gf2_40::Gf2_40;
pub use gf2_42::Gf2_42;
pub use gf2_64::Gf2_64;
pub use gf2_128::Gf2_128;
pub use gf128::Gf128;
pub use gf256::Gf256;
pub use mac_field::{MacField, Word};
