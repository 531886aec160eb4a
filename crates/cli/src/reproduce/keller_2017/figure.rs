//! Figure 3: AES by masked tables among 2 to 5 parties, as cells and as a picture.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::prelude::*;
use serde_json::json;

use super::AES_LT;
use super::timed::{ahead, setting, setting_ahead};
use crate::bench::data_beside;
use crate::reproduce::table::Cell;
use crate::reproduce::timer::Timer;

const PARTIES: std::ops::RangeInclusive<usize> = 2..=5;
/// Five parties' material has to fit into one machine.
const BLOCKS: usize = 128;

/// Table lookup-based AES throughput for multiple parties.
pub fn figure_3(timer: &mut Timer) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    for parties in PARTIES {
        let row = format!("{parties} parties");
        let (online, note) = online(parties, timer)?;
        cells.push(Cell::unpublished(&row, "Online (/s)", online[1]).note(&note));
        let (ahead, note) = ahead(AES_LT, parties, timer)?;
        cells.push(Cell::unpublished(&row, "Preprocessing (/s)", ahead).note(&note));
    }
    Ok(cells)
}

/// Blocks a second: slowest, median and quickest repeat; and the conditions.
fn online(parties: usize, timer: &mut Timer) -> Result<([f64; 3], String)> {
    let setting = crate::bench::Setting { blocks: BLOCKS, ..setting(AES_LT, parties, 1) };
    let (rates, note) = timer.rates(setting)?;
    Ok((rates.online, note))
}

/// One line of the picture.
struct Curve {
    name: &'static str,
    /// Parties, and blocks a second: slowest, median and quickest repeat.
    points: Vec<(usize, [f64; 3])>,
}

/// The same as a picture, with the data beside it.
pub fn draw(timer: &mut Timer, path: &Path) -> Result<()> {
    let beside = data_beside(path)?;
    let mut curves = [("online", Vec::new()), ("preprocessing", Vec::new())];
    let mut conditions = String::new();
    for parties in PARTIES {
        let (rates, note) = online(parties, timer)?;
        curves[0].1.push((parties, rates));
        let (ahead, _) = timer.rates(setting_ahead(AES_LT, parties))?;
        curves[1].1.extend(ahead.preprocessing.map(|rates| (parties, rates)));
        conditions = if conditions.is_empty() { note } else { conditions };
    }
    let curves: Vec<Curve> = curves
        .into_iter()
        .filter(|(_, points)| !points.is_empty())
        .map(|(name, points)| Curve { name, points })
        .collect();
    let data = json!({
        "paper": super::PAPER.name,
        "figure": "Figure 3",
        "cipher": AES_LT.cipher,
        "protocol": AES_LT.way.name(),
        "conditions_of_the_first_point": conditions,
        "instruction_set": polyclave_kernels::instruction_set(),
        "curves": curves.iter().map(|curve| json!({
            "name": curve.name,
            "points": curve.points.iter().map(|(parties, [min, median, max])| json!({
                "parties": parties, "blocks_per_s": median, "blocks_per_s_min": min, "blocks_per_s_max": max,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&data)?;
    std::fs::write(&beside, format!("{text}\n"))
        .with_context(|| format!("cannot write {}", beside.display()))?;
    let mut svg = String::new();
    picture(&curves, &mut svg).map_err(|e| anyhow!("cannot draw: {e}"))?;
    std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))
}

fn picture(curves: &[Curve], svg: &mut String) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::with_string(svg, (800, 520)).into_drawing_area();
    root.fill(&WHITE)?;
    let rates = || curves.iter().flat_map(|curve| curve.points.iter().map(|(_, [_, median, _])| *median));
    let (least, most) = (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max));
    let (first, last) = (*PARTIES.start() as f64, *PARTIES.end() as f64);
    let mut chart = ChartBuilder::on(&root)
        .caption("AES-128 by masked tables, all parties on one machine", ("sans-serif", 20))
        .margin(15)
        .x_label_area_size(45)
        .y_label_area_size(80)
        .build_cartesian_2d(first - 0.2..last + 0.2, (least * 0.5..most * 2.0).log_scale())?;
    chart
        .configure_mesh()
        .x_labels(PARTIES.count())
        .x_desc("parties")
        .y_desc("blocks a second (median)")
        .x_label_formatter(&|x| format!("{x:.0}"))
        .y_label_formatter(&|y| format!("{y:.0}"))
        .draw()?;
    for (i, curve) in curves.iter().enumerate() {
        let colour = HSLColor(i as f64 / 2.0, 0.9, 0.38);
        let points = || curve.points.iter().map(|(parties, [_, median, _])| (*parties as f64, *median));
        chart
            .draw_series(LineSeries::new(points(), colour.stroke_width(2)).point_size(3))?
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    root.present()?;
    Ok(())
}
