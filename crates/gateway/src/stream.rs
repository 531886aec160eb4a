//! A caller's connection, as HTTP is served on it. Two things are decided here that HTTP leaves to
//! connections: how long the gateway waits for a caller that takes nothing of an answer, and how an answer
//! arrives although the request's body is not read.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// For how long a caller may take nothing of what is sent to it.
const STALLED: Duration = Duration::from_secs(30);
/// If a connection is closed while bytes of its caller are on their way, the system breaks it off, and the
/// caller may lose the answer. So they are thrown away for a moment.
const LINGERS: Duration = Duration::from_secs(1);
const THROWN_AWAY: usize = 256 << 10;

/// See the [module](self).
pub(crate) struct Patient<S> {
    inner: S,
    /// For how long a caller may take nothing.
    patience: Duration,
    /// For how long bytes are thrown away at the end.
    lingering: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    lingers: Option<Lingers>,
}

struct Lingers {
    until: Pin<Box<Sleep>>,
    bytes: usize,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S) -> Patient<S> {
        Patient { inner, patience: STALLED, lingering: LINGERS, stalled: None, lingers: None }
    }

    /// What a write has come to; an error if there was no progress for too long.
    fn in_time<T>(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.stalled = None;
            return outcome;
        }
        let patience = self.patience;
        let limit = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
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
        let until = this.lingering;
        let lingers = this.lingers.get_or_insert_with(|| Lingers { until: Box::pin(sleep(until)), bytes: 0 });
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    #[tokio::test]
    async fn a_caller_that_takes_nothing_of_an_answer_is_waited_for_no_longer_than_that() {
        let (own, _caller) = duplex(16);
        let mut own = Patient { patience: Duration::from_millis(20), ..Patient::new(own) };
        let message = own.write_all(&[7; 1000]).await.expect_err("it takes 16 bytes");
        assert_eq!(message.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_caller_that_goes_on_to_send_after_its_answer_is_not_broken_off() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let mut caller = TcpStream::connect(address).await.expect("connected");
        let (own, _) = listener.accept().await.expect("accepted");
        caller.write_all(&[7; 8 << 10]).await.expect("sent");
        let mut own = Patient { lingering: Duration::from_secs(60), ..Patient::new(own) };
        let answering = tokio::spawn(async move {
            own.write_all(b"an answer").await?;
            own.shutdown().await
        });
        let mut answer = [0; 9];
        caller.read_exact(&mut answer).await.expect("the answer");
        for _ in 0..8 {
            sleep(Duration::from_millis(5)).await;
            caller.write_all(&[7; 4 << 10]).await.expect("somebody takes it");
        }
        caller.shutdown().await.expect("ended");
        answering.await.expect("no panic").expect("ended in order");
    }
}
