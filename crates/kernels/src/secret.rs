//! Operations on secrets in constant time: masks that the compiler cannot turn into branches, comparisons,
//! and marks for a checker.
//!
//! **Masks.** `(x & 1).wrapping_neg()` is all ones or zero, and as written an AND with it has no branch. But
//! the compiler sees that the mask comes from one bit, understands the AND as a choice by that bit, and may
//! turn the choice into a branch; it did. So the bit passes through an empty piece of assembly first. For the
//! compiler the result could be any number, and an AND with it stays an AND. All masks of secret bits in this
//! workspace are made here: by [`mask`] if a row has one or few of them; by [`masks`] for a row of masks,
//! which with vector instructions costs less than a barrier for each.
//!
//! **Comparisons.** [`ct_eq`] looks at everything and returns only whether all is equal. The answer is
//! public, and marked as such. If it must stay secret, because a caller goes on in silence, use the type that
//! `subtle` has for it.
//!
//! **Marks** ([`mark_secret`], [`mark_public`], [`public`]) are for Valgrind's memcheck. Under it, secrets
//! count as uninitialised, and it reports every branch on them and every address made of them.
//! `crates/constant-time` runs this check. Elsewhere the marks take a few instructions and do nothing.

mod memcheck;
#[cfg(test)]
mod tests;

pub use memcheck::{is_secret, mark_public, mark_secret, public, reports};

use core::ops::{BitAnd, BitOr, BitXor};

/// An unsigned number, of which a mask can be made.
pub trait Number:
    Copy + Eq + Default + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self> + 'static
{
    /// A word's lowest bits; of a wider number both halves are the word.
    fn of_word(word: u64) -> Self;

    /// The lowest bits.
    fn low_word(self) -> u64;
}

macro_rules! number {
    ($($number:ty)*) => {$(
        impl Number for $number {
            #[inline(always)]
            fn of_word(word: u64) -> $number {
                word as $number
            }

            #[inline(always)]
            fn low_word(self) -> u64 {
                self as u64
            }
        }
    )*};
}

number!(u8 u16 u32 u64);

impl Number for u128 {
    #[inline(always)]
    fn of_word(word: u64) -> u128 {
        u128::from(word) << 64 | u128::from(word)
    }

    #[inline(always)]
    fn low_word(self) -> u64 {
        self as u64
    }
}

/// The lowest bit in all places: all ones or zero. The compiler does not know that it is one of the two.
#[inline(always)]
pub fn mask<N: Number>(bit: N) -> N {
    N::of_word(hidden(bit.low_word() & 1).wrapping_neg())
}

/// [`mask`] for constants, and for functions that also run in constants. It passes through memory, so it is
/// not for fast loops.
pub const fn const_mask(bit: u128) -> u128 {
    core::hint::black_box(bit & 1).wrapping_neg()
}

/// Sets `masks[i]` to the mask of `bit(i)`. The bits are written to memory first, and the compiler forgets
/// what it knew of them, so that all masks of the row are made with vector instructions.
#[inline(always)]
pub fn masks<N: Number>(masks: &mut [N], bit: impl Fn(usize) -> N) {
    masks.iter_mut().enumerate().for_each(|(i, mask)| *mask = spread(bit(i)));
    hide_row(masks);
}

/// The lowest bit in all places, without a barrier: only for values that are hidden from the compiler right
/// after.
#[inline(always)]
fn spread<N: Number>(bit: N) -> N {
    N::of_word((bit.low_word() & 1).wrapping_neg())
}

/// Whether two rows are equal. Looks at all of both if they have one length; that is public, and so is the
/// answer.
#[inline]
pub fn ct_eq<N: Number>(a: &[N], b: &[N]) -> bool {
    let difference = a.iter().zip(b).fold(N::default(), |sum, (a, b)| sum | (*a ^ *b));
    a.len() == b.len() && is_zero(&[difference])
}

/// Whether a row is zero. Looks at all of it; the answer is public.
#[inline]
pub fn is_zero<N: Number>(row: &[N]) -> bool {
    let sum = row.iter().fold(N::default(), |sum, x| sum | *x);
    public(sum) == N::default()
}

/// Returns the word unchanged, but the compiler forgets everything that it knows of it.
#[inline(always)]
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(unsafe_code))]
fn hidden(word: u64) -> u64 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut word = word;
        // SAFETY: there is no instruction in it.
        unsafe {
            core::arch::asm!("/* {0} */", inout(reg) word, options(pure, nomem, nostack, preserves_flags));
        }
        word
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    core::hint::black_box(word)
}

/// The same for a row in memory.
#[inline(always)]
#[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(unsafe_code))]
fn hide_row<N>(row: &mut [N]) {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    // SAFETY: there is no instruction in it. The compiler takes it that what the pointer leads to was
    // written.
    unsafe {
        core::arch::asm!("/* {0} */", in(reg) row.as_mut_ptr(), options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    core::hint::black_box(row);
}
