//! `gateway check`: what a gateway's file says, or what is wrong with it and with what it names.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ClientDir, GatewaySettings};

use crate::names::words;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave gateway check gateway.toml\n\n\
    An error names the line, a file that is missing or wrong, or a key that the nodes do not have. If they cannot be asked, a line says so. A gateway that runs keeps its tokens if the file has an error, so check it after a change.")]
pub struct Arguments {
    /// The gateway's directory, or its file
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let settings = GatewaySettings::load(&GatewaySettings::file(&arguments.path))?;
    let not_asked = polyclave_gateway::check(&settings)?;
    let client = ClientDir::open(&settings.client)?;
    say!("asks the nodes as {}", client.name());
    for listener in &settings.listeners {
        say!(
            "Vault's API on {}, {}",
            listener.address,
            if listener.tls().is_some() { "with TLS" } else { "loopback" }
        );
        if let Some(authorities) = &listener.client_authorities {
            let names = match listener.client_names.is_empty() {
                true => "of any name".into(),
                false => format!("of {}", listener.client_names.join(" or ")),
            };
            say!("  for callers with a certificate {names}, signed by {}", authorities.display());
        }
    }
    for kms in &settings.kms {
        say!("the KMS {} on {} with the key {}", kms.name, kms.socket.display(), kms.key);
    }
    for xks in &settings.xks {
        let regions = if xks.regions.is_empty() { "all regions".into() } else { xks.regions.join(", ") };
        say!("the external key store {} for {regions}, with {} keys", xks.path, xks.keys.len());
        for key in &xks.keys {
            say!("  {} is the key {}", key.id, key.key);
            for (what, patterns) in [("principals", &key.principals), ("keys of KMS", &key.kms_keys)] {
                if !patterns.is_empty() {
                    say!("    for the {what} {}", patterns.join(", "));
                }
            }
        }
    }
    for role in &settings.transform.role {
        say!("the role {} with the transformations {}", role.name, role.transformations.join(", "));
    }
    for token in &settings.tokens {
        say!("{} may {} with the keys {}", token.name, words(&token.rights), token.keys.join(", "));
    }
    for key in &settings.access_keys {
        say!("{} may {} with the keys {}, as {}", key.name, words(&key.rights), key.keys.join(", "), key.id);
    }
    if let Some(why) = not_asked {
        say!("whether the nodes have the keys was not found out: {why}");
    }
    Ok(ExitCode::SUCCESS)
}
