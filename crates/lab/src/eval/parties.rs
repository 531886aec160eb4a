//! Parties in a session, with everything they send counted: all of them as threads of this process; or one of
//! them, whose peers are elsewhere.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use polyclave_cipher::{Builder, Cells, Compiled, CompiledPort, Maps, Port, Wire, compile_with_views};
use polyclave_protocol::any::{AnyProtocolConfig, AnySession, AnyShared};
use polyclave_protocol::evaluate::{evaluate, prepare, release};
use polyclave_protocol::mesh::mesh;
use polyclave_protocol::metered::{Meter, Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::protocol::{Input, Owner, ProtocolConfig, Session};
use polyclave_protocol::release::Released;
use polyclave_protocol::session::{HandshakeParameters, hello};
use polyclave_protocol::tally::{Counts, Tally};
use polyclave_protocol::{Error, Party, Result};
use polyclave_transport::WireMeter;

/// A party in a session: its protocol and its network.
pub struct Seat {
    protocol: AnySession,
    net: Connection,
    meter: Arc<Meter>,
    wire: Option<Arc<WireMeter>>,
}

/// A party's network, of any kind.
pub type Connection = Metered<Box<dyn Net>>;

/// The cost of one part of a session. For several parties: the counts of the first, and the bytes of the
/// busiest. The counts are the same for all, except that under garbled circuits the first party hashes more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Operations and rounds.
    pub counts: Counts,
    /// Bytes of all messages sent.
    pub payload_bytes: u64,
    /// Bytes of all messages received.
    pub payload_bytes_received: u64,
    /// Bytes sent at the sockets, if there are any.
    pub socket_bytes: u64,
    /// Bytes received at the sockets.
    pub socket_bytes_received: u64,
    /// The time it took.
    pub time: Duration,
}

/// The cost of an evaluation by parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// Material made before the inputs are known.
    pub preprocessing: Spent,
    /// Sharing the inputs.
    pub input: Spent,
    /// The evaluation itself.
    pub online: Spent,
    /// Revealing the output to all.
    pub output: Spent,
}

/// The sum of two parts.
impl std::ops::Add for Spent {
    type Output = Spent;

    fn add(self, other: Spent) -> Spent {
        let mut counts = self.counts;
        counts += other.counts;
        Spent {
            counts,
            payload_bytes: self.payload_bytes + other.payload_bytes,
            payload_bytes_received: self.payload_bytes_received + other.payload_bytes_received,
            socket_bytes: self.socket_bytes + other.socket_bytes,
            socket_bytes_received: self.socket_bytes_received + other.socket_bytes_received,
            time: self.time + other.time,
        }
    }
}

impl Spent {
    fn busiest(self, other: Spent) -> Spent {
        Spent {
            counts: self.counts,
            payload_bytes: self.payload_bytes.max(other.payload_bytes),
            payload_bytes_received: self.payload_bytes_received.max(other.payload_bytes_received),
            socket_bytes: self.socket_bytes.max(other.socket_bytes),
            socket_bytes_received: self.socket_bytes_received.max(other.socket_bytes_received),
            time: self.time.max(other.time),
        }
    }
}

impl Bill {
    /// The bill of several parties together.
    pub fn busiest(self, other: Bill) -> Bill {
        Bill {
            preprocessing: self.preprocessing.busiest(other.preprocessing),
            input: self.input.busiest(other.input),
            online: self.online.busiest(other.online),
            output: self.output.busiest(other.output),
        }
    }
}

