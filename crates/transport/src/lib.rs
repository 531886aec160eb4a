//! The network between parties: mutually authenticated TLS 1.3 over TCP, and networks of other speeds imitated on it.
//!
//! An [`Endpoint`] listens under an [`Identity`]; [`Endpoint::join`] turns it into a [`TlsNet`], which implements
//! [`polyclave_protocol::net::Net`]. [`Shaped`] wraps any such network in delays.
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
mod broken;
mod buffer;
mod dial;
mod endpoint;
mod frame;
mod greeting;
mod limits;
mod link;
mod machine;
mod meter;
mod net;
mod session;
mod shape;
mod shaped;
mod socket;
mod stream;
mod switchboard;
mod tls;
pub mod wire;

pub use endpoint::{Endpoint, PeerAddress};
pub use limits::Limits;
pub use meter::WireMeter;
pub use net::TlsNet;
pub use rustls::pki_types::CertificateDer;
pub use shape::Shape;
pub use shaped::Shaped;
pub use tls::Identity;
