//! What was measured, as a table or as JSON.

use serde::Serialize;

/// All figures of a run, and what the machine did besides.
#[derive(Serialize)]
pub(crate) struct Report {
    processors: usize,
    /// Programs that were running or waiting for a processor, on the average of the last minute, before
    /// anything was measured.
    load_before: String,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct Figure {
    part: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    /// What the project wants to reach, with the same unit.
    goal: Option<String>,
}

impl Report {
    pub(crate) fn new() -> Report {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load_before = load.split(' ').next().unwrap_or_default().to_owned();
        let processors = std::thread::available_parallelism().map_or(0, usize::from);
        Report { processors, load_before, figures: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) {
        self.figures.push(Figure { part, what: what.into(), value, unit, goal: None });
    }

    /// The same, with a goal.
    pub(crate) fn add_with_goal(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        (value, unit): (f64, &'static str),
        goal: &str,
    ) {
        self.add(part, what, value, unit);
        if let Some(figure) = self.figures.last_mut() {
            figure.goal = Some(goal.into());
        }
    }

    pub(crate) fn print(&self, json: bool) {
        if json {
            println!("{}", serde_json::to_string_pretty(self).unwrap_or_default());
            return;
        }
        println!("{} processors, load before: {}\n", self.processors, self.load_before);
        println!("| | measured | goal |\n|---|---|---|");
        for figure in &self.figures {
            let places = if figure.value.abs() < 100.0 && figure.value.fract() != 0.0 { 2 } else { 0 };
            let goal = figure.goal.as_deref().unwrap_or("");
            println!("| {} | {:.places$} {} | {goal} |", figure.what, figure.value, figure.unit);
        }
    }
}
