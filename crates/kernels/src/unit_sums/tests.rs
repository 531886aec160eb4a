//! Sums against their definition.

use super::*;

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| ((i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41) as u8).collect()
}

fn sums_are_right<E: Entry + PartialEq + core::fmt::Debug>(widths: &[usize]) {
    for (in_bits, out_bits) in [(2, 1), (4, 4), (5, 5), (6, 4), (6, 8)] {
        let entries = 1 << in_bits;
        let table: Vec<u8> = (0..entries).map(|x| ((x * 167 + 3) >> 2 & 0xff) as u8).collect();
        let h: Vec<u8> = (0..2 * entries + 3).map(|i| (i * 5 % entries) as u8).collect();
        let kernel = Sums::<E>::new(&table, out_bits);
        for width in widths {
            let vectors = bytes(h.len() * entries * width);
            let mut expected = vec![vec![E::NONE; h.len()]; out_bits];
            for (i, (vector, h)) in vectors.chunks(entries * width).zip(&h).enumerate() {
                for (j, entry) in vector.chunks(*width).map(E::of_bytes).enumerate() {
                    let out = table[j ^ usize::from(*h)];
                    let set = |b: &usize| out >> b & 1 == 1;
                    (0..out_bits).filter(set).for_each(|b| expected[b][i] = expected[b][i] ^ entry);
                }
            }
            for run in [Sums::add_up, Sums::run] {
                let mut sums = vec![vec![E::ALL; h.len()]; out_bits];
                let mut rows: Vec<&mut [E]> = sums.iter_mut().map(Vec::as_mut_slice).collect();
                run(&kernel, &vectors, *width, &h, &mut rows);
                assert_eq!(sums, expected, "{in_bits} to {out_bits} bits, {width} bytes an entry");
            }
        }
    }
}

#[test]
fn sums_are_those_of_the_definition() {
    sums_are_right::<u64>(&[1, 5, 6, 8]);
    sums_are_right::<u128>(&[5, 16]);
}

#[test]
fn entries_are_little_endian() {
    assert_eq!(u64::of_bytes(&[1, 2, 3, 4, 5]), 0x05_0403_0201);
    assert_eq!(u128::of_bytes(&[7; 16]), 0x0707_0707_0707_0707_0707_0707_0707_0707);
}

#[test]
fn what_does_not_fit_panics() {
    let kernel = Sums::<u64>::new(&[1, 2, 3, 0], 2);
    let call = |vectors: usize, width: usize, h: &[u8], room: usize| {
        let (mut a, mut b) = (vec![0; room], vec![0; room]);
        kernel.add_up(&vec![0; vectors], width, h, &mut [&mut a, &mut b]);
    };
    call(64, 8, &[3, 0], 2);
    for (vectors, width, h, room) in [
        (63, 8, &[3, 0][..], 2),
        (64, 7, &[3, 0], 2),
        (72, 9, &[3, 0], 2),
        (64, 8, &[4, 0], 2),
        (64, 8, &[3, 0], 1),
    ] {
        assert!(std::panic::catch_unwind(|| call(vectors, width, h, room)).is_err());
    }
    for table in [&[0, 1][..], &[0; 6]] {
        assert!(std::panic::catch_unwind(|| Sums::<u64>::new(table, 1)).is_err());
    }
}
