//! The body of a request, within limits of size, time and memory. Only callers with a token get here.

use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::Vault;
use crate::failure::Failure;

/// The most bytes of a request, as in Vault.
const MOST: usize = 32 << 20;
/// Requests up to this size take no part of the memory: there are no more of them than connections.
const SMALL: usize = 64 << 10;
/// How often a message is in memory at most: as text, as a field, in bytes, encrypted, and as text again, twice.
const TIMES: usize = 6;
/// How long a body may take.
const WITHIN: Duration = Duration::from_secs(60);
/// What is read of a body that nobody wants: without that, its sender would see a broken connection in the place of the answer.
const DRAINED: usize = 2 * MOST;
const DRAINED_WITHIN: Duration = Duration::from_secs(5);

/// Reads the body, once there is memory for it. The memory is given back when the second value is dropped.
pub(super) async fn read<'v>(
    vault: &'v Vault,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Zeroizing<Vec<u8>>, Option<SemaphorePermit<'v>>), Failure> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|bytes| bytes > MOST) {
        drain(body).await;
        return Err(Failure::TooLong);
    }
    let bytes = announced.unwrap_or(MOST);
    let held = match bytes {
        ..=SMALL => None,
        _ => {
            let mib = ((bytes * TIMES).div_ceil(1 << 20) as u32).min(vault.memory_mib);
            // The semaphore is never closed.
            vault.memory.acquire_many(mib).await.ok()
        }
    };
    let read = async move {
        // Its full size at once: growing would leave a copy behind.
        let mut all = Zeroizing::new(Vec::with_capacity(announced.unwrap_or_default()));
        let mut body = pin!(body);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Failure::Bad("the body ended before its end".into()))?;
            let Ok(data) = frame.into_data() else { continue };
            if all.len() + data.len() > MOST {
                return Err(Failure::TooLong);
            }
            all.extend_from_slice(&data);
        }
        Ok(all)
    };
    match timeout(WITHIN, read).await {
        Ok(all) => Ok((all?, held)),
        Err(_) => Err(Failure::Bad(format!("the body did not arrive within {} s", WITHIN.as_secs()))),
    }
}

/// Reads a body that nobody wants, for a while.
pub(super) async fn drain(body: Body) {
    let read = async move {
        let (mut body, mut bytes) = (pin!(body), 0);
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, |data| data.len());
            if bytes > DRAINED {
                return;
            }
        }
    };
    // What remains is its sender's loss.
    let _ = timeout(DRAINED_WITHIN, read).await;
}
