//! A way between nodes like that of a slower network: everything that is sent over it arrives later by the
//! same delay, in order, and not faster than at a rate.
//!
//! The connections that others make to one address share a line in each direction. Each direction of a
//! connection has a thread that takes bytes and one that lets them go when they are due. The timers of an
//! asynchronous runtime are late by up to a millisecond, which adds up over the messages of a request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use polyclave_transport::Shape;

/// Bytes that are taken at once. They arrive as a whole.
const PIECE: usize = 16 << 10;

/// Ways that exist until this is dropped.
pub(super) struct Ways {
    shape: Shape,
    over: Arc<AtomicBool>,
    begins: Vec<SocketAddr>,
}

/// One direction to an address, or from it: when it is free again.
struct Line(Mutex<Instant>);

impl Line {
    fn new() -> Arc<Line> {
        Arc::new(Line(Mutex::new(Instant::now())))
    }

    /// When something has left that occupies the line for this long, behind what went before.
    fn after(&self, takes: Duration) -> Instant {
        let mut free = self.0.lock();
        *free = (*free).max(Instant::now()) + takes;
        *free
    }
}

impl Ways {
    /// They are all as slow as this.
    pub(super) fn new(shape: Shape) -> Ways {
        Ways { shape, over: Arc::default(), begins: Vec::new() }
    }

    /// A way to an address of this host. Returns where it begins.
    pub(super) fn to(&mut self, end: SocketAddr) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port for a way with a delay")?;
        let begin = listener.local_addr()?;
        let (shape, over) = (self.shape, self.over.clone());
        thread::spawn(move || {
            let lines = [Line::new(), Line::new()];
            while let Ok((near, _)) = listener.accept() {
                if over.load(Relaxed) {
                    return;
                }
                // Who calls notices that it is closed, as without the way between.
                let Ok(far) = TcpStream::connect(end) else { continue };
                // If that fails the connection ends, as a broken one does.
                let _ = connect(near, far, shape, &lines);
            }
        });
        self.begins.push(begin);
        Ok(begin)
    }

    /// How long a byte takes over a way and back, as measured: the median of a few.
    pub(super) fn measured(&mut self) -> Result<Duration> {
        const TURNS: usize = 9;
        let echo = TcpListener::bind("127.0.0.1:0").context("no free port")?;
        let begin = self.to(echo.local_addr()?)?;
        let answers = thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = echo.accept()?;
            stream.set_nodelay(true)?;
            let mut byte = [0];
            while stream.read(&mut byte)? == 1 {
                stream.write_all(&byte)?;
            }
            Ok(())
        });
        let mut stream = TcpStream::connect(begin)?;
        stream.set_nodelay(true)?;
        let mut took = Vec::new();
        for _ in 0..TURNS {
            let began = Instant::now();
            stream.write_all(&[1])?;
            stream.read_exact(&mut [0])?;
            took.push(began.elapsed());
        }
        drop(stream);
        // It ends with the connection.
        let _ = answers.join();
        took.sort_unstable();
        Ok(took[TURNS / 2])
    }
}

impl Drop for Ways {
    /// Each listener notices it at its next connection.
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        for begin in &self.begins {
            let _ = TcpStream::connect(begin);
        }
    }
}

/// Carries bytes in both directions until an end is closed.
fn connect(near: TcpStream, far: TcpStream, shape: Shape, lines: &[Arc<Line>; 2]) -> std::io::Result<()> {
    // Small messages are sent at once, as the nodes do it.
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for ((from, to), line) in [(near.try_clone()?, far.try_clone()?), (far, near)].into_iter().zip(lines) {
        let (sender, due) = channel();
        let line = line.clone();
        thread::spawn(move || take(from, &sender, shape, &line));
        thread::spawn(move || let_go(to, &due));
    }
    Ok(())
}

fn take(mut from: TcpStream, due: &Sender<(Instant, Vec<u8>)>, shape: Shape, line: &Line) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let arrives = line.after(shape.line_time(length)) + shape.rtt / 2;
        if due.send((arrives, piece[..length].to_vec())).is_err() {
            return;
        }
    }
}

/// Ends with what was sent before.
fn let_go(mut to: TcpStream, due: &Receiver<(Instant, Vec<u8>)>) {
    while let Ok((at, bytes)) = due.recv() {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The other end may be gone.
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it takes until so many bytes have come back over a way.
    fn there_and_back(shape: &str, bytes: usize) -> Duration {
        let mut ways = Ways::new(shape.parse().expect("a shape"));
        let echo = TcpListener::bind("127.0.0.1:0").expect("a port");
        let begin = ways.to(echo.local_addr().expect("its address")).expect("a way");
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = echo.accept().expect("a connection");
                let mut all = vec![0; bytes];
                stream.read_exact(&mut all).expect("they arrive");
                stream.write_all(&all).expect("sent back");
            });
            let mut stream = TcpStream::connect(begin).expect("a connection");
            let (began, mut sent) = (Instant::now(), vec![7; bytes]);
            stream.write_all(&sent).expect("sent");
            stream.read_exact(&mut sent).expect("they come back");
            began.elapsed()
        })
    }

    /// No machine is faster than the way, however slow it is.
    #[test]
    fn a_way_takes_its_delay_and_the_time_of_its_line() {
        let ms = Duration::from_millis;
        assert!(there_and_back("40ms,unlimited", 1) >= ms(40));
        // 125,000 bytes take a second at 1 Mbit/s, and come back behind each other.
        assert!(there_and_back("1ms,1Mbit", 12_500) >= ms(200));
    }

    /// Two that share a line wait for each other.
    #[test]
    fn a_line_is_free_again_behind_what_it_carries() {
        let (line, began, takes) = (Line::new(), Instant::now(), Duration::from_secs(1));
        let [first, second] = [line.after(takes), line.after(takes)];
        assert!(first >= began + takes && second == first + takes);
    }
}
