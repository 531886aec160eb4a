//! The constants of the hashes: beginnings of the fractional parts of roots of primes.

use std::sync::LazyLock;

/// The first 64 bits of the fractional parts of the cube roots of the first primes: the constants of rounds
/// (FIPS 180-4, section 4.2.3), 80 of them. Those of words of 32 bits are the first halves (4.2.2).
pub(super) fn of_rounds() -> impl Iterator<Item = u64> {
    static ALL: LazyLock<Vec<u64>> =
        LazyLock::new(|| primes().map(|prime| fraction_of_root(prime, 3)).take(80).collect());
    ALL.iter().copied()
}

/// The same of the square roots of the first primes. SHA-512 begins with the first eight (5.3.5), SHA-256
/// with their halves (5.3.3), SHA-384 with the next eight (5.3.4).
pub(super) fn of_states() -> impl Iterator<Item = u64> {
    primes().map(|prime| fraction_of_root(prime, 2))
}

fn primes() -> impl Iterator<Item = u32> {
    (2u32..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0))
}

/// The first 64 bits behind the point of a root below 16: the root times 2^64 is the largest number whose
/// power is at most the prime times that power of 2^64.
fn fraction_of_root(prime: u32, power: usize) -> u64 {
    let root = (0..68).rev().map(|i| 1 << i).fold(0, |root: u128, bit: u128| {
        let candidate = limbs(root | bit);
        let product = (1..power).fold(candidate.to_vec(), |product, _| multiplied(&product, &candidate));
        // The whole part stands above as many limbs as the fraction has. A root of a prime is never whole.
        if product[2 * power] < prime { root | bit } else { root }
    });
    root as u64
}

/// Below 2^96, the lowest limb first.
fn limbs(number: u128) -> [u32; 3] {
    [0, 32, 64].map(|at| (number >> at) as u32)
}

fn multiplied(x: &[u32], y: &[u32]) -> Vec<u32> {
    let mut product = vec![0; x.len() + y.len()];
    for (i, x) in x.iter().enumerate() {
        let mut carry = 0;
        for (j, y) in y.iter().enumerate() {
            let sum = u64::from(product[i + j]) + u64::from(*x) * u64::from(*y) + carry;
            product[i + j] = sum as u32;
            carry = sum >> 32;
        }
        product[i + y.len()] = carry as u32;
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_the_standard() {
        let of_rounds: Vec<u64> = of_rounds().take(80).collect();
        assert_eq!(
            [of_rounds[0], of_rounds[1], of_rounds[63], of_rounds[79]],
            [0x428a_2f98_d728_ae22, 0x7137_4491_23ef_65cd, 0xc671_78f2_e372_532b, 0x6c44_198c_4a47_5817]
        );
        let of_states: Vec<u64> = of_states().take(16).collect();
        assert_eq!(
            [of_states[0], of_states[7], of_states[8], of_states[15]],
            [0x6a09_e667_f3bc_c908, 0x5be0_cd19_137e_2179, 0xcbbb_9d5d_c105_9ed8, 0x47b5_481d_befa_4fa4]
        );
    }
}
