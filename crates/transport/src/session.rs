//! What all streams of a party share: the peers that it calls, and where it waits for their calls.

use std::net::TcpListener;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use polyclave_protocol::{Error, Party, PartySet, Result};

use crate::accept::Acceptor;
use crate::arrival::{Door, Guests};
use crate::attempt::Attempt;
use crate::dial::{Dialer, Patience};
use crate::greeting::Terms;
use crate::halt::Halt;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::meter::WireMeter;
use crate::node::Node;
use crate::pinned::listed;
use crate::socket::Socket;
use crate::stream::StreamId;
use crate::switchboard::{Calls, Switchboard};

/// What a party needs to open streams, as long as its acceptor runs.
pub(crate) struct Session {
    pub(crate) me: Party,
    /// The number of parties, this one included.
    pub(crate) parties: usize,
    /// The root of the names of its streams.
    pub(crate) root: StreamId,
    /// By party, the number under which its calls wait at the switchboard.
    callers: Vec<Party>,
    pub(crate) limits: Limits,
    pub(crate) switchboard: Arc<Switchboard>,
    pub(crate) meter: Arc<WireMeter>,
    /// Ends all of its streams.
    pub(crate) halt: Halt,
    /// For the peers that this party calls: those with higher numbers.
    dialers: Vec<Dialer>,
}

/// What a session is made of.
pub(crate) struct Setup<'a> {
    pub(crate) identity: &'a Identity,
    pub(crate) limits: Limits,
    pub(crate) me: Party,
    /// All parties, this one included, in the same order everywhere.
    pub(crate) nodes: &'a [Node],
    pub(crate) terms: Terms,
    pub(crate) patience: Patience,
    /// How long connections may wait until their stream is asked for.
    pub(crate) keep: Option<Duration>,
    pub(crate) meter: Arc<WireMeter>,
}

impl Session {
    /// Starts to accept the calls of parties with lower numbers.
    pub(crate) fn start(listener: TcpListener, setup: Setup<'_>) -> Result<(Session, Acceptor)> {
        let Setup { identity, limits, me, nodes, terms, patience, keep, meter } = setup;
        check(identity, me, nodes)?;
        let dialers = nodes.iter().zip(0..).skip(me.index() + 1).map(|(node, number)| {
            Ok(Dialer {
                peer: Party(number),
                address: node.address.clone(),
                config: identity.client_config(node.certificates.clone())?,
                terms,
                patience,
                meter: meter.clone(),
            })
        });
        let dialers = dialers.collect::<Result<Vec<_>>>()?;
        let certificates: Vec<_> = nodes.iter().map(|node| node.certificates.clone()).collect();
        let callers = certificates[..me.index()].concat();
        let config = identity.server_config(listed(callers), Arc::default())?;
        let door = Door { config, guests: Guests::Parties(certificates), terms, meter: meter.clone() };
        let switchboard = Arc::new(Switchboard::new(keep));
        let acceptor = Acceptor::start(listener, door, limits.handshake, switchboard.clone())?;
        let (parties, root) = (nodes.len(), StreamId::root());
        let callers = Party::all(parties).collect();
        let halt = Halt::of_node();
        Ok((Session { me, parties, root, callers, limits, switchboard, meter, halt, dialers }, acceptor))
    }

    /// Whether its parties come and go.
    pub(crate) fn is_of_mesh(&self) -> bool {
        self.switchboard.keeps_for_a_time()
    }

    /// The same connections for some of the parties, with numbers of their own: in the order of their numbers
    /// here. Their streams have other names than those of all parties.
    pub(crate) fn among(&self, members: PartySet) -> Result<Session> {
        let of_all: Vec<Party> = members.iter().collect();
        let number = |of: Party| of_all.iter().zip(0..).find(|(p, _)| **p == of).map(|(_, k)| Party(k));
        let strangers = members.iter().any(|member| member.index() >= self.parties);
        let Some(me) = number(self.me).filter(|_| of_all.len() > 1 && !strangers) else {
            let message = format!("{} with some of {} parties, which are {members}", self.me, self.parties);
            return Err(Error::misuse(message));
        };
        let renumbered = |dialer: &Dialer| Some(Dialer { peer: number(dialer.peer)?, ..dialer.clone() });
        Ok(Session {
            me,
            parties: of_all.len(),
            root: self.root.of_some(members),
            callers: of_all.iter().map(|party| self.callers[party.index()]).collect(),
            limits: self.limits,
            switchboard: self.switchboard.clone(),
            meter: self.meter.clone(),
            halt: self.halt.child(),
            dialers: self.dialers.iter().filter_map(renumbered).collect(),
        })
    }

