//! A party dies at every write to its disk and at every message that it sends or awaits. The nodes go on:
//! once with its memory put back as it was before it took anything, once from its disk under fresh common
//! secrets. No item is ever handed out twice at a party, or to two sessions.

use std::collections::BTreeSet;
use std::io;

use polyclave_protocol::mesh::Mesh;
use polyclave_store::testing::{reopen, secret};
use redb::StorageBackend;

use super::*;

const NODES: usize = 3;
/// Items that the sessions of a life take, one after the other, from two lots of 64.
const TAKES: [usize; 6] = [5, 17, 1, 9, 36, 8];

/// How much a party can still do before it dies.
#[derive(Clone, Debug, Default)]
struct Life(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    /// The number of actions after which it dies.
    dies_at: Option<usize>,
    writes: usize,
    messages: usize,
    /// What it was about to do when it died.
    died_writing: Option<bool>,
}

impl Life {
    fn dies_at(&self, done: usize) {
        *self.0.lock() = Counts { dies_at: Some(done), ..Counts::default() };
    }

    /// Called before a write or a message: whether the party lives to do it.
    fn step(&self, writes: bool) -> bool {
        let mut counts = self.0.lock();
        if counts.dies_at == Some(counts.writes + counts.messages) {
            counts.died_writing.get_or_insert(writes);
            return false;
        }
        *if writes { &mut counts.writes } else { &mut counts.messages } += 1;
        true
    }

    /// Whether it died, and before which action.
    fn died_writing(&self) -> Option<bool> {
        self.0.lock().died_writing
    }
}

/// A disk that a dead party no longer writes to.
#[derive(Clone, Debug)]
struct MortalDisk(Disk, Life);

impl MortalDisk {
    fn alive(&self) -> io::Result<()> {
        if self.1.step(true) { Ok(()) } else { Err(io::Error::other("the party is dead")) }
    }
}

impl StorageBackend for MortalDisk {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.alive()?;
        self.0.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.alive()?;
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.alive()?;
        self.0.write(offset, data)
    }
}

/// A network that a dead party no longer uses.
struct MortalNet(Mesh, Life);

impl MortalNet {
    fn alive(&self) -> Result<()> {
        if self.1.step(false) { Ok(()) } else { Err(Error::System("the party is dead".into())) }
    }
}

impl Net for MortalNet {
    polyclave_protocol::forward_net!(self => self.0; me, parties);

    fn send(&mut self, to: Party, message: &[u8]) -> Result<()> {
        self.alive()?;
        self.0.send(to, message)
    }

    fn recv(&mut self, from: Party, into: &mut [u8]) -> Result<()> {
        self.alive()?;
        self.0.recv(from, into)
    }

    /// Message by message.
    fn exchange(&mut self, out: &[&[u8]], into: &mut [&mut [u8]]) -> Result<()> {
        for (p, message) in Party::all(out.len()).zip(out).filter(|(_, message)| !message.is_empty()) {
            self.send(p, message)?;
        }
        for (p, buffer) in Party::all(into.len()).zip(into).filter(|(_, buffer)| !buffer.is_empty()) {
            self.recv(p, buffer)?;
        }
        Ok(())
    }

    fn fork(&mut self) -> Result<Box<dyn Net>> {
        unreachable!("a stock does not fork")
    }
}

/// A party's lots in memory.
type Image = Vec<([u8; 16], Kind, Zeroizing<Vec<u8>>)>;

/// A party, over all its lives.
struct Node {
    me: Party,
    disk: Disk,
    life: Life,
    lots: Option<Arc<Lots>>,
    /// The lots before it took anything.
    image: Image,
    /// What it got, by session.
    handed_out: Vec<(usize, Positions)>,
}

impl Node {
    fn new(me: Party) -> Node {
        // Its store was made before, in a file that gets its final name when it is complete.
        let (disk, life) = (Disk::default(), Life::default());
        drop(reopen(&disk));
        Node { me, disk, life, lots: None, image: Image::new(), handed_out: Vec::new() }
    }

    /// Starts with an empty stock.
    fn start(&mut self, epoch: [u8; 32]) -> Result<()> {
        let disk = MortalDisk(self.disk.clone(), self.life.clone());
        let store = Store::with_backend(disk, &secret()).map_err(system)?;
        self.lots = Some(stock(self.me, NODES, epoch, Arc::new(store))?);
        Ok(())
    }

    /// Starts a dead party again, with what a crash left on its disk.
    fn revive(&mut self) {
        self.life = Life::default();
        self.lots = None;
        self.disk = self.disk.copy();
    }

    /// Puts its memory back.
    fn put_back(&mut self) {
        let lots = stock(self.me, NODES, EPOCH, Arc::new(reopen(&self.disk))).expect("the disk is whole");
        for (id, kind, items) in &self.image {
            lots.hold(*id, kind, items.clone()).expect("room");
            lots.settle(*id, true);
        }
        self.lots = Some(lots);
    }

