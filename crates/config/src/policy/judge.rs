//! Whether the rules allow something, and which rule allows it.
//!
//! A rule that denies wins over all that allow. What no rule allows is forbidden.

use polyclave_api::{Demand, Mode, Permission, Right};

use super::asker::{Asker, Entry};
use super::pattern::{matches, overlap};
use super::times::{Moment, why_not};
use super::{ClientPolicy, Rule};

/// A rule that allows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant<'p> {
    /// An entry of the client.
    Entry(Entry<'p>),
    /// A rule.
    Rule(&'p Rule),
}

impl<'p> Grant<'p> {
    /// The rule, if it is one.
    pub fn rule(&self) -> Option<&'p Rule> {
        match self {
            Grant::Entry(_) => None,
            Grant::Rule(rule) => Some(rule),
        }
    }

    /// The name of the rule, for people.
    pub fn message(&self) -> String {
        match self {
            Grant::Entry(entry) => format!("the entry of {}", entry.name),
            Grant::Rule(rule) => format!("the rule {}", rule.name),
        }
    }
}

/// The answer of the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement<'p> {
    /// Allowed by each of these. The list is empty if no rule needs to allow it ([`Demand::Bound`]).
    Allowed(Vec<Grant<'p>>),
    /// Forbidden by this rule.
    Denied(&'p Rule),
    /// No rule allows it. The rule that comes nearest, and what it lacks, if there is any rule for the
    /// client.
    NotAllowed(Option<(Grant<'p>, Vec<String>)>),
    /// There is no such client.
    Unknown,
}

impl Judgement<'_> {
    /// Whether it is allowed.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Judgement::Allowed(_))
    }
}

impl ClientPolicy {
    /// Judges what a client asks at a moment.
    pub fn judge<'a>(&self, who: impl Into<Asker<'a>>, asked: &Permission, at: Moment) -> Judgement<'_> {
        let entries = self.entries_of(who.into());
        if entries.is_empty() {
            return Judgement::Unknown;
        }
        let judgement = self.judge_now(&entries, asked, at);
        let concerned = |deny: bool| {
            self.rules_of(&entries).into_iter().find(|rule| rule.deny == deny && rule.concerns(asked))
        };
        match (asked.demand, judgement) {
            (Demand::Always, Judgement::Allowed(mut grants)) => {
                let first = grants.first().copied();
                grants.retain(Grant::is_unconditional);
                match concerned(true) {
                    Some(rule) => Judgement::Denied(rule),
                    None if !grants.is_empty() => Judgement::Allowed(grants),
                    None => {
                        let why = "it has times or limits, and these would not hold for what is made";
                        Judgement::NotAllowed(first.map(|grant| (grant, vec![why.into()])))
                    }
                }
            }
            (Demand::Bound, Judgement::NotAllowed(_)) => {
                let lacks = |rule: &'_ Rule| rule.why_not_at(at).into_iter().collect();
                concerned(false).map_or(Judgement::Allowed(Vec::new()), |rule| {
                    Judgement::NotAllowed(Some((Grant::Rule(rule), lacks(rule))))
                })
            }
            (_, judgement) => judgement,
        }
    }

    /// Judges something as if it were asked for with [`Demand::Now`].
    fn judge_now<'p>(&'p self, entries: &[Entry<'p>], asked: &Permission, at: Moment) -> Judgement<'p> {
        let rules = self.rules_of(entries);
        if let Some(rule) = rules.iter().find(|rule| rule.deny && rule.covers(asked, at)) {
            return Judgement::Denied(rule);
        }
        let own = entries.iter().filter(|entry| entry.covers(asked)).copied().map(Grant::Entry);
        let allowing = rules.iter().filter(|rule| !rule.deny && rule.covers(asked, at));
        let grants: Vec<Grant<'_>> = own.chain(allowing.map(|rule| Grant::Rule(rule))).collect();
        if !grants.is_empty() {
            return Judgement::Allowed(grants);
        }
        let own = entries.iter().filter(|entry| !entry.rights.is_empty()).copied().map(Grant::Entry);
        let all = own.chain(rules.iter().filter(|rule| !rule.deny).map(|rule| Grant::Rule(rule)));
        Judgement::NotAllowed(all.map(|grant| (grant, grant.lacks(asked, at))).min_by_key(
            |(grant, lacks)| {
                // A rule about something else is farther away than one that lacks modes or times.
                lacks.len() + if grant.rights().contains(&asked.right) { 0 } else { 3 }
            },
        ))
    }

    /// Whether a client may do something now.
    pub fn allows<'a>(&self, who: impl Into<Asker<'a>>, asked: &Permission, at: Moment) -> bool {
        let entries = self.entries_of(who.into());
        let mut allowed = entries.iter().any(|entry| entry.covers(asked));
        for rule in self.rules_of(&entries).into_iter().filter(|rule| rule.covers(asked, at)) {
            if rule.deny {
                return false;
            }
            allowed = true;
        }
        allowed
    }

    /// The rules for a client, by the name of its entry, for all times.
    pub fn rules_for<'p>(&'p self, client: &'p str) -> impl Iterator<Item = &'p Rule> {
        self.rules.iter().filter(move |rule| self.is_for(rule, client))
    }

    /// The rules for a client with these entries. Nobody else's if there is no entry.
    fn rules_of<'p>(&'p self, entries: &[Entry<'p>]) -> Vec<&'p Rule> {
        let is_for_one = |rule: &&Rule| entries.iter().any(|entry| self.is_for(rule, entry.name));
        self.rules.iter().filter(is_for_one).collect()
    }

    fn is_for(&self, rule: &Rule, client: &str) -> bool {
        let is_in = |group: &String| {
            self.groups.iter().any(|g| g.name == *group && g.clients.iter().any(|name| name == client))
        };
        rule.clients.iter().any(|name| name == client || name == "*") || rule.groups.iter().any(is_in)
    }
}

