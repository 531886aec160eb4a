//! One of four parties cheats, falls silent, or is slow: the others' answers are right, and come.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::shamir_cheats::{
    CHEATER, Habit, Habitual, Until, config, four, only, right, session, shares, sweep, with_habits,
    with_wrong_keys,
};
use polyclave_protocol::mesh::mesh_with_timeout;
use polyclave_protocol::net::Net;
use polyclave_protocol::shamir::Inversion;
use polyclave_protocol::{Error, Party, PartySet};
use polyclave_protocol_lab::testkit::faults::{LATE, QUICK_FAULTS, SOON, run_over};
use polyclave_protocol_lab::testkit::tamper::Fault;

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masked_powers() {
    sweep(config(4, 1, Inversion::MaskedPowers), "aes-128");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masking() {
    sweep(config(4, 1, Inversion::Masking), "aes-128");
}

#[test]
fn one_cheater_never_makes_an_answer_wrong_nor_stops_it_online_masked_tables() {
    sweep(config(4, 1, Inversion::Views), "des");
}

/// Outvoted online, by each for itself. Ahead, a party that says other things than it computes with gets out
/// of step with itself.
#[test]
fn who_lies_all_the_time_is_outvoted() {
    let right = right();
    for from in [0, 1, 2, 5, 9, 14] {
        let lies = |p| if p == CHEATER { Habit::Lie(PartySet::all(4), shares) } else { Habit::Honest };
        let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), LATE, from, lies);
        for outcome in &outcomes[..3] {
            match outcome {
                // Whoever had three shares that agree before the fourth came has not looked at it.
                Ok((output, faults)) => {
                    assert_eq!(*output, right, "from gathering {from}");
                    assert!(faults.outvoted.without(only(CHEATER)).is_empty(), "{faults:?}");
                }
                Err(e) => {
                    assert!(from < 6 && matches!(e, Error::Missing { .. }), "from gathering {from}: {e}")
                }
            }
        }
    }
}

#[test]
fn who_makes_wrong_shares_ahead_is_convicted_before_all_and_the_others_go_on() {
    for party in Party::all(4).skip(1) {
        with_wrong_keys(config(4, 1, Inversion::MaskedPowers), only(party));
    }
    let wrong = [Party(2), Party(6)].into_iter().collect();
    with_wrong_keys(config(7, 2, Inversion::MaskedPowers), wrong);
}

/// Then honest parties supply it with what it claims to lack, and it may as well have fallen silent.
#[test]
fn who_lies_about_what_others_said_gains_nothing() {
    let right = right();
    for from in [0, 1, 2, 5, 9, 14] {
        let lies = |p| if p == CHEATER { Habit::LieInAll } else { Habit::Honest };
        let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), SOON, from, lies);
        for outcome in &outcomes[..3] {
            match outcome {
                Ok((output, _)) => assert_eq!(*output, right, "from gathering {from}"),
                Err(e) => assert!(from < 14, "from gathering {from}: {e}"),
            }
        }
    }
}

#[test]
fn who_lies_to_one_party_only_does_not_divide_the_others() {
    let right = right();
    for victim in Party::all(3) {
        for from in [0, 3, 7] {
            let lies = |p| if p == CHEATER { Habit::Lie(only(victim), shares) } else { Habit::Honest };
            let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), LATE, from, lies);
            for outcome in &outcomes[..3] {
                assert_eq!(outcome.as_ref().expect("the others go on").0, right, "{victim}, {from}");
            }
        }
    }
}

#[test]
fn two_liars_of_seven_are_outvoted() {
    let right = right();
    let liars: PartySet = [Party(2), Party(6)].into_iter().collect();
    let lies = |p| if liars.contains(p) { Habit::Lie(PartySet::all(7), shares) } else { Habit::Honest };
    let outcomes = with_habits(config(7, 2, Inversion::MaskedPowers), LATE, 14, lies);
    for (p, outcome) in Party::all(7).zip(&outcomes).filter(|(p, _)| !liars.contains(*p)) {
        let (output, faults) = outcome.as_ref().unwrap_or_else(|e| panic!("{p}: {e}"));
        assert_eq!(*output, right, "{p}");
        assert!(faults.outvoted.without(liars).is_empty(), "{p}: {faults:?}");
    }
}

#[test]
fn two_liars_of_four_are_too_many_and_nothing_comes_of_it() {
    let lies = |p: Party| if p.0 >= 2 { Habit::Lie(PartySet::all(4), shares) } else { Habit::Honest };
    for from in [0, 20] {
        let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), SOON, from, lies);
        for outcome in &outcomes[..2] {
            assert!(outcome.is_err(), "{outcome:?}");
        }
    }
}

