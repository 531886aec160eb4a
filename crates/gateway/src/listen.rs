//! What the gateway listens on, and how connections are served.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use hyper::Request;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::connections::{Connections, Peer, UnderWay, Whose};
use crate::kmip::Kmip;
use crate::kms::{Kms, Lenient};
use crate::stream::Patient;
use crate::{Error, Result};

/// The log is told of a failed handshake once in this time.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// The time limit for the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a connection may be idle, and its next request's headers may take.
const IDLE: Duration = Duration::from_secs(120);
/// The pause when the machine has no file descriptor or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);
/// The most requests at once on a connection of gRPC, and the most bytes that may arrive for one of them and
/// for all before they are read.
const STREAMS: u32 = 64;
const WINDOW: u32 = 64 << 10;
const WINDOW_OF_ALL: u32 = 256 << 10;
/// The most bytes of the headers of a request.
const HEADERS: usize = 64 << 10;

/// Binds an address.
pub(crate) async fn bind(address: &str) -> Result<(TcpListener, SocketAddr)> {
    let wrong = |error| Error::Listen { place: address.into(), error };
    let listener = TcpListener::bind(address).await.map_err(wrong)?;
    let bound = listener.local_addr().map_err(wrong)?;
    Ok((listener, bound))
}

/// Serves HTTP.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    pages: Router,
    connections: Arc<Connections>,
    watcher: impl Fn() -> Watcher,
) {
    let told = Arc::new(Told::default());
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(EXHAUSTED).await;
            continue;
        };
        // Answers are short; waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let (tls, pages, watcher, told) = (tls.clone(), pages.clone(), watcher(), told.clone());
        let whose = Whose::at(from.ip());
        connections.take(whose.clone(), move |peer| async move {
            match tls {
                None => answer(stream, pages, watcher, (peer, whose)).await,
                Some(tls) => match timeout(HANDSHAKE, tls.accept(stream)).await {
                    Ok(Ok(stream)) => answer(stream, pages, watcher, (peer, whose)).await,
                    // A caller that does not get through the handshake gets no answer.
                    Ok(Err(error)) if told.is_due() => {
                        tracing::warn!(%from, %error, "no session of TLS with a caller; others like it are not told for a second");
                    }
                    _ => {}
                },
            }
        });
        // What a caller has sent already is looked at before others can take its place.
        tokio::task::yield_now().await;
    }
}

/// When the log was told of a failed handshake. A flood of them does not fill the log.
#[derive(Default)]
struct Told(Mutex<Option<Instant>>);

impl Told {
    fn is_due(&self) -> bool {
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= TOLD_EVERY);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    pages: Router,
    watcher: Watcher,
    (peer, from): (Peer, Whose),
) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (pages, peer, from) = (pages.clone(), peer.clone(), from.clone());
        async move {
            let _under_way = peer.begin();
            peer.take_turn().await;
            request.extensions_mut().insert(peer);
            request.extensions_mut().insert(from);
            let response = pages.oneshot(request).await?;
            Ok::<_, Infallible>(response.map(|body| Answered { body, _under_way }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE)
        .max_buf_size(HEADERS)
        .serve_connection(TokioIo::new(Patient::new(stream)), service);
    // A caller that breaks off gets no answer.
    let _ = watcher.watch(connection).await;
}

/// The body of an answer. Its request is under way until all of it was taken: so a stream of the operator's
/// page is.
struct Answered {
    body: axum::body::Body,
    _under_way: UnderWay,
}

impl Body for Answered {
    type Data = axum::body::Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves KMIP.
pub(crate) async fn serve_kmip(
    listener: TcpListener,
    tls: TlsAcceptor,
    kmip: Arc<Kmip>,
    connections: Arc<Connections>,
) {
    let told = Arc::new(Told::default());
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            sleep(EXHAUSTED).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let (tls, kmip, told) = (tls.clone(), kmip.clone(), told.clone());
        connections.take(Whose::at(from.ip()), move |peer| async move {
            let stream = match timeout(HANDSHAKE, tls.accept(stream)).await {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) if told.is_due() => {
                    tracing::warn!(%from, %error, "no session of TLS with a client of KMIP; others like it are not told for a second");
                    return;
                }
                _ => return,
            };
            let certificate = stream.get_ref().1.peer_certificates().and_then(|all| all.first()).cloned();
            // Without one there was no session.
            if let Some(certificate) = certificate {
                kmip.converse(certificate.into_owned(), Patient::new(stream), &peer).await;
            }
        });
        tokio::task::yield_now().await;
    }
}

/// A Unix socket that only its owner can connect to. It is removed when this is dropped.
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Makes the socket in the place of one that nobody serves on.
    pub(crate) fn bind(path: &Path) -> Result<Socket> {
        let wrong = |error: io::Error| Error::Listen { place: path.display().to_string(), error };
        match UnixStream::connect(path) {
            Ok(_) => return Err(Error::InUse(path.into())),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {}
            Err(e) => return Err(wrong(e)),
        }
        // Under another name until its mode is right: nobody else can connect in between.
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}", std::process::id()));
        let draft = PathBuf::from(draft);
        // One of a process that had this number, and was killed.
        let _ = std::fs::remove_file(&draft);
        let listener = UnixListener::bind(&draft).map_err(wrong)?;
        std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o600))
            .and_then(|()| std::fs::rename(&draft, path))
            .map_err(wrong)?;
        Ok(Socket { listener, path: path.into() })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // It may have been removed, and another process may not be stopped by that.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Serves the KMS of Kubernetes.
pub(crate) async fn serve_kms(
    socket: Arc<Socket>,
    kms: Arc<Kms>,
    connections: Arc<Connections>,
    watcher: impl Fn() -> Watcher,
) {
    loop {
        let Ok((stream, _)) = socket.listener.accept().await else {
            sleep(EXHAUSTED).await;
            continue;
        };
        let (kms, watcher) = (kms.clone(), watcher());
        // Only the socket's owner can connect.
        connections.take(Whose::Known(kms.asker.name.clone()), move |peer| async move {
            let service = service_fn(move |request| {
                let (kms, peer) = (kms.clone(), peer.clone());
                async move {
                    let _under_way = peer.begin();
                    peer.take_turn().await;
                    Ok::<_, Infallible>(kms.answer(request).await)
                }
            });
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS)
                .initial_stream_window_size(WINDOW)
                .initial_connection_window_size(WINDOW_OF_ALL)
                .serve_connection(TokioIo::new(Patient::new(Lenient::new(stream))), service);
            // A caller that breaks off gets no answer.
            let _ = watcher.watch(connection).await;
        });
    }
}
