//! Cheaters with inside knowledge. They know the dealer's seed and so both parties' tables, except k bits of
//! what should be unknown to them. They guess these k bits. This makes the bound visible: a cheater succeeds
//! with probability 2^-k.

use std::sync::Arc;

use polyclave_cipher::{Builder, Cells, Circuit, Matrix, Table, compile};

use super::macs::Record;
use super::*;
use crate::Party;
use crate::dealers::insecure_tables::{InsecureTables, table_key};
use crate::evaluate::{evaluate, prepare, release};
use crate::interface::release::Checked;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;

const ACTIVE: [Macs; 3] = [Macs::Lookup32, Macs::Lookup64, Macs::Linear64];
const CHEATER: Party = Party(0);
const HONEST: Party = Party(1);
const FAILED: Error = Error::CheckFailed { what: "the tags of what was opened" };

/// What a cheater does to its material.
struct Cheat<'a> {
    plan: &'a Plan<'a>,
    mine: &'a mut Made,
    /// What the honest party has.
    theirs: &'a Made,
    /// The honest party's key, all but the guessed bits of it.
    alpha: u64,
    /// Right for the bits that are set in the mask with 2^-k only.
    guess: u64,
    unknown: u64,
}

impl Cheat<'_> {
    /// What the cheater takes a secret for.
    fn guessed(&self, secret: u64) -> u64 {
        secret & !self.unknown | self.guess & self.unknown
    }

    fn record(&self, lookup: usize, entry: usize) -> std::ops::Range<usize> {
        let place = self.plan.places[lookup];
        let at = place.records + entry * place.record.bytes;
        at..at + place.record.bytes
    }

    /// Opens another cell wherever it is asked for one, with the proof of it.
    fn lie(&mut self, lookup: usize) {
        let place = self.plan.places[lookup];
        for entry in 0..place.record.entries {
            let range = self.record(lookup, entry);
            let flipped = match self.plan.packing {
                Packing::Cells => {
                    self.mine.records[range.start] ^= 1;
                    self.mine.records[range.start]
                }
                Packing::Planes => {
                    let at = place.planes + entry * Packing::plane_bytes(place.width);
                    self.mine.planes[at] ^= 1;
                    self.mine.planes[at] & 1
                }
            };
            let proof = range.start + place.record.share_bytes..range.end;
            match self.plan.macs {
                Macs::Linear64 => {
                    let tag = tag_bytes(place.record.out_bits);
                    let offset = product(self.guessed(self.alpha), 1).to_le_bytes();
                    let tags = self.mine.records[proof][..tag].iter_mut();
                    tags.zip(offset).for_each(|(tag, offset)| *tag ^= offset);
                }
                macs => {
                    let size = macs.string_bytes();
                    let strings = &self.theirs.records[proof.clone()][size..];
                    let mut right = [0; 8];
                    right[..size].copy_from_slice(&strings[size * usize::from(flipped)..][..size]);
                    let string = self.guessed(u64::from_le_bytes(right)).to_le_bytes();
                    self.mine.records[proof][..size].copy_from_slice(&string[..size]);
                }
            }
        }
    }

    /// Opens another share of a mask.
    fn lie_about(&self, masks: &mut Masks) {
        masks.values[0] ^= 1;
        masks.tags[0] ^= product(self.guessed(self.alpha), 1);
    }
}

/// Lookups, each on an input of its own or all on one. The inputs are the honest party's.
fn lookups(table: &Table, count: usize, on_one: bool) -> Circuit {
    let mut b = Builder::new("lookups");
    let id = b.table(&Arc::new(table.clone()));
    let bits = if table.in_bits() == 2 { 1 } else { table.in_bits() };
    let x = b.input("x", count * usize::from(table.in_bits() / bits), bits);
    let cell = |b: &mut Builder, i: usize| match bits {
        1 => b.linear(vec![(x[2 * i], Matrix::place(2, 0)), (x[2 * i + 1], Matrix::place(2, 1))], 0),
        _ => x[i],
    };
    let y: Vec<_> = (0..count)
        .map(|i| {
            let x = cell(&mut b, if on_one { 0 } else { i });
            b.lookup(id, x)
        })
        .collect();
    b.output("y", &y);
    b.finish()
}

fn small() -> Table {
    Table::new("a table", 3, 4, vec![3, 1, 4, 15, 9, 2, 6, 5])
}

