//! Maps of F = GF(2^8) that the tower's records are made with.

use polyclave_field::Gf256;
use polyclave_kernels::affine::Map;

/// The map x -> x^(2^squarings).
pub(in crate::spdz) const fn frobenius(squarings: u32) -> Map {
    let (mut columns, mut i) = ([0; 8], 0);
    while i < 8 {
        columns[i] = power_of_two(1 << i, squarings);
        i += 1;
    }
    Map::new(columns)
}

const fn power_of_two(x: u8, squarings: u32) -> u8 {
    let (mut power, mut i) = (Gf256(x), 0);
    while i < squarings {
        power = power.times(power);
        i += 1;
    }
    power.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frobenius_maps_are_powers() {
        for squarings in 0..8 {
            assert!((0..=255).all(|x| frobenius(squarings).apply(x) == Gf256(x).pow(1 << squarings).0));
        }
    }
}
