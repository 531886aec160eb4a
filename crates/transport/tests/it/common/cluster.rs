//! Clusters of nodes in one process.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use polyclave_protocol::{Party, PartySet, Result};
use polyclave_transport::{CertificateDer, Identity, Limits, Mesh, Node, TlsNet};

use super::PATIENT;

pub const CLUSTER: [u8; 16] = [7; 16];

/// Long, for loaded machines.
pub const LONG: Duration = Duration::from_secs(60);

/// What all nodes are told, and the keys of each.
#[derive(Clone)]
pub struct Cluster {
    pub identities: Vec<Identity>,
    pub nodes: Vec<Node>,
    pub limits: Limits,
    pub id: [u8; 16],
}

impl Cluster {
    pub fn new(n: usize) -> Cluster {
        Self::of(
            (0..n).map(|i| Identity::generate_named(&format!("node {i}"), 30).expect("identity")).collect(),
        )
    }

    pub fn of(identities: Vec<Identity>) -> Cluster {
        let node = |identity: &Identity| Node {
            address: format!("127.0.0.1:{}", free_port()),
            certificates: vec![identity.certificate()],
        };
        let nodes = identities.iter().map(node).collect();
        Cluster { identities, nodes, limits: PATIENT, id: CLUSTER }
    }

    pub fn start(&self, me: u8) -> Mesh {
        self.try_start(me).expect("mesh")
    }

    pub fn try_start(&self, me: u8) -> Result<Mesh> {
        let i = usize::from(me);
        let (address, identity) = (self.nodes[i].address.as_str(), self.identities[i].clone());
        Mesh::start(address, identity, self.limits, Party(me), &self.nodes, self.id)
    }

    pub fn start_all(&self) -> Vec<Mesh> {
        (0..self.nodes.len() as u8).map(|me| self.start(me)).collect()
    }
}

pub fn set(members: &[u8]) -> PartySet {
    members.iter().copied().map(Party).collect()
}

/// Opens a stream at each of these nodes at once.
pub fn open(meshes: &[(u8, &Mesh)], name: &str, within: Duration) -> Vec<Result<TlsNet>> {
    let members: PartySet = meshes.iter().map(|(me, _)| Party(*me)).collect();
    thread::scope(|scope| {
        let opens: Vec<_> =
            meshes.iter().map(|(_, mesh)| scope.spawn(move || mesh.open(name, members, within))).collect();
        opens.into_iter().map(|open| open.join().expect("a node panicked")).collect()
    })
}

pub fn certificate() -> CertificateDer<'static> {
    Identity::generate().expect("identity").certificate()
}

/// One that is not given to outgoing connections, nor twice.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let offset = NEXT.fetch_add(1, Relaxed);
        let port = 12_000 + (std::process::id() as u16).wrapping_mul(97).wrapping_add(offset) % 18_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
