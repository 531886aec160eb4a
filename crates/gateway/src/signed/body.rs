//! The body of a request. Its signature is known to be good only when all of it is there, so strangers can
//! send one, too, if they know the id of an access key. It is short: a connection holds no more than this.

use std::time::{Duration, Instant};

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::failure::Failure;

/// The most bytes. The longest request that is served has some 24 KiB.
const MOST: usize = 64 << 10;
/// How long a body may take in all, and for how long its sender may pause.
const WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(10);

/// Reads a body to its end.
pub(super) async fn read(mut body: Body) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let hint = body.size_hint();
    if hint.lower() > MOST as u64 {
        return Err(Failure::TooLong(MOST));
    }
    // Room for all, so that no copy stays behind when it grows.
    let room = hint.exact().map_or(MOST, |bytes| bytes as usize);
    let mut read = Zeroizing::new(Vec::with_capacity(room));
    let began = Instant::now();
    loop {
        let left = WITHIN.saturating_sub(began.elapsed()).min(PAUSE);
        let Ok(frame) = timeout(left, body.frame()).await else { return Err(late()) };
        let Some(frame) = frame else { return Ok(read) };
        let frame = frame.map_err(|_| Failure::Bad("the body ended before its end".into()))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len() + data.len() > MOST {
            return Err(Failure::TooLong(MOST));
        }
        read.extend_from_slice(&data);
    }
}

fn late() -> Failure {
    let (within, pause) = (WITHIN.as_secs(), PAUSE.as_secs());
    Failure::Bad(format!("the body did not arrive: it may take {within} s, with pauses of at most {pause} s"))
}
