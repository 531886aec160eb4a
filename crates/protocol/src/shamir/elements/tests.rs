//! Compares opened values with the field, and checks the polynomials by which they are shared.

use polyclave_cipher::Matrix;

use super::*;
use crate::Party;
use crate::interface::session::{HandshakeParameters, hello};
use crate::interface::tally::Counts;
use crate::mesh::{mesh, run_parties};
use crate::shamir::passive::Passive;
use crate::shamir::setup::{Setup, Structure};
use crate::stored::Reader;
use crate::testkit::record::{Direction, Record};

const STRUCTURES: [(usize, usize); 4] = [(3, 1), (4, 1), (5, 2), (9, 4)];

fn run<T: Send>(
    (n, t): (usize, usize),
    party: impl Fn(&mut Arithmetic<Passive>, &mut dyn Net) -> Result<T> + Sync,
) -> Vec<T> {
    let outcomes = run_parties(n, |net| {
        let setup = Setup::agree(Structure::new(n, t)?, net)?;
        let mut arithmetic =
            Arithmetic::new(&setup, hello(&HandshakeParameters::new(n), net)?.stream(), net.members())?;
        party(&mut arithmetic, net)
    });
    outcomes.into_iter().map(|outcome| outcome.expect("honest parties finish")).collect()
}

fn product(a: &Element, b: &Element) -> Element {
    (Gf128::from_bytes(*a) * Gf128::from_bytes(*b)).to_bytes()
}

/// The values that the first parties alone make of their messages.
fn combine_first(parties: usize, messages: &[impl AsRef<[u8]>]) -> Vec<Element> {
    let messages: Vec<&[u8]> = messages[..parties].iter().map(|m| m.as_ref()).collect();
    combine_elements(PartySet::all(parties), &messages).expect("the messages fit")
}

#[test]
fn bytes_become_the_element_that_they_spell_in_one_round() {
    for structure in STRUCTURES {
        for lanes in [0, 1, 3, 40] {
            let opened = run(structure, |arithmetic, net| {
                let view = arithmetic.prss.view(&Matrix::identity(8));
                let rows = arithmetic.prss.random(16 * lanes, &[view], &arithmetic.pool).remove(0);
                let before = arithmetic.tally;
                let elements = arithmetic.elements_of_bytes(&rows, lanes, net)?;
                let spent = (arithmetic.tally - before).preprocessing;
                let expected =
                    Counts { rounds: u64::from(lanes > 0), openings: lanes as u64, ..Counts::default() };
                assert_eq!(spent, expected);
                Ok((arithmetic.open_plain(&rows, net)?.to_vec(), arithmetic.open_elements(&elements, net)?))
            });
            for (rows, elements) in opened {
                assert_eq!(elements.len(), lanes);
                for (lane, element) in elements.iter().enumerate() {
                    assert!(element.iter().enumerate().all(|(i, byte)| rows[i * lanes + lane] == *byte));
                }
            }
        }
    }
}

#[test]
fn the_same_parts_make_bytes_and_elements_of_one_value() {
    for structure in STRUCTURES {
        let opened = run(structure, |arithmetic, net| {
            let parts = arithmetic.prss.element_parts(5);
            let parts: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
            let mut bytes = vec![0; 5 * ELEMENT_BYTES];
            arithmetic.prss.mask_with_parts(&parts, &[0; 5 * ELEMENT_BYTES], &mut bytes);
            let elements = arithmetic.elements_of_parts(&parts, 5);
            Ok((arithmetic.open_plain(&bytes, net)?.to_vec(), arithmetic.open_elements(&elements, net)?))
        });
        for (bytes, elements) in &opened {
            assert_eq!(bytes, elements.as_flattened());
            assert_eq!(elements, &opened[0].1, "all parties open the same");
            assert_ne!(elements[0], elements[1]);
        }
    }
}

