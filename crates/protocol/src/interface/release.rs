//! Values that have left the protocol, and whether they were verified.

use polyclave_cipher::Cells;

/// A revealed value that says whether it was verified.
pub trait Released {
    /// Whether every party's messages were checked before the value was revealed.
    fn is_verified(&self) -> bool;

    /// The value. If it is not verified, the caller trusts all parties with its correctness.
    fn accept(self) -> Cells;
}

impl Released for Unverified<Cells> {
    fn is_verified(&self) -> bool {
        false
    }

    fn accept(self) -> Cells {
        self.trust_all_parties()
    }
}

/// Output of a passively secure protocol: right if every party followed the protocol, and nothing was
/// checked.
#[derive(Debug)]
pub struct Unverified<T>(T);

impl<T> Unverified<T> {
    /// Wraps a value that nothing has checked.
    pub fn new(value: T) -> Self {
        Unverified(value)
    }

    /// The value, for a caller that has decided to trust all parties with its correctness.
    pub fn trust_all_parties(self) -> T {
        self.0
    }
}

/// Output that was checked before it was revealed: right for any behaviour of the other parties, up to the
/// error of the check.
#[derive(Debug)]
pub struct Checked<T>(T);

impl<T> Checked<T> {
    /// Wraps a value. It must have passed a check.
    pub(crate) fn new(value: T) -> Self {
        Checked(value)
    }

    /// The value.
    pub fn value(self) -> T {
        self.0
    }
}

impl Released for Checked<Cells> {
    fn is_verified(&self) -> bool {
        true
    }

    fn accept(self) -> Cells {
        self.value()
    }
}
