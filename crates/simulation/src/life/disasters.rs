//! What goes wrong, and what operators do meanwhile.

use anyhow::Result;
use parking_lot::Mutex;

use super::chance::{log, once_in, random};
use super::copies::Copies;
use super::model::Model;
use super::moves::move_all;
use super::operators::Operators;
use super::plan::Disaster;
use super::traps::Trap;
use super::{backups, certificates, cheats};
use crate::cluster::Cluster;
use crate::machines::clock::set_skew;
use crate::machines::disk::{Room, crash_after_syncs, set_room};
use crate::machines::net::{cut, slow_down};
use crate::machines::world::{self, Machine};

/// About so many times a node syncs its disk in a refresh.
const SYNCS_OF_REFRESH: u64 = 10;
/// How much longer a way takes at most where nothing goes wrong, in nanoseconds.
const SLOW: u64 = 20_000_000;

/// How often each is chosen among them all.
const WEIGHTS: [(Disaster, u64); 20] = [
    (Disaster::Crash, 3),
    (Disaster::CrashAtSync, 3),
    (Disaster::Cut, 3),
    (Disaster::Slow, 3),
    (Disaster::PowerLoss, 3),
    (Disaster::Restart, 3),
    (Disaster::WrongClock, 3),
    (Disaster::FullDisk, 3),
    (Disaster::Refresh, 3),
    (Disaster::Copy, 3),
    (Disaster::OldCopies, 3),
    (Disaster::Cheat, 3),
    (Disaster::ClockJump, 3),
    (Disaster::Move, 1),
    (Disaster::OldCopyAfterUse, 3),
    (Disaster::CrashInDeletion, 3),
    (Disaster::CrashInRefresh, 3),
    (Disaster::NewCertificate, 1),
    (Disaster::LostDisk, 1),
    (Disaster::None, 14),
];

/// Which one happens next.
fn kind(favoured: Option<Disaster>) -> Disaster {
    if let Some(favoured) = favoured.filter(|_| once_in(2)) {
        return favoured;
    }
    let mut left = random(WEIGHTS.iter().map(|(_, weight)| weight).sum());
    let chosen = WEIGHTS.iter().find(|(_, weight)| {
        let is_it = left < *weight;
        left = left.saturating_sub(*weight);
        is_it
    });
    chosen.map_or(Disaster::None, |(kind, _)| *kind)
}

/// What goes wrong.
#[derive(Default)]
pub(super) struct Disasters {
    /// The link that is cut.
    cut: Option<(Machine, Machine)>,
    /// A node that is down, or was told to crash at a sync.
    down: Option<usize>,
    /// A machine whose disk is full.
    full: Option<Machine>,
    /// A machine whose clock is wrong by so much that its node cannot serve.
    astray: Option<Machine>,
    /// A node that was started to cheat.
    cheater: Option<usize>,
    copies: Copies,
    pub(super) operators: Operators,
}