#[test]
fn products_and_their_sum_are_right_and_shared_by_degree_t() {
    for structure in STRUCTURES {
        let runs = run(structure, |arithmetic, net| {
            let (a, b) = (arithmetic.pseudorandom_elements(7), arithmetic.pseudorandom_elements(7));
            let products = arithmetic.multiply_elements(&a, &b, net)?;
            let sum = arithmetic.inner_product(&a, &b, net)?;
            let spent = arithmetic.tally.preprocessing;
            assert_eq!(spent, Counts { rounds: 2, multiplications: 8, ..Counts::default() });
            let shares = Elements::join(&[&products, &sum]).shares.to_vec();
            Ok((arithmetic.open_elements(&a, net)?, arithmetic.open_elements(&b, net)?, shares))
        });
        let (a, b, _) = &runs[0];
        let mut expected: Vec<Element> = a.iter().zip(b).map(|(a, b)| product(a, b)).collect();
        let sum: Gf128 = expected.iter().map(|p| Gf128::from_bytes(*p)).sum();
        expected.push(sum.to_bytes());
        let shares: Vec<&[u8]> = runs.iter().map(|run| &run.2[..]).collect();
        assert_eq!(combine_first(structure.1 + 1, &shares), expected);
        assert_ne!(combine_first(structure.1, &shares), expected);
    }
}

#[test]
fn factors_of_other_counts_are_refused() {
    run((3, 1), |arithmetic, net| {
        let (a, b) = (arithmetic.pseudorandom_elements(2), arithmetic.pseudorandom_elements(3));
        assert!(matches!(arithmetic.multiply_elements(&a, &b, net), Err(Error::Misuse(_))));
        assert!(matches!(arithmetic.inner_product(&a, &b, net), Err(Error::Misuse(_))));
        assert!(matches!(arithmetic.is_zero(&a, net), Err(Error::Misuse(_))));
        assert!(matches!(arithmetic.elements_of_bytes(&[0; 17], 1, net), Err(Error::Misuse(_))));
        Ok(())
    });
}

#[test]
fn zero_is_told_from_all_else_and_nothing_more_is_opened() {
    for structure in STRUCTURES {
        let opened = run(structure, |arithmetic, net| {
            let random = arithmetic.pseudorandom_elements(1);
            let value = arithmetic.open_elements(&random, net)?;
            // Zero by its value, not by its shares.
            let zero = random.add_to_shares(&value);
            assert!(arithmetic.is_zero(&zero, net)?);
            assert!(!arithmetic.is_zero(&random, net)?);
            let one = zero.add_to_shares(&[Gf128::ONE.to_bytes()]);
            Ok((arithmetic.open_multiple(&one, net)?, arithmetic.open_multiple(&one, net)?))
        });
        assert_ne!(opened[0].0, opened[0].1, "another factor every time");
    }
}

#[test]
fn zero_sharings_are_of_degree_2t_and_of_zero() {
    for structure in STRUCTURES {
        let shares = run(structure, |arithmetic, _| {
            let mut shares = vec![0; 3 * ELEMENT_BYTES];
            arithmetic.prss.add_zero_elements(&mut shares);
            Ok(shares)
        });
        let needed = 2 * structure.1 + 1;
        assert_eq!(combine_first(needed, &shares), [[0; ELEMENT_BYTES]; 3]);
        assert!(combine_first(needed - 1, &shares).iter().all(|value| *value != [0; ELEMENT_BYTES]));
    }
}

#[test]
fn a_client_learns_values_and_no_shares() {
    for structure in STRUCTURES {
        let runs = run(structure, |arithmetic, net| {
            let a = arithmetic.pseudorandom_elements(4);
            let messages =
                [arithmetic.elements_for_client(&a, net)?, arithmetic.elements_for_client(&a, net)?];
            Ok((messages, arithmetic.open_elements(&a, net)?, a.shares.to_vec()))
        });
        let messages = |k: usize| runs.iter().map(|run| &run.0[k][..]).collect::<Vec<_>>();
        for k in 0..2 {
            assert_eq!(combine_first(structure.0, &messages(k)), runs[0].1);
            assert_ne!(combine_first(structure.1 + 1, &messages(k)), runs[0].1, "no longer of degree t");
        }
        assert!(runs.iter().all(|run| run.0[0] != run.0[1] && run.0[0] != run.2[..]));
    }
}

