use super::*;

fn masks_are_all_ones_or_zero<N: Number + std::fmt::Debug>(all_ones: N) {
    for word in [0, 1, 2, 3, 0x80, 0xff, u64::MAX, u64::MAX - 1] {
        let expected = if word & 1 == 1 { all_ones } else { N::default() };
        assert_eq!(mask(N::of_word(word)), expected, "{word}");
        let mut row = [N::default(); 37];
        masks(&mut row, |i| N::of_word(word ^ i as u64));
        for (i, made) in row.into_iter().enumerate() {
            assert_eq!(made, mask(N::of_word(word ^ i as u64)), "{word} at {i}");
        }
    }
}

#[test]
fn masks_of_every_width_are_the_lowest_bit_in_all_places() {
    masks_are_all_ones_or_zero(u8::MAX);
    masks_are_all_ones_or_zero(u16::MAX);
    masks_are_all_ones_or_zero(u32::MAX);
    masks_are_all_ones_or_zero(u64::MAX);
    masks_are_all_ones_or_zero(u128::MAX);
    assert!([const_mask(0), const_mask(2)].iter().all(|mask| *mask == 0));
    assert!([const_mask(1), const_mask(3)].iter().all(|mask| *mask == u128::MAX));
}

#[test]
fn rows_are_equal_only_if_every_bit_is() {
    let row: Vec<u128> = (0..40).map(|i| i << 100 | i).collect();
    assert!(ct_eq(&row, &row.clone()) && ct_eq::<u8>(&[], &[]));
    assert!(!ct_eq(&row, &row[1..]) && !ct_eq(&row[..39], &row));
    for place in 0..40 {
        for bit in 0..128 {
            let mut other = row.clone();
            other[place] ^= 1 << bit;
            assert!(!ct_eq(&row, &other), "{bit} of {place}");
            let mut zeros = [0_u128; 40];
            assert!(is_zero(&zeros));
            zeros[place] = 1 << bit;
            assert!(!is_zero(&zeros), "{bit} of {place}");
        }
    }
}

#[test]
fn marks_change_no_value() {
    let mut row = [1_u8, 2, 3];
    mark_secret(&mut row);
    mark_public(&row);
    assert!(!is_secret(&row));
    assert_eq!((row, public(7_u64)), ([1, 2, 3], 7));
}
