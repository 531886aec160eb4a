//! What clients do all the time, each on a machine of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use polyclave_api::{Mode, NewKey, Reason, VersionState};
use polyclave_client::{Client, Error};

use super::chance::{log, once_in, random, random_time};
use super::model::{BLOCKS, Known, Message, Model, Stage};
use super::plan::Plan;
use super::traps::Trap;
use crate::cluster::client;
use crate::machines::clock::{elapsed, sleep};
use crate::machines::world::crashes;

/// One who uses keys.
pub(super) struct User<'m> {
    client: Client,
    model: &'m Mutex<Model>,
    /// Whether nothing goes wrong: then a request fails only if the key forbids it.
    is_calm: bool,
}

/// Works until a moment. An error says what did not hold.
pub(super) fn work(
    path: &Path,
    number: u16,
    model: &Mutex<Model>,
    plan: Plan,
    until: Duration,
) -> Result<()> {
    let mut user = User::new(client(path)?, model, !plan.disasters);
    let (mut made, mut cluster) = (0, 0);
    while elapsed() < until {
        sleep(random_time(plan.pause));
        let newest = model.lock().cluster;
        if newest != cluster {
            user = User::new(client(path)?, model, !plan.disasters);
            cluster = newest;
        }
        let key = format!("key-{number}-{}", random(made + 1));
        let (stage, is_unsure) = {
            let model = model.lock();
            let known = model.keys.get(&key);
            (known.map(|known| known.stage(&key)), known.is_some_and(|known| known.is_unsure(&key)))
        };
        // Deleted keys are tried now and then.
        if stage == Some(Stage::Deleted) && !once_in(4) {
            continue;
        }
        let done = if stage.is_none() || is_unsure && once_in(2) {
            let done = user.generate(&key);
            made += u64::from(stage.is_none() && done.as_ref().is_ok_and(|done| *done));
            done
        } else {
            user.use_or_change(&key)
        }
        .with_context(|| key.clone())?;
        let outcome = &mut model.lock().outcome;
        match done {
            true => outcome.answered += 1,
            false => outcome.failed += 1,
        }
    }
    Ok(())
}

fn is_gcm(name: &str) -> bool {
    name.ends_with(['0', '2', '4', '6', '8'])
}

