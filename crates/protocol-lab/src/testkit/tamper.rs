//! A network that cheats once. The party that uses it acts as a malicious party would.
//!
//! TLS protects messages on their way, so the cheating happens above it, in what the party itself passes to
//! the network. Messages sent are counted from 0, over sends and entries of exchanges and gatherings (in the
//! order of the parties; without those to lost peers), over the network and its forks together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use parking_lot::Mutex;

use polyclave_protocol::net::{Gathered, Net, Patience};
use polyclave_protocol::{Party, PartySet, Result};

/// What happens to the message that is tampered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One bit is wrong. Positions wrap around at the message's length and at 8.
    FlipBit {
        /// Which byte.
        byte: usize,
        /// Which bit of it, 0 the lowest.
        bit: u32,
    },
    /// It is never sent.
    Drop,
    /// The previous message to the same peer on the same stream is sent in its place. Without a previous one
    /// this is no fault, and [`Tampering::fired`] says so.
    Replay,
    /// Its last byte is missing.
    Truncate,
    /// Random bytes of the same length are sent in its place.
    Garbage {
        /// Determines the bytes.
        seed: u64,
    },
    /// It comes late, and so does everything after it.
    Stall(Duration),
}

/// A network that commits one fault.
pub struct Tamper<N> {
    net: N,
    plan: Arc<Plan>,
    /// The last message to each party, kept for [`Fault::Replay`] only.
    previous: Vec<Option<Vec<u8>>>,
}

struct Plan {
    at: u64,
    fault: Fault,
    tampering: Tampering,
}

/// Tells from outside what a [`Tamper`] has done so far. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct Tampering {
    messages: Arc<AtomicU64>,
    fired: Arc<AtomicBool>,
    hit: Arc<Mutex<Option<Party>>>,
}

impl<N: Net> Tamper<N> {
    /// Commits `fault` on the message number `at`.
    pub fn new(net: N, at: u64, fault: Fault) -> Self {
        let previous = vec![None; net.parties()];
        Tamper { net, plan: Arc::new(Plan { at, fault, tampering: Tampering::default() }), previous }
    }

    /// To be asked after the run.
    pub fn tampering(&self) -> Tampering {
        self.plan.tampering.clone()
    }

    /// Counts a message and tells what to do with it.
    fn next(&mut self, to: Party, message: &[u8]) -> Delivery {
        let plan = &self.plan;
        let due = plan.tampering.messages.fetch_add(1, SeqCst) == plan.at;
        let delivery = if due {
            plan.fault.applied(message, self.previous[to.index()].as_deref())
        } else {
            Delivery::Intact
        };
        if !matches!(delivery, Delivery::Intact) {
            plan.tampering.fired.store(true, SeqCst);
            *plan.tampering.hit.lock() = Some(to);
        }
        if plan.fault == Fault::Replay {
            self.previous[to.index()] = Some(message.to_vec());
        }
        delivery
    }

    /// What to gather with in the place of which messages; nothing, if the message is never sent or has been
    /// sent already.
    fn replacements(&mut self, out: &[&[u8]], lost: PartySet) -> Result<Vec<Option<Vec<u8>>>> {
        let mut replaced = vec![None; out.len()];
        for (to, message) in Party::all(out.len()).zip(out) {
            if message.is_empty() || lost.contains(to) {
                continue;
            }
            match self.next(to, message) {
                Delivery::Intact => {}
                Delivery::Late(time) => std::thread::sleep(time),
                Delivery::Never => replaced[to.index()] = Some(Vec::new()),
                Delivery::Replaced(other) => {
                    if other.is_empty() {
                        // Apart, since a message cut down to nothing must still be sent.
                        self.net.send(to, &other)?;
                    }
                    replaced[to.index()] = Some(other);
                }
            }
        }
        Ok(replaced)
    }
}

impl Tampering {
    /// Messages that the party wanted to send so far.
    pub fn messages(&self) -> u64 {
        self.messages.load(SeqCst)
    }

    /// Whether the fault was committed.
    pub fn fired(&self) -> bool {
        self.fired.load(SeqCst)
    }

    /// To whom the message was that was tampered with.
    pub fn hit(&self) -> Option<Party> {
        *self.hit.lock()
    }
}

/// What is done with one message.
enum Delivery {
    Intact,
    Late(Duration),
    Replaced(Vec<u8>),
    Never,
}

impl Fault {
    fn applied(&self, message: &[u8], previous: Option<&[u8]>) -> Delivery {
        let mut bytes = message.to_vec();
        match *self {
            Fault::FlipBit { .. } | Fault::Truncate | Fault::Garbage { .. } if message.is_empty() => {
                return Delivery::Intact;
            }
            Fault::FlipBit { byte, bit } => bytes[byte % message.len()] ^= 1 << (bit % 8),
            Fault::Drop => return Delivery::Never,
            Fault::Replay => {
                return previous.map_or(Delivery::Intact, |old| Delivery::Replaced(old.to_vec()));
            }
            Fault::Truncate => _ = bytes.pop(),
            Fault::Garbage { seed } => {
                let hasher = blake3::Hasher::new_derive_key("polyclave testkit garbage")
                    .update(&seed.to_le_bytes())
                    .clone();
                hasher.finalize_xof().fill(&mut bytes);
            }
            Fault::Stall(time) => return Delivery::Late(time),
        }
        Delivery::Replaced(bytes)
    }
}

