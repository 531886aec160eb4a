//! `polyclave reproduce`: the tables of a paper, recomputed by running the protocol and counting.
//!
//! A table sets the published value beside ours. Where the paper errs the expected value is the corrected one, and a note
//! says why. A count must equal what is expected, and a mean be within six standard errors of it. Times are compared only.

mod damgard_2016;
mod damgard_keller_2010;
mod keller_2017;
mod measure;
mod pohle_2022;
mod table;
mod timer;
mod viff_2009;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use crate::say;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use table::{Cell, Table};
use timer::Timer;

/// Options of `polyclave reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// damgard-2016, damgard-keller-2010, keller-2017, pohle-2022 or viff-2009
    #[arg(value_name = "PAPER")]
    paper: String,

    /// One table or section by its number; all of them without it
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Blocks in a batch where times are measured [default: few, that differ from cipher to cipher]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    blocks: Option<u32>,

    /// Also draw the figure among the tables asked for, with its data beside it in FILE.json
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

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
    recompute: Recompute,
}

/// How a table is recomputed.
enum Recompute {
    /// By counting.
    Counted(fn() -> Result<Vec<Cell>>),
    /// By measuring times.
    Timed(fn(&mut Timer) -> Result<Vec<Cell>>),
    /// Likewise, and it can be drawn.
    Drawn(fn(&mut Timer) -> Result<Vec<Cell>>, fn(&mut Timer, &Path) -> Result<()>),
}

const PAPERS: [Paper; 5] = [
    damgard_2016::PAPER,
    damgard_keller_2010::PAPER,
    keller_2017::PAPER,
    pohle_2022::PAPER,
    viff_2009::PAPER,
];

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
    let figure = sections.iter().find_map(|section| match section.recompute {
        Recompute::Drawn(_, draw) => Some(draw),
        _ => None,
    });
    if let Some(path) = &arguments.plot {
        ensure!(figure.is_some(), "there is no figure among the tables asked for");
        crate::bench::data_beside(path)?;
    }
    let mut timer = Timer::new(arguments.blocks.map(|blocks| blocks as usize));
    let progress = progress_bar(sections.len());
    let mut tables = Vec::with_capacity(sections.len());
    for section in sections {
        progress.set_message(section.name);
        let cells = match section.recompute {
            Recompute::Counted(recompute) => recompute()?,
            Recompute::Timed(recompute) | Recompute::Drawn(recompute, _) => recompute(&mut timer)?,
        };
        tables.push(Table { table: section.name, cells });
        progress.inc(1);
    }
    if let (Some(path), Some(draw)) = (&arguments.plot, figure) {
        draw(&mut timer, path)?;
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
            let is_number = |number: &str| wanted_plain == number && !number.is_empty();
            wanted_plain == name || is_number(number) || name.strip_prefix("table").is_some_and(is_number)
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
