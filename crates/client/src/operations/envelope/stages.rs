//! Input and output on the caller's thread, and what is computed in between on another, over a few buffers
//! that go round.
//!
//! Streams of callers may do anything, also fork. The child has neither the other thread nor any use for its
//! work, and must not wait for it.

use std::io::Read;
use std::sync::mpsc::sync_channel;
use std::{mem, panic, thread};

use polyclave_kernels::process::Process;
use zeroize::Zeroizing;

use super::chunks::{CHUNK, TAG, refuse_child};
use crate::{Error, Result};

/// Buffers that go round.
const BUFFERS: usize = 4;

/// A chunk on its way.
pub(super) type Buffer = Zeroizing<Vec<u8>>;

/// Has `fill` fill buffers until it returns that no more follow, `work` change them with `state`, which is
/// told whether one is the last, and `drain` take them, in order. Returns the state. `fill` and `drain` run
/// on this thread, `work` on one of its own.
pub(super) fn run<S: Send + 'static>(
    state: S,
    fill: &mut dyn FnMut(&mut Buffer) -> Result<bool>,
    work: impl Fn(&mut S, &mut Buffer, bool) -> Result<()> + Send + 'static,
    drain: &mut dyn FnMut(&Buffer) -> Result<()>,
) -> Result<S> {
    let process = Process::current();
    // There is room for all buffers in both.
    let (filled, to_work) = sync_channel::<(Buffer, bool)>(BUFFERS);
    let (worked, to_drain) = sync_channel::<Buffer>(BUFFERS);
    let worker = thread::spawn(move || {
        let mut state = state;
        for (mut buffer, last) in to_work {
            work(&mut state, &mut buffer, last)?;
            // Nobody waits for it if the other stages have failed.
            let _ = worked.send(buffer);
        }
        Ok(state)
    });
    let outcome = (|| {
        let mut empty: Vec<Buffer> =
            (0..BUFFERS).map(|_| Zeroizing::new(Vec::with_capacity(CHUNK + TAG))).collect();
        let mut more = true;
        // Either channel ends early only if the worker has failed.
        while more || empty.len() < BUFFERS {
            let drained = match empty.is_empty() || !more {
                true => to_drain.recv().ok(),
                false => to_drain.try_recv().ok(),
            };
            if let Some(buffer) = drained {
                drain(&buffer)?;
                empty.push(buffer);
            } else if more && let Some(mut buffer) = empty.pop() {
                buffer.clear();
                more = fill(&mut buffer)?;
                refuse_child(process)?;
                if filled.send((buffer, !more)).is_err() {
                    break;
                }
            } else {
                break;
            }
            refuse_child(process)?;
        }
        Ok(())
    })();
    if let Err(error) = refuse_child(process) {
        // The worker may have held a lock of the channels when the process was forked.
        mem::forget((filled, to_drain, worker));
        return Err(error);
    }
    drop(filled);
    let worked = worker.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
    outcome.and(worked)
}

/// An input that is read one byte ahead, so that its end is known in time.
pub(super) struct Ahead<'r> {
    input: &'r mut dyn Read,
    next: Option<u8>,
}

impl<'r> Ahead<'r> {
    pub(super) fn new(input: &'r mut dyn Read) -> Ahead<'r> {
        Ahead { input, next: None }
    }

    /// Fills an empty buffer with as many bytes, or with fewer at the end. Returns whether more follow.
    pub(super) fn fill(&mut self, buffer: &mut Buffer, bytes: usize) -> Result<bool> {
        buffer.extend(self.next.take());
        let missing = (bytes - buffer.len()) as u64;
        (&mut *self.input).take(missing).read_to_end(buffer).map_err(Error::reading)?;
        let mut next = [0];
        if buffer.len() == bytes && self.input.take(1).read(&mut next).map_err(Error::reading)? == 1 {
            self.next = Some(next[0]);
        }
        Ok(self.next.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_arrive_in_order_and_only_the_last_is_short() {
        for len in [0, 1, 9, 10, 11, 200] {
            let all: Vec<u8> = (0..len).collect();
            let (mut input, mut lengths, mut came) = (&all[..], Vec::new(), Vec::new());
            let mut ahead = Ahead::new(&mut input);
            let work = |lasts: &mut Vec<bool>, buffer: &mut Buffer, last| {
                buffer.iter_mut().for_each(|byte| *byte ^= 0xff);
                lasts.push(last);
                Ok(())
            };
            let mut drain = |buffer: &Buffer| {
                lengths.push(buffer.len());
                came.extend(buffer.iter().map(|byte| byte ^ 0xff));
                Ok(())
            };
            let lasts = run(Vec::new(), &mut |buffer| ahead.fill(buffer, 10), work, &mut drain);
            let lasts = lasts.expect("nothing fails");
            assert_eq!(came, all);
            assert!(
                lasts.len() == lengths.len() && lasts.iter().position(|last| *last) == Some(lasts.len() - 1)
            );
            let (last, full) = lengths.split_last().expect("at least one");
            assert!(full.iter().all(|len| *len == 10) && (*last > 0 || len == 0), "{lengths:?}");
        }
    }

    #[test]
    fn an_error_of_any_stage_ends_all() {
        let failed = || Err(Error::Misuse("it failed".into()));
        let mut endless = |_: &mut Buffer| Ok(true);
        assert!(run((), &mut endless, |_, _, _| Ok(()), &mut |_| failed()).is_err());
        assert!(run((), &mut endless, move |_, _, _| failed(), &mut |_| Ok(())).is_err());
        assert!(
            run((), &mut |_| Err(Error::Misuse("it failed".into())), |_, _, _| Ok(()), &mut |_| Ok(()))
                .is_err()
        );
    }
}
