use std::sync::Arc;

use polyclave_cipher::Matrix;
use proptest::prelude::*;

use super::super::setup::contains;
use super::super::{Inversion, Tables};
use super::*;
use crate::among::{Among, in_network};
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::{mesh, run_parties};
use crate::testkit::faults::{Promise, Sweep};
use crate::testkit::tamper::Fault as Tampering;

/// Bytes, elements of GF(2^128) and images of the values that move.
const BYTES: usize = 64;
const ELEMENTS: usize = 3;

fn passive(n: usize, t: usize) -> Sharing {
    let structure = Structure::new(n, t).expect("it is valid");
    let (inversion, tables) = (Inversion::CarriedSquares, Tables::ByLanes);
    Sharing::passive(&ShamirConfig { structure, inversion, tables })
}

fn active(n: usize, t: usize) -> Sharing {
    let structure = Structure::new(n, t).expect("it is valid");
    let config = ShamirActiveConfig::new(structure, Inversion::MaskedPowers, Tables::Masked);
    Sharing::active(&config.expect("enough parties"))
}

/// A party's new shares, if it is a new one.
type Outcome = std::result::Result<Option<[Zeroizing<Vec<u8>>; 2]>, Fault>;

/// Who takes part: the old parties without those that are gone, and the new ones. Numbers are those on the
/// common network.
#[derive(Clone)]
struct Meeting {
    from: Sharing,
    to: Sharing,
    dealers: Vec<u8>,
    /// On the network, by new number.
    new: Vec<Party>,
    setups: Arc<Vec<Zeroizing<Vec<u8>>>>,
}

impl Meeting {
    /// `staying` old parties are the first of the new.
    fn of(from: Sharing, to: Sharing, dealers: &[u8], staying: &[u8]) -> Meeting {
        let stay = staying.iter().map(|old| dealers.iter().position(|d| d == old).expect("it takes part"));
        let mut new: Vec<Party> = stay.map(|place| Party(place as u8)).collect();
        new.extend((dealers.len() as u8..).map(Party).take(to.parties() - new.len()));
        let setups = run_parties(from.parties(), |net| Setup::agree(from.structure(), net));
        let setups = setups.into_iter().map(|setup| setup.expect("agreed").save(from.kinds[0]));
        Meeting { from, to, dealers: dealers.to_vec(), new, setups: Arc::new(setups.collect()) }
    }

    fn parties(&self) -> usize {
        self.dealers.len() + self.new.iter().filter(|p| p.index() >= self.dealers.len()).count()
    }

    fn dealer_set(&self) -> PartySet {
        self.dealers.iter().map(|old| Party(*old)).collect()
    }

    /// What an old party has: the values i + (i + 3) x + .. with all coefficients known.
    fn stored(&self, old: Party) -> [Zeroizing<Vec<u8>>; 2] {
        let x = point(old);
        let share = |i: usize, x: Gf256| -> Gf256 {
            let higher =
                (1..=self.from.structure().threshold()).map(|k| Gf256((i * 7 + k) as u8) * x.pow(k as u32));
            higher.fold(Gf256(i as u8), |sum, term| sum + term)
        };
        let rows = Zeroizing::new((0..2 * BYTES).map(|i| share(i, x).0).collect::<Vec<_>>());
        let views = vec![Matrix::identity(8), Matrix::frobenius(1)];
        let value = Shared { bits: 8, count: BYTES, lanes: 1, views, rows };
        let mut elements = Zeroizing::new(vec![0; ELEMENTS * ELEMENT_BYTES]);
        for k in 0..=self.from.structure().threshold() {
            let row = vec![if k == 0 { 0x5a } else { k as u8 * 11 }; elements.len()];
            scale_add(&mut elements, &row, &Gf128::embed(x.pow(k as u32)).to_bytes());
        }
        let header = storage::header(self.from.kinds[1], self.from.structure(), old);
        [value.save(header), Elements::of(elements).save(&[])]
    }

