//! A cipher. This party gives some of key, blocks and tweak, the others give the rest.

use anyhow::{Context, Result, ensure};
use indicatif::ProgressBar;
use polyclave_cipher::Direction;
use zeroize::Zeroizing;

use super::Arguments;
use super::session::{Meeting, Subject};
use crate::circuits::Form;
use crate::eval::Guarantee;
use crate::eval::bill::Phases;
use crate::eval::evaluation::{Evaluation, Job, Owners, Pass};
use crate::eval::single::Evaluated;
use crate::eval::target::Target;
use crate::hosts::{Agreed, Needed};
use crate::options::hexadecimal;

const KEY: &str = "key";
const INPUT: &str = "input";
const TWEAK: &str = "tweak";

/// The request to one party on the command line.
pub struct Question {
    target: Target,
    direction: Direction,
    key_schedule: bool,
    key: Option<Zeroizing<Vec<u8>>>,
    input: Option<Zeroizing<Vec<u8>>>,
    tweak: Option<Zeroizing<Vec<u8>>>,
}

impl Question {
    /// Checks everything that one party can check alone.
    pub fn new(arguments: &Arguments, form: Form) -> Result<Question> {
        ensure!(arguments.bit_order.is_none(), "--bit-order is for --circuit FILE; leave it out");
        let name = arguments.cipher.as_deref().context("--cipher is needed without a file as --circuit")?;
        let target = Target::named(name, form)?;
        let name = &target.name;
        let bytes = |what: &str, text: &Option<String>| -> Result<Option<Zeroizing<Vec<u8>>>> {
            text.as_ref().map(|text| Ok(Zeroizing::new(hexadecimal(what, text)?))).transpose()
        };
        ensure!(
            arguments.input.len() < 2,
            "{name} takes one --input; write several blocks one after another in it"
        );
        let question = Question {
            direction: if arguments.decrypt { Direction::Decrypt } else { Direction::Encrypt },
            key_schedule: arguments.key_schedule,
            key: bytes("--key", &arguments.key)?,
            input: bytes("--input", &arguments.input.first().cloned())?,
            tweak: bytes("--tweak", &arguments.tweak)?,
            target,
        };
        question.check()?;
        Ok(question)
    }

    fn check(&self) -> Result<()> {
        let Question { target, key, input, tweak, .. } = self;
        let name = &target.name;
        if target.round_keys {
            ensure!(input.is_none(), "{name} makes round keys from the key; leave out --input");
            ensure!(self.direction == Direction::Encrypt, "{name} runs one way only; leave out --decrypt");
            ensure!(!self.key_schedule, "{name} is the key schedule; leave out --key-schedule");
        } else {
            ensure!(target.directions().contains(&self.direction), "{name} has no decryption");
        }
        let takes = |what: &str| self.names().contains(&what);
        ensure!(takes(TWEAK) || tweak.is_none(), "{name} takes no tweak; leave out --tweak");
        ensure!(takes(KEY) || key.is_none(), "{name} takes no key; leave out --key");
        if let Some(key) = key {
            target.check_key(key)?;
        }
        if let Some(input) = input {
            target.check_blocks("--input", input)?;
        }
        if let Some(tweak) = tweak {
            let due = target.cipher.tweak_bytes;
            let given = tweak.len();
            ensure!(
                given > 0 && given.is_multiple_of(due),
                "--tweak has {given} bytes; {name} takes one or more tweaks of {due} bytes ({} hex digits)",
                2 * due
            );
        }
        Ok(())
    }

