//! Sessions of several parties in one process, over real TLS on loopback.

pub mod cluster;

use std::thread;
use std::time::Duration;

use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, Result};
use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress, TlsNet};

/// Generous, for loaded machines.
pub const PATIENT: Limits = Limits {
    refused: Duration::from_millis(300),
    connect: Duration::from_secs(60),
    handshake: Duration::from_secs(30),
    idle: Duration::from_secs(60),
    max_frame: 16 << 20,
    max_backlog: 64 << 20,
};

/// For tests in which a wait must run out.
pub const HASTY: Duration = Duration::from_millis(300);

pub fn bind(limits: Limits) -> Endpoint {
    Endpoint::bind("127.0.0.1:0", Identity::generate().expect("identity"), limits).expect("a free port")
}

pub fn address_of(endpoint: &Endpoint) -> PeerAddress {
    PeerAddress { address: endpoint.local_addr().to_string(), certificate: endpoint.certificate() }
}

/// Endpoints and the list of where they are.
pub fn endpoints(n: usize, limits: Limits) -> (Vec<Endpoint>, Vec<PeerAddress>) {
    let endpoints: Vec<Endpoint> = (0..n).map(|_| bind(limits)).collect();
    let list = endpoints.iter().map(address_of).collect();
    (endpoints, list)
}

/// Joins all endpoints at once, each with the list that is its.
pub fn join_with(endpoints: Vec<Endpoint>, list: impl Fn(Party) -> Vec<PeerAddress>) -> Vec<Result<TlsNet>> {
    thread::scope(|scope| {
        let joins: Vec<_> = Party::all(endpoints.len())
            .zip(endpoints)
            .map(|(me, endpoint)| {
                let list = list(me);
                scope.spawn(move || endpoint.join(me, &list))
            })
            .collect();
        joins.into_iter().map(|join| join.join().expect("a party panicked")).collect()
    })
}

pub fn session(n: usize, limits: Limits) -> Vec<TlsNet> {
    let (endpoints, list) = endpoints(n, limits);
    join_with(endpoints, |_| list.clone()).into_iter().map(|net| net.expect("join")).collect()
}

/// Runs every party in a thread of its own.
pub fn run<N: Net, T: Send>(nets: Vec<N>, party: impl Fn(N) -> T + Sync) -> Vec<T> {
    let party = &party;
    thread::scope(|scope| {
        let threads: Vec<_> = nets.into_iter().map(|net| scope.spawn(move || party(net))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a party panicked")).collect()
    })
}

/// What `from` sends to `to`, distinct and not constant.
pub fn message(from: Party, to: Party, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i as u8).wrapping_mul(167) ^ (i >> 8) as u8 ^ from.0 << 4 ^ to.0).collect()
}

/// Everybody sends `len(from, to)` bytes to everybody and checks what arrives.
pub fn exchange(net: &mut dyn Net, len: impl Fn(Party, Party) -> usize) -> Result<()> {
    let (me, n) = (net.me(), net.parties());
    let len = |from, to| if from == to { 0 } else { len(from, to) };
    let out: Vec<Vec<u8>> = Party::all(n).map(|to| message(me, to, len(me, to))).collect();
    let out: Vec<&[u8]> = out.iter().map(Vec::as_slice).collect();
    let mut into: Vec<Vec<u8>> = Party::all(n).map(|from| vec![0; len(from, me)]).collect();
    net.exchange(&out, &mut into.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())?;
    for from in me.peers(n) {
        assert!(
            into[from.index()] == message(from, me, len(from, me)),
            "{me} got something else from {from}"
        );
    }
    Ok(())
}
