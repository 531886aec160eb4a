//! Every width against the definition.

use super::*;

/// Bytes that differ within any distance of 251.
fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

#[test]
fn byte_i_of_every_block_is_in_row_i() {
    for width in 1..=20 {
        for lanes in (0..70).chain([128, 200]) {
            for stride in [lanes, lanes + 1, lanes + 29] {
                let blocks = numbered(lanes * width);
                let mut rows = vec![0xff; width * stride];
                blocks_to_rows(&blocks, width, &mut rows, stride);
                for (at, &byte) in rows.iter().enumerate() {
                    let (row, lane) = (at / stride, at % stride);
                    let expected = if lane < lanes { blocks[lane * width + row] } else { 0xff };
                    assert_eq!(byte, expected, "width {width}, {lanes} lanes, row {row}, lane {lane}");
                }
            }
        }
    }
}

#[test]
fn putting_together_undoes_taking_apart() {
    for width in 1..=20 {
        for lanes in (0..70).chain([128, 200]) {
            let stride = lanes + 5;
            let blocks = numbered(lanes * width);
            let mut rows = vec![0xff; width * stride];
            blocks_to_rows(&blocks, width, &mut rows, stride);
            let mut again = vec![0; blocks.len()];
            rows_to_blocks(&rows, stride, width, &mut again);
            assert_eq!(again, blocks, "width {width}, {lanes} lanes");
        }
    }
}

#[test]
fn the_last_row_needs_no_room_beyond_its_lanes() {
    let blocks = numbered(48 * 16);
    let mut rows = vec![0; 15 * 100 + 48];
    blocks_to_rows(&blocks, 16, &mut rows, 100);
    let mut again = vec![0; blocks.len()];
    rows_to_blocks(&rows, 100, 16, &mut again);
    assert_eq!(again, blocks);
}

#[test]
fn sizes_that_do_not_fit_panic() {
    for (blocks, width, rows, stride) in
        [(32, 0, 99, 9), (33, 16, 99, 2), (32, 16, 99, 1), (32, 16, 31, 2), (32, 16, 99, usize::MAX)]
    {
        let call = || blocks_to_rows(&vec![0; blocks], width, &mut vec![0; rows], stride);
        assert!(std::panic::catch_unwind(call).is_err());
        let call = || rows_to_blocks(&vec![0; rows], stride, width, &mut vec![0; blocks]);
        assert!(std::panic::catch_unwind(call).is_err());
    }
}