impl Disasters {
    /// The next one, which is often the favoured one. An error says what did not hold.
    pub(super) fn next(
        &mut self,
        cluster: &mut Cluster,
        model: &Mutex<Model>,
        favoured: Option<Disaster>,
    ) -> Result<()> {
        self.copies.note(cluster, model.lock().made_after);
        let node = random(cluster.nodes() as u64) as usize;
        let other = (node + 1) % cluster.nodes();
        let (a, b) = (cluster.machine(node), cluster.machine(other));
        match kind(favoured) {
            Disaster::Crash => {
                self.up_again(cluster, model);
                log(&format!("node {node} crashes"));
                cluster.crash(node);
                self.down = Some(node);
            }
            Disaster::CrashAtSync => {
                self.up_again(cluster, model);
                let syncs = random(40) + 1;
                log(&format!("node {node} will crash at its {syncs}th sync"));
                crash_after_syncs(a, syncs);
                self.down = Some(node);
            }
            Disaster::Cut => {
                self.mend(cluster, model);
                log(&format!("{a:?} and {b:?} are cut off from each other"));
                cut(a, b, true);
                model.lock().outcome.cuts += 1;
                self.cut = Some((a, b));
            }
            Disaster::Slow => {
                // Seldom so far that nodes under `replicated-active` use circuits.
                let longest = if once_in(8) { 50_000_000 } else { 2_000_000 };
                slow_down(a, b, random(longest));
            }
            Disaster::PowerLoss => {
                self.up_again(cluster, model);
                log("all nodes lose power");
                for node in 0..cluster.nodes() {
                    cluster.crash(node);
                }
                for node in 0..cluster.nodes() {
                    cluster.start(node);
                }
            }
            Disaster::Restart => {
                self.up_again(cluster, model);
                log(&format!("node {node} is stopped and started"));
                cluster.stop(node);
                if once_in(2) {
                    self.copies.make(cluster, node)?;
                }
                cluster.start(node);
            }
            Disaster::WrongClock => set_skew(a, random(400) as i64 - 200),
            Disaster::FullDisk => {
                self.mend(cluster, model);
                let room = if once_in(2) { Room::ForOldFiles } else { Room::None };
                log(&format!("the disk of node {node} is full: {room:?}"));
                set_room(a, room);
                model.lock().outcome.full += 1;
                self.full = Some(a);
            }
            Disaster::Refresh => self.operators.order_refresh(cluster),
            Disaster::Copy if once_in(2) => self.copies.make_all(cluster)?,
            Disaster::Copy => self.copies.make(cluster, node)?,
            Disaster::OldCopies => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                model.lock().outcome.old_copies += self.copies.put_back(cluster)?;
            }
            Disaster::Cheat => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                let how = cheats::any(cluster.kind.has_checks);
                log(&format!("node {node} cheats: {how:?}"));
                cluster.stop(node);
                model.lock().cheats(true);
                cluster.start_as(node, Some(how));
                self.cheater = Some(node);
                self.operators.know_of_cheats = true;
                cheats::let_clients_meet(cluster);
            }
            Disaster::ClockJump => {
                self.mend(cluster, model);
                let days = [-400, -2, 2, 400][random(4) as usize];
                log(&format!("the clock of node {node} jumps by {days} days"));
                set_skew(a, days * 86_400);
                self.astray = Some(a);
            }
            Disaster::Move => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                move_all(cluster)?;
                let model = &mut model.lock();
                model.outcome.moves += 1;
                model.cluster += 1;
            }
            Disaster::OldCopyAfterUse if cluster.kind.needs_all => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                model.lock().outcome.old_copies += self.copies.put_back_after_use(cluster, node, model)?;
            }
            Disaster::CrashInDeletion => {
                self.up_again(cluster, model);
                let syncs = random(6) + 1;
                log(&format!("node {node} will crash at the {syncs}th sync after the next deletion begins"));
                model.lock().trap = Some(Trap::InDeletion(a, syncs));
                self.down = Some(node);
                self.operators.order_refresh(cluster);
            }
            Disaster::CrashInRefresh => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                if self.operators.order_refresh_everywhere(cluster) {
                    let syncs = random(SYNCS_OF_REFRESH) + 1;
                    log(&format!("node {node} will crash at the {syncs}th sync after the last order"));
                    crash_after_syncs(a, syncs);
                    self.down = Some(node);
                }
            }
            Disaster::NewCertificate => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                certificates::renew(cluster, node, model)?;
                model.lock().outcome.renewed += 1;
            }
            Disaster::LostDisk => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
                backups::lose_and_restore(cluster, node)?;
                model.lock().outcome.restored += 1;
            }
            Disaster::OldCopyAfterUse | Disaster::None => {
                self.mend(cluster, model);
                self.up_again(cluster, model);
            }
        }
        Ok(())
    }

    /// What happens where nothing goes wrong: links are slow for a while, so that requests meet a refresh at
    /// one node and not at another. Keys are refreshed all the time, or by the settings.
    pub(super) fn go_on(&mut self, cluster: &Cluster, refreshes: bool) {
        let node = random(cluster.nodes() as u64) as usize;
        slow_down(cluster.machine(node), cluster.machine((node + 1) % cluster.nodes()), random(SLOW));
        if refreshes {
            self.operators.is_calm = true;
            self.operators.order_refresh(cluster);
        }
    }

    fn mend(&mut self, cluster: &mut Cluster, model: &Mutex<Model>) {
        if let Some((a, b)) = self.cut.take() {
            cut(a, b, false);
        }
        if let Some(machine) = self.full.take() {
            log(&format!("the disk of {machine:?} has room again"));
            set_room(machine, Room::Enough);
        }
        if let Some(machine) = self.astray.take() {
            log(&format!("the clock of {machine:?} is right again"));
            set_skew(machine, 0);
        }
        if let Some(node) = self.cheater.take() {
            log(&format!("node {node} is an honest node again"));
            if self.down == Some(node) {
                self.up_again(cluster, model);
            }
            cluster.stop(node);
            cluster.start(node);
            model.lock().cheats(false);
            self.operators.order_refresh(cluster);
        }
    }

    fn up_again(&mut self, cluster: &mut Cluster, model: &Mutex<Model>) {
        let Some(node) = self.down.take() else { return };
        model.lock().trap = None;
        // One that was told to crash at a sync may not have met so many.
        crash_after_syncs(cluster.machine(node), u64::MAX);
        if world::is_crashed(cluster.machine(node)) {
            cluster.note_crash(node);
            log(&format!("node {node} starts again"));
            cluster.start(node);
        }
    }

    /// Nothing is wrong any more.
    pub(super) fn end(&mut self, cluster: &mut Cluster, model: &Mutex<Model>) {
        self.mend(cluster, model);
        self.up_again(cluster, model);
        for node in 0..cluster.nodes() {
            set_skew(cluster.machine(node), 0);
            slow_down(cluster.machine(node), cluster.machine((node + 1) % cluster.nodes()), 0);
        }
    }
}
