//! Descriptions of the material in stock, for people.

use polyclave_api::StockLevel;

/// The levels of the stock: `aes 28 of 32 blocks, des 4 of 4 blocks`.
pub fn describe(stock: &[StockLevel]) -> String {
    let kinds: Vec<String> = stock
        .iter()
        .filter(|kind| kind.level > 0)
        .map(|kind| {
            let alone = stock.iter().filter(|other| other.ciphers == kind.ciphers).count() == 1;
            let what = if alone { String::new() } else { format!(" ({})", kind.kind) };
            format!("{}{what} {} of {} blocks", kind.ciphers, kind.blocks, kind.level)
        })
        .collect();
    kinds.join(", ")
}

/// Whether every kind is at its level.
pub fn is_full(stock: &[StockLevel]) -> bool {
    stock.iter().all(|kind| kind.blocks >= kind.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(kind: &str, ciphers: &str, blocks: u64, level: u64) -> StockLevel {
        StockLevel { kind: kind.into(), ciphers: ciphers.into(), blocks, level }
    }

    #[test]
    fn levels_are_told_by_cipher_and_by_kind_where_there_are_several() {
        let (aes, des) = (level("t8", "aes", 28, 32), level("t6", "des", 4, 4));
        assert_eq!(describe(&[aes.clone(), des.clone()]), "aes 28 of 32 blocks, des 4 of 4 blocks");
        let bits = level("bits", "aes", 1, 32);
        assert_eq!(describe(&[aes.clone(), bits]), "aes (t8) 28 of 32 blocks, aes (bits) 1 of 32 blocks");
        assert_eq!(describe(&[level("t6", "des", 0, 0)]), "");
        assert!(is_full(&[des]) && !is_full(&[aes]) && is_full(&[]));
    }
}
