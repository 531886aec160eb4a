//! Random bytes for a client. Each node draws its own from its operating system and sends them to the client
//! alone, which adds them up.
//!
//! # Why this needs no protocol among the nodes
//!
//! The sum is uniform and unknown to everybody but the client as long as one of the nodes that answer is
//! honest. The part of that node is uniform and is sent over a channel of its own. No other node ever sees
//! it. So n - 1 nodes that depart from the protocol in any way cannot choose or learn a bit. They can only
//! fall silent, without knowing what they prevent. A shared mask of the protocol
//! ([`mask_input`](polyclave_protocol::service::ServiceSession::mask_input)) would promise less: under Shamir
//! sharing it follows from common secrets that t + 1 nodes hold, so an attacker that steals them later could
//! compute it again from a session's messages. Nothing is verified, because any bytes of a cheating node are
//! as good as any others.

use std::time::Duration;

use polyclave_api::{Describe, MAX_RANDOM, Reason, Refusal, Reply, operations};
use polyclave_protocol::session::random_bytes;

use crate::clients::client::Client;
use crate::core::Core;

/// This node's part.
pub(crate) fn draw(core: &Core, client: &Client, bytes: u32) -> Result<Reply, Refusal> {
    let _held = core.service.clients.request(&client.name)?;
    let asked = operations::Random { bytes }.permissions();
    core.rules.charge(client, &asked, [1, 0])?;
    let count = bytes as usize;
    if count == 0 || count > MAX_RANDOM {
        let message = format!("{count} random bytes; a request gets 1 to {MAX_RANDOM}");
        return Err(Refusal::new(Reason::Malformed, message));
    }
    let mut drawn = vec![0; count];
    random_bytes(&mut drawn).map_err(|e| Refusal::new(Reason::Internal, e.to_string()))?;
    let pause = core.service.clients.charge(&client.name, count);
    if pause > Duration::ZERO {
        std::thread::sleep(pause);
    }
    Ok(Reply::Random(drawn))
}
