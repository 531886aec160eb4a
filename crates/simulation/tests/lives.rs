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

#[test]
fn what_must_hold_holds_through_crashes_and_cut_links() {
    // Lives of `replicated-active` with its standby pairs (seeds 0, 4, ..) take minutes.
    for seeds in ["1..4", "5..8"] {
        let lives = live(&format!("--seeds {seeds} --minutes 2 --pause 20"));
        let told = told(&lives);
        assert!(lives.status.success(), "{told}");
        // Without crashes, and without answers, it would show nothing.
        assert!(!told.contains("answered: 0,") && !told.contains("crashes: 0,"), "{told}");
    }
}

#[test]
fn it_is_noticed_if_syncs_do_nothing() {
    let with = |more: &str| live(&format!("--seed 1 --minutes 4 --pause 20{more}"));
    let honest = with("");
    assert!(honest.status.success(), "{}", told(&honest));
    let lying = with(" --disks-lie");
    assert!(!lying.status.success(), "{}", told(&lying));
}
