//! Children of this process, as `fork` makes them.

unsafe extern "C" {
    fn fork() -> i32;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    fn alarm(seconds: u32) -> u32;
    fn _exit(code: i32) -> !;
}

/// A child that waits for a lock for ever is ended after this time.
const PATIENCE_SECONDS: u32 = 120;

/// Forks. Gives the child's number in this process, and nothing in the child.
pub fn forked() -> Option<i32> {
    unsafe {
        let child = fork();
        assert!(child >= 0, "no child");
        if child == 0 {
            alarm(PATIENCE_SECONDS);
        }
        (child > 0).then_some(child)
    }
}

/// Ends a child, and nothing that its parent has.
pub fn ended(code: i32) -> ! {
    unsafe { _exit(code) }
}

/// Waits for the end of a child.
pub fn exit_code(child: i32) -> i32 {
    let status = status_of(child);
    assert_eq!(status & 0x7f, 0, "a signal ended the child");
    (status >> 8) & 0xff
}

/// Waits for the end of a child, and returns the signal that ended it; 0 if it exited.
pub fn ending_signal(child: i32) -> i32 {
    status_of(child) & 0x7f
}

fn status_of(child: i32) -> i32 {
    let mut status = 0;
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    status
}

/// What a function gives in a child of this process.
pub fn in_child(work: impl FnOnce() -> i32) -> i32 {
    match forked() {
        Some(child) => exit_code(child),
        None => ended(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or(99)),
    }
}
