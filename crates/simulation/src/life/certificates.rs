//! A node gets its next certificate, while the others and clients know it at every moment
//! (docs/operate/certificates.md).

use std::time::Duration;

use anyhow::Result;
use parking_lot::Mutex;
use polyclave_config::{Card, NodeDir};
use polyclave_transport::Identity;

use super::chance::{log, random_time};
use super::model::Model;
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};

/// For how many days a certificate is valid.
const DAYS: u32 = 365;
/// How long a node may take to start.
const START: Duration = Duration::from_secs(60);
/// How long an operator waits at most before the next step.
const BETWEEN: Duration = Duration::from_secs(20);

/// Does all steps of it. Nothing else is wrong meanwhile.
pub(super) fn renew(cluster: &mut Cluster, node: usize, model: &Mutex<Model>) -> Result<()> {
    log(&format!("node {node} gets its next certificate"));
    let path = cluster.dir(node);
    let mut dir = NodeDir::open(&path)?;
    let next = Identity::generate_named(&dir.settings().name, DAYS)?;
    let both = dir.begin_rotation(&next.certificate(), &next.reveal_private_key())?;
    distribute(cluster, both, model)?;
    (0..cluster.nodes()).for_each(|node| restart(cluster, node));
    sleep(random_time(BETWEEN));
    let new = dir.finish_rotation()?;
    restart(cluster, node);
    // The others take it into use at some later start.
    distribute(cluster, new, model)
}

/// All nodes and clients get a file with this card. A node uses it from its next start.
fn distribute(cluster: &Cluster, card: Card, model: &Mutex<Model>) -> Result<()> {
    cluster.update(card)?;
    model.lock().cluster += 1;
    Ok(())
}

/// Stops a node, and starts it. The next one has to wait until this one serves, or cannot.
fn restart(cluster: &mut Cluster, node: usize) {
    cluster.stop(node);
    cluster.start(node);
    let until = elapsed() + START;
    while !cluster.serves(node) && elapsed() < until {
        sleep(Duration::from_secs(1));
    }
}
