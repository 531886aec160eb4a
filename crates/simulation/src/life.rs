//! The life of a cluster: clients that use keys, and disasters, against a model of what must hold.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use polyclave_api::{Mode, NewKey};
use polyclave_client::{Client, Error};

use crate::cluster::{Cluster, Kind, client};
use crate::machines::clock::{elapsed, set_skew, sleep};
use crate::machines::disk::{crash_after_syncs, lie, set_root};
use crate::machines::net::{cut, slow_down};
use crate::machines::world::{self, Machine};

/// How long nodes may take until they serve again once nothing is wrong any more.
const RECOVERY: Duration = Duration::from_secs(1_800);
/// How long clients may take to end what they have begun.
const LAST_REQUESTS: Duration = Duration::from_secs(180);
/// The machines of clients begin here.
const CLIENTS: u16 = 100;

/// What happens in a life.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The cluster.
    pub kind: Kind,
    /// How long it lasts.
    pub length: Duration,
    /// Clients that work at the same time.
    pub clients: u16,
    /// The longest pause of a client, and between two disasters.
    pub pause: Duration,
    /// Whether anything goes wrong.
    pub disasters: bool,
    /// Whether syncs of disks do nothing: then something must not hold.
    pub disks_lie: bool,
}

/// What a life was.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Requests that were answered.
    pub answered: u64,
    /// Requests that failed, as they may when nodes are away, and keys are gone or used up.
    pub failed: u64,
    /// Crashes of nodes, as the simulator counts them.
    pub crashes: u64,
    /// Links that were cut.
    pub cuts: u64,
}

/// What is known of a key.
#[derive(Default)]
struct Known {
    /// In `ecb`: blocks and what they became.
    blocks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// In `gcm`: texts, versions of the key, and messages.
    messages: Vec<(Vec<u8>, u32, Vec<u8>)>,
    /// Blocks that were answered for.
    spent: u64,
    budget: u64,
    /// Its deletion was asked for: uses may be refused. Once it was confirmed they must be.
    condemned: bool,
    deleted: bool,
}

/// Everything that must hold.
#[derive(Default)]
struct Model {
    keys: BTreeMap<String, Known>,
    nonces: BTreeMap<(String, Vec<u8>), u64>,
    outcome: Outcome,
    /// The first thing that did not hold.
    broken: Option<String>,
}

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
            if let Err(error) = work(&path, number, &model, plan, until) {
                model.lock().broken.get_or_insert(format!("{error:#}"));
            }
        });
    }
    let mut disasters = Disasters::default();
    while elapsed() < until {
        sleep(random_time(plan.pause));
        if plan.disasters {
            disasters.next(&mut cluster, &model);
        }
        if let Some(broken) = &model.lock().broken {
            bail!("after {:?}: {broken}", elapsed());
        }
    }
    disasters.end(&mut cluster);
    // Clients end their last requests.
    sleep(LAST_REQUESTS);
    recover(&cluster)?;
    let client = cluster.client()?;
    check_all(&client, &model)?;
    let model = model.lock();
    match &model.broken {
        Some(broken) => bail!("at the end: {broken}"),
        None => Ok(Outcome { crashes: world::crashes(), ..model.outcome }),
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

fn random(bound: u64) -> u64 {
    world::with(|world| world.random.below(bound))
}

fn random_time(longest: Duration) -> Duration {
    // Often short, seldom long.
    let longest = longest.as_nanos() as u64 >> random(8);
    Duration::from_nanos(random(longest.max(1)))
}

/// What a client does all the time.
fn work(path: &Path, number: u16, model: &Mutex<Model>, plan: Plan, until: Duration) -> Result<()> {
    let client = client(path)?;
    let mut made = 0;
    while elapsed() < until {
        sleep(random_time(plan.pause));
        let name = format!("key-{number}-{}", random(made + 1));
        let (known, deleted) =
            model.lock().keys.get(&name).map_or((false, false), |known| (true, known.deleted));
        if deleted && random(4) != 0 {
            continue;
        }
        let done = match random(20) {
            _ if !known => {
                let done = generate(&client, model, &name);
                made += u64::from(done.as_ref().is_ok_and(|done| *done));
                done
            }
            0 => delete(&client, model, &name),
            1 if is_gcm(&name) => attempt(client.rotate(&name)).map(|done| done.is_some()),
            _ => use_key(&client, model, &name),
        }
        .with_context(|| name.clone())?;
        let outcome = &mut model.lock().outcome;
        match done {
            true => outcome.answered += 1,
            false => outcome.failed += 1,
        }
    }
    Ok(())
}

/// What was done; `None` after an error that may come when nodes are away, or keys are gone or used up.
/// Nobody cheats here, and nobody asks for what cannot be: errors that say so break what must hold.
fn attempt<T>(result: polyclave_client::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error @ (Error::Answers(_) | Error::Unauthentic(_) | Error::Misuse(_))) => Err(error.into()),
        Err(error) => {
            log(&format!("{error}"));
            Ok(None)
        }
    }
}

