use polyclave_cipher::compile;
use polyclave_field::Gf2_64;

use super::*;
use crate::catalog;
use crate::dealers::InsecureDealing;
use crate::interface::any::AnySetup;
use crate::interface::protocol::{ProtocolConfig, Session};
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::{mesh_with_timeout, run_parties};
use crate::spdz::{LookupMethod, Packing, Preprocessing, SpdzConfig};
use crate::testkit::exchanging::changing;
use crate::testkit::faults::{LATE, Promise, Sweep, accused, run_over};
use crate::testkit::tamper::{self, Tamper};

/// What moves: two lanes of eight bytes, and one of cells of four bits.
const BYTES: [u8; 20] = *b"sixteen bytes, fewer";
const SHAPES: [Shape; 2] = [Shape { count: 8, bits: 8, lanes: 2 }, Shape { count: 8, bits: 4, lanes: 1 }];
const SHAMIR_ACTIVE: &str = "shamir-active";

/// Two sets on one network, by the numbers that their parties have there.
#[derive(Clone)]
struct Meeting {
    from: fn() -> AnyServiceConfig,
    to: fn() -> AnyServiceConfig,
    old: Vec<Option<Party>>,
    new: Vec<Option<Party>>,
    /// The old party that has no place any more, and the place that it had when the common secrets were made.
    lost: Option<(usize, Party)>,
}

fn places(numbers: &[u8]) -> Vec<Option<Party>> {
    numbers.iter().map(|number| Some(Party(*number))).collect()
}

impl Meeting {
    fn parties(&self) -> usize {
        let all = self.old.iter().chain(&self.new).flatten().chain(self.lost.iter().map(|(_, place)| place));
        all.map(|place| place.index() + 1).max().expect("some")
    }

    /// The whole, at one party: a member of the new set returns what the new set opens.
    fn run(
        &self,
        spoil: impl Fn(Party, &mut Vec<u8>),
        net: &mut dyn Net,
    ) -> std::result::Result<Option<Vec<u8>>, Fault> {
        let (from, to) = ((self.from)(), (self.to)());
        let (old, new) = (Side { config: &from, places: &self.old }, Side { config: &to, places: &self.new });
        // All parties know each other before anything is handed over.
        hello(&HandshakeParameters::new(self.parties()), net)?;
        let mut before = self.old.clone();
        self.lost.iter().for_each(|(number, place)| before[*number] = Some(*place));
        let mut old_session = joined(&old, &before, net).map_err(Fault::Old)?;
        if self.lost.is_some_and(|(_, place)| place == net.me()) {
            return Ok(None);
        }
        // The lost party is the last one.
        let there: Vec<Party> =
            Party::all(net.parties()).filter(|p| self.lost.is_none_or(|(_, place)| place != *p)).collect();
        let net: &mut dyn Net = &mut Among::new(net, &there)?;
        let values = match &mut old_session {
            Some(session) => {
                let message = |e| Fault::Old(in_network_of(&self.old, e));
                shared(&old, session, net).map_err(message)?
            }
            None => Vec::new(),
        };
        let mut new_session = joined(&new, &self.new, net)?;
        let handover = Handover { from: old, to: new, len: BYTES.len() };
        let mut sessions = Sessions { old: old_session.as_mut(), new: new_session.as_mut() };
        let mut drawn = handover.draw(&mut sessions, net)?;
        spoil(net.me(), &mut drawn.differences);
        let arrived = handover.complete(drawn, &values, &mut sessions, net)?;
        let Some(session) = new_session.as_mut() else { return Ok(None) };
        let open = || -> Result<Vec<u8>> {
            let mut among = Among::with_absent(net, &self.new)?;
            let (mut opened, mut sums) = (Vec::new(), Sums::default());
            for shape in SHAPES {
                let views = [Matrix::identity(shape.bits)];
                let value = arrived.value((opened.len(), shape), &views, &mut sums, session, &mut among)?;
                let cells = release(session, &value, Owner::All, &mut among)?.expect("it is for all");
                opened.extend(cells.accept().to_blocks());
            }
            Ok(opened)
        };
        Ok(Some(open().map_err(|e| in_network_of(&self.new, e))?))
    }
}