    /// One party's part of the move: its new shares, if it is new. `spoil` changes what it deals.
    fn run(&self, net: &mut dyn Net, spoil: impl Fn(Party, &mut Vec<Zeroizing<Vec<u8>>>)) -> Outcome {
        let me = net.me();
        let stream = hello(&HandshakeParameters::new(net.parties()), net)?.stream();
        let movement = Move::new(self.from, self.to, self.dealer_set())?;
        let old = self.dealers.get(me.index()).map(|old| Party(*old));
        let stored = self.stored(old.unwrap_or(Party(0)));
        let stored = [Stored::Value(&stored[0]), Stored::Elements(&stored[1])];
        let public: Vec<Vec<u8>> = stored
            .iter()
            .map(|stored| self.from.public_part(old.unwrap_or(Party(0)), *stored))
            .collect::<Result<_>>()?;
        let shapes = Shapes::parse(&[Stored::Value(&public[0]), Stored::Elements(&public[1])])?;
        let mut dealt = match old {
            Some(old) => {
                let mut dealt = movement.deal(&self.setups[old.index()], old, &stream, &stored)?;
                spoil(old, &mut dealt);
                dealt
            }
            None => Vec::new(),
        };
        let place = |p: Party| self.new.iter().position(|new| *new == p);
        let mine = place(me);
        let own = mine.filter(|_| old.is_some()).map(|place| std::mem::take(&mut dealt[place]));
        let out: Vec<&[u8]> = Party::all(net.parties())
            .map(|p| {
                place(p).filter(|_| p != me).and_then(|place| dealt.get(place)).map_or(&[][..], |m| &m[..])
            })
            .collect();
        let mut into: Vec<Zeroizing<Vec<u8>>> = Party::all(net.parties())
            .map(|p| {
                let deals = mine.is_some() && p != me && p.index() < self.dealers.len();
                Zeroizing::new(vec![0; if deals { shapes.message_bytes() } else { 0 }])
            })
            .collect();
        net.exchange(&out, &mut into.iter_mut().map(|m| m.as_mut_slice()).collect::<Vec<_>>())?;
        if mine.is_none() {
            return Ok(None);
        }
        if let Some(own) = own {
            into[me.index()] = own;
        }
        into.truncate(self.dealers.len());
        let mut among = Among::new(net, &self.new)?;
        let moved = movement.take(&shapes, &into, &mut among).map_err(|fault| match fault {
            Fault::Failed(error) => Fault::Failed(in_network(&self.new, error)),
            fault => fault,
        })?;
        Ok(Some(moved.try_into().map_err(|_| Error::misuse("two values"))?))
    }

    fn run_all(&self, spoil: impl Fn(Party, &mut Vec<Zeroizing<Vec<u8>>>) + Sync) -> Vec<Outcome> {
        let spoil = &spoil;
        std::thread::scope(|scope| {
            let parties = mesh(self.parties()).into_iter();
            let run = |mut net: crate::mesh::Mesh| scope.spawn(move || self.run(&mut net, spoil));
            let threads: Vec<_> = parties.map(run).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        })
    }

    /// The values behind the new shares; an error if these are not of degree t'.
    fn values(&self, moved: &[(Party, [Zeroizing<Vec<u8>>; 2])]) -> Option<(Vec<u8>, Vec<u8>)> {
        let rows: Vec<(Party, [Vec<u8>; 2])> = moved
            .iter()
            .map(|(p, [value, elements])| {
                let header = storage::header(self.to.kinds[1], self.to.structure(), *p);
                let value = Shared::restore(value, storage::PROTOCOL, header).expect("it is read");
                assert_eq!((value.count, value.views.len()), (BYTES, 2));
                let elements = Elements::restore(Reader::bare(elements, storage::PROTOCOL), 1).expect("read");
                (*p, [value.rows.to_vec(), elements.shares.to_vec()])
            })
            .collect();
        let words = |k: usize| -> Vec<Word<'_>> { rows.iter().map(|(p, rows)| (*p, &rows[k][..])).collect() };
        let (mut bytes, mut elements) = (vec![0; 2 * BYTES], vec![0; ELEMENTS * ELEMENT_BYTES]);
        let threshold = self.to.structure().threshold();
        let fits = interpolate(Symbol::Byte, threshold, &words(0), &mut bytes)
            && interpolate(Symbol::Element, threshold, &words(1), &mut elements);
        fits.then_some((bytes, elements))
    }

    /// Whether the values behind the new shares, of which one may be wrong, are right. Among the new parties.
    fn is_right(&self, moved: [Zeroizing<Vec<u8>>; 2], net: &mut dyn Net) -> Result<bool> {
        let mut among = Among::new(net, &self.new)?;
        let header = storage::header(self.to.kinds[1], self.to.structure(), among.me());
        let rows = Shared::restore(&moved[0], storage::PROTOCOL, header)?.rows;
        let rows = broadcast(&rows, &mut among).map_err(|e| in_network(&self.new, e))?;
        let words: Vec<Word<'_>> = Party::all(rows.len()).zip(rows.iter().map(|row| &row[..])).collect();
        let mut values = vec![0; 2 * BYTES];
        let decoded = decode(Symbol::Byte, self.to.structure().threshold(), None, &words, &mut values);
        let wrong = Error::CheckFailed { what: "the test's own opening" };
        decoded.map(|_| values == (0..2 * BYTES).map(|i| i as u8).collect::<Vec<_>>()).ok_or(wrong)
    }

