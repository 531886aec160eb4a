//! `hosts new`: makes every party's address, certificate and key.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use polyclave_config::{Host, Hosts, StoredIdentity, private};
use polyclave_protocol::catalog;
use polyclave_transport::Identity;

use super::key_file;
use crate::say;

/// How long the certificates are valid.
const VALID_DAYS: u32 = 365;

/// Options of `polyclave-lab hosts new`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    polyclave-lab hosts new --parties a.example:7000 b.example:7000 --out pair\n\n\
    It prints what to copy where and what to start. The keys of all parties are made here; a key says who a party is, and does not \
    decrypt what the parties said to each other.")]
pub struct Arguments {
    /// The address at which the others reach each party, in the order of party numbers: a host, or an IPv6
    /// address in brackets, then a colon and the port
    #[arg(long, value_name = "ADDRESS", num_args = 2.., required = true)]
    parties: Vec<String>,

    /// The directory to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let count = arguments.parties.len();
    let identities =
        (1..=count).map(|number| Identity::generate_named(&format!("party-{number}"), VALID_DAYS));
    let identities = identities.collect::<Result<Vec<Identity>, _>>()?;
    let host = |(address, identity): (&String, &Identity)| Host {
        address: address.clone(),
        certificate: identity.certificate(),
    };
    let hosts = Hosts::new(arguments.parties.iter().zip(&identities).map(host).collect())?;
    let dir = &arguments.out;
    private::make_dir(dir)?;
    hosts.save(&dir.join("hosts.toml"))?;
    for (number, identity) in (1..).zip(&identities) {
        let stored = StoredIdentity::new(&identity.certificate(), &identity.reveal_private_key())?;
        stored.save_private(&dir.join(key_file(number)))?;
    }
    tell(arguments).context("cannot say what comes next")?;
    Ok(ExitCode::SUCCESS)
}

fn tell(arguments: &Arguments) -> Result<()> {
    let (dir, count) = (arguments.out.display(), arguments.parties.len());
    say!("{dir} has hosts.toml, which is public, and a secret key for each of {count} parties.");
    say!("");
    say!(
        "1. Copy hosts.toml to every host on a way on which nobody can alter it, and each key to its own host only:"
    );
    let host = |address: &str| address.rsplit_once(':').map_or(address, |(host, _)| host).to_owned();
    for (number, address) in (1..).zip(&arguments.parties) {
        say!("     scp {dir}/hosts.toml {dir}/{} {}:", key_file(number), host(address));
    }
    say!("2. Delete the keys here: whoever has one can take that party's place.");
    say!("3. Start every party with the same protocol and cipher, each with what it holds:");
    let protocol = catalog::all().into_iter().find(|descriptor| descriptor.parties.contains(&count));
    let protocol = protocol.map_or("P", |descriptor| descriptor.name);
    for (number, address) in (1..).zip(&arguments.parties) {
        let brings = match number {
            1 => " --key HEX",
            _ if number == count => " --input HEX",
            _ => "",
        };
        let command =
            format!("--hosts hosts.toml --me {number} --protocol {protocol} --cipher aes-128{brings}");
        say!("     on {}: polyclave-lab party {command}", host(address));
    }
    say!(
        "   Or measure, at every party: polyclave-lab bench --hosts hosts.toml --me K --protocol {protocol}"
    );
    Ok(())
}
