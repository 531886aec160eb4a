//! `client status`: which nodes answer this client.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use polyclave_api::NodeStatus;
use polyclave_client::Client;
use polyclave_config::CertificateSettings;
use polyclave_node::{CertificateEnd, Holder};
use polyclave_protocol::Party;
use polyclave_transport::expiry;
use serde::Serialize;

use crate::client_option::{ClientOption, of_node};
use crate::protocols::adversary;
use crate::{say, stock};

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Ends with 0 if all nodes answered, else with 1.")]
pub struct Arguments {
    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// Warn so many days before the client's certificate ends
    #[arg(long, value_name = "D", default_value_t = CertificateSettings::WARN_DAYS)]
    warn_days: u32,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let client = arguments.client.open()?;
    let certificate = certificate(arguments)?;
    let answers = client.status();
    let worker_groups: Vec<WorkerGroup> = (0..)
        .take(client.cluster().worker_groups())
        .map(|number| WorkerGroup::ask(&client, number, &answers))
        .collect();
    let all = worker_groups.iter().all(|worker_group| worker_group.silent.is_empty());
    if arguments.json {
        let nodes: Vec<_> = answers
            .iter()
            .map(|(party, answer)| {
                let name = client.node_name(*party);
                match answer {
                    Ok(status) => serde_json::json!({
                        "name": name, "answers": true, "version": status.version, "set_up": status.set_up,
                        "keys": status.keys, "prepared": status.prepared, "quarantined": status.quarantined,
                        "stock": status.stock, "damaged": status.damaged, "lacking": status.lacking,
                        "outvoted": status.outvoted.iter().map(|p| client.node_name(p)).collect::<Vec<_>>(),
                        "silent": status.silent.iter().map(|p| client.node_name(p)).collect::<Vec<_>>(),
                        "rotating": status.rotating.iter().map(|p| client.node_name(p)).collect::<Vec<_>>(),
                        "connected": status.connected.iter().map(|p| client.node_name(p)).collect::<Vec<_>>(),
                    }),
                    Err(e) => serde_json::json!({ "name": name, "answers": false, "error": e.to_string() }),
                }
            })
            .collect();
        say!(
            "{}",
            serde_json::to_string_pretty(
                &serde_json::json!({ "nodes": nodes, "cliques": worker_groups, "certificate": certificate })
            )?
        );
    } else {
        let cluster = client.cluster();
        say!(
            "{}: {}",
            cluster.protocol(),
            adversary(cluster.protocol(), cluster.nodes(), cluster.threshold())?
        );
        if certificate.soon {
            say!("CERTIFICATE {}", certificate.message());
        }
        for (party, answer) in &answers {
            let (name, address) =
                (client.node_name(*party), &client.cluster().cards()[party.index()].client_address);
            match answer {
                Ok(NodeStatus {
                    version,
                    connected,
                    set_up,
                    keys,
                    prepared,
                    stock: held,
                    quarantined,
                    outvoted,
                    damaged,
                    lacking,
                    ..
                }) => {
                    let peers: Vec<&str> =
                        connected.iter().filter(|p| p != party).map(|p| client.node_name(p)).collect();
                    let with = if peers.is_empty() { "no other node".into() } else { peers.join(", ") };
                    let missing =
                        if *set_up { "" } else { "; not set up: all nodes have to run at once first" };
                    say!(
                        "{name} at {address}: version {version}, {keys} keys, connected with {with}{missing}"
                    );
                    if *quarantined {
                        say!(
                            "  UNDER QUARANTINE, since a check failed: it computes nothing before its operators have acted"
                        );
                    } else if *set_up && !prepared {
                        say!("  preparing, together with all other nodes");
                    }
                    if *damaged > 0 {
                        say!(
                            "  cannot read its shares of {damaged} keys: its operator has to restore a backup"
                        );
                    }
                    if *lacking > 0 {
                        say!("  lacks {lacking} keys that other nodes have: `key list` says which");
                    }
                    if !outvoted.is_empty() {
                        let names: Vec<&str> = outvoted.iter().map(|p| client.node_name(p)).collect();
                        say!("  says that {} sent it wrong shares, and was outvoted", names.join(", "));
                    }
                    if !held.is_empty() {
                        say!("  material: {}", stock::describe(held));
                    }
                }
                Err(e) => say!("{} (it is at {address})", of_node(&client, *party, e)),
            }
        }
        if worker_groups.len() > 1 {
            worker_groups.iter().for_each(|worker_group| say!("{}", worker_group.message()));
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The workers of one number at all nodes.
#[derive(Serialize)]
struct WorkerGroup {
    workers: u16,
    /// What they do.
    role: &'static str,
    /// Nodes whose worker does not answer.
    silent: Vec<String>,
    /// Nodes whose worker is not connected with all others, or prepares, or is under quarantine.
    not_ready: Vec<String>,
}

impl WorkerGroup {
    /// Asks it, unless it is the first one, whose answers are known.
    fn ask(
        client: &Client,
        number: u16,
        of_first: &[(Party, polyclave_client::Result<NodeStatus>)],
    ) -> WorkerGroup {
        let (mut silent, mut not_ready) = (Vec::new(), Vec::new());
        let mut note = |party: Party, answer: &polyclave_client::Result<NodeStatus>| match answer {
            Err(_) => silent.push(client.node_name(party).to_owned()),
            Ok(status)
                if status.quarantined
                    || !status.prepared
                    || status.connected.len() < client.cluster().nodes() =>
            {
                not_ready.push(client.node_name(party).to_owned());
            }
            Ok(_) => {}
        };
        match number {
            0 => of_first.iter().for_each(|(party, answer)| note(*party, answer)),
            _ => client.status_of_workers(number).iter().for_each(|(party, answer)| note(*party, answer)),
        }
        let role = client.cluster().roles().of(number).message();
        WorkerGroup { workers: number, role, silent, not_ready }
    }

    fn message(&self) -> String {
        let parts = [("do not answer", &self.silent), ("are not ready", &self.not_ready)];
        let parts = parts.into_iter().filter(|(_, nodes)| !nodes.is_empty());
        let parts: Vec<String> =
            parts.map(|(what, nodes)| format!("those of {} {what}", nodes.join(", "))).collect();
        let message = if parts.is_empty() { "all are ready".to_owned() } else { parts.join("; ") };
        format!("workers {}, which {}: {message}", self.workers, self.role)
    }
}

/// When the client's own certificate ends.
fn certificate(arguments: &Arguments) -> Result<CertificateEnd> {
    let dir = arguments.client.dir()?;
    let (_, ends) = expiry(&dir.identity().certificate)?;
    let end = CertificateEnd::new(Holder::Client, dir.name(), ends, SystemTime::now(), arguments.warn_days);
    // What an agent renews ends soon all the time. Once it has ended, no node answers, and that is said.
    Ok(CertificateEnd { soon: end.soon && dir.renewed().is_none(), ..end })
}
