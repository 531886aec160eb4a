//! Fresh shares of all keys, and moves of all keys to other nodes, in the middle of which all nodes are
//! killed.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::Trial;
use super::clients::PATIENCE;
use crate::common::Running;
use crate::reshare::{at_each_node, fingerprint, init, set_stock};

impl Trial {
    /// Orders fresh shares of all keys at every node; returns the id of the common secrets until then.
    pub(super) fn order_refresh(&self) -> Value {
        let before = self.secrets(self.nodes[0]);
        assert!(!before.is_null(), "the nodes have agreed on common secrets");
        for node in &self.nodes {
            self.place.run(&format!("node refresh try/node-{node}"));
        }
        before
    }

    /// Waits until a refresh is done that was ordered at every node, which nobody helps with.
    pub(super) fn is_refreshed(&self, before: &Value) {
        let until = Instant::now() + PATIENCE;
        loop {
            let now: Vec<Value> = self.nodes.iter().map(|node| self.secrets(*node)).collect();
            if now.iter().all(|secrets| *secrets == now[0] && *secrets != *before && !secrets.is_null()) {
                return;
            }
            assert!(
                Instant::now() < until,
                "the refresh is not done: {:?}",
                self.nodes.iter().map(|node| self.status(*node)).collect::<Vec<_>>()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn secrets(&self, node: usize) -> Value {
        self.status(node)["secrets"].clone()
    }

    fn status(&self, node: usize) -> Value {
        let said = self.place.output(&format!("node status try/node-{node} --json")).stdout;
        serde_json::from_slice(&said).unwrap_or_default()
    }

    /// Begins to move all keys: the oldest node leaves, and another one comes.
    pub(super) fn begin_move(&mut self) -> Move {
        let newcomer = 1 + self.nodes.last().expect("several");
        let (place, leaver, stays) = (&self.place, self.nodes[0], self.nodes[1]);
        init(place, newcomer);
        // Everybody may do there what they may do elsewhere.
        place.write(
            &format!("try/node-{newcomer}/clients.toml"),
            &place.read(&format!("try/node-{stays}/clients.toml")),
        );
        set_stock(place, newcomer, self.stock);
        place.set_processors(&format!("node-{newcomer}"), super::PROCESSORS);
        if self.is_far {
            place.set_far(newcomer, super::CIRCUITS);
        }
        std::fs::remove_file(place.path("new.toml")).ok();
        place.run(&format!(
            "cluster reshape try/cluster.toml --protocol {} --remove node-{leaver} --add try/node-{newcomer}/card.toml --out new.toml",
            self.protocol
        ));
        let expected = fingerprint(place, "new.toml");
        let all: Vec<usize> = self.nodes.iter().copied().chain([newcomer]).collect();
        let running = at_each_node(place, &all, &expected);
        self.nodes = all[1..].to_vec();
        Move { all, expected, running }
    }

    /// What docs/operate/replace.md has the operators do after a move was interrupted: the same command again
    /// at all nodes. Then the clients get the new file.
    pub(super) fn finish_move(&self, Move { all, expected, .. }: Move) {
        let until = Instant::now() + PATIENCE;
        loop {
            let running = at_each_node(&self.place, &all, &expected);
            let done: Vec<bool> = running.into_iter().map(Running::finish).collect();
            if !done.contains(&false) {
                break;
            }
            // Nodes that were done before may be gone before the others hear so.
            assert!(Instant::now() < until, "the same command does not finish the move: {done:?}");
        }
        self.place.write("try/cluster.toml", &self.place.read("new.toml"));
        self.place.run(&format!("client join try/client new.toml --expect {expected}"));
    }
}

/// A move that has begun: all nodes that take part, what their operators expect, and the commands that run
/// there.
pub(super) struct Move {
    all: Vec<usize>,
    expected: String,
    pub(super) running: Vec<Running>,
}
