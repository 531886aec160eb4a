//! Clocks and sleeps.

use std::ffi::c_int;
use std::time::Duration;

use libc::timespec;

use crate::machines::real;
use crate::machines::world::{self, Machine};

/// The first of January 2027, when simulations begin.
const BEGIN: i64 = 1_798_761_600;
/// What the clock that never jumps shows then.
const UP: i64 = 1_000;
const BILLION: u64 = 1_000_000_000;
/// After how many looks at a clock without a wait a moment passes, so that a loop that waits by looking ends.
const LOOKS: u32 = 1_000;
const MOMENT: u64 = 100_000;

/// How long the simulation has lasted.
pub fn elapsed() -> Duration {
    Duration::from_nanos(world::with(|world| world.now))
}

/// Lets the calling thread do nothing for a while.
pub fn sleep(duration: Duration) {
    sleep_until(world::with(|world| world.now) + duration.as_nanos() as u64);
}

/// Sets by how many seconds a machine's clock of the day is ahead.
pub fn set_skew(machine: Machine, seconds: i64) {
    world::with(|world| world.skews.insert(machine, seconds));
}

/// Lets a while pass by all clocks of the day, while all machines are suspended: for them no time passes.
pub fn suspend(duration: Duration) {
    world::with(|world| world.suspended += duration.as_secs() as i64);
}

/// Seconds since 1970 by a clock that is right.
pub fn seconds() -> u64 {
    world::with(|world| (BEGIN + world.suspended) as u64 + world.now / BILLION)
}

fn sleep_until(until: u64) {
    world::wait("sleep", Some(until), |_, _| {});
}

fn nanos(time: &timespec) -> u64 {
    (time.tv_sec.max(0) as u64).saturating_mul(BILLION).saturating_add(time.tv_nsec as u64)
}

/// The moment at which a time of a clock comes.
pub(crate) fn moment(clock: c_int, time: &timespec) -> u64 {
    let begin = match clock {
        libc::CLOCK_REALTIME => BEGIN + world::with(|world| ahead(world)),
        _ => UP,
    };
    nanos(time).saturating_sub(begin as u64 * BILLION)
}

/// The moment after a while from now.
pub(crate) fn after(time: &timespec) -> u64 {
    world::with(|world| world.now).saturating_add(nanos(time))
}

/// By how many seconds the clock of the day has gone further than the one that never jumps.
fn ahead(world: &world::World) -> i64 {
    world.suspended + world.skews.get(&world.machine()).copied().unwrap_or(0)
}

/// `clock_gettime`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int {
    if !world::is_inside() {
        return real::clock_gettime(clock, time);
    }
    let (now, ahead) = world::with(|world| {
        world.looks += 1;
        if world.looks > LOOKS {
            world.now += MOMENT;
        }
        (world.now, ahead(world))
    });
    let begin = match clock {
        libc::CLOCK_REALTIME | libc::CLOCK_REALTIME_COARSE => BEGIN + ahead,
        _ => UP,
    };
    let value = timespec { tv_sec: begin + (now / BILLION) as i64, tv_nsec: (now % BILLION) as i64 };
    // SAFETY: the caller gives room for a time.
    unsafe { time.write(value) };
    0
}

/// `nanosleep`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nanosleep(time: *const timespec, left: *mut timespec) -> c_int {
    if !world::is_inside() {
        return real::nanosleep(time, left);
    }
    // SAFETY: the caller gives a time.
    sleep_until(after(unsafe { &*time }));
    0
}

/// `clock_nanosleep`.
///
/// # Safety
///
/// As the C library's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_nanosleep(
    clock: c_int,
    flags: c_int,
    time: *const timespec,
    left: *mut timespec,
) -> c_int {
    if !world::is_inside() {
        return real::clock_nanosleep(clock, flags, time, left);
    }
    // SAFETY: the caller gives a time.
    let time = unsafe { &*time };
    sleep_until(if flags & libc::TIMER_ABSTIME != 0 { moment(clock, time) } else { after(time) });
    0
}