fn joined(side: &Side<'_>, before: &[Option<Party>], net: &mut dyn Net) -> Result<Option<AnyServiceSession>> {
    if !before.contains(&Some(net.me())) {
        return Ok(None);
    }
    let message = |e| in_network_of(before, e);
    let setup: AnySetup = side.config.setup(&mut Among::with_absent(&mut *net, before)?).map_err(message)?;
    if side.number_of(net.me()).is_none() {
        return Ok(None);
    }
    let mut among = Among::with_absent(net, side.places)?;
    let session = hello(&side.config.handshake(HandshakeParameters::new(side.places.len())), &mut among);
    side.config.join(&setup, session.map_err(message)?.stream(), among.members()).map(Some)
}

/// The bytes, shared among the old set: the first of its members gives them.
fn shared(side: &Side<'_>, session: &mut AnyServiceSession, net: &mut dyn Net) -> Result<Vec<Leaving>> {
    let mut among = Among::with_absent(net, side.places)?;
    let giver = among.members().iter().next().expect("there are members");
    let (mut values, mut rest) = (Vec::new(), &BYTES[..]);
    for shape in SHAPES {
        let (bytes, further) = rest.split_at(shape.bytes());
        rest = further;
        let cells = Cells::from_blocks(shape.count, shape.bits, bytes).expect("whole blocks");
        let circuit = compile(&sum(1, &shape), session);
        let input = if among.me() == giver { Input::Mine(&cells) } else { Input::From(giver) };
        let batch = prepare(session, &circuit, shape.lanes, &mut among)?;
        let value = evaluate(session, &circuit, shape.lanes, &[input], batch, &mut among)?.remove(0);
        values.push(Leaving { value, shape });
    }
    session.check(&mut among)?;
    Ok(values)
}

fn service(name: &str, parties: usize) -> AnyServiceConfig {
    let descriptor = catalog::find(name).expect("it is listed");
    descriptor.service(parties, descriptor.threshold.most(parties)).expect("it serves")
}

fn with_dealt_material() -> AnyServiceConfig {
    let packing = Packing::of::<Gf2_64>(1).expect("it fits");
    let dealer = Preprocessing::Dealt(&InsecureDealing);
    let config = SpdzConfig::<Gf2_64>::new(2, LookupMethod::MaskedTables, dealer, packing);
    AnyServiceConfig::new(config.expect("it fits"))
}

fn moves(meeting: &Meeting) {
    let outcomes = run_parties(meeting.parties(), |net| Ok(meeting.run(|_, _| (), net)));
    for (place, outcome) in Party::all(meeting.parties()).zip(outcomes) {
        let outcome = outcome.expect("it ran").expect("all are honest");
        let is_new = meeting.new.contains(&Some(place));
        assert_eq!(outcome, is_new.then(|| BYTES.to_vec()), "{place}");
    }
}

#[test]
fn values_move_to_replicated_sharing_and_from_it() {
    // Another protocol among the same parties.
    moves(&Meeting {
        from: || service("shamir", 3),
        to: || service("replicated", 3),
        old: places(&[0, 1, 2]),
        new: places(&[0, 1, 2]),
        lost: None,
    });
    moves(&Meeting {
        from: || service(SHAMIR_ACTIVE, 4),
        to: || service("replicated-active", 3),
        old: places(&[0, 1, 2, 3]),
        new: places(&[4, 1, 3]),
        lost: None,
    });
    moves(&Meeting {
        from: || service("replicated-active", 3),
        to: with_dealt_material,
        old: places(&[2, 0, 1]),
        new: places(&[3, 1]),
        lost: None,
    });
}

#[test]
fn values_move_from_shamir_to_authenticated_sharing_and_a_lost_party_is_not_missed() {
    moves(&Meeting {
        from: || service(SHAMIR_ACTIVE, 4),
        to: with_dealt_material,
        old: vec![Some(Party(0)), None, Some(Party(1)), Some(Party(2))],
        new: places(&[3, 1]),
        lost: Some((1, Party(4))),
    });
}

#[test]
fn values_move_from_authenticated_sharing_to_shamir() {
    moves(&Meeting {
        from: with_dealt_material,
        to: || service("shamir", 3),
        old: places(&[0, 1]),
        new: places(&[1, 0, 2]),
        lost: None,
    });
}

