//! The proof of a drill: the nodes compute the check value of every key from the restored shares.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use polyclave_api::{CheckKind, Reason};
use polyclave_client::{Client, Error};
use serde::Serialize;

use crate::key::standing;
use crate::output::table;
use crate::say;

/// How long nodes may take until they can serve.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(300);

/// What came of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The check value is that which was recorded when the key was made.
    Proved,
    /// It is another one, or the nodes could not compute it.
    Failed,
    /// The key computes nothing any more, or is a component: nobody asks for its check value.
    NotAsked,
}

/// A key, and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Proved {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// In hexadecimal.
    pub id: String,
    /// What it may be used for, in a word.
    pub state: String,
    /// As recorded when the key was made.
    pub check_value: String,
    /// The nodes whose backups have it.
    pub nodes: Vec<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// Why it is not proved.
    pub why: Option<String>,
}

/// Proves every key of a drill's cluster. Waits for its nodes if they are not ready yet.
pub fn prove(client: &Client, stopping: impl Fn() -> bool) -> Result<Vec<Proved>> {
    let until = Instant::now() + PATIENCE;
    let list = || {
        let mut listing = client.keys()?;
        match listing.missing.len() > client.spare_nodes() {
            true => Err(listing.missing.swap_remove(0).1),
            false => Ok(listing),
        }
    };
    let listing = insist(until, &stopping, list)
        .context("too few nodes of the drill answer; start those that are missing, and repeat this")?;
    let mut proved: Vec<Proved> = Vec::new();
    for listed in &listing.keys {
        if stopping() {
            bail!("the drill was interrupted; not all keys are proved");
        }
        let info = &listed.info;
        let (outcome, why) = match info.component {
            Some(_) => (Outcome::NotAsked, Some("it is a component of a key".into())),
            None => judge(insist(until, &stopping, || client.check(info, CheckKind::Cmac))),
        };
        proved.push(Proved {
            name: info.properties.name.clone(),
            version: info.version,
            id: hex::encode(info.id),
            state: standing(info),
            check_value: hex::encode(&info.check_value),
            nodes: listed.at.iter().map(|party| client.node_name(party).to_owned()).collect(),
            outcome,
            why,
        });
    }
    Ok(proved)
}

/// Asks again while nodes find each other, make material or are busy.
fn insist<T>(
    until: Instant,
    stopping: impl Fn() -> bool,
    ask: impl Fn() -> polyclave_client::Result<T>,
) -> polyclave_client::Result<T> {
    loop {
        match ask() {
            Err(error) if error.may_pass() && Instant::now() < until && !stopping() => {
                std::thread::sleep(PAUSE)
            }
            outcome => return outcome,
        }
    }
}

fn judge(asked: polyclave_client::Result<Vec<u8>>) -> (Outcome, Option<String>) {
    match asked {
        Ok(_) => (Outcome::Proved, None),
        Err(error) => {
            let is_of_its_state =
                matches!(&error, Error::Refused { refusal, .. } if refusal.reason == Reason::NotForThis);
            (if is_of_its_state { Outcome::NotAsked } else { Outcome::Failed }, Some(error.to_string()))
        }
    }
}

/// Whether no key has failed, and there is one at all.
pub fn succeeded(keys: &[Proved]) -> bool {
    !keys.is_empty() && keys.iter().all(|key| key.outcome != Outcome::Failed)
}

/// Prints the keys, and what came of them.
pub fn tell(keys: &[Proved]) {
    let mut rows =
        vec![["name", "version", "state", "check value", "backups of", "outcome"].map(str::to_owned)];
    rows.extend(keys.iter().map(|key| {
        let outcome = match key.outcome {
            Outcome::Proved => "proved",
            Outcome::Failed => "FAILED",
            Outcome::NotAsked => "not asked",
        };
        let nodes = key.nodes.join(", ");
        [
            key.name.clone(),
            key.version.to_string(),
            key.state.clone(),
            key.check_value.clone(),
            nodes,
            outcome.into(),
        ]
    }));
    table(&rows);
    for key in keys {
        if let Some(why) = &key.why {
            say!("{} version {}: {why}", key.name, key.version);
        }
    }
    let count = |outcome| keys.iter().filter(|key| key.outcome == outcome).count();
    say!(
        "{} keys and versions: {} proved, {} failed, {} not asked",
        keys.len(),
        count(Outcome::Proved),
        count(Outcome::Failed),
        count(Outcome::NotAsked)
    );
    if keys.is_empty() {
        say!("There is nothing to prove: the backups have no keys. Were they made before the first key?");
    }
}

#[cfg(test)]
mod tests {
    use polyclave_api::Refusal;

    use super::*;

    #[test]
    fn another_check_value_and_a_refusal_fail_and_a_key_that_computes_nothing_is_not_asked() {
        let refused = |reason| Error::Refused { node: "alpha".into(), refusal: Refusal::new(reason, "why") };
        for (asked, outcome) in [
            (Ok(vec![1]), Outcome::Proved),
            (Err(Error::Answers("the check value is another".into())), Outcome::Failed),
            (Err(refused(Reason::NoSuchKey)), Outcome::Failed),
            (Err(refused(Reason::NotForThis)), Outcome::NotAsked),
        ] {
            let (judged, why) = judge(asked);
            assert_eq!((judged == Outcome::Proved, &judged), (why.is_none(), &outcome), "{why:?}");
        }
    }
}
