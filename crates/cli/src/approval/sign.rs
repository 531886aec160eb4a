//! `approval sign`: an approver shows a request and signs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_config::{
    ClientDir, Moment, certificate_fingerprint, load_approval, save_approval, sign_approval,
};
use polyclave_transport::Identity;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(
    after_help = "An approver's keys are made like a client's, with `client init`; the operators of the nodes put its card into their rules \
    as an [[approver]]. Compare what is shown with what you want to approve: nodes do exactly that, and nothing of it can be changed afterwards."
)]
pub struct Arguments {
    /// The file of the request, to which the signature is added
    file: PathBuf,

    /// The approver's directory
    #[arg(long = "client", value_name = "DIR", env = "POLYCLAVE_CLIENT")]
    dir: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (mut approval, statement) = load_approval(&arguments.file)?;
    crate::statement::tell(&approval, &statement);
    let end = Moment::from_seconds(statement.not_after);
    ensure!(Moment::now() <= end, "this request ended at {end}; nothing was signed");
    let dir = ClientDir::open(&arguments.dir).context("this is no directory that `client init` made")?;
    dir.refuse_renewed()?;
    let identity = Identity::from_der(&dir.identity().certificate, &dir.identity().key)?;
    sign_approval(&mut approval, &identity)?;
    save_approval(&approval, &arguments.file)?;
    say!("{} has signed it ({})", dir.name(), certificate_fingerprint(&identity.certificate()));
    say!(
        "Nodes count this signature only if their rules have this certificate as that of an approver. This command does not know the rules: if you \
         are not sure, ask an operator (clients.toml, [[approver]])"
    );
    Ok(ExitCode::SUCCESS)
}