/// Whether some key's name fits one of the patterns and `wanted`, which is a pattern, too.
pub fn patterns_overlap(patterns: &[String], wanted: &str) -> bool {
    patterns.iter().any(|pattern| overlap(pattern, wanted))
}

/// Whether a key's name fits one of the patterns.
pub(crate) fn fits(patterns: &[String], key: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, key))
}

fn covers(rights: &[Right], keys: &[String], asked: &Permission) -> bool {
    rights.contains(&asked.right) && (!asked.right.is_about_keys() || fits(keys, &asked.key))
}

impl Entry<'_> {
    fn covers(&self, asked: &Permission) -> bool {
        covers(self.rights, self.keys, asked)
    }
}

impl Rule {
    fn covers(&self, asked: &Permission, at: Moment) -> bool {
        self.concerns(asked) && self.why_not_at(at).is_none()
    }

    /// Whether the rule covers something at any time.
    fn concerns(&self, asked: &Permission) -> bool {
        let mode = match asked.mode {
            Some(mode) => self.modes.is_empty() || self.modes.contains(&mode),
            None => self.modes.is_empty() || !self.deny,
        };
        mode && self.is_for_owner(asked) && covers(&self.rights, &self.keys, asked)
    }

    fn is_for_owner(&self, asked: &Permission) -> bool {
        self.owners.is_empty() || asked.owner.as_ref().is_some_and(|owner| fits(&self.owners, owner))
    }

    /// Why the rule is not in force at a moment; `None` if it is.
    fn why_not_at(&self, at: Moment) -> Option<String> {
        why_not((self.not_before, self.not_after), &self.days, self.hours, at)
    }
}

impl Grant<'_> {
    /// Whether it has neither times nor limits.
    fn is_unconditional(&self) -> bool {
        match self {
            Grant::Entry(_) => true,
            Grant::Rule(rule) => !rule.is_limited() && !rule.is_timed(),
        }
    }

    fn rights(&self) -> &[Right] {
        match self {
            Grant::Entry(entry) => entry.rights,
            Grant::Rule(rule) => &rule.rights,
        }
    }

    /// What the rule lacks so that it would allow something.
    fn lacks(&self, asked: &Permission, at: Moment) -> Vec<String> {
        let keys = match self {
            Grant::Entry(entry) => entry.keys,
            Grant::Rule(rule) => &rule.keys,
        };
        let mut lacks = Vec::new();
        if !self.rights().contains(&asked.right) {
            lacks.push(format!("it does not allow to {}", asked.right));
        }
        if asked.right.is_about_keys() && !fits(keys, &asked.key) {
            lacks.push(format!("it is for the keys {}", keys.join(", ")));
        }
        if let Grant::Rule(rule) = self {
            if let Some(mode) = asked.mode.filter(|mode| !rule.modes.is_empty() && !rule.modes.contains(mode))
            {
                let modes: Vec<String> = rule.modes.iter().map(Mode::to_string).collect();
                lacks.push(format!("it is for {}, not for {mode}", modes.join(", ")));
            }
            if !rule.is_for_owner(asked) {
                lacks.push(format!("it is for files in envelopes of {}", rule.owners.join(", ")));
            }
            lacks.extend(rule.why_not_at(at));
        }
        lacks
    }
}
