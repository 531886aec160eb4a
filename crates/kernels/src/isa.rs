//! Which implementation of each kernel this processor can run.
//!
//! The standard library caches its CPUID queries; the choice made from them is cached here, so that a
//! kernel call costs one load for it. Variants are ordered from slowest to fastest.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static PORTABLE: AtomicBool = AtomicBool::new(false);

/// Has this process use the portable form of every kernel, as on a processor that has nothing else: for the
/// check of constant time and for measuring. To be called before the first kernel runs.
pub fn use_portable_forms() {
    PORTABLE.store(true, Ordering::Relaxed);
}

fn best_of<I: Ord>(available: Vec<I>, portable: I) -> I {
    let wanted = !PORTABLE.load(Ordering::Relaxed);
    available.into_iter().filter(|_| wanted).max().unwrap_or(portable)
}

/// Implementations of the byte-vector kernels, [`crate::affine`], [`crate::gf256`] and [`crate::cells`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Isa {
    /// 64-bit words.
    Portable,
    /// 32-byte vectors with nibble tables.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 64-byte vectors with the Galois field instructions.
    #[cfg(target_arch = "x86_64")]
    Avx512Gfni,
}

impl Isa {
    /// All that this processor runs, slowest first.
    pub(crate) fn available() -> Vec<Isa> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut found = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                found.push(Isa::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("gfni")
            {
                found.push(Isa::Avx512Gfni);
            }
        }
        found
    }

    /// The fastest that this processor runs.
    #[inline]
    pub(crate) fn best() -> Isa {
        static BEST: LazyLock<Isa> = LazyLock::new(|| best_of(Isa::available(), Isa::Portable));
        *BEST
    }
}

/// Implementations of the AES counter stream, [`crate::aes_prg`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AesIsa {
    /// The `aes` crate.
    Portable,
    /// One block a register.
    #[cfg(target_arch = "x86_64")]
    AesNi,
    /// Two blocks a register.
    #[cfg(target_arch = "x86_64")]
    Vaes256,
    /// Four blocks a register.
    #[cfg(target_arch = "x86_64")]
    Vaes512,
}

impl AesIsa {
    /// All that this processor runs, slowest first.
    pub(crate) fn available() -> Vec<AesIsa> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut found = vec![AesIsa::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("aes") && is_x86_feature_detected!("sse2") {
            found.push(AesIsa::AesNi);
            if is_x86_feature_detected!("vaes") && is_x86_feature_detected!("avx2") {
                found.push(AesIsa::Vaes256);
                if is_x86_feature_detected!("avx512f") {
                    found.push(AesIsa::Vaes512);
                }
            }
        }
        found
    }

    /// The fastest that this processor runs.
    #[inline]
    pub(crate) fn best() -> AesIsa {
        static BEST: LazyLock<AesIsa> = LazyLock::new(|| best_of(AesIsa::available(), AesIsa::Portable));
        *BEST
    }
}

/// Implementations of products in the larger fields, [`crate::gf128`], [`crate::words64`] and
/// [`crate::words128`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClmulIsa {
    /// Multiplication of integers.
    Portable,
    /// Registers of 16 bytes.
    #[cfg(target_arch = "x86_64")]
    Clmul,
    /// Registers of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    Vclmul256,
    /// Registers of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    Vclmul512,
}

impl ClmulIsa {
    /// All that this processor runs, slowest first.
    pub(crate) fn available() -> Vec<ClmulIsa> {
        #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
        let mut found = vec![ClmulIsa::Portable];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("pclmulqdq") && is_x86_feature_detected!("ssse3") {
            found.push(ClmulIsa::Clmul);
            if is_x86_feature_detected!("vpclmulqdq") && is_x86_feature_detected!("avx2") {
                found.push(ClmulIsa::Vclmul256);
                if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                    found.push(ClmulIsa::Vclmul512);
                }
            }
        }
        found
    }

    /// The fastest that this processor runs.
    #[inline]
    pub(crate) fn best() -> ClmulIsa {
        static BEST: LazyLock<ClmulIsa> =
            LazyLock::new(|| best_of(ClmulIsa::available(), ClmulIsa::Portable));
        *BEST
    }
}

/// The instruction sets the kernels use on this processor, such as `avx2+vaes`, `avx512+gfni+vaes` or
/// `portable`: for reports.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return match (Isa::best(), AesIsa::best()) {
        (Isa::Avx512Gfni, AesIsa::Vaes512 | AesIsa::Vaes256) => "avx512+gfni+vaes",
        (Isa::Avx512Gfni, AesIsa::AesNi) => "avx512+gfni+aesni",
        (Isa::Avx512Gfni, AesIsa::Portable) => "avx512+gfni",
        (Isa::Avx2, AesIsa::Vaes512 | AesIsa::Vaes256) => "avx2+vaes",
        (Isa::Avx2, AesIsa::AesNi) => "avx2+aesni",
        (Isa::Avx2, AesIsa::Portable) => "avx2",
        (Isa::Portable, AesIsa::Portable) => "portable",
        (Isa::Portable, _) => "aesni",
    };
    #[cfg(not(target_arch = "x86_64"))]
    "portable"
}