#[test]
fn values_move_between_two_sets_that_have_nobody_in_common() {
    moves(&Meeting {
        from: || service("shamir", 3),
        to: || service(SHAMIR_ACTIVE, 4),
        old: places(&[0, 1, 2]),
        new: places(&[3, 4, 5, 6]),
        lost: None,
    });
}

#[test]
fn a_dealer_with_other_masks_for_the_new_set_is_named_by_everybody() {
    for byte in [0, BYTES.len() - 1, BYTES.len() + 3] {
        let meeting = Meeting {
            from: || service(SHAMIR_ACTIVE, 4),
            to: with_dealt_material,
            old: places(&[0, 1, 2, 3]),
            new: places(&[2, 4]),
            lost: None,
        };
        let cheater = Party(1);
        let spoil = |me: Party, differences: &mut Vec<u8>| {
            if me == cheater {
                differences[byte] ^= 1;
            }
        };
        let outcomes = run_parties(meeting.parties(), |net| Ok(meeting.run(spoil, net)));
        for outcome in outcomes {
            let fault = outcome.expect("it ran").expect_err("no value arrives");
            assert!(
                matches!(&fault, Fault::Elsewhere(Error::Peer { peer, .. }) if *peer == cheater),
                "{fault:?}"
            );
        }
    }
}

/// A network that changes a byte towards some parties, in exchanges in which its party tells all others so
/// many bytes.
fn telling<'n>(net: &'n mut dyn Net, len: usize, at: usize, to: &'n [Party]) -> impl Net + 'n {
    let (me, parties) = (net.me(), net.parties());
    changing(net, move |out| {
        if me.peers(parties).all(|p| out[p.index()].len() == len) {
            to.iter().for_each(|p| out[p.index()][at] ^= 1);
        }
    })
}

type Outcome = std::result::Result<Option<Vec<u8>>, Fault>;

/// Moves from three parties to two, one of whom is in both sets. What the honest parties end with, in order.
fn told_otherwise(cheater: Party, [len, at]: [usize; 2], to: &[Party]) -> Vec<(Party, Outcome)> {
    let meeting = Meeting {
        from: || service("replicated-active", 3),
        to: with_dealt_material,
        old: places(&[2, 0, 1]),
        new: places(&[3, 1]),
        lost: None,
    };
    let outcomes = run_parties(meeting.parties(), |net| {
        let len = if net.me() == cheater { len } else { usize::MAX };
        Ok(meeting.run(|_, _| (), &mut telling(net, len, at, to)))
    });
    let honest = Party::all(4).zip(outcomes).filter(|(place, _)| *place != cheater);
    honest.map(|(place, outcome)| (place, outcome.expect("it ran"))).collect()
}

/// The first party of a set, whose word counts if all others say the same, tells everybody the same wrong
/// thing: what is opened under the masks, or what the masks of an honest dealer are checked by.
#[test]
fn a_wrong_opening_that_everybody_is_told_is_found_by_all_and_no_dealer_is_named() {
    let dealers = 3;
    for (cheater, len, at) in [
        (Party(2), BYTES.len(), 3),
        (Party(2), ELEMENT_BYTES * dealers, ELEMENT_BYTES + 5),
        (Party(3), ELEMENT_BYTES * dealers, ELEMENT_BYTES + 5),
    ] {
        let everybody: Vec<Party> = cheater.peers(4).collect();
        for (place, outcome) in told_otherwise(cheater, [len, at], &everybody) {
            let found = Err(Fault::Elsewhere(Error::Equivocation { what: "openings of a set of parties" }));
            assert_eq!(outcome, found, "{place}: {cheater} tells {len} bytes");
        }
    }
}

