//! What the operators of all nodes do, each from a machine of their own, at moments of their own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use parking_lot::Mutex;
use polyclave_config::NodeDir;
use polyclave_node::admin::{Answer, Instruction, Status, order};

use super::chance::{log, random_time};
use super::copies::is_old;
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, seconds, sleep};
use crate::machines::world::{Machine, spawn_on};

/// The machines of operators begin here.
const OPERATORS: u16 = 200;
/// How far apart the orders of one refresh are at most, and where nothing goes wrong.
const APART: Duration = Duration::from_secs(60);
const APART_IN_CALM: Duration = Duration::from_secs(4);
/// After how long an order is given again that did not reach a node.
const AGAIN: Duration = Duration::from_secs(5);

/// How soon the last order is noticed.
const MOMENT: Duration = Duration::from_millis(5);

/// After how many looks, one a second, operators order what others have ordered and what does not begin.
const LOOKS: u32 = 30;

/// Refreshes that operators have ordered.
#[derive(Default)]
pub(super) struct Operators {
    /// For each node whose operator has given the latest order: the common secrets that it had before.
    ordered: Arc<Mutex<BTreeMap<usize, String>>>,
    begun: u64,
    /// Whether a node has cheated: then operators accept that it may have guessed at a MAC key.
    pub(super) know_of_cheats: bool,
    /// Whether nothing goes wrong, and orders come soon after each other.
    pub(super) is_calm: bool,
}

impl Operators {
    /// Every operator orders a refresh at some moment, and again until the node has taken the order. Nothing
    /// happens while orders of an earlier refresh are still to be given.
    pub(super) fn order_refresh(&mut self, cluster: &Cluster) {
        if self.begun > 0 && self.ordered.lock().len() < cluster.nodes() {
            return;
        }
        self.begun += 1;
        *self.ordered.lock() = BTreeMap::new();
        log("a refresh is ordered at all nodes");
        for node in 0..cluster.nodes() {
            let (path, ordered) = (cluster.dir(node), self.ordered.clone());
            let know_of_cheats = self.know_of_cheats;
            let apart = if self.is_calm { APART_IN_CALM } else { APART };
            spawn_on(Machine(OPERATORS + node as u16), move || {
                sleep(random_time(apart));
                let before = loop {
                    match order_one(&path, know_of_cheats) {
                        Ok(Some(before)) => break before,
                        Ok(None) => {}
                        Err(error) => log(&format!("an order of a refresh at node {node}: {error:#}")),
                    }
                    sleep(AGAIN);
                };
                ordered.lock().insert(node, before);
            });
        }
    }

    /// Every operator orders a refresh. Returns at the moment when the last one has, after which the refresh
    /// begins; false if that takes too long.
    pub(super) fn order_refresh_everywhere(&mut self, cluster: &Cluster) -> bool {
        self.order_refresh(cluster);
        let until = elapsed() + 2 * APART;
        while self.ordered.lock().len() < cluster.nodes() {
            if elapsed() > until {
                return false;
            }
            sleep(MOMENT);
        }
        true
    }

    /// Orders a refresh at all nodes if one of them is under quarantine and none is ordered.
    pub(super) fn end_quarantine(&mut self, cluster: &Cluster) {
        let is_idle =
            |node: Status| node.quarantine.is_some() && node.rotating.is_empty() && !node.refreshing;
        if self.know_of_cheats
            && (0..cluster.nodes()).any(|node| status(&cluster.dir(node)).is_ok_and(is_idle))
        {
            self.order_refresh(cluster);
        }
    }

    /// Waits until everything that was ordered is done at all nodes, which run. Returns how many refreshes
    /// that were.
    pub(super) fn end(&self, cluster: &Cluster, patience: Duration) -> Result<u64> {
        let (began, mut looks) = (elapsed(), 0);
        loop {
            let now: Result<Vec<Status>> =
                (0..cluster.nodes()).map(|node| status(&cluster.dir(node))).collect();
            looks += 1;
            // Seldom: a refresh that is under way does not end at all nodes at the same moment.
            let order = |now: Vec<Status>| match looks % LOOKS {
                0 => order_where_missing(cluster, &now, self.know_of_cheats).map(|()| now),
                _ => Ok(now),
            };
            let state = match now.and_then(order) {
                Ok(now) => match self.left(&now) {
                    None => break,
                    Some(left) => left,
                },
                Err(error) => format!("{error:#}"),
            };
            ensure!(elapsed() - began < patience, "after {patience:?} without disasters {state}");
            sleep(Duration::from_secs(1));
        }
        Ok(self.begun)
    }

