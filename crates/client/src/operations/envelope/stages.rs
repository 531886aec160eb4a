//! Two stages that work beside each other, over a few buffers that go round between them.
//!
//! Streams of callers may do anything, also fork. The child has only the thread that forked, so it would wait
//! for the other stage for ever. It ends instead.

use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::sync::mpsc::sync_channel;
use std::{panic, process, thread};

use polyclave_kernels::process::Process;
use zeroize::Zeroizing;

use super::chunks::{CHUNK, TAG};
use crate::{Error, Result};

/// Buffers that go round.
const BUFFERS: usize = 4;

/// A chunk on its way.
pub(super) type Buffer = Zeroizing<Vec<u8>>;

/// Has `fill` fill buffers until it returns that no more follow, and `drain` take them, in order, on a thread
/// of its own. A child that is forked in either ends.
pub(super) fn run(
    fill: &mut dyn FnMut(&mut Buffer) -> Result<bool>,
    drain: &mut (dyn FnMut(&Buffer) -> Result<()> + Send),
) -> Result<()> {
    let process = Process::current();
    let (full, filled) = sync_channel::<Buffer>(BUFFERS);
    let (empty, emptied) = sync_channel::<Buffer>(BUFFERS);
    for _ in 0..BUFFERS {
        // There is room for all of them.
        let _ = empty.send(Zeroizing::new(Vec::with_capacity(CHUNK + TAG)));
    }
    thread::scope(|scope| {
        let drained = scope.spawn(move || {
            for buffer in filled {
                let drained = drain(&buffer);
                end_child(process);
                drained?;
                // Nobody waits for it after the last one.
                let _ = empty.send(buffer);
            }
            Ok(())
        });
        let filled = (|| {
            // Either channel ends early only if the other stage has failed.
            while let Ok(mut buffer) = emptied.recv() {
                buffer.clear();
                let more = fill(&mut buffer);
                end_child(process);
                let more = more?;
                if full.send(buffer).is_err() || !more {
                    break;
                }
            }
            Ok(())
        })();
        drop(full);
        let drained = drained.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        filled.and(drained)
    })
}

/// Ends a child of this process, with a message. No lock is taken for it: a thread of the parent may have
/// held that of standard error.
fn end_child(parent: Process) {
    if parent.is_current() {
        return;
    }
    if let Ok(mut stderr) = OpenOptions::new().append(true).open("/dev/stderr") {
        let _ = stderr.write_all(
            b"error: this process was forked while its parent wrote or read a file in an envelope. Only the \
              parent can go on with the file, so this process ends\n",
        );
    }
    process::abort();
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
            run(&mut |buffer| ahead.fill(buffer, 10), &mut |buffer| {
                lengths.push(buffer.len());
                came.extend_from_slice(buffer);
                Ok(())
            })
            .expect("nothing fails");
            assert_eq!(came, all);
            let (last, full) = lengths.split_last().expect("at least one");
            assert!(full.iter().all(|len| *len == 10) && (*last > 0 || len == 0), "{lengths:?}");
        }
    }

    #[test]
    fn an_error_of_either_stage_ends_both() {
        let failed = || Error::Misuse("it failed".into());
        let endless = |_: &mut Buffer| Ok(true);
        assert!(run(&mut endless.clone(), &mut |_| Err(failed())).is_err());
        assert!(run(&mut |_| Err(failed()), &mut |_| Ok(())).is_err());
    }
}
