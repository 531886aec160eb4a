//! Three parties go on without the fourth, as [`replicated-active`](super::super::active): secure with abort.
//!
//! **Shares.** Let P_u be left out. Component x_u is known to all three others, so it can be added to any
//! other component: y_2 = x_a + x_u, y_0 = x_b and y_1 = x_c, for the three parties P_a, P_b and P_c, are a
//! replicated sharing among three. P_a lacks y_2, P_b lacks y_0 and P_c lacks y_1, as each lacks its own
//! component. Local.
//!
//! **Keys.** The three pairs need keys that the third party of the three lacks: they come from K_a, K_b and
//! K_c. P_u has these, too. If P_u is the party that cheats, the three others follow the protocol, and P_u
//! receives nothing of what they send each other, so that its keys tell it nothing. If P_u is not, nobody who
//! cheats has a key that it should lack.
//!
//! **Back.** What the three have verified they bring back to four components: x_u is drawn from K_u, which
//! the three have and P_u lacks, and is taken out of x_a again. Local. If P_u is only disputed and not gone,
//! each of its three components is told it by a party that has the component and is not the other party of
//! the dispute. If P_u follows the protocol, that other party is the one that cheats, and the teller follows
//! the protocol, too: so what P_u is told is right. If P_u does not, it gets no more than it is due.
//!
//! **If the three abort** although all of them answered, let {u, v} be the disputed pair. All four broadcast
//! whether they are satisfied. If P_u cheats, the three others follow the protocol, and are. So if one of the
//! three is not, P_v cheats: all know it then, and the other three finish without P_v. There is no more than
//! one that cheats. Three that go on because the fourth is gone, or known to cheat, have nobody else to leave
//! out: if they abort, two parties were at fault, and that is an error.

use polyclave_cipher::{Compiled, CompiledPort, Lookup};
use zeroize::Zeroizing;

use super::super::Batch;
use super::super::active::Active;
use super::super::client::of_shares;
use super::super::registers::Registers;
use super::super::ring::{Ring, add};
use super::super::security::AdversaryModel;
use super::super::{Replicated, Setup, Shared};
use super::keys::{Components, Keys, held, place, place_among, setup_of_three};
use super::products::{BEHIND, of_elements};
use super::{COMPONENTS, PARTIES};
use crate::among::{Among, in_network};
use crate::interface::elements::Elements;
use crate::interface::net::Net;
use crate::interface::protocol::Session;
use crate::interface::session::Stream;
use crate::unchecked::Unchecked;
use crate::{Error, Party, PartySet, Result};

/// Three parties, as one of them or as the one that is left out.
pub(super) struct Three {
    /// The party that is left out.
    pub(super) out: Party,
    /// The party that contradicts it, and cheats if it does not; none if the party that is left out is gone
    /// or known to cheat.
    pub(super) against: Option<Party>,
    parties: Components<Party>,
    me: Party,
    /// Their own connections. Without a dispute they use those of the four.
    line: Option<Box<dyn Net>>,
    /// `None` at the party that is left out.
    session: Option<Replicated<Active>>,
    /// Why this evaluation has failed here.
    failed: Option<Error>,
}

impl Three {
    /// Begins to go on without a party that is gone, or known to cheat.
    pub(super) fn begin(setup: &Setup, stream: &Stream, out: Party) -> Three {
        let me = setup.keys.me();
        let parties = held(out);
        let session = (me != out).then(|| {
            let stream = stream.derived(&[out.0], PartySet::all(COMPONENTS));
            let setup = setup_of_three(setup, &stream, &parties);
            Replicated::new(Ring::new(&setup, &stream), Active::new(&setup, &stream))
        });
        Three { out, against: None, parties, me, line: None, session, failed: None }
    }

    /// Begins to go on without a party that another contradicts. The three have connections of their own: on
    /// those of the four they can still agree with the fourth after an error.
    pub(super) fn disputed(
        setup: &Setup,
        stream: &Stream,
        (out, against): (Party, Party),
        net: &mut dyn Net,
    ) -> Result<Three> {
        let mut three = Three { against: Some(against), ..Three::begin(setup, stream, out) };
        if three.me != out {
            let name = stream.derived(&[out.0], PartySet::all(COMPONENTS)).label();
            match net.fork_among(three.parties.into_iter().collect(), &name) {
                Ok(line) => three.line = Some(line),
                // A network without such streams is nobody's fault.
                Err(error @ Error::Misuse(_)) => return Err(error),
                Err(error) => three.failed = Some(error),
            }
        }
        Ok(three)
    }

