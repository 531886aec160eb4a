//! A way between nodes that takes its time: everything that is sent over it arrives later by the same delay,
//! in order.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{Instant, sleep_until};

/// Bytes that are taken at once.
const PIECE: usize = 64 << 10;

/// Ways that exist until this is dropped.
pub(super) struct Ways {
    runtime: Runtime,
    delay: Duration,
}

impl Ways {
    /// Whatever goes over one of them is late by this much.
    pub(super) fn new(delay: Duration) -> Result<Ways> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Ways { runtime: runtime.context("cannot make the delays")?, delay })
    }

    /// A way to an address of this host. Returns where it begins.
    pub(super) fn to(&self, end: SocketAddr) -> Result<SocketAddr> {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.context("no free port for a way with a delay")?;
        let begin = listener.local_addr()?;
        let delay = self.delay;
        self.runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // Who calls notices that it is closed, as without the way between.
                    let Ok(far) = TcpStream::connect(end).await else { return };
                    // Small messages are sent at once, as the nodes do it.
                    let (_, _) = (near.set_nodelay(true), far.set_nodelay(true));
                    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
                    tokio::join!(carry(from_near, to_far, delay), carry(from_far, to_near, delay));
                });
            }
        });
        Ok(begin)
    }
}

/// Carries bytes until either end is closed.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin + Send + 'static,
    delay: Duration,
) {
    let (sender, mut due) = unbounded_channel::<(Instant, Vec<u8>)>();
    let writer = tokio::spawn(async move {
        while let Some((at, bytes)) = due.recv().await {
            sleep_until(at).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // The other end may be gone.
        let _ = to.shutdown().await;
    });
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece).await {
        if sender.send((Instant::now() + delay, piece[..length].to_vec())).is_err() {
            break;
        }
    }
    drop(sender);
    // It ends with what was sent before.
    let _ = writer.await;
}
