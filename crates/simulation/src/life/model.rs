//! What must hold: what is known of every key, and what answers may say.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::plan::Outcome;
use super::traps::Trap;
use crate::machines::clock::elapsed;

/// Below this, a key's budget may be spent in a life.
const SMALL: u64 = 1_000;
/// Bytes of a block.
const BLOCK: u64 = 16;
/// Blocks of a use in `ecb`: a text of one block, and padding.
pub(super) const BLOCKS: u64 = 2;
/// Below this, each block that is spent of a budget changes the stores of the nodes.
const COUNTED_ONE_BY_ONE: u64 = 128;

/// How far a version of a key has come, or a name of one: what was asked for may be refused afterwards, and
/// what was confirmed must be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    #[default]
    InUse,
    /// It was asked for that this only decrypts from now on.
    ToRetire,
    Retired,
    ToDelete,
    Deleted,
}

/// A text, and its ciphertext.
pub(super) type Message = (Vec<u8>, Vec<u8>);

/// A name under which a key is used: its own, or that of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) budget: u64,
    pub(super) stage: Stage,
    /// A client was told that it was made, or it has worked: it can be lost. One whose making was interrupted
    /// may be pending at some nodes and missing at others.
    pub(super) is_sure: bool,
}

/// A version of a key.
#[derive(Default)]
pub(super) struct Version {
    pub(super) stage: Stage,
    /// Blocks that were answered for.
    pub(super) spent: u64,
    /// In `gcm`: texts, and messages.
    pub(super) messages: Vec<Message>,
    /// Those of them that were made when a node may have cheated, by their places.
    doubtful: Vec<usize>,
}

/// What is known of a key.
#[derive(Default)]
pub(super) struct Known {
    pub(super) names: BTreeMap<String, Name>,
    pub(super) versions: BTreeMap<u32, Version>,
    /// In `ecb`: blocks and what they became.
    blocks: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Uses that were asked for since it was made.
    pub(super) asked: u64,
    /// Uses that failed for another reason than the budget, and may have been paid for.
    pub(super) failed: u64,
}

impl Version {
    fn to_read(&self) -> impl Iterator<Item = Message> {
        let places = (0..self.messages.len()).filter(|at| *at == 0 || self.doubtful.contains(at));
        places.map(|at| self.messages[at].clone())
    }
}

/// Everything that must hold.
#[derive(Default)]
pub(super) struct Model {
    /// By their first names.
    pub(super) keys: BTreeMap<String, Known>,
    nonces: BTreeMap<(String, u32, Vec<u8>), ()>,
    /// When the making of a key last began that all nodes have made.
    pub(super) made_after: Option<Duration>,
    /// Counts the clusters that keys have moved to.
    pub(super) cluster: u64,
    /// What a client springs.
    pub(super) trap: Option<Trap>,
    /// Whether two nodes go on while the third one is away: blocks are charged twice then.
    has_pairs: bool,
    is_cheating: bool,
    /// When a node last ceased to cheat.
    cheated: Option<Duration>,
    pub(super) outcome: Outcome,
    /// The first thing that did not hold.
    pub(super) broken: Option<String>,
}

impl Known {
    /// A new key, and whether it was surely made.
    pub(super) fn new(name: &str, budget: u64, is_sure: bool) -> Known {
        let mut known = Known::default();
        known.add_name(name, budget, is_sure);
        known
    }

    /// It has a further name from now on.
    pub(super) fn add_name(&mut self, name: &str, budget: u64, is_sure: bool) {
        self.names.insert(name.into(), Name { budget, stage: Stage::InUse, is_sure });
    }