    /// Waits until all three have begun: one of them may have waited for the fourth when the others did not.
    pub(super) fn meet(&mut self, net: &mut dyn Net) -> Result<()> {
        let met = self.run(net, |_, net| {
            let me = net.me();
            let out: Vec<&[u8]> =
                Party::all(COMPONENTS).map(|p| if p == me { &[][..] } else { &[1][..] }).collect();
            let mut heard: Components<Vec<u8>> = std::array::from_fn(|p| vec![0; out[p].len()]);
            let mut into: Vec<&mut [u8]> = heard.iter_mut().map(Vec::as_mut_slice).collect();
            let gathered = net.gather(&out, &mut into, BEHIND, &mut |_, _| false)?;
            let there = gathered.arrived.and([me].into_iter().collect());
            match there == PartySet::all(COMPONENTS) {
                true => Ok(()),
                false => Err(Error::Missing { there, needed: COMPONENTS, purpose: "go on without a fourth" }),
            }
        });
        met.map(|_| ())
    }

    /// What is done among the three. Whatever fails there is remembered for the verdict; from then on nothing
    /// is done in this evaluation. `None` if nothing is done. A caller's mistake is an error at once.
    pub(super) fn run<T>(
        &mut self,
        net: &mut dyn Net,
        act: impl FnOnce(&mut Replicated<Active>, &mut dyn Net) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(session) = self.session.as_mut().filter(|_| self.failed.is_none()) else { return Ok(None) };
        let net: &mut dyn Net = match &mut self.line {
            Some(line) => &mut **line,
            None => net,
        };
        let done = Among::new(net, &self.parties).and_then(|mut among| act(session, &mut among));
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error @ Error::Misuse(_)) => Err(error),
            Err(error) => {
                self.failed = Some(in_network(&self.parties, error));
                // The others need not wait until their time is over.
                self.line = None;
                Ok(None)
            }
        }
    }

    /// Whether this party is one of the three, and nothing has failed.
    pub(super) fn is_satisfied(&self) -> bool {
        self.session.is_some() && self.failed.is_none()
    }

    /// Why it has failed.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failed.clone()
    }

    /// Which of this party's two shares among the three public values are added to, at one of the three.
    pub(super) fn share_zero(&self) -> Option<Option<usize>> {
        self.session.as_ref().map(|session| session.ring.share_zero())
    }

    /// Registers at one of the three.
    pub(super) fn registers(&self, compiled: &Compiled, lanes: usize) -> Option<Registers<2>> {
        let session = self.session.as_ref()?;
        Some(Registers::new(compiled, lanes, &session.ring.pool))
    }

    /// The component that is one of this party's two shares among three, by which one it is.
    fn component(&self, share: usize) -> (Party, bool) {
        let number = usize::from(place_among(&self.parties, self.me).0);
        let of = (number + share + 1) % COMPONENTS;
        (self.parties[of], of == 0)
    }

    /// This party's shares among the three, of components that it has among the four.
    fn reduce(&self, components: Components<&[u8]>) -> [Zeroizing<Vec<u8>>; 2] {
        let at =
            |component| components[place(self.me, component).expect("another party's component is held")];
        [0, 1].map(|share| {
            let (component, has_rest) = self.component(share);
            let mut sum = Zeroizing::new(at(component).to_vec());
            if has_rest {
                add(&mut sum, at(self.out));
            }
            sum
        })
    }

    /// Back to components among the four. `keep` says which bits of a byte there are.
    fn lift(&self, shares: [&[u8]; 2], keep: u8, keys: &mut Keys) -> Components<Zeroizing<Vec<u8>>> {
        let rest = place(self.me, self.out).expect("it is another party");
        let mut drawn = keys.lift(rest, shares[0].len());
        drawn.iter_mut().for_each(|byte| *byte &= keep);
        let mut components: Components<Zeroizing<Vec<u8>>> = Default::default();
        for (share, bytes) in shares.into_iter().enumerate() {
            let (component, has_rest) = self.component(share);
            let mut bytes = Zeroizing::new(bytes.to_vec());
            if has_rest {
                add(&mut bytes, &drawn);
            }
            components[place(self.me, component).expect("it is another party's")] = bytes;
        }
        components[rest] = drawn;
        components
    }

    /// A value among the three.
    pub(super) fn value(&self, value: &Shared<COMPONENTS>) -> Shared<2> {
        let [first, second] = self.reduce(std::array::from_fn(|at| value.share(at)));
        let mut rows = Zeroizing::new(Vec::with_capacity(first.len() + second.len()));
        rows.extend_from_slice(&first);
        rows.extend_from_slice(&second);
        Shared {
            bits: value.bits,
            count: value.count,
            lanes: value.lanes,
            rows,
            unchecked: Unchecked::default(),
        }
    }

    /// A verified value among the four.
    pub(super) fn lifted(&self, value: &Shared<2>, keys: &mut Keys) -> Shared<COMPONENTS> {
        let components = self.lift([value.share(0), value.share(1)], 0xff >> (8 - value.bits), keys);
        let mut rows = Zeroizing::new(Vec::with_capacity(COMPONENTS * components[0].len()));
        components.iter().for_each(|component| rows.extend_from_slice(component));
        Shared {
            bits: value.bits,
            count: value.count,
            lanes: value.lanes,
            rows,
            unchecked: Unchecked::default(),
        }
    }

    /// Elements among the three.
    pub(super) fn elements(&self, elements: &Elements) -> Elements {
        of_shares(self.reduce(of_elements(elements)), Unchecked::default())
    }

    /// Verified elements among the four.
    pub(super) fn lifted_elements(&self, elements: &Elements, keys: &mut Keys) -> Elements {
        of_shares(self.lift([&elements.shares, &elements.macs], 0xff, keys), Unchecked::default())
    }

    /// Which party tells the one left out a component; none if there is nobody to be told.
    fn teller(&self, component: Party) -> Option<Party> {
        let against = self.against?;
        self.parties.into_iter().find(|party| ![component, against].contains(party))
    }

    /// Tells the party left out its components of verified values, if it is there. It gives what it was told,
    /// component by component; others give nothing. `components` has what this party has, by place, `len`
    /// bytes each. One round.
    pub(super) fn tell(
        &self,
        components: Option<Components<Vec<&[u8]>>>,
        len: usize,
        net: &mut dyn Net,
    ) -> Result<Components<Zeroizing<Vec<u8>>>> {
        let mut told: Components<Zeroizing<Vec<u8>>> = std::array::from_fn(|_| Zeroizing::new(vec![0; len]));
        if self.against.is_none() || len == 0 {
            return Ok(told);
        }
        let mut out = Zeroizing::new(Vec::new());
        let mut due = [0; PARTIES];
        for component in self.parties {
            let teller = self.teller(component);
            if let (Some(components), true) = (&components, teller == Some(self.me)) {
                let at = place(self.me, component).expect("a teller has it");
                components[at].iter().for_each(|bytes| out.extend_from_slice(bytes));
            }
            if let (Some(teller), true) = (teller, self.me == self.out) {
                due[teller.index()] += len;
            }
        }
        let messages: Vec<&[u8]> =
            Party::all(PARTIES).map(|p| if p == self.out { &out[..] } else { &[] }).collect();
        let lost = net.lost();
        let mut heard: Vec<Zeroizing<Vec<u8>>> = Party::all(PARTIES)
            .map(|p| Zeroizing::new(vec![0; if lost.contains(p) { 0 } else { due[p.index()] }]))
            .collect();
        let messages: Vec<&[u8]> = Party::all(PARTIES)
            .zip(messages)
            .map(|(p, message)| if lost.contains(p) { &[][..] } else { message })
            .collect();
        let mut into: Vec<&mut [u8]> = heard.iter_mut().map(|buffer| buffer.as_mut_slice()).collect();
        let gathered = net.gather(&messages, &mut into, BEHIND, &mut |_, _| false)?;
        let mut at = [0; PARTIES];
        for component in self.parties {
            let Some(teller) = self.teller(component).filter(|teller| gathered.arrived.contains(*teller))
            else {
                continue;
            };
            let from = &mut at[teller.index()];
            if let Some(bytes) = heard[teller.index()].get(*from..*from + len) {
                told[place(self.me, component).expect("it is told what it has")].copy_from_slice(bytes);
            }
            *from += len;
        }
        Ok(told)
    }

    /// The outputs of an evaluation among the three, verified.
    pub(super) fn outputs(
        &mut self,
        ports: &[CompiledPort],
        registers: &mut Registers<2>,
        net: &mut dyn Net,
    ) -> Result<Option<Vec<Shared<2>>>> {
        self.run(net, |session, net| {
            let outputs = ports.iter().map(|port| session.output(port, registers)).collect();
            session.check(net)?;
            Ok(outputs)
        })
    }

    /// The lookups of a layer among the three.
    pub(super) fn lookup(
        &mut self,
        compiled: &Compiled,
        lookups: &[Lookup],
        registers: &mut Registers<2>,
        net: &mut dyn Net,
    ) -> Result<()> {
        let done =
            self.run(net, |session, net| session.lookup(compiled, lookups, registers, &mut Batch(()), net));
        done.map(|_| ())
    }
}
