//! The in-memory mesh, of which memcheck knows what is public.

use std::time::Duration;

use polyclave_kernels::secret::mark_public;
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Party, PartySet, Result};

/// Valgrind runs one thread at a time, and that one slowly.
const TIMEOUT: Duration = Duration::from_secs(600);

/// One party's end of the mesh.
pub struct Watched {
    net: Box<dyn Net>,
    /// What is sent stays secret: keys that some parties have in common, and what goes to clients.
    pub in_private: bool,
}

/// Runs all parties, each on a thread of its own, and returns what they return, in order.
///
/// # Panics
/// If a party fails.
pub fn run_parties<T: Send>(n: usize, party: impl Fn(&mut Watched) -> Result<T> + Sync) -> Vec<T> {
    let party = &party;
    std::thread::scope(|scope| {
        let start = |net| {
            let mut net = Watched { net: Box::new(net), in_private: false };
            scope.spawn(move || party(&mut net).expect("honest parties finish"))
        };
        let threads: Vec<_> = mesh_with_timeout(n, TIMEOUT).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

impl Watched {
    fn publish(&self, message: &[u8]) {
        if !self.in_private {
            mark_public(message);
        }
    }
}

impl Net for Watched {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.publish(message);
        self.net.send(to, message)
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        out.iter().for_each(|message| self.publish(message));
        self.net.exchange(out, into)
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        out.iter().for_each(|message| self.publish(message));
        self.net.gather(out, into, patience, enough)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        Ok(Box::new(Watched { net: self.net.fork()?, in_private: self.in_private }))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        Ok(Box::new(Watched { net: self.net.fork_among(members, name)?, in_private: self.in_private }))
    }
}
