//! Broadcast, and what is dealt.

use super::super::setup::{Setup, Structure};
use super::agreement::Broadcast;
use super::code::{Symbol, interpolate};
use super::dealt::{Dealt, Order};
use super::{Active, Arithmetic};
use crate::mesh::run_parties;
use crate::session::{Terms, hello};
use crate::{Party, PartySet};

#[test]
fn what_an_honest_party_says_is_heard_by_all() {
    for len in [1, 5, 320] {
        let outcomes = run_parties(4, |net| {
            let lens = vec![len; 4];
            let broadcast = Broadcast { members: PartySet::all(4), threshold: 1, lens: &lens, patience: 1 };
            Ok(broadcast.run(&vec![net.me().0 + 1; len], net)?.messages)
        });
        for outcome in outcomes {
            let expected: Vec<_> = Party::all(4).map(|p| Some(vec![p.0 + 1; len])).collect();
            assert_eq!(outcome, Ok(expected), "{len}");
        }
    }
}

/// What every party holds of a run that deals one single and one double sharing a column: row by row.
fn dealt(n: usize, t: usize, count: usize) -> Vec<[Vec<u8>; 3]> {
    let outcomes = run_parties(n, |net| {
        let setup = Setup::agree(Structure::new(n, t)?, net)?;
        let stream = hello(&Terms::new(n), net)?.stream();
        let mut arithmetic = Arithmetic::<Active>::new(&setup, stream, net.members())?;
        let columns = count.div_ceil(Dealt::kept(n, t));
        let dealt = arithmetic.deal(Order { singles: 1, doubles: 1, columns }, net)?;
        assert!(arithmetic.is_accepted(net)?);
        Ok([0, 1, 2].map(|row| dealt.shares(row, count, &arithmetic).to_vec()))
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
}

#[test]
fn what_is_kept_are_sharings_of_uniform_values() {
    let count = 40_000;
    for (n, t) in [(4, 1), (5, 1), (7, 2)] {
        let shares = dealt(n, t, count);
        let values = [(0, t), (1, t), (2, 2 * t)].map(|(row, degree)| {
            let words: Vec<_> = Party::all(n).zip(&shares).map(|(p, rows)| (p, &rows[row][..])).collect();
            let mut values = vec![0; count];
            assert!(interpolate(Symbol::Byte, degree, &words, &mut values), "{n} {t} {row}");
            values
        });
        assert_ne!(values[0], values[1]);
        assert_eq!(values[1], values[2], "a double sharing is of one value");
        for values in &values[..2] {
            let mut histogram = [0u32; 256];
            values.iter().for_each(|value| histogram[usize::from(*value)] += 1);
            let expected = count as f64 / 256.0;
            let chi_squared: f64 =
                histogram.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
            assert!(chi_squared < 255.0 + 9.0 * 22.6, "{n} {t}: {chi_squared}");
        }
    }
}
