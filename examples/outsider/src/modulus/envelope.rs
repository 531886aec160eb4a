//! RSA encryption with PKCS#1 v1.5 padding (RFC 8017, section 7.2) of a random key that is shared and stays
//! so.
//!
//! The padded message is EM = 00 02 PS 00 K, as a number; c = EM^e mod N with e = 65537.
//!
//! * **K**: bit i is the XOR of bit i of the parts of all sets. Each part's bit is shared modulo N by its
//!   set; x XOR y = x + y - 2xy joins two. The same parts, as bytes, are what the nodes make the shared AES
//!   key of (`circuits.rs`).
//! * **PS** must have no zero byte. Each set's part has so few bits in every byte that the bytes of all
//!   parts, and 1, add up to 255 at most: no carries, no zeros, and the sum of shared numbers costs nothing.
//!   So PS is not uniform on its 255 values for each byte: to whoever knows all parts but one a byte has 2^w
//!   values, equally likely, w = 6 for three or four sets; 2048 bits of N leave 237 such bytes, 1422 bits.
//!   The format asks for bytes "generated pseudo-randomly", without zeros. Nobody learns PS but the receiver.
//! * **EM^e**: 16 squarings, and a product that is opened: c, which is public.
//!
//! **Costs**, for the four sets of n = 4, t = 1: 3 * 128 products in 2 rounds, 16 in 16, and one opening.
//!
//! RSA with this padding is no secure encryption against receivers that tell others whether a padding was
//! right (Bleichenbacher, CRYPTO 1998): the receiver decrypts for itself and does not answer. It is chosen
//! because everything understands it.

use polyclave_protocol::Result;
use polyclave_protocol::net::Net;
use zeroize::Zeroizing;

use super::arithmetic::Arithmetic;
use super::ring::{Residue, add, multiply, subtract};

/// Bytes of a key: AES-128.
pub const KEY_BYTES: usize = 16;
/// The name of K's parts ([`super::Parts::of`]).
pub const KEY: &str = "key";
/// The name of PS's parts.
const PADDING: &str = "padding";
/// Of the public exponent 2^16 + 1.
const SQUARINGS: usize = 16;

/// The encryption of K, of which this party has parts under the name [`KEY`]. 19 rounds for three or four
/// sets.
pub fn encrypt(at: &mut Arithmetic<'_>, net: &mut dyn Net) -> Result<Vec<u8>> {
    let em = encoded(at, net)?;
    let mut power = em.clone();
    for _ in 0..SQUARINGS {
        power = at.multiply(&[(&power, &power)], net)?.remove(0);
    }
    let c = at.open_product(&power, &em, net)?;
    Ok(at.ring().to_bytes(&c))
}

/// Shares of EM.
fn encoded(at: &mut Arithmetic<'_>, net: &mut dyn Net) -> Result<Residue> {
    let (ring, sets) = (at.ring(), at.sets());
    let len = ring.bytes() - KEY_BYTES - 3;
    let width = padding_bits(sets.len());
    let mut em = public_part(at, len);
    for (held, (_, mut part)) in at.parts(PADDING, len).into_iter().enumerate() {
        part.iter_mut().for_each(|byte| *byte &= (1 << width) - 1);
        // Behind it come a zero and K.
        let mut number = Zeroizing::new(vec![0; ring.bytes()]);
        number[2..2 + len].copy_from_slice(&part);
        em = add(&em, &at.share_of_part(held, &ring.number(&number)));
    }
    let two = ring.small(2);
    let key = key_bits(at, net)?.into_iter().reduce(|number, bit| add(&multiply(&number, &two), &bit));
    Ok(add(&em, &key.expect("a key has bits")))
}

/// 00 02 01 .. 01 00 and zeros for K: known to all, so shared by a constant polynomial.
fn public_part(at: &Arithmetic<'_>, len: usize) -> Residue {
    let mut number = vec![0; at.ring().bytes()];
    number[1] = 2;
    number[2..2 + len].fill(1);
    at.ring().number(&number)
}

/// How many bits a part of a byte has, for so many sets: the most with which all parts and 1 fit a byte.
fn padding_bits(sets: usize) -> u32 {
    (254 / sets + 1).ilog2()
}

/// Shares of the bits of K, the most significant first.
fn key_bits(at: &mut Arithmetic<'_>, net: &mut dyn Net) -> Result<Vec<Residue>> {
    let parts = at.parts(KEY, KEY_BYTES);
    let bits_of = |held: Option<usize>| -> Vec<Residue> {
        let share = |i: usize| match held {
            Some(held) => at.share_of_part(held, &at.ring().bit(parts[held].1[i / 8] >> (7 - i % 8))),
            // f_A is 0 here.
            None => at.ring().zero(),
        };
        (0..8 * KEY_BYTES).map(share).collect()
    };
    let mut numbers: Vec<Vec<Residue>> = at.sets().into_iter().map(bits_of).collect();
    let two = at.ring().small(2);
    while numbers.len() > 1 {
        let left = if numbers.len() % 2 == 1 { numbers.pop() } else { None };
        let pairs: Vec<(&Residue, &Residue)> =
            numbers.chunks(2).flat_map(|pair| pair[0].iter().zip(&pair[1])).collect();
        let products = at.multiply(&pairs, net)?;
        let sums = pairs.iter().zip(&products);
        let sums: Vec<Residue> =
            sums.map(|((x, y), product)| subtract(&add(x, y), &multiply(product, &two))).collect();
        numbers = sums.chunks(8 * KEY_BYTES).map(<[Residue]>::to_vec).chain(left).collect();
    }
    Ok(numbers.remove(0))
}
