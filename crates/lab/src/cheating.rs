//! `polyclave-lab demo --cheat` and `polyclave-lab node run --cheat`: show what a node causes that does not
//! follow the protocol.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};
use polyclave_cli::demo::{self, Liar};
use polyclave_cli::node::run;
use polyclave_node::{Cheat, Running};

/// Options of `polyclave-lab demo`.
#[derive(clap::Args)]
pub struct DemoArguments {
    #[command(flatten)]
    demo: demo::Options,

    /// Have one of the nodes send wrong shares in every opening, with shamir-active
    #[arg(long)]
    cheat: bool,
}

/// Not the first node, which leads: the effect of its lies shows best where it only follows.
const LIAR: Liar = Liar { node: 1, arguments: &["--cheat", "openings"] };

/// Runs `polyclave-lab demo`.
pub fn demo(arguments: &DemoArguments) -> Result<ExitCode> {
    demo::run_with(&arguments.demo, arguments.cheat.then_some(LIAR))
}

/// The subcommands for nodes here.
#[derive(Subcommand)]
pub enum NodeCommand {
    /// Run a node until SIGINT or SIGTERM, as `polyclave node run`, or let it cheat
    Run(RunArguments),
}

/// Options of `polyclave-lab node run`.
#[derive(clap::Args)]
pub struct RunArguments {
    #[command(flatten)]
    node: run::Arguments,

    /// How the node cheats [default: it does not]
    #[arg(long, value_name = "HOW")]
    cheat: Option<How>,
}

/// The ways to cheat.
#[derive(Clone, Copy, ValueEnum)]
enum How {
    /// Send wrong shares to the other nodes in every opening of a request
    Openings,
    /// Send wrong bytes to clients
    Answers,
}

/// Runs `polyclave-lab node`.
pub fn node(command: &NodeCommand) -> Result<ExitCode> {
    let NodeCommand::Run(arguments) = command;
    run::run_with(&arguments.node, |dir| match arguments.cheat {
        None => Running::start(dir),
        Some(How::Openings) => Running::start_cheating(dir, Cheat::InOpenings),
        Some(How::Answers) => Running::start_cheating(dir, Cheat::InAnswers),
    })
}
