//! The versions of everything that two programs exchange, or that one leaves to the next: one table.
//!
//! A cluster is upgraded one node after the other, so programs of two releases work together for a while.
//! Each program speaks its own version of every wire and the one before. What both know is used. Nobody
//! compares releases: a release that leaves a wire as it is has the same version of it.
//!
//! | | versions | how two programs agree |
//! |---|---|---|
//! | everything between nodes: frames, orders, the messages of protocols | [`NODES`] | the greeting of each connection (`transport`), and the hello of each session ([`crate::session`]): the lowest of what all serve |
//! | everything between clients and nodes; requests for approval and sealed keys, which are files of clients | [`CLIENTS`] | the greeting; a client speaks the lowest version of the nodes that it asks |
//! | what a node stores, and backups of it | [`STORE`] | not at all: a program reads all versions that there ever were, and writes a newer one only behind a feature, see below |
//! | cluster files, which all nodes and clients have | [`CLUSTER_FILES`] | not at all: a program reads all versions. A file says which one it has, and its release, only if it has a field that came later; so a person puts that field in once all programs know it |
//!
//! **Abilities that not every node has** are [`Feature`]s: a new message, or a record that an older program
//! could not read. A node uses a feature only once its operator has switched it on, which is refused while a
//! node of the cluster does not know it, and a session uses it only if all that serve have switched it on.
//! So nothing is lost on the way back to the program of before until then. After that the store *needs* the
//! feature: a program that does not know it refuses the store before it changes anything.
//!
//! **A cheater** can say that it speaks less than it does, or that it has fewer features. Then sessions with
//! it are those of the version before, which protect as much as they did in that release. It cannot make two
//! honest nodes run different versions in one session: what each says is part of what all compare.

use serde::{Deserialize, Serialize};

#[cfg(feature = "next-release")]
mod next_release;

/// The wire between nodes. Its bytes include those of all protocols: `tests/it/wire.rs` notices a change.
pub static NODES: Versions =
    Versions { of: "the wire between nodes", brought: &[(5, "0.3.0")], read: Read::LastTwo };

/// The wire between clients and nodes, and the files that clients make. A digest of all messages in the crate
/// `api` notices a change.
pub static CLIENTS: Versions =
    Versions { of: "the wire of clients", brought: &[(CLIENTS_NEWEST, "0.3.0")], read: Read::LastTwo };

/// The newest version of [`CLIENTS`], as a constant.
pub const CLIENTS_NEWEST: u8 = 12;

/// The store of a node, and backups of it.
pub static STORE: Versions = Versions { of: "the store", brought: &[(1, "0.3.0")], read: Read::All };

/// Cluster files. One that does not say which version it has is of the first.
pub static CLUSTER_FILES: Versions =
    Versions { of: "cluster files", brought: &[(1, "0.3.0")], read: Read::All };

/// The features that this program knows. A feature that all clusters have is removed from here once no
/// program that could be upgraded from lacks it; its bit is not given to another one.
pub static FEATURES: &[Feature] = &[];

/// A wire or a format, and which release brought which version.
#[derive(Debug)]
pub struct Versions {
    of: &'static str,
    /// Every version that was ever negotiated, and the release that brought it; the oldest first.
    brought: &'static [(u8, &'static str)],
    read: Read,
}

/// Which versions a program understands.
#[derive(Debug)]
enum Read {
    /// Its own, and the one before: both sides are there, and can be upgraded.
    LastTwo,
    /// All: whoever wrote it is gone.
    All,
}

/// The versions that a program speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// The oldest.
    pub oldest: u8,
    /// The newest.
    pub newest: u8,
}

impl Versions {
    /// What this program understands: of a wire its own version and the one before, of a store all.
    pub fn spoken(&self) -> Spoken {
        let mut newest_first = self.all().rev().map(|(version, _)| version);
        let newest = newest_first.next().expect("there is a first version");
        let oldest = match self.read {
            Read::LastTwo => newest_first.next(),
            Read::All => newest_first.next_back(),
        };
        Spoken { oldest: oldest.unwrap_or(newest), newest }
    }

