//! Opening a listening TCP port.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

use polyclave_protocol::{Error, Result};

/// Listens on `address` and returns the address with the real port; port 0 means any free port.
pub(crate) fn listen(address: impl ToSocketAddrs) -> Result<(TcpListener, SocketAddr)> {
    let addresses = address.to_socket_addrs();
    let addresses: Vec<_> =
        addresses.map_err(|e| Error::misuse(format!("no address to listen on: {e}")))?.collect();
    let listener = TcpListener::bind(&addresses[..]).map_err(|e| {
        let shown: Vec<_> = addresses.iter().map(SocketAddr::to_string).collect();
        let shown = shown.join(", ");
        Error::System(format!("cannot listen on {shown}: {e}; stop what uses it or choose another port"))
    })?;
    let local_addr = listener.local_addr();
    let local_addr = local_addr.map_err(|e| Error::System(format!("a listener without address: {e}")))?;
    Ok((listener, local_addr))
}
