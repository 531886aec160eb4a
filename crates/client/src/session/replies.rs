//! Messages to nodes and their replies. The [`strategy`](crate::session::strategy) decides which replies to
//! wait for.

use std::time::{Duration, Instant};

use polyclave_api::{self as api, MAX_MESSAGE, Reply};
use polyclave_protocol::net::{self, Net};
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::TlsNet;

use super::conversation::Conversation;

/// The longest wait for one reply, whatever nodes report: a node that only claims to work cannot hold a
/// client for ever.
pub(crate) const LONGEST: Duration = Duration::from_secs(15 * 60);
/// How long to wait for other nodes' reasons after one refusal.
pub(crate) const OTHER_REASONS: Duration = Duration::from_millis(300);
/// The time limit for a reply that has begun, however slowly it arrives.
pub(crate) const BEGUN: Duration = Duration::from_secs(10);
/// How long to wait at the end for late replies, so that their connections can be used again.
pub(crate) const LATE: Duration = Duration::from_millis(200);

/// Replies to one message, in the order in which they came.
pub(crate) type Replies = [(Party, Reply)];

impl Conversation<'_> {
    /// Receives late replies, if they come soon. Returns the nodes whose connections can be used again.
    pub(crate) fn settle_debts(&mut self) -> PartySet {
        let until = Instant::now() + LATE;
        let owing =
            |owed: &[usize]| -> PartySet { Party::all(owed.len()).filter(|p| owed[p.index()] > 0).collect() };
        while !owing(&self.owed).is_empty() {
            let within = until.saturating_duration_since(Instant::now());
            let Ok(Some(party)) = self.net.wait_for_any(owing(&self.owed), within) else { break };
            match receive(&mut self.net, party).map(|reply| api::decode(&reply, party)) {
                Some(Ok(Reply::Working { .. })) => {}
                Some(_) => self.owed[party.index()] -= 1,
                None if self.net.lost().contains(party) => self.owed[party.index()] = 0,
                None => break,
            }
        }
        self.there.without(owing(&self.owed)).without(self.net.lost())
    }
}

/// Sends the same to some nodes. A node that cannot be reached any more counts as lost.
pub(crate) fn send_to_each(net: &mut TlsNet, to: PartySet, bytes: &[u8]) -> polyclave_protocol::Result<()> {
    let (head, body) = bytes.split_at(4);
    for part in [head, body] {
        let to = to.without(net.lost());
        let out: Vec<&[u8]> =
            Party::all(net.parties()).map(|p| if to.contains(p) { part } else { &[][..] }).collect();
        let mut nothing: Vec<&mut [u8]> = out.iter().map(|_| &mut [][..]).collect();
        net.gather(&out, &mut nothing, net::Patience::of(1), &mut |_, _| true)?;
    }
    Ok(())
}

/// Receives a message of one node. The node counts as lost if it sends none, or a malformed one.
pub(crate) fn receive(net: &mut TlsNet, from: Party) -> Option<Vec<u8>> {
    net.set_deadline(Some(Instant::now() + BEGUN));
    let mut len = [0; 4];
    let whole = receive_exactly(net, from, &mut len).and_then(|()| {
        let len = u32::from_le_bytes(len) as usize;
        let mut bytes = vec![0; (1..=MAX_MESSAGE).contains(&len).then_some(len)?];
        receive_exactly(net, from, &mut bytes).map(|()| bytes)
    });
    net.set_deadline(None);
    whole
}

fn receive_exactly(net: &mut TlsNet, from: Party, bytes: &mut [u8]) -> Option<()> {
    let out = vec![&[][..]; net.parties()];
    let mut bytes = Some(bytes);
    let mut into: Vec<&mut [u8]> = Party::all(net.parties())
        .map(|p| if p == from { bytes.take().unwrap_or_default() } else { &mut [][..] })
        .collect();
    let gathered = net.gather(&out, &mut into, net::Patience::of(1), &mut |_, _| false).ok()?;
    gathered.arrived.contains(from).then_some(())
}
