//! Options of TCP connections.

use std::net::TcpStream;

use polyclave_protocol::Error;

/// Makes the socket non-blocking, and lets it send small messages at once (no Nagle's algorithm).
pub(crate) fn set_up(tcp: &TcpStream) -> Result<(), Error> {
    let set = tcp.set_nonblocking(true).and_then(|()| tcp.set_nodelay(true));
    set.map_err(|e| Error::System(format!("cannot set up a TCP connection: {e}")))?;
    spare_loopback_the_pacing(tcp);
    Ok(())
}

/// On loopback, congestion control that paces what it sends (BBR) costs some 15% of processor time in timers
/// and gains nothing. This is only an optimisation, so it may fail. Between machines the administrator's
/// choice applies.
fn spare_loopback_the_pacing(tcp: &TcpStream) {
    #[cfg(target_os = "linux")]
    if tcp.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
        let _ = rustix::net::sockopt::set_tcp_congestion(tcp, "reno");
    }
}