/// Who was told something else names the dealer or says that the openings contradict each other. The others
/// miss it, or have nothing wrong.
#[test]
fn what_a_party_tells_one_other_alone_never_arrives() {
    let differences = BYTES.len() + ELEMENT_BYTES;
    for (cheater, len, message) in [
        (Party(0), differences, Party(3)),
        (Party(0), differences, Party(2)),
        (Party(2), BYTES.len(), Party(3)),
        (Party(2), 3 * ELEMENT_BYTES, Party(1)),
    ] {
        for (place, outcome) in told_otherwise(cheater, [len, 2], &[message]) {
            let is_right = match &outcome {
                Err(Fault::Elsewhere(Error::Peer { peer, .. })) if place == message => {
                    *peer == cheater && len == differences
                }
                Err(Fault::Elsewhere(Error::Equivocation { .. })) if place == message => len != differences,
                Err(Fault::Old(error) | Fault::Elsewhere(error)) => {
                    place != message && !accused(error).contains(message)
                }
                Ok(arrived) => place != message && arrived.is_none(),
            };
            assert!(is_right, "{cheater} to {message}, {len} bytes: {place}: {outcome:?}");
        }
    }
}

/// Every message of one party is changed, cut, repeated and withheld: a member of the new set has the right
/// value or an error, and no honest party accuses another.
fn sweep(meeting: Meeting, cheater: Party) {
    let corrects = (meeting.from)().name() == SHAMIR_ACTIVE;
    let sweep = Sweep::new(meeting.parties(), cheater, Promise::RightOrAborted);
    let sweep = Sweep { drop_every: 7, corrects, ..sweep };
    let swept = sweep.run(move |net| {
        meeting.run(|_, _| (), net).map_err(|fault| match fault {
            Fault::Old(error) | Fault::Elsewhere(error) => error,
        })
    });
    println!("{swept:?}");
    assert!(swept.messages > 20 && swept.faults > 60, "{swept:?}");
}

#[test]
fn no_message_of_a_party_in_both_sets_makes_authenticated_values_wrong() {
    let (from, to) = (with_dealt_material, with_dealt_material);
    sweep(Meeting { from, to, old: places(&[0, 1]), new: places(&[1, 2]), lost: None }, Party(1));
}

#[test]
fn no_message_of_a_dealer_makes_values_wrong_that_move_to_shamir_active() {
    let to = || service(SHAMIR_ACTIVE, 4);
    sweep(
        Meeting {
            from: with_dealt_material,
            to,
            old: places(&[0, 1]),
            new: places(&[1, 2, 3, 4]),
            lost: None,
        },
        Party(0),
    );
}

#[test]
fn no_message_of_a_new_party_makes_authenticated_values_wrong() {
    let (from, to) = (with_dealt_material, with_dealt_material);
    sweep(Meeting { from, to, old: places(&[0, 1]), new: places(&[1, 2]), lost: None }, Party(2));
}

/// A cheater opens its nonce wrongly to the party that is to give the values, and to that one alone. It ends
/// the session, and has told the others nothing: they miss it, and do not say that it cheats.
#[test]
fn a_giver_that_a_cheater_has_silenced_is_missed_and_not_accused() {
    let (giver, cheater) = (Party(0), Party(3));
    let places = places(&[0, 1, 2, 3]);
    let mut silenced = 0;
    // What the cheater sends in the setup and in both rounds of the hello.
    for at in 0..9 {
        let places = places.clone();
        let nets = mesh_with_timeout(4, LATE).into_iter();
        let nets = nets.map(|net| {
            let at = if net.me() == cheater { at } else { u64::MAX };
            Tamper::new(net, at, tamper::Fault::FlipBit { byte: 1, bit: 0 })
        });
        let outcomes = run_over(nets.collect(), move |net| {
            let config = service(SHAMIR_ACTIVE, 4);
            let side = Side { config: &config, places: &places };
            let mut session = joined(&side, &places, net)?.expect("all are in the set");
            shared(&side, &mut session, net).map(drop)
        });
        for (party, outcome) in Party::all(4).zip(&outcomes).filter(|(party, _)| *party != cheater) {
            let Err(error) = outcome else { continue };
            let accused = accused(error);
            assert!(accused.is_empty() || accused.contains(cheater), "{party}: {error}");
            let misses = matches!(error, Error::Missing { there, .. } if !there.contains(giver));
            silenced += u32::from(misses);
        }
    }
    assert!(silenced > 0, "nobody has missed the giver");
}