    /// Whether each use of it changes the stores of the nodes.
    pub(super) fn changes_stores(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|name| name.budget < COUNTED_ONE_BY_ONE)
    }

    /// Whether it is not known yet whether it was made.
    pub(super) fn is_unsure(&self, name: &str) -> bool {
        self.names.get(name).is_some_and(|name| name.stage == Stage::InUse && !name.is_sure)
    }

    /// How far a name has come.
    pub(super) fn stage(&self, name: &str) -> Stage {
        self.names.get(name).map_or(Stage::Deleted, |name| name.stage)
    }

    /// A name has come further.
    pub(super) fn move_on(&mut self, name: &str, stage: Stage) {
        if let Some(name) = self.names.get_mut(name) {
            name.stage = name.stage.max(stage);
        }
    }

    /// How far a version has come.
    pub(super) fn stage_of(&self, version: u32) -> Stage {
        self.versions.get(&version).map_or(Stage::InUse, |version| version.stage)
    }

    /// A version has come further.
    pub(super) fn move_version_on(&mut self, version: u32, stage: Stage) {
        let version = self.versions.entry(version).or_default();
        version.stage = version.stage.max(stage);
    }

    /// Whether the key must work under this name whenever all nodes serve.
    pub(super) fn must_work(&self, name: &str) -> bool {
        let Some(name) = self.names.get(name) else { return false };
        name.stage == Stage::InUse && name.is_sure && name.budget >= SMALL
    }

    /// Whether nobody has asked to end any of it.
    pub(super) fn is_in_use(&self) -> bool {
        let names = self.names.values().all(|name| name.stage == Stage::InUse && name.is_sure);
        names && self.versions.values().all(|version| version.stage == Stage::InUse)
    }

    /// Texts and messages that must be readable whenever all nodes serve: the first one of each version, and
    /// all that were made when a node may have cheated.
    pub(super) fn messages_to_read(&self, name: &str) -> Vec<(u32, Message)> {
        let versions =
            self.versions.iter().filter(|(_, it)| self.must_work(name) && it.stage <= Stage::Retired);
        versions.flat_map(|(number, it)| it.to_read().map(|message| (*number, message))).collect()
    }

    /// So many blocks were answered for under a name.
    fn spend(&mut self, name: &str, version: u32, blocks: u64) -> Result<()> {
        let name = self.names.get_mut(name);
        let budget = name.map_or(0, |name| {
            name.is_sure = true;
            name.budget
        });
        let version = self.versions.entry(version).or_default();
        version.spent += blocks;
        let spent = version.spent;
        ensure!(spent <= budget, "{spent} blocks were answered for of a budget of {budget}");
        Ok(())
    }
}

/// How long after a node has ceased to cheat a client may still notice that it did.
const AFTER_CHEATS: Duration = Duration::from_secs(300);

impl Model {
    /// A model of a cluster in which two nodes go on while the third one is away, or not.
    pub(super) fn new(has_pairs: bool) -> Model {
        Model { has_pairs, ..Model::default() }
    }

    /// A node begins to cheat, or ceases to.
    pub(super) fn cheats(&mut self, begins: bool) {
        self.outcome.cheats += u64::from(begins);
        self.is_cheating = begins;
        self.cheated = Some(elapsed());
    }

    /// Whether a client may notice that a node cheats.
    pub(super) fn may_notice_cheats(&self) -> bool {
        self.is_cheating || self.cheated.is_some_and(|at| elapsed() - at < AFTER_CHEATS)
    }

    /// A block was encrypted in `ecb`, with a name that had come so far when it was asked for.
    pub(super) fn note_block(
        &mut self,
        (key, name, before): (&str, &str, Stage),
        text: Vec<u8>,
        block: Vec<u8>,
    ) -> Result<()> {
        ensure!(before < Stage::Deleted, "a deleted key was used");
        let Some(known) = self.keys.get_mut(key) else { return Ok(()) };
        let first = known.blocks.entry(text).or_insert_with(|| block.clone());
        ensure!(*first == block, "one block has become two");
        known.spend(name, 1, block.len() as u64 / BLOCK)
    }

