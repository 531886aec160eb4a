//! `polyclave cluster`: defines which nodes work together, and runs all of them on one host to try it out.

mod bench;
mod check;
mod define;
mod drill;
mod duties;
mod features;
mod new;
mod refresh;
mod reshape;
mod reshare;
mod run;
mod show;
mod standby;
mod update;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use polyclave_config::{Cluster, Role};

use crate::say;

/// The subcommands for clusters.
#[derive(Subcommand)]
pub enum Command {
    /// Make a whole cluster and a client on this host, to try it out. This does not separate trust
    New(new::Arguments),
    /// Make the cluster's file from the cards of its nodes
    Define(define::Arguments),
    /// Replace a node's card in the cluster's file
    Update(update::Arguments),
    /// Say which workers only serve, and which only make material
    Duties(duties::Arguments),
    /// Let two of three nodes go on with the keys while the third one is away, or not
    Standby(standby::Arguments),
    /// Show the contents of a cluster file, and the fingerprint to compare
    Show(show::Arguments),
    /// Run all nodes that `cluster new` has made, until SIGINT or SIGTERM
    Run(run::Arguments),
    /// Check that the audit logs of all nodes fit their stores, while no node runs
    Check(check::Arguments),
    /// Give all stored keys fresh shares, at all nodes of this host
    Refresh(refresh::Arguments),
    /// Show which features the nodes of this host have, or switch one on at all of them
    Features(features::Arguments),
    /// Make the file of a cluster that takes over the keys of another: with other nodes, or another threshold
    Reshape(reshape::Arguments),
    /// Move all keys to other nodes of this host, which are not running
    Reshare(reshare::Arguments),
    /// Prove that backups can be restored: in a cluster that cannot meet the real one
    ///
    /// Whoever has the shares of a quorum knows every key. So each operator restores one node on a machine of
    /// their own (restore, join), and one person makes the drill's file (define) and has the nodes compute
    /// the check value of every key (check). Shares never gather then. `gather` does all of it on one
    /// machine, which then knows all keys.
    #[command(subcommand)]
    Drill(drill::Command),
    /// Measure a running cluster from a client: single blocks, many at once, a long stream
    Bench(bench::Arguments),
}

/// Runs the command.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::New(arguments) => new::run(arguments),
        Command::Define(arguments) => define::run(arguments),
        Command::Update(arguments) => update::run(arguments),
        Command::Duties(arguments) => duties::run(arguments),
        Command::Standby(arguments) => standby::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Run(arguments) => run::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Refresh(arguments) => refresh::run(arguments),
        Command::Features(arguments) => features::run(arguments),
        Command::Reshape(arguments) => reshape::run(arguments),
        Command::Reshare(arguments) => reshare::run(arguments),
        Command::Drill(command) => drill::run(command),
        Command::Bench(arguments) => bench::run(arguments),
    }
}

/// Prints the nodes, with the certificates and addresses that the others rely on.
fn list(cluster: &Cluster) {
    for (number, card) in cluster.cards().iter().enumerate() {
        say!("  {}. {} at {}, for clients at {}", number + 1, card.name, card.address, card.client_address);
        for (number, place) in (1..).zip(&card.workers) {
            say!("     worker {number} at {}, for clients at {}", place.address, place.client_address);
        }
        say!("     {}", card.certificate_fingerprints());
    }
    if cluster.has_standby() {
        say!("  Any two of them go on with the keys while the third one is away.");
    }
    let numbers = (0..).take(cluster.worker_groups());
    for (number, role) in numbers.map(|number| (number, cluster.roles().of(number))) {
        if role != Role::Both {
            say!("  Workers {number} {}", role.message());
        }
    }
}
