//! The one who is measured: it asks now and then, each time on a new connection and from an address of its
//! own, for an encryption of 32 bytes, and for what the gateway answers without the nodes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::Outcome;
use crate::tls::over;
use crate::transit::Connection;

/// A connection, with TLS or without.
type Stream = Box<dyn Duplex>;

trait Duplex: Read + Write {}

impl<S: Read + Write> Duplex for S {}

/// See the [module](self).
pub(crate) struct Measured<'t> {
    address: SocketAddr,
    token: &'t str,
    is_tls: bool,
    encryptions: Vec<Duration>,
    own: Vec<Duration>,
    /// How many were not answered.
    pub(crate) failed: usize,
}

impl<'t> Measured<'t> {
    pub(crate) fn new(address: SocketAddr, token: &'t str, is_tls: bool) -> Measured<'t> {
        Measured { address, token, is_tls, encryptions: Vec::new(), own: Vec::new(), failed: 0 }
    }

    /// Asks for so long.
    pub(crate) fn ask_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let encryption = self.timed(|connection| connection.encrypt(32).map(drop));
            self.encryptions.push(encryption);
            let own = self.timed(|connection| connection.post("/v1/auth/token/lookup-self", "").map(drop));
            self.own.push(own);
            // As a program that asks now and then.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn timed(&mut self, ask: impl FnOnce(&mut Connection<Stream>) -> Outcome<()>) -> Duration {
        let began = Instant::now();
        let connected = self.connect();
        let outcome = connected.and_then(|stream| ask(&mut Connection::over(stream, self.token)));
        if outcome.is_err() {
            self.failed += 1;
        }
        began.elapsed()
    }

    fn connect(&self) -> Outcome<Stream> {
        // Strangers of one address share its places, and floods come from 127.0.0.1.
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from(([127, 0, 0, 2], 0)))?;
        connect(&socket, &self.address)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        match self.is_tls {
            true => Ok(Box::new(over(stream)?)),
            false => Ok(Box::new(stream)),
        }
    }

    /// The median and the longest time of encryptions.
    pub(crate) fn encryption(&mut self) -> (Duration, Duration) {
        of(&mut self.encryptions)
    }

    /// The same of what the gateway answers alone.
    pub(crate) fn own(&mut self) -> (Duration, Duration) {
        of(&mut self.own)
    }
}

fn of(times: &mut [Duration]) -> (Duration, Duration) {
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1])
}
