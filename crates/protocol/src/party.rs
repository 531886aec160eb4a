//! The identity of a server within a session.

/// One server of a session, counted from 0. Shown to people from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Party(pub u8);

impl Party {
    /// Position in arrays over all parties.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The parties of a session of `n`.
    pub fn all(n: usize) -> impl Iterator<Item = Party> {
        (0..n as u8).map(Party)
    }

    /// All parties of a session of `n` but this one.
    pub fn peers(self, n: usize) -> impl Iterator<Item = Party> {
        Party::all(n).filter(move |p| *p != self)
    }
}

impl std::fmt::Display for Party {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "party {}", self.0 + 1)
    }
}
