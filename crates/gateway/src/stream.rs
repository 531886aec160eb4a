//! A caller's connection, as HTTP is served on it. Two things are decided here that HTTP leaves to connections: for how long a caller is waited for that takes
//! nothing of an answer; and that an answer arrives although the request's body is not read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// For how long a caller may take nothing of what is sent to it.
const STALLED: Duration = Duration::from_secs(30);
/// If a connection is closed while bytes of its caller are on their way, the system breaks it off, and the caller may lose the answer. So
/// they are thrown away for a moment.
const LINGERS: Duration = Duration::from_secs(1);
const THROWN_AWAY: usize = 256 << 10;

/// See the [module](self).
pub(crate) struct Patient<S> {
    inner: S,
    stalled: Option<Pin<Box<Sleep>>>,
    lingers: Option<Lingers>,
}

struct Lingers {
    until: Pin<Box<Sleep>>,
    bytes: usize,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S) -> Patient<S> {
        Patient { inner, stalled: None, lingers: None }
    }

    /// What a write has come to; an error if there was no progress for too long.
    fn in_time<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let limit = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        ready!(limit.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.in_time(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.in_time(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.in_time(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.lingers.is_none() {
            let ended = Pin::new(&mut this.inner).poll_shutdown(cx);
            ready!(this.in_time(cx, ended))?;
        }
        let lingers =
            this.lingers.get_or_insert_with(|| Lingers { until: Box::pin(sleep(LINGERS)), bytes: 0 });
        let mut thrown_away = [0; 4096];
        while lingers.bytes < THROWN_AWAY && lingers.until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut thrown_away);
            let read = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut buffer));
            // A caller that has ended its side, or has broken off, is not waited for.
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            lingers.bytes += buffer.filled().len();
        }
        Poll::Ready(Ok(()))
    }
}
