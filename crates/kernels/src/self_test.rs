//! Known-answer tests of the kernels, for the start of a program that computes with secrets.
//!
//! For every kernel that has a form of its own on this processor, the form that was chosen and its portable
//! twin compute an answer from fixed inputs, and both are compared with the answer that is known. FIPS 140-3
//! asks for such tests before a module computes (its pre-operational and conditional self-tests; ISO/IEC
//! 19790:2012, section 7.10). They are no claim of a validation.
//!
//! The answers of AES, GHASH and GF(2^8) that begin the list are those that their standards print. The others
//! are fingerprints of what the portable forms give, which this crate's tests hold to the definitions.

mod answers;
#[cfg(test)]
mod tests;

use core::fmt;

use crate::isa::{AesIsa, ClmulIsa, Isa};

/// Which form of each kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Forms {
    bytes: Isa,
    aes: AesIsa,
    clmul: ClmulIsa,
}

impl Forms {
    const PORTABLE: Forms = Forms { bytes: Isa::Portable, aes: AesIsa::Portable, clmul: ClmulIsa::Portable };

    /// What kernels use in this process.
    fn chosen() -> Forms {
        Forms { bytes: Isa::best(), aes: AesIsa::best(), clmul: ClmulIsa::best() }
    }
}

/// A kernel with its known answer.
struct KnownAnswer {
    /// The module of the kernel, and the function if there are several.
    kernel: &'static str,
    compute: fn(Forms) -> Vec<u8>,
    answer: Answer,
}

/// What a kernel has to compute.
enum Answer {
    /// These bytes, which a standard prints.
    Printed(&'static [u8]),
    /// Bytes with this [`fingerprint`].
    Fingerprint(u64),
}

impl Answer {
    fn is(&self, bytes: &[u8]) -> bool {
        match self {
            Answer::Printed(answer) => bytes == *answer,
            Answer::Fingerprint(answer) => fingerprint(bytes) == *answer,
        }
    }
}

/// A kernel computed something else than its known answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongAnswer {
    /// The module of the kernel, and the function if there are several.
    pub kernel: &'static str,
    /// Whether the portable form was wrong, and not the one for this processor.
    pub portable: bool,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.portable {
            true => "the portable form",
            false => "the form for this processor",
        };
        write!(
            f,
            "the self-test failed: {form} of the kernel {:?} computes a wrong answer ({}). Do not compute \
             with this machine: compare the program with the checksums of its release, test the machine's \
             memory and processor, and take another machine if they are at fault",
            self.kernel,
            crate::instruction_set()
        )
    }
}

impl core::error::Error for WrongAnswer {}

/// Tests every kernel in the form that this process uses, and its portable twin.
///
/// # Errors
/// If an answer is wrong. Nothing computed in this process is to be trusted then.
pub fn run() -> Result<(), WrongAnswer> {
    check(answers::ALL, Forms::chosen())
}

fn check(kernels: &[KnownAnswer], chosen: Forms) -> Result<(), WrongAnswer> {
    for KnownAnswer { kernel, compute, answer } in kernels {
        for forms in [chosen, Forms::PORTABLE] {
            if !answer.is(&compute(forms)) {
                return Err(WrongAnswer { kernel, portable: forms == Forms::PORTABLE });
            }
        }
    }
    Ok(())
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo): every byte and its place count. It uses no kernel. It is for
/// faults, not against an adversary.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