    /// A message was encrypted in `gcm` under a version, with a key that had come so far when it was asked
    /// for, as its versions had.
    pub(super) fn note_message(
        &mut self,
        (key, before): (&str, Stage),
        (version, versions): (u32, &BTreeMap<u32, Stage>),
        text: Vec<u8>,
        message: Vec<u8>,
    ) -> Result<()> {
        ensure!(before < Stage::Deleted, "a deleted key was used");
        let stage = versions.get(&version).copied().unwrap_or_default();
        ensure!(stage < Stage::Retired, "a message was encrypted under a version that was retired");
        let nonce = (key.to_string(), version, message[..12].to_vec());
        ensure!(self.nonces.insert(nonce, ()).is_none(), "a nonce was used twice");
        let is_doubtful = self.may_notice_cheats();
        let Some(known) = self.keys.get_mut(key) else { return Ok(()) };
        // At least: what else a message costs is not modelled.
        known.spend(key, version, 1)?;
        let version = known.versions.entry(version).or_default();
        version.doubtful.extend(is_doubtful.then_some(version.messages.len()));
        version.messages.push((text, message));
        Ok(())
    }

    /// A message was decrypted, with a key and a version that had come so far when it was asked for.
    pub(super) fn note_read(&self, stages: [Stage; 2], text: &[u8], read: &[u8]) -> Result<()> {
        ensure!(stages.iter().all(|stage| *stage < Stage::Deleted), "a deleted key was used");
        ensure!(read == text, "a message was decrypted to another text");
        Ok(())
    }

    /// A use of so many blocks in `ecb` was refused because the budget is spent, though nothing has gone
    /// wrong: each use was paid for once.
    pub(super) fn note_spent_exactly(&self, key: &str, blocks: u64) -> Result<()> {
        let is_exact = |known: &&Known| known.names.len() == 1 && known.failed == 0 && !self.has_pairs;
        let Some(known) = self.keys.get(key).filter(is_exact) else { return Ok(()) };
        let spent = known.versions.get(&1).map_or(0, |version| version.spent);
        let budget = known.names.get(key).map_or(0, |name| name.budget);
        ensure!(
            spent + blocks > budget,
            "a budget of {budget} is spent, though {spent} blocks were answered for and nothing was wrong"
        );
        Ok(())
    }

