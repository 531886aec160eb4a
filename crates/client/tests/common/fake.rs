//! Somebody at a node's door for clients who has the node's identity, and says what he likes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use polyclave_api::{self as api, Reply, Request};
use polyclave_config::NodeDir;
use polyclave_protocol::net::Net;
use polyclave_protocol::{Party, PartySet};
use polyclave_transport::{Identity, Limits, Reception, TlsNet};

use super::TestCluster;

/// What is said to a request.
pub enum Say {
    All(Box<Reply>),
    /// The length of a reply, and no reply.
    Beginning,
    Nothing,
    /// Some replies, and then it hangs up.
    Last(Vec<Reply>),
}

type Answer = dyn Fn(&Request) -> Say + Send + Sync;

/// Gone when dropped.
pub struct FakeNode {
    stopping: Arc<AtomicBool>,
    door: Option<JoinHandle<()>>,
}

impl FakeNode {
    /// In the place of a node that does not run.
    pub fn start(
        cluster: &TestCluster,
        node: usize,
        answer: impl Fn(&Request) -> Say + Send + Sync + 'static,
    ) -> FakeNode {
        let dir = NodeDir::open(&cluster.local.nodes[node]).expect("its directory");
        let identity =
            Identity::from_der(&dir.identity().certificate, &dir.identity().key).expect("its identity");
        let (file, me, address) = (cluster.file(), Party(node as u8), dir.settings().client_listen.clone());
        let nodes = file.cards().len();
        let reception = Reception::start(
            address.as_str(),
            identity,
            Limits::for_clients(),
            me,
            nodes,
            file.id(),
            Arc::new(|_| true),
        )
        .expect("its door is free");
        let (stopping, answer): (Arc<AtomicBool>, Arc<Answer>) = (Arc::default(), Arc::new(answer));
        let stop = stopping.clone();
        let door = spawn(move || {
            while !stop.load(Relaxed) {
                let Some(caller) = reception.next(Duration::from_millis(50)) else { continue };
                let (stop, answer, client) = (stop.clone(), answer.clone(), Party(nodes as u8));
                spawn(move || serve(caller.net, client, &stop, &*answer));
            }
        });
        FakeNode { stopping, door: Some(door) }
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.stopping.store(true, Relaxed);
        self.door.take().map(JoinHandle::join);
    }
}

fn serve(mut net: TlsNet, client: Party, stop: &AtomicBool, answer: &Answer) {
    let from: PartySet = [client].into_iter().collect();
    while !stop.load(Relaxed) {
        match net.wait(from, Duration::from_millis(50)) {
            Ok(Some(_)) => {}
            Ok(None) => continue,
            Err(_) => return,
        }
        let Ok(bytes) = api::receive_bytes(&mut net, client) else { return };
        let Ok(request) = api::decode::<Request>(&bytes, client) else { continue };
        match answer(&request) {
            Say::All(reply) => drop(api::send(&mut net, client, &*reply)),
            Say::Beginning => drop(net.send(client, &100u32.to_le_bytes())),
            Say::Nothing => sleep(Duration::from_millis(50)),
            Say::Last(replies) => {
                return replies.iter().for_each(|reply| drop(api::send(&mut net, client, reply)));
            }
        }
    }
}
