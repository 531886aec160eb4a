//! The identity of a server within a session, and sets of servers.

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

/// Some of the servers of a session: those that take part in something.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct PartySet(u16);

impl PartySet {
    /// The most parties that a set can name.
    pub const MAX: usize = 16;

    /// The first `n` parties.
    pub fn all(n: usize) -> PartySet {
        Party::all(n.min(Self::MAX)).collect()
    }

    /// From a bit mask: bit i for `Party(i)`.
    pub fn from_bits(bits: u16) -> PartySet {
        PartySet(bits)
    }

    /// As a bit mask.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Whether a party is in it.
    pub fn contains(self, party: Party) -> bool {
        party.index() < Self::MAX && self.0 >> party.0 & 1 == 1
    }

    /// Those that are in either.
    pub fn and(self, others: PartySet) -> PartySet {
        PartySet(self.0 | others.0)
    }

    /// Those that are not in the other.
    pub fn without(self, others: PartySet) -> PartySet {
        PartySet(self.0 & !others.0)
    }

    /// Number of members.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether nobody is in it.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The members, in order.
    pub fn iter(self) -> impl Iterator<Item = Party> + Clone {
        (0..Self::MAX as u8).map(Party).filter(move |p| self.contains(*p))
    }
}

impl FromIterator<Party> for PartySet {
    /// Parties beyond [`PartySet::MAX`] are left out.
    fn from_iter<I: IntoIterator<Item = Party>>(parties: I) -> PartySet {
        let small = parties.into_iter().filter(|p| p.index() < Self::MAX);
        PartySet(small.fold(0, |bits, p| bits | 1 << p.0))
    }
}

impl std::fmt::Display for PartySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let numbers: Vec<String> = self.iter().map(|p| (p.0 + 1).to_string()).collect();
        write!(f, "parties {}", numbers.join(", "))
    }
}
