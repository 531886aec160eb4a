//! One-time passwords from codes of HMAC: HOTP (RFC 4226, section 5) of a counter, and TOTP (RFC 6238,
//! section 4) of a time. The nodes compute the code of the counter, and this client cuts it to digits, in a
//! time that does not depend on them.

use std::hint::black_box;

use polyclave_cipher::hmac::Sha2;
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

use crate::operations::encrypt::KeyHandle;
use crate::{Error, Result};

/// Digits of a password (RFC 4226, section 5.3).
pub const OTP_DIGITS: std::ops::RangeInclusive<u8> = 6..=8;

/// The counter of TOTP at a time: whole periods since 1970, both in seconds. A period of 0 is one of 1.
pub fn totp_counter(seconds: u64, period: u64) -> u64 {
    seconds / period.max(1)
}

impl KeyHandle<'_> {
    /// The passwords of some counters, in their order, under a key for HMAC with SHA-256 or SHA-512: those
    /// are the hashes that RFC 6238 has beside SHA-1. They have 6 to 8 digits.
    pub fn one_time_passwords(&self, counters: &[u64], digits: u8) -> Result<Vec<Zeroizing<String>>> {
        if !OTP_DIGITS.contains(&digits) {
            let (least, most) = (OTP_DIGITS.start(), OTP_DIGITS.end());
            return Err(Error::Misuse(format!(
                "a one-time password has {least} to {most} digits, not {digits}"
            )));
        }
        let hash = self.hmac_hash()?;
        if hash == Sha2::Sha384 {
            return Err(Error::Misuse(format!(
                "one-time passwords are those of RFC 6238, with SHA-256 or SHA-512; the key '{}' has SHA-384",
                self.name()
            )));
        }
        let counters: Vec<[u8; 8]> = counters.iter().map(|counter| counter.to_be_bytes()).collect();
        let counters: Vec<&[u8]> = counters.iter().map(|counter| &counter[..]).collect();
        let codes = self.hmac(&counters, hash.hash_bytes())?;
        Ok(codes.iter().map(|code| one_time_password(code, digits)).collect())
    }
}

/// The password of a code of HMAC: the last digits of four bytes of the code, without the highest bit. The
/// last bits of the code say which bytes (RFC 4226, section 5.3).
pub fn one_time_password(code: &[u8], digits: u8) -> Zeroizing<String> {
    let offset = code.last().map_or(0, |last| last & 15);
    let mut number = Zeroizing::new(0u32);
    for (place, bytes) in (0u8..16).zip(code.windows(4)) {
        let here = bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        number.conditional_assign(&here, place.ct_eq(&offset));
    }
    *number &= u32::MAX >> 1;
    let mut password = Zeroizing::new(vec![0; usize::from(digits)]);
    for digit in password.iter_mut().rev() {
        // A division by a constant is a product.
        *digit = (*number % 10) as u8;
        *number /= 10;
    }
    // The compiler must not know that digits have four bits: then the upper bits of a character are those of
    // all digits, so nothing looks at more of it to see that it is one.
    for digit in black_box(&mut *password) {
        *digit = b'0' | *digit & 0x0f;
    }
    Zeroizing::new(str::from_utf8(&password).expect("digits").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4226, section 5.4.
    #[test]
    fn a_code_is_cut_as_in_the_example() {
        let code = hex::decode("1f8698690e02ca16618550ef7f19da8e945b555a").expect("hexadecimal");
        assert_eq!(*one_time_password(&code, 6), "872921");
        assert_eq!(*one_time_password(&code, 7), "7872921");
        assert_eq!(*one_time_password(&code, 8), "57872921");
    }

    /// RFC 4226, appendix D, from its table of codes: other offsets, and digits that begin with 0.
    #[test]
    fn codes_are_cut_at_every_offset() {
        for (code, password) in [
            ("cc93cf18508d94934c64b65d8ba7667fb7cde4b0", "755224"),
            ("75a48a19d4cbe100644e8ac1397eea747a2d33ab", "287082"),
            ("0bacb7fa082fef30782211938bc1c5e70416ff44", "359152"),
            ("66c28227d03a2d5529262ff016a1e6ef76557ece", "969429"),
            ("a904c900a64b35909874b33e61c5938a8e15ed1c", "338314"),
            ("a37e783d7b7233c083d4f62926c7a25f238d0316", "254676"),
            ("bc9cd28561042c83f219324d3c607256c03272ae", "287922"),
            ("a4fb960c0bc06e1eabb804e5b397cdc4b45596fa", "162583"),
            ("1b3c89f65e6c9e883012052823443f048b4332db", "399871"),
            ("1637409809a679dc698207310c8c7fc07290d9e5", "520489"),
        ] {
            assert_eq!(*one_time_password(&hex::decode(code).expect("hexadecimal"), 6), password);
        }
        let mut code = [0; 64];
        (code[15], code[18], code[63]) = (0xff, 7, 15);
        assert_eq!(*one_time_password(&code, 8), format!("{:08}", 0x7f00_0007u32 % 100_000_000));
        code[15] = 0;
        assert_eq!(*one_time_password(&code, 6), "000007");
    }

    #[test]
    fn the_counter_of_a_time_counts_whole_periods() {
        assert_eq!([59, 60, 1_111_111_109].map(|time| totp_counter(time, 30)), [1, 2, 37_037_036]);
        assert_eq!(totp_counter(7, 0), 7);
    }
}
