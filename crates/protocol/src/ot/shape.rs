//! Parameters of the extension: the width of blocks, and how much computation is spent to save communication.

use crate::{Error, Result};

/// Columns and expansion of extended transfers. All parties of a session use the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    columns: usize,
    expansion: usize,
}

impl Shape {
    /// The significant bits of a block, 40 to 128, and the depth f of the trees, 1 to 8: `columns / f` bits
    /// are sent for a transfer, and `2^f columns / f` bits of AES streams made. Columns that are no multiple
    /// of f are rounded up to the next; beyond 128 is an error.
    pub fn new(columns: usize, expansion: usize) -> Result<Shape> {
        if !(1..=8).contains(&expansion) {
            return Err(Error::Misuse(format!("oblivious transfer expands by 1 to 8 bits, not {expansion}")));
        }
        let rounded = columns.next_multiple_of(expansion);
        if !(40..=128).contains(&columns) || rounded > 128 {
            return Err(Error::Misuse(format!(
                "blocks of oblivious transfer have 40 to 128 bits, not {rounded}"
            )));
        }
        Ok(Shape { columns: rounded, expansion })
    }

    /// The significant bits of a block.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// f.
    pub fn expansion(&self) -> usize {
        self.expansion
    }

    /// Each stands for f columns.
    pub(super) fn trees(&self) -> usize {
        self.columns / self.expansion
    }

    /// Without the lowest columns, those of this many trees.
    pub(super) fn without_trees(&self, count: usize) -> Shape {
        Shape { columns: self.columns - count * self.expansion, expansion: self.expansion }
    }

    /// The significant bits, all ones.
    pub(super) fn mask(&self) -> u128 {
        u128::MAX >> (128 - self.columns)
    }

    /// The bits of delta that belong to a tree.
    pub(super) fn alpha(&self, delta: u128, tree: usize) -> u8 {
        (delta >> (tree * self.expansion)) as u8 & (u8::MAX >> (8 - self.expansion))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_rounded_up_to_whole_trees() {
        for (columns, expansion, rounded) in
            [(40, 3, 42), (40, 8, 40), (64, 5, 65), (128, 1, 128), (124, 7, 126)]
        {
            assert_eq!(Shape::new(columns, expansion).expect("it is valid").columns(), rounded);
        }
        for (columns, expansion) in [(39, 1), (128, 3), (129, 1), (64, 0), (64, 9), (127, 5)] {
            assert!(matches!(Shape::new(columns, expansion), Err(Error::Misuse(_))), "{columns} {expansion}");
        }
    }
}
