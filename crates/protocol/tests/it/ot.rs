//! Oblivious transfer among honest parties: what comes out, what it costs, and what is refused.

use polyclave_protocol::mesh::{mesh, run_members, run_parties};
use polyclave_protocol::metered::{Metered, Traffic};
use polyclave_protocol::net::Net;
use polyclave_protocol::ot::{Correlated, Pairs, Shape};
use polyclave_protocol::{Error, Party, PartySet, Result};

const LABEL: &[u8] = b"a label of a session";

/// A different Delta for each party, with ones and zeros in every tree of every shape.
fn delta(me: Party) -> u128 {
    0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834_u128.rotate_left(u32::from(me.0) * 7)
}

/// Bits without a pattern, other ones for each pair and extension.
fn choices(me: Party, peer: Party, extension: u8, count: usize) -> Vec<u8> {
    let mut bits = vec![0; count.div_ceil(8)];
    blake3::Hasher::new().update(&[me.0, peer.0, extension]).finalize_xof().fill(&mut bits);
    bits
}

/// The choices of a party from all members.
fn all_choices(net: &dyn Net, extension: u8, count: usize) -> Vec<Vec<u8>> {
    let is_peer = |p: Party| p != net.me() && net.members().contains(p);
    Party::all(net.parties())
        .map(|p| if is_peer(p) { choices(net.me(), p, extension, count) } else { Vec::new() })
        .collect()
}

fn extend(pairs: &mut Pairs, extension: u8, count: usize, net: &mut dyn Net) -> Result<Correlated> {
    let choices = all_choices(net, extension, count);
    pairs.extend(&choices.iter().map(Vec::as_slice).collect::<Vec<_>>(), count, net)
}

/// Panics unless `q = t ^ u delta` in all transfers between members.
fn assert_correlated(members: PartySet, shape: Shape, extension: u8, outputs: &[(Party, u128, Correlated)]) {
    for (sender, delta, from) in outputs {
        assert_eq!(delta >> (shape.columns() - 1) >> 1, 0);
        for (receiver, _, to) in outputs.iter().filter(|(p, ..)| p != sender) {
            let (q, t) = (&from.sent[receiver.index()], &to.received[sender.index()]);
            assert_eq!(q.len(), t.len());
            let bits = choices(*receiver, *sender, extension, q.len());
            for (j, (q, t)) in q.iter().zip(t.iter()).enumerate() {
                let u = u128::from(bits[j / 8] >> (j % 8) & 1);
                assert_eq!(*q, t ^ (u * delta), "{shape:?}, {sender} to {receiver}, transfer {j}");
            }
        }
        for p in Party::all(from.sent.len()).filter(|p| p == sender || !members.contains(*p)) {
            assert!(from.sent[p.index()].is_empty() && from.received[p.index()].is_empty());
        }
    }
}

/// Two extensions, a check, a third extension and its check.
fn check_members(parties: usize, members: PartySet, shape: Shape, counts: [usize; 3]) {
    let run = run_members(parties, members, |net| {
        let mut pairs = Pairs::setup(LABEL, delta(net.me()), shape, net)?;
        let first = extend(&mut pairs, 0, counts[0], net)?;
        let second = extend(&mut pairs, 1, counts[1], net)?;
        pairs.check(net)?;
        let third = extend(&mut pairs, 2, counts[2], net)?;
        pairs.check(net)?;
        pairs.check(net)?;
        Ok([first, second, third].map(|correlated| (net.me(), pairs.delta(), correlated)))
    });
    let mut outputs = [const { Vec::new() }; 3];
    for party in run {
        for (all, one) in outputs.iter_mut().zip(party.expect("honest parties finish")) {
            all.push(one);
        }
    }
    for (extension, outputs) in (0..).zip(&outputs) {
        assert_correlated(members, shape, extension, outputs);
        assert_eq!(outputs[0].2.sent[outputs[1].0.index()].len(), counts[usize::from(extension)]);
    }
}

#[test]
fn transfers_are_correlated_for_all_expansions_and_columns() {
    for columns in [40, 64, 128] {
        for expansion in 1..=8 {
            let shape = Shape::new(columns, expansion).expect("it is valid");
            check_members(2, PartySet::all(2), shape, [1000, 1, 130]);
        }
    }
}

/// Around the sizes of a tile and of an element of the check.
#[test]
fn transfers_are_correlated_for_all_counts() {
    let shape = Shape::new(64, 4).expect("it is valid");
    check_members(2, PartySet::all(2), shape, [8192, 8193, 16384]);
    check_members(2, PartySet::all(2), shape, [127, 128, 129]);
    check_members(2, PartySet::all(2), shape, [0, 20_000, 0]);
}

#[test]
fn all_pairs_of_three_and_four_parties_are_correlated() {
    let shape = Shape::new(128, 2).expect("it is valid");
    check_members(3, PartySet::all(3), shape, [300, 8, 77]);
    check_members(4, PartySet::from_bits(0b1011), shape, [300, 8, 77]);
}

