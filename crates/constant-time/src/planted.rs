//! Mistakes made on purpose, so that a check that sees nothing is not taken for a program that has none.

use std::hint::black_box;
use std::process::ExitCode;

use polyclave_kernels::secret::{ct_eq, mark_public, mask};

use crate::{Subject, reported_by, secrets};

const MISTAKES: &[Subject] = &[("a branch on a secret", branch), ("an index made of a secret", index)];
const NO_MISTAKES: &[Subject] =
    &[("a mask", masked), ("a comparison", compared), ("a branch on what was made public", public)];

/// Memcheck reports all mistakes and nothing else.
pub fn are_found() -> ExitCode {
    let mut as_due = true;
    for (subjects, due) in [(MISTAKES, true), (NO_MISTAKES, false)] {
        for (name, run) in subjects {
            let found = reported_by(run) > 0;
            let word = if found { "reported" } else { "not reported" };
            println!("{name}: {word}{}", if found == due { "" } else { ", WHICH IS WRONG" });
            as_due &= found == due;
        }
    }
    ExitCode::from(u8::from(!as_due))
}

fn branch() {
    let secret = black_box(secrets::bytes(1));
    if secret[0] & 1 == 1 {
        black_box("the bit is set");
    }
}

fn index() {
    let (secret, table) = (black_box(secrets::bytes(1)), black_box([7_u8; 256]));
    black_box(table[usize::from(secret[0])]);
}

fn masked() {
    let secret = black_box(secrets::bytes(1));
    black_box(mask(secret[0]) & 0x5a);
}

fn compared() {
    let [a, b] = [0, 1].map(|_| black_box(secrets::bytes(40)));
    if ct_eq(&a, &b) {
        black_box("they are equal");
    }
}

fn public() {
    let opened = black_box(secrets::bytes(1));
    mark_public(&opened);
    if opened[0] & 1 == 1 {
        black_box("the bit is set");
    }
}
