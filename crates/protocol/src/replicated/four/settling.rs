//! The end of an evaluation, or of products of elements: it stands, or it is repeated without a party.

use polyclave_cipher::Compiled;
use zeroize::Zeroizing;

use super::keys::Components;
use super::three::Three;
use super::verdict::{CLAIM_BYTES, TESTIMONY_BYTES, Verdict, claim, judge, judge_fault};
use super::{BEHIND, COMPONENTS, FourRegisters, PARTIES, ReplicatedFour, Shared};
use crate::interface::net::Net;
use crate::shamir::Broadcast;
use crate::unchecked::Unchecked;
use crate::{Error, Party, PartySet, Result};

/// More than one party is at fault.
const TOO_MANY: Error = Error::CheckFailed { what: "joint messages, of more than one party" };

impl ReplicatedFour {
    /// Whether an evaluation stands. If not, it is to be repeated, among other parties.
    pub(super) fn settle_evaluation(
        &mut self,
        compiled: &Compiled,
        registers: &mut FourRegisters,
        net: &mut dyn Net,
    ) -> Result<bool> {
        let ports = compiled.outputs();
        let (lanes, outputs) = match (&mut *registers, &mut self.three) {
            (FourRegisters::Four(_), _) => return self.settle_joint(net),
            (FourRegisters::Three(registers), Some(three)) => {
                (registers.count(), three.outputs(ports, registers, net)?)
            }
            (FourRegisters::Aside(lanes), Some(_)) => (*lanes, None),
            _ => return Err(Error::misuse("an evaluation is settled once")),
        };
        if !self.settle_three(net)? {
            return Ok(false);
        }
        let mut values: Vec<(String, Shared<COMPONENTS>)> = Vec::with_capacity(ports.len());
        for (at, port) in ports.iter().enumerate() {
            let lanes = if port.uniform { 1 } else { lanes };
            let value = match (&outputs, &self.three) {
                (Some(outputs), Some(three)) => three.lifted(&outputs[at], &mut self.joint.keys),
                _ => {
                    let (bits, count) = (port.bits, port.cells.len());
                    let rows = Zeroizing::new(vec![0; COMPONENTS * count * lanes]);
                    Shared { bits, count, lanes, rows, unchecked: Unchecked::default() }
                }
            };
            values.push((port.name.clone(), value));
        }
        let lens: Vec<usize> = values.iter().map(|(_, value)| value.count * value.lanes).collect();
        let told = {
            let rows: Vec<Components<&[u8]>> =
                values.iter().map(|(_, value)| std::array::from_fn(|at| value.share(at))).collect();
            self.tell(&rows, outputs.is_some(), lens.iter().sum(), net)?
        };
        if let Some(told) = told {
            for (component, told) in told.iter().enumerate() {
                let mut at = 0;
                for ((_, value), len) in values.iter_mut().zip(&lens) {
                    value.rows[component * len..(component + 1) * len].copy_from_slice(&told[at..at + len]);
                    at += len;
                }
            }
        }
        *registers = FourRegisters::Settled(values);
        Ok(true)
    }

    /// Tells the party that is left out what it lacks of values. Gives it back there.
    pub(super) fn tell(
        &self,
        values: &[Components<&[u8]>],
        has_them: bool,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Option<Components<Zeroizing<Vec<u8>>>>> {
        let Some(three) = &self.three else { return Ok(None) };
        let components =
            has_them.then(|| std::array::from_fn(|at| values.iter().map(|value| value[at]).collect()));
        let told = three.tell(components, len, net)?;
        Ok((three.out == self.me()).then_some(told))
    }

    /// Whether all joint messages since the last verdict were right. If not, three go on from now on.
    pub(super) fn settle_joint(&mut self, net: &mut dyn Net) -> Result<bool> {
        let transcript = &self.joint.transcript;
        let rounds = transcript.rounds();
        if rounds == 0 {
            return Ok(true);
        }
        let mine = claim(transcript.fault(), self.joint.lost, &self.joint.heard);
        let claims = self.broadcast(CLAIM_BYTES, &mine, net)?;
        let mut verdict = judge(rounds, &claims);
        if let Verdict::Examine(fault) = verdict {
            let mine = self.joint.transcript.testimony(fault);
            verdict = judge_fault(fault, &self.broadcast(TESTIMONY_BYTES, &mine, net)?);
        }
        self.joint.transcript.forget();
        self.joint.heard = Default::default();
        match verdict {
            Verdict::Right => return Ok(true),
            Verdict::Lost | Verdict::Examine(_) => return Err(TOO_MANY),
            // The party with the lowest number leads: rather the other one.
            Verdict::Disputed(one, other) => self.go_on_without(one.max(other), Some(one.min(other)), net)?,
            Verdict::Without(party) => self.go_on_without(party, None, net)?,
        }
        Ok(false)
    }

    /// Whether what the three have computed stands. If not, three others go on from now on.
    pub(super) fn settle_three(&mut self, net: &mut dyn Net) -> Result<bool> {
        let Some(three) = &self.three else { return Err(Error::misuse("four go on")) };
        let (satisfied, out) = (three.is_satisfied(), three.out);
        let Some(against) = three.against else {
            return match three.failure() {
                Some(failure) => Err(failure),
                None => Ok(true),
            };
        };
        let said = self.broadcast(1, &[u8::from(satisfied)], net)?;
        let is_satisfied = |p: Party| said[p.index()].as_deref() == Some(&[1]);
        if PartySet::all(PARTIES).iter().filter(|p| *p != out).all(is_satisfied) {
            return Ok(true);
        }
        self.go_on_without(against, None, net)?;
        Ok(false)
    }

    fn go_on_without(&mut self, out: Party, against: Option<Party>, net: &mut dyn Net) -> Result<()> {
        if against.is_none() && !self.joint.lost.contains(out) {
            self.outvoted = self.outvoted.and([out].into_iter().collect());
        }
        if against.is_none() && out == self.me() {
            return Err(Error::CheckFailed {
                what: "messages of this party: the three others go on without it",
            });
        }
        self.disputed = against.map_or(self.disputed, |against| [out, against].into_iter().collect());
        let (setup, stream) = (&self.setup, &self.stream);
        let mut three = match against {
            Some(against) => Three::disputed(setup, stream, (out, against), net)?,
            None => Three::begin(setup, stream, out),
        };
        three.meet(net)?;
        self.three = Some(three);
        Ok(())
    }

    /// All parties broadcast a message of the same length.
    fn broadcast(&mut self, len: usize, mine: &[u8], net: &mut dyn Net) -> Result<Vec<Option<Vec<u8>>>> {
        let lens = [len; PARTIES];
        let broadcast = Broadcast { members: self.serving, threshold: 1, lens: &lens, behind: BEHIND };
        let heard = broadcast.run(mine, net)?;
        self.joint.tally.of(self.joint.phase).rounds += heard.rounds;
        self.joint.lost = self.joint.lost.and(heard.lost);
        Ok(heard.messages)
    }
}
