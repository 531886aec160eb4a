//! Blocks a second against the size of a batch for every protocol against active adversaries, both phases
//! together: material is made and used.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use polyclave_protocol::catalog;
use polyclave_protocol::protocol::Adversary;
use serde_json::{Value, json};

use super::Arguments;
use crate::chart::{self, Axis, Chart, Panel, data_beside};
use crate::options::ProtocolOptions;
use crate::say;

const SIZES: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];
/// No larger batch is measured once one has taken so long.
const ENOUGH_SECONDS: f64 = 2.0;
/// The option that says where material comes from, and the one that is no measurement of a whole protocol.
const MATERIAL: (&str, &str) = ("preprocessing", "insecure_dealer");

struct Curve {
    name: &'static str,
    parties: usize,
    /// Blocks, and blocks a second: slowest, median and quickest repeat.
    points: Vec<(usize, [f64; 3])>,
}

/// Measures every such protocol among as few parties as it has by default, and draws.
pub fn run(arguments: &Arguments, path: &Path) -> Result<ExitCode> {
    data_beside(path)?;
    let mut curves = Vec::new();
    for descriptor in
        catalog::all().into_iter().filter(|descriptor| descriptor.adversary != Adversary::Passive)
    {
        let protocol = ProtocolOptions::named(descriptor.name, descriptor.usual_parties);
        if protocol.value(MATERIAL.0) == Some(MATERIAL.1) {
            continue;
        }
        let points = match points(arguments, &protocol) {
            Ok(points) => points,
            // Some protocols are for other ciphers.
            Err(e) => {
                eprintln!("note: {} is left out: {e:#}", descriptor.name);
                continue;
            }
        };
        let curve = Curve { name: descriptor.name, parties: protocol.parties(), points };
        if let (false, Some((blocks, [_, rate, _]))) = (arguments.json, curve.points.last()) {
            say!("{:24}{rate:>9.1} blocks/s at {blocks} blocks", curve.name);
        }
        curves.push(curve);
    }
    let data = json!({
        "cipher": arguments.cipher,
        "network": arguments.network,
        "threads": arguments.threads,
        "repeats": arguments.repeats,
        "instruction_set": polyclave_kernels::instruction_set(),
        "curves": curves.iter().map(Curve::json).collect::<Vec<_>>(),
    });
    chart(arguments, &curves).save_and_tell(&data, path, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

/// Of larger and larger batches, as long as that does not take too long.
fn points(arguments: &Arguments, protocol: &ProtocolOptions) -> Result<Vec<(usize, [f64; 3])>> {
    let mut points = Vec::new();
    for blocks in SIZES {
        let (_, total) = arguments.measure(protocol, &[blocks], 0)?.remove(0).seconds();
        let rate = |seconds: f64| blocks as f64 / seconds;
        points.push((blocks, [total.max, total.median, total.min].map(rate)));
        if total.max > ENOUGH_SECONDS {
            break;
        }
    }
    Ok(points)
}

impl Curve {
    fn json(&self) -> Value {
        let points = self.points.iter().map(|(blocks, [min, median, max])| {
            json!({
                "blocks": blocks, "blocks_per_s": median, "blocks_per_s_min": min, "blocks_per_s_max": max,
            })
        });
        json!({ "protocol": self.name, "parties": self.parties, "points": points.collect::<Vec<_>>() })
    }
}

fn chart(arguments: &Arguments, curves: &[Curve]) -> Chart {
    let points =
        |curve: &Curve| curve.points.iter().map(|(x, [_, median, _])| (*x as f64, *median)).collect();
    let line = |curve: &Curve| chart::Curve { name: curve.name, points: points(curve) };
    Chart {
        title: format!(
            "{}: protocols against active adversaries, {} thread(s) a party, {}",
            arguments.cipher, arguments.threads, arguments.network
        ),
        x: Axis { title: "blocks in a batch", logarithmic: true },
        y: Axis { title: "blocks a second, with all material made (median)", logarithmic: true },
        panels: vec![Panel { title: "", curves: curves.iter().map(line).collect() }],
    }
}
