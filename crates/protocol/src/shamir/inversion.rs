//! The names of the methods to invert a shared element.

use std::fmt;
use std::str::FromStr;

use super::chain::Chain;
use crate::Error;

/// How x -> x^254 is computed on shares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inversion {
    /// Square and multiply (Damgard and Keller 2010, 4.1).
    Standard,
    /// The least number of multiplications (Damgard and Keller 2010, 4.1).
    Shortest,
    /// The shortest chain with the least rounds (Damgard and Keller 2010, 4.1).
    ShortestLeastRounds,
    /// The least rounds by multiplications alone (Damgard and Keller 2010, 4.1).
    LeastRounds,
    /// Open a random multiple, invert in the clear (Damgard and Keller 2010, 4.1).
    Masking,
    /// Powers of a mask made ahead (Damgard and Keller 2010, 4.1).
    MaskedExponentiation,
    /// The VIFF note's chain of 11 products in 11 rounds (1.1.1).
    Viff11,
    /// The VIFF note's chain of 11 products in 9 rounds (section 2).
    Viff9,
    /// Four products, each opened under a mask so that all its squares come free. Not in the papers.
    #[default]
    Views,
    /// The same without opening the input: its square is carried through the linear layers. Not in the
    /// papers.
    CarriedSquares,
    /// One opening under a mask whose powers were made ahead, and one product of the results. Not in the
    /// papers.
    MaskedPowers,
}

impl Inversion {
    /// All of them, in the order of the papers.
    pub const ALL: [Inversion; 11] = [
        Inversion::Standard,
        Inversion::Shortest,
        Inversion::ShortestLeastRounds,
        Inversion::LeastRounds,
        Inversion::Masking,
        Inversion::MaskedExponentiation,
        Inversion::Viff11,
        Inversion::Viff9,
        Inversion::Views,
        Inversion::CarriedSquares,
        Inversion::MaskedPowers,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Inversion::Standard => "standard",
            Inversion::Shortest => "shortest",
            Inversion::ShortestLeastRounds => "shortest-least-rounds",
            Inversion::LeastRounds => "least-rounds",
            Inversion::Masking => "masking",
            Inversion::MaskedExponentiation => "masked-exponentiation",
            Inversion::Viff11 => "viff-11",
            Inversion::Viff9 => "viff-9",
            Inversion::Views => "views",
            Inversion::CarriedSquares => "carried-squares",
            Inversion::MaskedPowers => "masked-powers",
        }
    }

    /// The addition chain, for the ways that are one.
    pub(super) fn chain(self) -> Option<Chain> {
        match self {
            Inversion::Standard => Some(Chain::standard()),
            Inversion::Shortest | Inversion::Viff11 => Some(Chain::shortest()),
            Inversion::ShortestLeastRounds => Some(Chain::shortest_least_rounds()),
            Inversion::LeastRounds => Some(Chain::least_rounds()),
            Inversion::Viff9 => Some(Chain::viff_9()),
            Inversion::Masking
            | Inversion::MaskedExponentiation
            | Inversion::Views
            | Inversion::CarriedSquares
            | Inversion::MaskedPowers => None,
        }
    }
}

impl fmt::Display for Inversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Inversion {
    type Err = Error;
    fn from_str(name: &str) -> Result<Inversion, Error> {
        Inversion::ALL.into_iter().find(|v| v.name() == name).ok_or_else(|| {
            let names = Inversion::ALL.map(Inversion::name).join(", ");
            Error::Misuse(format!("there is no inversion '{name}'; choose one of {names}"))
        })
    }
}
