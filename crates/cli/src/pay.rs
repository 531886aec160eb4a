//! `polyclave pay`: payment commands, as JSON.

use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_client::Paid;
use polyclave_payments::Command;
use zeroize::Zeroizing;

use crate::client_option::{ClientOption, persist};
use crate::files::Source;
use crate::say;

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave key generate pins --cipher 3des-ede2 --usage pin-encryption\n  \
    polyclave key generate pvv --cipher 3des-ede2 --usage pin-verification-visa\n  \
    polyclave pay --key pins --key pvv '{\"verify-pin\": {\"pan\": \"1122334455667788\", \"pin\": {\"format\": \"iso0\", \
    \"block\": \"d8e1d37b4e6a1f0c\", \"key\": \"direct\"}, \"reference\": {\"visa\": {\"index\": 3, \"value\": \"4021\"}}}}'\n  \
    polyclave pay --key pins --key pvv --in commands.txt\n\n\
    Each line of the output belongs to a command: its answer in hexadecimal, \"holds\" if it has none, or \"does not hold\". Nobody learns \
    why it does not; after many failures in an hour the nodes answer no more. The exit status is 0 if all hold. \
    docs/reference/payments.md has every command with an example, and which keys it takes.")]
pub struct Arguments {
    /// A key, by its name; give it once for each key of the command, in the order in which it takes them
    #[arg(long = "key", value_name = "NAME", required = true)]
    keys: Vec<String>,

    /// Read the commands from this file, one after the other; - for standard input
    #[arg(long = "in", value_name = "FILE", conflicts_with = "commands")]
    input: Option<PathBuf>,

    #[command(flatten)]
    client: ClientOption,

    /// Print one JSON document
    #[arg(long)]
    json: bool,

    /// The commands, as JSON [default: standard input, one after the other]
    #[arg(value_name = "COMMAND")]
    commands: Vec<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let commands = arguments.given()?;
    ensure!(!commands.is_empty(), "there is no command: give some, or write them to standard input");
    let client = arguments.client.open()?;
    let keys: Vec<&str> = arguments.keys.iter().map(String::as_str).collect();
    let paid = persist(&client, || true, || Ok(client.pay_all(&keys, &commands)?))?;
    if arguments.json {
        let outcomes: Vec<serde_json::Value> = paid.iter().map(in_json).collect();
        say!("{}", serde_json::json!({ "outcomes": outcomes }));
    } else {
        for paid in &paid {
            match paid {
                None => say!("does not hold"),
                Some(answer) if answer.is_empty() => say!("holds"),
                Some(answer) => say!("{}", *Zeroizing::new(hex::encode(answer))),
            }
        }
    }
    Ok(ExitCode::from(u8::from(!paid.iter().all(Option::is_some))))
}

fn in_json(paid: &Paid) -> serde_json::Value {
    match paid {
        None => serde_json::json!({ "holds": false }),
        Some(answer) if answer.is_empty() => serde_json::json!({ "holds": true }),
        Some(answer) => serde_json::json!({ "holds": true, "answer": hex::encode(answer) }),
    }
}

impl Arguments {
    /// The commands, from wherever they come.
    fn given(&self) -> Result<Vec<Command>> {
        let of = |i: usize| format!("command {} is no payment command", i + 1);
        if !self.commands.is_empty() {
            let parsed = |(i, text): (usize, &String)| serde_json::from_str(text).with_context(|| of(i));
            return self.commands.iter().enumerate().map(parsed).collect();
        }
        let path = self.input.clone().unwrap_or_else(|| "-".into());
        let input = BufReader::new(Source::new(&path).open()?);
        let commands = serde_json::Deserializer::from_reader(input).into_iter();
        commands.enumerate().map(|(i, command)| command.with_context(|| of(i))).collect()
    }
}
