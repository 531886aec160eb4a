//! Inversion in F = GF(2^8) by a tower of fields, on authenticated shares: five rounds and 26 bits each way
//! for every lookup (docs/protocols/tower.md).
//!
//! N = x^17 is the norm of x over GF(16), M = N^5 that of N over GF(4), and V = N^4 M^2 = N^14. So x^254 =
//! x^16 V, also for x = 0. All four values are products of two factors, and the parties have opened both
//! factors under masks before: x^16 and N^4 are squares of squares, so they are opened together with x and N.
//!
//! | round | opened | field | bits |
//! |---|---|---|---|
//! | 1 | h = x + Lx | GF(2^8) | 8 |
//! | 2 | g = x^16 x + Ln | GF(16) | 4 |
//! | 3 | m = N^4 N + Lm | GF(4) | 2 |
//! | 4 | v = N^4 M^2 + Lv | GF(16) | 4 |
//! | 5 | w = x^16 V + mu | GF(2^8) | 8 |
//!
//! With a factor A opened as a = A + La and a factor B as b = B + Lb, the product is A B = a b + a Lb + b
//! La + La Lb. A record ([`super::Inverses`]) has La, Lb and La Lb, so a product of two opened factors is
//! local. mu is a byte of authenticated bits: every linear image of x^254 = w + mu follows from w and these
//! bits.
//!
//! **Adversary**: as in all of `spdz`, active, all parties but one. Every opening has a mask of its own that
//! is uniform in the field of what it masks, so it reveals nothing. A wrong opening is another value than the
//! one whose MAC all parties hold shares of, and the MAC check finds it before anything is released
//! (`check.rs`).

mod frobenius;
mod lookup;
mod workspace;

pub(in crate::spdz) use frobenius::frobenius;
pub(in crate::spdz) use workspace::Workspace;

/// Rounds of a layer of lookups, and openings of a lookup.
pub(in crate::spdz) const ROUNDS: usize = 5;
