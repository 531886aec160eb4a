//! The TLS state machine of the client's or the server's side.

use std::sync::Arc;

use polyclave_protocol::Error;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ServerConfig};

use crate::buffer::Buffer;
use crate::identity::no_name;
use crate::machine::{Arrived, Did, Task, step};

/// Which side this is.
pub(crate) enum Tls {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

impl Tls {
    /// The dialling side.
    pub(crate) fn client(config: Arc<ClientConfig>) -> Result<Self, Error> {
        UnbufferedClientConnection::new(config, no_name()).map(Tls::Client).map_err(unable)
    }

    /// The accepting side.
    pub(crate) fn server(config: Arc<ServerConfig>) -> Result<Self, Error> {
        UnbufferedServerConnection::new(config).map(Tls::Server).map_err(unable)
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match self {
            Tls::Client(tls) => tls.is_handshaking(),
            Tls::Server(tls) => tls.is_handshaking(),
        }
    }

    /// The certificates that the peer has shown, its own first.
    pub(crate) fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        let certificates = match self {
            Tls::Client(tls) => tls.peer_certificates(),
            Tls::Server(tls) => tls.peer_certificates(),
        };
        certificates.unwrap_or_default()
    }

    /// Does one step. Also returns how many bytes of `inbound` are used up.
    pub(crate) fn step(
        &mut self,
        inbound: &mut [u8],
        outbound: &mut Buffer,
        task: Task<'_>,
        arrived: &mut Arrived<'_, '_, '_>,
    ) -> (usize, Result<Did, rustls::Error>) {
        match self {
            Tls::Client(tls) => step(tls.process_tls_records(inbound), outbound, task, arrived),
            Tls::Server(tls) => step(tls.process_tls_records(inbound), outbound, task, arrived),
        }
    }
}

fn unable(e: rustls::Error) -> Error {
    Error::System(format!("cannot begin a TLS handshake: {e}"))
}
