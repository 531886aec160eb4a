//! Threads, and how they wait for each other.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use libc::{pthread_attr_t, pthread_key_t, pthread_t, timespec};

use crate::machines::clock;
use crate::machines::random::getrandom;
use crate::machines::real::{self, Start, fail};
use crate::machines::world::{self, TaskId};

/// How long a thread gives way for that yields, in nanoseconds: as long as the transport does so at most
/// before it sleeps. Threads that spin are most of the work otherwise.
const YIELD: u64 = 50_000;

/// What a new thread needs to know.
struct Beginning {
    task: TaskId,
    baton: &'static AtomicU32,
    start: Start,
    arg: *mut c_void,
}

/// `pthread_create`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: Start,
    arg: *mut c_void,
) -> c_int {
    if !world::is_inside() {
        return real::pthread_create(thread, attributes, start, arg);
    }
    let (task, baton) = world::add_task();
    let beginning = Box::into_raw(Box::new(Beginning { task, baton, start, arg }));
    let made = real::pthread_create(thread, attributes, begin, beginning.cast());
    assert!(made == 0, "no thread for a simulation: error {made}");
    // SAFETY: it was written by the call above.
    world::note_thread(task, unsafe { *thread });
    0
}

extern "C" fn begin(beginning: *mut c_void) -> *mut c_void {
    let beginning = beginning.cast::<Beginning>();
    // SAFETY: it comes from the call above.
    let (task, baton) = unsafe { ((*beginning).task, (*beginning).baton) };
    // No memory is taken or given back before it is its turn.
    world::begin_task(task, baton);
    // SAFETY: it comes from the call above, once.
    let Beginning { start, arg, .. } = *unsafe { Box::from_raw(beginning) };
    // SAFETY: the key was made.
    unsafe { libc::pthread_setspecific(key(), std::ptr::dangling::<c_void>()) };
    start(arg)
}

/// Ends the task of a thread when everything else of it has ended, destructors of its variables too.
fn key() -> pthread_key_t {
    extern "C" fn end(_: *mut c_void) {
        world::end_task();
    }
    static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
    let mut key = KEY.load(Ordering::Acquire);
    if key == u32::MAX {
        // SAFETY: it has room for a key. (Two threads at once would make a key too many, which does no harm.)
        let made = unsafe { libc::pthread_key_create(&mut key, Some(end)) };
        assert!(made == 0, "no key for a simulation: error {made}");
        KEY.store(key, Ordering::Release);
    }
    key
}

/// `pthread_join`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_join(thread: pthread_t, result: *mut *mut c_void) -> c_int {
    if world::is_inside() {
        world::join_task(thread);
    }
    real::pthread_join(thread, result)
}

/// `pthread_setname_np`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(_: pthread_t, name: *const std::ffi::c_char) -> c_int {
    if world::is_inside() {
        // SAFETY: the caller gives a text.
        world::name_task(&unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy());
    }
    0
}

/// `getpid`: the same in each run.
#[unsafe(no_mangle)]
pub extern "C" fn getpid() -> libc::pid_t {
    if world::is_inside() { 1 } else { real::getpid() }
}

/// `sched_yield`.
#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> c_int {
    if !world::is_inside() {
        return real::sched_yield();
    }
    let until = world::with(|world| world.now) + YIELD;
    world::wait("yield", Some(until), |_, _| {});
    0
}

/// `syscall`, of which the futex is simulated: locks wait by it.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    if !world::is_inside() {
        return real::syscall(number, a, b, c, d, e, f);
    }
    match number {
        // SAFETY: the caller promises what the call needs.
        libc::SYS_futex => unsafe { futex(a, b as c_int, c as u32, d) },
        // SAFETY: as above.
        libc::SYS_getrandom => unsafe { getrandom(a as *mut c_void, b, c as u32) as c_long },
        _ => real::syscall(number, a, b, c, d, e, f),
    }
}

unsafe fn futex(address: usize, operation: c_int, value: u32, fourth: usize) -> c_long {
    let command = operation & !(libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME);
    match command {
        libc::FUTEX_WAIT | libc::FUTEX_WAIT_BITSET => {
            // SAFETY: the address is that of a lock of the caller.
            let there = unsafe { &*(address as *const AtomicU32) };
            if there.load(Ordering::SeqCst) != value {
                return c_long::from(fail(libc::EAGAIN));
            }
            // SAFETY: the caller gives a time or nothing.
            let time = unsafe { (fourth as *const timespec).as_ref() };
            let until = time.map(|time| match command {
                libc::FUTEX_WAIT => clock::after(time),
                _ if operation & libc::FUTEX_CLOCK_REALTIME != 0 => clock::moment(libc::CLOCK_REALTIME, time),
                _ => clock::moment(libc::CLOCK_MONOTONIC, time),
            });
            let woken = world::wait("lock", until, |world, me| {
                world.futexes.entry(address).or_default().push_back(me);
            });
            if woken {
                return 0;
            }
            world::with(|world| {
                let me = world.running();
                if let Some(queue) = world.futexes.get_mut(&address) {
                    queue.retain(|task| *task != me);
                }
            });
            c_long::from(fail(libc::ETIMEDOUT))
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => world::with(|world| {
            let mut woken = 0;
            while woken < value as c_long {
                let Some(queue) = world.futexes.get_mut(&address) else { break };
                let Some(task) = queue.pop_front() else {
                    world.futexes.remove(&address);
                    break;
                };
                woken += c_long::from(world.wake(task));
            }
            woken
        }),
        _ => panic!("a futex operation that is not simulated: {operation}"),
    }
}
