//! The C library's own functions, behind those that this crate replaces.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use libc::{RTLD_NEXT, dlsym, nfds_t, off64_t, pollfd, pthread_attr_t, pthread_t, size_t, ssize_t, timespec};

/// What a thread begins with.
pub(crate) type Start = extern "C" fn(*mut c_void) -> *mut c_void;

macro_rules! real {
    ($($name:ident($($arg:ident: $kind:ty),*) -> $result:ty;)*) => { $(
        pub(crate) fn $name($($arg: $kind),*) -> $result {
            static FOUND: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            let mut found = FOUND.load(Relaxed);
            if found.is_null() {
                // SAFETY: the name ends with a zero.
                found = unsafe { dlsym(RTLD_NEXT, concat!(stringify!($name), "\0").as_ptr().cast()) };
                assert!(!found.is_null(), concat!("the C library has no ", stringify!($name)));
                FOUND.store(found, Relaxed);
            }
            // SAFETY: the C library's function of this name has this type. (Those that take a varying number
            // of arguments find them in the same registers, on x86-64 and on aarch64 under Linux.) Callers
            // pass on what they were called with, so what they were promised holds for this function, too.
            unsafe {
                let function = std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> $result>(found);
                function($($arg),*)
            }
        }
    )* };
}

real! {
    clock_gettime(clock: c_int, time: *mut timespec) -> c_int;
    clock_nanosleep(clock: c_int, flags: c_int, time: *const timespec, left: *mut timespec) -> c_int;
    nanosleep(time: *const timespec, left: *mut timespec) -> c_int;
    sched_yield() -> c_int;
    getpid() -> libc::pid_t;
    syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long;
    getrandom(bytes: *mut c_void, len: size_t, flags: u32) -> ssize_t;
    pthread_create(thread: *mut pthread_t, attributes: *const pthread_attr_t, start: Start, arg: *mut c_void) -> c_int;
    pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int;
    read(fd: c_int, bytes: *mut c_void, len: size_t) -> ssize_t;
    write(fd: c_int, bytes: *const c_void, len: size_t) -> ssize_t;
    readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t;
    writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t;
    close(fd: c_int) -> c_int;
    fcntl(fd: c_int, command: c_int, arg: usize) -> c_int;
    ioctl(fd: c_int, request: libc::c_ulong, arg: usize) -> c_int;
    poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int;
    ppoll(fds: *mut pollfd, count: nfds_t, timeout: *const timespec, signals: *const libc::sigset_t) -> c_int;
    pread64(fd: c_int, bytes: *mut c_void, len: size_t, at: off64_t) -> ssize_t;
    pwrite64(fd: c_int, bytes: *const c_void, len: size_t, at: off64_t) -> ssize_t;
    ftruncate64(fd: c_int, len: off64_t) -> c_int;
    fsync(fd: c_int) -> c_int;
    fdatasync(fd: c_int) -> c_int;
    open64(path: *const c_char, flags: c_int, mode: usize) -> c_int;
    openat64(at: c_int, path: *const c_char, flags: c_int, mode: usize) -> c_int;
    rename(from: *const c_char, to: *const c_char) -> c_int;
    unlink(path: *const c_char) -> c_int;
    linkat(at: c_int, from: *const c_char, to_at: c_int, to: *const c_char, flags: c_int) -> c_int;
}

/// Sets the number of the error that a function of the C library has met, and gives what it returns then.
pub(crate) fn fail(number: c_int) -> c_int {
    // SAFETY: the place is the calling thread's own.
    unsafe { *libc::__errno_location() = number };
    -1
}
