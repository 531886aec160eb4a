//! `tinytable-minimac` on the command line: a demonstration, with a dealer that has to be asked for.

use std::process::{Command, Output};

fn eval(more: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_polyclave-lab");
    let block = ["--key", "000102030405060708090a0b0c0d0e0f", "--input", "00112233445566778899aabbccddeeff"];
    let arguments = ["eval", "--protocol", "tinytable-minimac", "--cipher", "aes-128"];
    Command::new(program).args(arguments).args(block).args(more).output().expect("the program starts")
}

#[test]
fn a_block_is_right() {
    let output = eval(&["--preprocessing", "insecure_dealer"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{text}");
    assert!(text.contains("69c4e0d86a7b0430d8cdb78070b4c55a"), "{text}");
}

#[test]
fn the_dealer_is_never_a_default() {
    let output = eval(&[]);
    let error = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("needs --preprocessing; choose one of insecure_dealer"), "{error}");
}
