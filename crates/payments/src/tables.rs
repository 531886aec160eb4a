//! Small tables that several commands look up. None has more than 6 bits in and 4 bits out, so that all have
//! polynomials under Shamir's sharing.

use std::sync::Arc;

use polyclave_cipher::Table;

/// The table of a function on `ins` bits, the first bit most significant.
pub(crate) fn table(name: &str, ins: u8, outs: u8, f: impl Fn(u8) -> u8) -> Arc<Table> {
    assert!(ins <= 6 && outs <= 4, "table {name} has no polynomials");
    Arc::new(Table::new(name, ins, outs, (0..1 << ins).map(f).collect()))
}

/// 1 for a nibble over 9.
pub(crate) fn is_no_digit() -> Arc<Table> {
    let table = Table::new("no digit", 4, 1, (0..16).map(|x| u8::from(x > 9)).collect());
    // 8 and (4 or 2): 1 + (1 + 4)(1 + 2) = 4 or 2.
    Arc::new(table.with_gates(|g, [_, two, four, eight]| {
        let neither = g.nor(two, four);
        [g.and(eight, !neither)]
    }))
}

/// One bit and a nibble: the nibble if the bit is set, else 0.
pub(crate) fn kept_if() -> Arc<Table> {
    let entry = |x: u8| if x >> 4 == 1 { x & 15 } else { 0 };
    let table = Table::new("kept if", 5, 4, (0..32).map(entry).collect());
    Arc::new(table.with_gates(|g, [a, b, c, d, keep]| [a, b, c, d].map(|bit| g.and(keep, bit))))
}

/// The rest modulo 5 of the sum of two numbers below 5, three bits each.
pub(crate) fn sum_modulo_5() -> Arc<Table> {
    table("sum modulo 5", 6, 3, |x| ((x >> 3) + (x & 7)) % 5)
}

/// A digit as its parity (one bit) and its rest modulo 5 (three bits). Sums modulo 10 are sums of both apart.
pub(crate) fn residues(digit: u8) -> u8 {
    ((digit % 2) << 3) | (digit % 5)
}

/// [`residues`] of a nibble; of one over 9, of its value modulo 10.
pub(crate) fn to_residues() -> Arc<Table> {
    table("residues of a digit", 4, 4, |x| residues(x % 10))
}

/// The digit of [`residues`]. What is none gives 0.
pub(crate) fn from_residues() -> Arc<Table> {
    table("digit of residues", 4, 4, |x| (0..10).find(|d| residues(*d) == x).unwrap_or(0))
}
