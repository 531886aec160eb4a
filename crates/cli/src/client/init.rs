//! `client init`: makes a client's own keys, and the card that nodes need.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow, ensure};
use polyclave_config::{ClientDir, Cluster, RenewedFiles};
use polyclave_transport::{Identity, identity_of};

use crate::client_option;
use crate::fingerprint::{self, Expected, names};
use crate::protocols::adversary;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave client init ~/.polyclave --name alice --cluster cluster.toml\n\n\
    Give card.toml to the operators of all nodes, over a way on which nobody can replace it:\n  \
    polyclave node allow DIR alice.toml --rights encrypt,decrypt,list --keys '*'\n\n\
    A client whose certificate an agent renews (SPIRE, cert-manager), for nodes that trust its authority (`node authority`), has no card:\n  \
    polyclave client init ~/.polyclave --name web --certificate /run/spiffe/svid.pem --key /run/spiffe/svid_key.pem --cluster cluster.toml")]
pub struct Arguments {
    /// The directory to make
    dir: PathBuf,

    /// The client's name: letters, digits, '-', '_' or '.'
    #[arg(long, value_name = "N")]
    name: String,

    /// The cluster's file, if it exists already
    #[arg(long, value_name = "FILE")]
    cluster: Option<PathBuf>,

    #[command(flatten)]
    expected: Expected,

    /// The PEM file into which an agent writes the client's certificate, and renews it
    #[arg(long, value_name = "FILE", requires = "key", conflicts_with = "days")]
    certificate: Option<PathBuf>,

    /// The PEM file into which it writes the key, which nobody else may read
    #[arg(long, value_name = "FILE", requires = "certificate")]
    key: Option<PathBuf>,

    /// Days for which its certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let expected = &arguments.expected;
    ensure!(
        arguments.cluster.is_some() || !expected.is_given(),
        "--expect is of a cluster file; give that with --cluster"
    );
    let cluster = arguments.cluster.as_ref().map(|path| expected.load(path)).transpose()?;
    if let Some(cluster) = &cluster {
        adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?;
    }
    if let (Some(certificate), Some(key)) = (&arguments.certificate, &arguments.key) {
        let absolute = |path: &PathBuf| std::path::absolute(path);
        let files = RenewedFiles { certificate: absolute(certificate)?, key: absolute(key)? };
        return init_renewed(arguments, &files, cluster.as_ref());
    }
    let identity = Identity::generate_named(&arguments.name, arguments.days)?;
    let (certificate, key) = (identity.certificate(), identity.reveal_private_key());
    let card = ClientDir::init(&arguments.dir, &arguments.name, &certificate, &key)?;
    if let Some(cluster) = &cluster {
        client_option::open(&arguments.dir)?.set_cluster(cluster, expected.consent())?;
    }
    let path = arguments.dir.join("card.toml");
    card.save(&path)?;
    let (dir, name) = (arguments.dir.display(), &arguments.name);
    say!("{}", card.to_text());
    eprintln!(
        "The client {name} is made; its private key is in {dir} and nowhere else.\n\
         Above is its card, also in {}. Next, at every node, by its operator:\n  \
         polyclave node allow DIR CARD --rights encrypt,decrypt,list --keys '*'",
        path.display()
    );
    advise(arguments, cluster.as_ref());
    Ok(ExitCode::SUCCESS)
}

/// Makes a client that has no key of its own.
fn init_renewed(arguments: &Arguments, files: &RenewedFiles, cluster: Option<&Cluster>) -> Result<ExitCode> {
    let identity = files.load()?.certificate();
    let identity = identity_of(&identity).map_err(|why| {
        anyhow!(
            "the certificate in {} is of no client that an authority could vouch for: {why}",
            files.certificate.display()
        )
    })?;
    let made = ClientDir::init_renewed(&arguments.dir, &arguments.name, files)?;
    if let Some(cluster) = cluster {
        made.set_cluster(cluster, arguments.expected.consent())?;
    }
    say!("{identity}");
    eprintln!(
        "The client {} is made. Nodes know it by its identity, which is above. Next, at every node, by its operator:\n  \
         polyclave node authority allow DIR AUTHORITY --name {} --identity {identity} --rights encrypt,decrypt,list --keys '*'",
        arguments.name, arguments.name
    );
    advise(arguments, cluster);
    Ok(ExitCode::SUCCESS)
}

/// Says what comes next here.
fn advise(arguments: &Arguments, cluster: Option<&Cluster>) {
    match cluster {
        Some(cluster) => {
            eprintln!("It uses the cluster of {}\n{}", names(cluster), fingerprint::message_of(cluster));
            arguments.expected.advise();
        }
        None => eprintln!("And here:\n  polyclave client join {} cluster.toml", arguments.dir.display()),
    }
}
