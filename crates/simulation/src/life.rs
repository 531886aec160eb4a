//! The life of a cluster: clients that use keys, operators, and disasters, against a model of what must hold.

mod chance;
mod check;
mod clients;
mod copies;
mod disasters;
mod model;
mod operators;
mod plan;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use parking_lot::Mutex;

use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};
use crate::machines::disk::{lie, set_root};
use crate::machines::world::{self, Machine};
use chance::random_time;
use disasters::Disasters;
use model::Model;
pub use plan::{Outcome, Plan};

/// How long nodes may take until they serve again once nothing is wrong any more.
const RECOVERY: Duration = Duration::from_secs(1_800);
/// How long clients may take to end what they have begun.
const LAST_REQUESTS: Duration = Duration::from_secs(180);
/// The machines of clients begin here.
const CLIENTS: u16 = 100;

/// Lives through a plan. An error says what did not hold.
pub fn live(dir: &Path, plan: Plan) -> Result<Outcome> {
    std::fs::create_dir(dir)?;
    set_root(dir);
    if plan.disks_lie {
        lie();
    }
    let mut cluster = Cluster::define(dir, plan.kind)?;
    for node in 0..cluster.nodes() {
        cluster.start(node);
    }
    recover(&cluster)?;
    let model = Arc::new(Mutex::new(Model::default()));
    let until = elapsed() + plan.length;
    for number in 0..plan.clients {
        let (path, model) = (cluster.client_dir(), model.clone());
        world::spawn_on(Machine(CLIENTS + number), move || {
            if let Err(error) = clients::work(&path, number, &model, plan, until) {
                model.lock().broken.get_or_insert(format!("{error:#}"));
            }
        });
    }
    let mut disasters = Disasters::default();
    while elapsed() < until {
        sleep(random_time(plan.pause));
        if plan.disasters {
            disasters.next(&mut cluster, &model)?;
        } else {
            disasters.operators.order_refresh(&cluster);
        }
        if let Some(broken) = &model.lock().broken {
            bail!("after {:?}: {broken}", elapsed());
        }
    }
    disasters.end(&mut cluster);
    // Clients end their last requests.
    sleep(LAST_REQUESTS);
    recover(&cluster)?;
    let refreshed = disasters.operators.end(&cluster, RECOVERY)?;
    let client = cluster.client()?;
    check::check_all(client, &model, RECOVERY)?;
    let model = model.lock();
    match &model.broken {
        Some(broken) => bail!("at the end: {broken}"),
        None => Ok(Outcome { crashes: world::crashes(), refreshed, ..model.outcome }),
    }
}

/// Waits until all nodes serve.
fn recover(cluster: &Cluster) -> Result<()> {
    let began = elapsed();
    while !cluster.is_ready() {
        ensure!(
            elapsed() - began < RECOVERY,
            "the nodes did not serve again {RECOVERY:?} after the last disaster"
        );
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
