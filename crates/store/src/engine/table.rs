//! The tables of records, and their names in the database.

/// A table. The names are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Table {
    /// Single values.
    Meta,
    /// By name: a key's properties and state.
    Keys,
    /// By id: a key's shares.
    Shares,
    /// By id: keys that were deleted.
    Tombstones,
    /// By id: blocks that count as spent.
    Spent,
    /// By party: the latest change of its store that was seen.
    Peers,
    /// By id: up to where lots of material count as spent.
    Lots,
    /// By number: the latest changes, for workers that share the store.
    Changes,
}

impl Table {
    /// The tables that backups and moves to another database take along. [`Table::Changes`] is of no use to
    /// another process.
    pub(in super::super) const ALL: [Table; 7] =
        [Table::Meta, Table::Keys, Table::Shares, Table::Tombstones, Table::Spent, Table::Peers, Table::Lots];

    /// The table's name in the database.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Keys => "keys",
            Table::Shares => "shares",
            Table::Tombstones => "tombstones",
            Table::Spent => "spent",
            Table::Peers => "peers",
            Table::Lots => "spent lots",
            Table::Changes => "changes",
        }
    }
}