/// From the hellos and the setup on: among the old parties, one that has ended the session because of what
/// the cheater sent to it alone is silent for the others, and not accused. The party that gives the values is
/// such a one.
#[test]
fn no_message_of_an_old_shamir_active_party_makes_values_wrong_or_an_honest_one_accused() {
    let from = || service(SHAMIR_ACTIVE, 4);
    sweep(
        Meeting {
            from,
            to: with_dealt_material,
            old: places(&[1, 0, 2, 3]),
            new: places(&[3, 4]),
            lost: None,
        },
        Party(2),
    );
}

/// A handover of so many bytes from one place to the same.
fn of_length<'s>(config: &'s AnyServiceConfig, places: &'s [Option<Party>], len: usize) -> Handover<'s> {
    let side = Side { config, places };
    Handover { from: side, to: side, len }
}

/// What a party allocates for others follows from the length.
#[test]
fn no_bytes_and_too_many_are_not_handed_over() {
    let outcomes = run_parties(2, |net| {
        let config = with_dealt_material();
        let draw = |len: usize, net: &mut dyn Net| {
            of_length(&config, &[], len).draw(&mut Sessions { old: None, new: None }, net).map(drop)
        };
        for len in [0, MAX_BYTES + 1] {
            let refused = draw(len, net);
            assert!(matches!(refused, Err(Fault::Elsewhere(Error::Misuse(_)))), "{len}: {refused:?}");
        }
        for len in [1, MAX_BYTES] {
            assert_eq!(draw(len, net), Ok(()), "{len}");
        }
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
}

/// Four times what is handed over, and 64 bytes more each: what a party says it will send is what another one
/// allocates.
#[test]
fn a_party_that_says_it_has_longer_messages_than_masks_take_is_named() {
    for len in [1, 20] {
        for over in [0, 1] {
            let outcomes = run_parties(2, |net| {
                if net.me() == Party(1) {
                    let words = [4 * (len as u64 + 64) + over, 0, 0, 0].map(u64::to_le_bytes);
                    tell(words.as_flattened(), &[32; 2], net)?;
                    return Ok(tell(&[], &[0; 2], net).map(drop).map_err(Fault::from));
                }
                let config = with_dealt_material();
                let handover = of_length(&config, &[Some(Party(1))], len);
                Ok(handover.draw(&mut Sessions { old: None, new: None }, net).map(drop))
            });
            let drawn = outcomes[0].as_ref().expect("it ran");
            match over {
                0 => assert_eq!(*drawn, Ok(())),
                _ => assert!(
                    matches!(drawn, Err(Fault::Elsewhere(Error::Peer { peer: Party(1), .. }))),
                    "{drawn:?}"
                ),
            }
        }
    }
}

/// A dealer would tell the others less than what hides the values, or would find no blind.
#[test]
fn masks_of_another_length_and_missing_blinds_are_refused() {
    let outcomes = run_parties(2, |net| {
        let (config, places) = (with_dealt_material(), places(&[0, 1]));
        let side = Side { config: &config, places: &places };
        let mut session = joined(&side, &places, net)?.expect("it is a member");
        let handover = of_length(&config, &places, BYTES.len());
        let (masks, messages) = handover.masks(&side, &mut session, net)?;
        let heard = handover.exchange(&messages, &[], net)?.old;
        let known = handover.known(&side, &masks, heard.clone())?;
        assert_eq!(known.len(), BYTES.len() + ELEMENT_BYTES);
        let refused = Error::CheckFailed { what: "a mask of another length than was asked for" };
        for len in [BYTES.len() - 1, BYTES.len() + 1] {
            let other = of_length(&config, &places, len).known(&side, &masks, heard.clone());
            assert_eq!(other.map(drop), Err(refused.clone()), "{len}");
        }
        let without_blinds = heard.into_iter().map(|[mask, _]| [mask, Zeroizing::default()]).collect();
        assert_eq!(handover.known(&side, &masks, without_blinds).map(drop), Err(refused));
        Ok(())
    });
    assert_eq!(outcomes, [Ok(()), Ok(())]);
}

#[test]
fn a_party_tells_nothing_of_another_length_than_is_due() {
    let outcomes = run_parties(2, |net| Ok(tell(&[1], &[2; 2], net).map(drop)));
    for outcome in outcomes {
        let outcome = outcome.expect("it ran");
        assert!(matches!(outcome, Err(Error::Misuse(_))), "{outcome:?}");
    }
}
