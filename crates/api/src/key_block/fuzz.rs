//! Fuzz targets: foreign bytes in place of a key block.

use polyclave_harness::{fuzz, within_memory};

use super::*;

/// What is parsed is written again as it came, so nothing in it was read in two ways or passed over.
#[test]
fn no_key_block_panics_and_what_is_parsed_is_all_of_it() {
    let block = |version: &str, optional: &str, count: &str, digits: usize| {
        let body: String = "0123456789ABCDEF".repeat(digits / 16);
        let length = HEADER + optional.len() + body.len();
        format!("{version}{length:04}D0AB00E{count}00{optional}{body}").into_bytes()
    };
    let valid = vec![
        block("D", "", "00", 128),
        block("B", "KS0800FFTS00020010ABCDEFPB08BBBB", "03", 80),
        block("D", "LB0CLABEL!!!PB04", "02", 96),
    ];
    fuzz!("key-blocks", &["B0", "D0", "00020010", "PB04", "FF", "c1"], valid, |bytes: &[u8]| {
        within_memory(16 * MAX_BLOCK, || {
            let Ok(parsed) = KeyBlock::parse(bytes) else { return };
            let hex =
                |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02X}")).collect::<String>().into_bytes();
            let again = [parsed.head.clone(), hex(&parsed.encrypted), hex(&parsed.mac)].concat();
            assert_eq!(again, bytes);
            assert!(parsed.head.len().is_multiple_of(parsed.version.block_bytes()));
        });
    });
}