fn log(line: &str) {
    if std::env::var_os("SIMULATION_LOG").is_some() {
        eprintln!("{:>12.3?} {line}", elapsed());
    }
}

fn is_gcm(name: &str) -> bool {
    name.ends_with(['0', '2', '4', '6', '8'])
}

fn generate(client: &Client, model: &Mutex<Model>, name: &str) -> Result<bool> {
    let modes = if is_gcm(name) { [Mode::Gcm] } else { [Mode::Ecb] };
    let budget = if random(4) == 0 { 40 } else { 1 << 20 };
    let made = attempt(client.generate(NewKey::for_modes(name, "aes-128", &modes, budget)))?;
    // One that was made though the answer did not come has the name already.
    if made.is_some() || client.info(name).is_ok() {
        model.lock().keys.insert(name.into(), Known { budget, ..Known::default() });
        return Ok(true);
    }
    Ok(false)
}

fn delete(client: &Client, model: &Mutex<Model>, name: &str) -> Result<bool> {
    if let Some(known) = model.lock().keys.get_mut(name) {
        known.condemned = true;
    }
    let deleted = attempt(client.delete(name))?.is_some();
    if let Some(known) = model.lock().keys.get_mut(name) {
        known.deleted |= deleted;
    }
    Ok(deleted)
}

/// Uses a key once, and compares.
fn use_key(client: &Client, model: &Mutex<Model>, name: &str) -> Result<bool> {
    let (was_deleted, old) = {
        let model = model.lock();
        let known = &model.keys[name];
        let old = (!known.messages.is_empty())
            .then(|| known.messages[random(known.messages.len() as u64) as usize].clone());
        (known.deleted, old)
    };
    let Some(key) = attempt(client.key(name))? else { return Ok(false) };
    let text = random(64).to_le_bytes().repeat(2);
    if !is_gcm(name) {
        let Some(block) = attempt(key.ecb().encrypt(&text))? else { return Ok(false) };
        ensure!(!was_deleted, "a deleted key was used");
        let mut model = model.lock();
        let known = model.keys.get_mut(name).context("a known key")?;
        known.spent += 1;
        let before = known.blocks.entry(text).or_insert_with(|| block.clone());
        ensure!(*before == block, "one block has become two");
        check_budget(known)?;
        return Ok(true);
    }
    if let Some((text, version, message)) = old.filter(|_| random(2) == 0) {
        let Some(key) = attempt(client.key(&format!("{name}@{version}")))? else { return Ok(false) };
        let Some(read) = attempt(key.gcm().decrypt(&message))? else { return Ok(false) };
        ensure!(!was_deleted, "a deleted key was used");
        ensure!(read[..] == text, "a message was decrypted to another text");
        return Ok(true);
    }
    let Some((message, info)) = attempt(key.gcm().encrypt_with_info(&text))? else { return Ok(false) };
    ensure!(!was_deleted, "a deleted key was used");
    let mut model = model.lock();
    let nonce = (format!("{name}@{}", info.version), message[..12].to_vec());
    *model.nonces.entry(nonce.clone()).or_default() += 1;
    ensure!(model.nonces[&nonce] == 1, "a nonce was used twice");
    let known = model.keys.get_mut(name).context("a known key")?;
    known.messages.push((text, info.version, message));
    // Versions have budgets of their own.
    known.spent = known.messages.iter().filter(|(_, version, _)| *version == info.version).count() as u64;
    check_budget(known)?;
    Ok(true)
}

