//! A network around a party that knows what it cheats at.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use polyclave_protocol::mesh::Mesh;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet, Result};

/// What party 1 does differently in some of its exchanges, counted from 0.
#[derive(Clone, Copy)]
pub enum Act {
    Honest,
    /// Flips a bit of what it tells some; if these are all others, also of what it hears, so that it sees
    /// what they see.
    Shift {
        to: PartySet,
        bit: u32,
    },
    /// Waits for the others and repeats what one of them said.
    Mirror,
    /// Waits for the others' shares and makes the sum this.
    Choose(u8),
}

pub struct Cheat {
    net: Mesh,
    act: Act,
    at: Range<usize>,
    exchanges: usize,
    /// Messages sent.
    pub sent: Arc<AtomicUsize>,
}

impl Cheat {
    pub fn new(net: Mesh, act: Act, at: Range<usize>) -> Cheat {
        Cheat { net, act, at, exchanges: 0, sent: Arc::default() }
    }
}

impl Net for Cheat {
    polyclave_protocol::forward_net!(self => self.net; me, parties, send, recv, fork);

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.sent.fetch_add(out.iter().filter(|message| !message.is_empty()).count(), SeqCst);
        self.exchanges += 1;
        if !self.at.contains(&(self.exchanges - 1)) {
            return self.net.exchange(out, into);
        }
        let mut out: Vec<Vec<u8>> = out.iter().map(|message| message.to_vec()).collect();
        let peers: Vec<Party> = self.me().peers(self.parties()).collect();
        match self.act {
            Act::Honest => {}
            Act::Shift { to, bit } => {
                peers.iter().filter(|p| to.contains(**p)).for_each(|p| out[p.index()][0] ^= 1 << bit)
            }
            Act::Mirror | Act::Choose(_) => {
                for p in &peers {
                    self.net.recv(*p, into[p.index()])?;
                }
                let word = match self.act {
                    Act::Choose(sum) => (0..out[peers[0].index()].len())
                        .map(|i| peers.iter().fold(sum, |sum, p| sum ^ into[p.index()][i]))
                        .collect(),
                    _ => into[peers[0].index()].to_vec(),
                };
                peers.iter().try_for_each(|p| self.net.send(*p, &word))?;
                if matches!(self.act, Act::Choose(_)) {
                    // It sees what the others see.
                    let own = out[peers[0].index()].iter().zip(&word);
                    let heard = into[peers[0].index()].iter_mut();
                    heard.zip(own).for_each(|(heard, (own, word))| *heard ^= own ^ word);
                }
                return Ok(());
            }
        }
        self.net.exchange(&out.iter().map(Vec::as_slice).collect::<Vec<_>>(), into)?;
        match self.act {
            Act::Shift { to, bit } if peers.iter().all(|p| to.contains(*p)) => {
                into[peers[0].index()].iter_mut().take(1).for_each(|byte| *byte ^= 1 << bit);
            }
            _ => {}
        }
        Ok(())
    }
}