#[test]
fn messages_that_do_not_fit_are_laid_to_their_sender() {
    let serving: PartySet = [Party(0), Party(2), Party(3)].into_iter().collect();
    let combine = |lengths: &[usize]| {
        let messages: Vec<Vec<u8>> = lengths.iter().map(|len| vec![1; *len]).collect();
        combine_elements(serving, &messages.iter().map(|m| &m[..]).collect::<Vec<_>>())
    };
    assert!(combine(&[32, 32, 32]).is_ok());
    assert!(matches!(combine(&[32, 16, 32]), Err(Error::Peer { peer: Party(2), .. })));
    assert!(matches!(combine(&[17, 17, 17]), Err(Error::Peer { peer: Party(0), .. })));
    assert!(matches!(combine(&[32, 32]), Err(Error::Misuse(_))));
    assert!(matches!(combine_elements(PartySet::all(0), &[]), Err(Error::Misuse(_))));
}

#[test]
fn stored_elements_come_back_and_cut_ones_are_refused() {
    run((3, 1), |arithmetic, _| {
        let a = arithmetic.pseudorandom_elements(3);
        let stored = a.save(&[]);
        let restore = |bytes: &[u8]| Elements::restore(Reader::bare(bytes, "shamir"), 1);
        assert_eq!(restore(&stored)?.shares, a.shares);
        for end in [0, 7, 8, 24, stored.len() - 1] {
            assert!(matches!(restore(&stored[..end]), Err(Error::Misuse(_))));
        }
        Ok(())
    });
}

#[test]
fn local_operations_act_element_by_element() {
    run((3, 1), |arithmetic, net| {
        let a = arithmetic.pseudorandom_elements(3);
        let public = arithmetic.open_elements(&a, net)?;
        let weights = [[1; 16], [2; 16], [3; 16], [4; 16], [5; 16], [6; 16]];
        let sums = arithmetic.open_elements(&a.weighted_sums(&weights), net)?;
        for (sum, weights) in sums.iter().zip(weights.chunks(3)) {
            let products = weights.iter().zip(&public).map(|(w, a)| product(w, a));
            assert_eq!(*sum, products.map(Gf128::from_bytes).sum::<Gf128>().to_bytes());
        }
        let joined = Elements::join(&[&a.part(2..3), &a.part(0..2)]);
        assert_eq!(arithmetic.open_elements(&joined, net)?, [public[2], public[0], public[1]]);
        assert_eq!(arithmetic.open_elements(&a.add(&a), net)?, [[0; 16]; 3]);
        assert_eq!(arithmetic.open_elements(&a.add_to_shares(&public), net)?, [[0; 16]; 3]);
        Ok(())
    });
}

/// What each of three parties sends to one of its peers, while they do this with many copies of the sharings
/// 5 + 7 x and 9 + 3 x.
fn messages_of(
    operation: impl Fn(&mut Arithmetic<Passive>, [&Elements; 2], &mut dyn Net) -> Result<()> + Sync,
) -> Vec<Vec<u8>> {
    let operation = &operation;
    let party = move |net| -> Result<Vec<u8>> {
        let mut net = Record::new(net);
        let setup = Setup::agree(Structure::new(3, 1)?, &mut net)?;
        let session = hello(&HandshakeParameters::new(3), &mut net)?.stream();
        let mut arithmetic = Arithmetic::new(&setup, session, net.members())?;
        let at = Gf128::embed(point(net.me()));
        let line = |[value, slope]: [u8; 2]| Gf128::embed(Gf256(value)) + Gf128::embed(Gf256(slope)) * at;
        let copies =
            |coefficients| Elements::zero(COPIES).add_to_shares(&[line(coefficients).to_bytes(); COPIES]);
        let before = net.transcript().messages().len();
        operation(&mut arithmetic, [&copies([5, 7]), &copies([9, 3])], &mut net)?;
        let peer = net.me().peers(3).next().expect("there are three");
        let messages = net.transcript().messages().split_off(before);
        let sent = messages.into_iter().filter(|m| m.direction == Direction::Sent && m.peer == peer);
        Ok(sent.flat_map(|m| m.bytes).collect())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = mesh(3).into_iter().map(|net| scope.spawn(move || party(net))).collect();
        threads.into_iter().map(|t| t.join().expect("no panic").expect("honest parties finish")).collect()
    })
}

