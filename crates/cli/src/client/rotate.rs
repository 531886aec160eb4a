//! `client rotate`: a new certificate for a client, which keeps its name and its rights.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use polyclave_client::Client;
use polyclave_config::{ClientDir, ClientSuccession};
use polyclave_transport::Identity;

use crate::client_option::{self, of_node};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "The client's certificate, before it ends:\n\
    1. polyclave client rotate DIR              makes the next certificate; card.toml has both, and the old key vouches for the new one\n\
    2. polyclave node allow NODE-DIR card.toml  at every node, by its operator: the client keeps its rights there\n\
    3. polyclave client rotate DIR --finish     asks all nodes whether they know the next certificate, and uses it alone from then on\n\
    4. once more as 2, with the new card.toml: now the nodes do not accept the old certificate any more\n\n\
    If others may know the old key, it must not vouch for anything: make a new client instead, and `node allow --replace` its card.")]
pub struct Arguments {
    /// The client's directory
    dir: PathBuf,

    /// Use the next certificate from now on
    #[arg(long)]
    finish: bool,

    /// Finish even though some nodes do not know the next certificate, or do not answer
    #[arg(long, requires = "finish")]
    anyway: bool,

    /// Days for which the next certificate is valid
    #[arg(long, value_name = "D", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut dir = client_option::open(&arguments.dir)?;
    dir.refuse_renewed()?;
    let card = arguments.dir.join("card.toml");
    let is_changing = dir.with_next_identity().is_some();
    // The signature in it is the same each time (Ed25519).
    let due = dir.succession()?.to_text();
    let is_written = ClientSuccession::load(&card).is_ok_and(|written| written.to_text() == due);
    // Killed after the change and before the card was written.
    if is_changing != arguments.finish && !is_written {
        say!("This was interrupted before the card was written, and is completed now.");
    } else if arguments.finish {
        let unknowing = unknowing(&dir)?;
        if !unknowing.is_empty() && !arguments.anyway {
            bail!(
                "not finished, and nothing was changed: {}. Give card.toml to the operators of these nodes, for `polyclave node \
                 allow`; or finish with --anyway, and they will refuse this client until they have it",
                unknowing.join("; ")
            );
        }
        dir.finish_rotation()?;
    } else {
        let next = Identity::generate_named(dir.name(), arguments.days)?;
        dir.begin_rotation(&next.certificate(), &next.reveal_private_key())?;
    }
    dir.succession()?.save(&card)?;
    let (path, card) = (arguments.dir.display(), card.display());
    match arguments.finish {
        false => say!(
            "The card {card} has the certificate in use and the next one.\n\
             Next, at every node, by its operator: polyclave node allow DIR {card}\n\
             Then, here: polyclave client rotate {path} --finish"
        ),
        true => say!(
            "{} uses its next certificate alone, which is in {card}.\n\
             So that nodes refuse the old one, once more at every node: polyclave node allow DIR {card}",
            dir.name()
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Why nodes do not accept the next certificate of the client.
fn unknowing(dir: &ClientDir) -> Result<Vec<String>> {
    let Some(next) = dir.with_next_identity() else {
        bail!("the client's certificate is not being changed; begin with `polyclave client rotate`");
    };
    let client = Client::open(&next)?;
    let answers = client.status();
    Ok(answers
        .iter()
        .filter_map(|(party, answer)| Some(of_node(&client, *party, answer.as_ref().err()?)))
        .collect())
}