#[test]
fn the_receiver_gets_the_random_message_of_its_choice_and_not_the_other() {
    let shape = Shape::new(128, 4).expect("it is valid");
    let run = run_parties(3, |net| {
        let mut pairs = Pairs::setup(LABEL, delta(net.me()), shape, net)?;
        let both = [extend(&mut pairs, 0, 200, net)?, extend(&mut pairs, 1, 200, net)?];
        assert!(matches!(pairs.random_sent(&both[0], Party((net.me().0 + 1) % 3)), Err(Error::Misuse(_))));
        pairs.check(net)?;
        let me = net.me();
        let mut rows = Vec::new();
        for (correlated, p) in both.iter().flat_map(|c| me.peers(3).map(move |p| (c, p))) {
            rows.push((p, pairs.random_sent(correlated, p)?, pairs.random_received(correlated, p)?));
        }
        Ok(rows)
    });
    let run: Vec<_> = run.into_iter().map(|party| party.expect("honest parties finish")).collect();
    let mut seen = std::collections::HashSet::new();
    for (sender, rows) in Party::all(3).zip(&run) {
        for (at, (receiver, messages, _)) in rows.iter().enumerate() {
            let extension = at / 2;
            let of_sender = |(p, ..): &&(Party, _, _)| *p == sender;
            let (.., chosen) =
                run[receiver.index()].iter().filter(of_sender).nth(extension).expect("one an extension");
            let bits = choices(*receiver, sender, extension as u8, 200);
            for j in 0..200 {
                let u = usize::from(bits[j / 8] >> (j % 8) & 1);
                assert_eq!(messages[u][j], chosen[j]);
                assert!(seen.insert(messages[0][j]) && seen.insert(messages[1][j]));
            }
        }
    }
}

#[test]
fn a_transfer_costs_a_bit_for_each_tree_and_an_extension_one_round() {
    for (columns, expansion) in [(128, 1), (128, 4), (64, 2), (40, 8), (128, 6), (64, 5)] {
        let shape = Shape::new(columns, expansion).expect("it is valid");
        let count = 1 << 14;
        let phases = measure(shape, count);
        let trees = columns.div_ceil(expansion);
        let mask = 16 * trees;
        let message = |payload: usize, rounds: u64| Traffic {
            payload_sent: payload as u64,
            payload_received: payload as u64,
            messages_sent: rounds,
            exchanges: rounds,
        };
        let setup = columns * (64 + 32 + 32) + 32 * (trees + 1);
        assert_eq!(phases[0], message(setup, 2));
        assert_eq!(phases[1], message(count / 8 * trees + mask, 1));
        assert_eq!(phases[2], message(count / 8 * trees, 1));
        assert_eq!(phases[3], message(32 + 96 + 16 * (columns + 1), 3));
        assert_eq!(phases[4], message(0, 0));
    }
}

/// What setup, two extensions, a check and one more check send.
fn measure(shape: Shape, count: usize) -> [Traffic; 5] {
    let threads = mesh(2).into_iter().map(Metered::new).map(|mut net| {
        std::thread::spawn(move || -> Result<[Traffic; 5]> {
            let meter = net.meter();
            let mut seen = vec![meter.snapshot()];
            let mut pairs = Pairs::setup(LABEL, delta(net.me()), shape, &mut net)?;
            seen.push(meter.snapshot());
            for extension in 0..2 {
                extend(&mut pairs, extension, count, &mut net)?;
                seen.push(meter.snapshot());
            }
            for _ in 0..2 {
                pairs.check(&mut net)?;
                seen.push(meter.snapshot());
            }
            Ok(std::array::from_fn(|i| seen[i + 1] - seen[i]))
        })
    });
    let threads: Vec<_> = threads.collect();
    let phases: Vec<_> = threads.into_iter().map(|t| t.join().expect("no panic").expect("honest")).collect();
    assert_eq!(phases[0], phases[1]);
    phases[0]
}

#[test]
fn what_cannot_be_is_misuse() {
    let run = run_parties(2, |net| {
        let peer = Party(1 - net.me().0);
        let mut pairs = Pairs::setup(LABEL, u128::MAX, Shape::new(64, 4)?, net)?;
        assert_eq!(pairs.delta(), u128::from(u64::MAX));
        let mut of = |lengths: [usize; 2], net: &mut dyn Net| {
            let choices = lengths.map(|len| vec![0; len]);
            pairs.extend(&[&choices[0], &choices[1]], 9, net).err()
        };
        for lengths in [[0, 0], [2, 2], [1, 1], [3, 0], [0, 3]] {
            assert!(matches!(of(lengths, net), Some(Error::Misuse(_))));
        }
        let correlated = extend(&mut pairs, 0, 9, net)?;
        pairs.check(net)?;
        assert!(matches!(pairs.random_sent(&correlated, peer), Err(Error::Misuse(_))));
        assert!(matches!(pairs.random_received(&correlated, peer), Err(Error::Misuse(_))));
        Ok(())
    });
    assert_eq!(run, [Ok(()), Ok(())]);
}

#[test]
fn another_label_does_not_fit() {
    let run =
        run_parties(2, |net| Pairs::setup(&[net.me().0], delta(net.me()), Shape::new(40, 4)?, net).map(drop));
    assert!(run.iter().all(|outcome| matches!(outcome, Err(Error::Peer { .. }))), "{run:?}");
}
