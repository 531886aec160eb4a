//! Parameters of the extension: the width of blocks, and how much computation is spent to save communication.

use crate::{Error, Result};

/// Columns and expansion of extended transfers. All parties of a session use the same.
///
/// A tree of depth d stands for d columns. If the columns are no multiple of f, some trees are less deep by
/// one, so that all together stand for these columns and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Shape {
    columns: usize,
    expansion: usize,
}

impl Shape {
    /// The significant bits of a block, 40 to 128, and the depth f of the deepest trees, 1 to 8: `columns /
    /// f` bits, rounded up, are sent for a transfer, and about `2^f columns / f` bits of AES streams made.
    pub fn new(columns: usize, expansion: usize) -> Result<Shape> {
        if !(1..=8).contains(&expansion) {
            return Err(Error::Misuse(format!("oblivious transfer expands by 1 to 8 bits, not {expansion}")));
        }
        if !(40..=128).contains(&columns) {
            return Err(Error::Misuse(format!(
                "blocks of oblivious transfer have 40 to 128 bits, not {columns}"
            )));
        }
        Ok(Shape { columns, expansion })
    }

    /// The significant bits of a block.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// f.
    pub fn expansion(&self) -> usize {
        self.expansion
    }

    /// So few that none is deeper than f.
    pub fn trees(&self) -> usize {
        self.columns.div_ceil(self.expansion)
    }

    /// The first column of a tree. As the number of a tree after the last, the number of all columns.
    pub(super) fn first_column(&self, tree: usize) -> usize {
        tree * self.columns / self.trees()
    }

    /// The columns of a tree.
    pub(super) fn depth(&self, tree: usize) -> usize {
        self.first_column(tree + 1) - self.first_column(tree)
    }

    /// The depths of all trees.
    pub(super) fn depths(&self) -> Vec<usize> {
        (0..self.trees()).map(|tree| self.depth(tree)).collect()
    }

    /// The leaves of the first trees.
    pub(super) fn leaves(&self, trees: usize) -> usize {
        (0..trees).map(|tree| 1 << self.depth(tree)).sum()
    }

    /// The upper half of the columns, with the upper half of the trees; none if a tree has columns of both
    /// halves, or the half has too few columns.
    pub(super) fn upper_half(&self) -> Option<Shape> {
        let half = Shape::new(self.columns / 2, self.expansion).ok()?;
        let trees = self.trees() / 2;
        let is_half = 2 * trees == self.trees() && trees == half.trees();
        (is_half && self.first_column(trees) == half.columns && 2 * half.columns == self.columns)
            .then_some(half)
    }

    /// The significant bits, all ones.
    pub(super) fn mask(&self) -> u128 {
        u128::MAX >> (128 - self.columns)
    }

    /// The bits of delta that belong to a tree.
    pub(super) fn alpha(&self, delta: u128, tree: usize) -> u8 {
        (delta >> self.first_column(tree)) as u8 & (u8::MAX >> (8 - self.depth(tree)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_columns_belong_to_trees_that_are_as_deep_or_less_by_one() {
        for columns in 40..=128 {
            for expansion in 1..=8 {
                let shape = Shape::new(columns, expansion).expect("it is valid");
                let depths = shape.depths();
                assert_eq!(depths.iter().sum::<usize>(), columns);
                let deepest = columns.div_ceil(shape.trees());
                assert!(deepest <= expansion && columns.is_multiple_of(expansion) <= (deepest == expansion));
                assert!(depths.iter().all(|depth| [deepest, deepest - 1].contains(depth)), "{shape:?}");
                assert!(depths.iter().all(|depth| *depth > 0));
                assert_eq!(shape.first_column(depths.len()), columns);
                assert_eq!(shape.leaves(depths.len()), depths.iter().map(|depth| 1 << depth).sum::<usize>());
            }
        }
        for (columns, expansion) in [(39, 1), (129, 1), (64, 0), (64, 9)] {
            assert!(matches!(Shape::new(columns, expansion), Err(Error::Misuse(_))), "{columns} {expansion}");
        }
    }

    #[test]
    fn the_upper_half_has_the_upper_trees() {
        let delta = 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210;
        for expansion in 1..=8 {
            let shape = Shape::new(128, expansion).expect("it is valid");
            let Some(half) = shape.upper_half() else {
                assert!([3, 7].contains(&expansion), "a tree has columns of both halves");
                continue;
            };
            assert_eq!(half, Shape::new(64, expansion).expect("it is valid"));
            for tree in 0..half.trees() {
                assert_eq!(half.depth(tree), shape.depth(half.trees() + tree));
                assert_eq!(half.alpha(delta >> 64, tree), shape.alpha(delta, half.trees() + tree));
            }
        }
        assert_eq!(Shape::new(64, 4).expect("it is valid").upper_half(), None);
    }
}