/// Seats all parties in one session. Each runs `work` on a thread of its own. `subject` is what they must
/// agree to evaluate. Returns their results in order.
pub fn in_session<T: Send>(
    config: &AnyProtocolConfig,
    subject: &[u8],
    work: impl Fn(&mut Seat) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let terms = config.handshake(HandshakeParameters::new(config.parties())).with("circuits", subject);
    let party = |net: Connection| work(&mut Seat::take(config, &terms, net, None)?);
    let results: Vec<Result<T>> = thread::scope(|scope| {
        let party = &party;
        let nets = mesh(config.parties()).into_iter().map(|net| Metered::new(Box::new(net) as Box<dyn Net>));
        let threads: Vec<_> = nets.map(|net| scope.spawn(move || party(net))).collect();
        let panicked = |_| Err(Error::System("a party's thread panicked".into()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    // A party that fails closes its channels. So the others' errors are only a consequence.
    let consequence = |e: &Error| matches!(e, Error::Closed { .. } | Error::Unanswered { .. });
    let errors = results.iter().filter_map(|r| r.as_ref().err());
    match errors.min_by_key(|e| consequence(e)) {
        Some(error) => Err(error.clone()),
        None => results.into_iter().collect(),
    }
}

/// A circuit that computes nothing. Its output is what a later circuit takes at these ports, with all views
/// that any of them needs. Sharing an input through it keeps the sharing out of that circuit's count.
pub fn entrance(ports: &[&CompiledPort], maps: &impl Maps) -> Compiled {
    let port = ports[0];
    let mut b = Builder::new(&format!("share {}", port.name));
    let cells = declare(&mut b, port);
    b.output(&port.name, &cells);
    compile_with_views(&b.finish(), maps, |_| ports.iter().flat_map(|p| p.views()).collect())
}

/// The same for several ports of different names at once, so that they are shared in the same round.
pub fn entrance_of_all(ports: &[CompiledPort], maps: &impl Maps) -> Compiled {
    let mut b = Builder::new("share all");
    let inputs: Vec<_> = ports.iter().map(|port| declare(&mut b, port)).collect();
    ports.iter().zip(&inputs).for_each(|(port, cells)| b.output(&port.name, cells));
    let views =
        |output: &Port| ports.iter().filter(|p| p.name == output.name).flat_map(|p| p.views()).collect();
    compile_with_views(&b.finish(), maps, views)
}

fn declare(b: &mut Builder, port: &CompiledPort) -> Vec<Wire> {
    match port.uniform {
        true => b.uniform_input(&port.name, port.cells.len(), port.bits),
        false => b.input(&port.name, port.cells.len(), port.bits),
    }
}

impl Seat {
    /// Agrees on a session with the others and sets the protocol up. `wire` counts the bytes at the sockets,
    /// if there are any.
    pub fn take(
        config: &AnyProtocolConfig,
        terms: &HandshakeParameters,
        mut net: Connection,
        wire: Option<Arc<WireMeter>>,
    ) -> Result<Seat> {
        let mut session = hello(terms, &mut net)?;
        let setup = config.setup(&mut net)?;
        let meter = net.meter();
        Ok(Seat { protocol: config.join(&setup, session.stream(), net.members())?, net, meter, wire })
    }

    /// The first party, which reports on behalf of all.
    pub fn is_first(&self) -> bool {
        self.net.me() == Party(0)
    }

    /// The session, for compiling and for predictions.
    pub fn protocol(&self) -> &AnySession {
        &self.protocol
    }

    /// Shares a value of one party through its [`entrance`]. Only the owner reads it; the others use only its
    /// size.
    pub fn share(&mut self, entrance: &Compiled, owner: Party, cells: &Cells) -> Result<(AnyShared, Spent)> {
        let (shared, spent) = self.share_all(entrance, &[(owner, cells)])?;
        Ok((only(shared)?, spent))
    }

    /// Shares the values of several owners through the [`entrance_of_all`].
    pub fn share_all(
        &mut self,
        entrance: &Compiled,
        given: &[(Party, &Cells)],
    ) -> Result<(Vec<AnyShared>, Spent)> {
        let lanes = given.iter().map(|(_, cells)| cells.lanes()).max().unwrap_or(1);
        let me = self.net.me();
        let inputs = given.iter().map(|(owner, cells)| match *owner == me {
            true => Input::Mine(cells),
            false => Input::From(*owner),
        });
        let inputs: Vec<_> = inputs.collect();
        let (tally, spent, shared) = self.spend(|seat| {
            let batch = prepare(&mut seat.protocol, entrance, lanes, &mut seat.net)?;
            evaluate(&mut seat.protocol, entrance, lanes, &inputs, batch, &mut seat.net)
        });
        Ok((shared?, Spent { counts: tally.input, ..spent }))
    }

    /// Evaluates a circuit on shared inputs: preprocessing, then online.
    pub fn evaluate(
        &mut self,
        compiled: &Compiled,
        lanes: usize,
        inputs: &[&AnyShared],
    ) -> Result<(Vec<AnyShared>, Bill)> {
        let (tally, spent, batch) =
            self.spend(|seat| prepare(&mut seat.protocol, compiled, lanes, &mut seat.net));
        let preprocessing = Spent { counts: tally.preprocessing, ..spent };
        let batch = batch?;
        let inputs: Vec<_> = inputs.iter().map(|shared| Input::Shared(*shared)).collect();
        let (tally, spent, outputs) =
            self.spend(|seat| evaluate(&mut seat.protocol, compiled, lanes, &inputs, batch, &mut seat.net));
        let online = Spent { counts: tally.online, ..spent };
        Ok((outputs?, Bill { preprocessing, online, ..Bill::default() }))
    }

    /// Reveals a value to all, and adds the cost to a bill. Checks that belong to the evaluation are added to
    /// it.
    pub fn reveal(&mut self, shared: &AnyShared, bill: &mut Bill) -> Result<Cells> {
        let (tally, spent, released) =
            self.spend(|seat| release(&mut seat.protocol, shared, Owner::All, &mut seat.net));
        let released = released?.ok_or_else(|| Error::misuse("an output for all did not come"))?;
        bill.online = bill.online + Spent { counts: tally.online, ..Spent::default() };
        bill.output = bill.output + Spent { counts: tally.output, ..spent };
        Ok(released.accept())
    }

    /// Measures what is counted by phase and what is sent while `work` runs.
    fn spend<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (Tally, Spent, T) {
        let tally = self.protocol.tally();
        let stopwatch = Stopwatch::start(self.meter.clone(), self.wire.clone());
        let result = work(self);
        let spent = stopwatch.stop();
        (self.protocol.tally() - tally, spent, result)
    }
}

/// Measures time and bytes from a moment on.
pub struct Stopwatch {
    meter: Arc<Meter>,
    wire: Option<Arc<WireMeter>>,
    began: Instant,
    traffic: Traffic,
    sockets: (u64, u64),
}

impl Stopwatch {
    /// Begins now. `wire` counts the bytes at the sockets, if there are any.
    pub fn start(meter: Arc<Meter>, wire: Option<Arc<WireMeter>>) -> Stopwatch {
        let (began, traffic) = (Instant::now(), meter.snapshot());
        let sockets = at_sockets(wire.as_deref());
        Stopwatch { meter, wire, began, traffic, sockets }
    }

    /// The cost since then, without operation counts.
    pub fn stop(self) -> Spent {
        let traffic = self.meter.snapshot() - self.traffic;
        let (sent, received) = at_sockets(self.wire.as_deref());
        Spent {
            counts: Counts::default(),
            payload_bytes: traffic.payload_sent,
            payload_bytes_received: traffic.payload_received,
            socket_bytes: sent - self.sockets.0,
            socket_bytes_received: received - self.sockets.1,
            time: self.began.elapsed(),
        }
    }
}

/// Bytes sent and received so far.
fn at_sockets(wire: Option<&WireMeter>) -> (u64, u64) {
    wire.map_or((0, 0), |wire| (wire.sent(), wire.received()))
}

/// The output of a circuit with one output port.
pub fn only<T>(outputs: Vec<T>) -> Result<T> {
    let mut outputs = outputs.into_iter();
    match (outputs.next(), outputs.next()) {
        (Some(output), None) => Ok(output),
        _ => Err(Error::misuse("a circuit with one output was expected")),
    }
}
