//! Fuzz targets: foreign bytes in place of what nodes tell each other about their stocks.

use polyclave_harness::{fuzz, within_memory};

use super::census;
use super::claims::{RANGE, Range};
use super::ranges::Ranges;

#[test]
fn no_range_of_a_claim_panics_and_what_is_read_comes_back() {
    let valid = vec![Range { lot: [7; 16], from: 5, to: 900 }.encode().to_vec()];
    fuzz!("claims", &[], valid, |bytes: &[u8]| {
        if let Some((bytes, _)) = bytes.split_first_chunk::<RANGE>() {
            assert_eq!(Range::decode(bytes).encode(), *bytes);
        }
    });
}

/// What is read remains consistent, however often and with whatever else it is compared.
#[test]
fn no_census_panics_or_takes_more_memory_than_it_has_bytes() {
    let lot = |id: u8, ranges: &[(u64, u64)], held: u32| {
        let numbers: Vec<u8> =
            ranges.iter().flat_map(|(from, to)| [from.to_le_bytes(), to.to_le_bytes()].concat()).collect();
        [&[id; 16][..], &(ranges.len() as u32 | held).to_le_bytes(), &numbers].concat()
    };
    let valid = vec![
        lot(1, &[], 0),
        lot(2, &[(0, 5), (9, 12), (12, 20)], 1 << 31),
        [lot(3, &[(1, 2)], 1 << 31), lot(4, &[(0, u64::MAX)], 0)].concat(),
    ];
    fuzz!("censuses", &[], valid, |bytes: &[u8]| {
        within_memory((64 << 10) + 32 * bytes.len(), || {
            let Some(said) = census::read(bytes) else { return };
            let sets: Vec<Ranges> = said.into_values().map(|(_, spent)| spent).collect();
            for spent in &sets {
                assert!(spent.iter().all(|(from, to)| from < to && spent.meets(from, to)));
                assert!(spent.pieces() * 16 <= bytes.len());
                let left: u64 = spent.gaps(1000).map(|(from, to)| to - from).sum();
                assert!(left <= 1000 || spent.end() > 1000);
            }
            for least in 1..=sets.len().min(3) {
                let shared = Ranges::in_at_least(least, &sets);
                assert!(shared.end() <= sets.iter().map(Ranges::end).max().unwrap_or(0));
                assert!(least > 1 || sets.iter().all(|set| set.len() <= shared.len()));
            }
        });
    });
}
