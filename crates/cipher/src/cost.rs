//! The size of a compiled circuit: the numbers from which the cost under every protocol follows.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Compiled, Linear};

/// Counts of a compiled circuit, for one lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CircuitCost {
    /// Steps in which lookups run in parallel.
    pub layers: usize,
    /// Lookups with a value per lane, by table.
    pub lookups: BTreeMap<String, usize>,
    /// Lookups that run once for all lanes, by table.
    pub uniform_lookups: BTreeMap<String, usize>,
    /// Outputs that are needed of all lookups together. Protocols whose views are not free pay for each.
    pub views: usize,
    /// Sums of linear maps.
    pub sums: usize,
    /// Terms of all sums.
    pub terms: usize,
    /// Terms with a matrix that is not the identity.
    pub maps: usize,
    /// Places for values per lane: the working set in bytes a lane, for cells of a byte.
    pub lane_slots: usize,
}

impl CircuitCost {
    /// Counts a compiled circuit.
    pub fn of(compiled: &Compiled) -> CircuitCost {
        let mut cost = CircuitCost { lane_slots: compiled.lane_slots(), ..CircuitCost::default() };
        for layer in compiled.layers() {
            cost.layers += usize::from(!layer.lookups.is_empty());
            layer.linear.iter().for_each(|linear| cost.add_sum(linear));
        }
        for lookup in compiled.lookups() {
            let by_table = if lookup.is_uniform() { &mut cost.uniform_lookups } else { &mut cost.lookups };
            *by_table.entry(compiled.tables()[lookup.table].name().into()).or_insert(0) += 1;
            cost.views += lookup.views.len();
        }
        cost
    }

    fn add_sum(&mut self, linear: &Linear) {
        self.sums += 1;
        self.terms += linear.terms.len();
        self.maps += linear.terms.iter().filter(|(_, m)| !m.is_identity()).count();
    }
}

impl fmt::Display for CircuitCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |by_table: &BTreeMap<String, usize>| by_table.values().sum::<usize>();
        let (lookups, uniform) = (total(&self.lookups), total(&self.uniform_lookups));
        writeln!(f, "layers    {}", self.layers)?;
        writeln!(f, "lookups   {lookups} a block, {uniform} once for all, {} views of them", self.views)?;
        for (table, count) in self.lookups.iter().chain(&self.uniform_lookups) {
            writeln!(f, "            {count:>5} {table}")?;
        }
        writeln!(
            f,
            "linear    {} sums of {} terms, {} of them more than an XOR",
            self.sums, self.terms, self.maps
        )?;
        write!(f, "slots     {} a lane", self.lane_slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyMap, catalog, compile};

    #[test]
    fn aes_and_triple_des_have_their_counts() {
        let cost = |name: &str| {
            let cipher = catalog::find(name).expect("the catalog has it");
            CircuitCost::of(&compile(&cipher.encrypt, &AnyMap))
        };
        let aes = cost("aes-128");
        assert_eq!((aes.layers, aes.lookups["AES S-box"], aes.views), (10, 160, 160));
        // 16 key additions, nine rounds of MixColumns with 6 terms a byte of which 2 double, 16 key
        // additions.
        assert_eq!((aes.sums, aes.terms, aes.maps), (176, 2 * 32 + 9 * 16 * 6, 9 * 16 * 2));
        let des = cost("3des-ede3");
        assert_eq!((des.layers, des.lookups.values().sum::<usize>()), (46, 384));
    }
}