fn and() -> Table {
    Table::new("AND", 2, 1, vec![0, 0, 0, 1])
}

/// In how many of this many sessions, each under fresh keys, a cheater gets away. What fails must fail in the
/// same way, and retire the key. `dealt` changes both parties' material, as a dealer could have made it.
fn survivals(
    macs: Macs,
    circuit: &Circuit,
    k: u32,
    runs: u64,
    released: bool,
    dealt: impl Fn(&Plan<'_>, &mut Made) + Sync,
    cheat: impl Fn(&mut Cheat<'_>) + Sync,
) -> u64 {
    let outcomes = run_parties(2, |net| {
        let mut session = hello(&HandshakeParameters::new(2), net)?;
        let mut survived = 0;
        for run in 0..runs {
            let mut seed = [0; 32];
            let mut random = blake3::Hasher::new_derive_key("polyclave test of cheaters");
            random.update(&session.id()).update(&run.to_le_bytes()).finalize_xof().fill(&mut seed);
            let stream = session.stream();
            let dealer = |p| InsecureTables::new(&seed, &stream.label(), p);
            let key = table_key(&seed, net.me());
            let maker = Box::new(dealer(net.me()));
            let mut party = TinyTable::<Checked<Cells>>::new(macs, key.clone(), &stream, maker, None);
            let compiled = compile(circuit, &party);
            let plan = Plan::new(&compiled, 1, macs);
            let mut batch = prepare(&mut party, &compiled, 1, net)?;
            dealt(&plan, &mut batch.made);
            if net.me() == CHEATER {
                let mut theirs = dealer(HONEST).make(&plan, &Pool::default(), &mut Counts::default(), net)?;
                dealt(&plan, &mut theirs);
                let guess = u64::from_le_bytes(*blake3::hash(&seed).as_bytes().first_chunk().expect("8"));
                let alpha = table_key(&seed, HONEST).reveal_own_share();
                let unknown = (1 << k) - 1;
                cheat(&mut Cheat {
                    plan: &plan,
                    mine: &mut batch.made,
                    theirs: &theirs,
                    alpha,
                    guess,
                    unknown,
                });
            }
            let port = &circuit.inputs()[0];
            let cells = Cells::zero(port.cells.len(), port.bits, 1);
            let input = if net.me() == HONEST { Input::Mine(&cells) } else { Input::From(HONEST) };
            let shared = evaluate(&mut party, &compiled, 1, &[input], batch, net)?.remove(0);
            let outcome = match released {
                true => release(&mut party, &shared, Owner::Party(HONEST), net).map(|_| ()),
                false => party.check(net),
            };
            if net.me() == CHEATER {
                continue;
            }
            match outcome {
                Ok(()) => survived += 1,
                Err(e) => {
                    assert_eq!(e, FAILED);
                    // Without a word to the peer, or the next run would hear it.
                    let retired = Err(Error::CheckFailed { what: crate::error::EARLIER_CHECK });
                    assert_eq!(key.refuse_retired(), retired);
                    assert_eq!(release(&mut party, &shared, Owner::All, net).map(|_| ()), retired);
                    assert_eq!(party.release(&shared, Owner::All, net).map(|_| ()), retired);
                    assert_eq!(prepare(&mut party, &compiled, 1, net).map(|_| ()), retired);
                }
            }
        }
        Ok(survived)
    });
    *outcomes[HONEST.index()].as_ref().expect("the session goes on")
}

/// Six standard deviations about the mean of the binomial distribution.
fn assert_bound(survived: u64, runs: u64, k: u32, what: &str) {
    let p = 0.5_f64.powi(k as i32);
    let (mean, deviation) = (runs as f64 * p, (runs as f64 * p * (1.0 - p)).sqrt());
    println!("{what}, {k} bits unknown: {survived} of {runs} got away, {mean} expected");
    let off = (survived as f64 - mean).abs();
    assert!(survived > 0 && off < 6.0 * deviation, "{what}: {survived} of {runs}");
}

fn nothing(_: &Plan<'_>, _: &mut Made) {}

#[test]
fn a_wrong_entry_passes_with_the_stated_probability() {
    for macs in ACTIVE {
        for (k, runs) in [(4, 1000), (6, 2000), (8, 4000)] {
            let survived =
                survivals(macs, &lookups(&small(), 1, false), k, runs, false, nothing, |cheat| cheat.lie(0));
            assert_bound(survived, runs, k, &format!("{macs:?}"));
        }
        let (k, runs) = (5, 1000);
        let survived =
            survivals(macs, &lookups(&and(), 1, false), k, runs, false, nothing, |cheat| cheat.lie(0));
        assert_bound(survived, runs, k, &format!("{macs:?}, gates"));
    }
}

/// Many lies are no better than one; of strings not even their sum.
#[test]
fn more_wrong_entries_pass_no_more_often() {
    for macs in ACTIVE {
        let (k, runs) = (4, 1000);
        let survived = survivals(macs, &lookups(&small(), 3, false), k, runs, false, nothing, |cheat| {
            (0..3).for_each(|lookup| cheat.lie(lookup));
        });
        // One and the same guess is in all of them, or, of strings, in their sum: an odd number of guesses.
        assert_bound(survived, runs, k, &format!("{macs:?}, three lies"));
    }
}

#[test]
fn a_wrong_share_of_a_mask_passes_with_the_stated_probability() {
    for macs in ACTIVE {
        for output in [false, true] {
            let (k, runs) = (6, 2000);
            let survived = survivals(macs, &lookups(&small(), 1, false), k, runs, output, nothing, |cheat| {
                let of = |made: &mut Made| match output {
                    true => std::mem::take(&mut made.outputs[0]),
                    false => std::mem::take(&mut made.inputs[0]),
                };
                let mut masks = of(cheat.mine);
                cheat.lie_about(&mut masks);
                match output {
                    true => cheat.mine.outputs[0] = masks,
                    false => cheat.mine.inputs[0] = masks,
                }
            });
            assert_bound(survived, runs, k, &format!("{macs:?}, output: {output}"));
        }
    }
}

#[test]
fn who_knows_nothing_is_caught() {
    for macs in ACTIVE {
        for table in [small(), and()] {
            let lie = |cheat: &mut Cheat<'_>| cheat.lie(0);
            assert_eq!(survivals(macs, &lookups(&table, 1, false), 32, 200, false, nothing, lie), 0);
        }
    }
}

/// The first two lookups have the same input. The second table is replaced by a copy of the first.
fn repeated(plan: &Plan<'_>, made: &mut Made) {
    let [first, second] = [plan.places[0], plan.places[1]];
    let table = first.record.table_bytes();
    made.records.copy_within(first.records..first.records + table, second.records);
}

#[test]
fn lies_about_equal_shares_with_equal_tags_do_not_cancel() {
    let circuit = lookups(&small(), 2, true);
    let check =
        |cheat: fn(&mut Cheat<'_>)| survivals(Macs::Linear64, &circuit, 0, 50, false, repeated, cheat);
    // Such material is good in itself.
    assert_eq!(check(|_| ()), 50);
    let caught = check(|cheat| {
        for lookup in 0..2 {
            for entry in 0..cheat.plan.places[lookup].record.entries {
                let at = cheat.record(lookup, entry).start;
                cheat.mine.records[at] ^= 1;
            }
        }
    });
    assert_eq!(caught, 0);
}

/// Exchanges parts of the records of two lookups.
fn swap(cheat: &mut Cheat<'_>, part: std::ops::Range<usize>) {
    for entry in 0..cheat.plan.places[0].record.entries {
        let [first, second] = [0, 1].map(|lookup| cheat.record(lookup, entry).start);
        part.clone().for_each(|i| cheat.mine.records.swap(first + i, second + i));
    }
}

#[test]
fn openings_in_another_order_are_caught() {
    for macs in ACTIVE {
        // Both on one input, so at the same entry: shares and proofs change places.
        let circuit = lookups(&small(), 2, true);
        let record = Record::of(&small(), macs, Packing::Cells);
        let proof = if macs == Macs::Linear64 { tag_bytes(4) } else { macs.string_bytes() };
        let run = |part: std::ops::Range<usize>| {
            survivals(macs, &circuit, 0, 50, false, nothing, |cheat| swap(cheat, part.clone()))
        };
        assert!(record.share_bytes == 1 && record.bytes > proof);
        // Shares that are equal by chance, with strings, are no lie: the sum of strings is the same.
        let survived = run(0..1 + proof);
        assert!(survived <= if macs == Macs::Linear64 { 0 } else { 15 }, "{macs:?}: {survived}");
        // Tags alone, though the sum of their images without positions would be the same.
        if macs == Macs::Linear64 {
            assert_eq!(run(1..1 + proof), 0);
        }
    }
}
