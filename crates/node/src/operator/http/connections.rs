//! HTTP connections, within limits: no caller can use more of the node than these allow.
//!
//! A connection serves one request, and ends after [`LONGEST`] in any case; its headers must arrive within
//! [`HEADERS`]. When there are more than [`MAX`], the oldest is closed: a request takes milliseconds, so
//! honest callers are served even if others hold all connections.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{sleep, timeout};

/// The most connections at a time.
pub(crate) const MAX: usize = 64;
/// The time limit for the headers of a request.
const HEADERS: Duration = Duration::from_secs(5);
/// The time limit for a connection.
const LONGEST: Duration = Duration::from_secs(10);
/// The most bytes of a request; hyper accepts no smaller buffer.
const MAX_BYTES: usize = 8 << 10;
/// The pause when the machine has no file descriptor or memory for another connection.
const EXHAUSTED: Duration = Duration::from_millis(100);

/// Answers all callers, until this is dropped.
pub(super) async fn serve(listener: TcpListener, pages: Router) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(EXHAUSTED).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= MAX
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
            // It closes when its task runs again, which is before the next connection is accepted.
            yield_now().await;
        }
        open.push_back(tokio::spawn(answer(stream, pages.clone())).abort_handle());
    }
}

async fn answer(stream: TcpStream, pages: Router) {
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_BYTES)
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    // A caller that breaks off, or takes too long, gets no answer.
    let _ = timeout(LONGEST, connection).await;
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{SocketAddr, TcpStream};
    use std::time::Instant;

    use axum::routing::get;
    use tokio::sync::oneshot;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A server that ends when dropped.
    struct Served {
        address: SocketAddr,
        _stop: oneshot::Sender<()>,
    }

    fn start() -> Served {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("set");
        let address = listener.local_addr().expect("it listens");
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_io()
                .enable_time()
                .build()
                .expect("built");
            runtime.block_on(async move {
                let listener = TcpListener::from_std(listener).expect("it listens");
                let server =
                    tokio::spawn(serve(listener, Router::new().route("/", get(|| async { "alive\n" }))));
                let _ = stopped.await;
                server.abort();
            });
        });
        Served { address, _stop: stop }
    }

    fn connect(served: &Served) -> TcpStream {
        let stream = TcpStream::connect(served.address).expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    fn ask(served: &Served) -> String {
        let mut stream = connect(served);
        stream.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered, and closed");
        answer
    }

    fn is_closed(stream: &mut TcpStream) -> bool {
        stream.set_nonblocking(true).expect("set");
        let ended = match stream.read(&mut [0; 64]) {
            Ok(0) => true,
            Ok(_) => panic!("an answer to nothing"),
            Err(e) => e.kind() != ErrorKind::WouldBlock,
        };
        stream.set_nonblocking(false).expect("set");
        ended
    }

    #[test]
    fn idle_connections_beyond_the_limit_give_way_and_whoever_asks_is_answered() {
        let served = start();
        let mut idle: Vec<TcpStream> = (0..4 * MAX).map(|_| connect(&served)).collect();
        assert!(ask(&served).ends_with("alive\n"));
        let open = idle.iter_mut().map(is_closed).filter(|closed| !closed).count();
        assert!(open <= MAX, "{open} are open");
    }

    #[test]
    fn a_connection_ends_though_its_request_goes_on_trickling() {
        let served = start();
        let (mut silent, mut trickling) = (connect(&served), connect(&served));
        trickling.write_all(b"GET / HTTP/1.1\r\nx: ").expect("begun");
        let until = Instant::now() + PATIENCE;
        while !is_closed(&mut silent) || trickling.write_all(b"y").is_ok() {
            assert!(Instant::now() < until, "it is still open");
            std::thread::sleep(Duration::from_millis(100));
        }
        assert!(ask(&served).ends_with("alive\n"));
    }

    #[test]
    fn a_request_that_is_too_long_is_refused() {
        let served = start();
        let mut stream = connect(&served);
        let long = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(4 * MAX_BYTES));
        // The server may close the connection before all of it was sent.
        let _ = stream.write_all(long.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("alive"));
    }
}
