//! `polyclave reproduce`: the tables of a paper, recomputed by running the protocol and counting.
//!
//! A table sets the published value beside ours. Where the paper errs the expected value is the corrected one, and a note
//! says why. A count must equal what is expected, and a mean be within six standard errors of it.

mod damgard_keller_2010;
mod measure;
mod table;
mod viff_2009;

use std::process::ExitCode;
use std::time::Duration;

use crate::say;
use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use table::{Cell, Table};

/// Options of `polyclave reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// damgard-keller-2010 or viff-2009
    #[arg(value_name = "PAPER")]
    paper: String,

    /// One table or section by its number; all of them without it
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
}

/// The tables of a paper that can be recomputed.
struct Paper {
    name: &'static str,
    sections: &'static [Section],
}

/// A table, or a section with counts in its text.
struct Section {
    /// As printed in the paper.
    name: &'static str,
    recompute: fn() -> Result<Vec<Cell>>,
}

const PAPERS: [Paper; 2] = [damgard_keller_2010::PAPER, viff_2009::PAPER];

#[derive(Serialize)]
struct Document {
    paper: &'static str,
    tables: Vec<Table>,
}

/// Runs `polyclave reproduce`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let paper = PAPERS.into_iter().find(|p| p.name == arguments.paper.to_ascii_lowercase());
    let paper = paper.with_context(|| {
        let names = PAPERS.map(|p| p.name).join(", ");
        format!("there is no paper '{}' in this version; choose one of {names}", arguments.paper)
    })?;
    let sections = match &arguments.table {
        Some(wanted) => vec![paper.section(wanted)?],
        None => paper.sections.iter().collect(),
    };
    let progress = progress_bar(sections.len());
    let mut tables = Vec::with_capacity(sections.len());
    for section in sections {
        progress.set_message(section.name);
        tables.push(Table { table: section.name, cells: (section.recompute)()? });
        progress.inc(1);
    }
    progress.finish_and_clear();
    let document = Document { paper: paper.name, tables };
    match arguments.json {
        true => say!("{}", serde_json::to_string_pretty(&document)?),
        false => document.tables.iter().for_each(|table| say!("{table}")),
    }
    let differing: Vec<String> = document.tables.iter().flat_map(Table::differing).collect();
    for cell in &differing {
        eprintln!("error: {cell}");
    }
    Ok(if differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Paper {
    /// The section of this name, or of the number in its name.
    fn section(&self, wanted: &str) -> Result<&'static Section> {
        let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '-', '_'], "");
        let wanted_plain = plain(wanted);
        let is_wanted = |section: &&Section| {
            let name = plain(section.name);
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            wanted_plain == name || wanted_plain == number && !number.is_empty()
        };
        if let Some(section) = self.sections.iter().find(is_wanted) {
            return Ok(section);
        }
        let names = self.sections.iter().map(|s| s.name).collect::<Vec<_>>().join(", ");
        bail!("there is no table '{wanted}' of {} in this version; choose one of {names}", self.name)
    }
}

/// On standard error, and only if that is a terminal.
fn progress_bar(tables: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {bar:40} {pos} of {len} tables, {msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let progress = ProgressBar::new(tables as u64).with_style(style);
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}
