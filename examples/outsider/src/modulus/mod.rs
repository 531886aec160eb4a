//! Shamir sharing modulo the receiver's RSA modulus N, and RSA encryption of a key that is shared.
//!
//! | file | what |
//! |---|---|
//! | `ring.rs` | numbers modulo N, in constant time |
//! | `parts.rs` | pseudorandom sharing under keys made for one delivery |
//! | `arithmetic.rs` | products and openings, and why what is opened tells nothing |
//! | `envelope.rs` | PKCS#1 v1.5 on shares |
//!
//! **Adversary**: at most t of n parties, static. With n > 3t every opening is checked on all points: whoever
//! sends a wrong share is noticed, and nothing comes of it (secure with abort, no fairness). With n <= 3t
//! nothing is checked: passive.
//!
//! **Why Z_N will do**: sharing by polynomials needs a ring in which the points and their differences have
//! inverses, not a field (Cramer, Fehr, Ishai and Kushilevitz, EUROCRYPT 2003, section 2). Points are 1 .. n
//! <= 9, so it is enough that N has no factor 2, 3, 5 or 7; [`Ring::new`] refuses others. Nobody has to know
//! the factors of N, and the receiver, who does, takes no part.

mod arithmetic;
mod envelope;
mod parts;
mod ring;

pub use arithmetic::Arithmetic;
pub use envelope::{KEY, KEY_BYTES, encrypt};
pub use parts::{Parts, sets};
pub use ring::Ring;

#[cfg(test)]
mod tests;