    /// A use was refused because the budget is spent. A node pays for each attempt, and what it has paid
    /// ahead is lost when it crashes.
    pub(super) fn note_spent(&self, key: &str, name: &str, crashes: u64) -> Result<()> {
        /// How often a client begins a use at most, as long as nothing crashes (`MAX_TRIES` in its library):
        /// it does so while a node is not readmitted.
        const ATTEMPTS: u64 = 6;
        let Some(known) = self.keys.get(key).filter(|known| known.names.len() == 1) else { return Ok(()) };
        // Where one cheats, more may be paid for nothing.
        if self.cheated.is_some() {
            return Ok(());
        }
        let budget = known.names.get(name).map_or(0, |name| name.budget);
        let charged = if self.has_pairs { 2 * BLOCKS } else { BLOCKS };
        ensure!(
            ATTEMPTS * charged * (known.asked + crashes) >= budget,
            "a budget of {budget} is spent after {} uses and {crashes} crashes",
            known.asked
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(budget: u64) -> Model {
        let mut model = Model::default();
        model.keys.insert("key".into(), Known::new("key", budget, true));
        model
    }

    fn message(model: &mut Model, before: Stage, version: u32, first: u8) -> Result<()> {
        let versions = model.keys["key"].versions.iter().map(|(number, it)| (*number, it.stage)).collect();
        model.note_message(("key", before), (version, &versions), b"text".to_vec(), vec![first; 40])
    }

    fn block(model: &mut Model, name: &str, text: u8, block: u8) -> Result<()> {
        let before = model.keys["key"].stage(name);
        model.note_block(("key", name, before), vec![text; 16], vec![block; 16])
    }

    #[test]
    fn a_nonce_that_comes_twice_is_noticed_within_a_version() {
        let mut model = known(9);
        message(&mut model, Stage::InUse, 1, 5).expect("the first");
        message(&mut model, Stage::InUse, 2, 5).expect("of another version");
        message(&mut model, Stage::InUse, 1, 5).expect_err("again");
    }

    #[test]
    fn what_was_ended_is_not_used_again() {
        let mut model = known(9);
        message(&mut model, Stage::ToDelete, 1, 1).expect("its deletion was not confirmed");
        message(&mut model, Stage::Deleted, 1, 2).expect_err("it was");
        let known = model.keys.get_mut("key").expect("known");
        known.move_version_on(1, Stage::ToRetire);
        message(&mut model, Stage::InUse, 1, 3).expect("not confirmed");
        model.keys.get_mut("key").expect("known").move_version_on(1, Stage::Retired);
        message(&mut model, Stage::InUse, 1, 4).expect_err("confirmed");
        let read = |stages| model.note_read(stages, b"text", b"text");
        read([Stage::InUse, Stage::Retired]).expect("a retired version decrypts");
        read([Stage::InUse, Stage::Deleted]).expect_err("a deleted one does not");
        model.note_read([Stage::InUse; 2], b"text", b"other").expect_err("another text");
    }

    #[test]
    fn a_copy_and_its_key_pay_from_one_account_each_up_to_its_own_budget() {
        let mut model = known(4);
        model.keys.get_mut("key").expect("known").add_name("copy", 2, true);
        block(&mut model, "copy", 1, 7).expect("one");
        block(&mut model, "key", 1, 7).expect("the same block by its other name");
        block(&mut model, "copy", 2, 8).expect_err("a third, of two");
        block(&mut model, "key", 2, 8).expect("a fourth");
        block(&mut model, "key", 3, 9).expect_err("a fifth");
        block(&mut known(9), "key", 1, 7).expect("another key");
        let mut model = known(9);
        block(&mut model, "key", 1, 7).expect("one");
        block(&mut model, "key", 1, 8).expect_err("the block has become another");
    }

    #[test]
    fn a_budget_that_is_spent_too_early_is_noticed() {
        let mut model = known(40);
        model.note_spent("key", "key", 0).expect_err("nothing was asked for");
        model.note_spent("key", "key", 5).expect("what was paid ahead is lost in a crash");
        model.keys.get_mut("key").expect("known").asked = 5;
        model.note_spent("key", "key", 0).expect("each use may be begun several times");
    }

    #[test]
    fn a_budget_is_spent_exactly_where_nothing_goes_wrong() {
        let mut model = known(2);
        block(&mut model, "key", 1, 7).expect("one");
        model.note_spent_exactly("key", 1).expect_err("one is left");
        model.note_spent_exactly("key", 2).expect("two are not");
        model.keys.get_mut("key").expect("known").failed = 1;
        model.note_spent_exactly("key", 1).expect("another use failed that may have been paid for");
    }

    #[test]
    fn all_messages_that_were_made_when_a_node_cheated_are_read_at_the_end() {
        let mut model = known(SMALL);
        let mut make = |first, cheats| {
            model.is_cheating = cheats;
            message(&mut model, Stage::InUse, 1, first).expect("made");
        };
        for (first, cheats) in [(1, false), (2, false), (3, true), (4, false), (5, true)] {
            make(first, cheats);
        }
        let to_read = model.keys["key"].messages_to_read("key");
        let first: Vec<u8> = to_read.iter().map(|(_, (_, message))| message[0]).collect();
        assert_eq!(first, [1, 3, 5]);
    }

    #[test]
    fn only_what_was_surely_made_and_not_ended_must_work() {
        let mut known = Known::new("key", SMALL, false);
        assert!(!known.must_work("key"));
        known.spend("key", 1, 1).expect("in the budget");
        assert!(known.must_work("key"), "it has worked");
        known.move_on("key", Stage::ToDelete);
        assert!(!known.must_work("key"));
        assert!(!Known::new("key", SMALL - 1, true).must_work("key"), "it may be used up");
    }
}
