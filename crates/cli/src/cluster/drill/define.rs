//! `cluster drill define`: the file of a drill's cluster, and its client.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_config::{Card, ClientCard, ClientDir, Cluster, Consent};
use polyclave_transport::Identity;

use super::part::VALID_DAYS;
use super::scratch;
use crate::fingerprint;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave cluster drill define cluster.toml alpha.toml beta.toml gamma.toml --out drill.toml --client drill-client\n\n\
    The client of the drill may list keys and have their check values computed, and nothing else. The real nodes do not know it.")]
pub struct Arguments {
    /// The file of the real cluster
    cluster: PathBuf,

    /// The cards that `cluster drill restore` made
    #[arg(required = true, value_name = "CARD")]
    cards: Vec<PathBuf>,

    /// The file of the drill's cluster, to be made
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// The directory of the drill's client, to be made
    #[arg(long, value_name = "DIR")]
    client: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let Arguments { cluster, cards, out, client } = arguments;
    let real = Cluster::load(cluster)?;
    let cards = cards.iter().map(|card| Ok(Card::load(card)?)).collect::<Result<Vec<_>>>()?;
    let drill = scratch::cluster(&real, &cards)?;
    ensure!(!out.exists(), "{} is there already; remove it if its drill is over", out.display());
    let card = make_client(client, &drill)?;
    let card_file = client.join("card.toml");
    card.save(&card_file)?;
    drill.save(out)?;
    say!("{} defines a drill of {}", out.display(), fingerprint::names(&drill));
    fingerprint::show(&drill);
    say!(
        "Next: give it and {} to the operators of the restored nodes, who run polyclave cluster drill join and polyclave node run. Then:\n  \
         polyclave cluster drill check --client {}",
        card_file.display(),
        client.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Makes the client of a drill. Returns its card.
pub fn make_client(path: &Path, drill: &Cluster) -> Result<ClientCard> {
    let identity = Identity::generate_named("drill", VALID_DAYS)?;
    let card = ClientDir::init(path, "drill", &identity.certificate(), &identity.reveal_private_key())?;
    ClientDir::open(path)?.set_cluster(drill, Consent::None)?;
    Ok(card)
}
