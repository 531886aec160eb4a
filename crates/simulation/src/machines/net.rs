//! The network between machines: sockets of TCP and of Unix, whose bytes take time, and links that can be
//! cut.
//!
//! Bytes arrive in order and complete, as TCP promises. While a link is cut they wait, as they do when TCP
//! sends them again and again. When a machine crashes, its peers' connections are reset.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use crate::machines::world::{Event, Machine, TaskId, World};

pub(crate) mod calls;
mod ready;

/// A socket, which several descriptors may stand for.
pub(crate) type SocketId = u64;

/// Descriptors of sockets begin here, so that they are not those of files.
pub(crate) const FIRST: i32 = 1 << 20;
/// How many bytes can be on their way, or wait to be read, in one direction.
const WINDOW: usize = 256 << 10;
/// Between two machines, and within one, in nanoseconds.
const WAY: u64 = 200_000;
const OWN_WAY: u64 = 10_000;
/// How long a connection is tried across a cut link.
const PATIENCE: u64 = 60_000_000_000;

/// Where a socket is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Address {
    /// A port. All machines share one range of ports, so a port alone tells the machine.
    Port(u16),
    File(PathBuf),
    Unnamed,
}

/// What goes from one socket to another.
pub(crate) enum Packet {
    Bytes(Vec<u8>),
    End,
    Reset,
    /// For a socket that connects: it has reached its destination, or not in time.
    Connect(Address),
    Timeout,
}

/// How far a connection is.
pub(crate) enum Link {
    New,
    Listening { backlog: VecDeque<SocketId> },
    Connecting,
    Failed(i32),
    Open { peer: SocketId },
}

pub(crate) struct Socket {
    pub(crate) machine: Machine,
    pub(crate) link: Link,
    pub(crate) own: Address,
    pub(crate) other: Address,
    pub(crate) unix: bool,
    pub(crate) waits: bool,
    /// Nanoseconds that a read, and a write, may wait.
    pub(crate) limits: [Option<u64>; 2],
    /// What has arrived and was not read.
    pub(crate) arrived: VecDeque<u8>,
    /// Bytes on their way to this socket.
    coming: usize,
    /// What a cut link holds back.
    held: VecDeque<Packet>,
    /// When the last packet to this socket arrives.
    last: u64,
    /// The peer sends nothing any more.
    pub(crate) ended: bool,
    pub(crate) reset: bool,
    /// This side sends nothing any more.
    pub(crate) shut: bool,
    /// Descriptors that stand for it.
    pub(crate) descriptors: usize,
    waiters: Vec<TaskId>,
}

/// All sockets.
#[derive(Default)]
pub(crate) struct Net {
    pub(crate) sockets: BTreeMap<SocketId, Socket>,
    pub(crate) descriptors: BTreeMap<i32, SocketId>,
    listeners: BTreeMap<Address, SocketId>,
    made: u64,
    next_descriptor: i32,
    next_port: u16,
    /// Pairs of machines, the lower one first: nanoseconds that a way takes more, and whether it is cut.
    slower: BTreeMap<(Machine, Machine), u64>,
    cut: BTreeMap<(Machine, Machine), ()>,
}

fn pair(a: Machine, b: Machine) -> (Machine, Machine) {
    (a.min(b), a.max(b))
}

impl Net {
    /// A new socket of a machine, with a descriptor.
    pub(crate) fn open(&mut self, machine: Machine, unix: bool) -> i32 {
        let id = self.add(machine, unix);
        self.describe(id)
    }

    fn add(&mut self, machine: Machine, unix: bool) -> SocketId {
        self.made += 1;
        let socket = Socket {
            machine,
            link: Link::New,
            own: Address::Unnamed,
            other: Address::Unnamed,
            unix,
            waits: true,
            limits: [None; 2],
            arrived: VecDeque::new(),
            coming: 0,
            held: VecDeque::new(),
            last: 0,
            ended: false,
            reset: false,
            shut: false,
            descriptors: 0,
            waiters: Vec::new(),
        };
        self.sockets.insert(self.made, socket);
        self.made
    }

    /// A further descriptor.
    pub(crate) fn describe(&mut self, id: SocketId) -> i32 {
        self.next_descriptor += 1;
        let descriptor = FIRST + self.next_descriptor;
        self.descriptors.insert(descriptor, id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.descriptors += 1;
        }
        descriptor
    }

    /// Two sockets of a machine that are connected.
    pub(crate) fn open_pair(&mut self, machine: Machine) -> [i32; 2] {
        let [a, b] = [0; 2].map(|_| self.add(machine, true));
        self.join(a, b);
        [a, b].map(|id| self.describe(id))
    }

    fn join(&mut self, a: SocketId, b: SocketId) {
        for (id, peer) in [(a, b), (b, a)] {
            if let Some(socket) = self.sockets.get_mut(&id) {
                socket.link = Link::Open { peer };
            }
        }
    }

