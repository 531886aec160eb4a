//! Blocks a second against the size of a batch, for every inversion: a picture, and its data beside it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use plotters::prelude::*;
use polyclave_protocol::shamir::Inversion;
use serde_json::json;

use super::summary::Summary;
use super::{Arguments, measure};
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
    let beside = data_beside(path)?;
    let mut curves = Vec::new();
    for inversion in Inversion::ALL {
        let mut protocol = arguments.protocol.clone();
        protocol.inversion = Some(inversion.name().into());
        let measured = measure(arguments, &protocol, &SIZES, 0)?;
        let rates = measured.iter().map(|m| Summary::new(arguments, m).online_rates());
        let points: Vec<_> = SIZES.into_iter().zip(rates).collect();
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
    let text = serde_json::to_string_pretty(&data)?;
    std::fs::write(&beside, format!("{text}\n"))
        .with_context(|| format!("cannot write {}", beside.display()))?;
    let mut svg = String::new();
    draw(arguments, &curves, &mut svg).map_err(|e| anyhow::anyhow!("cannot draw: {e}"))?;
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    if arguments.json {
        say!("{text}");
    } else {
        say!("wrote {} and {}", path.display(), beside.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The file for the data of a picture. Whether both can be written is found out before the measuring, not after.
pub fn data_beside(path: &Path) -> Result<PathBuf> {
    ensure!(path.extension().is_some_and(|e| e == "svg"), "--plot takes a file name that ends in .svg");
    let beside = path.with_extension("json");
    for file in [path, &beside] {
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
        opened.with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(beside)
}

fn draw(arguments: &Arguments, curves: &[Curve], svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (900, 600)).into_drawing_area();
    root.fill(&WHITE)?;
    let rates = || curves.iter().flat_map(|c| c.points.iter().map(|(_, [_, median, _])| *median));
    let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
    let largest = SIZES[SIZES.len() - 1] as f64;
    let title = format!(
        "{}: {} parties, {} thread(s) each, {}",
        arguments.cipher,
        arguments.protocol.parties(),
        arguments.threads,
        arguments.network
    );
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(80)
        .build_cartesian_2d((1.0..largest).log_scale(), (least * 0.8..most * 1.3).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("blocks in a batch")
        .y_desc("blocks a second, online (median)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    for (i, curve) in curves.iter().enumerate() {
        let colour = HSLColor(i as f64 / curves.len() as f64, 0.9, 0.38);
        let points = || curve.points.iter().map(|(blocks, [_, median, _])| (*blocks as f64, *median));
        chart
            .draw_series(LineSeries::new(points(), colour.stroke_width(2)).point_size(3))?
            .label(curve.inversion.name())
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
