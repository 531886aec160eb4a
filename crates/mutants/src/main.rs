//! Mutation tests of the code that verifies: which test fails if a check is missing?
//!
//! Each mutant is one small change: a function returns a constant, an operator is another one, a call is left
//! out. Compiling each mutant by itself takes a minute, so all mutants of a package are compiled at once,
//! each behind a switch that an environment variable turns on ([`rewrite`], [`build`]). Each test runs once
//! without a mutant, and notes the switches that it passes ([`reach`]). Then each mutant runs with the tests
//! that pass its switch, the fastest first, until one fails ([`trial`]).
//!
//! Most mutants are those that cargo-mutants lists; it leaves no call out, so those are added here
//! ([`omissions`]).

mod build;
mod listed;
mod mutant;
mod omissions;
mod plan;
mod process;
mod reach;
mod report;
mod rewrite;
mod trial;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;

/// Changes the code that verifies, in one place at a time, and looks which test notices it.
#[derive(Parser)]
struct Arguments {
    /// The files to change; all files of the list if none is given.
    files: Vec<PathBuf>,
    /// A checkout of the project whose sources may be overwritten.
    #[arg(long)]
    tree: PathBuf,
    /// The folder of compiled files and results.
    #[arg(long)]
    work: PathBuf,
    /// Prints the mutants and ends.
    #[arg(long)]
    list: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let packages = plan::packages(&arguments.tree, &arguments.files)?;
    ensure!(!packages.is_empty(), "no file of scripts/mutants.list has this name");
    let mut results = report::Results::open(&arguments.work)?;
    results.forget_survivors();
    for package in packages {
        let mutants = plan::mutants(&arguments.tree, &package)?;
        if arguments.list {
            for mutant in &mutants {
                println!("{}", mutant.name);
            }
            continue;
        }
        let left = mutants.iter().filter(|m| !results.has(m)).count();
        println!("{}: {} mutants, {left} of them to run", package.name, mutants.len());
        if left > 0 {
            let built = build::build(&arguments.tree, &arguments.work, &package, &mutants)
                .with_context(|| format!("the mutants of {} cannot be run", package.name))?;
            let refused: Vec<_> =
                mutants.iter().filter(|m| built.refused.contains(&m.id) && !results.has(m)).collect();
            for mutant in refused {
                results.add(mutant, report::Outcome::DoesNotCompile)?;
            }
            let left: Vec<_> = mutants.iter().filter(|m| !results.has(m)).collect();
            trial::run_all(&built.folder, &built.tests, left.into_iter(), &mut results)?;
        }
        report::print(&package, &mutants, &results);
    }
    Ok(())
}
