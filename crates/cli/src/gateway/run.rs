//! `gateway run`: a gateway in the foreground.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use anyhow::{Context, Result};
use polyclave_config::GatewaySettings;
use polyclave_gateway::Running;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::{say, stop};

/// How often the command checks whether to stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave gateway run /etc/polyclave-gateway           # a directory with gateway.toml\n  \
    polyclave gateway run gateway.toml --log warn\n\n\
    A gateway.toml:\n\n  \
    client = \"/var/lib/polyclave-gateway/client\"    # as `client init` and `client join` made it; the nodes allow it what tokens may do\n  \
    http_listen = \"127.0.0.1:9102\"                  # /healthz and /metrics; may be left out\n\n  \
    [[listener]]                                    # Vault's API: on loopback, or with certificate and key\n  \
    address = \"127.0.0.1:8200\"\n\n  \
    [[listener]]\n  \
    address = \"0.0.0.0:8443\"\n  \
    certificate = \"tls.crt\"\n  \
    key = \"tls.key\"                                 # PEM, readable by its owner only\n\n  \
    [[kms]]                                         # Kubernetes: a socket that only this user can connect to\n  \
    name = \"cluster-1\"\n  \
    socket = \"/run/polyclave/kms.sock\"\n  \
    key = \"kubernetes\"\n\n  \
    [[token]]                                       # from `polyclave gateway token billing ..`\n  \
    name = \"billing\"\n  \
    hash = \"blake3:..\"\n  \
    rights = [\"encrypt\", \"decrypt\"]                 # of generate, list, delete, encrypt, decrypt, random, configure, rewrap, observe\n  \
    keys = [\"billing-*\"]\n\n  \
    [[login]]                                       # programs log in: docs/use/identities.md\n  \
    path = \"jwt\"                                    # at auth/jwt/login\n  \
    kind = \"jwt\"                                    # or kubernetes\n  \
    issuer = \"https://issuer.example\"\n  \
    keys_file = \"issuer.jwks\"                       # or keys_url, or discovery = true\n\n  \
    [[login.role]]\n  \
    name = \"ci\"\n  \
    audiences = [\"polyclave\"]\n  \
    subjects = [\"project:orders:*\"]\n  \
    rights = [\"encrypt\"]\n  \
    keys = [\"ci-*\"]\n\n  \
    [[access_key]]                                  # from `polyclave gateway access-key pos ..`: the API of AWS Payment Cryptography\n  \
    name = \"pos\"\n  \
    id = \"POLY..\"\n  \
    secret = \"pos.secret\"                           # its file, readable by its owner only\n  \
    rights = [\"pay\"]                                # of pay, issue, encrypt, decrypt, list\n  \
    keys = [\"pin-*\"]\n\n  \
    [[xks]]                                         # an external key store of AWS KMS, on all listeners\n  \
    path = \"/eu/kms/xks/v1\"                         # its XksProxyUriPath\n  \
    regions = [\"eu-central-1\"]                      # from which KMS may ask; all if left out\n\n  \
    [[xks.key]]                                     # an access key with encrypt and decrypt for it is made as above\n  \
    id = \"1c3f0a52\"                                 # by which KMS names it\n  \
    key = \"orders\"\n\n\
    Paths are relative to the file. Tokens and logins are read again when the file changes: one that is removed stops at once. The nodes log the \
    token's name with each request, and judge the gateway's client as any other. See docs/use/vault.md, docs/use/identities.md, docs/use/kubernetes.md and docs/use/xks.md.\n\n\
    Logs to standard error, without secrets. SIGINT or SIGTERM ends it in order; a second one at once.")]
pub struct Arguments {
    /// The gateway's directory, or its file
    #[arg(value_name = "DIR|FILE")]
    path: PathBuf,

    /// What to log: error, warn, info, debug or trace, or a list of levels for parts of the program
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let filter: Targets = arguments.log.parse().with_context(|| {
        format!("--log {:?} is no level; write error, warn, info, debug or trace", arguments.log)
    })?;
    let stopping = stop::on_signals()?;
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(to_stderr).init();
    let file = GatewaySettings::file(&arguments.path);
    let gateway = Running::start(&file)?;
    let settings = GatewaySettings::load(&file)?;
    for (address, listener) in gateway.addresses().iter().zip(&settings.listeners) {
        let scheme = if listener.tls().is_some() { "https" } else { "http" };
        say!("Vault's API is served on {scheme}://{address}");
    }
    for xks in &settings.xks {
        say!("the external key store {} is served there, too", xks.path);
    }
    for (address, kmip) in gateway.kmip_addresses().iter().zip(&settings.kmip) {
        say!("KMIP is served on {address}, for {} clients", kmip.clients.len());
    }
    for kms in &settings.kms {
        say!("the KMS {} is served on unix://{}", kms.name, kms.socket.display());
    }
    let mut message = None;
    while !stopping.load(Relaxed) {
        let trouble = gateway.trouble();
        if message.as_ref() != Some(&trouble) {
            match &trouble {
                None => say!("the nodes can serve"),
                Some(why) => say!("the nodes cannot serve: {why}"),
            }
            message = Some(trouble);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    gateway.stop();
    Ok(ExitCode::SUCCESS)
}
