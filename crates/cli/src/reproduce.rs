//! stub

/// stub
#[derive(clap::Args)]
pub struct Arguments {}

pub fn run(_: &Arguments) -> anyhow::Result<std::process::ExitCode> {
    anyhow::bail!("not yet")
}
