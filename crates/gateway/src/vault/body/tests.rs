use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::{Frame, SizeHint};

use super::*;
use crate::memory::{Memory, TURNS};

/// A body that arrives in pieces of the same bytes. Its length was announced.
struct Pieces {
    piece: Bytes,
    left: usize,
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.left.checked_sub(1).map(|left| {
            self.left = left;
            Ok(Frame::data(self.piece.clone()))
        }))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact((self.left * self.piece.len()) as u64)
    }
}

fn reading(unit: &str, pieces: usize) -> Reading {
    reading_of_one(unit, pieces, &Memory::new(240 << 20), &Arc::new(Semaphore::new(TURNS)))
}

fn reading_of_one(unit: &str, pieces: usize, memory: &Arc<Memory>, turns: &Arc<Semaphore>) -> Reading {
    let piece = Bytes::from(unit.repeat((16 << 10) / unit.len()));
    let held = memory.for_one(&"a".into());
    let body = Body::new(Pieces { piece, left: pieces });
    Reading::begin(body, 32 << 20, held, turns.clone()).expect("it is not too long")
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(work)
}

/// It was copied each time when its room doubled, and each copy was wiped: as many bytes again as the body
/// has.
#[test]
fn a_long_body_of_known_length_has_its_room_at_once() {
    let (mut reading, mut read) = (Some(reading(" ", 512)), None);
    let taken = allocation_counter::measure(|| {
        read = Some(block_on(reading.take().expect("once").rest()));
    });
    let (body, _held) = read.expect("it was read").expect("it is right");
    assert_eq!((body.len(), body.capacity()), (8 << 20, 8 << 20));
    let more = taken.bytes_total as usize - body.len();
    assert!(more < 1 << 20, "{more} bytes besides the body");
}

#[test]
fn a_body_that_is_too_deep_or_too_large_is_not_read_to_its_end() {
    for (unit, pieces) in [("[", 1), ("{\"a\":", 1), ("0,", 123)] {
        let mut reading = reading(unit, 2048);
        let refused = block_on(async {
            for piece in 1.. {
                match reading.piece().await {
                    Ok(goes_on) => assert!(goes_on, "{unit}: it was read to its end"),
                    Err(failure) => return (piece, failure),
                }
            }
            unreachable!("a body has an end")
        });
        assert!(matches!(refused, (read, Failure::Bad(_)) if read == pieces), "{unit}: {refused:?}");
    }
}

#[test]
fn short_bodies_are_told_from_long_ones_before_these_are_read() {
    for (pieces, is_short, read) in [(0, true, 0), (4, true, 4), (5, false, 0)] {
        let mut reading = reading(" ", pieces);
        assert_eq!(block_on(reading.is_short()), Ok(is_short));
        assert_eq!(reading.read.0.len(), read * (16 << 10), "{pieces} pieces");
    }
}

/// Without turns, one of those that wait would wait for memory, and the gateway would refuse the other one.
#[tokio::test]
async fn long_bodies_of_one_token_that_do_not_fit_together_wait_and_none_is_refused() {
    // One token may hold 40 MiB, which is two of these bodies.
    let (memory, turns) = (Memory::new(60 << 20), Arc::new(Semaphore::new(TURNS)));
    let begin = || reading_of_one(" ", 256, &memory, &turns).rest();
    let mut held = vec![begin().await.expect("the first"), begin().await.expect("the second")];
    let taken = memory.taken();
    assert_eq!(taken, 40 << 20);
    let waiting = [tokio::spawn(begin()), tokio::spawn(begin())];
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(waiting.iter().all(|read| !read.is_finished()), "each waits for its turn");
    assert_eq!(memory.taken(), taken, "and takes nothing meanwhile");
    for read in waiting {
        held.pop();
        let (body, _held) = read.await.expect("it ends").expect("it is read after all");
        assert_eq!(body.len(), 4 << 20);
    }
}
