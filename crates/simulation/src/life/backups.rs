//! A node's disk is lost. The node comes back from its backup, and the others accept it once their operators
//! readmit it (docs/operate/backup.md).

use std::fs;
use std::path::absolute;
use std::time::Duration;

use anyhow::{Result, ensure};
use polyclave_config::NodeDir;
use polyclave_node::admin::{Instruction, order};
use polyclave_store::{Secret, restore};

use super::chance::{log, random_time};
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};

/// How long the node runs before it is readmitted: as long as nodes take to connect, and more.
const BEFORE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(60);
/// How long the other nodes may take until they can be given the order.
const PATIENCE: Duration = Duration::from_secs(60);

/// Backs a node up while no node runs, so that it misses nothing, and restores it. Nothing else is wrong
/// meanwhile. An error if the node could serve before it was readmitted.
pub(super) fn lose_and_restore(cluster: &mut Cluster, node: usize) -> Result<()> {
    log(&format!("node {node} is restored from its backup"));
    let all = 0..cluster.nodes();
    all.clone().for_each(|node| cluster.stop(node));
    let path = cluster.dir(node);
    let (file, key_file) = (absolute(path.with_extension("backup"))?, absolute(path.with_extension("key"))?);
    let key = Secret::generate_file(&key_file)?;
    let dir = NodeDir::open(&path)?;
    let name = dir.settings().name.clone();
    order(&dir, &Instruction::Backup { file: file.clone(), key_file: key_file.clone() })?;
    fs::remove_dir_all(&path)?;
    restore(&file, &key, &path)?;
    for done in [file, key_file] {
        fs::remove_file(done)?;
    }
    all.clone().for_each(|node| cluster.start(node));
    let until = elapsed() + BEFORE + random_time(LONGEST);
    while elapsed() < until {
        ensure!(!cluster.serves(node), "node {node} could serve before it was readmitted");
        sleep(Duration::from_secs(1));
    }
    for other in all.filter(|other| *other != node) {
        readmit(cluster, other, &name)?;
    }
    Ok(())
}

/// Has a node that may be starting readmit another one.
fn readmit(cluster: &Cluster, at: usize, name: &str) -> Result<()> {
    let until = elapsed() + PATIENCE;
    let dir = NodeDir::open(&cluster.dir(at))?;
    while let Err(error) = order(&dir, &Instruction::Readmit { node: name.into() }) {
        ensure!(elapsed() < until, "node {at} did not readmit {name}: {error}");
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
