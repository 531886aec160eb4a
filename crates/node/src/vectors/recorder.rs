//! A network that notes what is sent.

use polyclave_protocol::any::AnyServiceConfig;
use polyclave_protocol::mesh::Mesh;
use polyclave_protocol::net::Net;
use polyclave_protocol::service::ServiceConfig;
use polyclave_protocol::{Error, Party};

use crate::Result;

/// A message, to some peers that get the same or, if there are none, to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) phase: &'static str,
    pub(super) step: &'static str,
    /// Which step of the run it is, and which exchange or message in it.
    pub(super) place: [usize; 2],
    pub(super) from: Party,
    pub(super) to: Vec<Party>,
    pub(super) bytes: Vec<u8>,
}

/// One party's end.
pub(super) struct Recorder {
    net: Mesh,
    at: [&'static str; 2],
    place: [usize; 2],
    /// Whether messages were sent one by one at this place.
    is_single: bool,
    is_on: bool,
    sent: Vec<Sent>,
}

impl Recorder {
    pub(super) fn new(net: Mesh) -> Recorder {
        Recorder { net, at: ["", ""], place: [0, 0], is_single: false, is_on: true, sent: Vec::new() }
    }

    /// What follows belongs to the first step of another phase.
    pub(super) fn begin(&mut self, phase: &'static str, step: &'static str) {
        self.at[0] = phase;
        self.next(step);
    }

    /// What follows belongs to another step.
    pub(super) fn next(&mut self, step: &'static str) {
        self.at[1] = step;
        (self.place, self.is_single) = ([self.place[0] + 1, 0], false);
    }

    /// Nothing more is noted.
    pub(super) fn stop(&mut self) {
        self.is_on = false;
    }

    pub(super) fn into_sent(self) -> Vec<Sent> {
        self.sent
    }

    /// The parts of all nodes of a value of bytes or of an element, as the client combines them. Every node
    /// plays the client.
    pub(super) fn told(
        &mut self,
        step: &'static str,
        config: &AnyServiceConfig,
        part: &[u8],
    ) -> Result<Vec<u8>> {
        self.next(step);
        self.note(&[], part);
        let (me, members) = (self.net.me(), self.net.members());
        members.iter().filter(|peer| *peer != me).try_for_each(|peer| self.net.send(peer, part))?;
        let mut parts = Vec::new();
        for from in members.iter() {
            let mut heard = part.to_vec();
            if from != me {
                self.net.recv(from, &mut heard)?;
            }
            parts.push(heard);
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        match step {
            "tag to the client" => Ok(config.combine_elements(members, &parts)?.into_flattened()),
            _ => Ok(config.combine(members, &parts)?.to_vec()),
        }
    }

    /// Sends the same to all others, one after the other.
    pub(super) fn tell_peers(&mut self, message: &[u8]) -> Result<()> {
        let (me, members) = (self.net.me(), self.net.members());
        members.iter().filter(|peer| *peer != me).try_for_each(|peer| self.send(peer, message))
    }

    fn note(&mut self, to: &[Party], bytes: &[u8]) {
        if !self.is_on {
            return;
        }
        let ([phase, step], place, from) = (self.at, self.place, self.net.me());
        // The same to another peer is one message to both.
        if let Some(last) = self.sent.last_mut()
            && last.place == place
            && last.bytes == bytes
            && !last.to.is_empty()
            && !last.to.iter().any(|peer| to.contains(peer))
        {
            return last.to.extend(to);
        }
        self.sent.push(Sent { phase, step, place, from, to: to.to_vec(), bytes: bytes.to_vec() });
    }
}

impl Net for Recorder {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost);

    /// Messages that are sent one by one follow each other at one place.
    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.is_single = true;
        self.note(&[to], message);
        self.net.send(to, message)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        self.place[1] += usize::from(std::mem::take(&mut self.is_single));
        for (to, message) in Party::all(out.len()).zip(out).filter(|(_, message)| !message.is_empty()) {
            self.note(&[to], message);
        }
        self.place[1] += 1;
        self.net.exchange(out, into)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Err(Error::misuse("a run of the vectors has one stream"))
    }
}