    fn fill(&mut self, count: usize, net: &mut dyn Net) -> Result<()> {
        let lots = self.lots.clone().ok_or_else(|| Error::misuse("not started"))?;
        let made = Mutex::new(None);
        let run = Run { kind: &KIND, count, level: LEVEL, streams: 1 };
        fill::fill(&lots, HandshakeParameters::new(NODES), &run, net, &|_| (), |stream, count, _| {
            let items = make(&stream, count);
            *made.lock() = Some(items.clone());
            Ok(items)
        })?;
        let id = lots.lock().last().expect("it was filled").id;
        self.image.extend(made.into_inner().map(|items| (id, KIND, items)));
        Ok(())
    }

    fn take(&mut self, session: usize, count: usize, net: &mut dyn Net) -> Result<()> {
        let lots = self.lots.clone().ok_or_else(|| Error::misuse("not started"))?;
        let items = lots.take(&KIND, count, net)?;
        self.handed_out.push((session, positions(&items)));
        Ok(())
    }
}

/// All nodes do something at once, each with one network for everything it does. Returns how many completed
/// all of it.
fn together(
    nodes: &mut [Node],
    nets: usize,
    work: impl Fn(&mut Node, &mut [MortalNet]) -> Result<()> + Sync,
) -> usize {
    let mut ends: Vec<Vec<MortalNet>> = nodes.iter().map(|_| Vec::new()).collect();
    for _ in 0..nets {
        for (ends, (net, node)) in ends.iter_mut().zip(mesh(NODES).into_iter().zip(nodes.iter())) {
            ends.push(MortalNet(net, node.life.clone()));
        }
    }
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = nodes
            .iter_mut()
            .zip(ends)
            .map(|(node, mut ends)| scope.spawn(move || work(node, &mut ends)))
            .collect();
        threads.into_iter().map(|t| t.join().expect("no panic")).filter(Result::is_ok).count()
    })
}

/// A life: two runs, then sessions. A session that fails is given up, and the next one begins.
fn live(nodes: &mut [Node], epoch: [u8; 32], first_session: usize) -> usize {
    together(nodes, 2 + TAKES.len(), |node, nets| {
        let (fills, sessions) = nets.split_at_mut(2);
        node.start(epoch)?;
        let fills = fills.iter_mut().zip([64, 64]).map(|(net, count)| node.fill(count, net));
        fills.collect::<Result<()>>()?;
        let mut outcome = Ok(());
        for (i, (net, count)) in sessions.iter_mut().zip(TAKES).enumerate() {
            outcome = node.take(first_session + i, count, net).and(outcome);
        }
        outcome
    })
}

fn assert_nothing_was_used_twice(nodes: &[Node], what: &str) {
    let mut session_of = BTreeMap::new();
    for node in nodes {
        let mut used = BTreeSet::new();
        for (session, positions) in &node.handed_out {
            for position in positions {
                assert!(used.insert(*position), "{what}: {} used {position:?} twice", node.me);
                let of = session_of.entry(*position).or_insert(*session);
                assert_eq!(of, session, "{what}: {position:?} went to two sessions");
            }
        }
    }
}

#[test]
fn nothing_is_used_twice_wherever_a_party_is_killed() {
    let (mut at_writes, mut at_messages, mut put_back, mut went_on) = (0, 0, 0, 0);
    for victim in 0..NODES {
        for done in 0.. {
            let mut nodes: Vec<Node> = Party::all(NODES).map(Node::new).collect();
            nodes[victim].life.dies_at(done);
            let finished = live(&mut nodes, EPOCH, 0);
            let Some(writing) = nodes[victim].life.died_writing() else {
                assert_eq!(finished, NODES, "nobody died");
                break;
            };
            *if writing { &mut at_writes } else { &mut at_messages } += 1;
            let what = format!("victim {victim} after {done}");
            assert_nothing_was_used_twice(&nodes, &what);
            nodes[victim].revive();

            // The others keep their memory. The victim's is put back, if there was something to take from.
            if nodes.iter().all(|node| node.image.len() == 2) {
                put_back += 1;
                nodes[victim].put_back();
                together(&mut nodes, TAKES.len(), |node, nets| {
                    nets.iter_mut().enumerate().for_each(|(i, net)| drop(node.take(100 + i, 4, net)));
                    Ok(())
                });
                let served =
                    |session| nodes.iter().all(|n| n.handed_out.iter().any(|(of, _)| *of == session));
                went_on += usize::from((100..100 + TAKES.len()).any(served));
                assert_nothing_was_used_twice(&nodes, &format!("{what}, put back"));
            }

            // All start again.
            nodes.iter_mut().for_each(Node::revive);
            assert_eq!(live(&mut nodes, [2; 32], 200), NODES, "{what}: they go on");
            assert_nothing_was_used_twice(&nodes, &format!("{what}, started anew"));
        }
    }
    println!(
        "killed at {at_writes} writes and {at_messages} messages; memory put back {put_back} times, of which {went_on} \
         times all could take again"
    );
    assert!(at_writes > 30 && at_messages > 50 && put_back > 50 && went_on > 20);
}
