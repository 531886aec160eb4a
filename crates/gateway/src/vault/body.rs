//! The body of a request, within limits of size, shape, time and memory. Only callers with a token get here,
//! and those who log in for one.

mod shape;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use zeroize::{Zeroize, Zeroizing};

use super::fields::MAX_ITEMS;
use crate::failure::Failure;
use crate::memory::Held;
use shape::Shape;

/// A body that is longer is a long one.
const LONG: usize = 64 << 10;
/// How often a message is in memory at most: as text, as a field with escapes, in bytes, encrypted, and as
/// text again.
const TIMES: usize = 5;
/// What an item of a batch takes besides its bytes: its fields, and its result.
const ITEM: usize = 640;
/// The most objects of a body that has few.
const FEW_OBJECTS: usize = 16;
/// Requests that take no more than this are not counted: there are no more of them than connections.
const SMALL: usize = TIMES * LONG;
/// How long a body may take in all, and for how long its sender may pause.
const WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(10);

/// A body of which a part was read. Memory is taken as it arrives. Long requests of one token that would not
/// fit into its share together wait for each other. The memory is given back when [`Held`] is dropped.
pub(super) struct Reading {
    body: Body,
    most: usize,
    most_objects: usize,
    /// The bytes that it has, if that was announced.
    announced: Option<usize>,
    read: Used,
    shape: Shape,
    held: Held,
    turns: Arc<Semaphore>,
    /// The time that is left for the rest.
    left: Duration,
}

impl Reading {
    /// A body of at most so many bytes, of which nothing was read; what its request holds; and the turns of
    /// its token.
    pub(super) fn begin(
        body: Body,
        most: usize,
        held: Held,
        turns: Arc<Semaphore>,
    ) -> Result<Reading, Failure> {
        let hint = body.size_hint();
        if hint.lower() > most as u64 {
            return Err(Failure::TooLong(most));
        }
        let announced = hint.exact().map(|bytes| bytes as usize);
        let (read, shape) = (Used::default(), Shape::default());
        Ok(Reading {
            body,
            most,
            most_objects: usize::MAX,
            announced,
            read,
            shape,
            held,
            turns,
            left: WITHIN,
        })
    }

    /// The same for a body that has so few objects that they are not counted as memory.
    pub(super) fn of_few_objects(self) -> Reading {
        Reading { most_objects: FEW_OBJECTS, ..self }
    }

    /// Reads a body that is not long to its end. False for a long one, of which little or nothing was read.
    pub(super) async fn is_short(&mut self) -> Result<bool, Failure> {
        while self.read.0.len().max(self.announced.unwrap_or_default()) <= LONG {
            if !self.piece().await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the rest.
    pub(super) async fn rest(mut self) -> Result<(Zeroizing<Vec<u8>>, Held), Failure> {
        while self.piece().await? {}
        Ok((Zeroizing::new(std::mem::take(&mut self.read.0)), self.held))
    }

    /// Reads what has arrived. False at the end.
    async fn piece(&mut self) -> Result<bool, Failure> {
        let began = Instant::now();
        let Ok(frame) = timeout(self.left.min(PAUSE), self.body.frame()).await else { return Err(late()) };
        self.left = self.left.saturating_sub(began.elapsed());
        let Some(frame) = frame else { return Ok(false) };
        let frame = frame.map_err(|_| Failure::Bad("the body ended before its end".into()))?;
        let Ok(data) = frame.into_data() else { return Ok(true) };
        let bytes = self.read.0.len() + data.len();
        if bytes > self.most {
            return Err(Failure::TooLong(self.most));
        }
        self.shape.take(&data)?;
        if self.shape.objects() > self.most_objects {
            return Err(Failure::Bad(format!("the body has more than {} objects", self.most_objects)));
        }
        let expected = self.announced.unwrap_or(self.most).max(bytes);
        if bytes > LONG {
            self.held.take_turn(&self.turns, TIMES * expected).await;
        }
        let takes = TIMES * bytes + ITEM * self.shape.objects().min(MAX_ITEMS);
        if takes > SMALL {
            self.held.grow_to(takes).await.map_err(|_| scarce())?;
        }
        let room = match self.announced {
            // No other request of the token has this turn.
            Some(announced) if bytes > LONG => announced,
            _ => (2 * bytes).min(expected),
        };
        self.read.add(&data, room)?;
        Ok(true)
    }
}

/// The bytes that were read. Those are wiped when this is dropped, and not the room that was never used.
#[derive(Default)]
struct Used(Vec<u8>);

impl Used {
    /// Adds bytes. If there is no room for them, it takes so much in all, and leaves no copy behind that is
    /// not wiped.
    fn add(&mut self, data: &[u8], room: usize) -> Result<(), Failure> {
        let bytes = self.0.len() + data.len();
        if bytes > self.0.capacity() {
            let mut larger = Used::default();
            larger.0.try_reserve_exact(room.max(bytes)).map_err(|_| scarce())?;
            larger.0.extend_from_slice(&self.0);
            *self = larger;
        }
        self.0.extend_from_slice(data);
        Ok(())
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.0.as_mut_slice().zeroize();
    }
}

fn scarce() -> Failure {
    Failure::Unavailable(
        "the gateway has no memory for so long a request at the moment; ask again later".into(),
    )
}

fn late() -> Failure {
    let (within, pause) = (WITHIN.as_secs(), PAUSE.as_secs());
    Failure::Bad(format!("the body did not arrive: it may take {within} s, with pauses of at most {pause} s"))
}
