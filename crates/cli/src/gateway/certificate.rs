//! `gateway certificate`: TLS for a listener, without an authority.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_config::private;
use polyclave_gateway::make_certificate;

use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave gateway certificate gateway.example 10.0.0.7 --out tls\n\n\
    The certificate is self-signed. Give tls.crt to the programs that ask, as the one authority that they trust for this host: \
    VAULT_CACERT=tls.crt, or curl --cacert tls.crt. Name both files in the listener of gateway.toml.")]
pub struct Arguments {
    /// The names and addresses under which programs reach the gateway
    #[arg(value_name = "HOST", required = true)]
    hosts: Vec<String>,

    /// Write NAME.crt, and NAME.key, which only you can read
    #[arg(long, value_name = "NAME")]
    out: PathBuf,

    /// Days for which it is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u16).range(1..))]
    days: u16,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let (certificate, key) = (with_ending(&arguments.out, "crt"), with_ending(&arguments.out, "key"));
    for file in [&certificate, &key] {
        if file.symlink_metadata().is_ok() {
            bail!("{} is there already; give another name, or remove it", file.display());
        }
    }
    let (text, secret) = make_certificate(&arguments.hosts, arguments.days)?;
    private::write(&key, secret.as_bytes())?;
    private::write_public(&certificate, text.as_bytes())?;
    say!(
        "{} is valid for {} days, for {}; {} is its key",
        certificate.display(),
        arguments.days,
        arguments.hosts.join(", "),
        key.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// `with_extension` would take `.example` away from `gateway.example`.
fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}