    /// Connects to these peers for one stream. All at once, because each may take the whole time limit.
    pub(crate) fn open(
        &self,
        stream: StreamId,
        calls: Calls,
        peers: &[Party],
        attempt: &Attempt<'_>,
    ) -> Result<Vec<(Party, Socket)>> {
        let results: Vec<Result<Option<(Party, Socket)>>> = thread::scope(|scope| {
            let call =
                |dialer| thread::Builder::new().spawn_scoped(scope, move || dial(dialer, stream, attempt));
            let called = self.dialers.iter().filter(|dialer| peers.contains(&dialer.peer));
            let dialling: Vec<_> = called.map(call).collect();
            let callers = peers.iter().filter(|peer| **peer < self.me);
            let taken = callers.map(|caller| {
                let waits_as = self.callers[caller.index()];
                let taken = self.switchboard.take(waits_as, stream, calls, attempt);
                let taken = taken.map_err(|e| self.numbered_here(e));
                let taken = taken.inspect_err(|_| attempt.fail())?;
                Ok(taken.map(|socket| (*caller, socket)))
            });
            let taken: Vec<_> = taken.collect();
            let dialled = dialling.into_iter().map(|call| {
                let call =
                    call.map_err(|e| Error::System(format!("cannot start a thread to connect: {e}")))?;
                call.join().map_err(|_| Error::System("a connecting thread failed".into()))?
            });
            taken.into_iter().chain(dialled).collect()
        });
        // Where one failed the others gave up: without an error there is a connection to every peer.
        let opened = results.into_iter().filter_map(Result::transpose).collect::<Result<Vec<_>>>();
        opened.and_then(|opened| attempt.is_of_use().map(|()| opened))
    }
}

impl Session {
    /// An error of the switchboard, with the number that the party has here.
    fn numbered_here(&self, error: Error) -> Error {
        let here = |of: Party| {
            let found = self.callers.iter().zip(0..).find(|(caller, _)| **caller == of);
            found.map_or(of, |(_, number)| Party(number))
        };
        match error {
            Error::Timeout { peer, waited } => Error::Timeout { peer: here(peer), waited },
            Error::Closed { peer, detail } => Error::Closed { peer: here(peer), detail },
            Error::Peer { peer, detail } => Error::Peer { peer: here(peer), detail },
            Error::Disagreement { peer, field } => Error::Disagreement { peer: here(peer), field },
            other => other,
        }
    }
}

fn dial(dialer: &Dialer, stream: StreamId, attempt: &Attempt<'_>) -> Result<Option<(Party, Socket)>> {
    let socket = dialer.dial(stream, attempt).inspect_err(|_| attempt.fail())?;
    Ok(socket.map(|socket| (dialer.peer, socket)))
}

fn check(identity: &Identity, me: Party, nodes: &[Node]) -> Result<()> {
    let mine = nodes
        .get(me.index())
        .ok_or_else(|| Error::misuse(format!("this is {me}, but the list names {} parties", nodes.len())))?;
    if !mine.certificates.contains(&identity.certificate()) {
        return Err(Error::misuse(format!("the list has another certificate for {me} than this party's")));
    }
    for (node, number) in nodes.iter().zip(0..) {
        let party = Party(number);
        if node.certificates.is_empty() {
            return Err(Error::misuse(format!("the list has no certificate for {party}")));
        }
        let mut others = nodes[..party.index()].iter().flat_map(|other| &other.certificates);
        if others.any(|other| node.certificates.contains(other)) {
            return Err(Error::misuse("the list has one certificate for two parties"));
        }
    }
    identity.check_time()
}
