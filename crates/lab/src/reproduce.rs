//! `polyclave-lab reproduce`: the tables of a paper, recomputed by running the protocol and counting.
//!
//! A table shows the published value beside ours. Where the paper errs the expected value is the corrected
//! one, and a note explains why. A count must equal the expected value, and a mean must be within six
//! standard errors of it. Times are only compared. With `--figures`, the paper's figures of times are
//! measured and drawn instead, and compared with what the paper says about them.

mod damgard_2016;
mod damgard_keller_2010;
mod keller_2017;
mod measure;
mod pohle_2022;
mod table;
mod telling;
mod timer;
mod viff_2009;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::say;
use anyhow::{Context, Result, bail, ensure};
use damgard_keller_2010::Figure;
use serde::Serialize;
use table::{Cell, Table};
use telling::Telling;
use timer::Timer;

/// Options of `polyclave-lab reproduce`.
#[derive(clap::Args)]
pub struct Arguments {
    /// damgard-2016, damgard-keller-2010, keller-2017, pohle-2022 or viff-2009
    #[arg(value_name = "PAPER")]
    paper: String,

    /// One table or section by its number; default: all of them
    #[arg(value_name = "TABLE")]
    table: Option<String>,

    /// Blocks in a batch where times are measured [default: few, that differ from cipher to cipher]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    blocks: Option<u32>,

    /// Also draw the figure among the tables asked for, with its data beside it in FILE.json
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,

    /// Instead of tables: measure the paper's figures, or the figure that is named in place of a table, and
    /// draw them into this directory, with the data beside them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plot", "blocks"])]
    figures: Option<PathBuf>,

    /// How often to measure every point of --figures [default: few times on slow networks, more on fast ones]
    #[arg(long, value_name = "R", requires = "figures", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: Option<u32>,

    /// Measure few blocks, once: less exact, and each paper takes less than two minutes
    #[arg(long, conflicts_with_all = ["blocks", "figures"])]
    quick: bool,

    /// Print one JSON document and nothing else; each table as soon as it is ready
    #[arg(long)]
    json: bool,
}

/// The tables of a paper that can be recomputed.
struct Paper {
    name: &'static str,
    sections: &'static [Section],
    /// The figures that `--figures` measures.
    figures: &'static [Figure],
}

/// A table, or a section with counts in its text.
struct Section {
    /// As printed in the paper.
    name: &'static str,
    recompute: Recompute,
    /// The longest time it takes on two busy cores: three times the processor time it took.
    seconds: u32,
    /// The same with `--quick`.
    quick_seconds: u32,
}

/// How a table is recomputed.
enum Recompute {
    /// By counting.
    Counted(fn() -> Result<Vec<Cell>>),
    /// By measuring times.
    Timed(fn(&mut Timer) -> Result<Vec<Cell>>),
    /// By measuring times; it can also be drawn.
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
struct Figures {
    paper: &'static str,
    figures: Vec<damgard_keller_2010::Measured>,
}

/// Runs `polyclave-lab reproduce`.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let paper = PAPERS.into_iter().find(|p| p.name == arguments.paper.to_ascii_lowercase());
    let paper = paper.with_context(|| {
        let names = PAPERS.map(|p| p.name).join(", ");
        format!("there is no paper '{}' in this version; choose one of {names}", arguments.paper)
    })?;
    if let Some(directory) = &arguments.figures {
        return measure_figures(&paper, arguments, directory);
    }
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
        crate::chart::data_beside(path)?;
    }
    let mut timer = Timer::new(arguments.blocks.map(|blocks| blocks as usize), arguments.quick);
    let mut telling = Telling::begin(paper.name, &sections, arguments.json, arguments.quick)?;
    let mut differing = Vec::new();
    for section in sections {
        telling.next(section);
        let cells = match section.recompute {
            Recompute::Counted(recompute) => recompute()?,
            Recompute::Timed(recompute) | Recompute::Drawn(recompute, _) => recompute(&mut timer)?,
        };
        let table = Table { table: section.name, cells };
        telling.tell(&table)?;
        differing.extend(table.differing());
    }
    if let (Some(path), Some(draw)) = (&arguments.plot, figure) {
        draw(&mut timer, path)?;
    }
    telling.end();
    for cell in &differing {
        eprintln!("error: {cell}");
    }
    Ok(if differing.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Draws and describes every figure as soon as it is measured.
fn measure_figures(paper: &Paper, arguments: &Arguments, directory: &Path) -> Result<ExitCode> {
    ensure!(!paper.figures.is_empty(), "--figures measures none of {} in this version", paper.name);
    let figures = match &arguments.table {
        Some(wanted) => vec![paper.named("figure", paper.figures, |figure| figure.name, wanted)?],
        None => paper.figures.iter().collect(),
    };
    let repeats = arguments.repeats.map(|repeats| repeats as usize);
    let steps = figures.iter().map(|figure| figure.steps(repeats)).sum::<Result<u64>>()?;
    let files = figures.iter().map(|figure| figure.file(directory)).collect::<Result<Vec<_>>>()?;
    let progress = telling::bar(steps, "repeats");
    let mut document = Figures { paper: paper.name, figures: Vec::with_capacity(figures.len()) };
    for (figure, file) in figures.into_iter().zip(files) {
        let measured = figure.make(repeats, &file, &progress)?;
        if !arguments.json {
            progress.suspend(|| say!("{} ({})\n{}\n", figure.name, file.display(), measured.sentence));
        }
        document.figures.push(measured);
    }
    progress.finish_and_clear();
    if arguments.json {
        say!("{}", serde_json::to_string_pretty(&document)?);
    }
    Ok(ExitCode::SUCCESS)
}

impl Section {
    fn seconds(&self, quick: bool) -> u32 {
        if quick { self.quick_seconds } else { self.seconds }
    }
}

impl Paper {
    fn section(&self, wanted: &str) -> Result<&'static Section> {
        let section = self.named("table", self.sections, |section| section.name, wanted);
        match self.named("figure", self.figures, |figure| figure.name, wanted) {
            Ok(figure) if section.is_err() => bail!("{} is measured: add --figures DIR", figure.name),
            _ => section,
        }
    }

    /// The table or figure with this name, or with this number in its name.
    fn named<T>(
        &self,
        kind: &str,
        things: &'static [T],
        name: fn(&T) -> &'static str,
        wanted: &str,
    ) -> Result<&'static T> {
        let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '-', '_'], "");
        let wanted_plain = plain(wanted);
        let is_wanted = |thing: &&T| {
            let name = plain(name(thing));
            let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
            let is_number = |number: &str| wanted_plain == number && !number.is_empty();
            wanted_plain == name || is_number(number) || name.strip_prefix("table").is_some_and(is_number)
        };
        if let Some(thing) = things.iter().find(is_wanted) {
            return Ok(thing);
        }
        let names = things.iter().map(name).collect::<Vec<_>>().join(", ");
        bail!("there is no {kind} '{wanted}' of {} in this version; choose one of {names}", self.name)
    }
}
