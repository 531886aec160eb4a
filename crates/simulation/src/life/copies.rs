//! Disks that are put back to an old state: their node, or its peers, have to notice
//! (docs/security/old-copies.md).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;

use super::chance::{log, once_in, random, random_time};
use super::model::Model;
use super::traps::Trap;
use crate::cluster::Cluster;
use crate::machines::clock::{elapsed, sleep};
use crate::machines::world::is_crashed;

/// How long nodes may run from old disks.
const LONGEST: Duration = Duration::from_secs(120);
/// What names of files of an audit log begin with: they stay when only the store is put back.
const AUDIT: &str = "audit";

/// Copies of the disks of nodes.
#[derive(Default)]
pub(super) struct Copies {
    made: BTreeMap<(Of, usize), Copy>,
}

/// What was copied at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// The disk of one node.
    One,
    /// Those of all nodes, as one does who copies a whole room: these copies fit together.
    All,
}

impl Of {
    /// Where the copy of a directory is kept.
    fn kept(self, path: &Path) -> PathBuf {
        path.with_extension(match self {
            Of::One => "copy",
            Of::All => "room",
        })
    }
}

struct Copy {
    at: Duration,
    /// How often its node had been started then.
    starts: u64,
    /// Whether other nodes surely know that its node has come further.
    is_outdated: bool,
}

/// Where the disk of a node is meanwhile that runs from an old one.
fn own(path: &Path) -> PathBuf {
    path.with_extension("own")
}

/// Whether the node of a directory runs from an old copy: what it is told then is forgotten.
pub(super) fn is_old(path: &Path) -> bool {
    own(path).exists()
}

impl Copies {
    /// Copies the disk of a node, which may run.
    pub(super) fn make(&mut self, cluster: &Cluster, node: usize) -> Result<()> {
        self.make_of(Of::One, cluster, node)
    }

    /// Copies the disks of all nodes.
    pub(super) fn make_all(&mut self, cluster: &Cluster) -> Result<()> {
        (0..cluster.nodes()).try_for_each(|node| self.make_of(Of::All, cluster, node))
    }

    fn make_of(&mut self, of: Of, cluster: &Cluster, node: usize) -> Result<()> {
        let path = cluster.dir(node);
        let kept = of.kept(&path);
        if kept.exists() {
            fs::remove_dir_all(&kept)?;
        }
        copy_all(&path, &kept)?;
        let copy = Copy { at: elapsed(), starts: cluster.starts(node), is_outdated: false };
        self.made.insert((of, node), copy);
        Ok(())
    }

    /// Nodes with copies that others have to refuse.
    fn outdated(&self, of: Of) -> Vec<usize> {
        let its = self.made.iter().filter(|((other, _), copy)| *other == of && copy.is_outdated);
        its.map(|((_, node), _)| *node).collect()
    }

    /// Notes which copies other nodes have to refuse: those from before a start that others know of, and from
    /// before the last moment after which a key was made by all nodes.
    pub(super) fn note(&mut self, cluster: &Cluster, made_after: Option<Duration>) {
        for ((_, node), copy) in &mut self.made {
            let was_started = cluster.is_ready() && cluster.starts(*node) > copy.starts;
            copy.is_outdated |= was_started || made_after.is_some_and(|after| after > copy.at);
        }
    }

    /// Runs one node from its old copy, or all of them from old copies of their stores alone, and then from
    /// their own disks again. Nothing else is wrong meanwhile, and all nodes run. Returns how many were put
    /// back; an error if one of them could serve.
    pub(super) fn put_back(&mut self, cluster: &mut Cluster) -> Result<u64> {
        let all = self.outdated(Of::All);
        if all.len() == cluster.nodes() && once_in(2) {
            return run_from_copies(cluster, &all, Of::All, false);
        }
        let outdated = self.outdated(Of::One);
        if outdated.is_empty() {
            return Ok(0);
        }
        let node = outdated[random(outdated.len() as u64) as usize];
        run_from_copies(cluster, &[node], Of::One, once_in(2))
    }

    /// Copies the disk of a node, has the node crash as soon as a use is answered that all nodes have written
    /// down, and runs it from the copy: others have to know more of it already. Returns how many were put
    /// back, which is none if nobody uses such a key.
    pub(super) fn put_back_after_use(
        &mut self,
        cluster: &mut Cluster,
        node: usize,
        model: &Mutex<Model>,
    ) -> Result<u64> {
        self.make(cluster, node)?;
        let (machine, until) = (cluster.machine(node), elapsed() + LONGEST);
        model.lock().trap = Some(Trap::AfterUse(machine, elapsed()));
        while elapsed() < until && !is_crashed(machine) {
            sleep(Duration::from_millis(50));
        }
        model.lock().trap = None;
        if !is_crashed(machine) {
            return Ok(0);
        }
        cluster.note_crash(node);
        run_from_copies(cluster, &[node], Of::One, true)
    }
}

/// Runs nodes from their copies for a while, and then from their own disks again. An error if one of them
/// could serve.
fn run_from_copies(cluster: &mut Cluster, nodes: &[usize], of: Of, with_log: bool) -> Result<u64> {
    log(&format!("nodes {nodes:?} run from old copies, with audit logs of then: {with_log}"));
    for node in nodes {
        cluster.stop(*node);
        let path = cluster.dir(*node);
        fs::rename(&path, own(&path)).context("the disk is taken out")?;
        copy_all(&of.kept(&path), &path)?;
        if !with_log {
            take_over_audit(&own(&path), &path)?;
        }
    }
    for node in nodes {
        cluster.start(*node);
    }
    let until = elapsed() + random_time(LONGEST) + Duration::from_secs(10);
    while elapsed() < until {
        sleep(Duration::from_secs(1));
        for node in nodes {
            ensure!(!cluster.serves(*node), "node {node} could serve from an old copy of its disk");
        }
    }
    for node in nodes {
        cluster.stop(*node);
        let path = cluster.dir(*node);
        fs::remove_dir_all(&path)?;
        fs::rename(own(&path), &path).context("the disk is back")?;
        cluster.start(*node);
    }
    Ok(nodes.len() as u64)
}

/// Copies a directory with all that is in it.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, to) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy_all(&entry.path(), &to)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &to).map(drop)?;
        }
    }
    Ok(())
}

/// Has a directory the audit log of another.
fn take_over_audit(from: &Path, to: &Path) -> Result<()> {
    let is_audit = |name: &std::ffi::OsString| name.to_string_lossy().starts_with(AUDIT);
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if is_audit(&entry.file_name()) {
            fs::remove_file(entry.path())?;
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if is_audit(&entry.file_name()) {
            fs::copy(entry.path(), to.join(entry.file_name())).map(drop)?;
        }
    }
    Ok(())
}
