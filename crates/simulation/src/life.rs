//! The life of a cluster: clients that use keys, operators, and disasters, against a model of what must hold.

mod backups;
mod certificates;
mod chance;
mod cheats;
mod check;
mod clients;
mod copies;
mod disasters;
mod model;
mod moves;
mod operators;
mod plan;
mod traps;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use parking_lot::Mutex;

use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep, suspend};
use crate::machines::disk::{lie, set_root};
use crate::machines::world::{self, Machine};
use chance::{log, random_time};
use disasters::Disasters;
use model::Model;
use operators::Operators;
pub use plan::{Disaster, Outcome, Plan};

/// How long nodes may take until they serve again once nothing is wrong any more.
const RECOVERY: Duration = Duration::from_secs(1_800);
/// How long clients may take to end what they have begun.
const LAST_REQUESTS: Duration = Duration::from_secs(180);
/// How long it is from one night to the next by the clocks.
const DAY: Duration = Duration::from_secs(86_400);
/// The machines of clients begin here.
const CLIENTS: u16 = 100;

/// Lives through a plan. An error says what did not hold.
pub fn live(dir: &Path, plan: Plan) -> Result<Outcome> {
    std::fs::create_dir(dir)?;
    set_root(dir);
    if plan.disks_lie {
        lie();
    }
    // Every night, a refresh is due.
    let mut cluster = Cluster::define(dir, plan.kind, (plan.nights > 0).then_some(1))?;
    for node in 0..cluster.nodes() {
        cluster.start(node);
    }
    let mut disasters = Disasters::default();
    recover(&cluster, &mut disasters.operators)?;
    let model = Arc::new(Mutex::new(Model::new(plan.kind.standby)));
    let (mut nights, day) = (plan.nights, plan.length / (plan.nights + 1));
    let until = elapsed() + plan.length;
    for number in 0..plan.clients {
        let (path, model) = (cluster.client_dir(), model.clone());
        world::spawn_on(Machine(CLIENTS + number), move || {
            if let Err(error) = clients::work(&path, number, &model, plan, until) {
                model.lock().broken.get_or_insert(format!("{error:#}"));
            }
        });
    }
    while elapsed() < until {
        sleep(random_time(plan.pause));
        if nights > 0 && until.saturating_sub(elapsed()) < day * nights {
            log("a night passes");
            suspend(DAY.saturating_sub(day));
            nights -= 1;
        }
        if plan.disasters {
            disasters.next(&mut cluster, &model, plan.favoured)?;
        } else {
            disasters.go_on(&cluster, plan.nights == 0);
        }
        if let Some(broken) = &model.lock().broken {
            bail!("after {:?}: {broken}", elapsed());
        }
    }
    disasters.end(&mut cluster, &model);
    // Clients end their last requests.
    sleep(LAST_REQUESTS);
    recover(&cluster, &mut disasters.operators)?;
    let refreshed = disasters.operators.end(&cluster, RECOVERY)?;
    if plan.nights > 0 && !plan.disasters {
        Operators::check_nights(&cluster)?;
    }
    let client = cluster.client()?;
    check::check_all(client, &model, RECOVERY)?;
    let model = model.lock();
    match &model.broken {
        Some(broken) => bail!("at the end: {broken}"),
        None => Ok(Outcome { crashes: world::crashes(), refreshed, ..model.outcome }),
    }
}

/// Waits until all nodes serve. The operators order what a node needs for it.
fn recover(cluster: &Cluster, operators: &mut Operators) -> Result<()> {
    let began = elapsed();
    while !cluster.is_ready() {
        ensure!(
            elapsed() - began < RECOVERY,
            "the nodes did not serve again {RECOVERY:?} after the last disaster"
        );
        operators.end_quarantine(cluster);
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
