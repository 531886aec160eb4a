//! The methods to look up a table on authenticated shares, and what each takes.

use polyclave_cipher::{Matrix, Table};
use polyclave_field::MacField;

/// How a scheme looks up the tables that allow it; all others go by masked tables. Rounds, openings, triples
/// and random bits are those of Keller et al. 2017, Table 2, for one lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupMethod {
    /// Masked tables for every table (section 4): one round, one opening.
    MaskedTables,
    /// Tables built on inversion by squares of a decomposed cell and six products (section 3.1,
    /// BitDecomposition).
    BitDecomposition,
    /// Tables built on inversion by four products and four decompositions (section 3.1, Rivain-Prouff).
    RivainProuff,
    /// Small tables by three products and three decompositions (section 3.2, Pulkus-Vivek).
    PulkusVivek,
    /// Tables of 6 bits as polynomials over GF(2^6), all powers one after another (section 5, 3DES-Raw).
    Univariate,
    /// Tables built on inversion by a tower of fields (docs/protocols/tower.md).
    Tower,
}

/// How one table is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// By the products of a [`LookupMethod`].
    Products,
    /// By a record for inversions.
    Tower,
    /// By a masked table whose rows are stored.
    Rows,
    /// By a unit vector that is combined at use.
    Units,
}

/// Tables of more bits store their rows: combining 128 entries or more at use costs more than it saves.
pub(super) const MAX_UNIT_BITS: u8 = 6;

impl LookupMethod {
    /// All of them.
    pub const ALL: [LookupMethod; 6] = [
        LookupMethod::MaskedTables,
        LookupMethod::BitDecomposition,
        LookupMethod::RivainProuff,
        LookupMethod::PulkusVivek,
        LookupMethod::Univariate,
        LookupMethod::Tower,
    ];

    /// The name of the protocol on the command line.
    pub fn name(self) -> &'static str {
        match self {
            LookupMethod::MaskedTables => "spdz-lt",
            LookupMethod::BitDecomposition => "spdz-bd",
            LookupMethod::RivainProuff => "spdz-rp",
            LookupMethod::PulkusVivek => "spdz-pv",
            LookupMethod::Univariate => "spdz-raw",
            LookupMethod::Tower => "spdz-tower",
        }
    }

    pub(super) fn route(self, table: &Table) -> Route {
        let is_small = table.in_bits() == 6 && table.out_bits() <= 6;
        match self {
            LookupMethod::Tower if table.inversion().is_some() => Route::Tower,
            LookupMethod::BitDecomposition | LookupMethod::RivainProuff if table.inversion().is_some() => {
                Route::Products
            }
            LookupMethod::PulkusVivek if table.pulkus_vivek().is_some() => Route::Products,
            LookupMethod::Univariate if is_small => Route::Products,
            _ if (2..=MAX_UNIT_BITS).contains(&table.in_bits()) => Route::Units,
            _ => Route::Rows,
        }
    }

    /// The cost of a lookup by products: rounds, openings, triples.
    pub(super) fn cost(self) -> (usize, usize, usize) {
        match self {
            LookupMethod::MaskedTables | LookupMethod::Tower => (0, 0, 0),
            LookupMethod::BitDecomposition => (5, 6 * 2 + 2, 6),
            LookupMethod::RivainProuff => (7, 4 * 2 + 4, 4),
            LookupMethod::PulkusVivek => (5, 3 * 2 + 3, 3),
            LookupMethod::Univariate => (63, 62 * 2 + 1, 62),
        }
    }

    /// The random bits of a lookup by products. Every decomposition takes one for each bit of a cell.
    pub(super) fn bits<F: MacField>(self) -> usize {
        let (_, openings, triples) = self.cost();
        (openings - 2 * triples) * usize::from(F::CELL_BITS)
    }

    /// The images of a table's input that its lookup starts from.
    pub(super) fn wants(self, table: &Table) -> Vec<Matrix> {
        let bits = table.in_bits();
        let mut wants = vec![Matrix::identity(bits)];
        if let (LookupMethod::PulkusVivek, Some(polynomials)) = (self, table.pulkus_vivek()) {
            // X^2, X^4, and what p1 and p2 have of X itself.
            let widened = Matrix::of(bits, 8, |x| x);
            let images = [Matrix::frobenius(1), Matrix::frobenius(2)];
            let linear = [polynomials.p1.maps[0], polynomials.p2.maps[0]];
            wants.extend(images.iter().chain(&linear).map(|m| m.after(&widened)));
        }
        if let (LookupMethod::Tower, Some(inversion)) = (self, table.inversion()) {
            // What is inverted, except for a constant, which is added when it is opened.
            wants = vec![inversion.before.matrix];
        }
        wants
    }
}