impl<N: Net> Net for Tamper<N> {
    polyclave_protocol::forward_net!(self => self.net; me, parties, members, recv, lost);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        match self.next(to, message) {
            Delivery::Intact => self.net.send(to, message),
            Delivery::Late(time) => {
                std::thread::sleep(time);
                self.net.send(to, message)
            }
            Delivery::Replaced(other) => self.net.send(to, &other),
            Delivery::Never => Ok(()),
        }
    }

    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        let mut rest = out.to_vec();
        for (to, message) in Party::all(out.len()).zip(out).filter(|(_, message)| !message.is_empty()) {
            match self.next(to, message) {
                Delivery::Intact => continue,
                Delivery::Late(time) => {
                    std::thread::sleep(time);
                    continue;
                }
                // Apart, since a message cut down to nothing must still be sent.
                Delivery::Replaced(other) => self.net.send(to, &other)?,
                Delivery::Never => {}
            }
            rest[to.index()] = &[];
        }
        self.net.exchange(&rest, into)
    }

    fn gather(
        &mut self,
        out: &[&[u8]],
        into: &mut [&mut [u8]],
        patience: Patience,
        enough: &mut dyn FnMut(PartySet, &[&mut [u8]]) -> bool,
    ) -> Result<Gathered> {
        let lost = self.net.lost();
        let replaced = self.replacements(out, lost)?;
        let rest: Vec<&[u8]> =
            out.iter().zip(&replaced).map(|(message, other)| other.as_deref().unwrap_or(message)).collect();
        self.net.gather(&rest, into, patience, enough)
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        let net = self.net.fork()?;
        let previous = vec![None; net.parties()];
        Ok(Box::new(Tamper { net, plan: self.plan.clone(), previous }))
    }

    fn fork_among(&mut self, members: PartySet, name: &[u8]) -> Result<Box<dyn Net>> {
        let net = self.net.fork_among(members, name)?;
        let previous = vec![None; net.parties()];
        Ok(Box::new(Tamper { net, plan: self.plan.clone(), previous }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polyclave_protocol::Error;
    use polyclave_protocol::mesh::{Mesh, mesh_with_timeout};

    #[test]
    fn only_the_chosen_message_is_flipped() {
        let (mut a, mut b) = cheating(1, Fault::FlipBit { byte: 2, bit: 7 });
        for _ in 0..3 {
            a.send(Party(1), b"abc").expect("send");
        }
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"abc"[..]));
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"ab\xe3"[..]));
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"abc"[..]));
        let tampering = a.tampering();
        assert_eq!((tampering.messages(), tampering.hit()), (3, Some(Party(1))));
    }

    #[test]
    fn a_dropped_message_never_arrives() {
        let (mut a, mut b) = cheating(0, Fault::Drop);
        a.exchange(&[b"", b"lost"], &mut [&mut [], &mut []]).expect("exchange");
        assert!(matches!(received(&mut b, 4), Err(Error::Timeout { peer: Party(0), .. })));
    }

    #[test]
    fn a_replayed_message_takes_the_place_of_the_next() {
        let (mut a, mut b) = cheating(1, Fault::Replay);
        a.send(Party(1), b"one").expect("send");
        a.exchange(&[b"", b"two"], &mut [&mut [], &mut []]).expect("exchange");
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"one"[..]));
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"one"[..]));
    }

    #[test]
    fn a_replay_of_nothing_is_no_fault() {
        let (mut a, mut b) = cheating(0, Fault::Replay);
        a.send(Party(1), b"one").expect("send");
        assert_eq!(received(&mut b, 3).as_deref(), Ok(&b"one"[..]));
        assert!(!a.tampering().fired());
    }

    #[test]
    fn a_truncated_message_has_the_wrong_length() {
        let (mut a, mut b) = cheating(0, Fault::Truncate);
        a.exchange(&[b"", b"x"], &mut [&mut [], &mut []]).expect("exchange");
        assert!(matches!(received(&mut b, 1), Err(Error::Peer { peer: Party(0), .. })));
    }

    #[test]
    fn garbage_has_the_right_length_and_follows_from_its_seed() {
        let garbage = |seed| {
            let (mut a, mut b) = cheating(0, Fault::Garbage { seed });
            a.send(Party(1), &[0; 32]).expect("send");
            received(&mut b, 32).expect("the due length")
        };
        assert_eq!(garbage(1), garbage(1));
        assert_ne!(garbage(1), garbage(2));
    }

    #[test]
    fn messages_of_forks_are_counted_along() {
        let (mut a, mut b) = cheating(1, Fault::Garbage { seed: 3 });
        let (mut a2, mut b2) = (a.fork().expect("fork"), b.fork().expect("fork"));
        a.send(Party(1), &[0; 16]).expect("send");
        a2.send(Party(1), &[0; 16]).expect("send");
        assert_eq!(received(&mut b, 16), Ok(vec![0; 16]));
        assert_ne!(received(&mut *b2, 16), Ok(vec![0; 16]));
    }

    #[test]
    fn a_stalled_message_still_arrives() {
        let (mut a, mut b) = cheating(0, Fault::Stall(Duration::from_millis(1)));
        a.send(Party(1), b"late").expect("send");
        assert_eq!(received(&mut b, 4).as_deref(), Ok(&b"late"[..]));
        assert!(a.tampering().fired());
    }

    fn cheating(at: u64, fault: Fault) -> (Tamper<Mesh>, Mesh) {
        let mut nets = mesh_with_timeout(2, Duration::from_millis(50)).into_iter();
        let (a, b) = (nets.next().expect("two"), nets.next().expect("two"));
        (Tamper::new(a, at, fault), b)
    }

    fn received(net: &mut dyn Net, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        net.recv(Party(0), &mut bytes)?;
        Ok(bytes)
    }
}
