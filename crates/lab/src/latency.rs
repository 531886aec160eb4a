//! `polyclave-lab latency`: draws what `polyclave cluster bench --network .. --json` has measured.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use polyclave_protocol::catalog;
use serde_json::Value;

use crate::chart::{Axis, Chart, Curve, Panel, data_beside};

/// Options and arguments of the command.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    polyclave cluster bench --network 20ms,1Gbit --far-client --json > 20.json\n  \
    polyclave-lab latency 0.json 20.json 100.json --plot latency.svg\n\n\
    Each curve is of one protocol; the median of the requests counts. The table says how many one-way \
    messages wait for each other in a request: half a delay there and back each, so it follows from two runs \
    with different delays, whatever the computation takes.")]
pub struct Arguments {
    /// What was measured, one file for each run
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Write the picture here, and all that was measured into a .json file beside it
    #[arg(long, value_name = "FILE.svg")]
    plot: PathBuf,

    /// Print what was measured as one JSON document
    #[arg(long)]
    json: bool,
}

/// The panels: the requests as the measurement calls them, and as people do.
const PANELS: [(&str, &str); 4] = [
    ("gcm", "one block in gcm"),
    ("cmac", "MAC of one block"),
    ("pin", "a PIN translated"),
    ("wrap", "a key wrapped"),
];

/// What the table has besides the panels.
const OTHERS: [(&str, &str); 4] = [
    ("sealed", "one block sealed"),
    ("ecb", "one block in ecb"),
    ("hmac", "HMAC of 64 bytes"),
    ("key", "a key made"),
];

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    data_beside(&arguments.plot)?;
    let runs: Vec<Value> = arguments.files.iter().map(|file| read(file)).collect::<Result<_>>()?;
    let panel = |(kind, title)| Ok(Panel { title, curves: curves(&runs, kind)? });
    let chart = Chart {
        title: "A request between cities: what a client waits".into(),
        x: Axis { title: "there and back between nodes, ms", logarithmic: false },
        y: Axis { title: "median, ms", logarithmic: true },
        panels: PANELS.into_iter().map(panel).collect::<Result<_>>()?,
    };
    if !arguments.json {
        print!("{}", table(&runs));
    }
    chart.save_and_tell(&runs, &arguments.plot, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let run: Value = serde_json::from_str(&text).with_context(|| format!("{} is no JSON", file.display()))?;
    let is_of_network = run["network"]["protocol"].is_string();
    ensure!(is_of_network, "{} is not of `polyclave cluster bench --network .. --json`", file.display());
    Ok(run)
}

/// A curve for each protocol that was measured.
fn curves(runs: &[Value], kind: &str) -> Result<Vec<Curve>> {
    let mut curves = Vec::new();
    for descriptor in catalog::all() {
        let of_it = runs.iter().filter(|run| run["network"]["protocol"] == descriptor.name);
        let point = |run: &Value| {
            let ms = run["network"]["round_trip_ms"].as_f64()?;
            Some((ms, run["requests"][kind]["median_ms"].as_f64()?))
        };
        let points: Option<Vec<(f64, f64)>> = of_it.map(point).collect();
        let mut points = points.with_context(|| format!("a run of {} has no {kind}", descriptor.name))?;
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            curves.push(Curve { name: descriptor.name, points });
        }
    }
    ensure!(!curves.is_empty(), "no run is of a protocol that this program knows");
    Ok(curves)
}

/// One-way messages that wait for each other, in Markdown: a line for each kind of request.
fn table(runs: &[Value]) -> String {
    let kinds: Vec<_> = OTHERS.into_iter().chain(PANELS).collect();
    let by_kind: Vec<Vec<Curve>> =
        kinds.iter().map(|(kind, _)| curves(runs, kind).unwrap_or_default()).collect();
    let names: Vec<&str> = catalog::all().iter().map(|descriptor| descriptor.name).collect();
    let is_there = |name: &&str| by_kind.iter().flatten().any(|curve| curve.name == *name);
    let names: Vec<&str> = names.into_iter().filter(is_there).collect();
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut table = line([""].iter().chain(&names).map(|name| name.to_string()).collect());
    table += &line(vec!["---".into(); 1 + names.len()]);
    for ((_, title), curves) in kinds.iter().zip(&by_kind) {
        let of = |name: &&str| curves.iter().find(|curve| curve.name == *name).and_then(messages);
        let cells = names.iter().map(|name| of(name).map_or("".into(), |count| format!("{count:.1}")));
        table += &line([title.to_string()].into_iter().chain(cells).collect());
    }
    table
}

/// How many messages of half a delay there and back a request has waited for, by the nearest nodes and by the
/// farthest.
fn messages(curve: &Curve) -> Option<f64> {
    let [(near, least), .., (far, most)] = curve.points[..] else { return None };
    (far > near).then(|| 2.0 * (most - least) / (far - near))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(protocol: &str, round_trip: f64, gcm: f64) -> Value {
        serde_json::json!({
            "network": { "protocol": protocol, "round_trip_ms": round_trip },
            "requests": { "gcm": { "median_ms": gcm } },
        })
    }

    #[test]
    fn each_protocol_has_a_curve_of_its_runs_in_order() {
        let runs =
            [run_of("shamir", 20.0, 300.0), run_of("replicated", 0.5, 4.0), run_of("shamir", 0.5, 5.0)];
        let curves = curves(&runs, "gcm").expect("curves");
        let found =
            |name: &str| curves.iter().find(|curve| curve.name == name).map(|curve| &curve.points[..]);
        assert_eq!(found("shamir"), Some(&[(0.5, 5.0), (20.0, 300.0)][..]));
        assert_eq!(found("replicated"), Some(&[(0.5, 4.0)][..]));
        assert_eq!(curves.len(), 2);
    }

    #[test]
    fn messages_follow_from_the_two_delays_that_differ_most() {
        let runs =
            [run_of("shamir", 100.0, 311.0), run_of("shamir", 20.0, 71.0), run_of("replicated", 20.0, 9.0)];
        let lines = ["| one block in gcm | 6.0 |  |\n", "| one block in ecb |  |  |\n"];
        let table = table(&runs);
        assert!(table.starts_with("|  | shamir | replicated |\n| --- | --- | --- |\n"), "{table}");
        assert!(lines.iter().all(|line| table.contains(line)), "{table}");
    }

    #[test]
    fn what_was_not_measured_is_an_error() {
        assert!(curves(&[run_of("shamir", 20.0, 300.0)], "pin").is_err());
        assert!(curves(&[run_of("unknown", 20.0, 300.0)], "gcm").is_err());
    }
}
