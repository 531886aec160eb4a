//! Marks for Valgrind's memcheck, which tell it what is secret (Langley's ctgrind; BoringSSL and others do
//! the same).
//!
//! Memcheck follows every uninitialised bit through the program, and reports each branch on such a bit and
//! each address made of it. These are exactly the things that must not happen to a secret. A mark is
//! a *client request* (`valgrind.h`, amd64 Linux): rotations that add up to a whole turn, and an exchange of
//! a register with itself. Valgrind recognises them when it translates the program; elsewhere they change
//! nothing. They are compiled into every build, so the program that is checked is the one that is shipped. On
//! other machines the functions only hide values from the compiler.

/// Makes memcheck treat these bytes as secret.
#[inline]
pub fn mark_secret<T>(row: &mut [T]) {
    request(MAKE_UNDEFINED, [address(row.as_ptr()), size_of_val(row) as u64, 0]);
}

/// Makes memcheck treat these bytes as public. Say at the call why they are.
#[inline]
pub fn mark_public<T>(row: &[T]) {
    request(MAKE_DEFINED, [address(row.as_ptr()), size_of_val(row) as u64, 0]);
}

/// [`mark_public`] for a value, such as the result of a check, or a message that everybody was sent.
#[inline]
pub fn public<T: Copy>(value: T) -> T {
    let mut value = core::hint::black_box(value);
    request(MAKE_DEFINED, [address(&raw mut value), size_of::<T>() as u64, 0]);
    core::hint::black_box(value)
}

/// Whether memcheck treats any bit of these bytes as secret. Never without Valgrind.
pub fn is_secret<T>(row: &[T]) -> bool {
    let mut marks = vec![0_u8; size_of_val(row)];
    let [bytes, to] = [row.as_ptr().cast::<u8>(), marks.as_mut_ptr().cast_const()];
    request(GET_MARKS, [address(bytes), address(to), marks.len() as u64]);
    core::hint::black_box(&mut marks).iter().any(|mark| *mark != 0)
}

/// How many mistakes memcheck has reported so far; `None` if the program does not run under Valgrind.
pub fn reports() -> Option<u64> {
    (request(RUNNING_ON_VALGRIND, [0; 3]) != 0).then(|| request(COUNT_ERRORS, [0; 3]))
}

const RUNNING_ON_VALGRIND: u64 = 0x1001;
const COUNT_ERRORS: u64 = 0x1201;
/// The requests of memcheck. They begin with its letters, M and C.
const MAKE_UNDEFINED: u64 = 0x4d43_0001;
const MAKE_DEFINED: u64 = 0x4d43_0002;
const GET_MARKS: u64 = 0x4d43_0008;

/// For Valgrind, which may read and write what lies there.
#[inline(always)]
fn address<T>(start: *const T) -> u64 {
    start.expose_provenance() as u64
}

/// What Valgrind answers; 0 without it.
#[inline(always)]
#[cfg_attr(all(target_arch = "x86_64", target_os = "linux"), allow(unsafe_code))]
fn request(request: u64, arguments: [u64; 3]) -> u64 {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    {
        let [first, second, third] = arguments;
        let arguments = [request, first, second, third, 0, 0];
        let mut answer = 0_u64;
        // SAFETY: rdi is turned by 3 + 13 + 61 + 51 = 128 bits, which leaves it as it was, and so does the
        // exchange of rbx with itself. Under Valgrind rdx is the answer; what is written there is in memory
        // of the callers' above.
        unsafe {
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") arguments.as_ptr(),
                inout("rdx") answer,
                options(nostack),
            );
        }
        answer
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    {
        let _ = (request, arguments);
        0
    }
}