impl<'m> User<'m> {
    /// One who uses keys through this client.
    pub(super) fn new(client: Client, model: &'m Mutex<Model>, is_calm: bool) -> User<'m> {
        User { client, model, is_calm }
    }

    /// Whether no node knows of a name, as far as one can see.
    pub(super) fn is_gone(&self, name: &str) -> bool {
        self.client.info(name).is_err()
    }

    fn use_or_change(&self, key: &str) -> Result<bool> {
        let is_to_delete = matches!(self.model.lock().trap, Some(Trap::InDeletion(..)));
        match random(24) {
            _ if is_to_delete => self.delete(key),
            0 => self.delete(key),
            1 | 2 if is_gcm(key) => Ok(self.attempt(key, self.client.rotate(key))?.is_some()),
            3 if is_gcm(key) => self.end_version(key, Stage::Retired),
            4 if is_gcm(key) => self.end_version(key, Stage::Deleted),
            1 | 2 => self.copy(key),
            _ => self.use_key(key, &self.any_name(key)),
        }
    }

    /// What was done; `None` after an error that may come when nodes are away, or the key is gone or used up.
    /// Nobody asks for what cannot be, and nodes seldom cheat: errors that say so break what must hold.
    fn attempt<T>(&self, key: &str, result: polyclave_client::Result<T>) -> Result<Option<T>> {
        let error = match result {
            Ok(done) => return Ok(Some(done)),
            Err(error) => error,
        };
        log(&format!("{key}: {error}"));
        match &error {
            Error::Answers(_) | Error::Unauthentic(_) if self.model.lock().may_notice_cheats() => {}
            Error::Answers(_) | Error::Unauthentic(_) | Error::Misuse(_) => bail!("{error}"),
            Error::Refused { refusal, .. } => {
                let known = &self.model.lock().keys;
                let is_in_use = known.get(key).is_some_and(Known::is_in_use);
                match refusal.reason {
                    // While keys are refreshed, no material is made.
                    Reason::Spent | Reason::OutOfMaterial => {}
                    Reason::NoSuchKey | Reason::NotForThis | Reason::Key if !is_in_use => {}
                    _ => ensure!(!self.is_calm, "though nothing is wrong: {error}"),
                }
            }
            _ => ensure!(!self.is_calm, "though nothing is wrong: {error}"),
        }
        Ok(None)
    }

    /// The same of a use, which must not be refused for want of budget before the budget is spent.
    fn attempt_use<T>(
        &self,
        (key, name): (&str, &str),
        result: polyclave_client::Result<T>,
    ) -> Result<Option<T>> {
        if let Err(Error::Refused { refusal, .. }) = &result
            && refusal.reason == Reason::Spent
        {
            let model = self.model.lock();
            model.note_spent(key, name, crashes())?;
            if self.is_calm && !is_gcm(key) {
                model.note_spent_exactly(key, BLOCKS)?;
            }
        } else if result.is_err()
            && let Some(known) = self.model.lock().keys.get_mut(key)
        {
            known.failed += 1;
        }
        self.attempt(key, result)
    }

    /// Springs the trap that is set, if this is its moment.
    fn spring(&self, is_sprung: impl FnOnce(Trap) -> bool) {
        let trap = self.model.lock().trap;
        if trap.is_some_and(is_sprung) {
            log(&format!("{trap:?} is sprung"));
            self.model.lock().trap = None;
        }
    }

    /// One of a key's names.
    fn any_name(&self, key: &str) -> String {
        let model = self.model.lock();
        let names = &model.keys[key].names;
        names.keys().nth(random(names.len() as u64) as usize).map_or(key, String::as_str).into()
    }

    fn generate(&self, name: &str) -> Result<bool> {
        let modes = if is_gcm(name) { [Mode::Gcm] } else { [Mode::Ecb] };
        let budget = if once_in(3) { random(30) + 3 } else { 1 << 20 };
        let began = elapsed();
        let new = NewKey::for_modes(name, "aes-128", &modes, budget);
        let is_sure = self.attempt(name, self.client.generate(new))?.is_some();
        // One that was made though the answer did not come has the name already.
        let Some(budget) = self.made_budget(name, budget, is_sure) else { return Ok(false) };
        let mut model = self.model.lock();
        if is_sure {
            model.made_after = model.made_after.max(Some(began));
        }
        if is_sure || !model.keys.contains_key(name) {
            model.keys.insert(name.into(), Known::new(name, budget, is_sure));
        }
        Ok(true)
    }

    /// The budget of a key that was made with this one. If that is not sure, an earlier attempt may have made
    /// it with another; `None` if no node knows of it.
    fn made_budget(&self, name: &str, budget: u64, is_sure: bool) -> Option<u64> {
        match is_sure {
            true => Some(budget),
            false => Some(self.client.info(name).ok()?.properties.budget_blocks),
        }
    }

    /// Makes a copy of a key, often with a budget that it reaches.
    fn copy(&self, key: &str) -> Result<bool> {
        let (copies, budget) = {
            let known = &self.model.lock().keys[key];
            (known.names.len() - 1, known.names[key].budget)
        };
        let name = format!("{key}-copy-{copies}");
        let budget = if once_in(2) { budget.min(random(20) + 1) } else { budget };
        let Some(info) = self.attempt(key, self.client.info(key))? else { return Ok(false) };
        let new = NewKey::for_modes(&name, "aes-128", &[Mode::Ecb], budget);
        let is_sure = self.attempt(key, self.client.copy(key, info.id, new))?.is_some();
        let Some(budget) = self.made_budget(&name, budget, is_sure) else { return Ok(false) };
        if let Some(known) = self.model.lock().keys.get_mut(key) {
            known.add_name(&name, budget, is_sure);
        }
        Ok(true)
    }

    /// Deletes a key, or a copy of it. The other names stay.
    fn delete(&self, key: &str) -> Result<bool> {
        let name = self.any_name(key);
        let move_on = |stage| {
            if let Some(known) = self.model.lock().keys.get_mut(key) {
                known.move_on(&name, stage);
            }
        };
        move_on(Stage::ToDelete);
        self.spring(Trap::deletes);
        let deleted = self.attempt(key, self.client.delete(&name))?.is_some();
        if deleted {
            move_on(Stage::Deleted);
        }
        Ok(deleted)
    }

    /// Retires or deletes a version that is not the current one.
    fn end_version(&self, key: &str, stage: Stage) -> Result<bool> {
        let newest = self.model.lock().keys[key].versions.keys().next_back().copied();
        let Some(newest) = newest.filter(|newest| *newest > 1) else { return Ok(false) };
        let version = random(u64::from(newest) - 1) as u32 + 1;
        let move_on = |stage| {
            if let Some(known) = self.model.lock().keys.get_mut(key) {
                known.move_version_on(version, stage);
            }
        };
        let done = if stage == Stage::Retired {
            move_on(Stage::ToRetire);
            let retired = self.client.retire(key, version, VersionState::Deactivated);
            self.attempt(key, retired)?.is_some()
        } else {
            move_on(Stage::ToDelete);
            self.attempt(key, self.client.delete_version(key, version))?.is_some()
        };
        if done {
            move_on(stage);
            self.model.lock().outcome.ended += 1;
        }
        Ok(done)
    }

    /// Uses a key once under one of its names, and compares.
    pub(super) fn use_key(&self, key: &str, name: &str) -> Result<bool> {
        let (before, message) = {
            let mut model = self.model.lock();
            let known = model.keys.get_mut(key).context("a known key")?;
            known.asked += 1;
            (known.stage(name), any_message(known))
        };
        if let Some((version, text, message)) = message.filter(|_| once_in(2)) {
            return self.read((key, version), &text, &message);
        }
        let versions: BTreeMap<u32, Stage> = {
            let versions = &self.model.lock().keys[key].versions;
            versions.iter().map(|(number, version)| (*number, version.stage)).collect()
        };
        let Some(handle) = self.attempt(key, self.client.key(name))? else { return Ok(false) };
        let (began, text) = (elapsed(), random(64).to_le_bytes().repeat(2));
        if !is_gcm(key) {
            let block = self.attempt_use((key, name), handle.ecb().encrypt(&text))?;
            let Some(block) = block else { return Ok(false) };
            let changes_stores = {
                let mut model = self.model.lock();
                model.note_block((key, name, before), text, block)?;
                model.keys.get(key).is_some_and(|known| known.changes_stores(name))
            };
            if changes_stores {
                self.spring(|trap| trap.used(began));
            }
            return Ok(true);
        }
        let message = self.attempt_use((key, name), handle.gcm().encrypt_with_info(&text))?;
        let Some((message, info)) = message else { return Ok(false) };
        self.model.lock().note_message((key, before), (info.version, &versions), text, message)?;
        Ok(true)
    }

    /// Decrypts a message, and compares.
    pub(super) fn read(&self, (key, version): (&str, u32), text: &[u8], message: &[u8]) -> Result<bool> {
        let stages = {
            let known = &self.model.lock().keys[key];
            [known.stage(key), known.stage_of(version)]
        };
        let handle = self.client.key(&format!("{key}@{version}"));
        // The client itself refuses versions that no node shows any more.
        if stages.iter().any(|stage| *stage >= Stage::ToDelete) {
            if let Ok(handle) = handle
                && let Ok(read) = handle.gcm().decrypt(message)
            {
                self.model.lock().note_read(stages, text, &read)?;
            }
            return Ok(false);
        }
        let Some(handle) = self.attempt(key, handle)? else { return Ok(false) };
        let read = self.attempt_use((key, key), handle.gcm().decrypt(message))?;
        let Some(read) = read else { return Ok(false) };
        self.model.lock().note_read(stages, text, &read)?;
        Ok(true)
    }
}

fn any_message(known: &Known) -> Option<(u32, Vec<u8>, Vec<u8>)> {
    let all: Vec<(u32, &Message)> = known
        .versions
        .iter()
        .flat_map(|(number, version)| version.messages.iter().map(|message| (*number, message)))
        .collect();
    let (version, (text, message)) = all.get(random(all.len().max(1) as u64) as usize)?;
    Some((*version, text.clone(), message.clone()))
}
