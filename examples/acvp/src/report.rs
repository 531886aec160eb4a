//! What became of the tests of a set, group by group and together.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use crate::run::Outcome;
use crate::set::{Group, Prompt};

/// Tests by what became of them, each with the reasons.
#[derive(Default)]
struct Counts {
    passed: usize,
    answered: usize,
    others: BTreeMap<&'static str, Reasons>,
}

/// How many tests, and why: one reason as an example if there are several.
struct Reasons {
    tests: usize,
    first: String,
    are_several: bool,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        let (what, why) = match outcome {
            Outcome::Passed(_) => return self.passed += 1,
            Outcome::Answered(_) => return self.answered += 1,
            Outcome::Failed(_, why) => ("FAILED", why),
            Outcome::Refused(why) => ("REFUSED", why),
            Outcome::NotSupported(why) => ("not supported", why),
            Outcome::NotRun(why) => ("not run", why),
        };
        let new = || Reasons { tests: 0, first: why.clone(), are_several: false };
        let reasons = self.others.entry(what).or_insert_with(new);
        reasons.tests += 1;
        reasons.are_several |= reasons.first != *why;
    }

    fn of<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Counts {
        let mut counts = Counts::default();
        outcomes.into_iter().for_each(|outcome| counts.add(outcome));
        counts
    }

    /// Each kind of outcome with its tests, and the reason where there is one.
    fn parts(&self) -> Vec<(String, Option<&Reasons>)> {
        let plain = [(self.passed, "passed"), (self.answered, "answered, not compared")];
        let plain = plain.into_iter().filter(|(tests, _)| *tests > 0);
        let others = self.others.iter();
        plain
            .map(|(tests, what)| (format!("{tests} {what}"), None))
            .chain(others.map(|(what, reasons)| (format!("{} {what}", reasons.tests), Some(reasons))))
            .collect()
    }
}

/// The outcomes of a set, to be printed.
pub struct Report<'r> {
    /// What was asked.
    pub prompt: &'r Prompt,
    /// What became of it.
    pub outcomes: &'r [Vec<Outcome>],
}

impl Report<'_> {
    /// Whether no answer was wrong, and nothing was refused that should be possible.
    pub fn is_good(&self) -> bool {
        let is_bad = |outcome: &Outcome| matches!(outcome, Outcome::Failed(..) | Outcome::Refused(_));
        !self.outcomes.iter().flatten().any(is_bad)
    }
}

impl Display for Report<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Prompt { algorithm, revision, test_groups, .. } = self.prompt;
        for (group, outcomes) in test_groups.iter().zip(self.outcomes) {
            for (what, reasons) in Counts::of(outcomes).parts() {
                write!(f, "group {:<3} {}: {what}", group.tg_id, title(group))?;
                match reasons {
                    None => writeln!(f)?,
                    Some(Reasons { first, are_several: false, .. }) => writeln!(f, ": {first}")?,
                    Some(Reasons { first, .. }) => writeln!(f, ", such as: {first}")?,
                }
            }
        }
        let counts = Counts::of(self.outcomes.iter().flatten());
        let parts: Vec<String> = counts.parts().into_iter().map(|(what, _)| what).collect();
        let tests: usize = self.outcomes.iter().map(Vec::len).sum();
        write!(f, "{algorithm} {revision}, {tests} tests: {}", parts.join(", "))
    }
}

/// A group by what its tests have in common.
fn title(group: &Group) -> String {
    let mut parts = vec![group.test_type.clone()];
    parts.extend(group.direction.clone());
    let numbers = [
        ("key", group.key_len),
        ("keying option", group.keying_option),
        ("tag", group.tag_len),
        ("code", group.mac_len),
    ];
    parts.extend(numbers.iter().filter_map(|(name, number)| Some(format!("{name} {}", (*number)?))));
    parts.join(", ")
}
