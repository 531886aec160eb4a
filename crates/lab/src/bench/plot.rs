//! Blocks a second against the size of a batch, for every inversion, as a picture with its data in a file
//! beside it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, ensure};
use polyclave_protocol::shamir::Inversion;
use serde_json::json;

use super::Arguments;
use crate::chart::{self, Axis, Chart, Panel, data_beside};
use crate::circuits::Form;
use crate::say;

const SIZES: [usize; 9] = [1, 4, 16, 64, 256, 1024, 4096, 10_000, 16_384];

struct Curve {
    inversion: Inversion,
    /// Blocks, and blocks a second: slowest, median and quickest repeat.
    points: Vec<(usize, [f64; 3])>,
}

/// Measures every inversion at every size and draws.
pub fn run(arguments: &Arguments, path: &Path) -> Result<ExitCode> {
    ensure!(
        arguments.protocol.protocol.eq_ignore_ascii_case("shamir"),
        "--plot compares the inversions of shamir"
    );
    ensure!(
        arguments.form()? == Form::Tables,
        "--plot compares inversions, of which a Boolean circuit has none; leave out --circuit"
    );
    data_beside(path)?;
    let mut curves = Vec::new();
    for inversion in Inversion::ALL {
        let protocol = arguments.protocol.clone().with("inversion", inversion.name());
        let measured = arguments.measure(&protocol, &SIZES, 0)?;
        let points: Vec<_> = SIZES.into_iter().zip(measured.iter().map(|m| m.online_rates())).collect();
        if !arguments.json {
            say!("{:24}{:>9.0} blocks/s at {} blocks", inversion.name(), points[7].1[1], points[7].0);
        }
        curves.push(Curve { inversion, points });
    }
    let data = json!({
        "cipher": arguments.cipher,
        "parties": arguments.protocol.parties(),
        "network": arguments.network,
        "threads": arguments.threads,
        "repeats": arguments.repeats,
        "instruction_set": polyclave_kernels::instruction_set(),
        "curves": curves.iter().map(|c| json!({
            "inversion": c.inversion.name(),
            "points": c.points.iter().map(|(blocks, [min, median, max])| json!({
                "blocks": blocks, "blocks_per_s": median, "blocks_per_s_min": min, "blocks_per_s_max": max,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    chart(arguments, &curves).save_and_tell(&data, path, arguments.json)?;
    Ok(ExitCode::SUCCESS)
}

fn chart(arguments: &Arguments, curves: &[Curve]) -> Chart {
    let points =
        |curve: &Curve| curve.points.iter().map(|(x, [_, median, _])| (*x as f64, *median)).collect();
    let line = |curve: &Curve| chart::Curve { name: curve.inversion.name(), points: points(curve) };
    Chart {
        title: format!(
            "{}: {} parties, {} thread(s) each, {}",
            arguments.cipher,
            arguments.protocol.parties(),
            arguments.threads,
            arguments.network
        ),
        x: Axis { title: "blocks in a batch", logarithmic: true },
        y: Axis { title: "blocks a second, online (median)", logarithmic: true },
        panels: vec![Panel { title: "", curves: curves.iter().map(line).collect() }],
    }
}