    /// The inputs that some party has to bring.
    fn names(&self) -> Vec<&'static str> {
        let cipher = &self.target.cipher;
        let all = [
            (KEY, cipher.key_bytes > 0),
            (INPUT, !self.target.round_keys),
            (TWEAK, !self.target.round_keys && cipher.tweak_bytes > 0),
        ];
        all.into_iter().filter(|(_, taken)| *taken).map(|(name, _)| name).collect()
    }

    /// Evaluates it with the others, and prints the outcome.
    pub fn ask(&self, meeting: &Meeting<'_>, guarantee: &Guarantee, json: bool) -> Result<()> {
        let jobs: [Job; 0] = [];
        let progress = ProgressBar::hidden();
        let evaluation = |jobs| Evaluation {
            target: &self.target,
            key_schedule: self.key_schedule,
            jobs,
            progress: &progress,
        };
        let digested = evaluation(&jobs).subject();
        let subject = Subject {
            settings: self.settings(),
            brings: self.brings(),
            needed: self.needed(),
            digested: digested.as_bytes(),
        };
        let mut session = meeting.open(&subject, |agreed| self.job(agreed).map(drop))?;
        let jobs = [self.job(&session.agreed)?];
        let me = meeting.place.me();
        let owner = |name| session.agreed.giver(name).map_or(me, |(party, _)| party);
        let owners = Owners { key: owner(KEY), blocks: owner(INPUT), tweaks: owner(TWEAK) };
        let mut outcomes = evaluation(&jobs).at(&mut session.seat, &owners)?.into_iter().flatten();
        let outcome = outcomes.next().context("the evaluation gave no output")?;
        let bill = outcome.bill;
        let blocks =
            session.agreed.giver(INPUT).map_or(0, |(_, bytes)| bytes / self.target.cipher.block_bytes);
        let evaluated = Evaluated {
            cipher: self.target.name.clone(),
            form: self.target.form,
            direction: self.shown_direction(),
            blocks,
            outcome,
        };
        if !json {
            evaluated.print(guarantee);
        }
        let document = evaluated.document(guarantee, Phases::at_one_party(bill));
        session.print(meeting.place, bill, document, guarantee, json)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::from([
            ("cipher", self.target.name.clone()),
            ("circuit", self.target.form.name().into()),
            ("direction", self.shown_direction().into()),
            ("key schedule", if self.key_schedule { "alongside" } else { "before" }.into()),
        ])
    }

    fn shown_direction(&self) -> &'static str {
        match self.direction {
            _ if self.target.round_keys => "key schedule",
            Direction::Encrypt => "encrypt",
            Direction::Decrypt => "decrypt",
        }
    }

    fn given(&self, name: &str) -> Option<&[u8]> {
        let value = match name {
            KEY => &self.key,
            INPUT => &self.input,
            _ => &self.tweak,
        };
        value.as_ref().map(|bytes| &***bytes)
    }

    fn brings(&self) -> Vec<(String, usize)> {
        let given =
            self.names().into_iter().filter_map(|name| Some((name.to_owned(), self.given(name)?.len())));
        given.collect()
    }

    fn needed(&self) -> Vec<Needed> {
        let needed = |name: &str| Needed { name: name.into(), option: format!("--{name} HEX") };
        self.names().into_iter().map(needed).collect()
    }

    /// This party's own values; in place of the others', zeros of the same length, which nobody reads. If a
    /// size does not fit, this is an error at all parties.
    fn job(&self, agreed: &Agreed) -> Result<Job> {
        let (target, direction) = (&self.target, self.direction);
        let value = |name: &str| -> Vec<u8> {
            let zeros = || vec![0; agreed.giver(name).map_or(0, |(_, bytes)| bytes)];
            self.given(name).map_or_else(zeros, <[u8]>::to_vec)
        };
        let from = |name: &str| match agreed.giver(name) {
            Some((party, _)) => format!("the {name} of {party}"),
            None => name.to_owned(),
        };
        let key = value(KEY);
        target.check_key(&key).with_context(|| from(KEY))?;
        if target.round_keys {
            return Ok(Job { key, passes: Vec::new() });
        }
        let blocks = value(INPUT);
        target.check_blocks(&from(INPUT), &blocks)?;
        let count = blocks.len() / target.cipher.block_bytes;
        let tweaks = target.tweaks(&from(TWEAK), &value(TWEAK), count)?;
        Ok(Job { key, passes: vec![Pass { direction, blocks, tweaks }] })
    }
}