    /// What is versioned, for messages.
    pub fn of(&self) -> &'static str {
        self.of
    }

    /// Why this program, called `us` in messages, does not work with another one, `them`; and which of the
    /// two is to be upgraded, through which releases. A peer that the message is about is "that one".
    pub fn apart(&self, (ours, us): (Spoken, &str), (theirs, them): (Spoken, &str)) -> String {
        let subject = if them == "that one" { "it" } else { them };
        let (older, from, to) = match theirs.newest < ours.oldest {
            true => (them, theirs.newest, ours.oldest),
            false => (us, ours.newest, theirs.oldest),
        };
        let on_the_way = self.all().filter(|(version, _)| (from + 1..=to).contains(version));
        // The last one of the list is this program's own.
        let on_the_way = on_the_way.filter(|(version, _)| *version < ours.newest).map(|(_, release)| release);
        let through: Vec<&str> = on_the_way.collect();
        let first = match (through.is_empty(), to > ours.newest) {
            (false, _) => format!(", first to {}", through.join(", then to ")),
            (true, true) => format!(", first to a release that speaks version {}", from + 1),
            (true, false) => String::new(),
        };
        format!("{subject} speaks {theirs} of {}, and {us} {ours}: upgrade {older}{first}", self.of)
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = (u8, &'static str)> {
        #[cfg(feature = "next-release")]
        let later = next_release::later(self.brought);
        #[cfg(not(feature = "next-release"))]
        let later = std::iter::empty();
        self.brought.iter().copied().chain(later)
    }
}

impl Spoken {
    /// The newest version that both speak.
    pub fn meet(self, other: Spoken) -> Option<u8> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }

    /// Whether a version is spoken.
    pub fn contains(self, version: impl Into<u64>) -> bool {
        (u64::from(self.oldest)..=u64::from(self.newest)).contains(&version.into())
    }
}

impl std::fmt::Display for Spoken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.oldest == self.newest || self.oldest == 0 {
            true => write!(f, "version {}", self.newest),
            false => write!(f, "versions {} to {}", self.oldest, self.newest),
        }
    }
}

/// Whether this program can pretend to be of a release that does not exist. Such a program is for tests only.
pub const CAN_PRETEND: bool = cfg!(feature = "next-release");

/// The release that this program is, for people.
pub fn release() -> &'static str {
    #[cfg(feature = "next-release")]
    if let Some(release) = next_release::release() {
        return release;
    }
    env!("CARGO_PKG_VERSION")
}

/// An ability that not every node of a cluster has.
#[derive(Debug, PartialEq, Eq)]
pub struct Feature {
    /// Its name, for operators.
    pub name: &'static str,
    /// Its number in a [`FeatureSet`].
    pub bit: u8,
    /// The release that brought it.
    pub release: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
}

/// The features that this program knows.
pub fn features() -> &'static [Feature] {
    #[cfg(feature = "next-release")]
    if next_release::release().is_some() {
        return next_release::FEATURES;
    }
    FEATURES
}

/// The feature of a name, if this program knows it.
pub fn feature(name: &str) -> Option<&'static Feature> {
    features().iter().find(|feature| feature.name == name)
}

/// Some features, as nodes tell each other. It may have some that this program does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureSet(u64);

impl FeatureSet {
    /// Bytes of [`FeatureSet::to_bytes`].
    pub const BYTES: usize = 8;

    /// All that this program knows.
    pub fn known() -> FeatureSet {
        features().iter().collect()
    }

    /// Those that are in both.
    #[must_use]
    pub fn shared(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & other.0)
    }

    /// Those that are in this one only.
    #[must_use]
    pub fn without(self, other: FeatureSet) -> FeatureSet {
        FeatureSet(self.0 & !other.0)
    }

    /// Whether it has a feature.
    pub fn has(self, feature: &Feature) -> bool {
        self.0 >> feature.bit & 1 == 1
    }

    /// The names of those that this program knows.
    pub fn names(self) -> Vec<&'static str> {
        features().iter().filter(|feature| self.has(feature)).map(|feature| feature.name).collect()
    }

    /// As bytes of a message.
    pub fn to_bytes(self) -> [u8; FeatureSet::BYTES] {
        self.0.to_le_bytes()
    }

    /// From bytes of a message.
    pub fn from_bytes(bytes: [u8; FeatureSet::BYTES]) -> FeatureSet {
        FeatureSet(u64::from_le_bytes(bytes))
    }
}

impl<'f> FromIterator<&'f Feature> for FeatureSet {
    fn from_iter<I: IntoIterator<Item = &'f Feature>>(features: I) -> FeatureSet {
        FeatureSet(features.into_iter().fold(0, |bits, feature| bits | 1 << feature.bit))
    }
}

#[cfg(test)]
mod tests;
