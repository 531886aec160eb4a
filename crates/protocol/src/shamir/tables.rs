//! The names of the methods to look up tables that are not built on inversion.

use std::fmt;
use std::str::FromStr;

use polyclave_cipher::{Inversion, Polynomials, Table};

use super::product;
use crate::Error;

/// How tables without an inversion are looked up on shares. Those of two bits, such as AND, take a product in
/// any case (`product.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tables {
    /// One-time masked tables, made ahead (Keller et al. 2017, section 4).
    #[default]
    Masked,
    /// Polynomials of three products for tables of at most 6 bits to at most 4, nothing made ahead (Pulkus
    /// and Vivek 2016; Keller et al. 2017, section 3.2). Larger tables are masked.
    Polynomial,
    /// Polynomials for many lanes, masked tables for few. A polynomial takes three rounds. A masked table
    /// takes one, and rounds ahead that all lookups share; but the material for a lane of Triple DES costs 40
    /// times as much as its polynomials. Nodes use this.
    ByLanes,
    /// Masked tables for tables of 6 bits, those of DES, for which there is a stock of unit vectors; and
    /// polynomials for smaller tables, with triples from the stock. Nodes with guaranteed output use this.
    InStock,
}

/// Input bits of the tables with unit vectors in stock: the S-boxes of DES.
pub(super) const STOCKED_BITS: u8 = 6;

/// Up to this number of lanes, lanes count as few.
const FEW_LANES: usize = 16;

impl Tables {
    /// The methods that do not depend on the number of lanes.
    pub const ALL: [Tables; 2] = [Tables::Masked, Tables::Polynomial];

    /// The name on the command line. Parties compare it before they start, so it has to change with the
    /// polynomials.
    pub fn name(self) -> &'static str {
        match self {
            Tables::Masked => "masked",
            Tables::Polynomial => "polynomial",
            Tables::ByLanes => "polynomial or masked",
            Tables::InStock => "masked or polynomial, by size",
        }
    }

    /// The method that is used for `lanes` lanes. Any circuit that was compiled for polynomials can also run
    /// with masked tables.
    pub(super) fn at(self, lanes: usize) -> Tables {
        match self {
            Tables::ByLanes if lanes <= FEW_LANES => Tables::Masked,
            Tables::ByLanes => Tables::Polynomial,
            other => other,
        }
    }

    /// How a table is looked up. If that depends on the number of lanes, it is the method for many.
    pub(super) fn way(self, table: &Table) -> LookupMethod<'_> {
        match (table.inversion(), self) {
            (Some(inversion), _) => LookupMethod::Inversion(inversion),
            (None, _) if table.in_bits() == product::IN_BITS => LookupMethod::Product,
            (None, Tables::Masked) => LookupMethod::Masked,
            (None, Tables::InStock) if table.in_bits() == STOCKED_BITS => LookupMethod::Masked,
            (None, Tables::Polynomial | Tables::ByLanes | Tables::InStock) => {
                table.pulkus_vivek().map_or(LookupMethod::Masked, LookupMethod::Polynomial)
            }
        }
    }
}

/// How one table is looked up.
#[derive(Clone, Copy)]
pub(super) enum LookupMethod<'a> {
    Inversion(&'a Inversion),
    Product,
    Polynomial(&'a Polynomials),
    Masked,
}

impl fmt::Display for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tables {
    type Err = Error;
    fn from_str(name: &str) -> Result<Tables, Error> {
        Tables::ALL.into_iter().find(|v| v.name() == name).ok_or_else(|| {
            let names = Tables::ALL.map(Tables::name).join(", ");
            Error::Misuse(format!("there is no way '{name}' to look up tables; choose one of {names}"))
        })
    }
}
