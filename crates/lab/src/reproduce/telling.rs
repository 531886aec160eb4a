//! The output while tables are recomputed: first how long it takes, then the progress on standard error, and
//! every table as soon as it is ready. With `--json` the tables are parts of one document, which is complete
//! after the last table.

use std::io::IsTerminal;
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};

use super::Section;
use super::table::Table;
use crate::say;

/// How the tables of a paper are shown.
pub struct Telling {
    json: bool,
    quick: bool,
    bar: ProgressBar,
    told: usize,
    of: usize,
}

impl Telling {
    /// Begins, and prints how long it takes.
    pub fn begin(paper: &str, sections: &[&Section], json: bool, quick: bool) -> Result<Telling> {
        let whole = |quick: bool| sections.iter().map(|section| section.seconds(quick)).sum::<u32>();
        let shorter = match quick {
            false if whole(true) < whole(false) => format!("; with --quick {}", about(whole(true))),
            _ => String::new(),
        };
        eprintln!("{paper}: takes {} on two cores{shorter}", about(whole(quick)));
        if json {
            say!("{{ \"paper\": {}, \"tables\": [", serde_json::to_string(paper)?);
        }
        Ok(Telling { json, quick, bar: bar(sections.len() as u64, "tables"), told: 0, of: sections.len() })
    }

    /// Notes that a table is recomputed now.
    pub fn next(&self, section: &Section) {
        self.bar.set_message(section.name);
        if !std::io::stderr().is_terminal() {
            let takes = about(section.seconds(self.quick));
            eprintln!("{} ({} of {}): takes {takes}", section.name, self.told + 1, self.of);
        }
    }

    /// Prints a table that is ready.
    pub fn tell(&mut self, table: &Table) -> Result<()> {
        let text = match self.json {
            true => {
                let comma = if self.told == 0 { "" } else { ", " };
                format!("{comma}{}", serde_json::to_string_pretty(table)?)
            }
            false => table.to_string(),
        };
        self.bar.suspend(|| say!("{text}"));
        self.bar.inc(1);
        self.told += 1;
        Ok(())
    }

    /// Ends the output after all tables.
    pub fn end(self) {
        self.bar.finish_and_clear();
        if self.json {
            say!("] }}");
        }
    }
}

/// A progress bar on standard error, if that is a terminal.
pub fn bar(length: u64, unit: &str) -> ProgressBar {
    let template = format!("{{spinner}} {{bar:40}} {{pos}} of {{len}} {unit}, {{msg}}");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let progress = ProgressBar::new(length).with_style(style);
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

/// A rough time: the exact seconds would mean nothing.
fn about(seconds: u32) -> String {
    match seconds {
        0..=10 => "some seconds".into(),
        11..=90 => format!("up to {} seconds", seconds.div_ceil(10) * 10),
        _ => format!("up to {} minutes", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_as_roughly_as_they_are_known() {
        let message = [0, 10, 11, 61, 90, 91, 300, 313].map(about);
        let seconds =
            ["some seconds", "some seconds", "up to 20 seconds", "up to 70 seconds", "up to 90 seconds"];
        assert_eq!(message[..5], seconds);
        assert_eq!(message[5..], ["up to 2 minutes", "up to 5 minutes", "up to 6 minutes"]);
    }

    #[test]
    fn every_paper_takes_two_minutes_at_most_if_it_is_to_be_quick() {
        for paper in crate::reproduce::PAPERS {
            let seconds: u32 = paper.sections.iter().map(|section| section.seconds(true)).sum();
            assert!(seconds <= 120, "{}: {seconds} s", paper.name);
        }
    }
}
