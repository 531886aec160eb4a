//! The network between parties: mutually authenticated TLS 1.3 over TCP, and networks of other speeds
//! imitated on it.
//!
//! An [`Endpoint`] listens under an [`Identity`]; [`Endpoint::join`] turns it into a [`TlsNet`], which
//! implements [`polyclave_protocol::net::Net`]. [`Shaped`] adds delays to any such network. These are for
//! sessions among processes that start and end together. Nodes run for years: they open streams to each other
//! from a [`Mesh`] and accept clients at a [`Reception`]. A client uses [`call`] and makes a [`TlsNet`] from
//! its [`Line`]s.
//!
//! ```no_run
//! use polyclave_protocol::{Party, Result, net::Net};
//! use polyclave_transport::{Endpoint, Identity, Limits, PeerAddress};
//!
//! # fn tell_others_and_learn_theirs(mine: PeerAddress) -> Vec<PeerAddress> { vec![mine] }
//! # fn run() -> Result<()> {
//! let endpoint = Endpoint::bind("127.0.0.1:0", Identity::generate()?, Limits::default())?;
//! let mine = PeerAddress { address: endpoint.local_addr().to_string(), certificate: endpoint.certificate() };
//! let parties = tell_others_and_learn_theirs(mine);
//! let mut net = endpoint.join(Party(0), &parties)?;
//! net.send(Party(1), b"hello")?;
//! # Ok(())
//! # }
//! ```

mod accept;
mod arrival;
mod attempt;
mod authority;
mod broken;
mod buffer;
mod client_identity;
mod dial;
mod endpoint;
mod frame;
#[cfg(test)]
mod fuzz;
mod greeting;
mod halt;
mod identity;
mod late;
mod limits;
mod line;
mod link;
mod listen;
mod machine;
mod mesh;
mod messages;
mod meter;
mod net;
mod node;
mod pinned;
mod reception;
mod sealing;
mod session;
mod shape;
mod shaped;
mod side;
mod socket;
mod stream;
mod switchboard;
mod tcp;
mod validity;

pub use accept::STRANGERS;
pub use authority::Anchors;
pub use broken::NOT_ADMITTED;
pub use client_identity::{DNS, MAX_IDENTITY, SPIFFE, check_identity, identity_of};
pub use endpoint::{Endpoint, PeerAddress};
pub use halt::Halt;
pub use identity::{Identity, verify_signature};
pub use limits::{CLIENT_CONNECT, Limits};
pub use line::{Line, call};
pub use mesh::Mesh;
pub use meter::WireMeter;
pub use net::{Farewells, TlsNet};
pub use node::Node;
pub use pinned::Admits;
pub use reception::{Caller, Reception};
pub use rustls::pki_types::CertificateDer;
pub use sealing::{SEALING_TAG, Sealed, seal_to};
pub use shape::Shape;
pub use shaped::Shaped;
pub use validity::expiry;
