//! A digest of all covered rows, which changes with each of them.
//!
//! For each table it has the sum (XOR) of a keyed hash of every row. The hash is of the row's table, its key,
//! and the nonce under which its value was sealed. If a value opens in its place under a nonce, this node
//! sealed it there under that nonce. So the nonce stands for the value. No table has two rows of one key, and
//! nobody sees a hash or a sum without the node's secret. So other rows have the same sum with probability
//! 2^-256 (a sum of random strings under a secret key: Bellare and Micciancio, EUROCRYPT 1997, cited from
//! memory).
//!
//! # What is not covered, and why
//!
//! | row | why |
//! |---|---|
//! | `spent lots`, and the epoch of the lots | they change with every request. The material of the lots is in memory only, so no start uses a lot of an earlier one |
//! | the record with the digest | peers hold its mark ([`super::super::mark`]) |
//! | the marker | it never changes |
//! | the note that free pages are to be erased | it is about the database itself, which removes it when it is done |
//! | the change log for other workers (`changes`) | it is compared with the digest ([`super::index`]) |
//!
//! A server also has lots that workers hand to each other (`store/src/delivery.rs`: a lot opens once), and
//! the owners of the store, which are not sealed (`postgres.rs`: if the server lies about them, the node
//! stops).

use serde::{Deserialize, Serialize};

use super::super::seal::{Seal, Stamp};
use super::super::{MARKER, lots};
use super::ERASE;
use super::Table;
use super::head::HEAD;

/// The tables whose rows are covered. Their order is part of the format.
pub(super) const COVERED: [Table; 6] =
    [Table::Meta, Table::Keys, Table::Shares, Table::Tombstones, Table::Spent, Table::Peers];

/// The number of a row's table among those that are covered; `None` if the row is not covered.
pub(in super::super) fn covered(table: Table, record: &[u8]) -> Option<usize> {
    let is_covered = match table {
        Table::Meta => ![HEAD, MARKER, ERASE].contains(&record) && !lots::is_epoch(record),
        _ => true,
    };
    COVERED.iter().position(|of| *of == table).filter(|_| is_covered)
}

/// The sums of all tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in super::super) struct Digest([[u8; 32]; COVERED.len()]);

impl Digest {
    /// Adds a row, or takes it out. Doing the same again undoes it.
    pub(super) fn toggle(&mut self, seal: &Seal, table: usize, record: &[u8], stamp: &Stamp) {
        let hash = seal.hash_of_row(COVERED[table].name(), record, stamp);
        self.0[table].iter_mut().zip(hash).for_each(|(sum, byte)| *sum ^= byte);
    }

    /// Names of the tables that differ.
    pub(super) fn differing(&self, other: &Digest) -> Vec<&'static str> {
        let differs = |table: &usize| self.0[*table] != other.0[*table];
        (0..COVERED.len()).filter(differs).map(|table| COVERED[table].name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Secret;
    use super::*;

    #[test]
    fn a_sum_depends_on_every_row_its_place_and_its_value_and_not_on_their_order() {
        let seal = Seal::new(&Secret::from_bytes([1; 32]));
        let rows: [(usize, &[u8], Stamp); 4] =
            [(1, b"a", [1; 24]), (1, b"b", [1; 24]), (2, b"a", [1; 24]), (1, b"c", [2; 24])];
        let sum = |rows: &[(usize, &[u8], Stamp)]| {
            let mut digest = Digest::default();
            rows.iter().for_each(|(table, record, stamp)| digest.toggle(&seal, *table, record, stamp));
            digest
        };
        let all = sum(&rows);
        let mut turned = rows;
        turned.reverse();
        assert_eq!(sum(&turned), all);
        for without in 0..rows.len() {
            let mut fewer = rows.to_vec();
            let (table, record, _) = fewer.remove(without);
            assert_eq!(all.differing(&sum(&fewer)), [COVERED[table].name()]);
            fewer.push((table, record, [9; 24]));
            assert_eq!(all.differing(&sum(&fewer)), [COVERED[table].name()], "an older value");
        }
        assert_ne!(sum(&[(1, b"ab", [1; 24])]), sum(&[(1, b"a", [1; 24])]));
        let other = Seal::new(&Secret::from_bytes([2; 32]));
        let mut digest = Digest::default();
        digest.toggle(&other, 1, b"a", &[1; 24]);
        assert_ne!(digest, sum(&rows[..1]), "the hash has a key");
    }

    #[test]
    fn what_is_not_covered_is_named_exactly() {
        for (table, record) in [
            (Table::Lots, &b"x"[..]),
            (Table::Meta, b"mark"),
            (Table::Meta, b"marker"),
            (Table::Meta, b"erase free pages"),
            (Table::Meta, b"lots epoch"),
            (Table::Meta, b"worker \0\x07 lots epoch"),
        ] {
            assert_eq!(covered(table, record), None, "{table:?}");
        }
        // A client chooses the nonce of an approval. That must not decide whether the record is covered.
        let chosen = [b"approval ", &b"a nonce of 32 bytes + lots epoch"[..]].concat();
        for (table, record) in [
            (Table::Meta, &chosen[..]),
            (Table::Meta, b"worker \0\x07 incarnation"),
            (Table::Keys, b"mark"),
            (Table::Spent, b""),
        ] {
            assert!(covered(table, record).is_some(), "{table:?}");
        }
    }
}
