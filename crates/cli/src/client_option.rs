//! The option that selects the client of a command, and how a command asks through it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use polyclave_api::{Approval, Statement, TraceContext};
use polyclave_client::{Again, Client, Error};
use polyclave_config::{ClientDir, Moment, load_approval, save_approval};
use polyclave_protocol::Party;

use crate::files::show_work;
use crate::{say, statement};

/// The option that selects the client.
#[derive(clap::Args)]
pub struct ClientOption {
    /// The client's directory
    #[arg(long = "client", value_name = "DIR", env = "POLYCLAVE_CLIENT")]
    dir: PathBuf,

    /// The trace that the requests belong to, as W3C Trace Context has it. One that is not valid is as none
    // For programs that call this one. People need not read of it in the help of each command.
    #[arg(long, value_name = "TRACEPARENT", env = "TRACEPARENT", hide = true)]
    traceparent: Option<OsString>,

    /// Ask with the approval in this file (`polyclave approval`)
    #[arg(long, value_name = "FILE", help_heading = "Approval", conflicts_with = "ask_approval")]
    approval: Option<PathBuf>,

    /// Ask for nothing, and write what would be asked for into this file, to be approved
    #[arg(long, value_name = "FILE", help_heading = "Approval")]
    ask_approval: Option<PathBuf>,
}

/// What a request for approval says besides the operation.
#[derive(clap::Args)]
pub struct ApprovalRequest {
    /// Hours until the request ends
    #[arg(long, value_name = "H", default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=744))]
    pub hours: u32,

    /// What it is for, for the approvers to read
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub purpose: String,
}

impl ApprovalRequest {
    /// Seconds since 1970.
    pub fn not_after(&self) -> u64 {
        Moment::now().seconds() + u64::from(self.hours) * 3600
    }
}

impl ClientOption {
    /// Its directory.
    pub fn dir(&self) -> Result<ClientDir> {
        open(&self.dir)
    }

    /// Opens the client of that directory.
    pub fn open(&self) -> Result<Client> {
        if let Some(file) = &self.ask_approval {
            return self.open_drafting(file, &ApprovalRequest { hours: 24, purpose: String::new() });
        }
        let client = self.open_plain()?;
        match &self.approval {
            Some(file) => Ok(client.with_approval(load_approval(file)?.0)),
            None => Ok(client),
        }
    }

    /// The same, for a client that writes a request for approval into a file and asks for nothing.
    pub fn open_drafting(&self, file: &Path, request: &ApprovalRequest) -> Result<Client> {
        let file = file.to_path_buf();
        let write = move |asked: Statement| {
            let approval = Approval::new(&asked)?;
            save_approval(&approval, &file).map_err(|e| Error::Misuse(e.to_string()))?;
            statement::tell(&approval, &asked);
            say!("the request is in {}; nothing was asked of the nodes", file.display());
            Ok(())
        };
        Ok(self.open_plain()?.drafting(request.not_after(), &request.purpose, write))
    }

    fn open_plain(&self) -> Result<Client> {
        let trace = self.traceparent.as_ref().and_then(|text| TraceContext::parse(text.as_encoded_bytes()));
        let client = Client::open(&open(&self.dir)?)?.in_trace(trace);
        Ok(client.on_remark(|remark| eprintln!("warning: {remark}")).on_work(show_work))
    }
}

/// Does something, and repeats it if it failed because of a node: while others can serve, each time without
/// the nodes that were suspected since; where all are needed, until the node is back. Only for what can be
/// repeated; `can_repeat` decides that after a failure.
pub fn persist<T>(
    client: &Client,
    can_repeat: impl Fn() -> bool,
    mut work: impl FnMut() -> Result<T>,
) -> Result<T> {
    let all_are_needed = client.spare_nodes() == 0;
    let (mut again, mut is_noted) = (Again::until_a_node_is_back(client), false);
    loop {
        match work() {
            Err(e) if can_repeat() && e.downcast_ref().is_some_and(|e| again.after(e)) => {
                if !all_are_needed || !std::mem::replace(&mut is_noted, true) {
                    eprintln!("note: {e}. Asking again");
                }
            }
            outcome => return outcome,
        }
    }
}

/// The error of a node, with its name once.
pub fn of_node(client: &Client, node: Party, error: &Error) -> String {
    let (name, message) = (client.node_name(node), error.to_string());
    if message.contains(name) { message } else { format!("{name}: {message}") }
}

/// Opens a client's directory.
pub fn open(dir: &Path) -> Result<ClientDir> {
    ClientDir::open(dir).context("this is no client's directory that can be used")
}
