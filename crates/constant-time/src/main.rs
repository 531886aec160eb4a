//! Runs what touches secrets while Valgrind's memcheck takes them for uninitialised memory: it reports every
//! branch on them and every address made of them, in the program as the compiler left it
//! (`polyclave_kernels::secret`). `.ci/constant-time` runs it.
//!
//! *Secret* is what the operating system's randomness gives (`session::random_bytes`), and all
//! inputs. *Public* is what a party has sent ([`net`]), what a check has come to (`secret::ct_eq`), and what
//! the protocols mark as public, with the reason. So a branch on what a peer sent is seen only after
//! something of this party's own was added.
//!
//! *Not seen:* instructions that Valgrind does not know, for which kernels take other forms there (AVX-512,
//! VAES, VPCLMULQDQ, GFNI: straight lines of intrinsics); instructions whose time depends on operands; and
//! code that nothing here runs. `--portable` takes the forms for processors that have nothing but words.

mod alone;
mod clients;
mod fields;
mod kernels;
mod libraries;
mod net;
mod nodes;
mod planted;
mod protocols;
mod refresh;
mod reshare;
mod secrets;

use std::process::ExitCode;
use std::time::Instant;

use polyclave_kernels::secret::reports;

/// Something that is run, and its name.
type Subject = (&'static str, fn());

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--portable") {
        words.retain(|word| word != "--portable");
        polyclave_kernels::use_portable_forms();
    }
    if reports().is_none() {
        eprintln!("This program says something only under Valgrind; bash .ci/constant-time runs it so.");
        return ExitCode::from(2);
    }
    println!("kernels: {}", polyclave_kernels::instruction_set());
    match words.first().map(String::as_str) {
        Some("planted") => planted::are_found(),
        Some("--but") => all_are_clean(&|name| !begins_with_one_of(name, &words[1..])),
        _ => all_are_clean(&|name| words.is_empty() || begins_with_one_of(name, &words)),
    }
}

fn begins_with_one_of(name: &str, words: &[String]) -> bool {
    words.iter().any(|word| name.starts_with(word.as_str()))
}

/// The subjects that are wanted: all, those whose names begin with a word that is given, or after `--but` all
/// others. So a subject that no list names is run.
fn all_are_clean(wanted: &dyn Fn(&str) -> bool) -> ExitCode {
    let groups = [
        kernels::SUBJECTS,
        fields::SUBJECTS,
        libraries::SUBJECTS,
        protocols::SUBJECTS,
        clients::SUBJECTS,
        alone::SUBJECTS,
        nodes::SUBJECTS,
        refresh::SUBJECTS,
        reshare::SUBJECTS,
    ];
    let subjects: Vec<Subject> = groups.concat().into_iter().filter(|(name, _)| wanted(name)).collect();
    if subjects.is_empty() {
        eprintln!("nothing here has such a name");
        return ExitCode::from(2);
    }
    let mut found = 0;
    for (name, run) in &subjects {
        let began = Instant::now();
        let reported = reported_by(run);
        found += reported;
        let verdict = if reported == 0 { "ok".into() } else { format!("{reported} USES OF A SECRET") };
        println!("{name}: {verdict} ({:.1} s)", began.elapsed().as_secs_f64());
    }
    match found {
        0 => println!("{} subjects: no branch and no index on a secret", subjects.len()),
        _ => println!("branches or indices on secrets: Valgrind has said above where"),
    }
    ExitCode::from(u8::from(found > 0))
}

/// What memcheck reports while something runs.
fn reported_by(run: impl FnOnce()) -> u64 {
    let before = reports().unwrap_or_default();
    run();
    reports().unwrap_or_default() - before
}
