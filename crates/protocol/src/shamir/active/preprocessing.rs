//! The names of the two ways to make triples.

use std::fmt;
use std::str::FromStr;

use crate::Error;

/// How triples are made ahead (Damgard, Geisler, Kroigaard and Nielsen 2009).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Preprocessing {
    /// From pseudorandom sharings. Nothing is dealt, and a product comes with all its linear images.
    #[default]
    #[serde(rename = "prss")]
    Pseudorandom,
    /// From sharings that all parties deal with randomness of their operating systems, verified by a
    /// hyper-invertible matrix.
    #[serde(rename = "hyper-invertible")]
    HyperInvertible,
}

impl Preprocessing {
    /// Both of them.
    pub const ALL: [Preprocessing; 2] = [Preprocessing::Pseudorandom, Preprocessing::HyperInvertible];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preprocessing::Pseudorandom => "prss",
            Preprocessing::HyperInvertible => "hyper-invertible",
        }
    }
}

impl fmt::Display for Preprocessing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Preprocessing {
    type Err = Error;
    fn from_str(name: &str) -> Result<Preprocessing, Error> {
        Preprocessing::ALL.into_iter().find(|way| way.name() == name).ok_or_else(|| {
            let names = Preprocessing::ALL.map(Preprocessing::name).join(" or ");
            Error::Misuse(format!("shamir-active has no preprocessing '{name}'; choose {names}"))
        })
    }
}