    fn moves_what_was_stored(&self) {
        let outcomes = self.run_all(|_, _| {});
        let moved: Vec<_> = self
            .new
            .iter()
            .zip(0..)
            .map(|(p, number)| {
                let moved = outcomes[p.index()].clone().expect("honest parties finish").expect("it is new");
                (Party(number), moved)
            })
            .collect();
        let (bytes, elements) = self.values(&moved).expect("shares of the new degree");
        assert_eq!(bytes, (0..2 * BYTES).map(|i| i as u8).collect::<Vec<_>>());
        assert_eq!(elements, vec![0x5a; ELEMENTS * ELEMENT_BYTES]);
        let silent = outcomes.iter().filter(|outcome| matches!(outcome, Ok(None))).count();
        assert_eq!(silent, self.parties() - self.new.len(), "who leaves gets nothing");
    }
}

#[test]
fn values_move_to_any_other_number_of_parties_and_threshold_also_with_parties_gone() {
    for (from, to, dealers, staying) in [
        // A lost party of three is replaced.
        (passive(3, 1), passive(3, 1), &[0, 2][..], &[2, 0][..]),
        // More parties and a higher threshold, and back again.
        (passive(3, 1), passive(5, 2), &[0, 1, 2], &[0, 1, 2]),
        (passive(5, 2), passive(3, 1), &[4, 1, 0], &[1, 4]),
        // Nobody stays.
        (passive(4, 1), passive(9, 4), &[1, 3], &[]),
        (active(4, 1), active(4, 1), &[0, 1, 3], &[0, 1, 3]),
        (active(4, 1), active(7, 2), &[0, 1, 2, 3], &[3]),
        (active(7, 2), active(4, 1), &[0, 2, 3, 5, 6], &[]),
    ] {
        let mut dealers = dealers.to_vec();
        dealers.sort_unstable();
        Meeting::of(from, to, &dealers, staying).moves_what_was_stored();
    }
}

#[test]
fn too_few_old_parties_and_other_protocols_are_refused() {
    let set = |bits| PartySet::from_bits(bits);
    for (from, dealers) in [(passive(3, 1), 0b10), (active(4, 1), 0b101), (active(7, 2), 0b1111)] {
        let missing = Move::new(from, from, set(dealers)).err().expect("too few");
        assert!(matches!(missing, Error::Missing { .. }), "{missing}");
    }
    assert!(Move::new(passive(4, 1), active(4, 1), set(0b1111)).is_err(), "other images of cells are stored");
    assert!(Move::new(passive(3, 1), passive(3, 1), set(0b1011)).is_err(), "there is no fourth");
    assert!(Move::new(active(4, 1), active(7, 2), set(0b1101)).is_ok());
}

#[test]
fn a_dealer_that_deals_no_sharing_or_another_value_is_found_and_named_where_it_can_be() {
    let set = |parties: &[u8]| -> PartySet { parties.iter().map(|p| Party(*p)).collect() };
    let last = Lens { bytes: 2 * BYTES, elements: ELEMENTS * ELEMENT_BYTES }.message() - 1;
    let four = Meeting::of(active(4, 1), active(4, 1), &[0, 1, 2, 3], &[1, 2]);
    let three = Meeting::of(active(4, 1), active(4, 1), &[0, 1, 3], &[1]);
    let check = |meeting: &Meeting, change: &(dyn Fn(usize, &mut [u8]) + Sync), expected: &Fault| {
        let outcomes = meeting.run_all(|old, dealt| {
            if old == Party(1) {
                dealt.iter_mut().enumerate().for_each(|(to, message)| change(to, message));
            }
        });
        for p in &meeting.new {
            assert_eq!(outcomes[p.index()].as_ref().expect_err("found"), expected);
        }
    };
    for place in [0, 2 * BYTES - 1, 2 * BYTES + 3, last] {
        // One party gets a wrong share: it is the dealer's word against that party's.
        let fault = Fault::Contradiction { dealer: Party(1), receivers: set(&[2]) };
        check(&four, &|to, message| message[place] ^= if to == 2 { 4 } else { 0 }, &fault);
        // Two do: no honest dealer could be contradicted by so many.
        let fault = Fault::Dealers(set(&[1]));
        check(&four, &|to, message| message[place] ^= if to > 1 { 4 } else { 0 }, &fault);
        // A sharing of the right degree of another value: with four dealers it is corrected, with three only
        // found.
        check(&four, &|_, message| message[place] ^= 4, &fault);
        check(&three, &|_, message| message[place] ^= 4, &Fault::Undecided);
    }
}

