//! Figure 3: AES by masked tables among 2 to 5 parties, as a table and as a picture.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::AES_LT;
use super::timed::{ahead, setting, setting_ahead};
use crate::chart::{self, Axis, Chart, Panel, data_beside};
use crate::reproduce::table::Cell;
use crate::reproduce::timer::Timer;

const PARTIES: std::ops::RangeInclusive<usize> = 2..=5;
/// The material of five parties has to fit into one machine.
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

/// The same as a picture, with the data in a file beside it.
pub fn draw(timer: &mut Timer, path: &Path) -> Result<()> {
    data_beside(path)?;
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
    chart(&curves).save(&data, path)
}

fn chart(curves: &[Curve]) -> Chart {
    let points =
        |curve: &Curve| curve.points.iter().map(|(x, [_, median, _])| (*x as f64, *median)).collect();
    let line = |curve: &Curve| chart::Curve { name: curve.name, points: points(curve) };
    Chart {
        title: "AES-128 by masked tables, all parties on one machine".into(),
        x: Axis { title: "parties", logarithmic: false },
        y: Axis { title: "blocks a second (median)", logarithmic: true },
        panels: vec![Panel { title: "", curves: curves.iter().map(line).collect() }],
    }
}
