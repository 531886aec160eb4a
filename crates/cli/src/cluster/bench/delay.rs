//! A way between nodes that takes its time: everything that is sent over it arrives later by the same delay,
//! in order.
//!
//! Each direction of a connection has a thread that takes bytes and one that lets them go when they are due.
//! The timers of an asynchronous runtime are late by up to a millisecond, which adds up over the messages of
//! a request.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Bytes that are taken at once.
const PIECE: usize = 64 << 10;

/// Ways that exist until this is dropped.
pub(super) struct Ways {
    delay: Duration,
    over: Arc<AtomicBool>,
    begins: Vec<SocketAddr>,
}

impl Ways {
    /// Whatever goes over one of them is late by this much.
    pub(super) fn new(delay: Duration) -> Ways {
        Ways { delay, over: Arc::default(), begins: Vec::new() }
    }

    /// A way to an address of this host. Returns where it begins.
    pub(super) fn to(&mut self, end: SocketAddr) -> Result<SocketAddr> {
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port for a way with a delay")?;
        let begin = listener.local_addr()?;
        let (delay, over) = (self.delay, self.over.clone());
        thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if over.load(Relaxed) {
                    return;
                }
                // Who calls notices that it is closed, as without the way between.
                let Ok(far) = TcpStream::connect(end) else { continue };
                // If that fails the connection ends, as a broken one does.
                let _ = connect(near, far, delay);
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
fn connect(near: TcpStream, far: TcpStream, delay: Duration) -> std::io::Result<()> {
    // Small messages are sent at once, as the nodes do it.
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    for (from, to) in [(near.try_clone()?, far.try_clone()?), (far, near)] {
        let (sender, due) = channel();
        thread::spawn(move || take(from, &sender, delay));
        thread::spawn(move || let_go(to, &due));
    }
    Ok(())
}

fn take(mut from: TcpStream, due: &Sender<(Instant, Vec<u8>)>, delay: Duration) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if due.send((Instant::now() + delay, piece[..length].to_vec())).is_err() {
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
