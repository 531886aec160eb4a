//! The body of a request, within limits of size, time and memory. Only callers with a token get here.

use std::pin::pin;
use std::time::{Duration, Instant};

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::Vault;
use super::fields::MOST_ITEMS;
use crate::failure::Failure;
use crate::memory::Held;
use crate::tokens::Token;

/// How often a message is in memory at most: as text, as a field with escapes, in bytes, encrypted, and as text again.
const TIMES: usize = 5;
/// What an item of a batch takes besides its bytes: its fields, and its result.
const ITEM: usize = 640;
/// Requests that take no more than this are not counted: there are no more of them than connections.
const SMALL: usize = TIMES * (64 << 10);
/// How long a body may take in all, and for how long its sender may pause.
const WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(10);

/// Reads a body of at most so many bytes. Memory is taken as it arrives. Long requests of one token that would not fit into its share together
/// wait for each other. The memory is given back when the second value is dropped.
pub(super) async fn read(
    vault: &Vault,
    token: &Token,
    most: usize,
    body: Body,
) -> Result<(Zeroizing<Vec<u8>>, Held), Failure> {
    let announced = body.size_hint();
    if announced.lower() > most as u64 {
        return Err(Failure::TooLong(most));
    }
    let announced = announced.exact().map_or(most, |bytes| bytes as usize);
    let (mut all, mut body) = (Zeroizing::new(Vec::new()), pin!(body));
    let mut held = vault.memory.for_one(&token.asker.name);
    let mut left = WITHIN;
    loop {
        let began = Instant::now();
        let Ok(frame) = timeout(left.min(PAUSE), body.frame()).await else { return Err(late()) };
        left = left.saturating_sub(began.elapsed());
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|_| Failure::Bad("the body ended before its end".into()))?;
        let Ok(data) = frame.into_data() else { continue };
        let bytes = all.len() + data.len();
        if bytes > most {
            return Err(Failure::TooLong(most));
        }
        if TIMES * bytes > SMALL {
            held.take_turn(&token.turns, TIMES * announced.max(bytes)).await;
            held.grow_to(TIMES * bytes).await.map_err(|_| scarce())?;
        }
        make_room(&mut all, bytes, announced);
        all.extend_from_slice(&data);
    }
    // Each item of a batch begins with this.
    let items = all.iter().filter(|byte| **byte == b'{').count().min(MOST_ITEMS);
    let takes = TIMES * all.len() + ITEM * items;
    if takes > SMALL {
        held.grow_to(takes).await.map_err(|_| scarce())?;
    }
    Ok((all, held))
}

/// Makes room for so many bytes, and leaves no copy behind that is not wiped.
fn make_room(all: &mut Zeroizing<Vec<u8>>, bytes: usize, announced: usize) {
    if bytes > all.capacity() {
        let mut larger = Zeroizing::new(Vec::with_capacity((2 * bytes).min(announced.max(bytes))));
        larger.extend_from_slice(all);
        *all = larger;
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
