//! What key blocks call the purposes of payment keys (ASC X9 TR 31-2018, tables 6 and 7).

use polyclave_payments::Purpose;

/// The usage of a purpose, and the modes of use that a header may have with it; `None` if key blocks have no
/// usage for it.
pub(super) fn usage_of(purpose: &Purpose) -> Option<([u8; 2], &'static [u8])> {
    Some(match purpose {
        Purpose::PinEncryption => (*b"P0", b"BN"),
        Purpose::PinVerificationVisa => (*b"V2", b"CN"),
        Purpose::PinVerificationIbm3624 { .. } => (*b"V1", b"CN"),
        Purpose::CardVerification => (*b"C0", b"CN"),
        Purpose::MacRetail => (*b"M3", b"CN"),
        Purpose::MacCmac => (*b"M6", b"CN"),
        Purpose::MacCbc => (*b"M1", b"CN"),
        Purpose::DukptBase => (*b"B0", b"XN"),
        Purpose::DataEncryption => (*b"D0", b"BN"),
        Purpose::EmvCryptograms => (*b"E0", b"XN"),
        Purpose::EmvConfidentiality => (*b"E1", b"XN"),
        Purpose::EmvCvc3 => (*b"E4", b"XN"),
        Purpose::EmvDcvv => (*b"E6", b"XN"),
        Purpose::EmvIntegrity => (*b"E2", b"XN"),
        Purpose::Personalization => (*b"K0", b"EN"),
        _ => return None,
    })
}
