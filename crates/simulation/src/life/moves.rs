//! Reshares: all keys move to another cluster, here one of the same nodes. Every operator begins at a moment
//! of their own, and one of the machines may crash.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use polyclave_config::{Change, ClientDir, Cluster as File, Consent, NodeDir};
use polyclave_node::reshare::reshare;

use super::chance::{log, once_in, random, random_time};
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};
use crate::machines::disk::crash_after_syncs;
use crate::machines::world::{is_crashed, spawn_on};

/// How far apart operators begin at most.
const APART: Duration = Duration::from_secs(10);
/// How long a node waits for the others before its operator begins anew.
const WAIT: Duration = Duration::from_secs(90);
/// After how long it has to be done.
const PATIENCE: Duration = Duration::from_secs(1_800);

/// Moves all keys while no node serves. Nothing else is wrong meanwhile.
pub(super) fn move_all(cluster: &mut Cluster) -> Result<()> {
    let nodes = 0..cluster.nodes();
    nodes.clone().for_each(|node| cluster.stop(node));
    let client = ClientDir::open(&cluster.client_dir())?;
    let new = client.cluster()?.context("the client has a cluster")?.reshaped(&Change::default())?;
    log("all keys move to another cluster");
    let began = elapsed();
    if once_in(2) {
        crash_after_syncs(cluster.machine(random(cluster.nodes() as u64) as usize), random(30) + 1);
    }
    while !attempt(cluster, &new) {
        ensure!(elapsed() - began < PATIENCE, "keys did not move to another cluster within {PATIENCE:?}");
    }
    nodes.clone().for_each(|node| crash_after_syncs(cluster.machine(node), u64::MAX));
    client.set_cluster(&new, Consent::Cluster)?;
    nodes.for_each(|node| cluster.start(node));
    Ok(())
}

/// Every operator begins once. Returns whether all nodes are done.
fn attempt(cluster: &Cluster, new: &File) -> bool {
    let ended: Arc<Mutex<BTreeMap<usize, bool>>> = Arc::default();
    for node in 0..cluster.nodes() {
        let (path, new, ended) = (cluster.dir(node), new.clone(), ended.clone());
        spawn_on(cluster.machine(node), move || {
            sleep(random_time(APART));
            let done = NodeDir::open(&path)
                .map_err(anyhow::Error::from)
                .and_then(|dir| Ok(reshare(&dir, &new, None, None, WAIT, &mut |_| {})?));
            if let Err(error) = &done {
                log(&format!("node {node} is not done with the move: {error:#}"));
            }
            ended.lock().insert(node, done.is_ok());
        });
    }
    let has_ended = |node| ended.lock().contains_key(&node) || is_crashed(cluster.machine(node));
    while !(0..cluster.nodes()).all(has_ended) {
        sleep(Duration::from_secs(1));
    }
    let ended = ended.lock();
    ended.len() == cluster.nodes() && ended.values().all(|done| *done)
}