#[test]
fn who_contradicts_more_dealers_than_can_cheat_is_named() {
    let meeting = Meeting::of(active(4, 1), active(4, 1), &[0, 1, 2, 3], &[]);
    let outcomes = meeting.run_all(|old, dealt| {
        // As if party 2 of the new ones published other combinations than it should, of two dealers.
        if old.0 < 2 {
            dealt[2][5] ^= 1;
        }
    });
    let liars: PartySet = [Party(2)].into_iter().collect();
    for p in &meeting.new {
        assert_eq!(outcomes[p.index()], Err(Fault::Receivers(liars)));
    }
}

/// For every set of t old parties, every set of t' new ones and every other value there are polynomials that
/// look the same to both together.
#[test]
fn old_shares_of_t_parties_and_new_ones_of_others_fit_every_value() {
    let (from, to) = (Structure::new(5, 2).expect("valid"), Structure::new(3, 1).expect("valid"));
    let weight = |structure: Structure, outside: u16, p: Party| {
        let everyone = (1 << structure.parties()) - 1;
        super::super::setup::weight(structure, everyone & !outside, p)
    };
    let sets = |structure: Structure| {
        (0..1u16 << structure.parties()).filter(move |s| s.count_ones() as usize == structure.threshold())
    };
    let at_zero = |structure: Structure, values: &[Gf256]| -> Gf256 {
        let parties = 0..=structure.threshold() as u8;
        let points: Vec<Gf256> = parties.clone().map(|p| point(Party(p))).collect();
        Gf256::lagrange(&points, Gf256::ZERO)
            .iter()
            .zip(parties)
            .map(|(l, p)| *l * values[usize::from(p)])
            .sum()
    };
    for (old, new) in sets(from).flat_map(|old| sets(to).map(move |new| (old, new))) {
        for k in [1, 2, 0x53, 0xff] {
            // What is added to the old polynomial at each dealer, and to what it dealt at each new party.
            let f: Vec<Gf256> = Party::all(5).map(|p| Gf256(k) * weight(from, old, p)).collect();
            let g = |dealer: Party| -> Vec<Gf256> {
                Party::all(3).map(|p| f[dealer.index()] * weight(to, new, p)).collect()
            };
            assert_eq!(at_zero(from, &f), Gf256(k), "another value");
            for dealer in Party::all(5) {
                assert_eq!(at_zero(to, &g(dealer)), f[dealer.index()], "dealt by the other share");
                let seen = Party::all(3).filter(|p| contains(new, *p));
                assert!(seen.map(|p| g(dealer)[p.index()]).all(|change| change == Gf256::ZERO));
                assert!(!contains(old, dealer) || f[dealer.index()] == Gf256::ZERO);
            }
        }
    }
}

#[test]
fn whatever_one_party_sends_while_values_move_honest_parties_get_the_right_values_or_an_error() {
    let meeting = Meeting::of(active(4, 1), active(4, 1), &[0, 1, 2, 3], &[0, 1, 2]);
    for cheater in [Party(1), Party(3), Party(4)] {
        let party = {
            let meeting = meeting.clone();
            move |net: &mut dyn Net| {
                let moved = meeting.run(net, |_, _| {}).map_err(|fault| match fault {
                    Fault::Failed(error) => error,
                    _ => Error::CheckFailed { what: "values that move" },
                })?;
                moved.map_or(Ok(true), |moved| meeting.is_right(moved, net))
            }
        };
        let faults = vec![Tampering::FlipBit { byte: 9, bit: 2 }, Tampering::Garbage { seed: 1 }];
        let sweep = Sweep { faults, drop_every: 7, ..Sweep::new(5, cheater, Promise::RightOrAborted) };
        let swept = sweep.run(party);
        assert!(swept.messages > 5 && swept.faults > swept.messages, "{swept:?}");
    }
}

proptest! {
    #[test]
    fn no_public_part_of_another_party_panics_or_claims_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        for part in [Stored::Value(&bytes), Stored::Elements(&bytes)] {
            if let Ok(shapes) = Shapes::parse(&[part]) {
                prop_assert!(shapes.message_bytes() <= MAX_BYTES + PUBLISHED);
            }
        }
    }
}
