//! Which lookups of a circuit go together, and which of the two parties is the sender of the transfer for
//! which cell.
//!
//! A transfer has a sender and a receiver, who do not have the same work to do and to send. Each party is the
//! sender for half of the cells. So transfers go both ways, as extensions make them anyway, and both
//! directions of the connection are used.

use std::ops::Range;

use polyclave_cipher::Compiled;

use super::wire::packed_bytes;

/// The lookups of one table in one layer, all lanes of a lookup one after another.
pub(super) struct Group {
    /// Which table of the circuit.
    pub(super) table: usize,
    /// Positions in the layer.
    pub(super) lookups: Vec<usize>,
    /// Lookups, each lane counted.
    pub(super) cells: usize,
    /// Of these, the first ones: the first party is the sender for them.
    of_first: usize,
}

/// For one party, what it does for the cells of a table: for some it is the sender, for the others the
/// receiver.
pub(super) const ROLES: [usize; 2] = [SENDER, RECEIVER];
/// The place of the sender's part.
pub(super) const SENDER: usize = 0;
/// The place of the receiver's part.
pub(super) const RECEIVER: usize = 1;

/// All lookups of an evaluation.
pub(super) struct Plan {
    /// By layer that has lookups.
    pub(super) layers: Vec<Vec<Group>>,
    /// By table: the cells for which the first party is the sender, and the second.
    totals: Vec<[usize; 2]>,
}

impl Group {
    /// Places in the group of the cells for which a party is the sender, and of those for which it is the
    /// receiver.
    pub(super) fn of_roles(&self, is_first: bool) -> [Range<usize>; 2] {
        by_role([0..self.of_first, self.of_first..self.cells], is_first)
    }
}

impl Plan {
    pub(super) fn new(compiled: &Compiled, lanes: usize) -> Plan {
        let mut totals = vec![[0; 2]; compiled.tables().len()];
        let mut layers = Vec::new();
        for layer in compiled.layers().iter().filter(|layer| !layer.lookups.is_empty()) {
            let mut groups: Vec<Group> = Vec::new();
            for (at, lookup) in layer.lookups.iter().enumerate() {
                let known = groups.iter().position(|group| group.table == lookup.table);
                let known = known.unwrap_or_else(|| {
                    let table = lookup.table;
                    groups.push(Group { table, lookups: Vec::new(), cells: 0, of_first: 0 });
                    groups.len() - 1
                });
                groups[known].lookups.push(at);
                groups[known].cells += if lookup.is_uniform() { 1 } else { lanes };
            }
            for group in &mut groups {
                // An odd one goes to the party that has fewer of this table so far, at first to either of the
                // two.
                let [first, second] = totals[group.table];
                let one_more = first < second || (first == second && group.table % 2 == 0);
                group.of_first = (group.cells + usize::from(one_more)) / 2;
                totals[group.table] = [first + group.of_first, second + group.cells - group.of_first];
            }
            layers.push(groups);
        }
        Plan { layers, totals }
    }

    /// By table: the cells for which a party is the sender, and those for which it is the receiver.
    pub(super) fn of_roles(&self, is_first: bool) -> impl Iterator<Item = [usize; 2]> {
        self.totals.iter().map(move |cells| by_role(*cells, is_first))
    }

    /// Correlated transfers that are made in each direction: one for each bit of a cell. The choices of a
    /// table are whole bytes, and both directions have as many.
    pub(super) fn transfers(&self, compiled: &Compiled) -> usize {
        let of = |party: usize| -> usize {
            let cells = self.totals.iter().map(|cells| cells[party]);
            cells.zip(compiled.tables()).map(|(cells, table)| packed_bytes(cells, table.in_bits())).sum()
        };
        8 * of(0).max(of(1))
    }
}

/// What belongs to the two parties, in the order of a party's roles.
fn by_role<T>([first, second]: [T; 2], is_first: bool) -> [T; 2] {
    if is_first { [first, second] } else { [second, first] }
}

#[cfg(test)]
mod tests {
    use polyclave_cipher::{AnyMap, catalog, compile};

    use super::*;

    #[test]
    fn both_parties_send_for_half_of_the_cells_of_every_table() {
        for cipher in catalog::all() {
            let compiled = compile(&cipher.encrypt, &AnyMap);
            for lanes in [1, 2, 5] {
                let plan = Plan::new(&compiled, lanes);
                assert!(plan.totals.iter().all(|[a, b]| a.abs_diff(*b) <= 1), "{}", cipher.name);
                let uniform = compiled.lookups().filter(|lookup| lookup.is_uniform()).count();
                let all = (compiled.lookups().count() - uniform) * lanes + uniform;
                assert_eq!(plan.totals.iter().flatten().sum::<usize>(), all, "{}", cipher.name);
                let groups = || plan.layers.iter().flatten();
                for is_first in [true, false] {
                    for (table, of_roles) in plan.of_roles(is_first).enumerate() {
                        let groups = groups().filter(|group| group.table == table);
                        let of_groups = groups.map(|group| group.of_roles(is_first).map(|cells| cells.len()));
                        let sum = of_groups.fold([0; 2], |sum, of| [sum[0] + of[0], sum[1] + of[1]]);
                        assert_eq!(sum, of_roles);
                    }
                }
            }
        }
    }
}
