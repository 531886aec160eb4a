//! How much material an evaluation takes, found by counting lookups.

use std::collections::BTreeMap;

use polyclave_cipher::{Compiled, Lookup};

use super::cost;
use super::inversion::Inversion;
use super::tables::{LookupMethod, Tables};

/// Numbers of lookups, and of the products that they take online.
pub(super) struct Demand {
    /// Lookups of tables built on inversion.
    pub(super) inversions: usize,
    /// Lookups by masked tables, by table of the circuit.
    pub(super) masked: BTreeMap<usize, usize>,
    /// Products of shared values online, masking's retries included: more of them come with probability 2^-40
    /// at most.
    pub(super) products: usize,
}

impl Demand {
    pub(super) fn of(compiled: &Compiled, lanes: usize, way: Inversion, tables: Tables) -> Demand {
        let width = |lookup: &Lookup| if lookup.is_uniform() { 1 } else { lanes };
        let tables = tables.at(lanes);
        let mut demand = Demand { inversions: 0, masked: BTreeMap::new(), products: 0 };
        for lookup in compiled.lookups() {
            let count = width(lookup);
            let table = tables.way(&compiled.tables()[lookup.table]);
            demand.products += count * cost::products_online(way, table);
            match table {
                LookupMethod::Inversion(_) => demand.inversions += count,
                LookupMethod::Masked => *demand.masked.entry(lookup.table).or_insert(0) += count,
                LookupMethod::Product | LookupMethod::Polynomial(_) => {}
            }
        }
        if way == Inversion::Masking {
            demand.products += spare_for_retries(demand.inversions);
        }
        demand
    }
}

/// Each of this many masks is zero with probability 1/256, and so is each that replaces one: about count/255
/// draws more than `count`, a sum of geometric variables. Ten times its standard deviation and 64 beyond the
/// mean is exceeded with probability far below 2^-40 (Chernoff's bound, at every mean).
fn spare_for_retries(count: usize) -> usize {
    let mean = count as f64 / 255.0;
    (mean + 10.0 * mean.sqrt()).ceil() as usize + 64
}
