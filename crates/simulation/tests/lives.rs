//! Lives of clusters, each in a process of its own.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

fn live(options: &str) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_polyclave-simulation"));
    program.args(options.split(' ')).output().expect("it runs")
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// How often something happened in each of some lives.
fn counts(told: &str, what: &str) -> Vec<u64> {
    let count = |line: &str| {
        let (_, after) = line.split_once(&format!(" {what}: "))?;
        after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    told.lines().filter_map(count).collect()
}

#[test]
fn what_must_hold_holds_through_disasters_and_what_operators_do() {
    let lives = live("--seeds 4..10 --minutes 1 --nights 2 --pause 15");
    let all = told(&lives);
    assert!(lives.status.success(), "{all}");
    // Without them it would show nothing.
    assert!(counts(&all, "answered").iter().all(|count| *count > 0), "{all}");
    for what in ["crashes", "refreshed"] {
        assert!(counts(&all, what).iter().sum::<u64>() > 0, "{what}: {all}");
    }
}

/// Each in a life of its own, because some of it is seldom.
#[test]
fn what_must_hold_holds_through_each_of_the_disasters_that_a_life_can_favour() {
    let favoured = [
        ("cut", "cuts"),
        ("full-disk", "full"),
        ("move", "moves"),
        ("lost-disk", "restored"),
        ("new-certificate", "renewed"),
        ("cheat", "cheats"),
        ("old-copies", "old_copies"),
        ("crash-in-refresh", "crashes"),
    ];
    for (favoured, what) in favoured {
        let life =
            live(&format!("--seed 1 --protocol replicated --minutes 1 --pause 10 --favour {favoured}"));
        let told = told(&life);
        assert!(life.status.success(), "{favoured}: {told}");
        assert!(counts(&told, what).iter().sum::<u64>() > 0, "{favoured}: {told}");
    }
}

#[test]
fn nothing_fails_when_nothing_is_wrong_while_keys_are_refreshed() {
    let calm = live("--seed 1 --minutes 1 --pause 5 --calm");
    let told = told(&calm);
    assert!(calm.status.success(), "{told}");
    for what in ["answered", "refreshed"] {
        assert!(counts(&told, what).iter().all(|count| *count > 0), "{told}");
    }
}

/// Without the refresh that is due every night, this life fails.
#[test]
fn nights_pass_and_each_brings_a_refresh() {
    let calm = live("--seed 1 --minutes 1 --nights 3 --pause 5 --calm");
    let told = told(&calm);
    assert!(calm.status.success(), "{told}");
    assert!(counts(&told, "answered").iter().all(|count| *count > 0), "{told}");
}

#[test]
fn it_is_noticed_if_syncs_do_nothing() {
    let with = |more: &str| live(&format!("--seed 1 --minutes 4 --pause 20{more}"));
    let honest = with("");
    assert!(honest.status.success(), "{}", told(&honest));
    let lying = with(" --disks-lie");
    assert!(!lying.status.success(), "{}", told(&lying));
}
