//! A network whose exchanges a test makes in its own way: for a party that cheats, falls silent, or knows
//! what others are about to send.
//!
//! Everything except [`Net::exchange`] goes to the network below as it is. Forks of it are forks of the
//! network below.

use polyclave_protocol::net::Net;
use polyclave_protocol::{Error, Result};

/// A network with exchanges of its own.
pub struct Exchanging<N, E> {
    net: N,
    exchange: E,
}

impl<N: Net, E> Exchanging<N, E>
where
    E: FnMut(&mut dyn Net, &[&[u8]], &mut [&mut [u8]]) -> Result<()> + Send,
{
    /// Makes each exchange by `exchange`, which gets the network below and what [`Net::exchange`] gets.
    pub fn new(net: N, exchange: E) -> Self {
        Exchanging { net, exchange }
    }
}

/// A network that changes what the party sends in exchanges. `change` gets the messages of each exchange, by
/// party.
pub fn changing<N: Net>(net: N, mut change: impl FnMut(&mut [Vec<u8>]) + Send) -> impl Net {
    Exchanging::new(net, move |net, out, into| {
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        change(&mut out);
        net.exchange(&out.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)
    })
}

/// A network that fails after this many exchanges, so that the party says no more.
pub fn ending_after<N: Net>(net: N, exchanges: usize) -> impl Net {
    let mut left = exchanges;
    Exchanging::new(net, move |net, out, into| {
        left = left.checked_sub(1).ok_or_else(|| Error::misuse("this party says no more"))?;
        net.exchange(out, into)
    })
}

impl<N: Net, E> Net for Exchanging<N, E>
where
    E: FnMut(&mut dyn Net, &[&[u8]], &mut [&mut [u8]]) -> Result<()> + Send,
{
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        (self.exchange)(&mut self.net, out, into)
    }
}
