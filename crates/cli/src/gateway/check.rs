//! `gateway check`: what a gateway's file says, or what is wrong with it and with what it names.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_config::{ClientDir, GatewayLogin, GatewayLoginRole, GatewaySettings, LoginKind};

use crate::names::words;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  polyclave gateway check gateway.toml\n\n\
    An error names the line, a file that is missing or wrong, or a key that the nodes do not have. If they, or the server of an issuer of a login, cannot be asked, a line says so. A gateway that runs keeps its tokens if the file has an error, so check it after a change.")]
pub struct Arguments {
    /// The gateway's directory, or its file
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let settings = GatewaySettings::load(&GatewaySettings::file(&arguments.path))?;
    let checked = polyclave_gateway::check(&settings)?;
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
        if settings.has_stores(listener) {
            say!("  with the external key stores");
        } else if !settings.xks.is_empty() {
            say!("  without the external key stores: they are on listeners with client_authorities only");
        }
    }
    for kms in &settings.kms {
        say!("the KMS {} on {} with the key {}", kms.name, kms.socket.display(), kms.key);
    }
    for kmip in &settings.kmip {
        say!("KMIP on {}", kmip.address);
        for client in &kmip.clients {
            let (name, of, rights) = (&client.name, &client.certificate_name, words(&client.rights));
            say!("  {name} may {rights} with the keys {}, by a certificate for {of}", client.keys.join(", "));
        }
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
    for (login, keys) in settings.logins.iter().zip(&checked.logins) {
        say_login(login, keys);
    }
    for key in &settings.access_keys {
        say!("{} may {} with the keys {}, as {}", key.name, words(&key.rights), key.keys.join(", "), key.id);
    }
    if let Some(why) = checked.nodes {
        say!("whether the nodes have the keys was not found out: {why}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Says who may log in, and what such a program may do.
fn say_login(login: &GatewayLogin, keys: &Result<usize, String>) {
    let kind = match login.kind {
        LoginKind::Jwt => "tokens",
        LoginKind::Kubernetes => "tokens of service accounts",
    };
    say!("programs log in at auth/{}/login with {kind} of {}", login.path, login.issuer);
    match keys {
        Ok(number) => say!("  signed with one of {number} keys, with {}", algorithms(login)),
        Err(why) => say!("  whether its keys can be had was not found out: {why}"),
    }
    for role in &login.roles {
        say!("  {} is {}", role.name, who(login, role).join(", "));
        let once = if role.single_use { "each token once, " } else { "" };
        let (life, most) = (role.life_seconds, role.most_life_seconds);
        say!("    {once}for {life} s, and {most} s if it is renewed");
        say!("    it may {} with the keys {}", words(&role.rights), role.keys.join(", "));
    }
}

fn algorithms(login: &GatewayLogin) -> String {
    login.algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

/// Whom a role lets in, in parts that all have to fit.
fn who(login: &GatewayLogin, role: &GatewayLoginRole) -> Vec<String> {
    let any = |what: &str, of: &[String]| format!("{what} {}", of.join(" or "));
    let mut parts = match login.kind {
        LoginKind::Jwt if role.subjects.is_empty() => Vec::new(),
        LoginKind::Jwt => vec![any("subject", &role.subjects)],
        LoginKind::Kubernetes => {
            vec![any("service account", &role.service_accounts), any("namespace", &role.namespaces)]
        }
    };
    parts.extend(role.claims.iter().map(|(name, values)| any(name, values)));
    parts.push(any("for", &role.audiences));
    parts
}
