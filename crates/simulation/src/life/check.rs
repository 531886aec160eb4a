//! What must hold at the end, when nothing is wrong any more.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use parking_lot::Mutex;
use polyclave_client::Client;

use super::clients::User;
use super::model::{Model, Stage};
use crate::machines::clock::{elapsed, sleep};

/// All keys that were not deleted work as before, and those that were do not. Nodes may take so long until
/// they serve a key again.
pub(super) fn check_all(client: Client, model: &Mutex<Model>, patience: Duration) -> Result<()> {
    let user = User::new(client, model, false);
    let keys: Vec<String> = model.lock().keys.keys().cloned().collect();
    for key in keys {
        check(&user, model, &key, patience).with_context(|| key.clone())?;
    }
    Ok(())
}

fn check(user: &User<'_>, model: &Mutex<Model>, key: &str, patience: Duration) -> Result<()> {
    let names: Vec<String> = model.lock().keys[key].names.keys().cloned().collect();
    for name in &names {
        let (stage, must_work) = {
            let known = &model.lock().keys[key];
            (known.stage(name), known.must_work(name))
        };
        if stage == Stage::Deleted {
            ensure!(user.is_gone(name), "{name} was deleted and is there");
        }
        if must_work {
            let what = || format!("{name} cannot be used any more");
            until_done(patience, what, || user.use_key(key, name))?;
        }
    }
    let messages = model.lock().keys[key].messages_to_read(key);
    for (version, (text, message)) in messages {
        let what = || format!("nothing of its version {version} can be decrypted any more");
        until_done(patience, what, || user.read((key, version), &text, &message))?;
    }
    Ok(())
}

/// Tries something until it is done.
fn until_done(
    patience: Duration,
    what: impl Fn() -> String,
    mut attempt: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let began = elapsed();
    while !attempt()? {
        ensure!(elapsed() - began < patience, "{}", what());
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
