//! A relay between clients and a node. It counts what clients send on each connection, so that a test sees
//! who sends on which.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A relay. Its threads run until the process ends.
pub struct Relay {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<Arc<AtomicU64>>>>,
}

impl Relay {
    /// Relays all connections that are made with it to this address.
    ///
    /// # Panics
    ///
    /// If the system gives it no port.
    pub fn to(node: &str) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let sent: Arc<Mutex<Vec<Arc<AtomicU64>>>> = Arc::default();
        let (node, connections) = (node.to_owned(), sent.clone());
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let count = Arc::new(AtomicU64::new(0));
                connections.lock().unwrap_or_else(PoisonError::into_inner).push(count.clone());
                if let Ok(server) = TcpStream::connect(&node)
                    && let (Ok(from_client), Ok(from_server)) = (client.try_clone(), server.try_clone())
                {
                    thread::spawn(move || pass(from_client, server, &count));
                    thread::spawn(move || pass(from_server, client, &AtomicU64::new(0)));
                }
            }
        });
        Relay { address, sent }
    }

    /// Where clients find it.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// For each connection, in the order in which they were made: how many bytes the client has sent.
    pub fn sent(&self) -> Vec<u64> {
        let sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.iter().map(|count| count.load(Ordering::SeqCst)).collect()
    }
}

/// Passes on what one side sends, until it ends.
fn pass(mut from: TcpStream, mut to: TcpStream, count: &AtomicU64) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(bytes @ 1..) = from.read(&mut piece) {
        count.fetch_add(bytes as u64, Ordering::SeqCst);
        if to.write_all(&piece[..bytes]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
