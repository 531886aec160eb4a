use polyclave_field::{Gf2_40, Gf2_64};

use super::*;
use crate::dealers::InsecureDealing;
use crate::interface::session::{HandshakeParameters, hello};
use crate::mesh::run_parties;
use crate::spdz::arithmetic::{Arithmetic, Step};

type F = Gf2_64;

const MASCOT: Preprocessing<F> = Preprocessing::Mascot { expansion: 2 };
const BOTH: [Preprocessing<F>; 2] = [MASCOT, Preprocessing::Dealt(&InsecureDealing)];

/// A session under a setup.
fn session(setup: &Setup<F>, preprocessing: Preprocessing<F>, net: &mut dyn Net) -> Result<Arithmetic<F>> {
    let stream = hello(&HandshakeParameters::new(net.parties()), net)?.stream();
    let source = setup.source(preprocessing, &stream.label())?;
    Ok(Arithmetic::new(setup.key().clone(), stream.label(), source))
}

/// Before and after a start of all nodes: values of the first boot are multiplied with those of the second.
fn survives_a_start(n: usize, preprocessing: Preprocessing<F>) {
    let outcomes = run_parties(n, |net| {
        let first = Setup::<F>::generate(preprocessing, None, net)?;
        let mut before = session(&first, preprocessing, net)?;
        let stored = before.triples(2, net)?;
        let saved = first.save();
        drop((first, before));

        let restored = Setup::<F>::restore(net.me(), n, &saved)?;
        assert_eq!(*restored.save(), *saved);
        assert!(matches!(session(&restored, preprocessing, net), Err(Error::Misuse(_))), "not renewed");
        let renewed = restored.renew(preprocessing, None, net)?;
        assert_eq!(*renewed.save(), *saved, "the key and the anchor stay");
        let mut after = session(&renewed, preprocessing, net)?;
        let triples = after.triples(2, net)?;
        let factors = [(&stored.a, &stored.b)];
        let step = Step { products: &factors, triples, decompose: None };
        let mut difference = after.step(step, net)?.products.remove(0);
        difference.add(&stored.c);
        let (opened, _) = after.open(&difference, &[], &[], net)?;
        after.check(net)?;
        let (a, _) = after.open(&stored.a, &[], &[], net)?;
        after.check(net)?;
        Ok((opened, a))
    });
    let values: Vec<_> = outcomes.into_iter().map(|outcome| outcome.expect("all are honest")).collect();
    assert!(values.iter().all(|(zero, a)| *zero == [0; 2] && *a == values[0].1));
}

#[test]
fn stored_values_are_used_with_material_of_a_later_start() {
    for preprocessing in BOTH {
        survives_a_start(2, preprocessing);
        survives_a_start(3, preprocessing);
    }
}

#[test]
fn whoever_renews_under_another_share_of_the_key_is_caught() {
    for n in [2, 3] {
        let outcomes = run_parties(n, |net| {
            let mut setup = Setup::<F>::generate(MASCOT, None, net)?;
            if net.me() == Party(1) {
                setup.key = MacKey::of_share(Party(1), n, setup.key.reveal_own_share() ^ 1 << 20);
            }
            let renewed = setup.renew(MASCOT, None, net);
            assert!(setup.key.refuse_retired().is_err(), "the stored key is given up, too");
            let restored = Setup::<F>::restore(net.me(), n, &setup.save())?;
            assert!(restored.renew(MASCOT, None, net).is_err(), "for ever");
            Ok(renewed.map(drop))
        });
        let failed = Error::CheckFailed { what: "the MACs of opened values" };
        assert!(outcomes.iter().all(|outcome| *outcome == Ok(Err(failed.clone()))), "{outcomes:?}");
    }
}

#[test]
fn a_renewed_setup_shares_the_fate_of_its_key() {
    let outcomes = run_parties(2, |net| {
        let setup = Setup::<F>::generate(MASCOT, None, net)?;
        let renewed = setup.renew(MASCOT, None, net)?;
        setup.key().retire();
        session(&renewed, MASCOT, net)?.triples(1, net).map(drop)
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::CheckFailed { .. }))), "{outcomes:?}");
}

#[test]
fn a_setup_is_renewed_with_its_own_preprocessing_only() {
    run_parties(2, |net| {
        for (preprocessing, other) in [(BOTH[0], BOTH[1]), (BOTH[1], BOTH[0])] {
            let setup = Setup::<F>::generate(preprocessing, None, net)?;
            assert!(matches!(setup.renew(other, None, net), Err(Error::Misuse(_))));
            assert!(matches!(session(&setup, other, net), Err(Error::Misuse(_))));
        }
        Ok(())
    })
    .into_iter()
    .for_each(|outcome| outcome.expect("both are honest"));
}

/// What the first of two parties stores.
fn saved(preprocessing: Preprocessing<F>) -> Vec<u8> {
    let mut all = run_parties(2, |net| Ok(Setup::<F>::generate(preprocessing, None, net)?.save().to_vec()));
    all.remove(0).expect("both are honest")
}

#[test]
fn bytes_that_do_not_fit_are_an_error() {
    for preprocessing in BOTH {
        let bytes = saved(preprocessing);
        let restored = |bytes: &[u8]| Setup::<F>::restore(Party(0), 2, bytes).map(drop);
        assert_eq!(restored(&bytes), Ok(()));
        for len in 0..bytes.len() {
            assert!(matches!(restored(&bytes[..len]), Err(Error::Misuse(_))), "{len} bytes");
        }
        assert!(restored(&[&bytes[..], &[0]].concat()).is_err());
        for at in 0..HEAD {
            for bit in 0..8 {
                let mut mutated = bytes.clone();
                mutated[at] ^= 1 << bit;
                // But for the mark of a key that was given up.
                assert_eq!(restored(&mutated).is_ok(), (at, bit) == (HEAD - 1, 0), "byte {at}, bit {bit}");
            }
        }
        for at in HEAD..bytes.len() {
            let mut mutated = bytes.clone();
            mutated[at] = !mutated[at];
            restored(&mutated).expect("any share is one");
        }
        for (me, parties) in [(1, 2), (0, 3), (0, 1), (2, 2), (0, 300)] {
            assert!(Setup::<F>::restore(Party(me), parties, &bytes).is_err());
        }
        assert!(Setup::<Gf2_40>::restore(Party(0), 2, &bytes).is_err());
        for len in 0..80 {
            _ = restored(&vec![0xff; len]);
            _ = restored(&[&bytes[..HEAD], &vec![0xff; len]].concat());
        }
    }
}

#[test]
fn a_key_that_was_given_up_stays_so_on_disk() {
    let mut bytes = saved(MASCOT);
    bytes[HEAD - 1] = 1;
    let restored = Setup::<F>::restore(Party(0), 2, &bytes).expect("it fits");
    assert!(restored.key().refuse_retired().is_err());
    assert_eq!(*restored.save(), bytes);
}
