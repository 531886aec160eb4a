//! Mistakes made on purpose, so that a check that sees nothing is not taken for a program that has none: each
//! of a kind of its own, and in each layer one on what that layer has made of secrets.

use std::hint::black_box;
use std::process::ExitCode;

use polyclave_field::Gf128;
use polyclave_kernels::aes_prg::AesPrg;
use polyclave_kernels::gf128;
use polyclave_kernels::secret::{ct_eq, mark_public, mask};
use polyclave_protocol::session::random_bytes;

use crate::{Subject, alone, nodes, protocols, refresh, reported_by, secrets};

const MISTAKES: &[Subject] = &[
    ("a branch on a secret", || branch_on(secrets::bytes(1)[0])),
    ("an index made of a secret", index),
    ("an address that is written, made of a secret", written),
    ("a comparison that ends at the first difference", first_difference),
    ("a comparison of slices", compared_as_slices),
    ("a loop with a secret number of turns", turns),
    ("a choice of one of many by a secret", one_of_many),
    ("a part of a row whose length is secret", part),
    ("secrets that are sorted", sorted),
    ("a secret as text", text),
    ("a shortcut for zero", shortcut),
    ("a branch on randomness of the operating system", randomness),
    ("a branch on what a generator makes under a secret key", generated),
    ("a branch on a product in GF(2^128)", || branch_on(product()[0])),
    ("a branch on an element that was inverted", inverted),
    ("a branch on a share", || protocols::to_shamir(|shares| branch_on(shares[0]))),
    ("a branch on what is stored of a key made of parts", || nodes::key_of_parts(branch_on_last)),
    ("a branch on a share that is written as bytes", || nodes::shares_as_bytes(branch_on_last)),
    ("a branch on a key under which transfers were renewed", || refresh::renewed(branch_on_last)),
    ("a branch on a digit of a token", || alone::tokens(branch_on_last)),
    ("a branch on a digit of the number of a card", || alone::cards(branch_on_last)),
    ("a branch on a digit of a one-time password", || alone::passwords(branch_on_last)),
    ("a digit of a number of 128 bits by a division", divided_by_radix),
    ("a character that is looked up in an alphabet", looked_up),
    ("padding that is compared up to the first wrong byte", || unpadded(&secrets::bytes(16))),
];

const NO_MISTAKES: &[Subject] = &[
    ("a mask", masked),
    ("a comparison", compared),
    ("a branch on what was made public", public),
    ("a share that nobody branches on", || protocols::to_shamir(|_| ())),
    // What memcheck does not see, as docs/security/side-channels.md says.
    ("a division by a secret: not seen", divided),
];

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

#[inline(never)]
fn branch_on(secret: u8) {
    if black_box(secret) & 1 == 1 {
        black_box("the bit is set");
    }
}

fn branch_on_last(secrets: &[u8]) {
    branch_on(*secrets.last().expect("there is one"));
}

fn index() {
    let (secret, table) = (black_box(secrets::bytes(1)), black_box([7_u8; 256]));
    black_box(table[usize::from(secret[0])]);
}

fn written() {
    let (secret, mut table) = (black_box(secrets::bytes(1)), black_box([7_u8; 256]));
    table[usize::from(secret[0])] = 1;
    black_box(table);
}

fn first_difference() {
    let [a, b] = [0, 1].map(|_| black_box(secrets::bytes(40)));
    black_box(a.iter().zip(&b).position(|(a, b)| a != b));
}

fn compared_as_slices() {
    let [a, b] = [0, 1].map(|_| black_box(secrets::bytes(40)));
    if a == b {
        black_box("they are equal");
    }
}

fn turns() {
    for turn in 0..black_box(secrets::bytes(1))[0] {
        black_box(turn);
    }
}

fn one_of_many() {
    black_box(match black_box(secrets::bytes(1))[0] & 7 {
        0 => "zero",
        1 => "one",
        2 => "two",
        3 => "three",
        4 => "four",
        5 => "five",
        6 => "six",
        _ => "seven",
    });
}

fn part() {
    let secret = black_box(secrets::bytes(40));
    black_box(secret[..usize::from(secret[0] & 31)].to_vec());
}

fn sorted() {
    let mut secret = black_box(secrets::bytes(9));
    secret.sort_unstable();
    black_box(secret);
}

fn text() {
    black_box(format!("{:02x}", black_box(secrets::bytes(1))[0]));
}

fn shortcut() {
    let [a, b] = [0, 1].map(|_| black_box(secrets::words::<u64>(1, u64::BITS)[0]));
    black_box(if a == 0 { 0 } else { black_box(a).wrapping_mul(black_box(b)).rotate_left(7) });
}

fn randomness() {
    let mut bytes = [0; 16];
    random_bytes(&mut bytes).expect("the operating system has some");
    branch_on(bytes[7]);
}

fn generated() {
    let mut bytes = [0; 100];
    AesPrg::new(&secrets::block(), 0).fill(&mut bytes);
    branch_on(bytes[99]);
}

fn product() -> [u8; 16] {
    let mut product = [0; 16];
    gf128::multiply(&mut product, &secrets::block(), &secrets::block());
    product
}

fn inverted() {
    branch_on(Gf128::from_bytes(secrets::block()).inverse_or_zero().to_bytes()[0]);
}

fn divided_by_radix() {
    let half: [u8; 16] = black_box(secrets::block());
    black_box(u128::from_le_bytes(half) % black_box(10));
}

fn looked_up() {
    let digit = black_box(secrets::bytes(1))[0] % 10;
    black_box(black_box(['9', '8', '7', '6', '5', '4', '3', '2', '1', '0'])[usize::from(digit)]);
}

fn unpadded(last: &[u8]) {
    let count = black_box(last)[last.len() - 1];
    black_box(last.iter().rev().take_while(|byte| **byte == count).count());
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
    branch_on(opened[0]);
}

fn divided() {
    let secret = *black_box(secrets::bytes(4)).first_chunk().expect("four bytes");
    // Without the test for zero, which the compiler sees to be needless. Of 64 bits it would be seen: the
    // compiler looks first whether 32 suffice.
    black_box(1_000_003 / (u32::from_le_bytes(secret) | 1));
}
