//! Every implementation against the definition.

use super::*;

/// The leaves of some trees.
fn keys(count: usize) -> Vec<[u8; 16]> {
    let mut keys = vec![[0; 16]; count];
    AesPrg::new(&[5; 16], 0).fill(keys.as_flattened_mut());
    keys
}

fn bytes(nonce: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    AesPrg::new(&[6; 16], nonce).fill(&mut bytes);
    bytes
}

/// The sum of a piece of the streams of those leaves for which this holds.
fn sum_where(keys: &[[u8; 16]], skip: usize, len: usize, wanted: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut sum = vec![0; len];
    for (_, key) in keys.iter().enumerate().filter(|(x, _)| wanted(*x)) {
        let mut stream = vec![0; skip + len];
        AesPrg::new(key, 0).fill(&mut stream);
        sum.iter_mut().zip(&stream[skip..]).for_each(|(sum, term)| *sum ^= term);
    }
    sum
}

/// Pieces that are whole registers, and others.
const LENGTHS: [usize; 8] = [1024, 0, 16, 128, 32, 144, 1040, 2048];

#[test]
fn columns_and_corrections_are_the_sums_of_their_definition() {
    for isa in AesIsa::available() {
        for depth in 1..=8 {
            // Another depth before it, as if columns are not a multiple of the depth.
            let depths = [depth - depth / 5, depth, depth];
            let keys = keys(depths.iter().map(|depth| 1 << depth).sum());
            let mut all = LeafStreams::with(isa, &depths, &keys, false);
            let mut punctured = LeafStreams::with(isa, &depths, &keys, true);
            let (tree, mut skip) = (1, 0);
            let leaves = &keys[1 << depths[0]..][..1 << depth];
            for len in LENGTHS.into_iter().take(if depth > 5 { 6 } else { 8 }) {
                let choices = bytes(len as u64, len);
                let (mut columns, mut correction) = (vec![1; depth * len], vec![1; len]);
                all.receive(tree, &choices, &mut columns, &mut correction);
                let mut expected = sum_where(leaves, skip, len, |_| true);
                expected.iter_mut().zip(&choices).for_each(|(sum, u)| *sum ^= u);
                assert!(correction == expected, "{isa:?}, depth {depth}, {len} bytes");
                let column = |k: usize| sum_where(leaves, skip, len, |x| x >> k & 1 == 1);
                let expected: Vec<Vec<u8>> = (0..depth).map(column).collect();
                assert!(columns == expected.concat(), "{isa:?}, depth {depth}, {len} bytes");

                // Leaf 0 is in no column, so punctured trees have the same columns.
                let delta: Vec<u8> = (0..depth).map(|k| if k % 2 == 0 { 0xff } else { 0 }).collect();
                punctured.send(tree, &correction, &delta, &mut columns);
                for (k, (column, expected)) in columns.chunks_exact(len.max(1)).zip(&expected).enumerate() {
                    let with = column.iter().zip(&correction).map(|(q, c)| q ^ (c & delta[k]));
                    assert!(with.eq(expected.iter().copied()), "{isa:?}, depth {depth}, column {k}");
                }
                skip += len;
            }
        }
    }
}

#[test]
fn trees_advance_independently() {
    for isa in AesIsa::available() {
        let keys = keys(8);
        let mut streams = LeafStreams::with(isa, &[2, 2], &keys, false);
        let mut next = |tree: usize| {
            let (mut columns, mut correction) = ([0; 96], [0; 48]);
            streams.receive(tree, &[0; 48], &mut columns, &mut correction);
            correction.to_vec()
        };
        let seen = [next(0), next(0), next(1)];
        let expected = [(0, 0), (0, 48), (1, 0)];
        let expected = expected.map(|(tree, skip)| sum_where(&keys[4 * tree..][..4], skip, 48, |_| true));
        assert_eq!(seen, expected, "{isa:?}");
    }
}

#[test]
fn the_unknown_leaf_has_no_influence() {
    for isa in AesIsa::available() {
        let columns = [0, 1].map(|unknown| {
            let mut keys = keys(16);
            keys[0] = [unknown; 16];
            let mut columns = vec![0; 4 * 160];
            LeafStreams::with(isa, &[4], &keys, true).send(0, &[3; 160], &[0xff; 4], &mut columns);
            columns
        });
        assert_eq!(columns[0], columns[1], "{isa:?}");
    }
}

#[test]
fn sizes_that_do_not_fit_panic() {
    for (keys, choices, columns, correction) in
        [(3, 16, 32, 16), (4, 16, 32, 32), (4, 16, 16, 16), (4, 8, 16, 8)]
    {
        let call = || {
            let mut streams = LeafStreams::new(&[2], &vec![[0; 16]; keys], false);
            streams.receive(0, &vec![0; choices], &mut vec![0; columns], &mut vec![0; correction]);
        };
        assert!(std::panic::catch_unwind(call).is_err());
    }
}