/// Security notes, M.
#[test]
fn with_one_silent_the_others_finish_what_was_prepared_and_make_nothing_new() {
    let right = right();
    let silent = |p| if p == CHEATER { Habit::Silent } else { Habit::Honest };
    let began = Instant::now();
    let outcomes = with_habits(config(4, 1, Inversion::MaskedPowers), LATE, 16, silent);
    for outcome in &outcomes[..3] {
        assert_eq!(outcome.as_ref().expect("material is there").0, right);
    }
    assert!(began.elapsed() < LATE, "somebody waited for the silent party");
    for outcome in &with_habits(config(4, 1, Inversion::MaskedPowers), SOON, 0, silent)[..3] {
        let expected = matches!(outcome, Err(Error::Missing { purpose: "make material", .. }));
        assert!(expected, "{outcome:?}");
    }
}

/// A party that waits in vain for a cheater's word in the verdict comes late online, where the others need
/// it: they do not give it up.
#[test]
fn who_was_held_up_by_a_cheater_is_waited_for() {
    let right = right();
    // Gatherings of this circuit ahead: triples, two of powers, and the verdict's three; then a mask for the
    // input, and so on.
    let (verdict, ahead) = (4, 6);
    for victim in Party::all(3) {
        for at in 1..ahead + 6 {
            let habit = |p| if p == CHEATER { Habit::Withholds(victim, at) } else { Habit::Honest };
            let from = ahead.max(at);
            let outcomes =
                with_habits(config(4, 1, Inversion::MaskedPowers), Duration::from_secs(1), from, habit);
            for outcome in &outcomes[..3] {
                match outcome {
                    Ok((output, _)) => assert_eq!(*output, right, "{victim}, {at}"),
                    Err(Error::Missing { purpose: "make material", .. }) if at < verdict => {}
                    Err(e) => panic!("{victim}, gathering {at}: {e}"),
                }
            }
        }
    }
}

#[test]
fn a_slow_party_holds_nobody_up_online() {
    let right = right();
    let slow = |p| if p == CHEATER { Habit::Slow(Duration::from_millis(100)) } else { Habit::Honest };
    let config = config(4, 1, Inversion::MaskedPowers);
    let ends = mesh_with_timeout(4, LATE).into_iter();
    let ends = ends.map(|net| Habitual { habit: slow(net.me()), net, from: 16, gatherings: 0 });
    let times = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = times.clone();
    let outcomes = run_over(ends.collect(), move |net| {
        let outcome = session(&config, "aes-128", Party(0), Until::Released, net);
        seen.lock().push((net.me(), Instant::now()));
        outcome
    });
    outcomes.iter().for_each(|outcome| assert_eq!(outcome.as_ref().expect("all finish").0, right));
    let times = times.lock();
    let ended = |p: Party| times.iter().find(|(q, _)| *q == p).expect("it ended").1;
    // The slow one takes a tenth of a second for each of twenty rounds; the others need not be through as
    // soon as they could.
    for p in Party::all(3) {
        assert!(ended(CHEATER).duration_since(ended(p)) > Duration::from_secs(1), "{p} waited");
    }
}

/// The owner of an input that cheats gives some input, the same for all, or none.
#[test]
fn a_cheating_owner_of_an_input_does_not_divide_the_others() {
    let config = config(4, 1, Inversion::MaskedPowers);
    let run = move |until: Until| move |net: &mut dyn Net| session(&config, "aes-128", CHEATER, until, net);
    let (_, tampering) = four(LATE, (u64::MAX, Fault::Drop), run(Until::Prepared));
    let prepared = tampering.messages();
    let mut went_on = 0;
    for at in prepared..prepared + 12 {
        for fault in QUICK_FAULTS.into_iter().chain([Fault::Drop]) {
            let (outcomes, _) = four(SOON, (at, fault), run(Until::Released));
            let outputs: Vec<Option<&Vec<u8>>> =
                outcomes[..3].iter().map(|outcome| outcome.as_ref().ok().map(|(output, _)| output)).collect();
            assert!(outputs.iter().all(|output| *output == outputs[0]), "{at} {fault:?}: {outcomes:?}");
            went_on += usize::from(outputs[0].is_some());
        }
    }
    // A fault towards one party alone is made up for, and a flipped bit makes another input.
    assert!(went_on > 20, "only {went_on} runs had an input");
}