    /// An error if a node has not refreshed its shares for two days, though its settings have it every day.
    pub(super) fn check_nights(cluster: &Cluster) -> Result<()> {
        for node in 0..cluster.nodes() {
            let Status { name, refreshed, .. } = status(&cluster.dir(node))?;
            let hours = (seconds() - refreshed.unwrap_or_default()) / 3_600;
            ensure!(hours < 48, "{name} has not refreshed its shares for {hours} hours");
        }
        Ok(())
    }

    /// What is not done yet.
    fn left(&self, now: &[Status]) -> Option<String> {
        let told = || now.iter().map(told).collect::<Vec<_>>().join("; ");
        let secrets = &now.first()?.secrets;
        if now.iter().any(|node| node.refreshing || !node.rotating.is_empty()) {
            return Some(format!("a refresh is not done: {}", told()));
        }
        if now.iter().any(|node| node.secrets != *secrets) {
            return Some(format!("nodes have different common secrets: {}", told()));
        }
        if let Some(node) = now.iter().find(|node| node.quarantine.is_some()) {
            return Some(format!("{} is under quarantine", node.name));
        }
        if let Some(node) = now.iter().find(|node| !node.damaged.is_empty()) {
            return Some(format!("{} has damaged keys: {}", node.name, node.damaged.join(", ")));
        }
        let ordered = self.ordered.lock();
        if self.begun > 0 && ordered.len() < now.len() {
            return Some("an order of a refresh was not taken by all nodes".into());
        }
        let before = ordered.values().next()?;
        let all_same = ordered.values().all(|other| other == before);
        (all_same && secrets.as_ref() == Some(before))
            .then(|| "a refresh that all nodes had taken an order for was not done".into())
    }
}

/// Orders a refresh at all nodes where it is not ordered, if it is at others. An order whose answer was lost
/// was given again, and that may have been after the refresh.
fn order_where_missing(cluster: &Cluster, now: &[Status], know_of_cheats: bool) -> Result<()> {
    let Some(rotating) = now.iter().map(|node| &node.rotating).find(|rotating| !rotating.is_empty()) else {
        return Ok(());
    };
    for (number, node) in now.iter().enumerate().filter(|(_, node)| !rotating.contains(&node.name)) {
        log(&format!("{} orders the refresh that others have ordered", node.name));
        order_one(&cluster.dir(number), know_of_cheats)?;
    }
    Ok(())
}

/// What a node says of a refresh, for people.
fn told(node: &Status) -> String {
    let Status { name, secrets, rotating, refreshing, missing, refresh_trouble, .. } = node;
    let secrets = secrets.as_deref().unwrap_or_default();
    format!(
        "{name} has {secrets}, ordered by {rotating:?}, running {refreshing}, lacks {missing:?}, {refresh_trouble:?}"
    )
}

/// Orders a refresh at a running node. Returns the common secrets that it had shortly before; `None` if it
/// does not run from its own disk, or has none yet.
fn order_one(path: &Path, know_of_cheats: bool) -> Result<Option<String>> {
    let Ok(Status { secrets: Some(before), set_up: true, .. }) = status(path) else { return Ok(None) };
    if is_old(path) {
        return Ok(None);
    }
    let dir = NodeDir::open(path)?;
    let refresh = |despite_failures| order(&dir, &Instruction::Rotate { approval: None, despite_failures });
    let done = match refresh(false) {
        Err(error) if know_of_cheats => {
            log(&format!("{}: {error}; it is ordered all the same", path.display()));
            refresh(true)?
        }
        done => done?,
    };
    Ok(done.filter(|_| !is_old(path)).map(|_| before))
}

/// The status of a node. An error if it does not run.
fn status(path: &Path) -> Result<Status> {
    match order(&NodeDir::open(path)?, &Instruction::Status)? {
        Some(Answer::Status(status)) => Ok(*status),
        _ => bail!("{} does not run", path.display()),
    }
}
