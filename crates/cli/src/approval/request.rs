//! `approval request`: writes down what is to be approved. Every command that asks nodes for something can do
//! that, with `--ask-approval`; here are the usual ones, and those that operators need.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use clap::{Command, CommandFactory, Subcommand};
use polyclave_api::{Approval, Statement, Subject, Wrapping, version_of_files};
use polyclave_client::Error;
use polyclave_config::{ClientPolicy, Cluster, NodeDir, save_approval};
use polyclave_node::admin::{Answer, Instruction, order};
use polyclave_node::reshare;
use polyclave_protocol::session::random_bytes;

use crate::client_option::{ApprovalRequest, ClientOption};
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave approval request delete payroll --out delete.approval --purpose 'ticket 4711'\n  \
    polyclave key delete payroll --yes --ask-approval delete.approval           (the same)\n  \
    polyclave approval sign delete.approval --client DIR                        (each approver)\n  \
    polyclave key delete payroll --yes --approval delete.approval\n  \
    polyclave approval request reshare reshare.toml --node DIR --out reshare.approval   (then node reshare --approval)\n  \
    polyclave approval request refresh --node DIR --out refresh.approval                (then node refresh --approval)\n\n\
    Every command that asks nodes for something takes --ask-approval FILE, which writes the request and asks for nothing, and --approval FILE. \
    The request has the operation with all its options, the client that will ask, the id of the key, and a time limit. It can be used once.")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Anything else: which command does it and writes the request
    #[command(external_subcommand)]
    Other(Vec<String>),
    /// To delete a key
    Delete {
        /// The key's name
        key: String,
        #[command(flatten)]
        out: Out,
        #[command(flatten)]
        client: ClientOption,
    },
    /// To wrap a key under another
    Wrap {
        /// The key's name
        key: String,
        /// The name of the key that wraps it
        #[arg(long, value_name = "KEK")]
        under: String,
        /// How: kw or kwp
        #[arg(long, default_value = "kwp", value_parser = ["kw", "kwp"])]
        how: String,
        #[command(flatten)]
        out: Out,
        #[command(flatten)]
        client: ClientOption,
    },
    /// To put new rules for clients into use (`node policy set`)
    Policy {
        /// The file with the new rules
        file: PathBuf,
        /// A node's directory, of the cluster that it is for
        #[arg(long, value_name = "DIR")]
        node: PathBuf,
        #[command(flatten)]
        out: Out,
    },
    /// To move all keys to other nodes (`node reshare`)
    Reshare {
        /// The file that `cluster reshape` has made
        file: PathBuf,
        /// The directory of a node of the cluster from before
        #[arg(long, value_name = "DIR")]
        node: PathBuf,
        #[command(flatten)]
        out: Out,
    },
    /// To give all keys fresh shares (`node refresh`)
    Refresh {
        /// The directory of a node that runs
        #[arg(long, value_name = "DIR")]
        node: PathBuf,
        /// Also if more checks have failed than a node accepts
        #[arg(long)]
        despite_failed_checks: bool,
        #[command(flatten)]
        out: Out,
    },
}

/// Where the request goes, and what it says.
#[derive(clap::Args)]
struct Out {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    request: ApprovalRequest,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    match &arguments.what {
        What::Other(words) => Err(elsewhere(words.first().map_or("", String::as_str))),
        What::Delete { key, out, client } => {
            let client = client.open_drafting(&out.out, &out.request)?;
            drafted(client.delete(key))
        }
        What::Wrap { key, under, how, out, client } => {
            let client = client.open_drafting(&out.out, &out.request)?;
            let how = if how == "kw" { Wrapping::Kw } else { Wrapping::Kwp };
            drafted(client.wrap(under, key, how))
        }
        What::Policy { file, node, out } => {
            let digest = ClientPolicy::load(file)?.digest();
            of_node(node, |_, _| Ok(Subject::Policy { digest }), out)
        }
        What::Reshare { file, node, out } => {
            let new = Cluster::load(file)?;
            let subject = |_: &NodeDir, old: &Cluster| {
                reshare::check(old, &new)?;
                Ok(Subject::Reshare { from: old.fingerprint().bytes(), to: new.fingerprint().bytes() })
            };
            of_node(node, subject, out)
        }
        What::Refresh { node, despite_failed_checks: despite_failures, out } => {
            let subject = |dir: &NodeDir, _: &Cluster| {
                let secrets = secrets_in_use(dir)?;
                Ok(Subject::Refresh { secrets, despite_failures: *despite_failures })
            };
            of_node(node, subject, out)
        }
    }
}

/// The id of the common secrets that a running node uses.
fn secrets_in_use(dir: &NodeDir) -> Result<[u8; 32]> {
    let name = &dir.settings().name;
    let Some(Answer::Status(status)) = order(dir, &Instruction::Status)? else {
        bail!(
            "{name} is not running, and only a running node says which common secrets are in use; start it"
        );
    };
    let secrets =
        status.secrets.ok_or_else(|| anyhow!("{name} has no common secrets with the others yet"))?;
    let mut id = [0; 32];
    hex::decode_to_slice(&secrets, &mut id)
        .context("the node answered something else; is it of another version?")?;
    Ok(id)
}

/// Names the commands that do something and write the request for it themselves.
fn elsewhere(word: &str) -> anyhow::Error {
    let mut found = Vec::new();
    asking(&crate::Arguments::command(), String::new(), word, &mut found);
    match found.is_empty() {
        true => anyhow!(
            "`approval request` is for delete, wrap, policy, reshare and refresh, and no other command is called '{word}'; see `polyclave --help`"
        ),
        false => anyhow!(
            "`approval request` is for delete, wrap, policy, reshare and refresh. {} with --ask-approval FILE writes the request itself",
            found.join(" or ")
        ),
    }
}

fn asking(command: &Command, above: String, word: &str, found: &mut Vec<String>) {
    let path = format!("{above}{}", command.get_name());
    if command.get_name() == word && command.get_arguments().any(|a| a.get_long() == Some("ask-approval")) {
        found.push(format!("`{path}`"));
    }
    command.get_subcommands().for_each(|below| asking(below, format!("{path} "), word, found));
}

fn drafted<T>(outcome: polyclave_client::Result<T>) -> Result<ExitCode> {
    match outcome {
        Err(Error::Drafted) => Ok(ExitCode::SUCCESS),
        Err(e) => Err(e.into()),
        Ok(_) => Err(anyhow!("the operation was done, and no request was written")),
    }
}

/// Writes a request for what an operator does at nodes.
fn of_node(
    dir: &Path,
    subject: impl FnOnce(&NodeDir, &Cluster) -> Result<Subject>,
    out: &Out,
) -> Result<ExitCode> {
    let dir = NodeDir::open(dir).context("this is no node's directory that can be used")?;
    let cluster = dir.cluster()?.ok_or_else(|| anyhow!("this node has no cluster file yet"))?;
    let subject = subject(&dir, &cluster)?;
    let mut nonce = [0; 32];
    random_bytes(&mut nonce)?;
    let statement = Statement {
        version: version_of_files(),
        cluster: cluster.id(),
        subject,
        keys: Vec::new(),
        not_after: out.request.not_after(),
        nonce,
        purpose: out.request.purpose.clone(),
    };
    save_approval(&Approval::new(&statement)?, &out.out)?;
    crate::statement::tell(&Approval::new(&statement)?, &statement);
    say!("the request is in {}", out.out.display());
    Ok(ExitCode::SUCCESS)
}