    pub(crate) fn socket(&mut self, descriptor: i32) -> Option<(SocketId, &mut Socket)> {
        let id = *self.descriptors.get(&descriptor)?;
        Some((id, self.sockets.get_mut(&id)?))
    }

    /// Gives a socket an address. A port of 0 is chosen here.
    pub(crate) fn bind(&mut self, id: SocketId, address: Address) -> Result<(), i32> {
        let address = match address {
            Address::Port(0) => Address::Port(self.free_port()),
            address => address,
        };
        if self.listeners.contains_key(&address) {
            return Err(libc::EADDRINUSE);
        }
        self.listeners.insert(address.clone(), id);
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.own = address;
        }
        Ok(())
    }

    fn free_port(&mut self) -> u16 {
        loop {
            self.next_port = self.next_port.wrapping_add(1);
            let port = 40_000 + self.next_port % 20_000;
            if !self.listeners.contains_key(&Address::Port(port)) {
                return port;
            }
        }
    }

    /// Begins to connect a socket.
    pub(crate) fn connect(world: &mut World, id: SocketId, address: Address) {
        let to = world.net.listeners.get(&address).and_then(|listener| world.net.sockets.get(listener));
        let to = to.map(|listener| listener.machine);
        let port = world.net.free_port();
        let Some(socket) = world.net.sockets.get_mut(&id) else { return };
        socket.link = Link::Connecting;
        socket.other = address.clone();
        if !socket.unix {
            socket.own = Address::Port(port);
        }
        let from = socket.machine;
        let to = to.unwrap_or(from);
        let now = world.now;
        if world.net.is_cut(from, to) {
            world.plan(now + PATIENCE, Event::Arrival(id, Packet::Timeout));
        } else {
            let way = world.net.way(from, to);
            world.plan(now + 2 * way, Event::Arrival(id, Packet::Connect(address)));
        }
    }

    fn way(&self, a: Machine, b: Machine) -> u64 {
        let base = if a == b { OWN_WAY } else { WAY };
        base + self.slower.get(&pair(a, b)).copied().unwrap_or(0)
    }

    fn is_cut(&self, a: Machine, b: Machine) -> bool {
        self.cut.contains_key(&pair(a, b))
    }

    /// Room for what goes to a socket.
    pub(crate) fn room(&self, id: SocketId) -> usize {
        self.sockets.get(&id).map_or(0, |to| WINDOW.saturating_sub(to.arrived.len() + to.coming))
    }

    /// Sends something to a socket's peer.
    pub(crate) fn send(world: &mut World, from: SocketId, packet: Packet) {
        let Some(Socket { link: Link::Open { peer }, machine, .. }) = world.net.sockets.get(&from) else {
            return;
        };
        let (peer, machine) = (*peer, *machine);
        let Some(to) = world.net.sockets.get(&peer).map(|socket| socket.machine) else { return };
        let jitter = world.random.below(WAY / 4);
        let at = world.now + world.net.way(machine, to) + jitter;
        let Some(socket) = world.net.sockets.get_mut(&peer) else { return };
        socket.last = socket.last.max(at);
        if let Packet::Bytes(bytes) = &packet {
            socket.coming += bytes.len();
        }
        let at = socket.last;
        world.plan(at, Event::Arrival(peer, packet));
    }

    /// Something has arrived at a socket.
    pub(crate) fn arrive(world: &mut World, id: SocketId, packet: Packet) {
        match packet {
            Packet::Connect(address) => return Net::connected(world, id, &address),
            Packet::Timeout => {
                if let Some(socket) = world.net.sockets.get_mut(&id)
                    && matches!(socket.link, Link::Connecting)
                {
                    socket.link = Link::Failed(libc::ETIMEDOUT);
                }
                return Net::touch(world, id);
            }
            _ => {}
        }
        let Some(Socket { link: Link::Open { peer }, machine, .. }) = world.net.sockets.get(&id) else {
            return;
        };
        let from = world.net.sockets.get(peer).map_or(*machine, |peer| peer.machine);
        let is_held = world.net.is_cut(*machine, from);
        let Some(socket) = world.net.sockets.get_mut(&id) else { return };
        if is_held || !socket.held.is_empty() {
            socket.held.push_back(packet);
            return;
        }
        Net::take_in(socket, packet);
        Net::touch(world, id);
    }

    fn take_in(socket: &mut Socket, packet: Packet) {
        match packet {
            Packet::Bytes(bytes) => {
                socket.coming -= bytes.len();
                socket.arrived.extend(bytes);
            }
            Packet::End => socket.ended = true,
            Packet::Reset => (socket.reset, socket.ended) = (true, true),
            Packet::Connect(_) | Packet::Timeout => {}
        }
    }

    fn connected(world: &mut World, id: SocketId, address: &Address) {
        let net = &mut world.net;
        let listener = net.listeners.get(address).copied();
        let listening = listener.filter(|listener| {
            let socket = net.sockets.get(listener);
            socket.is_some_and(|socket| matches!(socket.link, Link::Listening { .. }))
        });
        let Some(client) = net.sockets.get(&id) else { return };
        let (own, unix) = (client.own.clone(), client.unix);
        match listening {
            None => {
                if let Some(client) = net.sockets.get_mut(&id) {
                    client.link = Link::Failed(libc::ECONNREFUSED);
                }
            }
            Some(listener) => {
                let machine = net.sockets[&listener].machine;
                let server = net.add(machine, unix);
                net.join(id, server);
                if let Some(socket) = net.sockets.get_mut(&server) {
                    (socket.own, socket.other) = (address.clone(), own);
                }
                if let Some(Socket { link: Link::Listening { backlog }, .. }) = net.sockets.get_mut(&listener)
                {
                    backlog.push_back(server);
                }
                Net::touch(world, listener);
            }
        }
        Net::touch(world, id);
    }

    /// Wakes those that wait for a socket.
    pub(crate) fn touch(world: &mut World, id: SocketId) {
        let Some(socket) = world.net.sockets.get_mut(&id) else { return };
        for task in std::mem::take(&mut socket.waiters) {
            world.wake(task);
        }
    }

    /// Notes that a task waits for a socket.
    pub(crate) fn await_by(&mut self, id: SocketId, task: TaskId) {
        if let Some(socket) = self.sockets.get_mut(&id)
            && !socket.waiters.contains(&task)
        {
            socket.waiters.push(task);
        }
    }

    /// Takes a descriptor away, and its socket if it was the last one.
    pub(crate) fn close(world: &mut World, descriptor: i32) {
        let Some(id) = world.net.descriptors.remove(&descriptor) else { return };
        let Some(socket) = world.net.sockets.get_mut(&id) else { return };
        socket.descriptors -= 1;
        if socket.descriptors == 0 {
            Net::remove(world, id);
        }
    }

    fn remove(world: &mut World, id: SocketId) {
        Net::send(world, id, Packet::End);
        let net = &mut world.net;
        let Some(socket) = net.sockets.remove(&id) else { return };
        if net.listeners.get(&socket.own) == Some(&id) {
            net.listeners.remove(&socket.own);
        }
        match socket.link {
            Link::Open { peer } => {
                // What the peer sends from now on meets nobody, which it may wait to hear.
                Net::touch(world, peer);
            }
            Link::Listening { backlog } => {
                for waiting in backlog {
                    Net::reset_peer(world, waiting);
                    world.net.sockets.remove(&waiting);
                }
            }
            Link::New | Link::Connecting | Link::Failed(_) => {}
        }
    }

    fn reset_peer(world: &mut World, id: SocketId) {
        Net::send(world, id, Packet::Reset);
    }

    /// Whether a socket's peer has closed its side for good.
    pub(crate) fn is_deserted(&self, id: SocketId) -> bool {
        match self.sockets.get(&id).map(|socket| &socket.link) {
            Some(Link::Open { peer }) => !self.sockets.contains_key(peer),
            _ => false,
        }
    }

    /// Ends all sockets of a machine.
    pub(crate) fn crash(world: &mut World, machine: Machine) {
        let its = |net: &Net| -> Vec<SocketId> {
            let all = net.sockets.iter();
            all.filter(|(_, socket)| socket.machine == machine).map(|(id, _)| *id).collect()
        };
        for id in its(&world.net) {
            Net::reset_peer(world, id);
        }
        for id in its(&world.net) {
            Net::remove(world, id);
        }
        let net = &mut world.net;
        let gone: Vec<i32> = net
            .descriptors
            .iter()
            .filter(|(_, id)| !net.sockets.contains_key(id))
            .map(|(fd, _)| *fd)
            .collect();
        for descriptor in gone {
            net.descriptors.remove(&descriptor);
        }
    }
}

/// Cuts the link between two machines, or mends it: then what was held back arrives.
pub fn cut(a: Machine, b: Machine, is_cut: bool) {
    crate::machines::world::with(|world| {
        if is_cut {
            world.net.cut.insert(pair(a, b), ());
            return;
        }
        world.net.cut.remove(&pair(a, b));
        let both = |socket: &Socket| socket.machine == a || socket.machine == b;
        let ids: Vec<SocketId> = world
            .net
            .sockets
            .iter()
            .filter(|(_, s)| both(s) && !s.held.is_empty())
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let Some(socket) = world.net.sockets.get_mut(&id) else { continue };
            for packet in std::mem::take(&mut socket.held) {
                Net::take_in(socket, packet);
            }
            Net::touch(world, id);
        }
    });
}

/// Makes each way between two machines so many nanoseconds longer.
pub fn slow_down(a: Machine, b: Machine, nanoseconds: u64) {
    crate::machines::world::with(|world| world.net.slower.insert(pair(a, b), nanoseconds));
}