fn check_budget(known: &Known) -> Result<()> {
    ensure!(
        known.spent <= known.budget,
        "{} blocks were answered for of a budget of {}",
        known.spent,
        known.budget
    );
    Ok(())
}

/// All keys that were not deleted work as before, and those that were do not.
fn check_all(client: &Client, model: &Mutex<Model>) -> Result<()> {
    let names: Vec<String> = model.lock().keys.keys().cloned().collect();
    for name in names {
        let (condemned, deleted, budget) = {
            let known = &model.lock().keys[&name];
            (known.condemned, known.deleted, known.budget)
        };
        if deleted {
            ensure!(client.info(&name).is_err(), "{name} was deleted and is there");
        }
        if condemned || budget < 1_000 {
            continue;
        }
        let began = elapsed();
        while !use_key(client, model, &name).with_context(|| name.clone())? {
            ensure!(elapsed() - began < RECOVERY, "{name} cannot be used any more");
            sleep(Duration::from_secs(1));
        }
    }
    Ok(())
}

/// What goes wrong.
#[derive(Default)]
struct Disasters {
    /// The link that is cut.
    cut: Option<(Machine, Machine)>,
    /// A node that is down, or was told to crash at a sync.
    down: Option<usize>,
}

impl Disasters {
    fn next(&mut self, cluster: &mut Cluster, model: &Mutex<Model>) {
        let node = random(cluster.nodes() as u64) as usize;
        match random(8) {
            0 => {
                self.up_again(cluster);
                log(&format!("node {node} crashes"));
                cluster.crash(node);
                self.down = Some(node);
            }
            1 => {
                self.up_again(cluster);
                let syncs = random(40) + 1;
                log(&format!("node {node} will crash at its {syncs}th sync"));
                crash_after_syncs(cluster.machine(node), syncs);
                self.down = Some(node);
            }
            2 => {
                self.mend();
                let other = (node + 1) % cluster.nodes();
                let (a, b) = (cluster.machine(node), cluster.machine(other));
                log(&format!("{a:?} and {b:?} are cut off from each other"));
                cut(a, b, true);
                model.lock().outcome.cuts += 1;
                self.cut = Some((a, b));
            }
            3 => {
                // Seldom so far that nodes under `replicated-active` use circuits.
                let longest = if random(8) == 0 { 50_000_000 } else { 2_000_000 };
                slow_down(
                    cluster.machine(node),
                    cluster.machine((node + 1) % cluster.nodes()),
                    random(longest),
                );
            }
            4 => {
                self.up_again(cluster);
                log("all nodes lose power");
                for node in 0..cluster.nodes() {
                    cluster.crash(node);
                }
                for node in 0..cluster.nodes() {
                    cluster.start(node);
                }
            }
            5 => {
                self.up_again(cluster);
                log(&format!("node {node} is stopped and started"));
                cluster.stop(node);
                cluster.start(node);
            }
            6 => set_skew(cluster.machine(node), random(400) as i64 - 200),
            _ => {
                self.mend();
                self.up_again(cluster);
            }
        }
    }

    fn mend(&mut self) {
        if let Some((a, b)) = self.cut.take() {
            cut(a, b, false);
        }
    }

    fn up_again(&mut self, cluster: &mut Cluster) {
        let Some(node) = self.down.take() else { return };
        // One that was told to crash at a sync may not have met so many.
        crash_after_syncs(cluster.machine(node), u64::MAX);
        if world::is_crashed(cluster.machine(node)) {
            cluster.note_crash(node);
            log(&format!("node {node} starts again"));
            cluster.start(node);
        }
    }

    fn end(&mut self, cluster: &mut Cluster) {
        self.mend();
        self.up_again(cluster);
        for node in 0..cluster.nodes() {
            set_skew(cluster.machine(node), 0);
            slow_down(cluster.machine(node), cluster.machine((node + 1) % cluster.nodes()), 0);
        }
    }
}
