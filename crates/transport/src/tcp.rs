//! Options of TCP connections.

use std::net::TcpStream;

use polyclave_protocol::Error;

/// Non-blocking, and nothing is held back to be sent with what follows.
pub(crate) fn set_up(tcp: &TcpStream) -> Result<(), Error> {
    let set = tcp.set_nonblocking(true).and_then(|()| tcp.set_nodelay(true));
    set.map_err(|e| Error::System(format!("cannot set up a TCP connection: {e}")))?;
    spare_loopback_the_pacing(tcp);
    Ok(())
}

/// Congestion control that paces what it sends (BBR) costs loopback some 15% of processor time in timers and gives it
/// nothing. Only an optimisation, so it may fail; between machines the administrator's choice holds.
fn spare_loopback_the_pacing(tcp: &TcpStream) {
    #[cfg(target_os = "linux")]
    if tcp.peer_addr().is_ok_and(|peer| peer.ip().is_loopback()) {
        let _ = rustix::net::sockopt::set_tcp_congestion(tcp, "reno");
    }
}
