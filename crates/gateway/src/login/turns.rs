//! Turns in which signatures are verified. So logins take a part of the processors at most, however many
//! there are. A caller whose logins failed too often waits for others like it first, so only one of them at a
//! time is in the line of all: they cannot keep others from logging in.

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use super::refused::Refused;

/// How long a login waits for its turn.
const WITHIN: Duration = Duration::from_secs(10);

/// See the [module](self).
pub(crate) struct Turns {
    within: Duration,
    all: Semaphore,
    suspects: Semaphore,
}

/// A turn, which ends when this is dropped.
pub(super) struct Turn<'t> {
    _of_all: SemaphorePermit<'t>,
    _of_suspects: Option<SemaphorePermit<'t>>,
}

/// The turns of a caller.
#[derive(Clone, Copy)]
pub(crate) struct Line<'t> {
    turns: &'t Turns,
    is_suspect: bool,
}

impl Turns {
    /// At half of the processors at the same time.
    pub(crate) fn new() -> Turns {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Turns::at_once(processors.div_ceil(2), WITHIN)
    }

    fn at_once(number: usize, within: Duration) -> Turns {
        Turns { within, all: Semaphore::new(number), suspects: Semaphore::new(1) }
    }

    /// Those of a caller, and whether its logins failed too often.
    pub(crate) fn of(&self, is_suspect: bool) -> Line<'_> {
        Line { turns: self, is_suspect }
    }
}

impl<'t> Line<'t> {
    /// Waits for a turn.
    pub(super) async fn turn(self) -> Result<Turn<'t>, Refused> {
        let Line { turns, is_suspect } = self;
        let taken = async {
            let of_suspects = match is_suspect {
                true => Some(turns.suspects.acquire().await?),
                false => None,
            };
            Ok(Turn { _of_all: turns.all.acquire().await?, _of_suspects: of_suspects })
        };
        // They are never closed.
        match timeout(turns.within, taken).await {
            Ok(Ok::<_, tokio::sync::AcquireError>(turn)) => Ok(turn),
            _ => Err(Refused::Busy),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting<'t> = Pin<Box<dyn Future<Output = Result<Turn<'t>, Refused>> + 't>>;

    fn look<'t>(waiting: &mut Waiting<'t>) -> Option<Turn<'t>> {
        match waiting.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(turn) => Some(turn.expect("in time")),
            Poll::Pending => None,
        }
    }

    #[tokio::test]
    async fn many_suspects_are_one_in_the_line_of_all() {
        let turns = Turns::at_once(1, WITHIN);
        let wait = |is_suspect: bool| -> Waiting<'_> { Box::pin(turns.of(is_suspect).turn()) };
        let mut first = wait(true);
        let mut turn = look(&mut first).expect("nobody else is there");
        let mut suspects: Vec<Waiting<'_>> = (0..100).map(|_| wait(true)).collect();
        assert!(suspects.iter_mut().all(|one| look(one).is_none()));
        let mut others: Vec<Waiting<'_>> = (0..3).map(|_| wait(false)).collect();
        assert!(others.iter_mut().all(|one| look(one).is_none()), "one at a time");
        for other in &mut others {
            drop(turn);
            assert!(suspects.iter_mut().all(|one| look(one).is_none()), "they are behind the others");
            turn = look(other).expect("its turn");
        }
        drop(turn);
        let held: Vec<Turn<'_>> = suspects.iter_mut().filter_map(look).collect();
        assert_eq!(held.len(), 1, "then theirs comes");
    }

    #[tokio::test]
    async fn a_turn_is_waited_for_within_a_time() {
        let turns = Turns::at_once(1, Duration::from_millis(10));
        let _held = turns.of(false).turn().await.expect("free");
        for is_suspect in [false, true] {
            assert_eq!(turns.of(is_suspect).turn().await.err(), Some(Refused::Busy));
        }
    }
}