const COPIES: usize = 400;

/// The three coefficients of every polynomial that was opened have as many ones as zeros, within six standard
/// deviations.
fn assert_all_coefficients_are_uniform(messages: &[Vec<u8>]) {
    let points = [1, 2, 3].map(|p| Gf128::embed(Gf256(p)));
    let mut ones = [0u32; 3];
    for i in 0..COPIES {
        // Newton's divided differences, then the coefficients.
        let y = [0, 1, 2].map(|p: usize| Gf128::from_bytes(messages[p].as_chunks().0[i]));
        let slope = |j: usize, k: usize| (y[j] + y[k]) * (points[j] + points[k]).inverse_or_zero();
        let c2 = (slope(0, 1) + slope(1, 2)) * (points[0] + points[2]).inverse_or_zero();
        let c1 = slope(0, 1) + c2 * (points[0] + points[1]);
        let c0 = y[0] + c1 * points[0] + c2 * points[0] * points[0];
        let weight = |c: Gf128| u128::from_be_bytes(c.to_bytes()).count_ones();
        [c0, c1, c2].into_iter().zip(&mut ones).for_each(|(c, ones)| *ones += weight(c));
    }
    let (half, deviation) = (64.0 * COPIES as f64, (32.0 * COPIES as f64).sqrt());
    for (k, ones) in ones.into_iter().enumerate() {
        assert!((f64::from(ones) - half).abs() < 6.0 * deviation, "coefficient {k}: {ones} ones");
    }
}

#[test]
fn every_coefficient_of_an_opened_product_is_uniform() {
    let products = messages_of(|arithmetic, [a, b], net| {
        arithmetic.multiply_elements(a, b, net)?;
        Ok(())
    });
    assert_all_coefficients_are_uniform(&products);
    let sums = messages_of(|arithmetic, [a, b], net| {
        (0..COPIES).try_for_each(|i| {
            arithmetic.inner_product(&a.part(0..i + 1), &b.part(0..i + 1), net)?;
            Ok(())
        })
    });
    assert_all_coefficients_are_uniform(&sums);
}

#[test]
fn every_coefficient_that_the_zero_test_of_a_non_zero_element_opens_is_uniform() {
    let multiples = messages_of(|arithmetic, [a, _], net| {
        (0..COPIES).try_for_each(|i| {
            assert!(!arithmetic.is_zero(&a.part(i..i + 1), net)?);
            Ok(())
        })
    });
    assert_all_coefficients_are_uniform(&multiples);
    // Nor are they jointly the product of the two sharings, which vanishes where 5 + 7 x does.
    let root = Gf256(5) * Gf256(7).inverse_or_zero();
    let coefficients = Gf256::lagrange(&[1, 2, 3].map(Gf256), root);
    for i in 0..COPIES {
        let terms = multiples.iter().zip(&coefficients);
        let share = |m: &[u8]| Gf128::from_bytes(m.as_chunks().0[i]);
        assert_ne!(terms.map(|(m, l)| share(m) * Gf128::embed(*l)).sum::<Gf128>(), Gf128::ZERO);
    }
}
