//! All tests of a set. What is wrong in a prompt is found before any node is asked.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use polyclave_client::{Client, Error};

use crate::ask::Nodes;
use crate::job::{Plan, Task, plan};
use crate::judge::fault;
use crate::set::{AnsweredGroup, AnsweredTest, Fields, Prompt, Response};

/// How a set is run.
#[derive(Clone, Copy)]
pub struct Settings {
    /// Whether Monte Carlo tests are run, too: 100,000 blocks each, one after the other.
    pub monte_carlo: bool,
    /// How many tests are under way at the same time.
    pub at_once: usize,
}

/// What became of a test.
pub enum Outcome {
    /// The answer is the expected one.
    Passed(Fields),
    /// The answer is wrong: what differs.
    Failed(Fields, String),
    /// There is an answer, and nothing to compare it with.
    Answered(Fields),
    /// A node refused what the plan took to be possible: why.
    Refused(String),
    /// The nodes do not do this by design: why.
    NotSupported(String),
    /// It takes long, and was not asked for.
    NotRun(String),
}

/// Has the nodes answer a set, and compares with expected results if there are some. The outcomes are in the
/// order of the tests, group after group.
pub fn run(
    client: &Client,
    prompt: &Prompt,
    expected: Option<&BTreeMap<u64, Fields>>,
    settings: Settings,
) -> Result<Vec<Vec<Outcome>>> {
    let mut plans = Vec::new();
    for group in &prompt.test_groups {
        for test in &group.tests {
            plans.push((test.tc_id, plan(prompt, group, test)?));
        }
    }
    let nodes = Nodes::new(client)?;
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = || -> Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some((test, plan)) = plans.get(at) else { return Ok(()) };
            let expected = expected.map(|expected| expected.get(test));
            let outcome = one(&nodes, plan, expected, settings).with_context(|| format!("test {test}"));
            if outcome.is_err() {
                // The others end, too: nodes that cannot be asked would fail all tests.
                next.store(plans.len(), Ordering::Relaxed);
            }
            outcomes.lock().expect("no thread panicked").insert(at, outcome?);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..settings.at_once.max(1)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("no thread panicked"))
    })?;
    let mut outcomes = outcomes.into_inner().expect("no thread panicked").into_values();
    Ok(prompt.test_groups.iter().map(|group| outcomes.by_ref().take(group.tests.len()).collect()).collect())
}

fn one(
    nodes: &Nodes<'_>,
    plan: &Plan,
    expected: Option<Option<&Fields>>,
    settings: Settings,
) -> Result<Outcome> {
    let job = match plan {
        Plan::NotSupported(why) => return Ok(Outcome::NotSupported(why.clone())),
        Plan::Ask(job) => job,
    };
    if matches!(job.task, Task::MonteCarlo { .. }) && !settings.monte_carlo {
        let why = "a Monte Carlo test takes 100,000 blocks, each after the one before: --monte-carlo runs it";
        return Ok(Outcome::NotRun(why.into()));
    }
    let answer = match nodes.answer(job) {
        Ok(answer) => answer,
        Err(error) if error.may_pass() => return Err(error.into()),
        Err(error @ (Error::Refused { .. } | Error::Misuse(_))) => {
            return Ok(Outcome::Refused(error.to_string()));
        }
        Err(error) => return Err(error.into()),
    };
    Ok(match expected {
        None => Outcome::Answered(answer.fields),
        Some(expected) => match fault(job, &answer, expected) {
            None => Outcome::Passed(answer.fields),
            Some(why) => Outcome::Failed(answer.fields, why),
        },
    })
}

/// The answers as a response, without tests that have none.
pub fn response(prompt: &Prompt, outcomes: &[Vec<Outcome>]) -> Response {
    let groups = prompt.test_groups.iter().zip(outcomes).map(|(group, outcomes)| {
        let tests = group.tests.iter().zip(outcomes).filter_map(|(test, outcome)| match outcome {
            Outcome::Passed(fields) | Outcome::Failed(fields, _) | Outcome::Answered(fields) => {
                Some(AnsweredTest { tc_id: test.tc_id, fields: fields.clone() })
            }
            Outcome::Refused(_) | Outcome::NotSupported(_) | Outcome::NotRun(_) => None,
        });
        AnsweredGroup { tg_id: group.tg_id, tests: tests.collect() }
    });
    let test_groups = groups.filter(|group| !group.tests.is_empty()).collect();
    let (algorithm, revision) = (prompt.algorithm.clone(), prompt.revision.clone());
    Response { vs_id: prompt.vs_id, algorithm, revision, test_groups }
}
