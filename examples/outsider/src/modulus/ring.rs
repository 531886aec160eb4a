//! Numbers modulo N, in Montgomery form: constant time, wiped on drop. (Temporaries inside of the library are
//! not wiped.)

use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Odd, Resize};
use polyclave_protocol::{Error, Party, Result};
use zeroize::Zeroizing;

/// A number modulo N.
pub type Residue = Zeroizing<BoxedMontyForm>;

/// The least and the most bits of a modulus.
const BITS: std::ops::RangeInclusive<u32> = 2048..=4096;
/// Differences of points are products of these.
const SMALL_PRIMES: [u8; 4] = [2, 3, 5, 7];

/// The numbers modulo one N.
pub struct Ring {
    params: BoxedMontyParams,
    bytes: usize,
}

impl Ring {
    /// Modulo the number with these bytes, the most significant first and not 0.
    pub fn new(modulus: &[u8]) -> Result<Ring> {
        let n = BoxedUint::from_be_slice_vartime(modulus);
        let bits = n.bit_width_vartime();
        if !BITS.contains(&bits) || bits as usize != 8 * modulus.len() || !bits.is_multiple_of(64) {
            return Err(Error::Misuse(format!(
                "the receiver's modulus has {bits} bits; it needs {} to {}, a multiple of 64",
                BITS.start(),
                BITS.end()
            )));
        }
        let remainder =
            |prime: u8| modulus.iter().fold(0, |r, byte| (256 * r + u32::from(*byte)) % u32::from(prime));
        let odd = Option::<Odd<BoxedUint>>::from(Odd::new(n));
        match odd.filter(|_| SMALL_PRIMES.into_iter().all(|prime| remainder(prime) != 0)) {
            Some(odd) => Ok(Ring { params: BoxedMontyParams::new_vartime(odd), bytes: modulus.len() }),
            None => Err(Error::misuse("the receiver's modulus has a factor below 10: it is no RSA modulus")),
        }
    }

    /// Bytes of N.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn bits(&self) -> u32 {
        8 * self.bytes as u32
    }

    /// 0.
    pub fn zero(&self) -> Residue {
        Zeroizing::new(BoxedMontyForm::zero(&self.params))
    }

    /// A small number, which may be negative.
    pub fn small(&self, number: i64) -> Residue {
        let size = BoxedUint::from(number.unsigned_abs()).resize(self.bits());
        let size = Zeroizing::new(BoxedMontyForm::new(size, &self.params));
        if number < 0 { Zeroizing::new(size.neg()) } else { size }
    }

    /// A secret bit.
    pub fn bit(&self, bit: u8) -> Residue {
        Zeroizing::new(BoxedMontyForm::new(BoxedUint::from(bit & 1).resize(self.bits()), &self.params))
    }

    /// The number with these bytes, the most significant first; as many as N has, and less than N.
    pub fn number(&self, bytes: &[u8]) -> Residue {
        let number = BoxedUint::from_be_slice(bytes, self.bits()).expect("as many bytes as N has");
        Zeroizing::new(BoxedMontyForm::new(number, &self.params))
    }

    /// The quotient of two small public numbers; the second one is a product of differences of points.
    pub fn quotient(&self, numerator: i64, denominator: i64) -> Residue {
        let inverse = Option::<BoxedMontyForm>::from(self.small(denominator).invert());
        let inverse = inverse.expect("N has no factor in common with differences of points");
        Zeroizing::new(self.small(numerator).mul(&inverse))
    }

    /// A uniform number, from a source of uniform bytes. What is no number below N is drawn again: whether
    /// that happens does not depend on the number that is returned, and every member of a set does it alike.
    pub fn uniform(&self, mut draw: impl FnMut(&mut [u8])) -> Residue {
        let mut bytes = Zeroizing::new(vec![0; self.bytes]);
        loop {
            draw(&mut bytes);
            // A uniform number stays one if it is taken for a Montgomery form.
            if let Some(residue) = self.residue_of(&bytes) {
                return residue;
            }
        }
    }

    /// Appends what goes over the network: the Montgomery form, which is the same at all parties.
    pub fn write(&self, residue: &Residue, message: &mut Vec<u8>) {
        message.extend_from_slice(&Zeroizing::new(residue.as_montgomery().to_be_bytes().into_vec()));
    }

    /// Reads what a party has written.
    pub fn read(&self, bytes: &[u8], from: Party) -> Result<Residue> {
        let message = "a share that is no number modulo N";
        self.residue_of(bytes).ok_or_else(|| Error::Peer { peer: from, detail: message.into() })
    }

    fn residue_of(&self, bytes: &[u8]) -> Option<Residue> {
        let number = BoxedUint::from_be_slice(bytes, self.bits()).ok()?;
        (number < **self.params.modulus())
            .then(|| Zeroizing::new(BoxedMontyForm::from_montgomery(number, &self.params)))
    }

    /// A public number in as many bytes as N has, the most significant first.
    pub fn to_bytes(&self, public: &Residue) -> Vec<u8> {
        public.retrieve().to_be_bytes().into_vec()
    }
}

/// x + y.
pub fn add(x: &Residue, y: &Residue) -> Residue {
    Zeroizing::new((**x).add(y))
}

/// x - y.
pub fn subtract(x: &Residue, y: &Residue) -> Residue {
    Zeroizing::new((**x).sub(y))
}

/// x y.
pub fn multiply(x: &Residue, y: &Residue) -> Residue {
    Zeroizing::new((**x).mul(y))
}
