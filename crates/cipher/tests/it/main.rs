//! Tests of the circuits as their users see them, in one binary: it is linked once.

mod boolean;
mod bristol;
mod hmac;
mod known_answers;
mod lightweight;
